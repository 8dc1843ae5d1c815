"""Tools for agents: what they answer, in this process and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import neardup
from neardup.mcp import make_server

FERRY = "the ferry to the island leaves at nine from the second pier"
READING = ["check", "query", "compare", "explain", "passages"]


@pytest.fixture
def index(tmp_path):
    path = tmp_path / "memory.index"
    with neardup.Index.create(path, threshold=0.6, size=2, store="text") as opened:
        opened.insert("a", FERRY, payload={"lang": "en"})
        yield opened


def using(server, ask):
    async def run():
        async with Client(server) as client:
            return await ask(client)

    return asyncio.run(run())


def call(server, tool, **arguments):
    async def ask(client):
        return await client.call_tool(tool, arguments)

    result = using(server, ask)
    if result.is_error:
        return result.content[0].text
    return json.loads(result.content[0].text)


def test_a_model_is_told_what_every_tool_does_and_may_only_read(index):
    async def ask(client):
        return (await client.list_tools()).tools

    tools = using(make_server(index), ask)
    assert [tool.name for tool in tools] == READING
    for tool in tools:
        assert tool.description.strip().splitlines()[0].endswith(".")
        assert tool.annotations.read_only_hint
        assert len(json.dumps(tool.input_schema)) < 1_500
    writing = using(make_server(index, write=True), ask)
    assert [tool.name for tool in writing] == [*READING, "insert_new"]
    assert not writing[-1].annotations.read_only_hint
    assert "insert_new" in call(make_server(index), "insert_new", doc_id="b", text="x")
    assert len(index) == 1


def test_tools_answer_as_the_index_does(index):
    server = make_server(index, write=True)
    similar = neardup.compare(FERRY, f"{FERRY} today", size=2).jaccard
    found = call(server, "check", text=f"{FERRY} today")
    match = {"id": "a", "similarity": round(similar, 4), "payload": {"lang": "en"}}
    assert found == {"is_known": True, "match": match}
    assert call(server, "check", text="nothing alike here") == {"is_known": False, "match": None}
    assert call(server, "query", text=FERRY)["matches"][0]["similarity"] == 1.0
    assert call(server, "compare", a=FERRY, b=f"{FERRY} today")["share_of_a_in_b"] == 1.0
    assert not call(server, "insert_new", doc_id="b", text=FERRY)["is_new"]
    assert call(server, "insert_new", doc_id="b", text="quite another text")["is_new"]
    assert "b" in index


def test_explain_and_passages(index):
    server = make_server(index)
    told = call(server, "explain", text=f"{FERRY} today", doc_id="a")
    assert told["is_duplicate"]
    assert told["passages"][0]["text"].startswith("the ferry to the island")
    assert call(server, "passages", a=FERRY, b=f"or else {FERRY}")["passages"][0]["words"] == 12
    assert "has no document 'none'" in call(server, "explain", text=FERRY, doc_id="none")


def test_an_index_without_texts_says_so(tmp_path):
    with neardup.Index.create(tmp_path / "index", size=2) as index:
        index.insert("a", FERRY)
        told = call(make_server(index), "explain", text=FERRY, doc_id="a")
    assert told["similarity"] == 1.0
    assert "does not store texts" in told["note"]


def test_results_are_small(tmp_path):
    with neardup.Index.create(tmp_path / "index", size=2, store="text") as index:
        for number in range(40):
            index.insert(str(number), FERRY, payload={"notes": "x" * 50_000})
        server = make_server(index)
        found = call(server, "query", text=FERRY, k=20)
        assert len(json.dumps(found)) < 5_000
        assert "less than or equal to 20" in call(server, "query", text=FERRY, k=21)
        long = " ".join(f"word{n}" for n in range(5_000))
        assert len(json.dumps(call(server, "passages", a=long, b=long))) < 5_000


def test_over_standard_input_and_output(tmp_path):
    path = tmp_path / "memory.index"
    neardup.Index.create(path, size=2).close()
    start = "from neardup.cli.main import main; main()"
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", start, "mcp", str(path), "--write"],
        env=dict(os.environ),
    )

    async def ask(client):
        await client.call_tool("insert_new", {"doc_id": "a", "text": FERRY})
        return await client.call_tool("check", {"text": FERRY})

    result = using(stdio_client(server), ask)
    assert json.loads(result.content[0].text)["is_known"]
    with neardup.Index.open(path) as index:
        assert list(index.ids()) == ["a"]


@pytest.mark.parametrize("scope", ["read", "write", None])
def test_over_http_with_the_rights_of_the_token(tmp_path, scope):
    import httpx
    from mcp.client.streamable_http import streamable_http_client

    from neardup.web.tokens import TokenFile
    from support.server_process import Started

    path = tmp_path / "memory.index"
    neardup.Index.create(path, size=2).close()
    tokens = TokenFile(tmp_path / "tokens.json")
    secret = tokens.new(collection="memory", scope=scope)[0] if scope else None
    started = Started(path, "--write", "--mcp", "--token-file", tokens.path)
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    async def ask(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    async def run():
        async with httpx.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"{started.url}mcp/memory", http_client=http)
            async with Client(transport) as client:
                return await ask(client)

    names = asyncio.run(run())
    assert names == READING + (["insert_new"] if scope == "write" else [])
    assert started.stop() == 0
