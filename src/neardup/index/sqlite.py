"""The SQLite file of an index: documents, ids, unflushed sketches, and the list of segments; every row has a digest.

Rows may be forged, so each value is checked for its type before it is used.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import secrets
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from neardup.errors import DataError
from neardup.index.index_folder import FILE, check_beside
from neardup.index.sketches import damaged
from neardup.index.sqlite_errors import explained
from neardup.index.store import Document

LOG: Final = f"{FILE}-wal"
# "NDUP" in the header of the SQLite file, and the version of these tables.
APPLICATION_ID: Final = 0x4E445550
VERSION: Final = 2
# Older versions whose tables `upgrade` turns into those of this one.
UPGRADABLE: Final = (1,)
_BUSY_SECONDS: Final = 60.0
_MAX_LOG_PAGES: Final = 16_000
_CACHE_KIB: Final = 32 << 10
# SQLite takes 32,766 values in one statement; a few hundred are as fast.
_AT_ONCE: Final = 500
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1), next_number INTEGER NOT NULL, generation INTEGER NOT NULL,
    documents INTEGER NOT NULL, index_id TEXT NOT NULL, digest INTEGER NOT NULL
);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY, doc_id TEXT NOT NULL, inserted REAL NOT NULL, expires REAL, payload TEXT,
    met INTEGER NOT NULL, first_met REAL, last_met REAL, digest INTEGER NOT NULL
);
CREATE INDEX documents_by_expiry ON documents (expires) WHERE expires IS NOT NULL;
CREATE TABLE names (doc_id TEXT PRIMARY KEY, number INTEGER NOT NULL, is_alias INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX aliases_by_number ON names (number) WHERE is_alias;
CREATE TABLE texts (number INTEGER PRIMARY KEY, text BLOB NOT NULL, digest INTEGER NOT NULL);
CREATE TABLE fresh (number INTEGER PRIMARY KEY, sketch BLOB NOT NULL, digest INTEGER NOT NULL);
CREATE TABLE runs (
    name TEXT PRIMARY KEY, documents INTEGER NOT NULL, place INTEGER NOT NULL, digest BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE tags (tag TEXT PRIMARY KEY, made REAL NOT NULL) WITHOUT ROWID;
"""
# Which documents have expired at a time, as `Document.is_expired`; every statement that asks uses
# one of the two.
EXPIRED: Final = "expires <= ?"
_IS_LIVE: Final = f"({EXPIRED}) IS NOT TRUE"
_COLUMNS: Final = "number, doc_id, inserted, expires, payload, met, first_met, last_met, digest"
_OPTIONAL_TIME: Final = (float, type(None))
_COLUMN_TYPES: Final[tuple[Any, ...]] = (
    int,
    str,
    float,
    _OPTIONAL_TIME,
    (str, type(None)),
    int,
    _OPTIONAL_TIME,
    _OPTIONAL_TIME,
)
SEGMENT_NAME: Final = re.compile(r"[0-9]{8}-[0-9a-f]{8}\.run")
# Numbers of documents count up from 1; one above this is forged, and could overflow.
_MAX_NUMBER: Final = 1 << 62
# A text of this size is an error on its way in, so a row that inflates to more was forged.
MAX_TEXT_BYTES: Final = 1 << 28
_SEGMENT_DIGEST_BYTES: Final = 16


class State(NamedTuple):
    """What changes with every commit; index_id: random, tells an index from another at the same path."""

    next_number: int
    generation: int
    documents: int
    index_id: str


class StoredSegment(NamedTuple):
    """A segment that a commit names; digest: that of the header of its file, which has those of its sections."""

    name: str
    documents: int
    digest: bytes


def is_immutable(folder: Path) -> bool:
    """Whether an index can only be read without locks.

    Even to read, SQLite creates a log and a shared-memory file beside its file, unless it is opened
    as immutable.
    """
    return not os.access(folder, os.W_OK) and not (folder / LOG).exists()


def connect(folder: Path, *, writable: bool, immutable: bool | None = None) -> sqlite3.Connection:
    """Open the SQLite file of an index; immutable: read it without locks, by default if there is no other way."""
    check_beside(folder)
    mode = "rw" if writable else "ro"
    if not writable and (is_immutable(folder) if immutable is None else immutable):
        mode = "ro&immutable=1"
    address = f"{(folder / FILE).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
        cached_statements=256,
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA trusted_schema = OFF")
    if writable:
        # In another mode, which only somebody else can have set, a commit waits for all readers.
        connection.execute("PRAGMA journal_mode = WAL")
        # NORMAL syncs only around a checkpoint; `CommitLog` syncs commits, one sync for all that
        # threads have made.
        connection.execute("PRAGMA synchronous = NORMAL")
        # On macOS, a sync otherwise leaves the data in the cache of the drive.
        connection.execute("PRAGMA fullfsync = ON")
        # `Merging` copies the log into the file in its thread; only a log that grows faster is
        # copied by a commit.
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MAX_LOG_PAGES}")
    return connection


