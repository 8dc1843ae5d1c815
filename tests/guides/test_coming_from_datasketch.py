"""Every row of docs/coming-from-datasketch.md is executed by datasketch and by neardup, and compared."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import datasketch
import numpy as np
import pytest

import neardup

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coming-from-datasketch.md").read_text("utf-8")
WORDS = [f"word{number}" for number in range(130)]
A, B, C = WORDS[:100], WORDS[5:105], WORDS[60:130]
SIMILARITY = 95 / 105


def rows():
    """The rows with two calls: name to (datasketch, neardup)."""
    found = re.findall(r"^\| ([^|`]+) \| `([^|]+)` \| `([^|]+)` \|$", PAGE, re.MULTILINE)
    return {name: (theirs, ours) for name, theirs, ours in found}


def is_near(value, exact):
    return abs(value - exact) < 0.12


# What must hold in the names that the calls of datasketch and of neardup have set.
CHECKS = {
    "sign sets": lambda theirs, ours: len(theirs["signed"]) == len(ours["signed"]) == 3,
    "sign one set": lambda theirs, ours: (
        theirs["one"] == theirs["signed"][0] and (ours["one"] == ours["signed"][0]).all()
    ),
    "estimate a similarity": lambda theirs, ours: (
        is_near(theirs["estimate"], SIMILARITY) and is_near(ours["estimate"], SIMILARITY)
    ),
    "compute it exactly": lambda theirs, ours: theirs["exact"] == ours["exact"] == SIMILARITY,
    "sign a union": lambda theirs, ours: (
        (
            theirs["union"].digest() == np.minimum(*(one.digest() for one in theirs["signed"][:2]))
        ).all()
        and (ours["union"] == np.minimum(*ours["signed"][:2])).all()
    ),
    "the slots as an array": lambda theirs, ours: len(theirs["slots"]) == len(ours["slots"]) == 128,
    "other hashes": lambda theirs, ours: (
        theirs["other"] != theirs["one"] and (ours["other"][0] != ours["one"]).any()
    ),
    "create": lambda theirs, ours: theirs["lsh"].is_empty() and len(ours["index"]) == 0,
    "insert": lambda theirs, ours: all(
        name in theirs["lsh"] and name in ours["index"] for name in "abc"
    ),
    "query": lambda theirs, ours: sorted(theirs["found"]) == sorted(ours["found"]) == ["a", "b"],
    "with similarities": lambda theirs, ours: (
        is_near(theirs["near"]["b"], SIMILARITY) and ours["near"] == {"a": 1.0, "b": SIMILARITY}
    ),
    "is a key there": lambda theirs, ours: theirs["has_c"] is ours["has_c"] is True,
    "remove": lambda theirs, ours: "c" not in theirs["lsh"] and "c" not in ours["index"],
    "merge two": lambda theirs, ours: "d" in theirs["lsh"] and "d" in ours["index"],
    "own bands": lambda theirs, ours: theirs["bands"] == ours["bands"] == 16,
    "all pairs": lambda theirs, ours: theirs["pairs"] == ours["pairs"] == {("a", "b")},
    "the most similar k": lambda theirs, ours: sorted(theirs["top"]) == ours["top"] == ["a", "b"],
    "containment": lambda theirs, ours: (
        {"a", "b"} <= set(theirs["within"]) and ours["within"] == ["a", "b"]
    ),
    "weighted sets": lambda theirs, ours: (
        is_near(theirs["weighted"], 6 / 7) and ours["weighted"] == 6 / 7
    ),
    "on disk": lambda theirs, ours: theirs["stored"] and len(ours["disk"]) == 3,
    "open again": lambda theirs, ours: "a" in theirs["again"] and "a" in ours["again"],
    "from memory to disk": lambda theirs, ours: "d" in theirs["copied"] and "d" in ours["copied"],
}


def test_every_row_of_the_page_does_the_same_in_both_libraries(tmp_path):
    given = {"a": A, "b": B, "c": C, "docs": {"a": A, "b": B, "c": C}, "numpy": np}
    theirs = {
        **given,
        **{name: getattr(datasketch, name) for name in datasketch.__all__},
        "pickle": pickle,
    }
    ours = {**given, "neardup": neardup, "folder": tmp_path}
    assert list(rows()) == list(CHECKS)
    for name, calls in rows().items():
        for call, names in zip(calls, (theirs, ours), strict=True):
            exec(call, names)  # noqa: S102 - the page is ours
        assert CHECKS[name](theirs, ours), name
    for opened in ("index", "more", "again", "copied"):
        ours[opened].close()


def test_the_default_of_datasketch_finds_forty_percent_at_the_threshold():
    lsh = datasketch.MinHashLSH(threshold=0.8, num_perm=128)
    assert (lsh.b, lsh.r) == (9, 13)
    theirs = neardup.plan(threshold=0.8, bands=lsh.b, rows=lsh.r)
    ours = neardup.plan(threshold=0.8)
    assert ours.shape == "16 bands x 6 rows"
    assert round(theirs.chance(0.8), 2) == 0.40
    assert round(theirs.chance(0.9), 2) == 0.93
    assert ours.recall_at_threshold >= 0.99
    draw = np.random.default_rng(2)
    num_found = 0
    for _ in range(300):
        words = [b"%d" % word for word in draw.choice(10**9, 108, replace=False)]
        pair = datasketch.MinHash.bulk([words[:96], words[:84] + words[96:]], num_perm=128)
        tried = datasketch.MinHashLSH(num_perm=128, params=(9, 13))
        tried.insert("a", pair[0])
        num_found += tried.query(pair[1]) == ["a"]
    exact = theirs.chance(84 / 108)
    assert abs(num_found / 300 - exact) < 4 * (exact * (1 - exact) / 300) ** 0.5


def test_the_plot_is_in_the_page_and_what_has_no_counterpart_exists_in_datasketch():
    [image] = re.findall(r"\]\((images/[\w-]+\.svg)\)", PAGE)
    assert (ROOT / "docs" / image).read_text("utf-8").startswith("<?xml")
    for name in (
        "HyperLogLog",
        "HyperLogLogPlusPlus",
        "HNSW",
        "bBitMinHash",
        "LeanMinHash",
        "MinHashLSHBloom",
    ):
        assert hasattr(datasketch, name)
        assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", ["num_perm", "threshold", "seed"])
def test_names_that_users_know_stay(name):
    assert name in neardup.Config.__dataclass_fields__
