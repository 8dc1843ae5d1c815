"""How many small text files per second does `neardup dedup` read, compare and write?

A folder of 100 folders of 1,000 files of 60 words each; every file is kept, so every file is
written. Times include the start of the process; kernels are already compiled. `load_average` shows
whether the machine was quiet.
"""

import random
import sys
import tempfile
from pathlib import Path

import harness
import process

FOLDERS = 100
FILES = 1_000
WORDS = 60
VOCABULARY = [f"w{number}" for number in range(5_000)]


def make(folder, num_folders):
    draw = random.Random(1)
    for number in range(num_folders):
        below = folder / f"{number:03}"
        below.mkdir(parents=True)
        for file in range(FILES):
            (below / f"{number * FILES + file:06}.txt").write_text(
                " ".join(draw.choices(VOCABULARY, k=WORDS))
            )


def measure(texts, out, *options):
    command = [sys.executable, "-m", "neardup", "dedup", texts, "-o", out, "--quiet", *options]
    done = process.run(command, out.with_suffix(".log"))
    num_files = sum(1 for path in (out / "kept").rglob("*.txt"))
    return {
        "options": " ".join(options) or "-",
        "files": num_files,
        "seconds": done.seconds,
        "files/s": num_files / done.seconds,
        "CPU seconds": done.cpu_seconds,
        "files/CPU s": num_files / done.cpu_seconds,
        "peak MB": done.peak_bytes / 1e6,
    }


def main():
    options = harness.made_arguments(__doc__, "ten times as many files")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make(folder / "few", 1)
        measure(folder / "few", folder / "warm")
        make(folder / "texts", FOLDERS * (10 if options.full else 1))
        about = harness.machine()
        rows = [
            measure(folder / "texts", folder / f"out{number}", *chosen)
            for number, chosen in enumerate([("--memory", "400MB"), ("--memory", "2GB")])
        ]
    harness.publish("small_files", rows, about)


if __name__ == "__main__":
    main()
