"""The workspace of a run in its work folder: finished files are checkpoints, known by name and checksum."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec
import pyarrow as pa

from neardup.errors import ConfigError, DataError
from neardup.io.storage.journal import journal_line, read_journal, read_manifest
from neardup.io.storage.work_folder import (
    JOURNAL,
    LOCK,
    REPLACED,
    folder_of,
    list_files,
    read_marker,
    remove_folder,
    remove_tree,
    write_marker,
)
from neardup.kernels.keys import DIGEST_SECRET_BYTES, draw_secret, own_secret

MANIFEST: Final = "manifest.json"
REPORT: Final = "report.json"
STANDARD_INPUT: Final = "stdin"
# Read at once for a checksum, so that it is still in the cache of the core.
_BLOCK_BYTES: Final = 1 << 20


class Workspace:
    """The files of a running run; thread-safe.

    overwrite: its output may replace an existing one; secret: that of the digests in these files.
    """

    def __init__(self, folder: Path, *, overwrite: bool = False) -> None:
        self.folder = folder
        self.overwrite = overwrite
        self.secret = _stored_secret(folder) or own_secret()
        self._finished = read_journal(folder / JOURNAL)
        self._is_torn = _is_torn(folder / JOURNAL)
        self._sound: set[str] = set()  # finished, and verified by this process
        self._lock = threading.Lock()

    def checkpoint(self, name: str, make: Callable[[Path], dict[str, Any] | None]) -> Path:
        """Make a file unless an interrupted run has already finished it.

        `make` writes to the path it is given and may return facts to record; see `facts`.
        """
        if not self.has(name):
            self.finish(name, make(self.draft(name)))
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether a file is finished and unchanged."""
        entry = self._finished.get(name)
        path = self.folder / name
        if entry is not None and name not in self._sound and checksum(path) == entry["checksum"]:
            self._sound.add(name)
        return name in self._sound

    def draft(self, name: str) -> Path:
        """Return where a file may be written until it is finished."""
        if not _stays_below(name):
            raise DataError(
                f"the name {name!r} points outside the work folder {self.folder}",
                hint="rename the input",
            )
        path = self.folder / "drafts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self, name: str, facts: dict[str, Any] | None = None) -> None:
        """Move a draft to its place, and record it in the journal."""
        draft = self.draft(name)
        entry = {"name": name, "checksum": checksum(draft), "facts": facts or {}}
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry["checksum"]:
            if path.is_dir():  # which is not replaced by a rename
                remove_tree(path)
            draft.replace(path)
        with self._lock:
            self._finished[name] = entry
            self._sound.add(name)
            with (self.folder / JOURNAL).open("a", encoding="utf-8") as journal:
                journal.write("\n" * self._is_torn + journal_line(entry))
                self._is_torn = False

    def facts(self, name: str) -> dict[str, Any]:
        """Return the facts recorded about a finished file."""
        facts: dict[str, Any] = self._finished[name]["facts"]
        return facts

    def forget(self, name: str) -> None:
        """Drop a file from the journal, so that it is made again."""
        with self._lock:
            self._sound.discard(name)
            self._finished.pop(name, None)


def _stored_secret(folder: Path) -> bytes | None:
    """Return the secret of the digests in a work folder; None if it has none, so that nothing in it can be resumed."""
    try:
        secret = bytes.fromhex(str(read_marker(folder).get("secret", "")))
    except ValueError:
        return None
    return secret if len(secret) == DIGEST_SECRET_BYTES else None


