"""The stages in order, over any engine.

    sketch -> collapse -> link -> components -> verify -> select

Every table is keyed by `row`; only documents that share a bucket reach `verify`.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Engine
from neardup.planner import Plan
from neardup.report import Watch
from neardup.stages.collapse import collapse
from neardup.stages.link import link, take_band
from neardup.stages.select import count_copies, count_pairs, list_pairs, select
from neardup.stages.sketch import sketch
from neardup.stages.verify import verify

# A listing this long is worth a word before memory runs out; a pair takes 24 bytes, and four times that to be sorted.
MANY_PAIRS: Final = 10_000_000
BYTES_A_PAIR: Final = 96


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the stages say, by row."""

    selection: pa.Table
    row_pairs: pa.Table | None
    exact_duplicates: int
    pairs_verified: int


def run(documents: pa.Table, plan: Plan, config: Config, engine: Engine, watch: Watch) -> Outcome:
    """Find the near-duplicates among `documents` and select which stay."""
    with watch.stage("sketch", documents.num_rows) as advance:
        sketches = engine.map_batches(
            engine.cut(documents), partial(sketch, plan=plan, config=config), schema.sketches(plan.bands), advance
        )
    with watch.stage("collapse"):
        classes = collapse(sketches, config)
        is_representative = pc.equal(classes.column("row"), classes.column("representative"))
        has_shingles = pc.greater(sketches.column("num_shingles"), 0)
        if config.pairs:
            _warn_of_many(count_copies(classes), watch)
        candidates = sketches.select(["row", "keys"]).filter(pc.and_(is_representative, has_shingles))
    with watch.stage("link", plan.bands * candidates.num_rows) as advance:
        band_batches = (take_band(candidates, number) for number in range(plan.bands))
        links = engine.map_batches(band_batches, link, schema.LINKS, advance)
    with watch.stage("components"):
        components = engine.connected_components(links)
    with watch.stage("verify", components.num_rows) as advance:
        verified = engine.map_batches(
            engine.cut_groups(documents, components),
            partial(verify, plan=plan, config=config),
            schema.VERIFIED,
            advance,
        )
    with watch.stage("select"):
        selection = select(classes, verified)
        row_pairs = _list(classes, verified, watch) if config.pairs else None
    return Outcome(
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=pc.sum(pc.invert(is_representative)).as_py() or 0,
        pairs_verified=pc.sum(verified.column("compared")).as_py() or 0,
    )


def _list(classes: pa.Table, verified: pa.Table, watch: Watch) -> pa.Table:
    if count_copies(classes) < MANY_PAIRS:  # else it was said before the work began
        _warn_of_many(count_pairs(classes, verified), watch)
    return list_pairs(classes, verified)


def _warn_of_many(num_pairs: int, watch: Watch) -> None:
    if num_pairs >= MANY_PAIRS:
        watch.warn(
            f"at least {num_pairs:,} pairs to list, about {num_pairs * BYTES_A_PAIR / 1e9:.1f} GB; "
            "neardup.deduplicate without pairs=True compares each document with kept ones only"
        )
