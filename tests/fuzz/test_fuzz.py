"""Random cases, and planted errors that the fuzzer must find."""

import os
import signal
from pathlib import Path

import pytest

from fuzz import forked, mutated_indexes, mutated_runs
from fuzz.cases import random_case
from fuzz.fuzz import fuzz
from neardup import Index
from neardup.errors import DataError
from neardup.index.folder_view import FolderChange
from support import oracles


@pytest.mark.long
@pytest.mark.slow("200 cases take a minute of CPU time")
# Some cases have hardly a usable row, or hardly a shingle that counts.
@pytest.mark.filterwarnings(
    "ignore:.* rows were rejected:UserWarning",
    "ignore:.* rows are not valid UTF-8:UserWarning",
    "ignore:.* only ignored shingles:UserWarning",
)
def test_two_hundred_random_cases_agree_with_the_oracle():
    # The same cases every time, so that a change is to blame for a failure; fuzz.py draws new ones.
    num_cases, failures = fuzz(range(200))
    assert not failures, "\n".join(failures)
    assert num_cases == 200


def test_a_wrong_result_is_found_shrunk_and_reported_with_its_seed(monkeypatch):
    seeds = [seed for seed in range(60) if not random_case(seed).in_files]
    monkeypatch.setattr(oracles, "jaccard", lambda a, b: len(a & b) / max(1, len(a | b) - 1))
    num_cases, (failure,) = fuzz(seeds, max_failures=1)
    seed = seeds[num_cases - 1]
    assert f"python tests/fuzz/fuzz.py --what results --seed {seed}" in failure
    assert 1 <= failure.count("Row(") <= 2


def test_what_reads_a_damaged_run_gives_a_result_or_an_error_of_ours():
    num_cases, failures = fuzz(range(6), what="runs")
    assert not failures, "\n".join(failures)
    assert num_cases == 6


@pytest.mark.long
@pytest.mark.slow("one minute of damaged runs")
def test_a_minute_of_damaged_runs_gives_results_or_errors_of_ours():
    num_cases, failures = fuzz(range(1_000, 1_040), what="runs", seconds=60)
    assert not failures, "\n".join(failures)
    assert num_cases > 10


def test_an_index_that_is_damaged_has_segments_and_unflushed_documents(tmp_path):
    made = mutated_indexes.MutatedIndexes(tmp_path)
    assert forked.fault_of(lambda _: made._make("shingles")) is None
    with Index.open(tmp_path / "made" / "shingles", read_only=True) as index:
        counts = index.info()
    assert counts["segments"] > 0
    assert counts["unflushed"] > 0


def test_what_uses_a_damaged_index_does_its_work_or_raises_an_error_of_ours():
    num_cases, failures = fuzz(range(4), what="indexes")
    assert not failures, "\n".join(failures)
    assert num_cases == 4


@pytest.mark.long
@pytest.mark.slow("one minute of damaged indexes")
def test_a_minute_of_damaged_indexes_gives_results_or_errors_of_ours():
    num_cases, failures = fuzz(range(1_000, 1_040), what="indexes", seconds=60)
    assert not failures, "\n".join(failures)
    assert num_cases > 10


def test_an_index_that_is_disturbed_while_it_changes_agrees_with_the_model():
    num_cases, failures = fuzz(range(2), what="changes")
    assert not failures, "\n".join(failures)
    assert num_cases == 2


@pytest.mark.long
@pytest.mark.slow("one minute of disturbed changes")
def test_a_minute_of_disturbed_changes_of_indexes_agrees_with_the_model():
    num_cases, failures = fuzz(range(1_000, 1_040), what="changes", seconds=60)
    assert not failures, "\n".join(failures)
    assert num_cases > 10


def test_an_index_that_forgets_an_alias_is_found_and_reported_with_its_steps(monkeypatch):
    monkeypatch.setattr(FolderChange, "link", lambda *_: None)
    _, (failure,) = fuzz(range(4, 30), what="changes", max_failures=1)
    assert "python tests/fuzz/fuzz.py --what changes --seed" in failure
    assert "WrongError: the index" in failure


def write_elsewhere(path: Path, kind: str) -> None:
    del kind
    (path / "../victim/victim.txt").write_text("changed")


def raise_ours(path: Path, kind: str) -> None:
    del path, kind
    raise DataError("something is wrong")


@pytest.mark.parametrize(
    ("use", "said"),
    [(write_elsewhere, "a foreign file was changed"), (raise_ours, "an error that names no place")],
)
def test_a_changed_foreign_file_and_a_vague_error_are_reported_with_the_damage(
    monkeypatch, use, said
):
    monkeypatch.setattr(mutated_indexes, "KINDS", {"shingles": mutated_indexes.KINDS["shingles"]})
    monkeypatch.setattr(
        mutated_indexes.MutatedIndexes, "_warm", lambda self, kind: self._make(kind)
    )
    monkeypatch.setattr(mutated_indexes, "READING", {})
    monkeypatch.setattr(mutated_indexes, "CHANGING", {"a use": use})
    _, (failure,) = fuzz([7], what="indexes")
    assert "python tests/fuzz/fuzz.py --what indexes --seed 7" in failure
    assert "an index of kind shingles\n  " in failure
    assert "\na use\n" in failure
    assert said in failure


def crash(run: Path) -> None:
    del run
    os.kill(os.getpid(), signal.SIGSEGV)


def wait_for_ever(run: Path) -> None:
    while run:
        pass


def fail(run: Path) -> None:
    raise IndexError(f"in {run}")


@pytest.mark.parametrize(
    ("read", "said"), [(crash, "ended by SIGSEGV"), (fail, "IndexError: in out")]
)
def test_a_crash_and_a_foreign_error_are_reported_with_the_seed_and_the_damage(
    monkeypatch, read, said
):
    monkeypatch.setattr(mutated_runs, "KINDS", {"leader": mutated_runs.KINDS["leader"]})
    monkeypatch.setattr(mutated_runs, "ENDINGS", ())
    is_first = iter([True])
    # The intact run is read once before, to warm the process.
    readers = {"a reader": lambda run: None if next(is_first, False) else read(run)}
    monkeypatch.setattr(mutated_runs, "READERS", readers)
    _, (failure,) = fuzz([7], what="runs")
    assert "python tests/fuzz/fuzz.py --what runs --seed 7" in failure
    assert "a run of kind leader\n  " in failure
    assert "\na reader\n" in failure
    assert said in failure


def test_a_child_that_computes_for_ever_is_ended():
    assert (
        forked.fault_of(lambda _: wait_for_ever(Path("out")), cpu_seconds=1) == "ended by SIGKILL\n"
    )
