"""The library: what each function returns, what a report contains, and its promises."""

from __future__ import annotations

import io
import itertools
import json
import math
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError, MissingExtraError, NotStoredError
from neardup.events import StageAdvanced, StageFinished, StageStarted, Warned
from support import oracles
from support.corpora import cut

REPORT_KEYS = [  # a contract: scripts read them
    *(
        "config",
        "plan",
        "documents",
        "kept",
        "removed",
        "rejected",
        "exact_duplicates",
        "pairs_verified",
        "seconds",
    ),
    *("bytes_read", "peak_memory_bytes", "stages"),
]
TABLES = ("kept", "removed", "clusters", "rejected", "pairs")
STAGES = ["read", "sketch", "collapse", "choose", "link", "verify", "select", "report"]
FOX = "the quick brown fox jumps over the lazy dog and runs away"


def numbered(first, stop):
    return " ".join(f"w{number}" for number in range(first, stop))


# At size=1 these have J(0, 1) = 0.9, J(0, 2) = 0.8, J(1, 2) = 8/9, and 3 is a copy of 0.
LADDER = [
    numbered(0, 20),
    numbered(0, 18),
    numbered(0, 16),
    numbered(0, 20).upper(),
    "something else",
]


# compare, shingles, signatures, jaccard


def test_compare_is_exact_and_the_estimate_is_near():
    comparison = neardup.compare(numbered(0, 900), numbered(300, 1200), size=1, num_perm=1024)
    assert comparison.jaccard == 600 / 1200
    assert abs(comparison.estimate - 0.5) < 4 * math.sqrt(0.25 / 1024)
    assert (comparison.shingles_a, comparison.shingles_b, comparison.shared) == (900, 900, 600)
    assert comparison.chance == neardup.plan(num_perm=1024).chance(0.5)


def test_compare_returns_containment_both_ways():
    comparison = neardup.compare(numbered(0, 10), numbered(0, 40), size=1)
    assert (comparison.containment_a, comparison.containment_b) == (1.0, 0.25)
    assert comparison.jaccard == 0.25
    turned = neardup.compare(numbered(0, 40), numbered(0, 10), size=1)
    assert (turned.containment_a, turned.containment_b) == (0.25, 1.0)


def test_compare_of_equal_texts_is_one():
    comparison = neardup.compare(FOX, FOX.upper())
    assert (comparison.jaccard, comparison.estimate, comparison.chance) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", FOX), (FOX, "..."), (" \n", "\u3000")])
def test_compare_with_an_empty_text_is_zero(a, b):
    comparison = neardup.compare(a, b)
    assert (comparison.jaccard, comparison.estimate, comparison.chance, comparison.shared) == (
        0,
        0,
        0,
        0,
    )
    assert (comparison.containment_a, comparison.containment_b) == (0, 0)


def test_compare_ignores_column_settings():
    config = neardup.Config(text_column="page", id_column="key", keep="max:score", strict=True)
    assert neardup.compare(FOX, FOX, config=config).jaccard == 1
    assert len(neardup.shingles(FOX, config=config)) == 8


@pytest.mark.parametrize("bad", [None, 3, b"bytes", ["a"], "\ud800"])
def test_single_texts_must_be_text(bad):
    for call in (
        lambda: neardup.compare(FOX, bad),
        lambda: neardup.signatures([FOX, bad]),
    ):
        with pytest.raises(DataError, match="text number 1 cannot be used: text is "):
            call()
    # A list in place of the only text is taken for a set of items, and the hint says how to compare these.
    expected = (
        "the documents are lists of values, not texts"
        if bad == ["a"]
        else "text number 0 cannot be used"
    )
    with pytest.raises(DataError, match=expected):
        neardup.shingles(bad)


def test_shingles_are_sorted_distinct_and_unsigned():
    shingles = neardup.shingles("a rose is a rose is a rose", size=3)
    assert shingles.dtype == np.uint64
    assert shingles.size == 3
    assert (shingles[1:] > shingles[:-1]).all()
    assert neardup.shingles("").size == 0


def test_shingles_of_a_multiset_count_repetitions():
    assert neardup.shingles("a rose is a rose is a rose", size=3, multiset=True).size == 6


def test_jaccard_of_shingles_is_that_of_compare():
    a, b = numbered(0, 50), numbered(10, 60)
    shared = neardup.jaccard(neardup.shingles(a), neardup.shingles(b))
    assert shared == neardup.compare(a, b).jaccard == 36 / 56


