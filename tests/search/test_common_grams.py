"""The 13-gram rule: exactly the items that share 13 consecutive words with a document, as plain Python finds them."""

import numpy as np
import pytest

from neardup.kernels import common_grams as kernel
from neardup.search import bench_items
from neardup.search.common_grams import GramSearch
from support.item_oracle import SIZE, covered, grams
from support.plain_kernels import plain


def joined(texts):
    words = np.concatenate([np.array(text, np.uint64) for text in texts] or [[]]).astype(np.uint64)
    # Hashes of words are spread over all 64-bit numbers.
    return (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15), np.cumsum([0, *map(len, texts)])


def search(items):
    made = GramSearch(*joined(items))
    made.weigh()
    return made


def spans(text, wanted):
    """First and last word of the spans of a text that overlapping runs cover."""
    found = []
    for at, gram in enumerate(grams(text)):
        if gram not in wanted:
            continue
        if found and at <= found[-1][1]:
            found[-1] = (found[-1][0], at + SIZE - 1)
        else:
            found.append((at, at + SIZE - 1))
    return found


def expected_rows(documents, items):
    """(document, item, words of the item, first, last, first and last in the item, words) of every span."""
    rows = []
    for doc, text in enumerate(documents):
        for number, item in enumerate(items):
            in_item = set(grams(item))
            share = len(covered(item, in_item & set(grams(text))))
            for first, last in spans(text, in_item):
                own = covered(item, in_item & set(grams(text[first : last + 1])))
                rows.append((doc, number, share, first, last, min(own), max(own), last - first + 1))
    return rows


def random_corpus(rng):
    vocabulary = int(rng.integers(1, 40))
    items = [rng.integers(0, vocabulary, int(rng.integers(0, 45))).tolist() for _ in range(6)]
    items += [[*items[0][:20], *items[1]]]
    documents = []
    for _ in range(8):
        text = rng.integers(0, vocabulary + 9, int(rng.integers(0, 30))).tolist()
        for item in rng.integers(0, 7, 3):
            first = int(rng.integers(0, 6))
            text += items[item][first : first + int(rng.integers(8, 30))]
            text += rng.integers(0, vocabulary + 9, int(rng.integers(0, 3))).tolist()
        documents.append(text)
    return items, documents


def test_spans_equal_those_of_plain_python():
    rng = np.random.default_rng(7)
    num_rows = 0
    for _ in range(150):
        items, documents = random_corpus(rng)
        found = search(items).find(*joined(documents))
        expected = expected_rows(documents, items)
        assert [tuple(row) for row in found.tolist()] == expected
        num_rows += len(expected)
    assert num_rows > 1000


@pytest.mark.parametrize("room", [0, 1, 500])
@np.errstate(over="ignore")
def test_the_compiled_kernels_equal_the_python_functions(room):
    rng = np.random.default_rng(8)
    for _ in range(10):
        items, documents = random_corpus(rng)
        made = search(items)
        results = []
        for module in (kernel, plain(kernel)):
            capacity = 2 * made._words.size + 8
            slots = np.full(capacity + made._words.size + 1, -1)
            numbers = np.empty(made._words.size, np.int64)
            count = module.number_grams(made._words, made._ends, SIZE, capacity, slots, numbers)
            assert count == made._grams.ends.size - 1
            scratch = (
                np.full((len(items), 4), -1),
                np.full(count, -1),
                np.full(made._words.size, -1),
            )
            found = np.zeros((room, 8), np.int64)
            words, ends = joined(documents)
            own = made._grams._replace(slots=slots, grams=numbers)
            total = module.find_spans(
                made._numbered(words), ends, SIZE, capacity, own, scratch, found
            )
            results.append((total, found.tolist(), slots.tolist(), numbers.tolist()))
        assert results[0] == results[1]
        assert results[0][0] == len(expected_rows(documents, items))


def test_twelve_common_words_are_no_match_and_thirteen_are():
    item = list(range(40))
    found = search([item]).find(*joined([[99, *item[5:17], 99], [99, *item[5:18], 99]]))
    [row] = found.tolist()
    assert row == [1, 0, 13, 1, 13, 5, 17, 13]


def test_items_of_fewer_than_thirteen_words_are_too_short():
    made = search([list(range(12)), [], list(range(13))])
    assert made.is_too_short.tolist() == [True, True, False]
    assert made.find(*joined([list(range(13))]))[:, bench_items.ITEM].tolist() == [2]


def test_a_word_that_repeats_is_linear():
    # 2,000 x 50,000 comparisons would take a minute.
    [row] = search([[1] * 2_000]).find(*joined([[1] * 50_000])).tolist()
    assert row == [0, 0, 2_000, 0, 49_999, 0, 1_999, 50_000]


def test_no_items_and_no_documents():
    assert search([]).find(*joined([[1] * 20])).shape == (0, 8)
    assert search([[1] * 20]).find(*joined([])).shape == (0, 8)
