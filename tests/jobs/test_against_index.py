"""A run against an index: documents similar to the index are removed, the rest is deduplicated as usual."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import neardup
from neardup import Index
from neardup.errors import ConfigError, DataError
from support.index_texts import texts

OLD = texts(60, seed=31)
NEW = texts(60, seed=32)
NEW |= {f"copy {name}": text for name, text in list(OLD.items())[:8]}
NEW |= {f"near {name}": f"{text} more" for name, text in list(OLD.items())[4:20]}
NEW |= {"again": NEW["32-1"], "empty": ""}


def write(path, documents):
    path.write_text(
        "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in documents.items())
    )
    return path


@pytest.fixture
def old(tmp_path):
    """The old documents as a file, and as an index with a run and fresh documents."""
    names = list(OLD)
    with Index.create(tmp_path / "old.index", threshold=0.7) as index:
        index.insert_many({name: OLD[name] for name in names[:40]})
        index.compact()
        for name in names[40:]:
            index.insert(name, OLD[name])
    return write(tmp_path / "old.jsonl", OLD), tmp_path / "old.index"


def run(tmp_path, against, name, **settings):
    given = {"threshold": 0.7, "method": "lsh"} | settings
    return neardup.deduplicate(
        write(tmp_path / "new.jsonl", NEW), out=tmp_path / name, against=against, **given
    )


def test_an_index_removes_the_same_documents_as_its_files(tmp_path, old):
    from_file = run(tmp_path, old[0], "a")
    from_index = run(tmp_path, old[1], "b")
    assert (
        from_index.kept.column("doc_id").to_pylist() == from_file.kept.column("doc_id").to_pylist()
    )
    assert (from_index.num_kept, from_index.num_removed) == (
        from_file.num_kept,
        from_file.num_removed,
    )
    by_index, by_file = (
        {row["doc_id"]: row for row in report.removed.to_pylist()}
        for report in (from_index, from_file)
    )
    assert by_index.keys() == by_file.keys()
    for doc_id, row in by_index.items():
        exact = neardup.compare(NEW[doc_id], (OLD | NEW)[row["kept_id"]]).jaccard
        assert row["similarity"] == exact >= 0.7
        # With files, a more similar input document may be chosen; with an index, never.
        assert row["kept_id"] == by_file[doc_id]["kept_id"] or row["kept_id"] in OLD
    removed_by_old = [row for row in by_index.values() if row["kept_id"] in OLD]
    assert len(removed_by_old) == from_index.removed_against >= 20
    assert {row["kept_file"] for row in removed_by_old} == {str(old[1])}
    assert by_index["again"]["kept_id"] == "32-1"
    assert (tmp_path / "a" / "kept" / "new.jsonl").read_bytes() == (
        tmp_path / "b" / "kept" / "new.jsonl"
    ).read_bytes()


def test_clusters_and_warnings_are_those_of_a_run_against_files(tmp_path, old):
    text = OLD["31-0"]
    new = write(
        tmp_path / "new.jsonl",
        {"a": text, "own": NEW["32-1"], "b": f"{text} more", "c": OLD["31-1"], "d": text},
    )
    settings = {"threshold": 0.7, "method": "lsh"}
    by_file, by_index = (
        neardup.deduplicate(new, out=tmp_path / name, against=against, **settings)
        for name, against in (("a", old[0]), ("b", old[1]))
    )
    assert by_index.clusters.equals(by_file.clusters)
    assert [row["cluster_size"] for row in by_index.clusters.to_pylist()] == [4, 1, 4, 2, 4]
    assert by_index.removed.column("kept_id").to_pylist() == ["31-0", "31-0", "31-1", "31-0"]
    assert by_index.largest_clusters() == by_file.largest_clusters()
    assert not [warning for warning in by_index.warnings if "per_cluster" in warning]


def test_only_against_keeps_the_rest_of_the_input(tmp_path, old):
    report = run(tmp_path, old[1], "b", only_against=True)
    assert {row["kept_id"] for row in report.removed.to_pylist()} <= OLD.keys()
    assert "again" in report.kept.column("doc_id").to_pylist()


def test_the_finished_run_can_be_opened_and_is_the_same_for_any_threads(tmp_path, old):
    run(tmp_path, old[1], "a", threads=1)
    run(tmp_path, old[1], "b", threads=2, unit="word")
    assert pq.read_table(tmp_path / "a" / "removed.parquet").equals(
        pq.read_table(tmp_path / "b" / "removed.parquet")
    )
    assert neardup.load(tmp_path / "a").removed_against >= 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": True}, "`pairs` needs files in `against`"),
        ({"per_cluster": 2}, "`per_cluster` 2 needs files"),
        ({"audit": True}, "`audit` needs files in `against`"),
        ({"cluster": "components"}, "`cluster` 'components' needs files"),
        (
            {"size": 3},
            "has signatures jaccard fast-3 word-5 .*, but those of the run are jaccard fast-3 word-3",
        ),
        ({"threshold": 0.5}, "below that of the index"),
        ({"measure": "containment", "method": "auto"}, "has signatures"),
    ],
)
def test_settings_that_need_files_are_an_error_before_the_work(tmp_path, old, settings, message):
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, old[1], "b", **settings)
    assert not (tmp_path / "b").exists()


def test_pairs_and_several_paths_are_errors(tmp_path, old):
    new = write(tmp_path / "new.jsonl", NEW)
    with pytest.raises(ConfigError, match="`pairs` needs files"):
        neardup.find_pairs(new, against=old[1], threshold=0.7)
    with pytest.raises(ConfigError, match="together with other paths"):
        run(tmp_path, [old[0], old[1]], "b")


def command(tmp_path, out="b", **settings):
    config = neardup.Config(
        threshold=0.7, method="lsh", against=(str(tmp_path / "old.index"),), **settings
    )
    new = tmp_path / "new.jsonl"
    if not new.exists():  # a rewritten file counts as another input
        write(new, NEW)
    return neardup.deduplicate(new, out=tmp_path / out, config=config, update=True)


def test_update_inserts_what_was_kept_once(tmp_path, old):
    kept = command(tmp_path).kept.column("doc_id").to_pylist()
    with Index.open(old[1]) as index:
        assert list(index.ids()) == [*OLD, *kept]
        assert index.check() == []
    with pytest.raises(DataError, match="already has the id"):
        command(tmp_path, "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rerun_completes_an_update_that_was_stopped(tmp_path, old, monkeypatch, moment):
    insert_many = Index.insert_many

    def stopped(index, *arguments, **settings):
        if moment == "after":
            insert_many(index, *arguments, **settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "insert_many", stopped)
    with pytest.raises(KeyboardInterrupt):
        command(tmp_path)
    monkeypatch.undo()
    with Index.open(old[1]) as index:
        assert (len(index) > len(OLD)) == (moment == "after")
    kept = command(tmp_path).kept.column("doc_id").to_pylist()
    with Index.open(old[1]) as index:
        assert list(index.ids()) == [*OLD, *kept]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "b",
        "new.jsonl",
        "old.index",
        "old.jsonl",
    ]


@pytest.mark.usefixtures("old")
def test_update_checks_settings_and_ids_first(tmp_path):
    with pytest.raises(ConfigError, match="`dry_run` and `update` cannot be combined"):
        command(tmp_path, dry_run=True)
    twice = tmp_path / "twice.jsonl"
    twice.write_text('{"id": "x", "text": "one"}\n' * 2)
    config = neardup.Config(threshold=0.7, against=(str(tmp_path / "old.index"),))
    with pytest.raises(DataError, match="two documents of the input have the id 'x'"):
        neardup.deduplicate(twice, out=tmp_path / "b", config=config, update=True)
    with pytest.raises(ConfigError, match="`update` needs an index"):
        neardup.deduplicate(twice, out=tmp_path / "b", update=True)
    assert not (tmp_path / "b").exists()


def test_a_document_similar_to_one_in_the_index_is_explained_without_texts(tmp_path, old):
    run(tmp_path, old[1], "b")
    answer = neardup.explain(tmp_path / "b", "copy 31-0")
    assert (answer.kept_id, answer.similarity, answer.comparison) == ("31-0", 1.0, None)


def test_a_run_says_that_the_index_was_searched_by_its_bands(tmp_path, old):
    said = "was searched by its own bands: 17 bands x 4 rows find 99.05 % of pairs at 0.7"
    exact = run(tmp_path, old[1], "exact", method="exact")
    assert [warning for warning in exact.warnings if said in warning]
    same = run(tmp_path, old[1], "same")
    higher = run(tmp_path, old[1], "higher", threshold=0.8)
    assert not [
        warning
        for report in (same, higher)
        for warning in report.warnings
        if "its own bands" in warning
    ]
