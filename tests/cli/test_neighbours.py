import json

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

FOUND = [("a", "d", 1), ("a", "b", 2), ("b", "a", 1), ("b", "d", 2), ("d", "a", 1), ("d", "b", 2)]


def ranked(rows):
    return [(row["doc_id"], row["neighbour_id"], row["rank"]) for row in rows]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_neighbours_writes_the_format_of_the_extension(run, pages, tmp_path, ending):
    out = tmp_path / f"near.{ending}"
    finished = run("neighbours", pages.name, "-o", out.name)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == f"6 neighbours. Written to near.{ending}\n"
    assert "1 row cannot be used: " in finished.stderr
    if ending == "jsonl":
        rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    else:
        rows = (
            pq.read_table(out) if ending == "parquet" else pyarrow.csv.read_csv(out)
        ).to_pylist()
    assert ranked(rows) == FOUND
    assert [(row["file"], row["row"], row["neighbour_row"]) for row in rows[:2]] == [
        (pages.name, 1, 4),
        (pages.name, 1, 2),
    ]
    assert not list(tmp_path.glob(".near*"))


def test_neighbours_are_printed_without_an_output_file(run, pages):
    finished = run("neighbours", pages.name, "--k", "1")
    assert finished.returncode == 0, finished.stderr
    lines = finished.stdout.splitlines()
    assert lines[0].split() == ["similarity", "rank", "document", "neighbour"]
    assert [line.split()[:2] for line in lines[1:3]] == [["1.0000", "1"], ["0.8750", "1"]]
    assert len(lines) == 4


def test_json_is_one_object_and_the_threshold_is_the_minimum_similarity(run, pages):
    finished = run("neighbours", pages.name, "--json", "--threshold", "0.95", "-q")
    answer = json.loads(finished.stdout)
    assert answer["k"] == 10
    assert ranked(answer["neighbours"]) == [("a", "d", 1), ("d", "a", 1)]
    assert finished.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--k", "0"], 2, "--k must be a whole number >= 1, got 0"),
        (["--k", "many"], 2, "--k"),
        (["-o", "near.xlsx"], 2, ".parquet, .jsonl or .csv"),
        (["-o", "pages.jsonl/near.csv"], 1, "cannot write the output pages.jsonl/near.csv: "),
        (["-o", "pages.jsonl"], 1, "already exists"),
        (["--measure", "cosine"], 1, "no column named vector"),
        (["--recall", "0.9"], 2, "there is no option"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(run, pages, tmp_path, arguments, code, words):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    finished = run("neighbours", pages.name, *arguments)
    assert finished.returncode == code, finished.stderr
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_standard_input_is_read(run, pages):
    finished = run("neighbours", "-", "--k", "1", "--json", stdin=pages.read_text("utf-8"))
    assert ranked(json.loads(finished.stdout)["neighbours"])[0] == ("a", "d", 1)


def test_queries_get_their_neighbours_in_the_input(run, pages, tmp_path):
    first = pages.read_text("utf-8").splitlines()[0]
    (tmp_path / "new.jsonl").write_text(
        json.dumps(json.loads(first) | {"id": "new"}) + "\n", "utf-8"
    )
    finished = run("neighbours", pages.name, "--queries", "new.jsonl", "--json", "-q")
    found = json.loads(finished.stdout)["neighbours"]
    assert ranked(found) == [("new", "a", 1), ("new", "d", 2), ("new", "b", 3)]
    assert [(row["file"], row["neighbour_file"]) for row in found[:1]] == [
        ("new.jsonl", pages.name)
    ]
    piped = run("neighbours", pages.name, "--queries", "-", "--json", "-q", stdin=first)
    assert ranked(json.loads(piped.stdout)["neighbours"]) == [
        ("a", "a", 1),
        ("a", "d", 2),
        ("a", "b", 3),
    ]
    both = run("neighbours", "-", "--queries", "-")
    assert both.returncode == 2
    assert "standard input can be read only once" in both.stderr
    absent = run("neighbours", pages.name, "--queries", "absent.jsonl")
    assert absent.returncode == 1
    assert "absent.jsonl" in absent.stderr


def test_k_all_lists_all_neighbours_above_a_threshold_and_contained_selects_the_share(run, pages):
    finished = run("neighbours", pages.name, "--k", "all", "--threshold", "0.8", "--json", "-q")
    answer = json.loads(finished.stdout)
    assert (answer["k"], ranked(answer["neighbours"])) == (None, FOUND)
    finished = run(
        "neighbours",
        pages.name,
        "--measure",
        "containment",
        "--contained",
        "query",
        "--k",
        "1",
        "--json",
        "-q",
    )
    first = json.loads(finished.stdout)["neighbours"][0]
    assert first["similarity"] == first["containment_query"] == 1.0
    refused = run("neighbours", pages.name, "--k", "all")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "no threshold is given" in refused.stderr
    refused = run("neighbours", pages.name, "--k", "some")
    assert refused.returncode == 2
    assert "'some' is not a whole number" in refused.stderr
