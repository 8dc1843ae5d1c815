"""Every command in the README's table of jobs does the job, on small inputs with the same names."""

from __future__ import annotations

import csv
import json
import random
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from guides.made import daily_increments, decontaminate, records_with_typos
from guides.made.records_with_typos import SYLLABLES
from support import web_pages

README = Path(__file__).parents[2] / "README.md"
JOBS = dict(
    re.findall(r"^\| ([^|]+) \| `neardup ([^`]+)` \|", README.read_text("utf-8"), re.MULTILINE)
)
NUM_PAGES = 60


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def pairs(path):
    return {(row["doc_a"], row["doc_b"]) for row in read_csv(path)}


def removed(folder):
    report = json.loads((folder / "report.json").read_text("utf-8"))
    table = pq.read_table(folder / "removed.parquet")
    kept = sum(
        len(path.read_text("utf-8").splitlines()) for path in (folder / "kept").rglob("*.jsonl")
    )
    assert (report["removed"], report["kept"], report["rejected"]) == (table.num_rows, kept, 0)
    return dict(
        zip(table.column("doc_id").to_pylist(), table.column("kept_id").to_pylist(), strict=True)
    ), report


def clean_a_crawl(folder, run):
    """The articles of a crawl on some templates; the mirrors of ten of them are on another template."""
    pages, mirrors = web_pages.crawl()
    chosen = {url for pair in list(mirrors.items())[:10] for url in pair}
    rows = [
        {"url": url, "text": page}
        for at, (url, page) in enumerate(pages)
        if at < NUM_PAGES or url in chosen
    ]
    (folder / "crawl").mkdir()
    (folder / "crawl/pages.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), "utf-8"
    )
    run()
    gone, _ = removed(folder / "clean")
    urls = {row["url"] for row in rows}
    assert gone == {mirror: url for mirror, url in mirrors.items() if {mirror, url} <= urls}


def decontaminate_training_data(folder, run):
    decontaminate.make(folder)
    run()
    gone, report = removed(folder / "clean")
    assert set(gone) == set(decontaminate.QUOTED | decontaminate.COPIED)
    assert report["contamination"]["num_contaminated"] == len(gone)


def add_a_day(folder, run):
    daily_increments.make(folder)
    (folder / "tuesday.jsonl").rename(folder / "today.jsonl")
    run("dedup", "monday.jsonl", "-o", "days/29")
    run()
    gone, report = removed(folder / "days/30")
    assert (gone, report["removed_against"]) == (
        {"tuesday-5": "monday-1", "tuesday-6": "monday-2"},
        2,
    )


def find_copied_essays(folder, run):
    """Six essays of their own, and one that has taken a third of its text from another."""
    rng = random.Random(4)
    words = [f"{rng.choice(SYLLABLES)}{rng.choice(SYLLABLES)}" for _ in range(3000)]
    essays = [rng.choices(words, k=300) for _ in range(6)]
    essays.append(rng.choices(words, k=100) + essays[2][100:200] + rng.choices(words, k=100))
    (folder / "essays").mkdir()
    for number, essay in enumerate(essays):
        (folder / f"essays/{number}.txt").write_text(" ".join(essay), "utf-8")
    run()
    assert pairs(folder / "pairs.csv") == {("2.txt", "6.txt")}


def find_the_threshold(folder, run):
    """Sixty documents of their own and a copy of each with one word changed: the valley is between them."""
    rng = random.Random(5)
    words = [f"{rng.choice(SYLLABLES)}{rng.choice(SYLLABLES)}" for _ in range(3000)]
    rows = []
    for number in range(60):
        text = rng.choices(words, k=80)
        rows.append({"id": f"own-{number}", "text": " ".join(text)})
        rows.append({"id": f"copy-{number}", "text": " ".join([*text[:40], "other", *text[41:]])})
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    finished = run()
    assert "neardup pairs pages.jsonl" in finished.stdout
    assert "--threshold 0." in finished.stdout


