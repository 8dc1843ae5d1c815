"""Random damage to a folder: other values in tables and JSON, flipped bytes, links, pipes and missing files."""

from __future__ import annotations

import copy
import json
import math
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

WHOLE = (
    0,
    1,
    2,
    3,
    7,
    -1,
    -2,
    100,
    10**6,
    2**31,
    2**32 - 1,
    2**40,
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
)
REAL = (0.0, -0.0, 1.0, 0.5, 1.0000001, 2.0, -1.0, math.nan, math.inf, -math.inf, 1e308, 5e-324)
TEXT = (
    "",
    "nowhere",
    "\0",
    "a" * 5_000,
    "../..",
    "/etc/passwd",
    "pages.jsonl",
    ":",
    "\ud7ff\u2028",
    "out/kept",
    "*",
    "1",
)
NESTED = ([], {}, [[]], [None], {"": {}}, [[[[1]]]], None, True, False)
TYPES = (
    pa.int8(),
    pa.int32(),
    pa.uint64(),
    pa.float32(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.bool_(),
    pa.timestamp("us"),
    pa.dictionary(pa.int32(), pa.string()),
)


def mutate(folder: Path, rng: random.Random) -> Iterator[str]:
    """Damage a folder in up to three ways; yield how."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        yield mutate_once(folder, rng)


def mutate_once(folder: Path, rng: random.Random) -> str:
    """Damage one file or folder below a folder, and say how."""
    places = sorted(folder.rglob("*"))
    if not places:
        return "nothing is left"
    place = rng.choice(places)
    change: Callable[[Path, random.Random], str] = rng.choice((replace_file, replace_bytes))
    known = BY_ENDING.get(place.suffix)
    if known is not None and rng.random() < 0.8:
        change = known
    elif place.is_dir() and not place.is_symlink():
        change = replace_file
    try:
        done = change(place, rng)
    except Exception as error:  # noqa: BLE001 - the file is damaged already, or cannot be written like this
        done = f"unchanged, because of {type(error).__name__}"
    return f"{place.relative_to(folder)}: {done}"


# --- tables ---


def mutate_table(path: Path, rng: random.Random) -> str:
    """Write other values, columns or rows into a Parquet file."""
    if not path.is_file():
        return "no file"
    table = pq.read_table(path, partitioning=None)
    change = rng.choice((_set_values, _set_values, _set_values, _change_column, _change_rows))
    done, changed = change(table, rng)
    options: dict[str, Any] = {
        "use_dictionary": rng.random() < 0.5,
        "row_group_size": rng.choice((1, 3, 1000)),
        "store_schema": rng.random() < 0.8,
    }
    pq.write_table(changed, path, **options)
    if rng.random() < 0.1:
        _split(path)
        done += ", in parts"
    return done


def _split(path: Path) -> None:
    """Make a folder of parts of a table, as Spark writes it."""
    table = pq.read_table(path, partitioning=None)
    path.unlink()
    path.mkdir()
    middle = table.num_rows // 2
    pq.write_table(table.slice(0, middle), path / "part-0.parquet")
    pq.write_table(table.slice(middle), path / "part-1.parquet")


def _set_values(table: pa.Table, rng: random.Random) -> tuple[str, pa.Table]:
    """Set a column of one, some or all rows to an odd value."""
    if not table.num_rows or not table.num_columns:
        return "no values", table
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    kind = table.schema.field(at).type
    values = table.column(at).to_pylist()
    rows = rng.sample(range(len(values)), rng.choice((1, 1, 1, min(3, len(values)), len(values))))
    odd = None if rng.random() < 0.1 else _odd_value(kind, values, rng)
    for row in rows:
        values[row] = odd
    changed = table.set_column(at, pa.field(name, kind), pa.array(values, kind))
    return f"{name} of rows {sorted(rows)[:5]} is {odd!r:.60}", changed


def _odd_value(kind: pa.DataType, values: list[Any], rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return rng.choice(values)
    if pa.types.is_integer(kind):
        return rng.choice((*WHOLE, len(values), len(values) + 1))
    if pa.types.is_floating(kind):
        return rng.choice(REAL)
    return rng.choice(TEXT)


def _change_column(table: pa.Table, rng: random.Random) -> tuple[str, pa.Table]:
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    column = table.column(at)
    what = rng.choice(("drop", "repeat", "rename", "swap", "cast", "null", "nest", "not utf-8"))
    if what == "drop":
        return f"without {name}", table.remove_column(at)
    if what == "repeat":
        return f"{name} twice", table.append_column(name, column)
    if what == "rename":
        names = [*table.column_names]
        names[at] = rng.choice(
            (*table.column_names, "", "x", "containment_a", "containment_removed", "cluster_size")
        )
        return f"{name} is named {names[at]!r}", table.rename_columns(names)
    if what == "swap":
        other = rng.randrange(table.num_columns)
        return f"{name} is {table.column_names[other]}", table.set_column(
            at, name, table.column(other)
        )
    if what == "null":
        return f"{name} is null", table.set_column(at, name, pa.nulls(table.num_rows, column.type))
    if what == "nest":
        return f"{name} is nested", table.set_column(
            at, name, pa.array([[value] for value in column.to_pylist()])
        )
    if what == "not utf-8":
        broken = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary()).view(pa.string())
        return f"{name} is not UTF-8", table.set_column(at, name, broken)
    kind = rng.choice(TYPES)
    return f"{name} is {kind}", table.set_column(
        at, name, column.cast(pa.string()).cast(kind, safe=False)
    )


def _change_rows(table: pa.Table, rng: random.Random) -> tuple[str, pa.Table]:
    rows = list(range(table.num_rows))
    what = rng.choice(("none", "fewer", "repeated", "shuffled", "one twice"))
    if what == "none":
        rows = []
    elif what == "fewer":
        rows = rows[: rng.randrange(len(rows) + 1)]
    elif what == "repeated":
        rows = rows * rng.choice((2, 5))
    elif what == "shuffled":
        rng.shuffle(rows)
    elif rows:
        rows.append(rng.choice(rows))
    return f"rows: {what}", table.take(pa.array(rows, pa.int64()))


# --- JSON ---


def mutate_json(path: Path, rng: random.Random) -> str:
    """Change one value of a JSON file."""
    content, done = other_json(json.loads(path.read_text("utf-8")), rng)
    path.write_text(json.dumps(content), "utf-8")
    return done


def mutate_json_line(path: Path, rng: random.Random) -> str:
    """Change one value in one line of JSON, or which lines there are."""
    lines = path.read_text("utf-8").splitlines()
    if not lines or rng.random() < 0.2:
        lines = rng.choice(([], lines * 2, lines[::-1], [*lines, "[" * 100_000], [*lines, "{}"]))
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return f"{len(lines)} lines"
    at = rng.randrange(len(lines))
    content, done = other_json(json.loads(lines[at]), rng)
    lines[at] = json.dumps(content)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return f"line {at + 1}: {done}"


def other_json(content: Any, rng: random.Random) -> tuple[Any, str]:
    places = list(_places(content))
    if not places:
        value = rng.choice(NESTED)
        return value, f"is {value!r}"
    place = rng.choice(places)
    changed = copy.deepcopy(content)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if rng.random() < 0.1:
        del inner[place[-1]]
        return changed, f"without {place}"
    inner[place[-1]] = _odd_json(inner[place[-1]], rng)
    return changed, f"{place} is {inner[place[-1]]!r:.60}"


def _odd_json(value: Any, rng: random.Random) -> Any:
    odd: Any
    if rng.random() < 0.3:
        odd = rng.choice((*WHOLE, *REAL, *TEXT, *NESTED, 10**30))
    elif isinstance(value, bool):
        odd = not value
    elif isinstance(value, int):
        odd = rng.choice((*WHOLE, value + 1, value - 1, 2 * value))
    elif isinstance(value, float):
        odd = rng.choice((*REAL, value / 2))
    elif isinstance(value, str):
        odd = rng.choice((*TEXT, value + "x", value[:-1], value.upper()))
    elif isinstance(value, list):
        odd = rng.choice(([], value * 2, value[1:], value[::-1]))
    else:
        odd = rng.choice(NESTED)
    return copy.deepcopy(odd)


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of keys of every nested value."""
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    else:
        entries = []
    for key, inner in entries:
        yield (*above, key)
        yield from _places(inner, (*above, key))


# --- any file ---


def replace_bytes(path: Path, rng: random.Random) -> str:
    """Truncate a file, or change some of its bytes."""
    if not path.is_file():
        return "no file"
    content = bytearray(path.read_bytes())
    what = rng.choice(
        ("empty", "truncated", "flipped", "flipped", "zeros", "noise", "inserted", "longer")
    )
    at = rng.randrange(len(content) + 1)
    if what == "empty":
        content = bytearray()
    elif what == "truncated":
        del content[at:]
    elif what == "flipped":
        for place in rng.choices(range(len(content)), k=rng.choice((1, 2, 20))) if content else ():
            content[place] ^= 1 << rng.randrange(8)
    elif what == "zeros":
        content[at : at + 16] = bytes(16)
    elif what == "noise":
        content[at : at + 16] = rng.randbytes(16)
    elif what == "inserted":
        content[at:at] = rng.randbytes(rng.choice((1, 7, 64)))
    else:
        content += rng.choice((b"\n", b"\0" * 64, rng.randbytes(64), bytes(content)))
    path.write_bytes(content)
    return f"{what} at byte {at:,}"


def replace_file(path: Path, rng: random.Random) -> str:
    """Put something else in the place of a file or a folder."""
    others = sorted(
        other for other in path.parent.rglob("*") if other != path and path not in other.parents
    )
    what = rng.choice(
        (
            "missing",
            "folder",
            "pipe",
            "loop",
            "nowhere",
            "outside",
            "zeros",
            "copy",
            "file",
            "odd name",
        )
    )
    other = rng.choice(others) if others else None
    if what == "copy" and other is not None and other.is_file():
        content = other.read_bytes()
        _remove(path)
        path.write_bytes(content)
        return f"a copy of {other.name}"
    if what == "odd name":
        renamed = path.with_name(os.fsdecode(b"\xff\xfe") + path.name)
        path.rename(renamed)
        return "a name that is not UTF-8"
    _remove(path)
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "file":
        path.write_text("7\n")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what in _LINKS:
        path.symlink_to(_LINKS[what])
    return what


_LINKS = {"nowhere": "not-there", "outside": "/etc/hostname", "zeros": "/dev/zero"}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


# How files with an ending are changed so that they can still be parsed; other formats are added
# here.
BY_ENDING: dict[str, Callable[[Path, random.Random], str]] = {
    ".parquet": mutate_table,
    ".json": mutate_json,
    ".jsonl": mutate_json_line,
}
