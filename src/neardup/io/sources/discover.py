"""Which files a run reads, what they are called in the output, and which of their columns are taken."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import glob
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final, NoReturn

from neardup.checks import VECTOR_MEASURES
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.formats import registry as formats
from neardup.io.formats.base import MARK_COLUMNS, Columns, InputFile
from neardup.io.sources.in_memory import ID_COLUMNS, TEXT_COLUMNS
from neardup.io.streams import filesystem, is_remote, local_version, version_in
from neardup.io.values.contents import dimension_of
from neardup.io.values.vector_columns import VECTOR_COLUMNS

_WILDCARDS: Final = "*?["


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    """A file that an input leads to; name: relative to the input; info: what a remote filesystem tells of it."""

    path: str
    name: str
    is_named: bool
    info: dict[str, Any] | None = None


def find_files(inputs: Sequence[str], config: Config) -> list[InputFile]:
    """Return the files of all inputs: in the given order, those of a folder or a glob sorted by path."""
    files: list[InputFile] = []
    asked: set[str] = set()
    for address in inputs:
        found = _expand(address, config)
        asked |= {file.path for file in found if file.path == address}
        files += [_input_file(file, config) for file in found]
    _check_distinct(files, asked)
    return _with_distinct_names(files)


def find_file(path: str, config: Config) -> InputFile:
    """Return the one file that a path or an address names as it is: neither a folder nor a glob."""
    info = None
    if is_remote(path):
        files, inner = filesystem(path)
        with _asked(path):
            info = files.info(inner)
    return _input_file(_Found(path, _last_part(path), True, info), config)


def is_input(address: str) -> bool:
    """Whether something could be read under an address: a file, a folder, a glob, or a remote one."""
    return is_remote(address) or _is_glob(address) or os.path.lexists(address)


def _expand(address: str, config: Config) -> list[_Found]:
    if not address:
        raise DataError("an input must be a file, a folder or a glob, got ''", hint="use . for the folder you are in")
    if is_remote(address):
        candidates, is_named = _expand_remote(address)
    else:
        candidates, is_named = _expand_local(address)
    if is_named:
        return candidates
    usable = [file for file in candidates if formats.format_of(file.name, config, is_named=file.is_named)]
    if not usable:
        what = "matches no file" if _is_glob(address) and not candidates else "has no file of a known format"
        raise DataError(f"{address} {what}", hint=formats.KNOWN)
    return usable


def _is_glob(address: str) -> bool:
    # In an address of the web a question mark begins the query.
    wildcards = "*[" if address.startswith(("http://", "https://")) else _WILDCARDS
    return any(wildcard in address for wildcard in wildcards)


def _expand_local(address: str) -> tuple[list[_Found], bool]:
    """Return the files of a local input, and whether it is one file asked for by name."""
    if os.path.isdir(address):  # noqa: PTH112
        return _folder(address, address), False
    if os.path.lexists(address) or not _is_glob(address):
        return [_Found(address, Path(address).name, True)], True
    base = _before_wildcard(address)
    found: list[_Found] = []
    for match in glob.iglob(address, recursive=True):  # noqa: PTH207
        if not os.path.isdir(match):  # noqa: PTH112
            found.append(_Found(match, _relative(match, base), True))
        elif "**" not in address:
            found += _folder(match, base)
    return sorted(found, key=lambda file: file.name), False


def _before_wildcard(address: str) -> str:
    """The folder that the part of a glob before its first wildcard names."""
    first = min(address.index(wildcard) for wildcard in _WILDCARDS if wildcard in address)
    return address[: address.rfind("/", 0, first) + 1] or "."


def _relative(path: str, base: str) -> str:
    return Path(os.path.relpath(path, base)).as_posix()


def _in_folders(paths: Sequence[str], place: Callable[[str], str]) -> Iterator[str]:
    """Yield where each file is, given where a folder is: asked once a folder, since to tell takes long."""
    places: dict[str, str] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in places:
            places[folder] = place(folder or ".")
        yield name if places[folder] == "." else f"{places[folder].rstrip('/')}/{name}"


def real_paths(paths: Sequence[str]) -> list[str]:
    """Return local paths without links."""
    found = list(_in_folders(paths, os.path.realpath))
    is_plain = (os.path.basename(path) not in ("", ".", "..") and not os.path.islink(path) for path in paths)  # noqa: PTH114, PTH119
    return [real if plain else os.path.realpath(path) for real, plain, path in zip(found, is_plain, paths, strict=True)]


def _folder(folder: str, base: str) -> list[_Found]:
    paths = list(_walk(folder, ()))
    names = _in_folders(paths, lambda below: _relative(below, base))
    found = [_Found(path, name, False) for path, name in zip(paths, names, strict=True)]
    return sorted(found, key=lambda file: file.name)


def _walk(folder: str, above: tuple[str, ...]) -> Iterator[str]:
    """Yield the files below a folder that are not hidden; links to folders are followed."""
    real = os.path.realpath(folder)
    if real in above:
        raise DataError(f"{folder} is a link to a folder that it is in", hint="remove the link")
    try:
        with os.scandir(folder) as listed:
            entries = sorted((entry.name, entry.is_dir()) for entry in listed if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"the folder {folder} cannot be listed: {error.strerror}") from error
    for name, is_folder in entries:
        path = os.path.join(folder, name)  # noqa: PTH118
        if is_folder:
            yield from _walk(path, (*above, real))
        else:
            yield path


def _expand_remote(address: str) -> tuple[list[_Found], bool]:
    """Return the files of a remote input, and whether it is one file asked for by name."""
    files, inner = filesystem(address)
    with _asked(address):
        if _is_glob(address):
            base = inner[: inner.rfind("/", 0, min(map(inner.find, filter(inner.__contains__, _WILDCARDS)))) + 1]
            infos, is_named = files.glob(inner, detail=True), True
        else:
            info = files.info(inner)
            if info["type"] == "file":
                return [_Found(address, _last_part(inner), True, info)], True
            base, infos, is_named = inner, files.find(inner, detail=True), False
    found = []
    for path, info in sorted(infos.items()):
        name = path.removeprefix(base.rstrip("/")).lstrip("/")
        if info["type"] == "file" and not any(part.startswith(".") for part in name.split("/")):
            found.append(_Found(files.unstrip_protocol(path), name, is_named, info))
    return found, False


@contextlib.contextmanager
def _asked(address: str) -> Iterator[None]:
    """What a remote filesystem raises says which address it was about."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{address} does not exist", hint="check the spelling") from error
    except OSError as error:
        raise DataError(f"{address} cannot be read: {error}") from error


