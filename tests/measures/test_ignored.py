"""Shingles of ignored documents do not count, for every unit, method and command."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.kernels import members
from neardup.measures.jaccard import signature_format, text_sets
from support import oracles
from support.plain_kernels import plain

HEADER = "this file is part of a course and may be used by its students for their homework and nothing else"
BODIES = [" ".join(random.Random(seed).sample(oracles.WORDS.split(), 12)) for seed in range(4)]
TEXTS = [f"{HEADER} {body}" for body in BODIES]


@pytest.fixture
def header(tmp_path):
    path = tmp_path / "header.txt"
    path.write_text(HEADER)
    return str(path)


@pytest.mark.parametrize("num_members", [0, 1, 50, 3000])
def test_ignored_members_are_dropped_and_the_order_is_kept(num_members):
    rng = np.random.default_rng(num_members)
    known = np.unique(rng.integers(1, 2**64, num_members, np.uint64))
    sizes = [0, 1, 400, 0, 77]
    drawn = np.concatenate([rng.integers(1, 2**64, 300, np.uint64), *[known[:89]] * 2])
    shingles = np.resize(rng.permutation(drawn), sum(sizes))
    ends = np.cumsum([0, *sizes])
    expected = [
        [shingle for shingle in shingles[start:stop].tolist() if shingle not in set(known.tolist())]
        for start, stop in pairwise(ends)
    ]
    for kernel in (members, plain(members)):
        capacity = 2 * known.size + 8
        table = np.zeros(capacity + known.size + 1, np.uint64)
        kernel.fill_table(known, capacity, table)
        left = shingles.copy()
        new_ends = ends.copy()
        kernel.drop_members(left, new_ends, capacity, table)
        got = [left[start:stop].tolist() for start, stop in pairwise(new_ends)]
        assert got == expected


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("multiset", [False, True])
def test_sets_are_those_of_the_oracle_without_the_ignored_ones(unit, multiset, header):
    settings = {"unit": unit, "size": 3}
    texts = [*TEXTS, HEADER, "", f"{HEADER} {HEADER} of the of the of the"]
    gone = oracles.shingles(HEADER, **settings)
    sets = text_sets(
        pa.array(texts, pa.large_string()), Config(ignore=header, multiset=multiset, **settings)
    )
    sizes = np.diff(sets.ends).tolist()
    expected = [oracles.shingles(text, multiset=multiset, **settings) for text in texts]
    if multiset:
        assert sizes == [sum(window not in gone for window, _ in windows) for windows in expected]
    else:
        assert sizes == [len(windows - gone) for windows in expected]
    assert sizes[4:6] == [0, 0]


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_documents_that_share_only_ignored_shingles_are_not_a_pair(method, header):
    texts = [*TEXTS, TEXTS[0]]
    settings = {"threshold": 0.3, "size": 2, "method": method}
    assert neardup.find_pairs(texts, **settings).num_pairs == 10
    report = neardup.find_pairs(texts, ignore=header, **settings)
    assert report.pairs.to_pylist() == [{"doc_a": 0, "doc_b": 4, "similarity": 1.0}]
    assert neardup.audit(report).recall == 1


def test_compare_and_neighbours_honour_ignore(header):
    plain_answer, answer = (
        neardup.compare(*TEXTS[:2], size=2, **given) for given in ({}, {"ignore": header})
    )
    assert plain_answer.jaccard > 0.3
    assert answer.jaccard < 0.05
    assert neardup.neighbours(TEXTS[:2], size=2, threshold=0.3, ignore=[header]).num_rows == 0


EMPTIED = "2 documents have only ignored shingles, so they match nothing"


@pytest.mark.parametrize(
    "settings", [{"method": "lsh"}, {"method": "exact"}, {}, {"measure": "containment"}]
)
def test_documents_of_ignored_shingles_only_are_similar_to_nothing_and_counted(settings, header):
    with pytest.warns(UserWarning, match=EMPTIED):
        report = neardup.find_pairs(
            [HEADER, HEADER, TEXTS[0], "", "..."], ignore=header, **settings
        )
    assert (report.num_pairs, EMPTIED in report.warnings) == (0, True)


@pytest.mark.usefixtures("header")
def test_emptied_documents_are_counted_on_files_but_not_those_of_against(run, tmp_path):
    for name, texts in {"rows": [HEADER, TEXTS[0], HEADER, ""], "old": [HEADER, TEXTS[1]]}.items():
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({"text": text}) + "\n" for text in texts)
        )
    for out, more in {
        "out": [],
        "clean": ["--against", "old.jsonl", "--measure", "containment"],
    }.items():
        done = run("dedup", "rows.jsonl", "-o", out, "--ignore", "header.txt", *more)
        assert (done.code, f"{EMPTIED}\n" in done.stderr) == (0, True), done.stderr
        assert EMPTIED in json.loads((tmp_path / out / "report.json").read_text())["warnings"]


def test_one_emptied_document_is_counted_and_matches_empty_ones_if_they_collapse(header):
    with pytest.warns(
        UserWarning, match="1 document has only ignored shingles, so it matches nothing except"
    ):
        report = neardup.deduplicate([HEADER, "", TEXTS[0]], ignore=header, collapse_empty=True)
    assert report.num_removed == 1


def test_no_warning_if_ignored_shingles_empty_no_document(header):
    assert neardup.deduplicate([*TEXTS, "", "..."], size=2, ignore=header).warnings == ()


def test_items_can_be_ignored(tmp_path):
    (tmp_path / "common.jsonl").write_text(json.dumps({"items": ["bag", "bottle"]}) + "\n")
    baskets = [["bag", "bottle", "tea"], ["bag", "bottle", "milk"]]
    settings = {"threshold": 0.4}
    assert neardup.find_pairs(items=baskets, **settings).num_pairs == 1
    assert (
        neardup.find_pairs(items=baskets, ignore=tmp_path / "common.jsonl", **settings).num_pairs
        == 0
    )
    (tmp_path / "common.txt").write_text("bag bottle")
    with pytest.raises(
        ConfigError, match=r"common\.txt, which is plain text, but items are compared"
    ):
        neardup.find_pairs(items=baskets, ignore=tmp_path / "common.txt", **settings)


@pytest.mark.parametrize("measure", ["weighted", "hamming", "cosine", "euclidean"])
def test_ignore_is_an_error_for_other_measures(measure):
    with pytest.raises(ConfigError, match="`ignore` needs a measure of shingles or items"):
        Config(ignore="x", measure=measure)


def test_a_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"no\.txt does not exist"):
        neardup.deduplicate(TEXTS, ignore=tmp_path / "no.txt")


def test_changed_content_of_an_ignored_file_changes_the_format(header, tmp_path):
    before = signature_format(Config(ignore=header))
    (tmp_path / "header.txt").write_text(f"{HEADER} at all")
    after = signature_format(Config(ignore=header))
    assert before != after
    assert before.rpartition(" ignore-")[0] == signature_format(Config())


def test_a_run_on_files_its_audit_and_its_explanation_agree(run, header, tmp_path):
    texts = {"a": TEXTS[0], "b": TEXTS[1], "c": f"{TEXTS[0]} indeed"}
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    options = ("--size", "2", "-t", "0.5", "--ignore", "header.txt")
    done = run("dedup", "rows.jsonl", "-o", "out", "--audit", *options)
    assert done.code == 0, done.stderr
    removed = pq.read_table(tmp_path / "out/removed.parquet").to_pylist()
    assert [(row["doc_id"], row["kept_id"]) for row in removed] == [("c", "a")]
    similarity = neardup.compare(texts["a"], texts["c"], size=2, ignore=header).jaccard
    assert removed[0]["similarity"] == similarity
    report = json.loads((tmp_path / "out/report.json").read_text())
    assert report["audit"]["recall"] == 1
    assert report["config"]["ignore"] == [header]
    explained = json.loads(run("explain", "out", "c", "--json").stdout)
    assert explained["similarity"] == similarity
    (tmp_path / "header.txt").write_text("something else")
    audited = run("audit", "out")
    assert audited.code == 1
    assert "ignore-" in audited.stderr


def test_ignored_shingles_follow_the_folding_of_the_run(tmp_path):
    (tmp_path / "header.txt").write_text("Donau\u00addampf\u00adschiff und mehr", "utf-8")
    config = Config(ignore=tmp_path / "header.txt", size=1)
    older = config.for_format("fast-2 word-1")
    texts = pa.array(["Donaudampfschiff und mehr davon", "Donau dampf schiff und mehr davon"])
    for settings in (config, older, config):
        sets = text_sets(texts, settings)
        expected = [1, 4] if settings is config else [2, 1]
        assert [end - start for start, end in pairwise(sets.ends.tolist())] == expected
