"""Nearest-neighbour kernels against their plain Python versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import neighbours as kernel
from neardup.kernels.similarity import Bits, Points, Sets, Vectors, Weights
from neardup.search import neighbours as stage
from neardup.search.inverted_index import Compared
from support.plain_kernels import plain

SEEDS = st.integers(0, 2**32 - 1)


def drawn_items(kind, rng, num_docs):
    sizes = rng.integers(0, 6, num_docs)
    ends = np.cumsum(np.r_[0, sizes]).astype(np.int64)
    hashes = np.concatenate(
        [
            np.empty(0, np.uint64),
            *(np.sort(rng.choice(9, size, replace=False)).astype(np.uint64) for size in sizes),
        ]
    ) + np.uint64(2**64 - 9)
    if kind is Sets:
        return Sets(hashes, ends)
    if kind is Weights:
        return Weights(hashes, rng.random(hashes.size) + 0.1, ends)
    if kind is Bits:
        return Bits(rng.integers(0, 2**63, (num_docs, 2)).astype(np.uint64), 128)
    values = rng.standard_normal((num_docs, 5))
    return (
        Vectors(values, np.sqrt((values * values).sum(axis=1)), 64)
        if kind is Vectors
        else Points(values)
    )


@pytest.mark.parametrize("share", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [Sets, Weights, Bits, Vectors, Points])
@given(seed=SEEDS, num_docs=st.integers(1, 12), k=st.integers(1, 4))
def test_compiled_kernels_equal_plain_python(kind, share, seed, num_docs, k):
    rng = np.random.default_rng(seed)
    docs = Compared(drawn_items(kind, rng, num_docs), rng.integers(0, 2, num_docs))
    finder = stage.finder_for(docs, None, stage.SearchOptions(k=k, above=0.0, share=share))
    sets = kind in (Sets, Weights)

    def answers():
        ends = np.repeat(np.arange(num_docs), 2), np.resize(np.arange(num_docs), 2 * num_docs)
        return [
            *finder.find(0, num_docs),
            *finder.find_all(0, num_docs),
            *(finder.shares(*ends) if sets else ()),
        ]

    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # integer products wrap around; shares of empty sets are 0 / 0
        compiled = answers()
        stage.kernel = plain(kernel)
        try:
            in_python = answers()
        finally:
            stage.kernel = kernel
    for one, two in zip(compiled, in_python, strict=True):
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("kind", [Sets, Weights, Bits, Vectors, Points])
@given(
    seed=SEEDS,
    num_docs=st.integers(1, 30),
    block=st.integers(1, 9),
    room=st.integers(1, 3),
    k=st.integers(1, 4),
)
def test_neighbours_do_not_depend_on_blocks_and_buffers(kind, seed, num_docs, block, room, k):
    rng = np.random.default_rng(seed)
    docs = Compared(drawn_items(kind, rng, num_docs), rng.integers(0, 2, num_docs))
    best = []
    listed = []
    for limits in ({}, {"block": block, "room": room}):
        finder = stage.finder_for(docs, None, stage.SearchOptions(k=k, above=0.0, **limits))
        best.append([part.tolist() for part in finder.find(0, num_docs)])
        listed.append(
            sorted(zip(*(part.tolist() for part in finder.find_all(0, num_docs)), strict=True))
        )
    assert best[0] == best[1]
    assert listed[0] == listed[1]
