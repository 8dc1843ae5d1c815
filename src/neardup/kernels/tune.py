"""Tune: count how similar documents are to each set of a sample, and keep a few pairs of every bin as examples."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import largest_set
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, mix
from neardup.kernels.prefix_index import find_list, pass_filters

Array = npt.NDArray[Any]
NOBODY = np.int64(-1)
NO_KEY = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


class Sampled(NamedTuple):
    """The sets of a sample.

    sizes   int64[num_sets]
    owners  int64[num_sets]   a document of the same owner is not compared with the set
    rows    int64[num_sets]   names the set in the key of an example
    """

    sizes: Array
    owners: Array
    rows: Array


class Examples(NamedTuple):
    """The pairs with the smallest keys in every bin, ascending.

    keys          uint64 [num_bins, room]     initialised with 2**64 - 1
    pairs         int64  [num_bins, room, 2]  document, set
    similarities  float64[num_bins, room]
    """

    keys: Array
    pairs: Array
    similarities: Array


@inner
def _bin_of(value, edges):
    """Return the last bin that begins at or below the value; evenly spaced edges are found at once."""
    last = edges.size - 1
    width = (edges[last] - edges[0]) / max(last, 1)
    at = min(max(np.int64((value - edges[0]) / max(width, 1e-12)), 0), last)
    while value < edges[at]:
        at -= 1
    while at < last and value >= edges[at + 1]:
        at += 1
    return at


@inner
def _keep_example(key, doc, other, value, at, examples):
    """Insert a pair among those of its bin; return the largest key that remains."""
    keys = examples.keys[at]
    index = keys.size - 1
    while index > 0 and key < keys[index - 1]:
        keys[index] = keys[index - 1]
        examples.pairs[at, index, 0] = examples.pairs[at, index - 1, 0]
        examples.pairs[at, index, 1] = examples.pairs[at, index - 1, 1]
        examples.similarities[at, index] = examples.similarities[at, index - 1]
        index -= 1
    keys[index] = key
    examples.pairs[at, index, 0] = doc
    examples.pairs[at, index, 1] = other
    examples.similarities[at, index] = value
    return keys[keys.size - 1]


@kernel
def count_similarities(
    shingles, ends, documents, index, sampled, is_share, edges, counts, examples
):
    """Count, for each set of the sample, the documents in every bin of similarity; return how many pairs were met.

    shingles   uint64[num_shingles]  distinct in each document, in any order
    ends       int64 [num_docs + 1]  document d owns shingles[ends[d]:ends[d + 1]]
    documents  (int64[num_docs], int64[num_docs], int64[num_docs])  row, owner and group of each
    index      PrefixArrays          of all shingles of the sets
    sampled    Sampled
    is_share   bool                  divide by the smaller set (containment), not by the union (Jaccard)
    edges      float64[num_bins]     where each bin begins, ascending; less similar pairs are not counted
    counts     int64 [num_sets, num_bins]  increased
    examples   Examples              written
    """
    rows, owners, groups = documents
    # Read once: an access to an array in a tuple counts references.
    list_ends = index.list_ends
    members = index.members
    set_groups = index.groups
    set_sizes = sampled.sizes
    set_owners = sampled.owners
    set_rows = sampled.rows
    num_sets = set_sizes.size
    seen = np.full(num_sets, NOBODY)
    shared = np.zeros(num_sets, np.int64)
    met = np.empty(num_sets, np.int64)
    passed = np.empty(largest_set(ends) + 1, np.uint64)
    has_room = examples.keys.shape[1] > 0
    limits = np.full(edges.size, NO_KEY)
    num_pairs = 0
    for doc in range(ends.size - 1):
        num_met = 0
        size = ends[doc + 1] - ends[doc]
        for at in range(pass_filters(shingles, ends[doc], ends[doc + 1], index, passed)):
            number = find_list(passed[at], index)
            if number < 0:
                continue
            for member in range(list_ends[number], list_ends[number + 1]):
                other = members[member]
                if seen[other] != doc:
                    seen[other] = doc
                    shared[other] = 0
                    met[num_met] = other
                    num_met += 1
                shared[other] += 1
        for at in range(num_met):
            other = met[at]
            if owners[doc] == set_owners[other] or groups[doc] != set_groups[other]:
                continue
            num_pairs += 1
            if is_share:
                whole = min(size, set_sizes[other])
            else:
                whole = size + set_sizes[other] - shared[other]
            value = shared[other] / whole
            if value < edges[0]:
                continue
            bin_ = _bin_of(value, edges)
            counts[other, bin_] += 1
            if has_room:
                key = mix(np.uint64(rows[doc]) * GOLDEN_MULTIPLIER + np.uint64(set_rows[other]))
                if key < limits[bin_]:
                    limits[bin_] = _keep_example(key, doc, other, value, bin_, examples)
    return num_pairs
