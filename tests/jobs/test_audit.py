"""Audits of runs on files: as in memory, during the run or after it, with clear errors if the input has changed."""

from __future__ import annotations

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import DataError
from neardup.io.finished.finished_run import restore
from support import corpora, oracles
from support.audits import WEAK, found_and_true, measured
from support.corpora import NEAR, OTHER, PAGE

DOCUMENTS = corpora.rows(11, 120)
TEXTS = corpora.texts_of(DOCUMENTS)


def by_place(answer):
    """The missed pairs by row, from 0."""
    return {
        (row["row_a"] - 1, row["row_b"] - 1): row["similarity"] for row in answer.missed.to_pylist()
    }


@pytest.mark.parametrize("form", ["jsonl", "parquet", "csv.gz", "arrow"])
def test_a_run_on_files_is_audited_like_one_in_memory(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "out", **WEAK)
    answer = neardup.audit(tmp_path / "out", sample=50)
    held = neardup.audit(neardup.deduplicate(TEXTS, **WEAK), sample=50)
    without = {"seconds": 0, "missed": 0}
    assert measured(answer) | without == measured(held) | without
    assert 0 < answer.missed.num_rows < answer.pairs
    assert by_place(answer) == {
        (row["doc_a"], row["doc_b"]): row["similarity"] for row in held.missed.to_pylist()
    }
    named = answer.missed.to_pylist()[0]
    assert named["doc_a"] == DOCUMENTS[named["row_a"] - 1]["id"]
    assert named["file_a"] == named["file_b"] == f"corpus.{form}"


@pytest.mark.parametrize("run", [corpora.deduplicate, corpora.find_pairs])
def test_an_audit_during_the_run_equals_one_after_it(run, tmp_path):
    path = corpora.write_rows(tmp_path / "corpus.jsonl", DOCUMENTS)
    out = tmp_path / "out.parquet"
    report = run([path], out, audit=True, **WEAK)
    answer = neardup.audit(out)
    assert measured(report.audit) == measured(answer) == measured(neardup.audit(report))
    written = out / "report.json" if out.is_dir() else tmp_path / "out.parquet.report.json"
    stored = json.loads(written.read_text("utf-8"))["audit"]
    assert stored == json.loads(json.dumps(report.audit.as_dict()))
    assert stored["missed"][0].keys() == set(report.audit.missed.column_names)


def test_results_do_not_depend_on_parts_or_threads(tmp_path, monkeypatch):
    corpora.cut(monkeypatch, joined_bytes=1)
    files = [corpora.write_rows(tmp_path / f"{at}.jsonl", DOCUMENTS[at::7]) for at in range(7)]
    report = corpora.deduplicate(files, tmp_path / "out", audit=True, **WEAK)
    truth = found_and_true([text for at in range(7) for text in TEXTS[at::7]], **WEAK)
    for threads in (1, 4):
        answer = neardup.audit(tmp_path / "out", threads=threads)
        assert measured(answer) == measured(report.audit)
        assert (answer.pairs, answer.missed.num_rows) == (
            len(truth),
            sum(not found for _, found in truth.values()),
        )
    few = neardup.audit(tmp_path / "out", sample=30, threads=1)
    assert measured(few) == measured(neardup.audit(tmp_path / "out", sample=30, threads=4))


def test_an_exact_run_has_found_every_pair(tmp_path):
    path = corpora.write_rows(tmp_path / "corpus.jsonl", DOCUMENTS)
    report = corpora.deduplicate(
        [path], tmp_path / "out", audit=True, method="exact", threshold=0.5, size=2
    )
    answer = neardup.audit(tmp_path / "out")
    assert measured(answer) == measured(report.audit)
    assert answer.pairs == len(found_and_true(TEXTS, **WEAK))
    assert (answer.recall, answer.high, answer.predicted, answer.missed.num_rows) == (
        1.0,
        1.0,
        1.0,
        0,
    )


def test_texts_that_do_not_fit_are_read_again(tmp_path, monkeypatch):
    path = corpora.write_rows(tmp_path / "corpus.jsonl", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "out", **WEAK)
    held = neardup.audit(tmp_path / "out")
    corpora.shrink(monkeypatch, 1)
    assert measured(neardup.audit(tmp_path / "out")) == measured(held)