@pytest.mark.parametrize("num_perm", [1, 7, 100, 1000])
def test_minhash_signatures_of_any_size_are_the_first_slots_of_longer_ones(num_perm):
    settings = {"sketch": "minhash", "size": 1}
    signatures = neardup.signatures([FOX, "", "a b"] * 9, num_perm=num_perm, **settings)
    assert np.array_equal(
        signatures,
        neardup.signatures([FOX, "", "a b"] * 9, num_perm=1024, **settings)[:, :num_perm],
    )


def test_a_run_with_100_slots_finds_pairs_by_20_bands_of_5_rows():
    settings = {"sketch": "minhash", "num_perm": 100, "bands": 20, "rows": 5}
    report = neardup.find_pairs([numbered(0, 100), numbered(2, 100), "x"], size=1, **settings)
    assert report.pairs.to_pylist() == [{"doc_a": 0, "doc_b": 1, "similarity": 98 / 100}]
    assert (report.plan.num_perm, report.plan.bands, report.plan.rows) == (100, 20, 5)


@pytest.mark.parametrize("num_perm", [16, 128, 1024])
def test_signatures_have_one_row_per_text(num_perm):
    signatures = neardup.signatures([FOX, "", FOX.upper()], num_perm=num_perm)
    assert signatures.shape == (3, num_perm)
    assert signatures.dtype == np.uint32
    assert (signatures[1] == 2**32 - 1).all()
    assert (signatures[0] == signatures[2]).all()
    assert neardup.signatures([], num_perm=num_perm).shape == (0, num_perm)


def test_signatures_take_any_source():
    expected = neardup.signatures(LADDER)
    for source in (
        pa.chunked_array([LADDER[:2], [], LADDER[2:]], pa.string()),
        pa.table({"text": LADDER}),
        iter(LADDER),
    ):
        assert np.array_equal(neardup.signatures(source), expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({1, 2, 3}, {2, 3, 4}, 0.5),
        ([1, 1, 2], (2, 2), 0.5),
        (np.array([1, 2, 3]), np.array([3]), 1 / 3),
        (frozenset("ab"), {"a": 1, "b": 2}, 1.0),
        (set(), [], 0.0),
        (set(), {1}, 0.0),
    ],
)
def test_jaccard_takes_any_collection(a, b, expected):
    assert neardup.jaccard(a, b) == neardup.jaccard(b, a) == expected


@pytest.mark.parametrize("bad", ["text", b"text", 3, None, iter([1]), [[1], [2]], np.ones((2, 2))])
def test_jaccard_refuses_anything_but_a_set(bad):
    for a, b in ((bad, {1}), ({1}, bad)):
        with pytest.raises(
            DataError, match=r"must be a set or another collection|must be hashable"
        ):
            neardup.jaccard(a, b)


# What a report contains


def test_report_counts_and_says_what_was_chosen():
    report = neardup.deduplicate([*LADDER, None], size=1, method="lsh")
    assert (report.documents, report.exact_duplicates) == (6, 1)
    assert (report.kept.num_rows, report.removed.num_rows, report.rejected.num_rows) == (2, 3, 1)
    assert report.duplicate_ratio == 3 / 6
    assert report.bytes_read == sum(map(len, LADDER))
    assert str(report).startswith(
        "6 documents: 2 kept, 3 removed (1 exact), 1 rejected; 16 bands x 6 rows find 99.22 % of pairs at 0.8; "
    )
    assert neardup.deduplicate([]).duplicate_ratio == 0


def test_report_as_a_dict_is_json_with_the_documented_keys():
    report = neardup.find_pairs([*LADDER, None], size=1, threshold=np.float64(0.8))
    stored = json.loads(json.dumps(report.as_dict()))
    assert set(REPORT_KEYS) <= set(stored)
    assert {"method", "bands", "rows", "recall_at_threshold"} <= set(stored["plan"])
    assert stored["plan"]["recall_at_threshold"] == report.plan.recall_at_threshold
    assert (stored["documents"], stored["kept"], stored["removed"], stored["rejected"]) == (
        6,
        2,
        3,
        1,
    )
    assert stored["config"] == report.config.as_dict()
    assert neardup.Config(**stored["config"]).fingerprint() == report.config.fingerprint()
    assert list(stored["stages"]) == STAGES
    assert sum(stored["stages"].values()) <= stored["seconds"]
    assert stored["peak_memory_bytes"] > 10_000_000


