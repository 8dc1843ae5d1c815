"""The index on disk: insert documents, look up similar ones, and remove them."""

from __future__ import annotations

import os
import shutil
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import check_choice
from neardup.errors import ConfigError
from neardup.events import Progress
from neardup.index import bulk, sqlite
from neardup.index.bulk import ON_DUPLICATE, duplicate_of, handle_duplicate
from neardup.index.disk_sync import sync_folder
from neardup.index.facts import Facts, as_time, write_payload
from neardup.index.filters import filter_of
from neardup.index.folder_store import FolderStore, make_folder
from neardup.index.index_folder import bytes_below, check_folder, check_path
from neardup.index.memory_folder import discard, make_memory_folder
from neardup.index.readable_index import ReadableIndex, unknown, wanted_ids
from neardup.index.repair import Repair
from neardup.index.result_types import (
    EXPORTED,
    Inserted,
    InsertNewResult,
    InsertResult,
    PutResult,
    match_of,
)
from neardup.index.search import QueryOptions, search
from neardup.index.settings import (
    check_alike,
    check_current,
    check_durability,
    check_id,
    check_same,
    new_settings,
    stored_settings,
)
from neardup.index.sketches import Sketches, sketch_contents
from neardup.index.store import Change, Document, already_exists
from neardup.index.upgrade import upgrade
from neardup.io.storage.table_writer import TableWriter, known_ending
from neardup.io.storage.work_folder import check_writable, remove_folder, reserve

_TIMEOUT_SECONDS: Final = 10.0


