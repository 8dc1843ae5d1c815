"""Rows in memory that cannot be used are rejected with a reason, as in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import neardup
from neardup.errors import DataError
from neardup.io.columns import html

GOOD = ["tea", "milk", "jam"]


def rejected(source=None, **settings):
    report = neardup.find_pairs(source, threshold=0.5, **settings)
    return {row["row"]: row["reason"] for row in report.rejected.to_pylist()}, report.num_pairs


@pytest.mark.parametrize(
    "odd", [["tea", "\ud800"], "tea x\udfff", ("\ud83d",), np.array(["tea", "\ud800"])], ids=ascii
)
def test_items_with_a_lone_surrogate_are_rejected(odd):
    reasons, num_pairs = rejected(items=[GOOD, odd, GOOD])
    assert list(reasons) == [1]
    assert reasons[1].startswith("an item is not valid Unicode: lone surrogate at character ")
    assert reasons[1].isascii()
    assert num_pairs == 1


@pytest.mark.parametrize(
    "odd", [{"tea": 1, "\ud800": 2}, "tea:1 \ud800:2", [("\ud800", 1)]], ids=ascii
)
def test_weighted_items_with_a_lone_surrogate_are_rejected(odd):
    good = {"tea": 1, "milk": 2}
    reasons, num_pairs = rejected(items=[good, odd, good], measure="weighted")
    assert list(reasons) == [1]
    assert "lone surrogate" in reasons[1]
    assert num_pairs == 1


@pytest.mark.parametrize("measure", ["cosine", "euclidean", "hamming"])
def test_a_masked_number_rejects_its_row_of_a_matrix(measure):
    matrix = np.ma.array(
        [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 1.0]], mask=[[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    )
    reasons, num_pairs = rejected(matrix, measure=measure)
    assert reasons == {1: "vector contains a null"}
    assert num_pairs == 1
    assert rejected(np.ma.array(matrix.data), measure=measure) == ({}, 3)


def test_a_masked_number_rejects_its_vector_in_a_list():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    reasons, num_pairs = rejected(
        [[1.0, 2.0], masked, np.array([1.0, 2.0]), [1.0, np.ma.masked]], measure="cosine"
    )
    assert list(reasons) == [1, 3]
    assert reasons[1] == "vector contains a null"
    assert num_pairs == 1


def test_masked_items_reject_their_row():
    odd = np.ma.array(["tea", "milk"], mask=[False, True])
    assert list(rejected(items=[GOOD, odd, GOOD])[0]) == [1]
    pairs = np.ma.array([["tea", "1"], ["milk", "2"]], mask=[[False, False], [False, True]])
    good = [("tea", 1), ("milk", 2)]
    assert list(rejected(items=[good, pairs, good], measure="weighted")[0]) == [1]


def test_masked_texts_are_null():
    texts = np.ma.array(["one text", "hidden", "one text"], mask=[False, True, False])
    assert rejected(texts) == ({1: "text is null"}, 1)


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
@pytest.mark.parametrize("items", [[GOOD, {"tea": 2}], {"a": GOOD, "b": {"tea": 2}}])
def test_weights_that_a_measure_does_not_compare_are_an_error(measure, items):
    with pytest.raises(
        DataError, match=rf"row 1 are a dict, whose weights the measure '{measure}'"
    ) as error:
        neardup.find_pairs(items=items, measure=measure)
    assert "measure='weighted'" in error.value.hint
    assert neardup.find_pairs(items=[{"tea": 2}, {"tea": 2}], measure="weighted").num_pairs == 1


def test_a_page_that_cannot_be_parsed_is_rejected_alone(monkeypatch):
    real = html.html_to_text

    def fails(pages, config):
        if "<p>bad</p>" in pages.to_pylist():
            raise RuntimeError("no\ntree")
        return real(pages, config)

    monkeypatch.setattr(html, "html_to_text", fails)
    pages = ["<p>one</p>", "<p>bad</p>", None, "<p>one</p>"]
    reasons, num_pairs = rejected(pages, html=True)
    assert reasons == {1: "cannot be parsed as HTML: no tree", 2: "text is null"}
    assert num_pairs == 1
    with pytest.raises(DataError, match="row 1 cannot be used: cannot be parsed as HTML"):
        neardup.deduplicate(pages, html=True, strict=True)
    with pytest.raises(DataError, match="cannot be parsed as HTML"):
        neardup.compare("<p>bad</p>", "<p>one</p>", html=True)


def objects(**columns):
    """A frame whose columns hold Python objects."""
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


@pytest.mark.parametrize(
    "odd",
    [["tea", "\ud800"], np.ma.array(["tea", "milk"], mask=[False, True]), ["tea", None]],
    ids=ascii,
)
def test_items_in_a_frame_that_cannot_be_used_are_rejected(odd):
    reasons, num_pairs = rejected(
        objects(basket=[GOOD, odd, GOOD], shop=["a", "b", "c"]), items_column="basket"
    )
    assert list(reasons) == [1]
    assert num_pairs == 1


def test_a_lone_surrogate_in_one_of_several_text_columns_is_an_error():
    frame = objects(title=["tea", "\ud800", "tea"], body=["milk", "milk", "jam"])
    with pytest.raises(DataError, match="surrogates not allowed"):
        neardup.find_pairs(frame, text_column=["title", "body"])


def test_a_lone_surrogate_in_another_column_is_an_error_that_can_be_printed():
    with pytest.raises(DataError, match="surrogates not allowed") as error:
        neardup.find_pairs(objects(text=["tea", "milk"], shop=["a", "\ud800"]))
    assert str(error.value).isascii()
