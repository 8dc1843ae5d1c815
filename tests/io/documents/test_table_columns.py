"""Columns of a table in memory: several text columns, groups that are not compared, and paths as sources."""

from __future__ import annotations

import json
import random

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError

FOX = "the quick brown fox jumps over the lazy dog and runs away"
TWO_COLUMNS = pa.table(
    {
        "title": ["one two three", "one two three", "one two", None],
        "body": ["four five six", "four five six", "three four five six", "four five six"],
    }
)


def removed(report):
    return [(row["doc_id"], row["kept_id"]) for row in report.removed.to_pylist()]


# groups


def test_documents_of_different_groups_are_not_compared():
    table = pa.table({"text": [FOX, FOX, FOX, FOX + " now"], "site": ["x", "y", "x", "y"]})
    assert removed(neardup.deduplicate(table)) == [(1, 0), (2, 0), (3, 0)]
    assert removed(neardup.deduplicate(table, group_column="site")) == [(2, 0), (3, 1)]


@pytest.mark.parametrize(
    "groups",
    [
        pa.array([1, 2, 1, None, None]),
        pa.array(["b", "a", "b", None, None]),
        pa.array([1.5, 2.5, 1.5, None, None]),
        pa.array([True, False, True, None, None]),
        pa.array(["b", "a", "b", None, None]).dictionary_encode(),
        pa.array(["b", "", "b", None, None], pa.string_view()),
    ],
    ids=lambda groups: str(groups.type),
)
def test_a_group_may_have_any_type_and_null_is_a_group_too(groups):
    table = pa.table({"text": [FOX] * 5, "group": groups})
    assert removed(neardup.deduplicate(table, group_column="group")) == [(2, 0), (4, 3)]


@pytest.mark.parametrize(
    "as_frame", [lambda table: table.to_pandas(), pl.from_arrow], ids=["pandas", "polars"]
)
def test_groups_of_frames_are_those_of_tables(as_frame):
    table = pa.table({"id": list("abcd"), "text": [FOX] * 4, "site": ["x", "y", "y", "x"]})
    assert removed(neardup.deduplicate(as_frame(table), group_column="site")) == [
        ("c", "b"),
        ("d", "a"),
    ]


@pytest.mark.parametrize(
    "settings", [{}, {"cluster": "components"}, {"pairs": True}, {"keep": "last"}]
)
@pytest.mark.parametrize("seed", range(3))
def test_groups_give_what_a_run_on_each_alone_gives(seed, settings):
    rng = random.Random(seed)
    texts = [" ".join(f"{rng.randrange(2)}w{at}" for at in range(6)) for _ in range(80)]
    groups = [rng.choice("xyz") for _ in texts]
    settings = {
        "size": 1,
        "threshold": 0.5,
        "bands": 128,
        "rows": 1,
        "signature_filter": False,
    } | settings
    whole = neardup.deduplicate(
        pa.table({"text": texts, "g": groups}), group_column="g", **settings
    )
    apart = {}
    for group in "xyz":
        own = {
            row: text
            for row, (text, its) in enumerate(zip(texts, groups, strict=True))
            if its == group
        }
        for row in neardup.deduplicate(own, **settings).removed.to_pylist():
            apart[row["doc_id"]] = row
    assert {row["doc_id"]: row for row in whole.removed.to_pylist()} == apart
    assert apart


def test_empty_documents_of_different_groups_are_not_one_class():
    table = pa.table({"text": ["", "...", "!", ""], "g": ["x", "y", "x", "y"]})
    assert removed(neardup.deduplicate(table, group_column="g", collapse_empty=True)) == [
        (2, 0),
        (3, 1),
    ]
    assert removed(neardup.deduplicate(table, group_column="g")) == []


def test_a_missing_group_column_is_an_error():
    with pytest.raises(ConfigError, match="`group_column` names 'site'"):
        neardup.deduplicate(pa.table({"text": [FOX]}), group_column="site")
    with pytest.raises(ConfigError, match="the source has no columns"):
        neardup.deduplicate([FOX], group_column="site")


# several text columns


def test_several_text_columns_form_one_text():
    report = neardup.deduplicate(TWO_COLUMNS, text_column=("title", "body"), size=2)
    assert report.columns["text"] == "title + body"
    assert removed(report) == [(1, 0), (2, 0)]
    assert report.kept.drop_columns("doc_id").equals(TWO_COLUMNS.take([0, 3]))


