"""The words of texts one by one: the hash of each, and where it stands in the bytes of the text.

Words are cut, folded and hashed as in shingle.py, so equal hashes mean equal words there and here.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.folding import (
    DIGIT,
    FOLD_MASK,
    INVISIBLE,
    KIND_MASK,
    NFC_ATTENTION,
    SINGLE,
    WORD,
    breaks_nfc,
    decode,
    encode,
)
from neardup.kernels.shingle import SHORT, hash_long, hash_short, unpack_secrets

# Hashing reads up to this many bytes beyond a word.
_ROOM = 2 * SHORT
_ZERO = 48


@inner
def _hash_word(folded, length, is_number, key, masks):
    if is_number:
        folded[0] = _ZERO
        length = np.int64(1)
    if length <= SHORT:
        return hash_short(folded, np.int64(0), length, key, masks)
    return hash_long(folded, np.int64(0), length, masks)


@kernel
def text_words(source, offsets, table, key, fold_numbers, hashes, bounds, ends, is_normal):
    """Write the hash and the bounds of every word, all documents end to end.

    source        uint8 [num_bytes]     UTF-8 texts
    offsets       int64 [num_docs + 1]  document d is source[offsets[d]:offsets[d + 1]]
    table         (index, entries, combining_index, combining) of kernels/unicode.py
    key           uint64[KEY_SIZE]      of kernels/keys.py
    fold_numbers  bool                  every word of digits alone is the same word
    hashes        uint64[...]           written; room for one per byte, and one more per document
    bounds        int64 [..., 2]        written; first byte of the word, and the byte behind it
    ends          int64 [num_docs + 1]  written; document d owns hashes[ends[d]:ends[d + 1]]
    is_normal     bool  [num_docs]      written; False where the text may not be in normal form C
    """
    index, entries, combining_index, combining_classes = table
    longest = 0
    for doc in range(offsets.size - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    folded = np.zeros(2 * longest + _ROOM, np.uint8)
    masks, _, _ = unpack_secrets(key)
    to = np.int64(0)
    ends[0] = 0
    for doc in range(offsets.size - 1):
        first = offsets[doc]
        end = offsets[doc + 1]
        at = first
        length = np.int64(0)
        word_start = at
        word_end = at
        is_number = fold_numbers
        starter = np.uint32(0)
        last_combining = np.uint8(0)
        normal = True
        while at < end:
            here = at
            byte = source[at]
            if byte < 0x80:
                point = np.int64(byte)
                entry = entries[(np.int64(index[0]) << 8) + point]
                at += 1
                starter = entry
                last_combining = np.uint8(0)
            else:
                point, width = decode(source, at, end)
                at += width
                entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
                if entry & INVISIBLE:
                    continue
                combining = combining_classes[
                    (np.int64(combining_index[point >> 8]) << 8) + (point & 255)
                ]
                if entry & NFC_ATTENTION and breaks_nfc(entry, starter, combining, last_combining):
                    normal = False
                if combining == 0:
                    starter = entry
                last_combining = combining
            kind = entry & KIND_MASK
            if kind != WORD and length:
                hashes[to] = _hash_word(folded, length, is_number, key, masks)
                bounds[to, 0] = word_start - first
                bounds[to, 1] = word_end - first
                to += 1
                length = np.int64(0)
                is_number = fold_numbers
            if kind == 0:
                continue
            if length == 0:
                word_start = here
            word_end = at
            point = (point + np.int64(entry)) & np.int64(FOLD_MASK)
            if point < 0x80:
                folded[length] = point
                length += 1
            else:
                length += encode(point, folded, length)
            if not entry & DIGIT:
                is_number = False
            if kind == SINGLE:
                hashes[to] = _hash_word(folded, length, is_number, key, masks)
                bounds[to, 0] = word_start - first
                bounds[to, 1] = at - first
                to += 1
                length = np.int64(0)
                is_number = fold_numbers
        if length:
            hashes[to] = _hash_word(folded, length, is_number, key, masks)
            bounds[to, 0] = word_start - first
            bounds[to, 1] = word_end - first
            to += 1
        ends[doc + 1] = to
        is_normal[doc] = normal
