"""Payloads and times of expiry of many documents at once: from columns, keys and sequences, of any source."""

from __future__ import annotations

import datetime as dt
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import neardup
from neardup import Index
from neardup.errors import ConfigError, DataError
from support.index_texts import texts

TEXTS = list(texts(3, seed=61).values())
PAYLOADS = [{"lang": "de", "n": 1}, None, {"site": {"name": "x"}}]
LATER = dt.datetime(2100, 1, 31, 12, tzinfo=dt.UTC)
SECONDS = LATER.timestamp()
LOCAL = LATER.replace(tzinfo=None).timestamp()  # a time without a zone is local, as for `insert`
ROWS = [
    {"id": "a", "text": TEXTS[0], "payload": PAYLOADS[0], "expires": SECONDS},
    {"id": "b", "text": TEXTS[1], "payload": PAYLOADS[1], "expires": None},
    {"id": "c", "text": TEXTS[2], "payload": PAYLOADS[2], "expires": SECONDS + 1},
]
TABLE = pa.Table.from_pylist(ROWS)
INSERTS = ["insert_many", "insert_new_many", "put_many"]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "pages.index", durability="fast") as made:
        yield made


def stored(index):
    """Payload and time of every document."""
    return {
        name: (found.payload, found.expires) for name, found in index.get_many(index.ids()).items()
    }


EVERY = {"a": (PAYLOADS[0], SECONDS), "b": (None, None), "c": (PAYLOADS[2], SECONDS + 1)}


def as_rows(folder):  # noqa: ARG001
    return ROWS


def as_generator(folder):  # noqa: ARG001
    return iter(ROWS)


def as_arrow(folder):  # noqa: ARG001
    return TABLE


def as_map_column(folder):  # noqa: ARG001
    only = [{"lang": "de"}, None, {"site": "x"}]
    maps = pa.array(
        [payload and list(payload.items()) for payload in only], pa.map_(pa.string(), pa.string())
    )
    return TABLE.set_column(2, "payload", maps)


def as_polars(folder):  # noqa: ARG001
    return pl.from_arrow(TABLE)


def as_pandas(folder):  # noqa: ARG001
    return TABLE.to_pandas()


def as_parquet(folder):
    times = pa.array([LATER, None, LATER + dt.timedelta(seconds=1)], pa.timestamp("ns", "UTC"))
    pq.write_table(TABLE.set_column(3, "expires", times), folder / "rows.parquet")
    return folder / "rows.parquet"


def as_feather(folder):
    feather.write_feather(TABLE, folder / "rows.arrow")
    return folder / "rows.arrow"


def as_json_lines(folder):
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return folder / "rows.jsonl"


def as_json_array(folder):
    (folder / "rows.json").write_text(json.dumps(ROWS))
    return folder / "rows.json"


def as_csv(folder):
    frame = pd.DataFrame(ROWS)
    frame["payload"] = [None if payload is None else json.dumps(payload) for payload in PAYLOADS]
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_finished_run(folder):
    neardup.deduplicate(as_json_lines(folder), out=folder / "run")
    return folder / "run"


SOURCES = [
    *(as_rows, as_generator, as_arrow, as_polars, as_pandas, as_parquet, as_feather),
    *(as_json_lines, as_json_array, as_csv, as_finished_run),
]


@pytest.mark.parametrize("source", SOURCES)
def test_columns_and_keys_named_payload_and_expires_are_stored(index, tmp_path, source):
    index.insert_many(source(tmp_path))
    assert stored(index) == EVERY


@pytest.mark.parametrize("insert", INSERTS)
def test_every_insert_of_many_stores_them(index, insert):
    getattr(index, insert)(ROWS)
    assert stored(index) == EVERY


def test_a_column_of_maps_is_a_payload(index, tmp_path):
    index.insert_many(as_map_column(tmp_path))
    assert [payload for payload, _ in stored(index).values()] == [
        {"lang": "de"},
        None,
        {"site": "x"},
    ]


@pytest.mark.parametrize("source", [as_rows, as_arrow, as_json_lines, as_parquet, as_csv])
def test_other_columns_can_be_named_and_an_empty_name_stores_none(index, tmp_path, source):
    index.insert_many(source(tmp_path), payload="", expires="")
    assert set(stored(index).values()) == {(None, None)}
    index.remove(index.ids())
    renamed = [
        {"id": row["id"], "text": row["text"], "meta": row["payload"], "until": row["expires"]}
        for row in ROWS
    ]
    index.insert_many(renamed)
    assert set(stored(index).values()) == {(None, None)}
    index.remove(index.ids())
    index.insert_many(renamed, payload="meta", expires="until")
    assert stored(index) == EVERY


