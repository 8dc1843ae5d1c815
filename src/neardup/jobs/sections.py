"""Repeated paragraphs or lines: read, find the first one of each, and the documents without the others.

    read -> sections with digests -> group -> spans -> write

The documents are read once, and once more to write them. With a threshold below 1, the sections are also the
documents of a run of pipeline.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import Documents
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.tables import BatchTable
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.index.index_folder import is_index
from neardup.io.columns.text_cuts import TextCuts
from neardup.io.documents import in_memory
from neardup.io.storage.big_arrays import BigArrays
from neardup.jobs.rejections import all_rejected, most_rejected
from neardup.report import PartsReport, peak_memory_bytes
from neardup.search import sections as search
from neardup.search.sections import Gone, RemovedSections, Rule, SectionList
from neardup.stages.digest_sections import digest_sections, long_sections
from neardup.theory.plan import Plan, plan_for

I64 = npt.NDArray[np.int64]
KEEPS: Final = ("first", "none")
DEFAULT_MIN_WORDS: Final = 8
# Bytes of a document are counted with 32 bits.
MAX_DOCUMENT: Final = 2**31 - 1
# The first pass; the one of a run on sections has another name.
TABLE: Final = "sections"
# Settings that do not apply to sections, and the only value that does.
_FIXED: Final[dict[str, Any]] = {
    "measure": "jaccard",
    "items_column": None,
    "ignore": (),
    "ignore_common": None,
    "weights": None,
    "decisions": None,
    "pairs": False,
    "passages": False,
    "edits": False,
    "cut": False,
    "html": False,
    "one_to_one": False,
    "audit": False,
    "text_out": None,
}
# Sections that are counted at once.
_CHUNK: Final = 1 << 20
_LISTED: Final = ("start", "end", "line", "words")


def check_settings(config: Config) -> Config:
    """Raise for settings that do not apply to paragraphs and lines; return the others, with their defaults."""
    _check_other_settings(config)
    if config.keep not in KEEPS:
        raise ConfigError(
            f"`keep` must be 'first' or 'none' with `level` {config.level!r}, got {config.keep!r}",
            hint="'first' leaves every paragraph or line where it stands first, 'none' removes all that are repeated",
        )
    if config.keep == "none" and config.per_cluster > 1:
        raise ConfigError(
            f"`per_cluster` {config.per_cluster} and `keep` 'none' cannot be combined: one keeps some, the other none",
            hint="leave one out",
        )
    if config.min_words is None:
        config = Config.of(config, min_words=DEFAULT_MIN_WORDS)
    if not config.is_threshold_given:
        config = Config.of(config, threshold=1.0)
    if config.threshold == 1:
        return Config.of(config, method="exact", bands=None, rows=None)
    if config.engine == "spark":
        raise ConfigError(
            f"`level` needs a threshold of 1 on Spark, got {config.threshold:g}",
            hint="leave `threshold` out, which finds equal words, or use engine='local'",
        )
    return config


def _check_other_settings(config: Config) -> None:
    """Raise for settings of whole documents, and for texts that cannot be put together again."""
    for name, value in _FIXED.items():
        if getattr(config, name) != value:
            raise ConfigError(
                f"`{name}` {getattr(config, name)!r} does not apply with `level` {config.level!r}",
                hint=f"leave `{name}` out",
            )
    if isinstance(config.text_column, tuple):
        raise ConfigError(
            f"`level` needs one text column, got {', '.join(config.text_column)}",
            hint="name one of them as `text_column`",
        )
    if config.max_document > MAX_DOCUMENT:
        raise ConfigError(
            f"`max_document` must be below 2 GB with `level`, got {config.max_document:,} bytes",
            hint="the default is '256MB'",
        )
    for path in config.against:
        if is_index(path):
            raise ConfigError(
                f"`against` names {path}, an index, which `level` cannot search",
                hint="name the files that it was made of",
            )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RemovedWords:
    """The rows of documents of the input, their words, and how many of them are in removed sections."""

    rows: I64
    words: I64
    gone: I64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What is repeated. table: of schema.SECTIONS; cuts: the spans that go, in bytes; plan: how it was found."""

    table: BatchTable
    sections: SectionList
    gone: Gone
    cuts: TextCuts
    counts: RemovedWords
    num_removed: int
    plan: Plan

    def left_over(self, min_left: int) -> I64:
        """Return the rows of documents that lose words so that fewer than `min_left` stay, ascending."""
        counts = self.counts
        rows: I64 = counts.rows[(counts.gone > 0) & (counts.words - counts.gone < min_left)]
        return rows

    def removed(self, columns: Sequence[str]) -> Iterator[RemovedSections]:
        """Iterate over the removed sections."""
        return search.removed_of(self.table.batches, list(columns), self.gone)

    def listed(self) -> Iterator[tuple[I64, pa.Array, dict[str, Any]]]:
        """Iterate over the removed sections: their rows, those of the places that stay, and columns of numbers."""
        for removed in self.removed(_LISTED):
            docs = self.sections.docs[removed.leaders]
            # With `keep` "none" the first place is removed, too, unless it is in a reference document.
            is_gone = self.gone.leaders[removed.leaders] != search.STAYS
            kept_starts = self.sections.starts[removed.leaders].astype(np.int64)
            similarities = removed.similarities
            if similarities is None:
                similarities = np.ones(docs.size)
            columns: dict[str, Any] = dict(removed.columns)
            columns["line"] = columns["line"] + 1
            columns["kept_start"] = pa.array(kept_starts, mask=is_gone)
            columns["similarity"] = pa.array(similarities, mask=is_gone)
            yield removed.docs, pa.array(docs, mask=is_gone), columns