@pytest.mark.parametrize("keep", ["first", "last", "longest"])
@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_every_table_is_in_input_order(keep, cluster):
    rng = random.Random(1)
    texts = [None if rng.random() < 0.1 else text for text in oracles.random_corpus(1, 200)]
    ids = [f"{rng.random()}" for _ in texts]
    report = neardup.find_pairs(texts, ids=ids, keep=keep, cluster=cluster, threshold=0.5, size=2)
    row_of = {doc_id: row for row, doc_id in enumerate(ids)}
    listed = [
        [row_of[doc_id] for doc_id in report.pairs.column(name).to_pylist()]
        for name in ("doc_a", "doc_b")
    ]
    pairs = list(zip(*listed, strict=True))
    assert pairs == sorted(pairs)
    assert all(a < b for a, b in pairs)
    for ordered in (
        [row_of[doc_id] for doc_id in report.kept.column("doc_id").to_pylist()],
        [row_of[doc_id] for doc_id in report.removed.column("doc_id").to_pylist()],
        [row_of[doc_id] for doc_id in report.clusters.column("doc_id").to_pylist()],
        report.rejected.column("row").to_pylist(),
    ):
        assert len(ordered) > 10
        assert ordered == sorted(set(ordered))


def test_clusters_name_the_kept_document_of_every_usable_one():
    report = neardup.deduplicate({"a": FOX, "b": "x", "c": None, "d": FOX})
    assert report.clusters.to_pylist() == [
        {"doc_id": "a", "cluster_id": "a", "cluster_size": 2},
        {"doc_id": "b", "cluster_id": "b", "cluster_size": 1},
        {"doc_id": "d", "cluster_id": "a", "cluster_size": 2},
    ]


def test_at_threshold_below_that_of_the_run_is_an_error_that_names_both():
    report = neardup.find_pairs(LADDER, size=1, threshold=0.8)
    with pytest.raises(
        ConfigError, match=r"at least 0.8, the threshold of this run, got 0.7[\s\S]*threshold=0.7"
    ):
        report.at_threshold(0.7)
    with pytest.raises(ConfigError, match=r"`threshold` must be a number in .*got 80"):
        report.at_threshold(80)


def test_at_threshold_returns_a_report_with_that_threshold():
    report = neardup.find_pairs(LADDER, size=1, threshold=0.8, bands=128, rows=1)
    assert report.removed.to_pydict() == {
        "doc_id": [1, 2, 3],
        "kept_id": [0, 0, 0],
        "similarity": [0.9, 0.8, 1.0],
    }
    again = report.at_threshold(0.85)
    assert again.removed.to_pydict() == {
        "doc_id": [1, 3],
        "kept_id": [0, 0],
        "similarity": [0.9, 1.0],
    }
    assert (again.config.threshold, again.plan.threshold) == (0.85, 0.85)
    assert again.at_threshold(1).removed.column("doc_id").to_pylist() == [3]
    assert report.removed.num_rows == 3


def test_at_threshold_warns_if_the_plan_misses_the_recall_target():
    report = neardup.find_pairs(LADDER, bands=9, rows=13)
    assert report.at_threshold(0.85).warnings == (
        "9 bands x 13 rows find 69 % of pairs at 0.85 (target 99 %)",
    )
    assert report.at_threshold(0.99).warnings == ()


def test_questions_about_pairs_need_stored_pairs():
    report = neardup.deduplicate(LADDER)
    for ask in (
        lambda: report.pairs,
        lambda: report.at_threshold(0.9),
        lambda: report.borderline(),
    ):
        with pytest.raises(
            NotStoredError, match=r"hint: pass pairs=True, or call neardup.find_pairs"
        ) as raised:
            ask()
        assert isinstance(raised.value, LookupError)


