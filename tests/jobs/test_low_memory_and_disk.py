"""Runs with little memory or little disk space."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from support.programs import Programs, contents

START = "from neardup.cli.main import main; main()"
WORDS_OF_LETTERS = 8
WORK = ".out.neardup"


def of_300_mb(test):
    """Mark a test that uses the fixture `large`."""
    return pytest.mark.long(pytest.mark.slow("runs on 300 MB of text")(test))


def _texts(rng, num_docs, num_bytes):
    """Documents of random words of seven letters, one a row, as bytes."""
    letters = rng.integers(ord("a"), ord("z") + 1, (num_docs, num_bytes), np.uint8)
    letters[:, WORDS_OF_LETTERS - 1 :: WORDS_OF_LETTERS] = ord(" ")
    return letters


def _write_lines(path, texts):
    """Write JSON Lines."""
    lines = np.empty((len(texts), texts.shape[1] + 13), np.uint8)
    lines[:, :10] = np.frombuffer(b'{"text": "', np.uint8)
    lines[:, 10:-3] = texts
    lines[:, -3:] = np.frombuffer(b'"}\n', np.uint8)
    lines.tofile(path)


def _edited(rng, texts):
    """The same documents, each with one word of its own."""
    copies = texts.copy()
    copies[:, : WORDS_OF_LETTERS - 1] = rng.integers(
        ord("a"), ord("z") + 1, (len(texts), WORDS_OF_LETTERS - 1)
    )
    return copies


def _run_fresh(folder, *arguments, before="pass"):
    """Run the command line in a separate process, to measure its memory."""
    code = f"import sys; sys.path.insert(0, {sys.path[0]!r}); from support.programs import *; {before}; {START}"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """300 MB of text in one file: every fifth document is a near-copy of another."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(5)
    texts = _texts(rng, 120_000, 2_048)
    _write_lines(folder / "pages.jsonl", np.concatenate([texts, _edited(rng, texts[::4])]))
    yield folder / "pages.jsonl"
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def plenty(large):
    """The result of a run on it with unlimited memory."""
    finished = _run_fresh(
        large.parent, "dedup", large, "-o", "plenty", "--dry-run", "--quiet", "--method", "lsh"
    )
    assert finished.returncode == 0, finished.stderr
    return contents(large.parent / "plenty")


def _tables(found):
    return {name: data for name, data in found.items() if name.endswith((".parquet", ".jsonl"))}


@pytest.fixture(scope="module")
def limited(large):
    """The folder of a run with 600 MB that could not take more than 3.5 GB of addresses, as with `ulimit -v`.

    Threads, libraries and the files they map take 2.5 GB of addresses before any work.
    """
    _run_limited(large, "limited", "lsh", "limit_address_space(3_500_000_000); tell_peak('peak')")
    return large.parent


def _run_limited(large, out, method, before):
    arguments = (
        "dedup",
        large,
        "-o",
        out,
        "--dry-run",
        "--quiet",
        "--memory",
        "600MB",
        "--threads",
        "2",
    )
    finished = _run_fresh(large.parent, *arguments, "--method", method, before=before)
    assert finished.returncode == 0, finished.stderr


@of_300_mb
def test_a_run_under_a_hard_limit_of_memory_gives_the_same_bytes(limited, plenty):
    assert _tables(contents(limited / "limited")) == _tables(plenty)


@of_300_mb
def test_a_run_stays_within_its_memory(limited):
    peak = int((limited / "peak").read_text("ascii"))
    assert peak <= 1.1 * 600_000_000, f"held {peak / 1e6:.0f} MB of 600 MB"


@of_300_mb
def test_the_exact_join_exceeds_its_memory_by_at_most_a_third(large):
    _run_limited(large, "exact", "exact", "tell_peak('exact-peak')")
    peak = int((large.parent / "exact-peak").read_text("ascii"))
    assert peak <= 1.33 * 600_000_000, f"held {peak / 1e6:.0f} MB of 600 MB"


@of_300_mb
def test_the_report_has_the_peak_memory_of_this_process_not_of_its_parent(limited):
    peak = int((limited / "peak").read_text("ascii"))
    reported = json.loads((limited / "limited" / "report.json").read_text("utf-8"))[
        "peak_memory_bytes"
    ]
    assert abs(reported - peak) < 0.05 * peak


def test_a_component_larger_than_memory_stays_within_it(tmp_path):
    """Near-copies of one page: 100 MB of text that take 700 MB to verify at once."""
    rng = np.random.default_rng(6)
    _write_lines(
        tmp_path / "pages.jsonl", _edited(rng, np.repeat(_texts(rng, 1, 2_048), 50_000, axis=0))
    )
    arguments = ("dedup", "pages.jsonl", "-o", "out", "--dry-run", "--quiet", "--memory", "500MB")
    finished = _run_fresh(tmp_path, *arguments, before="tell_peak('peak')")
    assert finished.returncode == 0, finished.stderr
    assert json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["kept"] == 1
    peak = int((tmp_path / "peak").read_text("ascii"))
    assert peak <= 1.1 * 500_000_000, f"held {peak / 1e6:.0f} MB of 500 MB"


