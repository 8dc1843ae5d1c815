import json

import pyarrow.parquet as pq
import pytest

ITEM = (
    "a farmer counts forty hens in the first barn and twice as many in the second one how many eggs does he "
    "collect if every third hen lays one"
)
EDITED = ITEM.replace("forty", "fifty")


@pytest.fixture
def site(tmp_path):
    """Three documents, of which one has an item with a change, and a row that cannot be used; a benchmark."""
    texts = ("", EDITED, "")
    rows = [{"id": f"d{at}", "text": f"page {at} own{at}. {text}"} for at, text in enumerate(texts)]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "train.jsonl").write_text("\n".join([*lines, "{bad"]) + "\n", "utf-8")
    items = [{"id": "q1", "question": ITEM, "answer": "1"}, {"id": "q2", "question": "why?"}]
    (tmp_path / "quiz.jsonl").write_text("\n".join(map(json.dumps, items)) + "\n", "utf-8")
    return tmp_path


ASKED = ("decontaminate", "train.jsonl", "--against", "quiz.jsonl", "--item-column", "question")


def test_decontaminate_prints_a_table_of_benchmarks_and_removes_nothing(run, site):
    finished = run(*ASKED, "-o", "found")
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    rows = [line.split() for line in lines]
    assert ["benchmark", "items", "found", "too", "short", "documents"] in rows
    assert ["quiz.jsonl", "2", "1", "1", "1"] in rows
    assert lines[-3] == "4 documents: 1 with 1 of 2 items; 1 rejected."
    assert lines[-1] == (
        "Written to found: benchmarks.parquet, contaminated.parquet, items.parquet, rejected.jsonl, report.json, "
        "weights.parquet"
    )
    [row] = pq.read_table(site / "found" / "contaminated.parquet").to_pylist()
    assert (row["doc_id"], row["item_id"], row["matched_words"]) == ("d1", "q1", 28)


def test_remove_cut_and_mark_write_documents(run, site):
    for option in ("--remove", "--cut", "--mark"):
        assert run(*ASKED, "-o", f"out{option}", option, "-q").returncode == 0
    kept = {
        option: [
            json.loads(line)
            for line in (site / f"out{option}/kept/train.jsonl").read_text("utf-8").splitlines()
        ]
        for option in ("--remove", "--cut", "--mark")
    }
    assert [row["id"] for row in kept["--remove"]] == ["d0", "d2"]
    assert kept["--cut"][1]["text"] == "page 1 own1."
    assert [row["neardup_repeated_words"] for row in kept["--mark"]] == [0, 29, 0]


@pytest.mark.usefixtures("site")
def test_json_is_the_report(run):
    finished = run(*ASKED, "-o", "found", "--json")
    assert json.loads(finished.stdout)["contamination"] == {
        "num_items": 2,
        "num_items_found": 1,
        "num_too_short": 1,
        "num_items_rejected": 0,
        "num_contaminated": 1,
    }


def test_a_check_fails_if_an_item_is_found_and_not_otherwise(run, site):
    found = run(*ASKED, "-o", "a", "--fail-if-found", "-q")
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")
    none = run(*ASKED, "-o", "b", "--fail-if-found", "--threshold", "1", "-q")
    assert none.returncode == 0
    by_rule = run(*ASKED, "-o", "c", "--fail-if-found", "--rule", "ngram13", "-q")
    assert by_rule.returncode == 1
    weighed = run(*ASKED, "-o", "d", "--weights-from", "a", "-q")
    assert weighed.returncode == 0
    assert (site / "d/contaminated.parquet").read_bytes() == (
        site / "a/contaminated.parquet"
    ).read_bytes()


def test_mistakes_name_the_option(run, site):
    for options, message in (
        (("--remove", "--cut"), "--remove and --cut cannot be combined"),
        (("--rule", "ngram13", "--threshold", "0.9"), "--threshold does not apply to the rule"),
        (("--weights-from", "quiz.jsonl"), "--weights-from quiz.jsonl has no weights.parquet"),
        (("--threshold", "0.1"), "--threshold must be at least 0.25"),
    ):
        finished = run(*ASKED, "-o", "out", *options)
        assert finished.returncode == 2, finished.stderr
        assert message in finished.stderr
        assert not (site / "out").exists()
    finished = run("decontaminate", "train.jsonl", "--against", "quiz.jsonl", "-o", "out")
    assert finished.returncode == 1
    assert "--item-column question" in finished.stderr


@pytest.mark.usefixtures("site")
def test_other_commands_say_that_they_need_a_deduplication(run):
    assert run(*ASKED, "-o", "found", "-q").returncode == 0
    for command in (("explain", "found", "d1"), ("audit", "found")):
        finished = run(*command)
        assert finished.returncode == 1
        assert "neardup dedup" in finished.stderr, finished.stderr


def test_the_page_of_a_decontamination_lists_benchmarks_and_items(run, site):
    assert run(*ASKED, "-o", "found", "-q").returncode == 0
    finished = run("report", "found", "-o", "page.html")
    assert finished.returncode == 0, finished.stderr
    page = (site / "page.html").read_text("utf-8")
    assert "<td>quiz.jsonl</td><td>2</td><td>1</td><td>1</td><td>1</td>" in page
    assert "<td>quiz.jsonl</td><td>q1</td><td>29</td><td>1</td>" in page
    assert "q2" not in page
