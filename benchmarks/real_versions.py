"""Part of docs/on-real-data.md: pages of documentation that were edited between two releases.

A page of one release and the page at the same path in the other are the same page, edited. Whether
a path that vanished and one that appeared are a page that moved is not known, so such pairs are
counted neither way. Every other pair is of different pages. Pages with equal texts are left out.
"""

from __future__ import annotations

import itertools
import re
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import neardup
from harness import machine
from pair_scores import Pairs, as_pairs, cell, is_installed, score, versions

# Thresholds are chosen on the first ones, and reported for all.
CHOSEN_ON = ("Sphinx", "pytest")
RELEASES = {
    "Sphinx": ("5.0.0", "7.0.0"),
    "pytest": ("6.0.0", "8.0.0"),
    "Django": ("3.2", "4.2"),
    "networkx": ("2.4", "3.2"),
    "sympy": ("1.6", "1.12"),
}
MEASURES = ("jaccard", "containment")
UNITS = (("word", 1), ("word", 3), ("word", 5), ("char", 5))
THRESHOLDS = tuple(step / 50 for step in range(5, 46))
COSINES = tuple(step / 100 for step in range(10, 100))
_PAGE = re.compile(r"[^/]+/(docs?/.*\.(?:rst|txt))")
_ABOUT = (
    "Two releases of the documentation of Python packages, as their source distributions hold it (`.rst`",
    "and `.txt` files below `doc` or `docs`). The page at the same path in both releases is one page,",
    "edited, even if it was rewritten and shares little. A path that vanished and one that appeared may",
    "be a page that moved: such pairs are counted neither way. Any other pair is wrong. Pages with equal",
    "texts in both releases are left out.",
)


# Held by tests/architecture/test_on_real_data.py.
_FINDINGS = (
    "Containment, the share of the smaller page that the larger one holds, finds more edited pages than",
    "Jaccard similarity. More than half of the edited pages of networkx and sympy have a similarity below",
    "0.8 (words, size 5), so the defaults miss them; `tune` finds more, with more wrong pairs. TF-IDF",
    "of every pair has the best F1 on Django, networkx and sympy, and the worst on pytest.",
)


class Pages(NamedTuple):
    """The pages of two releases, which are the same page, and which may be."""

    name: str
    texts: list[str]
    truth: Pairs
    unknown: Pairs


def archives(folder: Path, name: str) -> list[Path]:
    """Return where the source distributions of a package are expected."""
    return [folder / f"{name}-{release}.tar.gz" for release in RELEASES[name]]


def archive_names() -> list[str]:
    """Return the names of all source distributions."""
    return [
        f"{name}-{release}.tar.gz" for name, releases in RELEASES.items() for release in releases
    ]


def is_complete(folder: Path) -> bool:
    """Whether a folder has all source distributions."""
    return all((folder / name).exists() for name in archive_names())


def load(folder: Path, name: str) -> Pages:
    """Read the pages of both releases of a package that are not equal in both."""
    old, new = (read_archive(archive) for archive in archives(folder, name))
    equal = {path for path in old.keys() & new.keys() if old[path] == new[path]}
    places = [(path, release) for release in (old, new) for path in sorted(release.keys() - equal)]
    num_old = len(old.keys() - equal)
    at_old = {path: at for at, (path, _) in enumerate(places[:num_old])}
    at_new = {path: at for at, (path, _) in enumerate(places[num_old:], num_old)}
    truth = {(at_old[path], at_new[path]) for path in at_old.keys() & at_new.keys()}
    vanished = [at_old[path] for path in at_old.keys() - new.keys()]
    appeared = [at_new[path] for path in at_new.keys() - old.keys()]
    unknown = set(itertools.product(vanished, appeared))
    return Pages(name, [release[path] for path, release in places], truth, unknown)


def read_archive(archive: Path) -> dict[str, str]:
    """Return the texts of the pages in a source distribution by path."""
    texts = {}
    with tarfile.open(archive) as files:
        for member in files:
            page = _PAGE.fullmatch(member.name)
            if page is not None and member.isfile():
                texts[page[1]] = files.extractfile(member).read().decode("utf-8", "replace")
    return texts


def measure(folder: Path) -> dict[str, Any]:
    """Run every tool on every package."""
    data = [load(folder, name) for name in RELEASES]
    sweep = {pages.name: sweep_units(pages) for pages in data}
    chosen = best_units({name: own["f1"] for name, own in sweep.items()})
    recipes = [best_recipe(chosen, MEASURES), best_recipe(chosen, ("jaccard",))]
    rows = [
        run(pages, tool, find)
        for pages in data
        for tool, find in tools(*recipes)
        if is_installed(tool.split(",")[0].split(" ")[0])
    ]
    if is_installed("sklearn"):
        rows += by_cosine(data)
    return {
        "machine": machine("neardup", "numpy"),
        "peers": versions({"datasketch": "datasketch", "scikit-learn": "sklearn"}),
        "data": [
            {
                "name": pages.name,
                "releases": RELEASES[pages.name],
                "pages": len(pages.texts),
                "edited": len(pages.truth),
                "at_default": sweep[pages.name]["at_default"],
            }
            for pages in data
        ],
        "chosen_on": CHOSEN_ON,
        "chosen": recipes,
        "sweep": chosen,
        "rows": rows,
    }


