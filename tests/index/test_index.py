"""What neardup.Index promises, call by call."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import time

import pyarrow as pa
import pytest

import neardup
from neardup import Index, Inserted
from neardup.errors import ConfigError, DataError
from neardup.index import folder_view, merge_thread
from support.index_texts import texts

TEXT = "the quick brown fox jumps over the lazy dog and runs away into the dark green forest"
NEAR = TEXT + " today"
OTHER = "a completely different sentence about cooking rice with butter and salt in a large pot"


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "pages.index") as made:
        yield made


def ids_of(matches):
    return [match.doc_id for match in matches]


def test_query_returns_matches_best_first_with_exact_similarity(index):
    index.insert("near", NEAR)
    index.insert("same", TEXT)
    index.insert("other", OTHER)
    matches = index.query(TEXT)
    assert ids_of(matches) == ["same", "near"]
    assert [match.similarity for match in matches] == [1.0, neardup.compare(TEXT, NEAR).jaccard]
    assert not matches[0].is_estimate
    assert index.query("nothing of the kind was ever written in here by anybody at all") == []


def test_equally_similar_documents_come_in_the_order_they_were_inserted(index):
    for name in ("b", "c", "a"):
        index.insert(name, TEXT)
    assert ids_of(index.query(TEXT)) == ["b", "c", "a"]
    assert ids_of(index.query(TEXT, k=2)) == ["b", "c"]
    assert ids_of(index.query(TEXT, k=None)) == ["b", "c", "a"]


def test_an_id_that_exists_is_an_error_and_changes_nothing(index):
    index.insert("a", TEXT)
    with pytest.raises(DataError, match="the id 'a' already exists in the index"):
        index.insert("a", OTHER)
    with pytest.raises(DataError, match="the id 'a' already exists in the index"):
        index.insert_many({"b": OTHER, "a": OTHER})
    with pytest.raises(DataError, match="the id 'a' already exists"):
        index.insert_new("a", OTHER)
    assert (list(index.ids()), len(index)) == (["a"], 1)
    assert index.query(OTHER) == []


def test_a_batch_with_an_id_twice_stores_nothing(index, tmp_path):
    (tmp_path / "twice.jsonl").write_text(f'{{"id": "x", "text": "{TEXT}"}}\n' * 2)
    with pytest.raises(DataError, match="the id 'x' occurs twice in the batch"):
        index.insert_many(tmp_path / "twice.jsonl")
    assert len(index) == 0


def test_documents_without_ids_are_an_error_with_a_hint(index):
    with pytest.raises(DataError, match="have no ids") as caught:
        index.insert_many([TEXT])
    assert "dict of id to text" in caught.value.hint


def test_a_lower_threshold_than_that_of_the_index_is_an_error_that_says_why(index):
    index.insert("near", NEAR)
    assert index.query(TEXT, threshold=0.99) == []
    assert ids_of(index.query(TEXT, threshold=0.9)) == ["near"]
    with pytest.raises(ConfigError, match=r"below that of the index, 0\.8: its bands would miss"):
        index.query(TEXT, threshold=0.7)


def test_removed_documents_are_absent_everywhere(index):
    index.insert_many({"a": TEXT, "b": NEAR})
    assert index.remove("a") == 1
    assert index.remove(["a", "never"]) == 0
    assert ids_of(index.query(TEXT)) == ["b"]
    assert ("a" in index, "b" in index, len(index), list(index.ids())) == (False, True, 1, ["b"])
    with pytest.raises(DataError, match="the index has no document 'a'"):
        index.get("a")
    index.compact()
    assert ids_of(index.query(TEXT)) == ["b"]
    index.insert("a", TEXT)
    assert ids_of(index.query(TEXT)) == ["a", "b"]


def test_replace_stores_another_text_under_the_id(index):
    index.insert("a", TEXT, payload={"version": 1})
    index.replace("a", OTHER, payload={"version": 2})
    assert index.query(TEXT) == []
    assert index.query(OTHER)[0].payload == {"version": 2}
    with pytest.raises(DataError, match="no document 'b'"):
        index.replace("b", TEXT)


@pytest.mark.parametrize(
    ("on_duplicate", "ids", "names"),
    [
        ("skip", ["first"], ["first"]),
        ("replace", ["second"], ["second"]),
        ("link", ["first"], ["first", "second"]),
        ("insert", ["first", "second"], ["first", "second"]),
    ],
)
def test_insert_new_handles_a_duplicate_as_requested(index, on_duplicate, ids, names):
    assert index.insert_new("first", TEXT, on_duplicate=on_duplicate) == Inserted(
        is_new=True, match=None
    )
    answer = index.insert_new("second", NEAR, on_duplicate=on_duplicate)
    assert (answer.is_new, answer.match.doc_id) == (False, "first")
    assert answer.match.similarity == neardup.compare(TEXT, NEAR).jaccard
    assert list(index.ids()) == ids
    assert [name for name in ("first", "second") if name in index] == names


def test_an_alias_resolves_to_its_document_and_is_removed_with_it(index):
    index.insert_new("first", TEXT)
    index.insert_new("alias", TEXT, on_duplicate="link")
    assert index.get("alias").doc_id == "first"
    with pytest.raises(DataError, match="already exists"):
        index.insert("alias", OTHER)
    index.remove("alias")
    assert ("alias" in index, "first" in index) == (False, True)
    index.insert_new("alias", TEXT, on_duplicate="link")
    index.remove("first")
    assert ("alias" in index, len(index)) == (False, 0)
    index.insert("alias", OTHER)
    assert (index.get("alias").doc_id, index.check()) == ("alias", [])


def test_a_document_counts_how_often_insert_new_matched_it(index):
    before = time.time()
    index.insert_new("first", TEXT)
    assert (index.get("first").times_matched, index.get("first").first_matched) == (0, None)
    index.insert_new("second", NEAR)
    index.insert_new_many({"third": TEXT, "fourth": NEAR})
    found = index.get("first")
    assert found.times_matched == 3
    assert before <= found.first_matched <= found.last_matched <= time.time()


@pytest.mark.parametrize("on_duplicate", ["skip", "replace", "link", "insert"])
def test_insert_new_many_equals_insert_new_in_a_loop(tmp_path, on_duplicate):
    documents = texts(60, seed=5)
    with Index.create(tmp_path / "one") as one, Index.create(tmp_path / "many") as many:
        for made in (one, many):
            made.insert_many(
                texts(30, seed=6)
                | {f"old {name}": text for name, text in list(documents.items())[:9]}
            )
        one_by_one = [
            one.insert_new(name, text, on_duplicate=on_duplicate)
            for name, text in documents.items()
        ]
        table = many.insert_new_many(documents, on_duplicate=on_duplicate).rows
        assert table.column("is_new").to_pylist() == [answer.is_new for answer in one_by_one]
        assert table.column("match_id").to_pylist() == [
            answer.match and answer.match.doc_id for answer in one_by_one
        ]
        assert list(one.ids()) == list(many.ids())
        assert one.query_many(documents).equals(many.query_many(documents))
        assert any(not answer.is_new for answer in one_by_one)


def test_where_and_since_are_applied_before_k(index):
    for number in range(30):
        index.insert(
            f"{number}", TEXT, payload={"lang": "de" if number % 10 == 9 else "en", "day": number}
        )
    assert ids_of(index.query(TEXT, k=2, where={"lang": "de"})) == ["9", "19"]
    assert ids_of(index.query(TEXT, where={"lang": ["de", "fr"], "day": {"gte": 19}})) == [
        "19",
        "29",
    ]
    assert ids_of(index.query(TEXT, where={"day": {"gt": 3, "lt": 6}})) == ["4", "5"]
    assert index.query(TEXT, where={"missing": 1}) == []
    assert index.query(TEXT, where={"lang": {"lt": 4}}) == []
    middle = index.get("20").inserted
    assert ids_of(index.query(TEXT, since=middle)) == [f"{number}" for number in range(21, 30)]
    assert ids_of(
        index.query(TEXT, k=1, since=dt.datetime.fromtimestamp(middle + 1e-5, tz=dt.UTC))
    ) == ["21"]
    with pytest.raises(ConfigError, match="`where` has the unknown operator 'above' for 'day'"):
        index.query(TEXT, where={"day": {"above": 3}})


def test_expired_documents_are_absent_and_their_ids_are_free(index):
    index.insert("old", TEXT, expires=time.time() - 1)
    index.insert("new", NEAR, expires=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
    assert (ids_of(index.query(TEXT)), len(index), "old" in index, list(index.ids())) == (
        ["new"],
        1,
        False,
        ["new"],
    )
    assert index.insert_new("other", OTHER).is_new
    index.insert("old", TEXT)
    assert ids_of(index.query(TEXT)) == ["old", "new"]
    index.insert("gone", TEXT, expires=0)
    index.compact()
    assert index.check() == []
    assert index.info()["documents"] == 3


def test_merging_segments_leaves_expired_documents_to_compaction(index, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 2)
    monkeypatch.setattr(merge_thread, "TIER", 2)
    index.insert("old", TEXT, expires=1.0)
    for number in range(12):  # enough to create segments, and to merge them
        index.insert(str(number), f"{OTHER} {number}")
        index._store.finish_merging()
        assert index.check() == []
    index.compact()
    assert index.check() == []
    assert len(index) == 12


def test_a_payload_must_be_a_small_json_object(index):
    for payload in ({"a": {1}}, {"a": float("nan")}, {"a": "x" * 70_000}):
        with pytest.raises(DataError, match="the payload"):
            index.insert("a", TEXT, payload=payload)
    with pytest.raises(ConfigError, match="`payload` must be a dict"):
        index.insert("a", TEXT, payload=[1])
    assert len(index) == 0


def test_a_document_without_shingles_is_stored_and_similar_to_nothing(index):
    index.insert("empty", "")
    index.insert_many({"blank": " ... ", "text": TEXT})
    assert (len(index), index.query(""), ids_of(index.query(TEXT))) == (3, [], ["text"])
    index.compact()
    assert (len(index), index.check()) == (3, [])


def test_store_text_returns_texts_and_store_signature_returns_estimates(tmp_path):
    with Index.create(tmp_path / "t", store="text") as index:
        index.insert("a", TEXT)
        index.insert_many({"b": NEAR})
        assert (index.get("a").text, index.get("b").text) == (TEXT, NEAR)
    with Index.create(tmp_path / "s", store="signature") as index:
        index.insert("a", TEXT)
        index.insert_many(texts(50, seed=3) | {"b": NEAR})
        index.compact()
        found = index.query(TEXT)
        assert ids_of(found)[0] == "a"
        assert all(match.is_estimate for match in found)
        assert found[0].similarity == 1.0
        small = index.info()["bytes"]
    with Index.create(tmp_path / "f") as index:
        index.insert("a", TEXT)
        assert index.get("a").text is None
        index.insert_many(texts(50, seed=3) | {"b": NEAR})
        index.compact()
        assert index.info()["bytes"] > small


def test_opening_with_other_settings_is_an_error_that_names_both(tmp_path):
    Index.create(tmp_path / "i", threshold=0.7, size=3, seed=7).close()
    with Index.open(tmp_path / "i", size=3) as index:
        assert (index.config.threshold, index.config.size, index.config.seed) == (0.7, 3, 7)
        assert index.plan == neardup.plan(threshold=0.7, size=3, seed=7, method="lsh")
    with pytest.raises(ConfigError, match="created with `size` 3, but opened with 4"):
        Index.open(tmp_path / "i", size=4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "exact"}, "by banding"),
        ({"recall": 1}, "by banding"),
        ({"measure": "containment"}, "does not support the measure 'containment'"),
        ({"measure": "cosine"}, "needs their `dimension`"),
        ({"per_cluster": 2}, "`per_cluster` does not apply to an index"),
        ({"keep": "last"}, "`keep` does not apply to an index"),
        ({"group_column": "site"}, "`group_column` does not apply to an index"),
        ({"store": "tape"}, "`store` must be one of"),
        ({"durability": "none"}, "`durability` must be one of"),
        (
            {"store": "signature", "measure": "hamming", "dimension": 64},
            "cannot estimate the similarity",
        ),
    ],
)
def test_settings_that_an_index_does_not_support_are_errors(tmp_path, settings, message):
    with pytest.raises(ConfigError, match=message):
        Index.create(tmp_path / "i", **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_an_index_is_not_touched(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(DataError, match="is not an index"):
        Index.open(tmp_path / "notes")
    with pytest.raises(ConfigError, match="already exists"):
        Index.create(tmp_path / "notes")
    assert [file.name for file in (tmp_path / "notes").iterdir()] == ["a.txt"]


def test_symbolic_links_are_errors_and_the_folder_is_private(tmp_path):
    Index.create(tmp_path / "i").close()
    assert (tmp_path / "i").stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(tmp_path / "i")
    with pytest.raises(DataError, match="symbolic link"):
        Index.open(tmp_path / "link")
    (tmp_path / "i" / "index.sqlite").rename(tmp_path / "elsewhere")
    (tmp_path / "i" / "index.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="symbolic link"):
        Index.open(tmp_path / "i")


def test_writing_to_a_closed_or_read_only_index_is_an_error(tmp_path):
    index = Index.create(tmp_path / "i")
    index.insert("a", TEXT)
    index.close()
    with pytest.raises(neardup.NearDupError, match="is closed"):
        index.query(TEXT)
    with Index.open(tmp_path / "i", read_only=True) as index:
        assert ids_of(index.query(TEXT)) == ["a"]
        with pytest.raises(ConfigError, match="was opened read-only"):
            index.insert("b", TEXT)


def test_an_index_in_a_folder_that_cannot_be_written_is_read_without_a_trace(tmp_path, monkeypatch):
    with Index.create(tmp_path / "i") as index:
        index.insert_many({"a": TEXT, "b": OTHER})
    before = sorted(path.name for path in (tmp_path / "i").iterdir())
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("/i"))
    with Index.open(tmp_path / "i", read_only=True) as index:
        assert ids_of(index.query(TEXT)) == ["a"]
        assert index.check() == []
        assert (
            sorted(path.name for path in (tmp_path / "i").iterdir())
            == before
            == ["index.sqlite", "runs", "writer.lock"]
        )


def test_a_snapshot_is_an_independent_index(index, tmp_path):
    index.insert_many(texts(3000, seed=1))
    index.insert("fresh", TEXT)
    index.snapshot(tmp_path / "copy")
    index.remove("fresh")
    index.compact()
    with Index.open(tmp_path / "copy") as copy:
        assert (len(copy), ids_of(copy.query(TEXT)), copy.check()) == (3001, ["fresh"], [])
    with pytest.raises(ConfigError, match="already exists"):
        index.snapshot(tmp_path / "copy")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy", "pages.index"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_export_writes_every_document(tmp_path, ending):
    with Index.create(tmp_path / "i", store="text") as index:
        index.insert("a", TEXT, payload={"lang": "en"})
        index.insert("b", OTHER)
        index.insert("c", OTHER)
        index.remove("b")
        assert index.export(tmp_path / f"out.{ending}") == 2
    data = (tmp_path / f"out.{ending}").read_bytes()
    assert data.count(b"lang") == 1 or ending == "parquet"


def test_insert_many_reads_files_and_finished_runs(tmp_path):
    (tmp_path / "pages.jsonl").write_text(
        f'{{"id": "a", "text": "{TEXT}"}}\n{{"text": "{OTHER}"}}\n{{"id": "x"}}\n'
    )
    (tmp_path / "note.txt").write_text(NEAR)
    with Index.create(tmp_path / "i") as index:
        stored = index.insert_many([tmp_path / "pages.jsonl", tmp_path / "note.txt"])
        assert (stored.documents, len(stored.rejected)) == (3, 1)
        assert list(index.ids()) == ["a", "pages.jsonl:2", "note.txt"]
        assert ids_of(index.query(TEXT)) == ["a", "note.txt"]
    neardup.deduplicate(tmp_path / "pages.jsonl", out=tmp_path / "run")
    with Index.create(tmp_path / "j") as index:
        index.insert_many(tmp_path / "run")
        assert list(index.ids()) == ["a", "pages.jsonl:2"]


def test_pairs_and_merge_work_on_two_indexes(tmp_path):
    first = texts(80, seed=11)
    second = texts(80, seed=12)
    second |= {f"copy {name}": text + " more" for name, text in list(first.items())[:20]}
    with Index.create(tmp_path / "a") as a, Index.create(tmp_path / "b") as b:
        a.insert_many(first)
        b.insert_many(second)
        b.compact()
        b.remove("copy 11-0")
        del second["copy 11-0"]
        found = {tuple(row.values()) for row in a.pairs(b).to_pylist()}
        every = neardup.find_pairs(first | second, method="lsh").pairs.to_pylist()
        assert found == {
            tuple(row.values()) for row in every if row["doc_a"] in first and row["doc_b"] in second
        }
        assert len(found) >= 15
        assert a.merge(b) == len(second)
        assert list(a.ids()) == [*first, *second]
        assert a.query_many(second).equals(_both(tmp_path, first | second).query_many(second))
        with pytest.raises(DataError, match="already exists"):
            a.merge(b)
    with (
        Index.create(tmp_path / "c", size=3) as c,
        Index.open(tmp_path / "a") as a,
        pytest.raises(ConfigError, match="has the signature format"),
    ):
        a.pairs(c)


def _both(tmp_path, documents):
    index = Index.create(tmp_path / "both")
    index.insert_many(documents)
    return index


def test_many_inserts_become_segments_and_segments_are_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 8)
    documents = texts(600, seed=21)
    with Index.create(tmp_path / "i", durability="fast") as index:
        names = list(documents)
        for name in names[:300]:
            index.insert(name, documents[name])
        for first in range(300, 600, 20):
            # On a busy machine, all might be flushed as one segment.
            if first == 580:
                index._store.finish_merging()
            index.insert_many({name: documents[name] for name in names[first : first + 20]})
        index._store.finish_merging()
        assert 1 < index.info()["segments"] < 24
        grown = index.query_many(documents, k=None)
        index.compact()
        assert (index.info()["segments"], index.info()["unflushed"]) == (1, 0)
        assert index.query_many(documents, k=None).equals(grown)
    with Index.create(tmp_path / "j") as other:
        other.insert_many(documents)
        assert other.query_many(documents, k=None).equals(grown)


def test_compaction_gives_the_space_of_removed_documents_back(tmp_path):
    with Index.create(tmp_path / "i", store="text", durability="fast") as index:
        index.insert_many(texts(600, seed=23))
        # Before, the size depends on what the merging thread has flushed so far.
        index.compact()
        before = index.info()["bytes"]
        index.remove(list(index.ids())[100:])
        index.compact()
        # A sixth of the documents is left, and what an empty index takes.
        assert index.info()["bytes"] < before / 3
        assert (len(index), index.check()) == (100, [])
        assert index.query(texts(600, seed=23)["23-7"])[0].similarity == 1


def test_segments_stay_few_and_automatic_merges_stay_small(tmp_path, monkeypatch):
    monkeypatch.setattr(merge_thread, "MAX_JOINED", 60)
    monkeypatch.setattr(merge_thread, "TIER", 3)
    monkeypatch.setattr("neardup.index.folder_view.UNFLUSHED_DOCS", 4)
    documents = texts(600, seed=22)
    sizes = [1, 5, 23, 9, 40, 2]
    with Index.create(tmp_path / "i", durability="fast") as index:
        names = iter(documents)
        for step in range(48):
            index.insert_many(
                {name: documents[name] for name in itertools.islice(names, sizes[step % 6])}
            )
            index._store.finish_merging()
            held = index._store.read(
                lambda view: [segment.documents for segment in view.tables.segments()]
            )
            assert max(held, default=0) <= 60
            # Two segments of up to 30 may be merged, so each of their three tiers has fewer than
            # TIER.
            assert sum(num_docs <= 30 for num_docs in held) <= 3 * (3 - 1)
        assert len(index) == 600
        assert index.check() == []


def test_query_many_names_queries_by_id_or_position(index):
    index.insert("a", TEXT)
    assert index.query_many([OTHER, TEXT]).to_pylist() == [
        {"query_id": "1", "doc_id": "a", "similarity": 1.0, "rank": 1}
    ]
    assert index.query_many(pa.table({"id": ["q"], "text": [TEXT]})).column(
        "query_id"
    ).to_pylist() == ["q"]
    assert index.query_many([]).num_rows == 0


def test_a_tagged_change_is_applied_once(index):
    assert index.insert_many({"a": TEXT}, tag="run 1").documents == 1
    assert index.insert_many({"a": TEXT}, tag="run 1").documents == 0
    with pytest.raises(DataError, match="already exists"):
        index.insert_many({"a": TEXT}, tag="run 2")


def test_containment_finds_what_the_text_contains_and_what_contains_it(tmp_path):
    with Index.create(tmp_path / "i", size=1, containment=True) as index:
        index.insert_many(
            {"part": "cat dog", "whole": "cat dog emu fox gnu hen", "other": "ant bee"}
        )
        found = index.query("cat dog emu", containment=1.0)
        assert [
            (match.doc_id, match.containment_query, match.containment_doc) for match in found
        ] == [
            ("part", 2 / 3, 1.0),
            ("whole", 1.0, 0.5),
        ]
        table = index.query_many({"q": "cat dog emu", "empty": ""}, containment=1.0)
        assert table.to_pylist()[0] == {
            "query_id": "q",
            "doc_id": "part",
            "similarity": 1.0,
            "rank": 1,
            "containment_query": 2 / 3,
            "containment_doc": 1.0,
        }
        assert table.column("query_id").to_pylist() == ["q", "q"]
        assert index.query("cat dog")[0].containment_query is None
    with Index.open(tmp_path / "i") as index:
        assert index.info()["containment"]
        assert ids_of(index.query("bee", containment=0.1)) == ["other"]


def test_what_an_index_cannot_answer_by_containment_is_an_error(index, tmp_path):
    with pytest.raises(ConfigError, match="has no postings of shingles") as caught:
        index.query(TEXT, containment=0.5)
    assert caught.value.hint == "create it with containment=True"
    with Index.create(tmp_path / "i", containment=True) as other:
        with pytest.raises(ConfigError, match=r"`containment` must be a number in \(0, 1\]"):
            other.query(TEXT, containment=0)
        with pytest.raises(ConfigError, match="`threshold` or `containment`, not both"):
            other.query(TEXT, threshold=0.9, containment=0.5)
    for settings in ({"store": "signature"}, {"measure": "cosine", "dimension": 3}):
        with pytest.raises(ConfigError, match="containment=True needs stored sets"):
            Index.create(tmp_path / "j", containment=True, **settings)
