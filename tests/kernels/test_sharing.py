"""Sets that share a few items: compiled and plain, against every pair of sets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import sharing as kernel
from neardup.kernels.similarity import Sets
from neardup.search import sharing
from neardup.search.sharing import SharingIndex, SharingLimits
from support.plain_kernels import plain


def expected_pairs(sets, groups, num_references, limits):
    """Every two sets and what they share: of an item, with one of the first that have it."""
    found = []
    for first, second in combinations(range(len(sets)), 2):
        common = sets[first] & sets[second]
        counted = [
            item for item in common if sum(item in own for own in sets[:first]) < limits.most
        ]
        is_pair = len(counted) >= limits.least and groups[first] == groups[second]
        if is_pair and second >= num_references:
            found.append((first, second, len(common) / len(sets[first] | sets[second])))
    return found


@pytest.mark.parametrize("room", [1, 100])
@given(
    sets=st.lists(st.sets(st.integers(0, 6)), min_size=1, max_size=9),
    num_references=st.integers(0, 3),
    limits=st.builds(SharingLimits, st.integers(1, 3), st.integers(1, 4)),
    seed=st.integers(0, 99),
)
def test_pairs_are_those_of_plain_sets(room, sets, num_references, limits, seed):
    groups = np.random.default_rng(seed).integers(0, 2, len(sets))
    ends = np.cumsum([0, *map(len, sets)])
    hashes = np.array([item for own in sets for item in sorted(own)], np.uint64)
    expected = expected_pairs(sets, groups, num_references, limits)
    for own_kernel in (kernel, plain(kernel)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sharing, "kernel", own_kernel)
            patch.setattr(sharing, "_ROOM", room)
            index = SharingIndex(
                np.arange(len(sets)),
                groups,
                Sets(hashes, ends),
                num_references=num_references,
                limits=limits,
            )
            # Twice: what a call has counted does not stay.
            for _ in range(2):
                batch = index.find_sharing(pa.record_batch({"row": np.arange(len(sets))}))
        listed = batch.column("pairs")[0].as_py()
        found = [(pair["row_a"], pair["row_b"], pair["similarity"]) for pair in listed]
        assert sorted(found) == expected
