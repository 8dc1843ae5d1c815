"""The stages in order, on any engine.

    sketch -> collapse -> link -> components -> verify -> select

Every table is keyed by `row`. Only documents that share a bucket (in the exact join a prefix
shingle) reach `verify`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.engines.base import (
    Advance,
    BatchStep,
    ComponentSteps,
    Engine,
    Hold,
    Rows,
    Source,
    Table,
    TableView,
    no_progress,
)
from neardup.events import Tally, Watch
from neardup.measures.registry import holds_items
from neardup.stages.choose import SAMPLED_OF, measure
from neardup.stages.collapse import collapse, separate
from neardup.stages.link import link, link_prefixes
from neardup.stages.link_all import AllPairs, to_compared
from neardup.stages.list_pairs import FoundPairs, count_pairs, list_pairs
from neardup.stages.prefix import collect, count, num_places, prefix
from neardup.stages.select import of_references, select, thin
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify
from neardup.stages.verify_blocks import verify_blocks
from neardup.theory.method_choice import MAX_SHINGLES, Contents, decide
from neardup.theory.plan import Plan, is_open
from neardup.theory.shingle_advice import FEW_SHINGLES, advise_on_short, has_shorter_shingles

# From this many pairs on, warn before listing them; in memory a pair takes 24 bytes, and as many
# again with its ids.
MANY_PAIRS: Final = 10_000_000
BYTES_A_PAIR: Final = 48
_CLASS_VIEW: Final = TableView(
    ("row", "priority", "digest_low", "digest_high"),
    ("digest_low", "digest_high"),
    ("priority", "row"),
)
_CLUSTER_VIEW: Final = TableView(
    ("row", "kept_row", "similarity", "priority"), ("kept_row",), ("priority", "row"), is_whole=True
)
_POSTINGS_VIEW: Final = TableView(
    ("key", "row", "num_shingles", "place"),
    ("key",),
    ("num_shingles", "row", "place"),
    is_whole=True,
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PipelineOutcome:
    """The result of the stages, by row, in tables of the engine: the selection and, on request, every pair found.

    plan: the plan of the method that was used; members: every document that is not the kept one of
    its cluster, None where all of them are removed; selects: whether the pipeline selects which
    documents to keep;
    pairs_verified: the pairs found, or without a list of them one per matched document;
    comparisons: how many it took;
    pair_columns: the schema of row_pairs; decisions: what decisions changed;
    find_priorities: returns the keep priorities of ascending rows, if known.
    """

    plan: Plan

    selection: Table
    row_pairs: Table | None
    exact_duplicates: int
    pairs_verified: int
    comparisons: int
    members: Table | None = None
    selects: bool = True
    pair_columns: pa.Schema = schema.ROW_PAIRS
    decisions: dict[str, int] | None = None
    find_priorities: Callable[[npt.NDArray[np.int64]], pa.ChunkedArray] | None = None

    @property
    def clustered(self) -> Table:
        """Every document that is not the kept one of its cluster, removed or spared by `per_cluster`."""
        return self.selection if self.members is None else self.members


# What a run can do with its documents; `engine` is the one that reads them.
Pipeline = Callable[[Any, Plan, Config, Any, Watch], PipelineOutcome]


class _Sketched(NamedTuple):
    """The state that every stage after the first one shares."""

    sketches: Table
    documents: Source
    plan: Plan
    config: Config
    engine: Engine


def run(
    documents: Source, plan: Plan, config: Config, engine: Engine, watch: Watch
) -> PipelineOutcome:
    """Find the near-duplicates among `documents` and select which stay."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = sketch_documents(documents, plan, config, engine, advance)
        warn_of_short(sketches, documents, config, engine, watch)
        warn_of_ignored(sketches, documents, config, engine, watch)
    state = _Sketched(sketches, documents, plan, config, engine)
    with watch.stage("collapse"):
        copies = _collapse(state)
        num_copies = _count(copies, None, state) if config.pairs else 0
        warn_of_many(num_copies, watch)
        classes = _separate(copies, state)
    if is_open(config):
        with watch.stage("choose"):
            contents = _measure(_representatives(classes, state), state)
            state = state._replace(plan=decide(contents, plan, is_held=holds_items(config)))
    bands = state.plan.bands
    with watch.stage(
        "link", bands or 2 * documents.num_rows, "bands" if bands else "sets"
    ) as advance:
        components = engine.checkpoint(
            "components", lambda: _connect(_representatives(classes, state), state, advance)
        )
    with watch.stage("verify", engine.total(components)) as advance:
        verified = _verify(components, state, advance)
    with watch.stage("select"):
        members = engine.checkpoint(
            "selection", lambda: _select(classes, verified, state), schema.SELECTION
        )
        selection = _thin(members, state)
        if (
            config.pairs and num_copies < MANY_PAIRS
        ):  # otherwise the warning was issued before the work began
            warn_of_many(_count(classes, verified, state), watch)
        row_pairs = _list(classes, verified, state) if config.pairs else None
    return PipelineOutcome(
        plan=state.plan,
        selection=selection,
        members=members,
        row_pairs=row_pairs,
        exact_duplicates=engine.total(
            _removable(copies, state), first_row=documents.num_references
        ),
        pairs_verified=engine.total(verified, "found"),
        comparisons=engine.total(verified, "compared"),
        find_priorities=partial(_find_priorities, state),
    )


