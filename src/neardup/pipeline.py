"""The stages in order, over any engine.

    sketch -> collapse -> link -> components -> verify -> select

Every table is keyed by `row`; only documents that share a bucket, or in the exact join may be similar by the rarest
shingles that they share, reach `verify`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Advance, BatchStep, Engine, Rows, Source, Table, View
from neardup.measures.registry import holds_items
from neardup.report import Watch
from neardup.searches.containers import Containment, gather
from neardup.stages.choose import SAMPLED_OF, measure
from neardup.stages.collapse import collapse, separate
from neardup.stages.link import link, link_prefixes
from neardup.stages.prefix import collect, count, num_places, prefix
from neardup.stages.select import count_copies, count_pairs, list_pairs, select
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify
from neardup.stages.verify_blocks import verify_blocks
from neardup.theory.method_choice import MAX_SHINGLES, Contents, decide
from neardup.theory.plan import Plan, is_open

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
    """What the stages say, by row, in tables of the engine: who is removed for whom, and every found pair, if asked.

    plan: that of the method that was taken; find_priorities: tells the keep priority of rows, ascending, where they
    are at hand.
    """

    plan: Plan

    selection: Table
    row_pairs: Table | None
    exact_duplicates: int
    pairs_verified: int
    find_priorities: Callable[[npt.NDArray[np.int64]], pa.ChunkedArray] | None = None


def run(documents: Source, plan: Plan, config: Config, engine: Engine, watch: Watch) -> Outcome:
    """Find the near-duplicates among `documents` and select which stay."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = _sketch(documents, plan, config, engine, advance)
    if config.measure == "containment":
        return _contain(sketches, documents, plan, engine, watch)
    with watch.stage("collapse"):
        copies = _collapse(sketches, documents, config, engine)
        if config.pairs:
            num_copies = engine.count_classes(copies, None, partial(count_copies, num_ahead=documents.num_ahead))
            _warn_of_many(num_copies, watch)
        classes = _separate(copies, sketches, documents, config, engine)
    make_where = partial(_representatives, sketches, classes, documents, engine)
    if is_open(config):
        with watch.stage("choose"):
            plan = decide(_measure(sketches, make_where(), plan, engine), plan, is_held=holds_items(config))
    with watch.stage("link", plan.bands or 1, "bands" if plan.bands else "passes") as advance:
        components = engine.once(
            "components", lambda: _connect(sketches, make_where(), documents, plan, config, engine, advance)
        )
    with watch.stage("verify", engine.count_rows(components)) as advance:
        columns = schema.HELD_MEMBERS if engine.holds_all else schema.MEMBERS
        found = engine.lookup(components, "row", sketches, _looked_up(columns))
        verified = engine.map_components(
            documents,
            engine.map_tables([found], partial(_members, columns=columns, plan=plan), columns),
            partial(verify, plan=plan, config=config),
            partial(verify_blocks, plan=plan, config=config),
            schema.VERIFIED,
            advance,
        )
    with watch.stage("select"):
        selection = engine.once(
            "selection", lambda: _select(classes, verified, documents.num_ahead, engine), schema.SELECTION
        )
        row_pairs = None
        if config.pairs:
            if num_copies < MANY_PAIRS:  # else it was said before the work began
                count_all = partial(count_pairs, num_ahead=documents.num_ahead)
                _warn_of_many(engine.count_classes(classes, verified, count_all), watch)
            row_pairs = _list(classes, verified, documents.num_ahead, engine)
    return Outcome(
        plan=plan,
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=engine.count_rows(copies, documents.num_ahead),
        pairs_verified=engine.add_up(verified, "compared"),
        find_priorities=lambda rows: engine.lookup(pa.table({"row": rows}), "row", sketches, ["priority"]).column(
            "priority"
        ),
    )


def _sketch(documents: Source, plan: Plan, config: Config, engine: Engine, advance: Advance) -> Table:
    hold, is_sampled = engine.hold if holds_items(config) else None, is_open(config)
    step = partial(sketch, plan=plan, config=config, hold=hold, is_sampled=is_sampled)
    return engine.map_documents(documents, step, schema.sketches(plan.bands, is_sampled=is_sampled), advance)


