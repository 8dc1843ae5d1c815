"""The stages in order, on any engine.

    sketch -> collapse -> link -> components -> verify -> select

Every table is keyed by `row`. Only documents that share a bucket (in the exact join a prefix
shingle) reach `verify`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, Generic

import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.engines.base import (
    I64,
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
from neardup.stages.list_pairs import FoundPairs, count_pairs, list_pairs
from neardup.stages.prefix import collect, count, num_counters, prefix
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
class PipelineOutcome(Generic[Table]):
    """The result of the stages, by row, in tables of the engine: the selection and, on request, every pair found.

    plan: the plan of the method that was used; members: every document that is not the kept one of
    its cluster, None where all of them are removed; selects: whether the pipeline selects which
    documents to keep;
    pairs_verified: the pairs found, or without a list of them one per matched document;
    comparisons: how many it took;
    pair_columns: the schema of row_pairs; decisions: what decisions changed;
    sketches: has the keep priorities, for a later selection among the pairs;
    only_ignored: documents of the input all of whose shingles are ignored.
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
    sketches: Table | None = None
    only_ignored: int = 0

    @property
    def clustered(self) -> Table:
        """Every document that is not the kept one of its cluster, removed or spared by `per_cluster`."""
        return self.selection if self.members is None else self.members


# What a run can do with its documents; `engine` is the one that reads them.
Pipeline = Callable[[Any, Plan, Config, Any, Watch], PipelineOutcome[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Sketched(Generic[Table, Rows]):
    """The state that every stage after the first one shares."""

    sketches: Table
    documents: Source
    plan: Plan
    config: Config
    engine: Engine[Table, Rows]


def run(
    documents: Source, plan: Plan, config: Config, engine: Engine[Table, Rows], watch: Watch
) -> PipelineOutcome[Table]:
    """Find the near-duplicates among `documents` and select which stay."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = sketch_documents(documents, plan, config, engine, advance)
        warn_of_short(sketches, documents, config, engine, watch)
        only_ignored = warn_of_ignored(sketches, documents, config, engine, watch)
    state = _Sketched(sketches, documents, plan, config, engine)
    with watch.stage("collapse"):
        copies = _collapse(state)
        num_copies = _count(copies, None, state) if config.pairs else 0
        warn_of_many(num_copies, watch)
        classes = _separate(copies, state)
    if is_open(config):
        with watch.stage("choose"):
            contents = _measure(_representatives(classes, state), state)
            plan = decide(contents, plan, is_cached=holds_items(config))
            state = _Sketched(sketches, documents, plan, config, engine)
    if plan.bands:
        linked = watch.stage("link", plan.bands, "bands")
    else:
        linked = watch.stage("link", 2 * documents.num_rows, "sets")
    with linked as advance:
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
        if config.pairs and num_copies < MANY_PAIRS:  # with more, the warning was issued above
            warn_of_many(_count(classes, verified, state), watch)
        row_pairs = _list(classes, verified, state) if config.pairs else None
    return PipelineOutcome(
        plan=plan,
        selection=selection,
        members=members,
        row_pairs=row_pairs,
        exact_duplicates=engine.total(
            _removable(copies, state), first_row=documents.num_references
        ),
        pairs_verified=engine.total(verified, "found"),
        comparisons=engine.total(verified, "compared"),
        only_ignored=only_ignored,
        sketches=sketches,
    )


def sketch_documents(
    documents: Source, plan: Plan, config: Config, engine: Engine[Table, Rows], advance: Advance
) -> Table:
    """Read all documents once: sizes, digests, and band keys or sets, as schema.sketches."""
    is_cached = holds_items(config)
    is_set = config.measure in SET_MEASURES
    is_sampled = is_set and is_open(config)
    has_shingles = is_sampled or (is_set and plan.is_exact)
    columns = schema.sketches(
        plan.bands, has_shingles=has_shingles, ignores=config.ignores_shingles
    )
    secret = engine.secret

    def step(batch: pa.RecordBatch, hold: Hold | None) -> pa.RecordBatch:
        return sketch(
            batch, plan, config, hold if is_cached else None, is_sampled=is_sampled, secret=secret
        )

    return engine.map_documents(documents, step, columns, advance)


def warn_of_short(
    sketches: Table, documents: Source, config: Config, engine: Engine[Table, Rows], watch: Watch
) -> None:
    """Warn if most documents have so few shingles that a typo hides a match, or count code that is not compared."""
    if config.asks_code and config.min_words:
        compared = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        count = engine.total(sketches) - engine.total(sketches, where=compared)
        if count:
            watch.warn(
                f"{count:,} document{'s'[: count != 1]} with fewer than {config.min_words:,} tokens "
                f"{'were' if count != 1 else 'was'} not compared"
            )
    if not has_shorter_shingles(config):
        return
    num_rows = documents.num_rows
    every = engine.choose_rows(sketches, "num_shingles", num_rows)
    short = engine.choose_rows(sketches, "num_shingles", num_rows, below=FEW_SHINGLES)
    message = advise_on_short(
        engine.total(sketches, where=short), engine.total(sketches, where=every)
    )
    if message is not None:
        watch.warn(message, is_urgent=True)


def warn_of_ignored(
    sketches: Table, documents: Source, config: Config, engine: Engine[Table, Rows], watch: Watch
) -> int:
    """Count the documents of the input that are left without shingles, and warn about them."""
    if not config.ignores_shingles:
        return 0
    count = engine.total(sketches, "only_ignored", first_row=documents.num_references)
    if not count:
        return 0
    if count > 1:
        message = f"{count:,} documents have only ignored shingles, so they match nothing"
    else:
        message = "1 document has only ignored shingles, so it matches nothing"
    if config.collapse_empty:
        message += " except documents without shingles"
    watch.warn(message, is_urgent=True)
    return count


def measure_contents(
    documents: Source, plan: Plan, config: Config, engine: Engine[Table, Rows]
) -> Contents:
    """Return the figures by which method="auto" chooses."""
    sketches = sketch_documents(documents, plan, config, engine, no_progress)
    state = _Sketched(sketches, documents, plan, config, engine)
    return _measure(_representatives(_separate(_collapse(state), state), state), state)


def _collapse(state: _Sketched[Table, Rows]) -> Table:
    """The copies, by row. Documents without shingles are not collapsed unless `collapse_empty` is set."""
    engine = state.engine
    sketches = state.sketches
    positive = None if state.config.collapse_empty else "num_shingles"

    def make() -> Table:
        where = engine.choose_rows(sketches, positive, state.documents.num_rows)
        return engine.map_groups(sketches, [_CLASS_VIEW], collapse, where, no_progress)

    return engine.checkpoint("classes", make, schema.CLASSES)


def _separate(copies: Table, state: _Sketched[Table, Rows]) -> Table:
    """The copies that their representative can replace in every comparison."""
    engine = state.engine
    config = state.config
    num_references = state.documents.num_references
    if num_references <= 0 or not (config.pairs or config.cluster == "components"):
        return copies  # a copy of a reference document is removed because of it, whatever else it is similar to

    def make() -> Table:
        sized = engine.lookup(copies, "representative", state.sketches, ["num_shingles"])
        step = partial(separate, num_references=num_references)
        return engine.map_classes(sized, None, step, schema.CLASSES)

    return engine.checkpoint("classes_apart", make, schema.CLASSES)


def _removable(copies: Table, state: _Sketched[Table, Rows]) -> Table:
    """The copies that are removed because they are copies: with `only_against`, only those of reference documents."""
    if not state.config.only_against:
        return copies
    step = partial(
        of_references, column="representative", num_references=state.documents.num_references
    )
    return state.engine.map_tables([copies], step, schema.CLASSES)


def _representatives(classes: Table, state: _Sketched[Table, Rows]) -> Rows:
    """The documents that continue to the next stages: all but the copies."""
    return state.engine.choose_rows(
        state.sketches, "num_shingles", state.documents.num_rows, without=classes
    )


def _measure(where: Rows, state: _Sketched[Table, Rows]) -> Contents:
    engine = state.engine
    sketches = state.sketches
    shingles = engine.total(sketches, "num_shingles", where)
    if state.config.measure not in SET_MEASURES:
        return Contents(documents=engine.total(sketches, None, where), shingles=shingles)
    if shingles > MAX_SHINGLES:
        return Contents(documents=0, shingles=shingles)

    def make_step() -> BatchStep:
        counters = num_counters(shingles // SAMPLED_OF)
        counts = engine.count(sketches, ["row", "shingles"], where, count, counters)
        return partial(measure, counts=counts, threshold=state.plan.threshold)

    columns = ["row", "num_shingles", "shingles"]
    table = engine.map_table("contents", sketches, columns, where, make_step, schema.CONTENTS)
    names = [field.name for field in schema.CONTENTS if field.name != "row"]
    return Contents(shingles=shingles, **{name: engine.total(table, name) for name in names})


def _connect(where: Rows, state: _Sketched[Table, Rows], advance: Advance) -> Table:
    """The components of documents linked by a shared bucket or prefix shingle."""
    engine = state.engine
    documents = state.documents
    plan = state.plan
    tally = Tally(advance)
    if plan.is_exact and state.config.measure not in SET_MEASURES:
        links = _compare_all(where, state, tally)
    elif plan.is_exact:
        postings = _prefixes(where, state, tally)
        step = partial(link_prefixes, threshold=plan.threshold)
        links = engine.map_groups(postings, [_POSTINGS_VIEW], step, None, no_progress)
    else:
        keys = map(schema.key_column, range(plan.bands))
        bands = [TableView(("row", key), (key,), ("row",)) for key in keys]
        links = engine.map_groups(state.sketches, bands, link, where, advance)
    components = engine.connected_components(links, documents.num_rows)
    if plan.is_exact:
        tally.report(least=2 * documents.num_rows)  # includes documents that were skipped
    if state.config.only_against:
        # A component is named by its smallest row, and reference rows come first.
        step = partial(of_references, column="component", num_references=documents.num_references)
        components = engine.map_tables([components], step, schema.COMPONENTS)
    return components


def _compare_all(where: Rows, state: _Sketched[Table, Rows], tally: Tally) -> Table:
    """The links of every two documents that are a pair, for measures that no prefix filter knows."""
    # Other runs do without its kernels.
    from neardup.stages.link_all import AllPairs, to_compared

    engine = state.engine
    documents = state.documents
    step = engine.counting(to_compared, tally)
    compared = engine.map_read("compared", documents, state.sketches, where, step, schema.COMPARED)
    steps = AllPairs(config=state.config, num_references=documents.num_references)
    return engine.map_block_pairs(compared, steps, schema.LINKS, tally.add)


def _prefixes(where: Rows, state: _Sketched[Table, Rows], tally: Tally) -> Table:
    """The prefix (the rarest shingles) of every document that may have a partner; takes two passes over the sets."""
    engine = state.engine
    sets = state.sketches
    every = where
    columns = ["row", "shingles"]
    if is_open(state.config):  # then the first pass has computed band keys instead of sets
        step = partial(collect, config=state.config)
        sets = engine.map_read("sets", state.documents, sets, where, step, schema.SETS)
        every = engine.choose_rows(sets, None, state.documents.num_rows)

    def make_step() -> BatchStep:
        counters = num_counters(engine.total(state.sketches, "num_shingles", where))
        counts = engine.count(sets, columns, every, engine.counting(count, tally), counters)
        step = partial(prefix, counts=counts, threshold=state.plan.threshold)
        return engine.counting(step, tally)

    return engine.map_table("postings", sets, columns, every, make_step, schema.POSTINGS)


def _verify(components: Table, state: _Sketched[Table, Rows], advance: Advance) -> Table:
    """The exact matches and pairs among the documents of components."""
    plan = state.plan

    def cost(text_bytes: I64, num_shingles: I64) -> I64:
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
        whole=partial(verify, plan=plan, config=state.config),
        blocks=partial(verify_blocks, plan=plan, config=state.config),
        cost=cost,
    )
    return state.engine.map_components(
        state.documents, components, state.sketches, steps, schema.VERIFIED, advance
    )


def _select(classes: Table, verified: Table, state: _Sketched[Table, Rows]) -> Table:
    copies = state.engine.lookup(classes, "representative", verified, ["kept_row", "similarity"])
    step = partial(
        select,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )
    return state.engine.map_tables([verified, copies], step, schema.SELECTION)


def _thin(members: Table, state: _Sketched[Table, Rows]) -> Table:
    """The removed documents: all members of clusters, except those that `per_cluster` spares."""
    engine = state.engine
    per_cluster = state.config.per_cluster
    if per_cluster == 1:
        return members

    def make() -> Table:
        ranked = engine.lookup(members, "row", state.sketches, ["priority"])
        step = partial(thin, per_cluster=per_cluster)
        return engine.map_groups(ranked, [_CLUSTER_VIEW], step, None, no_progress)

    return engine.checkpoint("thinned", make, schema.SELECTION)


def _list(classes: Table, verified: Table, state: _Sketched[Table, Rows]) -> Table:
    step = partial(
        list_pairs,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )
    return state.engine.map_classes(classes, verified, step, schema.ROW_PAIRS)


def _count(classes: Table, verified: Table | None, state: _Sketched[Table, Rows]) -> int:
    """Count the pairs that `_list` would list; without verified documents, those of exact copies."""
    count = partial(
        count_pairs,
        num_references=state.documents.num_references,
        only_against=state.config.only_against,
    )

    def step(copies: pa.Table, found: FoundPairs | None) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([[count(copies, found)]], schema=schema.COUNTS)

    counts = state.engine.map_classes(classes, verified, step, schema.COUNTS)
    return state.engine.total(counts, "count")


def warn_of_many(num_pairs: int, watch: Watch) -> None:
    """Warn about the size of a long list of pairs before it is made."""
    if num_pairs >= MANY_PAIRS:
        watch.warn(
            f"the list will have at least {num_pairs:,} pairs and take about {num_pairs * BYTES_A_PAIR / 1e9:.1f} GB; "
            "to remove duplicates without listing every pair, run `neardup dedup` or neardup.deduplicate without pairs"
        )