def run(pages: Pages, tool: str, find: Callable[[Pages], tuple[Pairs, str]]) -> dict[str, Any]:
    """Run a tool on the pages of a package, and score it."""
    began, cpu = time.perf_counter(), time.process_time()
    found, note = find(pages)
    row = {
        "data": pages.name,
        "tool": tool,
        "note": note,
        "seconds": round(time.perf_counter() - began, 2),
        "core_seconds": round(time.process_time() - cpu, 2),
        **score(found - pages.unknown, pages.truth),
    }
    sys.stdout.write(f"{row}\n")
    return row


def sweep_units(pages: Pages) -> dict[str, Any]:
    """Return F1 at every threshold for every unit and size, and the edited pages that the defaults can find."""
    f1 = {}
    at_default = 0
    for measure, (unit, size) in itertools.product(MEASURES, UNITS):
        pairs = neardup.find_pairs(
            pages.texts, measure=measure, unit=unit, size=size, threshold=0.1, method="exact"
        ).pairs
        values, is_same = judged(
            pages,
            pairs.column("doc_a").to_pylist(),
            pairs.column("doc_b").to_pylist(),
            pairs.column("similarity").to_numpy(),
        )
        f1[measure, unit, size] = f1_at(values, is_same, len(pages.truth), THRESHOLDS)
        if (measure, unit, size) == ("jaccard", "word", 5):
            at_default = int((values[is_same] >= 0.8).sum())
    return {"f1": f1, "at_default": at_default}