def find(
    documents: Documents,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    folder: Path | None = None,
) -> Found:
    """Find the repeated sections of some documents; `folder` is for what does not fit in memory."""
    secret = engine.secret
    with watch.stage("sections", documents.total, documents.unit) as advance:
        table = engine.map_documents(
            documents,
            lambda batch, _: digest_sections(batch, config, secret),
            schema.SECTIONS,
            advance,
            TABLE,
        )
    arrays = BigArrays(folder, engine.room)
    rule = Rule(
        keeps_first=config.keep != "none",
        per_cluster=config.per_cluster,
        min_count=config.min_count,
        num_references=documents.num_references,
        only_against=config.only_against,
    )
    listed = search.list_sections(table.batches, arrays)
    plan = plan_for(config)
    if config.threshold < 1:
        own = Config.of(config, keep="first", mark=False, level=None)
        units = SectionDocuments(documents, listed.docs, config)
        outcome = pipeline.run(units, plan, own, engine, watch)
        plan = outcome.plan
        gone = search.similar_ones(outcome.selection, outcome.clustered, listed.docs, rule, arrays)
    else:
        with watch.stage("group sections"):
            room = engine.room() // 4
            gone = search.equal_ones(
                table.batches, listed.docs, rule, arrays, engine.side_by_side, room
            )
    return _found(table, listed, gone, plan, documents.num_references, arrays)


def _found(
    table: BatchTable,
    listed: SectionList,
    gone: Gone,
    plan: Plan,
    num_references: int,
    arrays: BigArrays,
) -> Found:
    """Add up what goes."""
    rows = [np.empty(0, np.int64)]
    words = [np.empty(0, np.int64)]
    for batch in table.batches(["row", "num_words"]):
        rows.append(batch.column("row").to_numpy())
        words.append(batch.column("num_words").to_numpy())
    own_rows = np.concatenate(rows)
    counts = RemovedWords(
        rows=own_rows, words=np.concatenate(words), gone=np.zeros(own_rows.size, np.int64)
    )
    size = sum(
        int(np.count_nonzero(gone.leaders[start : start + _CHUNK] != search.STAYS))
        for start in range(0, gone.leaders.size, _CHUNK)
    )
    spans: list[I64] = [
        arrays.empty(f"cut_{name}", size, np.int64) for name in ("rows", "starts", "stops")
    ]
    at = 0
    columns = [*search.SPAN_COLUMNS, "words"]
    for removed in search.removed_of(table.batches, columns, gone):
        np.add.at(counts.gone, np.searchsorted(counts.rows, removed.docs), removed.columns["words"])
        own = search.spans_of(removed)
        stop = at + own[0].size
        for array, values in zip(spans, own, strict=True):
            array[at:stop] = values
        at = stop
        arrays.drop_pages()
    is_own = counts.rows >= num_references
    return Found(
        table=table,
        sections=listed,
        gone=gone,
        cuts=TextCuts(rows=spans[0][:at], starts=spans[1][:at], stops=spans[2][:at], mends=False),
        counts=RemovedWords(
            rows=counts.rows[is_own], words=counts.words[is_own], gone=counts.gone[is_own]
        ),
        num_removed=size,
        plan=plan,
    )


