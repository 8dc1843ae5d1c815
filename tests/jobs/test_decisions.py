"""Decisions about single documents: what is kept, what is removed, and that nothing else changes."""

from __future__ import annotations

import hashlib
import json

import pytest

import neardup
from neardup.errors import ConfigError, NotStoredError

WORDS = [f"word{number}" for number in range(40)]
SETTINGS = {"threshold": 0.6, "size": 1}


def text(first, last, extra=""):
    return " ".join(WORDS[first:last]) + extra


TEXTS = {
    "a": text(0, 20),
    "b": text(0, 20, " tail"),
    "c": text(0, 20, " other tail"),
    "far": text(14, 34),
    "lone": "nothing like any of these",
}


@pytest.fixture
def pages(tmp_path):
    lines = [json.dumps({"id": name, "text": content}) for name, content in TEXTS.items()]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return tmp_path / "pages.jsonl"


def decide(folder, **decisions):
    """Write decisions by id; return the path."""
    entries = [
        {
            "decision": decision,
            "file": "pages.jsonl",
            "row": list(TEXTS).index(name) + 1,
            "digest": hashlib.sha256(TEXTS[name].encode()).hexdigest()[:32],
        }
        for name, decision in decisions.items()
    ]
    path = folder / "decisions.json"
    path.write_text(json.dumps({"neardup_decisions": 1, "decisions": entries}), "utf-8")
    return path


def removed(report):
    return {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    }


def jaccard(a, b):
    return neardup.jaccard(set(TEXTS[a].split()), set(TEXTS[b].split()))


def run(pages, **decisions):
    path = decide(pages.parent, **decisions)
    return neardup.deduplicate(
        pages, out=pages.parent / "clean", decisions=path, overwrite=True, **SETTINGS
    )


def test_without_decisions_the_first_leads(pages):
    assert set(removed(neardup.deduplicate(pages, **SETTINGS))) == {"b", "c"}


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_a_document_to_keep_is_kept_and_others_are_still_removed(pages, method):
    path = decide(pages.parent, b="keep")
    report = neardup.deduplicate(
        pages, out=pages.parent / "clean", decisions=path, method=method, **SETTINGS
    )
    assert removed(report) == {"c": ("a", jaccard("a", "c"))}
    assert report.decisions == {"kept": 1, "removed": 0, "unmatched": 0}
    assert report.kept.column("doc_id").to_pylist() == ["a", "b", "far", "lone"]
    assert neardup.load(pages.parent / "clean") == report
    assert report.warnings == ()


def test_a_document_to_keep_never_leads(pages):
    # Without the decision `a` leads the cluster; with it `b` does, and `a` is kept beside it.
    report = run(pages, a="keep")
    assert removed(report) == {"c": ("b", jaccard("b", "c"))}
    assert report.decisions["kept"] == 1


def test_a_leader_to_remove_is_replaced_by_the_next_document(pages):
    report = run(pages, a="remove")
    assert removed(report) == {"a": ("b", jaccard("a", "b")), "c": ("b", jaccard("b", "c"))}
    assert report.decisions == {"kept": 0, "removed": 0, "unmatched": 0}


def test_a_document_similar_to_none_is_removed_with_its_true_similarity(pages):
    report = run(pages, far="remove", lone="remove")
    assert removed(report)["far"] == ("a", jaccard("far", "a"))
    assert 0 < jaccard("far", "a") < SETTINGS["threshold"]
    assert removed(report)["lone"] == ("a", 0.0)
    assert report.decisions == {"kept": 0, "removed": 2, "unmatched": 0}
    assert report.num_kept == 1
    assert report.warnings == ()


def test_documents_to_remove_do_not_represent_each_other(pages):
    report = run(pages, a="remove", b="remove", c="remove")
    assert {kept for kept, _ in removed(report).values()} == {"far"}
    assert removed(report)["a"] == ("far", jaccard("far", "a"))


def test_a_member_that_per_cluster_spares_can_be_removed(pages):
    path = decide(pages.parent, b="remove")
    report = neardup.deduplicate(pages, decisions=path, per_cluster=3, **SETTINGS)
    assert removed(report) == {"b": ("a", jaccard("a", "b"))}


@pytest.mark.parametrize(
    ("decided", "changed", "warning"),
    [
        ("c", "other tail", "the decision about row 3 of pages.jsonl matches no document: "),
        ("bc", "other tail", "1 of 2 decisions, about row 3 of pages.jsonl, matches no document: "),
        (
            "bc",
            "tail",
            "2 of 2 decisions match no document, the first about row 2 of pages.jsonl: ",
        ),
    ],
)
def test_a_decision_about_another_text_is_a_warning(pages, decided, changed, warning):
    path = decide(pages.parent, **dict.fromkeys(decided, "keep"))
    pages.write_text(pages.read_text("utf-8").replace(changed, f"new {changed}"), "utf-8")
    report = neardup.deduplicate(pages, decisions=path, **SETTINGS)
    assert report.decisions["unmatched"] == (1 if changed == "other tail" else 2)
    assert report.warnings[0] == f"{warning}the file, the row or the text has changed"


def test_other_decisions_are_a_different_run(pages):
    run(pages, b="keep")
    path = decide(pages.parent, c="keep")
    with pytest.raises(neardup.NearDupError, match="already exists"):
        neardup.deduplicate(pages, out=pages.parent / "clean", decisions=path, **SETTINGS)
    assert "c" not in removed(run(pages, c="keep"))


def test_a_run_with_decisions_cannot_be_selected_again(pages):
    path = decide(pages.parent, b="keep")
    report = neardup.deduplicate(pages, decisions=path, pairs=True, **SETTINGS)
    with pytest.raises(NotStoredError, match="with decisions cannot be selected again"):
        report.at_threshold(0.9)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not a file of decisions"),
        ('{"neardup_decisions": 2, "decisions": []}', "has format 2"),
        (
            '{"neardup_decisions": 1, "decisions": [{"decision": "burn", "file": "a", "row": 1, "digest": ""}]}',
            "burn",
        ),
        (
            '{"neardup_decisions": 1, "decisions": [{"decision": "keep", "file": "a", "row": 0, "digest": ""}]}',
            "row",
        ),
    ],
)
def test_a_file_without_decisions_is_an_error(pages, content, said):
    (pages.parent / "decisions.json").write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=said):
        neardup.deduplicate(pages, decisions=pages.parent / "decisions.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        neardup.deduplicate(pages, decisions=pages.parent / "none.json")


def test_decisions_need_files_and_jaccard(pages):
    path = decide(pages.parent, b="keep")
    with pytest.raises(ConfigError, match="`decisions` needs files"):
        neardup.deduplicate(["a", "b"], decisions=path)
    with pytest.raises(ConfigError, match="`decisions` needs the measure 'jaccard'"):
        neardup.Config(decisions="x", measure="cosine")
    with pytest.raises(ConfigError, match="is not supported on Spark"):
        neardup.deduplicate(pages, decisions=path, engine="spark")
    with pytest.raises(ConfigError, match="must be a path or None"):
        neardup.Config(decisions=3)
