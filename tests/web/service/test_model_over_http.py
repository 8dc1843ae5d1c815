"""Random changes of an index through the service, compared with a model in plain Python after each."""

from __future__ import annotations

import random

import pytest

import neardup
from fuzz.index_model import THRESHOLD, Model, RefusedError, Row
from neardup.errors import NearDupError
from support.service import TOKEN, serving

WORDS = [f"w{number}" for number in range(12)]
IDS = [*(f"d{number}" for number in range(12)), "", ".", "a/b"]
NUM_STEPS = 60


def row(draw):
    text = " ".join(draw.sample(WORDS, draw.randint(3, 8)))
    payload = draw.choice([None, {"n": draw.randint(0, 2)}])
    return Row(draw.choice(IDS), text, payload)


def step(draw, client, model):
    """Make one change of both; return what each answered, or that it refused."""
    kind = draw.choice(["insert", "new", "new", "many", "put", "replace", "remove", "where"])
    one = row(draw)
    given = (one.doc_id, one.text)
    if kind == "insert":
        return (
            lambda: client.insert(*given, payload=one.payload) or 1,
            lambda: model.insert_many([one]),
        )
    if kind == "new":
        way = draw.choice(["skip", "replace", "link", "insert"])
        return (
            lambda: new_row(
                one.doc_id, client.insert_new(*given, on_duplicate=way, payload=one.payload).match
            ),
            lambda: model.insert_new(one, way),
        )
    if kind == "many":
        rows = [row(draw) for _ in range(draw.randint(1, 4))]
        ids = [own.doc_id for own in rows]
        payloads = [own.payload for own in rows]
        return (
            lambda: (
                client.insert_many([own.text for own in rows], ids=ids, payload=payloads).documents
            ),
            lambda: model.insert_many(rows),
        )
    if kind == "put":
        return lambda: client.put(*given, payload=one.payload), lambda: model.put(one)
    if kind == "replace":
        return lambda: client.replace(*given, payload=one.payload), lambda: model.replace(one)
    if kind == "remove":
        ids = draw.sample(IDS, 2)
        return lambda: client.remove(ids), lambda: model.remove(ids)
    where = {"n": draw.randint(0, 2)}
    return lambda: client.remove(where=where), lambda: model.remove_where(where)


def new_row(doc_id, match):
    if match is None:
        return doc_id, True, None, None
    return doc_id, False, match.doc_id, match.similarity


def outcome(call, refusal):
    try:
        return call()
    except refusal:
        return "refused"


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 8))]
)
def test_the_service_does_what_the_model_does(tmp_path, seed):
    draw = random.Random(seed)
    settings = {
        "threshold": THRESHOLD,
        "size": 1,
        "bands": 128,
        "rows": 1,
        "signature_filter": False,
    }
    path = tmp_path / "pages.index"
    neardup.Index.create(path, store="text", durability="fast", **settings).close()
    model = Model()
    with serving(path) as served:
        url = f"http://127.0.0.1:{served.server.port}"
        with neardup.Client(url, TOKEN) as client:
            for _ in range(NUM_STEPS):
                ask, expect = step(draw, client, model)
                before = model.copied()
                expected = outcome(expect, RefusedError)
                if expected == "refused":
                    model = before
                assert outcome(ask, NearDupError) == expected
                documents = [
                    (one.doc_id, one.text, one.payload, one.times_matched)
                    for one in client._run(client._documents())
                ]
                held = [(name, *vars(one).values()) for name, one in model.documents.items()]
                assert documents == [
                    (name, text, payload, met) for name, text, payload, _, met in held
                ]
                assert client.aliases() == model.aliases
                question = row(draw).text
                found = [(one.doc_id, one.similarity) for one in client.query(question, k=1000)]
                assert found == model.ranked(question)
