"""Promise 4: every output, and all of report.json but times and memory, is the same for any memory and threads."""

import random

import pytest

from support import corpora

# What a report may say differently: these fields (`seconds` of the audit too), and the settings
# `threads` and `memory`.
TIME_AND_MEMORY = ("seconds", "stages", "peak_memory_bytes")
# Bytes of memory that are left, and threads: components in many blocks, in a few, and whole.
SPLITS = [(300_000, 1), (300_000, 3), (1 << 20, 1), (1 << 20, 3), (1 << 32, 2)]
CASES = {
    "leaders": {},
    "components": {"cluster": "components"},
    "pairs": {"pairs": True},
    "components with pairs": {"cluster": "components", "pairs": True},
    "exact, the longest": {"method": "exact", "keep": "longest"},
    "exact, the best": {"method": "exact", "keep": "max:score"},
    "exact components": {"method": "exact", "cluster": "components"},
    "exact pairs": {"method": "exact", "pairs": True},
    "auto": {"method": "auto", "pairs": True},
    "against": {"against": True, "pairs": True},
    "only against": {"against": True, "only_against": True, "method": "exact"},
    "containment": {"against": True, "measure": "containment", "method": "auto", "pairs": True},
    "by site": {"group_column": "site", "cluster": "components"},
    "two per cluster": {"per_cluster": 2, "audit": True},
    "minhash": {"sketch": "minhash", "keep": "min:score"},
}


def documents(num_documents):
    """Pages that share a part, near-copies, copies and strays: large components where many comparisons fail."""
    rng = random.Random(1)
    page = [f"w{number}" for number in range(60)]
    made = []
    for number in range(num_documents):
        words = [f"stray{rng.randrange(4000)}" for _ in range(40)]
        if number % 3 == 0:
            words = page[:40] + [f"own{number}x{word}" for word in range(rng.randrange(20))]
        if number % 3 == 1:
            words = list(page)
            words[rng.randrange(60)] = f"edit{number}"
        if number % 17 == 5:
            words = made[-1]["text"].split()
        made.append(
            {
                "id": str(number),
                "text": " ".join(words),
                "score": number % 13,
                "site": f"site{number % 2}",
            }
        )
    return made


@pytest.mark.parametrize("case", CASES)
def test_promise_4_the_whole_report_is_the_same_for_any_memory_and_threads(
    case, tmp_path, monkeypatch
):
    pages = corpora.write_json_lines(tmp_path / "pages.jsonl", documents(150))
    settings = {"threshold": 0.7, "method": "lsh"} | CASES[case]
    if "against" in settings:
        old = corpora.write_json_lines(tmp_path / "old.jsonl", documents(150)[::7])
        settings["against"] = str(old)
    outputs = []
    for number, (room, threads) in enumerate(SPLITS):
        corpora.shrink(monkeypatch, room)
        corpora.deduplicate([pages], tmp_path / str(number), threads=threads, **settings)
        outputs.append(corpora.contents(tmp_path / str(number), without=TIME_AND_MEMORY))
    assert outputs[0]["report.json"]["removed"] > 0
    for split, output in zip(SPLITS, outputs, strict=True):
        assert output == outputs[0], split
