"""Record the bytes of many small runs, to show that a refactoring changes none of them.

    python tools/record_outputs.py before.json                     before the change
    python tools/record_outputs.py after.json --against before.json    after it: lists what differs, exit code 1

The runs cover sources, formats, measures, methods and keep policies through the public library
alone. Values that may differ each time (seconds, memory, paths) are left out.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import neardup

CHANGING = {
    "seconds",
    "peak_memory_bytes",
    "stages",
    "path",
    "modified",
    "digest",
    "audit",
    "schema",
    "files",
}
NUM_ROWS = 300


def rows(seed: int) -> list[dict[str, Any]]:
    """Documents of many kinds: near-copies, copies, empties, several scripts, scores with gaps."""
    rng = random.Random(seed)  # noqa: S311
    words = [f"w{number}" for number in range(400)] + [
        "\u3042\u3044",
        "na\u00efve",
        "\u0645\u0631\u062d\u0628\u0627",
        "Stra\u00dfe",
    ]
    texts: list[str] = []
    for _ in range(NUM_ROWS):
        known = rng.choice(texts).split() if texts and rng.random() < 0.5 else []
        tokens = known or [rng.choice(words) for _ in range(rng.randrange(0, 60))]
        if tokens and rng.random() < 0.7:
            tokens[rng.randrange(len(tokens))] = rng.choice(words)
        texts.append(" ".join(tokens))
    return [
        {
            "id": f"d{at * 7 % 997}",
            "text": text,
            "score": rng.choice([None, 1, 2, 2.5]),
            "site": f"s{at % 3}",
        }
        for at, text in enumerate(texts)
    ]


def write_inputs(folder: Path) -> None:
    """Write the same rows in every format, and some that are broken."""
    made = rows(1)
    table = pa.Table.from_pylist(made)
    pq.write_table(table, folder / "a.parquet", row_group_size=64)
    pyarrow.feather.write_feather(table, folder / "a.arrow", chunksize=50)
    lines = "".join(json.dumps(row) + "\n" for row in made)
    (folder / "a.jsonl").write_text(lines + '{broken\n{"text": 7}\n\n', "utf-8")
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (folder / "old.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows(1)[:100] + rows(2)), "utf-8"
    )
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    (folder / "texts").mkdir()
    for at, row in enumerate(made[:60]):
        (folder / "texts" / f"{at:02}.txt").write_text(row["text"], "utf-8")
    vectors = np.round(np.random.default_rng(1).normal(size=(200, 16)), 1)
    vectors[100:] = vectors[:100] + 0.01
    pq.write_table(pa.table({"id": np.arange(200), "vector": list(vectors)}), folder / "v.parquet")
    baskets = [{"id": at, "items": row["text"].split()} for at, row in enumerate(made)]
    pq.write_table(pa.Table.from_pylist(baskets), folder / "b.parquet")


def file_runs() -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Name every run on files; each takes the folder to write to."""
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "exact": {"method": "exact", "threshold": 0.6, "size": 2},
        "lsh": {"method": "lsh", "threshold": 0.6, "size": 2},
        "minhash": {"sketch": "minhash", "method": "lsh", "size": 2},
        "char": {"unit": "char", "size": 4, "threshold": 0.7},
        "components": {"cluster": "components", "size": 1, "threshold": 0.6},
        "last": {"keep": "last", "size": 2},
        "longest": {"keep": "longest", "size": 2, "collapse_empty": True},
        "max": {"keep": "max:score", "size": 2, "pairs": True},
        "min": {"keep": "min:site", "size": 2, "mark": True},
        "group": {"group_column": "site", "size": 1, "threshold": 0.5, "multiset": True},
        "dry": {"dry_run": True, "fold_numbers": True},
        "against": {"against": "old.jsonl", "size": 2, "threshold": 0.6},
    }
    for name, chosen in settings.items():
        for source in ("a.jsonl", "a.parquet", "a.csv", "a.arrow", "a.jsonl.gz"):
            yield (
                f"dedup {name} {source}",
                lambda out, s=source, c=chosen: neardup.deduplicate(s, out=out, **c),
            )
    yield "dedup texts", lambda out: neardup.deduplicate("texts", out=out, size=2)
    yield (
        "dedup small memory",
        lambda out: neardup.deduplicate("a.jsonl", out=out, memory="400MB", threads=1),
    )
    for ending in ("parquet", "jsonl", "csv"):
        for name, chosen in {
            "jaccard": {"threshold": 0.5, "size": 2},
            "containment": {"measure": "containment", "size": 2},
            "against": {"against": "old.jsonl", "size": 2},
        }.items():
            yield (
                f"pairs {name} .{ending}",
                lambda out, e=ending, c=chosen: neardup.find_pairs(
                    "a.jsonl", out=f"{out}.{e}", **c
                ),
            )
    for measure in ("cosine", "euclidean"):
        yield (
            f"pairs {measure}",
            lambda out, m=measure: neardup.find_pairs(
                "v.parquet", out=f"{out}.parquet", measure=m, distance=0.05
            ),
        )
    yield (
        "pairs items",
        lambda out: neardup.find_pairs(
            "b.parquet", out=f"{out}.jsonl", items_column="items", threshold=0.6
        ),
    )