def _last_part(address: str) -> str:
    """The name of a file of the web, without the query."""
    return PurePosixPath(address.partition("?")[0] if is_remote(address) else address).name


def _input_file(found: _Found, config: Config) -> InputFile:
    if found.info is None:
        size, modified, identity = _local_version(found.path)
    else:
        (size, modified), identity = version_in(found.info, found.path), ""
    kind = formats.format_of(found.name, config, is_named=found.is_named)
    if kind is None:
        raise DataError(
            f"{found.path} has an ending that names no known format",
            hint=f"{formats.KNOWN}; with --lines any other file is plain text with a document a line",
        )
    try:
        found.name.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{found.path!r} has a name that is not UTF-8", hint="rename the file") from error
    return InputFile(
        path=found.path,
        name=found.name,
        format=kind[0],
        compression=kind[1],
        size=size,
        modified=modified,
        identity=identity,
    )


def _local_version(path: str) -> tuple[int, str, str]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except FileNotFoundError as error:
        what = "is a link to a file that does not exist" if os.path.islink(path) else "does not exist"  # noqa: PTH114
        raise DataError(f"{path} {what}", hint="check the spelling, and the folder you are in") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path} is not a regular file", hint="write its content to a file first, or use - for stdin")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read: permission denied", hint="ask its owner for the right to read it")
    return local_version(status)


def _check_distinct(files: list[InputFile], asked: set[str]) -> None:
    """Raise for a file that is there twice; hard links count as one where one is `asked` for by its own path."""
    seen: dict[str, str] = {}
    linked: dict[tuple[int, int], str] = {}
    reals = iter(real_paths([file.path for file in files if not is_remote(file.path)]))
    for file in files:
        real = file.path if is_remote(file.path) else next(reals)
        if real in seen:
            raise _twice(file.path, seen[real])
        seen[real] = file.path
        key = _key_of_links(file.path)
        if key is not None:
            other = linked.setdefault(key, file.path)
            if other != file.path and not asked.isdisjoint((file.path, other)):
                raise _twice(file.path, other)


def _key_of_links(path: str) -> tuple[int, int] | None:
    """What hard links to one file share; None for a file with one name."""
    if is_remote(path):
        return None
    status = os.stat(path)  # noqa: PTH116
    return (status.st_dev, status.st_ino) if status.st_nlink > 1 else None


def _twice(path: str, other: str) -> DataError:
    also = "" if other == path else f", also as {other}"
    return DataError(f"{path} is in the inputs twice{also}", hint="name every file once")


def _with_distinct_names(files: list[InputFile]) -> list[InputFile]:
    """Keep the names unless two collide or one leads upwards; then name all by their place below what paths share."""
    counts = collections.Counter(file.name for file in files)
    holders = {name.rpartition("/")[0] for name in counts}
    folders = {str(parent) for holder in holders for parent in PurePosixPath(holder, "name").parents}
    leads_up = any(".." in name.split("/") or name.startswith("/") for name in counts)
    if len(counts) == len(files) and not folders & counts.keys() and not leads_up:
        return files
    parts = [_parts(file.path) for file in files]
    levels = zip(*(part[:-1] for part in parts), strict=False)
    num_shared = len(list(itertools.takewhile(lambda level: len(set(level)) == 1, levels)))
    named = [
        dataclasses.replace(file, name="/".join(part[num_shared:])) for file, part in zip(files, parts, strict=True)
    ]
    for file, count in collections.Counter(file.name for file in named).items():
        if count > 1:
            raise DataError(f"{count} inputs would have the name {file} in the output", hint="download and rename them")
    return named


