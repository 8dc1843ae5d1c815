"""Build `src/neardup/kernels/unicode14.npz` from the text files of the Unicode Character Database.

    python tools/build_unicode_table.py FOLDER

FOLDER holds UnicodeData.txt and its companions, version 15.0.0 (on Debian 12 the package
`unicode-data`). Characters
newer than Unicode 14 are left out: the table must know nothing that the oldest supported
interpreter does not. `neardup.kernels.unicode` documents every bit.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neardup.kernels import unicode as layout

# A later database may correct a property of an old character, which would change signatures: a
# decision, not an update.
SOURCE_VERSION = "15.0.0"
TARGET = Path(__file__).parents[1] / "src/neardup/kernels/unicode14.npz"

NUM_CODE_POINTS = 0x110000
NEWEST_AGE = tuple(map(int, layout.UNICODE_VERSION.split(".")))
WORD_CATEGORIES = {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl"}
# Script names as in Scripts.txt, and their short forms as in ScriptExtensions.txt.
SPACELESS_SCRIPTS = {
    "Han": "Hani",
    "Hiragana": "Hira",
    "Katakana": "Kana",
    "Thai": "Thai",
    "Lao": "Laoo",
    "Khmer": "Khmr",
    "Myanmar": "Mymr",
}
HANGUL_LEADING = range(0x1100, 0x1113)
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)

Flags = npt.NDArray[np.bool_]


def rows(path: Path) -> Iterator[tuple[slice, list[str]]]:
    """Yield (code points, other fields) for every row of a property file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = [field.strip() for field in line.partition("#")[0].split(";")]
        if fields[0]:
            first, _, last = fields[0].partition("..")
            yield slice(int(first, 16), int(last or first, 16) + 1), fields[1:]


def having(path: Path, *wanted: str) -> Flags:
    """Mark the code points whose first fields in the file are `wanted`."""
    marked = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
    for code_points, fields in rows(path):
        if fields[: len(wanted)] == list(wanted):
            marked[code_points] = True
    return marked


class Characters:
    """What UnicodeData.txt says: category, combining class and canonical decomposition, without newer characters."""

    def __init__(self, folder: Path) -> None:
        self.category = np.full(NUM_CODE_POINTS, "Cn", dtype="U2")
        self.combining = np.zeros(NUM_CODE_POINTS, dtype=np.uint8)
        self.decomposition: dict[int, list[int]] = {}
        first = 0
        for code_points, fields in rows(folder / "UnicodeData.txt"):
            name, category, combining, _, decomposition = fields[:5]
            # Large ranges are two rows, "<..., First>" and "<..., Last>".
            first = first if name.endswith(", Last>") else code_points.start
            self.category[first : code_points.stop] = category
            self.combining[first : code_points.stop] = int(combining)
            if decomposition and not decomposition.startswith("<"):
                self.decomposition[first] = [int(part, 16) for part in decomposition.split()]
        self._forget_newer(folder)
        self.is_known = ~np.isin(self.category, ["Cn", "Cs"])

    def _forget_newer(self, folder: Path) -> None:
        is_old = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
        for code_points, (age,) in rows(folder / "DerivedAge.txt"):
            is_old[code_points] = tuple(map(int, age.split("."))) <= NEWEST_AGE
        self.category[~is_old] = "Cn"
        self.combining[~is_old] = 0
        self.decomposition = {
            char: parts for char, parts in self.decomposition.items() if is_old[char]
        }


def find_kinds(folder: Path, chars: Characters) -> npt.NDArray[np.uint32]:
    is_spaceless = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
    has_no_script = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
    for code_points, (script,) in rows(folder / "Scripts.txt"):
        is_spaceless[code_points] = script in SPACELESS_SCRIPTS
        has_no_script[code_points] = script in ("Common", "Inherited")
    for code_points, (scripts,) in rows(folder / "ScriptExtensions.txt"):
        if set(scripts.split()) & set(SPACELESS_SCRIPTS.values()):
            is_spaceless[code_points] |= has_no_script[code_points]
    kinds = np.where(is_spaceless, layout.SINGLE, layout.WORD)
    kinds[~np.isin(chars.category, list(WORD_CATEGORIES))] = layout.SEPARATOR
    return kinds.astype(np.uint32)