def create(folder: Path, meta: dict[str, Any]) -> None:
    """Create the SQLite file of a new index."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    try:
        # Before the first table: `compact` frees pages in small steps, instead of rewriting the
        # file.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        value = json.dumps(meta, sort_keys=True)
        connection.execute(
            "INSERT INTO meta VALUES ('settings', ?), ('digest', ?)",
            (value, str(row_digest(value))),
        )
        insert_state(connection, State(1, 0, 0, new_index_id()))
    finally:
        connection.close()


def new_index_id() -> str:
    """Return a random id for an index."""
    return secrets.token_hex(16)


def insert_state(connection: sqlite3.Connection, state: State) -> None:
    """Store the first state of an index."""
    connection.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?, ?)", (*state, row_digest(*state)))


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the stored settings of an index; raise if the folder is not an index, or one of another version."""
    with explained(folder), contextlib.closing(connect(folder, writable=False)) as connection:
        version = stored_version(connection, folder)
        if version != VERSION:
            if version in UPGRADABLE:
                hint = "open it for writing once, which updates the format"
            else:
                hint = "use the neardup that wrote it, or build the index again"
            raise DataError(
                f"the index {folder} has the format {version}, but this neardup reads {VERSION}",
                hint=hint,
            )
        if _schema(connection) != _expected_schema():
            raise damaged(f"the tables in {folder / FILE} are not those of an index")
        rows = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    value = rows.get("settings", "")
    if rows.get("digest") != str(row_digest(value)):
        raise damaged(f"the settings in {folder / FILE} have a wrong checksum")
    try:
        meta = json.loads(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise damaged(f"the settings in {folder / FILE} are not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise damaged(f"the settings in {folder / FILE} are not a JSON object")
    return meta


def stored_version(connection: sqlite3.Connection, folder: Path) -> int:
    """Return the version of the tables; raise if neardup did not write them."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise DataError(
            f"{folder / FILE} was not written by neardup", hint="name the folder of an index"
        )
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the definitions of all tables; a changed byte in one could hide the rows of its table."""
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


@functools.cache
def _expected_schema() -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _schema(connection)


def definition_of(table: str) -> str:
    """Return the statement that creates a table."""
    statements = _TABLES.strip().split(";\n")
    return next(
        statement for statement in statements if statement.startswith(f"CREATE TABLE {table} (")
    )


def row_digest(*values: Any) -> int:
    """Return the digest of the values of a row."""
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def chunks(values: Iterable[Any], size: int = _AT_ONCE) -> Iterator[list[Any]]:
    """Split values into lists, by default ones that fit in one statement."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


class Tables:
    """The rows of an index, as one connection sees them; used within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def state(self) -> State:
        """Return the state of the index."""
        columns = "next_number, generation, documents, index_id, digest"
        row = self.connection.execute(f"SELECT {columns} FROM state").fetchone()  # noqa: S608 - our own names
        if row is None or row_digest(*row[:-1]) != row[-1]:
            raise damaged("the state has a wrong checksum")
        state = State(*row[:-1])
        counts = state[:3]
        if not all(isinstance(count, int) and 0 <= count < _MAX_NUMBER for count in counts):
            raise damaged(f"the state has impossible counts: {counts}")
        return state

    def set_state(self, next_number: int, generation: int, documents: int) -> None:
        """Replace the counts of the state."""
        self.replace_state(State(next_number, generation, documents, self.state().index_id))

    def replace_state(self, state: State) -> None:
        """Replace the state."""
        self.connection.execute(
            "UPDATE state SET next_number = ?, generation = ?, documents = ?, index_id = ?, digest = ?",
            (*state, row_digest(*state)),
        )

    def add_documents(self, documents: Sequence[Document]) -> None:
        """Add documents and their ids."""
        self.connection.executemany(
            "INSERT INTO names VALUES (?, ?, 0)",
            [(document.doc_id, document.number) for document in documents],
        )
        self.connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*document, row_digest(*document)) for document in documents],
        )

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Replace the rows of documents."""
        self.connection.executemany(
            "UPDATE documents SET inserted = ?, expires = ?, payload = ?, met = ?, first_met = ?, last_met = ?,"
            " digest = ? WHERE number = ?",
            [(*document[2:], row_digest(*document), document.number) for document in documents],
        )

    def fetch(self, numbers: Iterable[int], now: float) -> dict[int, Document]:
        """Return documents that have not expired, by number."""
        found: dict[int, Document] = {}
        for chunk in chunks(numbers):
            rows = self.connection.execute(
                f"SELECT {_COLUMNS} FROM documents WHERE number IN ({_marks(chunk)})",  # noqa: S608 - marks only
                chunk,
            )
            for row in rows:
                document = _checked(row)
                if not document.is_expired(now):
                    found[document.number] = document
        return found

    def all_documents(self) -> Iterator[Document]:
        """Iterate over all documents, expired ones too, by number."""
        cursor = self.connection.execute(f"SELECT {_COLUMNS} FROM documents ORDER BY number")  # noqa: S608
        yield from map(_checked, cursor)

    def documents_after(self, number: int, most: int, now: float) -> list[Document]:
        """Return the first `most` documents above a number that have not expired, by number."""
        rows = self.connection.execute(
            f"SELECT {_COLUMNS} FROM documents WHERE number > ? AND {_IS_LIVE} ORDER BY number LIMIT ?",  # noqa: S608
            (number, now, most),
        )
        return [_checked(row) for row in rows]

    def numbers_of(self, ids: Iterable[str]) -> dict[str, tuple[int, bool]]:
        """Return the number of every known id, and whether it is an alias; including expired documents."""
        found: dict[str, tuple[int, bool]] = {}
        for chunk in chunks(ids):
            statement = (
                f"SELECT doc_id, number, is_alias FROM names WHERE doc_id IN ({_marks(chunk)})"  # noqa: S608
            )
            for doc_id, number, is_alias in self.connection.execute(statement, chunk):
                if not isinstance(number, int):
                    raise damaged(f"the id {doc_id!r} has the number {number!r}")
                found[doc_id] = number, bool(is_alias)
        return found

    def aliases_of(self, numbers: Iterable[int]) -> dict[int, list[str]]:
        """Return the aliases of documents, sorted; those without any are absent."""
        found: dict[int, list[str]] = {}
        for chunk in chunks(numbers):
            rows = self.connection.execute(
                f"SELECT number, doc_id FROM names WHERE is_alias AND number IN ({_marks(chunk)}) ORDER BY doc_id",  # noqa: S608 - marks only
                chunk,
            )
            for number, alias in rows:
                if not isinstance(alias, str):
                    raise damaged(f"document number {number} has the alias {alias!r}")
                found.setdefault(number, []).append(alias)
        return found

    def live_numbers(self, now: float) -> list[int]:
        """Return the numbers of the documents that have not expired, ascending."""
        rows = self.connection.execute(
            f"SELECT number FROM documents WHERE {_IS_LIVE} ORDER BY number",  # noqa: S608
            (now,),
        )
        return [number for (number,) in rows]

    def expired(self, now: float, most: int = -1) -> list[int]:
        """Return the numbers of the documents that have expired, the first `most` of them if it is not negative."""
        statement = f"SELECT number FROM documents WHERE {EXPIRED} ORDER BY expires LIMIT ?"  # noqa: S608
        return [number for (number,) in self.connection.execute(statement, (now, most))]

    def count_expired(self, now: float) -> tuple[int, int]:
        """Count the documents that have expired, and their aliases."""
        documents: int = self._number(f"SELECT COUNT(*) FROM documents WHERE {EXPIRED}", now)  # noqa: S608
        if not documents:
            return 0, 0
        aliases = self._number(
            f"SELECT COUNT(*) FROM documents JOIN names USING (number) WHERE is_alias AND {EXPIRED}",  # noqa: S608
            now,
        )
        return documents, aliases

    def _number(self, statement: str, *values: Any) -> int:
        number: int = self.connection.execute(statement, values).fetchone()[0]
        return number

    def remove(self, documents: Iterable[Document]) -> int:
        """Remove documents with their texts, ids and aliases; return how many existed."""
        removed = 0
        for chunk in chunks(documents):
            numbers = [document.number for document in chunk]
            ids = [document.doc_id for document in chunk]
            marks = _marks(chunk)
            # The sketch stays until the flush: readers of earlier commits share the sketches in
            # memory.
            for table in ("documents", "texts"):
                cursor = self.connection.execute(
                    f"DELETE FROM {table} WHERE number IN ({marks})",  # noqa: S608 - our own names
                    numbers,
                )
                removed += cursor.rowcount if table == "documents" else 0
            self.connection.execute(f"DELETE FROM names WHERE doc_id IN ({marks})", ids)  # noqa: S608
            self.connection.execute(
                f"DELETE FROM names WHERE is_alias AND number IN ({marks})",  # noqa: S608
                numbers,
            )
        return removed

    def add_texts(self, numbers: Sequence[int], texts: Sequence[str]) -> None:
        """Store texts."""
        encoded = [text.encode() for text in texts]
        for data in encoded:
            if len(data) > MAX_TEXT_BYTES:
                raise DataError(
                    f"a text has {len(data):,} bytes, more than the {MAX_TEXT_BYTES:,} that an index stores",
                    hint="split the document, or create the index with store='shingles'",
                )
        packed = [zlib.compress(data, 1) for data in encoded]
        self.connection.executemany(
            "INSERT INTO texts VALUES (?, ?, ?)",
            [
                (number, data, zlib.crc32(data))
                for number, data in zip(numbers, packed, strict=True)
            ],
        )

    def text_of(self, number: int) -> str:
        """Return the text of a document."""
        row = self.connection.execute(
            "SELECT text, digest FROM texts WHERE number = ?", (number,)
        ).fetchone()
        if row is None:
            raise damaged(f"the text of document number {number} is missing")
        return unpack_text((number, *row))

    def add_unflushed(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Store sketches until they are flushed to a segment."""
        self.connection.executemany(
            "INSERT INTO fresh VALUES (?, ?, ?)",
            [(number, data, zlib.crc32(data)) for number, data in rows],
        )

    def unflushed(self, after: int, before: int) -> tuple[list[int], list[bytes]]:
        """Return numbers and sketches of the unflushed documents between two numbers."""
        rows = self.connection.execute(
            "SELECT number, sketch, digest FROM fresh WHERE number > ? AND number < ? ORDER BY number",
            (after, before),
        ).fetchall()
        return [number for number, _, _ in rows], [unflushed_row(row) for row in rows]

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        return self._number(f"SELECT COUNT(*) FROM {table}")  # noqa: S608

    def segments(self) -> list[StoredSegment]:
        """Return the segments, in order; raise for a name that we would not give a file, such as a path elsewhere."""
        rows = self.connection.execute(
            "SELECT name, documents, digest FROM runs ORDER BY place, name"
        )
        return [checked_segment(row) for row in rows]

    def add_segment(self, name: str, num_docs: int, digest: bytes) -> None:
        """Add a segment."""
        order = self.connection.execute("SELECT COALESCE(MAX(place), 0) + 1 FROM runs").fetchone()[
            0
        ]
        self.connection.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?)", (name, num_docs, order, digest)
        )


