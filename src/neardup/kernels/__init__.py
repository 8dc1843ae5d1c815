"""Inner loops on NumPy arrays, compiled by Numba. A file here imports nothing of ours.

Numba's disk cache notices an edit only in the file of the kernel itself, so a helper shared between files would leave
stale kernels behind.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _provide_cache() -> None:
    """Give Numba a private folder for this process where it would find none to cache in, and so refuse to work."""
    usual = (
        Path(__file__).parent / "__pycache__",
        # Unlike Path.expanduser, this one does not raise where there is no home at all.
        Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba",  # noqa: PTH111
    )
    if "NUMBA_CACHE_DIR" not in os.environ and not any(map(_is_writable, usual)):
        folder = tempfile.mkdtemp(prefix="neardup-")
        os.environ["NUMBA_CACHE_DIR"] = folder
        atexit.register(shutil.rmtree, folder, ignore_errors=True)


_provide_cache()
