"""Which files are found, their names, and which columns are used."""

from __future__ import annotations

import os

import fsspec
import pytest

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.formats import registry as formats
from neardup.io.records import Columns


@pytest.fixture
def tree(tmp_path):
    for name in (
        "b.jsonl",
        "a/2.jsonl.gz",
        "a/10.csv",
        "a-b.parquet",
        ".hidden.jsonl",
        ".git/x.txt",
        "notes.log",
        "a/README",
        "page.HTML",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{}")
    return tmp_path


def names(inputs, **settings):
    return [file.name for file in find_files([str(path) for path in inputs], Config(**settings))]


def one(path, content=b"", **settings):
    path.write_bytes(content)
    return find_files([str(path)], Config(**settings))[0]


def test_a_folder_gives_its_files_sorted_by_path_without_hidden_and_unknown_ones(tree):
    assert names([tree]) == ["a-b.parquet", "a/10.csv", "a/2.jsonl.gz", "b.jsonl", "page.HTML"]


def test_inputs_keep_their_order(tree):
    assert names([tree / "b.jsonl", tree / "a", tree / "a-b.parquet"]) == [
        "b.jsonl",
        "10.csv",
        "2.jsonl.gz",
        "a-b.parquet",
    ]


def test_a_glob_is_sorted_and_names_are_relative_to_the_part_before_the_first_wildcard(tree):
    assert names([tree / "**" / "*.[jc]s*"]) == ["a/10.csv", "a/2.jsonl.gz", "b.jsonl"]
    assert names([tree / "?.jsonl"]) == ["b.jsonl"]
    assert names([tree / "a*"]) == ["a-b.parquet", "a/10.csv", "a/2.jsonl.gz"]


def test_a_glob_below_the_working_folder_needs_no_slash(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert names(["*.jsonl"]) == ["b.jsonl"]
    monkeypatch.chdir(tree / "a")
    assert names(["../?.jsonl"]) == ["b.jsonl"]


def test_a_file_whose_name_has_wildcards_is_that_file(tmp_path):
    (tmp_path / "a[1].jsonl").touch()
    assert names([tmp_path / "a[1].jsonl"]) == ["a[1].jsonl"]


def test_a_glob_or_folder_without_files_is_an_error_that_lists_the_endings(tmp_path):
    with pytest.raises(DataError, match=r"\*\.jsonl matches no file"):
        names([tmp_path / "*.jsonl"])
    (tmp_path / "x.png").touch()
    with pytest.raises(DataError, match=r"no file of a known format(.|\n)*\.jsonl \.ndjson"):
        names([tmp_path])
    assert names([tmp_path / "*"]) == ["x.png"]


def test_a_path_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"no\.jsonl does not exist"):
        names([tmp_path / "no.jsonl"])
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match="link to a file that does not exist"):
        names([tmp_path / "link.jsonl"])
    with pytest.raises(DataError, match="got ''"):
        find_files([""], Config())


def test_an_input_that_is_not_a_regular_file_is_an_error(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(DataError, match=r"pipe\.jsonl is not a regular file"):
        names([tmp_path / "pipe.jsonl"])


def test_a_folder_or_file_without_permission_is_an_error(tree, monkeypatch):
    with monkeypatch.context() as patched:
        (tree / "b.jsonl").chmod(0o200)  # root may read it anyway
        patched.setattr(os, "access", lambda *_: False)
        with pytest.raises(DataError, match=r"b\.jsonl cannot be read: permission denied"):
            names([tree / "b.jsonl"])

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DataError, match="cannot be listed: Permission denied"):
        names([tree])


