"""Arrays of numbers that may be larger than memory: in memory if they fit, else in files of the work folder."""

from __future__ import annotations

import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


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
        with (self._folder / f"{name}.raw").open("w+b") as file:
            file.truncate(num_bytes)
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
