"""A killed run resumes when the same command is repeated, and produces the same bytes."""

import itertools
import json
import random
import re
import shutil
import signal
import time

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from neardup.io.storage.work_folder import LOCK, read_marker
from support.programs import SLOW_STEPS, contents, everything, sweep, wait_until

COMMAND = ("--threads", "1", "--pairs", "--quiet")
WORK = ".out.neardup"
# Shelves and blocks of a large component are spilled to disk; with less memory, sorts are too.
LITTLE_ROOM = 60_000
MIN_ROOM = 40_000


@pytest.fixture(scope="module")
def whole(programs, corpus, tmp_path_factory):
    """The output of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    assert programs.run("dedup", corpus, "-o", "out", *COMMAND, cwd=folder).code == 0
    return contents(folder / "out")


@pytest.fixture
def start(programs, corpus, tmp_path):
    """Run the command, or resume it, in the folder of the test."""

    def run(*options, before="", cwd=tmp_path):
        return programs.run(
            "dedup", corpus, "-o", "out", *COMMAND, *options, cwd=cwd, before=before
        )

    return run


def _check_killed_at(number, room, start, whole, folder):
    """Kill a run at its n-th disk change and resume it; return whether it was still running then."""
    killed = start(cwd=folder, before=f"{room}; kill_at_event({number})")
    if killed.code == 0:
        return False
    assert killed.code == -signal.SIGKILL, killed.stderr
    is_published = (folder / "out").exists()
    if is_published:  # published by one rename, so it is complete
        assert contents(folder / "out") == whole, (
            f"half an output is visible when killed at {number}"
        )
    finished = start(cwd=folder, before=room)
    if not is_published:
        assert finished.code == 0, (number, finished.stderr)
    assert contents(folder / "out") == whole, f"killed at {number}"
    return True


# `make test-all` kills at every third disk change, and at every seventh of the many made by
# shelves; with the tests below, every kind is covered.
@pytest.mark.slow("a run and another for every point of its work")
@pytest.mark.parametrize(
    ("room", "begin", "step"), sweep("pass", 1, 3) + sweep(f"give_room({LITTLE_ROOM})", 2, 7)
)
def test_a_run_killed_at_any_point_resumes_to_the_same_bytes(
    room, begin, step, start, whole, tmp_path
):
    number = begin
    while _check_killed_at(number, room, start, whole, tmp_path / "run"):
        shutil.rmtree(tmp_path / "run")
        number += step
    assert number > 50, "the run is expected to change more on disk"


@pytest.fixture(scope="module")
def mixed(corpus, tmp_path_factory):
    """The same pages as Parquet, compressed CSV and compressed JSON Lines, and some of them as an old run."""
    folder = tmp_path_factory.mktemp("mixed")
    tables = [_usable_rows(corpus / f"{name}.jsonl") for name in "abc"]
    pq.write_table(tables[0], folder / "a.parquet")
    with pa.CompressedOutputStream(str(folder / "b.csv.gz"), "gzip") as sink:
        pa.csv.write_csv(tables[1], sink)
    with pa.CompressedOutputStream(str(folder / "c.jsonl.zst"), "zstd") as sink:
        sink.write((corpus / "c.jsonl").read_bytes())
    return folder


def _usable_rows(path):
    lines = [line for line in path.read_text("utf-8").splitlines() if '"text": "' in line]
    return pa.Table.from_pylist([json.loads(line) for line in lines])


COMMANDS = [
    ("dedup", ["--mark", "--keep", "longest", "--threads", "1"], 13),
    ("dedup", ["--group-column", "id", "--keep", "max:id", "--dry-run", "--threads", "2"], 13),
    ("dedup", ["--against", "corpus/a.jsonl", "--cluster", "components", "--threads", "2"], 13),
    ("pairs", ["--threads", "1"], 11),
    ("pairs", ["--threads", "1", "--overwrite"], 17),
]


@pytest.mark.slow("a run and another for every point of its work")
@pytest.mark.parametrize(
    ("command", "options", "step"),
    [(command, options, 3 * step) for command, options, step in COMMANDS]
    + [pytest.param(*case, marks=pytest.mark.long) for case in COMMANDS],
)
def test_every_killed_command_resumes_to_the_same_bytes(
    command, options, step, programs, corpus, mixed, tmp_path
):
    options = [
        str(corpus / "a.jsonl") if option == "corpus/a.jsonl" else option for option in options
    ]
    out = "out" if command == "dedup" else "out.parquet"
    given = (command, mixed, "-o", out, "--quiet", *options)
    room = f"give_room({LITTLE_ROOM})"
    assert programs.run(*given, cwd=tmp_path / "whole", before=room).code == 0
    for number in range(2, 100, step):
        folder = tmp_path / str(number)
        killed = programs.run(*given, cwd=folder, before=f"{room}; kill_at_event({number})")
        if killed.code == 0:
            break
        if not (folder / out).exists():
            again = programs.run(*given, cwd=folder, before=room)
            assert again.code == 0, (number, again.stderr)
            assert everything(folder) == everything(tmp_path / "whole"), f"killed at {number}"
    assert number > 25


def test_a_run_killed_while_sorting_on_disk_resumes(start, whole, tmp_path):
    room = f"give_room({MIN_ROOM})"
    for number in (22, 26, 31, 35):
        _check_killed_at(number, room, start, whole, tmp_path / str(number))


@pytest.mark.slow("dozens of starts")
@pytest.mark.parametrize(
    "room", ["pass", pytest.param(f"give_room({LITTLE_ROOM})", marks=pytest.mark.long)]
)
def test_a_run_killed_repeatedly_finishes(room, start, whole, tmp_path):
    rng = random.Random(3)
    starts = 0
    while not (tmp_path / "out").exists():
        start(before=f"{room}; kill_at_event({rng.randrange(8, 20) + starts})")
        starts += 1
        assert starts < 300, (
            "no start makes progress"
        )  # a run that uses the sets of the exact join recomputes them
    assert starts > 4
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize("seconds", [0.03, 0.06, 0.1, 0.15])
def test_a_run_with_two_threads_resumes_after_a_kill(seconds, programs, corpus, whole, tmp_path):
    command = ("dedup", corpus, "-o", "out", "--threads", "2", "--pairs", "--quiet")
    running = programs.start(*command, cwd=tmp_path, before=f"give_room({LITTLE_ROOM})")
    time.sleep(seconds)
    running.signal(signal.SIGKILL)
    if running.wait().code != 0:
        assert programs.run(*command, cwd=tmp_path).code == 0
    found = contents(tmp_path / "out")
    assert {name: found[name] for name in found if name != "report.json"} == {
        name: whole[name] for name in whole if name != "report.json"
    }


def test_finished_parts_are_not_read_again(start, tmp_path):
    start(before="kill_at_finish(6)")  # two parts, each with its names, rejected rows and sketches
    start(before="count_reads('reads.json')")
    reads = json.loads((tmp_path / "reads.json").read_text("utf-8"))
    assert {name: count for name, count in reads.items() if name.startswith("first")} == {
        "first 2": 1
    }


def test_verified_components_are_neither_read_nor_verified_again(start, tmp_path):
    start(before=f"give_room({LITTLE_ROOM}); kill_at_part('out/removed.parquet')")
    assert len(list((tmp_path / WORK / "verified").iterdir())) > 1
    start(before="count_reads('reads.json')")
    assert json.loads((tmp_path / "reads.json").read_text("utf-8")) == {}


def test_repeating_a_command_cleans_up_a_run_killed_after_publishing(start, whole, tmp_path):
    start(before="kill_when_published()")
    assert contents(tmp_path / "out") == whole
    assert (tmp_path / WORK).exists()
    again = start()
    assert again.code == 0, again.stderr
    assert contents(tmp_path / "out") == whole
    assert not (tmp_path / WORK).exists()


@pytest.fixture
def page(tmp_path):
    """A file of two equal pages."""
    path = tmp_path / "page.jsonl"
    path.write_text('{"text": "one page of words"}\n' * 2, "utf-8")
    return path


# The command, its output, the least number of calls at its end; `make test` kills at every n-th of
# them.
ENDS = {
    "dedup": (["dedup", "PAGE", "--threads", "1"], "out", 12, 4),
    "pairs": (["pairs", "PAGE", "--threads", "1"], "out.parquet", 12, 6),
    "standard input": (["dedup", "-", "--threads", "1"], "out", 12, 6),
    "stored pairs": (["pairs", "RUN"], "out.csv", 5, 3),
    "neighbours": (["neighbours", "PAGE"], "out.jsonl", 5, 3),
}


@pytest.mark.slow("a run and another for every call of its end")
@pytest.mark.parametrize(
    ("command", "out", "least", "step"),
    [pytest.param(*end, id=name) for name, end in ENDS.items()]
    + [
        pytest.param(*end[:3], 1, marks=pytest.mark.long, id=f"{name}, every call")
        for name, end in ENDS.items()
    ],
)
def test_a_run_killed_at_any_call_of_its_end_counts_as_finished(
    command, out, least, step, programs, page, tmp_path
):
    """From the report on: a published output is recognised until the marker of the work folder is deleted."""
    if "RUN" in command:
        assert (
            programs.run("dedup", page, "-o", "run", "--pairs", "--quiet", cwd=tmp_path).code == 0
        )
    named = {"PAGE": page, "RUN": tmp_path / "run"}
    given = [*(named.get(word, word) for word in command), "-o", out, "--quiet"]
    work = f".{out}.neardup"
    piped = page.read_text("utf-8")
    assert programs.run(*given, cwd=tmp_path / "whole", stdin=piped).code == 0
    whole = everything(tmp_path / "whole")
    for number in itertools.count(1, step):
        folder = tmp_path / str(number)
        before = f"kill_at_event({number}, is_counted=lambda: is_ending({out!r}))"
        killed = programs.run(*given, cwd=folder, stdin=piped, before=before)
        if killed.code == 0:
            break
        is_over = not (folder / work / LOCK).exists()
        again = programs.run(*given, cwd=folder, stdin=piped)
        assert again.code == is_over, (number, again.stderr)
        assert not is_over or "already exists" in again.stderr
        assert everything(folder) == whole, f"killed at {number}"
        assert not (folder / work).exists()
    assert number > least


def test_a_killed_run_on_standard_input_resumes_with_the_same_bytes_and_restarts_with_others(
    programs, page, tmp_path
):
    command = ("dedup", "-", "-o", "out", "--quiet", "--threads", "1")
    piped = page.read_text("utf-8")
    programs.run(*command, cwd=tmp_path, stdin=piped, before="kill_at_finish(7)")
    programs.run(
        *command,
        cwd=tmp_path,
        stdin=piped,
        before="count_reads('same.json'); kill_before_publishing()",
    )
    assert (
        programs.run(*command, cwd=tmp_path, stdin=piped, before="count_reads('same.json')").code
        == 0
    )
    assert (tmp_path / "same.json").read_text("utf-8") == "{}"
    shutil.rmtree(tmp_path / "out")
    programs.run(*command, cwd=tmp_path, stdin=piped, before="kill_at_finish(7)")
    other = piped.replace("words", "weeds")  # of equal size
    assert programs.run(*command, cwd=tmp_path, stdin=other).code == 0
    assert (tmp_path / "out" / "kept" / "stdin.jsonl").read_text("utf-8") == other.splitlines(
        keepends=True
    )[0]


@pytest.mark.usefixtures("page")
def test_neighbours_left_by_a_killed_run_are_not_reused_for_another_input(programs, tmp_path):
    (tmp_path / "other.jsonl").write_text('{"text": "another page of words"}\n' * 2, "utf-8")
    command = ("neighbours", "-o", "near.csv", "--quiet")
    killed = "kill_at_event(1, is_counted=lambda: Path('near.csv').exists())"
    assert programs.run(*command, "page.jsonl", cwd=tmp_path, before=killed).code == -signal.SIGKILL
    refused = programs.run(*command, "other.jsonl", cwd=tmp_path)
    assert refused.code == 1
    assert "already exists" in refused.stderr
    assert "page.jsonl" in (tmp_path / "near.csv").read_text("utf-8")
    assert programs.run(*command, "other.jsonl", "--overwrite", cwd=tmp_path).code == 0
    assert "other.jsonl" in (tmp_path / "near.csv").read_text("utf-8")
    assert not (tmp_path / ".near.csv.neardup").exists()


def test_a_finished_output_is_not_reused_by_another_command(start, tmp_path):
    start(before="kill_when_published()")
    before = everything(tmp_path)
    refused = start("--threshold", "0.7")
    assert refused.code == 1
    assert "already exists" in refused.stderr
    assert everything(tmp_path / "out") == {
        name.removeprefix("out/"): data for name, data in before.items() if name.startswith("out/")
    }
    assert start().code == 0


def test_a_torn_last_line_of_the_journal_costs_one_part_only(start, whole, tmp_path):
    start(before="kill_at_finish(6)")
    journal = tmp_path / WORK / "finished.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    start(
        before="kill_at_finish(6); count_reads('unused')"
    )  # the torn part once more, and the third
    assert start(before="count_reads('reads.json')").code == 0
    assert "first" not in (tmp_path / "reads.json").read_text("utf-8"), (
        "a part was lost behind the torn line"
    )
    assert contents(tmp_path / "out") == whole


def test_a_run_killed_while_compacting_its_journal_forgets_nothing(start, tmp_path):
    start(before="kill_at_finish(6)")
    start(before="kill_in_writing('finished.jsonl'); kill_at_finish(1)")
    start(before="count_reads('reads.json')")
    assert "first 0" not in (tmp_path / "reads.json").read_text("utf-8")


DAMAGES = ["changed", "cut", "emptied", "deleted"]


def _files_in_work(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK
    )


@pytest.mark.slow("a run for every file of a work folder")
@pytest.mark.parametrize(
    "damages", [DAMAGES, *(pytest.param([kind], marks=pytest.mark.long) for kind in DAMAGES)]
)
def test_a_damaged_finished_part_is_produced_again(damages, start, whole, tmp_path):
    start(
        before=f"give_room({LITTLE_ROOM}); kill_at_part('out/kept/b.jsonl')",
        cwd=tmp_path / "killed",
    )
    names = [
        name
        for name in _files_in_work(tmp_path / "killed" / WORK)
        if name.endswith((".arrow", ".parquet"))
    ]
    assert len(names) > 15
    wrong = []
    for name, damage in zip(names, itertools.cycle(damages)):
        folder = tmp_path / name.replace("/", "_")
        shutil.copytree(tmp_path / "killed", folder)
        _damage(folder / WORK / name, damage)
        finished = start(cwd=folder)
        if finished.code != 0 or contents(folder / "out") != whole:
            wrong.append((name, finished.code, finished.stderr[-200:]))
    assert not wrong


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_small_text_file_that_was_damaged_is_written_again(damage, programs, tmp_path):
    """Small text files share one journal entry."""
    (tmp_path / "in").mkdir()
    for number in range(5):
        (tmp_path / "in" / f"{number}.txt").write_text(
            f"the page of number {number * 7} and of {number}", "utf-8"
        )
    (tmp_path / "in" / "5.txt").write_bytes((tmp_path / "in" / "1.txt").read_bytes())
    command = ("dedup", "in", "-o", "out", "--quiet", "--threads", "1")
    programs.run(*command, cwd=tmp_path, before="kill_before_publishing()")
    kept = tmp_path / WORK / "out" / "kept"
    assert len(list(kept.iterdir())) == 5
    _damage(kept / "3.txt", damage)
    assert programs.run(*command, cwd=tmp_path).code == 0
    for number in range(5):
        name = f"{number}.txt"
        assert (tmp_path / "out" / "kept" / name).read_bytes() == (
            tmp_path / "in" / name
        ).read_bytes()


def _damage(path, damage):
    data = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    else:
        middle = len(data) // 2
        changed = (
            data[:middle]
            + bytes(byte ^ 0xFF for byte in data[middle : middle + 8])
            + data[middle + 8 :]
        )
        path.write_bytes({"changed": changed, "cut": data[:middle], "emptied": b""}[damage])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "0.7"], "threshold was 0.8, now 0.7"),
        (["--keep", "longest"], "keep was 'first', now 'longest'"),
        (["--mark"], "mark was False, now True"),
        (["--seed", "2", "--size", "3"], "size was 5, now 3; seed was 1, now 2"),
    ],
)
def test_other_settings_on_the_same_work_folder_are_named_and_stop_the_run(
    options, words, start, whole, tmp_path
):
    start(before="kill_at_finish(7)")
    before = {
        path: path.read_bytes()
        for path in (tmp_path / WORK).rglob("*")
        if path.is_file() and path.name != LOCK
    }
    stopped = start(*options)
    assert stopped.code == 2
    assert words in stopped.stderr
    assert "hint: " in stopped.stderr
    after = {
        path: path.read_bytes()
        for path in (tmp_path / WORK).rglob("*")
        if path.is_file() and path.name != LOCK
    }
    assert after == before
    assert start().code == 0
    assert contents(tmp_path / "out") == whole


def test_a_killed_run_with_a_random_seed_resumes_with_the_same_seed(start, tmp_path):
    start("--seed", "random", before="kill_at_finish(7)")
    manifest = json.loads((tmp_path / WORK / "manifest.json").read_text("utf-8"))
    finished = start("--seed", "random", before="count_reads('reads.json')")
    assert finished.code == 0, finished.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["config"]["seed"] == manifest["drawn_seed"] != 1
    assert f"seed-{manifest['drawn_seed']} " in report["signature_format"]
    assert start("--seed", str(manifest["drawn_seed"]), cwd=tmp_path / "given").code == 0
    found = contents(tmp_path / "out")
    given = contents(tmp_path / "given" / "out")
    assert {**found, "report.json": None} == {**given, "report.json": None}


def test_the_secret_of_digests_is_in_no_output(start, tmp_path):
    start(before="kill_at_finish(7)")
    secret = read_marker(tmp_path / WORK)["secret"]
    assert start().code == 0
    assert not (tmp_path / WORK).exists()
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert secret.encode() not in content
            assert bytes.fromhex(secret) not in content


@pytest.mark.parametrize(("first", "then"), [("1", "random"), ("random", "1")])
def test_a_given_seed_and_a_random_seed_are_different_settings(first, then, start):
    start("--seed", first, before="kill_at_finish(7)")
    stopped = start("--seed", then)
    assert stopped.code == 2
    names = {"1": "1", "random": "'random'"}
    assert f"seed was {names[first]}, now {names[then]}" in stopped.stderr


def test_a_work_folder_with_signatures_of_an_older_format_is_named_and_stops_the_run(
    start, tmp_path
):
    start(before="kill_at_finish(7)")
    path = tmp_path / WORK / "manifest.json"
    path.write_text(path.read_text("utf-8").replace("fast-3", "fast-1"), "utf-8")
    stopped = start()
    assert stopped.code == 2
    assert "signatures were fast-1 word-5" in stopped.stderr


def test_overwrite_starts_over_with_other_settings(start, tmp_path):
    start(before="kill_at_finish(7)")
    assert start("--threshold", "0.7", "--overwrite").code == 0
    assert start("--threshold", "0.7", cwd=tmp_path / "clean").code == 0
    found = contents(tmp_path / "out")
    clean = contents(tmp_path / "clean" / "out")
    assert found.pop("report.json")["config"] == clean.pop("report.json")["config"] | {
        "overwrite": True
    }
    assert found == clean


@pytest.mark.parametrize("options", [["--threads", "2"], ["--memory", "3GB"]])
def test_a_run_resumes_with_other_threads_and_memory(options, start, whole, tmp_path):
    start(before=f"give_room({LITTLE_ROOM}); kill_at_finish(9)")
    assert start(*options, before="count_reads('reads.json')").code == 0
    assert "first" not in (tmp_path / "reads.json").read_text("utf-8")
    found = contents(tmp_path / "out")
    assert {name: found[name] for name in found if name != "report.json"} == {
        name: whole[name] for name in whole if name != "report.json"
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda folder: (folder / "b.jsonl").write_text('{"text": "another page"}\n'),
            "b.jsonl has changed",
        ),
        (
            lambda folder: (folder / "z.jsonl").write_text('{"text": "a new file"}\n'),
            "z.jsonl was not an input",
        ),
        (lambda folder: (folder / "b.jsonl").unlink(), "b.jsonl"),
    ],
)
def test_an_input_that_changed_since_the_first_start_is_named(
    change, words, programs, corpus, tmp_path
):
    shutil.copytree(corpus, tmp_path / "in")
    command = ("dedup", "in", "-o", "out", "--quiet")
    programs.run(*command, cwd=tmp_path, before="kill_at_finish(7)")
    change(tmp_path / "in")
    stopped = programs.run(*command, cwd=tmp_path)
    assert stopped.code == 2
    assert words in stopped.stderr
    assert not (tmp_path / "out").exists()
    assert programs.run(*command, "--overwrite", cwd=tmp_path).code == 0


@pytest.mark.parametrize("at", ["sketch/000001.arrow", "shelves.arrow", "out/clusters.parquet"])
def test_ctrl_c_stops_without_a_traceback_and_says_how_to_resume(
    at, programs, corpus, whole, tmp_path
):
    command = ("dedup", corpus, "-o", "out", "--threads", "1", "--pairs")
    running = programs.start(*command, cwd=tmp_path, before=f"pause_at({at!r})")
    wait_until((tmp_path / "paused").exists)
    running.signal(signal.SIGINT)
    (tmp_path / "go").touch()
    stopped = running.wait()
    assert stopped.code == 130
    assert "Traceback" not in stopped.stderr
    assert "run the same command again to resume" in stopped.stderr
    assert WORK in stopped.stderr
    assert len(re.findall("again", stopped.stderr)) == 1
    assert not (tmp_path / "out").exists()
    assert programs.run(*command, cwd=tmp_path).code == 0
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize(
    ("which", "room"),
    [
        ("first", "pass"),
        ("first", f"give_room({LITTLE_ROOM})"),
        ("later", f"give_room({LITTLE_ROOM})"),
    ],
)
def test_ctrl_c_does_not_wait_for_the_end_of_a_file(which, room, programs, corpus, tmp_path):
    command = ("dedup", corpus, "-o", "out", "--threads", "1", "--pairs")
    running = programs.start(*command, cwd=tmp_path, before=f"{room}; slow_reading(0, {which!r})")
    wait_until((tmp_path / "paused").exists)
    running.signal(signal.SIGINT)
    assert running.wait().code == 130
    assert int((tmp_path / "steps").read_text("ascii")) < SLOW_STEPS


def test_a_terminated_run_resumes(start, whole, tmp_path):
    stopped = start(before=f"kill_at_event(30, {int(signal.SIGTERM)})")
    assert stopped.code in {-signal.SIGTERM, 128 + signal.SIGTERM, 130}
    assert "Traceback" not in stopped.stderr
    assert not (tmp_path / "out").exists()
    assert start(before="count_reads('reads.json')").code == 0
    assert "first 0" not in (tmp_path / "reads.json").read_text("utf-8")
    assert contents(tmp_path / "out") == whole
