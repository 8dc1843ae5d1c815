"""What runs on Spark read, and how what they leave is compared with what the local engine leaves."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from support.corpora import rows, write_rows


def vectors(num_vectors=160):
    """A third of them copies with noise, and rows that cannot be used: other dimensions, no number, nothing."""
    rng = np.random.default_rng(5)
    values = rng.standard_normal((num_vectors, 12))
    values[-60:] = values[:60] + 0.1 * rng.standard_normal((60, 12))
    values[-70:-60] = values[:10]
    return [None, *values.tolist(), [1.0], [float("nan")] * 12]


def write_corpus(folder, seed=3):
    """Files of several formats, with unusable rows."""
    documents = rows(seed, 80)
    write_rows(folder / "b" / "one.jsonl", documents[:30])
    with (folder / "b" / "one.jsonl").open("ab") as lines:
        lines.write(b'{broken\n\n{"id": "n", "text": null}\n{"id": "u", "text": "\xff"}\n')
    write_rows(folder / "a.parquet", documents[30:50])
    write_rows(folder / "c.csv.gz", documents[50:65])
    write_rows(
        folder / "d.jsonl.zst",
        [{"text": row["text"], "score": row["score"]} for row in documents[65:]],
    )
    return folder


def rows_of(table):
    rows = (table if isinstance(table, pa.Table) else table.toArrow()).to_pylist()
    return sorted(map(repr, map(sorted_items, rows)))


def sorted_items(row):
    return sorted(row.items())


def agree(found, expected, *, pairs):
    for name in ("kept", "removed", "clusters", *(["pairs"] if pairs else [])):
        assert rows_of(getattr(found, name)) == rows_of(getattr(expected, name)), name
    counted = (
        "documents",
        "num_kept",
        "num_removed",
        "num_rejected",
        "exact_duplicates",
        "bytes_read",
        "num_pairs",
    )
    for name in counted:
        assert getattr(found, name) == getattr(expected, name), name
    assert expected.num_removed > 20


def contents(folder):
    """The bytes of every file but the report, and what of the report does not depend on time and memory."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    report = json.loads(found.pop("report.json"))
    found.pop("order.parquet", None)  # which Spark does not write: what it is for needs one machine
    report["files"] = [name for name in report["files"] if name != "order.parquet"]
    for name in ("seconds", "peak_memory_bytes", "stages", "config", "engine"):
        report.pop(name, None)
    return found, report
