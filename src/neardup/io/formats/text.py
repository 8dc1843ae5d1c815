"""Plain text and HTML: one document per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from neardup.config import Config
from neardup.io.columns import gather
from neardup.io.columns.oversize import Oversize, max_row_bytes, read_document, reason_against_size
from neardup.io.formats.base import no_columns, one_span
from neardup.io.formats.lines import BOM
from neardup.io.records import BATCH_BYTES, BATCH_ROWS, Columns, InputFile, Records, Verdicts
from neardup.io.streams import check_unchanged, copy_file, open_input, open_output_like, read_small

split = one_span
column_names = no_columns
table = no_columns


def read(
    file: InputFile,
    span: tuple[int, int],  # noqa: ARG001
    columns: Columns,  # noqa: ARG001
    config: Config,
) -> Iterator[Records]:
    """Read the file as one row."""
    yield from read_all([file], config)


def read_all(files: Iterable[InputFile], config: Config) -> Iterator[Records]:
    """Read many files, one row each; small ones are combined into one batch."""
    rows: list[int] = []
    texts: list[bytes] = []
    paths: list[str] = []
    rejected: list[tuple[int, str]] = []
    num_rows = size = 0
    for file in files:
        content = _content(file, config)
        if num_rows and (size + len(content) > BATCH_BYTES or num_rows == BATCH_ROWS):
            yield _records(num_rows, rows, texts, paths, rejected, config)
            rows = []
            texts = []
            paths = []
            rejected = []
            num_rows = 0
            size = 0
        if isinstance(content, str):
            rejected.append((num_rows, content))
        else:
            rows.append(num_rows)
            texts.append(content)
            paths.append(file.path)
            size += len(content)
        num_rows += 1
    yield _records(num_rows, rows, texts, paths, rejected, config)


def _content(file: InputFile, config: Config) -> bytes | str:
    """Return the text of a file as bytes, or the reason to reject it."""
    if file.is_one_stream or file.size > max_row_bytes(config):
        small = None
    else:
        small = read_small(file)
    if small is not None:
        content: bytes | Oversize = small[0]
    else:
        with open_input(file) as stream:
            content = read_document(stream, file, config)
        check_unchanged(file)
    if isinstance(content, Oversize):
        return reason_against_size(content.size, config)
    return gather.reason_against_bytes(content, config) or content.removeprefix(BOM)


def _records(
    num_rows: int,
    rows: list[int],
    texts: list[bytes],
    paths: list[str],
    rejected: list[tuple[int, str]],
    config: Config,
) -> Records:
    languages: list[str | None] | None = None
    if config.asks_code:
        from neardup.io.columns.code import language_of  # few runs compare code

        languages = [language_of(path) for path in paths]
    values = gather.Values(
        rows=rows,
        texts=pa.array(texts, pa.large_binary()).cast(pa.large_string()),
        languages=languages,
    )
    return gather.records_of(num_rows, values, rejected, found=frozenset(), config=config)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Copy the file if its document is kept, with the changes of the run; otherwise write nothing."""
    if verdicts.is_kept.all() and not verdicts.leaves_all and verdicts.edits is not None:
        content = _content(file, config)
        if isinstance(content, bytes):
            [text] = verdicts.edits.cut([0], [content.decode()])
            with open_output_like(file, target) as output:
                output.write(text.encode())
    elif verdicts.is_kept.all():
        copy_file(file, target)
        check_unchanged(file)
