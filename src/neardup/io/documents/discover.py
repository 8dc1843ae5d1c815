"""Which files a run reads, and their names in the output."""

from __future__ import annotations

import codecs
import collections
import contextlib
import glob
import itertools
import os
import reprlib
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import msgspec

from neardup.config import Config
from neardup.config.checks import AUTO
from neardup.errors import DataError
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.file_encodings import FileEncodings, count_detected
from neardup.io.documents.file_list import FileList
from neardup.io.documents.path_globs import PathChoice
from neardup.io.formats import registry as formats
from neardup.io.records import InputFile
from neardup.io.streams import filesystem, is_remote, local_version, open_input, version_in

_WILDCARDS: Final = "*?["
# Marker files that Spark writes to an output folder.
_SUCCESS: Final = "_SUCCESS"
_PROBED_BYTES: Final = 4096
# How files of binary formats begin; a stream of Arrow has a marker instead of a magic number.
_MAGIC: Final = {"parquet": (b"PAR1",), "arrow": (b"ARROW1", b"\xff\xff\xff\xff")}
_NAMED_ENDINGS: Final = 5
_READABLE: Final = 0o444
BROKEN_LINK: Final = "link to a file that does not exist"
NOT_REGULAR: Final = "not a regular file"
_WITH_ENCODING: Final = ("jsonl", "json", "csv", "text", "lines")


class _Found(NamedTuple):
    """A file found under an input.

    name: relative to the input; is_named: read whatever its extension; info: from a remote
    filesystem; is_link: as the listing of a folder says, else None; is_given: named by the user,
    neither in a folder nor by a glob.
    """

    path: str
    name: str
    is_named: bool
    info: dict[str, Any] | None = None
    is_link: bool | None = None
    is_given: bool = False


class LeftOut:
    """What was found and is not read, to be said at the end."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.strays: dict[str, None] = {}
        self.num_linked = 0
        self.num_circles = 0

    def messages(self) -> Iterator[str]:
        """Say how many files are not read, and why."""
        if self.unknown:
            yield f"{_counted(self.unknown)}; format='text' reads every file of a folder as text"
        if self.strays:
            yield (
                f"{_counted(self.strays)}: beside other documents, files without a column to compare; "
                "`text_column` names one"
            )
        if self.num_linked:
            files = "1 file is" if self.num_linked == 1 else f"{self.num_linked:,} files are"
            yield f"{files} reached again by links, and read once"
        if self.num_circles:
            if self.num_circles == 1:
                links = "1 link to a parent folder is"
            else:
                links = f"{self.num_circles:,} links to parent folders are"
            yield f"{links} not followed"


def _counted(paths: Collection[str]) -> str:
    """Count the files that are not read, by extension."""
    counts = collections.Counter(formats.endings(path)[0] or "no extension" for path in paths)
    named = ", ".join(
        f"{count:,} with {ending}" for ending, count in counts.most_common(_NAMED_ENDINGS)
    )
    more = ", ..." if len(counts) > _NAMED_ENDINGS else ""
    files = "1 file was" if len(paths) == 1 else f"{len(paths):,} files were"
    return f"{files} left out ({named}{more})"


def find_files(
    inputs: Sequence[str],
    config: Config,
    warn: Callable[[str], None] | None = None,
    known: Iterable[Mapping[str, Any]] = (),
) -> FileList:
    """Return the files of all inputs: in the given order, those of a folder or a glob sorted by path.

    Args:
        inputs: files, folders, globs and addresses.
        config: settings for reading.
        warn: called for files in a folder or a glob that are not read.
        known: files of an earlier start of the run, whose encodings are not detected again.
    """
    encodings = FileEncodings(config, known)
    found: list[_Found] = []
    left_out = LeftOut()
    choice = PathChoice(config)
    for address in inputs:
        found += _expand(address, config, choice, left_out)
    found = _without_repeats(found, left_out)
    linked = _HardLinks({file.path for file in found}.intersection(inputs))

    def checked() -> Iterator[InputFile]:
        for file in found:
            status = _status(file)
            if isinstance(status, os.stat_result) and linked.is_repeated(file, status):
                left_out.num_linked += 1
            else:
                yield _input_file(file, status, config, encodings)

    files = _with_distinct_names(FileList(checked()))
    if warn is not None:
        for message in left_out.messages():
            warn(message)
        detected = count_detected(files) if config.encoding == AUTO else None
        if detected is not None:
            warn(detected)
    return files


def find_file(path: str, config: Config, *, is_given: bool = True) -> InputFile:
    """Return the file at a path or an address, which is taken literally: neither a folder nor a glob.

    A broken link is an error, or if it is not given by the user, one rejected row.
    """
    info = None
    if is_remote(path):
        files, inner = filesystem(path)
        with _asked(path):
            info = files.info(inner)
    found = _Found(path, _last_part(path), True, info, is_given=is_given)
    return _input_file(found, _status(found), config, FileEncodings(config))


def is_input(address: str) -> bool:
    """Whether an address may be an input: an existing file or folder, a glob, or a remote address."""
    return is_remote(address) or _is_glob(address) or os.path.lexists(address)


def paths_of(source: Any) -> list[str] | None:
    """Return the paths of a source, None for documents in memory; a list of str is a list of texts."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if isinstance(source, str) and not is_input(path):
            raise DataError(
                f"no such file, folder or glob: {reprlib.repr(path)}",
                hint="a single text goes in a list: [text]; neardup.compare(a, b) compares two texts",
            )
        return [path]
    if (
        isinstance(source, (list, tuple))
        and source
        and all(isinstance(path, os.PathLike) for path in source)
    ):
        return [os.fspath(path) for path in source]
    return None


