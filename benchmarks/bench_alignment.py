"""How well are passages copied with edits found in pairs of texts, and how fast?

With `--corpora`, the held-out half of pan13-train: pairs by a hash of their ids, which no setting was
chosen on. Without it, planted copies in the standard library, of which random shares of words are
changed, dropped, added or moved. Scored by plagdet, the measure of that task: the harmonic mean of
precision and recall over characters of both sides, divided by a penalty for passages that are found
in several pieces. `exact` is passages without edits.
"""

import argparse
import hashlib
import math
import random
import time
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

import harness
from neardup.align.shared_passages import share_passages
from neardup.align.words_in_text import words_of
from neardup.config import Config

SETTINGS = {
    "edits": Config(passages=True, edits=True),
    "exact": Config(passages=True),
}
NUM_PLANTED = 400
NO_CASES = "pairs without a passage"


def is_held_out(doc_a, doc_b):
    """Whether a pair is in the half that settings were not chosen on."""
    return bool(hashlib.sha256(f"{doc_a} {doc_b}".encode()).digest()[0] & 1)


def span_of(row):
    return row["start_a"], row["end_a"], row["start_b"], row["end_b"]


def annotated_pairs(corpora, half):
    """(kind, text a, text b, spans) of pairs; `half` is "held-out" or "tuning"."""
    texts = pq.read_table(corpora / "pan13-train-texts.parquet").to_pydict()
    by_id = dict(zip(texts["id"], texts["text"], strict=True))
    for row in pq.read_table(corpora / "pan13-train-cases.parquet").to_pylist():
        if is_held_out(row["doc_a"], row["doc_b"]) == (half == "held-out"):
            spans = [span_of(case) for case in row["cases"]]
            yield row["kind"], by_id[row["doc_a"]], by_id[row["doc_b"]], spans


def planted_pairs():
    """Two texts of the standard library, one with a passage of the other, edited to a share of its words."""
    rng = random.Random(1)
    texts = [text.as_py().split() for text in harness.standard_library()]
    texts = [words for words in texts if len(words) > 2000]
    for number in range(NUM_PLANTED):
        share = (None, 0.0, 0.1, 0.3)[number % 4]
        a, b = rng.sample(texts, 2)
        length = rng.randrange(60, 300)
        at_a, at_b = rng.randrange(1000), rng.randrange(1000)
        copied = a[at_a : at_a + length]
        if share is None:
            yield NO_CASES, " ".join(a[:1500]), " ".join(b[:1500]), []
            continue
        changed = edit(copied, share, rng)
        before = len(" ".join(b[:at_b])) + bool(at_b)
        start_a = len(" ".join(a[:at_a])) + bool(at_a)
        span = (
            *(start_a, start_a + len(" ".join(copied))),
            *(before, before + len(" ".join(changed))),
        )
        text_b = " ".join([*b[:at_b], *changed, *b[at_b:1500]])
        yield f"{share:.0%} of the words edited", " ".join(a[:1500]), text_b, [span]


def edit(words, share, rng):
    changed = []
    for word in words:
        draw = rng.random()
        if draw < share / 3:
            continue
        changed.append(rng.choice(words) if draw < 2 * share / 3 else word)
        if 2 * share / 3 < draw < share:
            changed.append(rng.choice(words))
    return changed


def merged_length(spans):
    total = 0
    reached = -1
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def covered(span, others):
    """Characters of both sides of a span that lie in the spans that touch it on both sides, and how many touch it."""
    start_a, end_a, start_b, end_b = span
    sides = [], []
    for other_a, other_end_a, other_b, other_end_b in others:
        in_a = max(start_a, other_a), min(end_a, other_end_a)
        in_b = max(start_b, other_b), min(end_b, other_end_b)
        if in_a[0] < in_a[1] and in_b[0] < in_b[1]:
            sides[0].append(in_a)
            sides[1].append(in_b)
    return merged_length(sides[0]) + merged_length(sides[1]), len(sides[0])


def size_of(span):
    return span[1] - span[0] + span[3] - span[2]


def plagdet(pairs):
    """Score pairs of (annotated spans, found spans)."""
    recalls = []
    precisions = []
    touching = []
    for cases, found in pairs:
        for span in cases:
            num_characters, num_touching = covered(span, found)
            recalls.append(num_characters / size_of(span))
            if num_touching:
                touching.append(num_touching)
        precisions += [covered(span, cases)[0] / size_of(span) for span in found]
    recall = sum(recalls) / max(1, len(recalls))
    precision = sum(precisions) / max(1, len(precisions))
    granularity = sum(touching) / len(touching) if touching else 1.0
    if not recall + precision:
        return 0.0, recall, precision, granularity
    mean = 2 * recall * precision / (recall + precision)
    return mean / math.log2(1 + granularity), recall, precision, granularity


def measure(name, pairs):
    """Align all pairs, and score the passages by kind."""
    config = SETTINGS[name]
    by_kind = defaultdict(list)
    num_bytes = 0
    seconds = 0.0
    for kind, text_a, text_b, cases in pairs:
        began = time.process_time()
        shared = share_passages(words_of(text_a, config), words_of(text_b, config), config)
        seconds += time.process_time() - began
        num_bytes += len(text_a.encode()) + len(text_b.encode())
        columns = [
            shared.columns[side].tolist() for side in ("start_a", "end_a", "start_b", "end_b")
        ]
        by_kind[kind].append((cases, list(zip(*columns, strict=True))))
    rows = []
    every = [pair for pairs in by_kind.values() for pair in pairs]
    for kind, scored in [*sorted(by_kind.items()), ("all", every)]:
        value, recall, precision, granularity = plagdet(scored)
        row = {"passages": name, "kind": kind, "pairs": len(scored)}
        if any(cases for cases, _ in scored):
            row |= {"plagdet": value, "recall": recall, "precision": precision}
            row |= {"granularity": granularity}
        row["false spans"] = sum(len(found) for cases, found in scored if not cases)
        if kind == "all":
            row["MB/s a core"] = num_bytes / 1e6 / seconds
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with pan13-train-*.parquet")
    parser.add_argument("--repeat", type=int, help="not used: every pair is aligned once")
    parser.add_argument("--half", choices=("held-out", "tuning"), default="held-out")
    given = parser.parse_args()
    if given.corpora is not None and (given.corpora / "pan13-train-cases.parquet").exists():
        source = f"pan13-train, {given.half} half"
        pairs = list(annotated_pairs(given.corpora, given.half))
    else:
        source = "planted copies in the standard library"
        pairs = list(planted_pairs())
    for config in SETTINGS.values():  # compile
        words = words_of("one two three", config)
        share_passages(words, words, config)
    rows = [row for name in SETTINGS for row in measure(name, pairs)]
    harness.publish("alignment", rows, harness.machine() | {"source": source})


if __name__ == "__main__":
    main()
