"""Copies of source code with known truth: how well similarity separates them from other files of their packages.

Python files of the standard library and C headers of this machine are copied with changes: other names and no comments,
other layout and comments, or other names and a tenth of the lines left out or moved. Each copy is compared with its
original, and each original with other files of its folder. AUC is the chance that a copy is more similar than another.

    python benchmarks/bench_code.py --repeat 1

With copydetect (0.5) in the environment named by COPYDETECT, the same pairs are scored by it.
"""

from __future__ import annotations

import io
import json
import keyword
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import tokenize
from pathlib import Path
from typing import Any

import numpy as np

import neardup
from harness import arguments, machine, publish

CASES = ("renamed", "layout", "edited")
# What is compared, by name; the last ones are candidates for the recommended size.
UNITS: dict[str, dict[str, Any]] = {
    "word 5": {"unit": "word", "size": 5},
    "char 8": {"unit": "char", "size": 8},
    "code 5": {"unit": "code", "size": 5},
    "code 8": {"unit": "code", "size": 8},
    "code 12": {"unit": "code", "size": 12},
    "code 16": {"unit": "code", "size": 16},
    "code 24": {"unit": "code", "size": 24},
    "code 12 keep": {"unit": "code", "size": 12, "code_names": "keep"},
}
NUM_FILES = 80
OTHERS = 4
C_WORDS = frozenset(
    keyword_
    for line in (
        "auto break case char const continue default do double else enum extern float for goto if inline int long",
        "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while",
    )
    for keyword_ in line.split()
)
# Scores the pairs of files that it reads as JSON.
PEER = """
import json, sys
from copydetect import CodeFingerprint, compare_files
prints, scores = {}, []
for a, b in json.load(sys.stdin):
    for path in (a, b):
        if path not in prints:
            prints[path] = CodeFingerprint(path, 25, 1)
    shares = compare_files(prints[a], prints[b])[1]
    scores.append(float(max(shares)))
json.dump(scores, sys.stdout)
"""


def python_files() -> list[Path]:
    """Files of packages of the standard library, several of each folder."""
    root = Path(sysconfig.get_path("stdlib"))
    return _several_of_each(
        path
        for path in sorted(root.rglob("*.py"))
        # Those of encodings are generated from one template, so they are copies.
        if not {"site-packages", "encodings", "test", "tests"} & set(path.parts)
    )


def c_files() -> list[Path]:
    """C headers of this machine, several of each folder."""
    return _several_of_each(sorted(Path("/usr/include").rglob("*.h")))


def _several_of_each(paths: Any) -> list[Path]:
    by_folder: dict[Path, list[Path]] = {}
    for path in paths:
        if 3_000 < path.stat().st_size < 40_000:
            by_folder.setdefault(path.parent, []).append(path)
    rng = random.Random(7)
    chosen: list[Path] = []
    for folder in sorted(by_folder):
        found = by_folder[folder]
        if len(found) > OTHERS:
            chosen += rng.sample(found, min(len(found), 10))
    return chosen[:NUM_FILES]


def changed_python(text: str, case: str, rng: random.Random) -> str:
    """Return a copy of a Python file: other names, other comments, or other names and statements."""
    names: dict[str, str] = {}
    before = None
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    made: list[tuple[int, str]] = []
    for token in tokens:
        kind, value = token.type, token.string
        is_name = kind == tokenize.NAME and not keyword.iskeyword(value)
        if case != "layout" and is_name:
            value = names.setdefault(value, f"item{len(names)}")
        if kind == tokenize.COMMENT:
            value = "# changed"
        is_documentation = before in (None, tokenize.INDENT) and value.startswith('"""')
        if is_documentation:
            value = '"""changed"""'
        made.append((kind, value))
        if kind not in (tokenize.NL, tokenize.COMMENT, tokenize.NEWLINE, tokenize.ENCODING):
            before = kind
    # Pygments reads ".import", which no formatter writes, as a name.
    copy = re.sub(r"(from\s+\.+)\s*import", r"\1 import", tokenize.untokenize(made))
    if case == "layout":
        copy = re.sub(r"^( +)", lambda found: found[1] * 2, copy, flags=re.MULTILINE)
        copy = copy.replace("\n", "\n\n# another remark\n", 40)
    return _edited(copy, rng) if case == "edited" else copy


def changed_c(text: str, case: str, rng: random.Random) -> str:
    """Return a copy of a C file, as `changed_python`."""
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        name = found[0]
        return name if name in C_WORDS else names.setdefault(name, f"item{len(names)}")

    if case == "layout":
        without = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        lines = []
        for line in without.split("\n"):
            is_plain = not line.lstrip().startswith("#") and not line.endswith("\\")
            lines.append(line.replace(" ", "   ").replace("\t", " ") if is_plain else line)
        return "\n".join(lines)
    copy = re.sub(
        r"(?m)^(?!\s*#).*$", lambda line: re.sub(r"\b[A-Za-z_]\w*", rename, line[0]), text
    )
    return _edited(copy, rng) if case == "edited" else copy


