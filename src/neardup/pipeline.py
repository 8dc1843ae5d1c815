"""The stages in order, over any engine.

    sketch -> collapse -> link -> components -> verify -> select

Every table is keyed by `row`; only documents that share a bucket, or in the exact join may be similar by the rarest
shingles that they share, reach `verify`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Advance, BatchStep, Documents, Engine, Table, View
from neardup.measures.choice import holds_items
from neardup.planner import Plan
from neardup.report import Watch
from neardup.stages.collapse import collapse
from neardup.stages.contain import Containment, gather
from neardup.stages.link import link, link_prefixes
from neardup.stages.prefix import count, num_places, prefix
from neardup.stages.select import count_copies, count_pairs, list_pairs, select
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify
from neardup.stages.verify_blocks import verify_blocks

# A listing this long is worth a word before it is made; a pair takes 24 bytes, and four times that to be sorted.
MANY_PAIRS: Final = 10_000_000
BYTES_A_PAIR: Final = 96
_CLASS_VIEW: Final = View(
    ("row", "priority", "digest_low", "digest_high"), ("digest_low", "digest_high"), ("priority", "row")
)

_POSTINGS_VIEW: Final = View(
    ("key", "row", "num_shingles", "place"), ("key",), ("num_shingles", "row", "place"), is_whole=True
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the stages say, by row: who is removed for whom, and every found pair in order, if asked for.

    find_priorities: tells the keep priority of rows, ascending.
    """

    selection: pa.Table
    row_pairs: Iterator[pa.RecordBatch] | None
    exact_duplicates: int
    pairs_verified: int
    find_priorities: Callable[[npt.NDArray[np.int64]], pa.ChunkedArray] | None = None


