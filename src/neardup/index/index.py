"""The index on disk: insert documents, look up similar ones, and remove them."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import check_choice
from neardup.errors import ConfigError, DataError
from neardup.events import Progress
from neardup.index import batches, database
from neardup.index.answers import (
    Inserted,
    Match,
    Stored,
    as_time,
    match_of,
    stored_of,
    write_payload,
)
from neardup.index.batches import ON_DUPLICATE, settle
from neardup.index.disk_sync import sync_folder
from neardup.index.finding import answer
from neardup.index.folder import FolderStore, make_folder
from neardup.index.index_folder import check_folder, check_path
from neardup.index.index_settings import (
    Settings,
    check_alike,
    check_durability,
    check_id,
    check_same,
    for_reading,
    is_id,
    new_settings,
    stored_settings,
)
from neardup.index.inputs import Batch, batches_of, one_content
from neardup.index.query_options import QueryOptions, check_query
from neardup.index.repair import Repair
from neardup.index.sketches import Sketches, sketch_contents
from neardup.index.store import Change, Document, Store, View, already_exists
from neardup.index.upgrade import upgrade
from neardup.io.storage.table_writer import TableWriter, known_ending
from neardup.io.storage.work_folder import check_writable, remove_folder, reserve
from neardup.measures.registry import measure_of

_TIMEOUT_SECONDS: Final = 10.0


class Index:
    """Documents on disk that can be searched for similar ones; settings are those of neardup.Config.

    Many processes and threads can read while one process writes. Once `insert` has returned, the document survives a
    crash. Calls release the GIL while they compute, read or write.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Index.create(f"{folder}/pages.index", size=2) as index:
    ...     index.insert("a", "to be or not to be")
    ...     index.query("to be or not to be!")[0].doc_id
    'a'
    """

    def __init__(self, store: Store, settings: Settings, path: Path) -> None:
        """Wrap an open store; use `create` or `open` instead."""
        self._store, self._settings, self.path = store, settings, path

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        store: str = "shingles",
        containment: bool = False,
        durability: str = "full",
        config: Config | None = None,
        **settings: Any,
    ) -> Self:
        """Create an empty index in a new folder, and open it.

        Args:
            path: the folder, which must not exist.
            store: what to store of each document: "shingles", "text" (also the text), or "signature" (smallest, but
                similarities are estimates).
            containment: also store postings of every shingle, so that `query` can search by containment.
            durability: "full": every insert survives a power cut; "fast": a power cut may lose the last inserts.
            config: settings to start from.
            settings: fields of Config that define similarity and how files are read.
        """
        check_durability(durability, 0)
        check_path(path)
        chosen, folder = new_settings(Config.of(config, **settings), store, containment=containment), Path(path)
        if os.path.lexists(folder):
            raise ConfigError(
                f"{folder} already exists",
                hint="choose another path; `neardup index insert` adds documents to an existing index",
            )
        check_writable(folder, "path")
        with reserve(folder, draft="index") as work:
            make_folder(work / "index")
            database.create(work / "index", chosen.as_dict())
            sync_folder(work / "index")
            (work / "index").rename(folder)
            sync_folder(folder.absolute().parent)
            remove_folder(work)
        return cls.open(folder, durability=durability)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        read_only: bool = False,
        *,
        durability: str = "full",
        timeout: float = _TIMEOUT_SECONDS,
        **settings: Any,
    ) -> Self:
        """Open an index; only one process can write at a time, and a second one waits up to `timeout` seconds.

        Settings, if given, must equal those the index was created with.
        """
        check_durability(durability, timeout)
        check_path(path)
        folder = Path(path)
        check_folder(folder)
        if not read_only:
            upgrade(folder, timeout)
        stored = stored_settings(database.read_meta(folder))
        check_same(stored, settings)
        store = FolderStore(folder, stored.layout, read_only=read_only, durability=durability, timeout=timeout)
        return cls(store, stored, folder)

    def close(self) -> None:
        """Let other processes write; everything inserted is already on disk."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def insert(self, doc_id: str, text: Any, payload: Any = None, expires: Any = None) -> None:
        """Store a document; it is on disk when this returns. An id that already exists is an error.

        Args:
            doc_id: its id.
            text: the text, or the items or vector if the index compares those.
            payload: a small JSON object that is returned with every match.
            expires: when the document disappears: a datetime, or seconds since 1970.
        """
        document = self._document(doc_id, payload, expires)
        sketches = self._sketch(text)
        self._store.change(lambda change: self._put(change, document, sketches, text))

    def insert_many(
        self,
        source: Any,
        *,
        ids: Sequence[Any] | None = None,
        progress: Progress | None = None,
        config: Config | None = None,
        tag: str | None = None,
    ) -> batches.Stored:
        """Store the documents of a source, all or none; return their number and the rejected rows.

        Args:
            source: any source of neardup.deduplicate with ids; files; or the folder of a finished run.
            ids: one id per document.
            progress: called with the events of neardup.events.
            config: settings for reading files, such as their columns.
            tag: a name for this change; if a change with this name was already made, nothing is done.
        """
        read, chosen = self._read(source, ids, config, named=True)
        return batches.insert_many(self._store, read, chosen, progress, tag)

    def insert_new(
        self, doc_id: str, text: Any, on_duplicate: str = "skip", payload: Any = None, expires: Any = None
    ) -> Inserted:
        """Store a document unless a similar one exists; the check and the insert are one atomic step.

        Args:
            doc_id: its id.
            text: as for `insert`.
            on_duplicate: what to do if the index has a similar document: "skip" stores nothing, "replace" removes it
                and stores the new one, "link" makes the id an alias of it, "insert" stores the new one as well.
            payload: as for `insert`.
            expires: as for `insert`.
        """
        check_choice("on_duplicate", on_duplicate, ON_DUPLICATE)
        document, sketches = self._document(doc_id, payload, expires), self._sketch(text)

        def make(change: Change) -> Inserted:
            if change.numbers_of([document.doc_id]):
                raise already_exists(document.doc_id)
            best = answer(change, sketches, QueryOptions(1, self.config.threshold), self._settings)[0]
            if best:
                settle(change, document.doc_id, best[0].document, on_duplicate)
            if not best or on_duplicate in ("insert", "replace"):
                self._put(change, document, sketches, text)
            match = match_of(*best[0], is_estimate=self._is_estimate) if best else None
            return Inserted(match is None, match)

        return self._store.change(make)

    def insert_new_many(
        self,
        source: Any,
        on_duplicate: str = "skip",
        *,
        ids: Sequence[Any] | None = None,
        progress: Progress | None = None,
        config: Config | None = None,
    ) -> pa.Table:
        """Call `insert_new` for every document of a source in turn, all or none.

        Returns:
            A table of doc_id, is_new, match_id and similarity. The metadata `rejected` of its schema is a JSON list of
            the place and reason of every rejected row, if there are any.
        """
        check_choice("on_duplicate", on_duplicate, ON_DUPLICATE)
        read, chosen = self._read(source, ids, config, named=True)
        return batches.insert_new_many(self._store, read, chosen, on_duplicate, progress)

    def query(
        self,
        text: Any,
        k: int | None = 10,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
    ) -> list[Match]:
        """Return the most similar documents, best first.

        Args:
            text: as for `insert`.
            k: the maximum number of matches; None lists all.
            threshold: the minimum similarity; by default that of the index, and never below it.
            where: conditions on the payload: {"lang": "de", "day": {"gte": "2026-01-01"}, "site": ["a", "b"]}.
            since: only documents inserted after this time.
            containment: find documents that contain at least this share of the text, or of which the text contains
                this share, instead of similar ones; the index must have been created with containment=True.
        """
        return list(self.matches(text, k, threshold, where, since, containment))

    def matches(self, text: Any, k: int | None, *others: Any) -> Generator[Match]:
        """Yield what `query` returns; payloads are parsed one by one, so that a server can stop at a limit of bytes."""
        asked = self._options(k, *others)
        sketches = self._sketch(text)
        hits = self._store.read(lambda view: answer(view, sketches, asked, self._settings))[0]
        for hit in hits:
            yield match_of(*hit, is_estimate=self._is_estimate)

    def query_many(  # noqa: PLR0913 - all but the first have a default
        self,
        source: Any,
        k: int | None = 10,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
        *,
        ids: Sequence[Any] | None = None,
        config: Config | None = None,
    ) -> pa.Table:
        """Return the documents most similar to each document of a source: query_id, doc_id, similarity, rank.

        With `containment` also containment_query and containment_doc. Rejected rows are named as by `insert_new_many`.
        """
        asked = self._options(k, threshold, where, since, containment)
        read, chosen = self._read(source, ids, config, named=False)
        return batches.query_many(self._store, read, chosen, asked)

    def best_matches(self, contents: pa.Array, threshold: float) -> batches.BestMatches:
        """Return the most similar document for each of `contents` that has one, as a run needs it."""
        return self._store.read(lambda view: batches.best_matches(view, contents, threshold, self._settings))

    def check_answers(self, config: Config) -> None:
        """Raise if the index cannot be used by a run with these settings."""
        if self._is_estimate:
            raise ConfigError(f"the index {self.path} stores signatures only", hint="create it with store='shingles'")
        mine, theirs = (
            f"{settings.measure} {measure_of(settings).signature_format(settings)}"
            for settings in (self.config, config)
        )
        if mine != theirs:
            raise ConfigError(
                f"the index {self.path} has signatures {mine}, but those of the run are {theirs}",
                hint="run with the settings that the index was created with",
            )
        self._options(None, config.threshold)

    def remove(self, ids: str | Iterable[str]) -> int:
        """Remove documents or aliases by their ids; return how many of them existed."""
        if not isinstance(ids, Iterable):
            raise ConfigError(f"`ids` must be an id or several, got {ids!r}", hint="remove('a') or remove(['a', 'b'])")
        wanted = [ids] if isinstance(ids, str) else list(ids)
        for doc_id in wanted:
            check_id(doc_id)
        return self._store.change(lambda change: batches.remove(change, wanted))

    def replace(self, doc_id: str, text: Any, payload: Any = None, expires: Any = None) -> None:
        """Replace the text of an existing document."""
        document, sketches = self._document(doc_id, payload, expires), self._sketch(text)

        def make(change: Change) -> None:
            held = change.fetch(change.numbers_of([document.doc_id]).values())
            own = [entry for entry in held.values() if entry.doc_id == document.doc_id]
            if not own:
                raise _unknown(document.doc_id)
            change.remove(own)
            self._put(change, document, sketches, text)

        self._store.change(make)

    def get(self, doc_id: str) -> Stored:
        """Return a document by its id or alias, with its text if the index stores texts; raise if it does not exist."""

        def ask(view: View) -> Stored:
            for document in view.fetch(view.numbers_of([check_id(doc_id)]).values()).values():
                return stored_of(document, view.text_of(document.number))
            raise _unknown(doc_id)

        return self._store.read(ask)

    def ids(self) -> Iterator[str]:
        """Iterate over the ids of all documents, in insertion order."""
        return iter(self._store.read(lambda view: [document.doc_id for document in view.documents()]))

    def known_ids(self, ids: Sequence[str]) -> list[str]:
        """Return those of `ids` that exist, as documents or aliases."""
        return list(self._store.read(lambda view: view.numbers_of(ids)))

    def __len__(self) -> int:
        return self._store.read(lambda view: int(view.count()["documents"]))

    def __contains__(self, doc_id: object) -> bool:
        return is_id(doc_id) and bool(self._store.read(lambda view: view.numbers_of([str(doc_id)])))

    def info(self) -> dict[str, Any]:
        """Return the counts, size and settings of the index."""
        counts = self._store.read(lambda view: view.count())
        num_bytes = sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        return {"path": str(self.path), **counts, "bytes": num_bytes, **self._settings.as_dict()}

    def check(self) -> list[str]:
        """Read the whole index; return a description of every damage, or an empty list if it is intact."""
        return self._store.check()

    def compact(self) -> None:
        """Free the space of removed and expired documents, and merge all runs into one."""
        self._store.compact()

    def repair(self) -> Repair:
        """Give up runs that are missing or damaged, so that the rest can be used again.

        Documents whose text is stored (store="text") are stored again; the ids of the others are in `lost`.
        """
        repair: Repair = self._store.repair(self._sketch_texts if self._settings.store == "text" else None)
        return repair

    def _sketch_texts(self, texts: Sequence[str]) -> Sketches:
        return sketch_contents(pa.array(texts, pa.large_string()), self._settings.plan, self.config)

    def snapshot(self, path: str | os.PathLike[str], *, copy: bool = False) -> None:
        """Copy the index to a new folder, completely or not at all, even while it is in use.

        Runs never change, so on the same disk the copy shares them by hard links, which takes no space; damage to a
        shared file damages both. With copy=True the files are copied.
        """
        check_path(path)
        self._store.snapshot(Path(path), copy=copy)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all documents to a .parquet, .jsonl or .csv file; return their number."""
        known_ending(path)
        if os.path.lexists(path):
            raise ConfigError(f"{path} already exists", hint="choose another file")
        with TableWriter(path, batches.EXPORTED) as writer:
            return self._store.read(lambda view: batches.export(view, writer.write))

    def pairs(self, other: Index) -> pa.Table:
        """Return the similar documents of two indexes: doc_a of this one, doc_b of the other, and similarity."""
        self._check_alike(other)
        return other._store.read(
            lambda theirs: self._store.read(lambda own: batches.pairs(own, theirs, other._settings))
        )

    def merge(self, other: Index) -> int:
        """Insert all documents of another index, all or none; return their number."""
        self._check_alike(other)
        return self._store.change(
            lambda change: other._store.read(lambda theirs: batches.merge(change, theirs, self._settings))
        )

    @property
    def config(self) -> Config:
        """The settings."""
        return self._settings.config

    @property
    def plan(self) -> Any:
        """The bands and rows, and what they promise."""
        return self._settings.plan

    @property
    def _is_estimate(self) -> bool:
        return self._settings.store == "signature"

    def _sketch(self, text: Any) -> Sketches:
        sketches = sketch_contents(one_content(text, self.config), self._settings.plan, self.config)
        return sketches._replace(items=None) if self._is_estimate else sketches

    def _read(self, source: Any, ids: Any, config: Config | None, *, named: bool) -> tuple[Iterator[Batch], Settings]:
        chosen = self._settings._replace(config=for_reading(self.config, config or self.config))
        return batches_of(source, chosen.config, ids=ids, named=named), chosen

    def _document(self, doc_id: str, payload: Any, expires: Any) -> Document:
        return Document(0, check_id(doc_id), time.time(), as_time("expires", expires), write_payload(payload))

    def _put(self, change: Change, document: Document, sketches: Sketches, text: Any) -> None:
        texts = [text] if self._settings.store == "text" else None
        change.put([document._replace(number=change.next_number)], sketches, texts)

    def _options(self, k: Any, *others: Any) -> QueryOptions:
        return check_query(self._settings, self.path, k, *others)

    def _check_alike(self, other: Any) -> None:
        if not isinstance(other, Index):
            raise ConfigError(f"`other` must be a neardup.Index, got {type(other).__name__}")
        check_alike((self._settings, self.path), (other._settings, other.path))


def _unknown(doc_id: str) -> DataError:
    return DataError(f"the index has no document {doc_id!r}", hint="`neardup index export` lists all ids")
