"""The sample of an audit: draw documents, and compare every document of the corpus with them exactly.

`draw` and `AuditSample.partners` process batches of documents; their results do not depend on batch size
or threads.
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.io.columns.sorted_search import find_sorted
from neardup.kernels import audit as kernel
from neardup.kernels.mixing import FIRST_MULTIPLIER, GOLDEN_MULTIPLIER
from neardup.kernels.similarity import Sets
from neardup.measures import jaccard
from neardup.measures.base import I64, U64, band_keys
from neardup.search.prefix_index import PrefixIndex, pick
from neardup.theory.plan import FILTER_LOSS, Plan

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# The S-curve is interpolated linearly between this many points, with an error below 1e-5.
_CURVE_STEPS: Final = 1 << 12
# Chances are added up as integers in this unit, so that the order of batches does not matter.
CHANCE_UNITS: Final = 1 << 30
# The hashes that select the sample are below this.
DRAW_RANGE: Final = 1 << 63


def draw_keys(part: int, rows: I64, seed: int) -> I64:
    """Return the non-negative hash of each row of a part; the rows with the smallest hashes are sampled."""
    with np.errstate(over="ignore"):
        first_of_part = np.uint64(part) << np.uint64(32)
        salt = np.uint64(seed) * FIRST_MULTIPLIER
        keys = rows.astype(np.uint64) + first_of_part + salt
        for shift in (30, 27, 31):
            keys = (keys ^ (keys >> np.uint64(shift))) * GOLDEN_MULTIPLIER
        keys ^= keys >> np.uint64(32)
    return (keys >> np.uint64(1)).view(np.int64)


def draw(batch: pa.RecordBatch, below: int, config: Config) -> pa.RecordBatch:
    """Return the documents of a batch, as schema.SAMPLED, that have shingles and a hash less than `below`."""
    is_drawn = batch.column("draw").to_numpy() < below
    drawn = batch.filter(pa.array(is_drawn))
    sets = jaccard.text_sets(drawn.column("text"), config)
    has_shingles = np.diff(sets.ends) > 0
    return drawn.filter(pa.array(has_shingles))


class AuditTally:
    """Counts for every set of the sample; thread-safe.

    weights: its pairs, counted twice with a reference document, because only one side of such a
    pair can be sampled;
    found: those of them that the run finds; chances: the sum of their chances to be found, in
    CHANCE_UNITS;
    pairs: the pairs, each once; drawn: those whose other document is in the sample too; listed: for
    every document of the sample, the weights of its pairs that the run has listed.
    """

    def __init__(self, num_sets: int, num_docs: int) -> None:
        self.weights = np.zeros(num_sets, np.int64)
        self.found = np.zeros(num_sets, np.int64)
        self.chances = np.zeros(num_sets, np.int64)
        self.pairs = np.zeros(num_sets, np.int64)
        self.drawn = np.zeros(num_sets, np.int64)
        self.listed = np.zeros(num_docs, np.int64)
        self._lock = threading.Lock()

    def add(
        self, numbers: I64, is_reference: Bools, is_found: Bools, chances: F64, is_drawn: Bools
    ) -> None:
        """Add pairs of the sets with these numbers."""
        weights = np.where(is_reference, 2, 1)
        units = np.rint(chances * CHANCE_UNITS).astype(np.int64)
        with self._lock:
            np.add.at(self.weights, numbers, weights)
            np.add.at(self.found, numbers, weights * is_found)
            np.add.at(self.chances, numbers, weights * units)
            np.add.at(self.pairs, numbers, 1)
            np.add.at(self.drawn, numbers, is_drawn.astype(np.int64))

    def add_listed(self, docs: I64, is_reference: Bools) -> None:
        """Add listed pairs of the sampled documents at these positions."""
        with self._lock:
            np.add.at(self.listed, docs, np.where(is_reference, 2, 1))


class AuditSample:
    """The sampled documents, indexed, with equal sets merged; `tally` holds the counts.

    rows: of the documents, ascending; numbers: the set of each; claimed: encoded pairs, ascending,
    whose similarity is needed even if they were found; listed: every pair that the run has listed
    of a sampled document, encoded and ascending, with the position of the document; None if the run
    lists no pairs, so that found pairs are recomputed. `claims` encodes a pair as one number.
    """

    def __init__(self, rows: I64, texts: pa.Array, groups: I64, plan: Plan, config: Config) -> None:
        self.rows = rows
        self._plan = plan
        self._config = config
        self.only_against = config.only_against
        digests = jaccard.sketch(texts, plan, config, groups).digests
        _, firsts, numbers = np.unique(digests, axis=0, return_index=True, return_inverse=True)
        self.numbers: I64 = numbers.reshape(-1)
        self._sets = jaccard.text_sets(texts.take(pa.array(firsts)), config)
        self._signatures = jaccard.set_signatures(self._sets, config)
        self._keys = band_keys(self._signatures, plan)
        self._index = PrefixIndex.of(self._sets, config.threshold, groups[firsts])
        self._curve = _curve(plan)
        self.claimed: I64 = np.empty(0, np.int64)
        self.listed: tuple[I64, I64] | None = None
        self.num_sets = firsts.size
        self.tally = AuditTally(self.num_sets, rows.size)

    def claims(self, numbers: I64, rows: I64) -> I64:
        """Encode pairs of a set and a row as one number each."""
        return rows * self.num_sets + numbers

    def row_of_claim(self, claim: np.int64) -> int:
        """Return the row of a pair that `claims` has encoded."""
        return int(claim // self.num_sets)

    def chances(self, similarities: F64) -> F64:
        """Return the chance that a pair of each similarity is found."""
        steps = np.linspace(0, 1, self._curve.size)
        return np.interp(similarities, steps, self._curve)

    def partners(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Tally the pairs of the sample with a batch of documents; return those missed or claimed, as PARTNERS.

        With `only_against` only reference documents count.
        """
        if self.only_against:
            batch = batch.filter(pc.equal(batch.column("priority"), schema.REFERENCE_PRIORITY))
        groups = batch.column("group").to_numpy()
        seen = self._index.nothing_seen()
        docs_at = []
        picked = []
        pairs = []
        num_docs = 0
        for start, shingles, ends in jaccard.shingle_runs(batch.column("text"), self._config):
            own = groups[start : start + ends.size - 1]
            candidates = self._index.find_candidates(Sets(shingles, ends), own, start, seen)
            docs, inverse = np.unique(candidates[:, 0], return_inverse=True)
            docs_at.append(docs + start)
            picked.append(pick(shingles, ends, docs))
            pairs.append(np.stack([inverse + num_docs, candidates[:, 1]], axis=1))
            num_docs += docs.size
        if not num_docs:
            return schema.one_batch([], schema.PARTNERS)
        shingles, ends = _end_to_end(picked)
        at, numbers, values, is_found = self._verify(shingles, ends, np.concatenate(pairs))
        chosen = np.concatenate(docs_at)[at]
        documents = batch.select(["row", "priority"]).take(pa.array(chosen))
        return self._count(documents, numbers, values, is_found)

    def _verify(self, shingles: U64, ends: I64, pairs: I64) -> tuple[I64, I64, F64, Bools]:
        """Verify candidate pairs; return document, set, similarity, and whether the run finds the pair."""
        sets = jaccard.raw_sets(shingles, ends)
        values = np.empty(pairs.shape[0])
        kernel.partner_similarities(*sets, *self._sets, pairs, self._config.threshold, values)
        is_similar = values > 0
        pairs = pairs[is_similar]
        is_found = self._find(sets, pairs)
        return pairs[:, 0], pairs[:, 1], values[is_similar], is_found

    def _find(self, sets: Sets, pairs: I64) -> Bools:
        is_found = np.ones(pairs.shape[0], np.bool_)
        if self._plan.method != "exact" and is_found.size:
            docs, own_at = np.unique(pairs[:, 0], return_inverse=True)
            own = Sets(*pick(*sets, docs))
            signatures = jaccard.set_signatures(own, self._config)
            keys = band_keys(signatures, self._plan)
            own_pairs = np.stack([own_at, pairs[:, 1]], axis=1)
            least = self._plan.min_agreement
            kernel.mark_found(
                signatures, keys, self._signatures, self._keys, own_pairs, least, is_found
            )
        return is_found

    def _count(
        self, documents: pa.RecordBatch, numbers: I64, values: F64, is_found: Bools
    ) -> pa.RecordBatch:
        """Count pairs, and return those to be listed."""
        rows = documents.column("row").to_numpy()
        is_reference = documents.column("priority").to_numpy() == schema.REFERENCE_PRIORITY
        if self.listed is not None:
            is_found = self._find_listed(rows, numbers, is_reference)
        is_drawn, _ = find_sorted(self.rows, rows)
        self.tally.add(numbers, is_reference, is_found, self.chances(values), is_drawn)
        is_claimed, _ = find_sorted(self.claimed, self.claims(numbers, rows))
        is_listed = ~is_found | is_claimed
        columns = [column[is_listed] for column in (rows, numbers, values, is_found)]
        return schema.batch_of(schema.PARTNERS, *columns)

    def is_listed(self, docs: I64, rows: I64) -> Bools:
        """Return which pairs of a sampled document, by position, and a row the run has listed."""
        if self.listed is None:
            return np.zeros(docs.size, np.bool_)
        listed, listed_docs = self.listed
        num_docs = self.rows.size
        listed_rows = listed // self.num_sets
        known = np.sort(listed_rows * num_docs + listed_docs)
        is_listed, _ = find_sorted(known, rows * num_docs + docs)
        return is_listed

    def _find_listed(self, rows: I64, numbers: I64, is_reference: Bools) -> Bools:
        """Count the pairs that the run has listed, and return which are listed for all documents of the set."""
        if self.listed is None:
            raise TypeError("the run lists no pairs")
        claims, docs = self.listed
        pairs = self.claims(numbers, rows)
        starts = np.searchsorted(claims, pairs, side="left")
        counts = np.searchsorted(claims, pairs, side="right") - starts
        before = np.cumsum(counts) - counts
        within = np.arange(counts.sum()) - np.repeat(before, counts)
        own_docs = docs[np.repeat(starts, counts) + within]
        self.tally.add_listed(own_docs, np.repeat(is_reference, counts))

        is_drawn, at = find_sorted(self.rows, rows)
        is_itself = is_drawn & (self.numbers[at] == numbers)
        num_docs = np.bincount(self.numbers, minlength=self.num_sets)[numbers]
        is_listed: Bools = counts == num_docs - is_itself
        return is_listed


def _curve(plan: Plan) -> F64:
    """The chance to be found at evenly spaced similarities: the S-curve minus the loss of the signature filter."""
    if plan.method == "exact":
        return np.ones(2)
    chances = np.array([plan.chance(step / _CURVE_STEPS) for step in range(_CURVE_STEPS + 1)])
    if plan.min_agreement:
        chances[:-1] -= FILTER_LOSS
    kept: F64 = np.maximum(chances, 0.0)
    return kept


def _end_to_end(picked: list[tuple[U64, I64]]) -> tuple[U64, I64]:
    """Concatenate the shingles of documents from several runs."""
    sizes = np.concatenate([np.diff(ends) for _, ends in picked])
    shingles = np.concatenate([own for own, _ in picked])
    return shingles, np.r_[0, np.cumsum(sizes)]
