"""Standard input as a file, since a run reads twice."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from neardup.config import Config
from neardup.errors import ConfigError, DataError

STANDARD_INPUT: Final = "-"
_MAGIC: Final = ((b"PAR1", ".parquet"), (b"ARROW1", ".arrow"))
_COMPRESSED: Final = ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"))


@contextlib.contextmanager
def spooled(inputs: Sequence[str], folder: Path, config: Config) -> Iterator[tuple[list[str], bool]]:
    """Replace "-" among inputs by a file with what standard input holds; say whether there is one."""
    if not inputs:
        raise ConfigError("no input was given", hint="name files, folders or globs, or - for standard input")
    if STANDARD_INPUT not in inputs:
        yield list(inputs), False
        return
    if list(inputs).count(STANDARD_INPUT) > 1:
        raise ConfigError("standard input was named twice", hint="it can be read once")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        spool = tempfile.TemporaryDirectory(prefix=".neardup-stdin-", dir=folder)
    except OSError as error:
        raise DataError(f"standard input cannot be stored in {folder}: {error.strerror}") from error
    with spool as name:
        path = _store(sys.stdin.buffer, Path(name), config)
        yield [str(path) if given == STANDARD_INPUT else given for given in inputs], True


def _store(stream: BinaryIO, folder: Path, config: Config) -> Path:
    head = stream.read(1 << 16)
    path = folder / f"stdin{_ending(head, config)}"
    with path.open("wb") as target:
        target.write(head)
        shutil.copyfileobj(stream, target, 1 << 20)
    return path


def _ending(head: bytes, config: Config) -> str:
    """Tell the format from the first bytes: Parquet and Arrow by their magic, else what the settings say, else JSON."""
    for magic, ending in _MAGIC:
        if head.startswith(magic):
            return ending
    compressed = next((ending for magic, ending in _COMPRESSED if head.startswith(magic)), "")
    if config.lines:
        return f".txt{compressed}"
    if config.delimiter is not None:
        return f".csv{compressed}"
    return f".html{compressed}" if config.html and head.lstrip()[:1] == b"<" else f".jsonl{compressed}"