def test_borderline_lists_the_least_similar_pairs_first():
    report = neardup.find_pairs(LADDER, size=1, threshold=0.8, bands=128, rows=1)
    similarities = [0.8, 0.8, 16 / 18, 0.9, 0.9, 1.0]
    assert report.borderline().column("similarity").to_pylist() == similarities
    assert report.borderline(2).to_pydict() == {
        "doc_a": [0, 2],
        "doc_b": [2, 3],
        "similarity": [0.8, 0.8],
    }
    assert report.borderline(0).num_rows == 0
    for bad in (-1, 2.0, True, None, "3"):
        with pytest.raises(ConfigError, match="`n` must be a whole number >= 0, got "):
            report.borderline(bad)


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_reports_every_stage_to_its_end(threads, monkeypatch):
    cut(monkeypatch, batch_bytes=500)
    events = []
    neardup.deduplicate(
        oracles.random_corpus(2, 100),
        threshold=0.5,
        size=2,
        threads=threads,
        progress=events.append,
    )
    assert [event.stage for event in events if isinstance(event, StageStarted)] == STAGES
    assert [event.stage for event in events if isinstance(event, StageFinished)] == STAGES
    for started in (event for event in events if isinstance(event, StageStarted)):
        done = [
            event.done
            for event in events
            if isinstance(event, StageAdvanced) and event.stage == started.stage
        ]
        assert done == sorted(done)
        assert (done[-1] if started.total else None) == (started.total or None)
    assert len([event for event in events if isinstance(event, StageAdvanced)]) > 20


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("stage", STAGES)
def test_an_exception_in_a_progress_callback_is_raised(stage, threads):
    def stop(event):
        if isinstance(event, StageStarted) and event.stage == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        neardup.deduplicate(LADDER, threads=threads, progress=stop)
    assert neardup.deduplicate(LADDER, size=1, threads=threads).removed.num_rows == 3


def test_a_long_list_of_pairs_is_announced_with_its_length(monkeypatch):
    monkeypatch.setattr("neardup.pipeline.MANY_PAIRS", 6)
    events = []
    report = neardup.find_pairs([FOX * 2] * 4, progress=events.append)
    assert report.pairs.num_rows == 6
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith(
        "the list will have at least 6 pairs and take about 0.0 GB; to remove duplicates without listing"
    )
    assert events.index(Warned(report.warnings[0])) < events.index(StageStarted("verify", 0))
    assert neardup.find_pairs([FOX * 2] * 3).warnings == ()


# Settings that change how a text is read

PAGE = f"""<!doctype html><html><head><title>t</title><style>p {{color: red}}</style><script>var x = 1;</script></head>
<body><p>{FOX.replace("fox", "<b>fox</b>").replace(" and ", " &#97;nd<br>")}</p></body></html>"""


def test_html_is_compared_by_its_visible_text():
    assert neardup.deduplicate([FOX, PAGE]).removed.num_rows == 0
    report = neardup.deduplicate([FOX, PAGE], html=True)
    assert report.removed.to_pylist() == [{"doc_id": 1, "kept_id": 0, "similarity": 1.0}]
    assert neardup.deduplicate([PAGE], html=True).kept.column("text").to_pylist() == [PAGE]
    assert neardup.compare(FOX, PAGE, html=True).jaccard == 1


def test_broken_html_is_still_a_document():
    pages = ["<p", "<!--", "</div></div>", "\0<p>\0", "&#xD800;&#0;&bogus;", "<a href='", None]
    report = neardup.deduplicate(pages, html=True, collapse_empty=True)
    assert report.rejected.column("row").to_pylist() == [6]
    assert report.documents == report.kept.num_rows + report.removed.num_rows + 1


def test_html_without_its_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)
    with pytest.raises(MissingExtraError, match=r"hint: pip install 'neardup\[html\]'") as raised:
        neardup.deduplicate([PAGE], html=True)
    assert isinstance(raised.value, ImportError)


def test_numbers_are_equal_when_folded():
    invoices = [
        f"invoice {number} of 2{number:03d} is due in {number} days, please pay it"
        for number in (7, 12, 145)
    ]
    assert neardup.deduplicate(invoices).removed.num_rows == 0
    assert neardup.deduplicate(invoices, fold_numbers=True).removed.column(
        "similarity"
    ).to_pylist() == [1.0, 1.0]


def test_repetitions_count_in_a_multiset():
    texts = ["spam spam spam spam", "spam"]
    assert neardup.find_pairs(texts, size=1).pairs.num_rows == 1
    assert neardup.find_pairs(texts, size=1, multiset=True).pairs.num_rows == 0
    assert neardup.compare(*texts, size=1, multiset=True).jaccard == 0.25


