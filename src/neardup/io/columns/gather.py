"""Build Records from row values, for readers that do not produce Arrow columns."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import AUTO
from neardup.io.columns.contents import column_type, contents_of
from neardup.io.columns.html import readable_texts
from neardup.io.columns.oversize import reason_against_size
from neardup.io.columns.rejected_rows import NOT_UTF8, NOT_VALID
from neardup.io.columns.scores import sortable_values
from neardup.io.records import BATCH_ROWS, ITEM_END, Records

MAX_ROWS: Final = BATCH_ROWS
_NUMBERS: Final = (int, float, np.number)


class RowError(Exception):
    """A row is rejected; the message is the reason."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Values:
    """The values of the rows that are documents, one per row; None for a column that is not used."""

    rows: Sequence[int]
    texts: pa.Array
    ids: list[Any] | None = None
    scores: list[Any] | None = None
    groups: list[Any] | None = None
    common: list[Any] | None = None
    others: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)
    # Of source code, by the endings of files.
    languages: Sequence[str | None] | None = None


def records_of(
    num_rows: int,
    values: Values,
    rejected: list[tuple[int, str]],
    *,
    found: frozenset[str],
    config: Config,
) -> Records:
    """Build the records of a batch; rows that fail only here are added to the rejected ones."""
    texts = values.texts
    unusable = dict[int, str]()
    if column_type(config) is not None:
        texts, unusable = contents_of(texts, config)
    elif config.html:
        texts, unusable = readable_texts(texts, config)
    elif config.asks_code:
        from neardup.io.columns.code import code_texts  # few runs compare code

        texts, unusable = code_texts(texts, values.languages, config)
    rows = np.fromiter(values.rows, np.int64, len(texts))
    if values.ids is None:
        ids = pa.nulls(len(rows), pa.string())
    else:
        ids = string_array(values.ids)
    groups = None if values.groups is None else string_array(values.groups)
    common = None if values.common is None else string_array(values.common)
    scores = None if values.scores is None else sortable_values(values.scores)
    others = values.others
    if unusable:
        found_unusable = [(int(rows[position]), reason) for position, reason in unusable.items()]
        rejected = sorted([*rejected, *found_unusable])
        is_usable = pa.array([position not in unusable for position in range(len(rows))])
        rows = rows[is_usable.to_numpy(zero_copy_only=False)]
        texts = texts.filter(is_usable)
        ids = ids.filter(is_usable)
        scores = None if scores is None else scores.filter(is_usable)
        groups = None if groups is None else groups.filter(is_usable)
        common = None if common is None else common.filter(is_usable)
        others = {
            name: list(itertools.compress(column, is_usable.to_pylist()))
            for name, column in others.items()
        }
    return Records(
        num_rows=num_rows,
        rows=rows,
        texts=texts,
        ids=ids,
        scores=scores,
        groups=groups,
        common=common,
        rejected=rejected,
        found=found,
        others=others,
    )


def oversize_records(size: int, config: Config) -> Records:
    """Build the records of one row that was skipped because of its size."""
    values = Values(rows=[], texts=text_array([], config))
    return records_of(
        1, values, [(0, reason_against_size(size, config))], found=frozenset(), config=config
    )


def is_utf8(block: bytes) -> bool:
    """Whether bytes are valid UTF-8; Arrow checks without decoding them."""
    offsets: npt.NDArray[np.int64] = np.array([0, len(block)], np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    try:
        pa.Array.from_buffers(pa.large_string(), 1, buffers).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def reason_against_bytes(line: bytes, config: Config) -> str | None:
    """Return why bytes are not valid UTF-8, None if they are; text that could not be decoded to UTF-8 is not."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        if config.encoding == AUTO:
            return f"{NOT_VALID} in the encoding of the file"
        if config.encoding is not None:
            return f"{NOT_VALID} {config.encoding}"
        return f"{NOT_UTF8}: {error.reason} at byte {error.start}"
    return None


def as_string(value: Any) -> str:
    """Format an id, a group or an item as Arrow does.

    >>> as_string(7), as_string(True), as_string(2.0)
    ('7', 'true', '2')
    """
    if isinstance(value, float):
        return str(pa.scalar(value).cast(pa.string()))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def string_array(values: list[Any]) -> pa.Array:
    """Return values as strings; None stays null."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowTypeError, pa.ArrowInvalid, TypeError):
        strings = [None if value is None else as_string(value) for value in values]
        return pa.array(strings, pa.string())


def items_text(value: Any) -> str:
    """Join the items of a set to one text; a text is split at white space first."""
    if isinstance(value, str):
        items = value.split()
    else:
        items = list(map(as_string, value))
    text = "".join([item + ITEM_END for item in items])
    if text.count(ITEM_END) != len(items):
        raise RowError(f"an item contains {ITEM_END!r}, the item separator")
    return text


def weighted_items(value: Any) -> list[tuple[str, float]]:
    """Return the items of a row with their weights: a dict, pairs, a vector, or a text like "milk:2 tea:0.5".

    >>> weighted_items({"milk": 2}), weighted_items("tea:0.5"), weighted_items([0, 0.5])
    ([('milk', 2.0)], [('tea', 0.5)], [('1', 0.5)])
    """
    try:
        if isinstance(value, str):
            pairs: Any = [item.rpartition(":")[::2] for item in value.split()]
        elif isinstance(value, (list, tuple, np.ndarray)) and all(
            isinstance(weight, _NUMBERS) for weight in value
        ):
            pairs = [(position, weight) for position, weight in enumerate(value) if weight != 0]
        else:
            if isinstance(value, Mapping):
                pairs = value.items()
            else:
                pairs = map(_pair, value)
        return [(item_string(item), float(weight)) for item, weight in pairs]
    except (TypeError, ValueError, OverflowError) as error:
        raise RowError(f"items are not pairs of item and weight: {error}") from error


def item_string(value: Any) -> str:
    """Format an item given as a Python value."""
    if not isinstance(value, (str, int, float, np.generic)):
        raise TypeError(f"an item is {type(value).__name__}, neither text nor a number")
    return as_string(value.item() if isinstance(value, np.generic) else value)


def _pair(value: Any) -> tuple[Any, Any]:
    """Unpack an item and its weight from a list, or from an object with two fields."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{value!r} has no weight")
    item, weight = value.values() if isinstance(value, Mapping) else value
    return item, weight


def numbers_of(text: str) -> list[float]:
    """Parse the numbers in a text, separated by spaces or commas, with or without brackets.

    >>> numbers_of("[0.5, 1]")
    [0.5, 1.0]
    """
    try:
        return [
            float(number)
            for number in text.strip().removeprefix("[").removesuffix("]").replace(",", " ").split()
        ]
    except ValueError as error:
        raise RowError(f"vector is not a list of numbers: {error}") from error


def text_array(values: list[Any], config: Config) -> pa.Array:
    """Return texts, items or vectors as a column."""
    return pa.array(values, column_type(config) or pa.large_string())
