"""Folded text to shingle hashes: finalised 64-bit hashes of word or character n-grams, or of items.

Words take two passes over a document that stays in cache. The first (folding.py) writes the folded
text and a bitmap of its words. The second finds the edges of words in the bitmap, then hashes the
words between them.

Every hash is keyed: each factor of each product is masked by its own secret, so without the seed
nobody can zero a factor or invert a step. The hash of a shingle folds two polynomials of its words'
hashes at secret points, one of the hashes and one of their halves swapped: modulo 2**64 alone,
words in the right order (the Thue-Morse sequence) would make the low bits of any such polynomial
agree.
"""

import numpy as np

from neardup.kernels.bits import BLOCK, count_bits, load64, trailing_zeros
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.folding import (
    DIGIT,
    FOLD_MASK,
    INVISIBLE,
    NFC_ATTENTION,
    ONE,
    REPLACEMENT,
    SPACE,
    UNKNOWN,
    ZERO,
    breaks_nfc,
    decode,
    fold_document,
)
from neardup.kernels.mixing import fold_multiply

# A word of up to this many bytes takes two loads and one product.
SHORT = 16
# The secrets of a key: one for every length of a short word, then those that `unpack_secrets` unpacks.
NUM_SECRETS = 9
KEY_SIZE = SHORT + 1 + NUM_SECRETS
ITEM_END = 0x1F
FIRST_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(9)], dtype=np.uint64)
# Blocks whose words are found before they are hashed: enough to amortise loop overhead, in little
# memory.
SPAN = 32


@inner
def is_number(folded, start, end, table):
    """Whether a word has digits only."""
    index, entries, _, _ = table
    at = start
    while at < end:
        point, width = decode(folded, at, end)
        entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
        if not entry & DIGIT:
            return False
        at += width
    return True


@inner
def unpack_secrets(key):
    """Unpack the secrets after those of the lengths, so that they stay in registers."""
    at = SHORT + 1
    return (
        (key[at], key[at + 1], key[at + 2], key[at + 3], key[at + 4]),
        (key[at + 5], key[at + 6]),
        (key[at + 7], key[at + 8]),
    )


@inner
def hash_long(folded, start, width, masks):
    """Hash more than SHORT bytes: 16 at a time; the last 16 may overlap."""
    _, length_mask, length_factor, first_mask, second_mask = masks
    # A length that is only xored in could be cancelled by the first byte.
    word = fold_multiply(np.uint64(width) ^ length_mask, length_factor)
    at = start
    last = start + width - 16
    while at < last:
        word = fold_multiply(
            word ^ load64(folded, at) ^ first_mask, load64(folded, at + 8) ^ second_mask
        )
        at += 16
    return fold_multiply(
        word ^ load64(folded, last) ^ first_mask, load64(folded, last + 8) ^ second_mask
    )


@inner
def hash_short(folded, start, width, key, masks):
    """Hash up to SHORT bytes by two masked loads, without a branch on the width, which selects the secret."""
    head = load64(folded, start) & FIRST_BYTES[min(width, 8)]
    tail = load64(folded, start + 8) & FIRST_BYTES[max(width - 8, 0)]
    return fold_multiply(head ^ key[width], tail ^ masks[0])


@inner
def swap_halves(value):
    """Swap the low and the high 32 bits."""
    return (value >> np.uint64(32)) | (value << np.uint64(32))


@inner
def finalise(rolling, swapped, masks):
    """Fold both polynomials into one hash; never zero, which marks free slots in hash tables."""
    mixed = fold_multiply(rolling ^ masks[0], swapped ^ masks[1])
    return mixed if mixed != ZERO else ONE


@inner
def power_of(base, exponent):
    """Return a power modulo 2**64."""
    power = ONE
    for _ in range(exponent):
        power *= base
    return power


@inner
def find_edges(mask, block, stop, in_word, edges, count):
    """Append the alternating starts and ends of words; `in_word` is 1 if the previous byte is in a word, else 0.

    Eight edges are always written at a time: a branch per edge would be mispredicted.
    """
    while block < stop:
        inside = mask[np.uint64(block)]
        turns = inside ^ ((inside << ONE) | in_word)
        in_word = inside >> np.uint64(63)
        first = np.uint64(block) << np.uint64(6)
        to = count
        count += count_bits(turns)
        while turns:
            for _ in range(8):
                edges[to] = first + trailing_zeros(turns)
                turns &= turns - ONE
                to += ONE
        block += 1
    return count, in_word


