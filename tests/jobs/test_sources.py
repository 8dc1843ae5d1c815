"""Where removed documents come from: counted again in plain Python, for every kind of source."""

from __future__ import annotations

import json
import random
from collections import Counter

import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError
from neardup.jobs.sources import MAX_SOURCES, choices

SITES = ("https://a.org/x", "https://b.org:80/y?q=1", "http://me@c.net", "https://a.org/z")


def corpus(num=300, num_kinds=4):
    """Rows of which many are copies, with values of every kind."""
    chance = random.Random(4)
    rows = []
    for number in range(num):
        words = f"page {chance.randrange(num // 3)} has these words and no others at all"
        kind = chance.randrange(num_kinds)
        rows.append(
            {
                "id": f"crawl{chance.randrange(3)}:{number}",
                "text": words,
                "kind": None if kind == 0 else f"kind {kind}",
                "url": f"{chance.choice(SITES)}/{number}",
                "day": f"2024-{1 + chance.randrange(3):02}-{1 + number % 28:02}",
                "number": number,
            }
        )
    return rows


def expected(report, rows, value_of):
    """The documents, the removed ones and the cells, by the value of their rows."""
    by_id = {row["id"]: value_of(row) for row in rows}
    removed = report.removed.to_pylist()
    cells = Counter((by_id[one["doc_id"]], by_id[one["kept_id"]]) for one in removed)
    return Counter(by_id.values()), Counter(by_id[one["doc_id"]] for one in removed), cells


def check(sources, counted):
    documents, removed, cells = counted
    shown = {row["source"]: row for row in sources.table.to_pylist()}
    assert {name: row["documents"] for name, row in shown.items()} == documents
    assert {name: row["removed"] for name, row in shown.items() if row["removed"]} == removed
    assert all(row["removed_share"] == row["removed"] / row["documents"] for row in shown.values())
    listed = {
        (row["source"], row["kept_source"]): row["removed"] for row in sources.cells.to_pylist()
    }
    assert listed == cells
    assert sources.elsewhere == sum(
        number for (one, other), number in cells.items() if one != other
    )
    names = sources.table.column("source").to_pylist()
    coded = zip(sources.removed_codes.tolist(), sources.kept_codes.tolist(), strict=True)
    assert Counter((names[one], names[other]) for one, other in coded) == cells


VALUES = {
    "kind": ("kind", lambda row: row["kind"]),
    "id": ("id up to the first : or @", lambda row: row["id"].partition(":")[0]),
    "url": (
        "host of url",
        lambda row: row["url"].partition("://")[2].rpartition("@")[2].split("/")[0].split(":")[0],
    ),
    "day": ("month of day", lambda row: row["day"][:7]),
}


@pytest.fixture(scope="module")
def rows():
    return corpus()


@pytest.fixture(scope="module")
def on_files(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for name, part in (("a.jsonl", rows[:100]), ("b.jsonl", rows[100:])):
        lines = [json.dumps(row) for row in part]
        lines.insert(50, "{broken")
        lines.insert(20, "")
        (folder / name).write_text("\n".join(lines) + "\n")
    inputs = [folder / "a.jsonl", folder / "b.jsonl"]
    return neardup.deduplicate(inputs, out=folder / "clean", strict=False)


@pytest.mark.parametrize("by", VALUES)
def test_sources_are_those_of_plain_python(rows, on_files, by):
    label, value_of = VALUES[by]
    in_memory = neardup.deduplicate(pa.Table.from_pylist(rows))
    for report in (on_files, neardup.load(on_files.out), in_memory):
        sources = report.sources(by=by)
        assert sources.label == label
        check(sources, expected(report, rows, value_of))


def test_files_are_sources(rows, on_files):
    counted = expected(on_files, rows, lambda row: "a.jsonl" if row in rows[:100] else "b.jsonl")
    check(on_files.sources(by="file"), counted)
    assert on_files.sources().by == "file"


def test_above_fifty_values_the_rarest_are_other(rows):
    sources = neardup.deduplicate(pa.Table.from_pylist(rows)).sources(by="number")
    assert sources.table.num_rows == MAX_SOURCES
    assert sources.table.column("source").to_pylist()[-1] == "other"
    assert sources.table.column("documents").to_pylist() == [1] * 49 + [251]


def test_a_document_of_against_has_its_own_source(rows, tmp_path):
    for name, part in (("old", rows[:150]), ("new", rows[150:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    report = neardup.deduplicate(tmp_path / "new.jsonl", against=tmp_path / "old.jsonl")
    removed = report.removed.to_pylist()
    by_file = report.sources(by="file")
    cells = {
        (one["source"], one["kept_source"]): one["removed"] for one in by_file.cells.to_pylist()
    }
    assert cells == Counter((one["file"], one["kept_file"]) for one in removed)
    kinds = {row["id"]: row["kind"] for row in rows}
    cells = report.sources(by="kind").cells.to_pylist()
    assert {(one["source"], one["kept_source"]): one["removed"] for one in cells} == Counter(
        (kinds[one["doc_id"]], kinds[one["kept_id"]]) for one in removed
    )


def test_the_sentence_names_the_most_frequent_sources():
    pages = {f"new:{number}": f"words of page {number % 3} and more" for number in range(9)}
    pages = {f"old:{number}": f"words of page {number} and more" for number in range(3)} | pages
    report = neardup.deduplicate(pages)
    assert str(report.sources(by="id")) == (
        "100 % of the removed documents are near-duplicates of one with another id prefix, "
        "most often of new, kept in old (9)."
    )
    assert report.sources().as_dict()["cells"] == [
        {"source": "new", "kept_source": "old", "removed": 9}
    ]
    assert str(neardup.deduplicate(["one page"]).sources()) == "nothing was removed"


def test_only_what_groups_documents_is_chosen(rows, on_files):
    in_memory = neardup.deduplicate(pa.Table.from_pylist(rows))
    assert [one.by for one in choices(in_memory)] == ["kind", "url", "day", "id"]
    assert [one.by for one in choices(on_files)] == ["file", "kind", "url", "day", "id"]


def test_an_unknown_column_and_a_changed_input_are_errors(rows, tmp_path):
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = neardup.deduplicate(path, out=tmp_path / "clean")
    with pytest.raises(ConfigError, match="`by` must be 'file', 'id' or a column") as error:
        report.sources(by="kidn")
    assert error.value.hint == "did you mean kind or id?"
    with pytest.raises(ConfigError, match="needs a run on files"):
        neardup.deduplicate(["one", "two"]).sources(by="file")
    path.write_text("{}\n")
    with pytest.raises(DataError, match="has changed since the run"):
        report.sources(by="kind")
    assert [one.by for one in choices(report)] == ["id"]
