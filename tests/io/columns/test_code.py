"""Source code to words of tokens."""

from __future__ import annotations

import re

import pyarrow as pa
import pygments.lexers
import pytest
from pygments.token import Comment, Name, String, Text

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.columns.code import code_texts, language_of

PYTHON = '''"""What the module does."""
import os.path


def total(prices, tax=0.25):
    """Add prices up."""
    # the tax comes last
    found = sum(prices) * (1 + tax)
    return f"{found}" if "a\\n" != 'b' else None
'''
RENAMED = """import x.y
def f(a, b=1.5):
    c = d(a) * (7 + b)  # another remark
    return f"{c}" if "other" != "b" else None
"""
C = "#include <stdio.h>\n/* adds */ int add(int a, char *b) {\n  return a + 0x10 - '\\n'; // sum\n}\n"
# The same in another layout.
C_AGAIN = (
    "#include   <math.h>\nint sum(\n\tint first,\n\tchar*second)\n{ return first+7-'x' ; }  /* ! */"
)


def words(text, language="python", **settings):
    config = Config(unit="code", language=language, **settings)
    [made], reasons = code_texts(pa.array([text]), None, config)
    assert not reasons
    return made.as_py().split()


def test_comments_go_names_fold_and_literals_become_their_kind():
    assert (
        words(RENAMED)
        == (
            "import name0 dot0 name0 "
            "def name0 lparen0 name0 comma0 name0 equal0 float0 rparen0 colon0 "
            "name0 equal0 name0 lparen0 name0 rparen0 star0 lparen0 integer0 plus0 name0 rparen0 "
            "return string0 name0 string0 if string0 bangequal0 string0 else qxNone"
        )
        .replace("qxNone", "q4eqone")
        .split()
    )
    assert words(PYTHON) == words(RENAMED)


def test_layout_and_comments_of_c_do_not_matter():
    assert words(C, "c") == words(C_AGAIN, "c")
    assert words(C, "c")[:5] == ["directive0", "int", "name0", "lparen0", "int"]
    assert "char0" in words(C, "c")


def test_names_are_kept_where_asked_each_as_another_word():
    kept = words("total = Total + to_tal + t0tal + été + q", code_names="keep")
    names = [word for word in kept if word[0] == "1"]
    assert len(set(names)) == 6
    assert names[0] == "1total"
    assert all(re.fullmatch("[a-z0-9]+", word) for word in kept)


def test_every_word_has_letters_and_digits_alone():
    for language, text in (("python", PYTHON), ("c", C), ("html", "<p class='a'>Ein Wort ü</p>")):
        assert all(re.fullmatch("[a-z0-9]+", word) for word in words(text, language))


def test_a_long_string_in_brackets_is_no_documentation():
    assert words('print(\n"""a""")') == words('print("b")')
    assert words('"""a"""\nx = 1') == words("x = 1")


def plain_words(text, language):
    """The definition, token by token, for languages without strings in several parts."""
    found = []
    for kind, value in pygments.lexers.get_lexer_by_name(language).get_tokens(text):
        if kind in Comment or kind in String.Doc or (kind in Text and not value.strip()):
            continue
        found.append("name" if kind in Name else value)
    return found


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "class A { int f(int b) { return b * g(b); } // x\n}"),
        ("go", "func f(a int) int { for a > 2 { a -= h(a) }; return a }"),
        ("javascript", "function f(a) { return a.b(c => c ?? a) }"),
    ],
)
def test_as_many_words_as_tokens_by_definition(language, text):
    assert len(words(text, language)) == len(plain_words(text, language))


def test_texts_keep_their_lines_so_that_a_comparison_shows_lines():
    config = Config(unit="code", language="python")
    [made], _ = code_texts(pa.array(["a = 1\r\n\r\n# remark\nb = 2"]), None, config)
    lines = [line.strip() for line in made.as_py().strip().split("\n")]
    assert lines == ["name0 equal0 integer0"] * 2


def test_short_code_nulls_and_unknown_languages():
    config = Config(unit="code", min_words=4)
    texts = pa.array(["a = 1", "a = 1 + 2", None, "a"])
    made, reasons = code_texts(texts, ["python", "python", None, None], config)
    assert [text is not None and bool(text.as_py()) for text in made] == [False, True, False, False]
    assert made[2].as_py() is None
    assert reasons == {3: "no language is known by the ending of its file: name its language"}
    with pytest.raises(ConfigError, match="`unit` 'code' needs `language`"):
        code_texts(texts, None, config)


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/main.py", "python"),
        ("a/b/MAIN.C", "c"),
        ("x.java.gz", "java"),
        ("Makefile", "make"),
        ("notes.txt", None),
        ("photo.jpeg", None),
        ("LICENSE", None),
    ],
)
def test_the_ending_of_a_file_tells_its_language(path, language):
    assert language_of(path) == language
