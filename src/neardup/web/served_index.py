"""Answers of the server about an index: its contents, and the near-duplicates of a text."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

from neardup.errors import DataError
from neardup.index.index import Index
from neardup.version import VERSION


class ServedIndex:
    """An index, opened read-only."""

    kind = "index"

    def __init__(self, path: str) -> None:
        self._index = Index.open(path, read_only=True)
        self._name = Path(path).resolve().name
        self._lock = threading.Lock()

    def start(self) -> None:
        """Do nothing: an index is ready when it is open."""

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def info(self) -> dict[str, Any]:
        """Return what the page shows of the index."""
        config, plan = self._index.config, self._index.plan
        # Never the seed, which may be secret.
        shown = ("threshold", "recall", "unit", "size", "measure", "fold_numbers", "fold_accents", "normalise")
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

    def query(self, text: str, k: int) -> dict[str, Any]:
        """Return the near-duplicates of a text, most similar first."""
        with self._lock:
            found = self._index.query(text, k=k)
        fields = ("doc_id", "similarity", "is_estimate", "payload")
        return {"matches": [{name: dataclasses.asdict(match)[name] for name in fields} for match in found]}


def no_index() -> DataError:
    """Return the error for a query that only an index answers."""
    return DataError("this server shows a run, not an index", hint="neardup serve INDEX answers queries")