class SectionDocuments:
    """The sections of documents as the documents of a run, numbered by the table of all sections."""

    def __init__(self, documents: Documents, docs: I64, config: Config) -> None:
        """Take documents that have been read, and the row of every section."""
        self._documents = documents
        self._config = config
        self._docs = docs
        self.total = documents.total
        self.unit = documents.unit
        self.num_rows = docs.size
        self.num_references = int(np.searchsorted(docs, documents.num_references))
        self.num_parts = documents.num_parts
        self.num_reference_parts = documents.num_reference_parts
        self.stops_at_first = documents.stops_at_first
        self.first_rows: I64 = np.searchsorted(docs, documents.first_rows)

    def read(self, part: int, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Read the sections of a part."""
        for batch in self._documents.read(part, advance):
            yield self._sections(batch)

    def _sections(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        rows = batch.column("row").to_numpy()
        of_doc, texts = long_sections(batch.column("text"), self._config)
        first = int(np.searchsorted(self._docs, rows[0])) if rows.size else 0
        numbers = np.arange(first, first + of_doc.size)
        is_reference = numbers < self.num_references
        priority = np.where(is_reference, schema.REFERENCE_PRIORITY, numbers)
        groups = batch.column("group").take(pa.array(of_doc))
        columns = [pa.array(numbers), texts, pa.array(priority), groups]
        return pa.record_batch(columns, schema=schema.DOCUMENTS)

    def has_read(self, part: int) -> bool:
        """Every part was read for the table of sections."""
        del part
        return True

    def skip(self, part: int, advance: Callable[[int], None]) -> None:
        """Count a part that an interrupted run has read."""
        self._documents.skip(part, advance)

    def finish_reading(self, sort: Any) -> None:
        """Rows and priorities are final from the start."""

    def renumber(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows and priorities are final from the start."""
        del part
        return batch


def report_values(found: Found, config: Config, watch: Watch) -> dict[str, Any]:
    """Return the fields of the report that do not depend on the source."""
    return {
        "config": config,
        "plan": found.plan,
        "removed_against": 0,
        "exact_duplicates": 0,
        "pairs_verified": 0,
        "num_pairs": None,
        "seconds": watch.seconds,
        "peak_memory_bytes": peak_memory_bytes(),
        "stages": watch.seconds_by_stage,
        "warnings": tuple(watch.warnings),
        "signature_format": f"words seed-{config.seed}",
        "num_parts": found.num_removed,
        "num_words": int(found.counts.words.sum()),
        "removed_words": int(found.counts.gone.sum()),
    }


def find_in_memory(
    source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch
) -> PartsReport:
    """Find the repeated sections of documents in memory."""
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
    gone = found.left_over(config.min_left)
    return PartsReport(
        **report_values(found, config, watch),
        documents=num_documents + num_rejected,
        num_kept=num_documents - gone.size,
        num_removed=gone.size,
        num_rejected=num_rejected,
        bytes_read=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
        columns=read.columns,
        load=partial(_load_memory, read, found, gone),
    )


def _load_memory(
    read: in_memory.InMemorySource, found: Found, gone: I64, name: str
) -> pa.Table | None:
    """Return a table of documents in memory by name, None if it does not exist."""
    if name == "kept":
        return in_memory.without_spans(read, found.cuts, gone)
    if name == "rejected":
        return read.rejected
    if name == "removed":
        columns = schema.left_over(read.ids.type)
        nothing = [pa.nulls(gone.size, field.type) for field in list(columns)[1:]]
        return pa.table([read.ids.take(pa.array(gone)), *nothing], schema=columns)
    if name == "mask":
        is_kept = np.zeros(read.original.num_rows, np.bool_)
        is_kept[read.documents.column("row").to_numpy()] = True
        is_kept[gone] = False
        return pa.table({"is_kept": is_kept})
    if name != "removed_parts":
        return None
    columns = schema.removed_parts(read.ids.type)
    if read.has_repeated_ids:
        columns = schema.with_rows(columns, "row", "kept_row")
    tables = [columns.empty_table()]
    for rows, kept_rows, values in found.listed():
        values |= {"row": rows, "kept_row": kept_rows}
        values["doc_id"] = read.ids.take(pa.array(rows))
        values["kept_id"] = read.ids.take(kept_rows)
        tables.append(pa.table(values).select(columns.names).cast(columns))
    return pa.concat_tables(tables)