def _parts(path: str) -> tuple[str, ...]:
    if is_remote(path):
        protocol, _, rest = path.partition("://")
        return (protocol, *(part for part in rest.split("/") if part not in ("", ".", "..")))
    # Without a drive's colon, a name is good on every system.
    return ("file", *(part.strip("/\\:") for part in Path(os.path.abspath(path)).parts[1:]))  # noqa: PTH100


def with_dimension(files: Sequence[InputFile], config: Config) -> Config:
    """Return the settings with the dimension of the first usable vector of all files, where none is set."""
    if config.measure not in VECTOR_MEASURES or config.dimension is not None:
        return config
    for file in files:
        form = formats.load(file.format)
        columns = choose_columns(file, form.column_names(file, config), config)
        for span in form.split(file):
            for records in form.read(file, span, columns, config):
                if len(records.texts):
                    return Config.of(config, dimension=dimension_of(records.texts, config))
    return config


def choose_columns(file: InputFile, names: list[str] | None, config: Config) -> Columns:
    """Return the columns to take of a file; a column that a setting names is taken even where the file lacks it."""
    if names is None:
        _check_no_columns(file, config)
        if config.measure in VECTOR_MEASURES:
            raise ConfigError(
                f"the measure {config.measure!r} compares vectors, but {file.path} is plain text",
                hint="put them in a Parquet, JSON Lines or CSV file",
            )
        return Columns(text=())
    text: tuple[str, ...] = ()
    is_vector = config.measure in VECTOR_MEASURES
    if config.items_column is None and not is_vector:
        if config.measure == "weighted":
            raise ConfigError("the measure 'weighted' compares items", hint="name their column: --items-column")
        asked = config.text_column
        text = (asked,) if isinstance(asked, str) else asked or (_usual_text(file, names),)
    columns = Columns(
        text=text,
        items=config.items_column,
        vector=_vector_column(file, names, config) if is_vector else None,
        id=config.id_column or next((name for name in ID_COLUMNS if name in names), None),
        score=config.keep_column,
        group=config.group_column,
    )
    if config.mark and file.format in ("jsonl", "csv") and MARK_COLUMNS.names[0] in names:
        raise DataError(
            f"{file.path} has the column {MARK_COLUMNS.names[0]!r}: an earlier run has marked it",
            hint="name the file that was marked then, or drop its columns of marks",
        )
    for name in (*columns.text, columns.items, columns.vector, columns.id, columns.score, columns.group):
        if name is not None and names.count(name) > 1:
            raise DataError(f"{file.path} has {names.count(name)} columns named {name!r}", hint="rename all but one")
    return columns


def _vector_column(file: InputFile, names: list[str], config: Config) -> str:
    usual = [name for name in VECTOR_COLUMNS if name in names]
    if config.vector_column is None and not usual and names:
        raise DataError(
            f"{file.path} has no column named {', '.join(VECTOR_COLUMNS)}",
            hint=f"name the one with the vectors: --vector-column {names[0]!r} (the columns are {', '.join(names)})",
        )
    return config.vector_column or (usual or list(VECTOR_COLUMNS))[0]


def _usual_text(file: InputFile, names: list[str]) -> str:
    usual = [name for name in TEXT_COLUMNS if name in names]
    # A file without rows has no columns, and is no reason to stop.
    return usual[0] if usual else _no_text(file, names) if names else TEXT_COLUMNS[0]


def _no_text(file: InputFile, names: list[str]) -> NoReturn:
    raise DataError(
        f"{file.path} has no column named {', '.join(TEXT_COLUMNS)}",
        hint=f"name the one with the text: --text-column {names[0]!r} (the columns are {', '.join(names)})",
    )


def _check_no_columns(file: InputFile, config: Config) -> None:
    named = {
        "text_column": config.text_column,
        "items_column": config.items_column,
        "id_column": config.id_column,
        "keep": config.keep_column,
        "group_column": config.group_column,
    }
    for setting, column in named.items():
        if column is not None:
            raise ConfigError(
                f"`{setting}` names the column {column!r}, but {file.path} is plain text and has no columns",
                hint="leave the setting out, or leave the file out",
            )
    if config.mark:
        raise ConfigError(
            f"`mark` adds columns to every row, but {file.path} is plain text and has no columns to mark",
            hint="leave `mark` out: removed.parquet tells which documents were removed",
        )
