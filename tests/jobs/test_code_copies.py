"""Copies of source code, from files to pairs: renamed, re-spaced and re-commented copies of known truth."""

from __future__ import annotations

import csv
import inspect
import json
import keyword
import re
import textwrap

import pytest

import neardup
from neardup.errors import ConfigError, DataError
from neardup.stages import collapse, link_all, list_pairs, select, verify_blocks

MODULES = (collapse, link_all, list_pairs, select, verify_blocks)
SETTINGS = {"unit": "code", "size": 8, "threshold": 0.9}


def renamed(text):
    """Give every name another one, and drop comments and documentation."""
    names = {}

    def rename(found):
        name = found[0]
        return name if keyword.iskeyword(name) else names.setdefault(name, f"v{len(names)}")

    text = re.sub(r'^ *"""(.|\n)*?"""\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"#.*", "", text)
    parts = re.split(r'("(?:[^"\\\n]|\\.)*")', text)  # the odd ones are strings
    parts[::2] = [re.sub(r"\b[A-Za-z_]\w*", rename, part) for part in parts[::2]]
    return "".join(parts)


def respaced(text):
    """Double the indentation, add empty lines and comments."""
    lines = [re.sub(r"^( *)", r"\1\1", line) for line in text.split("\n")]
    return "\n\n# remark\n".join(lines[:1]) + "\n" + "\n".join(lines[1:]) + "\n# the end\n"


@pytest.fixture
def source(tmp_path):
    """Modules of this package, and a copy of each; beside them what is no code."""
    folder = tmp_path / "src"
    folder.mkdir()
    for number, module in enumerate(MODULES):
        text = inspect.getsource(module)
        (folder / f"own{number}.py").write_text(text, "utf-8")
        changed = (renamed, respaced)[number % 2](text)
        (folder / f"own{number}_copy.py").write_text(changed, "utf-8")
    (folder / "tiny1.py").write_text("import os\nprint(os.name)\n", "utf-8")
    (folder / "tiny2.py").write_text("import re\nprint(re.name)\n", "utf-8")
    (folder / "names.json").write_text('{"a": [1, 2]}', "utf-8")
    (folder / "notes.txt").write_text("prose", "utf-8")
    return folder


def copies():
    return {(f"own{number}.py", f"own{number}_copy.py") for number in range(len(MODULES))}


def pairs_of(report):
    return {(row["doc_a"], row["doc_b"]) for row in report.pairs.to_pylist()}


def test_exactly_the_copies_are_found_each_with_similarity_one(source, tmp_path):
    seen = []
    report = neardup.find_pairs(
        source, out=tmp_path / "pairs.csv", min_words=50, progress=seen.append, **SETTINGS
    )
    assert pairs_of(report) == copies()
    assert set(report.pairs.column("similarity").to_pylist()) == {1.0}
    assert "3 documents with fewer than 50 tokens were not compared" in report.warnings
    assert any("1 with .txt" in event.message for event in seen if hasattr(event, "message"))
    by_words = neardup.find_pairs(source, threshold=0.5, format="text", progress=seen.append)
    assert pairs_of(by_words).isdisjoint({pair for pair in copies() if "0" in pair[0]})


def test_without_a_least_number_of_tokens_short_files_are_pairs_too(source):
    report = neardup.find_pairs(source, progress=lambda _: None, **SETTINGS)
    assert pairs_of(report) == copies() | {("tiny1.py", "tiny2.py")}
    assert not any("not compared" in warning for warning in report.warnings)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "exact"},
        {"method": "lsh"},
        {"memory": "400MB", "threads": 1},
        {"method": "exact", "threads": 3},
    ],
    ids=str,
)
def test_the_same_pairs_for_any_method_and_memory(source, settings, tmp_path):
    report = neardup.find_pairs(
        source, out=tmp_path / "p.csv", progress=lambda _: None, **(SETTINGS | settings)
    )
    assert pairs_of(report) == copies() | {("tiny1.py", "tiny2.py")}


def test_names_that_are_kept_tell_renamed_copies_apart(source):
    settings = SETTINGS | {"code_names": "keep", "min_words": 50}
    report = neardup.find_pairs(source, progress=lambda _: None, **settings)
    assert pairs_of(report) == {pair for pair in copies() if pair[0] in ("own1.py", "own3.py")}


def test_texts_in_memory_and_in_tables_are_compared_in_the_language_that_is_named(tmp_path):
    texts = {"a": inspect.getsource(collapse), "b": renamed(inspect.getsource(collapse))}
    settings = SETTINGS | {"language": "python"}
    report = neardup.find_pairs(texts, **settings)
    assert pairs_of(report) == {("a", "b")}
    rows = "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items())
    (tmp_path / "code.jsonl").write_text(rows, "utf-8")
    table = neardup.find_pairs(tmp_path / "code.jsonl", progress=lambda _: None, **settings)
    assert pairs_of(table) == {("a", "b")}
    assert neardup.compare(*texts.values(), **settings).jaccard == 1.0
    assert neardup.compare(*texts.values()).jaccard < 0.5
    a, b = neardup.signatures(list(texts.values()), **settings)
    assert (a == b).all()
    with neardup.Index.create(tmp_path / "code.index", **settings) as index:
        index.insert("a", texts["a"])
        assert [match.doc_id for match in index.query(texts["b"])] == ["a"]
    assert f"pygments-{__import__('pygments').__version__}" in report.signature_format


