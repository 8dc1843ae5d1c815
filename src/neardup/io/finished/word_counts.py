"""In how many documents of a run the words of items stand, stored so that other runs weigh words in the same way."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neardup import schema
from neardup.config import Config, DrawnSeed
from neardup.errors import ConfigError
from neardup.io.finished import run_tables
from neardup.io.storage.table_writer import TableWriter
from neardup.kernels.unicode import UNICODE_VERSION

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
FILE: Final = "weights.parquet"
_KEY: Final = b"neardup"
_FOLDING: Final = ("seed", "normalise", "fold_accents", "fold_numbers", "unicode")


class _Hashing(msgspec.Struct, frozen=True, kw_only=True):
    """How the words were hashed, of how many documents; seed: None if it is secret."""

    documents: Annotated[int, msgspec.Meta(ge=0, le=2**62)]
    seed: int | None
    normalise: str
    fold_accents: bool
    fold_numbers: bool
    unicode: str


class WordCounts(NamedTuple):
    """In how many of `num_documents` documents words stand; words: hashes, ascending."""

    words: U64
    counts: I64
    num_documents: int

    def of(self, words: U64) -> I64:
        """Return the counts of some words; 0 for those that are not stored."""
        if not self.words.size:
            return np.zeros(words.size, np.int64)
        at = np.minimum(np.searchsorted(self.words, words), self.words.size - 1)
        counts: I64 = np.where(self.words[at] == words, self.counts[at], 0)
        return counts


def write_counts(path: Path, counts: WordCounts, config: Config) -> None:
    """Write counts as schema.WORD_WEIGHTS, with how the words were hashed in the metadata."""
    metadata = {_KEY: msgspec.json.encode(_hashing(config, counts.num_documents))}
    with TableWriter(path, schema.WORD_WEIGHTS.with_metadata(metadata)) as writer:
        columns = {"word": counts.words.view(np.int64), "documents": counts.counts}
        writer.write(pa.table(columns))


def read_counts(config: Config) -> WordCounts | None:
    """Read the counts of the run that `weights_from` names; None if it names none."""
    if config.weights_from is None:
        return None
    run = Path(config.weights_from)
    if not (run / FILE).is_file():
        raise ConfigError(
            f"`weights_from` {run} has no {FILE}",
            hint="name the output folder of a finished run of decontaminate",
        )
    path = run_tables.file_of(run, FILE)
    read = partial(pq.read_table, path, partitioning=None)
    table = run_tables.checked(path, read, schema.WORD_WEIGHTS)
    try:
        stored = msgspec.json.decode((table.schema.metadata or {}).get(_KEY, b""), type=_Hashing)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise run_tables.damaged(path, f"its metadata cannot be read: {error}") from error
    _check_hashing(stored, config, run)
    words = table.column("word").to_numpy().view(np.uint64)
    counts: I64 = table.column("documents").to_numpy()
    if (words[1:] <= words[:-1]).any():
        raise run_tables.damaged(path, "its words are not in order")
    if counts.size and not 0 <= counts.min() <= counts.max() <= stored.documents:
        raise run_tables.damaged(path, "a count is negative, or above the number of documents")
    return WordCounts(words, counts, stored.documents)


def _hashing(config: Config, num_documents: int) -> _Hashing:
    is_secret = isinstance(config.seed, DrawnSeed)
    return _Hashing(
        documents=num_documents,
        seed=None if is_secret else int(config.seed),
        normalise=config.normalise,
        fold_accents=config.fold_accents,
        fold_numbers=config.fold_numbers,
        unicode=UNICODE_VERSION,
    )


def _check_hashing(stored: _Hashing, config: Config, run: Path) -> None:
    if stored.seed is None:
        raise ConfigError(
            f"`weights_from` {run} has a secret seed, so its words cannot be recognised",
            hint="run it again with a seed of your choice, such as seed=1",
        )
    own = _hashing(config, stored.documents)
    for name in _FOLDING:
        if getattr(own, name) != getattr(stored, name):
            raise ConfigError(
                f"`weights_from` {run} was made with {name} {getattr(stored, name)!r}, and this run has "
                f"{getattr(own, name)!r}",
                hint=f"use the same `{name}` in both runs",
            )
