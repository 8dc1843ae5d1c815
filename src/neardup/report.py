"""What a run returns: the report, its tables and the measured recall."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import html_view
from neardup.config import Config
from neardup.config.checks import check_int
from neardup.errors import ConfigError, NotStoredError
from neardup.theory.plan import Plan

if TYPE_CHECKING:
    from neardup.jobs.sources import Sources

# The version of report.json; version 1 lacked the keys `schema` and `files`.
REPORT_SCHEMA: Final = 2
_CALL: Final = "call neardup.deduplicate"
_FIND: Final = "call neardup.find_passages"
# The most places that the page of a run with `level` lists.
_SHOWN_PARTS: Final = 1_000
# The most items that the page of a decontamination lists.
_SHOWN_ITEMS: Final = 1_000
_SEARCH: Final = "call neardup.decontaminate"
# How many of the largest clusters report.json lists, and the columns of each.
NUM_LARGEST: Final = 10
CLUSTER_COLUMNS: Final = ("cluster_id", "documents", "weakest_id", "similarity")
# How many removed documents a notebook shows, and the most that are loaded for it.
_SHOWN: Final = 10
_SOON_LOADED: Final = 1_000_000


def format_bytes(count: float) -> str:
    """Format a number of bytes with a suitable unit.

    >>> format_bytes(1_300_000_000), format_bytes(45_000_000), format_bytes(12)
    ('1.3 GB', '45 MB', '12 B')
    """
    for size, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.{1 if count < 10 * size else 0}f} {name}"
    return f"{count:.0f} B"


def peak_memory_bytes() -> int:
    """Return the peak memory of this process."""
    with contextlib.suppress(OSError, StopIteration, IndexError, ValueError):
        # getrusage inherits the peak of a larger parent process.
        lines = Path("/proc/self/status").read_text("ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if sys.platform == "darwin":  # in bytes there, in kilobytes elsewhere
        return peak
    return peak * 1024


def count_below(removed: pa.Table, threshold: float) -> int:
    """Return the number of removed documents whose similarity to the kept one is below the threshold."""
    return pc.sum(pc.less(removed.column("similarity"), threshold)).as_py() or 0


def count_references(kept_rows: pa.ChunkedArray, num_references: int) -> int:
    """Return the number of documents removed in favour of a reference document."""
    return pc.sum(pc.less(kept_rows, num_references)).as_py() or 0


def summarise_clusters(
    clusters: npt.NDArray[np.int64],
    similarities: npt.NDArray[np.float64],
    n: int,
    per_cluster: int = 1,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return number, size and position of the weakest removed member of the `n` largest clusters, by number.

    A cluster that lost a document has kept `per_cluster` of them.
    """
    order = np.lexsort((similarities, clusters))
    numbers, firsts, counts = np.unique(clusters[order], return_index=True, return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:n]
    return numbers[largest], counts[largest] + per_cluster, order[firsts[largest]]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """How many of the true pairs a run found, measured on a sample of its documents.

    Attributes:
        recall: found pairs of the sampled documents divided by all their pairs; None if they have
        none.
        low: lower end of the 95 % confidence interval of the recall over all documents.
        high: its upper end.
        predicted: the recall that the S-curve predicts for the same pairs.
        promised: the recall that the plan promises for pairs exactly at the threshold.
        pairs: true pairs of the sampled documents.
        missed: those that the run did not find: doc_a, doc_b, similarity, chance; from files also
        files and rows.
        precision: the share of the reported pairs of sampled documents that are true: 1, because
            anything else is an error; None if none were reported.
        verified: reported pairs and removals that were verified again.
        sample: documents that were sampled.
        threshold: the threshold of the run.
        seconds: the whole audit.
    """

    recall: float | None
    low: float | None
    high: float | None
    predicted: float | None
    promised: float
    pairs: int
    missed: pa.Table
    precision: float | None
    verified: int
    sample: int
    threshold: float
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return the audit as report.json shows it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | {"missed": self.missed.to_pylist()}

    @classmethod
    def of(cls, values: dict[str, Any], columns: pa.Schema) -> Audit:
        """Return the audit that `as_dict` wrote, with `columns` of missed pairs."""
        return cls(**(values | {"missed": pa.Table.from_pylist(values["missed"], schema=columns)}))

    def __str__(self) -> str:
        if self.recall is None:
            return f"no recall to measure: no pair with similarity >= {self.threshold:g} in a sample of {self.sample:,}"
        return (
            f"recall {self.recall:.4f} (95 % confidence interval {self.low:.4f} to {self.high:.4f}); missed "
            f"{self.missed.num_rows:,} of {self.pairs:,} pairs of {self.sample:,} sampled documents"
        )