def has_documents(folder: str, config: Config) -> bool:
    """Whether a local folder has a file that would be read."""
    try:
        return bool(_expand(folder, config, PathChoice(Config()), LeftOut()))
    except DataError:
        return False


def _expand(address: str, config: Config, choice: PathChoice, left_out: LeftOut) -> list[_Found]:
    if not address:
        raise DataError(
            "an input must be a file, a folder or a glob, got ''",
            hint="use . for the current folder",
        )
    if is_remote(address):
        candidates, is_named = _expand_remote(address)
    else:
        candidates, is_named = _expand_local(address, left_out)
    listed = [file for file in candidates if choice.has(file.name)]
    if candidates and not listed:
        raise DataError(
            f"`include` and `exclude` leave no file of {address}",
            hint="a glob is compared with paths below the folder that was given, such as "
            f"{min(candidates).name}",
        )
    if is_named:
        return listed
    candidates = [file for file in listed if _last_part(file.name) != _SUCCESS]
    usable = _usable(candidates, config, left_out)
    if len(usable) < len(candidates):
        chosen = {file.path for file in usable}
        left_out.unknown += [
            file.path
            for file in candidates
            if file.path not in chosen and file.path not in left_out.strays
        ]
    if not usable:
        if _is_glob(address) and not candidates:
            what = "matches no file"
        else:
            what = "has no file of a known format"
        raise DataError(f"{address} {what}", hint=formats.KNOWN)
    return usable


def _usable(candidates: list[_Found], config: Config, left_out: LeftOut) -> list[_Found]:
    """Choose what to read in a folder or a glob: known formats, and source code if a folder has no table.

    Tables that are fewer than the texts are left aside if none has a column to compare.
    """
    kinds = [formats.format_of(file.name, config, is_named=file.is_named) for file in candidates]
    known = [file for file, kind in zip(candidates, kinds, strict=True) if kind]
    tables = {
        file.path
        for file, kind in zip(candidates, kinds, strict=True)
        if kind and kind[0] in formats.TABLES
    }
    if 2 * len(tables) > len(candidates):
        return known
    # A file that is text by its extension or content is read as if it had been named.
    texts = []
    for file, kind in zip(candidates, kinds, strict=True):
        if kind and file.path not in tables:
            texts.append(file)
        elif not kind and _is_source(file):
            texts.append(file._replace(is_named=True))
    if len(tables) >= len(texts):
        return known or texts
    if any(file.path in tables and _has_contents(file, config) for file in known):
        return known
    left_out.strays.update(dict.fromkeys(file.path for file in known if file.path in tables))
    return texts


