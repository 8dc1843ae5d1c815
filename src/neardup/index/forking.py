"""What a fork waits for, and what the forked child gives up of the indexes that are open."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from typing import Final, Protocol


class Forkable(Protocol):
    """An open index."""

    def disown(self) -> Iterator[sqlite3.Connection]:
        """Give up what belongs to the parent process; yield the connections, which only the parent may close."""


# Held by our own threads while they are in SQLite, and by a fork: a lock of SQLite that another
# thread holds during a fork stays locked in the child for ever, also for files that the child opens
# itself.
OUTSIDE_SQLITE: Final = threading.Lock()
_OPEN: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()
# Connections of a parent process: closing them here could wait for ever for a lock that one of its
# threads held.
_INHERITED: Final[list[sqlite3.Connection]] = []


def register(index: Forkable) -> None:
    """Let forked children disown an index as long as it exists."""
    _OPEN.add(index)


def _in_child() -> None:
    OUTSIDE_SQLITE.release()
    for index in list(_OPEN):
        _INHERITED.extend(index.disown())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=OUTSIDE_SQLITE.acquire,
        after_in_parent=OUTSIDE_SQLITE.release,
        after_in_child=_in_child,
    )
