"""How fast do ready 64-bit hashes become a 128-slot signature, on one thread?"""

import os

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from FastSketchLSH import FastSimilaritySketch
from rensa import RMinHash

import harness
from neardup.kernels.sketch import fast_sketch, minhash

NUM_PERM = 128
NUM_SHINGLES = 3_000_000


def main():
    options = harness.arguments(__doc__)
    random = np.random.default_rng(1)
    multipliers = random.integers(0, 2**32, NUM_PERM, dtype=np.uint32) | np.uint32(1)
    addends = random.integers(0, 2**32, NUM_PERM, dtype=np.uint32)
    peer = FastSimilaritySketch(size=NUM_PERM, seed=1)
    rows = []
    for size in (30, 200, 1200, 10_000):
        num_docs = NUM_SHINGLES // size
        shingles = random.integers(1, 2**64, num_docs * size, dtype=np.uint64)
        ends = np.arange(num_docs + 1) * size
        peer_ends = ends.astype(np.uint64)
        signatures = np.empty((num_docs, NUM_PERM), np.uint32)
        works = {
            "neardup fast": lambda: fast_sketch(shingles, ends, multipliers, addends, signatures),
            "neardup minhash": lambda: minhash(shingles, ends, multipliers, addends, signatures),
            "rensa full set": lambda: RMinHash.digest_matrix_from_flat_token_hashes(
                shingles, peer_ends, NUM_PERM, 1
            ),
            "FastSketchLSH": lambda: peer.batch_csr(
                shingles, peer_ends, prehashed=True, num_threads=1
            ),
        }
        times = {}
        for tool, work in works.items():
            work()
            times[tool] = harness.best_seconds(work, options.repeat) / (num_docs * size) * 1e9
        rows.append(
            {"shingles a document": size}
            | {f"{tool}, ns a shingle": time for tool, time in times.items()}
        )
    harness.publish("sketch_kernels", rows, harness.machine("rensa", "FastSketchLSH"))


if __name__ == "__main__":
    main()
