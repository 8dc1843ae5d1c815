"""`neardup compare`: how similar two files are, and where they differ."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import IO, Final

import click

from neardup.cli import options
from neardup.config import Config
from neardup.errors import DataError

STDIN: Final = "-"
_CODECS: Final = {".gz": "gzip", ".zst": "zstd"}


@click.command(
    cls=options.Command, short_help="Show how similar two files are, and where they differ."
)
@click.argument("a", type=click.Path(allow_dash=True))
@click.argument("b", type=click.Path(allow_dash=True))
@options.settings(
    *options.TEXT_SETTINGS,
    *("text_column", "id_column", "delimiter", "encoding"),
    *options.PASSAGE_SETTINGS,
)
@options.as_json("the numbers")
@options.quiet("Show only the numbers, not the texts.")
def compare(a: str, b: str, config: Config, as_json: bool, quiet: bool) -> None:
    """Compare two texts: exact and estimated similarity, containment, and what differs.

    A and B are text files, also as .gz and .zst, "-" for standard input, or documents of a file: FILE:ID, or FILE:ROW
    where a document has no id. Code is compared line by line, prose word by word. If the texts are mostly different,
    the passages they share are listed instead. With --passages they are always listed, with --edits also those that
    were edited.

    \b
    Examples:
      neardup compare old.txt new.txt
      neardup compare old.txt new.txt --unit char --size 5
      neardup compare pages.jsonl:page-1 pages.jsonl:page-17
      neardup compare old.html new.html --html --quiet
      neardup compare old.txt new.txt --threshold 0.9 --bands 20 --rows 5
      neardup compare essay.txt source.txt --passages --edits
      git show HEAD:README.md | neardup compare - README.md --json
    """  # noqa: D301 - click reads the backspace
    if a == b == STDIN:
        raise click.UsageError('standard input can be read only once: A and B cannot both be "-"')
    from neardup.cli import render

    if config.goes_by_endings:
        config = _with_language(a, b, config)
    text_a, text_b = _read(a, config), _read(b, config)
    with render.working("compare", quiet=quiet):
        import neardup
        from neardup.align.shared_passages import least_words

        answer = neardup.compare(text_a, text_b, config=config)
    if as_json:
        numbers = dataclasses.asdict(answer)
        if answer.passages is None:
            numbers = {name: value for name, value in numbers.items() if value is not None}
        is_pair = answer.similarity(config.measure) >= config.threshold
        render.as_json(numbers | {"threshold": config.threshold, "is_pair": is_pair})
        return
    names = (_name(a), _name(b))
    render.comparison(answer, plan=neardup.plan(config=config), names=names)
    if quiet:
        return
    texts = _visible(text_a, config), _visible(text_b, config)
    if answer.passages is None:
        render.texts(*texts, names)
    else:
        render.passages(answer, texts, least_words(config))


def _with_language(a: str, b: str, config: Config) -> Config:
    """Return the settings with the language of two files."""
    from neardup.io.columns.code import language_of

    found = {language_of(path) for path in (a, b)} - {None}
    if len(found) != 1:
        what = " and ".join(sorted(map(str, found))) or "no known language"
        raise DataError(
            f"the endings of {a} and {b} say {what}", hint="name the language: --language python"
        )
    return Config.of(config, language=found.pop())


def _name(path: str) -> str:
    return "standard input" if path == STDIN else path


def _read(path: str, config: Config) -> str:
    if path != STDIN and ":" in path:
        from neardup.io.documents.one_document import read_by_id, split_address

        address = split_address(path)
        if address is not None:  # the stored text, not what is compared of it
            stored = Config.of(
                config, html=False, unit="word", language=None, code_names="fold", min_words=None
            )
            return read_by_id(*address, stored)
    from neardup.io.documents.file_encodings import decode

    content = sys.stdin.buffer.read() if path == STDIN else _content(path)
    try:
        text = decode(content, config)
        text.encode()  # raises for half of a surrogate pair, which an escape sequence may stand for
    except UnicodeDecodeError as error:
        raise DataError(
            f"{_name(path)} is not {config.encoding or 'UTF-8'} text: byte {error.start} is "
            f"0x{content[error.start]:02x}",
            hint="pass its encoding, for example --encoding latin-1, or --encoding auto",
        ) from error
    except UnicodeEncodeError as error:
        raise DataError(
            f"{_name(path)} is not {config.encoding} text: it has the lone surrogate {text[error.start]!r}",
            hint="pass its encoding, for example --encoding latin-1",
        ) from error
    return text


def _content(path: str) -> bytes:
    codec = _CODECS.get(Path(path).suffix)
    try:
        with Path(path).open("rb") as file:
            if codec is None:
                return file.read()
            return _uncompressed(path, file, codec)
    except FileNotFoundError as error:
        raise DataError(
            f"{path} does not exist", hint="check the spelling and the current folder"
        ) from error
    except IsADirectoryError as error:
        raise DataError(
            f"{path} is a folder", hint="name two files, or two documents as FILE:ID"
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _uncompressed(path: str, file: IO[bytes], codec: str) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(file, codec) as stream:
        try:
            content: bytes = stream.read()
        except OSError as error:
            raise DataError(f"{path} is truncated or damaged: {error}") from error
    return content


def _visible(text: str, config: Config) -> str:
    """The text that was compared; for HTML, its visible text."""
    if not config.html:
        return text
    import pyarrow as pa

    from neardup.io.columns.html import html_to_text

    visible: str = html_to_text(pa.array([text]), config)[0].as_py()
    return visible