def memory_answers() -> Iterator[tuple[str, Any]]:
    """Name and return the results in memory."""
    made = rows(1)
    texts = [row["text"] for row in made]
    for name, settings in {
        "plain": {},
        "pairs": {"pairs": True, "size": 2, "keep": "longest"},
    }.items():
        report = neardup.deduplicate(texts, **settings)
        yield (
            f"memory {name}",
            [report.as_dict(), report.removed.to_pylist(), report.clusters.to_pylist()],
        )
    ranked = pa.Table.from_pylist(made)
    yield "memory keep", neardup.deduplicate(ranked, keep="max:score", size=2).removed.to_pylist()
    yield "memory neighbours", neardup.neighbours(texts[:80], k=3, size=1).to_pylist()
    yield (
        "memory containment",
        neardup.find_pairs(texts, measure="containment", size=2).pairs.to_pylist(),
    )
    yield "memory signatures", hashlib.sha256(neardup.signatures(texts).tobytes()).hexdigest()
    audit = neardup.audit(neardup.deduplicate(texts, size=1, threshold=0.5, method="lsh"))
    yield (
        "memory audit",
        [audit.recall, audit.low, audit.high, audit.pairs, audit.missed.to_pylist()],
    )
    yield "memory plan", neardup.plan(texts).method


def steady(value: Any) -> Any:
    """Remove values that may differ from run to run."""
    if isinstance(value, dict):
        return {name: steady(own) for name, own in value.items() if name not in CHANGING}
    return [steady(own) for own in value] if isinstance(value, list) else value


def digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name.endswith("report.json"):
        content = json.dumps(steady(json.loads(content)), sort_keys=True).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def record() -> dict[str, str]:
    """Run everything in a temporary folder; digests by run and file."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_inputs(Path())
        for number, (name, run) in enumerate(file_runs()):
            report = run(f"out{number:03}")
            found[f"{name}: warnings"] = json.dumps(list(report.warnings))
            for path in sorted(Path().rglob(f"out{number:03}*")):
                for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                    if file.is_file():
                        inner = file.as_posix().partition("/")[2] or "".join(file.suffixes)
                        found[f"{name}: {inner}"] = digest(file)
        os.chdir("/")
    for name, answer in memory_answers():
        found[name] = hashlib.sha256(json.dumps(steady(answer), default=str).encode()).hexdigest()[
            :16
        ]
    return found


def main() -> int:
    target = Path(sys.argv[1]).absolute()
    before = Path(sys.argv[3]).absolute() if len(sys.argv) > 3 else None
    found = record()
    target.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if before is None:
        print(f"{len(found)} digests in {target}")
        return 0
    known = json.loads(before.read_text("utf-8"))
    differing = sorted(
        name for name in known.keys() | found.keys() if known.get(name) != found.get(name)
    )
    print(*differing, f"{len(differing)} of {len(known)} differ", sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
