"""Values that an index cannot use, what a kill leaves behind, and how both are reported."""

from __future__ import annotations

import datetime as dt
import inspect
import subprocess
import sys

import numpy as np
import pytest

from neardup import Index
from neardup.errors import ConfigError, DataError

TEXT = "the quick brown fox jumps over the lazy dog and runs away into the dark green forest"
OTHER = "a completely different sentence about cooking rice with butter and salt in a large pot"


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "pages.index") as made:
        yield made


def ids_of(matches):
    return [match.doc_id for match in matches]


def test_a_payload_is_not_nested_deeply_and_its_keys_are_strings(index):
    deep: dict[str, object] = {}
    for _ in range(10_000):
        deep = {"a": deep}
    with pytest.raises(DataError, match="nested more than 100 levels deep"):
        index.insert("a", TEXT, payload=deep)
    many: list[object] = []
    for _ in range(200):  # 2 ** 200 lists, were they written
        many = [many, many]
    with pytest.raises(DataError, match="nested more than 100 levels deep"):
        index.insert("a", TEXT, payload={"a": many})
    for payload in ({1: 2}, {"a": [{1: 2, "1": 3}]}):
        with pytest.raises(DataError, match="it has the key 1"):
            index.insert("a", TEXT, payload=payload)
    fine: dict[str, object] = {"a": 1}
    for _ in range(99):
        fine = {"a": fine}
    index.insert("a", TEXT, payload=fine)
    assert index.get("a").payload == fine


@pytest.mark.parametrize("expires", [10**400, dt.datetime(1, 1, 1), float("inf"), "never"])
def test_a_time_that_cannot_be_represented_is_an_error(index, expires):
    with pytest.raises(ConfigError, match="`expires`"):
        index.insert("a", TEXT, expires=expires)
    assert len(index) == 0


def test_a_huge_k_lists_all_matches(index):
    index.insert("a", TEXT)
    assert ids_of(index.query(TEXT, k=10**30)) == ["a"]


def test_an_invalid_id_is_not_in_the_index_and_cannot_be_removed(index):
    index.insert("a", TEXT)
    assert [value in index for value in ("a", "\ud800", "\0", 5, None)] == [
        True,
        False,
        False,
        False,
        False,
    ]
    with pytest.raises(ConfigError, match="`ids` must be an id or several, got None"):
        index.remove(None)
    assert len(index) == 1


def test_where_takes_json_values_only(index):
    index.insert("a", TEXT, payload={"n": 1, "tags": ["x", "y"]})
    assert ids_of(index.query(TEXT, where={"n": np.int64(1), "tags": [["x", "y"]]})) == ["a"]
    for value in (
        np.array([1, 2]),
        dt.date(2026, 1, 1),
        {"gte": dt.date(2026, 1, 1)},
        [np.array([1, 2])],
    ):
        with pytest.raises(
            ConfigError, match=r"`where` compares 'n' with .* which is not a JSON value"
        ):
            index.query(TEXT, where={"n": value})


def test_a_snapshot_inside_the_index_is_an_error(index):
    with pytest.raises(ConfigError, match="is inside the index"):
        index.snapshot(index.path / "runs" / "copy")


def test_an_index_that_cannot_be_locked_for_writing_says_how_to_read_it(tmp_path):
    Index.create(tmp_path / "index").close()
    (tmp_path / "index" / "writer.lock").unlink()
    (tmp_path / "index" / "writer.lock").mkdir()
    with pytest.raises(
        DataError, match=r"cannot be opened for writing: .*\n\nhint: to query it, open"
    ):
        Index.open(tmp_path / "index")


def test_rejected_rows_of_batches_are_named(index):
    assert index.insert_new_many({"a": TEXT}).rejected == ()
    assert index.insert_new_many({"b": OTHER, "c": None}).rejected == (("row 1", "text is null"),)
    rejected = []
    found = index.query_many(
        [None, OTHER], on_rejected=lambda place, reason: rejected.append((place, reason))
    )
    assert found.column("doc_id").to_pylist() == ["b"]
    assert rejected == [("row 0", "text is null")]


def test_rejected_queries_are_a_warning_if_nobody_is_told_of_them(index):
    index.insert("b", OTHER)
    with pytest.warns(
        UserWarning, match="^2 rows were rejected; the first is row 0: text is null$"
    ) as warned:
        found = index.query_many([None, OTHER, None])
    assert found.column("doc_id").to_pylist() == ["b"]
    assert warned[0].filename == __file__


def test_a_table_of_results_has_no_metadata(index):
    index.insert("a", TEXT)
    rows = [TEXT, None]
    assert index.query_many(rows, on_rejected=lambda *_: None).schema.metadata is None
    assert index.insert_new_many({"b": OTHER, "c": None}).rows.schema.metadata is None


def test_arguments_after_the_document_are_given_by_name():
    """A document is an id and a content, or a source; other public methods take one argument by position."""
    public = [
        name
        for name in dir(Index)
        if not name.startswith("_") and inspect.isroutine(getattr(Index, name))
    ]
    with_content = {"insert", "insert_new", "put", "replace"}
    too_many = []
    for name in public:
        signature = inspect.signature(getattr(Index, name))
        positional = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.name != "self"
            and parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        ]
        if len(positional) > (2 if name in with_content else 1):
            too_many.append(f"{name}{signature}")
    assert too_many == []


KILLED = """
import os, sys
import neardup
from neardup.index import folder_store, index
path = sys.argv[1]
if sys.argv[2] == "create":
    index.sync_folder = lambda _: os._exit(9)
    neardup.Index.create(path)
with neardup.Index.create(path) as made:
    made.insert("a", "to be or not to be that is the question")
    made.compact()
    folder_store.sync_file = lambda _: os._exit(9)
    made.snapshot(path + " copy")
"""


@pytest.mark.parametrize("step", ["create", "snapshot"])
def test_an_operation_interrupted_by_a_kill_can_be_repeated(tmp_path, step):
    path = tmp_path / "index"
    assert (
        subprocess.run([sys.executable, "-c", KILLED, str(path), step], check=False).returncode == 9
    )
    work = f".{path.name}.neardup" if step == "create" else f".{path.name} copy.neardup"
    assert (tmp_path / work / "index").exists()
    if step == "create":
        Index.create(path).close()
    else:
        with Index.open(path) as index:
            index.snapshot(tmp_path / "index copy")
        with Index.open(tmp_path / "index copy") as copy:
            assert (list(copy.ids()), copy.check()) == (["a"], [])
    assert not (tmp_path / work).exists()
