"""Finding the documents of a store that are similar to queries, or contain them, and ranking them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from neardup.config import Config
from neardup.config.checks import as_count_or_all, as_float, check_real
from neardup.errors import ConfigError
from neardup.index.filters import filter_of
from neardup.index.segment import estimated_similarities
from neardup.index.settings import IndexSettings
from neardup.index.sketches import Sketches
from neardup.index.store import Candidates, Document, Shared, StoreView
from neardup.kernels import lookup
from neardup.kernels.similarity import Sets
from neardup.measures.base import F64, I64, concatenated, num_docs_of

# Queries answered per batch.
SPAN: Final = 1024
# More matches than any index has documents.
_MAX_MATCHES: Final = 1 << 40


class QueryOptions(NamedTuple):
    """The options of a query; least: the minimum similarity, or containment of the smaller in the larger."""

    k: int | None
    least: float
    is_requested: Callable[[Document], bool] | None = None
    is_containment: bool = False


def check_query(
    settings: IndexSettings,
    path: Path,
    k: Any,
    threshold: Any = None,
    where: Any = None,
    since: Any = None,
    containment: Any = None,
) -> QueryOptions:
    """Return the options of queries; raise if the index cannot answer them."""
    most = as_count_or_all("k", k)
    k = None if most is None else min(most, _MAX_MATCHES)
    if containment is None:
        return QueryOptions(
            k, _least_similarity(threshold, settings.config), filter_of(where, since)
        )
    if threshold is not None:
        raise ConfigError(
            "a query takes `threshold` or `containment`, not both", hint="leave one of them out"
        )
    if not settings.containment:
        raise ConfigError(
            f"the index {path} has no postings of shingles, which a query with `containment` needs",
            hint="create it with containment=True",
        )
    check_real("containment", containment, "in (0, 1]", 0 < as_float(containment) <= 1)
    return QueryOptions(k, float(containment), filter_of(where, since), is_containment=True)


def _least_similarity(threshold: Any, config: Config) -> float:
    if threshold is None:
        return config.threshold
    least = Config.of(threshold=threshold).threshold
    if least < config.threshold:
        raise ConfigError(
            f"`threshold` {least:g} is below that of the index, {config.threshold:g}: its bands would miss many"
            " documents in between",
            hint=f"create an index with threshold={least:g}",
        )
    return least


class Hit(NamedTuple):
    """A document that matches a query; with containment, the share of each in the other."""

    document: Document
    similarity: float
    containment_query: float | None = None
    containment_doc: float | None = None


class Lookup(Protocol):
    """Anything in which band keys can be looked up."""

    def look_up(
        self, asked: Sketches, threshold: float, min_agreement: int
    ) -> Iterator[Candidates]:
        """Find the documents that share a band key with each query."""


class FoundDocuments(NamedTuple):
    """Found pairs: a query, the number of a document, and how similar they are; the best of each query first.

    shares: the share of the query in the document, and of the document in the query, for
    containment.
    """

    queries: I64
    numbers: I64
    similarities: F64
    shares: F64 | None = None


def search(
    view: StoreView, queries: Sketches, options: QueryOptions, settings: IndexSettings
) -> list[list[Hit]]:
    """Return the best documents of every query."""
    if options.is_containment:
        found = find_contained(view, queries, options.least)
    else:
        found = find(view, queries, options.least, settings)
    return rank(view, found, queries.sizes.size, options.k, options.is_requested)


def find_contained(view: StoreView, queries: Sketches, least: float) -> FoundDocuments:
    """Find every document that shares at least `least` of the smaller set, exactly."""
    if not isinstance(queries.items, Sets):
        raise TypeError("containment is defined for sets only")
    nothing = np.empty(0, np.int64)
    parts = [Shared(nothing, nothing, nothing, nothing)]
    parts += view.count_shared(queries.items, least)
    shared = Shared(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    of_query = shared.counts / queries.sizes[shared.queries]
    of_document = shared.counts / shared.sizes
    similarities = np.maximum(of_query, of_document)
    order = np.lexsort(
        (shared.numbers, -np.minimum(of_query, of_document), -similarities, shared.queries)
    )
    return FoundDocuments(
        queries=shared.queries[order],
        numbers=shared.numbers[order],
        similarities=similarities[order],
        shares=np.stack([of_query, of_document], axis=1)[order],
    )


def find(
    view: Lookup, asked: Sketches, threshold: float, settings: IndexSettings
) -> FoundDocuments:
    """Find every document that shares a bucket with a query, passes the signature filter, and is similar."""
    ratio = threshold if settings.config.measure == "jaccard" else 0.0
    parts = [FoundDocuments(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for candidates in view.look_up(asked, ratio, _min_agreement(threshold, settings)):
        values = _similarities(asked, candidates, threshold, settings)
        is_found = values >= threshold
        numbers = candidates.numbers[candidates.docs[is_found]]
        parts.append(FoundDocuments(candidates.queries[is_found], numbers, values[is_found]))
    if len(parts) == 1:
        return parts[0]
    queries = np.concatenate([part.queries for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    similarities = np.concatenate([part.similarities for part in parts])
    order = np.lexsort((numbers, -similarities, queries))
    return FoundDocuments(queries[order], numbers[order], similarities[order])


def _min_agreement(threshold: float, settings: IndexSettings) -> int:
    """Return the least number of equal slots of a match: of the plan, or that of an estimate at the threshold."""
    num_slots = settings.config.num_perm
    if settings.layout.has_items or not settings.layout.has_slots:
        return int(settings.plan.min_agreement)
    return next(count for count in range(num_slots + 1) if count / num_slots >= threshold)


def _similarities(
    asked: Sketches, candidates: Candidates, threshold: float, settings: IndexSettings
) -> F64:
    if asked.items is None or candidates.sketches.items is None:
        left = asked.signatures[candidates.queries]
        right = candidates.sketches.signatures[candidates.docs]
        return estimated_similarities(left, right, settings.layout)
    values = np.empty(candidates.queries.size)
    lookup.verify_pairs(
        concatenated([asked.items, candidates.sketches.items]),
        np.concatenate([asked.signatures, candidates.sketches.signatures]),
        candidates.queries,
        candidates.docs + num_docs_of(asked.items),
        float(threshold),
        int(settings.plan.min_agreement),
        values,
    )
    return values


def rank(
    view: StoreView,
    found: FoundDocuments,
    num_queries: int,
    k: int | None,
    is_requested: Callable[[Document], bool] | None,
) -> list[list[Hit]]:
    """Return the k best documents of every query that still exist and pass its filters."""
    starts = np.searchsorted(found.queries, np.arange(num_queries + 1))
    ranked: list[list[Hit]] = [[] for _ in range(num_queries)]
    at = starts[:-1].copy()
    stops = starts[1:]
    numbers = found.numbers
    similarities = found.similarities
    step = found.numbers.size if k is None else max(k, 1)
    while (waiting := np.flatnonzero(at < stops)).size:
        spans = [
            (query, int(at[query]), int(min(at[query] + step, stops[query])))
            for query in waiting.tolist()
        ]
        wanted = np.unique(np.concatenate([numbers[first:stop] for _, first, stop in spans]))
        live = view.fetch(wanted.tolist())
        for query, first, stop in spans:
            hits = ranked[query]
            for found_at, number in enumerate(numbers[first:stop].tolist(), first):
                document = live.get(number)
                if document is None or not (is_requested is None or is_requested(document)):
                    continue
                shares = () if found.shares is None else found.shares[found_at].tolist()
                hits.append(Hit(document, float(similarities[found_at]), *shares))
            at[query] = stop
            if k is not None and len(hits) >= k:
                del hits[k:]
                at[query] = stops[query]
        step *= 4
    return ranked
