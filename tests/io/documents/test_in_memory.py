"""Documents in memory: every kind of source, every kind of bad row, ids, columns and keep orders."""

from __future__ import annotations

import collections
import datetime as dt
import math
import pathlib
import types

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import neardup
from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.io.documents import in_memory as memory

FOX = "the quick brown fox jumps over the lazy dog"
TEXTS = [
    FOX,
    "an entirely different sentence about the sea",
    FOX.upper(),
    "東京の灯台は、小さな本を読む人々です",
    "",
]
NOT_UTF8 = [b"good text", b"bad \xff\xfe text", b"\xc3\xa9 also good"]


class ArrowStream:
    """What nanoarrow and others offer: an Arrow stream and nothing else."""

    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream.__arrow_c_stream__(requested_schema)


def sliced(values):
    return pa.array(["before", *values, "after"])[1:-1]


def chunked(values):
    return pa.chunked_array([values[:2], [], values[2:]], pa.string())


def arrow_text(values, kind):
    """An Arrow array over unvalidated bytes."""
    offsets = np.cumsum([0, *map(len, values)])
    width = np.int64 if kind == pa.large_string() else np.int32
    buffers = [None, pa.py_buffer(offsets.astype(width)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def dataset(texts):
    return datasets.Dataset.from_dict({"text": texts})


COLUMNS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda texts: (text for text in texts),
    "deque": collections.deque,
    "values of a dict": lambda texts: dict(enumerate(texts)).values(),
    "NumPy objects": lambda texts: np.array(texts, object),
    "NumPy str": lambda texts: np.array(texts),
    "NumPy strings of any length": lambda texts: np.array(texts, np.dtypes.StringDType()),
    "Arrow string": pa.array,
    "Arrow large_string": lambda texts: pa.array(texts, pa.large_string()),
    "Arrow string_view": lambda texts: pa.array(texts, pa.string_view()),
    "Arrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "Arrow dictionary of views": lambda texts: pa.DictionaryArray.from_arrays(
        pa.array(range(len(texts)), pa.int32()), pa.array(texts, pa.string_view())
    ),
    "Arrow slice": sliced,
    "Arrow dictionary slice": lambda texts: sliced(texts).dictionary_encode()[0:],
    "Arrow chunks": chunked,
    "Arrow chunks of a dictionary": lambda texts: chunked(texts).dictionary_encode(),
    "pandas Series": pd.Series,
    "pandas Series of objects": lambda texts: pd.Series(texts, dtype=object),
    "pandas Series of dtype string": lambda texts: pd.Series(texts, dtype="string"),
    "pandas Categorical": lambda texts: pd.Series(texts, dtype="category"),
    "pandas Index": pd.Index,
    "pandas array": pd.array,
    "polars Series": pl.Series,
    "polars Categorical": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "column of a dataset": lambda texts: dataset(texts)["text"],
}
TABLES = {
    "Arrow table": lambda texts: pa.table({"text": texts}),
    "Arrow table of views": lambda texts: pa.table({"text": pa.array(texts, pa.string_view())}),
    "Arrow table of a dictionary": lambda texts: pa.table(
        {"text": pa.array(texts).dictionary_encode()}
    ),
    "Arrow table slice": lambda texts: pa.table({"text": ["before", *texts]}).slice(1),
    "Arrow chunked table": lambda texts: pa.table({"text": chunked(texts)}),
    "Arrow batch": lambda texts: pa.record_batch({"text": texts}),
    "Arrow reader": lambda texts: pa.table({"text": texts}).to_reader(max_chunksize=2),
    "Arrow stream": lambda texts: ArrowStream(pa.table({"text": texts})),
    "pandas frame": lambda texts: pd.DataFrame({"text": texts}),
    "pandas frame of objects": lambda texts: pd.DataFrame({"text": pd.Series(texts, dtype=object)}),
    "pandas frame with an index": lambda texts: pd.DataFrame(
        {"text": texts}, index=range(7, 7 + len(texts))
    ),
    "pandas frame slice": lambda texts: pd.DataFrame({"text": ["before", *texts]})[1:],
    "polars frame": lambda texts: pl.DataFrame({"text": texts}),
    "polars frame of a Categorical": lambda texts: pl.DataFrame(
        {"text": texts}, schema={"text": pl.Categorical}
    ),
    "dataset": dataset,
    "dataset after select": lambda texts: dataset([*reversed(texts), "x"]).select(
        range(len(texts) - 1, -1, -1)
    ),
    "dataset after filter": lambda texts: dataset(["drop me", *texts]).filter(
        lambda row: row["text"] != "drop me"
    ),
}


