"""The k nearest neighbours of every document, or of queries: read, search, name. All documents are kept in memory."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.config.checks import as_count_or_all, check_choice
from neardup.config.setting_types import Contained
from neardup.engines.local.blas import one_blas_thread
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError, DataError
from neardup.events import Watch
from neardup.io.columns.contents import content_type
from neardup.io.columns.rejected_rows import RejectedRow
from neardup.io.documents import in_memory as memory
from neardup.io.documents.column_choice import with_dimension
from neardup.io.documents.discover import find_files, paths_of
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_names import RowNames
from neardup.io.documents.stdin import spool
from neardup.io.storage.table_writer import known_ending, reserved_table
from neardup.io.storage.work_folder import check_writable
from neardup.io.storage.workspace import STANDARD_INPUT, Workspace
from neardup.jobs.rejections import all_rejected, first_rejected, most_rejected
from neardup.jobs.source import check_in_memory
from neardup.jobs.start import check_apart
from neardup.kernels import neighbours as kernel
from neardup.measures.base import concatenated
from neardup.measures.registry import measure_of
from neardup.search.inverted_index import BYTES_A_SHINGLE, Compared
from neardup.search.neighbours import SPAN, Finder, SearchOptions, SetFinder, finder_for

I64 = npt.NDArray[np.int64]
# A list of this many takes gigabytes.
MANY_NEIGHBOURS: Final = 50_000_000
_SHARES: Final[dict[Contained, int]] = {
    "query": int(kernel.OF_QUERY),
    "neighbour": int(kernel.OF_NEIGHBOUR),
    "either": int(kernel.OF_SMALLER),
}
# Positions of queries and of their neighbours, similarities, ranks from 1.
_Ranked = tuple[I64, I64, npt.NDArray[np.float64], I64]
# Settings that do not apply to neighbours.
_NOT_HERE: Final = ("against", "mark", "dry_run", "audit", "pairs", "collapse_empty")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SearchInput:
    """Documents or queries, ready to search; `name` returns the ids of rows and, from files, file and row."""

    compared: Compared
    rows: I64
    config: Config
    name: Callable[[I64], list[pa.Array]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class NeighbourSources:
    """Documents in memory or paths of files; the same for queries, if there are any; ids of documents in memory."""

    documents: Any
    queries: Any = None
    ids: Sequence[Any] | None = None

    def paths(self) -> tuple[list[str] | None, list[str] | None]:
        """Return the paths of the documents and of the queries, None for what is not in files."""
        return paths_of(self.documents), paths_of(self.queries)


def search(
    sources: NeighbourSources,
    wanted: Wanted,
    config: Config,
    watch: Watch,
    *,
    engine: Any = None,
    out: str | None = None,
) -> pa.Table:
    """Return the neighbours of documents, or of queries among them; of files, also write them to `out`."""
    check_settings(config)
    inputs, queries = sources.paths()
    if "-" in (inputs or ()) and "-" in (queries or ()):
        raise ConfigError(
            "standard input can be read only once, got `-` for both the source and `queries`",
            hint="save one of them to a file",
        )
    if inputs is None:
        check_in_memory(config, out=out)
    if out is None:
        return _search(sources, wanted, config, watch, engine, None)
    target = check_target(out)
    with reserved_table(target, overwrite=config.overwrite) as write:
        found = _search(sources, wanted, config, watch, engine, target)
        write(found)
    return found


def _search(
    sources: NeighbourSources,
    wanted: Wanted,
    config: Config,
    watch: Watch,
    engine: Any,
    target: Path | None,
) -> pa.Table:
    if config.engine == "spark":
        return _search_on_spark(sources, wanted, config, watch, engine, target)
    with _temporary_folder() as folder, _temporary_folder() as other:
        budget = MemoryBudget()

        def prepare(
            source: Any, ids: Sequence[Any] | None, config: Config, folder: str
        ) -> SearchInput:
            paths = paths_of(source)
            if paths is None:
                check_in_memory(config)
                return prepare_memory(source, ids, config, watch)
            if ids is not None:
                raise ConfigError(
                    "`ids` must be left out for files",
                    hint="id_column= names the column with the ids",
                )
            return prepare_files(paths, config, Path(folder), budget, watch, target)

        docs = prepare(sources.documents, sources.ids, config, folder)
        asked = None
        if sources.queries is not None:
            asked = prepare(
                sources.queries, None, Config.of(config, dimension=docs.config.dimension), other
            )
        return find_neighbours(docs, asked, wanted, watch)


def _search_on_spark(
    sources: NeighbourSources,
    wanted: Wanted,
    config: Config,
    watch: Watch,
    engine: Any,
    target: Path | None,
) -> pa.Table:
    """Search files on Spark; raise for any other source."""
    from neardup.jobs.neighbours_on_spark import search_files

    inputs, queries = sources.paths()
    if (
        inputs is None
        or (sources.queries is not None and queries is None)
        or sources.ids is not None
    ):
        raise ConfigError(
            "neighbours on Spark needs files as the source and as queries, and no `ids`",
            hint="use engine='local'",
        )
    return search_files((inputs, queries), wanted, config, watch, engine=engine, target=target)


class Wanted(NamedTuple):
    """The requested neighbours: the k nearest, None for all at or above the threshold; and which must be contained."""

    k: int | None
    contained: Contained


def check_wanted(k: Any, contained: Any, config: Config) -> Wanted:
    """Check and return the requested neighbours."""
    check_choice("contained", contained, tuple(_SHARES))
    if contained != "either" and not config.asks_containment:
        raise ConfigError(
            f"`contained` needs the measure 'containment', got {config.measure!r}",
            hint="pass measure='containment'",
        )
    most = as_count_or_all("k", k)
    if most is None and not config.is_threshold_given:
        raise ConfigError(
            "`k` 'all' lists all neighbours above a threshold, but no threshold is given",
            hint="pass threshold=0.5, for example, or a number k",
        )
    return Wanted(most, contained)


def check_settings(config: Config) -> None:
    """Raise for settings that do not apply to neighbours."""
    for name in _NOT_HERE:
        if getattr(config, name):
            if name == "against":
                hint = "pass the new documents as queries="
            else:
                hint = f"leave `{name}` out"
            raise ConfigError(f"`{name}` does not apply to neighbours", hint=hint)


def find_neighbours(
    docs: SearchInput, queries: SearchInput | None, wanted: Wanted, watch: Watch
) -> pa.Table:
    """Return the nearest neighbours of each query, or of each document, with similarity and rank."""
    is_containment = docs.config.asks_containment
    asking = docs if queries is None else queries
    num_queries = asking.rows.size
    num_docs = docs.rows.size - (queries is None)
    if not num_queries or num_docs < 1:
        return neighbours_schema(asking, docs).empty_table()
    options = options_for(docs.config, wanted, num_docs)
    with watch.stage("build_index"):
        finder = finder_for(docs.compared, None if queries is None else queries.compared, options)
    find = find_all if wanted.k is None else find_best

    def answer(start: int, stop: int) -> _Ranked:
        return find(finder, start, stop)

    at, docs_at, values, ranks = _find_side_by_side(answer, num_queries, docs.config, watch)
    own = asking.name(asking.rows[at])
    other = docs.name(docs.rows[docs_at])
    shares: Sequence[npt.NDArray[np.float64]] = ()
    if isinstance(finder, SetFinder) and is_containment:
        shares = finder.shares(at, docs_at)
    columns = neighbours_schema(asking, docs)
    return pa.table(
        [own[0], other[0], values, ranks, *shares, *own[1:], *other[1:]], schema=columns
    )


def neighbours_schema(asking: SearchInput, docs: SearchInput) -> pa.Schema:
    """Return the schema of the neighbours of `asking` among `docs`."""
    return schema.neighbours(
        _name_types(asking), _name_types(docs), has_shares=docs.config.asks_containment
    )


def _name_types(side: SearchInput) -> list[pa.DataType]:
    return [column.type for column in side.name(side.rows[:0])]


def options_for(config: Config, wanted: Wanted, num_docs: int) -> SearchOptions:
    """Return how to search among `num_docs` documents."""
    least = config.threshold if config.is_threshold_given else 0.0
    # Neighbours must exceed this; a similarity of 0 never counts.
    above = math.nextafter(least, 0.0) if least > 0 else 0.0
    if config.asks_containment:
        share = _SHARES[wanted.contained]
    else:
        share = int(kernel.OF_UNION)
    return SearchOptions(k=max(min(wanted.k or 1, num_docs), 1), above=above, share=share)


def _find_side_by_side(
    find: Callable[[int, int], _Ranked], num_queries: int, config: Config, watch: Watch
) -> _Ranked:
    """Answer all queries in parallel, one span per task."""
    counted = _Counted(watch)
    with watch.stage("compare", num_queries) as advance:

        def answer(start: int) -> _Ranked:
            stop = min(start + SPAN, num_queries)
            found = find(start, stop)
            advance(stop - start)
            counted.add(found[0].size)
            return found

        starts = range(0, num_queries, SPAN)
        with one_blas_thread() if len(starts) > 1 else contextlib.nullcontext():
            parts = LocalEngine(config.threads).side_by_side(answer, starts)
    at, docs_at, values, ranks = zip(*parts, strict=True)
    return (
        np.concatenate(at),
        np.concatenate(docs_at),
        np.concatenate(values),
        np.concatenate(ranks),
    )


class _Counted:
    """Counts neighbours, and warns once if there are many."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._count = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Count neighbours that were found, on any thread."""
        with self._lock:
            were_few = self._count < MANY_NEIGHBOURS
            self._count += count
            if were_few and self._count >= MANY_NEIGHBOURS:
                self._watch.warn(
                    f"more than {MANY_NEIGHBOURS:,} neighbours to list, all held in memory; a higher threshold or a "
                    "smaller k lists fewer"
                )


