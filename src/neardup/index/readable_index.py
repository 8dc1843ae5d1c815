"""The part of an index that answers: queries, documents by id, counts."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError, NearDupError, UnknownIdError
from neardup.events import Warned, as_python_warning
from neardup.index import bulk
from neardup.index.facts import FactSource, read_payload
from neardup.index.filters import filter_of
from neardup.index.input_batches import Batch, batches_of, one_content
from neardup.index.result_types import (
    Match,
    PassageMatch,
    StoredDocument,
    match_of,
    summary_of_rejected,
)
from neardup.index.search import QueryOptions, check_query, search
from neardup.index.settings import (
    IndexSettings,
    check_current,
    check_id,
    for_reading,
    is_id,
    rebuilding,
)
from neardup.index.sketches import Sketches
from neardup.index.store import Store
from neardup.measures.registry import measure_of


class ReadableIndex:
    """What an open index answers, whether or not it can be written; `Index` adds how it is opened and changed."""

    _is_in_memory = False

    def __init__(self, store: Store, settings: IndexSettings, path: Path) -> None:
        """Wrap an open store; use `create` or `open` instead."""
        self._store = store
        self._settings = settings
        self.path = path

    def query(
        self,
        text: Any,
        *,
        k: int | Literal["all"] | None = 10,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
    ) -> list[Match]:
        """Return the most similar documents, best first.

        Args:
            text: as for `insert`.
            k: the maximum number of matches; "all" lists all.
            threshold: the minimum similarity; by default that of the index, and never below it.
            where: conditions on the payload: {"lang": "de", "day": {"gte": "2026-01-01"}, "site":
                ["a", "b"]}.
            since: only documents inserted after this time.
            containment: find documents that contain at least this share of the text, or of which
                the text contains this share, instead of similar ones; the index must have been
                created with containment=True.
        """
        asked = self._options(k, threshold, where, since, containment)
        return list(self._matches(text, asked))

    def matches(
        self,
        text: Any,
        *,
        k: int | None,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
    ) -> Generator[Match]:
        """Yield what `query` returns; payloads are parsed one by one, so that a server can stop at a limit of bytes."""
        return self._matches(text, self._options(k, threshold, where, since, containment))

    def matches_each(
        self,
        source: Any,
        *,
        k: int | None,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
    ) -> Iterator[list[Match]]:
        """Yield what `query` returns for every document of a source in turn; one that cannot be used is an error."""
        asked = self._options(k, threshold, where, since, containment)
        read, chosen = self._read(source, None, Config.of(self.config, strict=True), named=False)
        for hits in bulk.query_each(self._store, read, chosen, asked):
            yield [match_of(*hit, is_estimate=self._is_estimate) for hit in hits]

    def _matches(self, text: Any, asked: QueryOptions) -> Generator[Match]:
        sketches = self._sketch(text)
        hits = self._store.read(lambda view: search(view, sketches, asked, self._settings))[0]
        for hit in hits:
            yield match_of(*hit, is_estimate=self._is_estimate)

    def passages(
        self, text: str, *, min_words: int | None = None, where: Any = None
    ) -> list[PassageMatch]:
        """Return the documents that share passages with a text, those that share most of its words first.

        The index must store texts. Every document is found that shares a run of at least `min_words` words, compared as
        the words of shingles are.

        Args:
            text: as for `insert`.
            min_words: the least number of words of a passage; at least the words of a shingle. By default 8, or the
                words of a shingle if they are more.
            where: conditions on the payload, as for `query`.
        """
        from neardup.index import text_passages

        asked = text_passages.check_passages(self._settings, self.path, min_words, where)
        contents = one_content(text, self.config)
        found = self._store.read(
            lambda view: text_passages.find_passages(view, contents, asked, self._settings)
        )
        return [
            PassageMatch(
                doc_id=document.doc_id,
                passages=tuple(shared.passages()),
                share_text=shared.share_a,
                share_doc=shared.share_b,
                payload=read_payload(document),
                inserted=document.inserted,
                expires=document.expires,
            )
            for document, shared in found
        ]

    def query_many(  # noqa: PLR0913 - all but the first have a default
        self,
        source: Any,
        *,
        k: int | Literal["all"] | None = 10,
        threshold: float | None = None,
        where: Any = None,
        since: Any = None,
        containment: float | None = None,
        ids: Sequence[Any] | None = None,
        config: Config | None = None,
        on_rejected: Callable[[str, str], object] | None = None,
    ) -> pa.Table:
        """Return the documents most similar to each document of a source: query_id, doc_id, similarity, rank.

        With `containment` also containment_query and containment_doc. The other arguments are those
        of `query` and `insert_many`. `on_rejected` is called with the location and the reason of every
        rejected row, after the queries; without it, rejected rows are a Python warning.
        """
        asked = self._options(k, threshold, where, since, containment)
        read, chosen = self._read(source, ids, config, named=False)
        rejected: list[tuple[str, str]] = []
        table = bulk.query_many(self._store, read, chosen, asked, rejected)
        if rejected and on_rejected is None:
            as_python_warning(Warned(summary_of_rejected(rejected), is_urgent=True))
        elif on_rejected is not None:
            for location, reason in rejected:
                on_rejected(location, reason)
        return table

    def best_matches(self, contents: pa.Array, *, threshold: float) -> bulk.BestMatches:
        """Return the most similar document for each of `contents` that has one, as a run needs it."""
        return self._store.read(
            lambda view: bulk.best_matches(view, contents, threshold, self._settings)
        )

    def check_answers(self, config: Config) -> None:
        """Raise if the index cannot be used by a run with these settings."""
        if self._is_estimate:
            raise ConfigError(
                f"the index {self.path} stores signatures only",
                hint="create it with store='shingles'",
            )
        mine, theirs = (
            f"{settings.measure} {measure_of(settings).signature_format(settings)}"
            for settings in (self.config, config)
        )
        if mine != theirs:
            if self.config.separates_invisible:
                hint = f"if the settings are the same, build the index again: {rebuilding(self._settings, self.path)}"
            else:
                hint = "run with the settings that the index was created with"
            raise ConfigError(
                f"the index {self.path} has signatures {mine}, but those of the run are {theirs}",
                hint=hint,
            )
        self._options(None, config.threshold)

    def get(self, doc_id: str | int) -> StoredDocument:
        """Return a document by its id or alias, with its text if the index stores texts; raise if it does not exist."""
        name = check_id(doc_id)
        found = self.get_many([name])
        if not found:
            raise unknown(name)
        return found[name]

    def get_many(self, ids: str | int | Iterable[str | int]) -> dict[str, StoredDocument]:
        """Return the documents with these ids or aliases, by id or alias; those that do not exist are absent."""
        wanted = wanted_ids(ids, "get_many(['a', 'b'])")
        return self._store.read(lambda view: bulk.get_many(view, wanted))

    def documents_after(
        self, number: int, *, most: int, max_characters: int
    ) -> tuple[list[StoredDocument], int | None]:
        """Return the first documents above a number in insertion order, and the number of the last.

        At most `most`, or one whose text exceeds `max_characters`. The number is None if no
        document follows: a server lists an index page by page, each from one commit.
        """
        return self._store.read(
            lambda view: bulk.documents_after(view, number, most, max_characters)
        )

    def counts(self) -> dict[str, int]:
        """Return the numbers of documents, aliases, segments, unflushed documents and, since it was opened, merges."""
        counted: dict[str, int] = self._store.read(lambda view: view.count())
        return counted | {"merges": self._store.num_merges}

    def count(self, *, where: Any = None) -> int:
        """Return the number of documents; with `where`, of those whose payload meets the conditions, as for `query`."""
        is_requested = filter_of(where, None)
        if is_requested is None:
            return len(self)
        return self._store.read(lambda view: sum(1 for _ in bulk.matching(view, is_requested)))

    def aliases(self) -> dict[str, str]:
        """Return every alias with the id of its document, in insertion order of the documents."""
        return self._store.read(bulk.aliases)

    def ids(self) -> Iterator[str]:
        """Iterate over the ids of all documents, in insertion order."""
        return iter(
            self._store.read(lambda view: [document.doc_id for document in view.documents()])
        )

    def known_ids(self, ids: Sequence[str | int]) -> list[str]:
        """Return those of `ids` that exist, as documents or aliases."""
        wanted = [doc_id if isinstance(doc_id, str) else check_id(doc_id) for doc_id in ids]
        return list(self._store.read(lambda view: view.numbers_of(wanted)))

    def __len__(self) -> int:
        return self._store.read(lambda view: int(view.count()["documents"]))

    def __repr__(self) -> str:
        config = self.config
        what = f"{config.measure}, threshold {config.threshold:g}"
        where = "in memory" if self._is_in_memory else self.path
        try:
            num_documents = len(self)
        except (NearDupError, OSError):  # closed, or damaged
            return f"<Index {where}: {what}>"
        return f"<Index {where}: {num_documents:,} document{'s'[: num_documents != 1]}, {what}>"

    def __contains__(self, doc_id: object) -> bool:
        if not is_id(doc_id):
            return False
        name = check_id(doc_id)
        return bool(self._store.read(lambda view: view.numbers_of([name])))

    @property
    def config(self) -> Config:
        """The settings."""
        return self._settings.config

    @property
    def plan(self) -> Any:
        """The bands and rows, and what they promise."""
        return self._settings.plan

    @property
    def _is_estimate(self) -> bool:
        return self._settings.store == "signature"

    def _sketch(self, text: Any) -> Sketches:
        return bulk.sketch_batch(one_content(text, self.config), self._settings)

    def _read(
        self,
        source: Any,
        ids: Any,
        config: Config | None,
        *,
        named: bool,
        payload: Any = "",
        expires: Any = "",
    ) -> tuple[Iterator[Batch], IndexSettings]:
        if named:
            check_current(self._settings, self.path)
        chosen = self._settings._replace(config=for_reading(self.config, config or self.config))
        facts = FactSource(payload, expires, chosen.config)
        return batches_of(source, chosen.config, ids=ids, named=named, facts=facts), chosen

    def _options(self, k: Any, *others: Any) -> QueryOptions:
        return check_query(self._settings, self.path, k, *others)


def wanted_ids(ids: Any, example: str) -> list[str]:
    """Return one id or several as a list; raise if they cannot be ids."""
    if isinstance(ids, (str, Integral)):
        return [check_id(ids)]
    if not isinstance(ids, Iterable):
        raise ConfigError(f"`ids` must be an id or several, got {ids!r}", hint=example)
    return [check_id(doc_id) for doc_id in ids]


def unknown(doc_id: str) -> UnknownIdError:
    """Return the error for an id that does not exist."""
    return UnknownIdError(
        f"the index has no document {doc_id!r}", hint="`neardup index export` lists all ids"
    )
