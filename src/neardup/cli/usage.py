"""Command-line errors: settings are named by their options, and misspelt names get a suggestion."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable
from typing import Final

import click

from neardup.cli.options import SETTINGS, option_of

# Options that are not settings, and are checked by the library.
_NAMES: Final = frozenset(
    {
        *SETTINGS,
        "out",
        "file",
        "row",
        "queries",
        "labels",
        "port",
        "k",
        "plot",
        "sample",
        "number",
        "compare_bands",
        "compare_rows",
        "containment",
        "since",
        "allow_origin",
        "collection",
        "expires",
        "limit",
        "by",
        "host",
        "sarif",
    }
)
# Options that are not called as their setting is.
_OTHER_NAMES: Final = {"out": "-o"}
_NAMED: Final = re.compile(r"`(\w+)`")
_ASSIGNED: Final = re.compile(r"(?<![\w.'])([a-z_]+)=('[^']*'|\['[^']*'\]|[\w.]+)")
# Below this, names share letters by chance: --frobnicate does not mean --strict.
_CLOSE: Final = 0.65
_QUOTED: Final = re.compile(r"'(-[^']*)'")
# What click says of a value, and plain words for it.
_VALUE: Final = re.compile(r"'([^']*)' is not (?:one of|a valid)")
_KINDS: Final = (("a valid float", "a number"), ("a valid integer", "a whole number"))
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?) ?%")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the most likely name for a misspelt one.

    >>> nearest("dedpu", ["demo", "dedup", "pairs"]), nearest("--treshold", ["--method", "--threads", "--threshold"])
    ('dedup', '--threshold')
    """
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=_CLOSE)), None)


def as_options(text: str) -> str:
    """Replace the names of settings by those of their options.

    >>> as_options("`num_perm` must be less; pass signature_filter=False, or num_perm=256")
    '--num-perm must be less; pass --no-signature-filter, or --num-perm 256'
    >>> as_options("pass spark_conf=['spark.executor.memory=4g']")
    'pass --spark-conf spark.executor.memory=4g'
    >>> as_options("choose another `out`, or pass overwrite=True")
    'choose another -o, or pass --overwrite'
    >>> as_options("pass delimiter=';'")
    "pass --delimiter ';'"
    """
    text = _NAMED.sub(lambda found: _option(found[1]) if found[1] in _NAMES else found[0], text)
    return _ASSIGNED.sub(
        lambda found: _assigned(found[1], found[2]) if found[1] in _NAMES else found[0], text
    )


def _option(name: str) -> str:
    return _OTHER_NAMES.get(name) or option_of(name)


def _assigned(name: str, value: str) -> str:
    option = _option(name)
    if value in ("True", "False"):
        return option if value == "True" else f"--no-{option[2:]}"
    bare = value.strip("[]'")
    return f"{option} {shlex.quote(bare)}"


def usage_words(error: click.ClickException) -> tuple[str, str | None]:
    """Return what click reports about a command line, and a hint."""
    if isinstance(error, click.UsageError) and error.ctx:
        command = error.ctx.command_path
    else:
        command = "neardup"
    hint = f"{command} --help lists the {'commands' if command == 'neardup' else 'options'}"
    message = _QUOTED.sub(r"\1", error.format_message()).rstrip(".")
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option {error.option_name}"
        options: list[str] = []
        for parameter in error.ctx.command.params if error.ctx else ():
            options += parameter.opts
        meant = nearest(error.option_name, options)
        hint = f"did you mean {meant}?" if meant else hint
    elif meant := getattr(error, "possible", None):
        hint = f"did you mean {command} {meant}?"
    elif isinstance(error, click.BadParameter):
        hint = _value_hint(error, message) or hint
    for jargon, plain in _KINDS:
        message = message.replace(jargon, plain)
    return f"{message[:1].lower()}{message[1:]}", hint


def _value_hint(error: click.BadParameter, message: str) -> str | None:
    """Return the likely choice for a misspelt one, or the number that a percentage stands for."""
    found = _VALUE.search(message)
    if found is None or error.param is None:
        return None
    if isinstance(error.param.type, click.Choice):
        meant = nearest(found[1], error.param.type.choices)
        return None if meant is None else f"did you mean {meant}?"
    percent = _PERCENT.fullmatch(found[1])
    if percent is None:
        return None
    return f"use {float(percent[1]) / 100:g} for {percent[1]} %"