def _has_contents(file: _Found, config: Config) -> bool:
    """Whether a table has the columns that the settings compare; a damaged one counts, so that reading it says so."""
    status = _status(file)
    if isinstance(status, str):
        return False
    found = _input_file(file, status, config, FileEncodings(config))
    try:
        with open_input(found) as stream:
            head = stream.read(_PROBED_BYTES)
    except DataError:
        return True
    magic = _MAGIC.get(found.format)
    if magic is not None and not head.startswith(magic):
        return False
    try:
        names = formats.load(found.format).column_names(found, config)
    except DataError:
        return magic is not None
    if not names:
        return not head.strip()
    with contextlib.suppress(DataError):
        columns = choose_columns(found, names, config)
        wanted = [*columns.text, *filter(None, [columns.items, columns.vector])]
        return any(name.partition(".")[0] in names for name in wanted)
    return False


def _is_source(file: _Found) -> bool:
    ending, compression = formats.endings(file.name)
    if ending:
        return ending in formats.SOURCE_ENDINGS
    if file.info is not None:
        return False
    status = _status(file)
    if not isinstance(status, os.stat_result):
        return True  # it is listed as rejected
    probed = InputFile(
        path=file.path,
        name=file.name,
        format="text",
        compression=compression,
        size=status.st_size,
        modified="",
    )
    try:
        with open_input(probed) as stream:
            return b"\0" not in stream.read(_PROBED_BYTES)
    except DataError:
        return True  # reading it will report why


def _is_glob(address: str) -> bool:
    # In a web address, a question mark starts the query.
    if address.startswith(("http://", "https://")):
        wildcards = "*["
    else:
        wildcards = _WILDCARDS
    return any(wildcard in address for wildcard in wildcards)


def _expand_local(address: str, left_out: LeftOut) -> tuple[list[_Found], bool]:
    """Return the files of a local input, and whether it is a single file given by name."""
    if os.path.isdir(address):  # noqa: PTH112
        return _folder(address, address, left_out), False
    if os.path.lexists(address) or not _is_glob(address):
        return [_Found(address, Path(address).name, True, is_given=True)], True
    base = _before_wildcard(address)
    found: list[_Found] = []
    for match in glob.iglob(address, recursive=True):  # noqa: PTH207
        if not os.path.isdir(match):  # noqa: PTH112
            found.append(_Found(match, _relative(match, base), True))
        elif "**" not in address:
            found += _folder(match, base, left_out)
    return sorted(found, key=lambda file: file.name), False


def _before_wildcard(address: str) -> str:
    """The folder part of a glob before its first wildcard."""
    first = min(address.index(wildcard) for wildcard in _WILDCARDS if wildcard in address)
    return address[: address.rfind("/", 0, first) + 1] or "."


def _relative(path: str, base: str) -> str:
    return Path(os.path.relpath(path, base)).as_posix()