@pytest.fixture(autouse=True)
def quiet_datasets():
    datasets.disable_progress_bars()


@pytest.mark.parametrize("kind", [*COLUMNS, *TABLES])
def test_every_kind_of_source_gives_the_same_documents(kind):
    source = (COLUMNS | TABLES)[kind](TEXTS)
    read = memory.read(source, Config())
    assert read.documents.schema == schema.DOCUMENTS
    assert read.documents.to_pydict() == {
        "row": [0, 1, 2, 3, 4],
        "text": TEXTS,
        "priority": [0, 0, 0, 0, 0],
        "group": [0, 0, 0, 0, 0],
    }
    assert read.rejected.num_rows == 0
    assert read.rejected.schema == schema.REJECTED
    assert read.ids.to_pylist() == [0, 1, 2, 3, 4]
    assert read.original.column("text").to_pylist() == TEXTS


@pytest.mark.parametrize("kind", [*COLUMNS, *TABLES])
def test_every_kind_of_source_gives_the_same_result(kind):
    report = neardup.deduplicate((COLUMNS | TABLES)[kind](TEXTS))
    assert report.removed.to_pylist() == [{"doc_id": 2, "kept_id": 0, "similarity": 1.0}]
    assert report.kept.column("text").to_pylist() == [TEXTS[0], TEXTS[1], TEXTS[3], TEXTS[4]]


@pytest.mark.parametrize("kind", [*COLUMNS, *TABLES])
def test_every_kind_of_source_may_be_empty(kind):
    empty = (
        (COLUMNS | TABLES)[kind](TEXTS[:0])
        if "Arrow chunk" not in kind
        else pa.chunked_array([], pa.string())
    )
    report = neardup.find_pairs(empty, keep="longest")
    assert (
        report.documents,
        report.kept.num_rows,
        report.removed.num_rows,
        report.pairs.num_rows,
    ) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    "source",
    [
        pa.table({"text": pa.array([FOX, None], pa.string()), "note": [[1], None]}),
        pa.table(
            {"text": pa.array([FOX, "x"], pa.large_string()), "when": [dt.date(2024, 1, 2), None]}
        ),
        pa.table(
            {"text": pa.array([FOX, FOX]).dictionary_encode(), "id": pa.array([4, 2], pa.int8())}
        ),
    ],
)
def test_kept_rows_are_unchanged(source):
    report = neardup.deduplicate(source)
    assert report.kept.column("doc_id").to_pylist()[0] == (
        source.column("id")[0].as_py() if "id" in source.column_names else 0
    )
    assert report.kept.drop_columns("doc_id").schema == source.schema
    assert report.kept.drop_columns("doc_id").slice(0, 1).equals(source.slice(0, 1))


@pytest.mark.parametrize("ids", [["a", "b", "c", "d", "e"], [5, -4, 3, 2**62, 0]])
def test_keys_of_a_dict_are_the_ids(ids):
    for mapping in (dict, collections.OrderedDict, types.MappingProxyType):
        report = neardup.deduplicate(mapping(dict(zip(ids, TEXTS, strict=True))))
        assert report.removed.to_pylist() == [
            {"doc_id": ids[2], "kept_id": ids[0], "similarity": 1.0}
        ]
        assert report.kept.column("doc_id").to_pylist() == [ids[0], ids[1], ids[3], ids[4]]


