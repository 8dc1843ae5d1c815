"""Inner loops on NumPy arrays, compiled by Numba. A file here imports nothing of ours but other kernels.

Numba's own disk cache notices an edit only in the file of the kernel itself, not in a helper that
it imports. Kernels are therefore cached in a folder named by a hash of all kernel sources; the
caches of other packages stay as they are.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

from numba.core import caching

_KERNELS: Final = Path(__file__).resolve().parent


class KernelCache:
    """Tells Numba where the compiled code of a kernel is cached."""

    def __init__(self, py_func: Any) -> None:
        self._line = py_func.__code__.co_firstlineno

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Self | None:
        """Return the locator of a kernel, None for other functions."""
        if Path(py_file).resolve().parent == _KERNELS:
            return cls(py_func)
        return None

    def ensure_cache_path(self) -> None:
        """Do nothing: `cache_folder` exists and is writable."""

    def get_cache_path(self) -> str:
        """Return the folder of all kernels."""
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        """Return the stamp that must match for compiled code to be reused."""
        return source_hash()

    def get_disambiguator(self) -> str:
        """Distinguish kernels of the same name."""
        return str(self._line)


@cache
def source_hash() -> str:
    """Return a hash of the sources of all kernels."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(_KERNELS.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@cache
def cache_folder() -> Path:
    """Return the first default folder that is writable, or a temporary one for this process."""
    for parent in _usual_parents():
        folder = parent / f"neardup-kernels-{source_hash()}"
        if _is_writable(folder):
            return folder
    folder = Path(tempfile.mkdtemp(prefix="neardup-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _usual_parents() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    yield _KERNELS / "__pycache__"
    # Unlike Path.expanduser, this does not raise if there is no home directory.
    yield Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))  # noqa: PTH111


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


# The class had a leading underscore up to Numba 0.61.
_IMPLEMENTATION: Any = vars(caching).get("CacheImpl") or vars(caching)["_CacheImpl"]
_IMPLEMENTATION._locator_classes = [KernelCache, *_IMPLEMENTATION._locator_classes]
