"""The file formats: which module reads which ending. A new format is one module and one line here."""

from __future__ import annotations

import importlib
from pathlib import PurePosixPath
from typing import Final, cast

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.formats.base import Format

# Named, not imported: a run loads only the formats that its files have.
MODULES: Final = {
    "jsonl": "neardup.io.formats.jsonl",
    "parquet": "neardup.io.formats.parquet",
    "csv": "neardup.io.formats.csv",
    "arrow": "neardup.io.formats.arrow",
    "text": "neardup.io.formats.text",
    "lines": "neardup.io.formats.lines",
}
ENDINGS: Final = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
    **dict.fromkeys((".txt", ".text", ".md", ".rst", ".html", ".htm"), "text"),
}
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
# These compress within the file and are read from its end.
_NEVER_COMPRESSED: Final = ("parquet", "arrow")
KNOWN: Final = (
    f"the endings known are {' '.join(ENDINGS)}, all but Parquet and Arrow also with {' or '.join(COMPRESSIONS)}"
)


def load(name: str) -> Format:
    """Return the module of a format."""
    return cast(Format, importlib.import_module(MODULES[name]))


def format_of(path: str, config: Config, *, is_named: bool) -> tuple[str, str | None] | None:
    """Return format and compression by the ending of a path; None for an ending that is not known.

    is_named: the file was asked for by its name, so with config.lines any ending is plain text.
    """
    ending, compression = endings(path)
    name = ENDINGS.get(ending, "text" if config.lines and is_named else None)
    if name is None:
        return None
    if compression is not None and name in _NEVER_COMPRESSED:
        raise DataError(f"{path} is a compressed {ending} file, which cannot be read", hint="decompress it first")
    return "lines" if name == "text" and config.lines else name, compression


def endings(path: str) -> tuple[str, str | None]:
    """Return the ending that tells the format, in lower case, and the compression.

    >>> endings("corpus/Part-1.JSONL.gz")
    ('.jsonl', 'gzip')
    """
    pure = PurePosixPath(path.replace("\\", "/").lower())
    compression = COMPRESSIONS.get(pure.suffix)
    return (pure.with_suffix("") if compression else pure).suffix, compression
