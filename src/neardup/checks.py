"""Checks of single values: each raises with the value and the way out."""

from __future__ import annotations

import difflib
import math
from typing import Any

from neardup.errors import ConfigError


def as_float(value: Any) -> float:
    """NaN, which fails every bound, for what is not a number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_real(name: str, value: Any, bounds: str, is_within: bool) -> None:
    """Raise where a number is out of its bounds."""
    if is_within:
        return
    percent = as_float(value)
    hint = f"use {percent / 100:g} for {percent:g} %" if 10 <= percent < 100 else None
    raise ConfigError(f"`{name}` must be a number {bounds}, got {value!r}", hint=hint)


def check_type(name: str, value: Any, kind: type, expected: str) -> None:
    """Raise where a value is of another type."""
    if not isinstance(value, kind):
        raise ConfigError(f"`{name}` must be {expected}, got {value!r}")


def check_int(name: str, value: Any, low: int, high: int) -> None:
    """Raise where a value is no whole number within its bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"`{name}` must be a whole number from {low} to {high}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise where a value is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.5)
        raise ConfigError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def check_bands(bands: int | None, rows: int | None, num_perm: int) -> None:
    """Raise where bands and rows do not fit in a signature."""
    for name, value in (("bands", bands), ("rows", rows)):
        if value is not None:
            check_int(name, value, 1, num_perm)
    if bands is not None and rows is not None and bands * rows > num_perm:
        raise ConfigError(
            f"`bands` x `rows` must be at most `num_perm`, got {bands} x {rows} = {bands * rows} > {num_perm}",
            hint=f"use at most {num_perm // rows} bands of {rows} rows, or a larger num_perm",
        )


def check_delimiter(value: Any) -> None:
    """Raise where a value cannot stand between the columns of a CSV file."""
    if value is not None and (not isinstance(value, str) or len(value) != 1 or value in '\r\n"' or ord(value) > 127):
        raise ConfigError(
            f"`delimiter` must be one ASCII character that is no quote and no line end, got {value!r}",
            hint="use ';' or '|', or a real tab character",
        )
