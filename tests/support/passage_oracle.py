"""Repeated passages in plain Python: all windows of words in dicts. It imports nothing of neardup but other oracles."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from support import oracles


class Place(NamedTuple):
    """A stretch of windows of a document, and where they stand first."""

    doc: int
    start: int
    words: int
    source: int
    source_start: int


def first_places(docs, min_words, groups=None):
    """(document, position) of every window to that of the first window with the same words, in the same group."""
    first = {}
    found = {}
    for doc, words in enumerate(docs):
        group = None if groups is None else groups[doc]
        for at in range(len(words) - min_words + 1):
            window = group, tuple(words[at : at + min_words])
            found[doc, at] = first.setdefault(window, (doc, at))
    return found


def stretches(docs, min_words, groups=None):
    """Maximal stretches of windows that stand first on one diagonal, the same document included."""
    found = []
    for (doc, at), (source, source_at) in first_places(docs, min_words, groups).items():
        if (doc, at) == (source, source_at):
            continue
        last = found[-1] if found else None
        if (
            last
            and last.doc == doc
            and last.source == source
            and last.start + last.words - min_words + 1 == at
            and last.source_start + last.words - min_words + 1 == source_at
        ):
            found[-1] = last._replace(words=last.words + 1)
        else:
            found.append(Place(doc, at, min_words, source, source_at))
    return found


def places(docs, min_words, groups=None, num_references=0, *, only_against=False):
    """The places that a run lists: in later documents of the input."""
    return [
        place
        for place in stretches(docs, min_words, groups)
        if place.source != place.doc
        and place.doc >= num_references
        and (not only_against or place.source < num_references)
    ]


def num_places(docs, min_words, groups=None):
    """(document, position) of the first place of every window to the number of its places, that one included."""
    counts = defaultdict(lambda: 1)
    for (doc, _), first in first_places(docs, min_words, groups).items():
        if doc != first[0]:
            counts[first] += 1
    return counts


def words_of(texts, **options):
    return [oracles.words(text, **options) for text in texts]
