"""Tools for agents by the Model Context Protocol: an index as something that a model can ask and, if allowed, write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

from neardup.errors import MissingExtraError, NearDupError
from neardup.index.index import Index
from neardup.index.result_types import Match
from neardup.jobs.compare import compare as compare_texts
from neardup.jobs.compare import passages as passages_of
from neardup.version import VERSION

try:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types import ToolAnnotations
    from pydantic import Field
except ImportError as missing:
    raise MissingExtraError(
        "the server for agents needs mcp, which is not installed", hint='pip install "neardup[mcp]"'
    ) from missing

MAX_TEXT: Final = 1_000_000
# Results are read by a model, whose context is dear.
_MAX_MATCHES: Final = 20
_MAX_PASSAGES: Final = 10
_MAX_PAYLOAD: Final = 2_000
_SHOWN: Final = 200
_INSTRUCTIONS: Final = (
    "Near-duplicate documents: ask `check` before you store or repeat a text, `query` to see what is similar, and"
    " `insert_new` to remember a text unless it is known. Similarity is the exact share of common word sequences"
    " (Jaccard), from 0 to 1: 1 is the same words, 0.8 a light edit, and below the threshold nothing is reported."
    " It compares wording, not meaning."
)
_READS: Final = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES: Final = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
Text = Annotated[str, Field(description="The text to look for, as it is.", max_length=MAX_TEXT)]
Count = Annotated[int, Field(description="How many matches to return.", ge=1, le=_MAX_MATCHES)]


def make_server(index: Index, *, write: bool = False) -> MCPServer[Any]:
    """Return a server with the tools of an open index; write: also the one that stores documents."""
    server: MCPServer[Any] = MCPServer("neardup", version=VERSION, instructions=_INSTRUCTIONS)
    tools = Tools(index)
    reading: tuple[Callable[..., dict[str, Any]], ...] = (
        tools.check,
        tools.query,
        tools.compare,
        tools.explain,
        tools.passages,
    )
    for tool in reading:
        server.tool(annotations=_READS)(tool)
    if write:
        server.tool(annotations=_WRITES)(tools.insert_new)
    return server


class Tools:
    """What a model can call; each docstring is what it reads before."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._measure = {
            name: getattr(index.config, name)
            for name in ("unit", "size", "seed", "fold_numbers", "fold_accents", "normalise")
        }

    def check(self, text: Text) -> dict[str, Any]:
        """Ask whether a text, or one nearly like it, is already stored. Stores nothing.

        Returns is_known, and if it is the best match with its id, similarity and payload.
        """
        matches = self._matches(text, 1)
        return {"is_known": bool(matches), "match": matches[0] if matches else None}

    def query(self, text: Text, k: Count = 5) -> dict[str, Any]:
        """List the stored documents that are nearly like a text, the most similar first.

        An empty list means that no document reaches the threshold of the index.
        """
        return {"threshold": self._index.config.threshold, "matches": self._matches(text, k)}

    def compare(self, a: Text, b: Text) -> dict[str, Any]:
        """Measure how similar two texts are, exactly.

        Returns the similarity from 0 to 1, and the share of each text that is contained in the other.
        """
        with _explained():
            found = compare_texts(a, b, **self._measure)
        return {
            "similarity": round(found.jaccard, 4),
            "share_of_a_in_b": round(found.containment_a, 4),
            "share_of_b_in_a": round(found.containment_b, 4),
        }

    def explain(self, text: Text, doc_id: str) -> dict[str, Any]:
        """Explain why a text is, or is not, a near-duplicate of a stored document with an id.

        Returns the similarity, the threshold, and the longest passages that both share, if the index
        stores texts.
        """
        with _explained():
            stored = self._index.get(doc_id)
            if stored.text is None:
                found = {match["id"]: match for match in self._matches(text, _MAX_MATCHES)}
                similarity = found.get(stored.doc_id, {}).get("similarity")
                reason = "the index does not store texts, so only similar documents are known"
                return {"doc_id": stored.doc_id, "similarity": similarity, "note": reason}
            similarity = compare_texts(text, stored.text, **self._measure).jaccard
        threshold = self._index.config.threshold
        return {
            "doc_id": stored.doc_id,
            "similarity": round(similarity, 4),
            "threshold": threshold,
            "is_duplicate": similarity >= threshold,
            "payload": stored.payload,
            **self.passages(text, stored.text),
        }

    def passages(self, a: Text, b: Text) -> dict[str, Any]:
        """List the passages of eight words or more that two texts share, the longest first."""
        with _explained():
            found = passages_of(a, b)
        longest = sorted(found, key=lambda one: -one.words)[:_MAX_PASSAGES]
        shown = [
            {
                "words": one.words,
                "start_in_a": one.start_a,
                "start_in_b": one.start_b,
                "text": a[one.start_a : one.end_a][:_SHOWN],
            }
            for one in longest
        ]
        return {"num_passages": len(found), "passages": shown}

    def insert_new(
        self, doc_id: str, text: Text, payload: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Store a text under an id, unless one nearly like it is already stored.

        Returns is_new. If it is false, nothing was stored, and match is the known document. An id
        that exists is an error.
        """
        with _explained():
            done = self._index.insert_new(doc_id, text, payload=payload)
        match = None if done.match is None else _shown_match(done.match)
        return {"is_new": done.is_new, "match": match}

    def _matches(self, text: str, k: int) -> list[dict[str, Any]]:
        with _explained():
            return [_shown_match(match) for match in self._index.query(text, k=k)]


def _shown_match(match: Match) -> dict[str, Any]:
    """Return a match in few words."""
    shown: dict[str, Any] = {"id": match.doc_id, "similarity": round(match.similarity, 4)}
    if match.payload and len(str(match.payload)) <= _MAX_PAYLOAD:
        shown["payload"] = match.payload
    elif match.payload:
        shown["note"] = "the payload is too large to be shown"
    return shown


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn errors of neardup into ones that a model reads."""
    try:
        yield
    except NearDupError as error:
        raise ToolError(str(error)) from error


class McpApp:
    """The servers of several indexes over HTTP, an ASGI application; servers: by their path."""

    def __init__(self, servers: dict[str, MCPServer[Any]]) -> None:
        # Host and origin are checked before.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._servers = servers
        self._apps = {
            path: server.streamable_http_app(
                streamable_http_path=path,
                json_response=True,
                stateless_http=True,
                transport_security=security,
            )
            for path, server in servers.items()
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or keep the sessions open as long as the server runs."""
        if scope["type"] == "lifespan":
            await receive()
            async with contextlib.AsyncExitStack() as stack:
                for server in self._servers.values():
                    await stack.enter_async_context(server.session_manager.run())
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await self._apps[scope["path"]](scope, receive, send)