def sketch_documents(
    documents: Source, plan: Plan, config: Config, engine: Engine, advance: Advance
) -> Table:
    """Read all documents once: sizes, digests, and band keys or sets, as schema.sketches."""
    is_held = holds_items(config)
    is_set = config.measure in SET_MEASURES
    is_sampled = is_set and is_open(config)
    has_shingles = is_sampled or (is_set and plan.is_exact)
    columns = schema.sketches(plan.bands, has_shingles=has_shingles, ignores=bool(config.ignore))
    secret = engine.secret

    def step(batch: pa.RecordBatch, hold: Hold | None) -> pa.RecordBatch:
        return sketch(
            batch, plan, config, hold if is_held else None, is_sampled=is_sampled, secret=secret
        )

    return engine.map_documents(documents, step, columns, advance)


def warn_of_short(
    sketches: Table, documents: Source, config: Config, engine: Engine, watch: Watch
) -> None:
    """Warn if most documents have so few shingles that a typo hides a match."""
    if not has_shorter_shingles(config):
        return
    num_documents, num_short = (
        engine.total(
            sketches,
            where=engine.choose_rows(sketches, "num_shingles", documents.num_rows, below=below),
        )
        for below in (None, FEW_SHINGLES)
    )
    message = advise_on_short(num_short, num_documents)
    if message is not None:
        watch.warn(message, is_urgent=True)


def warn_of_ignored(
    sketches: Table, documents: Source, config: Config, engine: Engine, watch: Watch
) -> None:
    """Warn about documents of the input that `ignore` leaves without shingles."""
    if config.ignore:
        count = engine.total(sketches, "only_ignored", first_row=documents.num_references)
    else:
        count = 0
    if count:
        have, match = (
            ("documents have", "they match") if count > 1 else ("document has", "it matches")
        )
        if config.collapse_empty:
            other = " except documents without shingles"
        else:
            other = ""
        watch.warn(
            f"{count:,} {have} only ignored shingles, so {match} nothing{other}", is_urgent=True
        )


def measure_contents(documents: Source, plan: Plan, config: Config, engine: Engine) -> Contents:
    """Return the figures by which method="auto" chooses."""
    sketches = sketch_documents(documents, plan, config, engine, no_progress)
    state = _Sketched(sketches, documents, plan, config, engine)
    return _measure(_representatives(_separate(_collapse(state), state), state), state)


