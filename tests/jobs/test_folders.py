"""Real folders: links, stray files, globs, lists of files, and the order of files, end to end."""

from __future__ import annotations

import gzip
import json
import os
import random

import pytest

import neardup
from neardup.errors import ConfigError, DataError
from neardup.io.documents.path_globs import PathGlobs

PAGE = "the ferry to the island leaves at nine from the second pier and comes back at six"
OTHER = "the museum is closed on mondays and on public holidays in winter and in autumn too"


def tables_of(out):
    rejected = [json.loads(line) for line in (out / "rejected.jsonl").read_text().splitlines()]
    kept = sorted(
        path.relative_to(out / "kept").as_posix()
        for path in (out / "kept").rglob("*")
        if path.is_file()
    )
    return kept, rejected


def test_a_folder_of_links_pipes_and_binaries_is_read_without_a_stop(
    programs, tmp_path, monkeypatch
):
    pages = tmp_path / "pages"
    (pages / "a").mkdir(parents=True)
    (pages / "a" / "README").write_text(PAGE)
    (pages / "a" / "NEWS.gz").write_bytes(gzip.compress(OTHER.encode()))
    (pages / "a" / "photo").write_bytes(b"\x89PNG\0\0")
    (pages / "a" / "data.txt").write_bytes(b"\xff\xfe")
    (pages / "a" / "gone.txt").symlink_to("nowhere.txt")
    (pages / "a" / "again.txt").symlink_to("README")
    (pages / "0-linked").symlink_to("a")
    (pages / "a" / "up").symlink_to("..")
    os.mkfifo(pages / "a" / "pipe.txt")
    (pages / "copy.md").write_text(PAGE + "!")
    done = programs.run("dedup", "pages", "-o", "out", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert "2 files were left out (2 with no extension)" in done.stderr
    assert "7 files are reached again by links, and read once" in done.stderr
    assert "2 links to parent folders are not followed" in done.stderr
    kept, rejected = tables_of(tmp_path / "out")
    assert kept == ["a/NEWS.gz", "a/README"]
    assert [(row["file"], row["row"], row["reason"].partition(":")[0]) for row in rejected] == [
        ("0-linked/gone.txt", 1, "link to a file that does not exist"),
        ("a/data.txt", 1, "not valid UTF-8"),
        ("a/pipe.txt", 1, "not a regular file"),
    ]
    monkeypatch.chdir(tmp_path)
    report = neardup.load(tmp_path / "out")
    assert (report.documents, report.num_kept, report.num_removed, report.num_rejected) == (
        6,
        2,
        1,
        3,
    )
    assert neardup.explain(tmp_path / "out", "copy.md").kept_id == "a/README"
    assert neardup.audit(tmp_path / "out").recall == 1


def test_a_file_reached_by_links_is_read_under_its_own_name_and_first_of_links(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "far.txt").write_text(PAGE)
    (tmp_path / "in" / "b.txt").symlink_to("../far.txt")
    (tmp_path / "in" / "a.txt").symlink_to("../far.txt")
    (tmp_path / "in" / "c.txt").write_text(OTHER)
    (tmp_path / "in" / "0.txt").symlink_to("c.txt")
    heard = []
    report = neardup.deduplicate(tmp_path / "in", out=tmp_path / "out", progress=heard.append)
    assert "2 files are reached again by links, and read once" in report.warnings
    assert [entry["file"] for entry in report.inputs] == ["a.txt", "c.txt"]
    # Named by a shell: the link and the file are one, but the same path twice is a mistake.
    paths = [tmp_path / "in" / name for name in ("0.txt", "c.txt")]
    assert neardup.deduplicate(paths).documents == 1
    with pytest.raises(DataError, match=r"c\.txt is named twice"):
        neardup.deduplicate([tmp_path / "in" / "c.txt", tmp_path / "in" / ".." / "in" / "c.txt"])


def test_strict_stops_at_a_broken_link(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(PAGE)
    (tmp_path / "in" / "b.txt").symlink_to("nowhere")
    with pytest.raises(DataError, match=r"b\.txt, row 1 cannot be used: link to a file that does"):
        neardup.deduplicate(tmp_path / "in", strict=True)
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "a.jsonl").write_text(json.dumps({"body": PAGE, "k": 1}) + "\n")
    (rows / "b.jsonl").symlink_to("nowhere")
    found = neardup.deduplicate(rows, text_column="body", keep="max:k", group_column="k")
    assert (found.documents, found.num_rejected) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("package.json", '{\n  "name": "x",\n  "version": "1"\n}\n'),
        ("list.json", '[{"name": "x"}]'),
        ("rows.csv", "a,b\n1,2\n"),
        ("inputrc.arrows", "set keymap vi\n"),
    ],
)
def test_stray_tables_beside_pages_are_left_aside_and_counted(programs, tmp_path, name, content):
    site = tmp_path / "site"
    site.mkdir()
    for number, text in enumerate((PAGE, PAGE, OTHER)):
        (site / f"{number}.html").write_text(f"<html><body><p>{text}</p></body></html>")
    (site / name).write_text(content)
    done = programs.run("dedup", "site", "-o", "out", "--html", cwd=tmp_path)
    assert done.code == 0, done.stderr
    ending = os.path.splitext(name)[1]  # noqa: PTH122
    assert f"1 file was left out (1 with {ending}): beside other documents" in done.stderr
    assert "--text-column names one" in done.stderr
    assert "3 documents: 2 kept, 1 removed" in done.stdout


