"""Stage 5 of 6 for a component larger than memory: verify it block by block in keep order, with the result of `verify`.

With leaders, a block is compared with the kept documents of earlier blocks, which were spilled, and
with itself. With pairs or the transitive closure, it is compared with all documents of earlier
blocks, then with itself. A document that already has a match in an earlier block cannot become a
leader, but may still find a better match.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.events import Tally
from neardup.kernels.similarity import similarities
from neardup.kernels.verify import COMPARED, ENTERED, ComparedDocuments, InitialState, MatchOutcome
from neardup.measures.base import joined
from neardup.measures.registry import measure_of
from neardup.stages.verify import (
    F64,
    I64,
    U8,
    Bools,
    PutPairs,
    are_references,
    compare,
    prepare,
    roles_within,
    verified,
)
from neardup.theory.plan import Plan


class ComponentBlocks(Protocol):
    """The documents of one component; batches have the columns component, row, text, priority, group."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the blocks in keep order; iterations may overlap."""

    def put(self, batch: pa.RecordBatch) -> None:
        """Spill documents to disk."""

    def stored(self) -> Iterator[pa.RecordBatch]:
        """Yield the spilled documents, in batches no larger than a block."""


@dataclasses.dataclass(kw_only=True, slots=True)
class _Outcome:
    """The results for the documents of one block so far.

    start: position of the first one in the component; kept_rows: the best match so far; values: the
    similarity to it;
    put: takes the pairs found, which are `pairs` unless the engine takes them.
    """

    start: int
    rows: I64
    is_reference: Bools
    is_kept: Bools
    kept_rows: I64
    values: F64
    compared: I64
    num_pairs: I64
    put: PutPairs
    pairs: list[pa.RecordBatch]

    @property
    def part(self) -> slice:
        """The positions of the block in the component."""
        return slice(self.start, self.start + self.rows.size)

    def learn(self, found: MatchOutcome, num_pairs: I64, rows: I64) -> None:
        """Merge the results of a comparison whose last documents are those of the block."""
        before = rows.size - self.rows.size
        matches = found.matches[before:]
        values = found.values[before:]
        is_better = matches >= 0
        self.is_kept[is_better] = False
        self.kept_rows[is_better] = rows[matches[is_better]]
        self.values[is_better] = values[is_better]
        self.compared += found.compared[before:]
        self.num_pairs += num_pairs[before:]


def verify_blocks(
    blocks: ComponentBlocks,
    plan: Plan,
    config: Config,
    tally: Tally | None = None,
    put: PutPairs | None = None,
) -> pa.Table:
    """Compare the documents of one component; return one row each, in keep order, equal to the result of `verify`.

    Memory: the texts of two blocks; sets and signatures of four blocks while two are concatenated,
    of three while they are compared; about 40 bytes per document of the component; and, unless
    `put` takes them, the listed pairs.
    """
    is_leading = not config.pairs and config.cluster == "leader"
    tally = tally or Tally()
    num_walks = 1
    outcomes: list[_Outcome] = []
    parents = np.empty(0, np.int64)
    for block in blocks:
        outcome = _unknown(block, outcomes, put)
        parents = np.concatenate([parents, np.arange(outcome.start, outcome.part.stop)])
        documents = prepare(block, plan, config)
        walks = num_walks if is_leading else 1 + len(outcomes)
        with tally.counter(block.num_rows, walks=walks) as walked:
            if outcome.is_reference.all():
                pass  # reference documents are not compared with each other
            elif is_leading:
                kept = _merged(blocks.stored(), block)
                num_walks = _compare_with_kept(documents, outcome, kept, plan, config, walked)
            else:
                earlier = zip(outcomes, blocks, strict=False)
                _compare_with_earlier(documents, outcome, earlier, parents, plan, config, walked)
                _compare_within(documents, outcome, parents, plan, config, walked)
        if config.only_against:
            is_compared = outcome.is_reference
        else:
            is_compared = outcome.is_kept
        if is_leading and is_compared.any():
            blocks.put(block.filter(pa.array(is_compared)))
        outcomes.append(outcome)
        del documents
    if config.cluster == "components":
        _close(blocks, outcomes, parents, config)
    tables = [_table(outcome, config) for outcome in outcomes]
    return pa.Table.from_batches(tables, schema=schema.VERIFIED)


