"""The data of a report in one file: a sample of clusters with their texts that fits the size limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from neardup.jobs.sources import Sources
from neardup.measures.base import mix
from neardup.web import document_texts
from neardup.web.document_texts import Gathered
from neardup.web.evidence import hunks_of, shared_by_all
from neardup.web.other_columns import OtherColumns
from neardup.web.overview import overview, overview_of_pairs, review_of, sources_of
from neardup.web.page import pack
from neardup.web.pairs_view import PairsView
from neardup.web.run_view import RunView

I64 = npt.NDArray[np.int64]

# How many clusters a file shows: the largest, and as many drawn by a hash of the row.
MAX_LARGEST: Final = 500
MAX_DRAWN: Final = 500
# Members of a cluster in a file: the most similar and the least similar ones.
MAX_MEMBERS: Final = 20
MAX_ALONE: Final = 100
# How many pairs of a list a file shows, the most similar ones.
MAX_PAIRS: Final = 2000
# Of the passages of a pair, a file lists those with the most words.
MAX_PASSAGES: Final = 100
# The most documents in the heat map of a cluster, which compares every pair.
HEAT_MAP: Final = range(4, 21)
_CLUSTER_SHARES: Final = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01, 0.0)
# The page shows fewer clusters before it shows fewer characters than this of each text.
_MIN_CUT: Final = 2_000
_WHOLE: Final = 1 << 40
# Bytes of JSON for a byte of the page, and how full a page is filled.
_USUAL_COMPRESSION: Final = 3
_FULL: Final = 0.9
_MAX_TRIES: Final = 6
_MAX_OF_ID: Final = 1_000
# Texts are stored as numbers of pieces, because near-duplicates share most of them.
_PIECE: Final = re.compile(r"[^\n]{0,40}[^\n.;!?]{0,400}(?:[.;!?]+ ?|\n+|\Z|)")


class _Sample(NamedTuple):
    """What a file shows: documents without duplicates, by key; clusters, pairs and removals to judge, by number."""

    largest: I64
    drawn: I64
    alone: I64
    pairs: I64
    judged: I64

    @property
    def clusters(self) -> I64:
        return np.concatenate([self.largest, self.drawn])

    def share(self, part: float) -> _Sample:
        return _Sample(*(numbers[: round(numbers.size * part)] for numbers in self))


def page_data(run: RunView, limit: int, *, has_texts: bool = True, by: str | None = None) -> str:
    """Return the data of a page, packed, of at most `limit` bytes if the overview alone is not longer."""
    sample = _draw(run)
    if has_texts:
        absent = document_texts.why_absent(run)
    else:
        absent = "this report was written without texts"
    shown = [_shown(run, number) for number in sample.clusters]
    if isinstance(run, PairsView):
        shown += [run.pairs.keys_a[sample.pairs], run.pairs.keys_b[sample.pairs]]
    review = review_of(run)
    if review is not None:
        shown += [np.array(row[:2], np.int64) for row in review["removals"]]
        sample = sample._replace(judged=np.arange(len(review["removals"])))
    wanted = np.unique(np.concatenate([*shown, sample.alone]))
    texts = None
    if absent is None:
        texts = document_texts.gather(run, wanted.astype(np.int64))
    sources = sources_of(run, by)
    if isinstance(run, PairsView):
        info = overview_of_pairs(run)
    else:
        removed_bytes = None if texts is None else texts.removed_bytes
        info = overview(run, removed_bytes=removed_bytes, sources=sources)
    for row in info["largest"]:
        row["id"] = _cut_id(row["id"])
        row["weakest_id"] = _cut_id(row["weakest_id"])
    fixed = _FixedParts(info, absent, None, {}, {}, {}, _passages(run, sample.pairs), sources)
    if texts is not None:
        other = OtherColumns(run)
        info["columns_note"] = other.note
        # Ascending, so that a file is read once.
        columns = {key: other.of(key) for key in wanted.tolist()}
        matrices, shared = _compared_clusters(run, sample.clusters, texts)
        fixed = fixed._replace(texts=texts, columns=columns, matrices=matrices, shared=shared)
    writer = _PageWriter(run, fixed)
    data = ""
    for part in _CLUSTER_SHARES:
        data, is_enough = writer.fit(sample.share(part), limit, is_last=part == 0)
        if is_enough:
            break
    return data


def _cut_id(doc_id: str) -> str:
    """Cut a very long id, which the page shows cut anyway; the table of documents has the whole one."""
    if len(doc_id) <= _MAX_OF_ID:
        return doc_id
    return f"{doc_id[: _MAX_OF_ID // 2]}…{doc_id[-_MAX_OF_ID // 2 :]}"


def _draw(run: RunView) -> _Sample:
    no_rows = np.empty(0, np.int64)
    if isinstance(run, PairsView):
        shown = np.arange(min(MAX_PAIRS, run.pairs.similarities.size))
        return _Sample(no_rows, no_rows, no_rows, shown, no_rows)
    clusters = run.clusters
    by_size = np.lexsort((clusters.keys, -clusters.sizes))
    rest = by_size[MAX_LARGEST:]
    drawn = rest[np.argsort(mix(clusters.keys[rest].astype(np.uint64)), kind="stable")[:MAX_DRAWN]]
    keys = run.document_keys
    if keys is None:
        return _Sample(by_size[:MAX_LARGEST], drawn, no_rows, no_rows, no_rows)
    single = np.setdiff1d(keys, np.concatenate([clusters.keys, run.removals.keys]))
    alone = single[np.argsort(mix(single.astype(np.uint64)), kind="stable")[:MAX_ALONE]]
    return _Sample(by_size[:MAX_LARGEST], drawn, alone, no_rows, no_rows)


def shown_members(members: I64, most: int = MAX_MEMBERS) -> I64:
    """Return the members of a cluster that are shown: all, or the most similar and the least similar ones."""
    if members.size <= most:
        return members
    num_either = most // 2
    return np.concatenate([members[:num_either], members[members.size - num_either :]])


def _shown(run: RunView, number: int) -> I64:
    """The keys of the documents of a cluster that are shown, the kept one first."""
    members = shown_members(run.clusters.members(number))
    keys: I64 = np.r_[run.clusters.keys[number], run.removals.keys[members]]
    return keys


def _compared_clusters(
    run: RunView, numbers: I64, texts: Gathered
) -> tuple[dict[int, list[float]], dict[int, dict[str, Any]]]:
    """By key of a cluster: the similarities of every two documents, if there are few, and what all shown ones share."""
    matrices: dict[int, list[float]] = {}
    shared: dict[int, dict[str, Any]] = {}
    config = run.report.config
    compared = document_texts.ComparedTexts(run.report)
    for number in numbers.tolist():
        keys = _shown(run, number).tolist()
        if not all(key in texts.contents for key in keys):
            continue
        contents = [texts.contents[key] for key in keys]
        groups = [texts.groups[key] for key in keys]
        cluster = int(run.clusters.keys[number])
        shared[cluster] = shared_by_all(contents, groups, compared, config)
        if len(keys) in HEAT_MAP and config.measure == "jaccard":
            matrices[cluster] = compared.similarities_among(contents, groups)
    return matrices, shared


def _passages(run: RunView, numbers: I64) -> list[dict[str, Any]]:
    """The passages of some pairs of a list."""
    if not isinstance(run, PairsView):
        return []
    found = [run.passages(number, MAX_PASSAGES) for number in numbers.tolist()]
    return [passages._asdict() for passages in found if passages is not None]


class _FixedParts(NamedTuple):
    """The parts of a page that do not depend on its sample.

    absent: why there are no texts; matrices, shared: by key of a cluster, its heat map and what all its members share;
    passages: of every drawn pair, in their order; none if the list has no passages;
    sources: those that the page counts.
    """

    info: dict[str, Any]
    absent: str | None
    texts: Gathered | None
    columns: dict[int, dict[str, str] | None]
    matrices: dict[int, list[float]]
    shared: dict[int, dict[str, Any]]
    passages: list[dict[str, Any]]
    sources: Sequence[Sources]


class _PageWriter:
    """Writes samples of a run as pages, with as much of each text as fits."""

    def __init__(self, run: RunView, fixed: _FixedParts) -> None:
        self._run = run
        self._fixed = fixed
        texts = {} if fixed.texts is None else fixed.texts.texts
        self._pieces = Pieces({key: text.text for key, text in texts.items()})
        self._hunks: dict[tuple[int, int], dict[str, Any]] = {}

    def fit(self, sample: _Sample, limit: int, *, is_last: bool) -> tuple[str, bool]:
        """Return the page of a sample, and whether it fits with enough of each text."""
        bare, keys = self._encode(sample, 0)
        data = pack(bare)
        if self._fixed.texts is None or len(data) > limit:
            return data, len(data) <= limit
        found = data, is_last
        # How well texts compress is not known before it is tried.
        room = int(limit * _USUAL_COMPRESSION)
        for _ in range(_MAX_TRIES):
            cut = self._pieces.cut_for(keys, room - len(bare))
            if cut < _MIN_CUT and not (is_last and cut):
                return found
            page, _ = self._encode(sample, cut)
            data = pack(page)
            if len(data) <= limit:
                found = data, True
            if len(data) <= limit and (cut == _WHOLE or len(data) > _FULL * limit):
                return found
            room = int(len(page) * (1 + _FULL) / 2 * limit / len(data))
        return found

    def _encode(self, sample: _Sample, cut: int) -> tuple[bytes, list[int]]:
        """Return the JSON of a sample, and the documents in it."""
        run = self._run
        fixed = self._fixed
        clusters = run.clusters
        documents = _Documents(run, fixed, self._pieces, cut)
        listed = []
        compared = []
        for number in sample.clusters.tolist():
            keys = _shown(run, number).tolist()
            for key in keys:
                documents.add(key)
            compared += [(keys[0], key) for key in keys[1:]]
            listed.append(
                [
                    int(clusters.keys[number]),
                    int(clusters.sizes[number]),
                    float(clusters.weakest[number]),
                    keys,
                ]
            )
        for key in sample.alone.tolist():
            documents.add(key)
        review = fixed.info["review"]
        if review is not None:
            # Their order is that of a hash, so the first ones are a sample too.
            review = review | {"removals": review["removals"][: sample.judged.size]}
        for kept, key, _ in review["removals"] if review else ():
            documents.add(kept)
            documents.add(key)
            compared.append((kept, key))
        pairs = []
        if isinstance(run, PairsView):
            columns = [run.pairs.keys_a, run.pairs.keys_b, run.pairs.similarities]
            pairs = list(zip(*(column[sample.pairs].tolist() for column in columns), strict=True))
            for key in (key for pair in pairs for key in pair[:2]):
                documents.add(key)
            compared += [(min(a, b), max(a, b)) for a, b, _ in pairs]
        info = fixed.info | {
            "review": review,
            "sample": {
                "largest": int(sample.largest.size),
                "drawn": int(sample.drawn.size),
                "alone": int(sample.alone.size),
                "pairs": int(sample.pairs.size),
                "members": MAX_MEMBERS,
                "documents": len(documents.columns["key"]),
            },
            "texts": {
                "state": "here" if fixed.absent is None else "absent",
                "reason": fixed.absent,
            },
        }
        shown = [row[0] for row in listed]
        data = {
            "info": info,
            "clusters": listed,
            "pairs": pairs,
            # Of every pair, if the list has them.
            "passages": fixed.passages[: sample.pairs.size],
            "documents": documents.columns,
            "matrices": {str(key): fixed.matrices[key] for key in shown if key in fixed.matrices},
            "shared": {str(key): fixed.shared[key] for key in shown if key in fixed.shared},
            "hunks": self._hunks_of(compared, documents.not_whole) if cut else [],
            "pieces": list(documents.used),
            "names": run.files,
        }
        return msgspec.json.encode(data), documents.columns["key"]

    def _hunks_of(self, pairs: list[tuple[int, int]], not_whole: set[int]) -> list[dict[str, Any]]:
        """What differs between the texts of each pair of which one is not shown whole."""
        found = []
        contents = {} if self._fixed.texts is None else self._fixed.texts.contents
        # A removal to judge may be of a cluster that is shown too.
        for pair in dict.fromkeys(pairs):
            if not_whole.isdisjoint(pair) or not contents.keys() >= set(pair):
                continue
            if pair not in self._hunks:
                self._hunks[pair] = hunks_of(*(contents[key] for key in pair))
            found.append({"pair": pair} | self._hunks[pair])
        return found


class Pieces:
    """Texts cut into pieces, mostly sentences or lines, so that what near-duplicates share is stored once."""

    def __init__(self, texts: dict[int, str]) -> None:
        self._numbers: dict[str, int] = {}
        self._of: dict[int, I64] = {}
        self._starts: dict[int, I64] = {}
        for key, text in texts.items():
            found = [piece for piece in _PIECE.findall(text) if piece]
            numbers = [self._numbers.setdefault(piece, len(self._numbers)) for piece in found]
            self._of[key] = np.array(numbers, np.int64)
            self._starts[key] = np.cumsum([0, *map(len, found)])[:-1]
        self._texts = list(self._numbers)
        self._sizes = np.array([len(msgspec.json.encode(piece)) for piece in self._texts])

    def cut_for(self, keys: Sequence[int], room: int) -> int:
        """Return how many characters of each text fit into `room` bytes."""
        known = [key for key in keys if key in self._of]
        if not known:
            return 0
        numbers = np.concatenate([self._of[key] for key in known])
        starts = np.concatenate([self._starts[key] for key in known])
        firsts = np.full(len(self._texts), _WHOLE)
        np.minimum.at(firsts, numbers, starts)
        is_used = firsts < _WHOLE
        # A number takes up to seven digits and a comma, and a piece also a comma.
        positions = np.concatenate([starts, firsts[is_used]])
        costs = np.concatenate([np.full(starts.size, 8), self._sizes[is_used] + 1])
        order = np.argsort(positions, kind="stable")
        too_much = int(np.searchsorted(np.cumsum(costs[order]), room, side="right"))
        if too_much == positions.size:
            return _WHOLE
        return int(positions[order[too_much]])

    def beginning(self, key: int, cut: int) -> tuple[list[str], bool]:
        """Return the pieces of a text that begin before `cut`, and whether these are all."""
        num_pieces = int(np.searchsorted(self._starts[key], cut))
        return [
            self._texts[number] for number in self._of[key][:num_pieces]
        ], num_pieces == self._of[key].size


class _Documents:
    """The documents of a file, by column; a text is a list of numbers of pieces."""

    def __init__(self, run: RunView, fixed: _FixedParts, pieces: Pieces, cut: int) -> None:
        told_of_each = "key id file row bytes shingles digest text is_whole behind kept similarity columns cells"
        names = told_of_each.split()
        self.columns: dict[str, list[Any]] = {name: [] for name in names}
        self.not_whole: set[int] = set()
        self.used: dict[str, int] = {}
        self._run = run
        self._texts = fixed.texts
        self._pieces = pieces
        self._cut = cut
        self._other_columns = fixed.columns
        self._sources = fixed.sources
        self._known: set[int] = set()
        self._files = {name: at for at, name in enumerate(run.files)}

    def add(self, key: int) -> None:
        """Add a document once."""
        if key in self._known:
            return
        self._known.add(key)
        run = self._run
        at = self._run.removal(key)
        location = run.location(key)
        text = None if self._texts is None else self._texts.texts.get(key)
        numbers = None
        is_whole = False
        behind = 0
        if text is not None:
            shown, is_shown = self._pieces.beginning(key, self._cut)
            numbers = [self.used.setdefault(piece, len(self.used)) for piece in shown]
            is_whole = text.is_whole and is_shown
            if not is_whole:
                self.not_whole.add(key)
                num_words = self._texts.num_words[key] if self._texts else 0
                behind = num_words - document_texts.count_words("".join(shown).encode())
        values = {
            "key": key,
            "id": run.id(key),
            "file": None if location.file is None else self._files[location.file],
            "row": location.row,
            "bytes": text and text.num_bytes,
            "shingles": self._texts.num_shingles.get(key) if self._texts is not None else None,
            "digest": text and text.digest,
            "text": numbers,
            "is_whole": is_whole,
            # Words that stand behind what is shown.
            "behind": behind,
            "kept": None if at is None else int(run.removals.kept_keys[at]),
            "similarity": None if at is None else float(run.removals.similarities[at]),
            "columns": self._other_columns.get(key),
            # Of a removed document, for each kind of sources, its own and that of the kept document.
            "cells": None
            if at is None
            else [[int(one.removed_codes[at]), int(one.kept_codes[at])] for one in self._sources],
        }
        for name, value in values.items():
            self.columns[name].append(value)
