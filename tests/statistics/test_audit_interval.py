"""The confidence interval of an audit covers the true recall, with bands that are deliberately too weak."""

from __future__ import annotations

import random
from itertools import chain, pairwise

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.measures import jaccard
from neardup.measures.base import band_keys
from neardup.theory.plan import plan_for
from support import oracles

NUM_FAMILIES = 150
NUM_WORDS = 40
SAMPLE = 150
# Chosen so that the recall lies between .6 and .95.
BANDS = ((6, 8), (8, 8), (10, 7), (8, 9), (12, 7))


def family(rng, name, size):
    """A page and edited copies of it; no other family has a word of it."""
    page = [f"{name}x{number}" for number in range(NUM_WORDS)]
    texts = []
    for copy in range(size):
        edited = list(page)
        for place in rng.sample(range(NUM_WORDS), k=rng.randrange(4)):
            edited[place] = f"{name}y{copy}z{place}"
        texts.append(" ".join(edited))
    return texts


def true_recall(families, config):
    """The share of the oracle's pairs of all documents that share a bucket and pass the filter."""
    plan = plan_for(config)
    pairs = []
    first = 0
    for texts in families:
        sets = [frozenset(pairwise(text.split())) for text in texts]
        pairs += [(first + a, first + b) for a, b in oracles.true_pairs(sets, config.threshold)]
        first += len(texts)
    signatures = jaccard.text_signatures(pa.array([*chain(*families)], pa.large_string()), config)
    keys = band_keys(signatures, plan)
    a, b = np.array(pairs).T
    shares_bucket = (keys[a] == keys[b]).any(axis=1)
    return float(
        (
            shares_bucket & ((signatures[a] == signatures[b]).sum(axis=1) >= plan.min_agreement)
        ).mean()
    )


@pytest.mark.slow("a hundred runs and audits")
@pytest.mark.parametrize(
    ("num_runs", "least_covered"), [(30, 26), pytest.param(100, 93, marks=pytest.mark.long)]
)
def test_the_interval_covers_the_true_recall_in_93_of_100_runs(num_runs, least_covered):
    covered = 0
    recalls = []
    for seed in range(num_runs):
        rng = random.Random(seed)
        families = [
            family(rng, f"f{number}", rng.choice([1, 2, 2, 3, 4, 8]))
            for number in range(NUM_FAMILIES)
        ]
        texts = [text for members in families for text in members]
        rng.shuffle(texts)
        bands, rows = BANDS[seed % len(BANDS)]
        config = Config(bands=bands, rows=rows, threshold=0.7, size=2, seed=seed)
        recalls.append(true_recall(families, config))
        answer = neardup.audit(neardup.deduplicate(texts, config=config), sample=SAMPLE)
        assert SAMPLE == answer.sample < len(texts)
        covered += answer.low <= recalls[-1] <= answer.high
    assert 0.55 < min(recalls) < 0.75 < 0.9 < max(recalls) < 0.97
    assert covered >= least_covered
