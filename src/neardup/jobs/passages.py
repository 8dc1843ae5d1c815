"""Repeated passages: read, find first places, locate, and write tables and texts without them.

    read -> anchors -> link -> words around repeated anchors -> places -> locate -> write

The documents are read twice or three times: for anchors, for the words around those that are repeated, and to
locate what was found. Documents without a repeated anchor are only read, not looked at again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import DEFAULT_MIN_WORDS, Config
from neardup.engines.base import Documents
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.tables import BatchTable
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.columns.text_cuts import TextCuts
from neardup.io.documents import in_memory
from neardup.io.storage.big_arrays import BigArrays
from neardup.jobs.rejections import all_rejected, most_rejected
from neardup.jobs.source import check_in_memory
from neardup.report import PassagesReport, peak_memory_bytes
from neardup.search import spans as found_spans
from neardup.search.located import Bounds, Locator
from neardup.search.places import IslandWords, PlaceFinder, Stretches, lay_out, link_anchors
from neardup.search.spans import Passages, Spans
from neardup.stages.anchors import anchors, window_shape
from neardup.theory.plan import plan_for

I64 = npt.NDArray[np.int64]
KEEPS: Final = ("first", "none")
MAX_WINDOW_WORDS: Final = 10_000
# Settings that do not apply to passages, and the only value that does.
_FIXED: Final = {
    "unit": "word",
    "measure": "jaccard",
    "items_column": None,
    "ignore": (),
    "level": None,
    "decisions": None,
    "pairs": False,
    "passages": False,
    "edits": False,
    "ignore_common": None,
    "weights": None,
    "text_out": None,
    "audit": False,
}


def check_settings(config: Config) -> Config:
    """Raise for settings that do not apply to passages; return the others, with the method that finds everything."""
    for name, value in _FIXED.items():
        if getattr(config, name) != value:
            raise ConfigError(
                f"`{name}` {getattr(config, name)!r} does not apply to passages",
                hint=f"leave `{name}` out",
            )
    if config.keep not in KEEPS:
        raise ConfigError(
            f"`keep` must be 'first' or 'none' for passages, got {config.keep!r}",
            hint="'first' leaves the first place of every passage, 'none' cuts them all",
        )
    for name in ("cut", "mark"):
        if not getattr(config, name):
            continue
        if isinstance(config.text_column, tuple):
            raise ConfigError(
                f"`{name}` needs one text column, got {', '.join(config.text_column)}",
                hint="name one of them as `text_column`",
            )
        if config.html and name == "mark":
            raise ConfigError(
                "`mark` and `html` cannot be combined: places are those of the extracted text",
                hint="pass cut=True, which writes that text, or extract it first",
            )
        if config.html and config.engine == "spark":
            raise ConfigError(
                "`cut` with `html` needs the local engine",
                hint="use engine='local', or extract the texts first",
            )
    min_words = config.min_words or DEFAULT_MIN_WORDS
    if min_words > MAX_WINDOW_WORDS:
        raise ConfigError(
            f"`min_words` must be at most {MAX_WINDOW_WORDS:,} for repeated passages, got {min_words:,}",
            hint="longer passages are found with a smaller number, too",
        )
    return Config.of(config, method="exact", min_words=min_words)


def window_words(config: Config) -> int:
    """Return the number of words of a window."""
    return config.min_words or DEFAULT_MIN_WORDS


class WordCounts(NamedTuple):
    """The rows of the input with their numbers of words, of those that are repeated, and of those that are cut."""

    rows: I64
    words: I64
    repeated: I64
    cut: I64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What was found, by row.

    places, passages: the rows of the two tables; spans: the spans of words that are cut or marked; locator: finds
    places and spans in the texts; counts: the words of every document, and how many of them are repeated or cut.
    """

    places: Stretches
    passages: Passages
    spans: Spans
    locator: Locator
    counts: WordCounts
    min_words: int

    @property
    def cuts(self) -> TextCuts:
        """The spans to cut, in bytes."""
        bounds = self.locator.spans
        return TextCuts(rows=self.spans.docs, starts=bounds.start_bytes, stops=bounds.end_bytes)

    def left_over(self, min_left: int) -> I64:
        """Return the rows of documents from which words are cut so that fewer than `min_left` stay, ascending."""
        counts = self.counts
        rows: I64 = counts.rows[(counts.cut > 0) & (counts.words - counts.cut < min_left)]
        return rows