def test_the_text_is_that_of_the_columns_joined_by_a_newline():
    joined = [
        "\n".join(text for text in row.values() if text is not None)
        for row in TWO_COLUMNS.to_pylist()
    ]
    settings = {"unit": "char", "size": 3, "threshold": 0.1}
    several = neardup.find_pairs(TWO_COLUMNS, text_column=("title", "body"), **settings)
    one = neardup.find_pairs(joined, **settings)
    assert several.pairs.equals(one.pairs)
    assert several.pairs.num_rows > 0


def test_text_columns_are_joined_in_the_order_given():
    table = pa.table({"title": ["a b", "a b c d"], "body": ["c d", ""]})
    assert neardup.find_pairs(table, text_column=("title", "body"), size=4).num_pairs == 1
    assert neardup.find_pairs(table, text_column=("body", "title"), size=4).num_pairs == 0


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_text_columns_of_frames_are_joined_too(as_frame):
    report = neardup.deduplicate(
        as_frame(TWO_COLUMNS.to_pydict()), text_column=("title", "body"), size=2
    )
    assert removed(report) == [(1, 0), (2, 0)]


def test_a_row_without_any_text_is_rejected():
    table = pa.table(
        {"a": [None, "x y"], "b": [None, "z"]},
        schema=pa.schema([("a", pa.string()), ("b", pa.string())]),
    )
    report = neardup.deduplicate(table, text_column=("a", "b"))
    assert report.rejected.column("row").to_pylist() == [0]
    assert report.num_kept == 1
    with pytest.raises(DataError, match="row 0 cannot be used"):
        neardup.deduplicate(table, text_column=("a", "b"), strict=True)


def test_one_missing_text_column_of_several_is_an_error():
    with pytest.raises(ConfigError, match="`text_column` names 'abstract'"):
        neardup.deduplicate(TWO_COLUMNS, text_column=("title", "abstract"))


def test_chunked_text_columns_are_joined_row_by_row():
    parts = [TWO_COLUMNS.slice(0, 1), TWO_COLUMNS.slice(1, 0), TWO_COLUMNS.slice(1)]
    report = neardup.deduplicate(pa.concat_tables(parts), text_column=("title", "body"), size=2)
    assert removed(report) == [(1, 0), (2, 0)]


# a path is files, a list of str is texts


@pytest.mark.parametrize(
    "as_source", [str, lambda path: path, lambda path: [path], lambda path: str(path.parent)]
)
def test_a_path_is_read_as_files(tmp_path, as_source):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"id": name, "text": FOX}) + "\n" for name in "ab"), "utf-8")
    report = neardup.deduplicate(as_source(path))
    assert removed(report) == [("b", "a")]
    assert [entry["file"] for entry in report.inputs] == ["a.jsonl"]
    assert report.out is None
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_text_in_place_of_a_path_gets_a_hint_to_pass_a_list():
    with pytest.raises(DataError, match="no such file, folder or glob: 'the quick") as error:
        neardup.deduplicate(FOX)
    assert "[text]" in error.value.hint


def test_a_list_of_str_is_texts_even_if_they_name_files(tmp_path):
    (tmp_path / "a.jsonl").write_text("", "utf-8")
    report = neardup.deduplicate([str(tmp_path / "a.jsonl")] * 2)
    assert (report.documents, report.inputs) == (2, ())


@pytest.mark.parametrize("collapse_empty", [True, False])
def test_empty_documents_of_files_are_collapsed_on_request(tmp_path, collapse_empty):
    path = tmp_path / "a.jsonl"
    texts = ["", "words of a text", "...", " ", "words of a text"]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    report = neardup.deduplicate(path, collapse_empty=collapse_empty, pairs=True)
    empty = [("a.jsonl:3", "a.jsonl:1"), ("a.jsonl:4", "a.jsonl:1")] if collapse_empty else []
    assert removed(report) == [*empty, ("a.jsonl:5", "a.jsonl:2")]
    assert report.num_pairs == (4 if collapse_empty else 1)
    assert (
        neardup.deduplicate(texts, collapse_empty=collapse_empty).num_removed == report.num_removed
    )


def test_a_collapsed_empty_document_represents_the_others_in_keep_order():
    assert removed(neardup.deduplicate(["", "...", " "], collapse_empty=True, keep="last")) == [
        (0, 2),
        (1, 2),
    ]
    assert removed(neardup.deduplicate(["", "...", " "], collapse_empty=True, keep="longest")) == [
        (0, 1),
        (2, 1),
    ]