def test_empty_documents_are_not_collapsed_by_default():
    texts = ["", "...", "word"]
    assert neardup.deduplicate(texts).kept.num_rows == 3
    report = neardup.deduplicate(texts, collapse_empty=True)
    assert report.removed.to_pylist() == [{"doc_id": 1, "kept_id": 0, "similarity": 1.0}]


def test_japanese_is_compared_character_by_character():
    page = "灯台は百年前に建てられ、今も夜ごとに沖の船へ光を送り続けている。村の子どもたちは毎週そこを訪ねる。"
    edited = page.replace("百年前", "九十年前")
    expected = oracles.jaccard(oracles.shingles(page), oracles.shingles(edited))
    assert 0.7 < expected < 1
    report = neardup.find_pairs(
        [page, "東京の天気は晴れです。", edited, page.replace("、", " ")], threshold=0.7
    )
    assert report.pairs.to_pylist() == [
        {"doc_a": 0, "doc_b": 2, "similarity": expected},
        {"doc_a": 0, "doc_b": 3, "similarity": 1.0},
        {"doc_a": 2, "doc_b": 3, "similarity": expected},
    ]


# Work that must stay linear


def near_copies(num_copies):
    """One page of 120 words, in each copy another word is replaced: J of two copies is at least 106 / 126."""
    rng = random.Random(7)
    words = numbered(0, 120).split()
    copies = []
    for number in range(num_copies):
        copy = list(words)
        copy[rng.randrange(len(copy))] = f"x{number}"
        copies.append(" ".join(copy))
    return copies


@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_a_family_of_near_copies_costs_one_comparison_each(cluster):
    compared = {}
    for num_copies in (2000, 4000, 5000):
        report = neardup.deduplicate(near_copies(num_copies), cluster=cluster)
        assert report.kept.num_rows <= 20
        compared[num_copies] = report.comparisons
    assert compared[4000] <= 2.2 * compared[2000]
    assert compared[5000] <= 1.1 * (5 / 4) * compared[4000]
    assert compared[5000] <= 20 * 5000


@pytest.mark.parametrize("plan", [{}, {"bands": 32, "rows": 4}, {"bands": 128, "rows": 1}], ids=str)
@pytest.mark.parametrize("mode", [{}, {"cluster": "components"}, {"pairs": True}], ids=str)
def test_a_hot_bucket_of_dissimilar_documents_needs_few_comparisons(plan, mode):
    half = numbered(0, 100)
    texts = [
        f"{half} " + " ".join(f"d{number}x{word}" for word in range(100)) for number in range(3000)
    ]
    report = neardup.deduplicate(texts, **plan, **mode)
    assert report.kept.num_rows == 3000
    assert report.comparisons < 3000 * 2999 // 2 // 100


def test_a_huge_document_is_read_next_to_small_ones():
    num_words = 2_600_000
    huge = numbered(0, num_words)
    assert len(huge) > 20_000_000
    report = neardup.find_pairs([FOX, huge, FOX.upper(), huge + " more"])
    assert report.pairs.to_pylist() == [
        {"doc_a": 0, "doc_b": 2, "similarity": 1.0},
        {"doc_a": 1, "doc_b": 3, "similarity": (num_words - 4) / (num_words - 3)},
    ]


# The five promises


def planted_pairs(num_pairs, shared, own, size):
    """Pairs that share `shared` of their shingles and have `own` more each; no two pairs have a word in common."""
    texts = []
    for pair in range(num_pairs):
        words = [f"p{pair}w{number}" for number in range(shared + 2 * own + 2 * (size - 1))]
        head = words[: shared + size - 1]
        texts += [
            " ".join(head + words[len(head) : len(head) + own]),
            " ".join(head + words[len(head) + own :][:own]),
        ]
    return texts


