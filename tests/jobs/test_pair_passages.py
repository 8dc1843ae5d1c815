"""Passages of every pair: the same in memory and on files, in every format, whatever the threads and batches."""

from __future__ import annotations

import csv
import json
import random

import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import ConfigError
from neardup.jobs import pair_passages
from support import passages as oracle

SETTINGS = {"threshold": 0.1, "size": 2, "passages": True}


def essays():
    rng = random.Random(1)
    source = oracle.prose(rng, 300)
    texts = [" ".join(source)]
    for number in range(6):
        own = [f"own{number}{word}" for word in oracle.prose(rng, 60)]
        copied = oracle.edited(source[40 * number % 200 :], rng, 0.08)
        texts.append(" ".join([*own, *copied]))
    return [*texts, "é " + texts[0], " ".join(oracle.prose(rng, 100)), texts[0]]


@pytest.fixture
def essay_file(tmp_path):
    path = tmp_path / "essays.jsonl"
    lines = [json.dumps({"id": f"e{at}", "text": text}) + "\n" for at, text in enumerate(essays())]
    path.write_text("".join(lines), "utf-8")
    return path


@pytest.mark.parametrize("edits", [False, True])
def test_a_pair_has_the_passages_of_its_texts(edits):
    texts = essays()
    found = neardup.find_pairs(texts, edits=edits, **SETTINGS).pairs.to_pylist()
    assert len(found) >= 10
    for pair in found:
        passages = neardup.passages(texts[pair["doc_a"]], texts[pair["doc_b"]], edits=edits)
        assert len(pair["passages"]) == len(passages)
        for listed, passage in zip(pair["passages"], passages, strict=True):
            assert listed == {name: getattr(passage, name) for name in listed}


def test_files_in_every_format_have_the_passages_of_memory(essay_file, tmp_path):
    expected = neardup.find_pairs(essays(), **SETTINGS).pairs.column("passages").to_pylist()
    for ending in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"pairs.{ending}"
        neardup.find_pairs(essay_file, out=out, **SETTINGS)
        if ending == "parquet":
            found = pq.read_table(out).column("passages").to_pylist()
        elif ending == "jsonl":
            found = [json.loads(line)["passages"] for line in out.read_text().splitlines()]
        else:
            with out.open(newline="") as file:
                found = [json.loads(row["passages"]) for row in csv.DictReader(file)]
        assert found == expected
        assert neardup.load(out).pairs.num_rows == len(expected)


def test_threads_batches_and_memory_change_no_byte(essay_file, tmp_path, monkeypatch):
    written = set()
    for threads, at_once, cache in ((1, 256, 64 << 20), (4, 3, 0), (2, 1, 1000)):
        monkeypatch.setattr(pair_passages, "_PAIRS_AT_ONCE", at_once)
        monkeypatch.setattr(pair_passages, "_CACHE_BYTES", cache)
        monkeypatch.setattr(pair_passages, "_COPIED_ROWS", at_once)
        out = tmp_path / f"pairs-{threads}.parquet"
        neardup.find_pairs(essay_file, out=out, threads=threads, edits=True, **SETTINGS)
        written.add(out.read_bytes())
    assert len(written) == 1


def test_a_higher_threshold_keeps_the_passages():
    report = neardup.find_pairs(essays(), **SETTINGS)
    closer = report.at_threshold(0.6).pairs.to_pylist()
    listed = report.pairs.to_pylist()
    assert 0 < len(closer) < len(listed)
    assert all(pair in listed for pair in closer)


def test_containment_and_stored_pairs_of_a_run_list_passages(essay_file, tmp_path):
    out = tmp_path / "pairs.parquet"
    neardup.find_pairs(essay_file, out=out, measure="containment", **SETTINGS)
    assert {"containment_a", "passages"} <= set(pq.read_schema(out).names)
    neardup.deduplicate(essay_file, out=tmp_path / "clean", pairs=True, **SETTINGS)
    stored = pq.read_table(tmp_path / "clean" / "pairs.parquet")
    assert any(stored.column("passages").to_pylist())
    report = neardup.find_pairs(["no", "pair"], passages=True)
    assert report.pairs.num_rows == 0


def test_where_there_are_no_texts_or_no_pairs_the_setting_is_refused(essay_file, tmp_path):
    run = tmp_path / "clean"
    with pytest.raises(ConfigError, match="`passages` needs `pairs`"):
        neardup.deduplicate(essay_file, out=run, passages=True)
    neardup.deduplicate(essay_file, out=run, pairs=True)
    with pytest.raises(ConfigError, match="stored only its pairs"):
        neardup.find_pairs(run, out=tmp_path / "pairs.csv", passages=True)
    index = tmp_path / "index"
    with neardup.Index.create(index) as made:
        made.insert("a", "some text")
    with pytest.raises(ConfigError, match="`passages` needs files in `against`"):
        neardup.find_pairs(essay_file, out=tmp_path / "p.csv", against=index, passages=True)
    with pytest.raises(ConfigError, match="items have no order"):
        neardup.find_pairs(items=[["a"], ["a"]], passages=True)
    with pytest.raises(ConfigError, match="needs texts, got `measure` 'cosine'"):
        neardup.find_pairs([[1.0, 2.0]], measure="cosine", passages=True)
    with pytest.raises(ConfigError, match="`engine` 'spark'"):
        neardup.Config(passages=True, engine="spark")
