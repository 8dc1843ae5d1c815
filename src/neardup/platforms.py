"""Where neardup runs: Linux and macOS, on a Python with a global interpreter lock.

It is refused elsewhere at import, because its locks would silently lock nothing.
"""

from __future__ import annotations

import sys
from typing import Final

# Systems without `fcntl`, and so without the locks of work folders and indexes.
_WITHOUT_LOCKS: Final = ("win32", "cygwin", "emscripten", "wasi")


def require_supported() -> None:
    """Raise an ImportError on a system or an interpreter where neardup would not keep its promises."""
    if sys.platform in _WITHOUT_LOCKS:
        raise ImportError(
            f"neardup is not supported on {sys.platform}, which has no POSIX file locks: "
            "use it on Linux or macOS, on Windows in the Windows Subsystem for Linux"
        )
    has_lock = getattr(sys, "_is_gil_enabled", None)
    if has_lock is not None and not has_lock():
        raise ImportError(
            "neardup does not support free-threaded Python: set PYTHON_GIL=1, or use another build"
        )
