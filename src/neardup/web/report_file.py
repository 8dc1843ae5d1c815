"""The report of a run in one HTML file."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Final

from neardup.config.checks import as_bytes
from neardup.errors import ConfigError, DataError
from neardup.report import Report
from neardup.web.page import render_page
from neardup.web.page_data import page_data
from neardup.web.pairs_view import view_of

DEFAULT_LIMIT: Final = 3_000_000
_MIN_LIMIT: Final = 300_000
_PAGE_BEGINS: Final = (b"<!doctype html", b"<html")


def check_limit(limit: int | str) -> int:
    """Return a limit in bytes; raise if no page fits into it."""
    size = as_bytes("limit", limit)
    if size < _MIN_LIMIT:
        raise ConfigError(
            f"`limit` must be at least {_MIN_LIMIT // 1000} kB, got {limit!r}", hint="use '3MB'"
        )
    return size


def make_html(
    report: Report, *, limit: int | str = DEFAULT_LIMIT, text: bool = True, by: str | None = None
) -> str:
    """Return a report as one self-contained HTML page of at most `limit` bytes."""
    size = check_limit(limit)
    room = size - len(render_page("").encode())
    return render_page(page_data(view_of(report), room, has_texts=text, by=by))


def write_html(
    report: Report,
    path: Path,
    *,
    limit: int | str = DEFAULT_LIMIT,
    text: bool = True,
    by: str | None = None,
    overwrite: bool = False,
) -> int:
    """Write a report as one HTML page, atomically; return its size in bytes."""
    check_target(path, overwrite=overwrite)
    return write_page(path, report.to_html(limit=limit, text=text, by=by))


def check_target(path: Path, *, overwrite: bool) -> None:
    """Raise unless a page can be written to this path."""
    if path.is_dir():
        raise DataError(
            f"the output {path} is a folder, but a report is a file",
            hint=f"name it: {path}/report.html",
        )
    if path.exists() and not overwrite:
        raise DataError(
            f"the output {path} already exists", hint="choose another path, or pass overwrite=True"
        )
    if path.exists() and not _is_page(path):
        raise DataError(
            f"the output {path} is not an HTML page, so it is not replaced",
            hint="choose another path: it may be an input, or a part of the run",
        )
    if not path.parent.is_dir():
        raise DataError(
            f"the folder {path.parent} does not exist", hint="create it, or choose another `out`"
        )


def write_page(path: Path, page: str) -> int:
    """Write a page, atomically; return its size in bytes."""
    content = page.encode()
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as target:
            target.write(content)
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
        raise
    return len(content)


def _is_page(path: Path) -> bool:
    """Whether a file is empty, or an HTML page by its first bytes."""
    with path.open("rb") as file:
        begin = file.read(100).lstrip().lower()
    return not begin or begin.startswith(_PAGE_BEGINS)
