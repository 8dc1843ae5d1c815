"""How much of the main content of real pages do extractors find, and how fast?

The content of the pages was marked by others, in packages that are unpacked below --corpora: the
source distribution `newspaper4k-*` (tests/data) has pages with their text, `trafilatura-0.3.*` has
pages with passages that are, or are not, content (an older version, whose tests still came with
their pages), and Debian packages have handbooks as HTML and as text (handbooks.py).

- *text*: precision and recall of 4-grams of words, averaged over pages, as article extraction is
  usually measured.
- *passages*: precision and recall of the labelled passages; of little weight for trafilatura, whose
  authors wrote the labels.
- *mirrors*: the share of pages whose text is at least 0.8 similar to the content alone, which is
  what a clean mirror of the page holds.
- *handbooks*: the same two for chapters of handbooks.

Settings are chosen on one half of the pages, by a hash of their names, and on one of two handbooks,
and reported on the others.
An extractor that is not installed is left out, and named.
"""

import argparse
import ast
import hashlib
import importlib.metadata
import re
import time
from collections import Counter
from pathlib import Path

import handbooks
import harness
import neardup
from neardup.io.columns import main_content

_TOKEN = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]|\\w+")
_GRAM = 4


def grams(text):
    """The runs of four words, or of single characters in scripts without spaces, with their numbers."""
    words = _TOKEN.findall(text.lower())
    return Counter(tuple(words[at : at + _GRAM]) for at in range(max(1, len(words) - _GRAM + 1)))


def half_of(name):
    """Which half a page belongs to."""
    return "chosen on" if hashlib.sha256(name.encode()).digest()[0] % 2 else "reported"


def pages_with_text(folder):
    """Name, page and text of the pages of newspaper4k."""
    for path in sorted(folder.glob("newspaper4k-*/tests/data/txt/*.txt")):
        page = path.parents[1] / "html" / f"{path.stem}.html"
        # The texts of the others are summaries, or are of another page.
        if page.exists() and "nlp" not in path.stem:
            yield path.stem, page.read_text("utf-8", "replace"), path.read_text("utf-8")


def pages_with_passages(folder):
    """Name, page, and the passages that are and are not content, of the pages of trafilatura."""
    for tests in sorted(folder.glob("trafilatura-0.3.*/tests/unit_tests.py")):
        tree = ast.parse(tests.read_text("utf-8"))
        files = _files_of(tree)
        found = {}
        url = None
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                for statement in node.body:
                    url = _loaded(statement) or url
                    if isinstance(statement, ast.Assert) and url in files:
                        found.setdefault(url, []).extend(_passages(statement))
        for url, passages in sorted(found.items()):
            page = tests.parent / "cache" / files[url]
            if page.exists() and passages:
                yield url, page.read_text("utf-8", "replace"), passages


