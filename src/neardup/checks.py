"""Checks of single values: each raises with the value and the way out."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any, Final

from neardup.errors import ConfigError

NUM_PERM_CHOICES: Final = tuple(2**power for power in range(4, 11))


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


def num_perm_choices(measure: str, sketch: str) -> Sequence[int]:
    """Return how many slots a signature may have: only the k permutations of MinHash take any number."""
    is_minhash = sketch == "minhash" and measure in ("jaccard", "containment")
    return range(1, NUM_PERM_CHOICES[-1] + 1) if is_minhash else NUM_PERM_CHOICES


def check_num_perm(num_perm: int, measure: str, sketch: str) -> None:
    """Raise where a signature cannot have this number of slots."""
    choices = num_perm_choices(measure, sketch)
    if isinstance(choices, range):
        check_int("num_perm", num_perm, choices[0], choices[-1])
    elif not isinstance(num_perm, int) or num_perm not in choices:
        is_sketched = measure in ("jaccard", "containment")
        asked = f"sketch {sketch!r}" if is_sketched else f"measure {measure!r}"
        other = "; sketch='minhash' takes any number from 1 to 1024" if is_sketched else ""
        raise ConfigError(
            f"`num_perm` must be a power of two from 16 to 1024 with {asked}, got {num_perm!r}",
            hint=f"take one of {', '.join(map(str, choices))}{other}",
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
