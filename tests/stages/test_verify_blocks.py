"""A component in blocks gives the same result as a whole; reference documents and groups match plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import schema
from neardup.config import Config
from neardup.stages import match
from neardup.stages import verify as verify_stage
from neardup.stages.verify import verify
from neardup.stages.verify_blocks import verify_blocks
from neardup.theory.plan import plan_for
from support import oracles
from support.grids import turning_grid
from support.plain_kernels import plain_match

# In plain Python, with prefix lists from the first document on.
PREFIX = plain_match(-1)
MODES = {
    "leaders": {},
    "pairs": {"pairs": True},
    "closure": {"cluster": "components"},
    "closure with pairs": {"cluster": "components", "pairs": True},
}
ALL_MODES = pytest.mark.parametrize("mode", MODES)
COLUMNS = pa.schema([("component", pa.int64()), *schema.DOCUMENTS])


class MemoryBlocks:
    """Blocks of given sizes, with the spilled documents in a list."""

    def __init__(self, batch, sizes, stored_size=2):
        cuts = np.cumsum([0, *sizes])
        self._blocks = [batch.slice(start, size) for start, size in zip(cuts, sizes, strict=False)]
        self._put = []
        self._stored_size = stored_size

    def __iter__(self):
        return iter(self._blocks)

    def put(self, batch):
        self._put.append(batch)

    def stored(self):
        if self._put:
            yield from (
                pa.Table.from_batches(self._put)
                .combine_chunks()
                .to_batches(max_chunksize=self._stored_size)
            )


def batch_of(documents):
    """The one component of (row, text, priority, group), in keep order."""
    ordered = sorted(documents, key=lambda document: (document[2], document[0]))
    columns = zip(*ordered, strict=True) if ordered else [[]] * 4
    return pa.record_batch([[0] * len(ordered), *map(list, columns)], schema=COLUMNS)


def config_of(mode, threshold):
    """Every pair of these small sets shares a bucket, so that the oracle needs no signatures."""
    return Config(
        size=1, bands=128, rows=1, threshold=threshold, signature_filter=False, **MODES[mode]
    )


def by_row(verified):
    """The result for each row, except the number of comparisons; partners in any order."""
    return {
        row["row"]: (
            row["kept_row"],
            row["similarity"],
            sorted(zip(row["partners"], row["partner_similarities"], strict=True)),
        )
        for row in verified.to_pylist()
    }


@st.composite
def components(draw, *, groups=(0,), priorities=(schema.REFERENCE_PRIORITY, 0, 0, 1)):
    """Documents of few words, in any order of rows, and sizes of blocks that cover them."""
    texts = draw(
        st.lists(
            st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7), min_size=1, max_size=14
        )
    )
    rows = draw(st.permutations(range(len(texts))))
    documents = [
        (row, " ".join(words), draw(st.sampled_from(priorities)), draw(st.sampled_from(groups)))
        for row, words in zip(rows, texts, strict=True)
    ]
    sizes = []
    largest = draw(st.integers(1, len(texts)))
    while sum(sizes) < len(texts):
        sizes.append(draw(st.integers(1, min(largest, len(texts) - sum(sizes)))))
    return documents, sizes


THRESHOLD = st.sampled_from([0.2, 1 / 3, 0.5, 0.6, 0.8, 1.0])


@ALL_MODES
@given(component=components(groups=(0, 0, -5)), threshold=THRESHOLD, stored_size=st.integers(1, 5))
def test_blocks_give_the_same_result_as_the_whole_component(
    mode, component, threshold, stored_size
):
    documents, sizes = component
    config = config_of(mode, threshold)
    plan = plan_for(config)
    batch = batch_of(documents)
    in_blocks = verify_blocks(MemoryBlocks(batch, sizes, stored_size), plan, config)
    assert in_blocks.schema == schema.VERIFIED
    assert in_blocks.column("row").to_pylist() == batch.column("row").to_pylist()
    assert by_row(in_blocks) == by_row(verify(batch, plan, config))


@ALL_MODES
@pytest.mark.parametrize("seed", range(2))
def test_blocks_with_prefix_lists_give_the_same_result(monkeypatch, mode, seed):
    rng = np.random.default_rng(seed)
    documents = [
        (
            row,
            " ".join(rng.choice(list("abcdefghi"), rng.integers(1, 9))),
            schema.REFERENCE_PRIORITY if row % 5 == 0 else row % 3,
            0,
        )
        for row in range(24)
    ]
    config = config_of(mode, 0.5)
    plan = plan_for(config)
    batch = batch_of(documents)
    expected = by_row(verify(batch, plan, config))
    monkeypatch.setattr(verify_stage, "match_components", PREFIX.match_components)
    with np.errstate(over="ignore"):
        assert by_row(verify(batch, plan, config)) == expected
        assert by_row(verify_blocks(MemoryBlocks(batch, [3, 9, 1, 11]), plan, config)) == expected


@pytest.mark.parametrize(("block_size", "mode"), turning_grid([1, 7, 50, 400], MODES))
def test_blocks_of_a_default_plan_give_the_same_result_as_the_whole_component(mode, block_size):
    """Bands of several rows and the signature filter, as in a real run; a block of 1 is tried on fewer documents."""
    rng = np.random.default_rng(3)
    num_docs = 40 if block_size == 1 else 300
    page = [f"word{number}" for number in range(60)]
    documents = []
    for row in range(num_docs):
        words = list(page if rng.random() < 0.7 else page[::-1])
        for at in rng.integers(0, len(words), rng.integers(1, 5)):
            words[at] = f"edit{rng.integers(50)}"
        documents.append(
            (
                row,
                " ".join(words),
                schema.REFERENCE_PRIORITY if row % 11 == 0 else int(rng.integers(4)),
                0,
            )
        )
    config = Config(threshold=0.6, **MODES[mode])
    plan = plan_for(config)
    batch = batch_of(documents)
    sizes = [block_size] * -(-num_docs // block_size)
    expected = by_row(verify(batch, plan, config))
    assert sum(kept is not None for kept, _, _ in expected.values()) > 5
    assert by_row(verify_blocks(MemoryBlocks(batch, sizes, 20), plan, config)) == expected


def expected_by_row(documents, mode, threshold):
    """The expected result for each row, in plain Python."""
    ordered = sorted(documents)
    sets = [oracles.shingles(text, size=1) for _, text, _, _ in ordered]
    references = [row for row, _, priority, _ in ordered if priority == schema.REFERENCE_PRIORITY]
    pairs = oracles.without_references(oracles.true_pairs(sets, threshold), references)
    pairs = oracles.shares_group(pairs, [group for *_, group in ordered])
    order = [row for row, *_ in sorted(documents, key=lambda document: (document[2], document[0]))]
    if "cluster" in MODES[mode]:
        removed = oracles.verified_closure(order, pairs, sets, references)
    else:
        removed = oracles.verified_leaders(order, pairs)
    place = {row: at for at, row in enumerate(order)}
    partners = {row: [] for row in order}
    for (a, b), similarity in pairs.items() if "pairs" in MODES[mode] else ():
        late, early = (a, b) if place[a] > place[b] else (b, a)
        partners[late].append((early, similarity))
    return {row: (*removed.get(row, (None, None)), sorted(partners[row])) for row in order}


@ALL_MODES
@given(component=components(), threshold=THRESHOLD)
def test_reference_documents_are_kept_and_matched_as_in_plain_python(mode, component, threshold):
    documents, _ = component
    config = config_of(mode, threshold)
    assert by_row(verify(batch_of(documents), plan_for(config), config)) == expected_by_row(
        documents, mode, threshold
    )


@ALL_MODES
@given(component=components(groups=(0, 1, -(2**63), 2**63 - 1)), threshold=THRESHOLD)
def test_documents_of_different_groups_are_never_compared(mode, component, threshold):
    documents, _ = component
    config = config_of(mode, threshold)
    assert by_row(verify(batch_of(documents), plan_for(config), config)) == expected_by_row(
        documents, mode, threshold
    )


def test_two_reference_documents_joined_through_another_are_both_kept():
    documents = [
        (0, "a b c d", 0, 0),
        (1, "a b c", schema.REFERENCE_PRIORITY, 0),
        (2, "b c d", schema.REFERENCE_PRIORITY, 0),
    ]
    config = config_of("closure with pairs", 0.5)
    verified = by_row(verify(batch_of(documents), plan_for(config), config))
    assert verified == {
        1: (None, None, []),
        2: (None, None, []),
        0: (1, 0.75, [(1, 0.75), (2, 0.75)]),
    }


def test_document_matched_by_an_earlier_block_finds_a_better_match_in_its_own():
    documents = [
        (9, "a b c d e f", 0, 0),
        (5, "a b c d x y", 1, 0),
        (4, "a b c d e x", 1, 0),
        (7, "a b c d x", 2, 0),
    ]
    config = config_of("leaders", 0.6)
    whole = verify(batch_of(documents), plan_for(config), config)
    for sizes in ([1, 3], [2, 2], [1, 1, 1, 1]):
        assert by_row(
            verify_blocks(MemoryBlocks(batch_of(documents), sizes), plan_for(config), config)
        ) == by_row(whole)
    assert by_row(whole)[7][:2] == (5, 5 / 6)
    assert by_row(whole)[4][:2] == (9, 5 / 7)


@ALL_MODES
def test_closure_may_hold_documents_with_nothing_in_common(mode):
    chain = [(row, " ".join("abcdefgh"[row : row + 3]), 0, 0) for row in range(6)]
    config = config_of(mode, 0.5)
    whole = by_row(verify(batch_of(chain), plan_for(config), config))
    assert (
        by_row(verify_blocks(MemoryBlocks(batch_of(chain), [2, 2, 2]), plan_for(config), config))
        == whole
    )
    if "cluster" in MODES[mode]:
        assert whole[5][:2] == (0, 0.0)


@ALL_MODES
def test_no_blocks_give_no_rows(mode):
    verified = verify_blocks(
        MemoryBlocks(batch_of([]), []), plan_for(Config()), config_of(mode, 0.5)
    )
    assert verified.schema == schema.VERIFIED
    assert verified.num_rows == 0


def test_leaders_compare_a_block_only_with_kept_documents_of_earlier_blocks():
    """Of 200 near-copies one is kept, so 199 comparisons are enough, in blocks too."""
    documents = [(row, f"a b c d e f g h i{row}", 0, 0) for row in range(200)]
    config = config_of("leaders", 0.7)
    verified = verify_blocks(MemoryBlocks(batch_of(documents), [20] * 10), plan_for(config), config)
    assert sum(verified.column("compared").to_pylist()) <= 2 * 199


def test_few_kept_documents_are_compared_with_a_block_in_one_walk(monkeypatch):
    """However many batches they were spilled in: a walk costs what the block costs."""
    documents = [
        (row, f"a b c d e f g h i{row}" if row % 5 else f"x{row} y{row}", 0, 0)
        for row in range(200)
    ]
    config = config_of("leaders", 0.7)
    plan = plan_for(config)
    batch = batch_of(documents)
    expected = by_row(verify(batch, plan, config))
    walks = []

    def match_components(*arguments):
        walks.append(arguments)
        return match.match_components(*arguments)

    monkeypatch.setattr(verify_stage, "match_components", match_components)
    in_blocks = verify_blocks(MemoryBlocks(batch, [50] * 4, stored_size=1), plan, config)
    assert by_row(in_blocks) == expected
    assert len(walks) == 4
