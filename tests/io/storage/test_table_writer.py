import csv
import itertools
import json

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from neardup import schema
from neardup.errors import ConfigError
from neardup.io.storage import table_writer
from neardup.io.storage.table_writer import TableWriter, write_rejected

PAIRS = schema.pairs(pa.string())
ENDINGS = [".parquet", ".jsonl", ".csv"]


def pairs(rows):
    return pa.table(
        {
            "doc_a": [a for a, _, _ in rows],
            "doc_b": [b for _, b, _ in rows],
            "similarity": [s for *_, s in rows],
        },
        PAIRS,
    )


def content(path, tables, columns=PAIRS):
    with TableWriter(path, columns) as writer:
        for table in tables:
            writer.write(table)
    return path.read_bytes()


def test_a_parquet_file_has_the_rows_the_schema_and_zstd(tmp_path):
    table = pairs([("a", "b", 0.9), ("ä", "日本", 1.0)])
    content(tmp_path / "p.parquet", [table])
    assert pq.read_table(tmp_path / "p.parquet").equals(table)
    with pq.ParquetFile(tmp_path / "p.parquet") as stored:
        assert stored.metadata.row_group(0).column(0).compression == "ZSTD"


def test_json_lines_have_one_unescaped_row_per_line(tmp_path):
    got = content(
        tmp_path / "p.jsonl", [pairs([("a", 'q"\n', 0.1), ("ä", "日本", 1.0), ("c", None, 1e-07)])]
    )
    assert got.decode() == (
        '{"doc_a":"a","doc_b":"q\\"\\n","similarity":0.1}\n'
        '{"doc_a":"ä","doc_b":"日本","similarity":1.0}\n'
        '{"doc_a":"c","doc_b":null,"similarity":1e-07}\n'
    )


def test_json_has_null_for_anything_but_a_number(tmp_path):
    got = content(
        tmp_path / "p.jsonl", [pairs([("a", "b", float("nan")), ("a", "b", float("inf"))])]
    )
    assert [json.loads(line)["similarity"] for line in got.splitlines()] == [None, None]


def test_csv_has_a_header_quotes_where_needed_and_plain_line_ends(tmp_path):
    got = content(
        tmp_path / "p.csv", [pairs([('a,"b"', "c\nd", 0.30000000000000004), ("ä", "e\rf", 1e-07)])]
    )
    assert (
        got.decode()
        == 'doc_a,doc_b,similarity\n"a,""b""","c\nd",0.30000000000000004\nä,"e\rf",1e-07\n'
    )


def test_whole_numbers_as_ids_stay_numbers(tmp_path):
    columns = schema.removed(pa.int64())
    table = pa.table({"doc_id": [2], "kept_id": [1], "similarity": [0.5]}, columns)
    assert (
        content(tmp_path / "r.jsonl", [table], columns)
        == b'{"doc_id":2,"kept_id":1,"similarity":0.5}\n'
    )
    assert content(tmp_path / "r.csv", [table], columns) == b"doc_id,kept_id,similarity\n2,1,0.5\n"


@pytest.mark.parametrize(
    ("ending", "expected"), [(".jsonl", b""), (".csv", b"doc_a,doc_b,similarity\n")]
)
def test_no_rows_give_an_empty_table(tmp_path, ending, expected):
    assert content(tmp_path / f"p{ending}", []) == expected
    assert content(tmp_path / f"p{ending}", [pairs([])]) == expected


def test_no_rows_give_a_parquet_file_with_the_schema(tmp_path):
    content(tmp_path / "p.parquet", [])
    assert pq.read_schema(tmp_path / "p.parquet") == PAIRS


@pytest.mark.parametrize("name", ["pairs", "pairs.txt", "pairs.parquet.gz"])
def test_an_unknown_ending_names_the_known_ones_and_makes_no_file(tmp_path, name):
    with pytest.raises(ConfigError, match=r"must end in \.parquet, \.jsonl or \.csv"):
        TableWriter(tmp_path / name, PAIRS)
    assert list(tmp_path.iterdir()) == []


def test_columns_are_matched_by_name_in_batches_and_tables(tmp_path):
    batch = pa.record_batch(
        {"similarity": [0.5], "doc_b": pa.array(["b"], pa.large_string()), "doc_a": ["a"]}
    )
    assert content(tmp_path / "p.csv", [batch]) == b"doc_a,doc_b,similarity\na,b,0.5\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_failed_block_leaves_no_file(tmp_path, ending):
    path = tmp_path / f"p{ending}"

    def rows():
        yield pairs([("a", "b", 0.5)])
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        content(path, rows())
    assert not path.exists()


