"""A sample of removals to judge, and the precision of a run that follows from the judgements."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import REVIEW_SAMPLE
from neardup.config.checks import check_int
from neardup.errors import DataError, NotStoredError
from neardup.io.finished import finished_run
from neardup.io.finished.decision_file import digest_of
from neardup.jobs.explain import read_texts
from neardup.measures.base import mix
from neardup.theory.binomial import Share, stratified

if TYPE_CHECKING:
    from neardup.report import Report

I64 = npt.NDArray[np.int64]

WEAKEST: Final = "weakest tenth"
REST: Final = "the rest"
STRATA: Final = (WEAKEST, REST)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """A removal to judge.

    Attributes:
        doc_id: the removed document, with its file and row, which is its position for documents in memory.
        kept_id: the document for which it was removed, with its file and row.
        similarity: how similar the two are.
        stratum: "weakest tenth" or "the rest".
        is_right: whether the two are the same, as judged; None if they were not.
    """

    doc_id: Any
    file: str | None
    row: int | None
    kept_id: Any
    kept_file: str | None
    kept_row: int | None
    similarity: float
    stratum: str
    is_right: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Review:
    """Removals drawn from a run, and what was judged of them; identical documents are not drawn.

    Attributes:
        removals: those to judge, in the order in which they were drawn.
        sizes: how many removals each stratum has: the weakest tenth, and the rest.
        identical: removed documents of similarity 1, which are neither drawn nor counted.
        out: the folder of the run, None in memory.
    """

    removals: tuple[Removal, ...]
    sizes: dict[str, int]
    identical: int
    out: str | None

    def judge(self, number: int, is_right: bool | None) -> Review:
        """Return the review with another judgement of a removal, by its position; None takes it back."""
        check_int("number", number, 0, len(self.removals) - 1)
        removals = list(self.removals)
        removals[number] = dataclasses.replace(removals[number], is_right=is_right)
        return dataclasses.replace(self, removals=tuple(removals))

    @property
    def judged(self) -> int:
        """The removals that were judged."""
        return sum(one.is_right is not None for one in self.removals)

    @property
    def wrong(self) -> tuple[Removal, ...]:
        """The removals that were judged as wrong."""
        return tuple(one for one in self.removals if one.is_right is False)

    @property
    def precision(self) -> float | None:
        """The share of right removals, of those that are not identical, weighted by stratum; None while it is open."""
        return stratified(self._shares()).value

    @property
    def low(self) -> float:
        """The lower bound of its 95 % interval."""
        return stratified(self._shares()).low

    @property
    def high(self) -> float:
        """The upper bound of its 95 % interval."""
        return stratified(self._shares()).high

    def _shares(self) -> list[Share]:
        shares = []
        for name in STRATA:
            own = [one.is_right for one in self.removals if one.stratum == name]
            num_judged = sum(is_right is not None for is_right in own)
            shares.append(
                Share(sum(is_right is True for is_right in own), num_judged, self.sizes[name])
            )
        return shares

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate, the strata and the judgements as JSON values."""
        shares = zip(STRATA, self._shares(), strict=True)
        return {
            "precision": self.precision,
            "low": self.low,
            "high": self.high,
            "judged": self.judged,
            "identical": self.identical,
            "strata": [{"stratum": name} | share._asdict() for name, share in shares],
            "removals": [dataclasses.asdict(one) for one in self.removals],
        }

    def save(self, path: str | Path) -> int:
        """Write decisions that keep the wrongly removed documents, with the estimate; return how many there are.

        `neardup dedup --decisions` and `neardup evaluate --labels` read the file.
        """
        if self.out is None:
            raise NotStoredError(
                "decisions name documents by file and row, and this run has no files",
                hint="use review.wrong",
            )
        decisions = []
        locations = [(one.file or "", one.row or 0) for one in self.wrong]
        run = Path(self.out)
        config = finished_run.restore(run).config
        texts = read_texts(run, locations, config).texts if locations else []
        for one, text in zip(self.wrong, texts, strict=True):
            decisions.append(
                {
                    "decision": "keep",
                    "file": one.file,
                    "row": one.row,
                    "digest": digest_of(text.encode()),
                    "id": one.doc_id,
                }
            )
        content = {"neardup_decisions": 1, "decisions": decisions, "review": self.as_dict()}
        Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
        return len(decisions)

    def __str__(self) -> str:
        if not self.removals:
            return f"nothing to judge: {self.identical:,} removed documents are identical, and there are no others"
        num_wrong = len(self.wrong)
        counts = (
            f"{self.judged:,} of {len(self.removals):,} judged: {self.judged - num_wrong:,} right, "
            f"{num_wrong:,} wrong"
        )
        if self.precision is None:
            return f"{counts}; judge some of every stratum for an estimate"
        interval = f"95 % interval {self.low:.2f} to {self.high:.2f}"
        return f"{counts}; precision {self.precision:.2f} ({interval}) of the removals that are not identical"