class RealPaths:
    """Resolves the links of local paths, once per folder, because that is slow."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str, is_link: bool | None = None) -> str:
        """Return the real path of a file; is_link: whether it is a link itself, if that is known."""
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or (os.path.islink(path) if is_link is None else is_link):  # noqa: PTH114
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or ".").rstrip("/")
        return f"{self._folders[folder]}/{name}"


def _folder(folder: str, base: str, left_out: LeftOut) -> list[_Found]:
    found: list[_Found] = []
    for below, entries in _walk(folder, (), left_out):
        path, name = os.path.join(below, ""), _relative(below, base)  # noqa: PTH118
        name = "" if name == "." else f"{name}/"
        found += [
            _Found(path + entry, name + entry, False, None, is_link) for entry, is_link in entries
        ]
    return sorted(found, key=lambda file: file.name)


def _walk(
    folder: str, above: tuple[str, ...], left_out: LeftOut
) -> Iterator[tuple[str, list[tuple[str, bool]]]]:
    """Yield each folder with its files, except hidden ones, and whether they are links; follow links to folders."""
    real = os.path.realpath(folder)
    if real in above:
        left_out.num_circles += 1
        return
    try:
        with os.scandir(folder) as listed:
            entries = [entry for entry in listed if not entry.name.startswith(".")]
        folders = sorted(entry.name for entry in entries if entry.is_dir())
        files = [(entry.name, entry.is_symlink()) for entry in entries if not entry.is_dir()]
    except OSError as error:
        raise DataError(f"the folder {folder} cannot be listed: {error.strerror}") from error
    yield folder, files
    for name in folders:
        yield from _walk(os.path.join(folder, name), (*above, real), left_out)  # noqa: PTH118


def _expand_remote(address: str) -> tuple[list[_Found], bool]:
    """Return the files of a remote input, and whether it is a single file given by name."""
    files, inner = filesystem(address)
    with _asked(address):
        if _is_glob(address):
            base = inner[
                : inner.rfind("/", 0, min(map(inner.find, filter(inner.__contains__, _WILDCARDS))))
                + 1
            ]
            infos = files.glob(inner, detail=True)
            is_named = True
        else:
            info = files.info(inner)
            if info["type"] == "file":
                return [_Found(address, _last_part(inner), True, info)], True
            base = inner
            infos = files.find(inner, detail=True)
            is_named = False
    found = []
    for path, info in sorted(infos.items()):
        name = path.removeprefix(base.rstrip("/")).lstrip("/")
        if info["type"] == "file" and not any(part.startswith(".") for part in name.split("/")):
            found.append(_Found(files.unstrip_protocol(path), name, is_named, info))
    return found, False


@contextlib.contextmanager
def _asked(address: str) -> Iterator[None]:
    """Turn the errors of a remote filesystem into errors that name the address."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{address} does not exist", hint="check the spelling") from error
    except OSError as error:
        raise DataError(f"{address} cannot be read: {error}") from error


def _last_part(address: str) -> str:
    """The file name of an address, without the query of a web address."""
    return (
        (address.partition("?")[0] if is_remote(address) else address)
        .rstrip("/")
        .rpartition("/")[2]
    )


def _input_file(
    found: _Found, status: os.stat_result | str | None, config: Config, encodings: FileEncodings
) -> InputFile:
    """Return the file; `status` is that of a local file, or why it is rejected; a remote file has `info` instead."""
    if isinstance(status, str):
        return InputFile(
            path=found.path,
            name=found.name,
            format="unread",
            compression=None,
            size=0,
            modified="",
            reason=status,
        )
    if status is not None:
        size, modified, identity = local_version(status)
    else:
        (size, modified), identity = version_in(found.info or {}, found.path), ""
    kind = formats.format_of(found.name, config, is_named=found.is_named)
    if kind is None:
        raise DataError(
            f"{found.path} is an archive, or compressed in a way that cannot be read",
            hint="unpack it first; .gz and .zst can be read",
        )
    try:
        (found.path + found.name).encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"{found.path!r} has a name that is not UTF-8", hint="rename the file"
        ) from error
    file = InputFile(
        path=found.path,
        name=found.name,
        format=kind[0],
        compression=kind[1],
        size=size,
        modified=modified,
        identity=identity,
    )
    if kind[0] in _WITH_ENCODING:
        file = msgspec.structs.replace(file, encoding=encodings.of(file))
    may_be_array = (
        kind[0] == "jsonl"
        and config.format is None
        and formats.endings(file.name)[0] == ".json"
        and size
    )
    if may_be_array and _is_array(file):
        return msgspec.structs.replace(file, format="json")
    return file


def _is_array(file: InputFile) -> bool:
    """Whether a .json file is one array, and not JSON Lines."""
    with open_input(file) as stream:
        return stream.read(_PROBED_BYTES).removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")


