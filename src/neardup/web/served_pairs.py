"""Answers of the server about a list of pairs."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from neardup.report import Report
from neardup.web.overview import overview_of_pairs
from neardup.web.pairs_view import PairsView
from neardup.web.run_view import I64
from neardup.web.served_run import ServedRun, UnknownError

# The most passages of a pair in an answer.
MAX_PASSAGES: Final = 1000


class ServedPairs(ServedRun):
    """The output of `neardup pairs` with the texts of its inputs."""

    _run: PairsView

    def _view(self, report: Report) -> PairsView:
        return PairsView(report)

    def _about(self, report: Report) -> dict[str, Any]:
        return overview_of_pairs(PairsView(dataclasses.replace(report)))

    def listed(self, *, offset: int, limit: int, sort: str, search: str) -> dict[str, Any]:
        """Return a range of the pairs by similarity; `search` filters by the ids or the words of either document."""
        pairs = self._run.pairs
        numbers = np.arange(pairs.similarities.size)
        if search:
            found = self._found(search)
            numbers = numbers[np.isin(pairs.keys_a, found) | np.isin(pairs.keys_b, found)]
        if sort == "-similarity":
            numbers = numbers[::-1]
        rows = [self._row(number) for number in numbers[offset : offset + limit].tolist()]
        return {"total": int(numbers.size), "rows": rows}

    def _found(self, search: str) -> I64:
        """The keys of the documents in pairs with an id or words that match."""
        is_named = pc.match_substring(self._run.document_ids, search, ignore_case=True)
        named = self._run.document_keys[is_named.to_numpy(zero_copy_only=False)]
        return np.concatenate([named, self._texts.find(self._texts.parse(search))])

    def _row(self, number: int) -> dict[str, Any]:
        pairs = self._run.pairs
        a = int(pairs.keys_a[number])
        b = int(pairs.keys_b[number])
        row = {"a": a, "b": b, "id_a": self._run.id(a), "id_b": self._run.id(b)}
        return row | {"similarity": float(pairs.similarities[number])}

    @property
    def _own_keys(self) -> I64:
        return self._run.document_keys

    def _is_no_document(self, key: int) -> bool:
        return not bool(self._run.is_in_pair(np.array([key]))[0])

    def search(self, wanted: str) -> dict[str, Any]:
        """Refuse: the list of pairs has a filter."""
        del wanted
        raise UnknownError("a list of pairs has no search", hint="/v1/listed?search=... filters it")

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """Return two documents with their similarity: as listed, otherwise computed."""
        found = super().pair(a, b)
        number = self._run.find_pair(a, b)
        if number is None:
            return found
        found["similarity"] = float(self._run.pairs.similarities[number])
        passages = self._run.passages(number, MAX_PASSAGES)
        if passages is not None:
            found["passages"] = passages._asdict()
        return found
