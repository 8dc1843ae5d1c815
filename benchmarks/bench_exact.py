"""What does finding every pair cost, compared with banding, and how much does banding miss?

First table: the exact join, LSH at the default recall and SetSimilaritySearch (given ready-made
sets, one thread, with a time limit) list the pairs of real corpora. Second table: the share of the
true pairs, other than exact copies, that LSH finds at the default recall, and with the bands and
rows that datasketch would choose, on the same signatures.
"""

import multiprocessing
import time

import datasketch.lsh
import numpy as np
import pyarrow as pa
import SetSimilaritySearch

import harness
import neardup
from neardup.config import Config
from neardup.measures.jaccard import text_sets

THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95)
RECALL_THRESHOLDS = (0.5, 0.7, 0.8, 0.9)
TIMED = ("docs", "licences", "licence-rules")
ALL = (*TIMED, "multilingual", "articles-100", "articles-1000", "articles-2500", "customers")
# Customers are sets of items, one word each.
SETTINGS = {"customers": {"size": 1}}
PEER_SECONDS = 60


def run(texts, repeat, **settings):
    """The run with the least CPU time, which other work on the machine disturbed least, and its cost."""
    runs = []
    for _ in range(repeat):
        began = time.process_time()
        report = neardup.find_pairs(texts, **settings)
        runs.append((time.process_time() - began, report))
    return min(runs, key=lambda run: run[0])


def searched(texts, threshold):
    """Seconds and pairs of SetSimilaritySearch, or nothing if building and joining the sets takes too long."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(
        target=_search, args=(texts, threshold, sender)
    )
    process.start()
    sender.close()  # so that a failed process is noticed immediately, and not mistaken for a slow one
    found = receiver.recv() if receiver.poll(PEER_SECONDS) else (None, None)
    process.kill()
    process.join()
    return found


def _search(texts, threshold, sender):
    shingles, ends = text_sets(pa.concat_arrays(texts.chunks), Config())
    sets = [part.tolist() for part in np.split(shingles, ends[1:-1])]
    has_shingles = [own for own in sets if own]
    began = time.perf_counter()
    found = SetSimilaritySearch.all_pairs(
        has_shingles, similarity_func_name="jaccard", similarity_threshold=threshold
    )
    count = sum(1 for _ in found)
    sender.send((time.perf_counter() - began, count))


def cost(name, texts, threshold, repeat):
    exact_work, exact = run(texts, repeat, threshold=threshold, method="exact")
    lsh_work, lsh = run(texts, repeat, threshold=threshold, method="lsh")
    peer_seconds, peer_pairs = searched(texts, threshold)
    if peer_pairs is not None:
        assert peer_pairs == exact.pairs.num_rows, (peer_pairs, exact.pairs.num_rows)
    return {
        "corpus": name,
        "threshold": threshold,
        "pairs": exact.pairs.num_rows,
        "exact seconds": exact.seconds,
        "LSH seconds": lsh.seconds,
        "exact core-seconds": exact_work,
        "LSH core-seconds": lsh_work,
        "exact / LSH": exact_work / lsh_work,
        "SetSimilaritySearch seconds": peer_seconds
        if peer_seconds is not None
        else f"over {PEER_SECONDS}",
        "exact compared": exact.comparisons,
        "LSH compared": lsh.comparisons,
        "LSH pairs": lsh.pairs.num_rows,
        **{f"exact {stage}": exact.stages[stage] for stage in ("sketch", "link", "verify")},
    }


def keys_of(report):
    """Pairs of different sets as numbers, sorted."""
    pairs = report.pairs
    one = pairs.column("doc_a").to_numpy()
    other = pairs.column("doc_b").to_numpy()
    return (one * report.documents + other)[pairs.column("similarity").to_numpy() < 1]


def recall(name, texts, threshold):
    settings = {"threshold": threshold, **SETTINGS.get(name, {})}
    true = keys_of(neardup.find_pairs(texts, method="exact", **settings))
    ours = neardup.find_pairs(texts, method="lsh", **settings)
    bands, rows = datasketch.lsh._optimal_param(threshold, 128, 0.5, 0.5)
    theirs = neardup.find_pairs(texts, bands=bands, rows=rows, signature_filter=False, **settings)

    def share(report):
        return float(np.isin(true, keys_of(report)).mean()) if true.size else None

    return {
        "corpus": name,
        "threshold": threshold,
        "pairs of different sets": true.size,
        "bands x rows": f"{ours.plan.bands} x {ours.plan.rows}",
        "promised": ours.plan.recall_at_threshold,
        "recall": share(ours),
        "datasketch's bands x rows": f"{bands} x {rows}",
        "its chance at the threshold": theirs.plan.recall_at_threshold,
        "its recall": share(theirs),
    }


def main():
    options = harness.arguments(__doc__)
    for method in ("exact", "lsh"):
        neardup.find_pairs(["a b c d e f", "a b c d e f g"], method=method)
    about = harness.machine("datasketch", "SetSimilaritySearch")
    timed, every = (TIMED, ALL) if options.corpora else (("",), ("",))
    rows = []
    for corpus in timed:
        name, texts = harness.load_texts(options.corpora, corpus)
        rows += [cost(name, texts, threshold, options.repeat) for threshold in THRESHOLDS]
    harness.publish("exact", rows, about)
    rows = []
    for corpus in every:
        name, texts = harness.load_texts(options.corpora, corpus)
        rows += [recall(name, texts, threshold) for threshold in RECALL_THRESHOLDS]
    harness.publish("recall", rows, about)


if __name__ == "__main__":
    main()
