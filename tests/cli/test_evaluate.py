import json

from guides.made import records_with_typos


def test_evaluate_shows_numbers_curve_and_errors(run, tmp_path):
    records_with_typos.make(tmp_path)
    columns = "--text-column name --text-column address --text-column phone".split()
    chars = "--unit char --size 3 --threshold 0.15".split()
    assert run("pairs", "contacts.csv", "-o", "pairs.csv", *columns, *chars).returncode == 0
    truth = (tmp_path / "truth.csv").read_text("utf-8").splitlines()[1:]
    (tmp_path / "known.csv").write_text(
        "doc_id,cluster\n"
        + "".join(
            f"{own},{same}\n{same},{same}\n" for own, same in (line.split(",") for line in truth)
        )
    )
    finished = run("evaluate", "pairs.csv", "--labels", "known.csv")
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["precision", "recall", "f1", "documents"]
    assert "60 of 60 pairs labelled as the same; 95 % confidence interval" in lines[1]
    assert any(line.endswith("  best") for line in lines)
    assert "Found, but different" in lines
    assert lines[-1].startswith("Look at one: neardup explain pairs.csv ")
    answer = json.loads(run("evaluate", "pairs.csv", "--labels", "known.csv", "--json").stdout)
    assert (answer["right"], answer["recall"]) == (60, 1.0)
    assert len(answer["errors"]) == answer["wrong"]


def test_evaluate_names_labels_that_do_not_exist(run, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "x", "text": "a b c d e f"}\n')
    assert run("pairs", "a.jsonl", "-o", "p.csv").returncode == 0
    finished = run("evaluate", "p.csv", "--labels", "none.csv")
    assert finished.returncode != 0
    assert "--labels none.csv cannot be read" in finished.stderr
