"""The main content of an HTML page.

That is the element around what trafilatura finds, or what rules find where it finds nothing or the
page is too large.
"""

from __future__ import annotations

import copy
import importlib.metadata
import logging
import re
from collections.abc import Callable
from typing import Any, Final

from neardup.errors import MissingExtraError
from neardup.io.columns.article_element import article_text

# Trafilatura takes up to half a second for a hostile page of this many tags, in time that grows
# with their square, and ten times the memory of a page. Of 140 real pages the largest had 9,207
# tags and 2.9 million characters (docs/decisions/0043-main-content.md).
MAX_TAGS: Final = 20_000
MAX_CHARACTERS: Final = 4_000_000
# A page nested deeper takes far longer: 4,000 lists in each other 11 s. Of these pages the deepest
# has 28 levels.
MAX_DEPTH: Final = 100
# The rules, too, take time that grows with the square of the depth: 20,000 levels 4 s. Up to this
# many 0.01 s.
_MAX_RULES_DEPTH: Final = 1_000
# Elements without an end, or whose end may be left out.
_UNCLOSED: Final = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr", "html", "head", "body", "p", "li", "dt", "dd", "tr", "td"),
        *("th", "option", "optgroup", "thead", "tbody", "tfoot", "colgroup"),
    )
)
_TAG: Final = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
# Less than this is as good as nothing: pages of which only a notice is left would all be copies.
MIN_CHARACTERS: Final = 100
# Without comments, and in the mode that leaves out what is doubtful: pages with other comments and
# teasers are still mirrors. Without its slower extractors, which find no more in this mode.
_OPTIONS: Final[dict[str, Any]] = {
    "fast": True,
    "favor_precision": True,
    "include_comments": False,
    "with_metadata": False,
}
# Names our own rules, with which texts change as with another version of a package.
_RULES: Final = "rules-2"
# Elements outside the article, by HTML landmarks and the names that most sites use. The rules of
# resiliparse drop most of them themselves; the remaining banners and footers hid 34 of 40 mirrors
# in a synthetic crawl (tests/support/web_pages.py).
_LANDMARKS: Final = ("banner", "navigation", "complementary", "contentinfo", "search")
_TEMPLATE_NAMES: Final = (
    *(
        "header",
        "site-header",
        "page-header",
        "masthead",
        "navbar",
        "navigation",
        "menu",
        "sidebar",
    ),
    *("footer", "site-footer", "page-footer", "cookie-banner", "cookie-notice", "cookie-consent"),
)
_TEMPLATE_ELEMENTS: Final = (
    *("body > header", "nav", "aside", "footer"),
    *(f"[role={landmark}]" for landmark in _LANDMARKS),
    # Below the body: a site may name its whole page so.
    *(f"body {mark}{name}" for mark in ".#" for name in _TEMPLATE_NAMES),
)
# The same as XPath, in two passes over the page.
_IS_TEMPLATE: Final = " or ".join(
    [
        *(f"@role='{landmark}'" for landmark in _LANDMARKS),
        *(f"@id='{name}'" for name in _TEMPLATE_NAMES),
        *(
            f"contains(concat(' ', normalize-space(@class), ' '), ' {name} ')"
            for name in _TEMPLATE_NAMES
        ),
    ]
)
_TEMPLATE_PATHS: Final = [
    " | ".join(["//body/header", *(f"//{name}" for name in ("nav", "aside", "footer"))]),
    f"//body//*[{_IS_TEMPLATE}]",
]


def visible_text(page: str) -> str:
    """Return all visible text of a page."""
    # Indenting nested lists takes time that grows with their square.
    return str(_resiliparse()(page, preserve_formatting=not _is_nested_deeply(page)))


def main_text(page: str) -> str:
    """Return the main content of a page, or all visible text of a page without any."""
    found = _by_trafilatura(page)
    if found:
        return found
    if not _is_nested_deeply(page):
        found = _by_rules(page)
    return found or str(_resiliparse()(page, preserve_formatting=False))


def versions() -> str:
    """Name the packages that extract main content, with their versions, and our rules: others may find other texts."""
    _trafilatura()
    _resiliparse()
    names = ("trafilatura", "resiliparse")
    packages = [f"{name}-{importlib.metadata.version(name)}" for name in names]
    return " ".join([*packages, _RULES])


def _by_trafilatura(page: str) -> str:
    if len(page) > MAX_CHARACTERS or page.count("<") > MAX_TAGS:
        return ""
    extract, load = _trafilatura()
    try:
        tree = load(page)
        if tree is None or _is_deep(tree):
            return ""
        _drop_template(tree)
        found = extract(copy.deepcopy(tree), **_OPTIONS) or ""
        if len(found) < MIN_CHARACTERS:
            return ""
        article = article_text(tree, found)
        return article if len(article) >= MIN_CHARACTERS else found
    except Exception:  # noqa: BLE001 - whatever a broken page does to it, the rules still apply
        return ""


def _drop_template(tree: Any) -> None:
    for path in _TEMPLATE_PATHS:
        for element in tree.xpath(path):
            if element.getparent() is not None:
                element.drop_tree()


def _is_deep(tree: Any) -> bool:
    """Whether elements are nested too deeply."""
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for element in level for child in element]
        if not level:
            return False
    return True


def _is_nested_deeply(page: str) -> bool:
    """Whether more elements are open at once than the rules can take; no real page comes near."""
    if page.count("<") <= _MAX_RULES_DEPTH:
        return False
    depth = 0
    for found in _TAG.finditer(page):
        if found[2].lower() in _UNCLOSED:
            continue
        if found[1]:
            depth = max(depth - 1, 0)
        else:
            depth += 1
        if depth > _MAX_RULES_DEPTH:
            return True
    return False


def _by_rules(page: str) -> str:
    extract = _resiliparse()
    main = extract(page, main_content=True, skip_elements=_TEMPLATE_ELEMENTS)
    return str(main or extract(page, main_content=True))


def _trafilatura() -> tuple[Callable[..., str | None], Callable[[str], Any]]:
    """Return the extractor, and the parser of the pages that it takes."""
    try:
        from trafilatura import extract, load_html
    except ImportError as error:
        raise _missing("trafilatura") from error
    logger = logging.getLogger("trafilatura")
    if not logger.handlers:  # then Python prints what it logs about broken pages to stderr
        logger.addHandler(logging.NullHandler())
    return extract, load_html


def _resiliparse() -> Callable[..., str]:
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise _missing("resiliparse") from error
    found: Callable[..., str] = extract_plain_text
    return found


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(
        f"html=True needs the package {package}", hint="pip install 'neardup[html]'"
    )
