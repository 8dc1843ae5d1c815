"""Part of docs/on-real-data.md: texts that contain passages of other texts (pan13-train).

Whether a pair is labelled as copied is known for pairs of a suspicious text and a source only. What
is found beyond them is counted, not judged: suspicious texts share sources.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import neardup
from harness import machine

# The recipe of the README, that for whole texts, and the defaults.
RECIPE = {"measure": "containment", "size": 3, "threshold": 0.1}
SETTINGS = {
    "containment, size 3, 0.1 (README)": RECIPE,
    "containment, size 3, 0.05": RECIPE | {"threshold": 0.05},
    "jaccard, word 5, 0.3": {"threshold": 0.3},
    "jaccard, word 5, 0.8 (defaults)": {},
}
# As the data name them, and as the page does; the last ones are no copies.
KINDS = {
    "no-obfuscation": "verbatim",
    "random-obfuscation": "words changed at random",
    "translation-obfuscation": "translated there and back",
    "summary-obfuscation": "summarised",
    "no-plagiarism": "not copied",
}
_ABOUT = (
    "The training data of the PAN 2013 task on text alignment: essay-like texts, and the passages that",
    "they were given from other texts, by kind. No package has them (`--corpora` names their folder).",
    "Found means that the pair of texts is listed, of all pairs of {texts:,} texts. Nothing is chosen here.",
)


def is_complete(corpora: Path) -> bool:
    """Whether the folder has the data."""
    return all((corpora / f"pan13-train-{name}.parquet").exists() for name in ("texts", "cases"))


def measure(corpora: Path) -> dict[str, Any]:
    """List the pairs with every setting, and count those of each kind."""
    texts = pq.read_table(corpora / "pan13-train-texts.parquet")
    documents = dict(
        zip(texts.column("id").to_pylist(), texts.column("text").to_pylist(), strict=True)
    )
    labelled: dict[str, set[frozenset[str]]] = {kind: set() for kind in KINDS}
    for row in pq.read_table(corpora / "pan13-train-cases.parquet").to_pylist():
        labelled[row["kind"]].add(frozenset((row["doc_a"], row["doc_b"])))
    rows = []
    for name, settings in SETTINGS.items():
        began = time.process_time()
        pairs = neardup.find_pairs(documents, **settings).pairs
        sides = (pairs.column(f"doc_{side}").to_pylist() for side in "ab")
        found = {frozenset(pair) for pair in zip(*sides, strict=True)}
        rows.append(
            {
                "settings": name,
                "found": {kind: len(found & own) for kind, own in labelled.items()},
                "without a label": len(found.difference(*labelled.values())),
                "core_seconds": round(time.process_time() - began, 1),
            }
        )
    return {
        "machine": machine("neardup", "numpy"),
        "texts": len(documents),
        "labelled": {kind: len(own) for kind, own in labelled.items()},
        "rows": rows,
    }


def section(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the page."""
    labelled = measured["labelled"]
    heads = " | ".join(f"{name} ({labelled[kind]:,})" for kind, name in KINDS.items())
    lines = [
        "## Copied passages: PAN 2013",
        "",
        *(line.format(texts=measured["texts"]) for line in _ABOUT),
        "",
        f"| neardup pairs | {heads} | pairs without a label |",
        f"|---|{'--:|' * (len(KINDS) + 1)}",
    ]
    for row in measured["rows"]:
        shares = " | ".join(f"{row['found'][kind] / labelled[kind]:.1%}" for kind in KINDS)
        lines.append(f"| {row['settings']} | {shares} | {row['without a label']:,} |")
    return [
        *lines,
        "",
        "Whole texts are hardly similar where one passage was copied, so containment is what to ask for. A lower",
        "threshold lists more rewritten passages, and some pairs that share nothing copied. `--passages --edits`",
        "shows what the texts of each listed pair share ([decision 46](decisions/0046-alignment-with-edits.md)).",
        "",
    ]
