"""The texts of a run: from memory, or read again from its inputs if they are unchanged."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.errors import DataError
from neardup.io.finished import finished_run
from neardup.io.finished.decision_file import digest_of
from neardup.io.records import ITEM_END, text_bytes
from neardup.jobs.common_shingles import stored_common
from neardup.kernels import similarity as kernel
from neardup.measures.registry import measure_of
from neardup.measures.remaining import CommonShingles, salts_of
from neardup.report import Report
from neardup.web.run_view import RunView

I64 = npt.NDArray[np.int64]

# A page gets at most this many characters of a text.
MAX_CHARACTERS: Final = 50_000
# Longer texts, in bytes, are not compared again for a report.
_MAX_COMPARED: Final = 1 << 20
# Once this many bytes of text are held for a page, it gets only the first characters of further
# texts.
_MAX_CACHED: Final = 128 << 20
_FIRST_CHARACTERS: Final = 2_000


class Text(NamedTuple):
    """A text as the page gets it: `text` is its beginning if it is long."""

    text: str
    num_bytes: int
    is_whole: bool
    digest: str


def count_words(content: bytes) -> int:
    """Return how many runs of characters other than white space a text has.

    >>> count_words(b" to  be"), count_words(b"")
    (2, 0)
    """
    is_space = np.frombuffer(b" " + content, np.uint8) <= ord(" ")
    return int((is_space[:-1] & ~is_space[1:]).sum())


def why_absent(run: RunView) -> str | None:
    """Return why the texts of a run cannot be shown; None if they can."""
    config = run.report.config
    if config.measure not in SET_MEASURES:
        return f"this run compared items by {config.measure}, not texts"
    if config.weights is not None:
        return "this run weighed shingles by how rare they are, which is not shown"
    if not run.is_from_files:
        if run.report.load("texts") is not None:
            return None
        return "the documents are no longer in memory"
    try:
        for entry in run.report.inputs:
            finished_run.find_again(entry, config)
    except DataError as error:
        return error.message
    return None


class Scanned(NamedTuple):
    """Consecutive documents: keys, ascending, texts, as large_string, and their groups of `ignore_common`."""

    keys: I64
    texts: pa.Array
    groups: I64


def scan(run: RunView) -> Iterator[Scanned]:
    """Read all documents again."""
    report = run.report
    if not run.is_from_files:
        texts = report.load("texts")
        if texts is not None:
            rows = texts.column("row").to_numpy()
            groups = np.zeros(rows.size, np.int64)
            if "common" in texts.column_names:
                groups = texts.column("common").to_numpy()
            start = 0
            for chunk in texts.column("text").chunks:
                part = slice(start, start + len(chunk))
                yield Scanned(rows[part], chunk, groups[part])
                start += len(chunk)
        return
    for at, entry in enumerate(report.inputs):
        first = int(run.first_keys[at])
        for records in finished_run.read_again(entry, report.config):
            groups = finished_run.common_groups(records, entry, report.config)
            yield Scanned(first + records.rows, records.texts, groups)
            first += records.num_rows


def make_text(content: bytes, most_characters: int = MAX_CHARACTERS) -> Text:
    """Return a text for the page, cut if it is long; a set has one item per line."""
    # A character takes at most four bytes, so a long text is not decoded as a whole.
    text = content[: 4 * most_characters].decode("utf-8", errors="ignore")
    is_whole = len(content) <= 4 * most_characters and len(text) <= most_characters
    return Text(
        text[:most_characters].replace(ITEM_END, "\n"), len(content), is_whole, digest_of(content)
    )


@dataclasses.dataclass
class Gathered:
    """The texts that a page shows, the sizes of their sets, and the bytes of all removed texts.

    contents: the whole texts that are not too long to be compared again; groups: those of
    `ignore_common`; num_words: runs of characters other than white space of every text.
    """

    texts: dict[int, Text]
    contents: dict[int, bytes]
    groups: dict[int, int]
    num_shingles: dict[int, int]
    num_words: dict[int, int]
    removed_bytes: int


def gather(run: RunView, wanted: I64) -> Gathered:
    """Read all documents once, for the texts of some (ascending keys)."""
    found = Gathered({}, {}, {}, {}, {}, 0)
    removed = run.removals.keys[run.by_key]
    cached = 0
    compared = ComparedTexts(run.report)
    for keys, texts, groups in scan(run):
        found.removed_bytes += int(text_bytes(texts)[_which(keys, removed)].sum())
        at = np.flatnonzero(_which(keys, wanted))
        if not at.size:
            continue
        chosen = texts.take(pa.array(at))
        sizes = np.diff(compared.items(chosen, groups[at]).ends)
        for key, content, size in zip(
            keys[at].tolist(), chosen.cast(pa.large_binary()), sizes.tolist(), strict=True
        ):
            raw = content.as_py()
            text = make_text(raw, MAX_CHARACTERS if cached < _MAX_CACHED else _FIRST_CHARACTERS)
            found.texts[key] = text
            found.num_shingles[key] = size
            found.num_words[key] = count_words(raw)
            found.groups[key] = int(groups[np.searchsorted(keys, key)])
            if len(raw) <= _MAX_COMPARED and cached < _MAX_CACHED:
                found.contents[key] = raw
                cached += len(raw)
    return found


def _which(keys: I64, wanted: I64) -> npt.NDArray[np.bool_]:
    """Which of some keys are among others; both ascending."""
    at = np.searchsorted(wanted, keys)
    at[at == wanted.size] = 0
    return wanted[at] == keys if wanted.size else np.zeros(keys.size, np.bool_)


def alone(config: Config) -> Config:
    """Return the settings for texts that have already been extracted from HTML."""
    return Config.of(config, html=False)


class ComparedTexts:
    """What a run compared of its texts."""

    def __init__(self, report: Report) -> None:
        self._config = alone(report.config)
        self._common: CommonShingles | None = None
        if report.config.ignore_common is not None:
            self._common = stored_common(report.load("common"), self._config)

    def items(self, texts: pa.Array, groups: I64) -> kernel.Sets:
        """Return the sets of texts, given their groups of `ignore_common`."""
        if self._common is not None:
            texts = self._common.contents(texts, salts_of(groups))
        sets: Any = measure_of(self._config).items(texts, self._config)
        return cast("kernel.Sets", sets)

    def count_shingles(self, content: bytes, group: int) -> int:
        """Return the number of distinct shingles of a text."""
        return int(self.items_of([content], [group]).ends[-1])

    def similarities_among(self, contents: Sequence[bytes], groups: Sequence[int]) -> list[float]:
        """Return the exact similarity of every two of some texts: (0, 1), (0, 2), ... (1, 2), ..."""
        items = self.items_of(contents, groups)
        left, right = np.triu_indices(len(contents), 1)
        values = np.empty(left.size, np.float64)
        kernel.similarities(items, left.astype(np.int64), right.astype(np.int64), values)
        return [round(value, 4) for value in values.tolist()]

    def items_of(self, contents: Sequence[bytes], groups: Sequence[int]) -> kernel.Sets:
        """Return the sets of whole texts."""
        texts = pa.array([content.decode() for content in contents], pa.large_string())
        return self.items(texts, np.array(groups, np.int64))
