"""Decontamination: which documents contain items of benchmarks, and where.

    read items -> count their words in all documents -> weigh -> find spans -> locate

The documents are read twice, and those with spans once more to locate them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Arrays, Documents
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError, DataError
from neardup.events import Watch
from neardup.index.index_folder import is_index
from neardup.io.columns.text_cuts import TextCuts
from neardup.io.documents import in_memory
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.documents.file_list import FileList
from neardup.io.finished.run_folders import kept_of_runs
from neardup.io.finished.word_counts import WordCounts, read_counts
from neardup.io.formats import registry as formats
from neardup.jobs.rejections import all_rejected, most_rejected
from neardup.jobs.source import check_in_memory
from neardup.jobs.start import check_against
from neardup.measures.words import word_runs
from neardup.report import ContaminationReport, peak_memory_bytes
from neardup.search import bench_items as search
from neardup.search import spans as word_spans
from neardup.search.bench_items import BenchSearch, ItemSearch
from neardup.search.common_grams import GramSearch
from neardup.search.located import Bounds, Locator
from neardup.search.places import Stretches
from neardup.search.spans import Spans
from neardup.theory.plan import plan_for

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
FOUND: Final = "found"
CLEAN: Final = "clean"
TOO_SHORT: Final = "too_short"
# Settings that do not apply, and the only value that does.
_FIXED: Final[dict[str, Any]] = {
    "unit": "word",
    "measure": "jaccard",
    "items_column": None,
    "group_column": None,
    "ignore": (),
    "ignore_common": None,
    "weights": None,
    "common_by": None,
    "text_out": None,
    "level": None,
    "decisions": None,
    "pairs": False,
    "audit": False,
}
_WRITES: Final = ("remove", "cut", "mark")


class Items(NamedTuple):
    """The items of benchmarks: of every item its benchmark, its id, its row from 1, and its text.

    rejected: the rows that are no items, as schema.REJECTED.
    """

    benchmarks: list[str]
    of_item: I64
    ids: pa.Array
    rows: I64
    texts: pa.Array
    rejected: pa.Table


def check_settings(config: Config) -> Config:
    """Raise for settings that do not apply to decontamination; return the others."""
    for name, value in _FIXED.items():
        if getattr(config, name) != value:
            raise ConfigError(
                f"`{name}` {getattr(config, name)!r} does not apply to decontamination",
                hint=f"leave `{name}` out",
            )
    if not config.against:
        raise ConfigError(
            "`against` is missing: the files with the items of benchmarks",
            hint="pass against='benchmark.jsonl'",
        )
    _check_rule(config)
    if config.threshold < search.MIN_THRESHOLD:
        raise ConfigError(
            f"`threshold` must be at least {search.MIN_THRESHOLD} for decontamination, got {config.threshold!r}",
            hint="0.8 allows for one edit in twenty words",
        )
    chosen = [name for name in _WRITES if getattr(config, name)]
    if len(chosen) > 1:
        raise ConfigError(
            f"`{chosen[0]}` and `{chosen[1]}` cannot be combined: each writes the documents in its own way",
            hint="leave one out",
        )
    if config.around and not config.cut:
        raise ConfigError(
            "`around` needs `cut`: it says how many words beside an item are cut",
            hint="pass cut=True, or leave `around` out",
        )
    for name in ("cut", "mark"):
        if getattr(config, name) and (isinstance(config.text_column, tuple) or config.html):
            raise ConfigError(
                f"`{name}` needs the text of one column, as it is stored",
                hint="leave `html` out, and name one `text_column`",
            )
    return Config.of(config, method="exact")


def _check_rule(config: Config) -> None:
    """Raise for settings that the 13-gram rule ignores."""
    if config.rule == "coverage":
        return
    given = "threshold" if config.is_threshold_given else "weights_from"
    if config.is_threshold_given or config.weights_from is not None:
        raise ConfigError(
            f"`{given}` does not apply to the rule {config.rule!r}: 13 words in a row are enough, and weigh the same",
            hint=f"leave `{given}` out, or use rule='coverage'",
        )


def find_item_files(config: Config, out: Path | None) -> FileList:
    """Find the files of benchmarks."""
    _check_no_index(config)
    check_against(config)
    every = Config.of(config, include=(), exclude=())
    return find_files(kept_of_runs(list(config.against), out or Path()), every)


def read_items(files: FileList, config: Config, watch: Watch) -> Items:
    """Read the items of benchmarks; warn about rows that are none.

    Items are taken as they stand, even if the documents are parsed as HTML.
    """
    _check_no_index(config)
    reading = Config.of(
        config,
        text_column=config.item_column,
        id_column=None,
        mark=False,
        html=False,
        html_content="main",
    )
    of_item: list[int] = []
    ids: list[pa.Array] = []
    rows: list[int] = []
    texts: list[pa.Array] = []
    rejected: list[tuple[str, int, str]] = []
    for number, file in enumerate(files):
        form = formats.load(file.format)
        try:
            columns = choose_columns(file, form.column_names(file, reading), reading)
        except DataError as error:
            hint = (error.hint or "").replace("text_column", "item_column")
            raise DataError(str(error).partition("\n")[0], hint=hint) from error
        first = 0
        for span in form.split(file):
            for records in form.read(file, span, columns, reading):
                own = (records.rows + first + 1).tolist()
                names = pa.array([f"{file.name}:{row}" for row in own], pa.string())
                of_item += [number] * len(own)
                rows += own
                ids.append(pc.coalesce(records.ids.cast(pa.string()), names))
                texts.append(records.texts.cast(pa.large_string()))
                rejected += [
                    (file.name, first + row + 1, reason) for row, reason in sorted(records.rejected)
                ]
                if rejected and config.strict:
                    raise DataError(
                        f"{_location(rejected[0])} cannot be used: {rejected[0][2]}",
                        hint="leave out strict=True to skip such rows and list them as rejected",
                    )
                first += records.num_rows
    if not rows:
        first_reason = f": {_location(rejected[0])}: {rejected[0][2]}" if rejected else ""
        raise DataError(
            f"no row of `against` can be used{first_reason}",
            hint="name the column of the items in `item_column`",
        )
    if rejected:
        count = f"{len(rejected):,} rows" if len(rejected) > 1 else "1 row"
        example = f"{_location(rejected[0])}: {rejected[0][2]}"
        message = f"{count} of `against` cannot be used; the first is {example}"
        watch.warn(message, is_urgent=True)
    listed = [dict(zip(schema.REJECTED.names, row, strict=True)) for row in rejected]
    return Items(
        benchmarks=[file.name for file in files],
        of_item=np.array(of_item, np.int64),
        ids=pa.concat_arrays(ids),
        rows=np.array(rows, np.int64),
        texts=pa.concat_arrays(texts),
        rejected=pa.Table.from_pylist(listed, schema=schema.REJECTED),
    )


def _location(rejected: tuple[str, int, str]) -> str:
    file, row, _ = rejected
    return f"{file} row {row}"


def _check_no_index(config: Config) -> None:
    """Raise if `against` names an index, which does not keep texts."""
    for path in config.against:
        if is_index(path):
            raise ConfigError(
                f"`against` names {path}, an index, which has no items of benchmarks",
                hint="name the files with the items",
            )


def words_of(texts: pa.Array, config: Config) -> tuple[U64, I64]:
    """Return the hashes of the words of texts end to end, and where each text ends among them."""
    words = [np.empty(0, np.uint64)]
    ends = np.zeros(len(texts) + 1, np.int64)
    for run in word_runs(texts, config):
        words.append(run.words.copy())
        ends[run.start + 1 : run.start + run.ends.size] = ends[run.start] + run.ends[1:]
    return np.concatenate(words), ends


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The spans of documents that cover items, sorted by row, item and start; and where they stand in the texts.

    hits: of schema.HITS; scores, bounds, item_bounds: one per hit, where it is in the document and in the item; spans,
    span_bounds: what is cut or marked; rows, num_words: the documents with hits, and their words; counts: of the words
    of items.
    """

    items: Items
    counts: WordCounts
    sizes: I64
    is_too_short: npt.NDArray[np.bool_]
    hits: pa.Table
    scores: npt.NDArray[np.float64]
    spans: Spans
    rows: I64
    num_words: I64
    bounds: Bounds
    item_bounds: Bounds
    span_bounds: Bounds

    def column(self, name: str) -> I64:
        """Return a column of the hits."""
        values: I64 = self.hits.column(name).to_numpy()
        return values

    @property
    def cuts(self) -> TextCuts:
        """The spans to cut, in bytes."""
        bounds = self.span_bounds
        return TextCuts(rows=self.spans.docs, starts=bounds.start_bytes, stops=bounds.end_bytes)

    @property
    def covered(self) -> I64:
        """The number of words of each of `rows` that are in spans."""
        return word_spans.words_in(self.spans, self.rows)

    def gone(self, config: Config) -> I64:
        """Return the rows of documents that are not written, ascending."""
        if config.remove:
            return self.rows
        if not config.cut:
            return self.rows[:0]
        gone: I64 = self.rows[self.num_words - self.covered < config.min_left]
        return gone