def test_links_to_folders_are_followed_but_not_in_cycles(tree, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    (other / "linked").symlink_to(tree / "a")
    assert names([other]) == ["linked/10.csv", "linked/2.jsonl.gz"]
    (other / "circle").symlink_to(other)
    assert names([other]) == ["linked/10.csv", "linked/2.jsonl.gz"]


def test_a_file_named_twice_is_an_error_that_names_it(tree):
    with pytest.raises(DataError, match=r"b\.jsonl is named twice"):
        names([tree, tree / "b.jsonl"])
    with pytest.raises(DataError, match=r"b\.jsonl is named twice, also as"):
        names([tree / "b.jsonl", tree / "a" / ".." / "b.jsonl"])


def test_colliding_names_become_relative_to_the_common_parent(tmp_path):
    for folder in ("x/one", "x/two"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.jsonl").touch()
    (tmp_path / "x" / "other.csv").touch()
    inputs = [tmp_path / "x/one", tmp_path / "x/other.csv", tmp_path / "x/two"]
    assert names(inputs) == ["one/part.jsonl", "other.csv", "two/part.jsonl"]
    assert names(inputs[::2]) == ["one/part.jsonl", "two/part.jsonl"]


def test_a_name_that_is_a_parent_folder_of_another_collides(tmp_path):
    (tmp_path / "p.jsonl").touch()
    (tmp_path / "y" / "p.jsonl").mkdir(parents=True)
    (tmp_path / "y" / "p.jsonl" / "q.jsonl").touch()
    assert names([tmp_path / "p.jsonl", tmp_path / "y"]) == ["p.jsonl", "y/p.jsonl/q.jsonl"]


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("a.ndjson", {}, ("jsonl", None)),
        ("a.NDJSON.zst", {}, ("jsonl", "zstd")),
        ("a.pq", {}, ("parquet", None)),
        ("a.tsv.gz", {}, ("csv", "gzip")),
        ("a.arrows", {}, ("arrow", None)),
        ("a.md", {}, ("text", None)),
        ("a.md", {"lines": True}, ("lines", None)),
        ("a.log", {"lines": True}, ("lines", None)),
        ("a.gz", {"lines": True}, ("lines", "gzip")),
        ("a.jsonl", {"lines": True}, ("jsonl", None)),
    ],
)
def test_the_extension_determines_format_and_compression(tmp_path, name, settings, expected):
    file = one(tmp_path / name, b"x", **settings)
    assert (file.format, file.compression) == expected
    assert (file.size, file.modified) == (1, str((tmp_path / name).stat().st_mtime_ns))


def test_a_named_file_with_an_unknown_extension_is_plain_text(tmp_path):
    for name in ("a.log", "a.py", "a", "a.x.gz"):
        assert one(tmp_path / name).format == "text"


def test_with_lines_a_glob_accepts_any_extension_and_a_folder_does_not(tree):
    assert names([tree / "*.log"], lines=True) == ["notes.log"]
    assert "notes.log" not in names([tree], lines=True)


def test_compressed_parquet_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"a\.parquet\.gz is a compressed \.parquet file"):
        one(tmp_path / "a.parquet.gz")


def test_a_name_that_is_not_utf8_is_an_error(tmp_path):
    with pytest.raises(DataError, match="a name that is not UTF-8"):
        one(tmp_path / os.fsdecode(b"\xff.txt"))


def test_every_extension_has_a_module():
    assert set(formats.ENDINGS.values()) <= set(formats.MODULES)
    for name in ("jsonl", "csv", "text", "lines"):
        module = formats.load(name)
        assert all(
            callable(getattr(module, function))
            for function in ("split", "column_names", "read", "write")
        )


def test_remote_files_folders_and_globs_are_found():
    files = fsspec.filesystem("memory")
    for name in ("b.jsonl", "a/c.jsonl.gz", ".hidden/d.jsonl", "_SUCCESS"):
        files.pipe(f"/found/{name}", b"{}")
    assert names(["memory://found"]) == ["a/c.jsonl.gz", "b.jsonl"]
    assert names(["memory://found/*"]) == ["b.jsonl"]
    assert names(["memory://found/**/*.gz"]) == ["a/c.jsonl.gz"]
    file = find_files(["memory://found/b.jsonl"], Config())[0]
    assert (file.name, file.size, file.path) == ("b.jsonl", 2, "memory://found/b.jsonl")
    assert file.modified
    with pytest.raises(DataError, match=r"memory://found/no\.jsonl does not exist"):
        names(["memory://found/no.jsonl"])
    with pytest.raises(DataError, match="matches no file"):
        names(["memory://found/*.csv"])


