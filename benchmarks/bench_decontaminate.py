"""What does `neardup decontaminate` cost beside `neardup dedup`, and how often is it wrong?

Cost: CPU seconds and memory of both commands on the same files, by turns, best of some runs: edited copies
of real text, 250 MB (1 GB with --full), against 20,000 items, of which
1,000, or all, are from this text. False positives, with
--corpora: 1,000 items drawn from other text (pan13-train-texts) against the documents of each corpus.
Found: the same items, planted there with one edit each.
"""

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

import corpus
import harness
import neardup
import process

NEARDUP = [sys.executable, "-m", "neardup"]
NUM_ITEMS = 20_000
NUM_OWN = 1_000
CORPORA = ("docs", "licences", "multilingual")
OTHER = "pan13-train-texts"
SIZES = (12, 20, 24, 40, 60)
EDITS = ("none", "changed", "inserted", "deleted")


def draw_items(texts, count, rng):
    """Runs of words of texts, of several sizes."""
    items = []
    while len(items) < count:
        words = rng.choice(texts).split()
        size = rng.choice(SIZES)
        if len(words) > size:
            first = rng.randrange(len(words) - size)
            items.append(" ".join(words[first : first + size]))
    return items


def others(corpora, count, rng):
    """Items of other text; without corpora, of random words."""
    if corpora is None:
        return [
            " ".join(f"{rng.choice('abcdefgh')}{rng.randrange(30_000)}" for _ in range(40))
            for _ in range(count)
        ]
    return draw_items(texts_of(corpora / f"{OTHER}.parquet"), count, rng)


def texts_of(path):
    return pq.read_table(path, columns=["text"]).column("text").to_pylist()


def write_items(path, items):
    lines = (json.dumps({"id": f"q{at}", "text": text}) for at, text in enumerate(items))
    path.write_text("\n".join(lines) + "\n", "utf-8")


def compare_cost(source, corpora, num_bytes, repeat, folder):
    rng = random.Random(1)
    corpus.edited_copies(source, folder, num_bytes)
    train = folder / "parquet"
    texts = texts_of(source)
    own = draw_items(texts, NUM_ITEMS, rng)
    write_items(folder / "own.jsonl", own)
    write_items(
        folder / "items.jsonl", [*own[:NUM_OWN], *others(corpora, NUM_ITEMS - NUM_OWN, rng)]
    )
    against = ["decontaminate", train, "--against"]
    commands = {
        "dedup": ["dedup", train, "--dry-run"],
        "decontaminate": [*against, folder / "items.jsonl"],
        "decontaminate, ngram13": [*against, folder / "items.jsonl", "--rule", "ngram13"],
        "decontaminate, all items from this text": [*against, folder / "own.jsonl"],
    }
    runs = {name: [] for name in commands}
    for _ in range(repeat):
        for name, words in commands.items():
            command = [*NEARDUP, *words, "-o", folder / "out", "--overwrite", "-q"]
            runs[name].append(process.run(command, folder / "log"))
    best = {name: min(own, key=lambda run: run.cpu_seconds) for name, own in runs.items()}
    return [
        {
            "what": name,
            "text_bytes": corpus.text_bytes(train),
            "items": 0 if name == "dedup" else NUM_ITEMS,
            "cpu_seconds": run.cpu_seconds,
            "of_dedup": run.cpu_seconds / best["dedup"].cpu_seconds,
            "seconds": run.seconds,
            "peak_bytes": run.peak_bytes,
        }
        for name, run in best.items()
    ]


def edited(words, edit, rng):
    """One word changed, inserted or deleted; what is between spaces may be several words, such as "well-known"."""
    at = rng.choice([at for at, word in enumerate(words) if word.isalnum()] or [0])
    before = words[:at]
    if edit == "changed":
        return [*before, "zqzq", *words[at + 1 :]]
    if edit == "inserted":
        return [*before, "zqzq", *words[at:]]
    if edit == "deleted":
        return [*before, *words[at + 1 :]]
    return words


def check_corpus(name, texts, items, path):
    """Count what is found in documents as they are, and of items that are planted in them."""
    report = neardup.decontaminate(texts, against=path)
    sizes = report.items.column("words").to_pylist()
    found = set(report.contaminated.column("item_id").to_pylist())
    rng = random.Random(2)
    planted = list(texts)
    expected = set()
    for at, item in enumerate(items):
        words = item.split()
        edit = rng.choice(EDITS)
        doc = rng.randrange(len(planted))
        lines = planted[doc].split("\n")
        lines.insert(rng.randrange(len(lines) + 1), " ".join(edited(words, edit, rng)))
        planted[doc] = "\n".join(lines)
        if sizes[at] >= 20 or (edit == "none" and sizes[at] >= 8):
            expected.add((doc, f"q{at}"))
    again = neardup.decontaminate(planted, against=path)
    hits = set(
        zip(
            again.contaminated.column("doc_id").to_pylist(),
            again.contaminated.column("item_id").to_pylist(),
            strict=True,
        )
    )
    return {
        "what": name,
        "documents": len(texts),
        "items": len(items),
        "flagged": report.num_contaminated,
        "items_flagged": len(found),
        "planted": len(expected),
        "planted_found": len(expected & hits),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with docs.parquet and others")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each command")
    parser.add_argument("--megabytes", type=int, default=250, help="text to search")
    parser.add_argument("--full", action="store_true", help="1 GB of text")
    options = parser.parse_args()
    num_bytes = 10**9 if options.full else options.megabytes * 10**6
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = corpus.base(options.corpora, folder)
        rows = compare_cost(source, options.corpora, num_bytes, options.repeat, folder)
        if options.corpora:
            items = others(options.corpora, 1000, random.Random(1))
            write_items(folder / "drawn.jsonl", items)
            for own in CORPORA:
                _, column = harness.load_texts(options.corpora, own)
                rows.append(check_corpus(own, column.to_pylist(), items, folder / "drawn.jsonl"))
    harness.publish("decontaminate", rows, harness.machine())


if __name__ == "__main__":
    main()
