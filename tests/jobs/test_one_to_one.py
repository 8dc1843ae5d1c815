"""Linking two collections: each document with its best partner in the other, on records of known truth."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.csv
import pytest

import neardup
from neardup.errors import ConfigError
from support import corpora

FIRST = "ada mary emmy marie lise rosa grace hedy dorothy rachel barbara chien".split()
TOPICS = "graphs matrices rivers primes sorting lattices proteins glaciers markets".split()


def records(seed, num_records):
    """Titles of papers in two catalogues, the second with typos; some papers have a second edition."""
    rng = random.Random(seed)
    ours, theirs, truth = {}, {}, set()
    for number in range(num_records):
        words = [rng.choice(FIRST), rng.choice(FIRST), "on", *rng.choices(TOPICS, k=4)]
        title = f"{' '.join(words)} {rng.randrange(1000)}"
        ours[f"a{number}"] = title
        at = rng.randrange(len(title))
        theirs[f"b{number}"] = title[:at] + rng.choice("xyz") + title[at + 1 :]
        truth.add((f"b{number}", f"a{number}"))
        if number % 3 == 0:  # another edition, in one catalogue only
            theirs[f"b{number}-2"] = f"{title} second edition"
    return ours, theirs, truth


def found(ours, theirs, **settings):
    settings = {"unit": "char", "size": 3, "threshold": 0.4, "method": "exact"} | settings
    report = neardup.find_pairs(ours, against=theirs, progress=lambda _: None, **settings)
    return report, {(row["doc_a"], row["doc_b"]) for row in report.pairs.to_pylist()}


def f1(listed, truth):
    return 2 * len(listed & truth) / (len(listed) + len(truth))


def test_best_partners_link_records_that_all_pairs_confuse():
    ours, theirs, truth = records(4, 150)
    _, every = found(ours, theirs, only_against=True)
    report, best = found(ours, theirs, one_to_one=True)
    assert best < every
    assert f1(every, truth) < 0.85
    assert f1(best, truth) > 0.98
    assert report.config.only_against
    assert len({a for a, _ in best}) == len({b for _, b in best}) == len(best)


def test_files_memory_and_the_command_agree(tmp_path, programs):
    ours, theirs, _ = records(5, 60)
    paths = []
    for name, texts in (("ours", ours), ("theirs", theirs)):
        rows = [{"id": doc_id, "text": text} for doc_id, text in texts.items()]
        paths.append(corpora.write_json_lines(tmp_path / f"{name}.jsonl", rows))
    _, in_memory = found(ours, theirs, one_to_one=True)
    for memory in (None, "400MB"):
        _, on_files = found(*paths, one_to_one=True, memory=memory)
        assert on_files == in_memory
    words = ["pairs", "ours.jsonl", "--against", "theirs.jsonl", "--one-to-one", "-o", "links.csv"]
    words += ["--unit", "char", "--size", "3", "--threshold", "0.4", "--method", "exact"]
    done = programs.run(*words, cwd=tmp_path)
    assert done.code == 0, done.stderr
    listed = pa.csv.read_csv(tmp_path / "links.csv").to_pylist()
    assert {(row["doc_a"], row["doc_b"]) for row in listed} == in_memory
    assert f"{len(listed):,} pairs" in done.stdout + done.stderr
    # The best partners at a higher threshold are those of them that are as similar.
    done = programs.run(*words, "--threshold", "0.9", "--overwrite", cwd=tmp_path)
    closer = pa.csv.read_csv(tmp_path / "links.csv").to_pylist()
    assert 0 < len(closer) < len(listed)
    assert closer == [row for row in listed if row["similarity"] >= 0.9]


def test_containment_links_by_the_larger_share():
    theirs = {"whole": "one two three four five six seven eight", "part": "one two three four"}
    report, best = found(
        {"new": "one two three four five six"},
        theirs,
        one_to_one=True,
        measure="containment",
        unit="word",
        size=1,
        method="auto",
    )
    assert best == {("whole", "new")}
    assert report.pairs.column("containment_b").to_pylist() == [1.0]


@pytest.mark.parametrize(
    ("job", "settings", "message"),
    [
        (neardup.find_pairs, {}, "`one_to_one` needs `against`"),
        (neardup.deduplicate, {"against": {"a": "b"}}, "`one_to_one` is for lists of pairs"),
        (
            neardup.find_pairs,
            {"against": {"a": "b"}, "audit": True},
            "`one_to_one` and `audit` cannot be combined",
        ),
        (
            neardup.find_pairs,
            {"against": {"a": "b"}, "cluster": "components"},
            "`only_against` and cluster 'components' cannot be combined",
        ),
    ],
)
def test_what_cannot_be_linked_is_refused(job, settings, message):
    with pytest.raises(ConfigError, match=message):
        job(["a"], one_to_one=True, **settings)


def test_links_are_neither_audited_nor_selected_again():
    report, _ = found({"a": "one text"}, {"b": "one text!"}, one_to_one=True)
    with pytest.raises(ConfigError, match="lists only pairs of best partners"):
        neardup.audit(report)
    with pytest.raises(neardup.NearDupError, match="no selection to repeat"):
        report.at_threshold(0.9)
