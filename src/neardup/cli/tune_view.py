"""The histogram of similarities, the candidates and the examples of `neardup tune`, as lines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

from neardup.cli.symbols import Symbols
from neardup.cli.usage import as_options

HEIGHT: Final = 8
_MARGIN: Final = 8
_CUT: Final = 70
NOISE_STYLE: Final = "yellow"
COPY_STYLE: Final = "cyan"


def lines(tuning: Any, symbols: Symbols) -> Iterator[str | Text]:
    """Show the verdict, the histogram, what was compared, and examples."""
    whole = "" if tuning.part == 1 else f" {tuning.part:.0%} of"
    verdict = tuning.verdict()
    yield f"{verdict[:1].upper()}{verdict[1:]}."
    yield (
        f"{tuning.sample:,} sampled documents, compared exactly with{whole} {tuning.documents:,} documents; "
        f"{_kind(tuning)}"
    )
    yield ""
    yield from _histogram(tuning, symbols)
    yield from _candidates(tuning)
    yield from _examples(tuning, symbols)
    yield from (f"advice: {as_options(words)}." for words in tuning.advice)


def _kind(tuning: Any) -> str:
    if tuning.unit == "items":
        return "items"
    return f"unit {tuning.unit}, size {tuning.size}"


def _histogram(tuning: Any, symbols: Symbols) -> Iterator[str | Text]:
    """Draw how many sampled documents have a pair in each bin, by the square root."""
    counts = tuning.histogram.column("documents").to_pylist()
    lows = tuning.histogram.column("low").to_pylist()
    most = max(max(counts), 1)
    for row in range(HEIGHT):
        label = f"{most:,}" if row == 0 else ""
        line = Text(f"{label:>{_MARGIN - 1}} {symbols.axis}")
        for count, low in zip(counts, lows, strict=True):
            eighths = math.ceil(math.sqrt(count / most) * HEIGHT * 8) - (HEIGHT - 1 - row) * 8
            is_copy = tuning.threshold is not None and low >= tuning.threshold
            line.append(
                symbols.levels[min(max(eighths, 0), 8)], COPY_STYLE if is_copy else NOISE_STYLE
            )
        yield line
    yield f"{'0':>{_MARGIN - 1}} {symbols.corner}{symbols.floor * len(counts)}"
    scale = [" "] * (len(counts) + _MARGIN + 3)
    for tenth in range(1, 11):
        at = _MARGIN + 1 + (tenth - 1) * 5
        words = f"{tenth / 10:g}"
        scale[at : at + len(words)] = words
    yield "".join(scale).rstrip()
    if tuning.threshold is not None:
        at = sum(low < tuning.threshold for low in lows)
        yield Text(" " * (_MARGIN + 1 + at) + f"{symbols.pointer} {tuning.threshold:g}", "bold")
    yield "documents with a pair of this similarity, on a scale of square roots; the last column is exact copies"


def _candidates(tuning: Any) -> Iterator[str | Text]:
    if len(tuning.candidates) < 2:
        return
    yield ""
    yield Text("unit  size  threshold  separation", "bold")
    for one in tuning.candidates:
        if one.is_searched:
            threshold = "none" if one.threshold is None else f"{one.threshold:g}"
            yield f"{one.unit:<4}  {one.size:>4}  {threshold:>9}  {one.separation:10.4f}"
        else:
            yield f"{one.unit:<4}  {one.size:>4}  not tried"


def _examples(tuning: Any, symbols: Symbols) -> Iterator[str | Text]:
    for is_above in (True, False):
        shown = [pair for pair in tuning.examples if pair.is_above == is_above]
        if not shown:
            continue
        if tuning.threshold is None:
            title = "The most similar pairs of the sample"
        elif is_above:
            title = "At or above the threshold"
        else:
            title = "Below it"
        yield ""
        yield Text(title, "bold")
        for pair in shown:
            yield f"  {pair.similarity:.4f}  {pair.doc_a}  {pair.doc_b}"
            for text in (pair.text_a, pair.text_b):
                if text:
                    yield f"          {text if len(text) <= _CUT else text[: _CUT - 1] + symbols.ellipsis}"
    yield ""
