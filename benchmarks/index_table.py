"""The tables of docs/index.md, made from results/index.json, index_10m.json and index_templates.json."""

from __future__ import annotations

import json
from pathlib import Path

import harness

PAGE = Path(__file__).parents[1] / "docs" / "index.md"
BEGIN = "<!-- made by benchmarks/bench_index.py --table -->\n"
END = "<!-- end -->\n"
# What is shown, the column of the JSON file, how it is written, and the goal.
ROWS = (
    ("documents", "documents", "{:,.0f}", ""),
    ("`insert_many`, documents per second", "insert_many/s", "{:,.0f}", "20,000"),
    ("`insert`, per second, 1 thread", "insert/s, 1 threads", "{:,.0f}", "1,000"),
    ("`insert`, per second, 4 threads", "insert/s, 4 threads", "{:,.0f}", ""),
    ("`insert`, per second, 16 threads", "insert/s, 16 threads", "{:,.0f}", ""),
    ('`insert`, per second, 1 thread, `durability="fast"`', "insert/s, fast", "{:,.0f}", ""),
    ("one sync of the disk, median ms", "sync median ms", "{:.2f}", ""),
    ("`query`, median ms", "query median ms", "{:.2f}", "0.5"),
    ("`query`, 99th percentile ms", "query p99 ms", "{:.2f}", "2"),
    ("`query` before `compact`, median ms", "query median ms before compact", "{:.2f}", ""),
    ("`query_many`, per second", "query_many/s", "{:,.0f}", "10,000"),
    ("cold `query`, median ms", "cold query median ms", "{:.2f}", ""),
    ("cold `query`, 99th percentile ms", "cold query p99 ms", "{:.2f}", ""),
    ("cold `query`, KB read", "cold query bytes read", "{:,.0f}", ""),
    ("cold `query_many`, per second", "cold query_many/s", "{:,.0f}", ""),
    ("cold `query_many`, KB read per query", "cold query_many bytes read", "{:,.0f}", ""),
    ("`open`, seconds", "open s", "{:.3f}", "0.1"),
    ("`remove`, ids", "removed", "{:,.0f}", ""),
    ("`remove`, seconds", "remove s", "{:.2f}", "2"),
    ("`compact`, seconds", "compact s", "{:,.0f}", ""),
    ("recall at similarities from 0.80 to 0.85", "recall", "{:.3f}", "0.99"),
    ("bytes per document on disk", "bytes/document", "{:,.0f}", ""),
    ("bytes per document in memory", "memory bytes/document", "{:,.0f}", ""),
    ("peak of anonymous memory, MB", "peak anonymous bytes", "{:,.0f}", "2,000 (10 M)"),
)
UNITS = {
    "peak anonymous bytes": 1e6,
    "cold query bytes read": 1e3,
    "cold query_many bytes read": 1e3,
}
HOT = (
    ("near-copies of one page", "copies", "{:,.0f}"),
    ("`insert_new_many`, us each", "insert_new_many us each", "{:,.0f}"),
    ("`insert_new`, median ms", "insert_new median ms", "{:.2f}"),
    ("`query`, median ms", "query median ms", "{:.2f}"),
    ("`query`, median ms, all stored", "query ms, all stored", "{:,.1f}"),
)
TEMPLATES = (
    ("similarity of the pages of a template", "similarity", "{:.2f}"),
    ("`query`, median CPU ms, before", "median ms, before", "{:.2f}"),
    ("`query`, median CPU ms, now", "median ms, now", "{:.2f}"),
)


def write():
    """Replace the tables of the page."""
    results = [
        json.loads(path.read_text("utf-8"))
        for name in ("index", "index_10m")
        if (path := harness.RESULTS / f"{name}.json").exists()
    ]
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{tables(results)}\n{END}{after}", "utf-8")


def tables(results):
    """Return the tables, and where they were measured."""
    main = results[0]
    hot = results[0]["machine"]["hot"]
    large = [row | {"tool": "neardup, 10 M"} for result in results[1:] for row in result["rows"]]
    rows = [*main["rows"][:1], *large, *main["rows"][1:]]
    lines = [
        _line(["", "goal", *(row["tool"] for row in rows)]),
        _line(["---", *["--:"] * (len(rows) + 1)]),
    ]
    for shown, column, form, goal in (
        row for row in ROWS if any(row[1] in measured for measured in rows)
    ):
        lines.append(_line([shown, goal, *(_cell(row, column, form) for row in rows)]))
    lines += ["", _line([shown for shown, _, _ in HOT]), _line(["--:"] * len(HOT))]
    lines += [_line([form.format(row[column]) for _, column, form in HOT]) for row in hot]
    lines += _templates()
    return "\n".join([*lines, "", _machine(results)]) + "\n"


def _templates():
    """Return the table of bench_index_templates.py, if it was measured."""
    path = harness.RESULTS / "index_templates.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_text("utf-8"))["rows"]
    lines = ["", _line([shown for shown, _, _ in TEMPLATES]), _line(["--:"] * len(TEMPLATES))]
    return lines + [
        _line([form.format(row[column]) for _, column, form in TEMPLATES]) for row in rows
    ]


def _cell(row, column, form):
    value = row.get(column)
    if value is None:
        return "-"
    return form.format(value / UNITS.get(column, 1))


def _line(cells):
    return f"| {' | '.join(cells)} |"


def _machine(results):
    loads = " and ".join(f"{result['machine']['load_average']:.1f}" for result in results)
    about = results[0]["machine"]
    versions = about["versions"]
    peers = ", ".join(
        f"{name} {versions[name]}" for name in ("datasketch", "redis-server") if name in versions
    )
    machine = f"{about['cpu']}, {about['cores']} cores, Python {about['python']}"
    return f"{machine}, {peers}; load average at the start {loads}."


if __name__ == "__main__":
    write()
