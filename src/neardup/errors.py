"""The error tree.

NearDupError
├── ConfigError (ValueError)      a setting is out of range, or two settings disagree
├── DataError (ValueError)        the input cannot be used as it is; names the place
│   └── StaleError                what was done so far is worth nothing to a later start
├── MissingExtraError (ImportError)  an optional package is needed and not installed
└── NotStoredError (LookupError)  the question needs a table that this run did not keep
"""

from __future__ import annotations


class NearDupError(Exception):
    """Base of every error neardup raises on purpose: `message` says what happened, `hint` what to do next."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\n\nhint: {hint}")
        self.message, self.hint = message, hint


class ConfigError(NearDupError, ValueError):
    """A setting is out of range, of the wrong type, unknown, or at odds with another."""


class DataError(NearDupError, ValueError):
    """The input cannot be used as it is."""


class StaleError(DataError):
    """The input or the settings must change, so that what was done so far is worth nothing to a later start."""


class MissingExtraError(NearDupError, ImportError):
    """An optional package is needed and not installed."""


class NotStoredError(NearDupError, LookupError):
    """The question needs a table that this run did not keep."""
