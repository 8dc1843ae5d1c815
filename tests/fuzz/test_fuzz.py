"""A minute of random cases; and the fuzzer finds what is wrong, else it would prove nothing."""

import itertools
import time

import pytest

import oracles
from fuzz.cases import random_case
from fuzz.fuzz import fuzz


@pytest.mark.long
def test_a_minute_of_random_cases_agrees_with_the_oracle():
    first = int(time.time())  # new cases every time; one that fails is told with its seed
    num_cases, failures = fuzz(itertools.count(first), seconds=60)
    assert not failures, "\n".join(failures)
    assert num_cases > 10


def test_a_wrong_result_is_found_shrunk_and_reported_with_its_seed(monkeypatch):
    monkeypatch.setattr("fuzz.fuzz.MAX_FAILURES", 1)
    seeds = [seed for seed in range(60) if not random_case(seed).in_files]
    monkeypatch.setattr(oracles, "jaccard", lambda a, b: len(a & b) / max(1, len(a | b) - 1))
    num_cases, (failure,) = fuzz(seeds)
    seed = seeds[num_cases - 1]
    assert f"python tests/fuzz/fuzz.py --seed {seed}" in failure
    assert 1 <= failure.count("Row(") <= 2
