"""Items of benchmarks in documents: exactly those that plain Python finds, whatever was edited."""

import numpy as np
import pytest

from neardup.search import bench_items
from neardup.search.bench_items import BenchSearch
from support import item_oracle


def joined(texts):
    words = np.concatenate([np.array(text, np.uint64) for text in texts] or [[]]).astype(np.uint64)
    # Hashes of words are spread over all 64-bit numbers.
    return (words + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15), np.cumsum([0, *map(len, texts)])


def search(documents, items, threshold=0.8):
    made = BenchSearch(*joined(items), threshold)
    made.count(*joined(documents))
    made.weigh()
    return made


def best_scores(made, documents):
    found = made.find(*joined(documents))
    scores = {}
    shares = found[:, bench_items.WEIGHT] / made.totals[found[:, bench_items.ITEM]]
    for row, score in zip(found.tolist(), shares.tolist(), strict=True):
        pair = row[bench_items.DOC], row[bench_items.ITEM]
        scores[pair] = max(score, scores.get(pair, 0))
    return scores


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_scores_equal_those_of_plain_python(threshold):
    rng = np.random.default_rng(3)
    num_found = 0
    for _ in range(25):
        vocabulary = int(rng.integers(2, 60))
        items = [rng.integers(0, vocabulary, int(rng.integers(5, 30))).tolist() for _ in range(6)]
        documents = []
        for _ in range(8):
            text = rng.integers(0, vocabulary + 20, int(rng.integers(0, 20))).tolist()
            for item in rng.integers(0, 6, 2):
                copied = [word for word in items[item] if rng.random() > 0.1]
                for place in rng.integers(0, len(copied) + 1, 2):
                    copied.insert(place, int(rng.integers(0, vocabulary)))
                text += copied if rng.random() < 0.7 else items[item]
            documents.append(text)
        made = search(documents, items, threshold)
        expected = item_oracle.scores(documents, items, threshold)
        assert best_scores(made, documents) == expected
        num_found += len(expected)
    assert num_found > 50


@pytest.mark.parametrize("size", [20, 24, 60])
@pytest.mark.parametrize("num_documents", [1, 40, 1000])
def test_one_edit_anywhere_leaves_an_item_of_twenty_words_found(size, num_documents):
    item = list(range(size))
    # From words that all documents have to one that none has.
    others = [[word for word in item if word % 7 > number % 9] for number in range(num_documents)]
    edited = []
    for at in range(size):
        edited += [
            [*item[:at], 999, *item[at + 1 :]],
            [*item[:at], *item[at + 1 :]],
            [*item[:at], 999, *item[at:]],
        ]
    made = search(others, [item])
    assert len(best_scores(made, edited)) == len(edited)


def test_an_item_of_twelve_words_must_be_complete():
    item = list(range(12))
    made = search([item], [item])
    whole = [50, *item, 51]
    assert best_scores(made, [whole, [*item[:5], 99, *item[5:]], item[1:]]) == {(0, 0): 1.0}


def test_short_items_are_not_searched():
    made = search([[1, 2, 3]], [[1, 2, 3], [], list(range(8))])
    assert made.is_too_short.tolist() == [True, True, False]
    assert best_scores(made, [[1, 2, 3], list(range(8))]) == {(1, 2): 1.0}


def test_every_copy_of_an_item_in_a_document_is_a_span():
    item = list(range(30))
    made = search([item], [item])
    found = made.find(*joined([[7, *item, 7, 7, *item]]))
    spans = found[:, [bench_items.FIRST, bench_items.LAST, bench_items.MATCHED]].tolist()
    assert spans == [[1, 30, 30], [33, 62, 30]]


def test_batches_and_their_order_do_not_matter():
    rng = np.random.default_rng(4)
    items = [rng.integers(0, 50, 24).tolist() for _ in range(10)]
    documents = [[*rng.integers(0, 90, 30), *items[number % 10]] for number in range(20)]
    whole = search(documents, items)
    parts = BenchSearch(*joined(items), 0.8)
    for part in (documents[13:], documents[:13]):
        parts.count(*joined(part))
    parts.weigh()
    expected = best_scores(whole, documents)
    assert len(expected) == 20
    assert best_scores(parts, documents) == expected
    assert best_scores(parts, documents[5:6]) == {(0, 5): expected[5, 5]}


def test_the_least_weight_is_the_least_whose_share_reaches_the_threshold():
    totals = np.arange(1, 3000)
    for threshold in (0.3, 0.7, 0.8, 1 / 3, 1.0):
        least = bench_items.least_weights(totals, threshold)
        assert (least / totals >= threshold).all()
        assert ((least - 1) / totals < threshold).all()
