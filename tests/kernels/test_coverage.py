"""The best chain of an item in a text, and the regions where one may be, against plain Python."""

from itertools import combinations

import numpy as np
import pytest

from neardup.kernels import coverage
from support.plain_kernels import plain

GAP = 3


def best_weight(text, words, weights, gap):
    """The weight of the best chain, by every pair and every pair before it."""
    best = {}
    for at, word in enumerate(text):
        for position, own in enumerate(words):
            if word != own or word < 0:
                continue
            before = [
                weight
                for (other_at, other_position), weight in best.items()
                if other_position < position and 0 < at - other_at <= gap + 1
            ]
            best[at, position] = weights[position] + max(before, default=0)
    return max(best.values(), default=0)


def items_of(words, weights, least, gap=GAP):
    return coverage.BenchItems(
        np.array(words, np.int64),
        np.array(weights, np.int64),
        np.array([0, len(words)]),
        np.array([gap], np.int64),
        np.array([least], np.int64),
    )


def chains(text, words, weights, least=1, gap=GAP, kernel=coverage.cover_regions):
    size = max([*text, *words]) + 1
    found = np.zeros((100, 8), np.int64)
    counts = np.zeros(size, np.int64)
    starts = np.zeros(size, np.int64)
    region = np.array([[7, 0, 0, len(text)]])
    items = items_of(words, weights, least, gap)
    count = kernel(np.array(text, np.int64), region, items, starts, counts, found)
    assert not counts.any()
    assert (found[:count, 0] == 7).all()
    return [tuple(row) for row in found[:count, 2:].tolist()]


def random_case(rng):
    vocabulary = int(rng.integers(1, 8))
    text = rng.integers(-1, vocabulary, int(rng.integers(1, 30))).tolist()
    words = rng.integers(0, vocabulary, int(rng.integers(1, 10))).tolist()
    weights = rng.integers(1, 5, len(words)).tolist()
    return text, words, weights, int(rng.integers(0, 4))


def test_the_heaviest_chain_is_found_and_every_chain_is_one():
    rng = np.random.default_rng(5)
    for _ in range(400):
        text, words, weights, gap = random_case(rng)
        found = chains(text, words, weights, gap=gap)
        most = best_weight(text, words, weights, gap)
        assert max((row[0] for row in found), default=0) == most
        for weight, first, last, item_first, item_last, matched in found:
            span = text[first : last + 1]
            assert best_weight(span, words, weights, gap) >= weight
            assert (text[first], text[last]) == (words[item_first], words[item_last])
            assert 1 <= matched <= min(len(span), item_last - item_first + 1)


def test_chains_equal_those_of_the_python_function():
    rng = np.random.default_rng(6)
    for _ in range(50):
        text, words, weights, gap = random_case(rng)
        compiled = chains(text, words, weights, 3, gap)
        assert compiled == chains(text, words, weights, 3, gap, plain(coverage).cover_regions)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ([0, 1, 2, 3], [(4, 0, 3, 0, 3, 4)]),
        ([9, 0, 1, 9, 2, 3, 9], [(4, 1, 5, 0, 3, 4)]),
        ([0, 1, 9, 9, 9, 9, 2, 3], []),
        ([3, 2, 1, 0], []),
        ([0, 1, 2, 3, 9, 0, 1, 3], [(4, 0, 3, 0, 3, 4), (3, 5, 7, 0, 3, 3)]),
        ([0, 0, 1, 2, 3], [(4, 1, 4, 0, 3, 4)]),
    ],
)
def test_a_chain_is_in_order_with_gaps(text, expected):
    assert chains(text, [0, 1, 2, 3], [1, 1, 1, 1], least=3) == expected


def test_an_item_that_is_repeated_without_end_takes_linear_time():
    text = np.tile(np.arange(20), 5_000)
    words = np.arange(20)
    found = np.zeros((5_000, 8), np.int64)
    scratch = np.zeros(20, np.int64)
    items = items_of(words, np.ones(20), 20)
    region = np.array([[0, 0, 0, text.size]])
    count = coverage.cover_regions(text, region, items, scratch, scratch.copy(), found)
    assert count == 5_000
    assert (found[:, 2] == 20).all()