def test_old_documents_are_partners_and_not_sampled(tmp_path):
    old = DOCUMENTS[:40]
    new = DOCUMENTS[40:]
    paths = [
        corpora.write_rows(tmp_path / f"{name}.jsonl", rows)
        for name, rows in (("old", old), ("new", new))
    ]
    corpora.deduplicate([paths[1]], tmp_path / "out", against=str(paths[0]), pairs=True, **WEAK)
    truth = {pair: value for pair, value in found_and_true(TEXTS, **WEAK).items() if pair[1] >= 40}
    answer = neardup.audit(tmp_path / "out")
    assert answer.sample == sum(bool(oracles.shingles(row["text"])) for row in new)
    assert answer.pairs == len(truth)
    assert answer.missed.num_rows == sum(not is_found for _, is_found in truth.values())
    assert answer.recall == pytest.approx(1 - answer.missed.num_rows / answer.pairs)
    assert "old.jsonl" in answer.missed.column("file_a").to_pylist()


def test_groups_and_items_are_those_of_the_run(tmp_path):
    rows = [{"id": at, "shop": at % 2, "basket": [1, 2, 3, at % 3]} for at in range(12)]
    path = corpora.write_json_lines(tmp_path / "baskets.jsonl", rows)
    corpora.deduplicate(
        [path], tmp_path / "out", items_column="basket", group_column="shop", threshold=0.7
    )
    sets = [frozenset(row["basket"]) for row in rows]
    pairs = oracles.shares_group(oracles.true_pairs(sets, 0.7), [row["shop"] for row in rows])
    assert neardup.audit(tmp_path / "out").pairs == len(pairs) > 0


def test_equal_ids_are_distinguished_by_file_and_row(tmp_path):
    rows = [{"id": "same", "text": text} for text in (PAGE, NEAR, OTHER)]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", ["", "{broken", *rows])
    corpora.deduplicate([path], tmp_path / "out", bands=1, rows=128, threshold=0.5)
    [missed] = neardup.audit(tmp_path / "out").missed.to_pylist()
    assert (missed["doc_a"], missed["doc_b"], missed["row_a"], missed["row_b"]) == (
        "same",
        "same",
        3,
        4,
    )


@pytest.mark.parametrize(
    "lines",
    [[], [{"text": "one of its own"}], ["{broken", {"text": "one of its own"}, {"text": ""}]],
)
def test_a_run_without_pairs_has_no_recall(lines, tmp_path):
    path = corpora.write_json_lines(tmp_path / "a.jsonl", lines)
    report = corpora.deduplicate([path], tmp_path / "out", audit=True)
    answer = neardup.audit(tmp_path / "out")
    assert answer.recall is report.audit.recall is None
    assert answer.missed.column_names[:5] == ["doc_a", "doc_b", "similarity", "chance", "file_a"]


@pytest.fixture
def finished(tmp_path):
    path = corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"text": text} for text in (PAGE, NEAR, OTHER)]
    )
    corpora.deduplicate([path], tmp_path / "out")
    return path


def test_a_run_with_signatures_of_an_older_format_can_be_read_and_not_audited(finished):
    out = finished.parent / "out"
    path = out / "report.json"
    path.write_text(path.read_text("utf-8").replace("fast-3", "fast-1"), "utf-8")
    with pytest.raises(
        DataError, match=r"signatures of the format `fast-1 .*this version computes `fast-3 "
    ) as error:
        neardup.audit(out)
    assert "run neardup dedup again" in error.value.hint
    assert restore(out).removed.column_names[:2] == ["doc_id", "kept_id"]


def test_an_input_that_grew_is_an_error(finished):
    with finished.open("a") as stream:
        stream.write('{"text": "more"}\n')
    with pytest.raises(
        DataError, match=r"a\.jsonl has changed since the run: it had .* bytes, now"
    ):
        neardup.audit(finished.parent / "out")


def test_a_modified_input_is_an_error(finished):
    os.utime(finished, (1, 1))
    with pytest.raises(DataError, match=r"a\.jsonl has changed since the run: it was modified"):
        neardup.audit(finished.parent / "out")


def test_a_missing_input_is_an_error(finished):
    finished.unlink()
    with pytest.raises(DataError, match=r"a\.jsonl of the run cannot be read") as error:
        neardup.audit(finished.parent / "out")
    assert "restore them" in error.value.hint


def test_an_output_that_was_altered_is_an_error(finished, tmp_path):
    report = neardup.deduplicate(finished, threshold=0.5)
    other = corpora.write_json_lines(
        tmp_path / "b" / "a.jsonl", [{"text": text} for text in (PAGE, OTHER, NEAR)]
    )
    corpora.deduplicate([other], tmp_path / "other", threshold=0.5)
    shutil.copy(tmp_path / "other" / "removed.parquet", tmp_path / "out" / "removed.parquet")
    assert report.num_removed == 1
    with pytest.raises(DataError, match="reported pairs are not as similar as reported"):
        neardup.audit(tmp_path / "out")


