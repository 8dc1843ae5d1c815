"""--per-cluster N: the clusters of N = 1, with N documents kept in each; and reported cluster sizes."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import schema
from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.stages.select import thin_table
from support import corpora, oracles
from support.corpora import EVERY_PAIR, NEAR, OTHER, PAGE, Truth

DOCUMENTS = corpora.rows(31, 70)
TEXTS = corpora.texts_of(DOCUMENTS)
NUM_OLD = 20


def check(report, truth):
    """The removed documents and the clusters are those of the oracle."""
    firsts = {"old.jsonl": 0, "new.jsonl": truth.num_references}
    assert corpora.removed_rows(report, firsts) == truth.removed
    ids = [row["id"] for row in DOCUMENTS]
    expected = [(ids[row], ids[kept], size) for row, kept, size in truth.clusters(truth.pairs)]
    assert [tuple(row.values()) for row in report.clusters.to_pylist()] == expected


@given(
    members=st.dictionaries(st.integers(0, 30), st.integers(31, 34), max_size=25),
    seed=st.integers(0, 99),
    per_cluster=st.integers(1, 5),
)
def test_the_next_documents_in_keep_order_are_kept(members, seed, per_cluster):
    rows = sorted(members)
    priority = [(row * 7 + seed) % 5 for row in rows]
    columns = {
        "row": rows,
        "kept_row": [members[row] for row in rows],
        "similarity": [1.0] * len(rows),
    }
    table = pa.Table.from_pydict(columns, schema=schema.SELECTION)
    order = sorted(rows, key=lambda row: (priority[rows.index(row)], row))
    expected = oracles.thin(order, {row: (members[row], 1.0) for row in rows}, per_cluster)
    assert thin_table(table, priority, per_cluster).column("row").to_pylist() == list(expected)
    sizes = ClusterSizes(table).of(table.column("row").to_numpy())
    assert sizes.tolist() == [list(members.values()).count(members[row]) + 1 for row in rows]


@pytest.mark.parametrize("room", [1 << 40, 50_000])
@pytest.mark.parametrize(
    "run",
    [
        {"per_cluster": 2},
        {"per_cluster": 3, "keep": "longest"},
        {"per_cluster": 2, "keep": "min:score", "cluster": "components"},
        {"per_cluster": 2, "against": True},
        {"per_cluster": 2, "against": True, "only_against": True, "keep": "last"},
    ],
    ids=str,
)
def test_the_oracle_agrees(run, room, tmp_path, monkeypatch):
    corpora.shrink(monkeypatch, room)
    num_old = NUM_OLD if "against" in run else 0
    old = corpora.write_json_lines(tmp_path / "old.jsonl", DOCUMENTS[:num_old])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", DOCUMENTS[num_old:])
    chosen = {name: value for name, value in run.items() if name != "against"}
    truth = Truth(
        TEXTS, num_references=num_old, scores=[row["score"] for row in DOCUMENTS], **chosen
    )
    given_settings = chosen | ({"against": str(old)} if num_old else {})
    report = corpora.deduplicate(
        [new], tmp_path / "out", pairs=True, **EVERY_PAIR, **given_settings
    )
    check(report, truth)
    one = Truth(
        TEXTS,
        num_references=num_old,
        scores=[row["score"] for row in DOCUMENTS],
        **chosen | {"per_cluster": 1},
    )
    assert truth.clusters(truth.pairs) == one.clusters(one.pairs)
    num_spared = len(one.removed) - len(truth.removed)
    assert num_spared > 0
    assert f"{num_spared} kept documents are similar to another kept document: " in " ".join(
        report.warnings
    )
    if "components" not in run.values():
        higher = {pair: similarity for pair, similarity in truth.pairs.items() if similarity >= 0.8}
        again = report.at_threshold(0.8)
        assert corpora.removed_rows(again, {"old.jsonl": 0, "new.jsonl": num_old}) == truth.select(
            higher
        )
        sizes = [size for _, _, size in truth.clusters(higher)]
        assert again.clusters.column("cluster_size").to_pylist() == sizes


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_marks_include_the_cluster_size(form, tmp_path):
    rows = [{"id": str(at), "text": text} for at, text in enumerate([PAGE, NEAR, OTHER, PAGE])]
    path = corpora.write_rows(tmp_path / f"pages.{form}", rows)
    corpora.deduplicate([path], tmp_path / "out", mark=True, per_cluster=2)
    marked = corpora.read_rows(tmp_path / "out/kept" / path.name)
    assert [int(row["neardup_cluster_size"]) for row in marked] == [3, 3, 1, 3]
    assert [str(row["neardup_kept"]).lower() for row in marked] == ["true", "true", "true", "false"]
    assert marked[1]["neardup_kept_id"] in (None, "")


def test_a_kept_document_of_against_counts_as_one(tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", [{"id": "o", "text": PAGE}])
    new = corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"id": name, "text": PAGE} for name in "abc"]
    )
    report = corpora.deduplicate([new], tmp_path / "out", against=str(old), per_cluster=2)
    assert report.removed.column("doc_id").to_pylist() == ["b", "c"]
    assert report.clusters.column("cluster_size").to_pylist() == [4, 4, 4]
    assert report.largest_clusters().to_pylist()[0]["documents"] == 4
    stored = json.loads((tmp_path / "out/report.json").read_text())
    assert stored["largest_clusters"][0]["documents"] == 4
    assert pq.read_table(tmp_path / "out/clusters.parquet") == report.clusters


def test_kept_documents_of_a_finished_run_include_all_kept_per_cluster(tmp_path):
    path = corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"text": text} for text in (PAGE, PAGE, NEAR, OTHER, PAGE)]
    )
    report = corpora.deduplicate([path], tmp_path / "out", per_cluster=2)
    assert report.kept.column("doc_id").to_pylist() == ["a.jsonl:1", "a.jsonl:2", "a.jsonl:4"]
    assert neardup.audit(report).recall == 1


def test_memory_and_files_keep_the_same_number_per_cluster():
    report = neardup.deduplicate([PAGE, PAGE, NEAR, OTHER], per_cluster=2, pairs=True)
    assert report.kept.num_rows == 3
    assert report.removed.to_pylist()[0]["doc_id"] == 2
    assert report.clusters.column("cluster_size").to_pylist() == [3, 3, 3, 1]
    assert "1 kept documents are similar to another kept document" in report.warnings[-1]
    assert report.at_threshold(1.0).clusters.column("cluster_size").to_pylist() == [2, 2, 1, 1]
