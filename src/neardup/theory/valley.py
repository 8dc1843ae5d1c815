"""The valley of a histogram of similarities: where pairs alike by chance end, and copies begin."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
# Similarities from .1 up are counted in bins of .02; the last one is for exact copies.
FLOOR: Final = 0.1
WIDTH: Final = 0.02
NUM_BINS: Final = 46
# The most pairs of a document that count, so that a page with a thousand copies is not the
# histogram.
MAX_PAIRS: Final = 10
# The least standard deviation of the smoothing, in bins. Small sets have similarities such as 1/2
# and 2/3, and nothing between: it is also this share of the step of two sets of median size
# (docs/decisions/0042).
MIN_SMOOTHING: Final = 1.0
_STEP_SHARE: Final = 0.6
_UNION: Final = 1.5
_REACH: Final = 4
# A valley has at least this many documents with a copy, and is at most half as high as the hill of
# the copies.
MIN_DOCUMENTS: Final = 5
MAX_HEIGHT: Final = 0.5
# Exact copies say little about where other copies begin: as a hill, they count this much.
_EXACT_SHARE: Final = 0.04
# Bins as low as the lowest one, up to this factor, are the bottom; half a document more, because
# one in the whole sample means nothing.
_BOTTOM: Final = 1.25
_SLACK: Final = 0.5
# Pairs within this many standard deviations of the threshold may be on either side: half of them
# count as errors.
_GREY: Final = 2.0
RESAMPLES: Final = 200
# A resample agrees if its threshold is at most this many bins away.
_AGREES: Final = 3
_QUANTILES: Final = (0.025, 0.975)


class Valley(NamedTuple):
    """A valley: the first bin of the copies, an interval of it, and the share of resamples that agree."""

    first_bin: int
    low: int
    high: int
    certainty: float


def bin_edges() -> F64:
    """Return where each bin begins: 0.1, 0.12 ... 0.98, and 1 for exact copies.

    >>> bin_edges()[[0, 1, 44, 45]].tolist()
    [0.1, 0.12, 0.98, 1.0]
    """
    return np.round(FLOOR + np.arange(NUM_BINS) * WIDTH, 2)


def smoothing_for(median_size: float) -> float:
    """Return how much to smooth the similarities of sets of this median size, in bins.

    >>> smoothing_for(100), round(smoothing_for(8), 2)
    (1.0, 2.5)
    """
    step = 1 / (_UNION * max(median_size, 1.0))
    return max(MIN_SMOOTHING, _STEP_SHARE * step / WIDTH)


def find_valley(counts: I64, num_others: int, smoothing: float, seed: int) -> Valley | None:
    """Return the valley of the documents' counts, one row each; None if there is none.

    Each document counts once in every bin in which it has a pair. The interval and the certainty
    come from a bootstrap over documents. num_others: how many documents each was compared with;
    smoothing: as `smoothing_for` returns it.
    """
    has_pair = (counts > 0).astype(np.float64)
    first = _median_bin(counts, num_others)
    first_bin = _bottom(has_pair.sum(axis=0), first, smoothing)
    if first_bin is None or not _has_copies(counts, first_bin):
        return None
    if first_bin - first <= round(smoothing):  # its other side is not visible
        return None
    rng = np.random.default_rng(seed)
    weights = rng.poisson(1.0, (RESAMPLES, counts.shape[0]))
    resampled = [_bottom(heights, first, smoothing) for heights in weights @ has_pair]
    first_bins = np.array([found for found in resampled if found is not None])
    agrees = np.abs(first_bins - first_bin) <= _AGREES
    low = high = float(first_bin)
    if first_bins.size:
        low, high = np.quantile(first_bins, _QUANTILES)
    return Valley(
        first_bin=first_bin,
        low=min(int(low), first_bin),
        high=max(round(high), first_bin),
        certainty=float(agrees.sum() / RESAMPLES),
    )


def _has_copies(counts: I64, first_bin: int) -> bool:
    has_copy = counts[:, first_bin:].any(axis=1)
    return int(has_copy.sum()) >= MIN_DOCUMENTS


def _median_bin(counts: I64, num_others: int) -> int:
    """Return the bin in which the median of all pairs lies, most of which are alike by chance; 0 if it lies below."""
    in_bin = counts.sum(axis=0)
    at_least = np.cumsum(in_bin[::-1])[::-1]
    num_pairs = counts.shape[0] * num_others
    above = np.flatnonzero(2 * at_least > num_pairs)
    if not above.size:
        return 0
    return int(above[-1])


def _bottom(heights: F64, first: int, smoothing: float) -> int | None:
    """Return the middle of the bottom of the deepest valley from a bin on; None if none is deep enough.

    On its left is always a hill: the pairs that are less similar.
    """
    if first >= heights.size - 1:  # most pairs are exact copies: nothing is alike by chance
        return None
    smooth = _smoothed(heights[first:-1], smoothing)
    exact = heights[-1] * _EXACT_SHARE
    # The height of the highest hill to the right of each bin.
    from_here = np.maximum.accumulate(smooth[::-1])[::-1]
    right = np.maximum(np.r_[from_here[1:], 0.0], exact)
    lowest = int(np.argmax(right - smooth))
    if not right[lowest] or smooth[lowest] > MAX_HEIGHT * right[lowest]:
        return None
    limit = smooth[lowest] * _BOTTOM + _SLACK
    low = high = lowest
    while low > 0 and smooth[low - 1] <= limit:
        low -= 1
    while high < smooth.size - 1 and smooth[high + 1] <= limit:
        high += 1
    return first + (low + high + 1) // 2


def _smoothed(heights: F64, smoothing: float) -> F64:
    """Smooth the square roots of counts, whose errors are equally large in every bin."""
    reach = int(_REACH * smoothing)
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-((steps / smoothing) ** 2) / 2)
    weights /= weights.sum()
    padded = np.pad(np.sqrt(heights), reach, mode="edge")
    roots = np.convolve(padded, weights, "valid")
    smooth: F64 = roots**2
    return smooth


class Sides(NamedTuple):
    """What lies around a threshold, in pairs per sampled document: at or above it, and too close to tell."""

    above: float
    grey: float

    @property
    def clear(self) -> float:
        """The pairs above the threshold, less half of those too close to tell."""
        return max(self.above - self.grey / 2, 0.0)


def sides_of(counts: I64, first_bin: int, smoothing: float) -> Sides:
    """Count the pairs above a bin, and those around it; of each document at most MAX_PAIRS."""
    num_documents = max(counts.shape[0], 1)
    above = np.minimum(counts[:, first_bin:].sum(axis=1), MAX_PAIRS).sum()
    reach = round(_GREY * smoothing)
    around = counts[:, max(first_bin - reach, 0) : first_bin + reach]
    grey = np.minimum(around.sum(axis=1), MAX_PAIRS).sum()
    return Sides(float(above) / num_documents, float(grey) / num_documents)


def separation(own: Sides, best_clear: float) -> float:
    """Return how well a threshold separates copies from noise, compared with the candidate that finds most copies.

    An estimate of F1: the clear pairs are right, the other ones above the threshold wrong, and what
    the best candidate finds beyond them missed.

    >>> separation(Sides(above=1.0, grey=0.1), best_clear=1.0)
    0.95
    """
    total = own.above + best_clear
    return 2 * own.clear / total if total else 0.0
