"""WARC and WET files: a document is a response or conversion record with text or HTML, named by its URL.

Every record is a row; requests, images and other records are rows but not documents. HTML records
are compared by their content, according to `html_content`, even if `html` is not set.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO, Final

import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError, MissingExtraError
from neardup.io.columns import gather
from neardup.io.columns.html import readable_texts
from neardup.io.columns.oversize import reason_against_size
from neardup.io.columns.text_edits import uncuttable
from neardup.io.formats.base import no_columns, one_span
from neardup.io.records import BATCH_BYTES, BATCH_ROWS, Columns, InputFile, Records, Verdicts
from neardup.io.streams import check_unchanged, open_input, open_output

split = one_span
column_names = no_columns
table = no_columns
_DOCUMENTS: Final = ("response", "conversion")
_INFO: Final = "warcinfo"
_HTML: Final = ("text/html", "application/xhtml+xml")
_COPIED_AT_ONCE: Final = 1 << 20


def read(
    file: InputFile,
    span: tuple[int, int],  # noqa: ARG001
    columns: Columns,  # noqa: ARG001
    config: Config,
) -> Iterator[Records]:
    """Read the records, batch by batch."""
    batch = _Batch(config)
    with open_input(file) as stream:
        for record in _records(file, stream):
            batch.add(record)
            if batch.is_full:
                yield batch.records()
                batch = _Batch(config)
    yield batch.records()
    check_unchanged(file)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:  # noqa: ARG001
    """Write the kept records byte for byte, still compressed if they were, and the warcinfo records."""
    if verdicts.edits is not None and not verdicts.edits.is_empty:
        raise uncuttable(file, "a WARC file")
    with open_input(file) as stream:
        found = [(record.stream_pos, _kind(record) == _INFO) for record in _records(file, stream)]
    starts = [start for start, _ in found]
    if any(stop <= start for start, stop in pairwise(starts)):
        raise DataError(
            f"{file.path} is compressed as a whole, so its records cannot be extracted",
            hint="compress each record separately, as with fastwarc recompress, or pass dry_run=True",
        )
    bounds = [*starts, file.size]
    with open_input(file) as stream, open_output(target, None) as output:
        for row, (start, is_info) in enumerate(found):
            if is_info or verdicts.is_kept[row]:
                stream.seek(start)
                _copy(stream, output, bounds[row + 1] - start)
    check_unchanged(file)


def _copy(stream: BinaryIO, output: Any, num_bytes: int) -> None:
    while num_bytes and (piece := stream.read(min(num_bytes, _COPIED_AT_ONCE))):
        output.write(piece)
        num_bytes -= len(piece)


def _kind(record: Any) -> str:
    return str(record.record_type).rpartition(".")[2]


def _records(file: InputFile, stream: BinaryIO) -> Iterator[Any]:
    try:
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError as error:
        raise MissingExtraError(
            f"{file.path} needs the package fastwarc", hint="pip install 'neardup[html]'"
        ) from error
    if not file.size:
        return
    try:
        yield from ArchiveIterator(stream, record_types=WarcRecordType.any_type, parse_http=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"{file.path} is not a readable WARC file: {error}",
            hint="fetch or write it again, or leave it out",
        ) from error


class _Batch:
    """Collects rows up to the size of a batch."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._num_rows = self._size = 0
        self._rows: list[int] = []
        self._ids: list[str | None] = []
        self._texts: list[str] = []
        self._pages: list[int] = []
        self._rejected: list[tuple[int, str]] = []

    @property
    def is_full(self) -> bool:
        return self._size >= BATCH_BYTES or self._num_rows == BATCH_ROWS

    def add(self, record: Any) -> None:
        """Add one record."""
        row = self._num_rows
        self._num_rows = self._num_rows + 1
        if _kind(record) not in _DOCUMENTS:
            return
        try:
            taken = _text_of(record, self._config)
        except gather.RowError as error:
            self._rejected.append((row, str(error)))
            return
        if taken is not None:
            text, is_html = taken
            if is_html:
                self._pages.append(len(self._texts))
            self._rows.append(row)
            self._texts.append(text)
            self._ids.append(record.headers.get("WARC-Target-URI"))
            self._size += len(text)

    def records(self) -> Records:
        """Return the collected rows."""
        pages = pa.array([self._texts[number] for number in self._pages], pa.large_string())
        readable, reasons = readable_texts(pages, self._config) if len(pages) else (pages, {})
        for number, text in zip(self._pages, readable.to_pylist(), strict=True):
            self._texts[number] = text
        bad = {self._pages[number]: reason for number, reason in reasons.items()}
        kept = [number for number in range(len(self._texts)) if number not in bad]
        values = gather.Values(
            rows=[self._rows[number] for number in kept],
            texts=pa.array([self._texts[number] for number in kept], pa.large_string()),
            ids=[self._ids[number] for number in kept],
        )
        rejected = sorted(
            [*self._rejected, *((self._rows[number], reason) for number, reason in bad.items())]
        )
        plain = Config.of(self._config, html=False)  # HTML was already converted to text
        return gather.records_of(self._num_rows, values, rejected, found=frozenset(), config=plain)


def _text_of(record: Any, config: Config) -> tuple[str, bool] | None:
    """Return the text of a record and whether it is HTML; None for other content; raise RowError if it is unusable."""
    declared = record.headers.get("Content-Length") or ""
    if not declared.isdigit():
        raise gather.RowError("the record has no Content-Length")
    if int(declared) > config.max_document:
        raise gather.RowError(reason_against_size(int(declared), config))
    if _kind(record) == "response":
        record.parse_http()
        if not record.is_http or record.http_headers is None or not record.http_headers.status_code:
            raise gather.RowError("the response has no HTTP header")
        kind = (record.http_content_type or "").lower()
        charset = record.http_charset
    else:
        kind = (
            (record.headers.get("Content-Type") or "text/plain").partition(";")[0].strip().lower()
        )
        charset = None
    if not (kind.startswith("text/") or kind in _HTML):
        return None
    content = record.reader.read()
    if len(content) < record.content_length:
        raise gather.RowError("the record is truncated")
    return _decoded(content, charset), kind in _HTML


def _decoded(content: bytes, charset: str | None) -> str:
    """Decode as UTF-8, or as the record or page declares; invalid bytes in a page become U+FFFD, as in a browser."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        from resiliparse.parse.encoding import detect_encoding

    try:
        return content.decode(charset or detect_encoding(content), "replace")
    except LookupError:
        return content.decode("latin-1")