def judged(
    pages: Pages, first: list[int], second: list[int], values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of the pairs whose truth is known, and whether they are the same page."""
    pairs = [(min(pair), max(pair)) for pair in zip(first, second, strict=True)]
    is_known = np.array([pair not in pages.unknown for pair in pairs], bool)
    is_same = np.array([pair in pages.truth for pair in pairs], bool)
    return values[is_known], is_same[is_known]


def f1_at(
    values: np.ndarray, is_same: np.ndarray, num_same: int, thresholds: tuple[float, ...]
) -> list[float]:
    """Return F1 of the pairs with at least each threshold."""
    own = []
    for threshold in thresholds:
        is_found = values >= threshold
        own.append(2 * int(is_same[is_found].sum()) / (int(is_found.sum()) + num_same))
    return own


def best_units(sweep: dict[str, dict[Any, list[float]]]) -> list[dict[str, Any]]:
    """For every measure, unit and size: the threshold with the best mean F1 on one half, and F1 on all there."""
    rows = []
    for settings in next(iter(sweep.values())):
        means = np.mean([sweep[name][settings] for name in CHOSEN_ON], axis=0)
        at = int(np.argmax(means))
        f1 = {name: round(own[settings][at], 4) for name, own in sweep.items()}
        measure, unit, size = settings
        rows.append(
            {"measure": measure, "unit": unit, "size": size, "threshold": THRESHOLDS[at], "f1": f1}
        )
    return rows


def best_recipe(chosen: list[dict[str, Any]], measures: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of some measures that are best on the half they are chosen on."""
    rows = [row for row in chosen if row["measure"] in measures]
    best = max(rows, key=lambda row: np.mean([row["f1"][name] for name in CHOSEN_ON]))
    return {key: value for key, value in best.items() if key != "f1"}


def tools(
    recipe: dict[str, Any], by_jaccard: dict[str, Any]
) -> Iterator[tuple[str, Callable[[Pages], tuple[Pairs, str]]]]:
    """Every tool and how it is used; MinHash of datasketch knows Jaccard only."""
    defaults = {"measure": "jaccard", "unit": "word", "size": 5, "threshold": 0.8}
    for settings, name in ((defaults, "defaults"), (by_jaccard, "chosen"), (recipe, "chosen")):
        yield (
            f"neardup pairs, {described(settings)} ({name})",
            lambda pages, settings=settings: (listed(pages, settings), ""),
        )
    yield "neardup pairs, tune", tuned
    for settings, name in ((defaults, "defaults of neardup"), (by_jaccard, "chosen")):
        yield (
            f"datasketch, MinHash LSH, {described(settings)} ({name})",
            lambda pages, settings=settings: (by_datasketch(pages, settings), "candidates"),
        )


def described(settings: dict[str, Any]) -> str:
    """Return measure, unit, size and threshold in words."""
    return "{measure}, {unit} {size}, {threshold:g}".format(**settings)


def listed(pages: Pages, settings: dict[str, Any]) -> Pairs:
    """Find pairs with neardup."""
    pairs = neardup.find_pairs(pages.texts, **settings).pairs
    return as_pairs(*(pairs.column(f"doc_{side}").to_pylist() for side in "ab"))


def tuned(pages: Pages) -> tuple[Pairs, str]:
    """Use what tune suggests; without a valley, nothing is found."""
    found = neardup.tune(pages.texts)
    if found.threshold is None:
        return set(), "no valley"
    note = f"{found.unit} {found.size}, {found.threshold:g}, {found.certainty:.0%} sure"
    return listed(pages, found.settings), note


def by_datasketch(pages: Pages, settings: dict[str, Any]) -> Pairs:
    """Insert every page into an LSH index, and query it; nothing is verified."""
    from datasketch import MinHash, MinHashLSH

    size = settings["size"]
    index = MinHashLSH(threshold=settings["threshold"], num_perm=128)
    signatures = []
    for at, text in enumerate(pages.texts):
        parts = re.findall(r"\w+", text.lower()) if settings["unit"] == "word" else text.lower()
        shingles = {
            "\x1f".join(parts[start : start + size]).encode()
            for start in range(max(len(parts) - size + 1, 1))
        }
        signature = MinHash(num_perm=128)
        signature.update_batch(shingles)
        index.insert(at, signature)
        signatures.append(signature)
    return {
        (min(at, other), max(at, other))
        for at, signature in enumerate(signatures)
        for other in index.query(signature)
        if other != at
    }


def by_cosine(data: list[Pages]) -> Iterator[dict[str, Any]]:
    """Compare all pairs by TF-IDF and cosine, at the cut-off with the best mean F1 on one half."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    found = {}
    for pages in data:
        matrix = TfidfVectorizer().fit_transform(pages.texts)
        cosines = np.triu((matrix @ matrix.T).toarray(), 1)
        own, other = np.nonzero(cosines >= COSINES[0])
        found[pages.name] = judged(pages, own.tolist(), other.tolist(), cosines[own, other])
    f1 = {pages.name: f1_at(*found[pages.name], len(pages.truth), COSINES) for pages in data}
    cut = int(np.argmax(np.mean([f1[name] for name in CHOSEN_ON], axis=0)))
    for pages in data:
        values, is_same = found[pages.name]
        is_found = values >= COSINES[cut]
        right = int(is_same[is_found].sum())
        yield {
            "data": pages.name,
            "tool": f"scikit-learn, TF-IDF and cosine of every pair, {COSINES[cut]:g} (chosen)",
            "note": "",
            "precision": round(right / max(int(is_found.sum()), 1), 4),
            "recall": round(right / len(pages.truth), 4),
            "f1": round(f1[pages.name][cut], 4),
        }


def section(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the page for the results of this part."""
    names = [own["name"] for own in measured["data"]]
    lines = [
        "## Edited pages: documentation of two releases",
        "",
        *_ABOUT,
        "",
        "| package | releases | pages compared | edited pages | of these, >= 0.8 with words, size 5 |",
        "|---|---|--:|--:|--:|",
    ]
    lines += [
        f"| {own['name']} | {' and '.join(own['releases'])} | {own['pages']:,} | {own['edited']:,} "
        f"| {own['at_default']:,} |"
        for own in measured["data"]
    ]
    lines += [
        "",
        "**Measure, unit and size.** For each of them, the threshold with the best mean F1 on",
        f"{' and '.join(measured['chosen_on'])}, and F1 there on each package. Only these two",
        "decide the threshold. That containment is tried, and that pages which may have moved are counted",
        "neither way, was decided after a first look at all five:",
        "",
        f"| measure, unit and size | threshold | {' | '.join(names)} |",
        f"|---|--:|{'--:|' * len(names)}",
    ]
    for row in measured["sweep"]:
        cells = " | ".join(f"{row['f1'][name]:.4f}" for name in names)
        settings = f"{row['measure']}, {row['unit']} {row['size']}"
        lines.append(f"| {settings} | {row['threshold']:g} | {cells} |")
    lines += [
        "",
        "**Defaults, tune and other tools.** F1 of pairs; precision and recall in parentheses. What is",
        f"called chosen was chosen on {' and '.join(measured['chosen_on'])}:",
        "",
        f"| tool | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    by_tool: dict[str, dict[str, Any]] = {}
    for row in measured["rows"]:
        by_tool.setdefault(row["tool"], {})[row["data"]] = row
    for tool, own in by_tool.items():
        lines.append(f"| {tool} | {' | '.join(cell(own.get(name)) for name in names)} |")
    suggested = ", ".join(
        f"{row['data']}: {row['note']}"
        for row in measured["rows"]
        if row["tool"].endswith(", tune")
    )
    peers = ", ".join(f"{name} {version}" for name, version in measured["peers"].items())
    return [
        *lines,
        "",
        f"`tune` suggested, without labels: {suggested}. Without a valley, it would count as finding nothing.",
        "",
        *_FINDINGS,
        "",
        f"Versions: {peers}.",
        "",
    ]
