"""The hidden folder beside an output: what is finished stays there by name and digest until the run is done."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from neardup.errors import ConfigError, DataError, NearDupError, StaleError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such module
    fcntl = None  # type: ignore[assignment]

MANIFEST: Final = "manifest.json"
JOURNAL: Final = "finished.jsonl"
LOCK: Final = "lock"
STANDARD_INPUT: Final = "stdin"
PUBLISHED: Final = "published"
REPLACED: Final = "replaced"
REPORT: Final = "report.json"
_DIGEST_BLOCK: Final = 4 << 20
_ATTEMPTS: Final = 10


class Workspace:
    """Files of a run that is under way; safe to use from many threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._finished = _read_journal(folder / JOURNAL)
        self._is_torn = _is_torn(folder / JOURNAL)
        self._sound: set[str] = set()  # finished, and checked by this process
        self._lock = threading.Lock()

    def once(self, name: str, make: Callable[[Path], dict[str, Any] | None]) -> Path:
        """Make a file unless an earlier start of the run finished it.

        `make` writes to the path it is given and may return facts to remember; see `facts`.
        """
        if not self.has(name):
            self.finish(name, make(self.draft(name)))
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether a file is finished and as it was then."""
        entry, path = self._finished.get(name), self.folder / name
        if entry is not None and name not in self._sound and _digest(path) == entry["digest"]:
            self._sound.add(name)
        return name in self._sound

    def draft(self, name: str) -> Path:
        """Return where a file may be written until it is finished."""
        path = self.folder / "drafts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self, name: str, facts: dict[str, Any] | None = None) -> None:
        """Let a draft be the file, and remember it."""
        draft = self.draft(name)
        entry = {"name": name, "digest": _digest(draft), "facts": facts or {}}
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry["digest"]:
            draft.replace(path)
        with self._lock:
            self._finished[name] = entry
            self._sound.add(name)
            with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write("\n" * self._is_torn + json.dumps(entry) + "\n")
                self._is_torn = False

    def facts(self, name: str) -> dict[str, Any]:
        """Return what was remembered about a finished file."""
        facts: dict[str, Any] = self._finished[name]["facts"]
        return facts

    def forget(self, name: str) -> None:
        """Let a file be made again."""
        with self._lock:
            self._sound.discard(name)
            self._finished.pop(name, None)


def _read_journal(path: Path) -> dict[str, dict[str, Any]]:
    finished = {}
    if path.exists():
        for line in path.read_text("utf-8", errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError, KeyError):  # the last line of a killed run may be torn
                entry = json.loads(line)
                finished[entry["name"]] = entry
    return finished


def _is_torn(path: Path) -> bool:
    """Whether the last line has no end: the run was killed while it wrote it."""
    return path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")


def _digest(path: Path) -> str:
    """The digest of a file, or nothing where there is none: a text file that is removed leaves no file."""
    if not path.is_file():
        return ""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_DIGEST_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def write_batches(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Read an Arrow file, or some of its columns, in the order of `columns`, a batch at a time."""
    if columns is None:
        with pa.OSFile(str(path), "rb") as source:
            reader = pa.ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        return
    # Reading a column allocates room for the whole batch, of which the system clears pages; a mapped column does not,
    # and its copy lets go of the file.
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            chosen = reader.get_batch(number).select(columns)
            yield pa.ipc.read_record_batch(chosen.serialize(), chosen.schema)


@contextlib.contextmanager
def reserve(out: Path) -> Iterator[Path]:
    """Hold the work folder of an output for one run; a second run on the same output gets an error.

    A run that fails before anything is finished, or so that nothing it did is of use, leaves no folder.
    """
    folder = folder_of(out)
    with _locked(folder):
        aside = folder / REPLACED
        if aside.exists() and not out.exists():  # killed between the two renames of `publish`
            aside.replace(out)
        try:
            yield folder
        except BaseException as error:
            if not (folder / JOURNAL).exists() or isinstance(error, StaleError):
                remove_tree(folder)
            raise


def open_workspace(folder: Path, out: Path, manifest: dict[str, Any], *, overwrite: bool, is_fresh: bool) -> Workspace:
    """Open a reserved work folder to go on, or to begin; is_fresh: begin whatever an earlier start has left."""
    check_output(out, overwrite=overwrite)
    _check_manifest(folder, manifest, overwrite=overwrite or is_fresh)
    return Workspace(folder)