def test_running_out_of_memory_is_reported_without_a_traceback(corpus, programs, tmp_path):
    before = "before_part('classes.arrow', lambda: bytes(1 << 60))"
    stopped = programs.run("dedup", corpus, "-o", "out", cwd=tmp_path, before=before)
    assert stopped.code == 1
    assert "memory" in stopped.stderr
    assert "--memory" in stopped.stderr
    assert "run the same command again to resume" in stopped.stderr
    assert programs.run("dedup", corpus, "-o", "out", cwd=tmp_path).code == 0


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A disk of 4 MB: (programs that see it, where they see it, where this process sees it)."""
    disk = tmp_path_factory.mktemp("disk")
    mount = f'mount -t tmpfs -o size=4m none {disk} && exec "$@"'
    for flags in ("-m", "-rm"):  # as root, otherwise as root of a user namespace
        wrapper = ["unshare", flags, "sh", "-c", mount, "sh"]
        if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip(
            "a small disk cannot be mounted: this test needs root, or namespaces of users (unshare -rm)"
        )
    programs = Programs(tmp_path_factory.mktemp("spoken"), wrapper)
    yield programs, disk, programs.root / disk.relative_to("/")
    programs.close()


@pytest.fixture
def small_folder(small_disk):
    """A folder on the small disk, which is empty again afterwards; as `small_disk`."""
    programs, disk, seen = small_disk
    (seen / "folder").mkdir()
    yield programs, disk / "folder", seen / "folder"
    shutil.rmtree(seen / "folder")


# Parts in the order in which they are finished: three of each file, classes, components, shelves.
@pytest.mark.parametrize(
    "before",
    [
        "after_finish(1, fill_disk)",
        "after_finish(3, fill_disk)",
        "after_finish(9, fill_disk)",
        "after_finish(11, fill_disk)",
        "give_room(60_000); after_finish(12, fill_disk)",
        "give_room(1_000); sort_much(); after_finish(9, fill_disk)",
        "before_part('out/removed.parquet', fill_disk)",
        "before_part('out/pairs.parquet', fill_disk)",
        "before_part('out/kept/b.jsonl', fill_disk)",
        "before_report(fill_disk)",
    ],
)
def test_a_full_disk_is_named_and_the_run_resumes_once_there_is_room(before, small_folder, corpus):
    programs, folder, seen = small_folder
    command = ("dedup", corpus, "-o", "out", "--pairs", "--quiet", "--threads", "1")
    full = programs.run(*command, cwd=folder, before=before)
    assert full.code == 1
    assert "Traceback" not in full.stderr
    assert "the disk of out is full" in full.stderr
    assert "run the same command again to resume" in full.stderr
    assert not (seen / "out").exists()
    (seen / "ballast").unlink(missing_ok=True)
    again = programs.run(*command, cwd=folder)
    assert again.code == 0, again.stderr
    assert contents(seen / "out")["report.json"]["removed"] == 59
    assert not (seen / WORK).exists()


def test_a_disk_that_is_full_from_the_start_is_named(small_folder, corpus):
    programs, folder, _ = small_folder
    full = programs.run("dedup", corpus, "-o", "out", cwd=folder, before="fill_disk()")
    assert full.code == 1
    assert "Traceback" not in full.stderr
    assert "disk" in full.stderr
    assert "hint: " in full.stderr


def test_a_disk_that_is_too_small_fails_before_the_work_begins(small_folder, tmp_path):
    programs, folder, seen = small_folder
    _write_lines(tmp_path / "pages.jsonl", _texts(np.random.default_rng(1), 5_000, 1_024))
    command = ("dedup", tmp_path / "pages.jsonl", "-o", "out")
    refused = programs.run(*command, cwd=folder, before="count_reads('reads.json')")
    assert refused.code == 1
    assert re.search(
        r"needs about \d[\d.]* MB .* which has \d[\d.]* [kM]B left",
        refused.stderr.replace("\n", " "),
    )
    assert "--dry-run" in refused.stderr
    assert (seen / "reads.json").read_text("utf-8") == "{}"
    dry = programs.run(*command, "--dry-run", cwd=folder)
    assert dry.code == 0, dry.stderr


def test_standard_input_on_a_full_disk_is_reported(small_folder):
    programs, folder, seen = small_folder
    full = programs.run(
        "dedup", "-", "-o", "out", cwd=folder, before="sys.stdin = open('/dev/zero')"
    )
    assert full.code == 1
    assert "Traceback" not in full.stderr
    assert "disk" in full.stderr or "No space left" in full.stderr
    assert list(seen.iterdir()) == []
