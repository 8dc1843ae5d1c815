"""The texts of a run for a server: copied once to a temporary file, so that any of them is one read away."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import NearDupError
from neardup.web import document_texts
from neardup.web.document_texts import Text
from neardup.web.run_view import RunView

I64 = npt.NDArray[np.int64]
# Characters at the beginning of every text that are searched, and stay in memory.
SEARCHED: Final = 160
_DISK_LEFT: Final = 200 * 10**6


class TextStore:
    """All texts of a run; `state` is "reading" until they are all there, or "absent" with a reason."""

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._file = tempfile.TemporaryFile(prefix="neardup-texts-")  # noqa: SIM115 - closed with the store
        self.reason = document_texts.why_absent(run)
        self.state = "absent" if self.reason else "reading"
        self.keys: I64 = np.empty(0, np.int64)
        self.heads: pa.Array = pa.array([], pa.large_string())
        self._starts: I64 = np.zeros(1, np.int64)
        self.removed_bytes: int | None = None
        self._is_closed = False

    def read_in_background(self) -> threading.Thread:
        """Start to read; the state tells when it is done."""
        thread = threading.Thread(target=self.read, daemon=True)
        thread.start()
        return thread

    def read(self) -> None:
        """Read all texts."""
        if self.state == "absent":
            return
        if self._run.report.bytes_read + _DISK_LEFT > shutil.disk_usage(tempfile.gettempdir()).free:
            self.state, self.reason = "absent", f"there is no room for them in {tempfile.gettempdir()}"
            return
        try:
            self._read()
        except (NearDupError, OSError, pa.ArrowException) as error:
            self.state, self.reason = "absent", str(error)
        except ValueError:  # of a file that was closed while it was written
            if not self._is_closed:
                raise

    def _read(self) -> None:
        keys, heads, starts, end = [np.empty(0, np.int64)], [pa.array([], pa.large_string())], [np.zeros(1, int)], 0
        for own, texts in document_texts.scan(self._run):
            if self._is_closed:
                return
            offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
            self._file.write(memoryview(texts.buffers()[2])[offsets[0] : offsets[-1]] if offsets.size > 1 else b"")
            keys.append(own)
            starts.append(end + offsets[1:] - offsets[0])
            end += int(offsets[-1] - offsets[0])
            heads.append(pc.utf8_slice_codeunits(texts, 0, SEARCHED))
        self._file.flush()
        self.keys, self._starts, self.heads = np.concatenate(keys), np.concatenate(starts), pa.concat_arrays(heads)
        removed = self._run.removals.keys[self._run.by_key]
        self.removed_bytes = int(np.diff(self._starts)[np.isin(self.keys, removed)].sum())
        self.state = "here"

    def position(self, key: int) -> int | None:
        """Return the position of a document among all."""
        at = int(np.searchsorted(self.keys, key))
        return at if at < self.keys.size and self.keys[at] == key else None

    def content(self, key: int) -> bytes | None:
        """Return a whole text."""
        at = self.position(key)
        if at is None:
            return None
        start, stop = int(self._starts[at]), int(self._starts[at + 1])
        return os.pread(self._file.fileno(), stop - start, start)

    def text(self, key: int) -> Text | None:
        """Return a text as the page shows it."""
        content = self.content(key)
        return None if content is None else document_texts.make_text(content)

    def close(self) -> None:
        """Delete the temporary file."""
        self._is_closed = True
        self._file.close()
