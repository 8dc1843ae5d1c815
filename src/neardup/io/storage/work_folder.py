"""The hidden work folder next to an output: locked by one run at a time, and used only if neardup created it.

One file in it is both lock and marker: it is created first and removed last. The folder is not
accessible to other users, so checks made when it was reserved remain valid.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from neardup.errors import DataError, NearDupError, StartOverError

LOCK: Final = "neardup.lock"
JOURNAL: Final = "finished.jsonl"
REPLACED: Final = "replaced"
_MAGIC: Final = b'{"neardup": '
_MAX_MARKER_BYTES: Final = 1 << 16
_ATTEMPTS: Final = 10
_OPEN_LOCK: Final = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
)


def folder_of(out: Path) -> Path:
    """Return the work folder of an output."""
    return out.parent / f".{out.name}.neardup"


@contextlib.contextmanager
def reserve(out: Path, *, draft: str | None = None) -> Iterator[Path]:
    """Lock the work folder of an output for one run; a second run on the same output raises.

    A run that fails before it has finished anything, or whose checkpoints are stale, removes the
    folder, and the parents that it made.

    Args:
        out: the output.
        draft: an entry of the folder that is made from the start; what a killed process left of it
            is deleted.
    """
    folder = folder_of(out)
    missing = [above for above in folder.parents if not os.path.lexists(above)]
    with _locked(out) as lock:
        if draft is not None:
            remove_tree(folder / draft)
        _check_below(folder)
        write_marker(folder, process=os.getpid())
        aside = folder / REPLACED
        # Killed between the two renames of `publish`.
        if aside.is_dir() and not os.path.lexists(out):
            aside.replace(out)
        try:
            yield folder
        except BaseException as error:
            is_of_use = (folder / JOURNAL).exists() or "published" in read_marker(folder)
            if _is_locked(lock, folder) and (not is_of_use or isinstance(error, StartOverError)):
                remove_folder(folder)
                with contextlib.suppress(OSError):  # a parent that is no longer empty stays
                    for above in missing:
                        above.rmdir()
            raise


def read_marker(folder: Path) -> dict[str, Any]:
    """Return the marker of a reserved folder: `process`, and `published` once the output may be visible."""
    with contextlib.suppress(FileNotFoundError, ValueError), (folder / LOCK).open("rb") as marker:
        values = json.loads(marker.readline(_MAX_MARKER_BYTES))
        return values if isinstance(values, dict) else {}
    return {}


def write_marker(folder: Path, **facts: Any) -> None:
    """Update the marker of a reserved folder; None deletes a fact."""
    values = {"neardup": "work folder"} | read_marker(folder) | facts
    line = (
        json.dumps({name: value for name, value in values.items() if value is not None}).encode()
        + b"\n"
    )
    marker = os.open(folder / LOCK, _OPEN_LOCK, 0o600)
    try:
        # A single write, and only the first line counts: after a kill the marker is either the old
        # or the new one.
        os.write(marker, line)
        os.ftruncate(marker, len(line))
    finally:
        os.close(marker)


def remove_folder(folder: Path) -> None:
    """Delete a reserved work folder; the marker goes last, so that a killed run leaves a folder known to be ours."""
    for entry in folder.iterdir():
        if entry.name != LOCK:
            remove_tree(entry)
    (folder / LOCK).unlink()
    with contextlib.suppress(OSError):  # another run has just started in it
        folder.rmdir()


def remove_tree(path: Path) -> None:
    """Delete a file or a folder; of a link, only the link itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def list_files(folder: Path, *, without: str | None = None) -> Iterator[os.DirEntry[str]]:
    """Iterate over all files below a folder; links are not followed, and the top-level entry `without` is skipped."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == without:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from list_files(Path(entry.path))
            else:
                yield entry


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[int]:
    folder = folder_of(out)
    with contextlib.ExitStack() as stack:
        is_locked = False
        while not is_locked:
            lock = _open_lock(out)
            stack.callback(os.close, lock)
            _lock(lock, folder)
            is_locked = _is_locked(lock, folder)
        yield lock


def _is_locked(lock: int, folder: Path) -> bool:
    """Whether a lock still belongs to the folder: a run that ends deletes its folder with the lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(lock), (folder / LOCK).lstat())
    return False