class Index(ReadableIndex):
    """Documents on disk that can be searched for similar ones; settings are those of neardup.Config.

    Many processes and threads can read while one process writes. Once `insert` has returned, the
    document survives a crash. Calls release the GIL while they compute, read or write.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Index.create(f"{folder}/pages.index", size=2) as index:
    ...     index.insert("a", "to be or not to be")
    ...     index.query("to be or not to be!")[0].doc_id
    'a'
    """

    _discard: Callable[[], object] | None = None

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str] | None,
        *,
        store: str = "shingles",
        containment: bool = False,
        durability: str = "full",
        config: Config | None = None,
        **settings: Any,
    ) -> Self:
        """Create an empty index in a new folder, and open it.

        Args:
            path: the folder, which must not exist; None for an index in memory, which gives the same
                answers and is gone once it is closed or no longer used.
            store: what to store of each document: "shingles", "text" (also the text), or
                "signature" (smallest, but similarities are estimates).
            containment: also store postings of every shingle, so that `query` can search by
                containment.
            durability: "full": every insert survives a power cut; "fast": a power cut may lose the
                last inserts.
            config: settings to start from.
            settings: fields of Config that define similarity and how files are read.
        """
        check_durability(durability, 0)
        if path is None:
            folder = make_memory_folder()
            try:
                made = cls.create(
                    folder,
                    store=store,
                    containment=containment,
                    durability="fast",  # it does not outlive the process
                    config=config,
                    **settings,
                )
            except BaseException:
                shutil.rmtree(folder.parent, ignore_errors=True)
                raise
            made._is_in_memory = True
            made._discard = weakref.finalize(made, discard, made._store, made.path, os.getpid())
            return made
        check_path(path)
        chosen = new_settings(Config.of(config, **settings), store, containment=containment)
        folder = Path(path)
        if os.path.lexists(folder):
            raise ConfigError(
                f"{folder} already exists",
                hint="choose another path; `neardup index insert` adds documents to an existing index",
            )
        check_writable(folder, "path")
        with reserve(folder, draft="index") as work:
            make_folder(work / "index")
            sqlite.create(work / "index", chosen.as_dict())
            sync_folder(work / "index")
            (work / "index").rename(folder)
            sync_folder(folder.absolute().parent)
            remove_folder(work)
        return cls.open(folder, durability=durability)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
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
        stored = stored_settings(folder, sqlite.read_meta(folder))
        check_same(stored, settings)
        store = FolderStore(
            folder, stored.layout, read_only=read_only, durability=durability, timeout=timeout
        )
        return cls(store, stored, folder)

    def close(self) -> None:
        """Let other processes write; everything inserted is already on disk. An index in memory is deleted."""
        self._store.close()
        if self._discard is not None:
            self._discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def insert(
        self, doc_id: str | int, text: Any, *, payload: Any = None, expires: Any = None
    ) -> None:
        """Store a document; it is on disk when this returns. An id that already exists is an error.

        Args:
            doc_id: its id, a string; a whole number becomes its digits.
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
        payload: Any = None,
        expires: Any = None,
        progress: Progress | None = None,
        config: Config | None = None,
        tag: str | None = None,
    ) -> InsertResult:
        """Store the documents of a source, all or none; return their number and the rejected rows.

        Args:
            source: any source of neardup.deduplicate with ids; files; or the folder of a finished
                run.
            ids: one id per document.
            payload: the column or key with the payload of each document, as objects or JSON; or,
                except for files, one payload per document. By default the column `payload`, if
                there is one; "" stores none.
            expires: the same for the time when each document disappears: datetimes, or seconds
                since 1970.
            progress: called with the events of neardup.events.
            config: settings for reading files, such as their columns.
            tag: a name for this change; if a change with this name was already made, nothing is
                done.
        """
        read, chosen = self._read(source, ids, config, named=True, payload=payload, expires=expires)
        return bulk.insert_many(self._store, read, chosen, progress, tag)

    def insert_new(
        self,
        doc_id: str | int,
        text: Any,
        *,
        on_duplicate: str = "skip",
        payload: Any = None,
        expires: Any = None,
    ) -> Inserted:
        """Store a document unless a similar one exists; the check and the insert are one atomic step.

        Args:
            doc_id: its id.
            text: as for `insert`.
            on_duplicate: what to do if the index has a similar document: "skip" stores nothing,
                "replace" removes it and stores the new one, "link" makes the id an alias of it,
                "insert" stores the new one as well, "error" raises an error with its `match`.
            payload: as for `insert`.
            expires: as for `insert`.
        """
        check_choice("on_duplicate", on_duplicate, ON_DUPLICATE)
        document = self._document(doc_id, payload, expires)
        sketches = self._sketch(text)

        def make(change: Change) -> Inserted:
            if change.numbers_of([document.doc_id]):
                raise already_exists(document.doc_id)
            best = search(change, sketches, QueryOptions(1, self.config.threshold), self._settings)[
                0
            ]
            match = None
            if best:
                match = match_of(*best[0], is_estimate=self._is_estimate)
                if on_duplicate == "error":
                    raise duplicate_of(document.doc_id, match)
                handle_duplicate(change, document.doc_id, best[0].document, on_duplicate)
            if not best or on_duplicate in ("insert", "replace"):
                self._put(change, document, sketches, text)
            return Inserted(match is None, match)

        return self._store.change(make)

    def insert_new_many(
        self,
        source: Any,
        *,
        on_duplicate: str = "skip",
        ids: Sequence[Any] | None = None,
        payload: Any = None,
        expires: Any = None,
        progress: Progress | None = None,
        config: Config | None = None,
    ) -> InsertNewResult:
        """Call `insert_new` for every document of a source in turn, all or none; the arguments of `insert_many`.

        Returns:
            What happened to every row: stored, known, or rejected with a reason.
        """
        check_choice("on_duplicate", on_duplicate, ON_DUPLICATE)
        read, chosen = self._read(source, ids, config, named=True, payload=payload, expires=expires)
        return bulk.insert_new_many(self._store, read, chosen, on_duplicate, progress)

    def put(self, doc_id: str | int, text: Any, *, payload: Any = None, expires: Any = None) -> str:
        """Insert a document, or replace the one that has its id; return "inserted" or "replaced".

        An alias of another document becomes a document of its own. The aliases of a replaced
        document are removed.
        """
        document = self._document(doc_id, payload, expires)
        sketches = self._sketch(text)

        def make(change: Change) -> str:
            outcome = bulk.make_room(change, [document.doc_id], Facts())[0]
            self._put(change, document, sketches, text)
            return outcome

        return self._store.change(make)

    def put_many(
        self,
        source: Any,
        *,
        ids: Sequence[Any] | None = None,
        payload: Any = None,
        expires: Any = None,
        progress: Progress | None = None,
        config: Config | None = None,
    ) -> PutResult:
        """Call `put` for every document of a source in turn, all or none; the arguments of `insert_many`.

        Returns:
            What happened to every row: inserted, replaced, or rejected with a reason.
        """
        read, chosen = self._read(source, ids, config, named=True, payload=payload, expires=expires)
        return bulk.put_many(self._store, read, chosen, progress)

    def remove(
        self, ids: str | int | Iterable[str | int] | None = None, *, where: Any = None
    ) -> int:
        """Remove documents or aliases by their ids, or documents by their payload; return how many there were.

        Args:
            ids: one id or alias, or several.
            where: conditions on the payload, as for `query`, instead of ids; documents inserted
                meanwhile stay.
        """
        if where is None:
            wanted = wanted_ids(
                ids, "remove('a'), remove(['a', 'b']) or remove(where={'lang': 'de'})"
            )
            return self._store.change(lambda change: bulk.remove(change, wanted))
        if ids is not None:
            raise ConfigError(
                "`remove` takes `ids` or `where`, not both", hint="leave one of them out"
            )
        is_requested = filter_of(where, None)
        if is_requested is None:
            raise ConfigError(
                "`where` has no condition, so it would remove every document",
                hint="where={'lang': 'de'}",
            )
        return bulk.remove_matching(self._store, is_requested)

    def replace(
        self, doc_id: str | int, text: Any, *, payload: Any = None, expires: Any = None
    ) -> None:
        """Replace the text of an existing document."""
        document = self._document(doc_id, payload, expires)
        sketches = self._sketch(text)

        def make(change: Change) -> None:
            fetched = change.fetch(change.numbers_of([document.doc_id]).values())
            own = [entry for entry in fetched.values() if entry.doc_id == document.doc_id]
            if not own:
                raise unknown(document.doc_id)
            change.remove(own)
            self._put(change, document, sketches, text)

        self._store.change(make)

    def info(self) -> dict[str, Any]:
        """Return the counts, size and settings of the index, and the damage that merging segments has found, if any."""
        counts = self._store.read(lambda view: view.count())
        found = self._store.damage()
        damage = {"damage": found} if found else {}
        num_bytes = bytes_below(self.path)
        return {
            "path": str(self.path),
            **counts,
            "bytes": num_bytes,
            **damage,
            **self._settings.as_dict(),
        }

    def check(self) -> list[str]:
        """Read the whole index; return a description of every damage, or an empty list if it is intact."""
        return self._store.check()

    def compact(self) -> None:
        """Free the space of removed and expired documents, and merge all segments into one."""
        self._store.compact()

    def repair(self) -> Repair:
        """Give up segments that are missing or damaged, so that the rest can be used again.

        Documents whose text is stored (store="text") are stored again; the ids of the others are in
        `lost`.
        """
        repair: Repair = self._store.repair(
            self._sketch_texts if self._settings.store == "text" else None
        )
        return repair

    def _sketch_texts(self, texts: Sequence[str]) -> Sketches:
        return sketch_contents(pa.array(texts, pa.large_string()), self._settings.plan, self.config)

    def snapshot(self, path: str | os.PathLike[str], *, copy: bool = False) -> None:
        """Copy the index to a new folder, completely or not at all, even while it is in use.

        Segments never change, so on the same disk the copy shares them by hard links, which takes
        no space; damage to a shared file damages both. With copy=True the files are copied.
        """
        check_path(path)
        self._store.snapshot(Path(path), copy=copy)

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all documents to a .parquet, .jsonl or .csv file; return their number."""
        known_ending(path)
        if os.path.lexists(path):
            raise ConfigError(f"{path} already exists", hint="choose another file")
        with TableWriter(path, EXPORTED) as writer:
            return self._store.read(lambda view: bulk.export(view, writer.write))

    def pairs(self, other: Index) -> pa.Table:
        """Return the similar documents of two indexes: doc_a of this one, doc_b of the other, and similarity."""
        self._check_alike(other)
        return other._store.read(
            lambda theirs: self._store.read(lambda own: bulk.pairs(own, theirs, other._settings))
        )

    def merge(self, other: Index) -> int:
        """Insert all documents of another index, all or none; return their number."""
        check_current(self._settings, self.path)
        self._check_alike(other)
        return self._store.change(
            lambda change: other._store.read(
                lambda theirs: bulk.merge(change, theirs, self._settings)
            )
        )

    def _document(self, doc_id: str | int, payload: Any, expires: Any) -> Document:
        check_current(self._settings, self.path)
        return Document(
            0, check_id(doc_id), time.time(), as_time("expires", expires), write_payload(payload)
        )

    def _put(self, change: Change, document: Document, sketches: Sketches, text: Any) -> None:
        texts = [text] if self._settings.store == "text" else None
        change.put([document._replace(number=change.next_number)], sketches, texts)

    def _check_alike(self, other: Any) -> None:
        if not isinstance(other, Index):
            raise ConfigError(f"`other` must be a neardup.Index, got {type(other).__name__}")
        check_alike((self._settings, self.path), (other._settings, other.path))
