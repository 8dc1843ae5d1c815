"""The texts of a run for a server: copied once to a temporary file, then indexed by their words."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import NearDupError
from neardup.web import document_texts
from neardup.web.run_view import RunView, position_of
from neardup.web.word_index import Query, WordIndex

I64 = npt.NDArray[np.int64]
# Bytes at the beginning of a text in which an excerpt for a list of documents is looked for.
_EXCERPT_BYTES: Final = 1 << 16
_DISK_LEFT: Final = 200 * 10**6


class TextStore:
    """All texts of a run.

    state: "reading" until all texts can be shown, then "here"; or "absent", and `reason` says why.
    num_indexed: how many texts, in input order, can be searched so far; `index_error` says why no
    more will follow.
    batch_bytes: how many bytes are indexed at once; a search waits for them, about 20 ms.
    """

    batch_bytes = 1 << 20

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._file = tempfile.TemporaryFile(prefix="neardup-texts-")  # noqa: SIM115 - closed with the store
        self.reason = document_texts.why_absent(run)
        self.state = "absent" if self.reason else "reading"
        self.keys: I64 = np.empty(0, np.int64)
        self._starts: I64 = np.zeros(1, np.int64)
        self._groups: I64 | None = None
        self.removed_bytes: int | None = None
        self._words: WordIndex | None = None
        self.num_indexed = 0
        self.index_error: str | None = None
        self._is_closed = False

    def read_in_background(self) -> threading.Thread:
        """Start to read and index; `progress` says how far it has got."""
        thread = threading.Thread(target=self.read, daemon=True)
        thread.start()
        return thread

    def read(self) -> None:
        """Read and index all texts."""
        if self.state == "absent":
            return
        if self._run.report.bytes_read + _DISK_LEFT > shutil.disk_usage(tempfile.gettempdir()).free:
            self.state = "absent"
            self.reason = f"not enough free disk space in {tempfile.gettempdir()} for a copy"
            return
        try:
            self._copy()
            self._index()
        except (NearDupError, OSError, pa.ArrowException) as error:
            self.state = "absent"
            self.reason = str(error)
        except sqlite3.Error as error:
            if not self._is_closed:
                self.index_error = f"the word index cannot be built: {error}"
        except ValueError:  # from a file that was closed while it was being written
            if not self._is_closed:
                raise

    def _copy(self) -> None:
        keys = [np.empty(0, np.int64)]
        starts = [np.zeros(1, int)]
        end = 0
        groups = [np.empty(0, np.int64)]
        for own, texts, own_groups in document_texts.scan(self._run):
            if self._is_closed:
                return
            _, bounds, data = texts.buffers()
            offsets = np.frombuffer(bounds, np.int64)[texts.offset : texts.offset + len(texts) + 1]
            if offsets.size > 1:
                self._file.write(memoryview(data)[offsets[0] : offsets[-1]])
            keys.append(own)
            groups.append(own_groups)
            starts.append(end + offsets[1:] - offsets[0])
            end += int(offsets[-1] - offsets[0])
        self._file.flush()
        self.keys = np.concatenate(keys)
        self._starts = np.concatenate(starts)
        if self._run.report.config.ignore_common is not None:
            self._groups = np.concatenate(groups)
        removed = self._run.removals.keys[self._run.by_key]
        self.removed_bytes = int(np.diff(self._starts)[np.isin(self.keys, removed)].sum())
        pa.default_memory_pool().release_unused()
        self.state = "here"

    def _index(self) -> None:
        self._words = WordIndex()
        while self.num_indexed < self.keys.size and not self._is_closed:
            first = self.num_indexed
            stop = (
                int(
                    np.searchsorted(
                        self._starts, self._starts[first] + self.batch_bytes, side="right"
                    )
                )
                - 1
            )
            stop = max(first + 1, stop)
            texts = [self._content(at).decode() for at in range(first, stop)]
            self._words.add(self.keys[first:stop].tolist(), texts)
            self.num_indexed = stop
            time.sleep(0)  # lets a search that waits for the index go first

    def progress(self) -> dict[str, Any]:
        """Return what the page says about the texts, and about how many of them can be searched."""
        indexed = {
            "indexed": self.num_indexed,
            "documents": int(self.keys.size),
            "error": self.index_error,
        }
        return {"state": self.state, "reason": self.reason, "search": indexed}

    def parse(self, wanted: str) -> Query:
        """Return the words of a query; none while no text is indexed."""
        if self._words is None:
            return Query((), ())
        return self._words.parse(wanted)

    def find(self, query: Query) -> I64:
        """Return the keys, ascending, of the documents indexed so far that have every word of a query."""
        if self._words is None:
            return np.empty(0, np.int64)
        return self._words.find(query)

    def position(self, key: int) -> int | None:
        """Return the position of a document among all."""
        return position_of(key, self.keys)

    def _content(self, at: int, most_bytes: int | None = None) -> bytes:
        start, stop = int(self._starts[at]), int(self._starts[at + 1])
        if most_bytes is None:
            size = stop - start
        else:
            size = min(most_bytes, stop - start)
        return os.pread(self._file.fileno(), size, start)

    def num_bytes(self, key: int) -> int | None:
        """Return the size of a text; None for an unknown document."""
        at = self.position(key)
        if at is None:
            return None
        return int(self._starts[at + 1] - self._starts[at])

    def content(self, key: int) -> bytes | None:
        """Return a whole text."""
        at = self.position(key)
        return None if at is None else self._content(at)

    def group(self, key: int) -> int:
        """Return the group of a document by `ignore_common`, 0 without one."""
        at = self.position(key)
        return 0 if at is None or self._groups is None else int(self._groups[at])

    def beginning(self, key: int) -> str:
        """Return the beginning of a text, from which lists quote; empty for an unknown document."""
        at = self.position(key)
        if at is None:
            return ""
        return self._content(at, _EXCERPT_BYTES).decode(errors="ignore")

    def close(self) -> None:
        """Delete the temporary files."""
        self._is_closed = True
        self._file.close()
        if self._words is not None:
            self._words.close()
