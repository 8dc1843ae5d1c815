"""An output is published complete or not at all, and no existing file is lost."""

import json
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from support.programs import SLOW_STEPS, contents, wait_until

WORK = ".out.neardup"


def _names(folder):
    return sorted(path.name for path in folder.iterdir())


def _snapshot(folder):
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_no_partial_output_is_ever_visible(programs, corpus, tmp_path):
    running = programs.start("dedup", corpus, "-o", "out", "--pairs", "--quiet", cwd=tmp_path)
    seen = []

    def watch():
        while not (tmp_path / "out").exists():
            pass
        seen.append(_names(tmp_path / "out"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert running.wait().code == 0
    watcher.join()
    names = [
        "clusters.parquet",
        "kept",
        "order.parquet",
        "pairs.parquet",
        "rejected.jsonl",
        "removed.parquet",
        "report.json",
    ]
    assert seen == [names]
    assert _names(tmp_path) == ["out"], "nothing else stays"


def test_killed_before_it_is_published_no_output_is_visible(run, pages, tmp_path):
    run("dedup", pages, "-o", "out", before="kill_before_publishing()")
    assert (tmp_path / WORK / "out" / "report.json").exists()
    assert not (tmp_path / "out").exists()
    assert run("dedup", pages, "-o", "out").code == 0


def test_an_existing_output_is_an_error_without_overwrite(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    before = _snapshot(tmp_path)
    again = run("dedup", pages, "-o", "out")
    assert again.code == 1
    assert "out already exists" in again.stderr
    assert "--overwrite" in again.stderr
    assert _snapshot(tmp_path) == before


def test_overwrite_replaces_the_whole_output(run, pages, tmp_path):
    run("dedup", pages, "-o", "out", "--pairs")
    assert run("dedup", pages, "-o", "out", "--overwrite", "--dry-run").code == 0
    assert _names(tmp_path / "out") == [
        *("clusters.parquet", "rejected.jsonl", "removed.parquet", "report.json")
    ]
    assert not (tmp_path / WORK).exists()


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_a_folder_that_is_not_an_output_is_never_replaced(options, run, pages, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work", "utf-8")
    refused = run("dedup", pages, "-o", "out", *options)
    assert refused.code == 1
    assert "out" in refused.stderr
    assert (tmp_path / "out" / "thesis.txt").read_text("utf-8") == "years of work"


def test_a_folder_with_a_foreign_report_is_never_replaced(run, pages, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report.json").write_text('{"title": "annual report"}', "utf-8")
    (tmp_path / "out" / "thesis.txt").write_text("years of work", "utf-8")
    assert run("dedup", pages, "-o", "out", "--overwrite").code == 1
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_with_overwrite_a_failing_run_leaves_the_old_output(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    before = contents(tmp_path / "out")
    assert run("dedup", pages, "-o", "out", "--overwrite", "--text-column", "nowhere").code == 1
    assert contents(tmp_path / "out") == before


def test_killed_while_it_replaces_an_output_a_run_can_be_repeated(programs, pages, tmp_path):
    assert programs.run("dedup", pages, "-o", "out", cwd=tmp_path / "first").code == 0
    for number in range(1, 40):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "first", folder)
        command = ("dedup", pages, "-o", "out", "--overwrite", "--threshold", "0.9")
        before = f"kill_at_event({number}, is_counted=is_replacing)"
        if programs.run(*command, cwd=folder, before=before).code == 0:
            break
        replaced = folder / WORK / "replaced"
        left = [path for path in (folder / "out", replaced) if (path / "report.json").exists()]
        assert left, "neither the old nor the new output is there"
        again = programs.run(*command, cwd=folder)
        assert again.code == 0, (number, again.stderr)
        assert contents(folder / "out")["report.json"]["config"]["threshold"] == 0.9
        assert not (folder / WORK).exists()
    assert number > 3


def test_killed_while_it_replaces_an_output_no_later_run_loses_the_old_one(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    before = contents(tmp_path / "out")
    between = "kill_at_event(1, is_counted=lambda: is_replacing() and not Path('out').exists())"
    run("dedup", pages, "-o", "out", "--overwrite", "--size", "4", before=between)
    failed = run("dedup", pages, "-o", "out", "--overwrite", "--text-column", "nowhere")
    assert failed.code == 1
    assert (tmp_path / "out").exists(), "the old output is gone"
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("out", ["in", "in/a", ".", "in/a/pages.jsonl"])
def test_an_output_that_contains_or_is_the_input_is_refused(out, run, pages, tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    shutil.move(pages, tmp_path / "in" / "a" / "pages.jsonl")
    refused = run("dedup", "in", "-o", out, "--overwrite")
    assert refused.code in {1, 2}
    assert "Traceback" not in refused.stderr
    assert "-o" in refused.stderr
    assert _names(tmp_path) == ["in"]
    assert (tmp_path / "in" / "a" / "pages.jsonl").stat().st_size > 0


def test_an_output_inside_the_input_folder_is_not_read_as_input(run, pages, tmp_path):
    (tmp_path / "in").mkdir()
    shutil.move(pages, tmp_path / "in" / "pages.jsonl")
    assert run("dedup", "in", "-o", "in/out", before="kill_at_finish(4)").code == -signal.SIGKILL
    assert run("dedup", "in", "-o", "in/out").code == 0
    assert _names(tmp_path / "in" / "out" / "kept") == ["pages.jsonl"]
    again = run("dedup", "in", "-o", "in/out", "--overwrite")
    assert again.code == 2
    assert "contains the input" in again.stderr
    assert contents(tmp_path / "in" / "out")["kept/pages.jsonl"]


def test_the_files_of_against_are_not_overwritten(run, pages, tmp_path):
    run("dedup", pages, "-o", "out")
    before = contents(tmp_path / "out")
    refused = run("dedup", pages, "-o", "out", "--against", "out", "--overwrite")
    assert refused.code in {1, 2}, "the old run was replaced by what is new against it"
    assert contents(tmp_path / "out") == before


def test_folders_above_the_output_are_made(run, pages, tmp_path):
    assert run("dedup", pages, "-o", "some/new/out").code == 0
    assert (tmp_path / "some" / "new" / "out" / "report.json").exists()


@pytest.mark.parametrize("out", ["pages.jsonl/out", "pages.jsonl", "..", "/proc/out"])
def test_an_output_that_cannot_be_created_fails_before_the_work_begins(out, run, pages, tmp_path):
    refused = run("dedup", pages, "-o", out)
    assert refused.code in {1, 2}
    assert "Traceback" not in refused.stderr
    assert "-o" in refused.stderr
    assert _names(tmp_path) == ["pages.jsonl"]


@pytest.mark.parametrize("is_dangling", [False, True])
def test_an_output_that_is_a_link_is_replaced_or_refused_before_the_work(
    is_dangling, run, pages, tmp_path
):
    if not is_dangling:
        run("dedup", pages, "-o", "real")
    (tmp_path / "out").symlink_to("real")
    finished = run("dedup", pages, "-o", "out", "--overwrite", before="count_reads('reads.json')")
    assert "Traceback" not in finished.stderr
    if finished.code == 0:
        assert (tmp_path / "out" / "report.json").exists()
    else:
        assert "link" in finished.stderr
        assert (tmp_path / "reads.json").read_text("utf-8") == "{}", "it is known before the work"
        assert is_dangling or (tmp_path / "real" / "report.json").exists()


def test_a_read_only_folder_fails_before_the_work_begins(run, pages, tmp_path):
    _open_to_all(tmp_path)
    (tmp_path / "closed").mkdir(mode=0o555)
    refused = run("dedup", pages, "-o", "closed/out", before="drop_privileges()")
    assert refused.code == 1
    assert "closed" in refused.stderr
    assert "no permission to write" in refused.stderr
    assert "hint: " in refused.stderr


@pytest.mark.parametrize(("given", "codes"), [("in", {1}), ("in/pages.jsonl", {1, 2})])
def test_an_unreadable_input_is_named(given, codes, run, pages, tmp_path):
    _open_to_all(tmp_path)
    for name in ("in", "work"):
        (tmp_path / name).mkdir()
    (tmp_path / "work").chmod(0o777)
    pages.chmod(0)
    pages.rename(tmp_path / "in" / "pages.jsonl")
    refused = run("dedup", given, "-o", "work/out", before="drop_privileges()")
    assert refused.code in codes
    assert re.search("pages.jsonl.*(cannot be read|is not readable)", refused.stderr)
    assert _names(tmp_path / "work") == []


def _open_to_all(folder):
    """Make a test folder accessible to all users, because pytest makes it private."""
    for parent in [folder, *folder.parents]:
        if parent.stat().st_mode & 0o055 != 0o055:
            parent.chmod(0o755)


def test_a_second_run_on_an_output_gets_an_error_and_the_first_continues(programs, pages, tmp_path):
    command = ("dedup", pages, "-o", "out")
    first = programs.start(*command, cwd=tmp_path, before="pause_at('classes.arrow')")
    wait_until((tmp_path / "paused").exists)
    for options in ([], ["--overwrite"], ["--threshold", "0.5"]):
        second = programs.run(*command, *options, cwd=tmp_path)
        assert second.code == 1, options
        assert f"another run is writing this output (process {first.pid}" in second.stderr
    (tmp_path / "go").touch()
    assert first.wait().code == 0
    assert programs.run(*command, "--overwrite", cwd=tmp_path).code == 0


def test_a_run_can_start_while_another_removes_its_work_folder(programs, pages, tmp_path):
    finished = programs.run(
        "dedup", pages, "-o", "out", cwd=tmp_path, before="remove_folder_before_locking()"
    )
    assert finished.code in {0, 1}
    assert "Traceback" not in finished.stderr
    assert "No such file" not in finished.stderr
    assert finished.code == 1 or (tmp_path / "out" / "report.json").exists()


def test_pairs_and_rejected_rows_of_one_name_do_not_collide(run, pages, tmp_path):
    for name in ("rejected.jsonl", "report.json.csv", "report.jsonl"):
        finished = run("pairs", pages, "-o", name)
        assert finished.code == 0, (name, finished.stderr)
        assert len((tmp_path / name).read_text("utf-8").splitlines()) in {1, 2}
        assert (tmp_path / f"{name}.rejected.jsonl").read_text("utf-8") == ""
        assert json.loads((tmp_path / f"{name}.report.json").read_text("utf-8"))["documents"] == 3


@pytest.mark.parametrize(
    "beside", ["pairs.csv.report.json", "pairs.csv.rejected.jsonl", "pairs.csv"]
)
def test_pairs_replace_no_file_without_overwrite(beside, run, pages, tmp_path):
    (tmp_path / beside).write_text("mine", "utf-8")
    refused = run("pairs", pages, "-o", "pairs.csv")
    assert refused.code == 1
    assert beside in refused.stderr
    assert (tmp_path / beside).read_text("utf-8") == "mine"


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["--strict"], []),
        (["--text-column", "nowhere"], ["--text-column", "text"]),
        (["--keep", "max:nowhere"], ["--keep", "first"]),
    ],
)
def test_after_a_mistake_the_corrected_command_runs(wrong, right, run, pages):
    """The hint of an error works: nothing left by the failed run stands in the way."""
    with pages.open("a", encoding="utf-8") as lines:
        lines.write("{broken\n")
    failed = run("dedup", pages, "-o", "out", *wrong)
    assert failed.code == 1
    corrected = run("dedup", pages, "-o", "out", *right)
    assert corrected.code == 0, corrected.stderr


def test_a_file_that_fails_stops_the_reading_of_the_others(run, pages, tmp_path):
    shutil.copy(pages, tmp_path / "z.jsonl")
    change = "before_part('sketch/000001.arrow', lambda: os.utime('z.jsonl', ns=(1, 1)))"
    command = ("dedup", "pages.jsonl", "z.jsonl", "-o", "out", "--threads", "2")
    failed = run(*command, before=f"slow_reading(0, 'first'); {change}")
    assert failed.code == 1
    assert "z.jsonl changed" in failed.stderr
    assert int((tmp_path / "steps").read_text("ascii")) < SLOW_STEPS, (
        "the other file was read to its end first"
    )


def test_a_killed_run_on_standard_input_leaves_no_permanent_files(pages, tmp_path):
    start = "from neardup.cli.main import main; main()"
    command = [sys.executable, "-c", start, "dedup", "-", "-o", "out", "--quiet"]
    killed = subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path)
    killed.stdin.write(pages.read_bytes())
    killed.stdin.flush()
    wait_until(lambda: any("stdin" in path.name for path in tmp_path.rglob("*")))
    killed.kill()
    killed.communicate()
    subprocess.run(command, input=pages.read_bytes(), cwd=tmp_path, check=True)
    assert _names(tmp_path) == ["out", "pages.jsonl"]


@pytest.mark.parametrize(
    "change",
    [
        "lambda: open('pages.jsonl', 'a').write('{}\\n')",
        "lambda: open('pages.jsonl', 'r+').truncate(100)",
        "lambda: os.utime('pages.jsonl', ns=(1, 1))",
        "lambda: os.replace('other.jsonl', 'pages.jsonl')",
        "lambda: os.remove('pages.jsonl')",
    ],
)
@pytest.mark.parametrize(
    "when",
    ["before_part('sketch/000000.arrow'", "after_finish(2", "after_finish(6", "after_finish(10"],
)
def test_a_file_that_changes_while_it_is_read_is_named_and_there_is_no_output(
    when, change, run, pages, tmp_path
):
    shutil.copy(pages, tmp_path / "other.jsonl")
    stopped = run(
        "dedup", "pages.jsonl", "-o", "out", "--threads", "1", before=f"{when}, {change})"
    )
    assert stopped.code == 1, stopped.stderr
    assert "pages.jsonl" in stopped.stderr
    assert re.search("changed while it was read|cannot be read", stopped.stderr)
    assert "Traceback" not in stopped.stderr
    assert not (tmp_path / "out").exists()


def test_a_parquet_file_that_is_rewritten_while_it_is_read_is_named(run, pages, tmp_path):
    import pyarrow.json
    import pyarrow.parquet as pq

    table = pyarrow.json.read_json(pages)
    pq.write_table(table, tmp_path / "pages.parquet")
    pq.write_table(table.slice(1), tmp_path / "other.parquet")
    swap = "lambda: os.replace('other.parquet', 'pages.parquet')"
    cut = "lambda: os.truncate('pages.parquet', 300)"
    for change in (swap, cut):
        stopped = run("dedup", "pages.parquet", "-o", "out", before=f"after_finish(3, {change})")
        assert stopped.code == 1, stopped.stderr
        assert "pages.parquet" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        assert not (tmp_path / "out").exists()
        shutil.rmtree(tmp_path / WORK, ignore_errors=True)


@pytest.mark.usefixtures("pages")
def test_a_file_that_changed_and_is_complete_now_can_be_used(run, tmp_path):
    """The hint says: wait until it is complete, then run the command again."""
    append = "lambda: open('pages.jsonl', 'a').write('{\"text\": \"one more\"}\\n')"
    assert run("dedup", "pages.jsonl", "-o", "out", before=f"after_finish(2, {append})").code == 1
    again = run("dedup", "pages.jsonl", "-o", "out")
    assert again.code == 0, again.stderr
    assert contents(tmp_path / "out")["report.json"]["documents"] == 4
