"""Finished runs with random damage: whatever reads a run gives a result or an error of ours, and never crashes."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import neardup
from fuzz import forked, mutations
from neardup import api
from neardup.config import Config
from neardup.errors import ConfigError, NearDupError, NotStoredError
from neardup.jobs.explain import compare_pair, find_pairs_of
from neardup.web.report_file import make_html
from neardup.web.served_run import ServedRun, UnknownError

WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
# What each kind of run is made with; `against`: reference documents are given.
KINDS: dict[str, dict[str, Any]] = {
    "leader": {"threshold": 0.5, "audit": True},
    "components": {"threshold": 0.4, "cluster": "components", "keep": "longest"},
    "against": {"threshold": 0.5, "against": "old.jsonl", "per_cluster": 2},
    "exact": {"threshold": 0.6, "method": "exact", "collapse_empty": True},
    "containment": {"threshold": 0.6, "measure": "containment", "against": "old.jsonl"},
}

# What an error about data names: the run, a file, or a document that was asked for.
_PLACE: Final = re.compile(r"\bout\b|\.jsonl|\.json|\.txt|\.parquet|'[a-z]+-\d+'")
# The formats of lists of pairs.
ENDINGS: tuple[str, ...] = ("parquet", "jsonl", "csv")


def _make_inputs(folder: Path) -> None:
    """Write an input with blank and rejected rows, reference documents and new documents."""
    _write_lines(folder / "old.jsonl", _documents(random.Random(1), 6, "old"))
    _write_lines(folder / "new.jsonl", _documents(random.Random(2), 6, "new"))
    rows = [json.dumps(row) for row in _documents(random.Random(3), 24, "doc")]
    rows[5:5] = ["", '{"text": 7}', "{broken"]
    (folder / "in").mkdir()
    (folder / "in/pages.jsonl").write_text("".join(f"{row}\n" for row in rows))
    _write_lines(folder / "in/more.jsonl", _documents(random.Random(4), 8, "more"))
    (folder / "in/page.txt").write_text(" ".join(WORDS))


def _make_run(kind: str) -> None:
    """Run on the input in the current folder, as a kind of run, or as a list of pairs in a format."""
    if kind in KINDS:
        # Without blank rows, the page shows documents that are alone in their cluster.
        inputs = "in/more.jsonl" if kind == "exact" else "in"
        neardup.deduplicate(
            inputs, out=f"runs/{kind}/out", pairs=True, threads=1, size=1, **KINDS[kind]
        )
    else:
        Path(f"runs/{kind}/out").mkdir(parents=True)
        neardup.find_pairs(
            "in", out=f"runs/{kind}/out/pairs.{kind}", threshold=0.5, size=1, threads=1
        )


def _documents(rng: random.Random, number: int, name: str) -> list[dict[str, str]]:
    rows = []
    for at in range(number):
        words = WORDS.copy()
        for place in rng.sample(range(len(words)), rng.randrange(4)):
            words[place] = f"word{rng.randrange(9)}"
        text = " ".join(words if rng.random() < 0.8 else rng.choices(words, k=6))
        rows.append({"id": f"{name}-{at}", "text": text} if rng.random() < 0.7 else {"text": text})
    return rows


def _write_lines(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


# --- what reads a run; each gets its folder, or the file of a list of pairs ---


def _load(run: Path) -> None:
    report = neardup.load(run)
    report.as_dict()
    str(report)
    report._repr_html_()
    names = ("kept", "removed", "clusters", "rejected", "pairs", "mask")
    for read in (
        *(lambda name=name: getattr(report, name) for name in names),
        report.largest_clusters,
    ):
        with _ours():
            read()
    for threshold in (report.config.threshold, 0.8, 1.0):
        with _ours():
            again = report.at_threshold(threshold)
            _ = again.removed, again.clusters, again.mask
    report.borderline()


def _report(run: Path) -> None:
    report = neardup.load(run)
    make_html(report)
    make_html(report, text=False)


def _serve(run: Path) -> None:
    served = ServedRun(neardup.load(run))
    try:
        served.info()
        for has_read in (False, True):
            if has_read:
                served._texts.read()
            _ask(served)
    finally:
        served.close()


def _ask(served: ServedRun) -> None:
    served.info()
    keys = [-1, 0, 1, 2, 30, 10**6, 2**62]
    for sort in ("size", "-size", "weakest", "id"):
        keys += [
            row["key"] for row in served.clusters(offset=0, limit=50, sort=sort, search="")["rows"]
        ]
    served.clusters(offset=0, limit=50, sort="size", search="ferry")
    for row in served.search("doc")["rows"]:
        keys.append(row["key"])
    served.search("ferry island")
    for key in sorted(set(keys)):
        for ask in (served.cluster, served.document, lambda key: served.pair(key, 0)):
            with _ours():
                ask(key)
    with _ours():
        served.named("doc-1")


def _explain(run: Path) -> None:
    for doc_id in ("doc-1", "doc-7", "more-3", "pages.jsonl:9", "page.txt"):
        with _ours():
            api.explain(run, doc_id)
    for doc_id in ("doc-1", "doc-7", "more-3"):
        with _ours():
            for pair in find_pairs_of(run, doc_id)[:3]:
                with _ours():
                    compare_pair(run, pair)


def _audit(run: Path) -> None:
    neardup.audit(run, sample=10, threads=1)


def _list_pairs(run: Path) -> None:
    for name, settings in (("listed.csv", {}), ("close.parquet", {"threshold": 0.8})):
        api.find_pairs(Path(run), out=name, config=Config(threads=1, **settings))


def _against(run: Path) -> None:
    neardup.deduplicate("new.jsonl", out="fresh", against=str(run), threshold=0.5, threads=1)


def _decide(run: Path) -> None:
    """A file of decisions, and the tables that it was made from, come from the same author."""
    del run
    decisions = Path("decisions.json")
    neardup.deduplicate(
        "in/more.jsonl", out="decided", decisions=str(decisions), threshold=0.5, size=1, threads=1
    )


READERS: dict[str, Callable[[Path], None]] = {
    "load": _load,
    "report": _report,
    "serve": _serve,
    "explain": _explain,
    "audit": _audit,
    "pairs RUN": _list_pairs,
    "--against RUN": _against,
    "decisions": _decide,
}


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    """Let errors of ours pass; one about data must name a file."""
    try:
        yield
    except (ConfigError, NotStoredError, UnknownError):
        pass
    except NearDupError as error:
        if not _PLACE.search(str(error)):
            raise AssertionError(f"an error that names no place: {error}") from error


class MutatedRuns:
    """Checks mutated runs; `folder` is for their files."""

    def __init__(self, folder: Path) -> None:
        self._made = folder / "made"
        self._case = folder / "case"
        self._made.mkdir()
        _make_inputs(self._made)

    def check(self, seed: int) -> str | None:
        """Return how the case of a seed fails, None if it does not."""
        rng = random.Random(seed)
        kind = rng.choice((*KINDS, *KINDS, *ENDINGS))
        self._warm(kind)
        case = self._copy(kind)

        def act(tell: forked.Tell) -> None:
            for done in _damage(case, rng):
                tell(f"  {done}")
            _read_all(case, kind, tell)

        fault = forked.fault_of(act)
        return None if fault is None else f"a run of kind {kind}\n{fault}"

    def _warm(self, kind: str) -> None:
        """Make a run of a kind once, and read it, which compiles and loads what the children need."""
        if (self._made / "runs" / kind).exists():
            return
        with contextlib.chdir(self._made), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # some rows are rejected
            _make_run(kind)
        _read_all(self._copy(kind), kind, lambda _: None)

    def _copy(self, kind: str) -> Path:
        """Copy a run; its inputs are links to the originals, which keep their times."""
        case = self._case
        if case.exists():
            shutil.rmtree(case)
        shutil.copytree(self._made / "runs" / kind / "out", case / "out")
        for name in ("in", "old.jsonl", "new.jsonl"):
            (case / name).symlink_to(self._made / name)
        decision = {
            "decision": "remove",
            "file": "more.jsonl",
            "row": 2,
            "digest": "0" * 32,
            "id": None,
        }
        decisions = {
            "neardup_decisions": 1,
            "decisions": [decision, decision | {"decision": "keep", "row": 3}],
        }
        (case / "decisions.json").write_text(json.dumps(decisions))
        return case

    def close(self) -> None:
        """Nothing runs on."""


def _damage(case: Path, rng: random.Random) -> Iterator[str]:
    if rng.random() < 0.05:
        yield mutations.mutate_json(case / "decisions.json", rng)
    else:
        yield from mutations.mutate(case / "out", rng)


def _read_all(case: Path, kind: str, tell: forked.Tell) -> None:
    run = Path("out") if kind in KINDS else Path(f"out/pairs.{kind}")
    with contextlib.chdir(case), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rejected rows and forged recalls are expected
        for name, read in READERS.items():
            tell(name)
            with _ours():
                read(run)