@pytest.mark.parametrize(
    "ids",
    [
        ["a", "b", "c"],
        ("a", "b", "c"),
        iter(["a", "b", "c"]),
        np.array(["a", "b", "c"]),
        pa.array(["a", "b", "c"], pa.string_view()),
        pa.array(["a", "b", "c"], pa.large_string()),
        pa.array(["a", "b", "c"]).dictionary_encode(),
        pa.chunked_array([["a"], [], ["b", "c"]], pa.string()),
        pd.Series(["a", "b", "c"], index=[9, 9, 9]),
        pl.Series(["a", "b", "c"]),
    ],
    ids=lambda ids: type(ids).__name__,
)
def test_ids_may_be_any_kind_of_column(ids):
    report = neardup.deduplicate(TEXTS[:3], ids=ids)
    assert report.removed.to_pylist() == [{"doc_id": "c", "kept_id": "a", "similarity": 1.0}]
    assert report.removed.schema == schema.removed(pa.string())


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint16(), pa.int64(), pa.uint64()], ids=str)
def test_whole_numbers_of_any_width_are_ids(kind):
    report = neardup.deduplicate(pa.table({"text": TEXTS[:3], "id": pa.array([7, 8, 9], kind)}))
    assert report.removed.to_pylist() == [{"doc_id": 9, "kept_id": 7, "similarity": 1.0}]


@pytest.mark.parametrize("name", ["text", "content", "body"])
def test_default_names_of_the_text_column_are_found(name):
    report = neardup.deduplicate(pa.table({"other": ["a", "b"], name: [FOX, FOX]}))
    assert report.columns == {"text": name}
    assert report.removed.num_rows == 1


def test_the_first_of_the_default_columns_is_used():
    table = pa.table(
        {
            "body": ["x", "y"],
            "url": ["u", "v"],
            "content": ["v", "w"],
            "text": [FOX, FOX],
            "id": [1, 2],
        }
    )
    report = neardup.deduplicate(table)
    assert report.columns == {"text": "text", "id": "id"}
    assert neardup.deduplicate(table.drop(["text", "id"])).columns == {
        "text": "content",
        "id": "url",
    }


def test_named_columns_take_precedence_over_default_ones():
    table = pa.table({"text": ["a", "b"], "id": [1, 2], "page": [FOX, FOX], "key": ["k", "l"]})
    report = neardup.deduplicate(table, text_column="page", id_column="key")
    assert report.columns == {"text": "page", "id": "key"}
    assert report.removed.to_pylist() == [{"doc_id": "l", "kept_id": "k", "similarity": 1.0}]


def test_given_ids_take_precedence_over_the_default_column():
    report = neardup.deduplicate(pa.table({"text": [FOX, FOX], "id": [1, 1]}), ids=["p", "q"])
    assert report.removed.to_pylist() == [{"doc_id": "q", "kept_id": "p", "similarity": 1.0}]
    assert report.columns == {"text": "text"}


@pytest.mark.parametrize("setting", ["text_column", "id_column", "keep"])
def test_a_missing_column_is_an_error_that_lists_the_columns(setting):
    table = pa.table({"text": [FOX], "score": [1]})
    value = "max:points" if setting == "keep" else "points"
    with pytest.raises(
        ConfigError, match=rf"`{setting}` names 'points'[\s\S]*hint: the columns are text, score"
    ):
        neardup.deduplicate(table, **{setting: value})


@pytest.mark.parametrize("setting", ["text_column", "id_column", "keep"])
def test_naming_a_column_of_a_list_is_an_error(setting):
    value = "max:points" if setting == "keep" else "points"
    with pytest.raises(
        ConfigError, match=f"`{setting}` names the column 'points', but the source has no columns"
    ):
        neardup.deduplicate(TEXTS, **{setting: value})


def test_a_table_without_a_text_column_is_an_error_that_lists_its_columns():
    with pytest.raises(
        DataError,
        match=r"no column named text, content, body[\s\S]*text_column='page'[\s\S]*page, id",
    ):
        neardup.deduplicate(pa.table({"page": TEXTS, "id": range(5)}))


@pytest.mark.parametrize(
    "source", [pa.table({}), pd.DataFrame(), pl.DataFrame()], ids=lambda source: str(type(source))
)
def test_a_table_without_columns_is_an_error(source):
    with pytest.raises(
        DataError, match=r"no column named text, content, body[\s\S]*the columns are none"
    ):
        neardup.deduplicate(source)


@pytest.mark.parametrize("name", ["text", "id"])
def test_two_columns_of_the_same_name_are_an_error(name):
    table = pa.table([["a"], ["b"], ["c"]], names=["text", name, "id"])
    for source in (table, pd.DataFrame([["a", "b", "c"]], columns=["text", name, "id"])):
        with pytest.raises(
            DataError, match=rf"2 columns named '{name}'|Duplicate column names found: .*{name}"
        ):
            neardup.deduplicate(source)