def checked_segment(row: tuple[Any, ...]) -> StoredSegment:
    """Return an entry of the list of segments; raise if its name is not one that we give to files."""
    name, num_docs, digest = row
    if not isinstance(name, str) or not SEGMENT_NAME.fullmatch(name):
        raise damaged(f"{FILE} lists {name!r}, which is not the name of a segment")
    if (
        not isinstance(num_docs, int)
        or not isinstance(digest, bytes)
        or len(digest) != _SEGMENT_DIGEST_BYTES
    ):
        raise damaged(f"the entry of the segment {name} in {FILE} cannot be read")
    return StoredSegment(name, num_docs, digest)


def unflushed_row(row: tuple[Any, ...]) -> bytes:
    """Return the sketch of a row of `fresh`."""
    number, data, digest = row
    if not isinstance(data, bytes) or zlib.crc32(data) != digest:
        raise damaged(
            f"document number {number}, which is not yet in a segment, has a wrong checksum"
        )
    return data


def _checked(row: tuple[Any, ...]) -> Document:
    *values, digest = row
    if row_digest(*values) != digest:
        raise damaged(f"document number {values[0]!r} has a wrong checksum")
    for column, value, kind in zip(_COLUMNS.split(", "), values, _COLUMN_TYPES, strict=False):
        if not isinstance(value, kind):
            raise damaged(f"document number {values[0]!r} has the {column} {value!r}")
    if not 0 <= values[0] < _MAX_NUMBER:
        raise damaged(f"document number {values[0]} is not a number that a document can have")
    return Document(*values)


def unpack_text(row: tuple[Any, ...]) -> str:
    """Return the text of a row of `texts`."""
    number, data, digest = row
    of_number = f"of document number {number!r}"
    if not isinstance(data, bytes) or zlib.crc32(data) != digest:
        raise damaged(f"the text {of_number} has a wrong checksum")
    inflater = zlib.decompressobj()
    try:
        text = inflater.decompress(data, MAX_TEXT_BYTES)
        if not inflater.eof:
            raise damaged(f"the text {of_number} ends early, or is larger than any that is stored")
        return text.decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise damaged(f"the text {of_number} cannot be read: {error}") from error
