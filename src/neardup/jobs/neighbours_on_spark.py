"""Nearest neighbours on Spark, for documents in files: one side is sent to every worker, the other is streamed.

with queries:  read the files -> the best documents of each batch for every query -> the best of all, by query
without:       every worker holds all documents, and answers some of them
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.engines.base import I64, Hold, TableView, no_progress
from neardup.engines.local.blas import one_blas_thread
from neardup.errors import DataError
from neardup.events import Watch
from neardup.io.documents.column_choice import with_dimension
from neardup.io.documents.discover import find_files
from neardup.io.records import InputFile, text_bytes
from neardup.jobs import neighbours as local
from neardup.jobs.rejections import name_rejected
from neardup.jobs.start import check_apart
from neardup.kernels.similarity import Sets
from neardup.report import format_bytes
from neardup.search.inverted_index import Compared
from neardup.search.neighbours import SPAN, Finder, SearchOptions, SetFinder, finder_for

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, SparkEngine

# The largest side that is sent to workers: each Python worker holds a copy.
MAX_BYTES: Final = 1 << 30
# More than the documents of any batch.
MANY: Final = 1 << 40
# The queries of which a document is one of the nearest in its batch, by position, and what a
# neighbour is listed with.
_VALUES: Final = ("partner_similarities", "query_shares", "shares")
_NEAREST: Final = pa.schema(
    [
        *((name, pa.int64()) for name in ("row", "text_bytes", "num_shingles")),
        ("partners", pa.large_list(pa.int64())),
        *((name, pa.large_list(pa.float64())) for name in _VALUES),
    ]
)
# One row per query and document.
_LISTED: Final = pa.schema(
    [("query", pa.int64()), ("row", pa.int64()), *((name, pa.float64()) for name in _VALUES)]
)


class _Search(NamedTuple):
    """A search, as workers get it; k: None lists all neighbours above the threshold."""

    options: SearchOptions
    k: int | None

    def find(self, finder: Finder, start: int, stop: int) -> dict[str, Any]:
        """Answer some queries; documents are named by position."""
        found = (local.find_all if self.k is None else local.find_best)(finder, start, stop)
        at, docs_at, values, _ = found
        if isinstance(finder, SetFinder):
            shares = finder.shares(at, docs_at)
        else:
            shares = (values, values)
        return dict(zip(_LISTED.names, (at, docs_at, values, *shares), strict=True))


class SentBudget(local.MemoryBudget):
    """Raises once the side that every worker holds is too large."""

    def check(self, needed: int, room: int) -> None:
        """Raise if the index takes more bytes than are sent, whatever the memory of this machine."""
        del room
        if needed > MAX_BYTES:
            raise DataError(
                f"the index that is sent to every Spark worker takes at least {format_bytes(needed)}, more than the "
                f"limit of {format_bytes(MAX_BYTES)}",
                hint="pass fewer documents as `queries`, or use engine='local'",
            )


def search_files(
    sources: tuple[Sequence[str], Sequence[str] | None],
    wanted: local.Wanted,
    config: Config,
    watch: Watch,
    *,
    engine: SparkEngine | None = None,
    target: Path | None = None,
) -> pa.Table:
    """Return the neighbours of the documents in files, or of queries in other files."""
    from neardup.engines.spark.session import open_engine

    inputs, queries = sources
    prepare = partial(local.prepare_files, budget=SentBudget(), watch=watch, target=target)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="neardup-")))
        if queries is None:
            prepared = prepare(inputs, config, folder)
            own = (engine or open_engine(prepared.config, 0)).begin()
            return _answer_all(prepared, wanted, own, watch)
        with watch.stage("read"):
            files = find_files(inputs, config, watch.warn)
            if target is not None:
                check_apart(target, files)
            config = with_dimension(files, config)
        asked = prepare(queries, config, folder)
        own = (engine or open_engine(config, sum(file.size for file in files))).begin()
        stack.callback(own.storage.discard)
        return _find_in_files(files, asked, wanted, own, watch)


def _answer_all(
    docs: local.SearchInput, wanted: local.Wanted, engine: SparkEngine, watch: Watch
) -> pa.Table:
    """Let workers, which hold all documents, answer every document."""
    num_docs = docs.rows.size
    if num_docs <= 1:
        return local.neighbours_schema(docs, docs).empty_table()
    search = _Search(local.options_for(docs.config, wanted, num_docs - 1), wanted.k)
    compared = docs.compared
    num_tasks = max(min(engine.storage.num_partitions, -(-num_docs // SPAN)), 1)

    def answer(task: int) -> pa.RecordBatch:
        finder = finder_for(compared, None, search.options)
        first, last = (-(-num_docs // SPAN) * at // num_tasks * SPAN for at in (task, task + 1))
        with one_blas_thread():
            parts = [
                search.find(finder, start, min(start + SPAN, num_docs))
                for start in range(first, last, SPAN)
            ]
        return schema.one_batch([pa.record_batch(part, schema=_LISTED) for part in parts], _LISTED)

    with watch.stage("compare", num_docs) as advance:
        found = engine.collect_range(num_tasks, answer, _LISTED, (advance, num_docs))
    return _named(
        found.set_column(1, "row", pa.array(docs.rows[found.column("row").to_numpy()])), docs, docs
    )


def _find_in_files(
    files: Sequence[InputFile],
    asked: local.SearchInput,
    wanted: local.Wanted,
    engine: SparkEngine,
    watch: Watch,
) -> pa.Table:
    """Let workers, which hold the queries, read the files."""
    from neardup.engines.spark import FileSource
    from neardup.engines.spark import files as tables

    config = asked.config
    search = _Search(local.options_for(config, wanted, MANY), wanted.k)
    queries = asked.compared
    source = FileSource(engine.spark, files, 0, config)

    def nearest(batch: pa.RecordBatch, hold: Hold | None) -> pa.RecordBatch:
        del hold
        return _nearest(batch, local.compared_of(batch, config), queries, search)

    with watch.stage("compare", source.total, source.unit) as advance:
        notes = engine.map_documents(source, nearest, _NEAREST, advance)
        if num_rejected := source.counted["own_rejected"]:
            first: Any = tables.rejected_table(source).first()
            num_documents = source.counted["own_documents"]
            local.warn_of_rejected(num_rejected, num_documents, name_rejected(first), config, watch)
        listed = engine.map_tables([notes], _list, _LISTED)
        view = TableView(tuple(_LISTED.names), ("query",), ("row",), is_whole=True)
        best = engine.map_groups(listed, [view], partial(_best, k=search.k), None, no_progress)
        found = engine.collect(best, "neighbours")
    return _named(found, asked, _files(source, config))


def _nearest(
    batch: pa.RecordBatch, docs: Compared, queries: Compared, search: _Search
) -> pa.RecordBatch:
    """Return for every document the queries of which it is one of the nearest in this batch, as _NEAREST."""
    num_docs = batch.num_rows
    num_queries = queries.groups.size
    found: list[dict[str, Any]] = []
    if num_docs and num_queries:
        options = SearchOptions(
            k=min(search.options.k, num_docs),
            above=search.options.above,
            share=search.options.share,
        )
        finder = finder_for(docs, queries, options)
        with one_blas_thread():
            found = [
                search.find(finder, start, min(start + SPAN, num_queries))
                for start in range(0, num_queries, SPAN)
            ]
    columns = {
        name: np.concatenate([np.empty(0), *(part[name] for part in found)])
        for name in _LISTED.names
    }
    owners = columns.pop("row").astype(np.int64)
    order = np.argsort(owners, kind="stable")
    ends = pa.array(np.r_[0, np.cumsum(np.bincount(owners, minlength=num_docs))].astype(np.int64))
    lists = [columns["query"].astype(np.int64), *(columns[name] for name in _VALUES)]
    sizes = pa.array(np.asarray(text_bytes(batch.column("text")), np.int64))
    own = [batch.column("row"), sizes, pa.array(np.ones(num_docs, np.int64))]
    own += [pa.LargeListArray.from_arrays(ends, pa.array(values[order])) for values in lists]
    return pa.record_batch(own, schema=_NEAREST)


def _list(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn _NEAREST into _LISTED."""
    lists = batch.column("partners")
    rows = batch.column("row").take(pc.list_parent_indices(lists))
    values = [batch.column(name).flatten() for name in _VALUES]
    return pa.record_batch([lists.flatten(), rows, *values], schema=_LISTED)


