import json

import pytest

WEAK = ("--bands", "1", "--rows", "128", "--threshold", "0.5")


@pytest.fixture
def finished(run, pages):
    """A run that misses the pairs of b: it shares no whole signature with a or d."""
    done = run("dedup", pages.name, "-o", "out", *WEAK, "--quiet")
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.usefixtures("finished")
def test_recall_interval_and_missed_pairs_are_printed(run):
    answer = run("audit", "out")
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    names = ["recall", "predicted", "promised", "precision", "pairs", "missed", "seconds"]
    assert [line.split()[0] for line in lines[:7]] == names
    assert lines[0].startswith(
        "recall                  0.3333  of the pairs with similarity >= 0.5; 95 % confidence interval "
    )
    assert lines[4] == "pairs                        3  true pairs of 4 sampled documents"
    assert lines[8] == "similarity  chance  missed"
    assert lines[9] == "    0.8750  0.0000  a (pages.jsonl:1)  b (pages.jsonl:2)"
    assert len(lines) == 11


@pytest.mark.usefixtures("finished")
def test_json_holds_the_whole_audit(run):
    answer = json.loads(run("audit", "out", "--json").stdout)
    assert (answer["recall"], answer["pairs"], answer["precision"], answer["verified"]) == (
        1 / 3,
        3,
        1.0,
        1,
    )
    assert answer["low"] <= answer["recall"] <= answer["high"]
    assert [(pair["doc_a"], pair["doc_b"], pair["row_b"]) for pair in answer["missed"]] == [
        ("a", "b", 2),
        ("b", "d", 4),
    ]


@pytest.mark.usefixtures("finished")
def test_the_sample_size_can_be_reduced(run):
    assert json.loads(run("audit", "out", "--sample", "2", "--json").stdout)["sample"] == 2


def test_dedup_prints_and_stores_its_audit(run, pages, tmp_path):
    done = run("dedup", pages.name, "-o", "out", *WEAK, "--audit")
    assert done.returncode == 0, done.stderr
    assert "Audit: recall 0.3333 (" in done.stdout
    stored = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["audit"]
    later = json.loads(run("audit", "out", "--json").stdout)
    assert stored | {"seconds": 0} == later | {"seconds": 0}


def test_pairs_prints_and_stores_its_audit(run, pages):
    report = json.loads(run("pairs", pages.name, "-o", "pairs.csv", "--audit", "--json").stdout)
    assert report["audit"]["recall"] == 1.0
    assert (
        json.loads(run("audit", "pairs.csv", "--json").stdout)["pairs"]
        == report["audit"]["pairs"]
        == report["pairs"]
    )


def test_the_audit_of_a_run_without_pairs_reports_unknown_recall(run, tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "吾輩は猫である"}\n{"text": "雨ニモマケズ"}\n', "utf-8"
    )
    run("dedup", "a.jsonl", "-o", "out")
    lines = run("audit", "out").stdout.splitlines()
    assert (
        lines[0]
        == "recall                 unknown  no sampled document has a pair with similarity >= 0.8"
    )
    assert json.loads(run("audit", "out", "--json").stdout)["recall"] is None


def test_missed_pairs_of_any_script_are_named(run, tmp_path):
    page = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    rows = [{"id": "猫", "text": page}, {"id": "犬", "text": page.replace("猫", "犬")}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    run("dedup", "a.jsonl", "-o", "out", *WEAK)
    assert "猫 (a.jsonl:1)  犬 (a.jsonl:2)" in run("audit", "out", PYTHONIOENCODING="utf-8").stdout


def test_missed_pairs_beyond_a_screen_are_counted(run, tmp_path):
    words = [f"w{at}" for at in range(40)]
    texts = [" ".join([*words, f"end{at}"]) for at in range(8)]
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8"
    )
    run("dedup", "a.jsonl", "-o", "out", *WEAK)
    lines = run("audit", "out").stdout.splitlines()
    missed = json.loads(run("audit", "out", "--json").stdout)["missed"]
    assert len(missed) > 20
    assert lines[-1] == f"and {len(missed) - 20} more; --json lists all"


@pytest.mark.usefixtures("finished")
def test_a_changed_input_is_reported(run, pages):
    with pages.open("a") as stream:
        stream.write("{}\n")
    answer = run("audit", "out")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith("error: the input pages.jsonl has changed since the run")
    assert "\n\nhint: " in answer.stderr


def test_standard_input_cannot_be_read_again(run, pages):
    run("dedup", "-", "-o", "out", stdin=pages.read_text("utf-8"))
    answer = run("audit", "out")
    assert answer.returncode == 1
    assert "standard input" in answer.stderr
    assert "--audit" in answer.stderr


def test_standard_input_is_audited_in_the_run(run, pages):
    report = json.loads(
        run("dedup", "-", "-o", "out", "--audit", "--json", stdin=pages.read_text("utf-8")).stdout
    )
    assert report["audit"]["recall"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["audit"], 2, "missing argument 'OUT'"),
        (["audit", "nowhere"], 1, "nowhere does not exist"),
        (["audit", "pages.jsonl"], 1, "pages.jsonl is not a finished run"),
        (["audit", "out", "--sample", "0"], 2, "--sample must be a whole number >= 1, got 0"),
        (["audit", "out", "--sample", "many"], 2, "'many' is not a whole number"),
    ],
)
@pytest.mark.usefixtures("finished")
def test_mistakes_are_messages(run, arguments, code, words):
    answer = run(*arguments)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert words in answer.stderr
    assert "Traceback" not in answer.stderr


def test_stored_pairs_are_listed_at_the_threshold_of_the_run_or_higher(run, pages, tmp_path):
    run("dedup", pages.name, "-o", "out", "--threshold", "0.85", "--pairs")
    answer = run("pairs", "out", "-o", "all.csv")
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "all.csv").read_text("utf-8").count("\n") == 4
    run("pairs", "out", "-o", "close.csv", "--threshold", "0.9")
    assert (tmp_path / "close.csv").read_text("utf-8").count("\n") == 2
    answer = run("pairs", "out", "-o", "far.csv", "--threshold", "0.8")
    assert answer.returncode == 2
    assert "--threshold must be at least 0.85" in answer.stderr
    assert "run neardup pairs on the input files" in answer.stderr


def test_a_run_without_stored_pairs_says_how_to_store_pairs(run, finished):
    answer = run("pairs", "out", "-o", "all.csv")
    assert (finished.returncode, answer.returncode) == (0, 1)
    assert "--pairs" in answer.stderr


def test_the_audit_of_an_exact_run_refers_to_the_exact_method(run, pages):
    run("dedup", pages.name, "-o", "out", "--method", "exact", "--quiet")
    printed = run("audit", "out").stdout
    assert "promised                1.0000  every pair: the run used the exact method\n" in printed
    assert "S-curve" not in printed
