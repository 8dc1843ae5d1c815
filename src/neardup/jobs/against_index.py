"""A run on files against an index: documents similar to one in the index are removed, the rest is deduplicated.

The index is queried while the files are first read, so none of its texts is read again. A document
with a match in the
index never reaches the stages: it is removed, whatever else it is similar to, and no other is
removed in its favour.

With `update`, the kept documents are inserted into the index in one change, made once, after
publishing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.events import Watch
from neardup.index.index import Index
from neardup.index.index_folder import is_index
from neardup.index.input_batches import batches_of
from neardup.io.documents.file_reader import Batches
from neardup.io.documents.layout import I64, FileLayout
from neardup.io.documents.notes import Notes
from neardup.io.documents.row_names import RowNames
from neardup.io.storage.workspace import REPORT, digest, read_batches, write_batches
from neardup.jobs.files import LocalFiles
from neardup.jobs.run import Results
from neardup.jobs.start import RunSetup
from neardup.theory.plan import Plan

# Row in the part, the most similar document of the index, and their similarity.
_KNOWN: Final = pa.schema(
    [
        ("row", pa.int64()),
        ("doc_id", pa.string()),
        ("number", pa.int64()),
        ("similarity", pa.float64()),
    ]
)
_NOT_HERE: Final = (
    *("passages", "pairs", "audit", "ignore", "ignore_common", "decisions", "weights"),
    *("against_text_column", "against_items_column", "against_id_column"),
)


def indexes_of(config: Config) -> list[str]:
    """Return which of the paths of `against` are indexes."""
    return [path for path in config.against if is_index(path)]


def check_against_index(config: Config) -> None:
    """Raise for settings that do not apply to a run against an index."""
    found = indexes_of(config)
    if not found:
        return
    if len(config.against) > 1:
        raise ConfigError(
            f"`against` names the index {found[0]} together with other paths",
            hint="merge indexes, or insert the files into it",
        )
    for name in _NOT_HERE:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` needs files in `against`, not an index", hint=f"leave `{name}` out"
            )
    for name, value in (
        ("engine", "local"),
        ("cluster", "leader"),
        ("group_column", None),
        ("per_cluster", 1),
    ):
        if getattr(config, name) != value:
            raise ConfigError(
                f"`{name}` {getattr(config, name)!r} needs files in `against`, not an index",
                hint=f"leave `{name}` out",
            )
    with Index.open(found[0], read_only=True) as index:
        index.check_answers(config)


class IndexMatches:
    """The documents with a match in the index, which are left out while files are read, and noted on disk."""

    def __init__(self, setup: RunSetup) -> None:
        self.path = indexes_of(setup.config)[0]
        self._index = Index.open(self.path, read_only=True)
        self.plan: Plan = self._index.plan
        self._workspace = setup.workspace
        self._threshold = setup.config.threshold
        self._known: pa.Table | None = None

    def choose(self, part: int, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the documents of a part without a match, in the first pass; note the others."""
        found: list[pa.RecordBatch] = []
        for batch in batches:
            found.append(self._ask(batch))
            yield _without(batch, found[-1].column("row").to_numpy())
        name = _matches_file(part)
        write_batches(self._workspace.draft(name), iter(found), _KNOWN)
        self._workspace.finish(name)

    def choose_again(self, part: int, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the documents of a part without a match, in a later pass."""
        known = self._stored(part).column("row").to_numpy()
        for batch in batches:
            yield _without(batch, known)

    def has_noted(self, part: int) -> bool:
        """Whether an interrupted run has noted the matches of a part."""
        return self._workspace.has(_matches_file(part))

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def _ask(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        queries, documents, similarities = self._index.best_matches(
            batch.column("text"), threshold=self._threshold
        )
        columns = [
            batch.column("row").to_numpy()[queries],
            [document.doc_id for document in documents],
            [document.number for document in documents],
            similarities,
        ]
        return pa.record_batch(
            [pa.array(column, kind) for column, kind in zip(columns, _KNOWN.types, strict=True)],
            schema=_KNOWN,
        )

    def _stored(self, part: int) -> pa.Table:
        return pa.Table.from_batches(
            read_batches(self._workspace.folder / _matches_file(part)), _KNOWN
        )

    def known(self, layout: FileLayout) -> pa.Table:
        """Return every document with a match in the index: its row in the run, and the match."""
        if self._known is None:
            tables = [_KNOWN.empty_table()]
            for part in range(layout.num_parts):
                stored = self._stored(part)
                rows = stored.column("row").to_numpy() + layout.first_rows[part]
                tables.append(stored.set_column(0, "row", pa.array(rows)))
            self._known = pa.concat_tables(tables).combine_chunks()
        return self._known


def _matches_file(part: int) -> str:
    return f"known/{part:06}.arrow"


def _without(batch: pa.RecordBatch, rows: I64) -> pa.RecordBatch:
    """Return a batch without some rows."""
    is_there = np.isin(batch.column("row").to_numpy(), rows)
    if not is_there.any():
        return batch
    return batch.filter(pa.array(~is_there))


class IndexedNames(RowNames):
    """The names of rows, and of documents of the index, whose rows are negative: -1 for the match of known row 0."""

    def __init__(self, layout: FileLayout, notes: Notes, matches: IndexMatches) -> None:
        super().__init__(layout, notes)
        self._matches = matches

    def ids_of(self, rows: I64) -> pa.Array:
        """Return the doc_id of each of some rows, ascending and distinct."""
        num_indexed = int(np.searchsorted(rows, 0))
        known = self._matches.known(self._layout)
        numbers = pa.array(-1 - rows[:num_indexed])
        indexed = schema.one_array(known.column("doc_id")).take(numbers)
        return pa.concat_arrays([indexed, super().ids_of(rows[num_indexed:])])

    def locate(self, rows: I64) -> tuple[pa.Array, I64]:
        """Return the file name and row number of each row; for a document of the index, its number."""
        is_indexed = rows < 0
        files, numbers = super().locate(np.where(is_indexed, 0, rows))
        if not is_indexed.any():
            return files, numbers
        indexed = self._matches.known(self._layout).column("number").to_numpy()
        numbers = np.where(is_indexed, indexed[np.where(is_indexed, -1 - rows, 0)], numbers)
        paths = np.where(is_indexed, self._matches.path, files.to_numpy(zero_copy_only=False))
        return pa.array(paths, pa.string()), numbers


class IndexedFiles(LocalFiles):
    """Files on one machine against an index."""

    def __init__(self, setup: RunSetup) -> None:
        self._matches = IndexMatches(setup)
        super().__init__(setup, self._matches)
        self.names = IndexedNames(self.layout, self.source.notes, self._matches)

    def results(self, outcome: pipeline.PipelineOutcome[pa.Table], watch: Watch) -> Results:
        """Write the tables; documents with a match in the index are among the removed ones."""
        self._warn_of_bands(outcome.plan, watch)
        selection = self._with_known(outcome.selection)
        members = self._with_known(outcome.clustered)
        return super().results(
            dataclasses.replace(outcome, selection=selection, members=members), watch
        )

    def _with_known(self, selection: pa.Table) -> pa.Table:
        """Return the selection with the matches of the index; documents of the index have negative rows."""
        known = self._matches.known(self.layout)
        # Documents with the same match are one cluster, whose kept row names the first of them.
        _, first, cluster = np.unique(
            known.column("number").to_numpy(), return_index=True, return_inverse=True
        )
        rows = [known.column("row"), pa.array(-1 - first[cluster]), known.column("similarity")]
        added = pa.table(rows, schema=schema.SELECTION)
        return pa.concat_tables([selection.select(schema.SELECTION.names), added]).sort_by("row")

    def _warn_of_bands(self, plan: Plan, watch: Watch) -> None:
        """Warn if the index finds less than the plan of the run says, as it does beside the exact method."""
        own = dataclasses.replace(self._matches.plan, threshold=self.config.threshold)
        if own.recall_at_threshold < plan.recall_at_threshold:
            watch.warn(
                f"the index {self._matches.path} was searched by its own bands: {own.judgement()}"
            )


def index_update(config: Config, out: str) -> Callable[[], None]:
    """Return a function that inserts the kept documents of a published run into the index of `against`."""
    found = indexes_of(config)
    if not found:
        raise ConfigError(
            "`update` needs an index in `against`",
            hint="create it with `neardup index create pages.index`, then pass against='pages.index'",
        )
    for name in ("mark", "dry_run", "items_column"):
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` and `update` cannot be combined", hint=f"leave `{name}` out"
            )
    if config.measure != "jaccard":
        raise ConfigError(
            f"`update` inserts texts, got `measure` {config.measure!r}",
            hint="insert the kept files",
        )
    return partial(_insert, found[0], Path(out))


def _insert(index_path: str, out: Path) -> None:
    # The report of a run is unique, so its digest identifies the run.
    tag = f"{out.resolve()} {digest(out / REPORT)}"
    with Index.open(index_path) as index:
        # A row whose payload is not one would be rejected, and its copies would then be kept by the
        # next run.
        index.insert_many(out, payload="", expires="", tag=tag)


def check_new_ids(setup: RunSetup) -> None:
    """Raise if the index already has an id of the input, or if an id of the input is not unique."""
    seen: set[str] = set()
    with Index.open(indexes_of(setup.config)[0], read_only=True) as index:
        for batch in batches_of([Path(file.path) for file in setup.own], setup.config, named=True):
            known = index.known_ids(batch.ids)
            if known:
                raise DataError(
                    f"the index {index.path} already has the id {known[0]!r} of the input",
                    hint="leave out `update`, or give new documents new ids",
                )
            for doc_id in batch.ids:
                if doc_id in seen:
                    raise DataError(
                        f"two documents of the input have the id {doc_id!r}",
                        hint="`update` needs an id for each",
                    )
                seen.add(doc_id)
