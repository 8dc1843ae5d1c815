"""The checkpoints of a work folder: the manifest of its run, and a journal with one line per finished file.

A torn or modified entry counts as missing, and its file is written again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, TypedDict

import msgspec


class _Entry(msgspec.Struct):
    """A finished file; `check` is a digest of the other values, to detect torn or changed lines."""

    name: str
    checksum: str
    facts: dict[str, Any]
    check: str


class _Input(TypedDict):
    path: str


class _Manifest(msgspec.Struct):
    version: str
    command: str
    settings: dict[str, Any]
    inputs: list[_Input]


def journal_line(entry: dict[str, Any]) -> str:
    """Return the journal line of a finished file: its name, checksum and facts."""
    return (
        json.dumps(entry | {"check": _check(entry["name"], entry["checksum"], entry["facts"])})
        + "\n"
    )


def read_journal(path: Path) -> dict[str, dict[str, Any]]:
    """Return name, checksum and facts of every finished file, by name."""
    finished: dict[str, dict[str, Any]] = {}
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for line in lines:
        # The last line of a killed run may be torn.
        with contextlib.suppress(ValueError, RecursionError):
            entry = msgspec.json.decode(line, type=_Entry)
            if entry.check == _check(entry.name, entry.checksum, entry.facts):
                finished[entry.name] = {
                    "name": entry.name,
                    "checksum": entry.checksum,
                    "facts": entry.facts,
                }
    return finished


def _check(name: str, checksum: str, facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([name, checksum, facts], sort_keys=True).encode()).hexdigest()[
        :16
    ]


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of a run, None if there is none."""
    try:
        manifest: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        msgspec.convert(manifest, _Manifest)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return manifest
