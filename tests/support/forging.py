# ruff: noqa: S608 - the names of tables are our own
"""Changes to an index whose digests are made valid again, so that they reach the code behind the digests."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.index import index_folder, segment, sqlite

_PACKED = {"texts": "text", "fresh": "sketch"}


@contextlib.contextmanager
def forged(folder: Path, table: str) -> Iterator[sqlite3.Connection]:
    """Change a table of an index; its digests are valid afterwards."""
    with contextlib.closing(
        sqlite3.connect(folder / index_folder.FILE, isolation_level=None)
    ) as connection:
        yield connection
        seal(connection, table)


def seal(connection: sqlite3.Connection, table: str) -> None:
    """Make the digests of the rows of a table valid."""
    if table in _PACKED:
        for number, data in connection.execute(
            f"SELECT number, {_PACKED[table]} FROM {table}"
        ).fetchall():
            if isinstance(data, bytes):
                connection.execute(
                    f"UPDATE {table} SET digest = ? WHERE number = ?", (zlib.crc32(data), number)
                )
    elif table == "documents":
        for number, *rest, _ in connection.execute("SELECT * FROM documents").fetchall():
            digest = sqlite.row_digest(number, *rest)
            connection.execute("UPDATE documents SET digest = ? WHERE number = ?", (digest, number))
    elif table == "state":
        for row in connection.execute(
            "SELECT next_number, generation, documents, index_id FROM state"
        ).fetchall():
            connection.execute("UPDATE state SET digest = ?", (sqlite.row_digest(*row),))
    elif table == "meta":
        for (value,) in connection.execute(
            "SELECT value FROM meta WHERE name = 'settings'"
        ).fetchall():
            digest = str(sqlite.row_digest(value))
            connection.execute("UPDATE meta SET value = ? WHERE name = 'digest'", (digest,))


class Entry(NamedTuple):
    """The entry of a section in the header of a run; at: where the entry itself is."""

    at: int
    name: str
    kind: Any
    count: int
    offset: int

    @property
    def stop(self) -> int:
        """Where the section ends."""
        return self.offset + self.count * int(self.kind.itemsize)


def entries_of(data: bytes | bytearray) -> list[Entry]:
    """Return the entries of the sections of a run."""
    found = []
    for number in range(int.from_bytes(data[12:16], "little")):
        at = segment._HEAD.size + number * segment._SECTION.size
        name, kind, rows, columns, offset, _ = segment._SECTION.unpack_from(data, at)
        found.append(
            Entry(
                at,
                name.rstrip(b"\0").decode(),
                np.dtype(kind.rstrip(b"\0").decode()),
                rows * columns,
                offset,
            )
        )
    return found


def write_run(path: Path, data: bytearray, entries: list[Entry]) -> None:
    """Write a run with valid digests of its sections and header, also in the database."""
    for entry in entries:
        digest = segment.digest_of(data[entry.offset : entry.stop]).digest()
        data[entry.at + 48 : entry.at + 64] = digest
    stop = segment.HEADER_BYTES - segment.DIGEST_BYTES
    header_digest = segment.digest_of(data[:stop]).digest()
    data[stop : segment.HEADER_BYTES] = header_digest
    path.write_bytes(data)
    with forged(path.parent.parent, "runs") as connection:
        connection.execute("UPDATE runs SET digest = ? WHERE name = ?", (header_digest, path.name))


def forge_section(folder: Path, name: str, values: Any) -> Path:
    """Replace the first values of a section of the only run of an index; return the path of the run."""
    (path,) = (folder / index_folder.SEGMENTS).glob("*.run")
    data = bytearray(path.read_bytes())
    entries = entries_of(data)
    entry = next(entry for entry in entries if entry.name == name)
    changed = np.array(values).astype(entry.kind).tobytes()
    data[entry.offset : entry.offset + len(changed)] = changed
    write_run(path, data, entries)
    return path
