"""Sockets of the file system on which the service listens, closed to other users."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import Final

from neardup.errors import ConfigError, DataError

_PRIVATE: Final = 0o177


def listen_at(path: str, backlog: int) -> socket.socket:
    """Return a socket at a path, for this user alone; one that a killed server left is replaced."""
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("`unix_socket` is not supported on this system", hint="listen on a port")
    _remove_stale(path)
    bound = socket.socket(socket.AF_UNIX)
    # The socket is created with the mode that it keeps: nobody else can connect at any moment.
    before = os.umask(_PRIVATE)
    try:
        bound.bind(path)
    except OSError as error:
        bound.close()
        raise DataError(
            f"cannot listen at {path}: {error.strerror or error}", hint="choose another path"
        ) from error
    finally:
        os.umask(before)
    bound.listen(backlog)
    return bound


def remove(path: str) -> None:
    """Remove a socket after its server has ended."""
    with contextlib.suppress(OSError):
        Path(path).unlink()


def _remove_stale(path: str) -> None:
    try:
        found = Path(path).lstat()
    except OSError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise DataError(f"{path} already exists, and is not a socket", hint="choose another path")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink()
            return
        except OSError as error:
            raise DataError(
                f"cannot listen at {path}: {error.strerror or error}", hint="choose another path"
            ) from error
    raise DataError(f"another server listens at {path}", hint="stop it, or choose another path")
