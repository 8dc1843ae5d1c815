"""New against old where the new documents are in memory, and the old ones in memory or in files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError
from support import corpora
from support.corpora import EVERY_PAIR, NEAR, OTHER, PAGE, Truth
from support.grids import turning_grid
from support.made_run import data_of

DOCUMENTS = corpora.rows(17, 60)
NUM_OLD = 25
OLD = DOCUMENTS[:NUM_OLD]
NEW = DOCUMENTS[NUM_OLD:]
TEXTS = corpora.texts_of(DOCUMENTS)
ROW_OF = {row["id"]: number for number, row in enumerate(DOCUMENTS)}

RUNS = [
    {},
    {"keep": "last"},
    {"keep": "longest"},
    {"keep": "max:score"},
    {"keep": "min:score", "collapse_empty": True},
    {"cluster": "components"},
    {"group_column": "site"},
    {"only_against": True},
    {"only_against": True, "group_column": "site", "collapse_empty": True},
]
SOURCES = {
    "dicts": list,
    "arrow": lambda rows: pa.Table.from_pylist(list(rows)),
    "pandas": lambda rows: pd.DataFrame(list(rows)),
    "polars": lambda rows: pl.DataFrame(list(rows)),
    "a path": None,
    "text that is a path": str,
}


def quiet(event):
    del event


def run(source, **settings):
    return neardup.deduplicate(source, progress=quiet, **settings)


@pytest.mark.parametrize(("chosen", "kind"), turning_grid(RUNS, tuple(SOURCES)))
def test_the_oracle_agrees_for_every_kind_of_old_documents(chosen, kind, tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", OLD)
    if "path" not in kind:
        old = SOURCES[kind](OLD)
    elif SOURCES[kind] is not None:
        old = SOURCES[kind](old)
    report = run(list(NEW), against=old, pairs=True, method="lsh", **EVERY_PAIR, **chosen)
    chosen = dict(chosen)
    groups = [row["site"] for row in DOCUMENTS] if chosen.pop("group_column", None) else None
    scores = [row["score"] for row in DOCUMENTS]
    truth = Truth(TEXTS, num_references=NUM_OLD, scores=scores, groups=groups, **chosen)
    removed = {
        ROW_OF[row["doc_id"]]: (ROW_OF[row["kept_id"]], row["similarity"])
        for row in report.removed.to_pylist()
    }
    assert removed == truth.removed
    pairs = {
        (ROW_OF[row["doc_a"]], ROW_OF[row["doc_b"]]): row["similarity"]
        for row in report.pairs.to_pylist()
    }
    assert pairs == truth.pairs
    for row in report.pairs.to_pylist():
        assert row["is_against"] == (ROW_OF[row["doc_a"]] < NUM_OLD)
    for row in report.removed.to_pylist():
        assert row["is_against"] == (ROW_OF[row["kept_id"]] < NUM_OLD)
    assert report.removed_against == truth.count_against(truth.removed) > 0
    assert (report.documents, report.num_kept) == (len(NEW), len(truth.kept))
    kept = [NUM_OLD + row for row in np.flatnonzero(report.mask).tolist()]
    assert kept == truth.kept
    assert report.kept.column("id").to_pylist() == [DOCUMENTS[row]["id"] for row in truth.kept]
    assert report.clusters.column("doc_id").to_pylist() == [row["id"] for row in NEW]


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_the_same_as_files_find(measure, tmp_path):
    settings = {"measure": measure, "threshold": 0.5, "size": 2, "pairs": True}
    old = corpora.write_json_lines(tmp_path / "old.jsonl", OLD)
    new = corpora.write_json_lines(tmp_path / "new.jsonl", NEW)
    on_files = run(new, out=tmp_path / "out", against=old, **settings)
    in_memory = run(list(NEW), against=list(OLD), **settings)
    for name in ("removed", "pairs"):
        ours = getattr(in_memory, name)
        shared = [column for column in ours.column_names if column != "is_against"]
        assert ours.select(shared) == getattr(on_files, name).select(shared)
    assert in_memory.removed_against == on_files.removed_against > 0


def test_a_higher_threshold_selects_as_a_run_at_it():
    report = run(list(NEW), against=list(OLD), pairs=True, threshold=0.4, size=2, method="exact")
    again = run(list(NEW), against=list(OLD), pairs=True, threshold=0.7, size=2, method="exact")
    assert 0 < again.num_removed < report.num_removed
    selected = report.at_threshold(0.7)
    assert selected.removed == again.removed
    assert selected.removed_against == again.removed_against


def test_an_audit_finds_the_pairs_with_old_documents():
    report = run(list(NEW), against=list(OLD), threshold=0.5, size=2, method="exact")
    measured = neardup.audit(report)
    assert measured.recall == 1.0
    assert measured.pairs == len(Truth(TEXTS, num_references=NUM_OLD).pairs)


def test_repeated_ids_are_told_apart_by_rows_of_their_own_sources():
    old = [{"id": "a", "text": OTHER}, {"id": "a", "text": PAGE}]
    report = run([{"id": "a", "text": PAGE}], against=old, pairs=True)
    wanted = {"similarity": 1.0, "is_against": True}
    assert report.removed.to_pylist() == [
        {"doc_id": "a", "kept_id": "a", "row": 0, "kept_row": 1} | wanted
    ]
    assert report.pairs.to_pylist() == [
        {"doc_a": "a", "doc_b": "a", "row_a": 1, "row_b": 0} | wanted
    ]
    assert neardup.audit(report).recall == 1.0


def test_positions_beside_names_are_strings():
    report = run([OTHER, PAGE], against={"old": PAGE})
    assert report.removed.to_pylist() == [
        {"doc_id": "1", "kept_id": "old", "similarity": 1.0, "is_against": True}
    ]
    assert report.kept.to_pylist() == [{"doc_id": 0, "text": OTHER}]
    assert report.mask.tolist() == [True, False]


def test_explain_and_the_page_show_the_text_of_the_old_document():
    report = run({"new": PAGE, "odd": OTHER}, against={"old": NEAR}, threshold=0.5, pairs=True)
    answer = neardup.explain(report, "new")
    assert (answer.kept_id, answer.kept_row, answer.kept_text) == ("old", None, NEAR)
    assert neardup.explain(report, "odd").reason
    with pytest.raises(DataError, match="no document of the report is named 'old'"):
        neardup.explain(report, "old")
    shown = data_of(report.to_html())
    at = shown["documents"]["id"].index("old")
    assert "".join(shown["pieces"][piece] for piece in shown["documents"]["text"][at]) == NEAR


def test_sets_and_vectors_are_compared_with_old_ones():
    baskets = [["tea", "milk"], ["salt"]]
    report = run(items=baskets, source=None, against=[["milk", "tea"]])
    assert report.mask.tolist() == [False, True]
    table = pa.table({"bought": [["milk", "tea"]]})
    report = run(items=baskets, source=None, against=table, against_items_column="bought")
    assert report.mask.tolist() == [False, True]
    report = run(np.eye(3), against=np.eye(3)[1:], measure="cosine")
    assert report.mask.tolist() == [True, False, False]


def test_columns_of_old_documents_in_memory_and_in_files(tmp_path):
    new = pa.table({"body": [PAGE, OTHER], "name": ["n1", "n2"]})
    old = [{"question": PAGE, "key": "o1"}]
    path = corpora.write_json_lines(tmp_path / "old.jsonl", old)
    columns = {"text_column": "body", "id_column": "name"}
    columns |= {"against_text_column": "question", "against_id_column": "key"}
    for against in (old, pa.Table.from_pylist(old), path):
        report = run(new, against=against, **columns)
        assert report.removed.column("kept_id").to_pylist() == ["o1"]


def test_columns_of_old_files_beside_new_files(tmp_path):
    old = corpora.write_json_lines(
        tmp_path / "old.jsonl",
        [{"title": "The ferry", "question": PAGE, "key": "o1"}, {"question": 3, "title": 4}],
    )
    new = corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"body": f"The ferry {PAGE}", "id": "n1"}]
    )
    columns = {"text_column": "body", "against_id_column": "key", "against": old}
    report = run(new, out=tmp_path / "out", against_text_column=["title", "question"], **columns)
    assert report.removed.select(["doc_id", "kept_id", "similarity"]).to_pylist() == [
        {"doc_id": "n1", "kept_id": "o1", "similarity": 1.0}
    ]
    assert report.columns["text"] == "body"
    assert neardup.explain(tmp_path / "out", "n1").kept_text == f"The ferry\n{PAGE}"
    assert neardup.audit(tmp_path / "out").recall == 1.0


def test_items_of_old_files(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"items": ["a", "b"]}])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"basket": ["b", "a"]}])
    report = run(new, items_column="basket", against=old, against_items_column="items")
    assert report.num_removed == 1


def test_the_command_takes_columns_of_against(programs, tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"question": PAGE, "key": "o"}])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"body": PAGE, "id": "n"}])
    words = ["pairs", str(new), "-o", str(tmp_path / "pairs.jsonl"), "--text-column", "body"]
    words += ["--against", str(old), "--against-text-column", "question"]
    done = programs.run(*words, "--against-id-column", "key", "-q", cwd=tmp_path)
    assert done.code == 0, done.stderr
    pair = json.loads((tmp_path / "pairs.jsonl").read_text())
    assert (pair["doc_a"], pair["doc_b"]) == ("o", "n")


def test_rejected_rows_of_old_documents_are_a_warning_that_names_the_first(tmp_path):
    report = run([PAGE], against=[{"text": PAGE}, {"text": None}])
    assert "1 row of `against` was rejected: row 1: text is null" in report.warnings
    path = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": PAGE}, {"text": 3}])
    report = run([PAGE], against=path)
    warned = "1 row of `against` was rejected: old.jsonl row 2: text is int, not str: 3"
    assert warned in report.warnings
    assert report.num_rejected == 0


def old_file(folder):
    return corpora.write_json_lines(folder / "old.jsonl", [{"question": PAGE}])


@pytest.mark.parametrize(
    ("source", "settings", "message"),
    [
        ([PAGE], {"against": [{"question": PAGE}]}, "against_text_column='question'"),
        (
            [PAGE],
            {"against": {"a": 3}},
            r"no row of `against` can be used; the first is row 0: .*\n\nhint: .*against_text_column",
        ),
        ([PAGE], {"against": old_file}, "against_text_column='question'"),
        (old_file, {"against": old_file}, "against_text_column='question'"),
        (
            old_file,
            {"against": old_file, "text_column": "question", "against_text_column": "answer"},
            "`against_text_column` names 'answer', a column that no row of `against` has"
            "\n\nhint: the columns are question",
        ),
        (old_file, {"against": {"a": PAGE}}, "`against` must name files where the source is files"),
        ([PAGE], {"against_id_column": "key"}, "`against_id_column` needs `against`"),
        (
            [PAGE],
            {"against": [{"text": PAGE}], "against_items_column": "x"},
            "`against_items_column` needs `items_column`",
        ),
        (
            [PAGE],
            {"against": [["a"]], "items_column": "x", "against_text_column": "x"},
            "`against_text_column` needs an input that is compared by its text",
        ),
        ([PAGE], {"against": [PAGE]}, "`against` names .*, which does not exist"),
        ([PAGE], {"against": [PAGE, {}]}, "`against` must be a path or a list of paths"),
        ([PAGE], {"against": {PAGE}}, "`against` must be a path or a list of paths"),
        (
            [{"text": PAGE, "site": "a"}],
            {"against": [{"text": PAGE}], "group_column": "site"},
            "`group_column` names 'site', which is not a column of `against`",
        ),
        ([PAGE], {"encoding": "latin-1"}, "`encoding` needs files as the source"),
    ],
)
def test_mistakes_name_the_setting_of_against(source, settings, message, tmp_path):
    if source is old_file:
        source = corpora.write_json_lines(tmp_path / "new.jsonl", [{"question": PAGE}])
        settings = {"text_column": "question"} | settings
    if settings.get("against") is old_file:
        settings = settings | {"against": old_file(tmp_path)}
    if "against_text_column='question'" in message and "text_column" in settings:
        settings = {name: value for name, value in settings.items() if name != "text_column"}
        source = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}])
    with pytest.raises((ConfigError, DataError), match=message):
        run(source, **settings)


def test_an_index_beside_documents_in_memory_is_refused(tmp_path):
    neardup.Index.create(tmp_path / "old.index").close()
    with pytest.raises(ConfigError, match=r"names the index .*, but the source is in memory"):
        run([PAGE], against=tmp_path / "old.index")


def test_an_index_has_no_columns_of_against(tmp_path):
    neardup.Index.create(tmp_path / "old.index").close()
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}])
    with pytest.raises(ConfigError, match="`against_text_column` needs files in `against`"):
        run(new, against=tmp_path / "old.index", against_text_column="question")


def test_settings_of_a_run_are_used_again_with_the_documents():
    report = run([PAGE], against={"old": PAGE})
    assert report.config.against == ("(in memory)",)
    with pytest.raises(ConfigError, match="`against` was a source in memory"):
        run([PAGE], config=report.config)
    again = run([PAGE], config=report.config, against={"old": PAGE})
    assert again.num_removed == 1
