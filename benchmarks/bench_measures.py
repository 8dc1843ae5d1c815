"""How fast, with how much memory and what recall are similar vectors, bits and baskets found?

Pairs at a threshold among 100,000 vectors of 64 numbers (cosine), 100,000 of 256 bits (Hamming),
100,000 baskets of 10 items with weights, and 100,000 sets of 10 to 100 items some of which contain
others, against brute force and other tools; and 1 million baskets of 10 items at 0.8. One in five
is a copy with a varying amount of noise. Recall is the share of the pairs that an exact search
finds. Without --full, everything is a tenth of that. To add a tool, write a function in
peers/measure_pairs.py; to add a measure, add its data here.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import harness
import process

sys.path.append(str(Path(__file__).parent / "peers"))
from measure_pairs import TOOLS

WORKER = Path(__file__).parent / "peers" / "measure_pairs.py"
THRESHOLDS = {"cosine": 0.9, "hamming": 0.9, "weighted": 0.8, "containment": 0.8, "baskets": 0.8}
# The exact tool, whose pairs are the reference.
EXACT = {
    "cosine": "numpy, brute force",
    "hamming": "faiss IndexBinaryFlat",
    "weighted": "plain Python, exact",
    "containment": "plain Python, exact",
}
# datasketch takes 16 ms per basket, half an hour for all.
FEWER = {"datasketch WeightedMinHash": 50}
BASKET = 10


def make_vectors(count, rng):
    copies = count // 5
    vectors = rng.standard_normal((count, 64)).astype(np.float32)
    noise = rng.uniform(0.05, 0.8, (copies, 1)) * rng.standard_normal((copies, 64))
    vectors[-copies:] = vectors[:copies] + noise
    return {"vectors": vectors}


def make_bits(count, rng):
    copies = count // 5
    bits = rng.integers(0, 2, (count, 256), np.uint8)
    bits[-copies:] = bits[:copies] ^ (rng.random((copies, 256)) < rng.uniform(0, 0.2, (copies, 1)))
    return {"packed": np.packbits(bits, axis=1)}


def make_weights(count, rng):
    copies = count // 5
    items = (
        np.argsort(rng.random((count, 40)), axis=1)[:, :BASKET]
        + rng.integers(0, 1000, (count, 1)) * 40
    )
    weights = rng.gamma(2.0, 1.0, (count, BASKET))
    items[-copies:] = items[:copies]
    weights[-copies:] = weights[:copies] * np.exp(
        rng.uniform(0, 0.6, (copies, 1)) * rng.standard_normal((copies, BASKET))
    )
    return {
        "items": items.ravel(),
        "weights": weights.ravel(),
        "ends": np.arange(count + 1) * BASKET,
    }


def make_parts(count, rng):
    """Sets of any size; a fifth of them are parts of others, with some items of their own."""
    sizes = np.exp(rng.uniform(np.log(10), np.log(100), count)).astype(np.int64)
    sets = [rng.choice(1 << 20, size, replace=False) for size in sizes]
    for row in range(count - count // 5, count):
        whole = sets[count - 1 - row]
        part = rng.choice(whole, min(sizes[row], len(whole)), replace=False)
        is_own = rng.random(part.size) < rng.uniform(0, 0.4)
        sets[row] = np.unique(np.where(is_own, rng.integers(0, 1 << 20, part.size), part))
    return {"items": np.concatenate(sets), "ends": np.cumsum([0, *map(len, sets)])}


def make_baskets(count, rng):
    copies = count // 5
    items = rng.integers(0, 1 << 20, (count, BASKET))
    items[-copies:] = items[:copies]
    items[-copies // 2 :, 0] = rng.integers(0, 1 << 20, copies // 2)
    return {"items": items.ravel(), "count": np.array(count)}


DATA = {
    "cosine": make_vectors,
    "hamming": make_bits,
    "weighted": make_weights,
    "containment": make_parts,
    "baskets": make_baskets,
}


def measured(measure, tool, count, folder):
    rng = np.random.default_rng(7)
    data = folder / "data.npz"
    out = folder / "out.npz"
    np.savez(data, **DATA[measure](count, rng))
    run = process.run(
        [sys.executable, WORKER, measure, tool, data, THRESHOLDS[measure], out], folder / "log"
    )
    answer = np.load(out)
    return (
        set(map(tuple, np.sort(answer["pairs"], axis=1).tolist())),
        float(answer["seconds"]),
        run.peak_bytes,
    )


def main():
    options = harness.made_arguments(__doc__, "100,000 items, and 1 million baskets")
    counts = dict.fromkeys(DATA, 100_000 if options.full else 10_000) | {
        "baskets": 1_000_000 if options.full else 100_000
    }
    jobs = [(measure, tool, counts[measure] // FEWER.get(tool, 1)) for measure, tool in TOOLS]
    # For a tool that gets fewer items, the exact one runs again on as many.
    jobs += [(measure, EXACT[measure], count) for measure, tool, count in jobs if tool in FEWER]
    rows = []
    truth = {}
    with tempfile.TemporaryDirectory() as name:
        for measure, tool, count in sorted(jobs, key=lambda job: job[1] != EXACT.get(job[0])):
            pairs, seconds, peak_bytes = measured(measure, tool, count, Path(name))
            if tool == EXACT.get(measure):
                truth[measure, count] = pairs
            known = truth.get((measure, count))
            rows.append(
                {
                    "measure": measure,
                    "tool": tool,
                    "items": count,
                    "threshold": THRESHOLDS[measure],
                    "seconds": seconds,
                    "peak_bytes": peak_bytes,
                    "pairs": len(pairs),
                    "recall": len(pairs & known) / len(known) if known else None,
                    "false": len(pairs - known) if known is not None else None,
                }
            )
    rows.sort(
        key=lambda row: (
            list(DATA).index(row["measure"]),
            -row["items"],
            row["tool"] != "neardup",
            row["tool"],
        )
    )
    harness.publish(
        "measures" if options.full else "measures_small",
        rows,
        harness.machine("faiss-cpu", "datasketch"),
    )


if __name__ == "__main__":
    main()
