"""Arrays of numbers that may be larger than memory: in memory if they fit, else in files of the work folder."""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

# See `write_pieces`.
_PIECE: Final = 1 << 16
# An array is filled with so many bytes at once.
_ZEROS: Final = 1 << 20


def write_pieces(path: Path, content: bytes | bytearray, mode: str) -> None:
    """Write a file that will be mapped, in pieces of 64 KB.

    Linux caches what one call writes in pages of up to 2 MB, and what is written through a mapping, too. Reading
    one byte of a mapped file maps a whole such page, which counts as memory of the process.
    """
    view = memoryview(content).cast("B")
    with path.open(mode, buffering=0) as file:
        while view:
            view = view[file.write(view[:_PIECE]) :]


class BigArrays:
    """Allocates arrays, in memory up to a limit; the rest are mapped files, whose pages can be dropped."""

    def __init__(self, folder: Path | None = None, room: Callable[[], int] | None = None) -> None:
        """Take the folder of the files, None for memory alone, and a function that returns the memory available."""
        self._folder = folder
        self._left = room() // 2 if room is not None and folder is not None else None
        self._mapped: list[mmap.mmap] = []
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)  # leftovers of a killed run

    def empty(self, name: str, size: int, kind: Any) -> npt.NDArray[Any]:
        """Return an array to be written; `name` is that of its file, if it needs one."""
        num_bytes = size * np.dtype(kind).itemsize
        if self._left is None or self._folder is None or num_bytes <= self._left or not num_bytes:
            self._left = None if self._left is None else self._left - num_bytes
            return np.empty(size, kind)
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{name}.raw"
        path.unlink(missing_ok=True)
        for start in range(0, num_bytes, _ZEROS):
            write_pieces(path, bytes(min(_ZEROS, num_bytes - start)), "ab")
        with path.open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), num_bytes)
        self._mapped.append(mapped)
        return np.frombuffer(mapped, kind)

    def file(self, name: str) -> Path | None:
        """Return a path for a file of numbers, None in memory."""
        if self._folder is None:
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / name

    @property
    def are_mapped(self) -> bool:
        """Whether any array is in a file."""
        return bool(self._mapped)

    def drop_pages(self) -> None:
        """Release the memory of mapped files, which stay as they are."""
        for mapped in self._mapped:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Delete the files; arrays that are still used stay valid."""
        self._mapped.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