def find_best(finder: Finder, start: int, stop: int) -> _Ranked:
    """Return the k nearest of some queries, best first."""
    values, docs_at = finder.find(start, stop)
    at, ranks = np.nonzero(docs_at >= 0)
    best = docs_at[at, ranks]
    return start + at, best, values[at, ranks], ranks + 1


def find_all(finder: Finder, start: int, stop: int) -> _Ranked:
    """Return all neighbours of some queries, best first."""
    at, docs_at, values = finder.find_all(start, stop)
    order = np.lexsort((docs_at, -values, at))
    at = at[order]
    docs_at = docs_at[order]
    values = values[order]
    return at, docs_at, values, np.arange(at.size) - np.searchsorted(at, at) + 1


def prepare_memory(
    source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch
) -> SearchInput:
    """Read and shingle documents in memory."""
    with watch.stage("read"):
        read = memory.read(source, config, ids=ids)
        config = memory.with_dimension(read, config)
    if read.rejected.num_rows:
        warn_of_rejected(
            read.rejected.num_rows, read.documents.num_rows, read.first_rejected(), config, watch
        )
    documents = memory.InMemoryDocuments(read.documents, read.original.num_rows)
    engine = LocalEngine(config.threads)
    with watch.stage("shingle", documents.total, documents.unit) as advance:
        batches = list(documents.read(0, lambda _: None))

        def compare(at: int) -> Compared:
            advance(batches[at].num_rows)
            return compared_of(batches[at], config)

        parts = engine.side_by_side(compare, range(len(batches)))
    rows = read.documents.column("row").to_numpy()
    return SearchInput(
        compared=_joined(parts, config),
        rows=rows,
        config=config,
        name=lambda rows: [read.ids.take(pa.array(rows))],
    )