def test_a_dotted_name_leads_into_an_object(index, tmp_path):
    nested = [
        {"id": row["id"], "text": row["text"], "page": {"meta": row["payload"]}} for row in ROWS
    ]
    (tmp_path / "nested.jsonl").write_text("".join(json.dumps(row) + "\n" for row in nested))
    for source in (nested, tmp_path / "nested.jsonl"):
        index.insert_many(source, payload="page.meta")
        assert [payload for payload, _ in stored(index).values()] == PAYLOADS
        index.remove(index.ids())


@pytest.mark.parametrize("source", [as_rows, as_arrow, as_json_lines, as_parquet, as_csv])
def test_a_named_column_that_no_row_has_is_an_error_and_stores_nothing(index, tmp_path, source):
    with pytest.raises(
        DataError, match="`payload` names 'meta', a column that no row of the source has"
    ):
        index.insert_many(source(tmp_path), payload="meta")
    assert len(index) == 0


@pytest.mark.parametrize("insert", INSERTS)
@pytest.mark.parametrize(
    "source",
    [dict(zip("abc", TEXTS, strict=True)), [*zip("abc", TEXTS, strict=True)]],
    ids=["dict", "pairs"],
)
def test_sequences_are_parallel_to_the_documents(index, insert, source):
    getattr(index, insert)(source, payload=PAYLOADS, expires=[LATER, None, SECONDS + 1])
    assert stored(index) == EVERY


def test_a_sequence_replaces_the_column(index):
    index.insert_many(TABLE, payload=[{"own": 1}, {"own": 2}, None], expires=[None] * 3)
    assert list(stored(index).values()) == [({"own": 1}, None), ({"own": 2}, None), (None, None)]


@pytest.mark.parametrize(
    "times",
    [
        np.array([LOCAL, np.nan, LOCAL + 1]),
        np.array(["2100-01-31T12:00:00", "NaT", "2100-01-31T12:00:01"], "datetime64[ns]"),
        list(np.array(["2100-01-31T12:00:00", "NaT", "2100-01-31T12:00:01"], "datetime64[ns]")),
        pd.Series(pd.to_datetime(["2100-01-31T12:00:00", None, "2100-01-31T12:00:01"])),
        pa.array([LOCAL, None, LOCAL + 1]),
        ["2100-01-31T12:00", None, "2100-01-31T12:00:01"],
        [str(LOCAL), None, str(LOCAL + 1)],
    ],
    ids=[
        "floats",
        "datetime64",
        "list of datetime64",
        "pandas",
        "arrow",
        "texts",
        "texts of seconds",
    ],
)
def test_times_of_any_kind_are_read(index, times):
    index.insert_many(dict(zip("abc", TEXTS, strict=True)), expires=times)
    assert [expires for _, expires in stored(index).values()] == [LOCAL, None, LOCAL + 1]


def test_a_date_and_eight_digits_are_the_start_of_a_day(index):
    day = dt.datetime(2100, 1, 31).timestamp()  # local, as for `insert`
    index.insert_many(
        dict(zip("abc", TEXTS, strict=True)),
        expires=[dt.date(2100, 1, 31), "21000131", "2100-01-31"],
    )
    assert [expires for _, expires in stored(index).values()] == [day] * 3


@pytest.mark.parametrize("source", [as_rows, as_json_lines])
def test_payloads_of_different_types_keep_their_own_keys(index, tmp_path, source):
    mixed = [{"n": 1}, {"n": "one"}, {"n": [True, None]}]
    rows = [
        {"id": row["id"], "text": row["text"], "payload": payload}
        for row, payload in zip(ROWS, mixed, strict=True)
    ]
    if source is as_json_lines:
        (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        rows = tmp_path / "mixed.jsonl"
    index.insert_many(rows)
    assert [payload for payload, _ in stored(index).values()] == mixed


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize("is_vector", [False, True])
def test_payloads_stay_with_their_documents_when_rows_between_are_rejected(
    tmp_path, ending, is_vector
):
    contents = [[0.5, 1.0], None, [1.0, 0.25]] if is_vector else [TEXTS[0], None, TEXTS[2]]
    name = "vector" if is_vector else "text"
    rows = [
        {"id": doc_id, name: content, "payload": json.dumps({"id": doc_id}), "expires": SECONDS}
        for doc_id, content in zip("abc", contents, strict=True)
    ]
    path = tmp_path / f"rows.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pd.DataFrame(rows).assign(
            **{name: [json.dumps(contents[0]), "x y" * is_vector, contents[2]]}
        ).to_csv(path)
    settings = {"measure": "cosine", "dimension": 2} if is_vector else {}
    with Index.create(tmp_path / "index", **settings) as index:
        result = index.insert_many(path)
        found = stored(index)
        assert len(found) + len(result.rejected) == 3
        assert all(found[doc_id] == ({"id": doc_id}, SECONDS) for doc_id in found)
        assert {"a", "c"} <= found.keys()