def _contain(sketches: Table, documents: Source, plan: Plan, engine: Engine, watch: Watch) -> Outcome:
    """Find the pairs of which one document lies in the other; nobody is removed for it. On one machine only."""
    made: list[Containment] = []

    def make_step() -> BatchStep:
        sets = gather(sketches.batches(["row", "num_shingles", "group", "shingles"]), engine.room())
        made.append(Containment(*sets, num_ahead=documents.num_ahead, threshold=plan.threshold))
        return made[0].contain

    with watch.stage("contain"):
        where = engine.rows_with(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table("contained", sketches, ["row"], where, make_step, schema.CONTAINED)
        num_pairs = sum(batch.num_rows for batch in found.batches(["row_a"]))
        _warn_of_many(num_pairs, watch)
        by = [("row_a", "ascending"), ("row_b", "ascending")]
        row_pairs = engine.sort(found.batches(schema.CONTAINED.names), schema.CONTAINED, by)
    return Outcome(
        plan=plan,
        selection=schema.SELECTION.empty_table(),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=made[0].compared if made else num_pairs,
    )


def _collapse(sketches: Table, documents: Source, config: Config, engine: Engine) -> Table:
    """The copies, by row. Documents without shingles stand for themselves, unless they are asked to be one class."""

    def make() -> Table:
        where = engine.rows_with(sketches, None if config.collapse_empty else "num_shingles", documents.num_rows)
        copies = engine.map_groups(sketches, [_CLASS_VIEW], collapse, where, lambda _: None)
        return engine.sort(copies, schema.CLASSES, [("row", "ascending")])

    return engine.once("classes", make, schema.CLASSES)


def _separate(copies: Table, sketches: Table, documents: Source, config: Config, engine: Engine) -> Table:
    """The copies whose representative is compared in their place with all that they are to be compared with."""
    if documents.num_ahead <= 0 or not (config.pairs or config.cluster == "components"):
        return copies  # who copies a document ahead is removed for it, whatever else it is similar to

    def make() -> Table:
        sized = engine.lookup(copies, "representative", sketches, ["num_shingles"])
        step = partial(separate, num_ahead=documents.num_ahead)
        return engine.sort(
            engine.map_classes(sized, None, step, schema.CLASSES), schema.CLASSES, [("row", "ascending")]
        )

    return engine.once("classes_apart", make, schema.CLASSES)


def _representatives(sketches: Table, classes: Table, documents: Source, engine: Engine) -> Rows:
    """The documents that go on: copies are left to their representative."""
    return engine.without(engine.rows_with(sketches, "num_shingles", documents.num_rows), classes)


def measure_contents(documents: Source, plan: Plan, config: Config, engine: Engine) -> Contents:
    """Return what the choice of an open method depends on."""
    sketches = _sketch(documents, plan, config, engine, lambda _: None)
    classes = _separate(_collapse(sketches, documents, config, engine), sketches, documents, config, engine)
    return _measure(sketches, _representatives(sketches, classes, documents, engine), plan, engine)


def _measure(sketches: Table, where: Rows, plan: Plan, engine: Engine) -> Contents:
    shingles = engine.add_up(sketches, "num_shingles", where)
    if shingles > MAX_SHINGLES:
        return Contents(documents=0, shingles=shingles)

    def make_step() -> BatchStep:
        counts = engine.count(sketches, ["row", "shingles"], where, count, num_places(shingles // SAMPLED_OF))
        return partial(measure, counts=counts, threshold=plan.threshold)

    columns = ["row", "num_shingles", "shingles"]
    table = engine.map_table("contents", sketches, columns, where, make_step, schema.CONTENTS)
    names = [field.name for field in schema.CONTENTS if field.name != "row"]
    return Contents(shingles=shingles, **{name: engine.add_up(table, name) for name in names})


def _connect(
    sketches: Table,
    where: Rows,
    documents: Source,
    plan: Plan,
    config: Config,
    engine: Engine,
    advance: Advance,
) -> Table:
    """The components of documents that share buckets, or may be similar by the rarest shingles that they share."""
    if plan.is_exact:
        sets = sketches
        if is_open(config):  # then the first pass has left band keys, and no sets
            step = partial(collect, config=config)
            sets = engine.map_read("sets", documents, sketches, where, step, schema.SETS)
        links = _link_prefixes(sketches, sets, where, documents.num_rows, plan, engine, advance)
    else:
        links = _link(sketches, where, plan, engine, advance)
    return engine.connected_components(links, documents.num_rows)


def _link_prefixes(
    sketches: Table, sets: Table, where: Rows, num_rows: int, plan: Plan, engine: Engine, advance: Advance
) -> Table:
    step = partial(link_prefixes, threshold=plan.threshold)
    postings = _prefixes(sketches, sets, where, num_rows, plan, engine)
    return engine.map_groups(postings, [_POSTINGS_VIEW], step, None, advance)


def _link(sketches: Table, where: Rows, plan: Plan, engine: Engine, advance: Advance) -> Table:
    bands = [View(("row", key), (key,), ("row",)) for key in map(schema.key_column, range(plan.bands))]
    return engine.map_groups(sketches, bands, link, where, advance)


def _prefixes(sketches: Table, sets: Table, where: Rows, num_rows: int, plan: Plan, engine: Engine) -> Table:
    """The rarest shingles of every document that may have a partner."""
    # Sets that were made for it are those of the wanted rows alone.
    every = where if sets is sketches else engine.rows_with(sets, None, num_rows)

    def make_step() -> BatchStep:
        num_shingles = engine.add_up(sketches, "num_shingles", where)
        counts = engine.count(sets, ["row", "shingles"], every, count, num_places(num_shingles))
        return partial(prefix, counts=counts, threshold=plan.threshold)

    return engine.map_table("postings", sets, ["row", "shingles"], every, make_step, schema.POSTINGS)


def _looked_up(columns: pa.Schema) -> list[str]:
    """The columns of members that come from their sketches."""
    own = ("row", "component", "verify_bytes", "num_shingles")
    return ["num_shingles", *(name for name in columns.names if name not in own)]


def _members(found: pa.RecordBatch, columns: pa.Schema, plan: Plan) -> pa.RecordBatch:
    """The members of components with what it takes to read and verify each."""
    text_bytes, num_shingles = (found.column(name).to_numpy() for name in ("text_bytes", "num_shingles"))
    # Text twice, its shingles while they are sorted, signature and keys, and the lists of buckets, or of prefixes.
    verify_bytes = 2 * text_bytes + 24 * num_shingles + 4 * plan.num_perm + 56 * plan.bands + 128
    if plan.is_exact:
        verify_bytes += 40 * num_shingles
    found = found.append_column("verify_bytes", pa.array(verify_bytes))
    return found.select(columns.names).cast(columns)


def _select(classes: Table, verified: Table, num_ahead: int, engine: Engine) -> Table:
    copies = engine.lookup(classes, "representative", verified, ["kept_row", "similarity"])
    selected = engine.map_tables([verified, copies], partial(select, num_ahead=num_ahead), schema.SELECTION)
    return engine.sort(selected, schema.SELECTION, [("row", "ascending")])


def _list(classes: Table, verified: Table, num_ahead: int, engine: Engine) -> Table:
    listed = engine.map_classes(classes, verified, partial(list_pairs, num_ahead=num_ahead), schema.ROW_PAIRS)
    return engine.sort(listed, schema.ROW_PAIRS, [("row_a", "ascending"), ("row_b", "ascending")])


def _warn_of_many(num_pairs: int, watch: Watch) -> None:
    if num_pairs >= MANY_PAIRS:
        watch.warn(
            f"at least {num_pairs:,} pairs to list, about {num_pairs * BYTES_A_PAIR / 1e9:.1f} GB; "
            "neardup.deduplicate without pairs=True compares each document with kept ones only"
        )