def _unknown(block: pa.RecordBatch, outcomes: list[_Outcome], put: PutPairs | None) -> _Outcome:
    pairs: list[pa.RecordBatch] = []
    return _Outcome(
        start=outcomes[-1].part.stop if outcomes else 0,
        rows=block.column("row").to_numpy().copy(),
        is_reference=are_references(block),
        is_kept=np.ones(block.num_rows, np.bool_),
        kept_rows=np.zeros(block.num_rows, np.int64),
        values=np.zeros(block.num_rows),
        compared=np.zeros(block.num_rows, np.int64),
        num_pairs=np.zeros(block.num_rows, np.int64),
        put=put or pairs.append,
        pairs=pairs,
    )


def _merged(batches: Iterable[pa.RecordBatch], block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Merge batches up to the size of a block, because each comparison costs time for the whole block."""
    collected: list[pa.RecordBatch] = []
    for batch in batches:
        merged = [*collected, batch]
        num_rows = sum(part.num_rows for part in merged)
        num_bytes = sum(part.nbytes for part in merged)
        if collected and (num_rows > block.num_rows or num_bytes > block.nbytes):
            yield schema.one_batch(collected, batch.schema)
            merged = [batch]
        collected = merged
    if collected:
        yield schema.one_batch(collected, collected[0].schema)


def _compare_with_kept(
    documents: ComparedDocuments,
    outcome: _Outcome,
    kept: Iterable[pa.RecordBatch],
    plan: Plan,
    config: Config,
    walked: I64,
) -> int:
    """Compare a block with the kept documents of earlier ones and with itself; return the number of walks.

    The last batch of kept documents (usually the only one) is compared in the same walk as the
    block itself.
    """
    num_walks = 1
    last = None
    for batch in kept:
        if last is not None:
            roles = np.where(outcome.is_reference, 0, COMPARED).astype(np.uint8)
            _walk_behind(last, documents, outcome, roles, plan, config, walked)
            num_walks += 1
        last = batch
    roles = roles_within(outcome.is_reference, config)
    _walk_behind(last, documents, outcome, roles, plan, config, walked)
    return num_walks


def _walk_behind(
    kept: pa.RecordBatch | None,
    documents: ComparedDocuments,
    outcome: _Outcome,
    roles: U8,
    plan: Plan,
    config: Config,
    walked: I64,
) -> None:
    """Compare a block, whose documents have these roles, with kept documents ahead of it."""
    if kept is None:
        before = 0
        both = documents
    else:
        before = kept.num_rows
        both = _joined(prepare(kept, plan, config), documents)
    state = InitialState(
        roles=np.concatenate([np.full(before, ENTERED, np.uint8), roles]),
        values=np.concatenate([np.zeros(before), outcome.values]),
        rows=np.concatenate([np.zeros(before, np.int64), outcome.kept_rows]),
        parents=np.arange(both.rows.size),
    )
    found, num_pairs = _compare(both, state, plan, config, walked, outcome.put)
    outcome.learn(found, num_pairs, both.rows)


def _compare_with_earlier(
    documents: ComparedDocuments,
    outcome: _Outcome,
    earlier_blocks: Iterable[tuple[_Outcome, pa.RecordBatch]],
    parents: I64,
    plan: Plan,
    config: Config,
    walked: I64,
) -> None:
    """Compare a block with all documents of earlier ones, and record the unions in `parents`."""
    for earlier, batch in earlier_blocks:
        if config.only_against:
            is_compared = earlier.is_reference
        else:
            is_compared = np.ones(earlier.rows.size, np.bool_)
        if not is_compared.any():
            continue
        docs = np.concatenate([_docs_of(earlier), _docs_of(outcome)])
        roots = _roots(parents, docs)
        both = _joined(prepare(batch, plan, config), documents)
        state = InitialState(
            roles=_roles_between(is_compared, outcome.is_reference),
            values=np.concatenate([earlier.values, outcome.values]),
            rows=np.concatenate([earlier.kept_rows, outcome.kept_rows]),
            parents=_firsts(roots),
        )
        found, num_pairs = _compare(both, state, plan, config, walked, outcome.put)
        outcome.learn(found, num_pairs, both.rows)
        _join_roots(parents, roots, found.parents)


def _compare_within(
    documents: ComparedDocuments,
    outcome: _Outcome,
    parents: I64,
    plan: Plan,
    config: Config,
    walked: I64,
) -> None:
    """Compare the documents of a block with each other."""
    roots = _roots(parents, _docs_of(outcome))
    state = InitialState(
        roles=roles_within(outcome.is_reference, config),
        values=outcome.values.copy(),
        rows=outcome.kept_rows.copy(),
        parents=_firsts(roots),
    )
    found, num_pairs = _compare(documents, state, plan, config, walked, outcome.put)
    outcome.learn(found, num_pairs, outcome.rows)
    _join_roots(parents, roots, found.parents)


def _compare(
    documents: ComparedDocuments,
    state: InitialState,
    plan: Plan,
    config: Config,
    walked: I64,
    put: PutPairs,
) -> tuple[MatchOutcome, I64]:
    """Compare documents as one component."""
    return compare(documents, np.array([0, documents.rows.size]), plan, config, state, walked, put)


def _roles_between(is_compared: Bools, is_reference: Bools) -> U8:
    """Return roles: the documents of a block are compared only with the earlier ones chosen for it."""
    of_earlier = np.where(is_compared, ENTERED, 0)
    of_block = np.where(is_reference, 0, COMPARED)
    return np.concatenate([of_earlier, of_block]).astype(np.uint8)


def _joined(first: ComparedDocuments, second: ComparedDocuments) -> ComparedDocuments:
    return ComparedDocuments(
        items=joined(first.items, second.items),
        signatures=np.concatenate([first.signatures, second.signatures]),
        keys=np.concatenate([first.keys, second.keys]),
        rows=np.concatenate([first.rows, second.rows]),
    )


def _docs_of(outcome: _Outcome) -> I64:
    return np.arange(outcome.part.start, outcome.part.stop)


def _roots(parents: I64, docs: I64) -> I64:
    """Return the root of each document in the union-find forest so far."""
    roots = parents[docs]
    while (parents[roots] != roots).any():
        roots = parents[roots]
    parents[docs] = roots
    return roots


def _firsts(roots: I64) -> I64:
    """Return for each document the position of the first one with the same root."""
    _, firsts, numbers = np.unique(roots, return_index=True, return_inverse=True)
    return firsts[numbers].astype(np.int64)


def _join_roots(parents: I64, roots: I64, joined: I64) -> None:
    """Unite documents with these roots in `parents`; the smallest root of each union becomes its root."""
    smallest = roots.copy()
    np.minimum.at(smallest, joined, roots)
    parents[roots] = smallest[joined]


def _close(blocks: ComponentBlocks, outcomes: list[_Outcome], parents: I64, config: Config) -> None:
    """Point every document to the first one of its transitive closure, with their exact similarity."""
    roots = _roots(parents, np.arange(parents.size))
    rows = np.concatenate([np.empty(0, np.int64), *(outcome.rows for outcome in outcomes)])
    is_first = np.zeros(rows.size, np.bool_)
    for outcome in outcomes:
        own_roots = roots[outcome.part]
        is_removed = (own_roots != _docs_of(outcome)) & ~outcome.is_reference
        is_first[own_roots[is_removed]] = True
        outcome.is_kept = ~is_removed
        outcome.kept_rows = rows[own_roots]
    for outcome, block in zip(outcomes, blocks, strict=True):
        if is_first[outcome.part].any():
            blocks.put(block.filter(pa.array(is_first[outcome.part])))
    for outcome, block in zip(outcomes, blocks, strict=True):
        if not outcome.is_kept.all():
            _compare_with_firsts(outcome, block, blocks.stored(), config)


def _compare_with_firsts(
    outcome: _Outcome, block: pa.RecordBatch, firsts: Iterable[pa.RecordBatch], config: Config
) -> None:
    """Compute the similarity of the removed documents of a block to the first of their closures."""
    removed = np.flatnonzero(~outcome.is_kept)
    wanted = outcome.kept_rows[removed]
    measure = measure_of(config)
    items = measure.items(block.column("text"), config)
    for batch in firsts:
        rows = batch.column("row").to_numpy()
        order = np.argsort(rows)
        matched = removed[np.isin(wanted, rows)]
        docs = order[np.searchsorted(rows, outcome.kept_rows[matched], sorter=order)]
        values = np.empty(matched.size)
        both = joined(measure.items(batch.column("text"), config), items)
        similarities(both, rows.size + matched, docs, values)
        outcome.values[matched] = values


def _table(outcome: _Outcome, config: Config) -> pa.RecordBatch:
    return verified(
        outcome.rows,
        outcome.kept_rows,
        outcome.values,
        outcome.is_kept,
        outcome.compared,
        outcome.num_pairs if config.pairs else ~outcome.is_kept,
        outcome.pairs,
    )
