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
