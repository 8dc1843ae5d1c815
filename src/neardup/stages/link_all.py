"""Stage 3 of 6, in the exact method of bits, vectors and weights: compare every document with every other one.

A block of documents is compared with itself and with each later piece, so memory is bounded, and
no list of pairs is made: what is found is at most one link per document, piece and block.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import link_all as kernel
from neardup.kernels.similarity import Items, Points, Vectors, Weights
from neardup.measures.base import joined, num_docs_of
from neardup.measures.registry import measure_of

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# Documents of a block per product, so that the products with a piece stay in the cache.
_SPAN: Final = 512
# The rounding error of an operation on 32 and on 64 bits.
_ROUNDING_32: Final = 2.0**-24
_ROUNDING_64: Final = 2.0**-53


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class AllPairs:
    """Links every two documents at or above the threshold.

    num_references: rows below this are reference documents, which are not compared with each other.
    """

    config: Config
    num_references: int

    def block(self, batch: pa.RecordBatch) -> Block:
        """Prepare documents, as schema.COMPARED, to be compared."""
        items = measure_of(self.config).items(batch.column("text"), self.config)
        # Numba compiles kernels a second time for read-only arrays.
        rows, groups = (batch.column(name).to_numpy().copy() for name in ("row", "group"))
        return Block(
            items=items,
            rows=rows,
            groups=groups,
            is_reference=rows < self.num_references,
            approximate=_approximate(items),
        )

    def link(self, block: Block, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Link the documents of a block with those of another batch, as schema.LINKS.

        Args:
            block: the documents of a block.
            batch: a piece of the same block, or of a later one.
            position: of its first document in the block; the size of the block for a later piece. A
                document is compared with the documents of the block before it.
        """
        other = self.block(batch)
        parents = np.arange(block.rows.size + other.rows.size)
        join = _JOINS.get(type(block.items), _join_items)
        if block.rows.size and other.rows.size:
            join(self, block, other, position, parents)
        is_linked = parents != np.arange(parents.size)
        rows = np.concatenate([block.rows, other.rows])
        ends = [rows[is_linked], rows[parents[is_linked]]]
        return pa.record_batch([pa.array(end) for end in ends], schema=schema.LINKS)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Documents that are compared with others; the type of `items` is that of the measure."""

    items: Any
    rows: I64
    groups: I64
    is_reference: Bools
    approximate: Any


def to_compared(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the columns of documents that comparing them needs, as schema.COMPARED."""
    return batch.select(["row", "group", "text"]).cast(schema.COMPARED)


def _approximate(items: Items) -> Any:
    """The unit vectors in 32 bits, the lengths of points, the total weights: what comparing each pair starts with."""
    if isinstance(items, Vectors):
        return (items.values / items.norms[:, None]).astype(np.float32)
    if isinstance(items, Points):
        with np.errstate(over="ignore"):
            return np.sqrt((items.values * items.values).sum(axis=1))
    if isinstance(items, Weights):
        return np.add.reduceat(np.r_[items.weights, 0.0], items.ends[:-1])
    return np.ones(num_docs_of(items))


def _roles(block: Block, other: Block) -> tuple[I64, Bools]:
    return (
        np.concatenate([block.groups, other.groups]),
        np.concatenate([block.is_reference, other.is_reference]),
    )


def _spans(block: Block, other: Block, position: int) -> range:
    """The starts of spans of the block; its documents from the last of the others on are compared with none."""
    return range(0, min(block.rows.size, position + other.rows.size - 1), _SPAN)


def _join_vectors(pairs: AllPairs, block: Block, other: Block, position: int, parents: I64) -> None:
    # Three times the bound of a sum of products of this length: (1 + u)^n - 1 <= 1.72 n u for n u <= 1.
    margin = 3 * (block.approximate.shape[1] + 4) * _ROUNDING_32
    docs, others = ((each.items.values, each.items.norms) for each in (block, other))
    roles = _roles(block, other)
    for first in _spans(block, other, position):
        stop = min(first + _SPAN, block.rows.size)
        products = block.approximate[first:stop] @ other.approximate.T
        kernel.join_vectors(
            products,
            docs,
            others,
            roles,
            pairs.config.only_against,
            float(pairs.config.threshold),
            margin,
            (first, stop, position),
            parents,
        )


def _join_points(pairs: AllPairs, block: Block, other: Block, position: int, parents: I64) -> None:
    docs, others = ((each.items.values, each.approximate) for each in (block, other))
    roles = _roles(block, other)
    bounds = _bounds_of_distance(float(pairs.config.threshold), docs[0].shape[1])
    for first in _spans(block, other, position):
        stop = min(first + _SPAN, block.rows.size)
        with np.errstate(over="ignore", invalid="ignore"):
            products = docs[0][first:stop] @ others[0].T
        kernel.join_points(
            products,
            docs,
            others,
            roles,
            pairs.config.only_against,
            float(pairs.config.threshold),
            bounds,
            (first, stop, position),
            parents,
        )


def _bounds_of_distance(threshold: float, dimension: int) -> tuple[float, float, float]:
    """Return the bounds of `kernel.join_points`.

    A similarity 1 / (1 + d) is computed with a relative error of less than 2**-51, so d with less
    than 2**-50 / threshold; its square has the error of a sum of `dimension` squares.
    """
    distance = 1.0 / threshold - 1.0
    spare = 2.0**-49 / threshold
    relative = (dimension + 8) * 2.0**-52
    near = max(0.0, distance - spare) ** 2 * (1.0 - min(1.0, relative))
    far = (distance + spare) ** 2 * (1.0 + 2 * relative)
    return 4 * (dimension + 4) * _ROUNDING_64, near, far


def _join_items(pairs: AllPairs, block: Block, other: Block, position: int, parents: I64) -> None:
    kernel.join_items(
        joined(block.items, other.items),
        np.concatenate([block.approximate, other.approximate]),
        _roles(block, other),
        pairs.config.only_against,
        float(pairs.config.threshold),
        (0, block.rows.size, position, block.rows.size),
        parents,
    )


_JOINS: Final[dict[type, Callable[[AllPairs, Any, Any, int, I64], None]]] = {
    Vectors: _join_vectors,
    Points: _join_points,
}