@inner
def _shingle_words(
    folded, length, mask, table, size, key, fold_numbers, edges, words, shingles, to
):
    """Hash the words between the edges of the bitmap, span by span; return where the shingles of this document end.

    edges  uint64[...]  room for those of a span, and for the excess of the last write
    words  uint64[...]  the hashes of the `size` words before a span, zero where there are none, then those of the span
    """
    num_blocks = (length + 63) >> 6
    word_masks, final_masks, (base, swapped_base) = unpack_secrets(key)
    oldest_power = power_of(base, size)
    oldest_swapped_power = power_of(swapped_base, size)
    rolling = ZERO
    swapped = ZERO
    in_word = ZERO
    num_edges = ZERO
    num_all = ZERO
    # Unsigned, because Numba checks a signed index for being negative.
    window = np.uint64(size)
    num_missing = np.uint64(size - 1)
    to = np.uint64(to)
    for at in range(window):
        words[at] = ZERO
    for block in range(0, num_blocks, SPAN):
        stop = min(block + SPAN, num_blocks)
        num_edges, in_word = find_edges(mask, block, stop, in_word, edges, num_edges)
        if stop == num_blocks and in_word:
            edges[num_edges] = np.uint64(length)
            num_edges += ONE
        num_words = num_edges >> ONE
        for at in range(num_words):
            start, end = np.int64(edges[at << ONE]), np.int64(edges[(at << ONE) | ONE])
            if fold_numbers and is_number(folded, start, end, table):
                folded[start] = 48
                end = start + 1
            # Branch here, because passing an array through another function costs as much as the
            # hash.
            if end - start <= SHORT:
                word = hash_short(folded, start, end - start, key, word_masks)
            else:
                word = hash_long(folded, start, end - start, word_masks)
            oldest = words[at]
            words[at + window] = word
            rolling = rolling * base + (word - oldest * oldest_power)
            swapped = swapped * swapped_base + (
                swap_halves(word) - swap_halves(oldest) * oldest_swapped_power
            )
            shingles[to] = finalise(rolling, swapped, final_masks)
            if num_missing:  # only at the start of a document
                num_missing -= ONE
            else:
                to += ONE
        num_all += num_words
        for at in range(window):
            words[at] = words[at + num_words]
        if num_edges & ONE:  # a word that continues in the next span is hashed there
            edges[0] = edges[num_edges - ONE]
        num_edges &= ONE
    if ZERO < num_all < window:  # the single shingle of all words is already at `to`
        to += ONE
    return np.int64(to)