def test_ids_and_id_column_cannot_be_combined():
    with pytest.raises(ConfigError, match="`ids` and `id_column` both give the ids"):
        neardup.deduplicate(pa.table({"text": [FOX], "key": [1]}), ids=[2], id_column="key")


BAD_ROWS = [
    (None, "text is null"),
    (3, "text is int, not str: 3"),
    (b"bytes", "text is bytes, not str: b'bytes'"),
    (math.nan, "text is float, not str: nan"),
    (["a", "list"], "text is list, not str: ['a', 'list']"),
    ("caf\udce9 \ud800", "text is not valid Unicode: lone surrogate at character 3"),
    ({"text": "x" * 1000}, f"text is dict, not str: {{'text': '{'x' * 12}...{'x' * 13}'}}"),
]


def test_bad_rows_are_rejected_with_row_and_reason():
    rows = [value for bad, _ in BAD_ROWS for value in (FOX, bad)]
    report = neardup.deduplicate(rows)
    assert report.rejected.to_pylist() == [
        {"file": None, "row": 2 * at + 1, "reason": reason}
        for at, (_, reason) in enumerate(BAD_ROWS)
    ]
    assert report.removed.column("doc_id").to_pylist() == [2, 4, 6, 8, 10, 12]
    assert report.kept.to_pylist() == [{"doc_id": 0, "text": FOX}]
    assert (
        report.documents
        == 14
        == report.kept.num_rows + report.removed.num_rows + report.rejected.num_rows
    )


@pytest.mark.parametrize(("bad", "reason"), BAD_ROWS, ids=lambda value: type(value).__name__)
def test_strict_raises_at_the_first_bad_row(bad, reason):
    with pytest.raises(DataError) as raised:
        neardup.deduplicate([FOX, FOX, bad, None], strict=True)
    assert str(raised.value).startswith(f"row 2 cannot be used: {reason}\n\nhint: ")


def test_a_row_whose_repr_fails_is_rejected():
    class Unshowable:
        def __repr__(self):
            raise RuntimeError

    assert neardup.deduplicate([FOX, Unshowable()]).rejected.column("row").to_pylist() == [1]


