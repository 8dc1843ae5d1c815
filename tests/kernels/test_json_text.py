"""Texts out of JSON Lines: against plain Python, and against the parser of the standard library."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import json_text
from support.plain_kernels import plain

PLAIN = plain(json_text)
# Escaped characters, and the first and last characters of two, three and four bytes.
CHARACTERS = st.one_of(
    st.sampled_from('"\\/\b\f\n\r\t\x00\x1f\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff'),
    st.characters(codec="utf-8"),
)
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=12),
    st.builds(
        lambda count, text: "x" * count + text, st.integers(24, 70), st.text(CHARACTERS, max_size=4)
    ),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["text", ":", '"text":"x"', "{[", "]}"])
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "a", "b"]), inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS = st.builds(
    lambda before, text, after: {**before, "text": text, **after},
    st.dictionaries(st.sampled_from(["a", "b", "te", "texts", 'te"xt']), VALUES, max_size=2),
    TEXTS,
    st.dictionaries(st.sampled_from(["c", "d"]), VALUES, max_size=2),
)
# Tokens and escapes, whole and broken, and the ends of lines.
PIECES = st.sampled_from(
    [
        *(
            b'{"text": "',
            b'"}',
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b":",
            b",",
            b'"text"',
            b"\n",
            b"\r\n",
            b" ",
            b"\t",
            b"\\",
        ),
        *(
            b'"te\\u0078t"',
            b"\\n",
            b"\\q",
            b"\\u00e9",
            b"\\ud83d\\ude00",
            b"\\ud83d",
            b"\\ude00",
            b"\\u12",
            b"5",
        ),
        *(
            b'"text": "x",',
            b'"text": 5,',
            b"null",
            b"plain text of more than thirty-two bytes",
            b"\x01",
            "é".encode(),
        ),
    ]
)


@st.composite
def blocks(draw):
    """Lines that are valid except for a few inserted pieces."""
    rows = draw(st.lists(ROWS, min_size=1, max_size=3))
    ascii_only = draw(st.booleans())
    block = b"\n".join(json.dumps(row, ensure_ascii=ascii_only).encode() for row in rows)
    for piece in draw(st.lists(PIECES, max_size=3)):
        # Insert between characters, because the lines must stay UTF-8.
        text = block.decode()
        at = draw(st.integers(0, len(text)))
        block = text[:at].encode() + piece + text[at:].encode()
    return block


def cut(block, name="text", module=json_text):
    """The texts of lines and the remaining lines; None if they need the slower path."""
    texts = np.zeros(len(block) + json_text.BLOCK, np.uint8)
    rest = np.zeros(len(block), np.uint8)
    ends = np.full(json_text.most_lines(len(block), len(name.encode())) + 1, -1)
    lines = np.frombuffer(block, np.uint8)
    name = np.frombuffer(name.encode(), np.uint8)
    num_rest = module.cut_texts(lines, name, texts, ends, rest)
    if num_rest == json_text.ODD:
        return None
    bounds = itertools.pairwise(ends[ends >= 0].tolist())
    return [texts[start:end].tobytes() for start, end in bounds], rest[:num_rest].tobytes()


def line_of(text):
    return b'{"text": "' + text + b'"}'


@given(block=blocks())
def test_the_compiled_parser_equals_plain_python(block):
    assert cut(block) == cut(block, module=PLAIN)


@given(rows=st.lists(ROWS, min_size=1, max_size=4), ascii_only=st.booleans(), ends=st.booleans())
def test_extracted_texts_equal_those_of_the_standard_library(rows, ascii_only, ends):
    def lines(of_rows):
        text = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in of_rows) + "\n" * ends
        return text.encode()

    block = lines(rows)
    expected = [row["text"].encode() for row in rows], lines([{**row, "text": ""} for row in rows])
    assert cut(block) == cut(block, module=PLAIN) == expected


@given(block=blocks())
def test_extraction_succeeds_exactly_on_valid_lines(block):
    if answer := cut(block):
        texts, rest = answer
        lines = block.removesuffix(b"\n").split(b"\n")
        left = rest.removesuffix(b"\n").split(b"\n")
        assert len(texts) == len(lines) == len(left)
        for text, line, short in zip(texts, lines, left, strict=True):
            given = parsed(short)
            expected = parsed(line)
            assert (given is None) == (expected is None)
            assert expected is None or {**given, "text": text.decode()} == expected


def parsed(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


@pytest.mark.parametrize("before", [*range(4), *range(24, 36), *range(56, 68)])
@pytest.mark.parametrize("after", [0, 1, 31, 40])
def test_escapes_anywhere_in_a_block_are_read(before, after):
    escapes = rb"\"\\\/\b\f\n\r\t\u0000\u00E9\u20ac\ud83d\ude00"
    text = b"x" * before + escapes + b"y" * after
    expected = "x" * before + '"\\/\b\f\n\r\t\0é€😀' + "y" * after
    for block in (line_of(text), line_of(text) + b"\n" + line_of(b"")):
        assert cut(block)[0][0].decode() == cut(block, module=PLAIN)[0][0].decode() == expected


@pytest.mark.parametrize(
    "line",
    [
        *(
            b"",
            b"   ",
            b"{}",
            b"5",
            b'"text"',
            b'{"text"',
            b'{"text":',
            b'{"text": ',
            b'{"text": "',
            b'{"text": "a',
        ),
        *(
            b'{"text": null}',
            b'{"text": 5, "b": "c"}',
            b'{"text": ["a"]}',
            b'{"text": {"text": "a"}}',
        ),
        *(
            b'{"a": {"text": "b"}}',
            b'{"a": "text", "b": "c"}',
            b'[["text", "a"]]',
            b'{"Text": "a"}',
            b'{"texts": "a"}',
        ),
        *(b'{"text": "a", "text": "b"}', b'{"text": 5, "text": "b"}', b'{"text": "a", "text": 5}'),
        *map(
            line_of,
            [
                b"\\",
                b"\\q",
                b"\\u",
                b"\\u12",
                b"\\u123g",
                b"\\U1234",
                b"\\ud83d",
                b"\\ude00",
                b"\\ud83dx",
            ],
        ),
        *map(
            line_of, [b"\\ud83d\\n", b"\\ud83d\\u0041", b"\\ud83d\\ud83d", b"\t", b"\x00", b"\x1f"]
        ),
        b'{"a": "\\q", "text": "b"}',
    ],
)
def test_a_line_without_exactly_one_valid_text_is_not_extracted(line):
    sound = line_of(b"before") + b"\n"
    for block in (sound + line, sound + line + b"\n", sound + line + b"\n" + sound):
        if block != sound:
            assert cut(block) is cut(block, module=PLAIN) is None


@pytest.mark.parametrize("cut_off", range(len(line_of(rb"a\ud83d\ude00b"))))
def test_nothing_is_read_past_the_last_line(cut_off):
    """The bytes are part of a longer array whose continuation would complete them."""
    whole = line_of(rb"a\ud83d\ude00b") + b"\n"
    source = np.frombuffer(whole, np.uint8)[:cut_off]
    texts = np.zeros(cut_off + json_text.BLOCK, np.uint8)
    rest = np.zeros(cut_off, np.uint8)
    ends = np.zeros(json_text.most_lines(cut_off, 4) + 1, np.int64)
    given = json_text.cut_texts(source, np.frombuffer(b"text", np.uint8), texts, ends, rest)
    # Empty input has no lines; a line without its last brace or newline already has its text.
    assert (given == json_text.ODD) == (0 < cut_off <= whole.rindex(b'"'))


def test_no_lines_have_no_texts():
    assert cut(b"") == cut(b"", module=PLAIN) == ([], b"")


def test_buffers_hold_as_many_of_the_shortest_lines_as_promised():
    for name in ("", "text"):
        block = b"\n".join([b'{"%b":""' % name.encode()] * 3)
        assert json_text.most_lines(len(block), len(name)) == 3
        assert cut(block, name) == ([b"", b"", b""], block)


@pytest.mark.parametrize("name", ["", "naïve", 'qu"ote', "back\\slash", "tab\t", "😀"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_column_name_is_found_in_any_json_spelling(name, ascii_only):
    block = json.dumps({"a": 1, name: "x"}, ensure_ascii=ascii_only).encode()
    rest = json.dumps({"a": 1, name: ""}, ensure_ascii=ascii_only).encode()
    assert cut(block, name) == cut(block, name, PLAIN) == ([b"x"], rest)
