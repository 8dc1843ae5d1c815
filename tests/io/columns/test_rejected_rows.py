"""The code of every reason, worded by the function that rejects rows for it."""

from __future__ import annotations

import csv

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.io.columns.column_checks import reason_against
from neardup.io.columns.gather import RowError, reason_against_bytes, weighted_items
from neardup.io.columns.json_reasons import (
    reason_against_items,
    reason_against_json,
    reason_against_numbers,
    reason_against_texts,
)
from neardup.io.columns.oversize import reason_against_size
from neardup.io.columns.rejected_rows import RejectedRow, RejectionCode, code_of
from neardup.io.columns.vector_columns import vector_contents
from neardup.io.columns.weights import weighted_contents
from neardup.io.formats.csv import _reason as reason_against_csv

PLAIN = Config()
LATIN = "été".encode("latin-1")
NOT_UTF8 = UnicodeDecodeError("utf-8", LATIN, 0, 1, "invalid start byte")


def json_error(line):
    with pytest.raises(msgspec.DecodeError) as raised:
        msgspec.json.decode(line, type=msgspec.defstruct("Row", []))
    return raised.value


def vector_reasons(column, **settings):
    return vector_contents(column, Config(**{"measure": "cosine"} | settings)).reasons.values()


def rejected(rows, **settings):
    """The reason of the only rejected row of a run in memory."""
    report = neardup.deduplicate([*([{"text": "a b c"}] * 3), *rows], **settings)
    return report.rejected.column("reason")[0].as_py()


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (reason_against_bytes(LATIN, PLAIN), "NOT_UTF8"),
        (reason_against(NOT_UTF8), "NOT_UTF8"),
        (reason_against_bytes(LATIN, Config(encoding="utf-16")), "NOT_VALID"),
        (reason_against("\ud800"), "NOT_VALID"),
        (reason_against(None), "NO_TEXT"),
        (reason_against({"not valid UTF-8": "broken JSON"}), "NO_TEXT"),
        (reason_against_texts([("body", 7)]), "NO_TEXT"),
        (reason_against_texts([("vector", msgspec.UNSET)]), "NO_COLUMN"),
        (reason_against_numbers("items", msgspec.UNSET), "NO_COLUMN"),
        (reason_against_items("a: b", msgspec.UNSET, PLAIN), "NO_COLUMN"),
        (reason_against_csv(csv.Error("unexpected end of data"), [b"", b"", b""]), "BROKEN_CSV"),
        (reason_against_csv(csv.Error("line contains NUL"), [b""]), "BROKEN_CSV"),
        (reason_against_csv(csv.Error("new-line character seen"), [b""]), "OTHER"),
        (reason_against_json(b"text", json_error(b"text")), "BROKEN_JSON"),
        (reason_against_json(b"[]", json_error(b"[]")), "BROKEN_JSON"),
        (reason_against_json(b"", RecursionError()), "OTHER"),
        (reason_against_size(50, PLAIN), "TOO_LONG"),
        (reason_against_items("items", None, PLAIN), "NO_ITEMS"),
        (reason_against_items("items", 7, PLAIN), "NO_ITEMS"),
        (reason_against_items("items", [None], PLAIN), "NO_ITEMS"),
        (reason_against_numbers("vector", None), "NO_VECTOR"),
        (reason_against_numbers("vector", "text"), "NO_VECTOR"),
        (reason_against_numbers("vector", [None]), "NO_VECTOR"),
    ],
)
def test_a_reason_has_the_code_of_its_way_out(reason, code):
    assert code_of(reason).name == code


@pytest.mark.parametrize(
    ("column", "settings"),
    [
        (pa.array([None, [1.0]]), {}),
        (pa.array([[0.0], [1.0]]), {}),
        (pa.array([[], [1.0]], pa.list_(pa.float64())), {}),
        (pa.array([[1.0, 2.0], [1.0]]), {"dimension": 1}),
        (pa.array([[np.nan], [1.0]]), {}),
        (pa.array([["a"]]), {}),
        (pa.array([[1, 2], [0, 1]]), {"measure": "hamming"}),
        (pa.array([[1, 300]]), {"measure": "hamming", "packed": True}),
    ],
)
def test_reasons_against_vectors_have_one_code(column, settings):
    reasons = vector_reasons(column, **settings)
    assert {code_of(reason).name for reason in reasons} == {"NO_VECTOR"}


def test_reasons_against_weighted_items_have_a_code_unless_a_weight_is_wrong():
    reasons = weighted_contents(pa.array([7]), 1)[1].values()
    assert [code_of(reason).name for reason in reasons] == ["NO_ITEMS"]
    with pytest.raises(RowError) as raised:
        weighted_items(0)
    assert code_of(str(raised.value)).name == "NO_ITEMS"
    below = weighted_contents(pa.array([{"a": -1.0}], pa.map_(pa.string(), pa.float64())), 1)[1]
    assert [code_of(reason).name for reason in below.values()] == ["OTHER"]


def test_reasons_of_runs_have_codes(tmp_path):
    assert code_of(rejected([{"text": None}])).name == "NO_TEXT"
    assert code_of(rejected([{"text": 7}])).name == "NO_TEXT"
    assert code_of(rejected([7])).name == "OTHER"
    (tmp_path / "a.csv").write_text("text,n\na,1\nb;2\n")
    report = neardup.deduplicate(tmp_path / "a.csv", out=tmp_path / "out")
    assert code_of(report.rejected.column("reason")[0].as_py()).name == "NUM_FIELDS"


def test_every_code_but_one_for_columns_has_words_of_its_own():
    assert code_of("") is RejectionCode.OTHER
    assert code_of("cannot be parsed as HTML: depth") is RejectionCode.NOT_HTML


def test_a_rejected_row_reads_as_place_and_reason():
    assert f"{RejectedRow('a: b.csv row 3', 'text is null')}" == "a: b.csv row 3: text is null"
