"""Standard input stored as a file, because a run reads its input twice."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.storage.work_folder import remove_tree

STDIN_PATH: Final = "-"
_MAGIC: Final = (
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"\xff\xff\xff\xff", ".arrows"),
    (b"WARC/", ".warc"),
)
_COMPRESSED: Final = ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst"))
# The file extension for each format.
_ENDINGS: Final = {
    "jsonl": ".jsonl",
    "json": ".json",
    "csv": ".csv",
    "text": ".txt",
    "lines": ".txt",
    "parquet": ".parquet",
    "arrow": ".arrow",
    "warc": ".warc",
}


def spool(inputs: Sequence[str], folder: Path, config: Config) -> tuple[list[str], str | None]:
    """Replace "-" among inputs by a file in `folder` with the contents of standard input; return that file too."""
    if not inputs:
        raise ConfigError(
            "no input was given", hint="name files, folders or globs, or - for standard input"
        )
    if list(inputs).count(STDIN_PATH) > 1:
        raise ConfigError("standard input was named twice", hint="it can be read only once")
    remove_tree(folder)
    if STDIN_PATH not in inputs:
        return list(inputs), None
    folder.mkdir()
    path = str(_store(folder, config))
    return [path if given == STDIN_PATH else given for given in inputs], path


def _store(folder: Path, config: Config) -> Path:
    stream = sys.stdin.buffer
    head = stream.read(1 << 16)
    path = folder / f"stdin{_ending(head, config)}"
    with path.open("wb") as target:
        target.write(head)
        shutil.copyfileobj(stream, target, 1 << 20)
    return path


def _ending(head: bytes, config: Config) -> str:
    """Detect the format from the first bytes: Parquet and Arrow by their magic, else the settings, else JSON Lines."""
    for magic, ending in _MAGIC:
        if head.startswith(magic):
            return ending
    compressed = next((ending for magic, ending in _COMPRESSED if head.startswith(magic)), "")
    if config.format is not None:
        return f"{_ENDINGS[config.format]}{compressed}"
    if config.lines:
        return f".txt{compressed}"
    if config.delimiter is not None:
        return f".csv{compressed}"
    if head.lstrip().startswith(b"["):
        return ".json"
    if config.html and head.lstrip()[:1] == b"<":
        return f".html{compressed}"
    return f".jsonl{compressed}"
