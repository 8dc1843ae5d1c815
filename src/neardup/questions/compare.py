"""The result types for two documents: a comparison and an explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from neardup import html_view
from neardup.config.checks import asks_containment


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """How similar two texts are.

    Attributes:
        jaccard: exact similarity of the two shingle sets.
        estimate: similarity estimated from their signatures.
        containment_a: the share of a's shingles that b contains.
        containment_b: the share of b's shingles that a contains.
        chance: the chance that two such documents share a bucket in a run with these settings.
        shingles_a: distinct shingles of a.
        shingles_b: distinct shingles of b.
        shared: distinct shingles that both contain.
    """

    jaccard: float
    estimate: float
    containment_a: float
    containment_b: float
    chance: float
    shingles_a: int
    shingles_b: int
    shared: int

    def _repr_html_(self) -> str:
        """Show the comparison in a notebook."""
        rows = [(field.name, getattr(self, field.name)) for field in dataclasses.fields(self)]
        return html_view.view(f"Jaccard similarity {self.jaccard:.4f}", html_view.facts(rows))

    def similarity(self, measure: str) -> float:
        """Return the similarity by "jaccard", or the larger share by "containment"."""
        return max(self.containment_a, self.containment_b) if asks_containment(measure) else self.jaccard


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why a document was removed, or which documents were removed in its favour.

    Attributes:
        doc_id: the document, with its file and row if known.
        kept_id: the document kept in its place, with its file and row; None for a kept document.
        similarity: how similar the two are.
        measure: what similarity means; by "containment" it is the share of the kept document.
        text: the text of the document; None for a kept one.
        kept_text: the text of the kept document.
        comparison: the comparison of the two texts.
        members: (doc_id, similarity) of the documents removed in favour of a kept one.
        reason: why a kept document was kept, "" for a removed one.
    """

    doc_id: Any
    file: str | None
    row: int | None
    kept_id: Any
    kept_file: str | None
    kept_row: int | None
    similarity: float | None
    measure: str
    text: str | None
    kept_text: str | None
    comparison: Comparison | None
    members: Sequence[tuple[Any, float]]
    reason: str = ""