def test_numbers_of_words_and_counts_of_documents():
    keys = np.array([5, 7, 1 << 63, 2**64 - 1], np.uint64)
    table = np.zeros(40, np.uint64)
    numbers = np.zeros(40, np.int64)
    coverage.fill_numbers(keys, 30, table, numbers)
    words = np.array([7, 3, 7, 1 << 63, 2**64 - 1, 6], np.uint64)
    numbered = np.zeros(6, np.int64)
    coverage.number_words(words, 30, table, numbers, numbered)
    assert numbered.tolist() == [1, -1, 1, 2, 3, -1]
    counts = np.zeros(4, np.int64)
    ends = np.array([0, 4, 4, 6])
    coverage.count_documents(numbered, ends, np.full(4, -1), counts)
    assert counts.tolist() == [0, 1, 1, 1]


def regions(texts, probes, sizes, step=3, num_words=5, room=100, kernel=coverage.find_regions):
    """The regions of texts; probes: of every item its words with their positions."""
    pairs = [(item, at, word) for item, own in enumerate(probes) for at, word in own]
    words = np.array([word for _, _, word in pairs], np.int64)
    arrays = coverage.Probes(
        ends=np.searchsorted(np.sort(words), np.arange(num_words + 1)),
        numbers=np.argsort(words, kind="stable"),
        items=np.array([item for item, _, _ in pairs], np.int64),
        at=np.array([at for _, at, _ in pairs], np.int64),
        steps=np.full(len(probes), step),
        sizes=np.array(sizes, np.int64),
    )
    last_at = np.full(len(pairs), coverage.FAR_AWAY)
    seen = np.full((len(probes), 2), -1)
    found = np.zeros((room, 4), np.int64)
    ends = np.cumsum([0, *map(len, texts)])
    count = kernel(np.concatenate(texts), ends, arrays, last_at, seen, found)
    return count, [tuple(row) for row in found[: min(count, room)].tolist()]


def test_two_probes_of_an_item_in_order_and_close_enough_make_a_region():
    # Words 0 and 1 are the first and the third word of an item of four; 3 positions to the next word at most.
    probes = [[(0, 0), (2, 1)]]
    near = np.array([-1, 0, -1, -1, -1, -1, -1, 1, -1, -1, -1, -1, -1])
    assert regions([near], probes, [4])[1] == [(0, 0, 1, 11)]
    far = np.array([0, -1, -1, -1, -1, -1, -1, 1])
    assert regions([far], probes, [4])[1] == []
    swapped = np.array([1, 0, -1])
    assert regions([swapped], probes, [4])[1] == []
    assert regions([near[:4], near[4:]], probes, [4])[1] == []
    assert regions([near[:4], near], probes, [4])[1] == [(1, 0, 5, 15)]


def test_regions_that_overlap_are_united_and_more_than_the_room_are_counted():
    text = np.array([0, 1, 0, 1, *[-1] * 20, 0, 1])
    probes = [[(0, 0), (1, 1)]]
    assert regions([text], probes, [2])[1] == [(0, 0, 0, 4), (0, 0, 22, 26)]
    count, found = regions([text], probes, [2], room=1)
    assert count >= 2
    assert found == [(0, 0, 0, 4)]


def test_regions_equal_those_of_the_python_function_and_lose_no_pair():
    rng = np.random.default_rng(9)
    num_regions = 0
    for _ in range(100):
        texts = [rng.integers(-1, 5, int(rng.integers(0, 40))) for _ in range(3)]
        probes = [
            sorted((int(at), int(rng.integers(0, 5))) for at in rng.choice(9, 3, replace=False))
            for _ in range(3)
        ]
        found = regions(texts, probes, [9] * 3)
        assert found == regions(texts, probes, [9] * 3, kernel=plain(coverage).find_regions)
        ends = np.cumsum([0, *map(len, texts)])
        for doc, text in enumerate(texts):
            for item, own in enumerate(probes):
                for (first, word), (second, other) in combinations(own, 2):
                    pairs = [
                        (at, later)
                        for at in np.flatnonzero(text == word)
                        for later in np.flatnonzero(text == other)
                        if 0 < later - at <= 3 * (second - first)
                    ]
                    for _, later in pairs:
                        start = max(ends[doc], ends[doc] + later - 3 * second)
                        stop = min(ends[doc + 1], ends[doc] + later + 3 * (8 - second) + 1)
                        assert any(
                            (row[0], row[1]) == (doc, item) and row[2] <= start and row[3] >= stop
                            for row in united(found[1])
                        )
                        num_regions += 1
    assert num_regions > 500


def united(rows):
    """Regions of a document and an item as one if they overlap."""
    found = []
    for row in sorted(rows):
        if found and found[-1][:2] == row[:2] and row[2] < found[-1][3]:
            found[-1] = (*row[:2], found[-1][2], max(row[3], found[-1][3]))
        else:
            found.append(row)
    return found
