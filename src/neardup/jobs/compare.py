"""Single texts and sets: their shingles, their signatures, their similarity."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Unpack

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
from neardup.kernels.sketch import NO_SHINGLES
from neardup.measures.jaccard import set_signatures, text_sets, text_signatures
from neardup.theory.plan import plan_for

if TYPE_CHECKING:
    from neardup.align.shared_passages import Passage, SharedPassages
    from neardup.jobs.explain import ReadTexts


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
        passages: the passages that the texts share, in the order of a; None without the setting
            `passages`.
        share_a: the share of a's words that lie in a passage.
        share_b: the same of b.
    """

    jaccard: float
    estimate: float
    containment_a: float
    containment_b: float
    chance: float
    shingles_a: int
    shingles_b: int
    shared: int
    passages: tuple[Passage, ...] | None = None
    share_a: float | None = None
    share_b: float | None = None

    def _repr_html_(self) -> str:
        """Show the comparison in a notebook."""
        rows = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name == "passages" and value is not None:
                value = len(value)
            if value is not None:
                rows.append((field.name, value))
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
    texts = usable_texts([a, b], chosen)
    return compare_contents(texts, chosen, texts.to_pylist() if chosen.passages else None)


def compare_contents(
    contents: pa.Array, config: Config, texts: Sequence[str] | None = None
) -> Comparison:
    """Compare two documents as a run compares them: by their texts, or by their shingles without the common ones.

    texts: with them, the passages that they share are listed.
    """
    sets = text_sets(contents, config)
    first = sets.shingles[: sets.ends[1]]
    second = sets.shingles[sets.ends[1] :]
    signatures = set_signatures(sets, config)
    shared = np.intersect1d(first, second, assume_unique=True).size
    union = first.size + second.size - shared
    similarity = shared / union if union else 0.0
    largest = shared / max(1, min(first.size, second.size))
    found = None if texts is None else _shared_passages(texts, config)
    estimate = 0.0
    if first.size and second.size:
        estimate = float((signatures[0] == signatures[1]).mean())
    return Comparison(
        jaccard=similarity,
        estimate=estimate,
        containment_a=shared / first.size if first.size else 0.0,
        containment_b=shared / second.size if second.size else 0.0,
        chance=plan_for(config).chance(largest if config.asks_containment else similarity),
        shingles_a=first.size,
        shingles_b=second.size,
        shared=shared,
        passages=None if found is None else tuple(found.passages()),
        share_a=None if found is None else found.share_a,
        share_b=None if found is None else found.share_b,
    )


def compare_documents(documents: ReadTexts, config: Config) -> Comparison:
    """Compare two documents of a run as it did, and list the passages that their texts share."""
    chosen = Config.of(config, html=False, engine="local", edits=False, min_words=None)
    is_text = config.items_column is None
    return compare_contents(documents.contents, chosen, documents.texts if is_text else None)


def passages(
    a: str, b: str, *, config: Config | None = None, **settings: Unpack[Settings]
) -> list[Passage]:
    """Return the passages that two texts share, in the order of a.

    By default these are all runs of at least 8 words that both texts have, in any order: places in a
    that lie in no longer one, each with the leftmost place in b. With edits=True they are stretches
    copied with edits, in which at least 18 words agree. `min_words` changes both numbers. Words are
    compared folded, as in shingles.

    Args:
        a: a text.
        b: another one.
        config: settings to start from.
        settings: fields of Config by name: `edits` and `min_words`, and how words are folded.

    >>> copied = "The ferry to the island leaves at nine."
    >>> [found] = passages(f"We read: {copied}", f"{copied} It is never late.", min_words=5)
    >>> found.words, found.start_a, found.end_a
    (8, 9, 47)
    """
    settings.setdefault("passages", True)
    chosen = for_texts(Config.of(config, **settings))
    texts = usable_texts([a, b], chosen).to_pylist()
    return _shared_passages(texts, chosen).passages()


