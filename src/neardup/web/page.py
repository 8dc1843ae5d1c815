"""Builds the HTML page: scripts and styles in one text, with a policy that allows nothing else.

A page opened from disk cannot import modules, so all scripts are one inline script, named in the
policy by its hash.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
from importlib import resources
from typing import Final, NamedTuple

_STATIC: Final = resources.files("neardup.web") / "static"
# In dependency order.
SCRIPTS: Final = (
    "vendor/htm-preact-standalone.umd.js",
    "text.js",
    "source.js",
    "marks.js",
    "parts.js",
    "charts.js",
    "sources.js",
    "overview.js",
    "clusters.js",
    "passages.js",
    "pair.js",
    "pairs.js",
    "search.js",
    "review.js",
    "app.js",
)
STYLES: Final = ("page.css",)


class PageSources(NamedTuple):
    """The script and the style of the page, and the policy that allows these two."""

    script: str
    style: str
    policy: str


def _read(name: str) -> str:
    return (_STATIC / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def sources() -> PageSources:
    """Join the sources; our own scripts share one private scope."""
    vendored = [_read(name) for name in SCRIPTS if name.startswith("vendor/")]
    ours = [_read(name) for name in SCRIPTS if not name.startswith("vendor/")]
    script = "\n".join([*vendored, '(() => {\n"use strict";', *ours, "})();\n"])
    style = "\n".join(map(_read, STYLES))
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return PageSources(script, style, policy)


def pack(data: bytes) -> str:
    """Compress JSON for use inside a script element, which no character of base64 can end."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def render_page(data: str, *, policy: str | None = None) -> str:
    """Return the page with its data, packed or `null`; `policy` is that of the server, which a header repeats."""
    parts = sources()
    page = _read("page.html")
    for name, value in (
        ("POLICY", policy or parts.policy),
        ("STYLE", parts.style),
        ("SCRIPT", parts.script),
        ("DATA", data),  # last, so that nothing is replaced inside the data
    ):
        before, mark, after = page.partition(f"@{name}@")
        if not mark:
            raise RuntimeError(f"page.html has no place for {name}")
        page = before + value + after
    return page
