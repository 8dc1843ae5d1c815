"""What must hold for every case: in memory, on files, repeated and killed, a run agrees with the oracle."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from fuzz.cases import Case, File, Row
from neardup.report import Report
from support import corpora
from support.oracles import Pairs, Removed, Truth
from support.programs import Finished, Programs, contents

READING = ("unit", "size", "multiset", "fold_numbers", "normalise", "fold_accents")
JUDGED = (
    *READING,
    "threshold",
    "keep",
    "cluster",
    "collapse_empty",
    "only_against",
    "per_cluster",
    "ignore_common",
)


FILES_ONLY = ("id_column", "only_against")


class MismatchError(AssertionError):
    """A run disagrees with the oracle."""


def same(what: str, found: Any, expected: Any) -> None:
    """Raise unless two values are equal; for dicts and lists, show the difference."""
    if found == expected:
        return
    if isinstance(found, dict) and isinstance(expected, dict):
        names = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
        found, expected = (
            {name: side.get(name) for name in names[:5]} for side in (found, expected)
        )
    raise MismatchError(f"{what}\n  found    {found!r:.600}\n  expected {expected!r:.600}")


@dataclasses.dataclass(frozen=True)
class Place:
    """The position of a row in the input; rows count from 1."""

    file: str
    number: int
    row: Row

    @property
    def id(self) -> str:
        if self.row.id is not None:
            return self.row.id
        # A whole-file document is named by its file.
        return self.file if self.file.endswith(".txt") else f"{self.file}:{self.number}"


def places_of(files: Sequence[File]) -> list[Place]:
    """Return the rows of files in order, without blank ones."""
    numbered = (
        (file.name, number, row) for file in files for number, row in enumerate(file.rows, 1)
    )
    return [Place(*place) for place in numbered if not place[2].is_blank]


def truth_of(places: Sequence[Place], num_references: int, settings: dict[str, Any]) -> Truth:
    rows = [place.row for place in places]
    return Truth(
        [row.text for row in rows],
        scores=[row.score for row in rows],
        groups=[row.site for row in rows] if "group_column" in settings else None,
        num_references=num_references,
        common_groups=[row.site for row in rows] if "common_by" in settings else None,
        **{name: settings[name] for name in JUDGED if name in settings},
    )


def check_found(found: Pairs, truth: Truth, report: Report) -> None:
    """The exact join finds every pair; LSH finds no false pair, and the same pairs for copies."""
    expected = truth.pairs
    if report.plan.method != "exact":
        same("false pairs", found, {pair: truth.pairs.get(pair) for pair in found})
        expected = truth.with_copies(found)
    same("pairs", found, expected)
    same("order of pairs", list(found), sorted(found))


def check_counts(report: Report, truth: Truth, removed: Removed, num_rows: int) -> None:
    """The numbers of a report add up."""
    num_own = len(truth.own_rows)
    found = (
        report.documents,
        report.num_kept,
        report.num_removed,
        report.num_rejected,
        report.exact_duplicates,
    )
    expected = (
        num_rows,
        num_own - len(removed),
        len(removed),
        num_rows - num_own,
        truth.exact_duplicates,
    )
    same("documents, kept, removed, rejected, exact duplicates", found, expected)
    causes = (report.removed_against, report.removed_within)
    num_against = truth.count_against(removed)
    same("removed against, within", causes, (num_against, len(removed) - num_against))


# --- in memory ---


def check_in_memory(case: Case) -> None:
    """Run on a table in memory, with and without pairs."""
    rows = [place.row for place in places_of(case.files)]
    table = pa.table(
        {
            "text": pa.array([row.text for row in rows], pa.string()),
            "score": pa.array([row.score for row in rows], pa.float64()),
            "site": pa.array([row.site for row in rows], pa.string()),
        }
    )
    truth = truth_of(places_of(case.files), 0, {**case.settings, "only_against": False})
    settings = {name: value for name, value in case.settings.items() if name not in FILES_ONLY}
    for pairs in (True, False):
        report = neardup.deduplicate(
            table, pairs=pairs, threads=case.threads[not pairs], **settings
        )
        if pairs:
            found = {
                (row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()
            }
            check_found(found, truth, report)
            _check_again(report, truth, found)
        removed = truth.select(found)
        _check_tables(report, truth, removed, found)
        check_counts(report, truth, removed, len(rows))
        kept = table.take([row for row in truth.rows if row not in removed])
        kept_rows = report.kept.drop_columns("doc_id")
        same(
            "kept rows in memory", str(kept_rows.to_pylist()), str(kept.to_pylist())
        )  # NaN differs from itself
        same(
            "mask",
            np.flatnonzero(report.mask).tolist(),
            [row for row in truth.rows if row not in removed],
        )


def _check_tables(report: Report, truth: Truth, removed: Removed, found: Pairs) -> None:
    listed = [
        (row["doc_id"], row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    ]
    same("removed in memory", listed, [(row, *match) for row, match in removed.items()])
    clusters = [tuple(row.values()) for row in report.clusters.to_pylist()]
    same("clusters in memory", clusters, truth.clusters(found))
    rejected = sorted(set(range(len(truth.sets))) - set(truth.rows))
    same("rejected in memory", report.rejected.column("row").to_pylist(), rejected)


def _check_again(report: Report, truth: Truth, found: Pairs) -> None:
    """Selecting again at a higher threshold agrees with the stored pairs."""
    threshold = (1 + report.config.threshold) / 2
    higher = {pair: similarity for pair, similarity in found.items() if similarity >= threshold}
    again = report.at_threshold(threshold)
    listed = {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in again.removed.to_pylist()
    }
    same(f"removed at {threshold}", listed, truth.select(higher))
    clusters = [tuple(row.values()) for row in again.clusters.to_pylist()]
    same(f"clusters at {threshold}", clusters, truth.clusters(higher))


# --- from files ---


class Runs:
    """Runs on files: in this process, or, to be killed, in another one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = None

    def programs(self) -> Programs:
        """Return the process starter; creating it takes seconds, so there is one, created on demand."""
        if self._programs is None:
            (self.folder / "spoken").mkdir(exist_ok=True)
            self._programs = Programs(self.folder / "spoken")
        return self._programs

    def close(self) -> None:
        if self._programs is not None:
            self._programs.close()