@pytest.mark.parametrize(
    "source",
    [
        [FOX, None, FOX],
        {"a": FOX, "b": None, "c": FOX},
        np.array([FOX, None, FOX], object),
        np.ma.array([FOX, "masked", FOX], mask=[False, True, False]),
        pa.array([FOX, None, FOX]),
        pa.array([FOX, None, FOX], pa.string_view()),
        pa.array([FOX, None, FOX]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1, 0], [FOX, None]),
        pa.table({"text": [FOX, None, FOX]}),
        pd.Series([FOX, None, FOX], dtype=object),
        pd.Series([FOX, math.nan, FOX], dtype=object),
        pd.Series([FOX, pd.NA, FOX], dtype=object),
        pd.Series([FOX, None, FOX], dtype="string"),
        pd.Series([FOX, None, FOX], dtype="category"),
        pd.DataFrame({"text": pd.Series([FOX, math.nan, FOX], dtype=object)}),
        pd.DataFrame({"text": pd.Series([FOX, None, FOX], dtype="string")}),
        pl.Series([FOX, None, FOX]),
        pl.DataFrame({"text": [FOX, None, FOX]}),
        datasets.Dataset.from_dict({"text": [FOX, None, FOX]}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_missing_text_is_null_in_every_source(source):
    report = neardup.deduplicate(source)
    assert report.rejected.to_pylist() == [{"file": None, "row": 1, "reason": "text is null"}]
    assert (report.documents, report.kept.num_rows, report.removed.num_rows) == (3, 1, 1)


@pytest.mark.parametrize(
    "source",
    [
        [None, None],
        pa.nulls(2),
        pa.nulls(2, pa.string()),
        pa.table({"text": pa.nulls(2)}),
        pd.Series([None, None]),
        pd.DataFrame({"text": [None, None]}),
        pd.DataFrame({"text": [math.nan, math.nan]}),
        pl.DataFrame({"text": [None, None]}),
        datasets.Dataset.from_dict({"text": [None, None]}),
    ],
    ids=lambda source: type(source).__name__,
)
def test_all_rows_of_a_null_column_are_rejected(source):
    with pytest.raises(
        DataError, match="all 2 rows were rejected; the first is row 0: text is null"
    ):
        neardup.find_pairs(source, keep="longest")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_bytes_that_are_not_utf8_are_rejected(kind):
    broken = arrow_text(NOT_UTF8, kind)
    views = broken.cast(pa.binary()).cast(pa.binary_view()).buffers()
    sources = [
        broken,
        pa.table({"text": broken}),
        pa.DictionaryArray.from_arrays([0, 1, 2], broken),
        pa.Array.from_buffers(pa.string_view(), 3, views),
    ]
    for source in sources:
        report = neardup.deduplicate(source)
        assert report.rejected.to_pylist() == [
            {
                "file": None,
                "row": 1,
                "reason": "text is not valid UTF-8: invalid start byte at byte 4",
            }
        ]
        assert report.kept.column("text").to_pylist() == ["good text", "é also good"]
    assert neardup.deduplicate(broken[1:]).rejected.column("row").to_pylist() == [0]
    with pytest.raises(DataError, match="row 1 cannot be used: text is not valid UTF-8"):
        neardup.deduplicate(broken, strict=True)


@pytest.mark.parametrize("offsets", [[0, 2_000_000_000, 5, 8], [0, -3, 5, 8], [5, 3, 0, 8]])
def test_an_arrow_array_with_broken_offsets_is_an_error_not_a_crash(offsets):
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(b"\xff\xfe, etc.")]
    with pytest.raises(DataError, match="broken Arrow array"):
        neardup.deduplicate(pa.Array.from_buffers(pa.string(), 3, buffers))


def test_a_dictionary_with_broken_indices_is_an_error_not_a_crash():
    broken = pa.DictionaryArray.from_arrays(pa.array([0, 50_000_000]), pa.array(["a"]), safe=False)
    with pytest.raises(DataError, match="broken Arrow array: Index 50000000 out of bounds"):
        neardup.deduplicate(broken)


def test_bad_texts_of_a_pandas_frame_are_rejected():
    frame = pd.DataFrame(
        {"id": list("abcde"), "text": pd.Series([FOX, 7, "\ud800", None, FOX], dtype=object)}
    )
    with pytest.warns(UserWarning, match="3 of 5 rows were rejected"):
        report = neardup.deduplicate(frame)
    assert report.rejected.column("reason").to_pylist() == [
        "text is int, not str: 7",
        "text is not valid Unicode: lone surrogate at character 0",
        "text is null",
    ]
    assert report.removed.to_pylist() == [{"doc_id": "e", "kept_id": "a", "similarity": 1.0}]
    assert report.kept.to_pylist() == [{"doc_id": "a", "id": "a", "text": FOX}]


def test_a_mixed_column_of_a_pandas_frame_is_an_error_that_names_it():
    frame = pd.DataFrame({"text": [FOX, FOX], "note": pd.Series([1, "one"], dtype=object)})
    with pytest.raises(
        DataError, match=r"column note with type object[\s\S]*hint: give every column one type"
    ):
        neardup.deduplicate(frame)


def test_values_that_arrow_cannot_represent_are_an_error_before_the_work():
    views = pa.array([["a"], ["b"]], pa.list_(pa.string_view()))
    with pytest.raises(
        DataError,
        match=r"column 'tags' has values that Arrow cannot represent: list<item: string_view>",
    ):
        memory.read(pa.table({"text": [FOX, FOX], "tags": views}), Config())


@pytest.mark.parametrize(
    ("values", "kind"), [([b"x"], "binary"), ([1, None], "int64"), ([["x"]], "list<item: string>")]
)
def test_a_column_of_another_type_is_an_error_that_names_the_type(values, kind):
    with pytest.raises(DataError, match=f"`source` must hold text, got {kind}"):
        neardup.deduplicate(pa.array(values))
    with pytest.raises(DataError, match=f"column 'text' must hold text, got {kind}"):
        neardup.deduplicate(pa.table({"text": values}))


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", None, "c"], r"id of row 1 is null"),
        ([None, None, None], r"got None \(null\)"),
        (["a", 1, "c"], r"got 1 in row 1, and 'a' in row 0"),
        ([1, 2, "c"], r"got 'c' in row 2, and 1 in row 0"),
        ([1.0, 2.0, 3.0], r"got 1.0 \(double\)"),
        ([True, False, True], r"got True \(bool\)"),
        ([b"a", b"b", b"c"], r"got b'a' \(binary\)"),
        ([1, 2, 2**63], r"got 9223372036854775808 in row 2"),
        (["a", "\ud800", "c"], r"got '\\ud800' in row 1"),
        (
            np.array([1, 2, 2**63], np.uint64),
            r"fit in a signed 64-bit integer.* 9223372036854775808",
        ),
        (arrow_text([b"a", b"\xff", b"c"], pa.string()), r"valid UTF-8"),
        (["a"], r"got 1 ids for 3 documents"),
        ([], r"got 0 ids for 3 documents"),
        ("abc", r"must be a list of ids in the order of the documents, got str"),
        ({"a", "b", "c"}, r"must be a list of ids in the order of the documents, got set"),
        (3, r"must be a list of ids in the order of the documents, got int"),
    ],
)
def test_bad_ids_are_an_error_with_value_and_hint(ids, message):
    with pytest.raises(DataError, match=rf"{message}[\s\S]*\n\nhint: "):
        neardup.deduplicate(TEXTS[:3], ids=ids)