@pytest.mark.parametrize("ending", ENDINGS)
def test_closing_twice_is_allowed_and_writing_after_it_is_an_error(tmp_path, ending):
    writer = TableWriter(tmp_path / f"p{ending}", PAIRS)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="is closed"):
        writer.write(pairs([]))


def test_parquet_row_groups_have_a_fixed_number_of_rows(tmp_path):
    num_rows = 2 * table_writer.GROUP_ROWS + 5
    table = pa.table(
        {"row_a": range(num_rows), "row_b": range(num_rows), "similarity": [0.5] * num_rows},
        schema.ROW_PAIRS,
    )
    whole = content(tmp_path / "a.parquet", [table], schema.ROW_PAIRS)
    cuts = [table.slice(0, 100_000), table.slice(100_000, 1), table.slice(100_001)]
    assert content(tmp_path / "b.parquet", cuts, schema.ROW_PAIRS) == whole
    with pq.ParquetFile(tmp_path / "a.parquet") as stored:
        groups = [
            stored.metadata.row_group(group).num_rows
            for group in range(stored.metadata.num_row_groups)
        ]
    assert groups == [table_writer.GROUP_ROWS, table_writer.GROUP_ROWS, 5]
    assert pq.read_table(tmp_path / "a.parquet").equals(table)


ROWS = st.lists(
    st.tuples(st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False)), max_size=40
)


@pytest.mark.parametrize("ending", ENDINGS)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 40), max_size=6))
def test_the_bytes_do_not_depend_on_batches(ending, rows, cuts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuts")
    table = pairs(rows)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [table.slice(first, stop - first) for first, stop in itertools.pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_writer, "GROUP_ROWS", 7)
        assert content(folder / f"cut{ending}", parts) == content(
            folder / f"whole{ending}", [table]
        )


@given(rows=ROWS)
def test_text_output_round_trips(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("back")
    content(folder / "p.csv", [pairs(rows)])
    lines = content(folder / "p.jsonl", [pairs(rows)]).splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == rows
    with (folder / "p.csv").open(encoding="utf-8", newline="") as stored:
        got = list(csv.reader(stored))[1:]
    assert [(a, b, float(similarity)) for a, b, similarity in got] == rows


def rejected(*rows):
    columns = dict(zip(schema.REJECTED.names, zip(*rows, strict=True), strict=True))
    return pa.table({name: list(values) for name, values in columns.items()}, schema.REJECTED)


def test_rejected_rows_are_json_lines_in_order(tmp_path):
    path = tmp_path / "rejected.jsonl"
    write_rejected(
        path,
        [rejected(("b.jsonl", 2, "text is null"), ("b.jsonl", 9, "ü")), rejected(("a", 1, "x"))],
    )
    assert path.read_text("utf-8").splitlines() == [
        '{"file":"b.jsonl","row":2,"reason":"text is null"}',
        '{"file":"b.jsonl","row":9,"reason":"ü"}',
        '{"file":"a","row":1,"reason":"x"}',
    ]


def test_nothing_rejected_is_an_empty_file(tmp_path):
    write_rejected(tmp_path / "rejected.jsonl", [])
    assert (tmp_path / "rejected.jsonl").read_bytes() == b""


@pytest.mark.parametrize("rows_a_call", [1, 7, 1000])
def test_row_groups_with_long_ids_are_bounded_in_bytes_for_any_batches(
    tmp_path, monkeypatch, rows_a_call
):
    monkeypatch.setattr(table_writer, "GROUP_BYTES", 1000)
    columns = pa.schema([("id", pa.string())])
    table = pa.table({"id": ["i" * (row % 40) for row in range(200)]}, schema=columns)
    with TableWriter(tmp_path / "a.parquet", columns) as writer:
        for first in range(0, table.num_rows, rows_a_call):
            writer.write(table.slice(first, rows_a_call))
    with TableWriter(tmp_path / "b.parquet", columns) as writer:
        writer.write(table)
    stored = pq.ParquetFile(tmp_path / "a.parquet")
    assert stored.read().equals(table)
    assert stored.num_row_groups > 4
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
