"""Texts, ids and file names made safe for a terminal: control characters are escaped, never sent."""

from __future__ import annotations

import re
from typing import Final

# Control characters; marks, embeddings, overrides and isolates that reorder text; separators of
# lines and paragraphs; formats that are invisible, or hide text; lone surrogates. Joiners stay:
# letters and emoji need them.
_CONTROLS: Final = (
    "\x00-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
    "\u2028\u2029"
    "\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff"
)
_CONTROL: Final = re.compile(f"[{_CONTROLS}]")
_CONTROL_BUT_NEWLINE: Final = re.compile(
    f"[{_CONTROLS}]".replace("\x00-\x1f", "\x00-\x09\x0b-\x1f")
)
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    r"""Escape the control characters of a text as Python does, so that it is one line without effects.

    >>> print(visible("page\x1b[2J\n1 \u202egpj"), visible("Müller 灯台"))
    page\x1b[2J\n1 \u202egpj Müller 灯台
    """
    return _CONTROL.sub(lambda found: _escaped(found[0]), text)


def visible_lines(text: str) -> str:
    """Escape the control characters of a text, except its line ends."""
    return _CONTROL_BUT_NEWLINE.sub(lambda found: _escaped(found[0]), text)


def visible_json(text: str) -> str:
    r"""Escape the control characters of JSON as JSON does; between values there are only line ends.

    >>> print(visible_json('{"id": "\x9b2J"}'))
    {"id": "\u009b2J"}
    """
    return _CONTROL_BUT_NEWLINE.sub(lambda found: _json_escaped(found[0]), text)


def _escaped(control: str) -> str:
    code = ord(control)
    if control in _SHORT:
        return _SHORT[control]
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def _json_escaped(control: str) -> str:
    units = control.encode("utf-16-be", "surrogatepass").hex("-", 2).split("-")
    return "".join(f"\\u{unit}" for unit in units)
