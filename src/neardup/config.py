"""Config: every setting, its default and its bounds. It holds values and computes nothing from them."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
from typing import Any, Final, Literal, Self

from neardup.errors import ConfigError

Unit = Literal["word", "char"]
Method = Literal["auto", "lsh"]
Sketch = Literal["fast", "minhash"]
Cluster = Literal["leader", "components"]

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "unit": ("word", "char"),
    "method": ("auto", "lsh"),
    "sketch": ("fast", "minhash"),
    "cluster": ("leader", "components"),
}
KEEP_ORDERS: Final = ("first", "last", "longest")
KEEP_COLUMN_ORDERS: Final = ("max", "min")
NUM_PERM_CHOICES: Final = tuple(2**power for power in range(4, 11))
MAX_SIZE: Final = 64
MAX_SEED: Final = 2**64 - 1
# Settings that say how the work is done; they never change the result, so they stay out of the fingerprint.
_NOT_IN_FINGERPRINT: Final = frozenset({"threads", "strict"})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """Every setting of a run, checked.

    Attributes:
        threshold: two documents with Jaccard similarity >= threshold are a pair; in (0, 1].
        recall: the chance to find a pair of similarity exactly `threshold`; in (0, 1).
        unit: what a shingle is made of: "word" or "char".
        size: how many consecutive units make one shingle.
        num_perm: slots of a signature; a power of two from 16 to 1024.
        bands: bands of a signature; None derives it from `threshold` and `recall`.
        rows: rows of a band; None derives it from `threshold` and `recall`.
        seed: salts the shingle hash; another seed draws other signatures.
        method: how pairs are found; "auto" chooses.
        sketch: "fast" (Fast Similarity Sketching) or "minhash" (k permutations).
        signature_filter: skip the exact comparison where the signatures already rule a pair out.
        keep: which document of a cluster stays: "first", "last", "longest", "max:COLUMN" or "min:COLUMN".
        cluster: "leader" (removed documents are similar to the kept one) or "components" (transitive closure).
        pairs: also store every found pair, not only the match of each removed document.
        collapse_empty: treat documents without shingles as exact copies of each other.
        multiset: count repeated shingles instead of ignoring repetitions.
        fold_numbers: treat every number as the same token.
        html: take the texts as HTML and compare what a reader would see.
        text_column: the column with the text; None takes the first of text, content, body.
        id_column: the column with the id; None takes the first of id, url, else the position.
        strict: raise at the first row that cannot be used, instead of listing it as rejected.
        threads: threads that share the work; None takes one per available core. Never changes the result.
    """

    threshold: float = 0.8
    recall: float = 0.99
    unit: Unit = "word"
    size: int = 5
    num_perm: int = 128
    bands: int | None = None
    rows: int | None = None
    seed: int = 1
    method: Method = "auto"
    sketch: Sketch = "fast"
    signature_filter: bool = True
    keep: str = "first"
    cluster: Cluster = "leader"
    pairs: bool = False
    collapse_empty: bool = False
    multiset: bool = False
    fold_numbers: bool = False
    html: bool = False
    text_column: str | None = None
    id_column: str | None = None
    strict: bool = False
    threads: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if getattr(value, "shape", None) == ():  # a NumPy number is as good as a number
                object.__setattr__(self, field.name, value.item())
        _check_real("threshold", self.threshold, "in (0, 1]", 0 < _as_float(self.threshold) <= 1)
        if _as_float(self.recall) == 1:
            raise ConfigError(
                "`recall` must be in (0, 1), got 1: banding finds a pair with a chance below 1",
                hint="ask for 0.999; neardup.plan(recall=0.999) shows what it takes",
            )
        _check_real("recall", self.recall, "in (0, 1)", 0 < _as_float(self.recall) < 1)
        for name, choices in CHOICES.items():
            _check_choice(name, getattr(self, name), choices)
        _check_int("size", self.size, 1, MAX_SIZE)
        if not isinstance(self.num_perm, int) or self.num_perm not in NUM_PERM_CHOICES:
            raise ConfigError(
                f"`num_perm` must be a power of two from 16 to 1024, got {self.num_perm!r}",
                hint=f"take one of {', '.join(map(str, NUM_PERM_CHOICES))}",
            )
        _check_bands(self.bands, self.rows, self.num_perm)
        _check_int("seed", self.seed, 0, MAX_SEED)
        _check_keep(self.keep)
        for name in ("signature_filter", "pairs", "collapse_empty", "multiset", "fold_numbers", "html", "strict"):
            _check_type(name, getattr(self, name), bool, "True or False")
        for name in ("text_column", "id_column"):
            if getattr(self, name) is not None:
                _check_type(name, getattr(self, name), str, "the name of a column, or None")
        if self.threads is not None:
            _check_int("threads", self.threads, 1, 1024)

    @classmethod
    def of(cls, base: Config | None = None, /, **settings: Any) -> Self:
        """Build a Config from `base` (or the defaults) and settings by name; an unknown name raises.

        >>> Config.of(threshold=0.9).threshold
        0.9
        """
        if base is not None and not isinstance(base, Config):
            raise ConfigError(
                f"`config` must be a neardup.Config, got {type(base).__name__}",
                hint="build one with neardup.Config(threshold=0.8), or pass the settings by name",
            )
        names = [field.name for field in dataclasses.fields(cls)]
        for name in settings:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                raise ConfigError(
                    f"unknown setting `{name}`",
                    hint=f"did you mean `{near[0]}`?" if near else f"the settings are {', '.join(names)}",
                )
        values = {} if base is None else {name: getattr(base, name) for name in names}
        return cls(**(values | settings))

    def as_dict(self) -> dict[str, Any]:
        """Return every setting by name."""
        return dataclasses.asdict(self)

    def fingerprint(self) -> str:
        """Return a digest of the settings that can change a result."""
        values = {name: value for name, value in self.as_dict().items() if name not in _NOT_IN_FINGERPRINT}
        values |= {"threshold": float(self.threshold), "recall": float(self.recall)}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def keep_column(self) -> str | None:
        """The column named by keep="max:COLUMN" or keep="min:COLUMN"."""
        return self.keep.partition(":")[2] or None


def _as_float(value: Any) -> float:
    """NaN, which fails every bound, for what is not a number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check_real(name: str, value: Any, bounds: str, is_within: bool) -> None:
    if is_within:
        return
    percent = _as_float(value)
    hint = f"use {percent / 100:g} for {percent:g} %" if 10 <= percent < 100 else None
    raise ConfigError(f"`{name}` must be a number {bounds}, got {value!r}", hint=hint)


