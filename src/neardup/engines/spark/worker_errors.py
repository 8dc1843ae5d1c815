"""The errors of workers. Spark gives the driver only their text: ours carry a line of JSON in it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Final

from pyspark.errors import PySparkException

from neardup import errors

_MARK: Final = "neardup.errors as JSON: "


class WorkerError(Exception):
    """An error of neardup on its way to the driver: its kind, message and hint as JSON."""

    def __init__(self, error: errors.NearDupError) -> None:
        fields = {"kind": type(error).__name__, "message": error.message, "hint": error.hint}
        super().__init__(_MARK + json.dumps(fields))


@contextlib.contextmanager
def sent_to_driver() -> Iterator[None]:
    """On a worker: turn an error of neardup into one that the driver can read."""
    try:
        yield
    except errors.NearDupError as error:
        raise WorkerError(error) from error


@contextlib.contextmanager
def raised_on_driver() -> Iterator[None]:
    """On the driver: raise the error of a worker again; any other error of Spark stays as it is."""
    try:
        yield
    except PySparkException as error:
        _, mark, rest = str(error).partition(_MARK)
        if not mark:
            raise
        fields, _ = json.JSONDecoder().raw_decode(rest)
        raise _error_of(**fields) from error


def _error_of(kind: str, message: str, hint: str | None) -> errors.NearDupError:
    named = getattr(errors, kind, errors.NearDupError)  # another package may have its own
    found: errors.NearDupError = named(message, hint=hint)
    return found
