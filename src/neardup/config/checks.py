"""Checks of single values; each error shows the value and says what to do."""

from __future__ import annotations

import codecs
import difflib
import math
import os
import re
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Final

from neardup.errors import ConfigError

_UNITS: Final = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_MAX_BYTES: Final = 10**18
# Set measures that share one sketch: Jaccard similarity and containment.
SET_MEASURES: Final = ("jaccard", "containment")
# Vector measures, which use neither texts nor items.
VECTOR_MEASURES: Final = ("hamming", "cosine", "euclidean")
_CONTAINMENT: Final = "containment"
# The encoding of every file is detected.
AUTO: Final = "auto"
# What stands for no limit where a number of results is asked for.
ALL: Final = "all"
NUM_PERM_CHOICES: Final = tuple(2**power for power in range(4, 11))


def asks_containment(measure: str) -> bool:
    """Whether a measure compares by containment instead of similarity."""
    return measure == _CONTAINMENT


def near_names(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known names closest to an unknown one; None if none is close."""
    near = difflib.get_close_matches(name, known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else None


def as_float(value: Any) -> float:
    """Return a number as a float, and NaN, which fails every bound, for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def as_share(name: str, value: Any) -> float | None:
    """Return a share of a whole in (0, 1), from a number or from text like "5%"; None stays None."""
    if value is None:
        return None
    given = value
    if isinstance(value, str):
        number, percent, rest = value.strip().partition("%")
        try:
            value = float(number) / (100 if percent else 1)
        except ValueError:
            value = None
        if rest:
            value = None
    check_real(name, given, 'in (0, 1), or text like "5%"', 0 < as_float(value) < 1)
    return float(value)


def check_real(name: str, value: Any, bounds: str, is_within: bool) -> None:
    """Raise if a number is out of bounds."""
    if is_within:
        return
    percent = as_float(value)
    if 10 <= percent < 100:
        hint = f"use {percent / 100:g} for {percent:g} %"
    else:
        hint = None
    raise ConfigError(f"`{name}` must be a number {bounds}, got {value!r}", hint=hint)


def check_type(name: str, value: Any, kind: type, expected: str) -> None:
    """Raise if a value has another type."""
    if not isinstance(value, kind):
        raise ConfigError(f"`{name}` must be {expected}, got {value!r}")


def check_text(name: str, value: str, expected: str = "text in UTF-8") -> None:
    """Raise if a text has a lone surrogate, as Python makes of an argument that is not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"`{name}` must be {expected}, got {value!r}, which has a lone surrogate",
            hint="only bytes that are not UTF-8, or half of a surrogate pair, are read like this: type the value again",
        ) from error


def check_int(
    name: str, value: Any, low: int, high: int | None = None, *, hint: str | None = None
) -> None:
    """Raise if a value is not an integer within its bounds."""
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < low
        or (high is not None and value > high)
    ):
        bounds = f">= {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"`{name}` must be a whole number {bounds}, got {value!r}", hint=hint)


def as_count_or_all(name: str, value: Any) -> int | None:
    """Return a maximum number, None for "all"; None stays None."""
    if value is None or (isinstance(value, str) and value == ALL):
        return None
    count = value if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    check_int(name, count, 1, hint="10 is a common choice; 'all' lists all")
    return int(count)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise if a value is not one of the choices."""
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.5)
        raise ConfigError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def num_perm_choices(measure: str, sketch: str) -> Sequence[int]:
    """Return the possible numbers of slots of a signature; only MinHash with k permutations allows any number."""
    is_minhash = sketch == "minhash" and measure in SET_MEASURES
    if is_minhash:
        return range(1, NUM_PERM_CHOICES[-1] + 1)
    return NUM_PERM_CHOICES


def check_num_perm(num_perm: int, measure: str, sketch: str) -> None:
    """Raise if a signature cannot have this number of slots."""
    choices = num_perm_choices(measure, sketch)
    if isinstance(choices, range):
        check_int("num_perm", num_perm, choices[0], choices[-1])
    elif not isinstance(num_perm, int) or num_perm not in choices:
        is_sketched = measure in SET_MEASURES
        asked = f"sketch {sketch!r}" if is_sketched else f"measure {measure!r}"
        if is_sketched:
            other = "; sketch='minhash' takes any number from 1 to 1024"
        else:
            other = ""
        raise ConfigError(
            f"`num_perm` must be a power of two from 16 to 1024 with {asked}, got {num_perm!r}",
            hint=f"use one of {', '.join(map(str, choices))}{other}",
        )


def check_bands(bands: int | None, rows: int | None, num_perm: int) -> None:
    """Raise if bands and rows do not fit in a signature."""
    for name, value in (("bands", bands), ("rows", rows)):
        if value is not None:
            check_int(name, value, 1, num_perm)
    if bands is not None and rows is not None and bands * rows > num_perm:
        raise ConfigError(
            f"`bands` x `rows` must be at most `num_perm`, got {bands} x {rows} = {bands * rows} > {num_perm}",
            hint=f"use at most {num_perm // rows} bands of {rows} rows, or a larger `num_perm`",
        )


def check_delimiter(value: Any) -> None:
    """Raise if a value cannot be the delimiter of a CSV file."""
    if value is not None and (
        not isinstance(value, str) or len(value) != 1 or value in '\r\n"' or ord(value) > 127
    ):
        raise ConfigError(
            f"`delimiter` must be one ASCII character other than a quote or a line end, got {value!r}",
            hint="use ';' or '|', or a real tab character",
        )