def test_local_and_remote_files_of_one_name_get_different_names(tmp_path):
    fsspec.filesystem("memory").pipe("/apart/a.jsonl", b"{}")
    (tmp_path / "a.jsonl").touch()
    local, remote = names([tmp_path / "a.jsonl", "memory://apart/a.jsonl"])
    assert remote == "memory/apart/a.jsonl"
    assert local.startswith("file/")
    assert ".." not in local


def test_columns_are_the_named_ones_or_the_default_ones(tmp_path):
    file = one(tmp_path / "a.jsonl")
    assert choose_columns(file, ["url", "body", "content"], Config()) == Columns(
        text=("content",), id="url"
    )
    config = Config(
        text_column=["title", "body"], id_column="key", keep="max:likes", group_column="lang"
    )
    assert choose_columns(file, ["title", "id"], config) == Columns(
        text=("title", "body"), id="key", score="likes", group="lang"
    )
    assert choose_columns(file, ["bag", "id"], Config(items_column="bag")) == Columns(
        text=(), items="bag", id="id"
    )


def test_a_missing_default_text_column_is_an_error_that_lists_the_columns(tmp_path):
    with pytest.raises(
        DataError, match=r"a\.jsonl has no column named text(.|\n)*text_column='x'(.|\n)*x, y"
    ):
        choose_columns(one(tmp_path / "a.jsonl"), ["x", "y"], Config())


def test_a_file_without_known_columns_uses_the_default_text_column(tmp_path):
    assert choose_columns(one(tmp_path / "a.jsonl"), [], Config()) == Columns(text=("text",))


def test_a_repeated_column_name_is_an_error_if_it_is_needed(tmp_path):
    file = one(tmp_path / "a.csv")
    with pytest.raises(DataError, match="2 columns named 'text'"):
        choose_columns(file, ["text", "id", "text"], Config())
    assert choose_columns(file, ["text", "x", "x"], Config()) == Columns(text=("text",))


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"text_column": "a"}, "text_column"),
        ({"id_column": "a"}, "id_column"),
        ({"keep": "max:a"}, "keep"),
        ({"group_column": "a"}, "group_column"),
        ({"items_column": "a"}, "items_column"),
        ({"mark": True}, "mark"),
    ],
)
def test_column_settings_are_errors_for_plain_text(tmp_path, settings, setting):
    file = one(tmp_path / "a.txt")
    assert choose_columns(file, None, Config()) == Columns(text=())
    with pytest.raises(ConfigError, match=rf"`{setting}`.*has no columns"):
        choose_columns(file, None, Config(**settings))


def test_hard_links_are_one_file_if_named_and_two_documents_in_a_folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("one page")
    (tmp_path / "in" / "b.txt").hardlink_to(tmp_path / "in" / "a.txt")
    (tmp_path / "c.txt").hardlink_to(tmp_path / "in" / "a.txt")
    assert [file.name for file in find_files([str(tmp_path / "in")], Config())] == [
        "a.txt",
        "b.txt",
    ]
    assert len(find_files([str(tmp_path / "in" / "*.txt")], Config())) == 2
    named = {("in/a.txt", "in/b.txt"): 1, ("c.txt", "in"): 1, ("in", "c.txt"): 2}
    for inputs, num_files in named.items():
        heard = []
        found = find_files([str(tmp_path / path) for path in inputs], Config(), heard.append)
        assert len(found) == num_files
        assert "reached again by links, and read once" in heard[0]


def test_no_file_name_points_to_a_parent_folder(tmp_path):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "a.txt").write_text("one page")
    [file] = find_files([str(tmp_path / "in" / "*" / ".." / ".." / "a*.txt")], Config())
    assert file.name == "a.txt"


@pytest.mark.parametrize(
    ("path", "ending"),
    [
        ("a.txt", (".txt", None)),
        ("deep.er/A.JSONL.GZ", (".jsonl", "gzip")),
        ("deep.er/plain", ("", None)),
        (".hidden", ("", None)),
        ("..txt", (".txt", None)),
        ("dot.", ("", None)),
        (".gz", ("", None)),
        ("a.gz", ("", "gzip")),
        ("windows\\a.csv.zst", (".csv", "zstd")),
        ("folder.parquet/", (".parquet", None)),
    ],
)
def test_the_ending_is_that_of_the_file_name(path, ending):
    assert formats.endings(path) == ending