def run(documents: Documents, plan: Plan, config: Config, engine: Engine, watch: Watch) -> Outcome:
    """Find the near-duplicates among `documents` and select which stay."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        step = partial(sketch, plan=plan, config=config, hold=engine.hold if holds_items(config) else None)
        sketches = engine.map_documents(documents, step, schema.sketches(plan.bands), advance)
        documents.settle(engine.sort)
    num_rows, num_ahead = int(documents.first_rows[-1]), documents.num_ahead
    if config.measure == "containment":
        return _contain(sketches, num_rows, num_ahead, plan, engine, watch)
    with watch.stage("collapse"):
        has_shingles = _rows_with_shingles(sketches, num_rows)
        classes = engine.once("classes", lambda: _collapse(sketches, has_shingles, config, engine))
        if config.pairs:
            _warn_of_many(count_copies(classes), watch)
    with watch.stage("link", plan.bands or 1, "bands" if plan.bands else "passes") as advance:
        is_candidate = has_shingles
        is_candidate[classes.column("row").to_numpy()] = False
        components = engine.once(
            "components",
            lambda: engine.connected_components(_link(sketches, is_candidate, plan, engine, advance), num_rows),
        )
    with watch.stage("verify", components.num_rows) as advance:
        verified = engine.map_components(
            documents,
            _members(components, sketches, plan, engine),
            partial(verify, plan=plan, config=config),
            partial(verify_blocks, plan=plan, config=config),
            schema.VERIFIED,
            advance,
        )
    with watch.stage("select"):
        selection = select(classes, verified, num_ahead)
        row_pairs = _list(classes, verified, num_ahead, engine, watch) if config.pairs else None
    return Outcome(
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=int(np.count_nonzero(classes.column("row").to_numpy() >= num_ahead)),
        pairs_verified=pc.sum(verified.column("compared")).as_py() or 0,
        find_priorities=lambda rows: engine.find_rows(sketches, rows, ["row", "priority"]).column("priority"),
    )


def _contain(sketches: Table, num_rows: int, num_ahead: int, plan: Plan, engine: Engine, watch: Watch) -> Outcome:
    """Find the pairs of which one document lies in the other; nobody is removed for it."""
    with watch.stage("contain"):
        where, made = _rows_with_shingles(sketches, num_rows), []

        def make_step() -> BatchStep:
            sets = gather(sketches.batches(["row", "num_shingles", "group", "shingles"]), engine.room())
            made.append(Containment(*sets, num_ahead=num_ahead, threshold=plan.threshold))
            return made[0].contain

        found = engine.map_table("contained", sketches, ["row"], where, make_step, schema.CONTAINED)
        num_pairs = sum(batch.num_rows for batch in found.batches(["row_a"]))
        _warn_of_many(num_pairs, watch)
        by = [("row_a", "ascending"), ("row_b", "ascending")]
        row_pairs = engine.sort(found.batches(schema.CONTAINED.names), schema.CONTAINED, by)
    return Outcome(
        selection=schema.SELECTION.empty_table(),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=made[0].compared if made else num_pairs,
    )


def _rows_with_shingles(sketches: Table, num_rows: int) -> npt.NDArray[np.bool_]:
    has_shingles = np.zeros(num_rows, np.bool_)
    for batch in sketches.batches(["row", "num_shingles"]):
        has_shingles[batch.column("row").to_numpy()] = batch.column("num_shingles").to_numpy() > 0
    return has_shingles


def _collapse(sketches: Table, has_shingles: npt.NDArray[np.bool_], config: Config, engine: Engine) -> pa.Table:
    """The copies, by row. Documents without shingles stand for themselves, unless they are asked to be one class."""
    where = np.ones_like(has_shingles) if config.collapse_empty else has_shingles
    copies = engine.map_groups(sketches, [_CLASS_VIEW], collapse, where, lambda _: None)
    rows = engine.sort(copies, schema.CLASSES, [("row", "ascending")])
    return pa.Table.from_batches(rows, schema=schema.CLASSES)


def _link(
    sketches: Table, is_candidate: npt.NDArray[np.bool_], plan: Plan, engine: Engine, advance: Advance
) -> Iterator[pa.RecordBatch]:
    if plan.is_exact:
        postings = _prefixes(sketches, is_candidate, plan, engine)
        return engine.map_groups(
            postings, [_POSTINGS_VIEW], partial(link_prefixes, threshold=plan.threshold), None, advance
        )
    bands = [View(("row", key), (key,), ("row",)) for key in map(schema.key_column, range(plan.bands))]
    return engine.map_groups(sketches, bands, link, is_candidate, advance)


def _prefixes(sketches: Table, is_candidate: npt.NDArray[np.bool_], plan: Plan, engine: Engine) -> Table:
    def make_step() -> BatchStep:
        num_shingles = 0
        for batch in sketches.batches(["row", "num_shingles"]):
            is_counted = is_candidate[batch.column("row").to_numpy()]
            num_shingles += int(batch.column("num_shingles").to_numpy()[is_counted].sum())
        counts = engine.count(sketches, ["row", "shingles"], is_candidate, count, num_places(num_shingles))
        return partial(prefix, counts=counts, threshold=plan.threshold)

    return engine.map_table("postings", sketches, ["row", "shingles"], is_candidate, make_step, schema.POSTINGS)


def _members(components: pa.Table, sketches: Table, plan: Plan, engine: Engine) -> pa.Table:
    """The members of components with what it takes to read and verify each."""
    rows = components.column("row").to_numpy()
    columns = schema.HELD_MEMBERS if engine.holds_all else schema.MEMBERS
    names = [name for name in columns.names if name in sketches.schema.names]
    found = engine.find_rows(sketches, rows, [*names, *{"num_shingles"}.difference(names)])
    text_bytes, num_shingles = (found.column(name).to_numpy() for name in ("text_bytes", "num_shingles"))
    # Text twice, its shingles while they are sorted, signature and keys, and the lists of buckets, or of prefixes.
    verify_bytes = 2 * text_bytes + 24 * num_shingles + 4 * plan.num_perm + 56 * plan.bands + 128
    if plan.is_exact:
        verify_bytes += 40 * num_shingles
    found = found.append_column("component", components.column("component"))
    return found.append_column("verify_bytes", pa.array(verify_bytes)).select(columns.names).cast(columns)


def _list(
    classes: pa.Table, verified: pa.Table, num_ahead: int, engine: Engine, watch: Watch
) -> Iterator[pa.RecordBatch]:
    if count_copies(classes) < MANY_PAIRS:  # else it was said before the work began
        _warn_of_many(count_pairs(classes, verified), watch)
    by = [("row_a", "ascending"), ("row_b", "ascending")]
    return engine.sort(list_pairs(classes, verified, num_ahead), schema.ROW_PAIRS, by)


def _warn_of_many(num_pairs: int, watch: Watch) -> None:
    if num_pairs >= MANY_PAIRS:
        watch.warn(
            f"at least {num_pairs:,} pairs to list, about {num_pairs * BYTES_A_PAIR / 1e9:.1f} GB; "
            "neardup.deduplicate without pairs=True compares each document with kept ones only"
        )
