"""The passages that two texts share, with where they stand in both."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.align.edited_spans import find_spans
from neardup.align.exact_runs import find_runs
from neardup.align.words_in_text import I64, WordsInText
from neardup.config import Config

# Fewer consecutive words are shared by chance.
MIN_WORDS: Final = 8
# The least words that agree in a span with edits (docs/decisions/0046).
MIN_WORDS_WITH_EDITS: Final = 18


class _Places(NamedTuple):
    """Where the words of both texts stand that agree in a passage."""

    a: I64
    b: I64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Passage:
    """A passage that two texts share.

    Attributes:
        start_a: first character of the passage in text a, in code points.
        end_a: the character behind it.
        start_byte_a: the same as `start_a`, in bytes of UTF-8.
        end_byte_a: the same as `end_a`, in bytes of UTF-8.
        line_a: the line it begins in, from 1.
        start_b: as `start_a`, in text b.
        end_b: as `end_a`, in text b.
        start_byte_b: as `start_byte_a`, in text b.
        end_byte_b: as `end_byte_a`, in text b.
        line_b: as `line_a`, in text b.
        words: how many words agree, each with one of the other text.
        similarity: the words of both sides that agree divided by all words of both sides; 1 without
            edits.
    """

    start_a: int
    end_a: int
    start_byte_a: int
    end_byte_a: int
    line_a: int
    start_b: int
    end_b: int
    start_byte_b: int
    end_byte_b: int
    line_b: int
    words: int
    similarity: float
    places: dataclasses.InitVar[_Places]

    def __post_init__(self, places: _Places) -> None:
        # No field, because the words of a long passage do not belong in its repr or its JSON.
        object.__setattr__(self, "_places", places)

    @property
    def matches(self) -> list[tuple[int, int, int, int]]:
        """The words that agree, in the order of text a: start and end in a, start and end in b, in code points."""
        places: _Places = self.__dict__["_places"]
        return list(map(tuple, np.hstack([places.a, places.b]).tolist()))


@dataclasses.dataclass(frozen=True, slots=True)
class SharedPassages:
    """The passages of two texts, in the order of text a, as columns.

    Attributes:
        columns: the fields of `Passage`, by name.
        share_a: the share of the words of a that lie in a passage.
        share_b: the same of b.
    """

    columns: dict[str, npt.NDArray[Any]]
    share_a: float
    share_b: float
    _words: tuple[WordsInText, WordsInText]
    _matched: Sequence[tuple[Any, Any]]

    def passages(self) -> list[Passage]:
        """Return the passages as objects."""
        a, b = self._words
        rows = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        found = []
        for row, (matched_a, matched_b) in zip(rows, self._matched, strict=True):
            places = _Places(a.characters[matched_a], b.characters[matched_b])
            found.append(Passage(**dict(zip(self.columns, row, strict=True)), places=places))
        return found

    def as_structs(self) -> pa.StructArray:
        """Return the passages as rows of `schema.PASSAGE`."""
        arrays = [pa.array(self.columns[field.name], field.type) for field in schema.PASSAGE]
        return pa.StructArray.from_arrays(arrays, fields=list(schema.PASSAGE))


def least_words(config: Config) -> int:
    """Return the least number of words of a passage: the setting, or the default of this kind of passage."""
    if config.min_words is not None:
        return config.min_words
    return MIN_WORDS_WITH_EDITS if config.edits else MIN_WORDS


def share_passages(a: WordsInText, b: WordsInText, config: Config) -> SharedPassages:
    """Find the passages that two texts share, with or without edits, as the settings say."""
    min_words = least_words(config)
    matched: Sequence[tuple[Any, Any]]
    if config.edits:
        found = find_spans(a, b, min_words)
        spans = found.spans
        counts = np.diff(found.ends)
        similarity = 2 * counts / (spans[:, 1] - spans[:, 0] + spans[:, 3] - spans[:, 2])
        pieces = np.split(found.matches, found.ends[1:-1]) if counts.size else []
        matched = [(piece[:, 0], piece[:, 1]) for piece in pieces]
    else:
        runs = find_runs(a, b, min_words)
        counts = runs[:, 2]
        stops_a, stops_b = runs[:, 0] + counts, runs[:, 1] + counts
        spans = np.stack([runs[:, 0], stops_a, runs[:, 1], stops_b], axis=1)
        similarity = np.ones(counts.size)
        matched = [
            (slice(start_a, stop_a), slice(start_b, stop_b))
            for start_a, stop_a, start_b, stop_b in spans.tolist()
        ]
    columns = _locate(a, "a", spans[:, :2]) | _locate(b, "b", spans[:, 2:])
    columns |= {"words": counts, "similarity": similarity}
    return SharedPassages(
        columns=columns,
        share_a=_share(spans[:, :2], a.hashes.size),
        share_b=_share(spans[:, 2:], b.hashes.size),
        _words=(a, b),
        _matched=matched,
    )


def _locate(text: WordsInText, side: str, spans: I64) -> dict[str, I64]:
    """Return where spans of words stand in a text."""
    firsts = spans[:, 0]
    lasts = spans[:, 1] - 1
    return {
        f"start_{side}": text.characters[firsts, 0],
        f"end_{side}": text.characters[lasts, 1],
        f"start_byte_{side}": text.bounds[firsts, 0],
        f"end_byte_{side}": text.bounds[lasts, 1],
        f"line_{side}": text.lines_of(firsts),
    }


def _share(spans: I64, num_words: int) -> float:
    """Return the share of words that lie in a span."""
    if not num_words:
        return 0.0
    changes = np.zeros(num_words + 1, np.int64)
    np.add.at(changes, spans[:, 0], 1)
    np.add.at(changes, spans[:, 1], -1)
    num_covered = int(np.count_nonzero(np.cumsum(changes)))
    return num_covered / num_words
