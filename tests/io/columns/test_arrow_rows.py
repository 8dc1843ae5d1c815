import dataclasses
import datetime as dt
import decimal
import uuid

import numpy as np
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns import arrow_rows as tables
from neardup.io.columns import html
from neardup.io.columns.arrow_rows import (
    batch_records,
    join_parts,
    keep_rows,
    output_batches,
    output_schema,
    pieces,
)
from neardup.io.columns.scores import sortable_values
from neardup.io.records import ITEM_END, MARK_COLUMNS, Columns, InputFile, Verdicts
from support import corpora

FILE = InputFile(
    path="a.parquet", name="a.parquet", format="parquet", compression=None, size=1, modified=""
)
TEXT = Columns(text=("text",))
ITEMS = Columns(text=(), items="items")


def records(columns=TEXT, /, *, config=None, **arrays):
    return batch_records(pa.record_batch(arrays), columns, config or Config())


def items(column):
    got = records(ITEMS, items=column)
    return [text.split(ITEM_END)[:-1] for text in got.texts.to_pylist()], got.rejected


@pytest.mark.parametrize(
    "kind",
    [
        *(
            pa.string(),
            pa.large_string(),
            pa.string_view(),
            pa.binary(),
            pa.large_binary(),
            pa.binary_view(),
        ),
        *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_binary())),
    ],
    ids=str,
)
def test_texts_of_every_text_type_become_large_strings(kind):
    values = [b"one", "zwölf".encode(), None, b""]
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array(values, pa.binary()).cast(plain)
    got = records(text=column.dictionary_encode() if plain != kind else column)
    assert got.texts.type == pa.large_string()
    assert got.texts.to_pylist() == ["one", "zwölf", ""]
    assert got.rows.tolist() == [0, 1, 3]
    assert got.rejected == [(2, "text is null")]
    assert got.ids.to_pylist() == [None] * 3
    assert got.ids.type == pa.string()
    assert (got.num_rows, got.scores, got.groups, got.found) == (4, None, None, frozenset({"text"}))


def test_texts_in_dictionaries_views_and_run_end_arrays_are_read():
    views = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view())
    )
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), ["a", None])
    assert records(text=views).texts.to_pylist() == ["b", "a"]
    assert records(text=runs).texts.to_pylist() == ["a", "a"]


def test_a_batch_without_bad_rows_is_not_copied():
    column = pa.array(["one", "two"], pa.large_string())
    assert records(text=column).texts.buffers()[2].address == column.buffers()[2].address


def test_a_slice_yields_only_its_rows():
    batch = pa.record_batch({"text": ["a", None, "b", "c"], "id": [1, 2, 3, 4]}).slice(1, 2)
    got = batch_records(batch, Columns(text=("text",), id="id"), Config())
    assert (got.texts.to_pylist(), got.ids.to_pylist(), got.rejected) == (
        ["b"],
        ["3"],
        [(0, "text is null")],
    )


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str
)
def test_invalid_utf8_rejects_its_row_with_the_byte(kind):
    column = pa.array([b"fine", b"ab\xff", None], pa.binary())
    column = (
        column
        if kind == pa.binary()
        else column.cast(pa.large_binary()).view(pa.large_string()).cast(kind)
    )
    got = records(text=column)
    assert got.texts.to_pylist() == ["fine"]
    assert got.rejected == [
        (1, "text is not valid UTF-8: invalid start byte at byte 2"),
        (2, "text is null"),
    ]


def test_invalid_utf8_in_a_dictionary_rejects_every_row_that_uses_it():
    column = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 1]), pa.array([b"fine", b"\xff"], pa.binary())
    )
    got = records(text=column)
    assert got.texts.to_pylist() == ["fine"]
    assert [row for row, _ in got.rejected] == [1, 2, 3]


def test_a_broken_array_raises_and_is_not_read():
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(np.array([0, 99, 3], np.int32)), pa.py_buffer(b"abc")
    )
    with pytest.raises(pa.ArrowInvalid):
        records(text=broken)


def test_a_column_of_another_type_rejects_every_row_with_the_type():
    assert records(text=[1, 2]).rejected == [
        (0, "text is int64, not text"),
        (1, "text is int64, not text"),
    ]
    assert records(text=pa.array([["a"], None])).rejected == [
        (0, "text is list<item: string>, not text"),
        (1, "text is null"),
    ]
    assert records(text=pa.nulls(1)).rejected == [(0, "text is null")]


def test_a_missing_column_rejects_every_row_and_is_not_found():
    got = records(body=["a", "b"])
    assert got.rejected == [(0, "no column 'text'"), (1, "no column 'text'")]
    assert got.found == frozenset()
    assert len(got.texts) == len(got.ids) == len(got.rows) == 0
    assert records(ITEMS, body=["a"]).rejected == [(0, "no column 'items'")]


def test_an_empty_batch_has_no_records():
    got = records(text=pa.array([], pa.string()))
    assert (got.num_rows, len(got.texts), got.rejected, got.found) == (0, 0, [], frozenset())


