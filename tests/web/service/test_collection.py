"""What the routes of a collection answer, compared with the index itself."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest

import neardup
from support.service import serving

FERRY = "the ferry to the island leaves at nine from the second pier"
MUSEUM = "the museum is closed on mondays and on public holidays in winter"


@pytest.fixture
def service(tmp_path):
    path = tmp_path / "pages.index"
    neardup.Index.create(path, threshold=0.6, size=2, store="text", containment=True).close()
    with serving(path) as served:
        yield served


def test_a_new_document_is_created_and_a_duplicate_is_told_with_its_match(service):
    given = {"id": "a", "text": FERRY, "payload": {"lang": "en"}}
    first = service.post("documents", given)
    assert (first.status, first.body) == (201, {"id": "a", "is_new": True, "match": None})
    second = service.post("documents", given | {"id": "b", "text": f"{FERRY} today"})
    assert (second.status, second.body["is_new"]) == (200, False)
    match = second.body["match"]
    exact = neardup.compare(FERRY, f"{FERRY} today", size=2).jaccard
    assert (match["id"], match["score"], match["payload"]) == ("a", exact, {"lang": "en"})
    assert service.get("info").body["documents"] == 1


@pytest.mark.parametrize(
    ("on_duplicate", "status", "ids", "aliases"),
    [
        ("skip", 200, ["a"], []),
        ("replace", 200, ["b"], []),
        ("link", 200, ["a"], ["b"]),
        ("insert", 200, ["a", "b"], []),
        ("error", 409, ["a"], []),
    ],
)
@pytest.mark.parametrize("is_batch", [False, True])
def test_what_happens_to_a_duplicate(service, on_duplicate, status, ids, aliases, is_batch):
    service.post("documents", {"id": "a", "text": FERRY})
    document = {"id": "b", "text": FERRY}
    given = {"documents": [document]} if is_batch else document
    reply = service.post("documents", given | {"on_duplicate": on_duplicate})
    assert reply.status == status
    if on_duplicate == "error":
        assert reply.problem == (409, "duplicate")
        assert reply.body["match"]["id"] == "a"
    listed = service.get("documents").body["documents"]
    assert [one["id"] for one in listed] == ids
    assert [alias for one in listed for alias in one["aliases"]] == aliases


def test_a_batch_is_answered_in_order_and_stored_all_or_none(service):
    batch = [{"id": "a", "text": FERRY}, {"id": "b", "text": MUSEUM}, {"id": "c", "text": FERRY}]
    reply = service.post("documents", {"documents": batch})
    assert [(one["id"], one["is_new"]) for one in reply.body["results"]] == [
        ("a", True),
        ("b", True),
        ("c", False),
    ]
    assert reply.body["results"][2]["match"]["id"] == "a"
    refused = service.post(
        "documents", {"documents": [{"id": "d", "text": "some other words here"}, batch[0]]}
    )
    assert refused.problem == (422, "exists")
    assert service.get("info").body["documents"] == 2


def test_a_query_and_a_batch_of_queries_find_what_the_index_finds(service):
    service.post("insert", {"documents": [{"id": "a", "text": FERRY}, {"id": "b", "text": MUSEUM}]})
    texts = [FERRY, MUSEUM, "nothing of the kind", f"{FERRY} today"]
    single = [service.post("query", {"text": text}).body for text in texts]
    assert [[one["id"] for one in found["matches"]] for found in single] == [
        ["a"],
        ["b"],
        [],
        ["a"],
    ]
    batch = service.post("query", {"queries": [{"text": text} for text in texts]}).body["results"]
    assert batch == single
    streamed = service.stream("query?k=3", [{"text": text} for text in texts])
    assert streamed.lines == single
    assert service.post("query", {"queries": []}).body == {"results": []}


def test_options_of_a_query(service):
    service.post("insert", {"id": "a", "text": FERRY, "payload": {"lang": "en"}})
    part = "the ferry to the island leaves"
    assert service.post("query", {"text": part}).body["matches"] == []
    contained = service.post("query", {"text": part, "containment": 0.9}).body["matches"]
    assert contained[0]["containment_query"] == 1.0
    asked = {"text": FERRY, "where": {"lang": "de"}}
    assert service.post("query", asked).body["matches"] == []
    assert service.post("query", {"text": FERRY, "since": 9e9}).body["matches"] == []
    assert service.post("query", {"text": FERRY, "threshold": 0.1}).problem == (422, "setting")


def test_put_replace_get_count_and_delete(service):
    assert service.post("put", {"id": "a", "text": FERRY}).body == {
        "id": "a",
        "outcome": "inserted",
    }
    many = {"documents": [{"id": "a", "text": MUSEUM}, {"id": "b", "text": FERRY}]}
    assert [one["outcome"] for one in service.post("put", many).body["results"]] == [
        "replaced",
        "inserted",
    ]
    assert service.post("replace", {"id": "b", "text": MUSEUM, "payload": {"n": 1}}).status == 200
    assert service.post("replace", {"id": "none", "text": MUSEUM}).problem == (404, "unknown")
    documents = service.post("get", {"ids": ["b", "none"]}).body["documents"]
    assert documents["b"]["text"] == MUSEUM
    assert list(documents) == ["b"]
    assert service.post("count", {"where": {"n": 1}}).body == {"documents": 1}
    assert service.post("delete", {"ids": ["a", "none"]}).body == {"removed": 1}
    assert service.post("delete", {"where": {"n": 1}}).body == {"removed": 1}
    assert service.post("delete", {}).problem == (422, "refused")


@pytest.mark.parametrize("doc_id", ["", ".", "..", "a/b", "../../etc/passwd", "ü?#%", "a//b"])
def test_every_id_can_be_stored_read_and_removed(service, doc_id):
    assert service.post("insert", {"id": doc_id, "text": FERRY}).status == 201
    assert service.post("get", {"ids": [doc_id]}).body["documents"][doc_id]["text"] == FERRY
    assert service.get(f"documents/{quote(doc_id, safe='')}").body["id"] == doc_id
    assert service.post("delete", {"ids": [doc_id]}).body == {"removed": 1}


def test_pages_follow_their_cursor_and_miss_nothing(service):
    ids = [f"d{number:02}" for number in range(25)]
    batch = [{"id": doc_id, "text": f"{doc_id} and words of its own"} for doc_id in ids]
    service.post("insert", {"documents": batch})
    service.post("delete", {"ids": ["d03", "d24"]})
    found, cursor, num_pages = [], "", 0
    while cursor is not None:
        page = service.get(f"documents?limit=10&cursor={cursor}").body
        found += [one["id"] for one in page["documents"]]
        cursor = page["next"]
        num_pages += 1
    assert found == [doc_id for doc_id in ids if doc_id not in ("d03", "d24")]
    assert num_pages == 3
    everything = service.get("documents", Accept="application/x-ndjson")
    assert [one["id"] for one in everything.lines] == found
    for wrong in (
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=9",
        "cursor=n",
        f"cursor=n{'9' * 30}",
    ):
        assert service.get(f"documents?{wrong}").status == 422


def test_a_key_makes_a_request_once(service):
    given = {"id": "a", "text": FERRY}
    first = service.post("documents", given, Idempotency_Key="k1")
    again = service.post("documents", given, Idempotency_Key="k1")
    assert (again.status, again.content) == (first.status, first.content) == (201, first.content)
    assert again.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert service.post("documents", {"id": "b", "text": FERRY}, Idempotency_Key="k1").status == 422
    assert service.post("put", given, Idempotency_Key="k1").status == 422
    batch = {"documents": [{"id": "x", "text": MUSEUM}, {"id": "y", "text": MUSEUM}]}
    one, two = (service.post("documents", batch, Idempotency_Key="k2") for _ in range(2))
    assert one.content == two.content
    assert service.get("info").body["documents"] == 2
    for wrong in ("", "x" * 201, "ü"):
        assert service.post("documents", given, Idempotency_Key=wrong).problem == (422, "invalid")


def test_compact_check_and_snapshot(service, tmp_path):
    service.post("insert", {"id": "a", "text": FERRY})
    assert service.post("compact").body == {"compacted": True}
    assert service.post("check").body == {"damage": []}
    reply = service.post("snapshot")
    assert reply.status == 201
    assert re.fullmatch(r"pages-\d{8}T\d{6}Z-\d{6}\.index", reply.body["snapshot"])
    with neardup.Index.open(tmp_path / reply.body["snapshot"], read_only=True) as copy:
        assert list(copy.ids()) == ["a"]
    assert service.post("snapshot", {"path": "/tmp/x"}).problem == (422, "invalid")  # noqa: S108


def test_no_answer_has_the_seed_or_a_path_of_the_server(tmp_path):
    path = tmp_path / "pages.index"
    neardup.Index.create(path, seed=987_654_321).close()
    with serving(path) as service:
        replies = [
            service.get("info"),
            service.post("query", {"text": "a", "containment": 0.5}),
            service.post("query", {"text": "a", "threshold": 0.1}),
        ]
    told = b"".join(reply.content for reply in replies).decode()
    assert "987654321" not in told
    assert str(tmp_path) not in told


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"items_column": "items"}, {"items": ["x", "y", "z"]}, {"text": "x y z"}),
        ({"measure": "cosine", "dimension": 4}, {"vector": [1, 0, 0, 2]}, {"vector": [1, 2]}),
        ({"measure": "weighted", "items_column": "items"}, {"items": {"x": 1.0, "y": 2}}, {}),
    ],
)
def test_sets_vectors_and_weighted_items(tmp_path, settings, good, bad):
    path = tmp_path / "pages.index"
    neardup.Index.create(path, **settings).close()
    with serving(path) as service:
        assert service.post("documents", {"id": "a", **good}).body["is_new"]
        batch = {"documents": [{"id": "b", **good}, {"id": "c", **good}]}
        results = service.post("documents", batch).body["results"]
        assert [one["match"]["id"] for one in results] == ["a", "a"]
        assert service.post("query", good).body["matches"][0]["score"] == pytest.approx(1.0)
        both = service.post("query", {"queries": [good, good]}).body["results"]
        assert [one["matches"][0]["id"] for one in both] == ["a", "a"]
        assert service.post("query", bad).status == 422
        assert service.post("documents", {"id": "d", **bad}).status == 422


@pytest.mark.parametrize(
    "given",
    [
        {"text": FERRY},
        {"id": 1, "text": FERRY},
        {"id": "a"},
        {"id": "a", "text": FERRY, "items": ["x"]},
        {"id": "a", "text": FERRY, "typo": 1},
        {"id": "a\0", "text": FERRY},
        {"id": "a", "text": FERRY, "payload": [1]},
        {"id": "a", "text": FERRY, "payload": {"x": "y" * 70_000}},
        {"id": "a", "text": FERRY, "expires": "soon"},
        {"id": "a", "text": FERRY, "on_duplicate": "merge"},
        {"documents": []},
        {"documents": [{"id": "a", "text": FERRY}] * 1001},
        {"documents": [{"id": "a", "text": FERRY}, {"id": "a", "text": MUSEUM}]},
        {"documents": [{"id": "a", "text": FERRY}, {"id": "b"}]},
        [],
    ],
)
@pytest.mark.parametrize("operation", ["documents", "insert"])
def test_what_cannot_be_stored_is_refused_whole(service, given, operation):
    reply = service.post(operation, given)
    assert reply.status == 422
    assert reply.problem[1] in ("invalid", "refused", "setting", "exists")
    assert service.get("info").body["documents"] == 0


def test_a_text_has_a_limit(service):
    assert service.post("query", {"text": "a" * 1_000_001}).problem == (413, "too_large")
    long = json.dumps({"id": "a", "text": "a" * 5_000_000})
    path = "/v1/collections/pages/documents"
    reply = service.send("POST", path, long, Content_Type="application/json")
    assert reply.problem == (413, "too_large")