def test_a_table_with_texts_or_damage_beside_pages_is_no_stray(tmp_path):
    for number, text in enumerate((PAGE, OTHER, OTHER + "!")):
        (tmp_path / f"{number}.txt").write_text(text)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"text": PAGE}) + "\n")
    assert neardup.deduplicate(tmp_path).documents == 4
    rows.write_text(json.dumps({"body_of_it": PAGE}) + "\n")
    assert neardup.deduplicate(tmp_path).documents == 3
    rows.unlink()
    (tmp_path / "rows.parquet").write_bytes(b"PAR1 damaged")
    with pytest.raises(DataError, match=r"rows\.parquet is not a readable Parquet file"):
        neardup.deduplicate(tmp_path)


def tree_of(folder):
    for path, text in {
        "a.md": PAGE,
        "pages/b.md": PAGE + " today",
        "pages/old/c.md": PAGE + " now",
        "pages/old/d.txt": OTHER,
        "src/e.py": OTHER + " and more",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("settings", "files"),
    [
        ({"include": "*.md"}, ["a.md", "pages/b.md", "pages/old/c.md"]),
        ({"include": ["*.md", "*.txt"], "exclude": "old"}, ["a.md", "pages/b.md"]),
        ({"include": "pages/*.md"}, ["pages/b.md"]),
        ({"include": "pages/**/*.md"}, ["pages/b.md", "pages/old/c.md"]),
        ({"include": "pages"}, ["pages/b.md", "pages/old/c.md", "pages/old/d.txt"]),
        ({"exclude": ["/pages/old/", "*.py"]}, ["a.md", "pages/b.md"]),
        ({"include": "?.[a-lp]*"}, ["src/e.py"]),
        ({"include": "?.[!mt]*"}, ["src/e.py"]),
    ],
)
def test_include_and_exclude_choose_files_below_a_folder(tmp_path, settings, files):
    tree_of(tmp_path / "in")
    settings = {"dry_run": True, **settings}
    report = neardup.deduplicate(tmp_path / "in", out=tmp_path / "out", **settings)
    assert [entry["file"] for entry in report.inputs] == files


def test_globs_agree_with_an_oracle_in_plain_python():
    draw = random.Random(5)

    def matches(glob, path, *, is_start=False):
        """Whether a glob matches the whole path, character by character."""
        if not glob:
            return not path
        if is_start and glob.startswith("**/"):
            rests = [path, *(path[at + 1 :] for at, mark in enumerate(path) if mark == "/")]
            return any(matches(glob[3:], rest, is_start=True) for rest in rests)
        if is_start and glob == "**":
            return True
        if glob[0] == "*":
            ends = range(path.find("/") + 1 or len(path) + 1)
            return any(matches(glob[1:], path[at:]) for at in ends)
        if not path:
            return False
        is_same = path[0] != "/" if glob[0] == "?" else glob[0] == path[0]
        return is_same and matches(glob[1:], path[1:], is_start=glob[0] == "/")

    def expected(glob, path):
        glob = glob.strip("/")
        parts = path.split("/")
        tops = ["/".join(parts[:at]) for at in range(1, len(parts) + 1)]
        if "/" in glob:
            return any(matches(glob, top, is_start=True) for top in tops)
        return any(matches(glob, part, is_start=True) for part in parts)

    num_matches = 0
    for _ in range(4000):
        path = "/".join(
            "".join(draw.choices("ab.", k=draw.randint(1, 3))) for _ in range(draw.randint(1, 3))
        )
        glob = "".join(
            draw.choices(["a", "b", ".", "*", "?", "/", "**", "**/"], k=draw.randint(1, 5))
        )
        if not glob.strip("/") or "***" in glob or "//" in glob or glob.startswith("./"):
            continue
        assert PathGlobs([glob]).matches(path) == expected(glob, path), (glob, path)
        num_matches += expected(glob, path)
    assert num_matches > 500


