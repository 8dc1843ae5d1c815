"""A run from files to files: read, run the stages on disk, write the output whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import MIN_MEMORY, Config
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, return_freed
from neardup.errors import ConfigError, DataError
from neardup.io import finished
from neardup.io.outputs import TableWriter, write_rejected
from neardup.io.sources.corpus import FileDocuments
from neardup.io.sources.kept_ids import KeptIds
from neardup.io.sources.stdin import GIVEN_AS
from neardup.io.workspace import (
    REPORT,
    Workspace,
    publish_folder,
    written_files,
)
from neardup.measures.registry import holds_items, measure_of
from neardup.report import Audit, Progress, Report, Watch, count_below, peak_memory_bytes, summarise_clusters
from neardup.runs.recall import audited_files, measure
from neardup.runs.start import Published, files_of_pairs, opened, output_file, output_folder, publish_pairs
from neardup.runs.stored_pairs import list_stored, select_stored, write_order
from neardup.theory.plan import Plan

NUM_LARGEST: Final = 10
PAIRS: Final = "out/pairs.parquet"
_LEAST_ID_BYTES: Final = 8 << 20


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """What the steps of one run share; spooled: the file that standard input was stored in."""

    documents: FileDocuments
    outcome: pipeline.Outcome
    plan: Plan
    config: Config
    workspace: Workspace
    engine: LocalEngine
    watch: Watch
    spooled: str | None


def check_selects(config: Config) -> None:
    """Raise where nothing says which document of a pair stays."""
    if config.measure == "containment":
        raise ConfigError(
            "the measure 'containment' lists pairs, it does not say which document stays",
            hint="use neardup.find_pairs, or `neardup pairs`, and choose from containment_a and containment_b",
        )


def deduplicate_files(inputs: Sequence[str], out: str, config: Config, progress: Progress | None = None) -> Report:
    """Write the kept rows of files, and what was removed for which of them, to the folder `out`."""
    target = output_folder(out)
    check_selects(config)
    try:
        return _deduplicate(inputs, target, config, progress)
    except Published:
        return finished.restore(target)


def _deduplicate(inputs: Sequence[str], target: Path, config: Config, progress: Progress | None) -> Report:
    with _run("dedup", inputs, target, config, progress) as job:
        kept_ids = _kept_ids(job)
        with job.watch.stage("write", len(job.documents.own_files()), "files") as advance:
            _write_tables(job, kept_ids)
            if not config.dry_run:
                _write_kept(job, kept_ids, advance)
        audit = _audit(job, functools.partial(finished.load_table, job.workspace.folder / "out"), pairs=PAIRS)
        load = functools.partial(finished.load_table, target)
        report = _report(job, str(target), load, PAIRS if config.pairs else None, audit)
        report = dataclasses.replace(report, files=written_files(job.workspace.folder / "out"))
        write_report(job.workspace.folder / "out" / REPORT, report)
        publish_folder(job.workspace, target)
    return report


def find_pairs_files(inputs: Sequence[str], out: str, config: Config, progress: Progress | None = None) -> Report:
    """Write every pair of similar documents of files to the file `out`."""
    target, config = output_file(out), Config.of(config, pairs=True)
    if len(inputs) == 1 and finished.is_run(Path(inputs[0])):
        return list_stored(Path(inputs[0]), target, config)
    try:
        return _find_pairs(inputs, target, config, progress)
    except Published:
        return finished.restore(target)


def _find_pairs(inputs: Sequence[str], target: Path, config: Config, progress: Progress | None) -> Report:
    with _run("pairs", inputs, target, config, progress) as job:
        with job.watch.stage("write"):
            name = f"out/pairs{target.suffix}"
            pairs = job.workspace.once(name, lambda path: _write_pairs(job, path))
            rejected = job.workspace.once("out/rejected.jsonl", lambda path: _write_rejected(job, path))
        audit = _audit(job, functools.partial(finished.load_pairs, pairs), pairs=name)
        report = _report(job, str(target), functools.partial(finished.load_pairs, target), name, audit)
        report = dataclasses.replace(report, files=files_of_pairs(target))
        write_report(job.workspace.folder / "out" / REPORT, report)
        publish_pairs(job.workspace, pairs, rejected, target)
    return report


@contextlib.contextmanager
def _run(command: str, inputs: Sequence[str], out: Path, config: Config, progress: Progress | None) -> Iterator[_Job]:
    """Run the stages."""
    watch = Watch(progress)
    with opened(command, inputs, out, config, watch) as (ahead, own, workspace, spooled, config, plan):
        engine = LocalEngine(config.threads, workspace, config.memory)
        room_for_texts = 0 if holds_items(config) else engine.room() // 4
        # Readers must know the limit of memory where none was asked for too.
        limited = Config.of(config, memory=max(MIN_MEMORY, Memory(config.memory).limit))
        return_freed(limited.memory or MIN_MEMORY)
        documents = FileDocuments([*ahead, *own], len(ahead), limited, workspace, room_for_texts)
        outcome = pipeline.run(documents, plan, config, engine, watch)
        if not config.audit:  # which reads the documents again
            documents.release()
        yield _Job(
            documents=documents,
            outcome=outcome,
            plan=outcome.plan,
            config=config,
            workspace=workspace,
            engine=engine,
            watch=watch,
            spooled=spooled,
        )


def _kept_ids(job: _Job) -> KeptIds:
    """The id of the document that stands for each removed one."""
    kept_rows = job.outcome.selection.column("kept_row").to_numpy()
    return KeptIds(kept_rows, job.documents.ids_of, _ids_at_once(job))


def _ids_at_once(job: _Job) -> int:
    """How many ids to hold: each passes over all of them on disk, so as many as there is room for."""
    return job.documents.num_ids_within(max(_LEAST_ID_BYTES, job.engine.room() // 8))


def _write_tables(job: _Job, kept_ids: KeptIds) -> None:
    once = job.workspace.once
    once("out/removed.parquet", lambda path: _write_removed(job, kept_ids, path))
    once("out/clusters.parquet", lambda path: _write_clusters(job, kept_ids, path))
    once("out/rejected.jsonl", lambda path: _write_rejected(job, path))
    if job.config.pairs:
        pairs = once(PAIRS, lambda path: _write_pairs(job, path))
        once("out/order.parquet", lambda path: write_order(path, pairs, job.documents, job.outcome))


def _write_removed(job: _Job, kept_ids: KeptIds, path: Path) -> None:
    at_once = _ids_at_once(job)
    with TableWriter(path, schema.REMOVED_FROM_FILES) as writer:
        for first in range(0, job.outcome.selection.num_rows, at_once):
            writer.write(_removed(job, kept_ids, first, at_once))


def _removed(job: _Job, kept_ids: KeptIds, first: int, length: int) -> pa.Table:
    """Name some rows of the selection."""
    chosen = job.outcome.selection.slice(first, length)
    rows, kept_rows = (chosen.column(name).to_numpy() for name in ("row", "kept_row"))
    kept, similarity = kept_ids.slice(first, rows.size), chosen.column("similarity")
    columns = [job.documents.ids_of(rows), kept, similarity, *job.documents.locate(rows)]
    columns += job.documents.locate(kept_rows)
    return pa.table(columns, schema=schema.REMOVED_FROM_FILES)


def _write_clusters(job: _Job, kept_ids: KeptIds, path: Path) -> None:
    removed = job.outcome.selection.column("row").to_numpy()
    columns = schema.clusters(pa.string())
    with TableWriter(path, columns) as writer:
        for batch in job.documents.own_names():
            rows, ids = batch.column("row").to_numpy(), batch.column("doc_id")
            begin, end = np.searchsorted(removed, [rows[0], rows[-1] + 1]).tolist() if rows.size else (0, 0)
            is_removed = pa.array(np.isin(rows, removed[begin:end], assume_unique=True))
            kept = pc.replace_with_mask(ids, is_removed, kept_ids.slice(begin, end - begin))
            writer.write(pa.record_batch([ids, kept], schema=columns))


def _write_pairs(job: _Job, path: Path) -> dict[str, int]:
    num_pairs, at_once = 0, _ids_at_once(job)
    columns = schema.with_shares(schema.PAIRS_FROM_FILES, schema.row_pairs(job.config.measure))
    with TableWriter(path, columns) as writer:
        for batch in job.outcome.row_pairs or ():
            for named in job.documents.name_pairs(batch, at_once):
                writer.write(named)
            num_pairs += batch.num_rows
    return {"num_pairs": num_pairs}


def _audit(job: _Job, load: Callable[[str], pa.Table | None], pairs: str) -> Audit | None:
    """Measure the recall of a run, if it is asked for; `pairs` names the file with its pairs in the workspace."""
    if not job.config.audit:
        return None
    num_pairs = job.workspace.facts(pairs)["num_pairs"] if job.config.pairs else None
    audited = audited_files(job.documents, job.plan, job.config, load, job.documents.count("documents"), num_pairs)
    try:
        return measure(audited, job.engine, job.watch)
    finally:
        job.documents.release()


def _write_rejected(job: _Job, path: Path) -> None:
    write_rejected(path, job.documents.rejected())


def _write_kept(job: _Job, kept_ids: KeptIds, advance: Callable[[int], None]) -> None:
    documents, workspace = job.documents, job.workspace
    groups = documents.write_groups()

    def write(number: int) -> None:
        group = groups[number]
        if len(group) == 1:
            name = f"out/kept/{documents.files[group[0]].name}"
            workspace.once(name, lambda path: documents.write(group[0], str(path), job.outcome.selection, kept_ids))
        else:
            # To remember every one of many small files takes longer than to write them.
            workspace.once(f"written/{number:06}", lambda path: write_all(group, path))
        advance(len(group))

    def write_all(group: range, path: Path) -> None:
        documents.write_texts(group, workspace.folder / "out" / "kept", job.outcome.selection)
        path.write_text(f"{len(group)} files\n", "ascii")

    job.engine.side_by_side(write, range(len(groups)))


def _report(
    job: _Job, out: str, load: Callable[[str], pa.Table | None], pairs: str | None, audit: Audit | None
) -> Report:
    """Report on a run; `pairs` names the file with its pairs in the workspace."""
    _warn_of_ahead(job)
    documents, selection = job.documents, job.outcome.selection
    num_documents, num_rejected = documents.count("documents"), documents.count("rejected")
    if below := count_below(selection, job.config.threshold):
        job.watch.warn(f"{below:,} removed documents are below the threshold: chains count with cluster='components'")
    if num_rejected and not num_documents:
        job.watch.warn(f"all {num_rejected:,} rows were rejected, the first, {_first(documents.rejected())}")
    return Report(
        config=job.config,
        plan=job.plan,
        documents=num_documents + num_rejected,
        num_kept=num_documents - selection.num_rows,
        num_removed=selection.num_rows,
        num_rejected=num_rejected,
        exact_duplicates=job.outcome.exact_duplicates,
        pairs_verified=job.outcome.pairs_verified,
        num_pairs=job.workspace.facts(pairs)["num_pairs"] if pairs else None,
        seconds=job.watch.seconds,
        bytes_read=documents.count("text_bytes"),
        peak_memory_bytes=peak_memory_bytes(),
        stages=job.watch.seconds_by_stage,
        warnings=tuple(job.watch.warnings),
        columns=documents.columns_taken(),
        signature_format=measure_of(job.config).signature_format(job.config),
        load=load,
        out=out,
        inputs=tuple(
            entry | {"path": GIVEN_AS, "modified": ""} if entry["path"] == job.spooled else entry
            for entry in documents.summary()
        ),
        largest=_largest(job),
        select_again=None if job.config.measure == "containment" else select_stored,
        audit=audit,
    )


def _largest(job: _Job) -> tuple[dict[str, Any], ...]:
    selection = job.outcome.selection
    rows, kept_rows = (selection.column(name).to_numpy() for name in ("row", "kept_row"))
    similarity = selection.column("similarity").to_numpy()
    kept, sizes, weakest = summarise_clusters(kept_rows, similarity, NUM_LARGEST)
    named, inverse = np.unique(np.r_[kept, rows[weakest]], return_inverse=True)
    ids = job.documents.ids_of(named).take(pa.array(inverse)).to_pylist()
    members = zip(ids[: kept.size], sizes.tolist(), ids[kept.size :], similarity[weakest].tolist(), strict=True)
    names = ("cluster_id", "documents", "weakest_id", "similarity")
    return tuple(dict(zip(names, member, strict=True)) for member in members)


def _first(rejected: Iterator[pa.RecordBatch]) -> str:
    """Name the first rejected row."""
    first = next(row for batch in rejected for row in batch.slice(0, 1).to_pylist())
    return f"{first['file']} row {first['row']}, because {first['reason']}"


def _warn_of_ahead(job: _Job) -> None:
    """Rows of OLD are not listed as rejected, since they are not of the input; but nobody shall miss them."""
    num_usable, num_rejected = (job.documents.count(fact, ahead=True) for fact in ("documents", "rejected"))
    if not num_rejected:
        return
    first = _first(job.documents.rejected(ahead=True))
    if not num_usable:
        raise DataError(f"no row of --against can be used, the first, {first}", hint="name its columns as the input's")
    job.watch.warn(f"{num_rejected:,} rows of --against cannot be used, the first, {first}")


def write_report(path: Path, report: Report) -> None:
    """Write report.json."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.as_dict(), ensure_ascii=False, indent=1) + "\n", "utf-8")