def find(
    documents: Documents,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    folder: Path | None = None,
) -> Found:
    """Find every repeated passage of some documents; `folder` is for what does not fit in memory."""
    shape = window_shape(window_words(config))
    with watch.stage("anchors", documents.total, documents.unit) as advance:
        table = engine.map_documents(
            documents, lambda batch, _: anchors(batch, shape, config), schema.ANCHORS, advance
        )
    arrays = BigArrays(folder, engine.room)
    # No variable holds the stretches, so that they are freed once the places are known.
    return _located(
        _first_places(table, documents, config, engine, watch, arrays),
        table,
        documents,
        config,
        engine,
        watch,
        folder,
    )


def _first_places(
    table: BatchTable,
    documents: Documents,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    arrays: BigArrays,
) -> Stretches:
    """Return where every repeated window of words stands first."""
    shape = window_shape(window_words(config))
    only_below = documents.num_references if config.only_against else None
    with watch.stage("group"):
        repeated = link_anchors(
            lambda names: table.batches(names),
            arrays,
            engine.side_by_side,
            room=engine.room() // 4,
            num_references=only_below,
        )
        at, islands, num_words = lay_out(repeated, shape.words, arrays)
        stored = arrays.empty("stored_words", num_words, np.uint64)

    with watch.stage("words", documents.total, documents.unit) as advance:
        if num_words:
            words = IslandWords(islands, stored, config, arrays.drop_pages)
            engine.scan_parts(documents, words, advance)
    with watch.stage("places", repeated.docs.size, "anchors") as advance:

        def after_block(count: int) -> None:
            advance(count)
            arrays.drop_pages()

        longest = shape.num_grams - 1
        finder = PlaceFinder(repeated, at, stored, (shape.gram, longest), num_references=only_below)
        stretches = finder.find(engine.side_by_side, after_block, arrays, engine.room() // 3)
    arrays.close()
    return stretches


def _located(
    stretches: Stretches,
    table: BatchTable,
    documents: Documents,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    folder: Path | None,
) -> Found:
    """Turn stretches into places, passages and spans, and find them in the texts."""
    min_words = window_words(config)
    num_references = documents.num_references
    places = found_spans.listed(stretches, num_references, only_against=config.only_against)
    passages = found_spans.passages_of(places, min_words)
    keeps_first = config.keep != "none"
    chosen = places
    if config.min_count > 2 or not keeps_first:
        frequent = found_spans.frequent(stretches, config.min_count)
        chosen = found_spans.listed(frequent, num_references, only_against=config.only_against)
    spans = found_spans.spans_to_cut(chosen, min_words, num_references, keeps_first=keeps_first)
    if not keeps_first and not config.only_against:
        # The first document may have a passage more than once.
        spans = found_spans.with_repetitions(spans, frequent, min_words, num_references)
    own = [
        batch.slice(int(np.searchsorted(batch.column("row").to_numpy(), num_references)))
        for batch in table.batches(["row", "num_words"])
    ]
    rows, words = (
        np.concatenate([np.empty(0, np.int64), *(batch.column(name).to_numpy() for batch in own)])
        for name in ("row", "num_words")
    )
    repeated = found_spans.with_repetitions(spans, stretches, min_words, num_references)
    counts = WordCounts(
        rows=rows,
        words=words,
        repeated=found_spans.words_in(repeated, rows),
        cut=found_spans.words_in(spans, rows),
    )
    del chosen, repeated, stretches
    locator = Locator(places, passages, spans, min_words, config, folder, engine.room() // 4)
    with watch.stage("locate", documents.total, documents.unit) as advance:
        if places.docs.size:
            engine.scan_parts(documents, locator, advance)
    return Found(
        places=places,
        passages=passages,
        spans=spans,
        locator=locator,
        counts=counts,
        min_words=min_words,
    )


def place_columns(found: Found, own: slice) -> dict[str, Any]:
    """Return the columns of some rows of the table of places that are numbers."""
    of_place = found.passages.of_place[own]
    bounds: Bounds = found.locator.places
    return {
        "passage_id": found.passages.ids[of_place],
        "start": bounds.starts[own],
        "end": bounds.ends[own],
        "start_byte": bounds.start_bytes[own],
        "end_byte": bounds.end_bytes[own],
        "line": bounds.lines[own] + 1,
        "words": found.places.counts[own] + found.min_words - 1,
        "source_start": found.locator.passages.starts[of_place],
    }


def repeated_rows(found: Found, own: slice) -> pa.RecordBatch:
    """Return some rows of schema.REPEATED."""
    numbers = found.passages.order[own]
    columns = [
        found.passages.ids[numbers],
        found.passages.words[numbers],
        found.passages.places[numbers],
        found.passages.documents[numbers],
        found.locator.texts.take(numbers),
    ]
    return pa.record_batch(columns, schema=schema.REPEATED)


def find_in_memory(
    source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch
) -> PassagesReport:
    """Find the repeated passages of documents in memory."""
    for name in ("cut", "mark"):
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` needs files as the source",
                hint="report.cut() returns the documents without repeated passages",
            )
    check_in_memory(config)
    with watch.stage("read"):
        read = in_memory.read(source, config, ids=ids)
    documents = in_memory.InMemoryDocuments(read.documents, read.original.num_rows)
    found = find(documents, config, LocalEngine(config.threads), watch)
    num_documents = read.documents.num_rows
    num_rejected = read.rejected.num_rows
    if num_rejected and not num_documents:
        raise all_rejected(num_rejected, read.first_rejected(), config)
    if num_rejected > num_documents:
        first = read.first_rejected()
        message = most_rejected(num_rejected, num_documents + num_rejected, first, config)
        watch.warn(message, is_urgent=True)
    tables = MemoryPassages(read, found, config)
    return PassagesReport(
        **report_values(found, config, watch),
        documents=num_documents + num_rejected,
        num_kept=num_documents,
        num_removed=0,
        num_rejected=num_rejected,
        bytes_read=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
        columns=read.columns,
        load=tables.load,
    )


def report_values(found: Found, config: Config, watch: Watch) -> dict[str, Any]:
    """Return the fields of the report that do not depend on the source."""
    return {
        "config": config,
        "plan": plan_for(config),
        "removed_against": 0,
        "exact_duplicates": 0,
        "pairs_verified": 0,
        "num_pairs": None,
        "seconds": watch.seconds,
        "peak_memory_bytes": peak_memory_bytes(),
        "stages": watch.seconds_by_stage,
        "warnings": tuple(watch.warnings),
        "signature_format": f"words seed-{config.seed}",
        "num_places": found.places.docs.size,
        "num_passages": found.passages.sources.size,
        "num_words": int(found.counts.words.sum()),
        "repeated_words": int(found.counts.cut.sum()),
    }


class MemoryPassages:
    """The tables of a report on documents in memory, by name."""

    def __init__(self, read: in_memory.InMemorySource, found: Found, config: Config) -> None:
        self._read = read
        self._found = found
        self._config = config

    def load(self, name: str) -> pa.Table | None:
        """Return a table by name, None if it does not exist."""
        make = {
            "passages": self._passages,
            "repeated": self._repeated,
            "rejected": lambda: self._read.rejected,
            "removed": self._removed,
            "cut": self._cut,
        }.get(name)
        return None if make is None else make()

    def _passages(self) -> pa.Table:
        found = self._found
        read = self._read
        columns = schema.passages(read.ids.type)
        values = place_columns(found, slice(None))
        values["doc_id"] = read.ids.take(pa.array(found.places.docs))
        values["source_id"] = read.ids.take(pa.array(found.places.sources))
        if read.has_repeated_ids:
            columns = schema.with_rows(columns, "row", "source_row")
            values |= {"row": found.places.docs, "source_row": found.places.sources}
        return pa.table(values).select(columns.names).cast(columns)

    def _repeated(self) -> pa.Table:
        return pa.Table.from_batches([repeated_rows(self._found, slice(None))])

    def _removed(self) -> pa.Table:
        columns = schema.left_over(self._read.ids.type)
        return columns.empty_table()

    def _cut(self) -> pa.Table:
        """The rows without the spans, and without documents of which too little is left."""
        gone = self._found.left_over(self._config.min_left)
        if self._config.html:
            return in_memory.with_cut_texts(self._read, self._found.cuts, gone)
        return in_memory.without_spans(self._read, self._found.cuts, gone)
