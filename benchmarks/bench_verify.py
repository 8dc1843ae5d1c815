"""What does verification cost, and does it stay linear in a hot bucket?

Comparisons a second on the real corpora, then families of near-copies and of documents that share half of their text:
doubling their number must not quadruple the work.
"""

import numpy as np
import pyarrow as pa

import harness
import neardup


def near_copies(count, random):
    page = [f"word{number}" for number in range(400)]
    for _ in range(count):
        words = list(page)
        for at in random.integers(0, len(words), 4):
            words[at] = f"edit{random.integers(1_000_000)}"
        yield " ".join(words)


def half_shared(count, random):
    shared = [f"word{number}" for number in range(200)]
    for _ in range(count):
        yield " ".join(shared + [f"own{random.integers(1_000_000_000)}" for _ in range(130)])


def run(name, texts, repeat, **settings):
    report = neardup.deduplicate(texts, **settings)
    seconds = harness.best_seconds(lambda: neardup.deduplicate(texts, **settings), repeat)
    return {
        "input": name,
        "settings": " ".join(f"{key}={value}" for key, value in settings.items()) or "defaults",
        "documents": report.documents,
        "removed": report.removed.num_rows,
        "pairs": report.pairs.num_rows if settings.get("pairs") else None,
        "compared": report.pairs_verified,
        "seconds": seconds,
        "verify seconds": report.stages["verify"],
        "comparisons/s": report.pairs_verified / max(report.stages["verify"], 1e-9),
    }


def main():
    options = harness.arguments(__doc__)
    neardup.find_pairs(["a b c d e f", "a b c d e f g"])
    rows = []
    for corpus in ("licences", "licence-rules", "docs") if options.corpora else ("licences",):
        name, texts = harness.load_texts(options.corpora, corpus)
        for settings in ({"pairs": True}, {}, {"cluster": "components"}):
            rows.append(run(name, texts, options.repeat, **settings))
    for family in (near_copies, half_shared):
        for count in (5_000, 10_000, 20_000):
            texts = pa.array(list(family(count, np.random.default_rng(count))), pa.large_string())
            for settings in ({}, {"cluster": "components"}):
                rows.append(run(family.__name__, texts, 1, **settings))
    harness.publish("verify", rows, harness.machine())


if __name__ == "__main__":
    main()
