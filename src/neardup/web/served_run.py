"""What a server answers about a finished run: everything, not a sample."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.checks import SET_MEASURES
from neardup.errors import DataError
from neardup.report import Report
from neardup.web import document_texts
from neardup.web.other_columns import OtherColumns
from neardup.web.overview import overview
from neardup.web.page_data import HEAT_MAP, shown_members
from neardup.web.run_view import RunView
from neardup.web.text_store import SEARCHED, TextStore

I64 = npt.NDArray[np.int64]
MOST_FOUND: Final = 200
# Members of a cluster that are shown: the most similar and the least similar ones.
MOST_SHOWN: Final = 200
# A text of more bytes is not compared again while somebody waits.
_MOST_COMPARED: Final = 1 << 20


class UnknownError(DataError):
    """There is no such document, cluster or pair."""


class ServedRun:
    """A finished run, its texts, and the answers about them."""

    kind = "run"

    def __init__(self, report: Report) -> None:
        self._run = RunView(report)
        self._texts = TextStore(self._run)
        self._config = document_texts.alone(report.config)
        self._overview = overview(self._run)
        self._orders: dict[str, I64] = {}
        self._columns = OtherColumns(self._run)

    def start(self) -> None:
        """Begin to read the texts."""
        self._texts.read_in_background()

    def close(self) -> None:
        """Give up the texts."""
        self._texts.close()

    def info(self) -> dict[str, Any]:
        """Return the overview."""
        size = self._overview["bytes"] | {"removed": self._texts.removed_bytes}
        texts = {"state": self._texts.state, "reason": self._texts.reason}
        return self._overview | {"sample": None, "bytes": size, "texts": texts}

    def clusters(self, *, offset: int, limit: int, sort: str, search: str) -> dict[str, Any]:
        """Return some clusters in an order, of those with `search` in id or first words."""
        order = self._order(sort)
        if search:
            order = order[self._matching(search)[order]]
        clusters, ids = self._run.clusters, self._cluster_ids
        rows = [
            {
                "key": int(clusters.keys[number]),
                "id": ids[number].as_py(),
                "size": int(clusters.sizes[number]),
                "weakest": float(clusters.weakest[number]),
                "head": self._head(int(clusters.keys[number])),
            }
            for number in order[offset : offset + limit].tolist()
        ]
        return {"total": int(order.size), "rows": rows}

    @functools.cached_property
    def _cluster_ids(self) -> pa.Array:
        clusters = self._run.clusters
        return self._run.removals.kept_ids.take(pa.array(clusters.order[clusters.starts[:-1]]))

    def _order(self, sort: str) -> I64:
        if sort not in self._orders:
            clusters, name = self._run.clusters, sort.removeprefix("-")
            if name == "id":
                values = pc.rank(self._cluster_ids, tiebreaker="dense").to_numpy().astype(np.int64)
            else:
                values = -clusters.sizes if name == "size" else clusters.weakest
            self._orders[sort] = np.lexsort((clusters.keys, -values if sort != name else values))
        return self._orders[sort]

    def _matching(self, search: str) -> npt.NDArray[np.bool_]:
        found = pc.match_substring(self._cluster_ids, search, ignore_case=True)
        if self._texts.state == "here":
            at = np.searchsorted(self._texts.keys, self._run.clusters.keys)
            is_there = at < self._texts.keys.size
            heads = self._texts.heads.take(pa.array(np.where(is_there, at, 0)))
            found = pc.or_(found, pc.and_(pa.array(is_there), pc.match_substring(heads, search, ignore_case=True)))
        which: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return which

    def _head(self, key: int) -> str:
        at = self._texts.position(key)
        return "" if at is None else " ".join(self._texts.heads[at].as_py().split())

    def cluster(self, key: int) -> dict[str, Any]:
        """Return a cluster with its members, and the heat map of a small one."""
        clusters = self._run.clusters
        number = clusters.find(key)
        if number is None:
            raise UnknownError(f"there is no cluster {key}", hint="/v1/clusters lists all")
        members = shown_members(clusters.members(number), MOST_SHOWN)
        keys = [key, *self._run.removals.keys[members].tolist()]
        return {
            "key": key,
            "size": int(clusters.sizes[number]),
            "weakest": float(clusters.weakest[number]),
            "documents": [self._document(one, has_text=at < HEAT_MAP.stop) for at, one in enumerate(keys)],
            "matrix": self._matrix(keys),
        }

    def _matrix(self, keys: list[int]) -> list[float] | None:
        if len(keys) not in HEAT_MAP or self._config.measure != "jaccard":
            return None
        contents = [content for content in map(self._texts.content, keys) if content is not None]
        if len(contents) < len(keys) or max(map(len, contents)) > _MOST_COMPARED:
            return None
        return document_texts.similarities_among(contents, self._config)

    def document(self, key: int) -> dict[str, Any]:
        """Return a document by key."""
        if not self._run.has_key(key) or self._is_no_document(key):
            raise UnknownError(f"there is no document {key}", hint="/v1/documents?search=... finds documents")
        return self._document(key)

    def _is_no_document(self, key: int) -> bool:
        at = int(np.searchsorted(self._run.rejected_keys, key))
        is_rejected = at < self._run.rejected_keys.size and self._run.rejected_keys[at] == key
        is_blank = self._texts.state == "here" and self._texts.position(key) is None
        return bool(is_rejected or is_blank)

    def _document(self, key: int, *, has_text: bool = True) -> dict[str, Any]:
        run, at, place = self._run, self._run.removal(key), self._run.place(key)
        content = self._texts.content(key) if has_text else None
        text = None if content is None else document_texts.make_text(content)
        number = run.clusters.find(key)
        return {
            "key": key,
            "id": run.id(key),
            "file": place.file,
            "row": place.row,
            "bytes": text and text.num_bytes,
            "shingles": None if content is None else document_texts.count_shingles(content, self._config),
            "digest": text and text.digest,
            "is_whole": text is not None and text.is_whole,
            "kept": None if at is None else int(run.removals.kept_keys[at]),
            "similarity": None if at is None else float(run.removals.similarities[at]),
            "size": None if number is None else int(run.clusters.sizes[number]),
            "text": text and text.text,
        }

    def named(self, doc_id: str) -> dict[str, Any]:
        """Return the documents with an id."""
        keys = self._keys_of(pc.equal(self._run.document_ids, doc_id))
        if not keys:
            raise UnknownError(f"no document is named {doc_id!r}", hint="/v1/documents?search=... finds documents")
        return {"documents": [self._document(key) for key in keys]}

    def _keys_of(self, found: pa.Array) -> list[int]:
        """The keys of the first documents, in input order, that a mask over all documents names."""
        keys = self._texts.keys if self._texts.state == "here" else self._run.document_keys
        if keys is None:
            return []
        own = keys[keys.size - len(found) :]  # those of --against come first, and are not in the table of clusters
        rows: list[int] = own[found.to_numpy(zero_copy_only=False)[: own.size]][:MOST_FOUND].tolist()
        return rows

    def search(self, wanted: str) -> dict[str, Any]:
        """Return documents with words in their id or first words."""
        ids, is_here = self._run.document_ids, self._texts.state == "here"
        found = pc.match_substring(ids, wanted, ignore_case=True)
        if is_here and len(self._texts.heads) >= len(ids):
            heads = self._texts.heads.slice(len(self._texts.heads) - len(ids))
            found = pc.or_(found, pc.match_substring(heads, wanted, ignore_case=True))
        keys = self._keys_of(pc.equal(ids, wanted))
        keys += [key for key in self._keys_of(found) if key not in keys]
        rows = [self._document(key, has_text=False) | {"text": self._head(key)} for key in keys[:MOST_FOUND]]
        return {"rows": rows, "num_searched": len(ids), "is_text_searched": is_here, "characters": SEARCHED}

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """Return two documents with their exact similarity."""
        one, other = self.document(a), self.document(b)
        similarity = None
        for first, second in ((one, other), (other, one)):
            if first["kept"] == second["key"]:
                similarity = first["similarity"]
        contents = [content for content in map(self._texts.content, (a, b)) if content is not None]
        if similarity is None and len(contents) == 2 and self._config.measure in SET_MEASURES:
            similarity = document_texts.similarities_among(contents, self._config)[0]
        has_columns = self._texts.state != "absent"
        one["columns"], other["columns"] = (self._columns.of(key) if has_columns else None for key in (a, b))
        return {"a": one, "b": other, "similarity": similarity}