def _status(found: _Found) -> os.stat_result | str | None:
    """Return the status of a local file that can be read, None for a remote one, or why it is rejected."""
    if found.info is not None:
        return None
    path = found.path
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError as error:
        is_link = os.path.islink(path)  # noqa: PTH114
        if is_link and not found.is_given:
            return BROKEN_LINK
        what = f"is a {BROKEN_LINK}" if is_link else "does not exist"
        raise DataError(
            f"{path} {what}", hint="check the spelling and the current folder"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # NUL, or a character that no file name has
        raise DataError(f"{path!r} cannot be read: it is not the name of a file") from error
    if not stat.S_ISREG(status.st_mode):
        if not found.is_given:
            return NOT_REGULAR
        raise DataError(
            f"{path} is not a regular file",
            hint="write its content to a file first, or use - for stdin",
        )
    # A world-readable file needs no further check.
    if status.st_mode & _READABLE != _READABLE and not os.access(path, os.R_OK):
        raise DataError(
            f"{path} cannot be read: permission denied", hint="ask its owner for read permission"
        )
    return status


def _without_repeats(found: list[_Found], left_out: LeftOut) -> list[_Found]:
    """Leave out files that links reach again, links before the files themselves; one named twice is an error."""
    real_paths = RealPaths()
    chosen: dict[str, int] = {}
    repeated: set[int] = set()
    for at, file in enumerate(found):
        if file.info is None:
            real = real_paths.of(file.path, file.is_link)
        else:
            real = file.path
        before = chosen.setdefault(real, at)
        if before == at:
            continue
        is_direct = _absolute(file) == real
        if _absolute(found[before]) == (real if is_direct else _absolute(file)):
            raise _twice(file.path, found[before].path)
        if is_direct:
            chosen[real] = at
        repeated.add(before if is_direct else at)
    left_out.num_linked += len(repeated)
    return [file for at, file in enumerate(found) if at not in repeated] if repeated else found


def _absolute(file: _Found) -> str:
    return file.path if file.info is not None else os.path.abspath(file.path)  # noqa: PTH100


class _HardLinks:
    """Finds hard links to a file that is read already, if one of them is in `asked`; others are files of their own."""

    def __init__(self, asked: set[str]) -> None:
        self._asked = asked
        self._seen: dict[tuple[int, int], str] = {}

    def is_repeated(self, file: _Found, status: os.stat_result) -> bool:
        """Whether a file is one that was found before."""
        if status.st_nlink < 2:
            return False
        other = self._seen.setdefault((status.st_dev, status.st_ino), file.path)
        return other != file.path and not self._asked.isdisjoint((file.path, other))


def _twice(path: str, other: str) -> DataError:
    also = "" if other == path else f", also as {other}"
    return DataError(f"{path} is named twice{also}", hint="name every file once")


def _with_distinct_names(files: FileList) -> FileList:
    """Keep the names unless two collide or one contains ".."; then name all relative to their common parent."""
    counts = collections.Counter(file.name for file in files)
    holders = {name.rpartition("/")[0] for name in counts}
    folders = {
        str(parent) for holder in holders for parent in PurePosixPath(holder, "name").parents
    }
    leads_up = any(".." in name.split("/") or name.startswith("/") for name in counts)
    if len(counts) == len(files) and not folders & counts.keys() and not leads_up:
        return files
    parts = [_parts(file.path) for file in files]
    levels = zip(*(part[:-1] for part in parts), strict=False)
    num_shared = len(list(itertools.takewhile(lambda level: len(set(level)) == 1, levels)))
    named = FileList(
        msgspec.structs.replace(file, name="/".join(part[num_shared:]))
        for file, part in zip(files, parts, strict=True)
    )
    for file, count in collections.Counter(file.name for file in named).items():
        if count > 1:
            raise DataError(
                f"{count} inputs would be written to {file} in the output",
                hint="download and rename them",
            )
    return named


def _parts(path: str) -> tuple[str, ...]:
    if is_remote(path):
        protocol, _, rest = path.partition("://")
        return (protocol, *(part for part in rest.split("/") if part not in ("", ".", "..")))
    # Without the colon of a drive, a name is valid on every system.
    return ("file", *(part.strip("/\\:") for part in Path(os.path.abspath(path)).parts[1:]))  # noqa: PTH100