@kernel
def shingle_words(source, offsets, table, size, key, fold_numbers, shingles, ends, is_normal):
    """Write the hashes of every run of `size` words, all documents end to end, repetitions included.

    source        uint8 [num_bytes]     UTF-8 texts; nothing outside source[offsets[0]:offsets[-1]] is used
    offsets       int64 [num_docs + 1]  document d is source[offsets[d]:offsets[d + 1]]
    table         (index, entries, combining_index, combining) of kernels/unicode.py
    size          int64                 words in a shingle; a document with fewer, but some, is one shingle
    key           uint64[KEY_SIZE]      of kernels/keys.py
    fold_numbers  bool                  every word of digits alone is the same word
    shingles      uint64[...]           written; room for half a shingle per byte, and one more per document
    ends          int64 [num_docs + 1]  written; document d owns shingles[ends[d]:ends[d + 1]]
    is_normal     bool  [num_docs]      written; False where the text may not be in normal form C
    """
    longest = 0
    for doc in range(offsets.size - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    # One byte in becomes at most two (a letter whose folded form is longer, then a separator).
    folded = np.empty(2 * longest + 3 * BLOCK, np.uint8)
    mask = np.empty((longest >> 5) + 4, np.uint64)
    edge = np.zeros(BLOCK, np.uint8)
    edges = np.empty(SPAN * BLOCK + 16, np.uint64)
    words = np.empty(size + SPAN * BLOCK // 2 + 1, np.uint64)
    ends[0] = 0
    for doc in range(offsets.size - 1):
        length, normal = fold_document(
            source, offsets[doc], offsets[doc + 1], table, edge, folded, mask
        )
        is_normal[doc] = normal
        ends[doc + 1] = _shingle_words(
            folded, length, mask, table, size, key, fold_numbers, edges, words, shingles, ends[doc]
        )


@kernel
def shingle_characters(source, offsets, table, size, key, fold_numbers, shingles, ends, is_normal):
    """Write the hashes of every window of `size` code points; arguments as for `shingle_words`.

    A run of white space is one space; with `fold_numbers` a run of digits is one "0"; invisible
    characters are dropped. `shingles` needs room for one shingle per byte, and one more per document.
    """
    index, entries, combining_index, combining_classes = table
    ring = np.zeros(size, np.uint64)
    (_, point_mask, point_factor, unit_mask, unit_factor), final_masks, (base, swapped_base) = (
        unpack_secrets(key)
    )
    oldest_power = power_of(base, size)
    oldest_swapped_power = power_of(swapped_base, size)
    to = ends[0] = 0
    for doc in range(offsets.size - 1):
        at = offsets[doc]
        end = offsets[doc + 1]
        num_points = ring_at = 0
        rolling = ZERO
        swapped = ZERO
        starter = np.uint32(0)
        last_combining = np.uint8(0)
        normal = True
        last_run = np.uint32(0)
        while at < end:
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
            if entry & UNKNOWN:
                point = REPLACEMENT
            else:
                point = (point + np.int64(entry)) & np.int64(FOLD_MASK)
            run = np.uint32(0)
            if entry & SPACE:
                run = SPACE
                point = np.int64(32)
            elif fold_numbers and entry & DIGIT:
                run = DIGIT
                point = np.int64(48)
            if run and run == last_run:
                continue
            last_run = run
            # The product of a few bits with a secret is almost linear in them, so multiply twice.
            unit = fold_multiply(np.uint64(point) ^ point_mask, point_factor)
            unit = fold_multiply(unit ^ unit_mask, unit_factor)
            oldest = ring[ring_at] if num_points >= size else ZERO
            rolling = rolling * base + (unit - oldest * oldest_power)
            swapped = swapped * swapped_base + (
                swap_halves(unit) - swap_halves(oldest) * oldest_swapped_power
            )
            ring[ring_at] = unit
            ring_at = ring_at + 1 if ring_at + 1 < size else 0
            num_points += 1
            if num_points >= size:
                shingles[to] = finalise(rolling, swapped, final_masks)
                to += 1
        if 0 < num_points < size:
            shingles[to] = finalise(rolling, swapped, final_masks)
            to += 1
        ends[doc + 1] = to
        is_normal[doc] = normal


@kernel
def shingle_items(source, offsets, table, size, key, fold_numbers, shingles, ends, is_normal):
    """Write the hash of the bytes of every item, each terminated by ITEM_END; arguments as for `shingle_words`.

    Nothing is folded or normalised: `table`, `size` and `fold_numbers` are not used. `shingles`
    needs room for one shingle per byte.
    """
    edge = np.zeros(SHORT, np.uint8)
    word_masks, final_masks, _ = unpack_secrets(key)
    to = ends[0] = 0
    for doc in range(offsets.size - 1):
        at = offsets[doc]
        end = offsets[doc + 1]
        while at < end:
            start = at
            while at < end and source[at] != ITEM_END:
                at += 1
            # A short item at the end of the buffer: never read past it.
            if start + SHORT > source.size:
                edge[: at - start] = source[start:at]
                item = hash_short(edge, np.int64(0), at - start, key, word_masks)
            elif at - start <= SHORT:
                item = hash_short(source, start, at - start, key, word_masks)
            else:
                item = hash_long(source, start, at - start, word_masks)
            shingles[to] = finalise(item, swap_halves(item), final_masks)
            to += 1
            at += 1
        ends[doc + 1] = to
        is_normal[doc] = True
