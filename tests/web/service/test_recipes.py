"""The recipes of docs/service.md do what they say; LangChain and LlamaIndex are stand-ins of their base classes."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from pathlib import Path

import pytest

import neardup
from support.service import TOKEN, serving

PAGE = (Path(__file__).parents[3] / "docs" / "service.md").read_text("utf-8")
FERRY = "the ferry to the island leaves at nine from the second pier"


@pytest.fixture
def recipes(monkeypatch):
    """What the recipes define."""

    class Component:
        """Takes its fields by name, as that of LlamaIndex."""

        def __init__(self, **fields):
            vars(self).update(fields)

    made = {
        "langchain_core.documents": {"BaseDocumentTransformer": object},
        "llama_index.core.schema": {"TransformComponent": Component},
    }
    for name, members in made.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    names = {}
    section = PAGE.partition("## Recipes")[2].partition("\n## ")[0]
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(block, names)  # noqa: S102 - our own page
    return names


@pytest.fixture
def index(tmp_path):
    with neardup.Index.create(tmp_path / "memory.index", threshold=0.6, size=2) as opened:
        yield opened


def test_a_memory_returns_the_id_of_what_it_knows(recipes, index):
    assert recipes["remember"](index, "n1", FERRY, source="mail") == "n1"
    assert recipes["remember"](index, "n2", f"{FERRY} today") == "n1"
    assert index.get("n1").payload == {"source": "mail"}
    assert index.get("n1").times_matched == 1


def test_transformers_keep_what_is_new(recipes, index):
    def chunk(name, text):
        return types.SimpleNamespace(
            id=name, page_content=text, node_id=name, get_content=lambda: text
        )

    first = [chunk("a", FERRY), chunk("b", f"{FERRY} today"), chunk("c", "quite another text")]
    kept = recipes["NewOnly"](index).transform_documents(first)
    assert [one.id for one in kept] == ["a", "c"]
    later = [chunk("d", f"and {FERRY}"), chunk("e", "something that nobody has said before")]
    kept = recipes["NewNodesOnly"](collection=index)(later)
    assert [one.node_id for one in kept] == ["e"]


def test_a_crawler_links_mirrors(recipes, tmp_path):
    neardup.Index.create(tmp_path / "pages.index", threshold=0.6, size=2).close()

    async def crawl(url):
        async with neardup.AsyncClient(url, TOKEN) as pages:
            found = [await recipes["keep"](pages, f"http://{n}.example/", FERRY) for n in range(3)]
            return found, await pages.aliases()

    with serving(tmp_path / "pages.index") as served:
        found, aliases = asyncio.run(crawl(f"http://127.0.0.1:{served.server.port}"))
    assert found == [True, False, False]
    assert set(aliases.values()) == {"http://0.example/"}
