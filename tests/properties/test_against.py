"""Reference documents and their copies: every pair with an input document is listed, and no other result changes.

Few words make many copies, so that classes hold both reference and input documents, beside
near-copies of either kind.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local import engine as local
from neardup.engines.local.engine import LocalEngine
from neardup.events import Watch
from neardup.io.documents.in_memory import InMemoryDocuments
from neardup.theory.plan import plan_for
from support import corpora, oracles
from support.corpora import Truth
from support.grids import pairwise_grid

# One equal slot of 128 makes a bucket: the oracle needs no signatures.
BY_BANDS = {"method": "lsh", "bands": 128, "rows": 1, "signature_filter": False}
METHODS = {"exact": {"method": "exact"}, "lsh": BY_BANDS}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)
ONLY_AGAINST = pytest.mark.parametrize("only_against", [False, True], ids=["", "only_against"])


class Ahead(InMemoryDocuments):
    """Documents in memory; the first ones are reference documents."""

    num_reference_parts = 1

    def __init__(self, documents, num_references):
        super().__init__(documents, documents.num_rows)
        self.num_references = num_references


def run(documents, num_references, **chosen):
    """Run the stages on (text, group, priority) with an engine that has no workspace."""
    config = Config(size=1, against="old", **chosen)
    texts, groups, priorities = map(list, zip(*documents, strict=True))
    columns = [
        list(range(len(texts))),
        texts,
        [schema.REFERENCE_PRIORITY] * num_references + priorities[num_references:],
        groups,
    ]
    source = Ahead(pa.table(columns, schema=schema.DOCUMENTS), num_references)
    outcome = pipeline.run(source, plan_for(config), config, LocalEngine(1), Watch())
    removed = {
        row["row"]: (row["kept_row"], row["similarity"]) for row in outcome.selection.to_pylist()
    }
    pairs = [tuple(row.values()) for batch in outcome.row_pairs or () for row in batch.to_pylist()]
    return removed, pairs, outcome.exact_duplicates


def truth(
    documents,
    num_references,
    *,
    threshold,
    cluster="leader",
    collapse_empty=False,
    only_against=False,
):
    """The expected result in plain Python: removed, pairs, and input documents that are a copy of a better one."""
    sets = [oracles.shingles(text, size=1) for text, _, _ in documents]
    groups = [group for _, group, _ in documents]
    pairs = oracles.shares_group(
        oracles.true_pairs(sets, threshold, collapse_empty=collapse_empty), groups
    )
    pairs = (
        oracles.across(pairs, num_references)
        if only_against
        else oracles.without_references(pairs, range(num_references))
    )
    own = sorted(range(num_references, len(documents)), key=lambda row: (documents[row][2], row))
    removed = oracles.select(cluster, [*range(num_references), *own], pairs, sets)
    removed = {row: match for row, match in removed.items() if row >= num_references}
    copies = {b for (_, b), value in pairs.items() if value == 1}
    return removed, [(a, b, value) for (a, b), value in pairs.items()], len(copies)


DOCUMENT = st.tuples(
    st.lists(st.sampled_from("abcdef"), max_size=6).map(" ".join),
    st.sampled_from([0, 0, 0, -5]),
    st.integers(0, 2),
)


@pytest.mark.slow("hundreds of runs")
@EVERY_METHOD
def test_every_pair_with_an_own_document_is_listed(method):
    @given(
        documents=st.lists(DOCUMENT, min_size=1, max_size=14),
        share=st.floats(0, 1),
        threshold=st.sampled_from([0.3, 0.5, 0.6, 0.8, 1.0]),
        rule=st.sampled_from([{}, {"cluster": "components"}, {"only_against": True}]),
        collapse_empty=st.booleans(),
    )
    def check(documents, share, rule, **chosen):
        chosen |= rule
        num_references = round(share * len(documents))
        removed, pairs, num_copies = truth(documents, num_references, **chosen)
        assert run(documents, num_references, pairs=True, **chosen, **METHODS[method]) == (
            removed,
            pairs,
            num_copies,
        )
        assert run(documents, num_references, **chosen, **METHODS[method]) == (
            removed,
            [],
            num_copies,
        )

    check()


def corpus(seed, num_documents=60):
    """Pages of a few families, most of them copies or near-copies of another one, in two groups."""
    rng = random.Random(seed)
    families = [[f"{name}{number}" for number in range(12)] for name in "abcd"]
    rows = []
    for number in range(num_documents):
        words = list(rng.choice(families))
        for _ in range(rng.choice([0, 0, 1, 2])):
            words[rng.randrange(12)] = f"edit{rng.randrange(2)}"
        text = "" if rng.random() < 0.1 else " ".join(words)
        rows.append({"id": f"d{number}", "text": text, "site": rng.choice(["", "", "x"])})
    return rows


NUM_OLD = 25
FIRSTS = {"old.jsonl": 0, "new.jsonl": NUM_OLD}


@pytest.fixture
def files(tmp_path):
    rows = corpus(7)
    names = {"old.jsonl": rows[:NUM_OLD], "new.jsonl": rows[NUM_OLD:]}
    return rows, [corpora.write_json_lines(tmp_path / name, part) for name, part in names.items()]


def truth_of(rows, **chosen):
    by_site = chosen.pop("group_column", None)
    groups = [row["site"] for row in rows] if by_site else None
    return Truth(corpora.texts_of(rows), num_references=NUM_OLD, groups=groups, **chosen)


@pytest.mark.parametrize(
    ("chosen", "how", "method"),
    pairwise_grid(
        (
            {},
            {"group_column": "site"},
            {"cluster": "components", "keep": "last"},
            {"only_against": True},
        ),
        ("held", "shelves", "blocks"),
        METHODS,
    ),
)
def test_files_agree_in_memory_and_in_blocks(method, how, chosen, files, tmp_path, monkeypatch):
    rows, (old, new) = files
    if how != "held":
        corpora.shrink(monkeypatch, 50_000)
    if how == "blocks":
        plan_shelves = local.plan_shelves
        monkeypatch.setattr(
            local,
            "plan_shelves",
            lambda members, size, limit: plan_shelves(members, size, 20_000),  # noqa: ARG005
        )
    common = METHODS[method] | {"against": str(old), "threshold": 0.5, "size": 2} | chosen
    report = corpora.deduplicate([new], tmp_path / "out", pairs=True, **common)
    expected = truth_of(rows, **chosen)
    assert corpora.pair_rows(report.pairs, FIRSTS) == expected.pairs
    assert report.num_pairs == len(expected.pairs)
    assert corpora.removed_rows(report, FIRSTS) == expected.removed
    without = corpora.deduplicate([new], tmp_path / "without", **common)
    assert without.removed.to_pylist() == report.removed.to_pylist()
    assert without.exact_duplicates == report.exact_duplicates > 0


@EVERY_METHOD
@ONLY_AGAINST
def test_stored_pairs_support_a_higher_threshold(only_against, method, files, tmp_path):
    rows, (old, new) = files
    common = METHODS[method] | {
        "against": str(old),
        "threshold": 0.5,
        "size": 2,
        "only_against": only_against,
    }
    report = corpora.deduplicate([new], tmp_path / "out", pairs=True, **common)
    expected = truth_of(rows, threshold=0.8, only_against=only_against)
    again = report.at_threshold(0.8)
    assert corpora.removed_rows(again, FIRSTS) == expected.removed
    assert again.removed_against == expected.count_against(expected.removed) > 0
    assert again.removed_within == len(expected.removed) - again.removed_against
    for threshold in (0.5, 0.8):
        listed = neardup.find_pairs(
            tmp_path / "out", out=tmp_path / f"{threshold}.jsonl", threshold=threshold
        )
        expected = truth_of(rows, threshold=threshold, only_against=only_against)
        assert corpora.pair_rows(listed.pairs, FIRSTS) == expected.pairs


@EVERY_METHOD
def test_with_only_against_input_documents_do_not_affect_each_other(method, files, tmp_path):
    rows, (old, new) = files
    common = METHODS[method] | {
        "against": str(old),
        "threshold": 0.5,
        "size": 2,
        "only_against": True,
    }
    removed = corpora.deduplicate([new], tmp_path / "out", **common).removed.to_pylist()
    alone = corpora.write_json_lines(tmp_path / "alone.jsonl", rows[NUM_OLD::3])
    found = corpora.deduplicate([alone], tmp_path / "third", **common).removed.to_pylist()
    chosen = {row["id"] for row in rows[NUM_OLD::3]}
    names = ("doc_id", "kept_id", "similarity")
    assert [[row[name] for name in names] for row in found] == [
        [row[name] for name in names] for row in removed if row["doc_id"] in chosen
    ]
    assert 0 < len(found) < len(chosen)


@ONLY_AGAINST
def test_the_number_of_pairs_is_announced_exactly(only_against, files, tmp_path, monkeypatch):
    rows, (old, new) = files
    pairs = truth_of(rows, only_against=only_against).pairs
    copies = [pair for pair, similarity in pairs.items() if similarity == 1]
    for least, announced in ((len(pairs), len(pairs)), (len(copies), len(copies))):
        monkeypatch.setattr(pipeline, "MANY_PAIRS", least)
        common = {
            "method": "exact",
            "against": str(old),
            "threshold": 0.5,
            "size": 2,
            "only_against": only_against,
        }
        report = corpora.find_pairs([new], tmp_path / f"{least}.csv", **common)
        [warning] = report.warnings
        assert f"at least {announced} pairs" in warning