def _collapse(state: _Sketched) -> Table:
    """The copies, by row. Documents without shingles are not collapsed unless `collapse_empty` is set."""
    sketches, documents, _, config, engine = state

    def make() -> Table:
        where = engine.choose_rows(
            sketches, None if config.collapse_empty else "num_shingles", documents.num_rows
        )
        return engine.map_groups(sketches, [_CLASS_VIEW], collapse, where, no_progress)

    return engine.checkpoint("classes", make, schema.CLASSES)


def _separate(copies: Table, state: _Sketched) -> Table:
    """The copies that their representative can replace in every comparison."""
    sketches, documents, _, config, engine = state
    if documents.num_references <= 0 or not (config.pairs or config.cluster == "components"):
        return copies  # a copy of a reference document is removed because of it, whatever else it is similar to

    def make() -> Table:
        sized = engine.lookup(copies, "representative", sketches, ["num_shingles"])
        return engine.map_classes(
            sized, None, partial(separate, num_references=documents.num_references), schema.CLASSES
        )

    return engine.checkpoint("classes_apart", make, schema.CLASSES)


def _removable(copies: Table, state: _Sketched) -> Table:
    """The copies that are removed because they are copies: with `only_against`, only those of reference documents."""
    if not state.config.only_against:
        return copies
    step = partial(
        of_references, column="representative", num_references=state.documents.num_references
    )
    return state.engine.map_tables([copies], step, schema.CLASSES)


def _representatives(classes: Table, state: _Sketched) -> Rows:
    """The documents that continue to the next stages: all but the copies."""
    return state.engine.choose_rows(
        state.sketches, "num_shingles", state.documents.num_rows, without=classes
    )


