"""If most documents have fewer than ten shingles, a run warns, and its advice finds the typos."""

from __future__ import annotations

import json
import warnings

import pytest

import neardup
from neardup.theory.shingle_advice import advise_on_short

# Every second record is the one before it with one typo.
CONTACTS = [
    "Margaret Hollingsworth, 14 Quarry Lane, Bakewell, Derbyshire",
    "Margaret Holingsworth, 14 Quarry Lane, Bakewell, Derbyshire",
    "Tomasz Wisniewski, 3 Ferry Road, Whitby, North Yorkshire",
    "Tomasz Wisniewski, 3 Ferry Raod, Whitby, North Yorkshire",
    "Eleanor Abernathy, 209 Sycamore Drive, Crewe, Cheshire",
    "Eleanor Abernathy, 209 Sycamore Drive, Crewe, Chesire",
]
MESSAGE = (
    "6 of 6 documents have fewer than 10 shingles, so a single typo can hide a match; "
    "consider unit='char' and size=3"
)


def test_the_library_warns_of_short_documents_and_its_advice_finds_the_typos():
    with pytest.warns(UserWarning, match="consider unit='char' and size=3") as warned:
        report = neardup.deduplicate(CONTACTS)
    assert (report.num_removed, report.warnings) == (0, (MESSAGE,))
    assert [warning.filename for warning in warned] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advised = neardup.deduplicate(CONTACTS, unit="char", size=3)
    assert [row["doc_id"] for row in advised.removed.to_pylist()] == [1, 3, 5]


def test_a_progress_function_receives_the_warning_instead():
    heard = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neardup.find_pairs(CONTACTS, progress=heard.append)
    assert MESSAGE in [getattr(event, "message", None) for event in heard]


def test_runs_on_files_warn_too(tmp_path):
    path = tmp_path / "contacts.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in CONTACTS))
    for ask in (neardup.deduplicate, neardup.find_pairs):
        with pytest.warns(UserWarning, match="6 of 6 documents"):
            ask(str(path))


def test_containment_warns_too():
    with pytest.warns(UserWarning, match="6 of 6 documents"):
        neardup.find_pairs(CONTACTS, measure="containment")


@pytest.mark.parametrize(
    ("texts", "settings"),
    [
        ([" ".join(map(str, range(14)))] * 2, {}),
        ([*CONTACTS[:2], *[" ".join(map(str, range(14)))] * 2], {}),
        ([CONTACTS[0], "", "", "..."], {}),
        (["tea", "teas"], {"unit": "char", "size": 3}),
    ],
    ids=["ten shingles", "half", "one with shingles", "short shingles"],
)
def test_no_warning_if_its_advice_would_not_help(texts, settings):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert neardup.deduplicate(texts, **settings).warnings == ()


def test_sets_of_items_cause_no_warning_about_short_documents():
    assert neardup.deduplicate(items=[["a"], ["b"], ["a"]]).warnings == ()


def test_the_warning_needs_more_than_half_short_documents():
    assert advise_on_short(2, 4) is None
    assert advise_on_short(3, 5) is not None
    assert advise_on_short(1, 1) is None