@pytest.mark.parametrize("name", ["nothing", "a.jsonl", "."])
def test_a_path_that_is_not_a_finished_run_is_an_error(finished, name):
    with pytest.raises(DataError, match=r"is not a finished run|nothing does not exist"):
        neardup.audit(finished.parent / name)


def test_a_run_in_a_temporary_folder_is_audited_by_its_report(finished):
    assert neardup.audit(neardup.deduplicate(finished, threshold=0.5)).pairs == 1


@pytest.fixture
def against(tmp_path):
    """Two near-copies in OLD; n1 and n2 equal the first of them, n3 the second."""
    old = corpora.write_json_lines(
        tmp_path / "old.jsonl",
        [{"id": "o1", "text": PAGE}, {"id": "o2", "text": NEAR}, {"id": "o3", "text": OTHER}],
    )
    texts = {"n1": PAGE, "n2": PAGE, "n3": NEAR, "n4": "one of its own, like no other"}
    new = corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"id": name, "text": texts[name]} for name in texts]
    )
    return [new], {"against": str(old), "threshold": 0.5}


EVERY_PAIR_OF_OLD_AND_NEW = [
    *(("o1", "n1"), ("o1", "n2"), ("o1", "n3"), ("o2", "n1"), ("o2", "n2"), ("o2", "n3")),
    *(("n1", "n2"), ("n1", "n3"), ("n2", "n3")),
]


@pytest.mark.parametrize("method", ["exact", "lsh"])
@pytest.mark.parametrize("lost", EVERY_PAIR_OF_OLD_AND_NEW, ids="-".join)
def test_a_pair_that_the_run_did_not_list_is_missed(method, lost, against, tmp_path):
    inputs, settings = against
    corpora.find_pairs(inputs, tmp_path / "pairs.parquet", **settings, method=method)
    listed = pq.read_table(tmp_path / "pairs.parquet")
    ends = list(zip(*(listed.column(name).to_pylist() for name in ("doc_a", "doc_b")), strict=True))
    assert ends == EVERY_PAIR_OF_OLD_AND_NEW
    whole = neardup.audit(tmp_path / "pairs.parquet")
    assert (whole.pairs, whole.recall, whole.missed.num_rows, whole.verified) == (9, 1.0, 0, 9)
    pq.write_table(
        listed.filter(pa.array([pair != lost for pair in ends])), tmp_path / "pairs.parquet"
    )
    answer = neardup.audit(tmp_path / "pairs.parquet")
    assert answer.pairs == 9
    assert answer.recall == pytest.approx(8 / 9)
    assert answer.high <= 1.0
    assert [(row["doc_a"], row["doc_b"]) for row in answer.missed.to_pylist()] == [lost]


@pytest.mark.parametrize("lost", EVERY_PAIR_OF_OLD_AND_NEW[:6:2], ids="-".join)
def test_with_only_against_an_audit_counts_only_pairs_across_the_two_sources(
    lost, against, tmp_path
):
    inputs, settings = against
    settings |= {"only_against": True, "method": "lsh"}
    removed = corpora.deduplicate(inputs, tmp_path / "out", **settings)
    answer = neardup.audit(removed)
    assert (answer.pairs, answer.recall, answer.missed.num_rows, answer.verified) == (6, 1.0, 0, 3)
    corpora.find_pairs(inputs, tmp_path / "pairs.parquet", **settings)
    listed = pq.read_table(tmp_path / "pairs.parquet")
    ends = list(zip(*(listed.column(name).to_pylist() for name in ("doc_a", "doc_b")), strict=True))
    assert ends == EVERY_PAIR_OF_OLD_AND_NEW[:6]
    pq.write_table(
        listed.filter(pa.array([pair != lost for pair in ends])), tmp_path / "pairs.parquet"
    )
    answer = neardup.audit(tmp_path / "pairs.parquet")
    assert (answer.pairs, answer.recall) == (6, pytest.approx(5 / 6))
    assert [(row["doc_a"], row["doc_b"]) for row in answer.missed.to_pylist()] == [lost]


def test_a_list_of_pairs_too_long_to_load_is_audited_by_the_plan_with_a_warning(
    against, tmp_path, monkeypatch
):
    inputs, settings = against
    monkeypatch.setattr("neardup.jobs.audit.MAX_LOADED", 8)
    report = corpora.find_pairs(
        inputs, tmp_path / "pairs.parquet", **settings, method="exact", audit=True
    )
    assert (report.audit.recall, report.audit.verified) == (1.0, 0)
    assert any("listed too many pairs" in warning for warning in report.warnings)
