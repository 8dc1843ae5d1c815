"""Random cases, and a planted error that the fuzzer must find."""

import pytest

import oracles
from fuzz.cases import random_case
from fuzz.fuzz import fuzz


@pytest.mark.long
@pytest.mark.slow("200 cases take a minute of CPU time")
@pytest.mark.filterwarnings("ignore:.* rows were rejected:UserWarning")  # some cases have hardly a usable row
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
    assert f"python tests/fuzz/fuzz.py --seed {seed}" in failure
    assert 1 <= failure.count("Row(") <= 2
