"""A random walk over every operation, against a dict and exact similarities by plain sets."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from neardup import Index
from neardup.errors import DataError
from neardup.index import folder_view, merge_thread

WORDS = [f"w{number}" for number in range(14)]
THRESHOLD = 0.5
IDS = st.sampled_from([f"id{number}" for number in range(12)])
# With one row per band and a band for every slot, similar documents share a bucket except with
# probability 2**-128.
SETTINGS = {
    "size": 1,
    "threshold": THRESHOLD,
    "bands": 128,
    "rows": 1,
    "signature_filter": False,
    "containment": True,
}
TEXTS = st.lists(st.sampled_from(WORDS), min_size=0, max_size=10).map(" ".join)
PAYLOADS = st.none() | st.fixed_dictionaries(
    {"lang": st.sampled_from(["de", "en"]), "day": st.integers(0, 5)}
)
NOW = time.time()
PAST = 1.0
SOON = NOW + 60
FUTURE = 4e9
EXPIRES = st.sampled_from([None, None, PAST, SOON, FUTURE])
ROWS = st.lists(st.tuples(IDS, TEXTS, PAYLOADS, EXPIRES), max_size=5)


class Clock:
    """The time that the index reads, which a rule puts forward."""

    now = NOW

    def __call__(self):
        return self.now


CLOCK = Clock()


def similarity(one, two):
    first = set(one.split())
    second = set(two.split())
    union = len(first | second)
    return len(first & second) / union if first and second else 0.0


def containments(one, two):
    """The share of the first in the second, and of the second in the first."""
    first = set(one.split())
    second = set(two.split())
    return tuple(len(first & second) / len(words) if words else 0.0 for words in (first, second))


def columns(rows):
    """The arguments of a batch of rows."""
    names = ("ids", "source", "payload", "expires")
    ids, texts, payload, expires = zip(*rows, strict=True) if rows else ((), (), (), ())
    return dict(zip(names, map(list, (ids, texts, payload, expires)), strict=True))


class Walk(RuleBasedStateMachine):
    """Model: live documents by id, in the order they were inserted: text, payload, times met; which expire; aliases.

    The time passes once: documents that expire soon are live before and expired afterwards.
    """

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.documents = {}
        self.aliases = {}
        self.number = 0
        self.expiring = set()
        CLOCK.now = NOW
        self.path = self.folder / "index"
        self.index = Index.create(self.path, durability="fast", **SETTINGS)

    def teardown(self):
        if hasattr(self, "index"):
            self.index.close()
            shutil.rmtree(self.folder)

    def taken(self, doc_id):
        return doc_id in self.documents or doc_id in self.aliases

    def ranked(self, text, keep=lambda _: True):
        found = [
            (doc_id, similarity(text, other))
            for doc_id, (other, payload, _) in self.documents.items()
            if similarity(text, other) >= THRESHOLD and keep(payload or {})
        ]
        return sorted(found, key=lambda entry: -entry[1])

    def store(self, doc_id, text, payload, expires):
        if expires == PAST or (expires == SOON and CLOCK.now >= SOON):
            return
        self.documents[doc_id] = [text, payload, 0]
        if expires == SOON:
            self.expiring.add(doc_id)

    def drop(self, doc_id):
        del self.documents[doc_id]
        self.expiring.discard(doc_id)
        self.aliases = {alias: target for alias, target in self.aliases.items() if target != doc_id}

    @precondition(lambda _: CLOCK.now < SOON)
    @rule()
    def time_passes(self):
        CLOCK.now = SOON
        for doc_id in list(self.expiring):
            self.drop(doc_id)

    @rule(doc_id=IDS, text=TEXTS, payload=PAYLOADS, expires=EXPIRES)
    def insert(self, doc_id, text, payload, expires):
        if self.taken(doc_id):
            with pytest.raises(DataError, match="already exists"):
                self.index.insert(doc_id, text)
        else:
            self.index.insert(doc_id, text, payload=payload, expires=expires)
            self.store(doc_id, text, payload, expires)

    @rule(rows=ROWS)
    def insert_many(self, rows):
        rows = list({row[0]: row for row in rows}.values())
        if any(self.taken(doc_id) for doc_id, *_ in rows):
            with pytest.raises(DataError, match="already exists"):
                self.index.insert_many(**columns(rows))
        else:
            self.index.insert_many(**columns(rows))
            for row in rows:
                self.store(*row)

    @rule(doc_id=IDS, text=TEXTS, payload=PAYLOADS, expires=EXPIRES)
    def put(self, doc_id, text, payload, expires):
        outcome = self.expected_outcome(doc_id)
        assert self.index.put(doc_id, text, payload=payload, expires=expires) == outcome
        self.store(doc_id, text, payload, expires)

    @rule(rows=ROWS)
    def put_many(self, rows):
        result = self.index.put_many(**columns(rows))
        for (doc_id, *rest), found in zip(rows, result.rows.to_pylist(), strict=True):
            assert found == {"doc_id": doc_id, "outcome": self.expected_outcome(doc_id)}
            self.store(doc_id, *rest)

    def expected_outcome(self, doc_id):
        """What `put` of an id answers; remove what has it."""
        outcome = "replaced" if self.taken(doc_id) else "inserted"
        self.aliases.pop(doc_id, None)
        if doc_id in self.documents:
            self.drop(doc_id)
        return outcome

    @rule(
        doc_id=IDS, text=TEXTS, on_duplicate=st.sampled_from(["skip", "replace", "link", "insert"])
    )
    def insert_new(self, doc_id, text, on_duplicate):
        if self.taken(doc_id):
            with pytest.raises(DataError, match="already exists"):
                self.index.insert_new(doc_id, text, on_duplicate=on_duplicate)
            return
        answer = self.index.insert_new(doc_id, text, on_duplicate=on_duplicate)
        ranked = self.ranked(text)
        assert answer.is_new == (not ranked)
        if ranked:
            assert (answer.match.doc_id, answer.match.similarity) == ranked[0]
            best = ranked[0][0]
            if on_duplicate == "replace":
                self.drop(best)
            else:
                self.documents[best][2] += 1
            if on_duplicate == "link":
                self.aliases[doc_id] = best
        if not ranked or on_duplicate in ("replace", "insert"):
            self.documents[doc_id] = [text, None, 0]

    @rule(ids=st.lists(IDS, max_size=4, unique=True))
    def remove(self, ids):
        assert self.index.remove(ids) == sum(map(self.taken, ids))
        for doc_id in ids:
            self.aliases.pop(doc_id, None)
        for doc_id in set(ids) & self.documents.keys():
            self.drop(doc_id)

    @rule(day=st.integers(0, 5))
    def remove_where(self, day):
        where = {"lang": "de", "day": day}
        chosen = [doc_id for doc_id, (_, payload, _) in self.documents.items() if payload == where]
        assert self.index.count(where=where) == len(chosen)
        assert self.index.remove(where=where) == len(chosen)
        for doc_id in chosen:
            self.drop(doc_id)

    @rule(ids=st.lists(IDS, max_size=6))
    def get_many(self, ids):
        found = self.index.get_many(ids)
        assert list(found) == [doc_id for doc_id in dict.fromkeys(ids) if self.taken(doc_id)]
        for doc_id, stored in found.items():
            target = self.aliases.get(doc_id, doc_id)
            aliases = tuple(sorted(alias for alias, own in self.aliases.items() if own == target))
            assert (stored.doc_id, stored.aliases) == (target, aliases)
            assert (stored.payload, stored.times_matched) == tuple(self.documents[target][1:])

    @precondition(lambda self: self.number < 3)
    @rule(text=TEXTS)
    def go_on_from_a_merge(self, text):
        self.number += 1
        self.path = self.folder / f"merged{self.number}"
        merged = Index.create(self.path, durability="fast", **SETTINGS)
        merged.insert("before", text)
        assert merged.merge(self.index) == len(self.documents)
        self.index.close()
        self.index = merged
        self.documents = {"before": [text, None, 0]} | self.documents
        merged.remove("before")
        self.drop("before")

    @rule(doc_id=IDS, text=TEXTS)
    def replace(self, doc_id, text):
        if doc_id not in self.documents:
            with pytest.raises(DataError, match="no document"):
                self.index.replace(doc_id, text)
        else:
            self.index.replace(doc_id, text)
            self.drop(doc_id)
            self.documents[doc_id] = [text, None, 0]

    @rule(text=TEXTS, k=st.sampled_from([1, 3, None]))
    def query(self, text, k):
        found = [(match.doc_id, match.similarity) for match in self.index.query(text, k=k)]
        assert found == self.ranked(text)[:k]

    @rule(text=TEXTS, least=st.sampled_from([0.3, 0.6, 1.0]), k=st.sampled_from([1, None]))
    def query_contained(self, text, least, k):
        shares = {
            doc_id: containments(text, other) for doc_id, (other, _, _) in self.documents.items()
        }
        wanted = sorted(
            (-max(both), -min(both), at)
            for at, both in enumerate(shares.values())
            if max(both) >= least
        )
        found = self.index.query(text, k=k, containment=least)
        assert [match.doc_id for match in found] == [list(shares)[at] for _, _, at in wanted][:k]
        for match in found:
            assert (match.containment_query, match.containment_doc) == shares[match.doc_id]
            assert match.similarity == max(shares[match.doc_id])

    @rule(text=TEXTS, day=st.integers(0, 5))
    def query_where(self, text, day):
        found = self.index.query(text, k=2, where={"lang": "de", "day": {"lte": day}})
        wanted = self.ranked(
            text, lambda payload: payload.get("lang") == "de" and payload["day"] <= day
        )
        assert [match.doc_id for match in found] == [doc_id for doc_id, _ in wanted[:2]]

    @rule(text=TEXTS)
    def query_since_now(self, text):
        assert self.index.query(text, since=time.time() + 1) == []

    @rule(doc_id=IDS)
    def get(self, doc_id):
        assert (doc_id in self.index) == self.taken(doc_id)
        if self.taken(doc_id):
            target = self.aliases.get(doc_id, doc_id)
            stored = self.index.get(doc_id)
            assert (stored.doc_id, stored.payload, stored.times_matched) == (
                target,
                *self.documents[target][1:],
            )

    @rule()
    def reopen(self):
        self.index.close()
        self.index = Index.open(self.path, durability="fast")
        assert self.index.check() == []

    @rule()
    def compact(self):
        self.index.compact()

    @precondition(lambda self: self.number < 3)
    @rule()
    def go_on_from_a_snapshot(self):
        self.number += 1
        self.path = self.folder / f"copy{self.number}"
        self.index.snapshot(self.path)
        self.index.close()
        self.index = Index.open(self.path, durability="fast")

    @invariant()
    def holds_what_the_model_holds(self):
        if hasattr(self, "index"):
            assert list(self.index.ids()) == list(self.documents)
            assert len(self.index) == len(self.documents)
            assert self.index.aliases() == self.aliases


def walk(monkeypatch, **limits):
    monkeypatch.setattr(
        folder_view, "UNFLUSHED_DOCS", 4
    )  # so that a few documents create segments, and segments are merged
    monkeypatch.setattr(merge_thread, "TIER", 3)
    monkeypatch.setattr(folder_view, "_SWEPT_AT_ONCE", 1)
    monkeypatch.setattr(time, "time", CLOCK)
    case = Walk.TestCase
    case.settings = settings(
        deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, **limits
    )
    case("runTest").runTest()


def test_a_random_walk_agrees_with_the_model(monkeypatch):
    walk(monkeypatch, max_examples=25, stateful_step_count=30)


@pytest.mark.long
@pytest.mark.slow("a hundred random walks")
def test_long_random_walks_agree_with_the_model(monkeypatch):
    walk(monkeypatch, max_examples=100, stateful_step_count=60)