def _best(batch: pa.RecordBatch, k: int | None) -> pa.RecordBatch:
    """Keep the k best documents of every query, ties by row; all of them without k."""
    if k is None or not batch.num_rows:
        return batch.cast(_LISTED)
    queries, rows, values = (
        batch.column(name).to_numpy() for name in ("query", "row", "partner_similarities")
    )
    order = np.lexsort((rows, -values, queries))
    ordered = queries[order]
    is_best = np.arange(order.size) - np.searchsorted(ordered, ordered) < k
    return batch.cast(_LISTED).take(pa.array(np.sort(order[is_best])))


def _files(source: FileSource, config: Config) -> local.SearchInput:
    """Return the documents of files, by the names of their rows alone."""
    names = source.names()
    nothing = np.empty(0, np.int64)

    def name(rows: I64) -> list[pa.Array]:
        distinct, inverse = np.unique(rows, return_inverse=True)
        files, numbers = source.locate(rows)
        return [names.ids_of(distinct).take(pa.array(inverse)), files, pa.array(numbers)]

    compared = Compared(Sets(np.empty(0, np.uint64), np.zeros(1, np.int64)), nothing)
    return local.SearchInput(compared=compared, rows=nothing, config=config, name=name)


def _named(found: pa.Table, asking: local.SearchInput, docs: local.SearchInput) -> pa.Table:
    """Rank the neighbours in _LISTED, and name both sides."""
    ordered = found.sort_by(
        [("query", "ascending"), ("partner_similarities", "descending"), ("row", "ascending")]
    )
    at, rows, values, *shares = (ordered.column(name).to_numpy() for name in _LISTED.names)
    ranks = np.arange(at.size) - np.searchsorted(at, at) + 1
    own = asking.name(asking.rows[at])
    other = docs.name(rows)
    listed = shares if docs.config.asks_containment else ()
    columns = local.neighbours_schema(asking, docs)
    return pa.table(
        [own[0], other[0], values, ranks, *listed, *own[1:], *other[1:]], schema=columns
    )
