"""Answers of the server about a finished run: all of it, not a sample."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.config.checks import SET_MEASURES
from neardup.errors import DataError
from neardup.report import Report
from neardup.web import document_texts
from neardup.web.evidence import hunks_of, shared_by_all
from neardup.web.other_columns import OtherColumns
from neardup.web.overview import overview, sources_of
from neardup.web.page_data import HEAT_MAP, shown_members
from neardup.web.run_view import RunView, position_of
from neardup.web.text_store import TextStore
from neardup.web.word_index import Query

I64 = npt.NDArray[np.int64]
MAX_FOUND: Final = 200
# Characters of a text that lists of documents quote.
EXCERPT: Final = 160
# Members of a cluster that are shown: the most similar and the least similar ones.
MAX_SHOWN: Final = 200
# Texts of more bytes in total are not compared again while a user waits: comparing this many takes
# about 0.2 s.
_MAX_COMPARED: Final = 24 << 20
# Aligning texts, or finding their words, takes longer.
_MAX_ALIGNED: Final = 4 << 20


class UnknownError(DataError):
    """There is no such document, cluster or pair."""


class ServedRun:
    """A finished run with its texts."""

    kind = "run"
    _cells: Sequence[npt.NDArray[np.int8]] = ()

    def __init__(self, report: Report) -> None:
        self._run = self._view(report)
        self._texts = TextStore(self._run)
        self._config = document_texts.alone(report.config)
        self._compared = document_texts.ComparedTexts(report)
        self._overview = self._about(report)
        pa.default_memory_pool().release_unused()
        self._orders: dict[str, I64] = {}
        self._matched: tuple[tuple[str, int], npt.NDArray[np.bool_]] | None = None
        self._columns = OtherColumns(self._run)

    def _view(self, report: Report) -> RunView:
        return RunView(report)

    def _about(self, report: Report) -> dict[str, Any]:
        # From a copy, so that the stored pairs, which only the overview needs, are released.
        run = RunView(dataclasses.replace(report))
        sources = sources_of(run)
        # As small as positions among 50 names.
        self._cells = [
            np.stack([one.removed_codes, one.kept_codes]).astype(np.int8) for one in sources
        ]
        return overview(run, sources=sources)

    def start(self) -> None:
        """Start to read and index the texts in the background."""
        self._texts.read_in_background()

    def close(self) -> None:
        """Delete the temporary copy of the texts."""
        self._texts.close()

    def info(self) -> dict[str, Any]:
        """Return the overview."""
        size = self._overview["bytes"] | {"removed": self._texts.removed_bytes}
        about = {
            "sample": None,
            "bytes": size,
            "texts": self._texts.progress(),
            "columns_note": self._columns.note,
        }
        return self._overview | about

    def clusters(
        self, *, offset: int, limit: int, sort: str, search: str, cell: str = ""
    ) -> dict[str, Any]:
        """Return a range of the sorted clusters.

        search: filters them by the id or the words of the kept document; cell: by a removed document, as two sources.
        """
        order = self._order(sort)
        if cell:
            order = order[self._with_cell(cell)[order]]
        if search:
            order = order[self._matching(search, self._texts.num_indexed)[order]]
        shown = order[offset : offset + limit].tolist()
        return {"total": int(order.size), "rows": list(map(self._cluster, shown))}

    def _with_cell(self, cell: str) -> npt.NDArray[np.bool_]:
        """Which clusters have a removed document of a source, because of one of another: "kind/source/kept source"."""
        kind, source, kept_source = map(int, cell.split("/"))
        if kind >= len(self._cells):
            raise UnknownError(f"there are no sources {kind}", hint="/v1/info lists them")
        removed, kept = self._cells[kind]
        clusters = self._run.clusters
        is_there = ((removed == source) & (kept == kept_source))[clusters.order]
        found: npt.NDArray[np.bool_] = np.add.reduceat(is_there, clusters.starts[:-1]) > 0
        return found

    def _cluster(self, number: int) -> dict[str, Any]:
        clusters = self._run.clusters
        key = int(clusters.keys[number])
        return {
            "key": key,
            "id": self._cluster_ids[number].as_py(),
            "size": int(clusters.sizes[number]),
            "weakest": float(clusters.weakest[number]),
            "excerpt": _excerpt(self._texts.beginning(key)),
        }

    @functools.cached_property
    def _cluster_ids(self) -> pa.Array:
        clusters = self._run.clusters
        return self._run.removals.kept_ids.take(pa.array(clusters.order[clusters.starts[:-1]]))

    def _order(self, sort: str) -> I64:
        if sort not in self._orders:
            clusters = self._run.clusters
            name = sort.removeprefix("-")
            if name == "id":
                values = pc.rank(self._cluster_ids, tiebreaker="dense").to_numpy().astype(np.int64)
            else:
                if name == "size":
                    values = -clusters.sizes
                else:
                    values = clusters.weakest
            self._orders[sort] = np.lexsort((clusters.keys, -values if sort != name else values))
        return self._orders[sort]

    def _matching(self, search: str, num_indexed: int) -> npt.NDArray[np.bool_]:
        """Which clusters have a kept document that matches; the last answer is kept, for the next rows of the list."""
        if self._matched is None or self._matched[0] != (search, num_indexed):
            is_named = pc.match_substring(self._cluster_ids, search, ignore_case=True).to_numpy(
                zero_copy_only=False
            )
            by_words = self._texts.find(self._texts.parse(search))
            self._matched = (
                (search, num_indexed),
                is_named | np.isin(self._run.clusters.keys, by_words),
            )
        return self._matched[1]

    def cluster(self, key: int) -> dict[str, Any]:
        """Return a cluster with its members, and the heat map of a small one."""
        clusters = self._run.clusters
        number = clusters.find(key)
        if number is None:
            raise UnknownError(f"there is no cluster {key}", hint="/v1/clusters lists all")
        members = shown_members(clusters.members(number), MAX_SHOWN)
        keys = [key, *self._run.removals.keys[members].tolist()]
        return {
            "key": key,
            "size": int(clusters.sizes[number]),
            "weakest": float(clusters.weakest[number]),
            "documents": [self._document(one, has_text=one == key) for one in keys],
            "matrix": self._matrix(keys),
            "shared": self._shared(keys),
        }

    def _contents(self, keys: list[int], most_bytes: int = _MAX_COMPARED) -> list[bytes] | None:
        """The whole texts of some documents; None if one is missing, or if together they are too long to compare."""
        sizes = [self._texts.num_bytes(key) for key in keys]
        if None in sizes or sum(filter(None, sizes)) > most_bytes:
            return None
        return [content for content in map(self._texts.content, keys) if content is not None]

    def _matrix(self, keys: list[int]) -> list[float] | None:
        if len(keys) not in HEAT_MAP or self._config.measure != "jaccard":
            return None
        contents = self._contents(keys)
        if contents is None:
            return None
        return self._similarities(keys, contents)

    def _shared(self, keys: list[int]) -> dict[str, Any] | None:
        """What all members of a cluster share; None if they cannot be compared."""
        contents = self._contents(keys, _MAX_ALIGNED) if self._texts.state == "here" else None
        if contents is None:
            return None
        groups = [self._texts.group(key) for key in keys]
        return shared_by_all(contents, groups, self._compared, self._config)

    def _similarities(self, keys: list[int], contents: list[bytes]) -> list[float]:
        groups = [self._texts.group(key) for key in keys]
        return self._compared.similarities_among(contents, groups)

    def document(self, key: int) -> dict[str, Any]:
        """Return a document by key."""
        if not self._run.has_key(key) or self._is_no_document(key):
            raise UnknownError(
                f"there is no document {key}", hint="/v1/documents?search=... finds documents"
            )
        contents = self._contents([key])
        if contents is None:
            num_shingles = None
        else:
            num_shingles = self._compared.count_shingles(contents[0], self._texts.group(key))
        return self._document(key) | {"shingles": num_shingles}

    def _is_no_document(self, key: int) -> bool:
        if position_of(key, self._run.rejected_keys) is not None:
            return True
        return self._texts.state == "here" and self._texts.position(key) is None

    def _document(self, key: int, *, has_text: bool = True) -> dict[str, Any]:
        run = self._run
        at = self._run.removal(key)
        location = self._run.location(key)
        content = self._texts.content(key) if has_text else None
        text = None if content is None else document_texts.make_text(content)
        number = run.clusters.find(key)
        return {
            "key": key,
            "id": run.id(key),
            "file": location.file,
            "row": location.row,
            "bytes": text and text.num_bytes,
            "digest": text and text.digest,
            "is_whole": text is not None and text.is_whole,
            "behind": _words_behind(text, content),
            "kept": None if at is None else int(run.removals.kept_keys[at]),
            "similarity": None if at is None else float(run.removals.similarities[at]),
            "size": None if number is None else int(run.clusters.sizes[number]),
            "text": text and text.text,
        }

    def named(self, doc_id: str) -> dict[str, Any]:
        """Return the documents with an id."""
        keys = self._keys_of(pc.equal(self._run.document_ids, doc_id))[:MAX_FOUND].tolist()
        if not keys:
            raise UnknownError(
                f"no document is named {doc_id!r}", hint="/v1/documents?search=... finds documents"
            )
        return {"documents": [self.document(key) for key in keys]}

    @property
    def _own_keys(self) -> I64:
        """The keys of the documents of the input, without reference documents; none while blank rows hide them."""
        keys: I64 | None
        if self._texts.state == "here":
            keys = self._texts.keys
        else:
            keys = self._run.document_keys
        if keys is None:
            return np.empty(0, np.int64)
        return keys[max(0, keys.size - len(self._run.document_ids)) :]

    def _keys_of(self, found: pa.Array) -> I64:
        """The keys of the documents that a mask over all ids names."""
        own = self._own_keys
        keys: I64 = own[found.to_numpy(zero_copy_only=False)[: own.size]]
        return keys

    def search(self, wanted: str) -> dict[str, Any]:
        """Return documents with `wanted` in their id, or all its words in their text; one with that id comes first."""
        ids = self._run.document_ids
        query = self._texts.parse(wanted)
        num_indexed = self._texts.num_indexed
        own = self._own_keys
        has_wanted = pc.match_substring(ids, wanted, ignore_case=True)
        is_found = has_wanted.to_numpy(zero_copy_only=False)[: own.size].copy()
        by_words = self._texts.find(query)
        is_found[np.searchsorted(own, by_words[by_words >= own[:1]] if own.size else own)] = True
        found = own[is_found]
        named = self._keys_of(pc.equal(ids, wanted))
        others = np.setdiff1d(found[: MAX_FOUND + named.size], named)
        rows = []
        for key in np.r_[named, others][:MAX_FOUND].tolist():
            excerpt = _excerpt(self._texts.beginning(key), query)
            rows.append(self._document(key, has_text=False) | {"text": excerpt})
        return {
            "rows": rows,
            "total": int(found.size),
            "num_ids": own.size,
            "num_texts": num_indexed,
        }

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """Return two documents with their exact similarity."""
        one = self.document(a)
        other = self.document(b)
        similarity = None
        for first, second in ((one, other), (other, one)):
            if first["kept"] == second["key"]:
                similarity = first["similarity"]
        if similarity is None and self._config.measure in SET_MEASURES:
            contents = self._contents([a, b])
            if contents is None:
                similarity = None
            else:
                similarity = self._similarities([a, b], contents)[0]
        has_columns = self._texts.state != "absent"
        one["columns"], other["columns"] = (
            self._columns.of(key) if has_columns else None for key in (a, b)
        )
        return {"a": one, "b": other, "similarity": similarity, "hunks": self._hunks(one, other)}

    def _hunks(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
        """What differs between two texts of which one is not shown whole."""
        if one["is_whole"] and other["is_whole"]:
            return None
        contents = self._contents([one["key"], other["key"]], _MAX_ALIGNED)
        return None if contents is None else hunks_of(*contents)


def _words_behind(text: document_texts.Text | None, content: bytes | None) -> int:
    """How many words of a text are not shown."""
    if text is None or content is None or text.is_whole:
        return 0
    shown = document_texts.count_words(text.text.encode())
    return document_texts.count_words(content) - shown


def _excerpt(beginning: str, query: Query | None = None) -> str:
    """Return a line of a text: around the first word of a query, or its first words."""
    if query:
        words = sorted((*query.words, *query.beginnings), key=len, reverse=True)
    else:
        words = []
    if words:
        found = re.search("|".join(map(re.escape, words)), beginning, re.IGNORECASE)
    else:
        found = None
    if found is None or found.start() < EXCERPT // 2:
        start = 0
    else:
        start = found.start() - EXCERPT // 4
    start = beginning.rfind(" ", 0, start) + 1 if start else 0
    stop = start + EXCERPT
    if stop < len(beginning):
        # Not inside a word, unless it is a very long one.
        stop = max(
            beginning.rfind(" ", start + EXCERPT // 2, stop + 1),
            beginning.rfind("\n", start + EXCERPT // 2, stop + 1),
        )
        stop = stop if stop > 0 else start + EXCERPT
    quoted = " ".join(beginning[start:stop].split())
    before = "… " if start else ""
    behind = " …" if stop < len(beginning) else ""
    return f"{before}{quoted}{behind}"
