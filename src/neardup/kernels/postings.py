"""The types of an inverted index of sets, shared by the kernels that search it."""

from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]


class Bags(NamedTuple):
    """Weighted sets end to end, the items of each in the order of their hashes.

    hashes   uint64 [num_items]
    weights  float64[num_items]
    ends     int64  [num_docs + 1]  document d owns hashes[ends[d]:ends[d + 1]]
    totals   float64[num_docs]      sums of the weights
    groups   int64  [num_docs]      only documents of one group are compared
    """

    hashes: Array
    weights: Array
    ends: Array
    totals: Array
    groups: Array


class Postings(NamedTuple):
    """The documents of every distinct item; list l is members[ends[l]:ends[l + 1]].

    keys     uint64 [num_lists]      items, ascending
    ends     int64  [num_lists + 1]
    members  int64  [num_items]      documents, ascending in each list
    weights  float64[num_items]      of the item in the document
    """

    keys: Array
    ends: Array
    members: Array
    weights: Array


class Walks(NamedTuple):
    """The posting lists to scan for every query, shortest first; query q has lists[ends[q]:ends[q + 1]].

    lists    int64  []
    weights  float64[]                 of the item of the list in the query
    ends     int64  [num_queries + 1]
    """

    lists: Array
    weights: Array
    ends: Array
