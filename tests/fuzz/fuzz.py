"""Random cases for as long as one likes: results against the oracle, random damage, and disturbed changes.

python tests/fuzz/fuzz.py --minutes 10                  from a new seed on
python tests/fuzz/fuzz.py --what runs --minutes 10      finished runs with random damage
python tests/fuzz/fuzz.py --what indexes --minutes 10   indexes with random damage
python tests/fuzz/fuzz.py --what changes --minutes 10   changes of an index, disturbed at random moments
python tests/fuzz/fuzz.py --seeds 0:500                 these cases
python tests/fuzz/fuzz.py --seed 1234                   one case again
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

if __name__ == "__main__":  # a script imports from its own folder, tests from tests/
    sys.path[0] = str(Path(__file__).parents[1])

from fuzz.cases import Case, random_case
from fuzz.changed_indexes import ChangedIndexes
from fuzz.checks import Runs, check_files, check_in_memory
from fuzz.mutated_indexes import MutatedIndexes
from fuzz.mutated_runs import MutatedRuns

# How many smaller cases are tried to shrink a failing one; a time limit would stop early on a busy
# machine.
SHRINK_TRIES = 400


def check(case: Case, runs: Runs) -> None:
    """Raise if a run of the case disagrees with the oracle."""
    if not case.old:
        check_in_memory(case)
    if case.in_files:
        folder = runs.folder / "case"
        try:
            check_files(case, folder, runs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def error_of(case: Case, runs: Runs) -> Exception | None:
    """Return the error that a case raises."""
    try:
        check(case, runs)
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a finding
        return error
    return None


def shrink(case: Case, error: Exception, runs: Runs) -> tuple[Case, Exception]:
    """Drop rows and files while the case still fails in the same way."""
    tries = itertools.count(1)
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for candidate in case.smaller():
            if next(tries) > SHRINK_TRIES:
                return case, error
            found = error_of(candidate, runs)
            if found is not None and _kind(found) == _kind(error):
                case = candidate
                error = found
                is_smaller = True
                break
    return case, error


def _kind(error: Exception) -> tuple[type[Exception], str]:
    """An error by its class and first word, which a smaller case may not change."""
    return type(error), str(error).partition(" ")[0].partition("\n")[0]


class Subject(Protocol):
    """What is fuzzed; it is made with an empty folder for its files."""

    def check(self, seed: int) -> str | None:
        """Return how the case of a seed fails, None if it does not."""

    def close(self) -> None:
        """End what was started."""


class Results:
    """Runs of random cases, whose results must be those of the oracle."""

    def __init__(self, folder: Path) -> None:
        self._runs = Runs(folder)

    def check(self, seed: int) -> str | None:
        """Return how the case of a seed fails, shrunk; None if it does not."""
        case = random_case(seed)
        error = error_of(case, self._runs)
        if error is None:
            return None
        smaller, error = shrink(case, error, self._runs)
        return f"{type(error).__name__}: {error}\nThe smallest case found:\n{smaller}\n"

    def close(self) -> None:
        """End the process that is killed."""
        self._runs.close()


# By the name that --what takes.
SUBJECTS: dict[str, Callable[[Path], Subject]] = {
    "results": Results,
    "runs": MutatedRuns,
    "indexes": MutatedIndexes,
    "changes": ChangedIndexes,
}


def fuzz(
    seeds: Iterable[int],
    *,
    what: str = "results",
    seconds: float | None = None,
    max_failures: int = 5,
) -> tuple[int, list[str]]:
    """Check the cases of seeds until time runs out; return their number, and a report for each failure."""
    until = None if seconds is None else time.monotonic() + seconds
    num_cases = 0
    failures: list[str] = []
    with (
        tempfile.TemporaryDirectory() as name,
        contextlib.closing(SUBJECTS[what](Path(name))) as subject,
    ):
        for seed in seeds:
            if (until is not None and time.monotonic() > until) or len(failures) == max_failures:
                break
            num_cases += 1
            failure = subject.check(seed)
            if failure is not None:
                again = f"python tests/fuzz/fuzz.py --what {what} --seed {seed}"
                failures.append(f"seed {seed} fails; repeat it with: {again}\n{failure}")
    return num_cases, failures


def _seeds(given: argparse.Namespace) -> Iterator[int]:
    if given.seed is not None:
        return iter([given.seed])
    if given.seeds is not None:
        return iter(range(*map(int, given.seeds.split(":"))))
    return itertools.count(given.start)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--what", choices=SUBJECTS, default="results", help="what is fuzzed (default: results)"
    )
    parser.add_argument("--seed", type=int, help="check this case only")
    parser.add_argument("--seeds", metavar="FIRST:STOP", help="check these cases")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument(
        "--start", type=int, default=int(time.time()) % 10**6 * 1000, help="the first seed"
    )
    given = parser.parse_args()
    seeds = _seeds(given)
    first = next(seeds)
    print(f"from seed {first}", flush=True)  # noqa: T201
    minutes = (
        1 if given.minutes is None and given.seed is None and given.seeds is None else given.minutes
    )
    seconds = None if minutes is None else minutes * 60
    num_cases, failures = fuzz(itertools.chain([first], seeds), what=given.what, seconds=seconds)
    print(*failures, f"{num_cases} cases, {len(failures)} failed", sep="\n")  # noqa: T201
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