def least_found(num_pairs, recall, error=1e-6):
    """The count that Bin(num_pairs, recall) falls below with probability less than `error`."""
    below = 0.0
    count = -1
    while below < error:
        count += 1
        below += math.comb(num_pairs, count) * recall**count * (1 - recall) ** (num_pairs - count)
    return count


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("sketch", ["fast", "minhash"])
@pytest.mark.parametrize(
    ("shared", "own", "size"), [(80, 10, 5), (80, 10, 1), (8, 1, 1), (4, 1, 1), (800, 100, 5)]
)
def test_promises_1_and_2_pairs_at_the_threshold_are_found_and_no_others(
    shared, own, size, sketch, seed
):
    threshold = shared / (shared + 2 * own)
    num_pairs = 500 if shared > 500 else 1000
    texts = planted_pairs(num_pairs, shared, own, size)
    report = neardup.find_pairs(
        texts, threshold=threshold, size=size, sketch=sketch, seed=seed, method="lsh"
    )
    found = report.pairs.to_pylist()
    assert all(pair["doc_a"] + 1 == pair["doc_b"] and pair["doc_a"] % 2 == 0 for pair in found)
    assert {pair["similarity"] for pair in found} == {threshold}
    # One of 20 such runs falls below this with probability at most 2e-5.
    assert len(found) >= least_found(num_pairs, 0.99)


def test_promise_1_a_pair_just_below_the_threshold_is_never_reported():
    texts = planted_pairs(1000, 79, 10, 1)
    report = neardup.find_pairs(texts, threshold=0.8, size=1, method="lsh")
    assert report.comparisons > 900
    assert report.pairs.num_rows == report.removed.num_rows == report.pairs_verified == 0


@pytest.mark.parametrize("keep", ["first", "last", "longest"])
def test_promise_3_every_removed_document_has_a_similar_kept_one(keep):
    texts = oracles.random_corpus(3, 300)
    sets = [oracles.shingles(text, size=2) for text in texts]
    report = neardup.find_pairs(texts, keep=keep, threshold=0.6, size=2)
    kept = set(report.kept.column("doc_id").to_pylist())
    assert report.removed.num_rows > 50
    for row in report.removed.to_pylist():
        assert row["kept_id"] in kept
        assert (
            row["similarity"] == oracles.jaccard(sets[row["doc_id"]], sets[row["kept_id"]]) >= 0.6
        )
    assert not any({row["doc_a"], row["doc_b"]} <= kept for row in report.pairs.to_pylist())
    assert len(kept) + report.removed.num_rows + report.rejected.num_rows == len(texts)


def ipc_bytes(report):
    buffers = {}
    for name in TABLES:
        table = getattr(report, name)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        buffers[name] = sink.getvalue()
    return buffers


SPLITS = list(itertools.product((1, 2, 8), (1, 4 << 20, 1 << 40)))


# Each number of threads and each size of batches once, or every combination.
@pytest.mark.parametrize(
    "splits", [SPLITS[::4], pytest.param(SPLITS, marks=pytest.mark.long)], ids=["in turn", "every"]
)
@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_promise_4_same_bytes_for_any_threads_and_batches(cluster, splits, monkeypatch):
    texts = [*oracles.random_corpus(4, 400), None, *near_copies(50)]
    runs = []
    for threads, batch_bytes in splits:
        cut(monkeypatch, batch_bytes=batch_bytes)
        report = neardup.find_pairs(texts, cluster=cluster, threshold=0.5, size=2, threads=threads)
        counts = (
            report.documents,
            report.exact_duplicates,
            report.pairs_verified,
            report.comparisons,
            report.bytes_read,
        )
        runs.append((ipc_bytes(report), ipc_bytes(report.at_threshold(0.8)), counts))
    assert all(run == runs[0] for run in runs)


def test_promise_4_concurrent_runs_do_not_affect_each_other():
    texts = oracles.random_corpus(5, 300)
    expected = ipc_bytes(neardup.find_pairs(texts, threshold=0.5))
    with ThreadPoolExecutor(6) as pool:
        runs = pool.map(
            lambda threads: neardup.find_pairs(texts, threshold=0.5, threads=threads), [1, 2, 3] * 4
        )
        assert all(ipc_bytes(report) == expected for report in runs)


def test_promise_5_report_says_what_was_chosen_and_what_it_cost():
    report = neardup.deduplicate(LADDER, threshold=0.9, method="lsh")
    assert report.plan == neardup.plan(threshold=0.9)
    assert (report.plan.bands, report.plan.rows, report.plan.method) == (11, 10, "lsh")
    assert report.plan.recall_at_threshold >= 0.99
    assert report.config.threshold == 0.9
    assert list(report.stages) == [stage for stage in STAGES if stage != "choose"]
    assert list(neardup.deduplicate(LADDER, threshold=0.9).stages) == STAGES
    assert report.seconds > 0


