import json
import random

import pytest


def _page(rng, page, num_words=60):
    words = [f"{page}-{number}" for number in range(num_words)]
    words[rng.randrange(num_words)] = f"edit{rng.randrange(1000)}"
    return " ".join(words)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Three files of pages: single ones, small groups of near-copies, a large one, copies, and unusable rows."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(7)
    pages = [page for page in range(30) for _ in range(page % 4 + 1)] + [99] * 12
    rng.shuffle(pages)
    texts = [_page(rng, page) for page in pages] + [_page(random.Random(1), 5)] * 5
    lines = [json.dumps({"id": f"d{at}", "text": text}) for at, text in enumerate(texts)]
    lines[10:10] = ["{broken", "", '{"id": "n", "text": null}']
    third = len(lines) // 3
    for number, name in enumerate(("a", "b", "c")):
        chosen = lines[number * third : (number + 1) * third if number < 2 else None]
        (folder / f"{name}.jsonl").write_text("\n".join(chosen) + "\n", "utf-8")
    return folder


@pytest.fixture
def pages(tmp_path):
    """Two near-copies and another page."""
    words = [f"word{number}" for number in range(60)]
    texts = [" ".join(words), " ".join([*words[:-1], "other"]), " ".join(reversed(words))]
    path = tmp_path / "pages.jsonl"
    path.write_text(
        "".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(texts)),
        "utf-8",
    )
    return path
