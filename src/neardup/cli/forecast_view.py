"""The forecast of a run, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from neardup.cli.usage import as_options

# So few pairs in a sample say little about the input.
_FEW_PAIRS: Final = 10


def lines(estimate: Any) -> Iterator[str]:
    """List the cost and the result of each method."""
    from neardup.cli.progress import BYTES, amount

    yield ""
    about = "" if estimate.sampled_ratio == 1 else "about "
    yield f"documents  {about}{estimate.documents:,}, {amount(estimate.text_bytes, BYTES)} of text"
    yield f"sampled    {_share(estimate.sampled_ratio)}, {estimate.sampled_documents:,} documents"
    titles = [
        ("method", "bands x rows", "recall", "comparisons", "pairs", "memory", "disk", "time")
    ]
    is_whole = estimate.sampled_ratio == 1
    cells = [_cells(forecast, is_whole=is_whole) for forecast in estimate.forecasts]
    widths = [max(map(len, column)) for column in zip(*titles, *cells, strict=True)]
    yield ""
    for row in titles + cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if estimate.sampled_ratio < 1:
        most_pairs = max((forecast.pairs for forecast in estimate.forecasts), default=0)
        yield _doubt(most_pairs, estimate.sampled_ratio)
    yield from (f"advice: {as_options(words)}." for words in estimate.advice)


def _cells(forecast: Any, *, is_whole: bool) -> tuple[str, ...]:
    """Return a row of the table; in a part of the documents, no pair means that their number is not known."""
    from neardup.cli.progress import BYTES, amount, duration

    return (
        forecast.method,
        f"{forecast.bands} x {forecast.rows}" if forecast.bands else "-",
        f"{forecast.recall_at_threshold:.4f}",
        f"{forecast.candidates:,}",
        f"{forecast.pairs:,}" if forecast.pairs or is_whole else "unknown",
        amount(forecast.memory_bytes, BYTES),
        amount(forecast.disk_bytes, BYTES),
        duration(forecast.seconds),
    )


def _doubt(num_pairs: int, ratio: float) -> str:
    """Say how far the number of pairs of a sample, scaled up, may be from the truth.

    Pairs are scaled up as if their documents were next to each other. If they are anywhere, a
    sample holds both documents of a pair with a chance of ratio * ratio, so there are 1 / ratio
    times as many.

    >>> print(_doubt(900, 0.17))
    Pairs are counted in the sample and scaled up; if similar documents are far apart, there are about 6 times as many.
    >>> print(_doubt(50, 0.02))
    A sample of 2.0 % rarely holds both documents of a pair; the number of pairs may be much larger.
    """
    if num_pairs * ratio < _FEW_PAIRS:
        share = _share(ratio).removesuffix(" of it")
        return f"A sample of {share} rarely holds both documents of a pair; the number of pairs may be much larger."
    return (
        "Pairs are counted in the sample and scaled up; if similar documents are far apart, there are about "
        f"{1 / ratio:,.0f} times as many."
    )


def _share(ratio: float) -> str:
    """Say how much of the input was sampled.

    >>> _share(1), _share(0.34), _share(0.0123), _share(0.00001)
    ('all of it', '34 % of it', '1.2 % of it', 'less than 0.1 % of it')
    """
    if ratio == 1:
        return "all of it"
    if ratio < 0.001:
        return "less than 0.1 % of it"
    return f"{100 * ratio:.{0 if ratio >= 0.1 else 1}f} % of it"
