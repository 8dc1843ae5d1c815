"""Decisions of a reviewer about single documents, as the page exports them.

A decision identifies a document by file, row and digest of its text, so that it never applies to
another text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.documents.column_choice import read_records
from neardup.io.documents.fixed_priorities import FixedPriorities
from neardup.io.records import InputFile

_FORMAT: Final = 1
# The keep order of decided documents: after all others, so that none of them causes another to be
# removed.
KEPT_LAST: Final = 2**62
REMOVED_LAST: Final = 2**62 + 1


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision; row from 1."""

    decision: Literal["keep", "remove"]
    file: str
    row: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    digest: str
    id: str | None = None


class _File(msgspec.Struct, frozen=True, kw_only=True):
    neardup_decisions: int
    decisions: list[Decision]


class Decided(NamedTuple):
    """What decisions say about the documents of a run: the priorities of those they match, and which match none."""

    fixed: FixedPriorities
    unmatched: tuple[Decision, ...]


def digest_of(text: bytes) -> str:
    """Return the digest by which a decision identifies a text.

    >>> digest_of(b"to be")
    '0af1207eeabd158672cf22436825b6b7'
    """
    return hashlib.sha256(text).hexdigest()[:32]


def read_decisions(path: str) -> list[Decision]:
    """Read a file of decisions; the last one about a document counts."""
    try:
        stored = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        raise ConfigError(
            f"`decisions` {path} cannot be read: {error.strerror or error}",
            hint="name the file that was exported from the page of a run",
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"`decisions` {path} is not a file of decisions: {error}",
            hint="export it as JSON from the page of a run",
        ) from error
    if stored.neardup_decisions != _FORMAT:
        raise ConfigError(
            f"`decisions` {path} has format {stored.neardup_decisions}, this version reads {_FORMAT}",
            hint="export it again",
        )
    return list({(one.file, one.row): one for one in stored.decisions}.values())


def content_digest(path: str | None) -> str | None:
    """Return a digest of a file of decisions: a run with other decisions is a different run."""
    if path is None:
        return None
    ordered = sorted(msgspec.json.encode(one) for one in read_decisions(path))
    return hashlib.sha256(b"\n".join(ordered)).hexdigest()[:32]


def match_decisions(files: Sequence[InputFile], first_file: int, config: Config) -> Decided:
    """Find the documents of decisions among files from `first_file` on; reads the files that decisions name."""
    decisions = read_decisions(config.decisions) if config.decisions else []
    found: list[tuple[int, Decision]] = []
    for at in range(first_file, len(files)):
        own = {one.row: one for one in decisions if one.file == files[at].name}
        found += [(at, one) for one in _matching(files[at], own, config)]
    matched = {(one.file, one.row) for _, one in found}
    priorities = [KEPT_LAST if one.decision == "keep" else REMOVED_LAST for _, one in found]
    fixed = FixedPriorities(
        files=np.array([at for at, _ in found], np.int64),
        rows=np.array([one.row for _, one in found], np.int64),
        priorities=np.array(priorities, np.int64),
    )
    return Decided(fixed, tuple(one for one in decisions if (one.file, one.row) not in matched))


def _matching(file: InputFile, wanted: dict[int, Decision], config: Config) -> Iterator[Decision]:
    """The decisions about a file whose row still has the same text."""
    if not wanted:
        return
    rows = np.array(sorted(wanted), np.int64)
    first = 1
    for records in read_records(file, config):
        at = np.flatnonzero(np.isin(records.rows + first, rows))
        for number, text in zip(
            (records.rows[at] + first).tolist(), records.texts.take(pa.array(at)), strict=True
        ):
            content = text.as_py()
            if (
                digest_of(content.encode() if isinstance(content, str) else content)
                == wanted[number].digest
            ):
                yield wanted[number]
        first += records.num_rows
        if first > rows[-1]:
            return
