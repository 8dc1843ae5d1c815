"""Single texts and sets: their shingles, their signatures, their similarity."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import html_view, schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES, asks_containment
from neardup.config.setting_types import Settings
from neardup.errors import ConfigError, DataError
from neardup.io.documents import in_memory
from neardup.jobs.source import items_or_source
from neardup.measures.jaccard import set_signatures, text_sets, text_signatures
from neardup.theory.plan import plan_for


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
        rows = list(dataclasses.asdict(self).items())
        return html_view.view(f"Jaccard similarity {self.jaccard:.4f}", html_view.facts(rows))

    def similarity(self, measure: str) -> float:
        """Return the similarity by "jaccard", or the larger share by "containment"."""
        if asks_containment(measure):
            return max(self.containment_a, self.containment_b)
        return self.jaccard


def compare(
    a: str, b: str, *, config: Config | None = None, **settings: Unpack[Settings]
) -> Comparison:
    """Compare two texts exactly, and by signatures and banding.

    Args:
        a: a text.
        b: another one.
        config: settings to start from.
        settings: fields of Config by name.

    >>> compare("to be or not to be", "to be or not to sleep", size=2).jaccard
    0.8
    """
    chosen = for_texts(Config.of(config, **settings))
    sets = text_sets(usable_texts([a, b], chosen), chosen)
    first = sets.shingles[: sets.ends[1]]
    second = sets.shingles[sets.ends[1] :]
    signatures = set_signatures(sets, chosen)
    shared = np.intersect1d(first, second, assume_unique=True).size
    union = first.size + second.size - shared
    similarity = shared / union if union else 0.0
    largest = shared / max(1, min(first.size, second.size))
    estimate = 0.0
    if first.size and second.size:
        estimate = float((signatures[0] == signatures[1]).mean())
    return Comparison(
        jaccard=similarity,
        estimate=estimate,
        containment_a=shared / first.size if first.size else 0.0,
        containment_b=shared / second.size if second.size else 0.0,
        chance=plan_for(chosen).chance(largest if chosen.asks_containment else similarity),
        shingles_a=first.size,
        shingles_b=second.size,
        shared=shared,
    )


def shingles(
    text: str, *, config: Config | None = None, **settings: Unpack[Settings]
) -> npt.NDArray[np.uint64]:
    """Return the shingle hashes of a text, sorted and distinct.

    Args:
        text: a text.
        config: settings to start from.
        settings: fields of Config by name.

    >>> len(shingles("a rose is a rose is a rose", size=3))
    3
    """
    chosen = for_texts(Config.of(config, **settings))
    return text_sets(usable_texts([text], chosen), chosen).shingles


def signatures(
    texts: Any = None,
    *,
    items: Any = None,
    config: Config | None = None,
    **settings: Unpack[Settings],
) -> npt.NDArray[np.uint32]:
    """Return the signature of every text, or of every set of items, one row each, on one thread.

    A text without shingles, and an empty set, has 2**32 - 1 in every slot.

    Args:
        texts: documents in memory, as for `deduplicate`; one that cannot be used is an error.
        items: sets to sign instead of texts, as for `deduplicate`.
        config: settings to start from.
        settings: fields of Config by name.

    >>> signatures(["the cat sat on the mat", "the dog"]).shape
    (2, 128)
    >>> tea, milk, both = signatures(items=[["tea"], ["milk"], ["tea", "milk"]])
    >>> bool((np.minimum(tea, milk) == both).all())
    True
    """
    source, chosen = items_or_source(texts, items, for_texts(Config.of(config, **settings)))
    documents = _all_usable(in_memory.read(source, Config.of(chosen, strict=False, keep="first")))
    signed = np.empty((documents.num_rows, chosen.num_perm), np.uint32)
    done = 0
    for chunk in documents.column("text").chunks:
        text_signatures(chunk, chosen, signed[done : done + len(chunk)])
        done += len(chunk)
    return signed


def jaccard(a: Collection[Any] | npt.NDArray[Any], b: Collection[Any] | npt.NDArray[Any]) -> float:
    """Return the Jaccard similarity of two sets: shared items divided by all items; 0 if both are empty.

    Args:
        a: a set, list or array of hashable items.
        b: another one.

    >>> jaccard({"milk", "bread", "tea"}, {"milk", "bread", "coffee"})
    0.5
    """
    for name, items in (("a", a), ("b", b)):
        if isinstance(items, (str, bytes)) or not isinstance(items, (Collection, np.ndarray)):
            raise DataError(
                f"`{name}` must be a set or another collection of items, got {type(items).__name__}",
                hint="neardup.compare(a, b) takes two texts",
            )
    try:
        first, second = (
            set(items.tolist() if isinstance(items, np.ndarray) else items) for items in (a, b)
        )
    except TypeError as error:
        raise DataError(
            f"an item of a set must be hashable: {error}", hint="use tuples instead of lists"
        ) from error
    union = len(first | second)
    return len(first & second) / union if union else 0.0


def for_texts(config: Config) -> Config:
    """Return settings that compare texts; raise for other measures."""
    if config.measure not in SET_MEASURES:
        raise ConfigError(
            f"texts are compared by 'jaccard' or 'containment', got `measure` {config.measure!r}",
            hint="neardup.find_pairs(vectors, measure='cosine') compares vectors",
        )
    return config


def usable_texts(values: list[Any], config: Config) -> pa.Array:
    """Single texts as a string array of one chunk; settings about columns do not apply."""
    alone = Config.of(
        config, strict=False, text_column=None, id_column=None, group_column=None, keep="first"
    )
    return schema.one_array(_all_usable(in_memory.read(values, alone)).column("text"))


def _all_usable(read: in_memory.InMemorySource) -> pa.Table:
    for rejected in read.rejected.slice(0, 1).to_pylist():
        raise DataError(
            f"text number {rejected['row']} cannot be used: {rejected['reason']}",
            hint="pass texts only",
        )
    return read.documents
