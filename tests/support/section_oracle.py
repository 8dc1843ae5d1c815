"""Repeated paragraphs and lines in plain Python. It imports nothing of neardup but other oracles."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from support import oracles


class Removed(NamedTuple):
    """A section that goes: document, first and last code point, line from 1, and the first section like it."""

    doc: int
    start: int
    end: int
    line: int
    words: int
    first_doc: int
    first_start: int
    similarity: float


class Section(NamedTuple):
    """Where a section of a text stands."""

    start: int
    end: int
    line: int


def lines_of(text):
    """Start and end of every line, without the line end."""
    found = []
    at = 0
    for number, line in enumerate(text.split("\n")):
        is_last = at + len(line) == len(text)
        if line or not is_last:
            content = line[:-1] if line.endswith("\r") and not is_last else line
            found.append(Section(at, at + len(content), number + 1))
        at += len(line) + 1
    return found


def sections_of(text, level):
    """The lines, or the paragraphs: runs of lines that are not blank."""
    lines = lines_of(text)
    if level == "line":
        return lines
    found = []
    is_open = False
    for line in lines:
        is_blank = all(
            character in oracles.WHITE_SPACE for character in text[line.start : line.end]
        )
        if is_open and not is_blank:
            found[-1] = found[-1]._replace(end=line.end)
        elif not is_blank:
            found.append(line)
        is_open = not is_blank
    return found


def without(text, sections, gone):
    """The text put together from the sections that stay: the gap behind each, and at the end that of the text."""
    stays = [at for at in range(len(sections)) if at not in gone]
    if not gone:
        return text
    if not stays:
        return None
    parts = [text[: sections[0].start]]
    for at, following in zip(stays, [*stays[1:], None], strict=True):
        parts.append(text[sections[at].start : sections[at].end])
        if following is not None:
            parts.append(text[sections[at].end : sections[at + 1].start])
    return "".join([*parts, text[sections[-1].end :]])


class Outcome(NamedTuple):
    """What goes, and what stays: texts, None for a document that goes."""

    removed: list[Removed]
    kept: list[str | None]


def remove(
    texts,
    level,
    *,
    min_words=8,
    per_cluster=1,
    keep="first",
    min_count=2,
    min_left=1,
    groups=None,
    num_references=0,
    only_against=False,
    threshold=1.0,
    size=5,
):
    """Remove what is repeated from all texts but the first `num_references`."""
    split = [sections_of(text, level) for text in texts]
    long = []
    for doc, sections in enumerate(split):
        for number, section in enumerate(sections):
            words = oracles.words(texts[doc][section.start : section.end])
            if len(words) >= min_words:
                long.append((doc, number, tuple(words)))
    group_of = [0 if groups is None else groups[doc] for doc, _, _ in long]
    if threshold == 1:
        clusters = _equal(long, group_of)
    else:
        clusters = _similar(
            long, group_of, texts, split, threshold, size, num_references, only_against
        )
    gone = {}
    for members in clusters.values():
        first = members[0][0]
        if len(members) < min_count or (only_against and long[first][0] >= num_references):
            continue
        for place, (at, similarity) in enumerate(members):
            if long[at][0] >= num_references and (keep == "none" or place >= per_cluster):
                gone[at] = first, similarity
    removed = []
    by_doc = defaultdict(dict)
    for at, (first, similarity) in sorted(gone.items()):
        doc, number, words = long[at]
        section = split[doc][number]
        first_doc, first_number, _ = long[first]
        first_start = split[first_doc][first_number].start
        if first in gone:
            first_doc = first_start = similarity = None
        removed.append(
            Removed(
                doc,
                section.start,
                section.end,
                section.line,
                len(words),
                first_doc,
                first_start,
                similarity,
            )
        )
        by_doc[doc][number] = len(words)
    kept = []
    for doc in range(num_references, len(texts)):
        left = len(oracles.words(texts[doc])) - sum(by_doc[doc].values())
        is_gone = by_doc[doc] and left < min_left
        kept.append(None if is_gone else without(texts[doc], split[doc], by_doc[doc]))
    return Outcome(removed, kept)


def _equal(long, group_of):
    """Clusters of equal sections by the first one; members with their similarity, in input order."""
    clusters = defaultdict(list)
    for at, (_, _, words) in enumerate(long):
        clusters[group_of[at], words].append((at, 1.0))
    return clusters


def _similar(long, group_of, texts, split, threshold, size, num_references, only_against):
    """Clusters of leaders among the sections, compared as documents."""
    sets = []
    for doc, number, _ in long:
        section = split[doc][number]
        sets.append(frozenset(oracles.shingles(texts[doc][section.start : section.end], size=size)))
    pairs = oracles.shares_group(oracles.true_pairs(sets, threshold), group_of)
    references = [at for at, (doc, _, _) in enumerate(long) if doc < num_references]
    pairs = oracles.without_references(pairs, references)
    if only_against:
        pairs = oracles.across(pairs, len(references))
    clusters = {at: [(at, 1.0)] for at in range(len(long))}
    for at, (kept, similarity) in sorted(oracles.leaders(range(len(long)), pairs).items()):
        clusters[kept].append((at, similarity))
    return clusters
