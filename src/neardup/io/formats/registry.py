"""The file formats: which module reads which extension. A new format is one module and one line here."""

from __future__ import annotations

import importlib
from typing import Final, cast

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.formats.base import Format

# Module names, not imports: a run loads only the formats of its files.
MODULES: Final = {
    "jsonl": "neardup.io.formats.jsonl",
    "parquet": "neardup.io.formats.parquet",
    "csv": "neardup.io.formats.csv",
    "arrow": "neardup.io.formats.arrow",
    "text": "neardup.io.formats.text",
    "lines": "neardup.io.formats.lines",
    "json": "neardup.io.formats.json_array",
    "warc": "neardup.io.formats.warc",
    "unread": "neardup.io.formats.unread",
}
ENDINGS: Final = {
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), "arrow"),
    **dict.fromkeys((".warc", ".wet"), "warc"),
    **dict.fromkeys((".txt", ".text", ".md", ".rst", ".html", ".htm"), "text"),
}
# In a folder without tables, these are read too: source code and other text, one document per file.
_SOURCES: Final = """
    adoc asm bash bat bib c cc cfg cjs clj cmake cmd conf cpp cs css cu cxx d dart diff el erl ex exs f f90 fish
    fs go gradle groovy h hh hpp hs ini java jl js jsx kt kts less lisp log lua m mjs mk ml mli mm nim org pas
    patch php pl pm properties proto ps1 py pyi r rb rkt rs s sass scala scm scss sh sol sql sv svelte swift tex
    tf toml ts tsx v vb vhd vue xml yaml yml zig zsh
"""
SOURCE_ENDINGS: Final = frozenset(f".{ending}" for ending in _SOURCES.split())
# Archives and other compressed files, which are never plain text.
_ARCHIVES: Final = frozenset({".7z", ".bz2", ".lz4", ".rar", ".tar", ".tgz", ".xz", ".zip"})
TABLES: Final = ("jsonl", "json", "parquet", "csv", "arrow", "warc")
COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd"}
# These have internal compression and are read from their end.
_NEVER_COMPRESSED: Final = ("parquet", "arrow")
KNOWN: Final = (
    f"known extensions: {' '.join(ENDINGS)}, all except Parquet and Arrow also with {' or '.join(COMPRESSIONS)}; "
    "for files with other extensions pass `format`"
)


def load(name: str) -> Format:
    """Return the module of a format."""
    return cast(Format, importlib.import_module(MODULES[name]))


def format_of(path: str, config: Config, *, is_named: bool) -> tuple[str, str | None] | None:
    """Return format and compression by the settings, else by the extension of a path; None for an unknown one.

    is_named: the user named the file itself, so any unknown extension except that of an archive is
    plain text.
    """
    ending, compression = endings(path)
    other = "text" if is_named and ending not in _ARCHIVES else None
    if config.goes_by_endings:  # JSON is a language, too
        name: str | None = "text" if ending in SOURCE_ENDINGS or ending == ".json" else other
    else:
        name = config.format or ENDINGS.get(ending, other)
    if name is None:
        return None
    if compression is not None and name in _NEVER_COMPRESSED:
        raise DataError(
            f"{path} is a compressed {ending} file, which cannot be read",
            hint="decompress it first",
        )
    if name == "warc":  # its records are compressed one by one, and extracted unchanged
        if compression not in (None, "gzip"):
            raise DataError(
                f"{path} is compressed in a way that WARC readers do not support",
                hint="decompress it first",
            )
        return name, None
    return "lines" if name == "text" and config.lines else name, compression


def endings(path: str) -> tuple[str, str | None]:
    """Return the extension that determines the format, in lower case, and the compression.

    >>> endings("corpus/Part-1.JSONL.gz")
    ('.jsonl', 'gzip')
    """
    stem, ending = _split_ending(path.replace("\\", "/").rstrip("/").rpartition("/")[2].lower())
    compression = COMPRESSIONS.get(ending)
    return (_split_ending(stem)[1] if compression else ending), compression


def _split_ending(name: str) -> tuple[str, str]:
    """Split a file name before its last dot, unless the name begins or ends with it; pathlib takes 10 times as long."""
    stem, dot, ending = name.rpartition(".")
    return (stem, dot + ending) if stem and ending else (name, "")