def test_largest_clusters_name_their_weakest_member():
    words = [f"w{number}" for number in range(40)]
    chain = [" ".join(words[start : start + 30]) for start in (0, 2, 4)]
    report = neardup.deduplicate(
        [*chain, "a b c", "x y z", "X Y Z"], size=1, threshold=0.8, cluster="components"
    )
    assert report.largest_clusters().to_pylist() == [
        {"cluster_id": 0, "documents": 3, "weakest_id": 2, "similarity": 26 / 34},
        {"cluster_id": 4, "documents": 2, "weakest_id": 5, "similarity": 1.0},
    ]
    assert report.largest_clusters(1).num_rows == 1
    assert neardup.deduplicate(["a b c"]).largest_clusters().num_rows == 0


def test_largest_clusters_of_a_wrong_number_is_an_error():
    with pytest.raises(ConfigError, match="`n` must be a whole number >= 0, got -1"):
        neardup.deduplicate(["a b c"]).largest_clusters(-1)


def test_run_in_which_every_row_is_rejected_raises_the_first_reason():
    with pytest.raises(
        DataError, match="all 2 rows were rejected; the first is row 0: text is bytes, not str"
    ):
        neardup.deduplicate([b"abc def", b"abc def"])
    assert neardup.deduplicate([]).documents == 0


def test_run_in_which_most_rows_are_rejected_gives_a_python_warning():
    with pytest.warns(
        UserWarning, match="2 of 3 rows were rejected; the first is row 1: text is null"
    ) as caught:
        report = neardup.deduplicate(["a b c d e f", None, None])
    assert report.warnings[-1] == str(caught[-1].message)
    assert neardup.deduplicate(["a b c d e f", None]).num_rejected == 1


def test_progress_that_cannot_be_called_is_an_error():
    with pytest.raises(
        ConfigError, match="`progress` must be True, or a function that takes an event, got 3"
    ):
        neardup.deduplicate(["a"], progress=3)


def test_repr_of_a_report_is_one_line():
    assert repr(neardup.deduplicate(["a b c"])).startswith("<Report: 1 document: 1 kept, 0 removed")


def test_chains_that_end_below_the_threshold_are_counted_in_a_warning():
    words = [f"w{number}" for number in range(40)]
    chain = [" ".join(words[start : start + 30]) for start in (0, 2, 4)]
    report = neardup.deduplicate(chain, size=1, cluster="components")
    assert report.warnings == (
        "1 removed documents are below the threshold: cluster='components' follows chains of pairs",
    )
    assert neardup.deduplicate(chain, size=1).warnings == ()


def test_a_source_with_one_chunk_per_row_is_processed_in_one_batch():
    rows = pa.chunked_array([[text] for text in [FOX, FOX, "something else entirely"] * 100])
    events = []
    neardup.deduplicate(rows, progress=events.append)
    assert (
        sum(isinstance(event, StageAdvanced) and event.stage == "sketch" for event in events) == 1
    )


def test_report_survives_pickling():
    report = pickle.loads(pickle.dumps(neardup.find_pairs([FOX, FOX, "something else"])))  # noqa: S301
    assert report.at_threshold(1.0).removed.to_pylist() == [
        {"doc_id": 1, "kept_id": 0, "similarity": 1.0}
    ]


def test_at_threshold_keeps_the_bands_of_the_run():
    again = neardup.find_pairs([FOX, FOX], threshold=0.7, method="lsh").at_threshold(0.95)
    assert (again.config.bands, again.config.rows) == (again.plan.bands, again.plan.rows) == (17, 4)


def test_find_pairs_without_pairs_is_an_error():
    with pytest.raises(ConfigError, match="`pairs` must be left out, got False"):
        neardup.find_pairs(["a"], pairs=False)


def test_report_names_the_format_of_the_signatures():
    assert (
        neardup.deduplicate(["a"]).as_dict()["signature_format"]
        == "fast-3 word-5 perm-128 seed-1 unicode-14.0"
    )


def test_a_copy_follows_its_representative_even_if_another_kept_document_is_more_similar():
    texts = ["w0", "w0 w1", "w0 w1 w2", "w1 w0"]
    report = neardup.deduplicate(texts, size=1, threshold=0.5, method="exact")
    assert [tuple(row.values()) for row in report.removed.to_pylist()] == [(1, 0, 0.5), (3, 0, 0.5)]