def _shared_passages(texts: Sequence[str], config: Config) -> SharedPassages:
    # Most comparisons, and every run, do without these kernels.
    from neardup.align.shared_passages import share_passages
    from neardup.align.words_in_text import words_of

    a, b = (words_of(text, config) for text in texts)
    return share_passages(a, b, config)


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
        items: sets to sign instead of texts, as for `deduplicate`; with measure="weighted", items with weights.
        config: settings to start from.
        settings: fields of Config by name.

    >>> signatures(["the cat sat on the mat", "the dog"]).shape
    (2, 128)
    >>> tea, milk, both = signatures(items=[["tea"], ["milk"], ["tea", "milk"]])
    >>> bool((np.minimum(tea, milk) == both).all())
    True
    """
    asked = Config.of(config, **settings)
    if asked.measure == "weighted":
        return _weighted_signatures(texts, items, asked)
    source, chosen = items_or_source(texts, items, for_texts(asked))
    documents = _all_usable(in_memory.read(source, Config.of(chosen, strict=False, keep="first")))
    signed = np.empty((documents.num_rows, chosen.num_perm), np.uint32)
    done = 0
    for chunk in documents.column("text").chunks:
        text_signatures(chunk, chosen, signed[done : done + len(chunk)])
        done += len(chunk)
    return signed


def _weighted_signatures(texts: Any, items: Any, config: Config) -> npt.NDArray[np.uint32]:
    """Return the signature of every set of items with weights."""
    from neardup.measures import weighted  # most signatures are of texts

    source, chosen = items_or_source(texts, items, config)
    documents = _all_usable(in_memory.read(source, Config.of(chosen, strict=False, keep="first")))
    contents = schema.one_array(documents.column("text"))
    signed, _ = weighted.sign(weighted.items(contents, chosen), plan_for(chosen), chosen)
    return signed


def estimate(
    a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]
) -> float | npt.NDArray[np.float64]:
    """Return the Jaccard similarity estimated from two signatures: the share of their slots that agree.

    Its standard error is at most sqrt(J (1 - J) / num_perm). A signature without shingles is similar to none.

    Args:
        a: a signature, as a row of `signatures`; or several, one per row.
        b: another one, of the same settings; or as many.

    >>> tea, both = signatures(items=[["tea", "milk"], ["tea", "milk", "mint"]])
    >>> 0.5 < estimate(tea, both) < 0.85
    True
    """
    for name, slots in (("a", a), ("b", b)):
        if (
            not isinstance(slots, np.ndarray)
            or slots.dtype != np.uint32
            or slots.ndim not in (1, 2)
        ):
            raise DataError(
                f"`{name}` must be a signature of uint32, or rows of them, got {_described(slots)}",
                hint="neardup.signatures(texts) makes them; neardup.compare(a, b) takes two texts",
            )
    if a.shape[-1] != b.shape[-1] or (a.ndim == b.ndim and a.shape != b.shape) or not a.shape[-1]:
        raise DataError(
            f"signatures of the same settings have the same number of slots, got {a.shape} and {b.shape}",
            hint="make both with the same num_perm, one row each, or as many",
        )
    are_empty = (a == NO_SHINGLES).all(axis=-1) | (b == NO_SHINGLES).all(axis=-1)
    found = np.where(are_empty, 0.0, (a == b).mean(axis=-1))
    return found if found.ndim else float(found)


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__


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
            hint="list their pairs instead, or pass measure='jaccard'",
        )
    check_counts_all(config, "two texts are no corpus")
    check_no_text_out(config, "texts are compared as they are")
    return config


def check_no_text_out(config: Config, reason: str) -> None:
    """Raise if the settings ask for texts, where none are written."""
    if config.text_out is not None:
        raise ConfigError(
            f"`text_out` does not apply here: {reason}",
            hint="leave `text_out` out; it applies to deduplicate and find_pairs",
        )


def check_not_long(config: Config) -> None:
    """Raise if rows are to be grouped to sets, which only lists of pairs do."""
    if config.long:
        raise ConfigError(
            "`long` is for lists of pairs of files",
            hint="call neardup.find_pairs, or store each set in a row",
        )


def check_counts_all(config: Config, reason: str) -> None:
    """Raise if the settings ignore common shingles, where these cannot be counted."""
    if config.weights is not None:
        raise ConfigError(
            f"`weights` {config.weights!r} needs all documents of a run: {reason}",
            hint="leave `weights` out; it applies to deduplicate and find_pairs",
        )
    if config.ignore_common is not None:
        raise ConfigError(
            f"`ignore_common` needs all documents of a run: {reason}",
            hint="leave `ignore_common` out; it applies to deduplicate and find_pairs",
        )


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