def check_files(case: Case, folder: Path, runs: Runs) -> None:
    """Run on files twice, with and without pairs, and killed; `folder` is empty."""
    inputs = [file.write(folder / "in") for file in case.files]
    old, against = _old(case, folder)
    settings = case.settings | ({"against": against} if against else {"only_against": False})
    case = dataclasses.replace(case, settings=settings)
    first = _deduplicate(case, 0, inputs, folder / "first", pairs=True, **settings)
    check_output(case, old, first, folder / "first")
    expected = corpora.contents(folder / "first")
    _deduplicate(case, 1, inputs, folder / "second", pairs=case.lists_twice, **settings)
    again = corpora.contents(folder / "second")
    if case.lists_twice:
        same("a second run", again, expected)
    else:
        same("a second run without pairs", _without_pairs(again), _without_pairs(expected))
    if case.listing:
        listed = corpora.find_pairs(inputs, folder / f"pairs.{case.listing}", **settings)
        same("pairs alone", listed.pairs.to_pylist(), first.pairs.to_pylist())
    if case.kills:
        command = [
            "dedup",
            *inputs,
            "-o",
            "out",
            "--pairs",
            "--quiet",
            "--threads",
            str(case.threads[0]),
        ]
        _check_killed(case, [*command, *options(settings)], expected, folder, runs)


def _without_pairs(found: dict[str, Any]) -> dict[str, Any]:
    """The outputs that do not depend on whether pairs are listed."""
    return {
        name: found[name]
        for name in found
        if name not in ("report.json", "pairs.parquet", "order.parquet")
    }


def _old(case: Case, folder: Path) -> tuple[tuple[File, ...], tuple[str, ...]]:
    """Write the reference documents; return their files in reading order, and the --against argument."""
    paths = tuple(str(file.write(folder / "old")) for file in case.old)
    if not case.old_is_run or not paths:
        return case.old, paths
    names = {*JUDGED, "group_column", "id_column", "common_by"} - {"only_against"}
    settings = {name: value for name, value in case.settings.items() if name in names}
    run = dataclasses.replace(case, files=case.old, old=(), settings=settings | {"method": "exact"})
    report = _deduplicate(run, 0, paths, folder / "run", pairs=True, **run.settings)
    kept = check_output(run, (), report, folder / "run")
    return tuple(file for file in kept if file.rows or file.format != "txt"), (str(folder / "run"),)