def test_bad_ids_of_a_column_are_an_error_too():
    for ids, message in (
        (["u", None], "row 1 is null"),
        ([0.5, 1.5], "got 0.5"),
    ):
        with pytest.raises(DataError, match=message):
            neardup.deduplicate(pa.table({"text": [FOX, "x"], "url": ids}))


def test_ids_of_a_dict_are_its_keys():
    with pytest.raises(DataError, match=r"left out for a dict[\s\S]*hint: "):
        neardup.deduplicate({"a": FOX}, ids=["b"])
    with pytest.raises(DataError, match="got 'b' in row 1, and 1 in row 0"):
        neardup.deduplicate({1: FOX, "b": FOX})


def kept_scores(scores, keep):
    """The score of the kept one of several copies."""
    table = pa.table({"text": [FOX] * len(scores), "score": scores})
    return neardup.deduplicate(table, keep=keep).kept.column("score").to_pylist()


DAYS = [dt.date(2024, month, 1) for month in (5, 7, 2)]
SCORES = {
    "int": (pa.array([5, 7, 2]), 7, 2),
    "int beyond 2**53": (pa.array([2**53, 2**53 + 1, 2**53 - 1, 2**53 + 1]), 2**53 + 1, 2**53 - 1),
    "uint64": (pa.array([2**63, 2**63 + 1], pa.uint64()), 2**63 + 1, 2**63),
    "int with nulls": (pa.array([None, 7, None, 2]), 7, 2),
    "float": (pa.array([0.5, -math.inf, 7.5]), 7.5, -math.inf),
    "float with NaN and null": (pa.array([math.nan, 5.0, None, 7.0, math.nan]), 7.0, 5.0),
    "string": (pa.array(["b", "ä", "a"]), "ä", "a"),
    "string_view": (pa.array(["b", "c", "a"], pa.string_view()), "c", "a"),
    "dictionary": (pa.array(["b", "c", None, "a"]).dictionary_encode(), "c", "a"),
    "date": (pa.array(DAYS), DAYS[1], DAYS[2]),
    "bool": (pa.array([False, True]), True, False),
}


@pytest.mark.parametrize("name", SCORES)
def test_best_score_is_kept(name):
    scores, largest, smallest = SCORES[name]
    assert kept_scores(scores, "max:score") == [largest]
    assert kept_scores(scores, "min:score") == [smallest]


@pytest.mark.parametrize("keep", ["max:score", "min:score"])
def test_rows_without_a_score_rank_last_and_ties_go_by_row(keep):
    table = pa.table({"text": [FOX] * 5, "score": pa.array([None, math.nan, 1.0, 1.0, math.nan])})
    assert memory.read(table, Config(keep=keep)).documents.column("priority").to_pylist() == [
        2,
        3,
        0,
        1,
        4,
    ]


