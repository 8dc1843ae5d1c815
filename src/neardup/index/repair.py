"""Repair an index that lost segments: give them up, sketch again what has a text, and list the ids of what is lost."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neardup.errors import DataError
from neardup.index.folder_view import FolderChange
from neardup.index.segment import Segment
from neardup.index.sketches import Layout, Sketches, from_bytes
from neardup.index.sqlite import Tables, checked_segment, chunks, unflushed_row
from neardup.measures.base import I64

# Texts that are sketched at once.
_TEXTS_AT_ONCE = 1024
# Characters of them; a text may be larger.
_CHARACTERS_AT_ONCE = 1 << 25


@dataclasses.dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did: segments that were given up, each with the reason; documents stored again from their texts.

    lost: the ids of the documents that are no longer in the index.
    """

    dropped: list[str]
    lost: list[str]
    restored: int


class RepairPlan(NamedTuple):
    """What must go: names of segments, each with the reason, and numbers of unflushed rows; lost: whose sketches do."""

    dropped: list[tuple[Any, str]]
    dropped_unflushed: list[int]
    lost: I64

    @property
    def is_empty(self) -> bool:
        """Whether nothing must go."""
        return not self.dropped and not self.dropped_unflushed and not self.lost.size


def find_lost(tables: Tables, segments: Path, layout: Layout) -> RepairPlan:
    """Find the segments and unflushed rows that are missing or damaged, and the documents that only they had."""
    dropped: list[tuple[Any, str]] = []
    dropped_unflushed: list[int] = []
    sound: list[I64] = [np.empty(0, np.int64)]
    for row in tables.connection.execute(
        "SELECT name, documents, digest FROM runs ORDER BY place"
    ).fetchall():
        try:
            sound.append(_sound_numbers(row, segments, layout))
        except FileNotFoundError:
            dropped.append((row[0], f"the segment {row[0]} is missing"))
        except (DataError, OSError) as error:
            dropped.append((row[0], getattr(error, "message", str(error))))
    for row in tables.connection.execute("SELECT number, sketch, digest FROM fresh"):
        try:
            from_bytes(row[:1], [unflushed_row(row)], layout)
            sound.append(np.array(row[:1], np.int64))
        except DataError:
            dropped_unflushed.append(row[0])
    numbers = [number for (number,) in tables.connection.execute("SELECT number FROM documents")]
    lost = np.setdiff1d(np.array(numbers, np.int64), np.concatenate(sound))
    return RepairPlan(dropped, dropped_unflushed, lost)


def _sound_numbers(row: tuple[Any, ...], segments: Path, layout: Layout) -> I64:
    """Return the numbers of the documents of a segment; raise if anything in it is damaged."""
    stored = checked_segment(row)
    segment = Segment(segments / stored.name, layout, digest=stored.digest, is_scanned=True)
    damage = segment.check()
    if damage is not None:
        raise DataError(damage)
    segment.check_items()
    numbers: I64 = segment.arrays["numbers"]
    return numbers


def apply_repair(
    change: FolderChange, plan: RepairPlan, sketch_again: Callable[[Sequence[str]], Sketches] | None
) -> Repair:
    """Give up what is damaged; sketch_again: how to store documents again whose text is stored, if texts are."""
    change.drop_segments(name for name, _ in plan.dropped)
    change.drop_unflushed(plan.dropped_unflushed)
    lost: list[str] = []
    restored = 0
    for numbers in chunks(plan.lost.tolist(), _TEXTS_AT_ONCE):
        found: set[int] = set()
        if sketch_again is not None:
            for texts in _texts_of(change, numbers):
                change.put_sketches(list(texts), sketch_again(list(texts.values())))
                found.update(texts)
        restored += len(found)
        documents = change.tables.fetch(set(numbers) - found, -np.inf)
        lost += [document.doc_id for _, document in sorted(documents.items())]
        change.remove(documents.values())
    reasons = [reason for _, reason in plan.dropped]
    reasons += [
        f"the sketch of document number {number} is damaged" for number in plan.dropped_unflushed
    ]
    return Repair(reasons, lost, restored)


def _texts_of(change: FolderChange, numbers: Sequence[int]) -> Iterator[dict[int, str]]:
    """Iterate over the texts of the documents whose text can be read, by number; a bounded part at a time."""
    texts: dict[int, str] = {}
    num_characters = 0
    for number in numbers:
        with contextlib.suppress(DataError):
            texts[number] = change.tables.text_of(number)
            num_characters += len(texts[number])
        if num_characters >= _CHARACTERS_AT_ONCE:
            yield texts
            texts = {}
            num_characters = 0
    if texts:
        yield texts
