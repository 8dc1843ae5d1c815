"""The Unicode table of the text kernels: word classes, simple case folding and what the NFC quick check needs.

The table ships with the package, built by `tools/build_unicode_table.py`, and knows the characters
of Unicode 14, the version of the oldest supported interpreter. NFC of these never changes in later
versions, so no signature depends on the interpreter. Every other code point is treated as U+FFFD
and separates words. Six characters that nobody sees, such as the soft hyphen, are dropped, as if the
text did not have them; formats of signatures before `fast-3` take them as separators.

    entry    = entries[index[c >> BLOCK_SHIFT] * BLOCK_SIZE + (c & (BLOCK_SIZE - 1))]
    folded   = (c + entry) & FOLD_MASK, or REPLACEMENT where the entry is UNKNOWN
    kind     = (entry >> KIND_SHIFT) & KIND_MASK
    combining class: the same two steps through combining_index and combining

A text is certainly NFC if no character is NFC_NO, the combining classes between two starters (class
0) do not decrease, and no NFC_MAYBE character follows a starter that COMPOSES. Only NFC_ATTENTION
characters need a check.
"""

from __future__ import annotations

import importlib.resources
import re
import unicodedata
from functools import cache
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_FORMS: Final[dict[str, Literal["NFC", "NFKC"]]] = {"nfc": "NFC", "nfkc": "NFKC"}
UNICODE_VERSION: Final = "14.0"

BLOCK_SHIFT: Final = 8
BLOCK_SIZE: Final = 256
REPLACEMENT: Final = 0xFFFD

FOLD_MASK: Final = 0x1FFFFF
KIND_SHIFT: Final = 21
KIND_MASK: Final = 3

SEPARATOR: Final = 0
WORD: Final = 1
# A token of its own: the scripts written without spaces.
SINGLE: Final = 2

DIGIT: Final = 1 << 23
# Combining class other than 0, or NFC_NO, or NFC_MAYBE.
NFC_ATTENTION: Final = 1 << 24
NFC_NO: Final = 1 << 25
# A following NFC_MAYBE character can change this one: it starts a composition, or is one itself.
# The second half
# matters: U+00E9 starts none, but U+00E9 U+0323 becomes U+1EB9 U+0301.
COMPOSES: Final = 1 << 26
SPACE: Final = 1 << 27
# Without this bit every Hindi U+0928 U+094D would fail the quick check: U+094D has a class, but
# never composes.
NFC_MAYBE: Final = 1 << 28
# Unassigned in Unicode 14, a surrogate or a noncharacter: treated as REPLACEMENT.
UNKNOWN: Final = 1 << 29
# Dropped before anything else looks at the text.
INVISIBLE: Final = 1 << 30
# Soft hyphen, zero-width space, non-joiner and joiner, word joiner, and the byte order mark.
INVISIBLE_CHARACTERS: Final = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


class UnicodeTable(NamedTuple):
    """The table in two stages; equal blocks are stored once.

    index            uint16[4352]              block of `entries` for code point >> 8
    entries          uint32[num_blocks * 256]  see the module's constants
    combining_index  uint16[4352]              block of `combining` for code point >> 8
    combining        uint8 [num_blocks * 256]  canonical combining class
    """

    # It hides tuple.index(), which is not used.
    index: npt.NDArray[np.uint16]
    entries: npt.NDArray[np.uint32]
    combining_index: npt.NDArray[np.uint16]
    combining: npt.NDArray[np.uint8]


@cache
def load_table(*, separates_invisible: bool = False) -> UnicodeTable:
    """Return the table, which is loaded once per process; its arrays are read-only.

    With `separates_invisible`, invisible characters separate words, as before `fast-3`.
    """
    table = _stored_table()
    if not separates_invisible:
        return table
    entries = table.entries & ~np.uint32(INVISIBLE)
    entries.flags.writeable = False
    return table._replace(entries=entries)


@cache
def _stored_table() -> UnicodeTable:
    resource = importlib.resources.files("neardup.kernels").joinpath("unicode14.npz")
    with resource.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        table = UnicodeTable(
            np.ascontiguousarray(stored["index"], dtype=np.uint16),
            np.ascontiguousarray(stored["entries"], dtype=np.uint32),
            np.ascontiguousarray(stored["combining_index"], dtype=np.uint16),
            np.ascontiguousarray(stored["combining"], dtype=np.uint8),
        )
    for array in table:
        array.flags.writeable = False
    return table


def drop_invisible(text: str) -> str:
    r"""Return a text without its invisible characters.

    >>> drop_invisible("Donau\u00addampf\u200bschiff")
    'Donaudampfschiff'
    """
    if text.isascii():
        return text
    # Six searches take a twentieth of the time of `str.translate`.
    for character in INVISIBLE_CHARACTERS:
        text = text.replace(character, "")
    return text


def normalise(
    text: str, form: Literal["nfc", "nfkc"] = "nfc", *, separates_invisible: bool = False
) -> str:
    r"""Return a normal form of `text` with U+FFFD for every code point that Unicode 14 does not know.

    Invisible characters are dropped first, because no normal form composes across them, unless
    `separates_invisible`.

    >>> normalise("e\u0301") == "\u00e9"
    True
    >>> normalise("a\ud800\uffffb") == "a\ufffd\ufffdb"
    True
    >>> normalise("e\u00ad\u0301") == "\u00e9"
    True
    """
    if text.isascii():
        return text
    if not separates_invisible:
        text = drop_invisible(text)
    table = load_table()
    code_points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    blocks = table.index[code_points >> BLOCK_SHIFT].astype(np.uint32)
    entries = table.entries[blocks * BLOCK_SIZE + (code_points & (BLOCK_SIZE - 1))]
    is_unknown = (entries & UNKNOWN) != 0
    if is_unknown.any():
        text = (
            np.where(is_unknown, REPLACEMENT, code_points)
            .astype("<u4")
            .tobytes()
            .decode("utf-32-le")
        )
    return unicodedata.normalize(_FORMS[form], text)


def fold_accents(text: str) -> str:
    r"""Return a text without its accents: the marks of U+0300 to U+036F, on letters of any script.

    Marks of other blocks are not accents: removing them would change a Japanese or Hindi word into
    another.

    >>> fold_accents("Crème brûlée, Straße")
    'Creme brulee, Straße'
    """
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
