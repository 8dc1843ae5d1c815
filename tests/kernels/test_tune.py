"""Counting similarities to a sample: as plain sets count them, and compiled equals plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import tune
from neardup.measures.jaccard import Sets
from neardup.search.prefix_index import PrefixIndex
from support.plain_kernels import plain

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
PLAIN = plain(tune)
EDGES = np.array([0.1, 0.4, 0.5, 0.75, 1.0])
ITEMS = [1, 2, 3, 2**16, 2**31, 2**48, 2**60, 2**63 - 1, 2**63, 2**64 - 2]
many_sets = st.lists(st.frozensets(st.sampled_from(ITEMS), min_size=1), min_size=1, max_size=7)
ROOM = 2


def end_to_end(sets):
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return np.array([item for members in sets for item in sorted(members)], np.uint64), ends


def count(documents, sets, owners, set_owners, groups, set_groups, is_share, kernel=tune):
    one = np.ones(len(sets), np.int64)
    index = PrefixIndex(Sets(*end_to_end(sets)), one, one, np.array(set_groups)).arrays
    sizes = np.array([len(members) for members in sets])
    sampled = tune.Sampled(sizes, np.array(set_owners), np.arange(len(sets)) + 50)
    counts = np.zeros((len(sets), EDGES.size), np.int64)
    examples = tune.Examples(
        np.full((EDGES.size, ROOM), tune.NO_KEY),
        np.zeros((EDGES.size, ROOM, 2), np.int64),
        np.zeros((EDGES.size, ROOM)),
    )
    rows = np.arange(len(documents))
    named = rows, np.array(owners), np.array(groups)
    pairs = kernel.count_similarities(
        *end_to_end(documents), named, index, sampled, is_share, EDGES, counts, examples
    )
    return pairs, counts, examples


@pytest.mark.parametrize("kernel", [tune, PLAIN], ids=["compiled", "plain"])
@pytest.mark.parametrize("is_share", [False, True])
@given(documents=many_sets, sets=many_sets)
def test_every_pair_is_counted_once_in_the_bin_of_its_similarity(kernel, is_share, documents, sets):
    owners = [at % 3 for at in range(len(documents))]
    set_owners = [at % 4 for at in range(len(sets))]
    groups = [at % 2 for at in range(len(documents))]
    set_groups = [0] * len(sets)
    pairs, counts, examples = count(
        documents, sets, owners, set_owners, groups, set_groups, is_share, kernel
    )
    expected = np.zeros_like(counts)
    met = 0
    for doc, own in enumerate(documents):
        for number, other in enumerate(sets):
            shared = len(own & other)
            if not shared or owners[doc] == set_owners[number] or groups[doc] != 0:
                continue
            met += 1
            whole = min(len(own), len(other)) if is_share else len(own | other)
            if shared / whole >= EDGES[0]:
                place = max(at for at, edge in enumerate(EDGES) if shared / whole >= edge)
                expected[number, place] += 1
    assert pairs == met
    assert (counts == expected).all()
    taken = (examples.keys != tune.NO_KEY).sum(axis=1)
    assert (taken == np.minimum(counts.sum(axis=0), ROOM)).all()
    for place, at in zip(*np.nonzero(examples.keys != tune.NO_KEY), strict=True):
        doc, number = examples.pairs[place, at]
        whole = min(len(documents[doc]), len(sets[number]))
        if not is_share:
            whole = len(documents[doc] | sets[number])
        assert examples.similarities[place, at] == len(documents[doc] & sets[number]) / whole


@given(documents=many_sets, sets=many_sets)
def test_examples_are_those_with_the_smallest_keys_in_ascending_order(documents, sets):
    apart = list(range(len(documents))), list(range(100, 100 + len(sets)))
    same = [0] * len(documents), [0] * len(sets)
    compiled = count(documents, sets, *apart, *same, False)[2]
    plainly = count(documents, sets, *apart, *same, False, PLAIN)[2]
    for one, other in zip(compiled, plainly, strict=True):
        assert (one == other).all()
    assert (np.diff(compiled.keys.astype(object), axis=1) >= 0).all()
