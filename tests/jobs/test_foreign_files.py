"""Files that neardup did not write are never changed, and its outputs are no more accessible than their input."""

import json
import os
import shutil
import signal
import stat

import pytest

from neardup.io.storage.work_folder import LOCK
from support.programs import wait_until

WORK = ".out.neardup"


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def _make_thesis(folder):
    folder.mkdir(mode=0o700)
    (folder / "thesis.tex").write_text("years of work", "utf-8")


def _make_link(folder):
    _make_thesis(folder.with_name("precious"))
    folder.symlink_to("precious")


def _make_file(folder):
    folder.write_text("years of work", "utf-8")


def _make_lock_a_link(folder):
    folder.mkdir(mode=0o700)
    folder.with_name("precious").write_text("years of work", "utf-8")
    (folder / LOCK).symlink_to("../precious")


def _make_lock_a_fifo(folder):
    folder.mkdir(mode=0o700)
    os.mkfifo(folder / LOCK)


def _make_foreign_lock(folder):
    folder.mkdir(mode=0o700)
    (folder / LOCK).write_text("the lock of another program", "utf-8")


def _make_open(folder):
    _make_ours(folder)
    folder.chmod(0o755)


def _make_ours(folder):
    folder.mkdir(mode=0o700)
    (folder / LOCK).write_text('{"neardup": "work folder"}\n', "utf-8")


def _make_manifest_a_fifo(folder):
    _make_ours(folder)
    os.mkfifo(folder / "manifest.json")


def _make_journal_a_link(folder):
    _make_ours(folder)
    folder.with_name("precious").write_text("years of work", "utf-8")
    (folder / "finished.jsonl").symlink_to("../precious")


def _make_draft_a_hard_link(folder):
    _make_ours(folder)
    folder.with_name("precious").write_text("years of work", "utf-8")
    (folder / "drafts" / "out").mkdir(parents=True)
    (folder / "drafts" / "out" / "removed.parquet").hardlink_to(folder.with_name("precious"))


def _make_part_a_link_to_a_folder(folder):
    _make_ours(folder)
    _make_thesis(folder.with_name("precious"))
    (folder / "names").symlink_to("../precious")


