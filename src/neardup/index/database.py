"""The SQLite file of an index: documents, ids, fresh sketches, and which runs there are; every row has a digest."""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from neardup.errors import DataError, NearDupError
from neardup.index.index_folder import FILE
from neardup.index.sketches import damaged
from neardup.index.store import Document

LOG: Final = f"{FILE}-wal"
# "NDUP" in the header of the SQLite file, and the version of these tables.
APPLICATION_ID: Final = 0x4E445550
VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0
_CACHE_KIB: Final = 32 << 10
# SQLite takes 32,766 values in one statement; a few hundred are as fast.
_AT_ONCE: Final = 500
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1), next_number INTEGER NOT NULL, generation INTEGER NOT NULL,
    documents INTEGER NOT NULL, digest INTEGER NOT NULL
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
CREATE TABLE runs (name TEXT PRIMARY KEY, documents INTEGER NOT NULL, place INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE tags (tag TEXT PRIMARY KEY, made REAL NOT NULL) WITHOUT ROWID;
"""
# Which documents have expired at a time, as `Document.is_expired`; every statement that asks uses one of the two.
EXPIRED: Final = "expires <= ?"
_IS_LIVE: Final = f"({EXPIRED}) IS NOT TRUE"
_COLUMNS: Final = "number, doc_id, inserted, expires, payload, met, first_met, last_met, digest"


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn SQLite errors into errors that name the index."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _operational(folder, error) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise damaged(f"{folder / FILE}: {error}") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _full(folder) from error
        raise


def _operational(folder: Path, error: sqlite3.OperationalError) -> NearDupError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return _full(folder)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return NearDupError(f"the index {folder} is busy: {error}", hint="try again")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return DataError(
            f"the index {folder} cannot be read or written: {error}",
            hint="check the permissions of the folder, and the free space and health of the disk",
        )
    return damaged(f"{folder / FILE}: {error}")


def _full(folder: Path) -> DataError:
    return DataError(
        f"the disk of the index {folder} is full; this change was not stored",
        hint="free some space on its disk",
    )


def connect(folder: Path, *, writable: bool) -> sqlite3.Connection:
    """Open the SQLite file of an index."""
    mode = "rw" if writable else "ro"
    if not writable and not os.access(folder, os.W_OK) and not (folder / LOG).exists():
        # Even to read, SQLite creates a log and a shared-memory file beside it, unless it is opened as immutable.
        mode = "ro&immutable=1"
    address = f"{(folder / FILE).absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True, cached_statements=256
    )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA trusted_schema = OFF")
    if writable:
        # NORMAL syncs only around a checkpoint; `CommitLog` syncs commits, one sync for all that threads have made.
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def create(folder: Path, meta: dict[str, Any]) -> None:
    """Create the SQLite file of a new index."""
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
        value = json.dumps(meta, sort_keys=True)
        connection.execute("INSERT INTO meta VALUES ('settings', ?), ('digest', ?)", (value, str(_crc(value))))
        state = (1, 0, 0)
        connection.execute("INSERT INTO state VALUES (1, ?, ?, ?, ?)", (*state, _crc(*state)))
    finally:
        connection.close()


def read_meta(folder: Path) -> dict[str, Any]:
    """Return the stored settings of an index; raise if the folder is not an index, or one of another version."""
    with explained(folder), contextlib.closing(connect(folder, writable=False)) as connection:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise DataError(f"{folder / FILE} was not written by neardup", hint="name the folder of an index")
        if version != VERSION:
            raise DataError(
                f"the index {folder} has the format {version}, but this neardup reads {VERSION}",
                hint="use the neardup that wrote it, or build the index again",
            )
        if _schema(connection) != _expected_schema():
            raise damaged(f"the tables in {folder / FILE} are not those of an index")
        rows = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    value = rows.get("settings", "")
    if rows.get("digest") != str(_crc(value)):
        raise damaged(f"the settings in {folder / FILE} have a wrong checksum")
    meta: dict[str, Any] = json.loads(value)
    return meta


def _schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return the definitions of all tables; a changed byte in one could hide the rows of its table."""
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


@functools.cache
def _expected_schema() -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_TABLES)
        return _schema(connection)