def test_starter_code_is_ignored(tmp_path):
    starter = inspect.getsource(select)
    folder = tmp_path / "handed-in"
    folder.mkdir()
    for number, own in enumerate((collapse, link_all)):
        (folder / f"{number}.py").write_text(starter + inspect.getsource(own), "utf-8")
    (tmp_path / "starter.py").write_text(starter, "utf-8")
    settings = {"unit": "code", "size": 12, "threshold": 0.2, "progress": lambda _: None}
    assert neardup.find_pairs(folder, **settings).num_pairs == 1
    report = neardup.find_pairs(folder, ignore=tmp_path / "starter.py", **settings)
    assert report.num_pairs == 0


def test_dedup_removes_a_copy_and_explain_shows_its_tokens_line_by_line(source, tmp_path):
    settings = SETTINGS | {"min_words": 50, "progress": lambda _: None}
    report = neardup.deduplicate(source, out=tmp_path / "clean", **settings)
    assert report.removed.column("kept_id").to_pylist() == [a for a, _ in sorted(copies())]
    names = {path.name for path in (tmp_path / "clean/kept").iterdir()}
    assert {"own0.py", "tiny1.py", "tiny2.py", "names.json"} <= names
    shown = neardup.explain(tmp_path / "clean", "own0_copy.py")
    assert "from name0 import name0" in shown.text
    assert neardup.audit(tmp_path / "clean").recall == 1.0


def test_the_command_writes_sarif_and_fails_for_ci(source, programs, tmp_path):
    words = ["pairs", "src", "-o", "copies.csv", "--unit", "code", "--min-words", "50"]
    words += ["--sarif", "copies.sarif", "--fail-if-found", "--threshold", "0.9"]
    done = programs.run(*words, cwd=tmp_path)
    assert done.code == 1
    assert "3 documents with fewer than 50 tokens were not compared" in done.stderr
    with (tmp_path / "copies.csv").open() as file:
        assert {(row["doc_a"], row["doc_b"]) for row in csv.DictReader(file)} == copies()
    results = json.loads((tmp_path / "copies.sarif").read_text())["runs"][0]["results"]
    assert len(results) == len(copies())
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "src/own0_copy.py"
    (source / "own0_copy.py").unlink()
    for number in range(1, len(MODULES)):
        (source / f"own{number}_copy.py").unlink()
    done = programs.run(*words, "--overwrite", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert json.loads((tmp_path / "copies.sarif").read_text())["runs"][0]["results"] == []


def test_compare_goes_by_the_endings_of_its_files(programs, tmp_path):
    text = inspect.getsource(collapse)
    (tmp_path / "a.py").write_text(text, "utf-8")
    (tmp_path / "b.py").write_text(renamed(text), "utf-8")
    done = programs.run("compare", "a.py", "b.py", "--unit", "code", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["jaccard"] == 1.0
    (tmp_path / "c.txt").write_text("prose", "utf-8")
    done = programs.run("compare", "c.txt", "c.txt", "--unit", "code", cwd=tmp_path)
    assert done.code == 1
    assert "say no known language" in done.stderr
    assert "--language python" in done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"language": "pyhton", "unit": "code"}, "a language that Pygments knows.*did you mean"),
        ({"language": "python"}, "`language` 'python' needs `unit` 'code'"),
        ({"code_names": "keep"}, "`code_names` 'keep' needs `unit` 'code'"),
        ({"unit": "code"}, "`unit` 'code' needs `language`"),
        ({"unit": "code", "fold_numbers": True}, "`fold_numbers` and `unit` 'code'"),
        ({"unit": "code", "html": True}, "`html` and `unit` 'code'"),
        ({"unit": "code", "passages": True}, "`passages` and `unit` 'code'"),
        ({"unit": "code", "measure": "cosine"}, "needs a measure of texts"),
        ({"unit": "code", "format": "warc"}, "`format` 'warc' and `unit` 'code'"),
        ({"sarif": "a.sarif"}, "`sarif` needs files as the source"),
    ],
)
def test_mistakes_say_what_to_do(settings, message):
    with pytest.raises(ConfigError, match=re.compile(message, re.DOTALL)):
        neardup.find_pairs(["a = 1"], **settings)


def test_files_whose_ending_tells_no_language_are_rejected_and_say_so(tmp_path):
    (tmp_path / "notes.txt").write_text("prose", "utf-8")
    with pytest.raises(DataError, match="no language is known by the ending") as raised:
        neardup.find_pairs(tmp_path / "notes.txt", unit="code")
    assert "`language`" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.txt", "must end in .sarif or .json"), ("no/a.sarif", "does not exist")],
)
def test_a_sarif_file_that_cannot_be_written_is_an_error_before_the_work(name, message, tmp_path):
    (tmp_path / "a.py").write_text("a = 1", "utf-8")
    with pytest.raises(ConfigError, match=message):
        neardup.find_pairs(tmp_path / "a.py", unit="code", sarif=tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_a_sarif_file_that_exists_is_replaced_only_if_asked(tmp_path):
    (tmp_path / "a.py").write_text(textwrap.dedent("def f(a):\n  return a"), "utf-8")
    (tmp_path / "a.sarif").write_text("mine", "utf-8")
    with pytest.raises(neardup.NearDupError, match="already exists"):
        neardup.find_pairs(tmp_path / "a.py", unit="code", sarif=tmp_path / "a.sarif")
    neardup.find_pairs(tmp_path / "a.py", unit="code", sarif=tmp_path / "a.sarif", overwrite=True)
    assert json.loads((tmp_path / "a.sarif").read_text())["version"] == "2.1.0"