@pytest.mark.parametrize("insert", INSERTS)
def test_a_row_with_a_wrong_payload_or_time_is_rejected_with_its_reason(index, tmp_path, insert):
    rows = [
        {"id": "good", "text": TEXTS[0], "payload": {"n": 1}},
        {"id": "list", "text": TEXTS[1], "payload": [1, 2]},
        {"id": "no text", "text": None},
        {"id": "large", "text": TEXTS[1], "payload": {"x": "y" * 70_000}},
        {"id": "never", "text": TEXTS[2], "expires": "never"},
        {"id": "broken", "text": TEXTS[2], "payload": "{not json"},
    ]
    reasons = [
        "the payload is not a JSON object: [1, 2]",
        "text is null",
        "the payload has 70,009 bytes, more than the 65,536 allowed",
        "expires is not a time: 'never'",
        "the payload is not a JSON object: Expecting property name enclosed in double quotes",
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source, places in ((rows, "row {}"), (tmp_path / "rows.jsonl", "rows.jsonl:{}")):
        result = getattr(index, insert)(source)
        first = 1 if source is rows else 2
        assert [place for place, _ in result.rejected] == [
            places.format(row) for row in range(first, first + 5)
        ]
        assert all(
            found.startswith(reason)
            for (_, found), reason in zip(result.rejected, reasons, strict=True)
        )
        assert stored(index) == {"good": ({"n": 1}, None)}
        index.remove("good")


def test_strict_makes_a_wrong_payload_an_error_that_stores_nothing(index, tmp_path):
    (tmp_path / "rows.jsonl").write_text(
        json.dumps(ROWS[0]) + '\n{"id": "b", "text": "b", "payload": 7}\n'
    )
    rows = [ROWS[0], {"id": "b", "text": "b", "payload": 7}]
    for source, place in ((tmp_path / "rows.jsonl", "rows.jsonl:2"), (rows, "row 1")):
        with pytest.raises(
            DataError, match=f"{place} cannot be used: the payload is not a JSON object: 7"
        ):
            index.insert_many(source, config=neardup.Config(strict=True))
        assert len(index) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"payload": {"lang": "de"}},
            "`payload` must be the name of a column, or a list with one value per document",
        ),
        ({"expires": 4e9}, "`expires` must be the name of a column, or a list"),
        (
            {"payload": PAYLOADS[:2]},
            "`payload` must have one value per document, got 2 for 3 documents",
        ),
    ],
)
def test_arguments_that_fit_no_source_are_errors(index, arguments, message):
    with pytest.raises((ConfigError, DataError), match=message):
        index.insert_many(dict(zip("abc", TEXTS, strict=True)), **arguments)
    assert len(index) == 0


def test_values_for_files_are_an_error_because_rows_have_no_known_order(index, tmp_path):
    with pytest.raises(ConfigError, match="`payload` must be the name of a column for files"):
        index.insert_many(as_json_lines(tmp_path), payload=PAYLOADS)


def test_a_text_column_named_payload_is_no_payload(index):
    rows = [{"id": "a", "payload": TEXTS[0]}]
    index.insert_many(rows, config=neardup.Config(text_column="payload"))
    assert stored(index) == {"a": (None, None)}


def test_insert_new_many_does_not_match_documents_that_have_expired(index):
    rows = [
        {"id": "gone", "text": TEXTS[0], "expires": 1.0},
        {"id": "new", "text": TEXTS[0]},
        {"id": "known", "text": TEXTS[0]},
    ]
    result = index.insert_new_many(rows)
    assert result.rows.column("is_new").to_pylist() == [True, True, False]
    assert list(index.ids()) == ["new"]


def test_an_exported_index_can_be_inserted_again(tmp_path):
    with (
        Index.create(tmp_path / "a", store="text") as first,
        Index.create(tmp_path / "b", store="text") as second,
    ):
        first.insert_many(ROWS)
        for name in ("all.parquet", "all.jsonl", "all.csv"):
            first.export(tmp_path / name)
            second.insert_many(tmp_path / name, config=neardup.Config(id_column="doc_id"))
            assert stored(second) == stored(first) == EVERY
            second.remove(second.ids())


def test_an_update_of_the_index_stores_the_kept_documents_without_payloads(tmp_path):
    rows = [
        *ROWS,
        {
            "id": "odd",
            "text": "a text about the price of rice in the south",
            "payload": "no object",
        },
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Index.create(tmp_path / "pages.index").close()
    from neardup.jobs.against_index import _insert

    neardup.deduplicate(tmp_path / "rows.jsonl", out=tmp_path / "out")
    _insert(str(tmp_path / "pages.index"), tmp_path / "out")
    with Index.open(tmp_path / "pages.index") as index:
        assert list(index.ids()) == ["a", "b", "c", "odd"]
        assert set(stored(index).values()) == {(None, None)}