class MemoryBudget:
    """Counts the memory that the index will take, and raises once it exceeds what was free at the first batch."""

    def __init__(self) -> None:
        self._room = 0
        self._needed = 0

    def add(self, compared: Compared, engine: LocalEngine) -> Compared:
        """Count a batch of documents; unsynchronised threads are accurate enough."""
        self._room = self._room or engine.room()
        size = sum(part.nbytes for part in compared.items if isinstance(part, np.ndarray))
        self._needed += size * BYTES_A_SHINGLE // 8 if hasattr(compared.items, "ends") else 3 * size
        self.check(self._needed, self._room)
        return compared

    def check(self, needed: int, room: int) -> None:
        """Raise if the index takes more bytes than there is room for."""
        if needed > room:
            raise DataError(
                f"neighbours are found in memory, and the index of these documents exceeds the available "
                f"{room / 1e9:.1f} GB",
                hint="pass a larger `memory`, fewer documents, or list pairs above a threshold with `neardup pairs`",
            )


def prepare_files(
    paths: Sequence[str],
    config: Config,
    folder: Path,
    budget: MemoryBudget,
    watch: Watch,
    target: Path | None = None,
) -> SearchInput:
    """Read and shingle the documents of files; `folder` holds their notes, `target` is the output."""
    with watch.stage("read"):
        paths, _ = spool(paths, folder / STANDARD_INPUT, config)
        found = find_files(paths, config, watch.warn)
        if target is not None:
            check_apart(target, found)
        config = with_dimension(found, config)
        documents = FileReader(FileLayout(found, 0, config), Workspace(folder))
    engine = LocalEngine(config.threads, Workspace(folder), config.memory)
    with watch.stage("shingle", documents.total, documents.unit) as advance:

        def compare(part: int) -> list[tuple[I64, Compared]]:
            return [
                (batch.column("row").to_numpy(), budget.add(compared_of(batch, config), engine))
                for batch in documents.read(part, advance)
            ]

        parts = engine.side_by_side(
            compare, range(documents.num_parts), in_order=documents.stops_at_first
        )
        documents.finish_reading(engine.sort)
    notes = documents.notes
    if num_rejected := notes.count("rejected"):
        num_documents = notes.count("documents")
        warn_of_rejected(num_rejected, num_documents, first_rejected(notes), config, watch)
    rows: list[I64] = [np.empty(0, np.int64)]
    compared: list[Compared] = []
    for first_row, batches in zip(documents.first_rows.tolist(), parts, strict=False):
        for own, items in batches:
            rows.append(own + first_row)
            compared.append(items)
    names = RowNames(documents.layout, notes)
    return SearchInput(
        compared=_joined(compared, config),
        rows=np.concatenate(rows),
        config=config,
        name=lambda wanted: _names(names, wanted),
    )