def _everything(folder):
    """Every path below a folder with its type, mode and, for a file, its bytes; links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        found[str(path)] = status.st_mode, data, path.readlink() if path.is_symlink() else None
    return found


@pytest.mark.parametrize(
    "make",
    [
        _make_thesis,
        _make_link,
        _make_file,
        _make_lock_a_link,
        _make_lock_a_fifo,
        _make_foreign_lock,
        _make_open,
        _make_manifest_a_fifo,
        _make_journal_a_link,
        _make_draft_a_hard_link,
        _make_part_a_link_to_a_folder,
    ],
)
def test_a_foreign_work_folder_is_named_and_left_unchanged(make, run, pages, tmp_path):
    make(tmp_path / WORK)
    before = _everything(tmp_path)
    for arguments in ([pages], ["mistyped.jsonl"], [pages, "--overwrite"]):
        refused = run("dedup", *arguments, "-o", "out")
        assert refused.code == 1, refused.stderr
        assert WORK in refused.stderr
        assert "hint: " in refused.stderr
        assert _everything(tmp_path) == before


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_work_folder_of_another_user_is_left_unchanged(run, pages, tmp_path):
    _make_ours(tmp_path / WORK)
    os.chown(tmp_path / WORK, 65534, 65534)
    refused = run("dedup", pages, "-o", "out")
    assert refused.code == 1
    assert "belongs to another user" in refused.stderr
    assert _names(tmp_path / WORK) == [LOCK]


def test_an_empty_folder_that_a_killed_start_made_is_used(run, pages, tmp_path):
    (tmp_path / WORK).mkdir(mode=0o700)
    assert run("dedup", pages, "-o", "out").code == 0
    assert not (tmp_path / WORK).exists()


def test_the_work_folder_is_closed_and_the_output_follows_the_umask(programs, pages, tmp_path):
    before = "os.umask(0o027); pause_at('out/removed.parquet')"
    running = programs.start("dedup", pages, "-o", "out", cwd=tmp_path, before=before)
    wait_until((tmp_path / "paused").exists)
    assert stat.S_IMODE((tmp_path / WORK).stat().st_mode) == 0o700
    (tmp_path / "go").touch()
    assert running.wait().code == 0
    modes = {
        name: stat.S_IMODE((tmp_path / "out" / name).stat().st_mode)
        for name in ("", "kept", "removed.parquet")
    }
    assert modes == {"": 0o750, "kept": 0o750, "removed.parquet": 0o640}


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o755, 0o644), (0o400, 0o600)]
)
@pytest.mark.parametrize("is_whole", [True, False])
def test_kept_rows_are_as_private_as_their_input(mode, expected, is_whole, run, pages, tmp_path):
    if is_whole:
        pages.write_text('{"text": "one page"}\n', "utf-8")
    pages.chmod(mode)
    assert run("dedup", pages, "-o", "out").code == 0
    assert stat.S_IMODE((tmp_path / "out" / "kept" / "pages.jsonl").stat().st_mode) == expected


@pytest.mark.parametrize("name", ["thesis.txt", "kept/thesis.txt", ".hidden"])
def test_a_foreign_file_in_an_output_is_never_overwritten(name, run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    (tmp_path / "out" / name).write_text("years of work", "utf-8")
    before = _everything(tmp_path)
    refused = run("dedup", pages, "-o", "out", "--overwrite")
    assert refused.code == 1
    assert name in refused.stderr
    assert _everything(tmp_path) == before


def test_a_foreign_file_created_during_a_run_is_not_overwritten(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    add = "before_report(lambda: Path('out/thesis.txt').write_text('years of work'))"
    refused = run("dedup", pages, "-o", "out", "--overwrite", before=add)
    assert refused.code == 1
    assert (tmp_path / "out" / "thesis.txt").exists()
    (tmp_path / "out" / "thesis.txt").unlink()
    assert run("dedup", pages, "-o", "out", "--overwrite").code == 0


def test_an_output_created_during_a_run_is_not_replaced(run, pages, tmp_path):
    add = "before_report(lambda: Path('out').mkdir())"
    refused = run("dedup", pages, "-o", "out", before=add)
    assert refused.code == 1
    assert "already exists" in refused.stderr
    assert _names(tmp_path / "out") == []


def test_an_output_that_does_not_list_its_files_is_not_overwritten(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    path = tmp_path / "out" / "report.json"
    stored_report = json.loads(path.read_text("utf-8"))
    path.write_text(
        json.dumps(
            {name: stored_report[name] for name in stored_report if name not in ("schema", "files")}
        ),
        "utf-8",
    )
    refused = run("dedup", pages, "-o", "out", "--overwrite")
    assert refused.code == 1
    assert "delete the folder yourself" in refused.stderr
    assert run("pairs", pages, "--against", "out", "-o", "pairs.csv").code == 0, "it can be read"


def test_the_report_lists_what_the_run_wrote(run, pages, tmp_path):
    run("dedup", pages, "-o", "out", "--pairs")
    stored_report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    names = [
        path.relative_to(tmp_path / "out").as_posix()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    ]
    assert stored_report["schema"] == 2
    assert stored_report["files"] == sorted(names)
    run("pairs", pages, "-o", "pairs.csv")
    stored_report = json.loads((tmp_path / "pairs.csv.report.json").read_text("utf-8"))
    assert stored_report["files"] == [
        "pairs.csv",
        "pairs.csv.rejected.jsonl",
        "pairs.csv.report.json",
    ]


def test_pairs_overwrite_no_file_beside_theirs_that_is_foreign(run, pages, tmp_path):
    (tmp_path / "pairs.csv.rejected.jsonl").write_text("mine", "utf-8")
    refused = run("pairs", pages, "-o", "pairs.csv", "--overwrite")
    assert refused.code == 1
    assert (tmp_path / "pairs.csv.rejected.jsonl").read_text("utf-8") == "mine"
    (tmp_path / "pairs.csv.rejected.jsonl").unlink()
    assert [run("pairs", pages, "-o", "pairs.csv", "--overwrite").code for _ in range(2)] == [0, 0]


def test_a_file_replaced_by_one_of_equal_size_and_time_is_detected(run, pages, tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_bytes(pages.read_bytes().replace(b"word1 ", b"weird "))
    status = pages.stat()
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    stopped = run(
        "dedup",
        pages,
        "-o",
        "out",
        before="after_finish(2, lambda: os.replace('other.jsonl', 'pages.jsonl'))",
    )
    assert stopped.code == 1
    assert "pages.jsonl changed while it was read" in stopped.stderr


def test_a_run_resumes_with_a_copy_of_equal_size_and_time(run, pages, tmp_path):
    assert run("dedup", pages, "-o", "out", before="kill_at_finish(4)").code == -signal.SIGKILL
    shutil.copy2(pages, tmp_path / "copy.jsonl")
    (tmp_path / "copy.jsonl").replace(pages)
    assert run("dedup", pages, "-o", "out").code == 0


@pytest.mark.usefixtures("pages")
def test_no_input_name_points_outside_kept(run, tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    assert run("dedup", "in/*/../../pages*.jsonl", "-o", "out/new").code == 0
    assert [path.name for path in tmp_path.rglob("pages.jsonl")] == ["pages.jsonl"] * 2
    assert (tmp_path / "out" / "new" / "kept" / "pages.jsonl").exists()


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
@pytest.mark.parametrize(
    "command",
    [
        ["neighbours", "pages.jsonl", "-o", "pages.jsonl"],
        ["neighbours", "pages.jsonl", "--queries", "other.jsonl", "-o", "other.jsonl"],
        ["neighbours", "pages.jsonl", "-o", "link.jsonl"],
        ["pairs", "pages.jsonl", "-o", "pages.jsonl"],
        ["pairs", "run", "-o", "run/removed.parquet"],
        ["pairs", "run", "-o", "run/kept/pages.jsonl"],
    ],
    ids=" ".join,
)
def test_no_output_replaces_its_own_input(command, options, run, pages, tmp_path):
    shutil.copy(pages, tmp_path / "other.jsonl")
    (tmp_path / "link.jsonl").symlink_to("pages.jsonl")
    assert run("dedup", pages, "-o", "run", "--pairs").code == 0
    before = _everything(tmp_path)
    refused = run(*command, *options)
    assert refused.code in {1, 2}
    assert "hint: " in refused.stderr
    assert _everything(tmp_path) == before
