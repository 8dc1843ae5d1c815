"""Standard input stored as a file, with the extension for its first bytes or the settings."""

from __future__ import annotations

import gzip
import io

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.documents.stdin import spool

TABLE = pa.table({"text": ["one", "two"]})


class _StandardInput:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.fixture
def give(monkeypatch):
    """Let standard input hold some bytes."""
    return lambda content: monkeypatch.setattr("sys.stdin", _StandardInput(content))


def bytes_of(write):
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def ipc_bytes(new):
    def write(sink):
        with new(sink, TABLE.schema) as writer:
            writer.write_table(TABLE)

    return bytes_of(write)


LINE = b'{"text": "one"}\n'


@pytest.mark.parametrize(
    ("content", "settings", "name"),
    [
        (LINE, {}, "stdin.jsonl"),
        (b"", {}, "stdin.jsonl"),
        (gzip.compress(LINE, mtime=0), {}, "stdin.jsonl.gz"),
        (pa.compress(LINE, "zstd", asbytes=True), {}, "stdin.jsonl.zst"),
        (bytes_of(lambda sink: pq.write_table(TABLE, sink)), {}, "stdin.parquet"),
        (bytes_of(lambda sink: pq.write_table(TABLE, sink)), {"lines": True}, "stdin.parquet"),
        (ipc_bytes(pa.ipc.new_file), {}, "stdin.arrow"),
        (ipc_bytes(pa.ipc.new_stream), {}, "stdin.arrows"),
        (b"one\ntwo\n", {"lines": True}, "stdin.txt"),
        (gzip.compress(b"one\n", mtime=0), {"lines": True}, "stdin.txt.gz"),
        (b"text;id\none;1\n", {"delimiter": ";"}, "stdin.csv"),
        (b" \n<html>one</html>", {"html": True}, "stdin.html"),
        (LINE, {"html": True}, "stdin.jsonl"),
    ],
)
def test_standard_input_becomes_a_file_of_its_format(tmp_path, give, content, settings, name):
    give(content)
    inputs, path = spool(["a.jsonl", "-", "b.jsonl"], tmp_path / "stdin", Config(**settings))
    assert inputs == ["a.jsonl", path, "b.jsonl"]
    assert path == str(tmp_path / "stdin" / name)
    assert (tmp_path / "stdin" / name).read_bytes() == content


def test_a_long_input_is_stored_whole(tmp_path, give):
    content = b"".join(b'{"text": "%d"}\n' % number for number in range(100_000))
    give(content)
    [path], _ = spool(["-"], tmp_path / "stdin", Config())
    assert (tmp_path / "stdin" / "stdin.jsonl").read_bytes() == content
    assert path.endswith("stdin.jsonl")


def test_inputs_without_standard_input_are_unchanged(tmp_path, give):
    give(LINE)
    assert spool(["a.jsonl", "b"], tmp_path / "stdin", Config()) == (["a.jsonl", "b"], None)
    assert not (tmp_path / "stdin").exists()


def test_stored_standard_input_of_a_killed_run_is_deleted(tmp_path, give):
    (tmp_path / "stdin").mkdir()
    (tmp_path / "stdin" / "stdin.txt").write_text("old")
    give(LINE)
    spool(["-"], tmp_path / "stdin", Config())
    assert [path.name for path in (tmp_path / "stdin").iterdir()] == ["stdin.jsonl"]
    spool(["a.jsonl"], tmp_path / "stdin", Config())
    assert not (tmp_path / "stdin").exists()


@pytest.mark.parametrize(
    ("inputs", "message"), [([], "no input was given"), (["-", "a", "-"], "named twice")]
)
def test_inputs_that_cannot_be_read_once_are_an_error(tmp_path, inputs, message):
    with pytest.raises(ConfigError, match=message) as error:
        spool(inputs, tmp_path / "stdin", Config())
    assert error.value.hint