def check_target(out: str) -> Path:
    """Return the output file; raise if it cannot be written."""
    known_ending(out)
    check_writable(Path(out))
    return Path(out)


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for notes."""
    return tempfile.TemporaryDirectory(prefix="neardup-")


def compared_of(batch: pa.RecordBatch, config: Config) -> Compared:
    """Return the items and groups of the documents of a batch."""
    items = measure_of(config).items(batch.column("text"), config)
    return Compared(items, batch.column("group").to_numpy())


def _joined(parts: Sequence[Compared], config: Config) -> Compared:
    if not parts:
        return Compared(
            measure_of(config).items(pa.array([], content_type(config)), config),
            np.empty(0, np.int64),
        )
    groups = np.concatenate([part.groups for part in parts])
    return Compared(concatenated([part.items for part in parts]), groups)


def _names(names: RowNames, rows: I64) -> list[pa.Array]:
    distinct, inverse = np.unique(rows, return_inverse=True)
    located, numbers = names.locate(rows)
    return [names.ids_of(distinct).take(pa.array(inverse)), located, pa.array(numbers)]


def warn_of_rejected(
    num_rejected: int, num_documents: int, first: RejectedRow, config: Config, watch: Watch
) -> None:
    """Warn about rejected rows, of which `first` is one; raise if there are no others."""
    if not num_documents:
        raise all_rejected(num_rejected, first, config)
    if num_rejected > num_documents:
        message = most_rejected(num_rejected, num_rejected + num_documents, first, config)
        watch.warn(message, is_urgent=True)
    else:
        if num_rejected == 1:
            rejected = "1 row cannot be used:"
        else:
            rejected = f"{num_rejected:,} rows cannot be used; the first is"
        watch.warn(f"{rejected} {first}")
