"""What does verification cost, and does it stay linear in a hot bucket?

Comparisons per second on real corpora, then families of near-copies and of documents that share
half of their text: doubling their number must not quadruple the work.
"""

import numpy as np
import pyarrow as pa

import harness
import neardup
from neardup.kernels.similarity import Sets, similarities


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
    report = min(
        (neardup.deduplicate(texts, **settings) for _ in range(repeat)),
        key=lambda report: report.seconds,
    )
    return {
        "input": name,
        "settings": " ".join(f"{key}={value}" for key, value in settings.items()) or "defaults",
        "documents": report.documents,
        "removed": report.removed.num_rows,
        "pairs": report.pairs.num_rows if settings.get("pairs") else None,
        "compared": report.comparisons,
        "seconds": report.seconds,
        "verify seconds": report.stages["verify"],
        "comparisons/s": report.comparisons / max(report.stages["verify"], 1e-9),
    }


def exact_comparisons(repeat, size=700, num_pairs=200_000):
    """Exact comparisons alone: pairs of sets of 700 shingles, Jaccard 0.8."""
    random = np.random.default_rng(1)
    shared = size * 8 // 9
    sets = [np.sort(random.integers(1, 2**64, size, dtype=np.uint64)) for _ in range(1000)]
    partners = [
        np.sort(
            np.r_[
                random.choice(one, shared, replace=False),
                random.integers(1, 2**64, size - shared, dtype=np.uint64),
            ]
        )
        for one in sets
    ]
    shingles = np.concatenate(sets + partners)
    ends = np.arange(2001) * size
    left = np.arange(num_pairs) % 1000
    values = np.empty(num_pairs)
    seconds = harness.best_seconds(
        lambda: similarities(Sets(shingles, ends), left, left + 1000, values), repeat
    )
    return {
        "input": f"exact comparison alone, {size} shingles, J {values.mean():.2f}",
        "settings": "one thread",
        "compared": num_pairs,
        "seconds": seconds,
        "comparisons/s": num_pairs / seconds,
    }


def main():
    options = harness.arguments(__doc__)
    neardup.find_pairs(["a b c d e f", "a b c d e f g"])
    rows = [exact_comparisons(options.repeat)]
    for corpus in ("licences", "licence-rules", "docs") if options.corpora else ("licences",):
        name, texts = harness.load_texts(options.corpora, corpus)
        for settings in ({"pairs": True}, {}, {"cluster": "components"}):
            rows.append(run(name, texts, options.repeat, **settings))
    for family in (near_copies, half_shared):
        for count in (5_000, 10_000, 20_000):
            texts = pa.array(list(family(count, np.random.default_rng(count))), pa.large_string())
            for settings in ({}, {"cluster": "components"}):
                rows.append(run(family.__name__, texts, 2, **settings))
    harness.publish("verify", rows, harness.machine())


if __name__ == "__main__":
    main()
