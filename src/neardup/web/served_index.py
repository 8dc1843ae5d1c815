"""What a server answers about an index: what it holds, and the near-duplicates of a text."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any, Final

from neardup.errors import DataError
from neardup.index.index import Index
from neardup.version import VERSION

_HIDDEN: Final = ("seed",)


class ServedIndex:
    """An index, opened to be read."""

    kind = "index"

    def __init__(self, path: str) -> None:
        self._index = Index.open(path, read_only=True)
        self._name = Path(path).resolve().name
        self._lock = threading.Lock()

    def start(self) -> None:
        """Do nothing: an index answers at once."""

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def info(self) -> dict[str, Any]:
        """Return what the page shows of the index."""
        config, plan = self._index.config, self._index.plan
        shown = ("threshold", "recall", "unit", "size", "measure", "fold_numbers", "fold_accents", "normalise")
        return {
            "version": VERSION,
            "kind": "index",
            "name": self._name,
            "run": self._name,
            "threshold": config.threshold,
            "finding": plan.judgement(),
            "counts": {"documents": len(self._index)},
            "settings": [[name, str(getattr(config, name))] for name in shown if name not in _HIDDEN],
        }

    def query(self, text: str, k: int) -> dict[str, Any]:
        """Return the near-duplicates of a text, most similar first."""
        with self._lock:
            found = self._index.query(text, k=k)
        fields = ("doc_id", "similarity", "is_estimate", "payload")
        return {"matches": [{name: dataclasses.asdict(match)[name] for name in fields} for match in found]}


def no_index() -> DataError:
    """Return the error for a question that only an index answers."""
    return DataError("this server shows a run, not an index", hint="neardup serve INDEX answers queries")
