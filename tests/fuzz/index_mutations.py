# ruff: noqa: S608 - the names of tables are our own
"""Random damage to an index: values of SQLite and of runs, whose digests are made valid again, and other files."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from fuzz import mutations
from neardup.index import index_folder
from support.forging import entries_of, seal, write_run

Change = Callable[[sqlite3.Connection, random.Random], str]

KEYS: Final = {"documents": "number", "texts": "number", "fresh": "number", "names": "doc_id"}
KEYS_OF_OTHERS: Final = {"runs": "name", "meta": "name", "state": "id", "tags": "tag"}
TABLES: Final = KEYS | KEYS_OF_OTHERS
# Damage to what nothing protects is more interesting than to what is compared with a digest at
# once.
SEALED_RATIO: Final = 0.9
# Beyond what a text may have; more than the memory of a child.
BOMB_BYTES: Final = 1 << 31
# All texts together are too much for a child.
MANY_BYTES: Final = 1 << 24
BLOCK_BYTES: Final = 1 << 22
PAYLOADS: Final = (
    "",
    "{",
    "7",
    "[]",
    '"text"',
    "null",
    "NaN",
    '{"lang": NaN, "day": Infinity}',
    '{"lang": ["de"], "day": {"day": 1}}',
    '{"lang": "\\ud800"}',
    '{"day": %s}' % ("9" * 5_000),
    '{"day": 1e999}',
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"a":' * 500 + "1" + "}" * 500,
)
NAMES_OF_RUNS: Final = (
    "../../victim/runs/{name}",
    "../index.sqlite",
    "../../victim/victim.txt",
    "/etc/hostname",
    "",
    ".",
    "x\0y",
    "a" * 300,
)
FILES_OF_SQLITE: Final = ("-wal", "-shm", "-journal")


def mutate(folder: Path, rng: random.Random) -> str:
    """Damage an index in one way, and say how."""
    change: Callable[[Path, random.Random], str]
    change = rng.choices((mutate_sqlite, mutate_run, _mutate_any_file), (65, 22, 13))[0]
    try:
        return change(folder, rng)
    except Exception as error:  # noqa: BLE001 - it is damaged already, or cannot be written like this
        return f"unchanged, because of {type(error).__name__}: {error}"


def _mutate_any_file(folder: Path, rng: random.Random) -> str:
    return mutations.mutate_once(folder, rng)


def add_file(folder: Path, rng: random.Random) -> str:
    """Put a file beside the one of SQLite that SQLite itself would make; the last change, as SQLite follows links."""
    path = folder / (index_folder.FILE + rng.choice(FILES_OF_SQLITE))
    path.write_bytes(rng.randbytes(rng.choice((0, 32, 5_000))))
    if rng.random() < 0.3:
        return f"{path.name} is noise"
    if rng.random() < 0.5:
        path.unlink()
        path.symlink_to("../victim/victim.txt")
        return f"{path.name} is a link to a foreign file"
    return f"{path.name}: {mutations.replace_file(path, rng)}"


# --- SQLite ---


def mutate_sqlite(folder: Path, rng: random.Random) -> str:
    """Change the SQLite file of an index."""
    change = rng.choices(tuple(_CHANGES), tuple(_CHANGES.values()))[0]
    with contextlib.closing(
        sqlite3.connect(folder / index_folder.FILE, isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        return change(connection, rng)


def _set_value(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Set a column of one, some or all rows of a table to an odd value."""
    table = rng.choice(tuple(TABLES))
    column = rng.choice(_columns_of(connection, table))
    keys = _keys_of(connection, table)
    chosen = rng.sample(keys, min(len(keys), rng.choice((1, 1, 1, 3, 1_000))))
    number = rng.randrange(1 << 30)
    for key in chosen:
        value = _odd(_value_of(connection, table, column, key), random.Random(number))
        done = _write(connection, table, column, key, value)
    sealed = _seal(connection, table, rng)
    return f"{column} of {table} {chosen[:3]!r:.100} is {done!r:.80}{sealed}"


