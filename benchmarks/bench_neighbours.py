"""How fast, with how much memory and what recall are the 10 nearest neighbours of every item found?

100,000 baskets of 20 items (Jaccard), 100,000 vectors of 64 numbers (cosine) and 100,000 of 256
bits (Hamming), each in families of 20 variants of one item; a tenth of that without --full.
Recall@10 is the share of answers at least as similar as the tenth best that brute force finds, so
that any of several equally similar ones counts. To add a tool, write a function in
peers/measure_neighbours.py; to add a measure, add its data and similarity here.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import harness
import process

sys.path.append(str(Path(__file__).parent / "peers"))
from measure_neighbours import NOBODY, TOOLS

WORKER = Path(__file__).parent / "peers" / "measure_neighbours.py"
EXACT = {
    "jaccard": "scipy, brute force",
    "cosine": "numpy, brute force",
    "hamming": "faiss IndexBinaryFlat",
}
K = 10
FAMILY = 20
BASKET = 20
# Rounding of 32-bit products must not make two equally similar ones differ.
TIE = 1e-5


def make_baskets(count, rng):
    """Distinct items in every basket: the n-th place takes items that are n modulo the size of a basket."""
    stems = np.repeat(rng.integers(0, 1 << 16, (count // FAMILY, BASKET)), FAMILY, axis=0)
    is_own = rng.random(stems.shape) < rng.uniform(0, 0.6, (count, 1))
    return {
        "items": np.where(is_own, rng.integers(0, 1 << 16, stems.shape), stems) * BASKET
        + np.arange(BASKET)
    }


def make_vectors(count, rng):
    stems = np.repeat(rng.standard_normal((count // FAMILY, 64)), FAMILY, axis=0)
    return {
        "vectors": (
            stems + rng.uniform(0.1, 1, (count, 1)) * rng.standard_normal(stems.shape)
        ).astype(np.float32)
    }


def make_bits(count, rng):
    stems = np.repeat(rng.integers(0, 2, (count // FAMILY, 256), np.uint8), FAMILY, axis=0)
    return {
        "packed": np.packbits(
            stems ^ (rng.random(stems.shape) < rng.uniform(0, 0.2, (count, 1))), axis=1
        )
    }


def shared_items(data, one, two):
    return (data["items"][one] == data["items"][two]).sum(axis=1)


def cosines(data, one, two):
    vectors = data["vectors"].astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1)
    return np.einsum("ij,ij->i", vectors[one], vectors[two]) / (lengths[one] * lengths[two])


def equal_bits(data, one, two):
    return -np.unpackbits(data["packed"][one] ^ data["packed"][two], axis=1).sum(
        axis=1, dtype=np.int64
    )


# A measure: its data, and how similar two items of it are, on any scale.
MEASURES = {
    "jaccard": (make_baskets, shared_items),
    "cosine": (make_vectors, cosines),
    "hamming": (make_bits, equal_bits),
}


def similarities(measure, data, nearest):
    """The similarity of every answer; minus infinity where there is none."""
    rows = np.repeat(np.arange(len(nearest)), nearest.shape[1])
    found = MEASURES[measure][1](data, rows, np.maximum(nearest.ravel(), 0)).astype(np.float64)
    return np.where(nearest == NOBODY, -np.inf, found.reshape(nearest.shape))


def measured(measure, tool, count, folder):
    data = MEASURES[measure][0](count, np.random.default_rng(7))
    stored = folder / "data.npz"
    out = folder / "out.npz"
    np.savez(stored, **data)
    run = process.run([sys.executable, WORKER, measure, tool, stored, K, out], folder / "log")
    answer = np.load(out)
    return similarities(measure, data, answer["nearest"]), float(answer["seconds"]), run.peak_bytes


def main():
    options = harness.made_arguments(__doc__, "100,000 items")
    count = 100_000 if options.full else 10_000
    rows = []
    tenth = {}
    with tempfile.TemporaryDirectory() as name:
        for measure, tool in sorted(TOOLS, key=lambda job: job[1] != EXACT[job[0]]):
            found, seconds, peak_bytes = measured(measure, tool, count, Path(name))
            if tool == EXACT[measure]:
                tenth[measure] = found.min(axis=1, keepdims=True) - TIE
            rows.append(
                {
                    "measure": measure,
                    "tool": tool,
                    "items": count,
                    "k": K,
                    "seconds": seconds,
                    "peak_bytes": peak_bytes,
                    "recall": float((found >= tenth[measure]).mean()),
                }
            )
    rows.sort(
        key=lambda row: (
            list(MEASURES).index(row["measure"]),
            row["tool"] != "neardup",
            row["tool"],
        )
    )
    harness.publish(
        "neighbours" if options.full else "neighbours_small",
        rows,
        harness.machine("faiss-cpu", "datasketch", "scipy"),
    )


if __name__ == "__main__":
    main()
