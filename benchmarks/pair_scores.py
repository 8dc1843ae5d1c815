"""Shared by the parts of docs/on-real-data.md: pairs of positions, and how many of them are right."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import Any

Pairs = set[tuple[int, int]]


def as_pairs(first: Any, second: Any) -> Pairs:
    """Return pairs of positions, the smaller one first."""
    return {(min(a, b), max(a, b)) for a, b in zip(first, second, strict=True)}


def score(found: Pairs, truth: Pairs) -> dict[str, Any]:
    """Return precision, recall and F1 of pairs."""
    right = len(found & truth)
    precision = right / len(found) if found else 1.0
    recall = right / len(truth)
    f1 = 2 * right / (len(found) + len(truth))
    return {"precision": round(precision, 4), "recall": round(recall, 4), "f1": round(f1, 4)}


def cell(row: dict[str, Any] | None) -> str:
    """Return F1, with precision and recall in parentheses."""
    if row is None:
        return "not run"
    return f"{row['f1']:.4f} ({row['precision']:.3f}, {row['recall']:.3f})"


def is_installed(module: str) -> bool:
    """Whether a module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def versions(packages: dict[str, str]) -> dict[str, str]:
    """Return the versions of installed packages, given by name and module."""
    return {
        name: importlib.metadata.version(name)
        for name, module in packages.items()
        if is_installed(module)
    }
