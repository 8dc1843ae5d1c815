"""Documents in files: numbered in input order for any parts, named, ranked in keep order, rejected with their row."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from neardup import schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.errors import DataError
from neardup.io import records
from neardup.io.columns import arrow_rows as tables
from neardup.io.documents import layout
from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.io.documents.discover import find_files
from neardup.io.documents.file_reader import FileReader, read_pieces
from neardup.io.documents.fixed_priorities import FixedPriorities
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_cache import RowCache
from neardup.io.documents.row_names import RowNames
from neardup.io.formats import registry as formats
from neardup.io.storage.workspace import Workspace

ROWS = [
    {"id": "a", "text": "first text", "score": 3, "site": "x"},
    {"id": None, "text": "second", "score": None, "site": "y"},
    {"id": "c", "text": "the third and longest text", "score": 9, "site": "x"},
    {"id": "a", "text": "4", "score": 3, "site": None},
    {"id": "e", "text": "", "score": -1, "site": "y"},
]


def write_jsonl(path, rows):
    path.write_text(
        "".join(json.dumps(row) + "\n" if isinstance(row, dict) else row + "\n" for row in rows),
        "utf-8",
    )


def write_parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)


def write_arrow(path, rows):
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def write_csv(path, rows):
    lines = [
        ",".join(rows[0]),
        *(",".join("" if v is None else str(v) for v in row.values()) for row in rows),
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


# Formats are imported late; one imported while sizes are small would keep them.
for name in ("jsonl", "parquet", "arrow", "csv"):
    formats.load(name)

WRITERS = {"jsonl": write_jsonl, "parquet": write_parquet, "arrow": write_arrow, "csv": write_csv}


@pytest.fixture
def small_parts(monkeypatch):
    """Cut files of a few rows into parts, and parts into batches."""
    monkeypatch.setattr(records, "PART_BYTES", 60)
    monkeypatch.setattr(layout, "JOINED_BYTES", 0)
    monkeypatch.setattr(records, "BATCH_BYTES", 40)
    monkeypatch.setattr(tables, "PART_BYTES", 1)


def ignore(steps):
    del steps


def documents_of(tmp_path, paths, references=(), **settings):
    config = Config(**settings)
    files = [
        file
        for group in (references, paths)
        if group
        for file in find_files(list(map(str, group)), config)
    ]
    workspace = Workspace(tmp_path / "work")
    workspace.folder.mkdir(exist_ok=True)
    num_references = len(find_files(list(map(str, references)), config)) if references else 0
    return FileReader(FileLayout(files, num_references, config), workspace)


def read_all(documents):
    """Read every part, last part first, and finish reading; return the documents in row order."""
    batches_of = {
        part: list(documents.read(part, ignore)) for part in reversed(range(documents.num_parts))
    }
    documents.finish_reading(LocalEngine(1).sort)
    placed = [
        documents.renumber(part, batch)
        for part, batches in sorted(batches_of.items())
        for batch in batches
    ]
    return pa.Table.from_batches(placed, schema.DOCUMENTS)


def settled(tmp_path, paths, references=(), **settings):
    documents = documents_of(tmp_path, paths, references, **settings)
    return documents, read_all(documents)


def names_of(documents):
    return RowNames(documents.layout, documents.notes)


def ids(documents):
    return [
        name
        for batch in names_of(documents).of_input()
        for name in batch.column("doc_id").to_pylist()
    ]


def keep_order(table):
    """The rows in keep order."""
    return (
        table.sort_by([("priority", "ascending"), ("row", "ascending")]).column("row").to_pylist()
    )


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", WRITERS)
def test_rows_are_numbered_over_files_and_parts(tmp_path, kind):
    for name in ("one", "two"):
        WRITERS[kind](tmp_path / f"{name}.{kind}", ROWS)
    documents, table = settled(tmp_path, [tmp_path / f"one.{kind}", tmp_path / f"two.{kind}"])
    if kind != "csv":
        assert documents.num_parts > 2
    assert table.schema == schema.DOCUMENTS
    assert table.column("row").to_pylist() == list(range(10))
    assert table.column("text").to_pylist() == [row["text"] for row in ROWS] * 2
    assert documents.first_rows[0] == 0
    assert documents.first_rows[-1] == 10
    assert documents.notes.count("documents") == 10
    assert documents.notes.count("text_bytes") == 2 * sum(len(row["text"]) for row in ROWS)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", WRITERS)
def test_a_document_without_an_id_is_named_by_file_and_row(tmp_path, kind):
    for name in ("one", "two"):
        WRITERS[kind](tmp_path / f"{name}.{kind}", ROWS)
    documents, _ = settled(tmp_path, [tmp_path / f"two.{kind}", tmp_path / f"one.{kind}"])
    expected = ["a", f"two.{kind}:2", "c", "a", "e", "a", f"one.{kind}:2", "c", "a", "e"]
    assert ids(documents) == expected
    for rows in ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 6], [9], []):
        assert names_of(documents).ids_of(np.array(rows, np.int64)).to_pylist() == [
            expected[row] for row in rows
        ]


@pytest.mark.usefixtures("small_parts")
def test_a_second_reading_gives_the_placed_rows_and_notes_nothing(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    documents, table = settled(tmp_path, [tmp_path / "a.jsonl"], keep="max:score")
    journal = (tmp_path / "work" / "finished.jsonl").read_bytes()
    again = [batch for part in range(documents.num_parts) for batch in documents.read(part, ignore)]
    assert pa.Table.from_batches(again, schema.DOCUMENTS).equals(table)
    assert (tmp_path / "work" / "finished.jsonl").read_bytes() == journal


def test_rows_are_located_by_file_and_number(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS[:2])
    write_jsonl(tmp_path / "empty.jsonl", [])
    write_jsonl(tmp_path / "b.jsonl", ["", *ROWS[:1]])
    documents, table = settled(
        tmp_path, [tmp_path / name for name in ("a.jsonl", "empty.jsonl", "b.jsonl")]
    )
    assert table.column("row").to_pylist() == [0, 1, 3]
    files, numbers = documents.layout.locate(np.array([0, 1, 3]))
    assert files.to_pylist() == ["a.jsonl", "a.jsonl", "b.jsonl"]
    assert numbers.tolist() == [1, 2, 2]
    assert [(entry["file"], entry["rows"]) for entry in documents.layout.summary()] == [
        ("a.jsonl", 2),
        ("empty.jsonl", 0),
        ("b.jsonl", 2),
    ]


@pytest.mark.usefixtures("small_parts")
def test_rejected_rows_are_counted_and_named_over_parts(tmp_path):
    rows = [ROWS[0], "{broken", "", ROWS[2], {"id": "n", "text": None}, ROWS[4], {"text": 7}]
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    write_jsonl(tmp_path / "b.jsonl", rows)
    documents, table = settled(tmp_path, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    rejected = [row for batch in documents.notes.rejected() for row in batch.to_pylist()]
    assert [(row["file"], row["row"]) for row in rejected] == [
        ("b.jsonl", 2),
        ("b.jsonl", 5),
        ("b.jsonl", 7),
    ]
    assert all(row["reason"] for row in rejected)
    assert documents.notes.count("rejected") == 3
    assert documents.notes.count("documents") == table.num_rows == 8
    assert table.column("row").to_pylist() == [0, 1, 2, 3, 4, 5, 8, 10]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("bad", [0, 3, 7, 11])
def test_strict_names_the_exact_row_whatever_part_it_is_in(tmp_path, bad):
    rows = [{"text": f"document number {number} of twelve"} for number in range(12)]
    rows[bad] = "{broken"
    write_jsonl(tmp_path / "a.jsonl", rows)
    documents = documents_of(tmp_path, [tmp_path / "a.jsonl"], strict=True)
    assert documents.num_parts > 3
    with pytest.raises(DataError, match=rf"a\.jsonl, row {bad + 1} cannot be used") as error:
        read_all(documents)
    assert "strict=True" in error.value.hint


def test_bad_rows_of_small_files_are_named_by_their_own_file(tmp_path):
    rows = {"a.jsonl": ROWS[:3], "b.jsonl": [ROWS[0], "{broken"], "c.jsonl": ["{broken", ROWS[1]]}
    for name, own in rows.items():
        write_jsonl(tmp_path / name, own)
    paths = [tmp_path / name for name in rows]
    documents, table = settled(tmp_path, paths)
    rejected = [row for batch in documents.notes.rejected() for row in batch.to_pylist()]
    assert [(row["file"], row["row"]) for row in rejected] == [("b.jsonl", 2), ("c.jsonl", 1)]
    assert table.column("row").to_pylist() == [0, 1, 2, 3, 6]
    assert ids(documents) == ["a", "a.jsonl:2", "c", "a", "c.jsonl:2"]
    with pytest.raises(DataError, match=r"b\.jsonl, row 2 cannot be used"):
        settled(tmp_path, paths[:2], strict=True)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"text_column": "body"}, "`text_column` names 'body'"),
        ({"text_column": ("text", "title")}, "`text_column` names 'title'"),
        ({"id_column": "uuid"}, "`id_column` names 'uuid'"),
        ({"keep": "max:stars"}, "`keep` names 'stars'"),
        ({"group_column": "host"}, "`group_column` names 'host'"),
        ({"items_column": "tags"}, "`items_column` names 'tags'"),
    ],
)
def test_a_column_that_no_row_has_is_an_error(tmp_path, settings, named):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    with pytest.raises(DataError, match="a column that no row of the input has") as error:
        settled(tmp_path, [tmp_path / "a.jsonl"], **settings)
    assert named in str(error.value)


def test_a_column_that_one_row_has_is_found(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    write_jsonl(tmp_path / "b.jsonl", [ROWS[0] | {"stars": None}])
    documents, table = settled(
        tmp_path, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], keep="max:stars"
    )
    assert table.num_rows == 6
    assert keep_order(table) == list(range(6))
    assert documents.layout.columns_taken()["keep"] == "stars"


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("keep", "expected"),
    [
        ("first", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("last", [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        ("longest", [2, 7, 0, 5, 1, 6, 3, 8, 4, 9]),
        ("max:score", [2, 7, 0, 3, 5, 8, 4, 9, 1, 6]),
        ("min:score", [4, 9, 0, 3, 5, 8, 2, 7, 1, 6]),
    ],
)
def test_keep_orders_all_rows_of_the_run(tmp_path, kind, keep, expected):
    for name in ("one", "two"):
        WRITERS[kind](tmp_path / f"{name}.{kind}", ROWS)
    _, table = settled(tmp_path, [tmp_path / f"one.{kind}", tmp_path / f"two.{kind}"], keep=keep)
    assert keep_order(table) == expected


def test_scores_of_different_formats_are_in_one_order(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "x", "score": 5.0}, {"text": "x", "score": 4.5}])
    write_parquet(tmp_path / "b.parquet", [{"text": "x", "score": 5}, {"text": "x", "score": 6}])
    write_csv(tmp_path / "c.csv", [{"text": "x", "score": "5"}, {"text": "x", "score": "4.75"}])
    paths = [tmp_path / name for name in ("a.jsonl", "b.parquet", "c.csv")]
    assert keep_order(settled(tmp_path, paths, keep="max:score")[1]) == [3, 0, 2, 4, 5, 1]


def test_numbers_and_texts_in_one_score_are_an_error(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "x", "score": 5}])
    write_jsonl(tmp_path / "b.jsonl", [{"text": "x", "score": "high"}])
    with pytest.raises(DataError, match="contains both numbers and texts"):
        settled(tmp_path, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], keep="max:score")


@pytest.mark.usefixtures("small_parts")
def test_groups_with_equal_values_are_equal_in_every_format(tmp_path):
    rows = [{"text": str(number), "site": site} for number, site in enumerate(["x", "y", "x", "7"])]
    for kind, write in WRITERS.items():
        write(tmp_path / f"a.{kind}", rows)
    write_jsonl(
        tmp_path / "n.jsonl", [{"text": "0", "site": 7}, {"text": "1", "site": None}, {"text": "2"}]
    )
    paths = [*(tmp_path / f"a.{kind}" for kind in WRITERS), tmp_path / "n.jsonl"]
    groups = settled(tmp_path, paths, group_column="site")[1].column("group").to_pylist()
    for first in range(0, 16, 4):
        assert groups[first : first + 4] == groups[:4]
    assert groups[0] == groups[2]
    assert len({groups[0], groups[1], groups[3], groups[17]}) == 4
    assert groups[16] == groups[3]
    assert groups[17] == groups[18]


def test_reference_documents_come_first_and_are_not_input(tmp_path):
    write_jsonl(tmp_path / "old.jsonl", [ROWS[0], "{broken"])
    write_jsonl(tmp_path / "new.jsonl", [ROWS[2], "{broken", ROWS[1]])
    documents, table = settled(
        tmp_path, [tmp_path / "new.jsonl"], [tmp_path / "old.jsonl"], keep="max:score"
    )
    assert documents.num_references == 2
    assert table.column("priority").to_pylist()[0] == schema.REFERENCE_PRIORITY
    assert schema.REFERENCE_PRIORITY not in table.column("priority").to_pylist()[1:]
    assert ids(documents) == ["c", "new.jsonl:3"]
    assert [
        (row["file"], row["row"])
        for batch in documents.notes.rejected()
        for row in batch.to_pylist()
    ] == [("new.jsonl", 2)]
    assert [
        row["file"]
        for batch in documents.notes.rejected(references=True)
        for row in batch.to_pylist()
    ] == ["old.jsonl"]
    assert (
        documents.notes.count("documents"),
        documents.notes.count("documents", references=True),
    ) == (2, 1)
    assert [entry["ahead"] for entry in documents.layout.summary()] == [True, False]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", WRITERS)
def test_progress_adds_up_to_the_total(tmp_path, kind):
    WRITERS[kind](tmp_path / f"a.{kind}", ROWS * 5)
    documents = documents_of(tmp_path, [tmp_path / f"a.{kind}"])
    heard = []
    for part in range(documents.num_parts):
        list(documents.read(part, heard.append))
    assert sum(heard) == documents.total
    assert min(heard) >= 0
    heard.clear()
    for part in range(documents.num_parts):
        documents.skip(part, heard.append)
    assert sum(heard) == documents.total


@pytest.mark.usefixtures("small_parts")
def test_a_resumed_run_knows_which_parts_were_read(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    _, table = settled(tmp_path, [tmp_path / "a.jsonl"], keep="max:score")
    again = documents_of(tmp_path, [tmp_path / "a.jsonl"], keep="max:score")
    assert all(again.has_read(part) for part in range(again.num_parts))
    again.finish_reading(LocalEngine(1).sort)
    read = [batch for part in range(again.num_parts) for batch in again.read(part, ignore)]
    assert pa.Table.from_batches(read, schema.DOCUMENTS).equals(table)
    (tmp_path / "work" / "rejected" / "000000.arrow").write_bytes(b"x")
    damaged = documents_of(tmp_path, [tmp_path / "a.jsonl"], keep="max:score")
    assert not damaged.has_read(0)
    assert damaged.has_read(1)


def test_a_part_whose_reading_failed_was_not_read(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    documents = documents_of(tmp_path, [tmp_path / "a.jsonl"])
    reading = documents.read(0, ignore)
    next(reading)
    reading.close()
    assert not documents.has_read(0)


def test_a_file_that_changed_since_it_was_found_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(path, ROWS)
    documents = documents_of(tmp_path, [path])
    with path.open("a") as stream:
        stream.write('{"text": "more"}\n')
    with pytest.raises(DataError, match="changed"):
        list(documents.read(0, ignore))
    assert not documents.has_read(0)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_exactly_the_rows_that_are_not_removed_are_written(tmp_path, kind):
    WRITERS[kind](tmp_path / f"a.{kind}", ROWS)
    WRITERS[kind](tmp_path / f"b.{kind}", ROWS)
    documents, _ = settled(tmp_path, [tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"])
    selection = pa.table([[2, 5, 8], [0, 0, 3], [1.0, 0.9, 0.8]], schema=schema.SELECTION)
    kept_rows = KeptRows(documents.layout, documents.notes, selection, RowCache())
    kept_rows.write_file(
        1, str(tmp_path / f"kept.{kind}"), pa.array(["a", "a", "a"]), ClusterSizes(selection)
    )
    _, kept = settled(tmp_path / "work", [tmp_path / f"kept.{kind}"])
    assert kept.column("text").to_pylist() == [ROWS[1]["text"], ROWS[2]["text"], ROWS[4]["text"]]


def test_strict_names_the_text_file_among_many(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_bytes(b"\xff" if number == 3 else b"some words")
    documents = documents_of(
        tmp_path, [tmp_path / f"{number}.txt" for number in range(5)], strict=True
    )

    with pytest.raises(DataError, match=r"3\.txt, row 1 cannot be used: not valid UTF-8"):
        list(documents.read(0, lambda _: None))


def test_small_text_files_are_read_as_one_batch(tmp_path):
    for number in range(300):
        (tmp_path / f"{number:03}.txt").write_text(f"text {number}")
    documents = documents_of(tmp_path, [tmp_path / f"{number:03}.txt" for number in range(300)])

    found = [found for _, rows in read_pieces(documents.layout, 0) for _, found in rows]

    assert [records.num_rows for records in found] == [300]


class WithoutShort:
    """A filter that leaves out texts of less than eight bytes."""

    def __init__(self):
        self.noted = set()
        self.is_closed = False

    def choose(self, part, batches):
        yield from self.choose_again(part, batches)
        self.noted.add(part)

    def choose_again(self, part, batches):
        del part
        for batch in batches:
            is_long = [len(text) >= 8 for text in batch.column("text").to_pylist()]
            yield batch.filter(pa.array(is_long, pa.bool_()))

    def has_noted(self, part):
        return part in self.noted

    def close(self):
        self.is_closed = True


def filtered_documents(tmp_path, path, cache_bytes):
    config = Config()
    workspace = Workspace(tmp_path / "work")
    workspace.folder.mkdir(exist_ok=True)
    layout_of_file = FileLayout(find_files([str(path)], config), 0, config)
    return FileReader(layout_of_file, workspace, cache_bytes, document_filter=WithoutShort())


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_a_filter_leaves_out_the_same_documents_in_every_pass(tmp_path, cache_bytes):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    documents = filtered_documents(tmp_path, tmp_path / "a.jsonl", cache_bytes)
    first = read_all(documents)
    again = [batch for part in range(documents.num_parts) for batch in documents.read(part, ignore)]
    assert first.column("row").to_pylist() == [0, 2]
    assert pa.Table.from_batches(again, schema.DOCUMENTS).equals(first)
    # Documents that are left out are counted and named all the same.
    assert documents.notes.count("documents") == 5
    assert ids(documents) == ["a", "a.jsonl:2", "c", "a", "e"]
    documents.release()
    assert documents._filter.is_closed


def test_a_part_was_not_read_if_its_filter_has_noted_nothing(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", ROWS)
    read_all(filtered_documents(tmp_path, tmp_path / "a.jsonl", 0))
    again = filtered_documents(tmp_path, tmp_path / "a.jsonl", 0)
    assert again.notes.has(0)
    assert not again.has_read(0)


def test_a_fixed_priority_replaces_the_keep_order_of_its_document_alone(tmp_path):
    for name in ("a", "b"):
        write_jsonl(tmp_path / f"{name}.jsonl", ROWS)
    config = Config(keep="last")
    files = find_files([str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")], config)
    fixed = FixedPriorities(
        files=np.array([1, 0]), rows=np.array([2, 5]), priorities=np.array([77, 77])
    )
    workspace = Workspace(tmp_path / "work")
    workspace.folder.mkdir()
    documents = FileReader(FileLayout(files, 0, config), workspace, fixed=fixed)
    assert read_all(documents).column("priority").to_pylist() == [
        0,
        -1,
        -2,
        -3,
        77,
        -5,
        77,
        -7,
        -8,
        -9,
    ]
    assert fixed.rows_with(77, documents.layout).tolist() == [4, 6]
