"""The error tree.

NearDupError
├── ConfigError (ValueError)      a setting is out of range, or two settings disagree
├── DataError (ValueError)        the input cannot be used as it is; names the location
│   ├── StartOverError            a later run cannot reuse finished parts
│   │   └── StaleError            a file changed while it was read
│   ├── IdExistsError             an index already has a document with this id
│   ├── UnknownIdError            an index has no document with this id
│   ├── DuplicateError            an index has a similar document, and on_duplicate="error"
│   ├── DamageError               a file of an index is damaged
│   └── FullDiskError             the disk of an index is full; nothing was stored
├── MissingExtraError (ImportError)  an optional package is required but not installed
├── NotStoredError (LookupError)  the question needs a table that this run did not store
└── UnsyncedError                 the disk did not confirm a change of an index
"""

from __future__ import annotations

from typing import Any


class NearDupError(Exception):
    """The base class of every error that neardup raises: `message` says what happened, `hint` what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n\nhint: {hint}")
        self.message = message
        self.hint = hint


class ConfigError(NearDupError, ValueError):
    """A setting is out of range, of the wrong type, unknown, or at odds with another."""


class DataError(NearDupError, ValueError):
    """The input cannot be used as it is."""


class StartOverError(DataError):
    """The input or the settings must change, so a later run cannot reuse finished parts."""


class StaleError(StartOverError):
    """A file changed while it was read."""


class IdExistsError(DataError):
    """An index already has a document with this id."""


class UnknownIdError(DataError):
    """An index has no document with this id."""


class DuplicateError(DataError):
    """An index has a similar document, and `on_duplicate` is "error"; `match` is that document."""

    match: Any = None


class DamageError(DataError):
    """A file of an index is damaged."""


class FullDiskError(DataError):
    """The disk of an index is full; the change was not stored."""


class UnsyncedError(NearDupError):
    """The disk did not confirm a change of an index; the index must be opened again."""


class MissingExtraError(NearDupError, ImportError):
    """An optional package is required but not installed."""


class NotStoredError(NearDupError, LookupError):
    """The question needs a table that this run did not store."""
