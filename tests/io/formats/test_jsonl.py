"""JSON Lines: every kind of line, spans, and lines written back."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json

import fsspec
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neardup.config import Config
from neardup.errors import DataError
from neardup.io import records
from neardup.io.columns import gather, html
from neardup.io.columns.scores import sortable_values
from neardup.io.documents.discover import find_files
from neardup.io.formats import jsonl
from neardup.io.formats import lines as text_lines
from neardup.io.records import Columns, Verdicts

TEXT = Columns(text=("text",), id="id")
E_ITEM = records.ITEM_END


def found(path, content):
    path.write_bytes(content)
    return find_files([str(path)], Config())[0]


def batches(path, content, columns=TEXT, **settings):
    file = found(path, content)
    config = Config(**settings)
    return [
        batch for span in jsonl.split(file) for batch in jsonl.read(file, span, columns, config)
    ]


def only(path, content, columns=TEXT, **settings):
    (batch,) = batches(path, content, columns, **settings)
    return batch


def together(parts):
    """The combined rows of all batches of a file."""
    rows = []
    texts = []
    ids = []
    rejected = []
    first = 0
    for part in parts:
        rows += (part.rows + first).tolist()
        texts += part.texts.to_pylist()
        ids += part.ids.to_pylist()
        rejected += [(row + first, reason) for row, reason in part.rejected]
        first += part.num_rows
    return first, rows, texts, ids, rejected


def verdicts(num_rows, kept, removed=()):
    is_kept = np.isin(np.arange(num_rows), kept)
    rows, ids, similarities = zip(*removed, strict=True) if removed else ((), (), ())
    return Verdicts(
        is_kept=is_kept,
        removed=np.array(rows, np.int64),
        kept_ids=pa.array(ids, pa.string()),
        similarities=np.array(similarities, np.float64),
    )


def written(tmp_path, content, verdict, name="a.jsonl", **settings):
    file = found(tmp_path / name, content)
    target = tmp_path / "kept" / name
    jsonl.write(file, str(target), verdict, Config(**settings))
    return target.read_bytes()


def test_documents_have_their_texts_ids_and_rows(tmp_path):
    batch = only(
        tmp_path / "a.jsonl",
        b'{"id": "x", "text": "one", "more": [1]}\n{"text": "tw\xc3\xb6", "id": 2}\n',
    )
    assert batch.num_rows == 2
    assert batch.rows.tolist() == [0, 1]
    assert batch.texts.type == pa.large_string()
    assert batch.texts.to_pylist() == ["one", "twö"]
    assert batch.ids.to_pylist() == ["x", "2"]
    assert batch.ids.type == pa.string()
    assert (batch.scores, batch.groups, batch.rejected) == (None, None, [])
    assert batch.found == {"text", "id"}


def test_bom_crlf_blank_lines_and_a_missing_last_newline_are_accepted(tmp_path):
    content = b'\xef\xbb\xbf{"text": "a"}\r\n\r\n  \n{"text": "b"}\n\n{"text": "c"}'
    batch = only(tmp_path / "a.jsonl", content)
    assert batch.num_rows == 6
    assert batch.rows.tolist() == [0, 3, 5]
    assert batch.texts.to_pylist() == ["a", "b", "c"]
    assert batch.rejected == []
    assert batch.found == {"text"}


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_rows(tmp_path, content):
    assert batches(tmp_path / "a.jsonl", content) == []
    assert jsonl.column_names(found(tmp_path / "a.jsonl", content), Config()) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a"', "broken JSON: Input data was truncated"),
        (b"nonsense", "broken JSON: invalid character"),
        (b'{"text": "a"} {"text": "b"}', "broken JSON: trailing characters"),
        (b'["text"]', "not an object"),
        (b'"text"', "not an object"),
        (b'{"text": null}', "text is null"),
        (b'{"body": "a"}', "no column 'text'"),
        (b'{"text": 5}', "text is int, not str: 5"),
        (b'{"text": ["a"]}', "text is list, not str"),
        (b'{"text": "a\xffb"}', "not valid UTF-8: invalid start byte at byte 11"),
        (
            b'{"text": "a", "other": "\xc3"}',
            "not valid UTF-8: invalid continuation byte at byte 24",
        ),
        (b'{"text": "a", "other": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b'{"text": "\\ud800"}', "lone surrogate"),
        (b'{"text": "a \\udc00 and more text"}', "lone surrogate"),
        (b'{"text": "a", "id": [1]}', "column 'id' is a list, not one value"),
        (b'{"text": "a", "id": {"x": 1}}', "column 'id' is an object, not one value"),
        (b'{"text": "a", "id": 1e999}', "broken JSON: Number out of range"),
    ],
)
def test_only_the_bad_line_is_rejected_with_its_reason(tmp_path, line, reason):
    batch = only(
        tmp_path / "a.jsonl", b'{"text": "before"}\n' + line + b'\n{"text": "after", "id": 1}\n'
    )
    assert batch.texts.to_pylist() == ["before", "after"]
    assert batch.rows.tolist() == [0, 2]
    ((row, given),) = batch.rejected
    assert row == 1
    assert given.startswith(reason)


def test_columns_of_rejected_rows_count_as_found(tmp_path):
    assert only(tmp_path / "a.jsonl", b'{"text": null, "id": 1}\n').found == {"text", "id"}
    assert only(tmp_path / "a.jsonl", b'{"body": "x"}\n').found == frozenset()


def test_ids_of_any_scalar_become_strings(tmp_path):
    ids = [
        '"a"',
        "7",
        "1.5",
        "2.0",
        "1e100",
        "true",
        "false",
        "null",
        "123456789012345678901234567890",
    ]
    lines = [f'{{"text": "t", "id": {value}}}' for value in ids]
    batch = only(tmp_path / "a.jsonl", "\n".join([*lines, '{"text": "t"}']).encode())
    assert batch.ids.to_pylist() == [
        "a",
        "7",
        "1.5",
        "2",
        "1e+100",
        "true",
        "false",
        None,
        ids[-1],
        None,
    ]


def scores(tmp_path, values):
    content = "\n".join(f'{{"text": "t", "s": {value}}}' for value in values).encode()
    return only(tmp_path / "a.jsonl", content, Columns(text=("text",), score="s"))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "null", "3"], [1, None, 3]),
        (["1", "2.5", "2.0"], [1, 2.5, 2]),
        ([str(2**53 + 1), "0.5"], [2**53 + 1, 0.5]),
        (["1", str(2**70)], [1, 2**70]),
        (["-1", "-1" + "0" * 400], [-1, -(10**400)]),
        (['"b"', '"a"'], ["b", "a"]),
        (["true", "false"], [1, 0]),
        (["null"], [None]),
        (["1", '"high"', "2.5", "null", "true"], [1, "high", 2.5, None, True]),
    ],
)
def test_the_type_of_a_score_is_decided_value_by_value(tmp_path, values, expected):
    batch = scores(tmp_path, values)
    assert batch.scores.equals(sortable_values(expected))
    assert batch.rows.tolist() == list(range(len(values)))
    assert batch.rejected == []


def test_groups_are_strings_and_null_stays_null(tmp_path):
    lines = (
        b'{"text": "t", "g": "en"}\n{"text": "t", "g": 5}\n{"text": "t", "g": null}\n{"text": "t"}'
    )
    batch = only(tmp_path / "a.jsonl", lines, Columns(text=("text",), group="g"))
    assert batch.groups.to_pylist() == ["en", "5", None, None]


def test_several_text_columns_are_joined_by_newlines(tmp_path):
    lines = [
        b'{"title": "T", "body": "B"}',
        b'{"body": "B", "title": null}',
        b'{"title": "T"}',
        b'{"title": null}',
        b'{"other": 1}',
        b'{"title": "T", "body": 1}',
    ]
    batch = only(tmp_path / "a.jsonl", b"\n".join(lines), Columns(text=("title", "body")))
    assert batch.texts.to_pylist() == ["T\nB", "B", "T"]
    assert batch.rejected == [
        (3, "text is null"),
        (4, "no column 'title', 'body'"),
        (5, "text is int, not str: 1"),
    ]
    assert batch.found == {"title", "body"}


def test_every_item_has_a_terminator(tmp_path):
    lines = [
        '["a b", 1, 2.5, true]',
        '"a  b\\tc"',
        "[]",
        "null",
        '["a", null]',
        '["a\\u001fb"]',
        "7",
        '[["a"]]',
    ]
    content = "\n".join([*(f'{{"bag": {line}}}' for line in lines), "{}"]).encode()
    batch = only(tmp_path / "a.jsonl", content, Columns(text=(), items="bag"))
    assert batch.texts.to_pylist() == [
        f"a b{E_ITEM}1{E_ITEM}2.5{E_ITEM}true{E_ITEM}",
        f"a{E_ITEM}b{E_ITEM}c{E_ITEM}",
        "",
    ]
    assert batch.rejected == [
        (3, "items are null"),
        (4, "an item is null"),
        (5, "an item contains '\\x1f', the item separator"),
        (6, "items are a number, not a list"),
        (7, "an item is a list"),
        (8, "no column 'bag'"),
    ]


@pytest.mark.parametrize(
    "name", ["a b", "naïve", 'qu"ote', "back\\slash", "tab\t", "class", "field_0", "", "a.b"]
)
def test_a_column_may_have_any_name(tmp_path, name):
    columns = Columns(text=(name,), id="field_1")
    for ascii_only in (True, False):
        lines = [{name: "x", "field_1": 4}, {name: None}, {"other": 1}]
        content = "\n".join(json.dumps(line, ensure_ascii=ascii_only) for line in lines).encode()
        batch = only(tmp_path / "a.jsonl", content, columns)
        assert (batch.texts.to_pylist(), batch.ids.to_pylist()) == (["x"], ["4"])
        assert batch.rejected == [(1, "text is null"), (2, f"no column {name!r}")]


def test_one_column_may_be_text_id_and_group(tmp_path):
    batch = only(
        tmp_path / "a.jsonl",
        b'{"text": "x"}',
        Columns(text=("text",), id="text", group="text", score="text"),
    )
    assert (batch.texts.to_pylist(), batch.ids.to_pylist(), batch.groups.to_pylist()) == (
        ["x"],
        ["x"],
        ["x"],
    )


def test_html_becomes_text_and_only_a_failing_page_is_rejected(tmp_path, monkeypatch):
    content = b'{"text": "<p>one</p>"}\n{"text": "<p>bad</p>"}\n{"text": "<p>two</p>"}\n'
    assert only(tmp_path / "a.jsonl", content, html=True).texts.to_pylist() == ["one", "bad", "two"]
    real = html.html_to_text

    def fails(pages, config):
        if "<p>bad</p>" in pages.to_pylist():
            raise ValueError("no tree")
        return real(pages, config)

    monkeypatch.setattr(html, "html_to_text", fails)
    batch = only(tmp_path / "a.jsonl", content, html=True)
    assert (batch.texts.to_pylist(), batch.rows.tolist()) == (["one", "two"], [0, 2])
    assert batch.rejected == [(1, "cannot be parsed as HTML: no tree")]


def test_column_names_come_from_the_first_rows(tmp_path):
    file = found(
        tmp_path / "a.jsonl", b'broken\n\n[1]\n{"b": 1, "a": {"z": 2}}\n{"a": 1, "c": 1}\n'
    )
    assert jsonl.column_names(file, Config()) == ["b", "a", "c"]


@pytest.mark.parametrize("content", [b'[{"text": "a"}]', b"[\n{}\n]", b'{\n"text": "a"}'])
def test_a_json_file_that_is_one_document_is_an_error(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.json is a single JSON (array|object), not JSON Lines"):
        jsonl.column_names(found(tmp_path / "a.json", content), Config())
    assert jsonl.column_names(found(tmp_path / "a.jsonl", content), Config()) in ([], ["text"])


def test_batches_are_bounded_in_bytes_and_rows(tmp_path, monkeypatch):
    content = (
        b'{"text": "abcdefgh"}\n' * 100
        + b'{"text": "'
        + b"x" * 5000
        + b'"}\n'
        + b'{"text": "abcdefgh"}\n' * 5
    )
    whole = together(batches(tmp_path / "a.jsonl", content))
    monkeypatch.setattr(records, "BATCH_BYTES", 500)
    parts = batches(tmp_path / "a.jsonl", content)
    assert together(parts) == whole
    assert all(
        part.texts.nbytes < 1000 for part in parts if max(map(len, part.texts.to_pylist())) < 5000
    )
    monkeypatch.setattr(gather, "MAX_ROWS", 7)
    parts = batches(tmp_path / "a.jsonl", content)
    assert together(parts) == whole
    assert max(part.num_rows for part in parts) == 7


def test_a_compressed_file_is_one_span_with_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "PART_BYTES", 10)
    content = b'{"text": "one", "id": 1}\nbad\n{"text": "two"}\n'
    plain = batches(tmp_path / "a.jsonl", content)
    packed = found(tmp_path / "a.jsonl.gz", gzip.compress(content))
    assert len(plain) > 1
    assert jsonl.split(packed) == [(0, packed.size)]
    assert together(jsonl.read(packed, (0, packed.size), TEXT, Config())) == together(plain)


def test_a_remote_file_is_read_in_spans(monkeypatch):
    fsspec.filesystem("memory").pipe("/jsonl/a.jsonl", b'{"text": "one"}\n{"text": "two"}\n')
    monkeypatch.setattr(records, "PART_BYTES", 9)
    file = find_files(["memory://jsonl/a.jsonl"], Config())[0]
    parts = [
        batch for span in jsonl.split(file) for batch in jsonl.read(file, span, TEXT, Config())
    ]
    assert together(parts)[2] == ["one", "two"]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    file = found(tmp_path / "a.jsonl", b'{"text": "one"}\n')
    reading = jsonl.read(file, (0, file.size), TEXT, Config())
    next(reading)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n{"text": "two"}\n')
    with pytest.raises(DataError, match="changed while it was read"):
        next(reading)


LINES = st.lists(
    st.one_of(
        st.text(max_size=12).map(
            lambda text: json.dumps({"text": text}, ensure_ascii=False).encode()
        ),
        st.sampled_from(
            [b"", b"\r", b"  ", b"{}", b'{"text": "\xff"}', b'{"text": "a"}\r', b"nonsense"]
        ),
    ),
    max_size=12,
)
ANYWHERE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def lines_of(content):
    return io.BytesIO(content).readlines()


@ANYWHERE
@given(
    lines=LINES,
    ends=st.booleans(),
    part_bytes=st.integers(1, 60),
    batch_bytes=st.integers(1, 60),
    bom=st.booleans(),
)
def test_spans_cover_every_row_of_a_file_once_in_order(
    tmp_path, lines, ends, part_bytes, batch_bytes, bom
):
    content = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + b"\n" * ends
    file = found(tmp_path / "a.jsonl", content)
    whole = together(jsonl.read(file, (0, file.size), TEXT, Config()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(records, "PART_BYTES", part_bytes)
        patched.setattr(records, "BATCH_BYTES", batch_bytes)
        spans = jsonl.split(file)
        parts = [batch for span in spans for batch in jsonl.read(file, span, TEXT, Config())]
    assert len(spans) == max(1, -(-len(content) // part_bytes))
    assert together(parts) == whole
    assert whole[0] == len(lines_of(content.removeprefix(b"\xef\xbb\xbf")))


@ANYWHERE
@given(
    lines=LINES,
    ends=st.booleans(),
    batch_bytes=st.integers(1, 60),
    bom=st.booleans(),
    data=st.data(),
)
def test_kept_lines_are_written_byte_for_byte(tmp_path, lines, ends, batch_bytes, bom, data):
    content = b"\n".join(lines) + b"\n" * ends
    rows = lines_of(content)
    is_kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_lines, "_COPIED_AT_ONCE", batch_bytes)
        answer = written(
            tmp_path, b"\xef\xbb\xbf" * bom + content, verdicts(len(rows), np.flatnonzero(is_kept))
        )
    assert answer == b"".join(row for row, kept in zip(rows, is_kept, strict=True) if kept)


def test_a_file_with_all_rows_kept_is_copied(tmp_path):
    packed = gzip.compress(b'{"text": "a"}\n', compresslevel=1, mtime=12345)
    assert written(tmp_path, packed, verdicts(1, [0]), name="a.jsonl.gz") == packed


def test_kept_lines_of_a_compressed_file_are_compressed(tmp_path):
    packed = gzip.compress(b'{"text": "a"}\r\n{"text": "b"}\n{"text": "c"}')
    answer = written(tmp_path, packed, verdicts(3, [0, 2]), name="a.jsonl.gz")
    assert gzip.decompress(answer) == b'{"text": "a"}\r\n{"text": "c"}'


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_bytes_do_not_depend_on_how_many_are_written_at_once(
    tmp_path, monkeypatch, ending
):
    random = np.random.default_rng(1)
    lines = b"".join(
        b'{"text": "%d %s"}\n' % (row, random.bytes(row % 900).hex().encode())
        for row in range(1000)
    )
    name = f"a.jsonl.{ending}"
    packed = gzip.compress(lines) if ending == "gz" else pa.compress(lines, "zstd", asbytes=True)
    kept = np.flatnonzero(random.random(1000) < 0.7)
    whole = written(tmp_path, packed, verdicts(1000, kept), name=name)
    monkeypatch.setattr(text_lines, "_COPIED_AT_ONCE", 1000)
    assert written(tmp_path, packed, verdicts(1000, kept), name=name) == whole


def test_marks_are_inserted_before_the_closing_brace(tmp_path, monkeypatch):
    content = b'\xef\xbb\xbf{"text" : "a}" } \r\n\nbroken\n{"text": "b", "x": 1.0}\n{"text":"c"}'
    verdict = verdicts(5, [0], [(3, 'the "one"', 0.875), (4, None, 1.0)])
    verdict = dataclasses.replace(verdict, cluster_sizes=np.array([7, 1, 1, 2, 3]))
    expected = (
        b'{"text" : "a}" , "neardup_kept": true, "neardup_kept_id": null, "neardup_similarity": null, '
        b'"neardup_cluster_size": 7} \r\n'
        b'{"text": "b", "x": 1.0, "neardup_kept": false, "neardup_kept_id": "the \\"one\\"", '
        b'"neardup_similarity": 0.875, "neardup_cluster_size": 2}\n'
        b'{"text":"c", "neardup_kept": false, "neardup_kept_id": null, "neardup_similarity": 1.0, '
        b'"neardup_cluster_size": 3}'
    )
    assert written(tmp_path, content, verdict, mark=True) == expected
    monkeypatch.setattr(records, "BATCH_BYTES", 5)
    assert written(tmp_path, content, verdict, mark=True) == expected


def test_writing_a_file_that_changed_is_an_error(tmp_path):
    file = msgspec.structs.replace(found(tmp_path / "a.jsonl", b'{"text": "a"}\n'), modified="0")
    with pytest.raises(DataError, match="changed while it was read"):
        jsonl.write(file, str(tmp_path / "b.jsonl"), verdicts(1, []), Config())


# Every escape, surrogate pairs and lone surrogates, and texts longer than one block.
STRINGS = st.one_of(
    st.text(st.sampled_from('"\\/\b\f\n\r\t\0\x7fé€😀\ud83d\ude00') | st.characters(), max_size=10),
    st.builds(lambda count, text: "long " * count + text, st.integers(5, 200), st.text(max_size=5)),
)
ROWS = st.lists(
    st.tuples(STRINGS, st.booleans(), st.sampled_from([None, 1, "x", "text", [1], {"text": "a"}])),
    max_size=5,
)


def is_utf16(text):
    """Whether the escapes of a text have no half of a surrogate pair: json.dumps writes two halves as a pair."""
    try:
        text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return False
    return True


def json_lines(rows):
    """Lines with texts, which have escapes where they must, and an id."""
    return b"\n".join(
        json.dumps(
            {"id": number, "other": other, "text": text},
            ensure_ascii=ascii_only or not encodes(text),
        ).encode()
        for number, (text, ascii_only, other) in enumerate(rows)
    )


def encodes(text):
    return not any("\ud800" <= character <= "\udfff" for character in text)


@ANYWHERE
@given(rows=ROWS)
def test_texts_equal_those_of_the_standard_library(tmp_path, rows):
    content = json_lines(rows)
    _, numbers, texts, ids, rejected = together(batches(tmp_path / "a.jsonl", content))
    sound = [number for number, (text, _, _) in enumerate(rows) if is_utf16(text)]
    loaded = [json.loads(line)["text"] for line in content.split(b"\n") if line]
    assert numbers == sound
    assert texts == [loaded[number] for number in sound]
    assert ids == [str(number) for number in sound]
    assert [row for row, _ in rejected] == [
        number for number in range(len(rows)) if number not in sound
    ]
    assert all(reason.startswith("lone surrogate") for _, reason in rejected)


@ANYWHERE
@given(
    rows=ROWS,
    lines=LINES,
    piece=st.sampled_from([b"", b'"', b"\\", b"\\q", b"}", b"\t", b'"text": "x", ', b"5"]),
    data=st.data(),
)
def test_extracted_texts_equal_fully_decoded_ones(tmp_path, rows, lines, piece, data):
    content = json_lines(rows) + b"\n" + b"\n".join(lines if data.draw(st.booleans()) else [])
    at = data.draw(st.integers(0, len(content)))
    content = content[:at] + piece + content[at:]
    columns = data.draw(
        st.sampled_from([TEXT, Columns(text=("text",), id="id", group="other", score="id")])
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(records, "BATCH_BYTES", data.draw(st.integers(1, 2000)))
        patched.setattr(gather, "MAX_ROWS", data.draw(st.integers(1, 5)))
        given = batches(tmp_path / "a.jsonl", content, columns)
        patched.setattr(jsonl.Rows, "_cut", lambda *_: None)
        expected = batches(tmp_path / "a.jsonl", content, columns)
    assert list(map(everything, given)) == list(map(everything, expected))


def everything(batch):
    for array in (batch.texts, batch.ids):
        array.validate(full=True)
    columns = (batch.texts, batch.ids, batch.scores, batch.groups)
    arrays = [None if array is None else (array.type, array.to_pylist()) for array in columns]
    return batch.num_rows, batch.rows.tolist(), arrays, batch.rejected, batch.found


@pytest.mark.parametrize(
    ("columns", "is_cut"),
    [
        (TEXT, True),
        (Columns(text=("id",)), True),
        (Columns(text=("text", "id")), False),
        (Columns(text=("text",), id="text"), False),
        (Columns(text=("text",), group="text"), False),
        (Columns(text=("text",), score="text"), False),
        (Columns(text=(), items="text"), False),
    ],
)
def test_texts_are_extracted_if_one_column_is_used_as_text_only(
    tmp_path, monkeypatch, columns, is_cut
):
    monkeypatch.setattr(jsonl.Rows, "_all_at_once", lambda *_: pytest.fail("decoded whole"))
    content = b'{"text": "a b", "id": "c"}\r\n{"id": "d", "text": ""}'
    if is_cut:
        assert only(tmp_path / "a.jsonl", content, columns).texts.to_pylist() in (
            ["a b", ""],
            ["c", "d"],
        )
    else:
        with pytest.raises(pytest.fail.Exception, match="decoded whole"):
            batches(tmp_path / "a.jsonl", content, columns)


def test_the_last_of_repeated_text_keys_is_used_and_all_must_be_texts(tmp_path):
    content = b'{"text": "a", "text": "b"}\n{"text": 5, "text": "b"}\n{"text": "a", "text": 5}\n'
    batch = only(tmp_path / "a.jsonl", content)
    assert batch.texts.to_pylist() == ["b"]
    assert [row for row, _ in batch.rejected] == [1, 2]
