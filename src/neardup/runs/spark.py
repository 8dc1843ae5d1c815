"""A run on Spark: from a DataFrame to DataFrames, or from files to files."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io import finished
from neardup.io.outputs import TableWriter, write_rejected
from neardup.io.sources.stdin import GIVEN_AS
from neardup.io.work_folder import remove_tree
from neardup.io.workspace import REPORT, Workspace, publish_folder, written_files
from neardup.measures.registry import measure_of
from neardup.report import Progress, Report, Watch, peak_memory_bytes
from neardup.runs import files as jobs
from neardup.runs.start import Published, check_plan, files_of_pairs, opened, output_file, output_folder, publish_pairs
from neardup.theory.plan import Plan, plan_for

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, SparkEngine

NUM_LARGEST: Final = 10


def engine_for(config: Config, engine: SparkEngine | None, frame: Any = None) -> SparkEngine:
    """Return the engine that was given, that of the session of a frame, or one of a session that is opened."""
    from neardup.engines.spark import SparkEngine
    from neardup.engines.spark.session import open_engine

    if engine is not None:
        return engine
    return open_engine(config) if frame is None else SparkEngine(frame.sparkSession)


def _check_settings(config: Config) -> None:
    """What only the local engine can do."""
    if config.measure == "containment":
        raise ConfigError(
            "the measure 'containment' does not run on Spark: its index is held in one memory",
            hint="use engine='local'",
        )
    if config.audit:
        raise ConfigError("`audit` does not run on Spark", hint="call neardup.audit(OUT) when the run has ended")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Job:
    """What the steps of one run share; source: a FileSource or a FrameSource."""

    source: Any
    outcome: pipeline.Outcome
    plan: Plan
    config: Config
    engine: SparkEngine
    watch: Watch


def deduplicate_frame(frame: Any, config: Config, engine: SparkEngine, progress: Progress | None = None) -> Report:
    """Find the near-duplicates among the rows of a Spark DataFrame; the tables of the report are DataFrames."""
    from neardup.engines.spark import FrameSource, results

    _check_settings(config)
    watch, run = Watch(progress), engine.begin()
    check_plan(config)
    with watch.stage("read"):
        source = FrameSource(frame, config, run.storage)
        config = source.config
        plan = plan_for(config)
    if not plan.keeps_recall:
        watch.warn(plan.judgement())
    outcome = pipeline.run(source, plan, config, run, watch)
    job = _Job(source=source, outcome=outcome, plan=outcome.plan, config=config, engine=run, watch=watch)
    with watch.stage("report"):
        row_pairs = None if outcome.row_pairs is None else run.storage.store("pairs", outcome.row_pairs)
        tables = results.frame_tables(source, outcome.selection, row_pairs)
        top = results.largest_clusters(outcome.selection, source.ids(), NUM_LARGEST).collect()
    return _report(
        job,
        load=tables.get,
        num_pairs=None if row_pairs is None else run.total(row_pairs),
        largest=_largest(top),
        columns=source.columns.taken(),
    )


def deduplicate_files(
    inputs: Sequence[str], out: str, config: Config, engine: SparkEngine, progress: Progress | None = None
) -> Report:
    """Write the kept rows of files, and what was removed for which of them, to the folder `out`."""
    target = output_folder(out)
    try:
        with _run("dedup", inputs, target, config, engine, progress) as (job, workspace, told):
            num_pairs = _write_tables(job, workspace)
            if not config.dry_run:
                _write_kept(job, workspace)
            load = functools.partial(finished.load_table, target)
            files = written_files(workspace.folder / "out")
            report = _report(job, load=load, out=str(target), num_pairs=num_pairs, files=files, **told())
            jobs.write_report(workspace.folder / "out" / REPORT, report)
            publish_folder(workspace, target)
    except Published:
        return finished.restore(target)
    return report


def find_pairs_files(
    inputs: Sequence[str], out: str, config: Config, engine: SparkEngine, progress: Progress | None = None
) -> Report:
    """Write every pair of similar documents of files to the file `out`."""
    if len(inputs) == 1 and finished.is_run(Path(inputs[0])):
        return jobs.find_pairs_files(inputs, out, config, progress)
    target, config = output_file(out), Config.of(config, pairs=True)
    try:
        return _find_pairs(inputs, target, config, engine, progress)
    except Published:
        return finished.restore(target)


def _find_pairs(
    inputs: Sequence[str], target: Path, config: Config, engine: SparkEngine, progress: Progress | None
) -> Report:
    with _run("pairs", inputs, target, config, engine, progress) as (job, workspace, told):
        with job.watch.stage("write"):
            pairs = workspace.once(f"out/pairs{target.suffix}", functools.partial(_write_pairs, job))
            rejected = workspace.once("out/rejected.jsonl", functools.partial(_write_rejected, job))
        num_pairs = workspace.facts(f"out/pairs{target.suffix}")["num_pairs"]
        load = functools.partial(finished.load_pairs, target)
        files = files_of_pairs(target)
        report = _report(job, load=load, out=str(target), num_pairs=num_pairs, files=files, **told())
        jobs.write_report(workspace.folder / "out" / REPORT, report)
        publish_pairs(workspace, pairs, rejected, target)
    return report


Told = Callable[[], dict[str, Any]]


@contextlib.contextmanager
def _run(
    command: str, inputs: Sequence[str], out: Path, config: Config, engine: SparkEngine, progress: Progress | None
) -> Iterator[tuple[_Job, Workspace, Told]]:
    """Run the stages; the tables of Spark stand in the workspace, which every worker must reach."""
    from neardup.engines.spark import FileSource

    watch = Watch(progress)
    _check_settings(config)
    with opened(command, inputs, out, config, watch) as (ahead, own, workspace, spooled, config, plan):
        run = engine.begin(str((workspace.folder / "spark").resolve()))
        # Another machine may number the same file otherwise.
        files = [dataclasses.replace(file, identity="") for file in (*ahead, *own)]
        source = FileSource(run.spark, files, len(ahead), config)
        outcome = pipeline.run(source, plan, config, run, watch)
        job = _Job(source=source, outcome=outcome, plan=outcome.plan, config=config, engine=run, watch=watch)
        yield job, workspace, functools.partial(_tell_files, job, spooled)


def _tell_files(job: _Job, spooled: str | None) -> dict[str, Any]:
    """What the report says of files; rows that could not be used are warned of."""
    from neardup.engines.spark import results

    source: FileSource = job.source
    _warn_of_ahead(job)
    top = results.largest_clusters(job.outcome.selection, source.ids(), NUM_LARGEST)
    placed = source.place(
        top, [("kept_row", "cluster_id", "file", "number"), ("weakest_row", "weakest_id", "weakest_file", "at")]
    )
    return {
        "largest": _largest(sorted(placed.collect(), key=lambda row: (-row["documents"], row["kept_row"]))),
        "columns": source.parts.columns_taken(),
        "inputs": tuple(
            entry | {"path": GIVEN_AS} if entry["path"] == spooled else entry for entry in source.summary()
        ),
    }


def _warn_of_ahead(job: _Job) -> None:
    """Rows of OLD are not listed as rejected, since they are not of the input; but nobody shall miss them."""
    from neardup.engines.spark import file_tables as files

    if not job.source.num_ahead:
        return
    num_rejected, num_usable = job.source.count_ahead()
    if not num_rejected:
        return
    first = files.rejected_table(job.source, ahead=True).first()
    named = f"{first['file']} row {first['row']}, because {first['reason']}" if first else ""
    if not num_usable:
        raise DataError(f"no row of --against can be used, the first, {named}", hint="name its columns as the input's")
    job.watch.warn(f"{num_rejected:,} rows of --against cannot be used, the first, {named}")


def _write_tables(job: _Job, workspace: Workspace) -> int | None:
    """Write the tables of the output; return how many pairs there are."""
    from neardup.engines.spark import file_tables as files

    selection, source = job.outcome.selection, job.source
    with job.watch.stage("write tables"):
        removed = functools.partial(
            _write, job, "removed", files.removed_table(source, selection), schema.REMOVED_FROM_FILES
        )
        workspace.once("out/removed.parquet", removed)
        clusters = functools.partial(
            _write, job, "clusters", files.clusters_table(source, selection), schema.clusters(pa.string())
        )
        workspace.once("out/clusters.parquet", clusters)
        workspace.once("out/rejected.jsonl", functools.partial(_write_rejected, job))
        if not job.config.pairs:
            return None
        workspace.once(jobs.PAIRS, functools.partial(_write_pairs, job))
    return int(workspace.facts(jobs.PAIRS)["num_pairs"])


def _write(job: _Job, name: str, frame: Any, columns: pa.Schema, path: Path) -> dict[str, int]:
    """Write a table in its order, through this process, as the local engine does."""
    num_rows = 0
    with TableWriter(path, columns) as writer:
        for batch in job.engine.storage.batches(name, frame):
            writer.write(batch)
            num_rows += batch.num_rows
    return {"num_rows": num_rows}


def _write_pairs(job: _Job, path: Path) -> dict[str, int]:
    from neardup.engines.spark import file_tables as files

    row_pairs: Any = job.outcome.row_pairs
    frame = files.pairs_table(job.source, row_pairs)
    return {"num_pairs": _write(job, "pairs", frame, schema.PAIRS_FROM_FILES, path)["num_rows"]}


def _write_rejected(job: _Job, path: Path) -> None:
    from neardup.engines.spark import file_tables as files

    write_rejected(path, job.engine.storage.batches("rejected", files.rejected_table(job.source)))


def _write_kept(job: _Job, workspace: Workspace) -> None:
    from neardup.engines.spark import file_tables as files

    num_files = len(job.source.parts.own_files())
    folder = (workspace.folder / "out" / finished.KEPT).resolve()
    remove_tree(folder)  # an earlier start, or a worker of it, may have left drafts
    folder.mkdir(parents=True, exist_ok=True)
    with job.watch.stage("write", num_files, "files") as advance:
        job.engine.storage.listen(advance, num_files)
        job.engine.compute(files.write_kept(job.source, job.outcome.selection, str(folder)), "kept")


def _largest(rows: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    names = ("cluster_id", "documents", "weakest_id", "similarity")
    return tuple({name: row[name] for name in names} for row in rows)


def _report(job: _Job, **told: Any) -> Report:
    """Count what the report tells."""
    from neardup.engines.spark import results

    found = results.counts(job.source, job.outcome.selection, job.config.threshold)
    if found["below"]:
        job.watch.warn(
            f"{found['below']:,} removed documents are below the threshold: chains count with cluster='components'"
        )
    if found["rejected"] and not found["documents"]:
        job.watch.warn(f"all {found['rejected']:,} rows were rejected")
    return Report(
        config=job.config,
        plan=job.plan,
        documents=found["documents"] + found["rejected"],
        num_kept=found["documents"] - found["removed"],
        num_removed=found["removed"],
        num_rejected=found["rejected"],
        exact_duplicates=job.outcome.exact_duplicates,
        pairs_verified=job.outcome.pairs_verified,
        seconds=job.watch.seconds,
        bytes_read=found["text_bytes"],
        peak_memory_bytes=peak_memory_bytes(),
        stages=job.watch.seconds_by_stage,
        warnings=tuple(job.watch.warnings),
        signature_format=measure_of(job.config).signature_format(job.config),
        engine={"name": "spark", **job.engine.facts},
        **told,
    )