def _number_kept(removed: pa.Table) -> npt.NDArray[np.int64]:
    """Number the kept documents by first appearance; if ids repeat, files and rows distinguish them."""
    ends = [name for name in ("kept_file", "kept_row") if name in removed.column_names] or [
        "kept_id"
    ]
    keys = np.zeros(removed.num_rows, np.int64)
    for name in ends:
        codes = removed.column(name).combine_chunks().dictionary_encode().indices.to_numpy()
        _, firsts, numbers = np.unique(
            keys * (codes.max(initial=0) + 1) + codes, return_index=True, return_inverse=True
        )
        keys = np.argsort(np.argsort(firsts))[numbers]
    return keys


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """The result of a run; every table is in input order.

    Attributes:
        config: the settings of the run.
        plan: the method, bands and rows that were chosen, and what they promise.
        documents: documents in the input; kept + removed + rejected.
        num_kept: kept documents.
        num_removed: removed documents: near-duplicates of a kept one.
        removed_against: removed documents whose kept document is one of `against`.
        decisions: the numbers of documents kept and removed by decision, and of decisions that
            match no document: `kept`, `removed`, `unmatched`; None without decisions.
        ignored_common: the number of shingles that `ignore_common` ignores, each counted in every
            group, and of documents left without any: `shingles`, `documents`; None without it.
        weights: with `weights`, the number of documents with shingles that were counted, and of shingles
            in more than one of them: `documents`, `shingles`; None without it.
        num_rejected: documents that could not be used.
        exact_duplicates: documents whose shingle set equals that of another document.
        pairs_verified: pairs that an exact comparison found to be at or above the threshold: with
            `pairs`, and for containment, all of them; otherwise one for every document that a
            comparison removed or joined to a cluster. Copies with equal shingle sets are not
            compared.
        comparisons: the comparisons of candidate pairs that the run made, None for a finished run.
            They depend on how much memory there was, like the time, so report.json does not hold
            them.
        num_pairs: found pairs, None if they were not stored.
        seconds: the whole run.
        bytes_read: bytes of text.
        peak_memory_bytes: peak memory of the process.
        stages: seconds by stage.
        warnings: the warnings of the run.
        columns: which columns were used for text and id.
        signature_format: the format of the signatures; equal names mean comparable signatures.
        out: the path of the output, if it was written to files.
        inputs: the files that were read: file, path, rows, and whether they were ahead of the
        input.
        files: the files that were written, relative to the folder of report.json.
        engine: further facts from the engine, such as the rounds and the skew of a run on Spark.
        largest: the rows of `largest_clusters`, if they were computed with the tables.
        load: returns a table by name, None for one that was not stored.
        select_again: what `at_threshold` calls.
        audit: the measured recall, with audit=True.
        lists_pairs: whether it is the result of `find_pairs`, which removes nothing: shown without the
            documents that `deduplicate` would remove.
        audited: for documents in memory, returns what `neardup.audit` needs, given `load`.
    """

    config: Config
    plan: Plan
    documents: int
    num_kept: int
    num_removed: int
    removed_against: int
    num_rejected: int
    exact_duplicates: int
    pairs_verified: int
    num_pairs: int | None
    seconds: float
    bytes_read: int
    peak_memory_bytes: int | None
    stages: dict[str, float]
    warnings: tuple[str, ...]
    columns: dict[str, str]
    signature_format: str
    load: Callable[[str], pa.Table | None] = dataclasses.field(compare=False)
    select_again: Callable[[Report, float], Report] | None = dataclasses.field(
        default=None, compare=False
    )
    out: str | None = None
    inputs: tuple[dict[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    largest: tuple[dict[str, Any], ...] | None = None
    engine: dict[str, Any] = dataclasses.field(default_factory=dict)
    audit: Audit | None = None
    decisions: dict[str, int] | None = None
    ignored_common: dict[str, int] | None = None
    weights: dict[str, int] | None = None
    audited: Callable[[Callable[[str], pa.Table | None]], Any] | None = dataclasses.field(
        default=None, compare=False
    )
    comparisons: int | None = dataclasses.field(default=None, compare=False)
    lists_pairs: bool = False

    @functools.cached_property
    def kept(self) -> pa.Table:
        """The kept documents: doc_id, and the columns of the source, unchanged; copied on first use.

        A source column named doc_id that does not hold the ids is renamed doc_id_. Files without
        columns have `text`.
        """
        return self._table("kept", "this run wrote no kept rows", "run it without dry_run")

    @functools.cached_property
    def removed(self) -> pa.Table:
        """The removed documents: doc_id, kept_id, similarity; from files also file, row, kept_file, kept_row.

        If ids in memory repeat, row and kept_row (positions in the source, from 0) distinguish the
        documents.
        """
        return self._table("removed", "this run did not store its removed documents", _CALL)

    @functools.cached_property
    def clusters(self) -> pa.Table:
        """Every document with its cluster: doc_id, cluster_id; a cluster is named by its kept document."""
        return self._table("clusters", "this run did not store its clusters", _CALL)

    @functools.cached_property
    def rejected(self) -> pa.Table:
        """The rejected rows: file, row, reason."""
        return self._table("rejected", "this run did not store its rejected rows", "run it again")

    @functools.cached_property
    def pairs(self) -> pa.Table:
        """Every found pair: doc_a, doc_b, similarity; from files also file_a, row_a, file_b, row_b.

        If ids in memory repeat, row_a and row_b distinguish the documents.
        """
        return self._table(
            "pairs",
            "this run did not store its pairs: removed documents were not compared with each other",
            "pass pairs=True, or call neardup.find_pairs",
        )

    @functools.cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which rows of the source are kept: True or False for every row, in input order; rejected rows are False.

        >>> from neardup import deduplicate
        >>> deduplicate(["a rose is a rose", "A rose is a rose!", None]).mask
        array([ True, False, False])
        """
        self._check_arrow(
            self._table("removed", "this run lists pairs and removes nothing", _CALL), "report.kept"
        )
        table = self._table("mask", "this run did not store which rows are kept", _CALL)
        is_kept: npt.NDArray[np.bool_] = table.column("is_kept").to_numpy()
        return is_kept

    def _table(self, name: str, missing: str, hint: str) -> pa.Table:
        table = self.load(name)
        if table is None:
            raise NotStoredError(missing, hint=hint)
        return table

    def _check_arrow(self, table: Any, instead: str) -> None:
        if not isinstance(table, pa.Table):
            raise NotStoredError(
                "the tables of a run on Spark stay on its workers", hint=f"use {instead}"
            )

    @property
    def removed_within(self) -> int:
        """The removed documents whose kept document is one of the input."""
        return self.num_removed - self.removed_against

    @property
    def duplicate_ratio(self) -> float:
        """The share of the documents that was removed."""
        return self.num_removed / self.documents if self.documents else 0.0

    def at_threshold(self, threshold: float) -> Report:
        """Select again among the stored pairs at a higher threshold, without a new run."""
        threshold = Config(threshold=threshold).threshold
        if threshold < self.config.threshold:
            raise ConfigError(
                f"`threshold` must be at least {self.config.threshold:g}, the threshold of this run, got {threshold:g}",
                hint=f"run again with threshold={threshold:g}",
            )
        _ = self.pairs
        if self.select_again is None:
            raise NotStoredError(
                "this report lists pairs, so there is no selection to repeat",
                hint=f"list them again at {threshold:g}",
            )
        again = self.select_again(self, threshold)
        return dataclasses.replace(again, lists_pairs=self.lists_pairs)

    def borderline(self, n: int = 10) -> pa.Table:
        """Return the `n` least similar of the stored pairs: those that a slightly higher threshold would drop."""
        check_int("n", n, 0)
        self._check_arrow(self.pairs, f"report.pairs.orderBy('similarity').limit({n})")
        # Arrow's sort is not stable, so ties are broken by position.
        pairs = self.pairs.append_column(
            "position", pa.array(range(self.pairs.num_rows), pa.int64())
        )
        order = pc.sort_indices(
            pairs, sort_keys=[("similarity", "ascending"), ("position", "ascending")]
        )
        return self.pairs.take(order[:n])

    def largest_clusters(self, n: int = 10) -> pa.Table:
        """Return the `n` largest clusters with the member least similar to the kept document.

        Columns: cluster_id, documents, weakest_id, similarity. With cluster="components" a
        similarity below the threshold indicates a chain; a large cluster with a weak member is
        worth inspecting.
        """
        check_int("n", n, 0)
        self._check_arrow(self.removed, "report.largest")
        similarity = self.removed.column("similarity").to_numpy()
        _, sizes, weakest = summarise_clusters(
            _number_kept(self.removed), similarity, n, self.config.per_cluster
        )
        return pa.table(
            {
                "cluster_id": self.removed.column("kept_id").take(pa.array(weakest)),
                "documents": sizes,
                "weakest_id": self.removed.column("doc_id").take(pa.array(weakest)),
                "similarity": similarity[weakest],
            }
        )

    def sources(self, *, by: str | None = None) -> Sources:
        """Return where the removed documents come from, and where the documents are for which they were removed.

        Args:
            by: "file", "id" (the part before the first ":" or "@", or the host of a URL), or a column, of which a date
                counts by its month; without it, the first of these that has 2 to 50 values.

        >>> from neardup import deduplicate
        >>> pages = {"old:1": "a rose is a rose", "new:1": "A rose is a rose!", "new:2": "something else"}
        >>> deduplicate(pages).sources(by="id").cells.to_pylist()
        [{'source': 'new', 'kept_source': 'old', 'removed': 1}]
        """
        from neardup.jobs.sources import find_sources  # the only job that a report calls

        return find_sources(self, by)

    def as_dict(self) -> dict[str, Any]:
        """Return what report.json holds."""
        return {
            "schema": REPORT_SCHEMA,
            "config": self.config.as_dict(),
            "plan": self.plan.as_dict(),
            "documents": self.documents,
            "kept": self.num_kept,
            "removed": self.num_removed,
            "removed_against": self.removed_against,
            "removed_within": self.removed_within,
            "rejected": self.num_rejected,
            **({} if self.decisions is None else {"decisions": self.decisions}),
            **({} if self.ignored_common is None else {"ignored_common": self.ignored_common}),
            **({} if self.weights is None else {"weights": self.weights}),
            "exact_duplicates": self.exact_duplicates,
            "pairs_verified": self.pairs_verified,
            "pairs": self.num_pairs,
            "seconds": self.seconds,
            "bytes_read": self.bytes_read,
            "peak_memory_bytes": self.peak_memory_bytes,
            "stages": self.stages,
            "columns": self.columns,
            "signature_format": self.signature_format,
            "warnings": list(self.warnings),
            "largest_clusters": list(
                self.largest_clusters().to_pylist() if self.largest is None else self.largest
            ),
            "inputs": list(self.inputs),
            "files": list(self.files),
            "audit": None if self.audit is None else self.audit.as_dict(),
        } | ({"engine": self.engine} if self.engine else {})

    def to_html(self, *, limit: int | str = "3MB", text: bool = True, by: str | None = None) -> str:
        r"""Return the report as one self-contained HTML page.

        Args:
            limit: the maximum size of the page, in bytes or as "20MB"; shows a sample of the
                clusters if not all fit.
            text: whether to include the texts of the documents.
            by: the sources that the page shows first, as for `sources`.

        >>> from neardup import deduplicate
        >>> deduplicate(["a rose is a rose", "A rose is a rose!"]).to_html().partition("\n")[0]
        '<!doctype html>'
        """
        from neardup.web.report_file import (
            make_html,  # the only place where a report imports the page
        )

        return make_html(self, limit=limit, text=text, by=by)

    def _repr_html_(self) -> str:
        """Show the report in a notebook: counts, the plan, warnings, and some removed documents or pairs."""
        decided = [("kept", self.num_kept), ("removed", self.num_removed)]
        rows = [
            ("documents", self.documents),
            *([] if self.lists_pairs else decided),
            ("rejected", self.num_rejected),
            *([] if self.num_pairs is None else [("pairs", self.num_pairs)]),
            ("seconds", self.seconds),
        ]
        warned = html_view.lines(f"warning: {message}" for message in self.warnings)
        if self.lists_pairs:
            shown = self._table_html("pairs", "pairs", self.num_pairs or 0)
        else:
            shown = self._table_html("removed", "removed documents", self.num_removed)
        return html_view.view(self.plan.judgement(), html_view.facts(rows), warned, shown)

    def _table_html(self, name: str, what: str, num_rows: int) -> str:
        # A notebook displays a report without being asked, so a table that takes long to load is
        # skipped.
        if not 0 < num_rows <= _SOON_LOADED:
            return ""
        found = self.load(name)
        if not isinstance(found, pa.Table):
            return ""
        shown = found.slice(0, _SHOWN)
        if num_rows > _SHOWN:
            note = f"the first {_SHOWN} of {num_rows:,} {what}"
        else:
            note = ""
        return html_view.table(
            shown.column_names, zip(*shown.to_pydict().values(), strict=True), note
        )

    def __repr__(self) -> str:
        return f"<Report: {self}>"

    def __str__(self) -> str:
        if self.num_rejected:
            rejected = f", {self.num_rejected:,} rejected"
        else:
            rejected = ""
        judged = f"{self.plan.judgement()}; {self.seconds:.2f} s"
        documents = f"{self.documents:,} document{'s'[: self.documents != 1]}"
        if self.lists_pairs:
            num_pairs = self.num_pairs or 0
            return f"{documents}: {num_pairs:,} pair{'s'[: num_pairs != 1]}{rejected}; {judged}"
        if self.config.against:
            causes = f", {self.removed_against:,} against, {self.removed_within:,} within"
        else:
            causes = ""
        return (
            f"{documents}: {self.num_kept:,} kept, "
            f"{self.num_removed:,} removed ({self.exact_duplicates:,} exact{causes}){rejected}; {judged}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class PassagesReport(Report):
    """The result of a search for repeated passages.

    Attributes:
        num_places: the rows of `passages`.
        num_passages: the rows of `repeated`.
        num_words: words of the input.
        repeated_words: words in places, those of `min_count`, and with keep="none" in sources.
    """

    num_places: int
    num_passages: int
    num_words: int
    repeated_words: int

    @functools.cached_property
    def passages(self) -> pa.Table:
        """Every place of a passage.

        passage_id, doc_id, start, end, start_byte, end_byte, line, words, source_id, source_start;
        from files also file, row, source_file and source_row; if ids in memory repeat, row and
        source_row.
        """
        return self._table("passages", "this run did not store its passages", _FIND)

    @functools.cached_property
    def repeated(self) -> pa.Table:
        """Every passage, most words times places first: passage_id, words, places, documents, text."""
        return self._table("repeated", "this run did not store its passages", _FIND)

    def cut(self) -> pa.Table:
        """Return the documents without the repeated passages, as `kept` returns those of other runs."""
        return self._table("cut", "this run wrote no documents without passages", "pass cut=True")

    def as_dict(self) -> dict[str, Any]:
        """Return what report.json holds."""
        names = ("num_places", "num_passages", "num_words", "repeated_words")
        return super().as_dict() | {"passages": {name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        return (
            f"{self.documents:,} document{'s'[: self.documents != 1]}: {self.num_passages:,} "
            f"passage{'s'[: self.num_passages != 1]} in {self.num_places:,} further "
            f"place{'s'[: self.num_places != 1]}, {self.repeated_words:,} of {self.num_words:,} words; "
            f"{self.seconds:.2f} s"
        )


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class PartsReport(Report):
    """The result of a run with `level`, which removes repeated paragraphs or lines.

    Attributes:
        num_parts: the rows of `removed_parts`.
        num_words: words of the input.
        removed_words: words in removed parts.
    """

    num_parts: int
    num_words: int
    removed_words: int

    @functools.cached_property
    def removed_parts(self) -> pa.Table:
        """Every removed paragraph or line: doc_id, start, end, line, words, kept_id, kept_start, similarity.

        From files also file, row, kept_file and kept_row; if ids in memory repeat, row and kept_row. Where no place
        stays, what names it is null.
        """
        return self._table(
            "removed_parts", "this run did not store its removed parts", "pass level='paragraph'"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what report.json holds."""
        names = ("num_parts", "num_words", "removed_words")
        return super().as_dict() | {"parts": {name: getattr(self, name) for name in names}}

    def to_html(self, *, limit: int | str = "3MB", text: bool = True, by: str | None = None) -> str:
        """Return the counts, and the places with most removed copies, as a page of their own.

        `limit` and `text` have no effect on it.
        """
        del limit, text, by
        return html_view.page(f"Repeated {self.config.level}s", self._repr_html_())

    def _repr_html_(self) -> str:
        """Show the places that stay, those with most removed words first."""
        names = [name for name in ("kept_id", "kept_file", "kept_row") if self._has(name)]
        by_place = self.removed_parts.group_by([*names, "kept_start"], use_threads=False)
        places = by_place.aggregate([("words", "sum"), ("words", "count")])
        order = [("words_sum", "descending"), *((name, "ascending") for name in names)]
        shown = places.sort_by([*order, ("kept_start", "ascending")]).slice(0, _SHOWN_PARTS)
        columns = [*names, "kept_start", "words_count", "words_sum"]
        rows = [[row[name] for name in columns] for row in shown.to_pylist()]
        note = ""
        if places.num_rows > shown.num_rows:
            note = f"and {places.num_rows - shown.num_rows:,} more"
        return html_view.view(
            str(self),
            html_view.table([*names, "kept_start", "removed copies", "removed words"], rows, note),
        )

    def _has(self, name: str) -> bool:
        return name in self.removed_parts.column_names

    def __str__(self) -> str:
        level = self.config.level
        return (
            f"{self.documents:,} document{'s'[: self.documents != 1]}: {self.num_parts:,} repeated "
            f"{level}{'s'[: self.num_parts != 1]} removed, {self.removed_words:,} of {self.num_words:,} words; "
            f"{self.seconds:.2f} s"
        )


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ContaminationReport(Report):
    """The result of a search for items of benchmarks in documents.

    Attributes:
        num_items: the items of all benchmarks.
        num_items_found: those that a document contains.
        num_too_short: those with too few words to be searched.
        num_items_rejected: rows of benchmarks that cannot be used.
        num_contaminated: documents that contain an item.
    """

    num_items: int
    num_items_found: int
    num_too_short: int
    num_items_rejected: int
    num_contaminated: int

    @functools.cached_property
    def contaminated(self) -> pa.Table:
        """Every span of a document that covers an item: doc_id, benchmark, item_id, score, start, end and more."""
        return self._table("contaminated", "this run stored no contaminated documents", _SEARCH)

    @functools.cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """Which documents in memory contain no item: True or False for every row; rejected rows are False."""
        table = self._table(
            "mask", "this run did not store which rows are clean", "see report.contaminated"
        )
        is_clean: npt.NDArray[np.bool_] = table.column("is_kept").to_numpy()
        return is_clean

    @functools.cached_property
    def items(self) -> pa.Table:
        """Every item: benchmark, item_id, item_row, words, status, documents, best_score."""
        return self._table("items", "this run stored no items", _SEARCH)

    @functools.cached_property
    def benchmarks(self) -> pa.Table:
        """Every benchmark: items, found, too_short, documents."""
        return self._table("benchmarks", "this run stored no benchmarks", _SEARCH)

    def to_html(self, *, limit: int | str = "3MB", text: bool = True, by: str | None = None) -> str:
        """Return the benchmarks, the items that were found and the documents with them as a page of their own.

        It lists the most frequent items; `limit` and `text` have no effect on it.
        """
        del limit, text, by
        return html_view.page("Items of benchmarks in documents", self._repr_html_())

    def _repr_html_(self) -> str:
        """Show every benchmark, and the items that most documents contain."""
        names = ("benchmark", "items", "found", "too_short", "documents")
        benchmarks = [[row[name] for name in names] for row in self.benchmarks.to_pylist()]
        found = self.items.filter(pc.greater(self.items.column("documents"), 0))
        order = [("documents", "descending"), ("benchmark", "ascending"), ("item_row", "ascending")]
        shown = found.sort_by(order).slice(0, _SHOWN_ITEMS)
        columns = ("benchmark", "item_id", "words", "documents", "best_score")
        rows = [[row[name] for name in columns] for row in shown.to_pylist()]
        note = ""
        if found.num_rows > shown.num_rows:
            note = f"and {found.num_rows - shown.num_rows:,} more items"
        return html_view.view(
            str(self),
            html_view.table(("benchmark", "items", "found", "too short", "documents"), benchmarks),
            html_view.table(("benchmark", "item", "words", "documents", "best score"), rows, note),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what report.json holds."""
        names = (
            "num_items",
            "num_items_found",
            "num_too_short",
            "num_items_rejected",
            "num_contaminated",
        )
        return super().as_dict() | {"contamination": {name: getattr(self, name) for name in names}}

    def __str__(self) -> str:
        return (
            f"{self.documents:,} document{'s'[: self.documents != 1]}: {self.num_contaminated:,} with "
            f"{self.num_items_found:,} of {self.num_items:,} item{'s'[: self.num_items != 1]} of benchmarks; "
            f"{self.seconds:.2f} s"
        )