def _open_lock(out: Path) -> int:
    """Open the lock of the work folder of an output, creating the folder if necessary."""
    folder = folder_of(out)
    for attempt in range(_ATTEMPTS):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            is_new = not os.path.lexists(folder)
            if is_new:
                folder.mkdir(mode=0o700)
            _check_ours(folder, is_new=is_new)
            lock = os.open(folder / LOCK, _OPEN_LOCK, 0o600)
        except (FileNotFoundError, FileExistsError) as error:
            # Between two of these lines another run may end and delete the folder, or start and
            # create it.
            if attempt == _ATTEMPTS - 1:
                raise unwritable(out, error) from error
        except OSError as error:
            raise unwritable(out, error) from error
        else:
            return lock
    raise AssertionError("the last attempt returns or raises")


def check_writable(out: Path, setting: str = "`out`") -> None:
    """Raise before the work begins if the folder of an output cannot be made or written to."""
    existing = next(above for above in out.absolute().parents if os.path.lexists(above))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise unwritable(out, PermissionError(errno.EACCES, os.strerror(errno.EACCES)), setting)


def unwritable(out: Path, error: OSError, setting: str = "`out`") -> DataError:
    """Return the error for an output that cannot be written: the obstacle, and the setting that names the output."""
    existing = next(above for above in out.absolute().parents if os.path.lexists(above))
    reason = error.strerror or str(error)
    if not existing.is_dir():
        reason = f"{existing} is a file, not a folder"
    elif not os.access(existing, os.W_OK | os.X_OK):
        reason = f"no permission to write to the folder {existing}"
    return DataError(f"cannot write the output {out}: {reason}", hint=f"choose another {setting}")


def _check_ours(folder: Path, *, is_new: bool) -> None:
    """Raise unless neardup created a folder as a work folder; nothing in it is opened before that is certain."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise _foreign(
            folder, "is a symbolic link" if stat.S_ISLNK(status.st_mode) else "is not a folder"
        )
    _check_owner(folder, status)
    # On a disk without permissions, even a new folder shows them for other users.
    if not is_new and os.name == "posix" and status.st_mode & 0o077:
        raise _foreign(folder, f"is open to other users (mode {stat.S_IMODE(status.st_mode):04o})")
    names = os.listdir(folder)  # noqa: PTH208
    if not names:
        return
    if LOCK not in names:
        raise _foreign(folder, f"holds {min(names)} but not {LOCK}, which every work folder has")
    lock = folder / LOCK
    status = lock.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise _foreign(folder, f"holds {LOCK}, which is not a plain file")
    _check_owner(lock, status)
    # A run killed before it wrote its marker has created nothing else.
    with lock.open("rb") as marker:
        is_marked = marker.read(len(_MAGIC)) == _MAGIC
    if not is_marked and (status.st_size or len(names) > 1):
        raise _foreign(folder, f"holds {LOCK}, but neardup did not write it")


def _check_owner(path: Path, status: os.stat_result) -> None:
    if hasattr(os, "geteuid") and status.st_uid != os.geteuid():
        raise _foreign(path, f"belongs to another user (uid {status.st_uid})")


def _foreign(path: Path, what: str) -> DataError:
    return DataError(
        f"{path} {what}, so it is not used as a work folder, and nothing in it was changed",
        hint="move or delete it, or choose another `out`",
    )


def _check_below(folder: Path) -> None:
    """Raise if an entry below a work folder is a link, so that writing to it would change a file elsewhere."""
    # A replaced output is only moved back or deleted.
    for entry in list_files(folder, without=REPLACED):
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise _foreign(folder, f"holds {entry.path}, which is a link or not a plain file")


def _lock(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = read_marker(folder).get("process", "unknown")
        raise NearDupError(
            f"another run is writing this output (process {owner}, work folder {folder})",
            hint="wait for it, or choose another `out`",
        ) from error
    except OSError as error:  # a network disk that does not support locks, or has run out of them
        raise DataError(
            f"the work folder {folder} cannot be locked: {error.strerror or error}",
            hint="choose `out` on another disk",
        ) from error
