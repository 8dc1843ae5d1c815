"""The public functions. A run on documents calls `run` with the adapter that fits the source."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import pyarrow as pa

from neardup.config import (
    AUDIT_SAMPLE,
    KEEP_NOTHING,
    NUM_NEIGHBOURS,
    REVIEW_SAMPLE,
    TUNE_SAMPLE,
    Config,
)
from neardup.config.checks import SET_MEASURES, check_int
from neardup.config.setting_types import Contained, RunSettings, Settings
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError
from neardup.events import Progress, Watch, as_python_warning
from neardup.index.index_folder import is_index
from neardup.io.documents import in_memory
from neardup.io.documents.discover import paths_of
from neardup.io.documents.frames import is_from
from neardup.io.finished import finished_run
from neardup.jobs.adapters import check_against_index, run_files
from neardup.jobs.compare import (
    check_counts_all,
    check_no_text_out,
    check_not_long,
    compare_documents,
)
from neardup.jobs.containment import removal_for
from neardup.jobs.explain import (
    NO_TEXTS,
    Explanation,
    ReadTexts,
    Verdict,
    find_memory_verdict,
    find_verdict,
    read_texts,
    reason_to_keep,
)
from neardup.jobs.idf_weights import weighed
from neardup.jobs.one_to_one import check_lists_pairs, pairs_pipeline
from neardup.jobs.output import DedupFolder, PairsFile
from neardup.jobs.run import Adapter, run
from neardup.jobs.sarif import check_sarif, write_sarif
from neardup.jobs.source import (
    Against,
    Destination,
    check_against_given,
    check_files,
    check_frame,
    check_in_memory,
    check_local,
    from_files,
    items_or_source,
    taken_against,
)
from neardup.jobs.stored_pairs import list_stored, load_run
from neardup.report import Audit, ContaminationReport, PassagesReport, Report
from neardup.theory.plan import Plan, plan_for

if TYPE_CHECKING:
    from neardup.jobs.evaluate import Evaluation
    from neardup.jobs.review import Review
    from neardup.jobs.tune import Tuning

# Modules that only some functions need are imported inside them, so a job on files loads half of
# the kernels.


def deduplicate(  # noqa: PLR0913 - all but the first are keyword-only, with a default
    source: Any = None,
    *,
    items: Any = None,
    out: str | os.PathLike[str] | None = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    engine: Any = None,
    update: bool = False,
    report: str | None = None,
    **settings: Unpack[RunSettings],
) -> Report:
    """Remove near-duplicates: every removed document is similar to the kept document that replaces it.

    With cluster="components", a chain of similar documents connects the two, which may be below the
    threshold.

    Args:
        source: list of texts, of dicts or of (id, text) tuples, dict of id to text, Arrow array or
            table, pandas or polars series or frame, or dataset; or files: a path, folder, glob or
            address, or a list of pathlib.Path; or a Spark DataFrame; for vectors, a matrix with one
            row each, or a list or an Arrow array of vectors.
        items: sets to compare instead of texts: lists of strings or whole numbers, a dict of id to
            items, an array of bool or a SciPy sparse matrix with one row per document; with
            measure="weighted", dicts of item to weight, lists of (item, weight) pairs, or
            non-negative vectors.
        out: for files, the output folder; without it, the tables are only in the report.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        progress: True shows a bar, on a terminal and in a notebook; a function is called with the
            events of neardup.events. Without it, urgent warnings are issued as Python warnings.
        engine: where to run: "local", "spark", or a neardup.SparkEngine.
        update: for files against an index, insert what was kept into the index, once the output is
            written.
        report: for files, the name of an HTML page of the run, written into the output folder:
            "report.html".
        settings: fields of Config by name.

    >>> report = deduplicate(["one two three four five six", "ONE two three; four five six!", "something else"])
    >>> report.removed.to_pylist()
    [{'doc_id': 1, 'kept_id': 0, 'similarity': 1.0}]
    """
    if settings.get("level", getattr(config, "level", None)) is not None:
        if items is not None or update:
            raise ConfigError(
                f"`{'update' if update else 'items'}` does not apply with `level`",
                hint="leave it out",
            )
        chosen, cluster = _named_engine(source, engine, config, settings)
        return _remove_sections(
            source, out, ids, config=chosen, progress=progress, page=report, engine=cluster
        )
    against = taken_against(settings, items)
    chosen, cluster = _choose_engine(source, engine, config, settings)
    check_against_given(chosen, against)
    check_lists_pairs(chosen)
    chosen, pipeline = removal_for(chosen)
    pipeline = weighed(pipeline, chosen)
    if chosen.passages and not chosen.pairs:
        raise ConfigError(
            "`passages` needs `pairs`: they are listed with the pairs",
            hint="pass pairs=True, or call neardup.find_pairs",
        )
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        paths = paths_of(source) if items is None else None
        if paths is None:
            source, chosen = items_or_source(source, items, chosen)
            check_in_memory(
                chosen, reads_files=bool(chosen.against), out=out, update=update, report=report
            )
            adapter = _adapter_without_files(source, ids, chosen, cluster, watch, against)
            return run(adapter, watch, pipeline)
        check_files(against)
        check_against_index(chosen)
        if out is None and (update or report):
            name = "update" if update else "report"
            raise ConfigError(
                f"`{name}` needs `out`", hint="out= names the folder that the run writes"
            )

        destination = Destination(ids, out)
        output = DedupFolder(destination.path, page=report)
        check = None
        if update:
            from neardup.jobs.against_index import check_new_ids, index_update

            output = DedupFolder(destination.path, index_update(chosen, destination.path), report)
            check = check_new_ids
        found = run_files(output, paths, chosen, pipeline, watch, engine=cluster, check=check)
        return destination.report_of(found)


def _remove_sections(
    source: Any,
    out: str | os.PathLike[str] | None,
    ids: Sequence[Any] | None,
    *,
    config: Config,
    progress: Progress | bool | None,
    page: str | None,
    engine: Any,
) -> Report:
    """Remove repeated paragraphs or lines: `deduplicate` with `level`."""
    from neardup.jobs import sections

    chosen = sections.check_settings(config)
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        paths = paths_of(source)
        if paths is None:
            _check_files_on_spark(chosen)
            check_in_memory(chosen, out=out, report=page)
            return sections.find_in_memory(source, ids, chosen, watch)
        if out is None and page:
            raise ConfigError(
                "`report` needs `out`", hint="out= names the folder that the run writes"
            )
        from neardup.jobs.section_files import deduplicate_files

        job = partial(deduplicate_files, paths, chosen, watch, page=page, engine=engine)
        return from_files(job, ids, out)


def _check_files_on_spark(config: Config) -> None:
    """Raise if a search in texts in memory, or in a DataFrame, is to run on Spark."""
    if config.engine == "spark":
        raise ConfigError(
            "on Spark, a search in texts needs files as the source",
            hint="write the documents to Parquet, and pass the folder",
        )


def find_pairs(  # noqa: PLR0913 - all but the first are keyword-only, with a default
    source: Any = None,
    *,
    items: Any = None,
    out: str | os.PathLike[str] | None = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    engine: Any = None,
    sarif: str | os.PathLike[str] | None = None,
    **settings: Unpack[RunSettings],
) -> Report:
    """Find every pair of similar documents, as `report.pairs`; the report also has everything `deduplicate` returns.

    Args:
        source: as for `deduplicate`, or the folder of a finished run with stored pairs, which are
            listed: at the threshold of that run, unless another one is given.
        items: sets to compare instead of texts, as for `deduplicate`.
        out: for files, the file to write the pairs to: .parquet, .jsonl or .csv.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        engine: where to run: "local", "spark", or a neardup.SparkEngine.
        sarif: for files, a file to write the pairs to as SARIF as well, which code hosts read: .sarif.
        settings: fields of Config by name.

    >>> find_pairs(["a b c d e f g", "a b c d e f g h", "x"], threshold=0.7).pairs.to_pylist()
    [{'doc_a': 0, 'doc_b': 1, 'similarity': 0.75}]
    """
    if settings.get("pairs", True) is not True:
        raise ConfigError(
            f"`pairs` must be left out, got {settings['pairs']!r}: find_pairs lists every pair",
            hint="call neardup.deduplicate",
        )
    settings["pairs"] = True
    against = taken_against(settings, items)
    chosen, cluster = _choose_engine(source, engine, config, settings)
    check_against_given(chosen, against)
    chosen, pipeline = pairs_pipeline(chosen)
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        paths = paths_of(source) if items is None else None
        if paths is None:
            source, chosen = items_or_source(source, items, chosen)
            check_in_memory(chosen, reads_files=bool(chosen.against), out=out, sarif=sarif)
            adapter = _adapter_without_files(source, ids, chosen, cluster, watch, against)
            return dataclasses.replace(run(adapter, watch, pipeline), lists_pairs=True)
        check_files(against)
        written = None if sarif is None else check_sarif(sarif, overwrite=chosen.overwrite)

        def find_pairs_into(out: str) -> Report:
            output = PairsFile(out, ["common"] * (chosen.ignore_common is not None))
            if len(paths) == 1 and finished_run.is_run(Path(paths[0])):
                check_no_text_out(chosen, "the list of a finished run reads no texts")
                if chosen.passages:
                    raise ConfigError(
                        f"`passages` needs texts, and the run {paths[0]} stored only its pairs",
                        hint="find the pairs of the input files",
                    )
                return list_stored(Path(paths[0]), output.target, chosen)
            check_against_index(chosen)
            return run_files(output, paths, chosen, pipeline, watch, engine=cluster)

        found = from_files(find_pairs_into, ids, out)
        if written is not None:
            write_sarif(found, written)
        return dataclasses.replace(found, lists_pairs=True)


def find_passages(
    source: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    engine: Any = None,
    **settings: Unpack[RunSettings],
) -> PassagesReport:
    """Find every place where at least `min_words` consecutive words of a document also stand in an earlier one.

    The words are compared as those of shingles are. Nothing is missed, and nothing changed: `report.cut()` returns the
    documents without the repeated passages, and for files, cut=True writes them.

    Args:
        source: texts or files, as for `deduplicate`.
        out: for files, the output folder; without it, the tables are only in the report.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        engine: where to run, as for `deduplicate`; on Spark the source must be files.
        settings: fields of Config by name: min_words, group_column, against, cut, keep, min_count and
            others.

    >>> banner = "we use cookies to improve this site"
    >>> report = find_passages([f"Tides today. {banner}!", f"{banner.upper()}. News"], min_words=5)
    >>> report.passages.select(["doc_id", "start", "end", "words", "source_id", "source_start"]).to_pylist()
    [{'doc_id': 1, 'start': 0, 'end': 35, 'words': 7, 'source_id': 0, 'source_start': 13}]
    >>> report.repeated.column("text").to_pylist(), report.cut().column("text").to_pylist()
    (['we use cookies to improve this site'], ['Tides today. we use cookies to improve this site!', 'News'])
    """
    from neardup.jobs import passages

    given, cluster = _named_engine(source, engine, config, settings)
    chosen = passages.check_settings(given)
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        paths = paths_of(source)
        if paths is None:
            _check_files_on_spark(chosen)
            check_in_memory(chosen, out=out)
            return passages.find_in_memory(source, ids, chosen, watch)
        from neardup.jobs.passage_files import find_in_files

        job_on = partial(find_in_files, paths, chosen, watch, engine=cluster)
        found = from_files(job_on, ids, out)
        return cast("PassagesReport", found)


def decontaminate(
    source: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    engine: Any = None,
    **settings: Unpack[RunSettings],
) -> ContaminationReport:
    r"""Find the items of benchmarks, such as test questions, that documents contain, also with small edits.

    The score of an item is the share of its words, weighted by how rare they are in the source, that one span of a
    document has in the same order, with gaps. Nothing is removed, unless remove=True or cut=True asks.

    Args:
        source: texts or files, as for `deduplicate`.
        out: for files, the output folder; without it, the tables are only in the report.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        engine: where to run, as for `deduplicate`; on Spark the source must be files.
        settings: fields of Config by name: against, the files with the items, item_column, threshold, rule, remove,
            cut, around, mark, weights_from and others.

    >>> import pathlib, tempfile
    >>> asked = "which of these words is the only one that a careless copyist has changed when he wrote them all again"
    >>> tests = pathlib.Path(tempfile.mkdtemp()) / "tests.jsonl"
    >>> _ = tests.write_text('{"id": "q1", "question": "%s"}\n' % asked)
    >>> texts = ["He asked: " + asked.replace("careless", "hasty").title() + "!", "nothing of it"]
    >>> report = decontaminate(texts, against=tests, item_column="question")
    >>> report.contaminated.select(["doc_id", "item_id", "start", "end", "matched_words"]).to_pylist()
    [{'doc_id': 0, 'item_id': 'q1', 'start': 10, 'end': 108, 'matched_words': 19}]
    """
    from neardup.jobs import decontaminate as job

    given, cluster = _named_engine(source, engine, config, settings)
    chosen = job.check_settings(given)
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        paths = paths_of(source)
        if paths is None:
            _check_files_on_spark(chosen)
            return job.find_in_memory(source, ids, out, chosen, watch)
        from neardup.jobs.decontaminate_files import find_in_files

        job_on = partial(find_in_files, paths, chosen, watch, engine=cluster)
        found = from_files(job_on, ids, out)
        return cast("ContaminationReport", found)


def neighbours(  # noqa: PLR0913 - all but the first are keyword-only, with a default
    source: Any = None,
    *,
    k: int | Literal["all"] | None = NUM_NEIGHBOURS,
    contained: Contained = "either",
    items: Any = None,
    queries: Any = None,
    out: str | os.PathLike[str] | None = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    engine: Any = None,
    **settings: Unpack[RunSettings],
) -> pa.Table:
    """Return the most similar documents of each document, found exactly and ranked; ties are in source order.

    Documents with zero or negative similarity are not listed. A threshold, if given, is the minimum
    similarity of a neighbour. The source is held in memory; on Spark, only the queries are.

    Args:
        source: as for `deduplicate`; documents without ids are named by their position.
        k: the maximum number of neighbours per document; "all" lists all at or above the threshold.
        contained: with measure="containment", which of the two must be contained in the other:
            "query", "neighbour" or "either", which takes the larger share. The columns
            containment_query and containment_neighbour hold both.
        items: sets to compare instead of texts, as for `deduplicate`.
        queries: documents, or items if `items` is given; finds their neighbours in the source
            instead.
        out: for files, the file to write the neighbours to as well: .parquet, .jsonl or .csv.
        ids: one id per document of the source.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        engine: where to run, as for `deduplicate`; on Spark the source and the queries must be
            files.
        settings: fields of Config by name; bands, rows and recall have no effect.

    >>> texts = ["a rose is a rose", "a rose is a flower", "the sea"]
    >>> neighbours(texts, k=1, size=2).to_pylist()[0]
    {'doc_id': 0, 'neighbour_id': 1, 'similarity': 0.75, 'rank': 1}
    >>> pets = {"items": [["cat"], ["cat", "dog", "emu"]], "queries": [["cat", "dog"]], "measure": "containment"}
    >>> neighbours(**pets, contained="query").column("similarity").to_pylist()
    [1.0, 0.5]
    """
    from neardup.jobs import neighbours as nearest

    given, cluster = _choose_engine(source, engine, config, settings)
    check_no_text_out(given, "neighbours are no run")
    check_counts_all(given, "neighbours are found by all shingles")
    check_not_long(given)
    wanted = nearest.check_wanted(k, contained, given)
    source, chosen = items_or_source(source, items, given)
    if isinstance(source, in_memory.ItemSets) and queries is not None:
        queries = in_memory.ItemSets(queries)
    sources = nearest.NeighbourSources(documents=source, queries=queries, ids=ids)
    target = None if out is None else os.fspath(out)
    with _listening(progress) as listener:
        watch = Watch(listener)
        found = nearest.search(sources, wanted, chosen, watch, engine=cluster, out=target)
    if listener is None:  # there is no report to list rejected rows
        for message in watch.warnings:
            warnings.warn(message, stacklevel=2)
    return found


def plan(
    source: Any = None,
    *,
    items: Any = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    **settings: Unpack[Settings],
) -> Plan:
    """Derive bands and rows from the settings, and say what they promise.

    With documents, also predict which method a run would choose and why; `estimate` has the cost of
    both methods.

    Args:
        source: documents or files, as for `deduplicate`; without them, the plan is based on the
            settings alone.
        items: sets to compare instead of texts, as for `deduplicate`.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        settings: fields of Config by name.

    >>> plan(threshold=0.9).bands
    11
    >>> plan(["one two three four five six"] * 3).method
    'exact'
    """
    chosen = Config.of(config, **settings)
    if source is None and items is None:
        return plan_for(chosen)
    check_counts_all(chosen, "a forecast reads a sample")
    check_not_long(chosen)
    source, chosen = items_or_source(source, items, chosen)
    from neardup.jobs import forecast

    paths = paths_of(source)
    if paths is None:
        return forecast.predict_memory(source, chosen)
    with _listening(progress) as listener:
        return forecast.predict_files(paths, chosen, Watch(listener))


def tune(
    source: Any = None,
    *,
    items: Any = None,
    sample: int = TUNE_SAMPLE,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    progress: Progress | bool | None = None,
    **settings: Unpack[Settings],
) -> Tuning:
    """Find the threshold of a corpus: where pairs that are alike by chance end, and copies begin.

    Some documents are compared exactly with the whole input, with every candidate for unit and
    size; a unit or size that is given is not varied.

    Args:
        source: documents or files, as for `deduplicate`.
        items: sets to compare instead of texts, as for `deduplicate`.
        sample: the most documents to sample.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        progress: True shows a bar; a function is called with the events of neardup.events.
        settings: fields of Config by name; `threshold` has no effect.

    >>> names = ["Ada Lovelace", "Mary Anning", "Emmy Noether", "Marie Curie", "Lise Meitner", "Rosa Parks"]
    >>> found = tune(names + [name.replace("r", "", 1) for name in names], unit="char", size=3)
    >>> found.threshold is not None and 0.2 < found.threshold < 0.6
    True
    """
    from neardup.jobs import tune as job

    chosen = Config.of(config, **settings)
    check_not_long(chosen)
    source, chosen = items_or_source(source, items, chosen)
    with _listening(progress) as listener:
        watch = Watch(listener or as_python_warning)
        return job.tune(source, ids, chosen, watch, sample)


def audit(
    run: Report | str | os.PathLike[str],
    *,
    sample: int = AUDIT_SAMPLE,
    threads: int | None = None,
    memory: int | str | None = None,
    progress: Progress | bool | None = None,
) -> Audit:
    """Measure the recall of a run: find all true pairs of `sample` documents, and which of them the run missed.

    Args:
        run: a report, or the output path of a run on files; its input is read again.
        sample: the number of documents to sample.
        threads: the number of threads; None uses one per available core.
        memory: the memory limit for auditing a run on files, in bytes or as "4GB"; None uses half
            of the free memory.
        progress: True shows a bar; a function is called with the events of neardup.events.

    >>> texts = ["to be or not to be", "to be or not to be!", "to be or not to be, he said", "all the world"]
    >>> answer = audit(deduplicate(texts, size=2))
    >>> answer.pairs, answer.missed.num_rows, answer.recall
    (1, 0, 1.0)
    """
    from neardup.jobs.audit import audit_finished, measure

    chosen = Config.of(threads=threads, memory=memory)
    check_int("sample", sample, 1, hint="1000 is a common choice")
    report = run if isinstance(run, Report) else load(run)
    with _listening(progress) as listener:
        watch = Watch(listener)
        if report.audited is not None:
            return measure(report.audited(report.load), LocalEngine(chosen.threads), watch, sample)
        return audit_finished(report, sample, chosen, watch)


def evaluate(
    run: Report | str | os.PathLike[str],
    labels: Any,
    *,
    progress: Progress | bool | None = None,
) -> Evaluation:
    """Compare what a run found with known pairs: precision, recall and F1, and the best threshold.

    Two documents count as found if they are in one cluster of the run, or if they are a pair that it
    lists. Only pairs with a label count.

    Args:
        run: a report, or the output of a finished run on files; its input is read again.
        labels: a file (.csv, .jsonl, .parquet), a table or a data frame with the columns doc_a,
            doc_b, same, or doc_id, cluster; a dict of id to cluster; or the decisions of a review,
            a .json file.
        progress: True shows a bar; a function is called with the events of neardup.events.

    >>> texts = {"a": "to be or not to be", "b": "to be or not to be!", "c": "to be or not", "d": "all the world"}
    >>> found = evaluate(deduplicate(texts, size=2), {"a": "hamlet", "b": "hamlet", "c": "hamlet", "d": "jaques"})
    >>> found.precision, round(found.recall, 2), found.best_f1
    (1.0, 0.33, 1.0)
    """
    from neardup.jobs import evaluate as job

    report = run if isinstance(run, Report) else load(run)
    with _listening(progress) as listener:
        return job.evaluate(report, labels, Watch(listener))


def review(run: Report | str | os.PathLike[str], *, sample: int = REVIEW_SAMPLE) -> Review:
    """Draw removals of a run to judge, for the precision of the run with a 95 % interval.

    Identical documents are not drawn. Half of the sample comes from the weakest tenth of the others, where errors are
    likely; the estimate weights both parts by their sizes.

    Args:
        run: a report, or the output folder of a run on files.
        sample: how many removals to draw.

    >>> report = deduplicate(["a b c d e f g h i", "a b c d e f g h i j", "x y z"], threshold=0.7)
    >>> found = review(report)
    >>> found.removals[0].doc_id, found.judge(0, True).precision
    (1, 1.0)
    """
    from neardup.jobs.review import draw_review

    return draw_review(run if isinstance(run, Report) else load(run), sample)


def load(path: str | os.PathLike[str]) -> Report:
    r"""Open the output of a finished run on files: its report, with every table it stored.

    Args:
        path: the folder that `neardup dedup -o` wrote, or the file that `neardup pairs -o` wrote.

    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "pages.jsonl").write_text('{"id": "a", "text": "to be"}\n{"id": "b", "text": "To be!"}\n')
    >>> _ = deduplicate(folder / "pages.jsonl", out=folder / "clean")
    >>> load(folder / "clean").removed.column("doc_id").to_pylist()
    ['b']
    """
    return load_run(Path(path))


def explain(
    run: Report | str | os.PathLike[str],
    doc_id: Any,
    *,
    file: str | None = None,
    row: int | None = None,
) -> Explanation:
    """Explain why a document was removed, or which documents were removed in its favour.

    Args:
        run: a report, or the output folder of a run on files; its input is read again for the
            texts.
        doc_id: the id of the document.
        file: the file of the document, if its id is not unique.
        row: its row in that file, from 1; in memory its position, from 0.

    >>> report = deduplicate({"a": "one two three four five six", "b": "One two three four five six!"})
    >>> answer = explain(report, "b")
    >>> answer.kept_id, answer.similarity, answer.kept_text
    ('a', 1.0, 'one two three four five six')
    >>> explain(report, "a").members
    (('b', 1.0),)
    """
    path: str | os.PathLike[str] | None
    if isinstance(run, Report):
        path = run.out or getattr(run.load, "path", None)
    else:
        path = run
    if path is None and isinstance(run, Report):
        if file is not None:
            raise ConfigError(
                "`file` must be left out for documents in memory",
                hint="row= distinguishes equal ids",
            )
        verdict, texts = find_memory_verdict(run, doc_id, row)
    else:
        verdict, texts = _find_in_files(Path(path or ""), doc_id, file=file, row=row)
    values = {field.name: getattr(verdict, field.name) for field in dataclasses.fields(verdict)}
    config: Config = values.pop("config")
    values |= {
        "measure": config.measure,
        "reason": "" if verdict.kept_id is not None else reason_to_keep(config),
    }
    values |= dict(zip(("text", "kept_text"), texts.texts or (None, None), strict=True))
    return Explanation(
        **values,
        comparison=compare_documents(texts, config) if texts.texts else None,
    )


def _find_in_files(
    run: Path, doc_id: str, *, file: str | None, row: int | None
) -> tuple[Verdict, ReadTexts]:
    """Look up a document of a finished run, and read its text and that of the kept document."""
    verdict = find_verdict(run, doc_id, file=file, row=row)
    if (
        verdict.file is None
        or verdict.kept_file is None
        or verdict.config.measure not in SET_MEASURES
        or verdict.config.weights is not None
    ):
        return verdict, NO_TEXTS
    if is_index(verdict.kept_file):  # texts stored in an index are not compared
        return verdict, NO_TEXTS
    ends = [(verdict.file, verdict.row or 0), (verdict.kept_file, verdict.kept_row or 0)]
    return verdict, read_texts(run, ends, verdict.config)


def _adapter_without_files(
    source: Any,
    ids: Sequence[Any] | None,
    config: Config,
    engine: Any,
    watch: Watch,
    against: Against,
) -> Adapter[Any, Any]:
    """Return the adapter of a run on a Spark DataFrame or on documents in memory."""
    if is_from(source, "pyspark"):
        from neardup.jobs.spark import read_frame

        check_frame(against, config)
        if ids is not None:
            hint = "id_column= names the column with ids"
            raise ConfigError("`ids` must be left out for a Spark DataFrame", hint=hint)
        return read_frame(source, config, engine, watch)
    if config.engine == "spark":
        raise ConfigError(
            f"`engine` 'spark' needs files or a Spark DataFrame as the source, got {type(source).__name__}",
            hint="spark.createDataFrame(...) makes a frame; for documents in memory use engine='local'",
        )
    from neardup.jobs.memory import read_memory

    check_local(against, config)
    return read_memory(source, ids, config, watch, against.values)


@contextlib.contextmanager
def _listening(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield the listener for the events of a run: bars, which disappear when it ends, or the given function."""
    if progress is True:
        from neardup.cli.render import (
            progress as shown,  # the only place where the library imports the command line
        )

        with shown(say=str) as bars:
            yield bars
    elif progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    else:
        raise ConfigError(
            f"`progress` must be True, or a function that takes an event, got {progress!r}"
        )


