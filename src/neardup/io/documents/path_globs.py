"""Globs for the paths of files: `include`, `exclude`, and the order of keep="path:..."."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from neardup.config import Config

_CLASS = re.compile(r"\[(!?)(\]?[^\]]*)\]")


class PathGlobs:
    """Globs for paths relative to the folder that was given.

    A glob without a slash matches a name anywhere in the path, another one the path from its start; `*` and `?` match
    no slash, `**` between slashes matches any folders. A glob that matches a folder matches everything in it.

    >>> globs = PathGlobs(["*.md", "pages/old"])
    >>> [globs.matches(path) for path in ("a.md", "x/y/b.md", "pages/old/c.txt", "new/pages/old/c.txt")]
    [True, True, True, False]
    """

    def __init__(self, globs: Iterable[str]) -> None:
        self._pattern = re.compile("|".join(map(_translated, globs)) or "(?!)", re.DOTALL)

    def matches(self, path: str) -> bool:
        """Whether a glob matches a path, or one of its folders."""
        return self._pattern.fullmatch(path) is not None


class PathChoice:
    """Which files are read: those that `include` matches, all without it, except those that `exclude` matches."""

    def __init__(self, config: Config) -> None:
        self._included = PathGlobs(config.include) if config.include else None
        self._excluded = PathGlobs(config.exclude) if config.exclude else None

    def has(self, path: str) -> bool:
        """Whether a file is read."""
        if self._excluded is not None and self._excluded.matches(path):
            return False
        return self._included is None or self._included.matches(path)


def path_ranks(globs: Sequence[str], paths: Iterable[str]) -> npt.NDArray[np.int64]:
    """Return the number of the first glob that matches each path, from 0; one more than the last if none does."""
    each = [PathGlobs([glob]) for glob in globs]

    def rank(path: str) -> int:
        found = (number for number, glob in enumerate(each) if glob.matches(path))
        return next(found, len(each))

    return np.array([rank(path) for path in paths], np.int64)


def _translated(glob: str) -> str:
    """Return a glob as a regular expression for the whole path, which may go on below it."""
    body = glob.removeprefix("./").strip("/")
    is_anchored = "/" in body
    pattern = ""
    at = 0
    while at < len(body):
        found = _CLASS.match(body, at)
        begins_name = at == 0 or body[at - 1] == "/"
        if begins_name and body.startswith("**/", at):
            pattern += "(?:.*/)?"
            at += 3
        elif begins_name and body[at:] == "**":
            pattern += ".*"
            at += 2
        elif body[at] == "*":
            pattern += "[^/]*"
            at += 1
        elif body[at] == "?":
            pattern += "[^/]"
            at += 1
        elif found is not None:
            members = found[2].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
            negation = "^/" if found[1] else ""
            pattern += f"[{negation}{members.replace('^', chr(92) + '^')}]"
            at = found.end()
        else:
            pattern += re.escape(body[at])
            at += 1
    return ("" if is_anchored else "(?:.*/)?") + f"(?:{pattern})(?:/.*)?"
