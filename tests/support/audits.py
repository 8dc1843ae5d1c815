"""The reference for audits: found and true pairs, from the oracle's sets and the run's own signatures."""

from __future__ import annotations

import dataclasses

import pyarrow as pa

from neardup.config import Config
from neardup.measures import jaccard
from neardup.measures.base import band_keys
from neardup.theory.plan import plan_for
from support import oracles

# Bands that miss many pairs.
WEAK = {"bands": 3, "rows": 6, "threshold": 0.5, "size": 2, "num_perm": 64, "recall": 0.5}


def found_and_true(texts, groups=None, **settings):
    """{pair: (similarity, whether banding finds it)} from the oracle's sets and the run's own signatures."""
    config = Config(**settings)
    plan = plan_for(config)
    shape = {"unit": config.unit, "size": config.size, "multiset": config.multiset}
    pairs = oracles.true_pairs(
        [oracles.shingles(text, **shape) for text in texts], config.threshold
    )
    pairs = pairs if groups is None else oracles.shares_group(pairs, groups)
    signatures = jaccard.text_signatures(pa.array(texts, pa.large_string()), config)
    keys = band_keys(signatures, plan)
    agreement = (signatures[:, None] == signatures[None]).sum(axis=2)
    return {
        (a, b): (value, bool((keys[a] == keys[b]).any() and agreement[a, b] >= plan.min_agreement))
        for (a, b), value in pairs.items()
    }


def measured(answer):
    """Everything but the time and the table."""
    values = dataclasses.asdict(dataclasses.replace(answer, missed=None))
    return values | {"seconds": 0, "missed": answer.missed.to_pylist()}