def _deduplicate(case: Case, at: int, inputs: Sequence[Any], out: Path, **settings: Any) -> Report:
    with pytest.MonkeyPatch.context() as monkeypatch:
        corpora.cut(monkeypatch, batch_bytes=case.batch_bytes, part_bytes=case.part_bytes)
        corpora.shrink(monkeypatch, case.rooms[at])
        return corpora.deduplicate(inputs, out, threads=case.threads[at], **settings)


def check_output(case: Case, old: Sequence[File], report: Report, out: Path) -> tuple[File, ...]:
    """Check every table and the kept rows of a run with pairs; return the files of kept rows."""
    references = places_of(old)
    own = places_of(case.files)
    places = [*references, *own]
    truth = truth_of(places, len(references), case.settings)
    row_of = {(place.file, place.number): row for row, place in enumerate(places)}

    def rows(table: pa.Table, *sides: tuple[str, str, str]) -> Iterator[tuple[Any, ...]]:
        for line in table.to_pylist():
            found = tuple(row_of[line[file], line[number]] for _, file, number in sides)
            same("ids", [line[name] for name, _, _ in sides], [places[row].id for row in found])
            yield *found, line["similarity"]

    listed = list(rows(report.pairs, ("doc_a", "file_a", "row_a"), ("doc_b", "file_b", "row_b")))
    found = {(a, b): similarity for a, b, similarity in listed}
    check_found(found, truth, report)
    same("num_pairs", (report.num_pairs, len(listed)), (len(found), len(found)))
    removed = truth.select(found)
    listed = list(
        rows(report.removed, ("doc_id", "file", "row"), ("kept_id", "kept_file", "kept_row"))
    )
    same("removed", listed, [(row, *match) for row, match in removed.items()])
    clusters = [tuple(row.values()) for row in report.clusters.to_pylist()]
    same(
        "clusters",
        clusters,
        [(places[row].id, places[kept].id, size) for row, kept, size in truth.clusters(found)],
    )
    rejected = [(row["file"], row["row"]) for row in report.rejected.to_pylist()]
    same(
        "rejected",
        rejected,
        [(place.file, place.number) for place in own if place.row.text is None],
    )
    check_counts(report, truth, removed, len(own))
    kept = {(places[row].file, places[row].number) for row in truth.own_rows if row not in removed}
    return tuple(_check_kept(file, kept, out) for file in case.files)


def _check_kept(file: File, kept: set[tuple[str, int]], out: Path) -> File:
    """Check that a file holds exactly the kept rows, byte for byte; return its contents."""
    rows = file.with_rows([at for at in range(len(file.rows)) if (file.name, at + 1) in kept])
    path = out / "kept" / file.name
    if file.format == "txt" and not rows.rows:
        same(f"{file.name} is there", path.exists(), False)
    elif file.format == "parquet":
        table = pq.read_table(path)
        same("schema", table.schema, file.table().schema)
        same(f"kept rows of {file.name}", str(table.to_pylist()), str(rows.table().to_pylist()))
    else:
        same(f"kept rows of {file.name}", corpora.unpacked(path), rows.encoded())
    return rows


def options(settings: dict[str, Any]) -> list[str]:
    """Spell settings as options of the command line."""
    spelled: list[str] = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            spelled.append(flag)
        elif value is False:
            spelled += [] if name == "only_against" else [f"--no-{flag[2:]}"]
        else:
            spelled += [
                part
                for each in (value if isinstance(value, tuple) else (value,))
                for part in (flag, str(each))
            ]
    return spelled


def _check_killed(
    case: Case, command: list[Any], expected: dict[str, Any], folder: Path, runs: Runs
) -> None:
    """A run that is killed, possibly several times, produces the same bytes as an uninterrupted one."""
    room = f"give_room({case.rooms[0]})"

    def start(name: str, before: str = "pass") -> Finished:
        return runs.programs().run(*command, cwd=folder / name, before=f"{room}; {before}")

    same("exit code", (finished := start("whole")).code and finished.stderr, 0)
    whole = contents(folder / "whole/out")
    tables = [name for name in expected if name != "report.json" and not name.startswith("kept/")]
    same(
        "another process",
        {name: whole[name] for name in tables},
        {name: expected[name] for name in tables},
    )
    out = folder / "killed/out"
    for number in case.kills:
        if not out.exists():
            finished = start("killed", f"kill_at_event({number})")
            same("exit code", finished.code, 0 if finished.code == 0 else -signal.SIGKILL)
    if not out.exists():
        same("exit code", (finished := start("killed")).code and finished.stderr, 0)
    same(f"killed at {case.kills}", contents(out), whole)
