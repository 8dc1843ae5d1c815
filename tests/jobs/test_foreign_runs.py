"""A finished run written or changed by others: any value may be wrong, and no path may lead outside the run."""

from __future__ import annotations

import copy
import json
import os
import shutil
import sys
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.cli.main import main
from neardup.errors import DataError
from neardup.io.finished.stored_report import read_report
from support import corpora
from support.corpora import NEAR, OTHER, PAGE, WORDS

GONE = object()
HUGE = 10**30
MUTATIONS = {
    "deleted": GONE,
    "null": None,
    "text": "\x00",
    "minus": -1,
    "huge": HUGE,
    "nested": [[{"file": ["x"]}]],
}
UNSEEN = "what nobody has seen of the house is what stands behind the second pier and the old customs house"
# A weak plan, so that an audit has missed pairs to store.
WEAK = {"bands": 1, "rows": 128, "threshold": 0.5}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with stored pairs, an audit and a removed text file, and a new document beside it."""
    folder = tmp_path_factory.mktemp("foreign")
    rows = [
        {"id": "a", "text": PAGE},
        {"id": "b", "text": NEAR},
        {"id": "c", "text": OTHER},
        {"id": "d", "text": PAGE},
    ]
    corpora.write_json_lines(folder / "in/pages.jsonl", rows)
    (folder / "in/same.txt").write_text(PAGE)
    (folder / "in/other.txt").write_text(" ".join(WORDS[::-1]))
    (folder / "secret.jsonl").write_text(json.dumps({"id": "s", "text": UNSEEN}) + "\n")
    corpora.write_json_lines(
        folder / "new.jsonl", [{"id": "n", "text": OTHER}, {"id": "s", "text": UNSEEN}]
    )
    neardup.deduplicate(folder / "in", out=folder / "out", pairs=True, audit=True, **WEAK)
    return folder


@pytest.fixture
def run(finished, tmp_path, monkeypatch):
    """A copy of the run to modify; its inputs stay in place."""
    shutil.copytree(finished / "out", tmp_path / "out")
    shutil.copy(finished / "secret.jsonl", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def report_of(run):
    return json.loads((run / "report.json").read_text("utf-8"))


def change(run, **values):
    (run / "report.json").write_text(json.dumps(report_of(run) | values), "utf-8")


def against(run, finished):
    return neardup.deduplicate(
        finished / "new.jsonl", out=run.parent / "fresh", against=str(run), threshold=0.5
    )


def commands(finished):
    """Every command that reads a finished run."""
    return (
        [
            "dedup",
            str(finished / "new.jsonl"),
            "-o",
            "fresh",
            "--against",
            "out",
            "--quiet",
            "--threads",
            "1",
        ],
        ["audit", "out", "--quiet", "--threads", "1"],
        ["explain", "out", "d", "--quiet"],
        ["pairs", "out", "-o", "pairs.csv", "--quiet"],
        ["dedup", "out", "-o", "again"],
    )


def exit_code(monkeypatch, capsys, arguments):
    """Run the command line in this process; any error that is not ours is raised."""
    monkeypatch.setattr(sys, "argv", ["neardup", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    capsys.readouterr()
    for name in ("fresh", "pairs.csv", "again", ".again.neardup", ".fresh.neardup"):
        if os.path.isdir(name):  # noqa: PTH112
            shutil.rmtree(name)
        elif os.path.lexists(name):
            os.unlink(name)  # noqa: PTH108
    return ended.value.code


def places(value, above=()):
    """Every key path of a nested value; for a list, only its first entry."""
    entries = (
        value.items()
        if isinstance(value, dict)
        else list(enumerate(value))[:1]
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield (*above, key)
        yield from places(inner, (*above, key))


def changed(report, place, value):
    mutated = copy.deepcopy(report)
    inner = mutated
    for key in place[:-1]:
        inner = inner[key]
    if value is GONE:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return mutated


def reading(run):
    """The parsed report; None if it is refused."""
    try:
        report = read_report(run)
    except DataError:
        return None
    return repr(report.settings()), repr(msgspec.structs.replace(report, config={}))


@pytest.mark.parametrize(
    "has_turns", [True, pytest.param(False, marks=pytest.mark.long)], ids=["in turn", "every"]
)
@pytest.mark.parametrize("number", range(len(MUTATIONS)), ids=MUTATIONS)
def test_no_value_of_a_report_gives_a_traceback(
    finished, run, number, has_turns, monkeypatch, capsys
):
    value = list(MUTATIONS.values())[number]
    report = report_of(run)
    command_lines = commands(finished)
    assert [exit_code(monkeypatch, capsys, arguments) for arguments in command_lines] == [
        0,
        0,
        0,
        0,
        1,
    ]
    whole = list(places(report))
    seen = {reading(run)}
    assert {
        ("inputs", 0, "file"),
        ("audit", "missed", 0, "chance"),
        ("plan", "bands"),
        ("config", "seed"),
    } <= set(whole)
    for at, place in enumerate(whole):
        (run / "report.json").write_text(json.dumps(changed(report, place, value)), "utf-8")
        read = reading(run)
        # A refused report is refused by every command, so they take turns, as all do in `make
        # test`; one that parses like an earlier one is skipped.
        in_turn = [command_lines[(at + number) % len(command_lines)]]
        chosen = (
            in_turn
            if read is None
            else ()
            if read in seen
            else in_turn
            if has_turns
            else command_lines
        )
        seen.add(read)
        for arguments in chosen:
            try:
                code = exit_code(monkeypatch, capsys, arguments)
            except Exception as error:
                raise AssertionError(
                    f"{place} to {value!r}: neardup {' '.join(arguments)}"
                ) from error
            assert code in ((1, 2) if read is None else (0, 1, 2)), (place, arguments)


def test_a_report_with_deeply_nested_lists_is_an_error(run):
    (run / "report.json").write_text('{"config": ' + "[" * 200_000)
    with pytest.raises(DataError, match=r"report\.json is damaged"):
        neardup.audit(run)


@pytest.mark.parametrize("name", ["../../secret.jsonl", "../../out/../secret.jsonl", "absolute"])
def test_against_reads_nothing_outside_the_run(finished, run, name):
    report = report_of(run)
    report["inputs"][1]["file"] = str(run.parent / "secret.jsonl") if name == "absolute" else name
    change(run, inputs=report["inputs"])
    with pytest.raises(DataError, match=r"secret\.jsonl, which is outside its folder"):
        against(run, finished)


@pytest.mark.parametrize("place", ["kept/pages.jsonl", "kept", "removed.parquet"])
def test_a_link_out_of_the_folder_is_not_a_file_of_the_run(finished, run, place):
    moved = run.parent / "elsewhere"
    shutil.move(run / place, moved)
    (run / place).symlink_to(moved)
    read = neardup.audit if place == "removed.parquet" else partial(against, finished=finished)
    with pytest.raises(DataError, match="which is outside its folder"):
        read(run)


def test_the_folder_of_a_run_may_be_a_link_itself(finished, run):
    shutil.move(run, run.parent / "moved")
    run.symlink_to(run.parent / "moved")
    assert against(run, finished).num_removed == 1


def list_files(run):
    """The files that a report of schema 2 lists."""
    files = sorted(path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file())
    change(run, schema=2, files=files)


@pytest.mark.parametrize("schema", [1, 2])
@pytest.mark.parametrize("name", ["pages.jsonl", "other.txt"])
def test_a_missing_kept_file_is_named(finished, run, schema, name):
    list_files(run)
    change(run, schema=schema)
    assert against(run, finished).num_removed == 1
    shutil.rmtree(run.parent / "fresh")
    (run / "kept" / name).unlink()
    with pytest.raises(DataError, match=rf"kept/{name}, which the run wrote, is missing"):
        against(run, finished)


@pytest.mark.parametrize("schema", [1, 2])
def test_removed_and_rejected_text_files_have_no_kept_file(tmp_path, schema):
    (tmp_path / "in").mkdir()
    for name, content in (("a.txt", PAGE), ("b.txt", NEAR), ("c.txt", OTHER)):
        (tmp_path / "in" / name).write_text(content)
    (tmp_path / "in/d.txt").write_bytes(b"\xff\xfe")
    neardup.deduplicate(tmp_path / "in", out=tmp_path / "out")
    list_files(tmp_path / "out")
    change(tmp_path / "out", schema=schema)
    corpora.write_json_lines(
        tmp_path / "new.jsonl", [{"text": PAGE}, {"text": OTHER}, {"text": "quite new"}]
    )
    report = neardup.deduplicate(
        tmp_path / "new.jsonl", out=tmp_path / "fresh", against=str(tmp_path / "out")
    )
    assert report.num_removed == 2
    assert [entry["file"] for entry in report.inputs] == ["a.txt", "c.txt", "new.jsonl"]


def test_a_report_records_how_every_input_begins(run):
    heads = {entry["file"]: entry["head"] for entry in report_of(run)["inputs"]}
    assert len(set(heads.values())) == len(heads) == 3
    assert all(len(head) == 64 for head in heads.values())


READERS = {"audit": neardup.audit, "explain": lambda run: neardup.api.explain(run, "d")}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_an_input_is_read_again_only_if_its_first_bytes_are_those_of_the_report(
    finished, run, read
):
    source = finished / "in/pages.jsonl"
    content = source.read_bytes()
    times = (source.stat().st_atime_ns, source.stat().st_mtime_ns)
    read(run)
    try:
        source.write_bytes(content.replace(b"ferry", b"fairy"))
        os.utime(source, ns=times)
        with pytest.raises(DataError, match="its first bytes differ"):
            read(run)
    finally:
        source.write_bytes(content)
        os.utime(source, ns=times)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("knows", ["size", "size and time"])
def test_a_report_cannot_reveal_a_file_unknown_to_its_author(run, read, knows):
    secret = run.parent / "secret.jsonl"
    inputs = report_of(run)["inputs"]
    entry = next(entry for entry in inputs if entry["file"] == "pages.jsonl")
    entry |= {"path": str(secret), "size": secret.stat().st_size}
    entry |= {"modified": str(secret.stat().st_mtime_ns)} if "time" in knows else {}
    change(run, inputs=inputs)
    with pytest.raises(DataError, match=r"secret\.jsonl has changed since the run"):
        read(run)
    del entry["head"]
    change(run, inputs=inputs)
    with pytest.raises(DataError, match=r"secret\.jsonl has changed since the run"):
        read(run)


@pytest.mark.parametrize("path", ["*.jsonl", ".", "in", "/dev/zero", "x" * 5000])
def test_an_input_of_a_report_is_one_regular_file(run, path):
    inputs = report_of(run)["inputs"]
    for entry in inputs:
        entry["path"] = path
    change(run, inputs=inputs)
    with pytest.raises(DataError, match="of the run cannot be read"):
        neardup.audit(run)


def odd_tables(table):
    """A table of a run with columns, types and values that no run writes."""
    names = table.column_names
    yield table.drop_columns(names[:1])
    yield table.drop_columns(names[-1:])
    yield pa.table({name: pa.array([[1]] * table.num_rows) for name in names})
    yield pa.table(
        {name: pa.nulls(table.num_rows, table.schema.field(name).type) for name in names}
    )
    yield pa.table({"x": [1]})
    if "file" in names:
        yield table.set_column(names.index("file"), "file", pa.array(["nowhere"] * table.num_rows))
    for name in ("row", "row_a"):
        if name in names:
            yield table.set_column(names.index(name), name, pa.array([10**6] * table.num_rows))


@pytest.mark.parametrize("name", ["removed", "clusters", "pairs"])
def test_no_table_of_a_run_gives_a_traceback(finished, run, name, monkeypatch, capsys):
    path = run / f"{name}.parquet"
    contents = [b"", b"PAR1", b"PAR1" + b"\x00" * 100]
    for table in odd_tables(pq.read_table(path)):
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        contents.append(sink.getvalue().to_pybytes())
    codes = set()
    for content in contents:
        path.write_bytes(content)
        codes |= {exit_code(monkeypatch, capsys, arguments) for arguments in commands(finished)}
    assert codes <= {0, 1, 2}
    assert 1 in codes


@pytest.mark.parametrize(
    "line", ["7", "[1]", '{"file": 1}', '{"row": "x"}', '{"file": "a", "row": 1e99}', "\xff{", "{}"]
)
def test_rejected_rows_that_no_run_writes_are_refused(run, line):
    (run / "rejected.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=r"rejected\.jsonl is damaged"):
        _ = neardup.io.finished.finished_run.restore(run).rejected


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("content", [b"", b"x,y\n1,2\n", b'{"doc_a": 1}\n', b"[]\n", b"\xff\xff\n"])
def test_pairs_that_no_run_writes_are_refused(finished, tmp_path, ending, content):
    out = tmp_path / f"pairs.{ending}"
    neardup.find_pairs(finished / "in", out=out, **WEAK)
    out.write_bytes(content)
    if (ending, content) == ("jsonl", b""):  # this is what a run without pairs writes
        assert neardup.audit(out).verified == 0
        return
    with pytest.raises(DataError, match="is damaged or was not written by neardup"):
        neardup.audit(out)
