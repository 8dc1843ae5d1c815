"""Pairs of files as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from neardup.errors import ConfigError
from neardup.io.storage.workspace import check_output
from neardup.io.streams import is_remote
from neardup.report import Report
from neardup.version import VERSION

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RULE: Final = "near-duplicate"
# A row of these files is a line.
_LINE_ENDINGS: Final = (".jsonl", ".ndjson")


def check_sarif(target: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return the path to write; raise if it has another extension, or exists."""
    path = Path(target)
    if path.suffix.lower() not in (".sarif", ".json"):
        raise ConfigError(
            f"`sarif` must end in .sarif or .json, got {str(path)!r}",
            hint="code hosts expect .sarif",
        )
    if not path.parent.is_dir():
        raise ConfigError(
            f"the folder of `sarif` {path} does not exist", hint="create it, or choose another path"
        )
    check_output(path, overwrite=overwrite)
    return path


def write_sarif(report: Report, path: Path) -> None:
    """Write every pair of a run on files as a result, at the later of its two documents."""
    paths = {entry["file"]: entry["path"] for entry in report.inputs}
    document = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(report)},
                "results": list(_results(report, paths)),
            }
        ],
    }
    draft = path.with_name(f".{path.name}.neardup-draft")
    draft.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    draft.replace(path)


def _driver(report: Report) -> dict[str, Any]:
    about = f"Two documents have a similarity of at least {report.config.threshold:g}."
    rule = {"id": _RULE, "name": "NearDuplicate", "shortDescription": {"text": about}}
    return {"name": "neardup", "version": VERSION, "rules": [rule]}


def _results(report: Report, paths: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    names = ["doc_a", "doc_b", "similarity", "file_a", "row_a", "file_b", "row_b"]
    for batch in report.pairs.select(names).to_batches():
        for pair in batch.to_pylist():
            similarity = f"{pair['similarity']:.4f}"
            yield {
                "ruleId": _RULE,
                "level": "warning",
                "message": {
                    "text": f"{pair['doc_b']} has similarity {similarity} to {pair['doc_a']}."
                },
                "locations": [_location(paths[pair["file_b"]], pair["row_b"])],
                "relatedLocations": [
                    _location(paths[pair["file_a"]], pair["row_a"])
                    | {"message": {"text": pair["doc_a"]}}
                ],
            }


def _location(path: str, row: int) -> dict[str, Any]:
    """Return the location of a document: a path below the current folder, or a whole one."""
    line = row if path.lower().endswith(_LINE_ENDINGS) else 1
    if is_remote(path):
        uri = path
    else:
        here = Path.cwd().resolve().as_uri()
        uri = Path(path).resolve().as_uri().removeprefix(f"{here.rstrip('/')}/")
    location = {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    return {"physicalLocation": location}