def find_folded(
    folder: Path, chars: Characters, kinds: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    folded = np.arange(NUM_CODE_POINTS, dtype=np.uint32)
    for code_points, (status, mapping, *_) in rows(folder / "CaseFolding.txt"):
        if status in ("C", "S") and chars.is_known[code_points].all():
            folded[code_points] = int(mapping, 16)
    if not chars.is_known[folded[chars.is_known]].all():
        raise ValueError("a known character folds to an unknown one")
    if (kinds[folded] != kinds).any():
        raise ValueError("folding changes the kind of a character")
    return folded


def find_composing(folder: Path, chars: Characters, is_nfc_no: Flags) -> Flags:
    """Mark the characters that a following mark can change: first halves of compositions, and compositions."""
    is_excluded = having(folder / "DerivedNormalizationProps.txt", "Full_Composition_Exclusion")
    composes = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
    composes[HANGUL_LEADING] = True
    # Only the 399 without a final consonant can change; marking all lets 44 blocks be one, which
    # stays in the cache.
    composes[HANGUL_SYLLABLES] = True
    for char, parts in chars.decomposition.items():
        if not is_excluded[char]:
            composes[parts[0]] = True
        composes[char] |= not is_nfc_no[char]
    return composes


def are_invisible() -> Flags:
    marked = np.zeros(NUM_CODE_POINTS, dtype=np.bool_)
    marked[list(map(ord, layout.INVISIBLE_CHARACTERS))] = True
    return marked


def build_entries(folder: Path, chars: Characters) -> npt.NDArray[np.uint32]:
    """Return one entry per code point."""
    normalization = folder / "DerivedNormalizationProps.txt"
    is_nfc_no = having(normalization, "NFC_QC", "N") & chars.is_known
    is_nfc_maybe = having(normalization, "NFC_QC", "M") & chars.is_known
    kinds = find_kinds(folder, chars)
    flags = {
        layout.DIGIT: chars.category == "Nd",
        layout.NFC_ATTENTION: (chars.combining != 0) | is_nfc_no | is_nfc_maybe,
        layout.NFC_NO: is_nfc_no,
        layout.NFC_MAYBE: is_nfc_maybe,
        layout.COMPOSES: find_composing(folder, chars, is_nfc_no),
        layout.SPACE: having(folder / "PropList.txt", "White_Space") & chars.is_known,
        layout.UNKNOWN: ~chars.is_known,
        layout.INVISIBLE: are_invisible(),
    }
    distance = find_folded(folder, chars, kinds).astype(np.int64) - np.arange(NUM_CODE_POINTS)
    entries = (distance & layout.FOLD_MASK).astype(np.uint32) | (
        kinds << np.uint32(layout.KIND_SHIFT)
    )
    for flag, is_set in flags.items():
        entries[is_set] |= np.uint32(flag)
    return entries


def share_blocks(
    values: npt.NDArray[np.generic],
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.generic]]:
    """Return (index, values) of the two-stage table; blocks are numbered in order of first use."""
    numbers: dict[bytes, int] = {}
    blocks = values.reshape(-1, layout.BLOCK_SIZE)
    index = [numbers.setdefault(block.tobytes(), len(numbers)) for block in blocks]
    return np.array(index, dtype=np.uint16), np.frombuffer(b"".join(numbers), dtype=values.dtype)


def write_npz(path: Path, arrays: dict[str, npt.NDArray[np.generic]]) -> None:
    """Write what `np.savez_compressed` would, with a fixed timestamp, so that equal tables give equal files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(member, "w") as file:
                np.lib.format.write_array(
                    file, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False
                )


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/build_unicode_table.py FOLDER")
    folder = Path(sys.argv[1])
    header = (folder / "DerivedAge.txt").read_text(encoding="utf-8").partition("\n")[0]
    if SOURCE_VERSION not in header:
        sys.exit(f"FOLDER must hold version {SOURCE_VERSION} of the database, got {header!r}")
    chars = Characters(folder)
    index, entries = share_blocks(build_entries(folder, chars))
    combining_index, combining = share_blocks(chars.combining)
    arrays = {
        "index": index,
        "entries": entries,
        "combining_index": combining_index,
        "combining": combining,
    }
    write_npz(TARGET, arrays)
    num_blocks = entries.size // layout.BLOCK_SIZE, combining.size // layout.BLOCK_SIZE
    print(f"{TARGET}: {TARGET.stat().st_size} bytes, {num_blocks[0]} + {num_blocks[1]} blocks")


if __name__ == "__main__":
    main()
