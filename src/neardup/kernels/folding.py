"""From UTF-8 to folded text and a bitmap of its words, through the Unicode table.

The bitmap has one bit per byte of the folded text, set inside words. 64 ASCII bytes are folded at a
time, anything else one code point at a time. A character that is a token of its own gets separators
around it in the folded text, so code that reads the bitmap is independent of scripts. An invisible
character leaves nothing: what stands before it and after it are neighbours, also for the NFC check.
"""

import numpy as np

from neardup.kernels.bits import BLOCK, fold_ascii_block, load64, store64, trailing_zeros
from neardup.kernels.compilation import inner

FOLD_MASK = np.uint32(0x1FFFFF)
KIND_MASK = np.uint32(3 << 21)
WORD = np.uint32(1 << 21)
SINGLE = np.uint32(2 << 21)
DIGIT = np.uint32(1 << 23)
NFC_ATTENTION = np.uint32(1 << 24)
NFC_NO = np.uint32(1 << 25)
COMPOSES = np.uint32(1 << 26)
SPACE = np.uint32(1 << 27)
NFC_MAYBE = np.uint32(1 << 28)
UNKNOWN = np.uint32(1 << 29)
INVISIBLE = np.uint32(1 << 30)
REPLACEMENT = np.int64(0xFFFD)
# Flags that the fast path for three-byte characters cannot handle: all except the kind and
# composing.
SPECIAL = FOLD_MASK | NFC_ATTENTION | UNKNOWN | INVISIBLE
THREE_BYTES_MASK = np.uint64(0xC0C0F0)
THREE_BYTES = np.uint64(0x8080E0)
ZERO = np.uint64(0)
ONE = np.uint64(1)


@inner
def _three_bytes(loaded):
    """The code point in the first three of eight bytes, if they encode one of three bytes."""
    return np.int64(
        ((loaded & np.uint64(0x0F)) << np.uint64(12))
        | ((loaded >> np.uint64(2)) & np.uint64(0xFC0))
        | ((loaded >> np.uint64(16)) & np.uint64(0x3F))
    )


@inner
def decode(source, at, end):
    """Return (code point, bytes read); a byte that starts no valid sequence before `end` is read alone, as U+FFFD."""
    first = np.int64(source[at])
    if first < 0x80:
        return first, 1
    if first < 0xE0:
        width = 2
    elif first < 0xF0:
        width = 3
    else:
        width = 4
    if first < 0xC2 or first > 0xF4 or at + width > end:
        return REPLACEMENT, 1
    point = first & (0x7F >> width)
    for following in range(at + 1, at + width):
        if (source[following] & 0xC0) != 0x80:
            return REPLACEMENT, 1
        point = (point << 6) | (np.int64(source[following]) & 0x3F)
    if width == 3:
        is_overlong = point < 0x800
    else:
        is_overlong = width == 4 and point < 0x10000
    if is_overlong or point > 0x10FFFF or (point & ~0x7FF) == 0xD800:
        return REPLACEMENT, 1
    return point, width


@inner
def encode(point, target, to):
    """Write a code point as UTF-8; return how many bytes it took."""
    if point < 0x80:
        target[to] = point
        return 1
    if point < 0x800:
        width = 2
    elif point < 0x10000:
        width = 3
    else:
        width = 4
    for at in range(to + width - 1, to, -1):
        target[at] = 0x80 | (point & 0x3F)
        point >>= 6
    target[to] = (0xF00 >> width) & 0xFF | point
    return width


@inner
def _put_bits(mask, to, bits, count):
    """Append `count` bits at bit `to`; bits of mask[to >> 6] from `to` on are zero, later entries are not yet set."""
    shift = np.uint64(to & 63)
    mask[to >> 6] |= bits << shift
    if (to & 63) + count >= BLOCK:
        mask[(to >> 6) + 1] = (bits >> ONE) >> (np.uint64(63) - shift)


@inner
def breaks_nfc(entry, starter, combining, last_combining):
    """Whether the text up to this character may not be in normal form C; exact except for rare false alarms."""
    if entry & NFC_NO:
        return True
    if combining != 0 and combining < last_combining:
        return True
    return bool(entry & NFC_MAYBE) and bool(starter & COMPOSES)


@inner
def fold_document(source, start, end, table, edge, folded, mask):
    """Write the folded text and its word bitmap; return (bytes written, whether the text is in normal form C)."""
    index, entries, combining_index, combining_classes = table
    at = start
    to = np.int64(0)
    is_normal = True
    in_word = False
    mask[0] = ZERO
    while at < end:
        if at + BLOCK <= source.size:
            words, above = fold_ascii_block(source, at, folded, to)
        else:  # the last bytes of the buffer: never read past them
            for position in range(source.size - at):
                edge[position] = source[at + position]
            words, above = fold_ascii_block(edge, 0, folded, to)
        count = min(end - at, BLOCK)
        if above:
            count = min(count, np.int64(trailing_zeros(above)))
        if count:
            if count < BLOCK:
                words &= (ONE << np.uint64(count)) - ONE
            _put_bits(mask, to, words, count)
            in_word = (words >> np.uint64(count - 1)) != ZERO
            at += count
            to += count
        starter = np.uint32(0)
        last_combining = np.uint8(0)
        if at > start:
            starter = entries[(np.int64(index[0]) << 8) + np.int64(source[at - 1])]
        # A lone ASCII byte between others, such as the space between two Korean words, is not worth
        # a block.
        while at < end and (source[at] >= 0x80 or (at + 1 < end and source[at + 1] >= 0x80)):
            loaded = load64(source, at) if at + 8 <= end else ZERO
            point = _three_bytes(loaded)
            width = 3
            entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
            # Most Asian scripts: three bytes that fold to themselves and need no NFC check. All
            # others take the slow path.
            is_plain = (
                (loaded & THREE_BYTES_MASK) == THREE_BYTES
                and point >= 0x800
                and not entry & SPECIAL
            )
            if is_plain:
                starter = entry
                last_combining = np.uint8(0)
            else:
                point, width = decode(source, at, end)
                entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
                if entry & INVISIBLE:
                    at += width
                    continue
                combining = combining_classes[
                    (np.int64(combining_index[point >> 8]) << 8) + (point & 255)
                ]
                if entry & NFC_ATTENTION and breaks_nfc(entry, starter, combining, last_combining):
                    is_normal = False
                if combining == 0:
                    starter = entry
                last_combining = combining
            at += width
            kind = entry & KIND_MASK
            before = 1 if kind == SINGLE and in_word else 0
            if is_plain:
                store64(folded, to + before, loaded)
            elif kind != 0:
                width = encode((point + np.int64(entry)) & np.int64(FOLD_MASK), folded, to + before)
            if kind != 0:
                bits = ((ONE << np.uint64(width)) - ONE) << np.uint64(before)
                count = before + width + (1 if kind == SINGLE else 0)
            else:
                bits = ZERO
                count = 1
            _put_bits(mask, to, bits, count)
            to += count
            in_word = kind == WORD
    return to, is_normal