def _choose_engine(
    source: Any, engine: Any, config: Config | None, settings: RunSettings
) -> tuple[Config, Any]:
    """Return the settings of a run on documents with the name of the engine, and the engine itself if one was given."""
    chosen, cluster = _named_engine(source, engine, config, settings)
    if chosen.level is not None:
        raise ConfigError(
            "`level` removes paragraphs or lines, and this compares documents",
            hint="leave it out, or call neardup.deduplicate",
        )
    if chosen.keep == KEEP_NOTHING:
        raise ConfigError(
            f"`keep` {KEEP_NOTHING!r} is for passages: a document of every cluster is kept",
            hint="use 'first', 'last' or 'longest', or call neardup.find_passages",
        )
    if chosen.cut:
        raise ConfigError(
            "`cut` is for passages: documents are kept or removed as a whole",
            hint="leave it out, or call neardup.find_passages",
        )
    for name, default in (("min_count", 2), ("min_left", 1)):
        if getattr(chosen, name) != default:
            raise ConfigError(
                f"`{name}` is for passages, paragraphs and lines: documents are compared as a whole",
                hint="leave it out, or pass `level` to neardup.deduplicate",
            )
    for name in ("remove", "item_column", "weights_from"):
        if getattr(chosen, name):
            raise ConfigError(
                f"`{name}` is for the items of benchmarks",
                hint="leave it out, or call neardup.decontaminate",
            )
    return chosen, cluster


def _named_engine(
    source: Any, engine: Any, config: Config | None, settings: RunSettings
) -> tuple[Config, Any]:
    """Return the settings with the name of the engine, and the engine itself if one was given."""
    if engine is None:
        if is_from(source, "pyspark"):
            named: dict[str, Any] = {"engine": "spark"}
        else:
            named = {}
    else:
        named = {"engine": engine if isinstance(engine, str) else "spark"}
    if engine is not None and not isinstance(engine, str) and not is_from(engine, "neardup"):
        raise ConfigError(
            f"`engine` must be 'local', 'spark' or a neardup.SparkEngine, got {engine!r}"
        )
    chosen = Config.of(config, **settings, **named)
    return chosen, None if isinstance(engine, str) else engine