def _files_of(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MOCK_PAGES":
            return ast.literal_eval(node.value)
    return {}


def _loaded(statement):
    """The address in `result = load_mock_page(address, ...)`."""
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "load_mock_page":
        return ast.literal_eval(call.args[0])
    return None


def _passages(statement):
    """(passage, is content) of `assert "a" in result and "b" not in result`."""
    compared = [node for node in ast.walk(statement.test) if isinstance(node, ast.Compare)]
    for node in compared:
        is_passage = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
        if is_passage and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            yield node.left.value, isinstance(node.ops[0], ast.In)


def f1(precision, recall):
    """The harmonic mean."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def judge_texts(extract, pages):
    """Precision and recall of the text of pages, and how many clean mirrors are recognised."""
    precisions = []
    recalls = []
    mirrors = 0
    for _, page, text in pages:
        found = extract(page) or ""
        own, wanted = grams(found), grams(text)
        shared = sum((own & wanted).values())
        precisions.append(shared / sum(own.values()))
        recalls.append(shared / sum(wanted.values()))
        mirrors += neardup.compare(found, text).jaccard >= 0.8
    number = max(1, len(pages))
    precision, recall = sum(precisions) / number, sum(recalls) / number
    return {
        "pages": len(pages),
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(f1(precision, recall), 3),
        "mirrors": round(mirrors / number, 3),
    }


def judge_passages(extract, pages):
    """Precision and recall of labelled passages."""
    counts = Counter()
    for _, page, passages in pages:
        found = " ".join((extract(page) or "").split())
        counts.update((" ".join(passage.split()) in found, wanted) for passage, wanted in passages)
    precision = counts[True, True] / max(1, counts[True, True] + counts[True, False])
    recall = counts[True, True] / max(1, counts[True, True] + counts[False, True])
    return {
        "passages": counts.total(),
        "precision": round(precision, 3),
        "recall": round(recall, 3),
        "f1": round(f1(precision, recall), 3),
    }


def extractors():
    """The extractors by name; those of peers only if they are installed."""
    known = {
        "neardup, main": main_content.main_text,
        "rules of resiliparse": lambda page: main_content._by_rules(page) or "",
        "all visible text": main_content.visible_text,
    }
    settings = {
        "trafilatura": {},
        "trafilatura, precision": {"favor_precision": True},
        "trafilatura, fast": {"fast": True},
        "trafilatura, fast, precision": {"fast": True, "favor_precision": True},
        "trafilatura, recall": {"favor_recall": True},
    }
    from trafilatura import extract

    for name, given in settings.items():
        known[name] = lambda page, given=given: extract(page, include_comments=False, **given)
    for name, load in {"readability-lxml": _readability, "jusText": _justext}.items():
        try:
            importlib.metadata.version(name)
            known[name] = load()
        except ImportError:
            print(f"{name} is not installed, so it is left out")
    return known


def _readability():
    from lxml.html import fromstring
    from readability import Document

    return lambda page: fromstring(Document(page).summary()).text_content()


def _justext():
    import justext

    stopwords = frozenset().union(*map(justext.get_stoplist, justext.get_stoplists()))

    def extract(page):
        paragraphs = justext.justext(page, stopwords)
        return "\n".join(one.text for one in paragraphs if not one.is_boilerplate)

    return extract


def measure(extract, with_text, with_passages, chapters):
    """The quality of an extractor on both halves, and its speed on the pages of the web."""
    found = {}
    for half in ("chosen on", "reported"):
        texts = [page for page in with_text if half_of(page[0]) == half]
        passages = [page for page in with_passages if half_of(page[0]) == half]
        found[half] = {
            "text": judge_texts(extract, texts),
            "passages": judge_passages(extract, passages),
            "handbooks": judge_texts(extract, chapters[half]),
        }
    pages = [page[1] for page in (*with_text, *with_passages)]
    began = time.process_time()
    for page in pages:
        extract(page)
    seconds = time.process_time() - began
    size = sum(len(page.encode()) for page in pages)
    found["pages_per_second"] = round(len(pages) / seconds, 1)
    found["mb_per_second"] = round(size / 1e6 / seconds, 1)
    return found


def main():
    """Measure every extractor, print a table and write results/html.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, default=Path(), help="folder of the distributions")
    folder = parser.parse_args().corpora
    with_text = list(pages_with_text(folder))
    with_passages = list(pages_with_passages(folder))
    chapters = {half: handbooks.chapters(folder, half) for half in handbooks.BOOKS}
    if not with_text or not with_passages or not all(chapters.values()):
        print(
            f"not all pages are below {folder}: unpack newspaper4k, trafilatura 0.3.1 and handbooks there"
        )
        return
    rows = []
    for name, extract in extractors().items():
        found = measure(extract, with_text, with_passages, chapters)
        for half in ("chosen on", "reported"):
            text = found[half]["text"]
            passages = found[half]["passages"]
            chapter = found[half]["handbooks"]
            rows.append(
                {
                    "extractor": name,
                    "half": half,
                    "pages": text["pages"],
                    "precision": text["precision"],
                    "recall": text["recall"],
                    "F1": text["f1"],
                    "mirrors": text["mirrors"],
                    "passages": passages["passages"],
                    "F1 of passages": passages["f1"],
                    "chapters": chapter["pages"],
                    "F1 of chapters": chapter["f1"],
                    "mirrors of chapters": chapter["mirrors"],
                    "pages/s": found["pages_per_second"],
                    "MB/s": found["mb_per_second"],
                }
            )
    about = harness.machine("neardup", "resiliparse", "trafilatura")
    harness.publish("html", rows, about)


if __name__ == "__main__":
    main()