def _check_type(name: str, value: Any, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"`{name}` must be {expected}, got {value!r}")


def _check_int(name: str, value: Any, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"`{name}` must be a whole number from {low} to {high}, got {value!r}")


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        near = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.5)
        raise ConfigError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}, got {value!r}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )


def _check_bands(bands: int | None, rows: int | None, num_perm: int) -> None:
    for name, value in (("bands", bands), ("rows", rows)):
        if value is not None:
            _check_int(name, value, 1, num_perm)
    if bands is not None and rows is not None and bands * rows > num_perm:
        raise ConfigError(
            f"`bands` x `rows` must be at most `num_perm`, got {bands} x {rows} = {bands * rows} > {num_perm}",
            hint=f"use at most {num_perm // rows} bands of {rows} rows, or a larger num_perm",
        )


def _check_keep(keep: Any) -> None:
    order, colon, column = keep.partition(":") if isinstance(keep, str) else ("", "", "")
    if (order in KEEP_ORDERS and not colon) or (order in KEEP_COLUMN_ORDERS and column):
        return
    near = difflib.get_close_matches(order, KEEP_ORDERS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else None
    if order in KEEP_COLUMN_ORDERS:
        hint = f"name the column: keep='{order}:score'"
    raise ConfigError(
        f"`keep` must be 'first', 'last', 'longest', 'max:COLUMN' or 'min:COLUMN', got {keep!r}", hint=hint
    )
