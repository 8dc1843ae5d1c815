"""Values in the tables of a finished run: each is checked against its bounds when the table is opened."""

from __future__ import annotations

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import DataError, NearDupError
from neardup.web.report_file import make_html
from neardup.web.served_run import ServedRun
from support.made_run import data_of

WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
PAGE = " ".join(WORDS)
OLD = [{"id": "old", "text": f"{PAGE} again"}]
# Rows 1 to 6; row 5 is rejected.
PAGES = [
    {"id": "a", "text": PAGE},
    {"id": "b", "text": f"{PAGE} today"},
    {"id": "c", "text": "nothing like the others at all, not a bit of it"},
    {"id": "d", "text": f"{PAGE} tomorrow"},
    {"id": "e", "text": None},
    {"id": "f", "text": "nothing like the others at all, not a bit of that"},
]
GREATEST = 2**63 - 1
LEAST = -(2**63)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for name, rows in (("old", OLD), ("pages", PAGES)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    neardup.deduplicate(
        folder / "pages.jsonl",
        out=folder / "out",
        against=folder / "old.jsonl",
        pairs=True,
        threshold=0.5,
        size=1,
    )
    return folder / "out"


@pytest.fixture
def run(made, tmp_path):
    shutil.copytree(made, tmp_path / "out")
    return tmp_path / "out"


def set_value(run, table, column, row, value):
    """Write another value into a table; `row` counts from 0."""
    path = run / f"{table}.parquet"
    content = pq.read_table(path)
    at = content.column_names.index(column)
    values = content.column(at).to_pylist()
    values[row] = value
    pq.write_table(
        content.set_column(
            at, content.schema.field(at), pa.array(values, content.schema.types[at])
        ),
        path,
    )


def take_rows(run, table, rows):
    path = run / f"{table}.parquet"
    pq.write_table(pq.read_table(path).take(pa.array(rows, pa.int64())), path)


def load(run, table):
    return neardup.load(run).load(table)


def test_the_tables_of_an_intact_run_are_within_their_bounds(run):
    sizes = {
        name: load(run, name).num_rows
        for name in ("removed", "clusters", "rejected", "pairs", "order")
    }
    assert sizes == {"removed": 4, "clusters": 5, "rejected": 1, "pairs": 7, "order": 6}


WRONG = [
    *(("removed", "row", value) for value in (0, -1, 7, LEAST, GREATEST)),
    *(("removed", "kept_row", value) for value in (0, -1, 7, LEAST, GREATEST)),
    ("removed", "kept_file", "nowhere"),
    *(("removed", "file", value) for value in ("", "nowhere", "old.jsonl")),
    *(("removed", "similarity", value) for value in (float("nan"), float("inf"), -0.1, 1.1)),
    *(("clusters", "cluster_size", value) for value in (0, -1, LEAST, GREATEST)),
    *(("pairs", f"row_{side}", value) for side in "ab" for value in (0, -1, 7, LEAST, GREATEST)),
    *(("pairs", f"file_{side}", "nowhere") for side in "ab"),
    *(("pairs", "similarity", value) for value in (float("nan"), -1.0, 2.0)),
    *(("order", "row", value) for value in (-1, 7, LEAST, GREATEST)),
    *(("order", "position", value) for value in (-1, -2, 5, LEAST, GREATEST)),
]


@pytest.mark.parametrize(("table", "column", "value"), WRONG, ids=lambda value: str(value))
def test_a_value_out_of_bounds_is_named_with_its_file_and_row(run, table, column, value):
    set_value(run, table, column, -1, value)
    row = pq.read_metadata(run / f"{table}.parquet").num_rows
    with pytest.raises(DataError) as error:
        load(run, table)
    message = str(error.value)
    assert (
        f"out/{table}.parquet is damaged or was not written by neardup: row {row} has " in message
    )
    assert f"{column} {value!r}" in message
    assert "run neardup again" in message


@pytest.mark.parametrize(
    ("table", "column"), [("removed", "row"), ("pairs", "row_a"), ("order", "position")]
)
def test_a_null_is_refused(run, table, column):
    set_value(run, table, column, 0, None)
    with pytest.raises(DataError, match=f"column '{column}' has a null"):
        load(run, table)


@pytest.mark.parametrize("table", ["removed", "clusters"])
@pytest.mark.parametrize("rows", [[], [0], [0, 1, 2, 3, 3, 3]])
def test_a_table_without_the_number_of_rows_of_the_report_is_refused(run, table, rows):
    take_rows(run, table, rows)
    with pytest.raises(
        DataError, match=rf"{table}\.parquet is damaged .*: it has {len(rows)} rows, but the report"
    ):
        load(run, table)


def test_a_document_that_is_removed_twice_is_refused(run):
    take_rows(run, "removed", [0, 1, 2, 2])
    with pytest.raises(
        DataError,
        match=r"row 4 has file 'pages\.jsonl' and row .*, but that row was removed before",
    ):
        load(run, "removed")


def test_a_document_is_no_pair_with_itself(run):
    take_rows(run, "pairs", [0])
    pair = pq.read_table(run / "pairs.parquet").to_pylist()[0]
    set_value(run, "pairs", "file_b", 0, pair["file_a"])
    set_value(run, "pairs", "row_b", 0, pair["row_a"])
    with pytest.raises(DataError, match="the first document of a pair comes before the second"):
        load(run, "pairs")


@pytest.mark.parametrize(
    "rows", [[0, 1, 2, 3], [0, 1, 2, 3, 3], [5, 4, 3, 2, 1, 0], list(range(6)) * 50], ids=len
)
def test_an_order_of_other_documents_than_those_of_the_pairs_never_reaches_a_kernel(run, rows):
    take_rows(run, "order", rows)
    with pytest.raises(DataError, match=r"order\.parquet is damaged"):
        neardup.load(run).at_threshold(0.9)
    # A page says so where it would show what a higher threshold removes.
    assert "order.parquet is damaged" in str(data_of(make_html(neardup.load(run))))
    served = ServedRun(neardup.load(run))
    assert "order.parquet is damaged" in str(served.info())
    served.close()


def test_rejected_rows_are_those_of_the_input(run):
    (run / "rejected.jsonl").write_text('{"file": "pages.jsonl", "row": 70, "reason": "x"}\n')
    with pytest.raises(
        DataError,
        match=r"rejected\.jsonl is damaged .*row 1 has file 'pages.jsonl' and row 70, but",
    ):
        make_html(neardup.load(run))


def test_a_column_that_occurs_twice_is_refused(run):
    table = pq.read_table(run / "pairs.parquet")
    pq.write_table(table.append_column("row_a", table.column("row_a")), run / "pairs.parquet")
    with pytest.raises(DataError, match=r"pairs\.parquet is damaged .*(2 times|Multiple matches)"):
        load(run, "pairs")


def test_text_that_is_not_utf8_is_refused(run):
    table = pq.read_table(run / "clusters.parquet")
    broken = pa.array([b"\xff"] * table.num_rows, pa.binary()).view(pa.string())
    pq.write_table(table.set_column(0, "doc_id", broken), run / "clusters.parquet")
    with pytest.raises(DataError, match=r"clusters\.parquet is damaged"):
        load(run, "clusters")


def test_more_rows_than_can_be_numbered_are_refused(run):
    report = json.loads((run / "report.json").read_text())
    report["inputs"][0]["rows"] = GREATEST
    (run / "report.json").write_text(json.dumps(report))
    with pytest.raises(DataError, match=r"report\.json is damaged .* can be numbered"):
        neardup.load(run)


def test_rows_that_an_input_does_not_have_take_no_memory(run):
    report = json.loads((run / "report.json").read_text())
    report["inputs"][1]["rows"] = 2**60
    (run / "report.json").write_text(json.dumps(report))
    for read in (lambda report: report.mask, make_html):
        with pytest.raises(
            DataError, match="has 6 rows, and the report of the run says 1,152,921,504,606,846,976"
        ):
            read(neardup.load(run))


def test_listing_stored_pairs_works_beside_a_loop_of_links(run, tmp_path):
    report = json.loads((run / "report.json").read_text())
    (run / "report.json").write_text(json.dumps(report | {"files": [*report["files"], "loop"]}))
    (run / "loop").symlink_to("loop")
    out = tmp_path / "again.csv"
    assert neardup.find_pairs(run, out=out).num_pairs == 7


@pytest.mark.parametrize(
    "name", ["removed.parquet", "pairs.parquet", "rejected.jsonl", "clusters.parquet"]
)
def test_a_loop_of_links_is_an_error(run, name):
    (run / name).unlink()
    (run / name).symlink_to(name)
    with pytest.raises(DataError, match=rf"{name}, which the run wrote, is missing"):
        load(run, name.partition(".")[0])


def test_a_loop_of_links_in_place_of_kept_rows_is_an_error(run, tmp_path):
    shutil.rmtree(run / "kept")
    (run / "kept").symlink_to("kept")
    with pytest.raises(NearDupError, match="out"):
        neardup.deduplicate(tmp_path / "new.jsonl", out=tmp_path / "fresh", against=run)


@pytest.mark.parametrize("name", ["report.json", "rejected.jsonl", "removed.parquet"])
def test_a_pipe_in_place_of_a_file_is_not_read_for_ever(run, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(DataError):
        load(run, name.partition(".")[0])
