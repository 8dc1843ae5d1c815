"""The encoding of a file, for encoding="auto": by its byte order mark, else UTF-8 if it is valid, else detected."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

from neardup.config import Config
from neardup.config.checks import AUTO, as_encoding
from neardup.errors import ConfigError, MissingExtraError
from neardup.io.records import InputFile
from neardup.io.streams import open_input

# UTF-32 first, whose mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_READ_AT_ONCE: Final = 1 << 20
# What is detected from: bytes before and from the first one that is not UTF-8.
_BYTES_BEFORE: Final = 1 << 12
_BYTES_AFTER: Final = 60 << 10
_LATIN: Final = ("iso8859-1", "iso8859-15")
# Only these have NUL bytes in texts.
_WITH_NUL: Final = ("utf-16", "utf-32")


class FileEncodings:
    """The encodings of files; one that is known from an earlier start of the run is not detected again.

    known: path, size, time and encoding of files, as in a manifest.
    """

    def __init__(self, config: Config, known: Iterable[Mapping[str, Any]] = ()) -> None:
        self._config = config
        self._known = {
            (file["path"], file["size"], file["modified"]): file.get("encoding") for file in known
        }

    def of(self, file: InputFile) -> str | None:
        """Return the encoding of a file, None for UTF-8."""
        if self._config.encoding != AUTO:
            return self._config.encoding
        version = (file.path, file.size, file.modified)
        if version in self._known:
            return self._known[version]
        with open_input(file) as stream:
            return detect_encoding(stream)


def detect_encoding(stream: IO[bytes]) -> str | None:
    """Return the encoding of text, None for UTF-8; its result depends on the bytes and the version of chardet alone.

    >>> import io
    >>> detect_encoding(io.BytesIO("Le café où l'été dernier nous étions allés".encode("cp1252")))
    'cp1252'
    >>> detect_encoding(io.BytesIO("Le café".encode("utf-16"))), detect_encoding(io.BytesIO("Le café".encode()))
    ('utf-16', None)
    """
    block = stream.read(_READ_AT_ONCE)
    for mark, encoding in _MARKS:
        if block.startswith(mark):
            return encoding
    if b"\0" in block[:_BYTES_BEFORE]:
        sample = block[: _BYTES_BEFORE + _BYTES_AFTER]
        found = _detected(sample)
        if found is not None and found.startswith(_WITH_NUL):
            return found
    decoder = codecs.getincrementaldecoder("utf-8")()
    while True:
        try:
            decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            first = max(0, error.start - _BYTES_BEFORE)
            return _detected(bytes(error.object[first : error.start + _BYTES_AFTER]))
        if not block:
            return None
        block = stream.read(_READ_AT_ONCE)


def decode(content: bytes, config: Config) -> str:
    """Decode a text as the settings say; raise UnicodeDecodeError where that is not possible."""
    if config.encoding != AUTO:
        return content.decode(config.encoding or "utf-8-sig")
    import io

    return content.decode(detect_encoding(io.BytesIO(content)) or "utf-8-sig")


def as_recorded(config: Config, entry: Mapping[str, Any]) -> Config:
    """Return the settings of a finished run with the encoding of one of its files, given its entry in report.json."""
    if config.encoding != AUTO:
        return config
    return Config.of(config, encoding=entry.get("encoding"))


def count_detected(files: Iterable[InputFile]) -> str | None:
    """Say which encodings were detected, None if all files are in UTF-8."""
    counts: dict[str, int] = {}
    for file in files:
        if file.encoding is not None:
            counts[file.encoding] = counts.get(file.encoding, 0) + 1
    if not counts:
        return None
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"{count:,} {encoding}" for encoding, count in ordered)
    total = sum(counts.values())
    files_are = "1 file is" if total == 1 else f"{total:,} files are"
    return (
        f"{files_are} not in UTF-8; detected: {named} (report.json has the encoding of every file)"
    )


def _is_text(sample: bytes, encoding: str) -> bool:
    """Whether bytes hold no control characters but white space, as those of a small picture do."""
    text = sample[: len(sample) // 4 * 4].decode(encoding, "replace")
    return all(character.isspace() or ord(character) >= ord(" ") for character in text)


def _detected(sample: bytes) -> str | None:
    """Return what chardet detects; None for nothing, and for what is no encoding of text."""
    try:
        import chardet
    except ImportError as error:
        raise MissingExtraError(
            "`encoding` 'auto' needs the package chardet for a file that is not in UTF-8",
            hint="pip install 'neardup[encodings]', or name the encoding",
        ) from error
    name = chardet.detect(sample, no_match_encoding="utf-8")["encoding"]
    if name is None:
        return None
    try:
        encoding = as_encoding(name)
    except ConfigError:
        return None
    if encoding is not None and encoding.startswith(_WITH_NUL) and not _is_text(sample, encoding):
        return None
    # What comes after the sample may have quotes and dashes, which only cp1252 has.
    if encoding in _LATIN and sample.decode(encoding) == sample.decode("cp1252", "replace"):
        return "cp1252"
    return encoding
