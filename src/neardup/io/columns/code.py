"""Source code to tokens: one word for every token, so that what compares words compares tokens.

Comments and documentation are dropped, names are folded, and literals become their kind. A keyword is itself; every
other word has a digit, so that none is a keyword.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pygments
from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.lexers.special import OutputLexer, RawTokenLexer, TextLexer
from pygments.token import Comment, Name, Number, String

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.columns.rejected_rows import NOT_CODE

# If the words of tokens change, change the name here.
FORMAT: Final = "code-1"
FOLDED_NAME: Final = "name0"
_LITERALS: Final = (
    (String.Char, "char0"),
    (String, "string0"),
    (Number.Float, "float0"),
    (Number, "integer0"),
    (Comment.PreprocFile, "directive0"),
    (Comment.Preproc, "directive0"),
)
# Words of which only the first of several in a row counts: a literal is one token, also with escapes.
_RUNS: Final = frozenset({"char0", "string0", "directive0"})
_SIGN_NAMES: Final = (
    *("lparen", "rparen", "lbracket", "rbracket", "lbrace", "rbrace", "plus", "minus", "star"),
    *("slash", "percent", "equal", "less", "greater", "bang", "amp", "bar", "caret", "tilde"),
    *("dot", "comma", "colon", "semicolon", "question", "at", "hash", "dollar", "backslash"),
    *("quote", "doublequote", "backtick", "underscore"),
)
_SIGNS: Final = dict(zip("()[]{}+-*/%=<>!&|^~.,:;?@#$\\'\"`_", _SIGN_NAMES, strict=True))
# Characters that are not part of a word as they are; q is spelled, because it begins what is spelled.
_SPELLED: Final = re.compile(r"[^a-pr-z0-9]")
_NEWLINE: Final = "\n"
_NOT_CODE: Final = (TextLexer, OutputLexer, RawTokenLexer)


class _Language(NamedTuple):
    """A language: its lexer, and the words of kinds of tokens, of texts of tokens, and of names, as they are met."""

    lexer: Lexer
    words: dict[Any, str]
    spelled: dict[str, str]
    named: dict[str, str]
    keeps_names: bool


def signature_name(config: Config) -> str:
    """Name what words of tokens depend on, for the format of signatures."""
    return f"{FORMAT}-{config.code_names} pygments-{pygments.__version__}"


def language_of(path: str) -> str | None:
    """Return the language of a file by its ending; None if none is known.

    >>> language_of("src/main.py"), language_of("notes.txt")
    ('python', None)
    """
    name = path.replace("\\", "/").rpartition("/")[2]
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    stem, dot, ending = name.rpartition(".")
    return _language_named(f"a.{ending.lower()}" if stem and dot else name)


@lru_cache(maxsize=1024)
def _language_named(name: str) -> str | None:
    """Look a name up in the list of all lexers, which takes a millisecond."""
    found: Any = find_lexer_class_for_filename(name)
    if found is None or issubclass(found, _NOT_CODE) or not found.aliases:
        return None
    alias: str = found.aliases[0]
    return alias


def code_texts(
    texts: pa.Array | pa.ChunkedArray, languages: Sequence[str | None] | None, config: Config
) -> tuple[pa.Array, dict[int, str]]:
    """Return the tokens of every text as words, and the reason for each text that is no code; a null stays null.

    languages: that of each text, by the ending of its file; one of the settings takes precedence.
    """
    if config.language is None and languages is None:
        raise ConfigError(
            "`unit` 'code' needs `language`, unless each document is a file with an ending that tells it",
            hint="pass language='python', or the language that the texts are in",
        )
    least = config.min_words or 0
    made: list[str | None] = []
    reasons = dict[int, str]()
    known = dict[str, _Language]()
    for row, text in enumerate(texts.to_pylist()):
        language = config.language or (languages[row] if languages is not None else None)
        if text is None:
            made.append(None)
            continue
        made.append("")
        if language is None:
            reasons[row] = f"{NOT_CODE} by the ending of its file: name its language"
            continue
        if language not in known:
            known[language] = _load(language, config)
        words = list(_words(text, known[language]))
        if len(words) - words.count(_NEWLINE) >= least:
            made[row] = " ".join(words)
    return pa.array(made, pa.large_string()), reasons


def _load(language: str, config: Config) -> _Language:
    lexer = find_lexer_class_by_name(language)()
    return _Language(lexer, {}, {}, {}, keeps_names=config.code_names == "keep")


def _words(text: str, language: _Language) -> Iterator[str]:
    """Iterate over the words of the tokens of a text, line by line."""
    lexer, words, spelled, named, _ = language
    previous = ""
    is_new_line = True
    for _, kind, value in lexer.get_tokens_unprocessed(_with_line_ends(text)):
        word = words.get(kind)
        if word is None:
            word = words[kind] = _word_of(kind)
        if word == _BY_PLACE:
            word = "" if previous in _BEFORE_DOCUMENTATION else "string0"
        elif word == _BY_TEXT:
            word = spelled.get(value)
            if word is None:
                word = spelled[value] = _spell(value)
        elif word == _BY_NAME:
            word = named.get(value)
            if word is None:
                word = named[value] = _name(value, keeps=language.keeps_names)
        if word and not (word == previous and word in _RUNS):
            yield word
            is_new_line = False
        previous = word or previous
        if _NEWLINE in value and not is_new_line:
            yield _NEWLINE
            is_new_line = True


def _with_line_ends(text: str) -> str:
    """Return a text as a lexer expects it; `Lexer.get_tokens` would also remove empty lines and replace tabs."""
    text = text.replace("\r\n", _NEWLINE).replace("\r", _NEWLINE)
    return text if text.endswith(_NEWLINE) else text + _NEWLINE


# Instead of a word: the text of the token says which.
_BY_TEXT: Final = "by text"
_BY_NAME: Final = "by name"
_BY_PLACE: Final = "by place"
# Pygments takes every long string at the start of a line for documentation, also one in brackets.
_BEFORE_DOCUMENTATION: Final = ("", "colon0")


def _word_of(kind: Any) -> str:
    """Return the word of a kind of tokens; empty for one that is dropped."""
    if kind in Name:
        return _BY_NAME
    if kind in String.Doc:
        return _BY_PLACE
    for literal, word in _LITERALS:
        if kind in literal:
            return word
    if kind in Comment:
        return ""
    return _BY_TEXT


def _name(text: str, *, keeps: bool) -> str:
    """Return the words of a name; a dotted one, as in an import, is several."""
    parts = re.findall(r"\w+|[^\w\s]+", text)
    words = []
    for part in parts:
        if not (part[0].isalnum() or part[0] == "_"):
            words.append(_spell_one(part))
        elif keeps:
            words.append(f"1{_escape(part)}")
        else:
            words.append(FOLDED_NAME)
    return " ".join(words)


def _spell(text: str) -> str:
    """Return the words of an operator, a keyword, or other text."""
    if not text.strip(" \t\r\n\f\\"):
        return ""  # also the end of a line that goes on in the next one
    return " ".join(map(_spell_one, text.split()))


def _spell_one(text: str) -> str:
    if all(sign in _SIGNS for sign in text):
        return f"{''.join(_SIGNS[sign] for sign in text)}0"
    return _escape(text)


def _escape(text: str) -> str:
    """Spell a name with letters and digits alone, a different one for every name.

    >>> _escape("total"), _escape("SUM_of")
    ('total', 'q53qq55qq4dqq5fqof')
    """
    return _SPELLED.sub(lambda found: f"q{ord(found[0]):x}q", text)
