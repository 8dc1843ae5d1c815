import json

import pyarrow.parquet as pq
import pytest


def test_dedup_writes_the_output_and_prints_a_summary(run, pages, tmp_path):
    finished = run("dedup", pages.name, "-o", "out")
    assert finished.returncode == 0, finished.stderr
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written >= {"kept", "rejected.jsonl", "removed.parquet", "report.json"}
    kept = (tmp_path / "out" / "kept" / pages.name).read_text("utf-8").splitlines()
    assert [json.loads(line)["id"] for line in kept] == ["a", "c"]
    lines = finished.stdout.splitlines()
    assert lines[0] == "5 documents: 2 kept, 2 removed (1 exact), 1 rejected, see rejected.jsonl."
    assert lines[1].startswith(
        "Every pair with similarity >= 0.8 was found (exact method). Read 349 B of text in "
    )
    assert lines[2].startswith("Written to out: ")
    assert {name.rstrip("/") for name in lines[2].partition(": ")[2].split(", ")} == written


def test_with_json_stdout_holds_only_the_report(run, pages, tmp_path):
    finished = run("dedup", pages.name, "-o", "out", "--json", "--pairs")
    assert json.loads(finished.stdout) == json.loads(
        (tmp_path / "out" / "report.json").read_text("utf-8")
    )
    assert (tmp_path / "out" / "pairs.parquet").exists()


def test_quiet_prints_nothing(run, pages):
    finished = run("dedup", pages.name, "-o", "out", "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_standard_input_is_read_as_json_lines(run, pages, tmp_path):
    finished = run("dedup", "-", "-o", "out", stdin=pages.read_text("utf-8"))
    assert finished.returncode == 0, finished.stderr
    assert pq.read_table(tmp_path / "out" / "removed.parquet").column("doc_id").to_pylist() == [
        "b",
        "d",
    ]


def test_the_summary_of_a_dry_run_does_not_mention_kept_rows(run, pages, tmp_path):
    finished = run("dedup", pages.name, "-o", "out", "--dry-run")
    assert "removed.parquet" in finished.stdout
    assert "kept/" not in finished.stdout
    assert not (tmp_path / "out" / "kept").exists()


def test_an_existing_output_is_replaced_only_with_overwrite(run, pages):
    run("dedup", pages.name, "-o", "out")
    again = run("dedup", pages.name, "-o", "out", "--threshold", "0.9")
    assert again.returncode in {1, 2}
    assert "overwrite" in again.stderr
    assert (
        run("dedup", pages.name, "-o", "out", "--threshold", "0.9", "--overwrite").returncode == 0
    )


@pytest.mark.usefixtures("pages")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["pages.jsonl"], 2, "missing option -o"),
        (["-o", "out"], 2, "missing argument 'INPUT...'"),
        (["nowhere.jsonl", "-o", "out"], 1, "nowhere.jsonl"),
        (["pages.jsonl", "-o", "out", "--threshold", "80"], 2, "hint: use 0.8 for 80 %"),
        (["pages.jsonl", "-o", "out", "--text-column", "body"], 1, "body"),
        (["pages.jsonl", "-o", "out", "--strict"], 1, "pages.jsonl"),
    ],
)
def test_a_mistake_is_a_message_and_leaves_no_output(run, tmp_path, arguments, code, words):
    finished = run("dedup", *arguments)
    assert finished.returncode == code
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out").exists()


def test_short_documents_cause_a_warning_unless_quiet(run, tmp_path):
    lines = "".join(f'{{"text": "Ada Lovelace, {number} Dorset Street"}}\n' for number in range(4))
    (tmp_path / "names.jsonl").write_text(lines)
    advice = "4 of 4 documents have fewer than 10 shingles, so a single typo can hide a match; consider --unit char"
    assert f"WARNING: {advice} and --size 3" in run("dedup", "names.jsonl", "-o", "loud").stderr
    assert run("dedup", "names.jsonl", "-o", "quiet", "--quiet").stderr == ""
    assert run("demo", "--size", "64", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--include", "*.md"], {"a.md", "b/c.md"}),
        (["--exclude", "*.md", "--exclude", "b/**"], {"a.txt"}),
        (["--include", "*.md", "--include", "*.txt", "--exclude", "b/**"], {"a.md", "a.txt"}),
    ],
)
def test_globs_choose_the_files_of_a_folder(run, tmp_path, options, kept):
    (tmp_path / "in/b").mkdir(parents=True)
    for number, name in enumerate(["a.md", "a.txt", "b/c.md", "b/d.txt"]):
        text = " ".join(f"word{number}x{n}" for n in range(20))
        (tmp_path / "in" / name).write_text(text, "utf-8")
    finished = run("dedup", "in", "-o", "out", "--format", "text", *options)
    assert finished.returncode == 0, finished.stderr
    found = {
        path.relative_to(tmp_path / "out/kept").as_posix()
        for path in (tmp_path / "out/kept").rglob("*.*")
    }
    assert {name.removeprefix("in/") for name in found} == kept
