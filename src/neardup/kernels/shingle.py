"""Text to shingle hashes: UTF-8 bytes in, finalised 64-bit hashes of word or character n-grams, or of items, out.

Words take two passes over a document that stays in cache. The first writes the folded text and a bitmap with one bit
per byte, set inside words: 64 ASCII bytes at a time, or one code point at a time through the Unicode table. The
second jumps from word to word along the bitmap. A character that is a token of its own gets separators around it in
the folded text, so the second pass knows nothing of scripts.

Every hash is keyed: each factor of each product is masked by its own secret, so without the seed nobody can zero a
factor or invert a step. The hash of a shingle folds two polynomials of its words' hashes at secret
points, one of the hashes and one of their halves swapped: modulo 2**64 alone, words in the right order (the Thue-Morse
sequence) make the low bits of any such polynomial agree.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.compilation import inner, kernel, overload
from neardup.kernels.mixing import fold_multiply

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
REPLACEMENT = np.int64(0xFFFD)
# What the short way for three-byte characters leaves to the long one: anything but a kind and being a first part.
SPECIAL = FOLD_MASK | NFC_ATTENTION | UNKNOWN
THREE_BYTES_MASK, THREE_BYTES = np.uint64(0xC0C0F0), np.uint64(0x8080E0)

# A word up to so many bytes takes two loads and one product.
SHORT = 16
# The secrets of a key: one for every length of a short word, then those that the kernels take apart by `_secrets`.
NUM_SECRETS = 9
KEY_SIZE = SHORT + 1 + NUM_SECRETS
ITEM_END = 0x1F
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
ZERO = np.uint64(0)
ONE = np.uint64(1)
FIRST_BYTES = np.array([(1 << (8 * count)) - 1 for count in range(9)], dtype=np.uint64)
# As many bytes as a word of the bitmap has bits.
_BLOCK = 64
_BYTE, _WORD64 = ir.IntType(8), ir.IntType(64)


def _pointer(context, builder, array_type, array, index, target):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), target.as_pointer())


def load64(array, index):
    """Read eight bytes from any address."""
    return np.uint64(int.from_bytes(bytes(array[index : index + 8]), "little"))


@intrinsic
def _load64(typing_context, array, index):
    def codegen(context, builder, signature, args):
        return builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], _WORD64), align=1)

    return types.uint64(array, types.int64), codegen


@overload(load64)
def _overload_load64(array, index):
    return lambda array, index: _load64(array, index)


def store64(array, index, value):
    """Write eight bytes to any address."""
    array[index : index + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


@intrinsic
def _store64(typing_context, array, index, value):
    def codegen(context, builder, signature, args):
        builder.store(args[2], _pointer(context, builder, signature.args[0], args[0], args[1], _WORD64), align=1)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), codegen


@overload(store64)
def _overload_store64(array, index, value):
    return lambda array, index, value: _store64(array, index, value)


def trailing_zeros(value):
    """Count the zero bits below the lowest set bit; 64 for zero."""
    value = int(value)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


@intrinsic
def _trailing_zeros(typing_context, value):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@overload(trailing_zeros)
def _overload_trailing_zeros(value):
    return lambda value: _trailing_zeros(value)


def fold_ascii_block(source, at, target, to):
    """Write 64 bytes in lower case; return two bitmaps: bytes inside words, bytes above ASCII."""
    words, above = 0, 0
    for position in range(_BLOCK):
        byte = int(source[at + position])
        lower = byte | 32 if 65 <= byte <= 90 else byte
        target[to + position] = lower
        words |= (97 <= lower <= 122 or 48 <= lower <= 57) << position
        above |= (byte >= 128) << position
    return np.uint64(words), np.uint64(above)


@intrinsic
def _fold_ascii_block(typing_context, source, at, target, to):
    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, _BLOCK)

        def constant(byte):
            return ir.Constant(vector, [byte] * _BLOCK)

        def within(values, first, count):
            return builder.icmp_unsigned("<", builder.sub(values, constant(first)), constant(count))

        raw = builder.load(_pointer(context, builder, signature.args[0], args[0], args[1], vector), align=1)
        lower = builder.select(within(raw, 65, 26), builder.or_(raw, constant(32)), raw)
        builder.store(lower, _pointer(context, builder, signature.args[2], args[2], args[3], vector), align=1)
        words = builder.or_(within(lower, 97, 26), within(lower, 48, 10))
        above = builder.icmp_signed("<", raw, constant(0))
        return context.make_tuple(
            builder,
            signature.return_type,
            [builder.bitcast(words, _WORD64), builder.bitcast(above, _WORD64)],
        )

    return types.UniTuple(types.uint64, 2)(source, types.int64, target, types.int64), codegen


@overload(fold_ascii_block)
def _overload_fold_ascii_block(source, at, target, to):
    return lambda source, at, target, to: _fold_ascii_block(source, at, target, to)


@inner
def _three_bytes(loaded):
    """The code point in the first three of eight bytes, if they are one of three bytes."""
    return np.int64(
        ((loaded & np.uint64(0x0F)) << np.uint64(12))
        | ((loaded >> np.uint64(2)) & np.uint64(0xFC0))
        | ((loaded >> np.uint64(16)) & np.uint64(0x3F))
    )


@inner
def _decode(source, at, end):
    """Return (code point, bytes read); a byte that starts no valid sequence before `end` is U+FFFD, read alone."""
    first = np.int64(source[at])
    if first < 0x80:
        return first, 1
    width = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC2 or first > 0xF4 or at + width > end:
        return REPLACEMENT, 1
    point = first & (0x7F >> width)
    for following in range(at + 1, at + width):
        if (source[following] & 0xC0) != 0x80:
            return REPLACEMENT, 1
        point = (point << 6) | (np.int64(source[following]) & 0x3F)
    is_overlong = point < 0x800 if width == 3 else width == 4 and point < 0x10000
    if is_overlong or point > 0x10FFFF or (point & ~0x7FF) == 0xD800:
        return REPLACEMENT, 1
    return point, width


@inner
def _encode(point, target, to):
    """Write a code point as UTF-8; return how many bytes it took."""
    if point < 0x80:
        target[to] = point
        return 1
    width = 2 if point < 0x800 else 3 if point < 0x10000 else 4
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
    if (to & 63) + count >= _BLOCK:
        mask[(to >> 6) + 1] = (bits >> ONE) >> (np.uint64(63) - shift)


@inner
def _breaks_nfc(entry, starter, combining, last_combining):
    """Whether the text up to this character may not be in normal form C; exact but for rare false alarms."""
    if entry & NFC_NO:
        return True
    if combining != 0 and combining < last_combining:
        return True
    return bool(entry & NFC_MAYBE) and bool(starter & COMPOSES)


@inner
def _fold_document(source, start, end, table, edge, folded, mask):
    """Write the folded text and its word bitmap; return (bytes written, whether the text is in normal form C)."""
    index, entries, combining_index, combining_classes = table
    at, to, is_normal, in_word = start, np.int64(0), True, False
    mask[0] = ZERO
    while at < end:
        if at + _BLOCK <= source.size:
            words, above = fold_ascii_block(source, at, folded, to)
        else:  # the last bytes of the buffer: never read past them
            for position in range(source.size - at):
                edge[position] = source[at + position]
            words, above = fold_ascii_block(edge, 0, folded, to)
        count = min(end - at, _BLOCK)
        if above:
            count = min(count, np.int64(trailing_zeros(above)))
        if count:
            if count < _BLOCK:
                words &= (ONE << np.uint64(count)) - ONE
            _put_bits(mask, to, words, count)
            in_word = (words >> np.uint64(count - 1)) != ZERO
            at += count
            to += count
        starter, last_combining = np.uint32(0), np.uint8(0)
        if at > start:
            starter = entries[(np.int64(index[0]) << 8) + np.int64(source[at - 1])]
        # A lone ASCII byte between others, as the space between two words of Korean, is not worth a block.
        while at < end and (source[at] >= 0x80 or (at + 1 < end and source[at + 1] >= 0x80)):
            loaded = load64(source, at) if at + 8 <= end else ZERO
            point, width = _three_bytes(loaded), 3
            entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
            # Most of Asia: three bytes that fold to themselves and need no look for NFC. All else goes the long way.
            is_plain = (loaded & THREE_BYTES_MASK) == THREE_BYTES and point >= 0x800 and not entry & SPECIAL
            if is_plain:
                starter, last_combining = entry, np.uint8(0)
            else:
                point, width = _decode(source, at, end)
                entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
                combining = combining_classes[(np.int64(combining_index[point >> 8]) << 8) + (point & 255)]
                if entry & NFC_ATTENTION and _breaks_nfc(entry, starter, combining, last_combining):
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
                width = _encode((point + np.int64(entry)) & np.int64(FOLD_MASK), folded, to + before)
            if kind != 0:
                bits = ((ONE << np.uint64(width)) - ONE) << np.uint64(before)
                count = before + width + (1 if kind == SINGLE else 0)
            else:
                bits, count = ZERO, 1
            _put_bits(mask, to, bits, count)
            to += count
            in_word = kind == WORD
    return to, is_normal


@inner
def _is_number(folded, start, end, table):
    index, entries, _, _ = table
    at = start
    while at < end:
        point, width = _decode(folded, at, end)
        entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
        if not entry & DIGIT:
            return False
        at += width
    return True


@inner
def _secrets(key):
    """Take the secrets behind those of the lengths apart, so that they stay in registers."""
    at = SHORT + 1
    return (
        (key[at], key[at + 1], key[at + 2], key[at + 3], key[at + 4]),
        (key[at + 5], key[at + 6]),
        (key[at + 7], key[at + 8]),
    )


@inner
def _hash_long(folded, start, width, masks):
    """Hash more than SHORT bytes: 16 at a time, the last 16 of them maybe once more."""
    _, length_mask, length_factor, first_mask, second_mask = masks
    # A length that were only xored in could be made up for by the first byte.
    word = fold_multiply(np.uint64(width) ^ length_mask, length_factor)
    at, last = start, start + width - 16
    while at < last:
        word = fold_multiply(word ^ load64(folded, at) ^ first_mask, load64(folded, at + 8) ^ second_mask)
        at += 16
    return fold_multiply(word ^ load64(folded, last) ^ first_mask, load64(folded, last + 8) ^ second_mask)


@inner
def _hash_short(folded, start, width, key, masks):
    """Hash up to SHORT bytes by two masked loads: no branch on the width, which chooses the secret."""
    head = load64(folded, start) & FIRST_BYTES[min(width, 8)]
    tail = load64(folded, start + 8) & FIRST_BYTES[max(width - 8, 0)]
    return fold_multiply(head ^ key[width], tail ^ masks[0])


@inner
def _swap_halves(value):
    return (value >> np.uint64(32)) | (value << np.uint64(32))


@inner
def _finalise(rolling, swapped, masks):
    """Fold both polynomials into one hash; never zero, which marks free places in hash tables."""
    mixed = fold_multiply(rolling ^ masks[0], swapped ^ masks[1])
    return mixed if mixed != ZERO else ONE


@inner
def _power(base, exponent):
    power = ONE
    for _ in range(exponent):
        power *= base
    return power


@inner
def _shingle_words(folded, length, mask, table, size, key, fold_numbers, ring, shingles, to):
    """Follow the bitmap from word to word; return where the shingles of this document end."""
    num_blocks = (length + 63) >> 6
    word_masks, final_masks, (base, swapped_base) = _secrets(key)
    oldest_power, oldest_swapped_power = _power(base, size), _power(swapped_base, size)
    num_words = ring_at = block = 0
    rolling, swapped = ZERO, ZERO
    bits = mask[0] if num_blocks else ZERO
    while True:
        while bits == ZERO:
            block += 1
            if block >= num_blocks:
                break
            bits = mask[block]
        if block >= num_blocks:
            break
        first = trailing_zeros(bits)
        word_start = block * _BLOCK + np.int64(first)
        gap = ~bits & (ALL << first)
        if gap:
            last = trailing_zeros(gap)
            word_end = block * _BLOCK + np.int64(last)
            bits &= ALL << last
        else:  # the word runs into the next block
            later = block + 1
            while later < num_blocks and mask[later] == ALL:
                later += 1
            if later < num_blocks:
                last = trailing_zeros(~mask[later])
                word_end = later * _BLOCK + np.int64(last)
                bits = mask[later] & (ALL << last)
                block = later
            else:
                word_end = length
                bits = ZERO
                block = num_blocks - 1
        if fold_numbers and _is_number(folded, word_start, word_end, table):
            folded[word_start] = 48
            word_end = word_start + 1
        # The choice stands here because handing an array through one more function costs as much as the hash.
        if word_end - word_start <= SHORT:
            word = _hash_short(folded, word_start, word_end - word_start, key, word_masks)
        else:
            word = _hash_long(folded, word_start, word_end - word_start, word_masks)
        oldest = ring[ring_at] if num_words >= size else ZERO
        rolling = rolling * base + (word - oldest * oldest_power)
        swapped = swapped * swapped_base + (_swap_halves(word) - _swap_halves(oldest) * oldest_swapped_power)
        ring[ring_at] = word
        ring_at = ring_at + 1 if ring_at + 1 < size else 0
        num_words += 1
        if num_words >= size:
            shingles[to] = _finalise(rolling, swapped, final_masks)
            to += 1
    if 0 < num_words < size:
        shingles[to] = _finalise(rolling, swapped, final_masks)
        to += 1
    return to


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
    folded = np.empty(2 * longest + 3 * _BLOCK, np.uint8)
    mask = np.empty((longest >> 5) + 4, np.uint64)
    edge = np.zeros(_BLOCK, np.uint8)
    ring = np.zeros(size, np.uint64)
    ends[0] = 0
    for doc in range(offsets.size - 1):
        length, normal = _fold_document(source, offsets[doc], offsets[doc + 1], table, edge, folded, mask)
        is_normal[doc] = normal
        ends[doc + 1] = _shingle_words(folded, length, mask, table, size, key, fold_numbers, ring, shingles, ends[doc])


@kernel
def shingle_characters(source, offsets, table, size, key, fold_numbers, shingles, ends, is_normal):
    """Write the hashes of every window of `size` code points; arguments as for `shingle_words`.

    A run of white space is one space; with `fold_numbers` a run of digits is one "0". `shingles` needs room for one
    shingle per byte, and one more per document.
    """
    index, entries, combining_index, combining_classes = table
    ring = np.zeros(size, np.uint64)
    (_, point_mask, point_factor, unit_mask, unit_factor), final_masks, (base, swapped_base) = _secrets(key)
    oldest_power, oldest_swapped_power = _power(base, size), _power(swapped_base, size)
    to = ends[0] = 0
    for doc in range(offsets.size - 1):
        at, end = offsets[doc], offsets[doc + 1]
        num_points = ring_at = 0
        rolling, swapped = ZERO, ZERO
        starter, last_combining, normal = np.uint32(0), np.uint8(0), True
        last_run = np.uint32(0)
        while at < end:
            point, width = _decode(source, at, end)
            at += width
            entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
            combining = combining_classes[(np.int64(combining_index[point >> 8]) << 8) + (point & 255)]
            if entry & NFC_ATTENTION and _breaks_nfc(entry, starter, combining, last_combining):
                normal = False
            if combining == 0:
                starter = entry
            last_combining = combining
            point = REPLACEMENT if entry & UNKNOWN else (point + np.int64(entry)) & np.int64(FOLD_MASK)
            run = np.uint32(0)
            if entry & SPACE:
                run, point = SPACE, np.int64(32)
            elif fold_numbers and entry & DIGIT:
                run, point = DIGIT, np.int64(48)
            if run and run == last_run:
                continue
            last_run = run
            # One product of a few bits with a secret is almost linear in them.
            unit = fold_multiply(np.uint64(point) ^ point_mask, point_factor)
            unit = fold_multiply(unit ^ unit_mask, unit_factor)
            oldest = ring[ring_at] if num_points >= size else ZERO
            rolling = rolling * base + (unit - oldest * oldest_power)
            swapped = swapped * swapped_base + (_swap_halves(unit) - _swap_halves(oldest) * oldest_swapped_power)
            ring[ring_at] = unit
            ring_at = ring_at + 1 if ring_at + 1 < size else 0
            num_points += 1
            if num_points >= size:
                shingles[to] = _finalise(rolling, swapped, final_masks)
                to += 1
        if 0 < num_points < size:
            shingles[to] = _finalise(rolling, swapped, final_masks)
            to += 1
        ends[doc + 1] = to
        is_normal[doc] = normal


@kernel
def shingle_items(source, offsets, table, size, key, fold_numbers, shingles, ends, is_normal):
    """Write the hash of the bytes of every item, each ended by ITEM_END; arguments as for `shingle_words`.

    Nothing is folded or normalised: `table`, `size` and `fold_numbers` are not used. `shingles` needs room for one
    shingle per byte.
    """
    edge = np.zeros(SHORT, np.uint8)
    word_masks, final_masks, _ = _secrets(key)
    to = ends[0] = 0
    for doc in range(offsets.size - 1):
        at, end = offsets[doc], offsets[doc + 1]
        while at < end:
            start = at
            while at < end and source[at] != ITEM_END:
                at += 1
            if start + SHORT > source.size:  # short, at the end of the buffer: never read past it
                edge[: at - start] = source[start:at]
                item = _hash_short(edge, np.int64(0), at - start, key, word_masks)
            elif at - start <= SHORT:
                item = _hash_short(source, start, at - start, key, word_masks)
            else:
                item = _hash_long(source, start, at - start, word_masks)
            shingles[to] = _finalise(item, _swap_halves(item), final_masks)
            to += 1
            at += 1
        ends[doc + 1] = to
        is_normal[doc] = True
