import json
import random
import shlex

from guides.made import records_with_typos

COLUMNS = "--text-column name --text-column address --text-column phone".split()


def test_tune_shows_histogram_examples_and_a_command_that_works(run, tmp_path):
    records_with_typos.make(tmp_path)
    finished = run("tune", "contacts.csv", *COLUMNS)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("Copies begin at a similarity of about 0.")
    for words in ("unit  size  threshold  separation", "At or above the threshold", "Below it"):
        assert words in finished.stdout
    command = finished.stdout.splitlines()[-1].strip()
    listed = run(*shlex.split(command)[1:])
    assert listed.returncode == 0, listed.stderr
    assert "60 pairs with similarity" in listed.stdout


def test_tune_as_json_has_everything(run, tmp_path):
    records_with_typos.make(tmp_path)
    finished = run("tune", "contacts.csv", *COLUMNS, "--unit", "char", "--size", "3", "--json")
    answer = json.loads(finished.stdout)
    assert answer["settings"] == {"unit": "char", "size": 3, "threshold": answer["threshold"]}
    assert f"--threshold {answer['threshold']:g}" in answer["command"]
    assert len(answer["examples"]) == 10


def test_tune_without_a_valley_says_so(run, tmp_path):
    rng = random.Random(1)
    texts = [" ".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=60)) for _ in range(40)]
    lines = [json.dumps({"id": str(at), "text": text}) for at, text in enumerate(texts)]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    finished = run("tune", "own.jsonl")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("No valley between noise and copies")
    assert finished.stdout.splitlines()[-1].endswith("--threshold 0.1")


def test_tune_writes_a_page_with_the_histogram_and_escaped_ids(run, tmp_path):
    rng = random.Random(2)
    rows = []
    for number in range(30):
        words = [f"w{rng.randrange(3000)}" for _ in range(60)]
        rows.append({"id": f"<b>{number}", "text": " ".join(words)})
        rows.append({"id": f"copy-{number}", "text": " ".join([*words[:30], "x", *words[31:]])})
    (tmp_path / "pages.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    command = ("tune", "pages.jsonl", "--unit", "word", "--size", "5", "-o", "page.html", "-q")
    assert run(*command).returncode == 0
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    assert page.count("<rect") == 46  # bins of .02 from .1, and one of equal documents
    assert "Content-Security-Policy" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    again = run(*command)
    assert (again.returncode, "pass --overwrite" in again.stderr) == (1, True)
    assert run(*command, "--overwrite").returncode == 0