def _mark(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace undecodable bytes by a byte that is invalid UTF-8, so that only their row is rejected."""
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end
    if isinstance(error, UnicodeEncodeError):
        return b"\xff", error.end
    raise error


# How text in another encoding is decoded; the name of the handler for codecs.
MARK: Final = "neardup.mark"
codecs.register_error(MARK, _mark)
# Not valid in most encodings, so that decoding it calls the handler.
_PROBE: Final = b"a\xff\n"


def as_encoding(value: Any) -> str | None:
    """Return the name of a text encoding as Python spells it; None for UTF-8; "auto" stays."""
    if value is None or (isinstance(value, str) and value == AUTO):
        return value
    try:
        name = codecs.lookup(value).name
        "".encode(value)  # raises for a bytes-to-bytes codec, such as "zlib"
        _try_encoding(name)
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(
            f"`encoding` must be the name of a text encoding of files, got {value!r}",
            hint="use a name that Python knows, such as 'latin-1', 'cp1252', 'utf-16', 'shift_jis', or 'auto'",
        ) from error
    return None if name in ("utf-8", "utf-8-sig") else name


def _try_encoding(name: str) -> None:
    """Raise unless bytes can be decoded as those of a file are: in pieces, where invalid ones are marked."""
    decoder = codecs.getincrementaldecoder(name)(MARK)
    # Some need a byte order mark first.
    text = decoder.decode("a\n".encode(name) + _PROBE, final=True)
    text.encode("utf-8", MARK)
    codecs.getincrementalencoder(name)().encode("a\n", final=True)


def check_language(name: Any) -> None:
    """Raise unless Pygments knows a language."""
    if name is None:
        return
    check_type("language", name, str, "the name of a language, or None")
    check_text("language", name)
    from pygments.lexers import find_lexer_class_by_name, get_all_lexers  # few runs compare code
    from pygments.util import ClassNotFound

    try:
        find_lexer_class_by_name(name)
    except ClassNotFound as error:
        known = sorted(alias for _, aliases, _, _ in get_all_lexers() for alias in aliases)
        raise ConfigError(
            f"`language` must be a language that Pygments knows, got {name!r}",
            hint=near_names(name.lower(), known) or "`python -m pygments -L lexers` lists them",
        ) from error


def as_columns(name: str, value: Any) -> str | tuple[str, ...] | None:
    """Return the name of a column, or a tuple of several."""
    if value is None:
        return None
    listed = (value,) if isinstance(value, str) else value
    names = tuple(listed) if isinstance(listed, (list, tuple)) else ()
    if not names or not all(isinstance(column, str) for column in names):
        raise ConfigError(
            f"`{name}` must be the name of a column, a list of names, or None, got {value!r}"
        )
    for column in names:
        check_text(name, column)
    return names if len(names) > 1 else names[0]


def as_paths(name: str, value: Any) -> tuple[str, ...]:
    """Return one path or many as a tuple."""
    paths = (value,) if isinstance(value, (str, os.PathLike)) else value
    if not isinstance(paths, (list, tuple)) or not all(
        isinstance(path, (str, os.PathLike)) for path in paths
    ):
        raise ConfigError(f"`{name}` must be a path or a list of paths, got {value!r}")
    found = tuple(map(os.fspath, paths))
    for path in found:
        if not isinstance(path, str) or "\0" in path:
            raise ConfigError(f"`{name}` must be a path without NUL characters, got {path!r}")
        check_text(name, path, "a path in UTF-8")
    return found


def as_globs(name: str, value: Any) -> tuple[str, ...]:
    """Return one glob or many as a tuple."""
    globs = as_paths(name, value)
    if not all(glob.strip("/") for glob in globs):
        raise ConfigError(
            f"`{name}` must be a glob for paths, or a list of globs, got {value!r}",
            hint=f"{name}='*.md', for example",
        )
    return globs


def as_path(name: str, value: Any) -> str | None:
    """Return one path, or None."""
    if value is None:
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise ConfigError(f"`{name}` must be a path or None, got {value!r}")
    return as_paths(name, value)[0]


def as_spark_conf(value: Any) -> tuple[str, ...]:
    """Return one or more settings of Spark as a tuple."""
    settings = (value,) if isinstance(value, str) else value
    if not isinstance(settings, (list, tuple)):
        settings = (None,)
    for setting in settings:
        shown = setting if isinstance(value, tuple) else value  # the command line passes a tuple
        if not isinstance(setting, str) or not setting.partition("=")[0] or "=" not in setting:
            raise ConfigError(
                f"`spark_conf` must be settings as name=value, got {shown!r}",
                hint="pass spark_conf=['spark.executor.memory=4g']",
            )
        check_text("spark_conf", setting)
    return tuple(settings)


def as_bytes(name: str, value: Any) -> int:
    """Return a number of bytes, given as a number or as a text like '4GB'."""
    number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B?)", str(value).strip().upper())
    if number is None or isinstance(value, bool):
        raise ConfigError(f"`{name}` must be a number of bytes, or text like '4GB', got {value!r}")
    if number[2].endswith("B") or not number[2]:
        unit = number[2]
    else:
        unit = number[2] + "B"
    size = float(number[1]) * _UNITS[unit]
    if size > _MAX_BYTES:
        raise ConfigError(f"`{name}` must be at most {_MAX_BYTES // 10**15} PB, got {value!r}")
    return int(size)