def test_two_columns_of_one_name_are_an_error():
    with pytest.raises(DataError, match="2 columns are named 'text'"):
        batch_records(
            pa.record_batch([pa.array(["a"]), pa.array(["b"])], ["text", "text"]), TEXT, Config()
        )


def test_several_text_columns_are_joined_by_a_newline_without_nulls():
    got = records(
        Columns(text=("title", "text", "absent")),
        title=["t", None, None, "t"],
        text=["x", "y", None, "z"],
    )
    assert got.texts.to_pylist() == ["t\nx", "y", "t\nz"]
    assert got.rejected == [(2, "text is null")]
    assert got.found == {"title", "text"}


def test_one_bad_text_column_rejects_the_row():
    got = records(Columns(text=("title", "text")), title=["t", "u"], text=pa.array([b"\xff", b"b"]))
    assert got.texts.to_pylist() == ["u\nb"]
    assert got.rejected == [(0, "text is not valid UTF-8: invalid start byte at byte 0")]


NAME = uuid.UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["a", None]), ["a", None]),
        (pa.array([1, None], pa.uint64()), ["1", None]),
        (pa.array([1.5, 2.0]), ["1.5", "2"]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([dt.date(2020, 1, 2), None]), ["2020-01-02", None]),
        (pa.array([0, None], pa.timestamp("s")), ["1970-01-01 00:00:00", None]),
        (pa.array([0, None], pa.timestamp("s", "UTC")), ["1970-01-01 00:00:00Z", None]),
        (pa.array([decimal.Decimal("1.50"), None]), ["1.50", None]),
        (pa.array([7, None]).dictionary_encode(), ["7", None]),
        (pa.array(["v", None], pa.string_view()), ["v", None]),
        (pa.array([b"b", None]), ["b", None]),
        (pa.nulls(2), [None, None]),
        (pa.array([NAME.bytes, None], pa.uuid()), [str(NAME), None]),
        (
            pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
            ["MonthDayNano(months=1, days=2, nanoseconds=3)", None],
        ),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_ids_and_groups_of_any_single_value_are_strings(column, expected):
    got = records(Columns(text=("text",), id="key", group="key"), text=["a", "b"], key=column)
    assert got.ids.to_pylist() == got.groups.to_pylist() == expected
    assert got.ids.type == got.groups.type == pa.string()
    assert got.found == {"text", "key"}


def test_nested_ids_reject_their_rows():
    got = records(Columns(text=("text",), id="id"), text=["a", "b"], id=pa.array([[1], None]))
    assert got.rejected == [(0, "id is list<item: int64>, not one value")]
    assert got.ids.to_pylist() == [None]


def test_scores_follow_the_documents():
    views = pa.array(["x", "y", "z"], pa.string_view())
    columns = Columns(text=("text",), score="score")
    assert records(columns, text=["a", None, "c"], score=views).scores.equals(
        sortable_values(["x", "z"])
    )
    assert records(columns, text=["a"], score=pa.nulls(1)).scores.to_pylist() == [None]
    assert records(columns, text=["a"]).scores.to_pylist() == [None]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string(), 2),
        pa.list_view(pa.string()),
        pa.list_(pa.int64()),
        pa.list_(pa.float32()),
    ],
    ids=str,
)
def test_lists_of_every_kind_become_items(kind):
    convert = (
        str
        if pa.types.is_large_string(kind.value_type) or pa.types.is_string(kind.value_type)
        else int
    )
    column = pa.array([[convert(1), convert(22)], None, [convert(3), convert(4)]], kind)
    assert items(column) == ([["1", "22"], ["3", "4"]], [(1, "items are null")])
    assert items(column.slice(2)) == ([["3", "4"]], [])


def test_an_empty_list_is_a_document_without_items():
    assert items(pa.array([[], ["a"], []], pa.list_(pa.string()))) == ([[], ["a"], []], [])
    assert items(pa.array([[]], pa.list_(pa.string()))) == ([[]], [])


def test_an_item_that_is_null_or_holds_the_end_rejects_its_row():
    texts, rejected = items(pa.array([["a", None], ["b"], [f"c{ITEM_END}"], [None, None]]))
    assert texts == [["b"]]
    assert rejected == [
        (0, "an item is null"),
        (2, "item 'c\\x1f' holds the character '\\x1f', the item separator"),
        (3, "an item is null"),
    ]


def test_items_that_are_lists_or_invalid_utf8_reject_their_row():
    assert items(pa.array([[["a"]], []]))[1] == [
        (0, "an item is list<item: string>, not one value")
    ]
    texts, rejected = items(pa.array([[b"a"], [b"b", b"\xff"]]))
    assert (texts, rejected) == (
        [["a"]],
        [(1, "an item is not valid UTF-8: invalid start byte at byte 0")],
    )


def test_a_null_list_with_hidden_items_does_not_shift_rows():
    column = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3]), pa.array(["a", "b", "c"]), mask=pa.array([False, True, False])
    )
    assert items(column) == ([["a"], ["c"]], [(1, "items are null")])