def test_first_last_and_longest_rank_the_rows():
    texts = ["aé", "aaaa", None, "日本", "b"]
    for keep, order in (("first", [0, 1, 3, 4]), ("last", [4, 3, 1, 0]), ("longest", [3, 1, 0, 4])):
        documents = memory.read(texts, Config(keep=keep)).documents
        ordered = documents.sort_by([("priority", "ascending"), ("row", "ascending")])
        assert ordered.column("row").to_pylist() == order


def test_longest_counts_the_visible_text_of_html():
    pages = [f"<p>{FOX}</p>" + "<br>" * 50, f"<p>{FOX}!</p>"]
    assert memory.read(pages, Config(keep="longest", html=True)).documents.sort_by(
        "priority"
    ).column("row").to_pylist() == [1, 0]


def test_a_score_that_cannot_be_sorted_is_an_error():
    message = r"`keep` orders by 'score', which cannot be sorted: list[\s\S]*hint: use a number, text or date"
    with pytest.raises(DataError, match=message):
        kept_scores([[1], [2]], "max:score")


def test_a_polars_frame_can_be_ordered_by_a_string_column():
    frame = pl.DataFrame(
        {
            "text": [FOX, FOX, FOX],
            "date": ["2024-02", "2024-11", "2024-07"],
            "tags": [["a"], [], None],
        }
    )
    assert neardup.deduplicate(frame, keep="max:date").kept.to_pylist() == [
        {"doc_id": 1, "text": FOX, "date": "2024-11", "tags": []}
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (FOX, r"no such file[\s\S]*the quick[\s\S]*hint: a single text goes in a list"),
        (FOX.encode(), r"got one bytes"),
        (bytearray(b"x"), r"got one bytearray"),
        ({FOX, "x"}, r"must be ordered, got a set[\s\S]*hint: pass sorted"),
        (frozenset({FOX}), r"must be ordered, got a set"),
        (3, r"got int"),
        (None, r"pass either a source or items, got neither"),
        (pathlib.Path("corpus.jsonl"), r"corpus\.jsonl"),
        (print, r"got builtin_function_or_method"),
        (np.array([[FOX]]), r"one-dimensional array of texts, got shape \(1, 1\)"),
        (np.array(FOX), r"one-dimensional array of texts, got shape \(\)"),
        (pl.LazyFrame({"text": [FOX]}), r"got LazyFrame[\s\S]*hint: pass source.collect\(\)"),
        (pl.col("text"), r"got Expr"),
        (pd.Timestamp("2024-01-01"), r"got Timestamp"),
        (pd.NA, r"got NAType"),
        (pd.DataFrame({"text": [FOX]}).groupby("text"), r"got DataFrameGroupBy"),
        (
            datasets.DatasetDict({"train": dataset([FOX])}),
            r"got the splits train[\s\S]*hint: choose one: source\['train'\]",
        ),
        (dataset([FOX]).to_iterable_dataset(), r"got IterableDataset[\s\S]*hint: pass the texts"),
        (ArrowStream(pa.chunked_array([[FOX]])), r"an Arrow stream that is not a table"),
        (pc.run_end_encode(pa.array([FOX, FOX])), r"run_end_encoded"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else None,
)
def test_an_invalid_source_is_an_error_that_names_its_type(source, message):
    with pytest.raises(DataError, match=message) as raised:
        neardup.deduplicate(source)
    assert isinstance(raised.value, NearDupError)
    assert isinstance(raised.value, ValueError)


def test_ordered_categories_rank_by_their_order_and_half_floats_as_numbers():
    grades = pd.Categorical(
        ["good", "bad", "best"], categories=["bad", "good", "best"], ordered=True
    )
    frame = pd.DataFrame(
        {"text": ["same words here"] * 3, "grade": grades, "score": np.array([1, 3, 2], np.float16)}
    )
    assert neardup.deduplicate(frame, keep="max:grade").kept.column("grade").to_pylist() == ["best"]
    assert neardup.deduplicate(frame, keep="min:grade").kept.column("grade").to_pylist() == ["bad"]
    assert neardup.deduplicate(frame, keep="max:score").kept.column("score").to_pylist() == [3]
