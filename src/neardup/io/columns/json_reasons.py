"""Why a row of JSON is rejected."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import UNSET

from neardup.config import Config
from neardup.io.columns import gather
from neardup.io.columns.column_checks import reason_against
from neardup.io.columns.gather import RowError
from neardup.io.columns.rejected_rows import BROKEN_JSON, NO_COLUMN, NOT_OBJECT


def reason_against_json(line: bytes, error: Exception) -> str:
    """Return why a line is not an object."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, msgspec.ValidationError) and str(error).startswith("Expected `object`"):
        return f"{NOT_OBJECT}: {error}"
    if b"\\u" in line:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            pass
        else:  # msgspec rejects a lone surrogate, Python does not
            return "lone surrogate escape, which has no UTF-8 encoding"
    return f"{BROKEN_JSON}: {str(error).removeprefix('JSON is malformed: ')}"


def reason_against_texts(values: list[tuple[str, Any]]) -> str | None:
    """Return why columns hold no text, given their names and values."""
    present = [value for _, value in values if value is not UNSET]
    if values and not present:
        return f"{NO_COLUMN} {', '.join(repr(name) for name, _ in values)}"
    odd = next((value for value in present if not isinstance(value, (str, type(None)))), None)
    if odd is not None:
        return reason_against(odd)
    if values and all(value is None for value in present):
        return reason_against(None)
    return None


def reason_against_numbers(name: str, value: Any) -> str | None:
    """Return why a column holds no vector."""
    if value is UNSET:
        return f"{NO_COLUMN} {name!r}"
    if value is None:
        return "vector is null"
    if not isinstance(value, list):
        return f"vector is {kind_of(value)}, not a list of numbers"
    for position, number in enumerate(value, 1):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            return f"element {position} of the vector is {kind_of(number)}"
    return None


def reason_against_items(name: str, value: Any, config: Config) -> str | None:
    """Return why a column holds no items."""
    if value is UNSET:
        return f"{NO_COLUMN} {name!r}"
    if value is None:
        return "items are null"
    if config.measure == "weighted":
        return _reason_against_weights(value)
    if not isinstance(value, (list, str)):
        return f"items are {kind_of(value)}, not a list"
    odd = next((item for item in value if item is None or isinstance(item, (list, dict))), "")
    return None if odd == "" else f"an item is {kind_of(odd)}"


def _reason_against_weights(value: Any) -> str | None:
    try:
        gather.weighted_items(value if isinstance(value, (list, dict)) else 0)
    except RowError as error:
        return str(error)
    return None


def kind_of(value: Any) -> str:
    """Return what a value is, in the words of JSON."""
    kinds = {
        type(None): "null",
        list: "a list",
        dict: "an object",
        bool: "true or false",
        str: "text",
    }
    return kinds.get(type(value), "a number")
