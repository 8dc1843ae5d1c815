"""ignore_common: shingles in many documents of a group do not count, in memory and on files."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.errors import ConfigError, DataError, NotStoredError
from neardup.io.finished.decision_file import digest_of
from neardup.jobs import common_shingles as job
from neardup.jobs import files
from neardup.measures.remaining import least_common
from support import corpora, oracles

# One document is a template alone.
pytestmark = pytest.mark.filterwarnings("ignore:1 document has only ignored")
SIZE = 2
READING = {"size": SIZE, "threshold": 0.3}
TEMPLATES = [" ".join(f"{name}{at}" for at in range(12)) for name in ("north", "south")]
VOCABULARY = [f"w{at}" for at in range(2000)]


def make_rows(number=130, seed=1):
    """Documents of two sites with a template each, copies of some, and one that is a template alone."""
    rng = random.Random(seed)
    rows = []
    for at in range(number):
        own = " ".join(rng.choices(VOCABULARY, k=10))
        if at % 10 == 7:
            own = rows[at - 2]["own"] + " more"
        site = at % 2
        text = f"{TEMPLATES[site]} {own}"
        host = ("north.example", "South.Example:80")[site]
        rows.append({"id": f"d{at}", "url": f"https://{host}/{at}", "own": own, "text": text})
    rows.append({"id": "bare", "url": "https://north.example/", "own": "", "text": TEMPLATES[0]})
    return rows


ROWS = make_rows()


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def site_of(row):
    return "north" if "north" in row["url"] else "south"


def expected_pairs(rows, groups=None, *, share=0.05, **reading):
    truth = oracles.Truth(
        [row["text"] for row in rows],
        ignore_common=share,
        common_groups=groups,
        **READING | reading,
    )
    return {
        (rows[a]["id"], rows[b]["id"], round(similarity, 12))
        for (a, b), similarity in truth.pairs.items()
    }


def found_pairs(report):
    return {
        (pair["doc_a"], pair["doc_b"], round(pair["similarity"], 12))
        for pair in report.pairs.select(["doc_a", "doc_b", "similarity"]).to_pylist()
    }


@pytest.mark.parametrize("by", [None, "host"])
@pytest.mark.parametrize(
    "settings", [{"method": "exact"}, {"unit": "char", "size": 4}, {"multiset": True}]
)
def test_pairs_are_those_of_the_oracle_in_memory_and_on_files(by, settings, tmp_path):
    groups = None if by is None else list(map(site_of, ROWS))
    reading = {name: value for name, value in settings.items() if name != "method"}
    expected = expected_pairs(ROWS, groups, **reading)
    given = READING | {"method": "exact"} | settings | {"ignore_common": 0.05, "common_by": by}
    in_memory = neardup.find_pairs(ROWS, id_column="id", **given)
    assert 5 < len(expected) < 60
    assert found_pairs(in_memory) == expected
    path = write(tmp_path / "rows.jsonl", ROWS)
    on_files = neardup.find_pairs(path, out=tmp_path / "pairs.parquet", **given)
    assert found_pairs(on_files) == expected
    assert on_files.ignored_common == in_memory.ignored_common
    assert on_files.ignored_common["documents"] == 1
    stored = json.loads((tmp_path / "pairs.parquet.report.json").read_text())
    assert stored["ignored_common"] == on_files.ignored_common


def test_output_does_not_depend_on_threads_batches_parts_or_memory(monkeypatch, tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS)
    outputs = []
    for number, (threads, size) in enumerate([(1, 1 << 22), (2, 700), (3, 3000)]):
        out = tmp_path / f"out{number}"
        with monkeypatch.context() as patch:
            corpora.cut(patch, batch_bytes=size, part_bytes=2 * size)
            if number:
                corpora.shrink(patch, 20_000)
                patch.setattr(job, "NUM_COUNTERS", 1 << (2 * number))
            neardup.deduplicate(
                path,
                out=out,
                threads=threads,
                id_column="id",
                ignore_common="5%",
                common_by="host",
                **READING,
            )
        names = ("removed.parquet", "clusters.parquet", "common.parquet", "kept/rows.jsonl")
        outputs.append([(out / name).read_bytes() for name in names])
    assert outputs[0] == outputs[1] == outputs[2]


def common_windows(texts, groups=None, share=0.05):
    sets = [oracles.shingles(text, size=SIZE) for text in texts]
    return oracles.common_shingles(sets, groups or ["all"] * len(sets), share)


@pytest.mark.parametrize(("number", "share"), [(49, 0.05), (50, 0.05), (50, 0.5), (100, 0.05)])
def test_only_groups_of_fifty_distinct_documents_have_common_shingles(number, share):
    rng = random.Random(number)
    texts = [f"a b c {' '.join(rng.choices(VOCABULARY, k=5))}" for _ in range(number)]
    texts += texts[:5]  # equal sets count once
    report = neardup.find_pairs(texts, ignore_common=share, **READING)
    assert report.ignored_common["shingles"] == len(common_windows(texts, share=share)["all"])
    assert (report.ignored_common["shingles"] > 0) == (number >= 50)


def test_least_number_of_documents_is_the_first_above_the_share():
    rng = random.Random(3)
    for _ in range(2000):
        number = rng.randrange(50, 5000)
        share = rng.choice([rng.random(), rng.randrange(1, number) / number])
        least = least_common(share, number)
        assert least > share * number >= least - 1


def test_file_is_a_group_and_reference_documents_count(tmp_path):
    own = [row for row in ROWS if site_of(row) == "north"][:45]
    more = [row for row in ROWS if site_of(row) == "north"][45:]
    south = [row for row in ROWS if site_of(row) == "south"]
    paths = [
        write(tmp_path / f"{name}.jsonl", rows) for name, rows in (("own", own), ("south", south))
    ]
    old = write(tmp_path / "old.jsonl", more)
    given = READING | {"ignore_common": 0.05, "id_column": "id"}
    alone = neardup.deduplicate(paths, out=tmp_path / "by-file", common_by="file", **given)
    expected = common_windows([row["text"] for row in south])["all"]
    assert alone.ignored_common["shingles"] == len(expected)
    both = neardup.deduplicate(paths[:1], out=tmp_path / "all", against=old, **given)
    expected = common_windows([row["text"] for row in own + more])["all"]
    assert both.ignored_common["shingles"] == len(expected) > 0


def test_questions_about_a_finished_run_score_as_the_run_did(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS)
    given = READING | {"ignore_common": 0.05, "common_by": "host"}
    run = neardup.deduplicate(path, out=tmp_path / "out", pairs=True, report="page.html", **given)
    in_memory = neardup.deduplicate(ROWS, id_column="id", pairs=True, **given)
    removed = run.removed.to_pylist()
    assert removed
    for row in removed[:3]:
        for answer in (
            neardup.explain(run, row["doc_id"]),
            neardup.explain(in_memory, row["doc_id"]),
        ):
            assert answer.similarity == row["similarity"] == answer.comparison.jaccard
            assert TEMPLATES[0].split()[0] in answer.text or TEMPLATES[1].split()[0] in answer.text
    for report in (neardup.load(tmp_path / "out"), in_memory):
        audit = neardup.audit(report)
        assert (audit.recall, audit.precision) == (1.0, 1.0)
    again = run.at_threshold(0.5)
    assert again.num_removed == in_memory.at_threshold(0.5).num_removed
    (tmp_path / "out" / "common.parquet").unlink()
    with pytest.raises(NotStoredError, match="common shingles"):
        neardup.explain(tmp_path / "out", removed[0]["doc_id"])


def test_decision_removes_a_document_with_its_similarity_without_the_template(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS)
    given = READING | {"ignore_common": 0.05}
    run = neardup.deduplicate(path, out=tmp_path / "out", **given)
    decision = {"file": "rows.jsonl", "row": 1, "id": "d0", "decision": "remove"}
    decision |= {"digest": digest_of(ROWS[0]["text"].encode())}
    decisions = tmp_path / "decisions.json"
    decisions.write_text(json.dumps({"neardup_decisions": 1, "decisions": [decision]}))
    decided = neardup.deduplicate(path, out=tmp_path / "decided", decisions=decisions, **given)
    assert decided.decisions["unmatched"] == 0
    row = next(row for row in decided.removed.to_pylist() if row["doc_id"] == "d0")
    assert row["similarity"] < 0.3  # 0.35 and more with the template
    assert run.num_removed + 1 == decided.num_removed


def test_interrupted_run_resumes_with_the_common_shingles_it_counted(monkeypatch, tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS)
    given = READING | {"ignore_common": 0.05, "id_column": "id"}
    counted = []
    count = job.count_common

    def counting(*args):
        counted.append(args)
        return count(*args)

    monkeypatch.setattr(job, "count_common", counting)
    with monkeypatch.context() as patch:
        patch.setattr(files, "warn_of_templates", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            neardup.deduplicate(path, out=tmp_path / "out", **given)
    resumed = neardup.deduplicate(path, out=tmp_path / "out", **given)
    assert len(counted) == 1
    whole = neardup.deduplicate(path, out=tmp_path / "whole", **given)
    assert resumed.removed == whole.removed
    assert resumed.ignored_common == whole.ignored_common


def test_items_and_containment_ignore_common_ones_too(tmp_path):
    rng = random.Random(5)
    sets = [["common", f"x{at}", *rng.choices(VOCABULARY, k=4)] for at in range(60)]
    sets.append(["common", *sets[0][1:4]])
    report = neardup.find_pairs(items=sets, measure="containment", threshold=1.0, ignore_common=0.5)
    assert report.pairs.to_pylist()[0]["containment_b"] == 1.0
    assert report.num_pairs == 1
    old = write(tmp_path / "old.jsonl", [ROWS[0] | {"id": "old"}])
    path = write(tmp_path / "rows.jsonl", ROWS)
    removed = neardup.deduplicate(
        path,
        out=tmp_path / "out",
        against=old,
        measure="containment",
        threshold=0.9,
        ignore_common="5%",
        size=SIZE,
    )
    assert removed.removed.column("doc_id").to_pylist() == ["d0"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ignore_common": 0}, r"`ignore_common` must be a number in \(0, 1\)"),
        ({"ignore_common": 5}, r"in \(0, 1\)"),
        ({"ignore_common": "100%"}, r"in \(0, 1\)"),
        ({"ignore_common": "5 %x"}, r"in \(0, 1\)"),
        ({"common_by": "host"}, "`common_by` 'host' needs `ignore_common`"),
        ({"ignore_common": 0.1, "measure": "cosine"}, "needs a measure of shingles"),
        ({"ignore_common": 0.1, "engine": "spark"}, "not supported on Spark"),
    ],
)
def test_settings_that_cannot_work_are_errors(settings, message):
    with pytest.raises(ConfigError, match=message):
        Config(**settings)
    assert Config(ignore_common="5 %").ignore_common == 0.05


def test_jobs_that_see_no_whole_corpus_refuse(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS[:3])
    index = tmp_path / "i.index"
    with neardup.Index.create(index) as made:
        made.insert_many({"a": "a b c d e f"})
    for call in (
        lambda: neardup.compare("a", "b", ignore_common=0.1),
        lambda: neardup.neighbours(["a", "b"], ignore_common=0.1),
        lambda: neardup.plan(["a", "b"], ignore_common=0.1),
        lambda: neardup.buckets(["a", "b"], ignore_common=0.1),
        lambda: neardup.Index.create(tmp_path / "j.index", ignore_common=0.1),
        lambda: neardup.deduplicate(path, out=tmp_path / "o", against=index, ignore_common=0.1),
        lambda: neardup.deduplicate(["a"], ignore_common=0.1, common_by="file"),
        lambda: neardup.deduplicate([{"text": "a"}], ignore_common=0.1, common_by="nothing"),
    ):
        with pytest.raises(ConfigError, match=r"ignore_common|common_by"):
            call()
    with pytest.raises(DataError, match="no document has an address"):
        neardup.deduplicate(["a b c d e f"], ignore_common=0.1, common_by="host")


def test_host_is_that_of_the_column_url_or_of_the_id():
    from neardup.io.columns.common_groups import hosts_of

    addresses = {
        "http://a.example": "a.example",
        "HTTPS://me:pw@A.Example.:443/x@y": "a.example",
        "https://[2001:DB8::1]:80/": "[2001:db8::1]",
        " ftp://b.example?q": "b.example",
        "a.example/x": None,
        "http:///x": None,
        "": None,
    }
    assert hosts_of(pa.array([*addresses, None])).to_pylist() == [*addresses.values(), None]
    rows = [{"id": row["url"], "text": row["text"]} for row in ROWS]
    by_id = neardup.find_pairs(rows, ignore_common=0.05, common_by="host", **READING)
    by_url = neardup.find_pairs(
        ROWS, id_column="id", ignore_common=0.05, common_by="host", **READING
    )
    assert by_id.num_pairs == by_url.num_pairs
    assert by_id.ignored_common == by_url.ignored_common


def test_table_of_common_shingles_counts_documents(tmp_path):
    path = write(tmp_path / "rows.jsonl", ROWS)
    neardup.deduplicate(path, out=tmp_path / "out", ignore_common=0.05, **READING)
    common = pq.read_table(tmp_path / "out" / "common.parquet")
    windows = common_windows([row["text"] for row in ROWS])["all"]
    counts = sorted(
        sum(window in one for one in {oracles.shingles(row["text"], size=SIZE) for row in ROWS})
        for window in windows
    )
    assert sorted(common.column("documents").to_pylist()) == counts
    assert (np.diff(common.column("shingle").to_numpy().view(np.uint64)) > 0).all()


def test_command_takes_a_percentage_and_says_what_it_ignored(run, tmp_path):
    write(tmp_path / "rows.jsonl", ROWS)
    done = run(
        *(
            "dedup",
            "rows.jsonl",
            "-o",
            "out",
            "--ignore-common",
            "5%",
            "--common-by",
            "host",
            "--size",
            "2",
        ),
        *("-t", "0.3"),
    )
    assert done.code == 0, done.stderr
    assert "Ignored 22 common shingles; 1 document had no other." in done.stdout
    bad = run("dedup", "rows.jsonl", "-o", "bad", "--ignore-common", "500%")
    assert bad.code == 2
    assert "--ignore-common" in bad.stderr
