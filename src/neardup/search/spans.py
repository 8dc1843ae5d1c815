"""Passages, stage 3: from stretches of windows to places, passages, and the spans of words that are cut or marked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.search.places import Stretches

I64 = npt.NDArray[np.int64]


class Passages(NamedTuple):
    """The distinct passages, by source.

    sources: rows; starts, words: first word and number of words there; places: how often each stands, the source
    included; documents: in how many documents; ids: from 1, most words times places first; order: the passages by id;
    of_place: the passage of each place.
    """

    sources: I64
    starts: I64
    words: I64
    places: I64
    documents: I64
    ids: I64
    order: I64
    of_place: I64


class Spans(NamedTuple):
    """Words of documents: rows, first word and the word behind the last, ascending and apart from each other."""

    docs: I64
    starts: I64
    ends: I64


_NOTHING = np.empty(0, np.int64)
NO_PASSAGES = Passages(*([_NOTHING] * len(Passages._fields)))
NO_SPANS = Spans(*([_NOTHING] * len(Spans._fields)))


def listed(stretches: Stretches, num_references: int, *, only_against: bool) -> Stretches:
    """Return the stretches that are places: windows of the input that stand first in an earlier document."""
    is_listed = (stretches.docs != stretches.sources) & (stretches.docs >= num_references)
    if only_against:
        is_listed &= stretches.sources < num_references
    return stretches.where(is_listed)


def passages_of(places: Stretches, min_words: int) -> Passages:
    """Return the passages of some places, which are sorted by document and start."""
    keys = places.counts, places.source_starts, places.sources
    order = np.lexsort(keys)
    is_new = np.zeros(order.size, np.bool_)
    is_new[:1] = True
    for key in keys:
        ordered = key[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    firsts = np.flatnonzero(is_new)
    number = np.cumsum(is_new) - 1
    of_place = np.empty(order.size, np.int64)
    of_place[order] = number
    at = order[firsts]
    words = places.counts[at] + min_words - 1
    num_places = np.diff(np.append(firsts, order.size)) + 1
    # The sort is stable, so that the places of a passage are in order of their documents.
    docs = places.docs[order]
    is_other = np.ones(order.size, np.bool_)
    is_other[1:] = is_new[1:] | (docs[1:] != docs[:-1])
    documents = np.bincount(number[is_other], minlength=firsts.size) + 1
    by_size = np.argsort(-(words * num_places), kind="stable")
    ids = np.empty(firsts.size, np.int64)
    ids[by_size] = np.arange(1, firsts.size + 1)
    return Passages(
        sources=places.sources[at],
        starts=places.source_starts[at],
        words=words,
        places=num_places,
        documents=documents,
        ids=ids,
        order=by_size,
        of_place=of_place,
    )


def frequent(stretches: Stretches, min_count: int) -> Stretches:
    """Return the windows of stretches that stand in at least `min_count` places, the first included."""
    if not stretches.docs.size:
        return stretches
    # Positions in all sources, end to end.
    width = int((stretches.source_starts + stretches.counts).max()) + 1
    sources, rank = np.unique(stretches.sources, return_inverse=True)
    del sources
    begins = rank * width + stretches.source_starts
    ends = begins + stretches.counts
    counted = stretches.docs != stretches.sources
    # A sweep over all bounds: +1 where a stretch begins, -1 where it ends, so that the running sum
    # is the number of stretches over the positions from one bound to the next.
    bounds = np.unique(np.concatenate([begins, ends]))
    changes = np.zeros(bounds.size, np.int64)
    np.add.at(changes, np.searchsorted(bounds, begins[counted]), 1)
    np.add.at(changes, np.searchsorted(bounds, ends[counted]), -1)
    is_frequent = np.cumsum(changes) + 1 >= min_count
    first = np.searchsorted(bounds, begins)
    stop = np.searchsorted(bounds, ends)
    of_stretch = np.repeat(np.arange(begins.size), stop - first)
    before = np.cumsum(stop - first) - (stop - first)
    part = np.arange(of_stretch.size) - before[of_stretch] + first[of_stretch]
    chosen = is_frequent[part]
    of_stretch = of_stretch[chosen]
    part = part[chosen]
    shift = bounds[part] - begins[of_stretch]
    return Stretches(
        docs=stretches.docs[of_stretch],
        starts=stretches.starts[of_stretch] + shift,
        counts=bounds[part + 1] - bounds[part],
        sources=stretches.sources[of_stretch],
        source_starts=stretches.source_starts[of_stretch] + shift,
    )


def spans_to_cut(
    places: Stretches, min_words: int, num_references: int, *, keeps_first: bool
) -> Spans:
    """Return the words of places, and without `keeps_first` those of their sources in the input, too."""
    ends = places.starts + places.counts + min_words - 1
    if keeps_first:
        return united(places.docs, places.starts, ends)
    is_own = places.sources >= num_references
    source_starts = places.source_starts[is_own]
    return united(
        np.concatenate([places.docs, places.sources[is_own]]),
        np.concatenate([places.starts, source_starts]),
        np.concatenate([ends, source_starts + places.counts[is_own] + min_words - 1]),
    )


def with_repetitions(
    spans: Spans, stretches: Stretches, min_words: int, num_references: int
) -> Spans:
    """Return spans and the words of stretches in which a document of the input repeats itself."""
    own = stretches.where(
        (stretches.docs == stretches.sources) & (stretches.docs >= num_references)
    )
    return united(
        np.concatenate([spans.docs, own.docs]),
        np.concatenate([spans.starts, own.starts]),
        np.concatenate([spans.ends, own.starts + own.counts + min_words - 1]),
    )


def united(docs: I64, starts: I64, ends: I64) -> Spans:
    """Return the union of spans; spans that touch become one."""
    if not docs.size:
        return Spans(docs, starts, ends)
    order = np.lexsort((starts, docs))
    docs = docs[order]
    starts = starts[order]
    ends = ends[order]
    # Positions in all documents, end to end, so that no span of one document reaches another.
    width = int(ends.max()) + 2
    shift = (np.cumsum(np.append(0, np.diff(docs) != 0))) * width
    reached = np.maximum.accumulate(ends + shift)
    is_new = np.append(True, (starts + shift)[1:] > reached[:-1])
    firsts = np.flatnonzero(is_new)
    lasts = np.append(firsts[1:], docs.size) - 1
    return Spans(docs[firsts], starts[firsts], (reached - shift)[lasts])


def words_in(spans: Spans, docs: I64) -> I64:
    """Return how many words of each document are in spans; `docs` ascend."""
    totals = np.concatenate([[0], np.cumsum(spans.ends - spans.starts)])
    first = np.searchsorted(spans.docs, docs)
    stop = np.searchsorted(spans.docs, docs, side="right")
    counted: I64 = totals[stop] - totals[first]
    return counted