def _crc(*values: Any) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Split values into lists that fit in one statement."""
    rest = iter(values)
    while chunk := list(islice(rest, _AT_ONCE)):
        yield chunk


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


class Tables:
    """The rows of an index, as one connection sees them; used within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def state(self) -> tuple[int, int, int]:
        """Return the next number, the generation of runs, and how many documents there are."""
        row = self.connection.execute("SELECT next_number, generation, documents, digest FROM state").fetchone()
        if row is None or _crc(*row[:3]) != row[3]:
            raise damaged("the state has a wrong checksum")
        return row[0], row[1], row[2]

    def set_state(self, next_number: int, generation: int, documents: int) -> None:
        """Replace the state."""
        values = next_number, generation, documents
        self.connection.execute(
            "UPDATE state SET next_number = ?, generation = ?, documents = ?, digest = ?", (*values, _crc(*values))
        )

    def add_documents(self, documents: Sequence[Document]) -> None:
        """Add documents and their ids."""
        self.connection.executemany(
            "INSERT INTO names VALUES (?, ?, 0)", [(document.doc_id, document.number) for document in documents]
        )
        self.connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*document, _crc(*document)) for document in documents],
        )

    def update_documents(self, documents: Sequence[Document]) -> None:
        """Replace the rows of documents."""
        self.connection.executemany(
            "UPDATE documents SET inserted = ?, expires = ?, payload = ?, met = ?, first_met = ?, last_met = ?,"
            " digest = ? WHERE number = ?",
            [(*document[2:], _crc(*document), document.number) for document in documents],
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

    def numbers_of(self, ids: Iterable[str]) -> dict[str, tuple[int, bool]]:
        """Return the number of every known id, and whether it is an alias; including expired documents."""
        found: dict[str, tuple[int, bool]] = {}
        for chunk in chunks(ids):
            statement = f"SELECT doc_id, number, is_alias FROM names WHERE doc_id IN ({_marks(chunk)})"  # noqa: S608
            for doc_id, number, is_alias in self.connection.execute(statement, chunk):
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
                found.setdefault(number, []).append(alias)
        return found

    def live_numbers(self, now: float) -> list[int]:
        """Return the numbers of the documents that have not expired, ascending."""
        rows = self.connection.execute(f"SELECT number FROM documents WHERE {_IS_LIVE} ORDER BY number", (now,))  # noqa: S608
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
        """Remove documents with their texts, sketches, ids and aliases; return how many existed."""
        removed = 0
        for chunk in chunks(documents):
            numbers, ids = [document.number for document in chunk], [document.doc_id for document in chunk]
            marks = _marks(chunk)
            for table in ("documents", "texts", "fresh"):
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
        packed = [zlib.compress(text.encode(), 1) for text in texts]
        self.connection.executemany(
            "INSERT INTO texts VALUES (?, ?, ?)",
            [(number, data, zlib.crc32(data)) for number, data in zip(numbers, packed, strict=True)],
        )

    def text_of(self, number: int) -> str:
        """Return the text of a document."""
        row = self.connection.execute("SELECT text, digest FROM texts WHERE number = ?", (number,)).fetchone()
        if row is None:
            raise damaged(f"the text of document number {number} is missing")
        return unpack_text(row)

    def add_fresh(self, rows: Iterable[tuple[int, bytes]]) -> None:
        """Store sketches until they are flushed to a run."""
        self.connection.executemany(
            "INSERT INTO fresh VALUES (?, ?, ?)", [(number, data, zlib.crc32(data)) for number, data in rows]
        )

    def fresh(self, after: int, before: int) -> tuple[list[int], list[bytes]]:
        """Return numbers and sketches of the fresh documents between two numbers."""
        rows = self.connection.execute(
            "SELECT number, sketch, digest FROM fresh WHERE number > ? AND number < ? ORDER BY number", (after, before)
        ).fetchall()
        if any(not isinstance(data, bytes) or zlib.crc32(data) != digest for _, data, digest in rows):
            raise damaged("a document that is not yet in a run has a wrong checksum")
        return [number for number, _, _ in rows], [data for _, data, _ in rows]

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        return self._number(f"SELECT COUNT(*) FROM {table}")  # noqa: S608

    def vacuum(self) -> None:
        """Rewrite the file without its unused pages if these are at least a quarter of it; else SQLite reuses them."""
        total, unused = (
            self.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count")
        )
        if unused * 4 >= total:
            self.connection.execute("VACUUM")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def runs(self) -> list[tuple[str, int]]:
        """Return name and documents of every run, in order."""
        rows = self.connection.execute("SELECT name, documents FROM runs ORDER BY place, name").fetchall()
        if not all(isinstance(name, str) and isinstance(num_docs, int) for name, num_docs in rows):
            raise damaged("the list of run files cannot be read")
        return rows

    def add_run(self, name: str, num_docs: int) -> None:
        """Add a run."""
        place = self.connection.execute("SELECT COALESCE(MAX(place), 0) + 1 FROM runs").fetchone()[0]
        self.connection.execute("INSERT INTO runs VALUES (?, ?, ?)", (name, num_docs, place))


def _checked(row: tuple[Any, ...]) -> Document:
    *values, digest = row
    if _crc(*values) != digest:
        raise damaged(f"document number {values[0]!r} has a wrong checksum")
    return Document(*values)


def unpack_text(row: tuple[Any, Any]) -> str:
    """Return a text that was packed."""
    if not isinstance(row[0], bytes) or zlib.crc32(row[0]) != row[1]:
        raise damaged("a text has a wrong checksum")
    return zlib.decompress(row[0]).decode()
