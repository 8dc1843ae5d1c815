"""New against old: every old document precedes all input, and old files are never changed."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.errors import NearDupError
from neardup.io.finished import finished_run
from support import corpora
from support.corpora import EVERY_PAIR, NEAR, OTHER, PAGE, WORDS, Truth
from support.grids import turning_grid

DOCUMENTS = corpora.rows(17, 60)
NUM_OLD = 25
OLD = DOCUMENTS[:NUM_OLD]
NEW = DOCUMENTS[NUM_OLD:]
TEXTS = corpora.texts_of(DOCUMENTS)
FIRSTS = {"old.jsonl": 0, "new.jsonl": NUM_OLD}
# Similar to NEAR, but not to PAGE.
FAR = " ".join([*WORDS[:-1], "station", "today", "again"])


def state(folder):
    """Every file below a folder with its bytes and times."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ctime_ns)
        for path in files
    }


@pytest.fixture
def old(tmp_path):
    return corpora.write_json_lines(tmp_path / "then" / "old.jsonl", OLD)


@pytest.fixture
def new(tmp_path):
    return corpora.write_json_lines(tmp_path / "now" / "new.jsonl", NEW)


RUNS = [
    {},
    {"keep": "last"},
    {"keep": "longest"},
    {"keep": "max:score"},
    {"keep": "min:score", "collapse_empty": True},
    {"cluster": "components"},
    {"cluster": "components", "keep": "last", "collapse_empty": True},
    {"group_column": "site"},
    {"group_column": "site", "keep": "longest"},
    {"only_against": True},
    {"only_against": True, "group_column": "site", "collapse_empty": True},
]


@pytest.mark.parametrize(("run", "room"), turning_grid(RUNS, (50_000, 1 << 40)))
def test_the_oracle_agrees_and_old_stays_untouched(run, room, old, new, tmp_path, monkeypatch):
    corpora.shrink(monkeypatch, room)
    before = state(old.parent)
    report = corpora.deduplicate(
        [new], tmp_path / "out", against=str(old), pairs=True, **EVERY_PAIR, **run
    )
    chosen = dict(run)
    groups = [row["site"] for row in DOCUMENTS] if chosen.pop("group_column", None) else None
    scores = [row["score"] for row in DOCUMENTS]
    truth = Truth(TEXTS, num_references=NUM_OLD, scores=scores, groups=groups, **chosen)
    assert corpora.removed_rows(report, FIRSTS) == truth.removed
    assert corpora.pair_rows(report.pairs, FIRSTS) == truth.pairs
    assert (report.documents, report.num_kept) == (len(NEW), len(truth.kept))
    causes = json.loads((tmp_path / "out/report.json").read_text())
    assert (
        causes["removed_against"]
        == report.removed_against
        == truth.count_against(truth.removed)
        > 0
    )
    assert (
        causes["removed_within"]
        == report.removed_within
        == len(truth.removed) - report.removed_against
    )
    assert report.exact_duplicates == truth.exact_duplicates
    assert state(old.parent) == before
    kept = [json.loads(line) for line in (tmp_path / "out/kept/new.jsonl").read_text().splitlines()]
    assert kept == [DOCUMENTS[row] for row in truth.kept]
    assert [path.name for path in (tmp_path / "out/kept").iterdir()] == ["new.jsonl"]
    assert report.clusters.column("doc_id").to_pylist() == [row["id"] for row in NEW]


def test_the_corpus_has_old_old_old_new_and_new_new_pairs():
    pairs = Truth(TEXTS).pairs
    sides = {(a < NUM_OLD, b < NUM_OLD) for a, b in pairs}
    assert sides == {(True, True), (True, False), (False, False)}


def test_removed_names_the_old_document_with_file_and_row(tmp_path):
    old = corpora.write_json_lines(
        tmp_path / "old.jsonl", [{"id": "o1", "text": OTHER}, {"id": "o2", "text": PAGE}]
    )
    new = corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"id": "n1", "text": NEAR}, {"id": "n2", "text": PAGE}]
    )
    report = corpora.deduplicate([new], tmp_path / "out", against=str(old))
    assert [
        {name: row[name] for name in ("doc_id", "kept_id", "kept_file", "kept_row")}
        for row in report.removed.to_pylist()
    ] == [
        {"doc_id": name, "kept_id": "o2", "kept_file": "old.jsonl", "kept_row": 2}
        for name in ("n1", "n2")
    ]
    assert report.exact_duplicates == 1
    assert (tmp_path / "out/kept/new.jsonl").read_bytes() == b""


