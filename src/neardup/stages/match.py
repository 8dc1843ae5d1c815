"""Stage 5 of 6, inside: which lists the documents of components are walked by.

Buckets first; a component where too many comparisons fail is hot and starts again with lists by prefix shingle, where
those promise fewer meetings.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from neardup.kernels import lists
from neardup.kernels import verify as kernel

Array = npt.NDArray[Any]


def match_components(
    items: kernel.Items,
    signatures: Array,
    keys: Array,
    rows: Array,
    component_ends: Array,
    threshold: float,
    min_agreement: int,
    mode: int,
    matches: Array,
    values: Array,
    parents: Array,
    compared: Array,
    *,
    roles: Array | None = None,
    given_values: Array | None = None,
    given_rows: Array | None = None,
    given_parents: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Compare the documents of whole components.

    items           Items                        what is compared; no set is empty
    signatures      uint32 [num_docs, num_perm]  of vectors uint64[num_docs, words]; not read for bits and points
    keys            uint64 [num_docs, bands]     band keys
    rows            int64  [num_docs]            breaks ties between equally similar kept documents
    component_ends  int64  [num_components + 1]  component c is documents [component_ends[c], component_ends[c + 1]),
                                                 best keep priority first
    threshold       float64
    min_agreement   int64                        the signature filter; 0 turns it off
    mode            LEADERS: keep a list of kept documents only; PAIRS: also list every found pair;
                    CLOSURE: join what is connected by found pairs, comparing no two documents already joined
    matches         int64  [num_docs]            written; the most similar one kept before it, NOBODY for a kept one,
                                                 GIVEN where no other is better than the given (not in CLOSURE)
    values          float64[num_docs]            written; the similarity to it
    parents         int64  [num_docs]            written in PAIRS and CLOSURE; first document of the closure
    compared        int64  [num_docs]            written; comparisons of this document with earlier ones
    roles           uint8  [num_docs]            COMPARED: with those before it; ENTERED: for those behind it to meet;
                                                 both by default
    given_values    float64[num_docs]            similarity to a kept document that is not here; 0, the default, is none
    given_rows      int64  [num_docs]            the row of it
    given_parents   int64  [num_docs]            a document before it of the same closure, or itself, the default

    Returns (left, right, similarity) of the found pairs, ordered by left, the later document of the two.
    """
    num_docs, num_bands = keys.shape
    limits, is_hot = (float(threshold), int(min_agreement)), np.empty(component_ends.size - 1, np.bool_)
    rows = rows.copy()  # Numba compiles a kernel again for an array that cannot be written
    roles = np.full(num_docs, kernel.COMPARED | kernel.ENTERED, np.uint8) if roles is None else roles
    given_values = np.zeros(num_docs) if given_values is None else given_values
    given_rows = np.zeros(num_docs, np.int64) if given_rows is None else given_rows
    given_parents = np.arange(num_docs) if given_parents is None else given_parents
    buckets = np.empty(keys.size, np.int64)
    num_buckets = lists.number_lists(keys.ravel(), buckets)
    bucket_ends = np.arange(num_docs + 1) * num_bands
    found = [
        kernel.walk_components(
            items,
            signatures,
            keys,
            rows,
            component_ends,
            (buckets, bucket_ends),
            num_buckets,
            False,
            not isinstance(items, kernel.Sets),  # only sets have prefixes
            limits,
            mode,
            (roles, given_values, given_rows, given_parents),
            matches,
            values,
            parents,
            compared,
            is_hot,
        )
    ]
    for component in np.flatnonzero(is_hot):
        shingles, ends = cast(kernel.Sets, items)
        first, stop = component_ends[component], component_ends[component + 1]
        part, part_ends = slice(first, stop), ends[first : stop + 1]
        ranked, ranked_ends = np.empty(part_ends[-1] - part_ends[0], np.uint64), np.empty(part_ends.size, np.int64)
        lists.rank_prefixes(shingles, part_ends, limits[0], ranked, ranked_ends)
        prefixes = np.empty(ranked_ends[-1], np.int64)
        num_prefixes = lists.number_lists(ranked[: ranked_ends[-1]], prefixes)
        part_buckets = np.empty((stop - first) * num_bands, np.int64)
        num_part_buckets = lists.number_lists(keys[part].ravel(), part_buckets)
        by_prefix = _meetings(prefixes, ranked_ends, roles[part]) < kernel.COMPARISON_COST * _meetings(
            part_buckets, bucket_ends[: stop - first + 1], roles[part]
        )
        compared_before = compared[part].copy()
        left, right, similarity = kernel.walk_components(
            kernel.Sets(shingles, part_ends),
            signatures[part],
            keys[part],
            rows[part],
            np.array([0, stop - first]),
            (prefixes, ranked_ends) if by_prefix else (part_buckets, bucket_ends[: stop - first + 1]),
            num_prefixes if by_prefix else num_part_buckets,
            by_prefix,
            True,
            limits,
            mode,
            (roles[part], given_values[part], given_rows[part], given_parents[part] - first),
            matches[part],
            values[part],
            parents[part],
            compared[part],
            is_hot[:1].copy(),
        )
        compared[part] += compared_before
        parents[part] += first
        matches[part] += np.where(matches[part] < 0, 0, first)
        found.append((left + first, right + first, similarity))
    left, right, similarity = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(left, kind="stable")
    return left[order], right[order], similarity[order]


def _meetings(numbers: Array, list_ends: Array, roles: Array) -> int:
    """How many times a document meets another one in a list, at most; by half too many where all do both."""
    of_entry = np.repeat(roles, np.diff(list_ends))
    num_lists = int(numbers.max(initial=-1)) + 1
    walking = np.bincount(numbers[of_entry & kernel.COMPARED > 0], minlength=num_lists)
    entered = np.bincount(numbers[of_entry & kernel.ENTERED > 0], minlength=num_lists)
    return int(walking @ entered)
