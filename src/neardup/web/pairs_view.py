"""A list of pairs as the page shows it: documents have keys, as in `run_view.py`, and nothing is removed."""

from __future__ import annotations

from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.report import Report
from neardup.web.run_view import F64, I64, Clusters, Removals, RunView


class KeyedPairs(NamedTuple):
    """The pairs, most similar first, ties in their order in the list."""

    keys_a: I64
    keys_b: I64
    similarities: F64


class PairPassages(NamedTuple):
    """Passages that the two texts of a pair share, in the order of the first.

    total: how many they share; rows: those with the most words, as the values of SHOWN_OF_PASSAGE.
    """

    total: int
    rows: list[list[int | float]]


# Of a passage: what the page shows. `a` is the document of the pair with the smaller key.
SHOWN_OF_PASSAGE: Final = (
    *("words", "similarity"),
    *("start_a", "end_a", "line_a"),
    *("start_b", "end_b", "line_b"),
)


class PairsView(RunView):
    """The output of `neardup pairs`."""

    def __post_init__(self) -> None:
        """Take any report with pairs."""

    @property
    def is_from_files(self) -> bool:
        """Only files have such an output."""
        return True

    @cached_property
    def files(self) -> list[str]:
        """The names of all files."""
        return [entry["file"] for entry in self.report.inputs]

    @cached_property
    def first_keys(self) -> I64:
        """The key of the first row of every file, and one more than the last key."""
        rows = [entry["rows"] for entry in self.report.inputs]
        return np.cumsum([0, *rows], dtype=np.int64)

    @cached_property
    def removals(self) -> Removals:
        """None: a list of pairs removes nothing."""
        no_keys = np.empty(0, np.int64)
        no_ids = pa.array([], pa.string())
        return Removals(no_keys, no_keys, np.empty(0), no_ids, no_ids)

    @cached_property
    def clusters(self) -> Clusters:
        """None."""
        no_keys = np.empty(0, np.int64)
        starts = np.zeros(1, np.int64)
        return Clusters(no_keys, no_keys, np.empty(0), starts, no_keys)

    @cached_property
    def _unordered(self) -> tuple[I64, I64]:
        """The keys of both sides of every pair, in the order of the list."""
        pairs = self.report.pairs
        sides = [self._keys(pairs, f"file_{side}", f"row_{side}") for side in "ab"]
        return sides[0], sides[1]

    @cached_property
    def _order(self) -> I64:
        """The indexes of the pairs in the list, most similar first."""
        return np.argsort(-self.report.pairs.column("similarity").to_numpy(), kind="stable")

    @cached_property
    def pairs(self) -> KeyedPairs:
        """All pairs."""
        similarities = self.report.pairs.column("similarity").to_numpy()
        keys_a, keys_b = self._unordered
        order = self._order
        return KeyedPairs(keys_a[order], keys_b[order], similarities[order])

    @cached_property
    def _passages(self) -> pa.Array | None:
        """The passages of every pair, in the order of the list; None if they were not asked for."""
        name = schema.PAIR_PASSAGES.name
        if name not in self.report.pairs.column_names:
            return None
        return schema.one_array(self.report.pairs.column(name))

    def passages(self, number: int, most: int) -> PairPassages | None:
        """Return up to `most` passages of a pair by its number; None if the list has no passages."""
        if self._passages is None:
            return None
        found = self._passages[int(self._order[number])].values
        columns = dict(zip(schema.PASSAGE.names, found.flatten(), strict=True))
        longest = np.argsort(-columns["words"].to_numpy(), kind="stable")[:most]
        chosen = pa.array(np.sort(longest))
        shown = [columns[name].take(chosen).to_pylist() for name in SHOWN_OF_PASSAGE]
        return PairPassages(len(found), list(map(list, zip(*shown, strict=True))))

    @cached_property
    def _named(self) -> tuple[I64, pa.Array]:
        """The documents in pairs: keys, ascending, and ids."""
        pairs = self.report.pairs
        keys, firsts = np.unique(np.concatenate(self._unordered), return_index=True)
        chunks = [*pairs.column("doc_a").chunks, *pairs.column("doc_b").chunks]
        ids = schema.one_array(pa.chunked_array(chunks, pa.string()))
        return keys, ids.take(pa.array(firsts))

    @property
    def document_keys(self) -> I64:
        """The keys of the documents in pairs; no table lists the others."""
        return self._named[0]

    @property
    def document_ids(self) -> pa.Array:
        """The ids of the documents in pairs."""
        return self._named[1]

    def id(self, key: int) -> str:
        """Return the id of a document in a pair."""
        keys, ids = self._named
        at = int(np.searchsorted(keys, key))
        if at < keys.size and keys[at] == key:
            return str(ids[at].as_py())
        location = self.location(key)
        return f"{location.file}:{location.row}"

    def is_in_pair(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which of some keys are of documents in pairs."""
        return np.isin(keys, self._named[0])

    @cached_property
    def _by_ends(self) -> tuple[I64, I64, I64]:
        """The pairs by their two keys, the smaller first: both keys, and the number of the pair."""
        ends = np.stack([self.pairs.keys_a, self.pairs.keys_b])
        low = ends.min(axis=0)
        high = ends.max(axis=0)
        order = np.lexsort((high, low))
        return low[order], high[order], order

    def find_pair(self, one: int, other: int) -> int | None:
        """Return the number of a pair, None if the two are not listed as one."""
        low, high, numbers = self._by_ends
        first, stop = np.searchsorted(low, [min(one, other), min(one, other) + 1])
        at = first + int(np.searchsorted(high[first:stop], max(one, other)))
        if at < stop and high[at] == max(one, other):
            return int(numbers[at])
        return None


def view_of(report: Report) -> RunView:
    """Return what the page shows of a report: its removals, or only its pairs."""
    is_list = report.out is not None and report.load("removed") is None
    if is_list and report.load("pairs") is not None:
        return PairsView(report)
    return RunView(report)