def find_repeated_parts(folder, run):
    """A banner of 60 words on three of four pages is one passage in two further places."""
    rng = random.Random(6)
    words = [f"{rng.choice(SYLLABLES)}{rng.choice(SYLLABLES)}" for _ in range(3000)]
    banner = " ".join(rng.choices(words, k=60))
    pages = [" ".join(rng.choices(words, k=90)) for _ in range(4)]
    rows = [
        {"id": str(number), "text": f"{page}. {banner}" if number else page}
        for number, page in enumerate(pages)
    ]
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run()
    [passage] = pq.read_table(folder / "parts/repeated.parquet").to_pylist()
    assert (passage["words"], passage["places"], passage["text"]) == (60, 3, banner)
    places = pq.read_table(folder / "parts/passages.parquet")
    assert places.column("doc_id").to_pylist() == ["2", "3"]


def remove_repeated_lines(folder, run):
    """The same footer below three pages stays once, and nothing else goes."""
    footer = "subscribe to our letter and never miss a story from the harbour again"
    pages = [f"{' '.join(f'word{page}x{n}' for n in range(20))}\n{footer}\n" for page in range(3)]
    rows = [{"id": str(number), "text": page} for number, page in enumerate(pages)]
    (folder / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run()
    lines = (folder / "clean/kept/pages.jsonl").read_text("utf-8").splitlines()
    kept = [json.loads(line)["text"] for line in lines]
    assert [footer in text for text in kept] == [True, False, False]
    assert all(
        text.startswith(page.partition("\n")[0]) for text, page in zip(kept, pages, strict=True)
    )


def find_copied_code(folder, run):
    """A module, a copy with other names, and another module of the same size."""
    module = """def total(prices, taxes):
    result = 0
    for price, tax in zip(prices, taxes):
        if price < 0:
            raise ValueError("negative price")
        result += price * (1 + tax)
    return round(result, 2)
"""
    copy = module
    for old, new in {"total": "f", "price": "x", "tax": "y", "result": "z"}.items():
        copy = copy.replace(old, new)
    other = """class Queue:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop(0) if self.items else None
"""
    (folder / "src").mkdir()
    for name, code in {"prices": module, "costs": copy, "queue": other}.items():
        (folder / f"src/{name}.py").write_text(code, "utf-8")
    run()
    assert pairs(folder / "copies.csv") == {("costs.py", "prices.py")}


def match_records(folder, run):
    records_with_typos.make(folder)
    run()
    truth = {(row["same_as"], row["id"]) for row in read_csv(folder / "truth.csv")}
    assert pairs(folder / "same.csv") == truth


def match_customers(folder, run):
    baskets = {"a": "tea milk jam", "b": "jam tea milk bread", "c": "nails paint"}
    (folder / "baskets.csv").write_text(
        "id,products\n" + "".join(f"{id_},{own}\n" for id_, own in baskets.items())
    )
    run()
    assert pairs(folder / "similar.csv") == {("a", "b")}


def find_images(folder, run):
    features = [[1.0, 2.0, 2.0], [9.0, 0.0, 1.0], [1.0, 2.0, 2.1]]
    pq.write_table(
        pa.table({"id": ["x", "y", "z"], "embedding": features}), folder / "images.parquet"
    )
    run()
    assert pairs(folder / "similar.csv") == {("x", "z")}


DONE = {
    "find the threshold for your data": find_the_threshold,
    "clean a crawl": clean_a_crawl,
    "remove lines or paragraphs that stand in many documents": remove_repeated_lines,
    "find copied code, also with other names": find_copied_code,
    "keep a benchmark out of training data": decontaminate_training_data,
    "find what is repeated inside documents: banners, headers, leaked passages": find_repeated_parts,
    "add new documents every day": add_a_day,
    "find copied essays": find_copied_essays,
    "match records with typos": match_records,
    "match customers by what they buy": match_customers,
    "find similar images, by features": find_images,
}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_of_the_readme_is_done_by_its_command(job, programs, tmp_path):
    def run(*other):
        finished = programs.run(*(other or shlex.split(JOBS[job])), cwd=tmp_path)
        assert finished.code == 0, finished.stderr
        return finished

    DONE[job](tmp_path, run)


def test_every_job_with_a_command_is_tested():
    assert DONE.keys() == JOBS.keys()
