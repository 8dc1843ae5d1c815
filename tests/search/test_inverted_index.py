"""The inverted index of sets: shared items are counted exactly, and lists of a query are the shortest first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.similarity import Sets
from neardup.search.inverted_index import Compared, InvertedIndex, as_bags

MANY_SETS = st.lists(st.frozensets(st.sampled_from([0, 1, 2, 7, 2**63, 2**64 - 1])), max_size=8)


def as_sets(members):
    ends = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return Sets(np.array([item for one in members for item in sorted(one)], np.uint64), ends)


def compared(members):
    return Compared(as_sets(members), np.zeros(len(members), np.int64))


@given(documents=MANY_SETS, sets=MANY_SETS)
def test_shared_items_are_counted_for_every_set_and_document(documents, sets):
    counted = InvertedIndex(compared(documents)).count_shared(as_sets(sets))
    assert counted.shape == (len(sets), len(documents))
    assert counted.tolist() == [[len(own & other) for other in documents] for own in sets]


def test_a_query_reads_its_shortest_lists_first():
    index = InvertedIndex(compared([{1, 2}, {1, 7}, {1, 2}]))
    walks = index.walks(as_bags(compared([{1, 2, 7, 99}])))
    assert [int(index.postings.keys[at]) for at in walks.lists] == [7, 2, 1]


def test_a_document_does_not_read_the_list_of_an_item_that_it_alone_has():
    index = InvertedIndex(compared([{1, 2}, {1, 7}]))
    walks = index.walks()
    assert [int(index.postings.keys[at]) for at in walks.lists] == [1, 1]
    assert walks.ends.tolist() == [0, 1, 2]
