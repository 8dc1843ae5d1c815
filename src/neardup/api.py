"""The library: one function a question. This is the one place that wires the parts."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local import LocalEngine
from neardup.errors import ConfigError, DataError
from neardup.io import memory
from neardup.measures import jaccard as measure
from neardup.planner import Plan, plan_for
from neardup.report import Progress, Report, Watch, count_below, peak_memory_bytes
from neardup.stages.select import select_again


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How similar two texts are.

    Attributes:
        jaccard: exact similarity of the two shingle sets.
        estimate: what their signatures say.
        containment_a: the share of a's shingles that b has too.
        containment_b: the share of b's shingles that a has too.
        chance: the chance that two such documents share a bucket in a run with these settings.
        shingles_a: distinct shingles of a.
        shingles_b: distinct shingles of b.
        shared: distinct shingles of both.
    """

    jaccard: float
    estimate: float
    containment_a: float
    containment_b: float
    chance: float
    shingles_a: int
    shingles_b: int
    shared: int


def deduplicate(
    source: Any,
    *,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Report:
    """Remove near-duplicates: every removed document is similar to the kept one that stands for it.

    With cluster="components" it is only connected to it by a chain of similar ones; a warning counts those below.

    Args:
        source: list of texts, dict of id to text, Arrow array or table, pandas or polars series or frame, or dataset.
        ids: one id per document; else the id column of a table, else positions.
        config: settings to start from.
        progress: called with the events of neardup.report.
        settings: fields of Config by name.

    >>> report = deduplicate(["one two three four five six", "ONE two three; four five six!", "something else"])
    >>> report.removed.to_pylist()
    [{'doc_id': 1, 'kept_id': 0, 'similarity': 1.0}]
    """
    chosen = Config.of(config, **settings)
    if progress is not None and not callable(progress):
        raise ConfigError(f"`progress` must be a function that takes an event, got {progress!r}")
    watch = Watch(progress)
    plan_ = plan_for(chosen)
    with watch.stage("read"):
        read = memory.read(source, chosen, ids=ids)
    _judge(plan_, watch)
    if read.rejected.num_rows and not read.documents.num_rows:
        reason = read.rejected.column("reason")[0].as_py()
        watch.warn(f"all {read.rejected.num_rows:,} rows were rejected, the first because {reason}")
    outcome = pipeline.run(read.documents, plan_, chosen, LocalEngine(chosen.threads), watch)
    return _report(read, outcome, plan_, chosen, watch)


def find_pairs(
    source: Any,
    *,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Report:
    """Find every pair of documents that are similar: `deduplicate` with pairs=True.

    >>> find_pairs(["a b c d e f g", "a b c d e f g h", "x"], threshold=0.7).pairs.to_pylist()
    [{'doc_a': 0, 'doc_b': 1, 'similarity': 0.75}]
    """
    if settings.get("pairs", True) is not True:
        raise ConfigError(
            f"`pairs` must be left out, got {settings['pairs']!r}: find_pairs lists every pair",
            hint="call neardup.deduplicate",
        )
    return deduplicate(source, ids=ids, config=config, progress=progress, **(settings | {"pairs": True}))


def compare(a: str, b: str, *, config: Config | None = None, **settings: Any) -> Comparison:
    """Compare two texts exactly, and say what signatures and banding make of them.

    >>> compare("to be or not to be", "to be or not to sleep", size=2).jaccard
    0.8
    """
    chosen = Config.of(config, **settings)
    sets = measure.text_sets(_texts([a, b], chosen), chosen)
    first, second = sets.shingles[: sets.ends[1]], sets.shingles[sets.ends[1] :]
    signatures = measure.set_signatures(sets, chosen)
    shared = np.intersect1d(first, second, assume_unique=True).size
    union = first.size + second.size - shared
    similarity = shared / union if union else 0.0
    return Comparison(
        jaccard=similarity,
        estimate=float((signatures[0] == signatures[1]).mean()) if first.size and second.size else 0.0,
        containment_a=shared / first.size if first.size else 0.0,
        containment_b=shared / second.size if second.size else 0.0,
        chance=plan_for(chosen).chance(similarity),
        shingles_a=first.size,
        shingles_b=second.size,
        shared=shared,
    )


def plan(*, config: Config | None = None, **settings: Any) -> Plan:
    """Say which bands and rows the settings lead to, and what they promise.

    >>> plan(threshold=0.9).bands
    11
    """
    return plan_for(Config.of(config, **settings))


def shingles(text: str, *, config: Config | None = None, **settings: Any) -> npt.NDArray[np.uint64]:
    """Return the shingle hashes of a text, sorted and distinct.

    >>> len(shingles("a rose is a rose is a rose", size=3))
    3
    """
    chosen = Config.of(config, **settings)
    return measure.text_sets(_texts([text], chosen), chosen).shingles


def signatures(texts: Any, *, config: Config | None = None, **settings: Any) -> npt.NDArray[np.uint32]:
    """Return the signature of every text, one row each, on one thread.

    A text without shingles has 2**32 - 1 in every slot.

    >>> signatures(["the cat sat on the mat", "the dog"]).shape
    (2, 128)
    """
    chosen = Config.of(config, **settings)
    documents = _all_usable(memory.read(texts, Config.of(chosen, strict=False, keep="first")))
    signed, done = np.empty((documents.num_rows, chosen.num_perm), np.uint32), 0
    for chunk in documents.column("text").chunks:
        measure.text_signatures(chunk, chosen, signed[done : done + len(chunk)])
        done += len(chunk)
    return signed


def jaccard(a: Collection[Any] | npt.NDArray[Any], b: Collection[Any] | npt.NDArray[Any]) -> float:
    """Return the Jaccard similarity of two sets: shared items divided by all items; 0 if both are empty.

    >>> jaccard({"milk", "bread", "tea"}, {"milk", "bread", "coffee"})
    0.5
    """
    for name, items in (("a", a), ("b", b)):
        if isinstance(items, (str, bytes)) or not isinstance(items, (Collection, np.ndarray)):
            raise DataError(
                f"`{name}` must be a set or another collection of items, got {type(items).__name__}",
                hint="neardup.compare(a, b) takes two texts",
            )
    try:
        first, second = (set(items.tolist() if isinstance(items, np.ndarray) else items) for items in (a, b))
    except TypeError as error:
        raise DataError(f"an item of a set must be hashable: {error}", hint="use tuples instead of lists") from error
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def _texts(values: list[Any], config: Config) -> pa.Array:
    """Single texts as the one chunk of a string array; what the settings say of columns does not concern them."""
    alone = Config.of(config, strict=False, text_column=None, id_column=None, keep="first")
    return schema.one_array(_all_usable(memory.read(values, alone)).column("text"))


def _all_usable(read: memory.Source) -> pa.Table:
    for rejected in read.rejected.slice(0, 1).to_pylist():
        raise DataError(f"text number {rejected['row']} cannot be used: {rejected['reason']}", hint="pass texts only")
    return read.documents


def _judge(plan_: Plan, watch: Watch) -> None:
    if not plan_.keeps_recall:
        watch.warn(plan_.judgement())


def _report(read: memory.Source, outcome: pipeline.Outcome, plan_: Plan, config: Config, watch: Watch) -> Report:
    with watch.stage("report"):
        tables = _tables(read, outcome.selection)
        pairs = None if outcome.row_pairs is None else _named_pairs(read, outcome.row_pairs)

    if below := count_below(tables["removed"], config.threshold):
        watch.warn(f"{below:,} removed documents are below the threshold: chains count with cluster='components'")
    return Report(
        **tables,
        rejected=read.rejected,
        config=config,
        plan=plan_,
        documents=read.original.num_rows,
        exact_duplicates=outcome.exact_duplicates,
        pairs_verified=outcome.pairs_verified,
        seconds=watch.seconds,
        bytes_read=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
        peak_memory_bytes=peak_memory_bytes(),
        stages=watch.seconds_by_stage,
        warnings=tuple(watch.warnings),
        columns=read.columns,
        source=read.original,
        stored_pairs=pairs,
        signature_format=measure.signature_format(config),
        select_again=functools.partial(_select_again, read, outcome, plan_, config),
    )


def _select_again(
    read: memory.Source, outcome: pipeline.Outcome, plan_: Plan, config: Config, threshold: float
) -> Report:
    """Report on the stored pairs of at least `threshold`; bands, rows and filter stay those of the run."""
    stored = outcome.row_pairs or pa.table([[], [], []], schema=schema.ROW_PAIRS)
    again = Config.of(config, threshold=threshold, bands=plan_.bands, rows=plan_.rows)
    row_pairs = stored.filter(pc.greater_equal(stored.column("similarity"), threshold))
    selection = select_again(read.documents, row_pairs, again)
    judged, watch = dataclasses.replace(plan_, threshold=threshold), Watch()
    _judge(judged, watch)
    return _report(read, dataclasses.replace(outcome, selection=selection, row_pairs=row_pairs), judged, again, watch)


def _tables(read: memory.Source, selection: pa.Table) -> dict[str, Any]:
    selection = selection.combine_chunks()  # chunks follow the batches, and would show in a file
    kept = pc.equal(selection.column("row"), selection.column("kept_row"))
    removed = selection.filter(pc.invert(kept))
    ids, kept_ids = _ids(read, selection, "row"), _ids(read, selection, "kept_row")
    return {
        "kept_rows": schema.one_array(selection.filter(kept).column("row")),
        "removed": pa.table(
            [_ids(read, removed, "row"), _ids(read, removed, "kept_row"), removed.column("similarity")],
            schema=schema.removed(read.ids.type),
        ),
        "clusters": pa.table([ids, kept_ids], schema=schema.clusters(read.ids.type)),
    }


def _named_pairs(read: memory.Source, row_pairs: pa.Table) -> pa.Table:
    return pa.table(
        [_ids(read, row_pairs, "row_a"), _ids(read, row_pairs, "row_b"), row_pairs.column("similarity")],
        schema=schema.pairs(read.ids.type),
    )


def _ids(read: memory.Source, table: pa.Table, column: str) -> pa.Array:
    return read.ids.take(schema.one_array(table.column(column)))
