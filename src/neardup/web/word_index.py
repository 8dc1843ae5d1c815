"""An index of the words of all texts, so that a server finds documents by any word of their text.

SQLite's full-text index in a private temporary database, which is deleted with its connection:
about 10 % of the bytes of the texts on disk, 16 MB in memory, 23 s of CPU time per gigabyte
(docs/decisions/0028).
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.unicode import drop_invisible

I64 = npt.NDArray[np.int64]
_CACHE_KILOBYTES: Final = 16_000
# Diacritics are ignored, as search engines do.
_CUT: Final = "tokenize='unicode61 remove_diacritics 2'"
# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, kana and Han.
_SCRIPTS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff66-\uff9d\U00020000-\U0003ffff"
)
_SPACELESS: Final = re.compile(f"[{_SCRIPTS}]+")
_SPACELESS_PAIR: Final = re.compile(f"([{_SCRIPTS}])(?=([{_SCRIPTS}]?))")


class Query(NamedTuple):
    """What was asked for: whole words, and the beginnings of words."""

    words: tuple[str, ...]
    beginnings: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not (self.words or self.beginnings)


class WordIndex:
    """The words of documents by key; may be asked while it is being filled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._index = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        for pragma in (
            "journal_mode = off",
            "synchronous = off",
            f"cache_size = -{_CACHE_KILOBYTES}",
        ):
            self._index.execute(f"PRAGMA {pragma}")
        # Stores which documents have a word, not where. Short prefixes have lists of their own,
        # because so many words
        # share them: without, searching 24,000 documents for "a" takes 0.2 s.
        kept = "content='', columnsize=0, detail=none, prefix='1 2 3'"
        self._index.execute(f"CREATE VIRTUAL TABLE words USING fts5(text, {kept}, {_CUT})")
        # A table for the text of a query, to cut it into words exactly as the documents were cut.
        self._index.execute(f"CREATE VIRTUAL TABLE query USING fts5(text, {_CUT})")
        self._index.execute("CREATE VIRTUAL TABLE query_words USING fts5vocab(query, instance)")

    def add(self, keys: Iterable[int], texts: Iterable[str]) -> None:
        """Add documents; those of one call are found together."""
        rows = ((key, _spaced(text)) for key, text in zip(keys, texts, strict=True))
        with self._lock:
            self._index.execute("BEGIN")
            self._index.executemany("INSERT INTO words(rowid, text) VALUES (?, ?)", rows)
            self._index.execute("COMMIT")

    def find(self, query: Query) -> I64:
        """Return the keys, ascending, of the documents that have every word."""
        if query.is_empty:
            return np.empty(0, np.int64)
        asked = " ".join(
            [*(f'"{word}"' for word in query.words), *(f'"{word}"*' for word in query.beginnings)]
        )
        with self._lock:
            # As one text, because a Python object for each of 240,000 rows would take four times as
            # long.
            (found,) = self._index.execute(
                "SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (asked,)
            ).fetchone()
        return np.fromstring(found or "", np.int64, sep=",")

    def parse(self, wanted: str) -> Query:
        """Return the words of a query; the last one may be unfinished, because people search while they type."""
        words: list[str] = []
        beginnings: list[str] = []
        wanted = drop_invisible(wanted)
        for run in _SPACELESS.findall(wanted):
            (words if len(run) > 1 else beginnings).extend(_pairs(run))
        spaced = self._cut(_SPACELESS.sub(" ", wanted))
        if spaced and wanted[-1:].isalnum() and not _SPACELESS.match(wanted[-1]):
            beginnings.append(spaced.pop())
        return Query((*words, *spaced), tuple(beginnings))

    def _cut(self, wanted: str) -> list[str]:
        with self._lock:
            self._index.execute("INSERT INTO query(rowid, text) VALUES (1, ?)", (wanted,))
            words = self._index.execute("SELECT term FROM query_words ORDER BY offset").fetchall()
            self._index.execute("DELETE FROM query")
        return [word for (word,) in words]

    def close(self) -> None:
        """Delete the index."""
        with self._lock:
            self._index.close()


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def _spaced(text: str) -> str:
    """Spell a run of a script without spaces as its overlapping pairs and its last character, as words.

    Invisible characters, which split no word, are dropped.
    """
    if text.isascii():
        return text
    return _SPACELESS_PAIR.sub(r" \1\2 ", drop_invisible(text))