def _measure(where: Rows, state: _Sketched) -> Contents:
    sketches, _, plan, _, engine = state
    shingles = engine.total(sketches, "num_shingles", where)
    if state.config.measure not in SET_MEASURES:
        return Contents(documents=engine.total(sketches, None, where), shingles=shingles)
    if shingles > MAX_SHINGLES:
        return Contents(documents=0, shingles=shingles)

    def make_step() -> BatchStep:
        counts = engine.count(
            sketches, ["row", "shingles"], where, count, num_places(shingles // SAMPLED_OF)
        )
        return partial(measure, counts=counts, threshold=plan.threshold)

    columns = ["row", "num_shingles", "shingles"]
    table = engine.map_table("contents", sketches, columns, where, make_step, schema.CONTENTS)
    names = [field.name for field in schema.CONTENTS if field.name != "row"]
    return Contents(shingles=shingles, **{name: engine.total(table, name) for name in names})


def _connect(where: Rows, state: _Sketched, advance: Advance) -> Table:
    """The components of documents linked by a shared bucket or prefix shingle."""
    sketches, documents, plan, config, engine = state
    tally = Tally(advance)
    if plan.is_exact and config.measure not in SET_MEASURES:
        links = _compare_all(where, state, tally)
    elif plan.is_exact:
        step = partial(link_prefixes, threshold=plan.threshold)
        links = engine.map_groups(
            _prefixes(where, state, tally), [_POSTINGS_VIEW], step, None, no_progress
        )
    else:
        bands = [
            TableView(("row", key), (key,), ("row",))
            for key in map(schema.key_column, range(plan.bands))
        ]
        links = engine.map_groups(sketches, bands, link, where, advance)
    components = engine.connected_components(links, documents.num_rows)
    if plan.is_exact:
        tally.report(least=2 * documents.num_rows)  # includes documents that were skipped
    if (
        config.only_against
    ):  # a component is named by its smallest row, and reference rows come first
        step = partial(of_references, column="component", num_references=documents.num_references)
        components = engine.map_tables([components], step, schema.COMPONENTS)
    return components


def _compare_all(where: Rows, state: _Sketched, tally: Tally) -> Table:
    """The links of every two documents that are a pair, for measures that no prefix filter knows."""
    sketches, documents, _, config, engine = state
    step = engine.counting(to_compared, tally)
    compared = engine.map_read("compared", documents, sketches, where, step, schema.COMPARED)
    steps = AllPairs(config=config, num_references=documents.num_references)
    return engine.map_block_pairs(compared, steps, schema.LINKS, tally.add)


def _prefixes(where: Rows, state: _Sketched, tally: Tally) -> Table:
    """The prefix (the rarest shingles) of every document that may have a partner; takes two passes over the sets."""
    sketches, documents, plan, config, engine = state
    sets = sketches
    every = where
    if is_open(config):  # then the first pass has computed band keys instead of sets
        step = partial(collect, config=config)
        sets = engine.map_read("sets", documents, sketches, where, step, schema.SETS)
        every = engine.choose_rows(sets, None, documents.num_rows)

    def make_step() -> BatchStep:
        num_shingles = engine.total(sketches, "num_shingles", where)
        places = num_places(num_shingles)
        counts = engine.count(
            sets, ["row", "shingles"], every, engine.counting(count, tally), places
        )
        return engine.counting(partial(prefix, counts=counts, threshold=plan.threshold), tally)

    return engine.map_table(
        "postings", sets, ["row", "shingles"], every, make_step, schema.POSTINGS
    )


def _verify(components: Table, state: _Sketched, advance: Advance) -> Table:
    """The exact matches and pairs among the documents of components."""
    sketches, documents, plan, config, engine = state

    def cost(
        text_bytes: npt.NDArray[np.int64], num_shingles: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        # Twice the text, its shingles while they are sorted, signature and keys, and the posting
        # lists.
        shingle_bytes = 24 + 40 * plan.is_exact
        return (
            2 * text_bytes
            + shingle_bytes * num_shingles
            + 4 * plan.num_perm
            + 72 * plan.bands
            + 128
        )

    steps = ComponentSteps(
        partial(verify, plan=plan, config=config),
        partial(verify_blocks, plan=plan, config=config),
        cost,
    )
    return engine.map_components(documents, components, sketches, steps, schema.VERIFIED, advance)


def _select(classes: Table, verified: Table, state: _Sketched) -> Table:
    copies = state.engine.lookup(classes, "representative", verified, ["kept_row", "similarity"])
    step = partial(
        select,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )
    return state.engine.map_tables([verified, copies], step, schema.SELECTION)


def _thin(members: Table, state: _Sketched) -> Table:
    """The removed documents: all members of clusters, except those that `per_cluster` spares."""
    engine = state.engine
    per_cluster = state.config.per_cluster
    if per_cluster == 1:
        return members

    def make() -> Table:
        ranked = engine.lookup(members, "row", state.sketches, ["priority"])
        return engine.map_groups(
            ranked, [_CLUSTER_VIEW], partial(thin, per_cluster=per_cluster), None, no_progress
        )

    return engine.checkpoint("thinned", make, schema.SELECTION)


def _list(classes: Table, verified: Table, state: _Sketched) -> Table:
    step = partial(
        list_pairs,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )
    return state.engine.map_classes(classes, verified, step, schema.ROW_PAIRS)


def _count(classes: Table, verified: Table | None, state: _Sketched) -> int:
    """Count the pairs that `_list` would list; without verified documents, those of exact copies."""
    count = partial(
        count_pairs,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )

    def step(copies: pa.Table, found: FoundPairs | None) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[count(copies, found)]], schema=schema.COUNTS)

    return state.engine.total(
        state.engine.map_classes(classes, verified, step, schema.COUNTS), "count"
    )


def _find_priorities(state: _Sketched, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray:
    return state.engine.lookup(pa.table({"row": rows}), "row", state.sketches, ["priority"]).column(
        "priority"
    )


def warn_of_many(num_pairs: int, watch: Watch) -> None:
    """Warn about the size of a long list of pairs before it is made."""
    if num_pairs >= MANY_PAIRS:
        watch.warn(
            f"the list will have at least {num_pairs:,} pairs and take about {num_pairs * BYTES_A_PAIR / 1e9:.1f} GB; "
            "to remove duplicates without listing every pair, run `neardup dedup` or neardup.deduplicate without pairs"
        )
