"""Removing what contains a document of --against: brute force over plain sets, files, stored pairs, explanations."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import api, schema
from neardup.errors import ConfigError, NearDupError
from neardup.kernels import containment as kernel
from neardup.kernels.similarity import Sets
from neardup.search import containment
from support import corpora, oracles
from support.plain_kernels import plain

SETS = st.lists(st.frozensets(st.integers(1, 12), max_size=9), max_size=8)
THRESHOLDS = st.sampled_from([0.1, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])
NUM_OLD = 20
DOCUMENTS = corpora.rows(23, 80)
OLD = DOCUMENTS[:NUM_OLD]
NEW = DOCUMENTS[NUM_OLD:]
CONTAINMENT = {"measure": "containment", "threshold": 0.6, "size": 2}


def shares(reference, own):
    """The share of a reference document in an own one, and of the own one in it."""
    shared = len(reference & own)
    return shared / len(reference), shared / len(own)


def best(references, own, threshold):
    """The reference document that an own one holds most of, the first of equals: (number, its share, the own share)."""
    found = [
        (-shares(reference, own)[0], number, shares(reference, own)[1])
        for number, reference in enumerate(references)
        if reference and own and shares(reference, own)[0] >= threshold
    ]
    return (min(found)[1], -min(found)[0], min(found)[2]) if found else None


def truth(documents=DOCUMENTS, num_old=NUM_OLD, threshold=0.6, size=2):
    """What is removed, by row from 0: (row of the reference document, share of it, share of the removed one)."""
    sets = [oracles.shingles(text, size=size) for text in corpora.texts_of(documents)]
    found = {row: best(sets[:num_old], sets[row], threshold) for row in range(num_old, len(sets))}
    return {row: match for row, match in found.items() if match is not None}


def removed_rows(report):
    firsts = {"old.jsonl": 0, "new.jsonl": NUM_OLD}
    return {
        firsts[row["file"]] + row["row"] - 1: (
            firsts[row["kept_file"]] + row["kept_row"] - 1,
            row["containment_kept"],
            row["containment_removed"],
        )
        for row in report.removed.to_pylist()
    }


@pytest.fixture
def files(tmp_path):
    old = corpora.write_json_lines(tmp_path / "then" / "old.jsonl", OLD)
    return str(old), str(corpora.write_json_lines(tmp_path / "now" / "new.jsonl", NEW))


def as_sets(members):
    ends = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return Sets(np.array([item for own in members for item in sorted(own)], np.uint64), ends)


@given(references=SETS, own=SETS, threshold=THRESHOLDS)
def test_the_best_of_all_contained_references_is_chosen(references, own, threshold):
    references = [reference for reference in references if reference]
    # Multiplied, because the index expects hashes: evenly spread numbers.
    spread = [
        [{item * 0x9E3779B97F4A7C15 % 2**64 for item in items} for items in side]
        for side in (references, own)
    ]
    index = containment.ReferenceIndex(
        np.arange(len(references)), as_sets(spread[0]), threshold=threshold
    )
    lists = pa.array(
        [np.array(sorted(items), np.uint64).view(np.int64) for items in spread[1]],
        pa.large_list(pa.int64()),
    )
    batch = pa.record_batch(
        [pa.array(range(100, 100 + len(own)), pa.int64()), lists], names=["row", "shingles"]
    )
    pairs = pa.RecordBatch.from_struct_array(index.find_contained(batch).column("pairs").flatten())
    expected = [
        (number, 100 + row, *shares(reference, items))
        for row, items in enumerate(own)
        for number, reference in enumerate(references)
        if items and shares(reference, items)[0] >= threshold
    ]
    found = [
        (row["row_a"], row["row_b"], row["similarity"], row["containment_b"])
        for row in pairs.to_pylist()
    ]
    assert sorted(found) == sorted(expected)
    chosen = {
        row["row"]: row
        for row in containment.choose_best(pairs.cast(schema.CONTAINMENT_PAIRS)).to_pylist()
    }
    matches = {100 + row: best(references, items, threshold) for row, items in enumerate(own)}
    assert {
        row: (match["kept_row"], match["similarity"], match["containment_removed"])
        for row, match in chosen.items()
    } == {row: match for row, match in matches.items() if match}
    assert all(match["similarity"] == match["containment_kept"] for match in chosen.values())


@given(own=SETS, others=SETS, threshold=THRESHOLDS)
def test_shared_items_are_counted_as_in_plain_python(own, others, threshold):
    pairs = [(a, b) for a in range(len(own)) for b in range(len(others)) if others[b]]
    expected = [len(own[a] & others[b]) for a, b in pairs]
    expected = [
        count if count / len(others[b]) >= threshold else -1
        for count, (_, b) in zip(expected, pairs, strict=True)
    ]
    given_pairs = np.array(pairs, np.int64).reshape(-1, 2)
    for count_shared in (kernel.count_shared, plain(kernel).count_shared):
        shared = np.empty(len(pairs), np.int64)
        count_shared(as_sets(own), as_sets(others), given_pairs, threshold, shared)
        assert shared.tolist() == expected


@pytest.mark.parametrize("room", [1 << 40, 300_000])
@pytest.mark.parametrize("part_bytes", [1 << 26, 500])
def test_files_agree_with_brute_force(part_bytes, room, files, tmp_path, monkeypatch):
    old, new = files
    corpora.cut(monkeypatch, batch_bytes=300, part_bytes=part_bytes)
    corpora.shrink(monkeypatch, room)
    report = neardup.deduplicate(Path(new), out=tmp_path / "out", against=old, **CONTAINMENT)
    expected = truth()
    assert removed_rows(report) == expected
    assert len(expected) > 5
    assert [row["similarity"] for row in report.removed.to_pylist()] == [
        match[1] for match in expected.values()
    ]
    assert (report.removed_against, report.removed_within) == (len(expected), 0)
    assert report.config.only_against
    kept = [json.loads(line) for line in (tmp_path / "out/kept/new.jsonl").read_text().splitlines()]
    assert kept == [
        row for number, row in enumerate(DOCUMENTS) if number >= NUM_OLD and number not in expected
    ]
    columns = ["doc_id", "kept_id", "similarity", "file", "row", "kept_file", "kept_row"]
    assert report.removed.column_names == [*columns, "containment_removed", "containment_kept"]
    stored = pq.read_table(tmp_path / "out/removed.parquet")
    assert stored == report.removed


def test_containment_is_found_only_within_a_group(files):
    old, new = files
    report = neardup.deduplicate(Path(new), against=old, group_column="site", **CONTAINMENT)
    sets = [oracles.shingles(row["text"], size=2) for row in DOCUMENTS]
    expected = set()
    for row, document in enumerate(NEW, NUM_OLD):
        same = [
            sets[at] if OLD[at]["site"] == document["site"] else frozenset()
            for at in range(NUM_OLD)
        ]
        expected |= {row} if best(same, sets[row], 0.6) else set()
    assert set(removed_rows(report)) == expected
    assert 0 < len(expected) < len(truth())


def test_a_long_document_that_quotes_a_question_is_removed_and_a_similar_pair_of_the_input_stays(
    tmp_path,
):
    question = "which river flows through the old town of the capital and under nine stone bridges"
    filler = " ".join(f"filler{number}" for number in range(500))
    texts = {
        "quotes": f"{filler} {question} {filler}",
        "page": f"{filler} one",
        "again": f"{filler} two",
    }
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"id": "q", "text": question}])
    new = corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"id": name, "text": text} for name, text in texts.items()]
    )
    by_jaccard = neardup.deduplicate(new, against=str(old), only_against=True, threshold=0.5)
    assert by_jaccard.num_removed == 0
    report = neardup.deduplicate(new, against=str(old), measure="containment")
    [row] = report.removed.to_pylist()
    assert (row["doc_id"], row["kept_id"], row["similarity"]) == ("quotes", "q", 1.0)
    assert row["containment_removed"] < 0.05


def test_documents_shorter_than_a_shingle_are_counted_and_found_only_as_a_whole(tmp_path):
    texts = ["one two three", "", "a b c d e", "a a a a a a a a", "one two three four five six"]
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": text} for text in texts])
    own = ["one two three", "here one two three there and more", "x a b c d e y"]
    new = corpora.write_json_lines(tmp_path / "new.jsonl", [{"text": text} for text in own])
    report = neardup.deduplicate(new, out=tmp_path / "out", against=str(old), measure="containment")
    [warning] = [words for words in report.warnings if "`against`" in words]
    assert warning.startswith(
        "2 of 5 documents of `against` have fewer than 5 words, the size of a shingle: "
    )
    assert report.removed.column("doc_id").to_pylist() == ["new.jsonl:1", "new.jsonl:3"]
    smaller = neardup.deduplicate(new, against=str(old), measure="containment", size=3)
    assert smaller.num_removed == 3
    assert "1 of 5 documents of `against` have fewer than 3 words" in smaller.warnings[-1]
    items = neardup.deduplicate(new, against=str(old), measure="containment", items_column="text")
    assert not [words for words in items.warnings if "`against`" in words]


def test_stored_pairs_answer_for_a_higher_threshold(files, tmp_path):
    old, new = files
    report = neardup.deduplicate(
        Path(new), out=tmp_path / "out", against=old, pairs=True, **CONTAINMENT
    )
    sets = [oracles.shingles(text, size=2) for text in corpora.texts_of(DOCUMENTS)]
    listed = {
        (row["row_a"] - 1, row["row_b"] - 1 + NUM_OLD): row["similarity"]
        for row in report.pairs.to_pylist()
    }
    assert listed == {
        (a, b): shares(sets[a], sets[b])[0]
        for b in range(NUM_OLD, len(sets))
        for a in range(NUM_OLD)
        if sets[a] and sets[b] and shares(sets[a], sets[b])[0] >= 0.6
    }
    for again in (report.at_threshold(0.9), api.load(tmp_path / "out").at_threshold(0.9)):
        assert removed_rows(again) == truth(threshold=0.9)
        assert 0 < again.num_removed == again.removed_against < report.num_removed


def test_containment_pairs_with_only_against_are_across_the_two_sources(files):
    old, new = files
    both = neardup.find_pairs(Path(new), against=old, **CONTAINMENT).pairs
    across = neardup.find_pairs(Path(new), against=old, only_against=True, **CONTAINMENT).pairs
    assert across.to_pylist() == [row for row in both.to_pylist() if row["file_a"] == "old.jsonl"]
    assert 0 < across.num_rows < both.num_rows


def test_an_explanation_states_the_contained_share(programs, tmp_path):
    question = "which river flows through the old town of the capital and under nine stone bridges"
    corpora.write_json_lines(tmp_path / "old.jsonl", [{"id": "q", "text": question}])
    corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"id": "n", "text": f"{question} and more of it"}]
    )
    arguments = ["--against", "old.jsonl", "--measure", "containment"]
    assert programs.run("dedup", "new.jsonl", "-o", "out", *arguments, cwd=tmp_path).code == 0
    said = programs.run("explain", "out", "n", "--quiet", cwd=tmp_path)
    assert said.stdout.startswith(
        "n (new.jsonl:1) was removed: it contains 100.0 % of the shingles of q (old.jsonl:1), which was kept.\n"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "cannot choose which document to keep"),
        ({"against": "old.jsonl", "audit": True}, "`audit` needs the measure 'jaccard'"),
    ],
)
def test_settings_that_containment_does_not_support_are_errors(
    settings, words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    new, _ = (
        corpora.write_json_lines(tmp_path / name, [{"text": "a"}])
        for name in ("new.jsonl", "old.jsonl")
    )
    with pytest.raises(ConfigError, match=words):
        neardup.deduplicate(new, measure="containment", **settings)


def test_reference_documents_that_do_not_fit_in_memory_are_an_error(files, monkeypatch):
    old, new = files
    corpora.shrink(monkeypatch, 5_000)
    with pytest.raises(NearDupError, match="containment is found in memory"):
        neardup.deduplicate(Path(new), against=old, **CONTAINMENT)


def test_a_killed_run_resumes_to_the_same_bytes(programs, tmp_path):
    rng = random.Random(5)
    pages = [" ".join(rng.choices(oracles.WORDS.split(), k=40)) for _ in range(40)]
    corpora.write_json_lines(tmp_path / "old.jsonl", [{"text": page} for page in pages[:10]])
    corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"text": f"{page} {pages[0]}"} for page in pages]
    )
    command = [
        "dedup",
        "../new.jsonl",
        "-o",
        "out",
        "--against",
        "../old.jsonl",
        "--measure",
        "containment",
        "--pairs",
    ]
    assert programs.run(*command, cwd=tmp_path / "whole").code == 0
    for number in (2, 5, 9):
        folder = tmp_path / f"killed{number}"
        programs.run(*command, cwd=folder, before=f"kill_at_finish({number})")
        assert programs.run(*command, cwd=folder).code == 0
        assert corpora.contents(folder / "out") == corpora.contents(tmp_path / "whole/out")