def test_old_files_of_any_format_given_one_by_one(old, new, tmp_path):
    halves = [
        corpora.write_rows(tmp_path / "then2" / "a.parquet", OLD[:12]),
        corpora.write_rows(tmp_path / "then2" / "b.csv.gz", OLD[12:]),
    ]
    whole = corpora.deduplicate([new], tmp_path / "whole", against=str(old), **EVERY_PAIR)
    parts = corpora.deduplicate(
        [new], tmp_path / "parts", against=tuple(map(str, halves)), **EVERY_PAIR
    )
    folder = corpora.deduplicate(
        [new], tmp_path / "folder", against=str(tmp_path / "then2"), **EVERY_PAIR
    )
    names = ["doc_id", "kept_id", "similarity"]
    assert (
        parts.removed.select(names) == whole.removed.select(names) == folder.removed.select(names)
    )


def test_the_program_takes_against_twice(programs, tmp_path):
    corpora.write_json_lines(tmp_path / "a.jsonl", [{"id": "a", "text": PAGE}])
    corpora.write_json_lines(tmp_path / "b.jsonl", [{"id": "b", "text": OTHER}])
    corpora.write_json_lines(
        tmp_path / "n.jsonl", [{"text": OTHER}, {"text": PAGE}, {"text": "quite new"}]
    )
    arguments = ["n.jsonl", "-o", "out", "--against", "a.jsonl", "--against", "b.jsonl"]
    done = programs.run("dedup", *arguments, cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert pq.read_table(tmp_path / "out/removed.parquet").column("kept_id").to_pylist() == [
        "b",
        "a",
    ]


def test_a_finished_run_stands_for_its_kept_documents(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": PAGE}, {"text": NEAR}])
    corpora.deduplicate([old], tmp_path / "run")
    before = state(tmp_path / "run")
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": FAR}, {"text": PAGE}])
    report = corpora.deduplicate([new], tmp_path / "out", against=str(tmp_path / "run"))
    assert report.removed.column("doc_id").to_pylist() == ["new.jsonl:2"]
    assert state(tmp_path / "run") == before


def test_a_marked_run_cannot_be_used_with_against(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": PAGE}, {"text": NEAR}])
    run = corpora.deduplicate([old], tmp_path / "run", mark=True)
    assert run.num_removed == 1
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": FAR}, {"text": PAGE}])
    with pytest.raises(NearDupError, match="mark=True"):
        corpora.deduplicate([new], tmp_path / "out", against=str(tmp_path / "run"))


def test_daily_increments_keep_what_one_run_over_all_days_keeps(tmp_path):
    days = [DOCUMENTS[:20], DOCUMENTS[20:40], DOCUMENTS[40:]]
    outputs = []
    for number, day in enumerate(days):
        path = corpora.write_json_lines(tmp_path / f"day{number}.jsonl", day)
        outputs.append(tmp_path / f"out{number}")
        corpora.deduplicate(
            [path], outputs[-1], against=tuple(map(str, outputs[:-1])), **EVERY_PAIR
        )
    kept = [
        json.loads(line)["id"]
        for number, out in enumerate(outputs)
        for line in (out / "kept" / f"day{number}.jsonl").read_text().splitlines()
    ]
    assert kept == [DOCUMENTS[row]["id"] for row in Truth(TEXTS).kept]


@pytest.fixture
def days(tmp_path, monkeypatch):
    """Three days, each of which repeats the pages of the days before; the first two are finished runs in clean/."""
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        texts = [f"{page} {PAGE} {page}" for page in range(number + 1)]
        corpora.write_json_lines(Path(f"in/day{number}.jsonl"), [{"text": text} for text in texts])
    corpora.deduplicate(["in/day0.jsonl"], "clean/day0")
    corpora.deduplicate(["in/day1.jsonl"], "clean/day1", against="clean/day0")


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize("against", ["clean", "clean/*", "clean/day*", "cl*n", "./clean/"])
def test_a_folder_or_glob_of_finished_runs_stands_for_their_kept_documents(against, tmp_path):
    one_by_one = corpora.deduplicate(
        ["in/day2.jsonl"], tmp_path / "expected", against=("clean/day0", "clean/day1")
    )
    report = corpora.deduplicate(["in/day2.jsonl"], tmp_path / "out", against=against)
    assert report.removed.column("kept_file").to_pylist() == ["day0.jsonl", "day1.jsonl"]
    assert report.removed == one_by_one.removed
    assert [entry["file"] for entry in report.inputs] == ["day0.jsonl", "day1.jsonl", "day2.jsonl"]


@pytest.mark.usefixtures("days")
def test_the_output_is_left_out_of_a_folder_of_runs(tmp_path):
    first = corpora.deduplicate(["in/day2.jsonl"], "clean/day2", against="clean")
    before = corpora.contents(tmp_path / "clean/day2")
    again = corpora.deduplicate(["in/day2.jsonl"], "clean/day2", against="clean", overwrite=True)
    assert (first.num_kept, again.num_kept, again.removed_against) == (1, 1, 2)
    after = corpora.contents(tmp_path / "clean/day2")
    assert after.pop("report.json")["inputs"] == before.pop("report.json")["inputs"]
    assert after == before
    with pytest.raises(
        NearDupError, match="contains the input"
    ):  # naming it explicitly is not an accident
        corpora.deduplicate(["in/day2.jsonl"], "clean/day2", against="clean/day2", overwrite=True)


@pytest.mark.usefixtures("days")
def test_a_run_alone_in_its_folder_has_nothing_to_compare_with():
    report = corpora.deduplicate(["in/day1.jsonl"], "alone/day1")
    assert (
        corpora.deduplicate(
            ["in/day1.jsonl"], "alone/day1", against="alone", overwrite=True
        ).num_kept
        == 2
    )
    assert report.num_kept == 2


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize("against", ["clean", "clean/*"])
def test_runs_beside_other_files_are_refused_by_name(against):
    Path("clean/notes.txt").write_text("what we did")
    with pytest.raises(
        NearDupError,
        match=r"contains both finished runs and other files: clean/notes\.txt is not a finished run",
    ) as caught:
        corpora.deduplicate(["in/day2.jsonl"], "out", against=against)
    assert caught.value.hint == "name only the runs, such as against='clean/day0'"
    assert corpora.deduplicate(["in/day2.jsonl"], "out", against="clean/d*").removed_against == 2


@pytest.mark.usefixtures("days")
def test_runs_in_folders_of_folders_are_found_and_hidden_ones_are_not():
    corpora.deduplicate(["in/day0.jsonl"], "years/2025/day0")
    corpora.deduplicate(["in/day1.jsonl"], "years/2026/day1")
    corpora.deduplicate(["in/day2.jsonl"], "years/.hidden")
    report = corpora.deduplicate(["in/day2.jsonl"], "out", against="years")
    assert (report.removed_against, report.num_kept) == (2, 1)


def test_a_dry_run_cannot_be_used_with_against(tmp_path):
    path = corpora.write_json_lines(tmp_path / "a.jsonl", [{"text": PAGE}])
    corpora.deduplicate([path], tmp_path / "run", dry_run=True)
    with pytest.raises(NearDupError, match="dry run"):
        corpora.deduplicate([path], tmp_path / "out", against=str(tmp_path / "run"))


def test_a_run_that_kept_nothing_removes_nothing(tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text(PAGE)
    first = corpora.deduplicate([tmp_path / "new"], tmp_path / "run", against=str(tmp_path / "old"))
    assert first.num_kept == 0
    path = corpora.write_json_lines(tmp_path / "a.jsonl", [{"text": PAGE}])
    assert (
        corpora.deduplicate([path], tmp_path / "out", against=str(tmp_path / "run")).num_kept == 1
    )


def test_old_and_new_files_with_the_same_name_are_distinguished(tmp_path):
    for name in ("old", "new"):
        corpora.write_json_lines(tmp_path / name / "part.jsonl", [{"text": PAGE}])
    report = corpora.deduplicate(
        [tmp_path / "new/part.jsonl"], tmp_path / "out", against=str(tmp_path / "old/part.jsonl")
    )
    row = report.removed.to_pylist()[0]
    assert row["kept_file"] != row["file"]
    assert row["kept_id"] != row["doc_id"]


@pytest.mark.parametrize(
    "bad", ["{broken", json.dumps({"text": None}), json.dumps({"other": PAGE})]
)
def test_rejected_old_rows_are_reported(bad, tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": OTHER}, bad])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}])
    report = corpora.deduplicate([new], tmp_path / "out", against=str(old))
    assert report.documents == report.num_kept + report.num_removed + report.num_rejected == 1
    assert any("old.jsonl" in warning for warning in report.warnings)


def test_a_column_missing_in_against_is_reported(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": PAGE}])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"body": PAGE}])
    with pytest.raises(NearDupError, match=r"old\.jsonl.*body"):
        corpora.deduplicate([new], tmp_path / "out", against=str(old), text_column="body")


def test_strict_applies_to_rows_of_against(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": OTHER}, "{broken"])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}])
    with pytest.raises(NearDupError, match=r"old\.jsonl, row 2"):
        corpora.deduplicate([new], tmp_path / "out", against=str(old), strict=True)


def test_pairs_lists_new_old_and_new_new_pairs_only(old, new, tmp_path):
    report = corpora.find_pairs([new], tmp_path / "pairs.parquet", against=str(old), **EVERY_PAIR)
    assert corpora.pair_rows(report.pairs, FIRSTS) == Truth(TEXTS, num_references=NUM_OLD).pairs


def test_pairs_with_only_against_lists_only_pairs_with_old_documents(old, new, tmp_path):
    report = corpora.find_pairs(
        [new], tmp_path / "p.csv", against=str(old), only_against=True, **EVERY_PAIR
    )
    expected = Truth(TEXTS, num_references=NUM_OLD, only_against=True).pairs
    assert corpora.pair_rows(report.pairs, FIRSTS) == expected
    assert len(expected) < len(Truth(TEXTS, num_references=NUM_OLD).pairs)


def test_the_summary_counts_the_two_causes_separately(programs, tmp_path):
    corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": PAGE}])
    corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"text": text} for text in (NEAR, PAGE, OTHER, OTHER)]
    )
    said = programs.run(
        "dedup", "new.jsonl", "-o", "out", "--against", "old.jsonl", cwd=tmp_path
    ).stdout
    assert "4 documents: 1 kept, 3 removed (2 exact), 0 rejected.\n" in said
    assert ("Removed because of --against: 2; because of another document of the input: 1.") in said
    arguments = ["dedup", "new.jsonl", "-o", "only", "--against", "old.jsonl", "--only-against"]
    said = programs.run(*arguments, cwd=tmp_path).stdout
    assert "4 documents: 2 kept, 2 removed (1 exact), 0 rejected.\n" in said
    assert ("Removed because of --against: 2; the input was not compared with itself.") in said


@pytest.mark.parametrize(
    "command", [["dedup", "new.jsonl", "-o", "out"], ["pairs", "new.jsonl", "-o", "out.csv"]]
)
def test_only_against_needs_against(command, programs, tmp_path):
    corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}])
    done = programs.run(*command, "--only-against", cwd=tmp_path)
    assert done.code == 2
    assert "error: --only-against needs --against" in done.stderr
    assert "hint: name the documents to compare with: --against benchmark.jsonl" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["new.jsonl"]


def test_a_run_of_a_version_that_did_not_count_the_causes_is_counted_again(old, new, tmp_path):
    report = corpora.deduplicate([new], tmp_path / "out", against=str(old), **EVERY_PAIR)
    path = tmp_path / "out/report.json"
    stored = json.loads(path.read_text())
    del stored["removed_against"], stored["removed_within"]
    path.write_text(json.dumps(stored))
    assert finished_run.restore(tmp_path / "out").removed_against == report.removed_against > 0


def test_missing_old_is_an_error_that_names_it(new, tmp_path):
    with pytest.raises(NearDupError, match=r"gone\.jsonl"):
        corpora.deduplicate([new], tmp_path / "out", against=str(tmp_path / "gone.jsonl"))
    assert not (tmp_path / "out").exists()


def test_many_copies_of_old_and_new_point_to_the_first_old_one(tmp_path):
    table = pa.table({"id": [f"o{at}" for at in range(50)], "text": [PAGE] * 50})
    pq.write_table(table, tmp_path / "old.parquet")
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": PAGE}, {"text": NEAR}] * 50)
    report = corpora.deduplicate([new], tmp_path / "out", against=str(tmp_path / "old.parquet"))
    assert set(report.removed.column("kept_id").to_pylist()) == {"o0"}
    assert report.num_kept == 0
    assert report.exact_duplicates == 99
