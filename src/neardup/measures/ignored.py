"""The ignored shingles: those of the files in `ignore`, such as a template or a licence header."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.formats import registry as formats
from neardup.io.records import Columns
from neardup.kernels.members import fill_table

U64 = npt.NDArray[np.uint64]
# Returns the distinct shingles of all texts of an array.
Shingler = Callable[[pa.Array, Config], U64]
# Settings for shingling and for reading files apply to ignored documents too.
_SAME: Final = (
    *(
        "unit",
        "size",
        "language",
        "code_names",
        "seed",
        "fold_numbers",
        "normalise",
        "fold_accents",
        "html",
    ),
    *("items_column", "encoding", "delimiter", "max_document"),
)
_LOADED_AT_ONCE: Final = 4


class Ignored(NamedTuple):
    """A hash table of shingles, and a digest that identifies its contents."""

    capacity: int
    table: U64
    digest: str


def load_ignored(config: Config, shingles_of: Shingler) -> Ignored:
    """Return the ignored shingles; they are loaded again if a file has changed."""
    versions = tuple(map(_version, config.ignore))
    return _load(config, versions, shingles_of, config.separates_invisible)


def _version(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:  # a glob or an address; a missing file is reported when it is read
        return 0, 0
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=_LOADED_AT_ONCE)
def _load(
    config: Config,
    versions: tuple[tuple[int, int], ...],
    shingles_of: Shingler,
    separates_invisible: bool,
) -> Ignored:
    """Load them; the key of the cache includes the last argument, which equality of settings leaves out."""
    del versions
    # The whole page, because its template is what should be ignored. A text file is one document,
    # whatever `lines` says.
    same = {name: getattr(config, name) for name in _SAME}
    reading = Config.of(**same, html_content="all").with_invisible(separates=separates_invisible)
    found = [shingles_of(texts, reading) for texts in _texts(config, reading)]
    shingles = np.unique(np.concatenate([np.empty(0, np.uint64), *found]))
    capacity = 2 * shingles.size + 8
    table = np.zeros(capacity + shingles.size + 1, np.uint64)
    fill_table(shingles, capacity, table)
    digest = hashlib.sha256(shingles.tobytes()).hexdigest()
    return Ignored(capacity, table, digest[:16])


def _texts(config: Config, reading: Config) -> Iterator[pa.Array]:
    """Iterate over the texts of the documents, in batches."""
    if config.text_column is None:
        by_column = reading
    else:
        by_column = Config.of(reading, text_column=config.text_column)
    for file in find_files(config.ignore, reading):
        form = formats.load(file.format)
        names = form.column_names(file, reading)
        if names is None and config.items_column is not None:
            raise ConfigError(
                f"`ignore` names {file.path}, which is plain text, but items are compared",
                hint=f"name a file with the column {config.items_column!r}",
            )
        if names is None:
            columns = Columns(text=())
        else:
            columns = choose_columns(file, names, by_column)
        for span in form.split(file):
            for records in form.read(file, span, columns, reading):
                yield records.texts