def test_a_text_of_items_is_split_as_python_does():
    values = ["a b", "  c\u3000d\te ", "", " ", None, "f"]
    texts, rejected = items(pa.array(values))
    assert texts == [value.split() for value in values if value is not None]
    assert rejected == [(4, "items are null")]


def test_items_of_another_type_reject_every_row():
    assert items(pa.array([1]))[1] == [(0, "items are int64, not text")]


def test_html_is_read_as_visible_text():
    got = records(config=Config(html=True), text=["<p>one <b>two</b></p><script>x</script>", None])
    assert got.texts.to_pylist() == ["one two"]
    assert got.rejected == [(1, "text is null")]


def test_a_page_that_fails_rejects_only_its_row(monkeypatch):
    def fail_on_bad(pages, _):
        if "bad" in pages.to_pylist():
            raise ValueError("broken\npage")
        return pages

    monkeypatch.setattr(html, "html_to_text", fail_on_bad)
    got = records(config=Config(html=True), text=["good", "bad", None, "fine"])
    assert got.texts.to_pylist() == ["good", "fine"]
    assert got.rejected == [(1, "cannot be parsed as HTML: broken page"), (2, "text is null")]


def test_parts_are_joined_up_to_the_size_of_a_part():
    half = tables.PART_BYTES // 2
    assert join_parts([]) == []
    assert join_parts([0, 0]) == [(0, 2)]
    assert join_parts([half, half, 1, 3 * half, half]) == [(0, 2), (2, 3), (3, 4), (4, 5)]


def test_pieces_cover_a_batch_in_order():
    batch = pa.record_batch({"text": ["x" * 100] * 10})
    cut = list(pieces(batch, 250))
    assert [piece.num_rows for piece in cut] == [2] * 5
    assert pa.concat_batches(cut).equals(batch)
    assert [piece.num_rows for piece in pieces(batch, 1)] == [1] * 10
    assert list(pieces(batch.slice(0, 0), 250)) == []


VERDICTS = Verdicts(
    is_kept=np.array([True, False, False, True, False]),
    removed=np.array([1, 4]),
    kept_ids=pa.array(["k0", "k3"]),
    similarities=np.array([0.9, 1.0]),
)


def cut(batch, size):
    return (batch.slice(first, size) for first in range(0, batch.num_rows, size))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_documents_are_marked_and_rejected_rows_are_left_out(size):
    batch = pa.record_batch({"n": [0, 1, 2, 3, 4]})
    verdicts = dataclasses.replace(VERDICTS, cluster_sizes=np.array([2, 2, 1, 3, 3]))
    marked = pa.Table.from_batches(output_batches(FILE, cut(batch, size), verdicts, mark=True))
    assert marked.schema == output_schema(batch.schema, mark=True)
    assert marked.schema.names == ["n", *MARK_COLUMNS.names]
    assert [tuple(row.values()) for row in marked.to_pylist()] == [
        (0, True, None, None, 2),
        (1, False, "k0", 0.9, 2),
        (3, True, None, None, 3),
        (4, False, "k3", 1.0, 3),
    ]


def test_marks_of_an_earlier_run_are_replaced():
    batch = pa.record_batch({"neardup_kept": ["old"] * 5, "n": [0, 1, 2, 3, 4]})
    marked = pa.Table.from_batches(output_batches(FILE, iter([batch]), VERDICTS, mark=True))
    assert marked.schema.names == ["n", *MARK_COLUMNS.names]
    assert marked["neardup_kept"].to_pylist() == [True, False, True, False]


@pytest.mark.parametrize("num_rows", [4, 6])
def test_a_file_with_other_rows_than_were_read_raises(num_rows):
    batch = pa.record_batch({"n": list(range(num_rows))})
    with pytest.raises(DataError, match="no longer has the 5 rows"):
        list(output_batches(FILE, cut(batch, 2), VERDICTS, mark=False))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(list("abcde"), pa.string_view()),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 5], pa.int32()), ["a", "b"]),
        pa.array([["a"]] * 5, pa.list_(pa.string_view())),
        pa.array(range(5)),
    ],
    ids=lambda column: str(column.type),
)
def test_rows_of_any_type_can_be_selected(column):
    batch = pa.record_batch([column], ["c"])
    for chosen in (
        [True, False, True, True, False],
        [False] * 5,
        [True] * 5,
        [False, True, False, False, True],
    ):
        got = keep_rows(batch, np.array(chosen))
        got.validate(full=True)
        assert got.schema == batch.schema
        assert got["c"].to_pylist() == [
            value for value, is_in in zip(column.to_pylist(), chosen, strict=True) if is_in
        ]


def test_dictionary_is_decoded_by_the_bytes_of_its_values(monkeypatch):
    corpora.cut(monkeypatch, batch_bytes=100)
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0, 0, None], pa.int8()), pa.array(["l" * 90, "s"])
    )
    batch = pa.record_batch({"text": values})
    found = list(tables.decoded_pieces(batch))
    assert [row for piece in found for row in piece.column(0).to_pylist()] == [
        "l" * 90,
        "s",
        "l" * 90,
        "l" * 90,
        None,
    ]
    assert len(found) >= 3
    assert all(piece.column(0).type == pa.string() for piece in found)