def draw_review(report: Report, sample: int = REVIEW_SAMPLE) -> Review:
    """Draw removals by a hash of their row, half of them from the weakest tenth."""
    check_int("sample", sample, 1)
    removed = report.removed
    if not isinstance(removed, pa.Table):
        raise NotStoredError(
            "the tables of a run on Spark stay on its workers", hint="load the folder of the run"
        )
    similarities = removed.column("similarity").to_numpy()
    edited = np.flatnonzero(similarities < 1)
    hashes = mix(_rows(report)[edited].astype(np.uint64))
    weakest_first = edited[np.lexsort((hashes, similarities[edited]))]
    num_weakest = -(-edited.size // 10)
    strata = {WEAKEST: weakest_first[:num_weakest], REST: weakest_first[num_weakest:]}
    by_hash = np.empty(removed.num_rows, np.uint64)
    by_hash[edited] = hashes
    num_weak = min(strata[WEAKEST].size, max(sample - sample // 2, sample - strata[REST].size))
    num_drawn = {WEAKEST: num_weak, REST: min(strata[REST].size, sample - num_weak)}
    drawn = []
    for name, positions in strata.items():
        order = np.argsort(by_hash[positions], kind="stable")
        drawn += [(int(at), name) for at in positions[order][: num_drawn[name]]]
    drawn.sort(key=lambda one: int(by_hash[one[0]]))
    return Review(
        removals=tuple(_removal(report, at, name) for at, name in drawn),
        sizes={name: int(positions.size) for name, positions in strata.items()},
        identical=int(similarities.size - edited.size),
        out=report.out,
    )


def _rows(report: Report) -> I64:
    """The rows of the removed documents in the input."""
    if "file" in report.removed.column_names:
        return finished_run.own_rows(report.removed, report.inputs)
    selection = report.load("selection")
    if selection is None:
        raise NotStoredError("this run did not store its rows", hint="run it again")
    rows: I64 = selection.column("row").to_numpy()
    return rows


def _removal(report: Report, at: int, stratum: str) -> Removal:
    row = report.removed.slice(at, 1).to_pylist()[0]
    if "file" not in row:
        selection = report.load("selection")
        locations = {} if selection is None else selection.slice(at, 1).to_pylist()[0]
        row |= {"file": None, "kept_file": None}
        row |= {"row": locations.get("row"), "kept_row": locations.get("kept_row")}
    names = [field.name for field in dataclasses.fields(Removal) if field.name in row]
    return Removal(stratum=stratum, **{name: row[name] for name in names})


def texts_of(review: Review, number: int) -> Sequence[str]:
    """Return both texts of a removal of a run on files, the kept one first; none if they cannot be read."""
    one = review.removals[number]
    if review.out is None or one.file is None or one.kept_file is None:
        return []
    run = Path(review.out)
    locations = [(one.kept_file, one.kept_row or 0), (one.file, one.row or 0)]
    try:
        return read_texts(run, locations, finished_run.restore(run).config).texts
    except DataError:
        return []