def test_a_choice_that_leaves_nothing_names_a_path_to_compare_with(tmp_path):
    tree_of(tmp_path / "in")
    with pytest.raises(
        DataError, match=r"`include` and `exclude` leave no file of .*in(.|\n)*a\.md"
    ):
        neardup.deduplicate(tmp_path / "in", include="*.xyz")
    with pytest.raises(ConfigError, match="`exclude` must be a glob for paths"):
        neardup.deduplicate(tmp_path / "in", exclude="/")
    with pytest.raises(ConfigError, match="`include` needs files as the source"):
        neardup.deduplicate([PAGE], include="*.md")


@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("path:pages/old/**,pages/**", "pages/old/c.md"),
        ("path:pages/*.md", "pages/b.md"),
        ("path:*.py,a.md", "a.md"),
        ("path:none", "a.md"),
    ],
)
def test_keep_by_path_prefers_the_first_glob_then_the_input_order(tmp_path, keep, kept):
    tree_of(tmp_path / "in")
    report = neardup.deduplicate(tmp_path / "in", keep=keep, include="*.md", threshold=0.7)
    assert report.num_removed == 2
    assert set(report.removed.column("kept_id").to_pylist()) == {kept}


def test_keep_by_path_names_files_of_rows_too(tmp_path):
    for name in ("crawl", "curated"):
        rows = [{"id": f"{name}-{number}", "text": f"{PAGE} {number % 3}"} for number in range(6)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = neardup.deduplicate(
        [tmp_path / "crawl.jsonl", tmp_path / "curated.jsonl"], keep="path:curated*", threshold=1
    )
    assert set(found.removed.column("kept_id").to_pylist()) == {f"curated-{at}" for at in range(3)}
    with pytest.raises(ConfigError, match="`keep` needs files as the source"):
        neardup.deduplicate([PAGE], keep="path:a")
    with pytest.raises(ConfigError, match="name globs, separated by commas"):
        neardup.deduplicate(tmp_path, keep="path:a,,b")
    with pytest.raises(ConfigError, match="is not supported on Spark"):
        neardup.deduplicate(tmp_path, keep="path:a", engine="spark")


def test_a_list_of_files_is_read_in_its_order(programs, tmp_path):
    tree_of(tmp_path / "in")
    (tmp_path / "list.txt").write_text("in/pages/b.md\n\nin/src/e.py\r\nin/a.md\n")
    done = programs.run(
        "dedup",
        "in/pages/old/d.txt",
        "--files-from",
        "list.txt",
        "-o",
        "out",
        "-t",
        "0.7",
        cwd=tmp_path,
    )
    assert done.code == 0, done.stderr
    report = neardup.load(tmp_path / "out")
    paths = [entry["path"] for entry in report.inputs]
    assert paths == ["in/pages/old/d.txt", "in/pages/b.md", "in/src/e.py", "in/a.md"]
    assert report.removed.column("kept_file").to_pylist() == ["d.txt", "b.md"]
    (tmp_path / "nul.txt").write_bytes(b"in/a.md\0in/pages/b.md\0")
    done = programs.run(
        "pairs", "--files-from", "nul.txt", "-o", "p.csv", "-t", "0.7", cwd=tmp_path
    )
    assert "2 documents: 1 pair" in done.stdout


@pytest.mark.parametrize(
    ("words", "content", "message"),
    [
        (["-", "--files-from", "-"], None, '--files-from and INPUT are both "-"'),
        (["--files-from", "none.txt"], None, "--files-from none.txt cannot be read: No such file"),
        (["--files-from", "list.txt"], b"\n\n", "--files-from list.txt lists no files"),
        (["--files-from", "list.txt"], b"a\n\xff\n", "--files-from list.txt, line 2: a path that"),
        (["--files-from", "list.txt"], b"gone.txt\n", "gone.txt does not exist"),
        (["--files-from", "list.txt"], b"list.txt\n./list.txt\n", "list.txt is named twice"),
        ([], None, "INPUT..."),
    ],
)
def test_a_wrong_list_of_files_is_an_error(programs, tmp_path, words, content, message):
    if content is not None:
        (tmp_path / "list.txt").write_bytes(content)
    done = programs.run("dedup", *words, "-o", "out", cwd=tmp_path)
    assert done.code in (1, 2)
    assert message in done.stderr
    assert not (tmp_path / "out").exists()
