"""The passages of every pair found, as a column of the table of pairs.

Pairs are a stream, and the texts of files may be larger than memory. So the pairs are first written
to a temporary file, then the texts of the documents in them, and then pair after pair is aligned.
"""

from __future__ import annotations

import dataclasses
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.align.shared_passages import share_passages
from neardup.align.words_in_text import WordsInText, words_of
from neardup.config import Config
from neardup.engines.base import no_progress
from neardup.engines.local.engine import LocalEngine
from neardup.io.documents.file_reader import FileReader
from neardup.pipeline import PipelineOutcome
from neardup.schema import PAIR_PASSAGES

I64 = npt.NDArray[np.int64]
# Pairs that all threads work on together.
_PAIRS_AT_ONCE: Final = 256
# Documents with up to this many bytes of words stay in memory for the next pairs.
_CACHE_BYTES: Final = 64 << 20
_COPIED_ROWS: Final = 1 << 12


class TextsOfRows(Protocol):
    """The texts of documents by row."""

    def text(self, row: int) -> str:
        """Return the text of a document."""


class TextsInMemory:
    """The texts of documents in memory."""

    def __init__(self, documents: pa.Table) -> None:
        self._rows = documents.column("row").to_numpy()
        self._texts = documents.column("text")

    def text(self, row: int) -> str:
        """Return the text of a document."""
        found: str = self._texts[int(np.searchsorted(self._rows, row))].as_py()
        return found


class TextsOnDisk:
    """The texts of some documents of files, copied to a temporary file."""

    def __init__(
        self, reader: FileReader, is_wanted: npt.NDArray[np.bool_], file: IO[bytes]
    ) -> None:
        self._file = file
        self._lock = threading.Lock()
        rows = [np.empty(0, np.int64)]
        sizes = [np.zeros(1, np.int64)]
        for part in range(reader.num_parts):
            for batch in reader.read_texts(part, no_progress):
                chosen = batch.filter(pa.array(is_wanted[batch.column("row").to_numpy()]))
                rows.append(chosen.column("row").to_numpy())
                sizes.append(self._copy(chosen.column("text")))
        self._rows: I64 = np.concatenate(rows)
        self._ends: I64 = np.cumsum(np.concatenate(sizes))
        file.flush()

    def _copy(self, texts: pa.Array) -> I64:
        sizes = [np.zeros(0, np.int64)]
        for first in range(0, len(texts), _COPIED_ROWS):
            contents = [text.encode() for text in texts[first : first + _COPIED_ROWS].to_pylist()]
            self._file.write(b"".join(contents))
            sizes.append(np.array([len(content) for content in contents], np.int64))
        return np.concatenate(sizes)

    def text(self, row: int) -> str:
        """Return the text of a document."""
        at = int(np.searchsorted(self._rows, row))
        start, end = self._ends[at : at + 2].tolist()
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start).decode()


class _WordsOfRows:
    """The words of documents, the last ones kept in memory."""

    def __init__(self, texts: TextsOfRows, config: Config) -> None:
        self._texts = texts
        self._config = config
        self._kept: OrderedDict[int, WordsInText] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def words(self, row: int) -> WordsInText:
        """Return the words of a document."""
        with self._lock:
            if row in self._kept:
                self._kept.move_to_end(row)
                return self._kept[row]
        words = words_of(self._texts.text(row), self._config)
        with self._lock:
            if row not in self._kept:
                self._kept[row] = words
                self._bytes += words.num_bytes
            while self._bytes > _CACHE_BYTES and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._bytes -= dropped.num_bytes
        return words


def with_passages_in_memory(
    outcome: PipelineOutcome[pa.Table], documents: pa.Table, config: Config, engine: LocalEngine
) -> PipelineOutcome[pa.Table]:
    """Add the column `passages` to the pairs of documents in memory."""
    if not _is_needed(outcome, config):
        return outcome
    texts = TextsInMemory(documents)
    batches: Iterable[pa.RecordBatch] = outcome.row_pairs or ()
    return _replaced(outcome, _aligned(batches, outcome, texts, config, engine))


def with_passages_of_files(
    outcome: PipelineOutcome[pa.Table],
    reader: FileReader,
    config: Config,
    engine: LocalEngine,
    folder: Path,
) -> PipelineOutcome[pa.Table]:
    """Add the column `passages` to the pairs of files; what does not fit in memory goes to `folder`."""
    if not _is_needed(outcome, config):
        return outcome

    def batches() -> Iterator[pa.RecordBatch]:
        with (
            tempfile.TemporaryFile(dir=folder) as pairs_file,
            tempfile.TemporaryFile(dir=folder) as texts_file,
        ):
            is_wanted = np.zeros(reader.num_rows, np.bool_)
            with pa.ipc.new_stream(pairs_file, outcome.pair_columns) as writer:
                for batch in outcome.row_pairs or ():
                    for side in ("row_a", "row_b"):
                        is_wanted[batch.column(side).to_numpy()] = True
                    writer.write_batch(batch)
            pairs_file.seek(0)
            texts = TextsOnDisk(reader, is_wanted, texts_file)
            with pa.ipc.open_stream(pairs_file) as stored:
                yield from _aligned(stored, outcome, texts, config, engine)

    return _replaced(outcome, batches())


def _is_needed(outcome: PipelineOutcome[pa.Table], config: Config) -> bool:
    is_listed = PAIR_PASSAGES.name in outcome.pair_columns.names
    return config.passages and config.pairs and not is_listed


def _replaced(
    outcome: PipelineOutcome[pa.Table], batches: Iterator[pa.RecordBatch]
) -> PipelineOutcome[pa.Table]:
    columns = outcome.pair_columns.append(PAIR_PASSAGES)
    return dataclasses.replace(outcome, row_pairs=batches, pair_columns=columns)


def _aligned(
    batches: Iterable[pa.RecordBatch],
    outcome: PipelineOutcome[pa.Table],
    texts: TextsOfRows,
    config: Config,
    engine: LocalEngine,
) -> Iterator[pa.RecordBatch]:
    """Yield pairs with their passages; pairs chosen by passages are left out if they have none."""
    only_shared = outcome.plan.shared_words is not None
    words = _WordsOfRows(texts, config)
    columns = outcome.pair_columns.append(PAIR_PASSAGES)
    for batch in batches:
        for first in range(0, batch.num_rows, _PAIRS_AT_ONCE):
            piece = batch.slice(first, _PAIRS_AT_ONCE)
            found = engine.side_by_side(_aligner(piece, words, config), range(piece.num_rows))
            if only_shared:
                has_passages = pa.array([len(passages) > 0 for passages in found], pa.bool_())
                piece = piece.filter(has_passages)
                found = [passages for passages in found if len(passages)]
            if not found:
                continue
            ends = np.cumsum([0, *map(len, found)]).astype(np.int32)
            listed = pa.ListArray.from_arrays(pa.array(ends), pa.concat_arrays(found))
            yield pa.record_batch([*piece.columns, listed.cast(PAIR_PASSAGES.type)], schema=columns)


def _aligner(
    pairs: pa.RecordBatch, words: _WordsOfRows, config: Config
) -> Callable[[int], pa.StructArray]:
    rows_a, rows_b = (pairs.column(side).to_pylist() for side in ("row_a", "row_b"))

    def align(number: int) -> pa.StructArray:
        a = words.words(rows_a[number])
        b = words.words(rows_b[number])
        return share_passages(a, b, config).as_structs()

    return align
