"""Answers of the server about an index: its contents, and the near-duplicates of a text."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from neardup.errors import DataError
from neardup.index.index import Index
from neardup.index.result_types import Match
from neardup.version import VERSION

# 100 documents with the largest payloads fit.
MAX_ANSWER: Final = 8_000_000
_FIELDS: Final = ("doc_id", "similarity", "is_estimate", "payload")


class TooManyMatchesError(DataError):
    """The matches of a query have more bytes than an answer may have."""

    def __init__(self, num_fitting: int) -> None:
        message = f"the matches have more than {MAX_ANSWER:,} bytes: an answer has room for the first {num_fitting}"
        if num_fitting:
            hint = f'request fewer: "k": {num_fitting}'
        else:
            hint = "read them with `neardup index query`"
        super().__init__(message, hint=hint)


class ServedIndex:
    """An index, opened read-only."""

    kind = "index"

    def __init__(self, path: str) -> None:
        self._index = Index.open(path, read_only=True)
        self._name = Path(path).resolve().name
        # One thread for all queries: payloads that do not fit an answer are held once, and memory
        # that one query has freed serves the next (malloc keeps what each of 16 threads has freed:
        # 1.1 GB instead of 0.35).
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="query")

    def start(self) -> None:
        """Do nothing: an index is ready when it is open."""

    def close(self) -> None:
        """Close the index, after the query that runs."""
        self._thread.shutdown(cancel_futures=True)
        self._index.close()

    def info(self) -> dict[str, Any]:
        """Return what the page shows of the index."""
        config = self._index.config
        plan = self._index.plan
        # Never the seed, which may be secret.
        shown = (
            "threshold",
            "recall",
            "unit",
            "size",
            "measure",
            "fold_numbers",
            "fold_accents",
            "normalise",
        )
        return {
            "version": VERSION,
            "kind": "index",
            "name": self._name,
            "run": self._name,
            "threshold": config.threshold,
            "finding": plan.judgement(),
            "counts": {"documents": len(self._index)},
            "settings": [[name, str(getattr(config, name))] for name in shown],
        }

    def submit(self, text: str, k: int) -> Future[bytes]:
        """Look for the near-duplicates of a text; the future has them as JSON, most similar first."""
        return self._thread.submit(self._query, text, k)

    def _query(self, text: str, k: int) -> bytes:
        with contextlib.closing(self._index.matches(text, k=k)) as matches:
            return _encode(matches)


def _encode(matches: Iterable[Match]) -> bytes:
    """Return matches as JSON; raise as soon as that has too many bytes."""
    parts: list[bytes] = []
    num_bytes = 0
    for match in matches:
        fields = {name: getattr(match, name) for name in _FIELDS}
        part = json.dumps(
            fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
        num_bytes += len(part) + 1
        if num_bytes > MAX_ANSWER:
            raise TooManyMatchesError(len(parts))
        parts.append(part)
    return b'{"matches":[' + b",".join(parts) + b"]}"


def no_index() -> DataError:
    """Return the error for a query that only an index answers."""
    return DataError(
        "this server shows a run, not an index", hint="neardup serve INDEX answers queries"
    )
