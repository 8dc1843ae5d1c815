"""The work folder: finished files are reused by name and digest; an output is published atomically."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError, NearDupError, StaleError
from neardup.io.storage import workspace as module
from neardup.io.storage.work_folder import (
    JOURNAL,
    LOCK,
    folder_of,
    remove_folder,
    remove_tree,
    reserve,
    write_marker,
)
from neardup.io.storage.workspace import (
    Workspace,
    check_output,
    is_published,
    open_workspace,
    publish,
    publish_folder,
    read_batches,
    write_batches,
    written_files,
)
from neardup.kernels.keys import own_secret

MANIFEST = {
    "version": "1.0",
    "command": "dedup",
    "settings": {"threshold": 0.8, "keep": "first"},
    "inputs": [{"path": "a.jsonl", "size": 3}, {"path": "b.jsonl", "size": 4}],
}


def changed(**parts):
    return json.loads(json.dumps(MANIFEST)) | parts


def writer(text, calls=None, facts=None):
    def make(path):
        if calls is not None:
            calls.append(path)
        path.write_text(text)
        return facts

    return make


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@contextlib.contextmanager
def opened(out, manifest=MANIFEST, *, overwrite=False, is_fresh=False):
    with reserve(out) as folder:
        yield open_workspace(folder, out, manifest, overwrite=overwrite, is_fresh=is_fresh)


def stop_in(out, error, *, has_finished):
    """Make a run fail, before or after it has finished a file."""

    def fail():
        with opened(out) as workspace:
            if has_finished:
                workspace.checkpoint("one", writer("x"))
            raise error

    with pytest.raises(type(error)):
        fail()


def finished_output(out, text="old"):
    out.mkdir()
    (out / "kept").mkdir()
    (out / "removed.parquet").write_text("")
    stored_report = {
        "schema": 2,
        "config": {},
        "plan": {},
        "documents": 0,
        "text": text,
        "files": written_files(out),
    }
    (out / "report.json").write_text(json.dumps(stored_report))


# what is finished


def test_a_file_is_produced_once(workspace):
    calls = []
    for _ in range(3):
        path = workspace.checkpoint("part/one", writer("x", calls))
    assert path == workspace.folder / "part/one"
    assert path.read_text() == "x"
    assert len(calls) == 1


def test_a_file_is_written_elsewhere_until_it_is_finished(workspace):
    def make(path):
        assert path != workspace.folder / "one"
        path.write_text("x")
        assert not (workspace.folder / "one").exists()
        assert not workspace.has("one")

    workspace.checkpoint("one", make)
    assert workspace.has("one")


def test_a_resumed_run_uses_finished_files(workspace):
    workspace.checkpoint("one", writer("x", facts={"num_rows": 3}))
    again = Workspace(workspace.folder)
    calls = []
    assert again.has("one")
    assert again.facts("one") == {"num_rows": 3}
    again.checkpoint("one", writer("y", calls))
    assert calls == []


def test_a_failed_attempt_is_not_finished(workspace):
    def fail(path):
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        workspace.checkpoint("one", fail)
    assert not Workspace(workspace.folder).has("one")
    assert workspace.checkpoint("one", writer("whole")).read_text() == "whole"


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_text("other"), lambda path: path.unlink()]
)
def test_a_changed_or_missing_file_is_produced_again(workspace, damage):
    damage(workspace.checkpoint("one", writer("x")))
    again = Workspace(workspace.folder)
    assert not again.has("one")
    assert again.checkpoint("one", writer("z")).read_text() == "z"
    assert Workspace(workspace.folder).has("one")


def test_an_empty_result_can_be_finished(workspace):
    workspace.checkpoint("kept/removed.txt", lambda _: None)
    again = Workspace(workspace.folder)
    assert again.has("kept/removed.txt")
    assert not (workspace.folder / "kept/removed.txt").exists()


def test_a_draft_can_be_finished_separately(workspace):
    workspace.draft("notes/7").write_text("x")
    workspace.finish("notes/7", {"rows": 1})
    assert Workspace(workspace.folder).facts("notes/7") == {"rows": 1}
    assert (workspace.folder / "notes/7").read_text() == "x"


def test_the_last_journal_line_for_a_file_counts(workspace):
    workspace.checkpoint("one", writer("x", facts={"n": 1}))
    workspace.draft("one").write_text("y")
    workspace.finish("one", {"n": 2})
    again = Workspace(workspace.folder)
    assert again.has("one")
    assert again.facts("one") == {"n": 2}


def test_a_forgotten_file_is_produced_again(workspace):
    workspace.checkpoint("one", writer("x"))
    workspace.forget("one")
    workspace.forget("never")
    assert not workspace.has("one")
    assert workspace.checkpoint("one", writer("y")).read_text() == "y"
    assert Workspace(workspace.folder).has("one")


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_journal_loses_its_last_line_only(workspace, cut):
    workspace.checkpoint("one", writer("x"))
    workspace.checkpoint("two", writer("y"))
    journal = workspace.folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-cut])
    again = Workspace(workspace.folder)
    assert again.has("one")
    assert again.checkpoint("two", writer("y")).read_text() == "y"


def test_files_finished_after_a_torn_line_are_remembered(workspace):
    workspace.checkpoint("one", writer("x"))
    journal = workspace.folder / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-10])
    Workspace(workspace.folder).checkpoint("two", writer("y"))
    assert Workspace(workspace.folder).has("two")


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"\n", b'{"checksum": "x"}\n', b'{"name": "one", "che']
)
def test_a_malformed_journal_line_is_skipped(workspace, line):
    (workspace.folder / JOURNAL).write_bytes(line)
    assert not Workspace(workspace.folder).has("one")


def test_many_threads_can_finish_files_concurrently(workspace):
    def work(number):
        workspace.checkpoint(f"part/{number}", writer(str(number), facts={"number": number}))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = Workspace(workspace.folder)
    assert all(again.has(f"part/{number}") for number in range(40))
    assert [again.facts(f"part/{number}")["number"] for number in range(40)] == list(range(40))


def test_batches_are_read_with_the_requested_columns(tmp_path):
    batches = [
        pa.record_batch({"a": [1, 2], "b": ["x", None], "c": [0.5, 1.5]}),
        pa.record_batch({"a": [3], "b": ["z"], "c": [2.5]}),
    ]
    write_batches(tmp_path / "t.arrow", iter(batches), batches[0].schema)
    assert list(read_batches(tmp_path / "t.arrow")) == batches
    chosen = list(read_batches(tmp_path / "t.arrow", ["c", "a"]))
    assert chosen == [batch.select(["c", "a"]) for batch in batches]


# one run at a time, with the same settings


def test_the_work_folder_is_hidden_beside_the_output(tmp_path):
    with opened(tmp_path / "deep" / "out") as workspace:
        assert (
            workspace.folder
            == tmp_path / "deep" / ".out.neardup"
            == folder_of(tmp_path / "deep" / "out")
        )
        assert workspace.folder.is_dir()


def test_an_interrupted_run_resumes(tmp_path):
    out = tmp_path / "out"
    stop_in(out, KeyboardInterrupt(), has_finished=True)
    with opened(out) as workspace:
        assert workspace.has("one")


@pytest.mark.parametrize(
    ("error", "has_finished"),
    [(DataError("x"), False), (KeyboardInterrupt(), False), (StaleError("x"), True)],
)
def test_a_run_without_finished_work_leaves_no_folder(tmp_path, error, has_finished):
    stop_in(tmp_path / "out", error, has_finished=has_finished)
    assert list(tmp_path.iterdir()) == []
    with opened(tmp_path / "out", changed(command="pairs")):
        pass


def test_a_new_run_uses_nothing_of_another_run(tmp_path):
    out = tmp_path / "out"
    with opened(out) as workspace:
        workspace.checkpoint("one", writer("x"))
    with opened(out, changed(command="pairs"), is_fresh=True) as workspace:
        assert not workspace.has("one")
        assert not (workspace.folder / "one").exists()


@pytest.mark.parametrize(
    ("now", "named"),
    [
        ({"version": "2.0"}, "neardup was 1.0, now 2.0"),
        ({"command": "pairs"}, "command was dedup, now pairs"),
        ({"settings": {"threshold": 0.9, "keep": "first"}}, "threshold was 0.8, now 0.9"),
        (
            {"settings": {"threshold": 0.9, "keep": "last"}},
            "threshold was 0.8, now 0.9; keep was 'first', now 'last'",
        ),
        ({"settings": {**MANIFEST["settings"], "size": 3}}, "size was None, now 3"),
        ({"inputs": MANIFEST["inputs"][:1]}, "b.jsonl was an input of that run"),
        (
            {"inputs": [*MANIFEST["inputs"], {"path": "c.jsonl", "size": 1}]},
            "c.jsonl was not an input of that run",
        ),
        (
            {"inputs": [{"path": "a.jsonl", "size": 9}, MANIFEST["inputs"][1]]},
            "a.jsonl has changed since",
        ),
        ({"inputs": MANIFEST["inputs"][::-1]}, "inputs"),
        ({"digest_format": "product-1"}, "digests were sums, now product-1"),
    ],
)
def test_the_error_for_another_run_names_the_difference(tmp_path, now, named):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    with pytest.raises(ConfigError) as error, opened(tmp_path / "out", changed(**now)):
        pass
    assert named in str(error.value)
    assert str(workspace.folder) in str(error.value)
    assert "overwrite=True" in error.value.hint
    assert Workspace(workspace.folder).has("one")


def test_overwrite_takes_over_the_work_folder_of_another_run(tmp_path):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    with opened(tmp_path / "out", changed(command="pairs"), overwrite=True) as workspace:
        assert not workspace.has("one")
    with opened(tmp_path / "out", changed(command="pairs")):
        pass


def test_a_run_keeps_the_secret_of_its_digests_until_another_run_starts(tmp_path):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    with opened(tmp_path / "out") as resumed:
        assert resumed.secret == workspace.secret != own_secret()
    with opened(tmp_path / "out", changed(command="pairs"), overwrite=True) as other:
        assert other.secret not in (workspace.secret, own_secret())


@pytest.mark.parametrize("secret", [None, "", "xyz", "00"])
def test_without_its_secret_a_run_starts_over_and_never_mixes_digests(tmp_path, secret):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    write_marker(workspace.folder, secret=secret)
    with opened(tmp_path / "out") as again:
        assert not again.has("one")
        assert again.secret not in (workspace.secret, own_secret())
    with opened(tmp_path / "out") as resumed:
        assert resumed.secret == again.secret


def test_only_the_user_of_a_run_can_read_its_secret(tmp_path):
    with opened(tmp_path / "out") as workspace:
        assert workspace.folder.stat().st_mode & 0o077 == 0
        assert (workspace.folder / LOCK).stat().st_mode & 0o077 == 0


def test_overwrite_resumes_the_same_run(tmp_path):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    with opened(tmp_path / "out", overwrite=True) as workspace:
        assert workspace.has("one")


@pytest.mark.parametrize("manifest", ["", '{"version": "1'])
def test_a_torn_manifest_starts_over(tmp_path, manifest):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    (workspace.folder / module.MANIFEST).write_text(manifest)
    with opened(tmp_path / "out") as workspace:
        assert not workspace.has("one")


def test_a_second_run_on_the_same_output_names_the_process_of_the_first(tmp_path):
    with opened(tmp_path / "out"):
        with (
            pytest.raises(NearDupError, match=f"another run .*process {os.getpid()}") as error,
            opened(tmp_path / "out"),
        ):
            pass
        assert "wait" in error.value.hint
    with opened(tmp_path / "out"):
        pass


def test_a_killed_run_leaves_no_lock_behind(tmp_path):
    program = (
        "import os, sys, pathlib\n"
        "from neardup.io.storage.work_folder import reserve\n"
        "from neardup.io.storage.workspace import open_workspace\n"
        "out = pathlib.Path(sys.argv[1])\n"
        "with reserve(out) as folder:\n"
        "    open_workspace(folder, out, {'n': 1}, overwrite=False, is_fresh=False)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "out")], check=False, timeout=60)
    assert (folder_of(tmp_path / "out") / LOCK).exists()
    with opened(tmp_path / "out", {"n": 1}) as workspace:
        assert workspace.folder.is_dir()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match="is a file, not a folder") as error,
        opened(tmp_path / "file" / "out"),
    ):
        pass
    assert error.value.hint == "choose another `out`"


# the output


def test_an_existing_output_is_an_error(tmp_path):
    finished_output(tmp_path / "out")
    with pytest.raises(DataError, match="already exists") as error, opened(tmp_path / "out"):
        pass
    assert "overwrite=True" in error.value.hint
    assert not folder_of(tmp_path / "out").exists()


def test_an_empty_folder_and_an_old_output_may_be_overwritten(tmp_path):
    (tmp_path / "empty").mkdir()
    finished_output(tmp_path / "old")
    for name in ("empty", "old"):
        with opened(tmp_path / name, overwrite=True):
            pass


@pytest.mark.parametrize("name", ["thesis.txt", "report.json"])
def test_a_foreign_folder_is_never_overwritten(tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text('{"title": 1}')
    with pytest.raises(DataError, match="was not written by neardup"), opened(out, overwrite=True):
        pass
    assert (out / name).exists()


@pytest.mark.parametrize("leads_to", ["old", "nowhere"])
@pytest.mark.parametrize("overwrite", [True, False])
def test_an_output_that_is_a_link_fails_before_the_work_begins(tmp_path, leads_to, overwrite):
    finished_output(tmp_path / "old")
    (tmp_path / "out").symlink_to(tmp_path / leads_to)
    with (
        pytest.raises(DataError, match="symbolic link"),
        opened(tmp_path / "out", overwrite=overwrite),
    ):
        pass
    assert (tmp_path / "old" / "report.json").exists()


@pytest.mark.parametrize("point", ["before the new output has its name", "after it"])
def test_a_run_killed_while_it_replaces_an_output_can_be_finished(tmp_path, point):
    out = tmp_path / "out"
    finished_output(out)
    with opened(out, overwrite=True) as workspace:
        workspace.checkpoint("out/report.json", writer("new"))
        out.replace(workspace.folder / "replaced")
        if point == "after it":
            finished_output(out)
    with opened(out, overwrite=True) as workspace:
        publish_folder(workspace, out, lambda: None)
    assert [path.name for path in out.iterdir()] == ["report.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_output_is_published_whole_and_the_work_folder_removed(tmp_path):
    out = tmp_path / "out"
    with opened(out) as workspace:
        workspace.checkpoint("out/kept/a.txt", writer("a"))
        workspace.checkpoint("out/report.json", writer("{}"))
        assert not out.exists()
        publish_folder(workspace, out, lambda: None)
    assert sorted(path.name for path in out.rglob("*")) == ["a.txt", "kept", "report.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_old_output_is_replaced_as_a_whole(tmp_path):
    out = tmp_path / "out"
    finished_output(out)
    with opened(out, overwrite=True) as workspace:
        workspace.checkpoint("out/report.json", writer("new"))
        publish_folder(workspace, out, lambda: None)
    assert [path.name for path in out.iterdir()] == ["report.json"]
    assert (out / "report.json").read_text() == "new"


def test_a_file_is_published_over_another(tmp_path):
    (tmp_path / "draft").write_text("new")
    (tmp_path / "pairs.csv").write_text("old")
    publish(tmp_path / "draft", tmp_path / "pairs.csv", overwrite=True)
    assert (tmp_path / "pairs.csv").read_text() == "new"
    assert not (tmp_path / "draft").exists()


def killed_after_publishing(out, monkeypatch, manifest=MANIFEST):
    """Leave the state of a run that was killed after publishing, before its work folder was removed."""
    with monkeypatch.context() as patch, opened(out, manifest) as workspace:
        workspace.checkpoint("out/report.json", writer("{}"))
        workspace.checkpoint("out/removed.parquet", writer(""))
        patch.setattr(module, "remove_folder", lambda _: None)
        publish_folder(workspace, out, lambda: None)


def test_a_run_killed_after_publishing_counts_as_finished(tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert not is_published(out, MANIFEST)
    killed_after_publishing(out, monkeypatch)
    assert is_published(out, MANIFEST)
    assert not is_published(out, changed(command="pairs"))
    remove_tree(out)
    assert not is_published(out, MANIFEST)


def test_a_running_or_ended_run_does_not_count_as_published(tmp_path):
    out = tmp_path / "out"
    with opened(out) as workspace:
        workspace.checkpoint("out/report.json", writer("{}"))
        assert not is_published(out, MANIFEST)
        publish_folder(workspace, out, lambda: None)
    assert not is_published(out, MANIFEST)


def test_removing_a_link_does_not_remove_its_target(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "nowhere")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").exists()
    remove_tree(tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


# what is ours


@pytest.mark.parametrize("name", ["../one", "/one", "a/../../one", ""])
def test_no_name_points_outside_the_folder(workspace, name):
    with pytest.raises(DataError, match="points outside"):
        workspace.checkpoint(name, writer("x"))
    (workspace.folder / JOURNAL).write_text(
        json.dumps({"name": name, "checksum": "", "facts": {}}) + "\n"
    )
    assert not Workspace(workspace.folder).has(name)


def test_a_run_that_fails_after_its_end_does_not_touch_the_next_work_folder(tmp_path):
    """Its own folder is gone; a folder of the same name belongs to another run."""
    out = tmp_path / "out"

    def end_and_fail():
        with opened(out) as workspace:
            workspace.checkpoint("out/report.json", writer("{}"))
            publish_folder(workspace, out, lambda: None)
            folder_of(out).mkdir(mode=0o700)
            (folder_of(out) / LOCK).write_text('{"neardup": "work folder"}\n')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end_and_fail()
    assert (folder_of(out) / LOCK).exists()


def test_the_marker_is_deleted_last(tmp_path, monkeypatch):
    left = []
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("part/one", writer("x"))
        unlink = type(workspace.folder).unlink
        monkeypatch.setattr(
            type(workspace.folder),
            "unlink",
            lambda path, **named: (left.append(os.listdir(path.parent)), unlink(path, **named)),  # noqa: PTH208
        )
        remove_folder(workspace.folder)
    assert left[-1] == [LOCK]
    assert not workspace.folder.exists()


def test_a_list_of_many_files_is_checked_in_linear_time(tmp_path):
    out = tmp_path / "out"
    finished_output(out)
    for number in range(3000):
        (out / "kept" / f"{number}.txt").touch()
    stored_report = json.loads((out / "report.json").read_text()) | {"files": written_files(out)}
    (out / "report.json").write_text(json.dumps(stored_report))
    begin = time.process_time()
    check_output(out, overwrite=True)
    assert time.process_time() - begin < 1.0


CHANGES = {
    "facts of the wrong type": {"facts": 7},
    "other facts": {"facts": {"num_pairs": "many"}},
    "no facts": {"facts": {}},
    "a checksum of the wrong type": {"checksum": 1},
    "a name of the wrong type": {"name": ["one"]},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_journal_line_does_not_count_as_finished(workspace, change):
    workspace.checkpoint("one", writer("x", facts={"num_pairs": 3}))
    journal = workspace.folder / JOURNAL
    journal.write_text(json.dumps(json.loads(journal.read_text()) | change) + "\n")
    again = Workspace(workspace.folder)
    assert not again.has("one")
    again.checkpoint("one", writer("x", facts={"num_pairs": 3}))
    assert again.facts("one") == {"num_pairs": 3}


@pytest.mark.parametrize("line", [b"7\n", b"[]\n", b"null\n", b"[" * 100_000 + b"\n"])
def test_a_journal_line_that_is_not_an_object_is_skipped(workspace, line):
    (workspace.folder / JOURNAL).write_bytes(line)
    assert not Workspace(workspace.folder).has("one")


@pytest.mark.parametrize(
    "manifest",
    [
        b"7",
        b"[]",
        b"null",
        b'{"version": 1}',
        b"\xff",
        b"[" * 100_000,
        {"inputs": [7]},
        {"settings": None},
    ],
)
def test_an_invalid_manifest_starts_over(tmp_path, manifest):
    with opened(tmp_path / "out") as workspace:
        workspace.checkpoint("one", writer("x"))
    content = manifest if isinstance(manifest, bytes) else json.dumps(changed(**manifest)).encode()
    (workspace.folder / module.MANIFEST).write_bytes(content)
    with opened(tmp_path / "out") as workspace:
        assert not workspace.has("one")


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells which pages are those of files"
)
def test_pages_of_a_table_are_released_after_reading(tmp_path):
    batch = pa.record_batch({"number": pa.array(range(1 << 17)), "other": pa.array(range(1 << 17))})
    write_batches(tmp_path / "table.arrow", iter([batch] * 48), batch.schema)

    def mapped_bytes():
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssFile"))

    before = mapped_bytes()
    peak = max(mapped_bytes() for _ in read_batches(tmp_path / "table.arrow", ["number"]))

    assert peak - before < 8 << 20  # of 48 MB


def test_a_disk_without_locks_is_not_another_run(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    (tmp_path / "a.txt").write_text("a text")
    neardup.Index.create(tmp_path / "index").close()
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(
        DataError,
        match=r"cannot be locked: No locks available[\s\S]*hint: choose `out` on another disk",
    ):
        neardup.deduplicate(tmp_path / "a.txt", out=tmp_path / "out")
    with pytest.raises(DataError, match=r"the index .* cannot be locked"):
        neardup.Index.open(tmp_path / "index").insert(["a text"])