def _swap_values(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Give two rows the value of the other."""
    table = rng.choice(("documents", "texts", "fresh", "names", "runs"))
    columns = [name for name in _columns_of(connection, table) if name != TABLES[table]]
    column = rng.choice(columns)
    one, two = rng.sample(_keys_of(connection, table), 2)
    value, other = (_value_of(connection, table, column, key) for key in (one, two))
    _write(connection, table, column, one, other)
    _write(connection, table, column, two, value)
    return f"{column} of {table} {one!r} and {two!r} swapped{_seal(connection, table, rng)}"


def _remove_rows(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(tuple(TABLES))
    keys = _keys_of(connection, table)
    gone = keys if rng.random() < 0.4 else rng.sample(keys, rng.randrange(1, len(keys) + 1))
    for key in gone:
        connection.execute(f"DELETE FROM {table} WHERE {TABLES[table]} = ?", (key,))
    return f"{table} without {len(gone)} of {len(keys)} rows"


def _repeat_row(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Add a row again, with another key."""
    table = rng.choice(("documents", "texts", "fresh", "names", "runs"))
    key = rng.choice(_keys_of(connection, table))
    columns = [name for name in _columns_of(connection, table) if name != TABLES[table]]
    listed = ", ".join(columns)
    other = (
        key + rng.choice((100, 2**40))
        if isinstance(key, int)
        else key[:8] + rng.choice(("-0000abcd.run", "x"))
    )
    connection.execute(
        f"INSERT INTO {table} ({TABLES[table]}, {listed}) SELECT ?, {listed} FROM {table} WHERE {TABLES[table]} = ?",
        (other, key),
    )
    return f"{table} {key!r} again as {other!r}{_seal(connection, table, rng)}"


def _change_payload(connection: sqlite3.Connection, rng: random.Random) -> str:
    key = rng.choice(_keys_of(connection, "documents"))
    payload = rng.choice(PAYLOADS)
    _write(connection, "documents", "payload", key, payload)
    return f"payload of document {key} is {payload!r:.60}{_seal(connection, 'documents', rng)}"


def _change_text(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Replace a stored text; where none is stored, add one."""
    key = rng.choice(_keys_of(connection, "documents"))
    what = rng.choice(("bomb", "bombs", "large", "not zlib", "not utf-8", "truncated", "empty"))
    packed = {
        "bomb": lambda: _bomb(BOMB_BYTES),
        "large": lambda: zlib.compress(b"word " * (1 << 22)),
        "not zlib": lambda: b"text",
        "not utf-8": lambda: zlib.compress(b"\xff\xfe"),
        "truncated": lambda: zlib.compress(b"a text of some words")[:-3],
        "empty": lambda: b"",
        "bombs": lambda: _bomb(MANY_BYTES),
    }[what]()
    keys = _keys_of(connection, "documents") if what == "bombs" else [key]
    for own in keys:
        connection.execute(
            "INSERT OR REPLACE INTO texts VALUES (?, ?, ?)", (own, packed, zlib.crc32(packed))
        )
    return f"text of document {keys} is {what}"


def _bomb(num_bytes: int) -> bytes:
    """Return zlib data that inflates to many bytes."""
    packer = zlib.compressobj(1)
    block = b"a" * BLOCK_BYTES
    head = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush, the same bytes again are the same block again.
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    digest = 1
    for _ in range(num_bytes // BLOCK_BYTES):
        digest = zlib.adler32(block, digest)
    return head + again * (num_bytes // BLOCK_BYTES - 1) + b"\3\0" + digest.to_bytes(4, "big")


def _change_sketch(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Change 8 bytes of a fresh sketch, such as its size or a weight."""
    key = rng.choice(_keys_of(connection, "fresh"))
    sketch = bytearray(_value_of(connection, "fresh", "sketch", key))
    at = 0 if rng.random() < 0.4 else rng.randrange(len(sketch) // 8) * 8
    sketch[at : at + 8] = _odd_bytes(rng)
    if rng.random() < 0.2:
        del sketch[rng.randrange(len(sketch)) :]
    _write(connection, "fresh", "sketch", key, bytes(sketch))
    return f"fresh sketch {key} at byte {at}{_seal(connection, 'fresh', rng)}"


def _change_state(connection: sqlite3.Connection, rng: random.Random) -> str:
    column = rng.choice(("next_number", "generation", "documents", "index_id"))
    value = rng.choice(
        (2**62, 2**62 - 1, 2**62 - 3, 2**63 - 1, -1, 0, 1, 5, 1.5, "text", b"bytes", 2**53)
    )
    _write(connection, "state", column, 1, value)
    return f"{column} of state is {value!r}{_seal(connection, 'state', rng)}"


def _change_settings(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Change one value in the JSON of the settings."""
    text = _value_of(connection, "meta", "value", "settings")
    if rng.random() < 0.1:
        content: Any = rng.choice(PAYLOADS)
        done = f"{content!r:.60}"
    else:
        other, done = mutations.other_json(json.loads(text), rng)
        content = json.dumps(other)
    _write(connection, "meta", "value", "settings", content)
    return f"settings: {done}{_seal(connection, 'meta', rng)}"


def _change_run_entry(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Let the list of runs name another file, or as many documents as there are not."""
    name = rng.choice(_keys_of(connection, "runs"))
    if rng.random() < 0.3:
        value = rng.choice((0, 1, -1, 2**31, 2**62, 2**63 - 1, 1.5, "text"))
        _write(connection, "runs", "documents", name, value)
        return f"run {name} has {value!r} documents"
    value = rng.choice(NAMES_OF_RUNS).format(name=name)
    _write(connection, "runs", "name", name, value)
    return f"run {name} is named {value!r:.60}"


def _change_schema(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(tuple(TABLES))
    statement = rng.choice(
        (
            f"DROP TABLE {table}",
            "DROP INDEX documents_by_expiry",
            f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM documents; END",
            "CREATE VIEW v AS SELECT 1",
            "PRAGMA user_version = 1",
            f"PRAGMA user_version = {rng.choice((0, 3, 2**31 - 1, -1))}",
            f"PRAGMA application_id = {rng.choice((0, -1))}",
            "PRAGMA journal_mode = DELETE",
            "ANALYZE",
        )
    )
    connection.execute(statement)
    return statement


_CHANGES: Final[dict[Change, int]] = {
    _set_value: 30,
    _swap_values: 8,
    _remove_rows: 8,
    _repeat_row: 8,
    _change_payload: 8,
    _change_text: 8,
    _change_sketch: 10,
    _change_state: 8,
    _change_settings: 12,
    _change_run_entry: 6,
    _change_schema: 4,
}


def _columns_of(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _keys_of(connection: sqlite3.Connection, table: str) -> list[Any]:
    key = TABLES[table]
    return [value for (value,) in connection.execute(f"SELECT {key} FROM {table} ORDER BY {key}")]


def _value_of(connection: sqlite3.Connection, table: str, column: str, key: Any) -> Any:
    return connection.execute(
        f"SELECT {column} FROM {table} WHERE {TABLES[table]} = ?", (key,)
    ).fetchone()[0]


def _write(connection: sqlite3.Connection, table: str, column: str, key: Any, value: Any) -> Any:
    """Set one value; return it."""
    # SQLite does not check that a text is UTF-8.
    place = "CAST(? AS TEXT)" if value == b"\xff\xfe" else "?"
    connection.execute(
        f"UPDATE {table} SET {column} = {place} WHERE {TABLES[table]} = ?", (value, key)
    )
    return value


def _odd(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.25:
        return rng.choice(
            (*mutations.WHOLE, *mutations.REAL, *mutations.TEXT, b"\xff\xfe", b"", bytes(16), None)
        )
    if isinstance(value, int):
        return rng.choice((*mutations.WHOLE, value + 1, value - 1))
    if isinstance(value, float):
        return rng.choice((*mutations.REAL, value / 2, 253402300800.0))
    if isinstance(value, str):
        return rng.choice((*mutations.TEXT, value + "x", value[:-1], value.upper()))
    if isinstance(value, bytes):
        return rng.choice((b"", bytes(16), value[:-1], value + b"\0", rng.randbytes(len(value))))
    return rng.choice((*mutations.WHOLE, *mutations.REAL, *mutations.TEXT))


def _odd_bytes(rng: random.Random) -> bytes:
    """Return 8 bytes, of an integer or a real number."""
    if rng.random() < 0.3:
        return np.float64(rng.choice(mutations.REAL)).tobytes()
    return (rng.choice(mutations.WHOLE) % 2**64).to_bytes(8, "little")


def _seal(connection: sqlite3.Connection, table: str, rng: random.Random) -> str:
    """Make the digests of a table valid again, mostly; say if they are not."""
    if rng.random() > SEALED_RATIO:
        return ", with a wrong digest"
    seal(connection, table)
    return ""


# --- runs ---


def mutate_run(folder: Path, rng: random.Random) -> str:
    """Change values of a section of a run, or its header, and make all digests valid again."""
    path = rng.choice(sorted((folder / index_folder.SEGMENTS).glob("*.run")))
    data = bytearray(path.read_bytes())
    entries = entries_of(data)
    if rng.random() < 0.2:
        # The fields of the header, and type, rows, columns and offset of each section.
        places = [
            8,
            12,
            16,
            24,
            *(entry.at + skip for entry in entries for skip in (16, 24, 32, 40)),
        ]
        at = rng.choice(places)
        data[at : at + 8] = _odd_bytes(rng)
        done = f"the header at byte {at}"
    else:
        entry = rng.choice(
            [entry for entry in entries if entry.count > 0 and entry.stop <= len(data)]
        )
        width = entry.kind.itemsize
        for _ in range(rng.choice((1, 1, 3, entry.count))):
            at = entry.offset + rng.randrange(entry.count) * width
            data[at : at + width] = _odd_bytes(rng)[:width]
        done = f"values of {entry.name}"
    write_run(path, data, entries)
    return f"{path.name}: {done}"