def find(
    documents: Documents,
    items: Items,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
) -> Found:
    """Find every span of the documents that covers an item."""
    finder = _finder_of(items, config)
    counting = ItemCounts(finder, config)
    stored = read_counts(config)

    with watch.stage("count", documents.total, documents.unit) as advance:
        table = engine.map_documents(
            documents,
            lambda batch, _: counting.look(batch),
            schema.WORD_COUNTS,
            advance,
            gather=counting,
        )
    num_documents = sum(batch.num_rows for batch in table.batches(["row"]))
    if stored is not None:
        finder.set_counts(stored.of(finder.vocabulary), stored.num_documents)
    elif finder.num_documents != num_documents:  # an interrupted run has read some parts
        finder.set_counts(np.zeros_like(finder.counts), 0)
        with watch.stage("count again", documents.total, documents.unit) as advance:
            engine.scan_parts(documents, counting, advance, schema.WORD_COUNTS)
    finder.weigh()
    hits = _hits(documents, finder, config, engine, watch)
    return _located(hits, items, finder, documents, config, engine, watch)


class ItemCounts:
    """Counts the documents that have each word of items."""

    def __init__(self, finder: ItemSearch, config: Config) -> None:
        self._finder = finder
        self._config = config

    def look(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count some documents; return schema.WORD_COUNTS."""
        words, ends = words_of(batch.column("text"), self._config)
        self._finder.count(words, ends)
        columns = [batch.column("row"), pa.array(np.diff(ends))]
        return pa.record_batch(columns, schema=schema.WORD_COUNTS)

    def part_of(self, first: int, stop: int) -> Arrays:
        """Return nothing: every document is counted."""
        del first, stop
        return {}

    @property
    def make(self) -> Callable[[Arrays], ItemCounts]:
        """Return a function that makes a scan of a part."""
        finder = self._finder.uncounted()
        config = self._config
        return lambda _: ItemCounts(finder.uncounted(), config)

    def found(self) -> Arrays:
        """Return the counts."""
        finder = self._finder
        return {"counts": finder.counts, "documents": np.array(finder.num_documents)}

    def merge(self, first: int, stop: int, found: Arrays) -> None:
        """Add the counts of a part."""
        del first, stop
        self._finder.add_counts(found["counts"], int(found["documents"]))


def _finder_of(items: Items, config: Config) -> ItemSearch:
    words, ends = words_of(items.texts, config)
    if config.rule == "ngram13":
        return GramSearch(words, ends)
    return BenchSearch(words, ends, config.threshold)


def _hits(
    documents: Documents, finder: ItemSearch, config: Config, engine: LocalEngine, watch: Watch
) -> pa.Table:
    def search_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
        words, ends = words_of(batch.column("text"), config)
        found = finder.find(words, ends)
        docs = found[:, search.DOC]
        rows = batch.column("row").to_numpy()[docs]
        columns = [rows, np.diff(ends)[docs], *found[:, 1:].T]
        return pa.record_batch([pa.array(column) for column in columns], schema=schema.HITS)

    with watch.stage("search", documents.total, documents.unit) as advance:
        hits = engine.scan_documents(documents, search_batch, schema.HITS, advance)
    return hits.sort_by([(name, "ascending") for name in ("row", "item", "first")])


def _located(
    hits: pa.Table,
    items: Items,
    finder: ItemSearch,
    documents: Documents,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
) -> Found:
    """Say where the hits stand in the texts of documents and items."""
    rows: I64 = hits.column("row").to_numpy()
    first: I64 = hits.column("first").to_numpy()
    last: I64 = hits.column("last").to_numpy()
    num_words: I64 = hits.column("num_words").to_numpy()
    spans = word_spans.united(
        rows,
        np.maximum(first - config.around, 0),
        np.minimum(last + 1 + config.around, num_words),
    )
    by_start = np.lexsort((first, rows))
    locator = _locator(rows[by_start], first[by_start], last[by_start], spans, config)
    numbers: I64 = hits.column("item").to_numpy()
    item_first: I64 = hits.column("item_first").to_numpy()
    item_last: I64 = hits.column("item_last").to_numpy()
    by_item = np.lexsort((item_first, numbers))
    item_locator = _locator(
        numbers[by_item], item_first[by_item], item_last[by_item], word_spans.NO_SPANS, config
    )
    with watch.stage("locate", documents.total, documents.unit) as advance:
        if rows.size:
            engine.scan_parts(documents, locator, advance)
            item_rows = pa.array(np.arange(len(items.texts)))
            item_locator.locate(pa.record_batch({"row": item_rows, "text": items.texts}))
    with_hits, at = np.unique(rows, return_index=True)
    return Found(
        items=items,
        counts=WordCounts(finder.vocabulary, finder.counts, finder.num_documents),
        sizes=finder.sizes,
        is_too_short=finder.is_too_short,
        hits=hits,
        scores=hits.column("weight").to_numpy() / finder.totals[numbers],
        spans=spans,
        span_bounds=locator.spans,
        bounds=_reordered(locator.places, by_start),
        item_bounds=_reordered(item_locator.places, by_item),
        rows=with_hits,
        num_words=num_words[at],
    )


def _locator(docs: I64, first: I64, last: I64, spans: Spans, config: Config) -> Locator:
    """Return what locates words of documents, and spans."""
    stretches = Stretches(docs, first, last - first + 1, docs, first)
    return Locator(stretches, word_spans.NO_PASSAGES, spans, 1, config)


def _reordered(bounds: Bounds, order: I64) -> Bounds:
    """Undo an order."""
    back = np.argsort(order)
    return Bounds(*(column[back] for column in bounds))


def hit_columns(found: Found, own: slice) -> dict[str, Any]:
    """Return the columns of some rows of the table of contaminated documents that do not name documents."""
    items = found.items
    numbers = found.column("item")[own]
    benchmarks = pa.array(items.benchmarks, pa.string())
    return {
        "benchmark": benchmarks.take(pa.array(items.of_item[numbers])),
        "item_id": items.ids.take(pa.array(numbers)),
        "item_row": items.rows[numbers],
        "score": found.scores[own],
        "start": found.bounds.starts[own],
        "end": found.bounds.ends[own],
        "start_byte": found.bounds.start_bytes[own],
        "end_byte": found.bounds.end_bytes[own],
        "item_start": found.item_bounds.starts[own],
        "item_end": found.item_bounds.ends[own],
        "matched_words": found.column("matched")[own],
    }


def item_table(found: Found) -> pa.Table:
    """Return one row per item, as schema.BENCH_ITEMS: what was found of it."""
    items = found.items
    num_items = items.rows.size
    numbers = found.column("item")
    pairs = np.unique(np.stack([numbers, found.column("row")]), axis=1)
    documents = np.bincount(pairs[0], minlength=num_items)
    best = np.zeros(num_items)
    np.maximum.at(best, numbers, found.scores)
    is_found = documents > 0
    status = np.where(is_found, FOUND, CLEAN).astype(object)
    status[found.is_too_short] = TOO_SHORT
    columns = {
        "benchmark": pa.array(items.benchmarks, pa.string()).take(pa.array(items.of_item)),
        "item_id": items.ids,
        "item_row": items.rows,
        "words": found.sizes,
        "status": pa.array(status, pa.string()),
        "documents": documents,
        "best_score": pa.array(best, pa.float64(), mask=~is_found),
    }
    return pa.table(columns).select(schema.BENCH_ITEMS.names).cast(schema.BENCH_ITEMS)


def benchmark_table(found: Found) -> pa.Table:
    """Return one row per benchmark, as schema.BENCHMARKS: how many of its items were found, in how many documents."""
    items = found.items
    num_benchmarks = len(items.benchmarks)
    numbers = found.column("item")
    has_hit = np.zeros(items.rows.size, np.bool_)
    has_hit[numbers] = True
    pairs = np.unique(np.stack([items.of_item[numbers], found.column("row")]), axis=1)
    columns = {
        "benchmark": pa.array(items.benchmarks, pa.string()),
        "items": np.bincount(items.of_item, minlength=num_benchmarks),
        "found": np.bincount(items.of_item[has_hit], minlength=num_benchmarks),
        "too_short": np.bincount(items.of_item[found.is_too_short], minlength=num_benchmarks),
        "documents": np.bincount(pairs[0], minlength=num_benchmarks),
    }
    return pa.table(columns).cast(schema.BENCHMARKS)


def find_in_memory(
    source: Any, ids: Sequence[Any] | None, out: Any, config: Config, watch: Watch
) -> ContaminationReport:
    """Find the items of benchmarks in documents in memory."""
    for name in _WRITES:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` needs files as the source",
                hint="report.mask says which documents are clean, report.contaminated where the others are not",
            )
    # How files are read applies to those of the benchmarks.
    own = Config.of(config, against=(), format=None, encoding=None, lines=False, delimiter=None)
    check_in_memory(own, out=out)
    with watch.stage("read"):
        read = in_memory.read(source, own, ids=ids)
        items = read_items(find_item_files(config, None), config, watch)
    documents = in_memory.InMemoryDocuments(read.documents, read.original.num_rows)
    found = find(documents, items, config, LocalEngine(config.threads), watch)
    num_documents = read.documents.num_rows
    num_rejected = read.rejected.num_rows
    if num_rejected and not num_documents:
        raise all_rejected(num_rejected, read.first_rejected(), own)
    if num_rejected > num_documents:
        first = read.first_rejected()
        message = most_rejected(num_rejected, num_documents + num_rejected, first, own)
        watch.warn(message, is_urgent=True)
    return ContaminationReport(
        **report_values(found, config, watch),
        documents=num_documents + num_rejected,
        num_kept=num_documents,
        num_removed=0,
        num_rejected=num_rejected,
        bytes_read=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
        columns=read.columns,
        load=partial(_load_memory, read, found),
    )


def _load_memory(read: in_memory.InMemorySource, found: Found, name: str) -> pa.Table | None:
    """Return a table of documents in memory by name, None if it does not exist."""
    if name == "items":
        return item_table(found)
    if name == "benchmarks":
        return benchmark_table(found)
    if name == "rejected":
        return pa.concat_tables([found.items.rejected, read.rejected])
    if name == "mask":
        is_kept = np.zeros(read.original.num_rows, np.bool_)
        is_kept[read.documents.column("row").to_numpy()] = True
        is_kept[found.rows] = False
        return pa.table({"is_kept": is_kept})
    if name != "contaminated":
        return None
    rows = found.column("row")
    values = hit_columns(found, slice(None))
    values["doc_id"] = read.ids.take(pa.array(rows))
    columns = schema.contaminated(read.ids.type)
    if read.has_repeated_ids:
        columns = schema.with_rows(columns, "row")
        values["row"] = rows
    return pa.table(values).select(columns.names).cast(columns)


def report_values(found: Found, config: Config, watch: Watch) -> dict[str, Any]:
    """Return the fields of the report that do not depend on the source."""
    benchmarks = benchmark_table(found)
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
        "num_items": found.items.rows.size,
        "num_items_found": pc.sum(benchmarks.column("found")).as_py(),
        "num_too_short": int(found.is_too_short.sum()),
        "num_items_rejected": found.items.rejected.num_rows,
        "num_contaminated": found.rows.size,
    }
