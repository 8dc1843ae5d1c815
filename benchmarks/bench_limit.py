"""How close do the kernels come to the same algorithm in C? One core, ASCII words to 128-slot signatures.

limit.c is the hot path written by hand, compiled for this machine (gcc -O3 -march=native); its
signatures must be equal. Both process the same buffers in turns, and the best of --repeat counts,
so that other work on the machine affects both alike. `share` is the speed of neardup relative to C;
`folded` and `shingled` show where C spends its time.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import harness
from neardup.config import Config
from neardup.kernels.keys import shingle_key
from neardup.measures import jaccard

SOURCE = Path(__file__).parent / "limit.c"
FLAGS = ("-O3", "-march=native", "-fPIC", "-shared")


def compile_limit(compiler, folder):
    library = Path(folder) / "limit.so"
    subprocess.run([compiler, *FLAGS, str(SOURCE), "-o", str(library)], check=True)  # noqa: S603
    loaded = ctypes.CDLL(str(library)).signatures
    loaded.restype = ctypes.c_long
    return loaded


def in_c(compiled, texts, config):
    """Return a function of the depth that writes all signatures, and the array that it writes to."""
    source, offsets = jaccard.text_buffers(texts)
    source = np.concatenate([source, np.zeros(64, np.uint8)])
    longest = int(np.diff(offsets).max(initial=0))
    folded = np.zeros(longest + 128, np.uint8)
    inside = np.zeros(longest // 64 + 2, np.uint64)
    shingles = np.zeros(longest // 2 + 2, np.uint64)
    out = np.empty((len(texts), config.num_perm), np.uint32)
    multipliers, addends = jaccard._coefficients()
    log_slots = config.num_perm.bit_length() - 1
    arrays = (
        source,
        offsets,
        shingle_key(config.seed),
        multipliers,
        addends,
        folded,
        inside,
        shingles,
        out,
    )
    text, ends, key, *rest = (ctypes.c_void_p(array.ctypes.data) for array in arrays)

    def run(depth):
        assert arrays[0].size  # they must outlive the call
        compiled(text, ends, ctypes.c_long(len(texts)), config.size, key, log_slots, *rest, depth)

    return run, out


def seconds(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(name, texts, compiled, repeat):
    config = Config()
    run, written = in_c(compiled, texts, config)
    run(3)
    assert np.array_equal(written, jaccard.text_signatures(texts, config)), (
        "C computes different signatures"
    )
    times = {"neardup": [], "C": [], "shingled": [], "folded": []}
    for _ in range(repeat):
        times["neardup"].append(seconds(lambda: jaccard.text_signatures(texts, config)))
        for label, depth in (("C", 3), ("shingled", 2), ("folded", 1)):
            times[label].append(seconds(lambda: run(depth)))
    best = {label: min(taken) for label, taken in times.items()}
    megabytes = pc.sum(pc.binary_length(texts)).as_py() / 1e6
    return {
        "corpus": name,
        "MB": megabytes,
        "neardup MB/s": megabytes / best["neardup"],
        "C MB/s": megabytes / best["C"],
        "share": best["C"] / best["neardup"],
        "C, shingled MB/s": megabytes / best["shingled"],
        "C, folded MB/s": megabytes / best["folded"],
    }


def main():
    options = harness.arguments(__doc__)
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("bench_limit.py needs gcc")
    name, texts = harness.load_texts(options.corpora, "docs")
    texts = texts.cast(pa.large_string())
    texts = texts.filter(pc.string_is_ascii(texts)).combine_chunks()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measure(
                f"{name}, ASCII documents",
                texts,
                compile_limit(compiler, folder),
                5 * options.repeat,
            )
        ]
        spoken = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    about = harness.machine() | {"gcc": spoken.stdout.splitlines()[0], "flags": " ".join(FLAGS[:2])}
    harness.publish("limit", rows, about)


if __name__ == "__main__":
    main()