def begun_with(folder: Path) -> dict[str, Any]:
    """Return the manifest of an earlier start in a work folder; nothing where there is none."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        return manifest if isinstance(manifest, dict) else {}
    return {}


def folder_of(out: Path) -> Path:
    """Return the work folder of an output."""
    return out.parent / f".{out.name}.neardup"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        while True:
            lock = stack.enter_context(_open_lock(folder))
            _hold(lock, folder)
            # A run that ended just now has taken its folder, and the file we hold, away.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat()):
                    break
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def _open_lock(folder: Path) -> IO[str]:
    for attempt in range(_ATTEMPTS):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return (folder / LOCK).open("a+", encoding="ascii")
        except OSError as error:
            # A run that ends may take the folder away between the two.
            if not isinstance(error, FileNotFoundError) or attempt == _ATTEMPTS - 1:
                raise DataError(
                    f"the work folder {folder} cannot be made: {error.strerror}", hint="choose another -o"
                ) from error
    raise AssertionError("the last attempt returns or raises")


def _hold(lock: IO[str], folder: Path) -> None:
    if fcntl is None:  # pragma: no cover - Windows
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        raise NearDupError(
            f"another run is writing this output (process {owner}, work folder {folder})",
            hint="wait for it, or choose another -o",
        ) from error


def _check_manifest(folder: Path, manifest: dict[str, Any], *, overwrite: bool) -> None:
    path = folder / MANIFEST
    now = json.loads(json.dumps(manifest))
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        before = json.loads(path.read_text("utf-8"))
        if before == now:
            return
        if not overwrite:
            raise ConfigError(
                f"the work folder {folder} belongs to an earlier start of another run: {_difference(before, now)}",
                hint="repeat the earlier command to finish it; delete the folder, or pass --overwrite, to start anew",
            )
    for entry in folder.iterdir():
        if entry.name not in (LOCK, STANDARD_INPUT):
            remove_tree(entry)
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(manifest, indent=1), "utf-8")
    draft.replace(path)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Name the first settings, inputs or versions in which two starts differ."""
    for name, what in (("version", "neardup"), ("command", "command")):
        if before.get(name) != now[name]:
            return f"{what} was {before.get(name)}, now {now[name]}"
    changed = [
        f"{name} was {before.get('settings', {}).get(name)!r}, now {value!r}"
        for name, value in now["settings"].items()
        if before.get("settings", {}).get(name) != value
    ]
    if changed:
        return "; ".join(changed[:3])
    if before.get("signature_format") != now.get("signature_format"):
        return f"signatures were {before.get('signature_format')}, now {now.get('signature_format')}"
    old_files = {file["path"]: file for file in before.get("inputs", [])}
    gone = old_files.keys() - {file["path"] for file in now["inputs"]}
    if gone:
        return f"{min(gone)} was an input then"
    for file in now["inputs"]:
        if file["path"] not in old_files:
            return f"{file['path']} is new among the inputs"
        if old_files[file["path"]] != file:
            return f"{file['path']} has changed since"
    return "the inputs differ"


def check_output(out: Path, *, overwrite: bool) -> None:
    """Raise where an output is in the way."""
    if out.is_symlink():
        raise DataError(f"the output {out} is a symbolic link", hint="name what it points to, or choose another -o")
    if not out.exists():
        return
    if not overwrite:
        raise DataError(f"the output {out} is there already", hint="choose another -o, or pass --overwrite")
    if out.is_dir() and any(out.iterdir()) and not is_finished(out):
        raise DataError(
            f"{out} is no output of neardup, so it is not overwritten",
            hint="choose another -o, or delete it yourself",
        )


def is_finished(folder: Path) -> bool:
    """Whether a folder is the output of a run."""
    if not (folder / "removed.parquet").is_file():
        return False
    try:
        report = json.loads((folder / REPORT).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and {"config", "plan", "documents"} <= report.keys()


def publish_folder(workspace: Workspace, out: Path) -> None:
    """Let the folder `out` of a workspace appear whole as the output, by one rename, and end the workspace."""
    (workspace.folder / PUBLISHED).touch()
    publish(workspace.folder / "out", out)
    remove_tree(workspace.folder)


def is_published(out: Path, manifest: dict[str, Any]) -> bool:
    """Whether the same run was killed between the moment its output appeared and its end."""
    folder = folder_of(out)
    if not (folder / PUBLISHED).exists() or (folder / "out").exists() or not (out / REPORT).is_file():
        return False
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        return bool(json.loads((folder / MANIFEST).read_text("utf-8")) == json.loads(json.dumps(manifest)))
    return False


def publish(draft: Path, out: Path) -> None:
    """Let an output appear whole, by one rename; what stood there before goes."""
    aside = folder_of(out) / REPLACED
    if out.is_dir():
        remove_tree(aside)
        out.replace(aside)
    draft.replace(out)
    remove_tree(aside)


def remove_tree(path: Path) -> None:
    """Delete a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
