"""Every codec that Python knows reads a file, with bad bytes rejected, or is refused as an encoding."""

from __future__ import annotations

import codecs
import contextlib
import encodings
import encodings.aliases
import pkgutil

import pytest

from neardup.config import Config
from neardup.errors import ConfigError, NearDupError
from neardup.io.documents.column_choice import read_records
from neardup.io.documents.discover import find_file

CONTENTS = {
    "ASCII": b'{"text": "to be"}\n{"text": "or not"}\n',
    "every byte": bytes(range(256)) * 4,
    "escaped surrogates": b'{"text": "\\ud800 +2AA- \xed\xa0\x80"}\n',
    "one odd byte": b'{"text": "to \xff be"}\n',
    "nothing": b"",
}
NOT_FOR_FILES = (
    "idna",
    "punycode",
    "undefined",
    "hex",
    "rot13",
    "zlib",
    "bz2",
    "base64",
    "uu",
    "quopri",
)


def codec_names():
    """One name for each codec."""
    modules = [module.name for module in pkgutil.iter_modules(encodings.__path__)]
    names = {}
    for name in sorted({*encodings.aliases.aliases, *encodings.aliases.aliases.values(), *modules}):
        try:
            names.setdefault(codecs.lookup(name).name, name)
        except LookupError:  # a module of the package that is no codec, or one of Windows
            continue
    return list(names.values())


def is_accepted(name):
    try:
        Config(encoding=name)
    except ConfigError:
        return False
    return True


@pytest.mark.filterwarnings(
    "ignore:invalid escape sequence:DeprecationWarning"
)  # by unicode_escape
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("ending", ["jsonl", "csv", "txt"])
def test_every_accepted_encoding_reads_any_bytes_or_says_why_not(tmp_path, ending, content):
    path = tmp_path / f"pages.{ending}"
    path.write_bytes(content)
    accepted = [name for name in codec_names() if is_accepted(name)]
    assert len(accepted) > 90
    for name in accepted:
        config = Config(encoding=name)
        # In another encoding, the header of a CSV file may have no column of texts.
        with contextlib.suppress(NearDupError):
            for records in read_records(find_file(str(path), config), config):
                records.texts.validate(full=True)


@pytest.mark.parametrize("name", NOT_FOR_FILES)
def test_a_codec_that_cannot_mark_bad_bytes_is_refused(name):
    with pytest.raises(
        ConfigError, match=rf"`encoding` must be the name of a text encoding of files, got '{name}'"
    ):
        Config(encoding=name)


@pytest.mark.parametrize("name", ["\udcff", "utf\0", "x" * 5000, ""])
def test_a_name_that_no_codec_has_is_refused(name):
    with pytest.raises(ConfigError, match="`encoding` must be the name"):
        Config(encoding=name)