def _stays_below(name: str) -> bool:
    """Whether a relative name stays below any folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _is_torn(path: Path) -> bool:
    """Whether the last line has no newline, because the run was killed while writing it."""
    return path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")


def checksum(path: Path) -> str:
    """Return CRC-32 and size of a file, to detect damage; empty if there is none: a removed text leaves no file.

    That of a folder covers the names and sizes of its files: a large table is not read again by one
    process. SHA-256 takes three times as long where the processor supports it, 3 % of a run, and
    longer elsewhere.
    """
    if path.is_dir() and not path.is_symlink():
        listed = sorted((file.name, file.stat().st_size) for file in path.iterdir())
        return f"{zlib.crc32(json.dumps(listed).encode()):08x}"
    if not path.is_file():
        return ""
    found = size = 0
    for block in _blocks(path):
        found = zlib.crc32(block, found)
        size = size + len(block)
    return f"{found:08x}-{size}"


def digest(path: Path) -> str:
    """Return the SHA-256 digest of a file, by which it is recognised as ours; empty if there is none."""
    if not path.is_file():
        return ""
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb", 0) as stream:
        while block := stream.read(_BLOCK_BYTES):
            yield block


def write_batches(path: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
    """Write an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def read_batches(path: Path, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Read an Arrow file, or some of its columns in the order of `columns`, batch by batch."""
    if columns is None:
        with pa.OSFile(str(path), "rb") as source:
            reader = pa.ipc.open_file(source)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        return
    # Reading a column allocates, and zeroes, memory for the whole batch. A mapped column does not;
    # it is copied so that the pages of the file can be released.
    with path.open("rb") as stream:
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    reader = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
    for number in range(reader.num_record_batches):
        chosen = reader.get_batch(number).select(columns)
        copied = pa.ipc.read_record_batch(chosen.serialize(), chosen.schema)
        # Otherwise the pages read so far count as memory until the end of the file.
        if hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)
        yield copied


class Reusable(NamedTuple):
    """What a run with other settings can reuse: if only `settings` differ, the files in `folders`."""

    settings: frozenset[str]
    folders: tuple[str, ...]


def open_workspace(
    folder: Path,
    out: Path,
    manifest: dict[str, Any],
    *,
    overwrite: bool,
    is_fresh: bool,
    reusable: Reusable | None = None,
) -> Workspace:
    """Open a reserved work folder to resume or start a run; is_fresh: start over, ignoring its contents."""
    check_output(out, overwrite=overwrite)
    if reusable is not None and not is_fresh:
        _keep_reusable(folder, manifest, reusable)
    _check_manifest(folder, manifest, overwrite=overwrite or is_fresh)
    return Workspace(folder, overwrite=overwrite)


def _keep_reusable(folder: Path, manifest: dict[str, Any], reusable: Reusable) -> None:
    """If an unfinished run differs in some settings only, make its work folder that of this run, with fewer files."""
    path = folder / MANIFEST
    before = read_manifest(path)
    text = _encoded(manifest)
    if before is None or path.read_bytes() == text or _stored_secret(folder) is None:
        return
    if _without(before, reusable.settings) != _without(json.loads(text), reusable.settings):
        return
    finished = read_journal(folder / JOURNAL)
    lines = [
        journal_line(entry)
        for name, entry in finished.items()
        if name.partition("/")[0] in reusable.folders
    ]
    journal = folder / f"{JOURNAL}.draft"
    journal.write_text("".join(lines), "utf-8")
    journal.replace(folder / JOURNAL)
    kept = {LOCK, STANDARD_INPUT, MANIFEST, JOURNAL, *reusable.folders}
    for entry in folder.iterdir():
        if entry.name not in kept:
            remove_tree(entry)
    draft = path.with_suffix(".draft")
    draft.write_bytes(text)
    draft.replace(path)


def _without(manifest: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return a manifest without some settings."""
    settings = {name: value for name, value in manifest["settings"].items() if name not in names}
    return manifest | {"settings": settings}


def earlier_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an earlier start in a work folder; empty if there is none."""
    return read_manifest(folder / MANIFEST) or {}


def _check_manifest(folder: Path, manifest: dict[str, Any], *, overwrite: bool) -> None:
    path = folder / MANIFEST
    text = _encoded(manifest)
    # Texts are compared first: parsed, the manifest of 100,000 files takes 100 MB.
    is_same = path.is_file() and path.read_bytes() == text
    if is_same and _stored_secret(folder) is not None:
        return
    before = read_manifest(path)
    if before is not None and not is_same and not overwrite and (folder / JOURNAL).exists():
        raise ConfigError(
            f"the work folder {folder} belongs to an unfinished run with other inputs or settings: "
            f"{_difference(before, json.loads(text))}",
            hint="repeat the earlier command to finish it; delete the folder, or pass overwrite=True, to start over",
        )
    for entry in folder.iterdir():
        if entry.name not in (LOCK, STANDARD_INPUT):
            remove_tree(entry)
    # With the secret of earlier digests, everything made under it is gone.
    write_marker(folder, published=None, secret=draw_secret().hex())
    draft = path.with_suffix(".draft")
    draft.write_bytes(text)
    draft.replace(path)


def _encoded(manifest: dict[str, Any]) -> bytes:
    """Return the manifest as JSON; its inputs may be encoded already."""
    return msgspec.json.encode(manifest)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """Name the first setting, input or version in which two starts differ."""
    for name, what in (("version", "neardup"), ("command", "command")):
        if before[name] != now[name]:
            return f"{what} was {before[name]}, now {now[name]}"
    changed = [
        f"{name} was {before['settings'].get(name)!r}, now {value!r}"
        for name, value in now["settings"].items()
        if before["settings"].get(name) != value
    ]
    if changed:
        return "; ".join(changed[:3])
    if before.get("signature_format") != now.get("signature_format"):
        return (
            f"signatures were {before.get('signature_format')}, now {now.get('signature_format')}"
        )
    if before.get("digest_format") != now.get("digest_format"):
        return f"digests were {before.get('digest_format', 'sums')}, now {now.get('digest_format')}"
    old_files = {file["path"]: file for file in before["inputs"]}
    gone = old_files.keys() - {file["path"] for file in now["inputs"]}
    if gone:
        return f"{min(gone)} was an input of that run"
    for file in now["inputs"]:
        if file["path"] not in old_files:
            return f"{file['path']} was not an input of that run"
        if old_files[file["path"]] != file:
            return f"{file['path']} has changed since then"
    return "the inputs differ"


def check_output(out: Path, *, overwrite: bool) -> None:
    """Raise if the output exists; with `overwrite`, only if neardup did not write it."""
    if out.is_symlink():
        raise DataError(
            f"the output {out} is a symbolic link",
            hint="name what it points to, or choose another `out`",
        )
    if not out.exists():
        return
    if not overwrite:
        raise DataError(
            f"the output {out} already exists", hint="choose another `out`, or pass overwrite=True"
        )
    if out.is_dir():
        _check_replaceable(out)
    elif not out.is_file():
        raise DataError(f"the output {out} is not a regular file", hint="choose another `out`")


def _check_replaceable(out: Path) -> None:
    """Raise unless everything in a folder was written by the run of its report."""
    found = [Path(entry.path).relative_to(out).as_posix() for entry in list_files(out)]
    listed = listed_files(out / REPORT)
    if not found and not any(out.iterdir()):
        return
    if listed is None and is_finished(out):
        raise DataError(
            f"{out} is not overwritten: the version of neardup that wrote it did not list its files",
            hint="delete the folder yourself, or choose another `out`",
        )
    if listed is None:
        raise DataError(
            f"{out} was not written by neardup, so it is not overwritten",
            hint="choose another `out`, or delete it yourself",
        )
    if foreign := set(found) - listed:
        others = f" and {len(foreign) - 1:,} more" * (len(foreign) > 1)
        raise DataError(
            f"{out} is not overwritten, because it contains files that the run did not write: {min(foreign)}{others}",
            hint="move it elsewhere, or choose another `out`",
        )


def listed_files(report: Path) -> set[str] | None:
    """Return the files that a run has written according to its report.json; None if it does not list them."""
    if report.is_symlink() or not report.is_file():
        return None
    try:
        stored = json.loads(report.read_bytes())
    except (OSError, ValueError):
        return None
    if (
        not isinstance(stored, dict)
        or not isinstance(stored.get("schema"), int)
        or not {"config", "plan"} <= stored.keys()
    ):
        return None
    files = stored.get("files")
    if isinstance(files, list) and report.name in files:
        return set(map(str, files))
    return None


def is_finished(folder: Path) -> bool:
    """Whether a folder is the output of a run."""
    if not (folder / "removed.parquet").exists():  # a file, or a folder of parts
        return False
    try:
        report = json.loads((folder / REPORT).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(report, dict) and {"config", "plan", "documents"} <= report.keys()


def written_files(folder: Path) -> tuple[str, ...]:
    """Return the files that a report lists: all below the folder, and the report itself, which is written later."""
    # Strings, because building pathlib paths for many files takes longer than listing them.
    begin = len(os.path.join(folder, ""))  # noqa: PTH118
    found = {REPORT}
    if folder.exists():
        found |= {entry.path[begin:].replace(os.sep, "/") for entry in list_files(folder)}
    return tuple(sorted(found))


def publish_folder(workspace: Workspace, out: Path, finish: Callable[[], None]) -> None:
    """Publish the folder `out` of a workspace as the output by one rename, call `finish`, and remove the workspace.

    After a kill, the next process finds the output complete, and calls `finish` again.
    """
    draft = workspace.folder / "out"
    _declare(workspace, {f"{out.name}/{REPORT}": digest(draft / REPORT)})
    publish(draft, out, overwrite=workspace.overwrite)
    finish()
    remove_folder(workspace.folder)


def publish_files(workspace: Workspace, drafts: Sequence[tuple[Path, Path]]) -> None:
    """Publish files of a workspace, the one that completes the output last, and remove the workspace."""
    _declare(workspace, {target.name: digest(draft) for draft, target in drafts})
    for draft, target in drafts:
        publish(draft, target, overwrite=workspace.overwrite)
    remove_folder(workspace.folder)


def _declare(workspace: Workspace, digests: dict[str, str]) -> None:
    """Record in the marker the files by which a later process recognises that the output is complete."""
    write_marker(
        workspace.folder,
        published={"manifest": digest(workspace.folder / MANIFEST), "files": digests},
    )


def is_published(out: Path, manifest: dict[str, Any]) -> bool:
    """Whether the same run was killed after its output was complete, but before it ended."""
    published = read_marker(folder_of(out)).get("published", {})
    digests = published.get("files", {})
    if not digests or published.get("manifest") != hashlib.sha256(_encoded(manifest)).hexdigest():
        return False
    return all(_is_published(out.parent / name, digests[name]) for name in digests)


def left_complete(out: Path) -> str | None:
    """Return the digest of a file published by a run that was killed during its clean-up; else None."""
    known = read_marker(folder_of(out)).get("published", {}).get("files", {}).get(out.name, "")
    return known if _is_published(out, known) else None


def _is_published(path: Path, known: str) -> bool:
    return bool(known) and not path.is_symlink() and digest(path) == known


def retract(out: Path, paths: Sequence[Path]) -> None:
    """Delete files next to an output that were left by a run killed while publishing."""
    digests = read_marker(folder_of(out)).get("published", {}).get("files", {})
    for path in paths:
        if path.name in digests and _is_published(path, digests[path.name]):
            path.unlink()


def publish(draft: Path, out: Path, *, overwrite: bool) -> None:
    """Publish an output atomically, by one rename; with `overwrite`, replace an existing one."""
    check_output(out, overwrite=overwrite)  # hours may have passed since the first check
    aside = folder_of(out) / REPLACED
    if out.is_dir():
        remove_tree(aside)
        out.replace(aside)
    draft.replace(out)
    remove_tree(aside)