def _edited(text: str, rng: random.Random) -> str:
    """Leave a twentieth of the lines out, and move another one."""
    lines = [line for line in text.split("\n") if rng.random() > 0.05]
    for _ in range(len(lines) // 20):
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return "\n".join(lines)


def auc(copies: np.ndarray, others: np.ndarray) -> float:
    """Return the chance that a copy scores more than another file; a tie counts half."""
    wins = (copies[:, None] > others).mean() + (copies[:, None] == others).mean() / 2
    return round(float(wins), 4)


def best_threshold(copies: np.ndarray, others: np.ndarray) -> float:
    """Return the threshold with the best F1."""
    values = np.round(np.arange(0.1, 1.0, 0.05), 2)
    found = [(_f1(copies, others, value), -value) for value in values]
    return float(-max(found)[1])


def _f1(copies: np.ndarray, others: np.ndarray, threshold: float) -> float:
    right = int((copies >= threshold).sum())
    return 2 * right / max(right + int((others >= threshold).sum()) + copies.size, 1)


def pairs_of(files: list[Path], language: str, folder: Path) -> list[dict[str, Any]]:
    """Write the copies; return every pair with what it is."""
    change = changed_python if language == "python" else changed_c
    rng = random.Random(11)
    pairs: list[dict[str, Any]] = []
    for number, path in enumerate(files):
        text = path.read_text("utf-8", "replace")
        half = number % 2
        for case in CASES:
            copy = folder / f"{number}-{case}{path.suffix}"
            try:
                copy.write_text(change(text, case, rng), "utf-8")
            except (tokenize.TokenError, IndentationError):
                continue
            pairs.append({"a": path, "b": copy, "kind": case, "half": half})
        near = [other for other in files if other.parent == path.parent and other != path]
        for other in rng.sample(near, min(OTHERS, len(near))):
            pairs.append({"a": path, "b": other, "kind": "other", "half": half})
    return pairs


def scores_of(pairs: list[dict[str, Any]], language: str, settings: dict[str, Any]) -> np.ndarray:
    """Return the exact similarity of every pair."""
    chosen = dict(settings)
    if chosen["unit"] == "code":
        chosen["language"] = language
    sets: dict[Path, Any] = {}
    for pair in pairs:
        for path in (pair["a"], pair["b"]):
            if path not in sets:
                sets[path] = neardup.shingles(path.read_text("utf-8", "replace"), **chosen)
    found = []
    for pair in pairs:
        a, b = sets[pair["a"]], sets[pair["b"]]
        shared = np.intersect1d(a, b, assume_unique=True).size
        found.append(shared / max(a.size + b.size - shared, 1))
    return np.array(found)


def peer_scores(pairs: list[dict[str, Any]], python: str) -> np.ndarray:
    """Return the similarity by copydetect."""
    asked = json.dumps([[str(pair["a"]), str(pair["b"])] for pair in pairs])
    command = [python, "-c", PEER]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(done.stderr)
    return np.array(json.loads(done.stdout))


def judged(pairs: list[dict[str, Any]], scores: np.ndarray) -> dict[str, Any]:
    """Return AUC of every case, the threshold of one half, and precision and recall on the other half."""
    kinds = np.array([pair["kind"] for pair in pairs])
    halves = np.array([pair["half"] for pair in pairs])
    others = scores[kinds == "other"]
    row: dict[str, Any] = {case: auc(scores[kinds == case], others) for case in CASES}
    is_copy = kinds != "other"
    tuned = best_threshold(scores[is_copy & (halves == 0)], scores[~is_copy & (halves == 0)])
    copies = scores[is_copy & (halves == 1)]
    wrong = scores[~is_copy & (halves == 1)]
    right = int((copies >= tuned).sum())
    row |= {
        "threshold": tuned,
        "precision": round(right / max(right + int((wrong >= tuned).sum()), 1), 4),
        "recall": round(right / copies.size, 4),
        "unchanged": round(float((scores[kinds == "layout"] == 1).mean()), 4),
    }
    return row


def throughput(files: list[Path], language: str) -> dict[str, float]:
    """Return megabytes a CPU second of tokens and shingles, and of words and shingles."""
    texts = [path.read_text("utf-8", "replace") for path in files]
    size = sum(len(text.encode()) for text in texts) / 1e6
    rates = {}
    for name, settings in (("code", {"unit": "code", "language": language}), ("word", {})):
        neardup.signatures(texts[:2], **settings)
        began = time.process_time()
        neardup.signatures(texts, **settings)
        rates[name] = round(size / (time.process_time() - began), 2)
    return rates


def main() -> None:
    """Score both languages and save the table."""
    arguments(__doc__ or "")
    rows = []
    speeds = {}
    peer = os.environ.get("COPYDETECT")
    for language, files in (("python", python_files()), ("c", c_files())):
        with tempfile.TemporaryDirectory() as folder:
            pairs = pairs_of(files, language, Path(folder))
            counts = {
                kind: sum(pair["kind"] == kind for pair in pairs) for kind in (*CASES, "other")
            }
            print(language, len(files), "files", counts, file=sys.stderr)
            for name, settings in UNITS.items():
                row = judged(pairs, scores_of(pairs, language, settings))
                rows.append({"language": language, "tool": f"neardup {name}"} | row)
                print(rows[-1], file=sys.stderr)
            if peer:
                row = judged(pairs, peer_scores(pairs, peer))
                rows.append({"language": language, "tool": "copydetect 0.5"} | row)
                print(rows[-1], file=sys.stderr)
        speeds[language] = throughput(files, language)
    about = machine("numpy", "pygments") | {"megabytes_a_cpu_second": speeds}
    publish("code", rows, about)


if __name__ == "__main__":
    main()
