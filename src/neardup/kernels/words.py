"""The words of texts as a stream: their hashes, and where each stands in the text.

The hashes are those that shingle.py combines into shingles. Where words stand is only asked of the
few documents with repeated passages, so that `hash_words`, which reads all, does not track it.
"""

import numpy as np

from neardup.kernels.bits import BLOCK, fold_ascii_block, trailing_zeros
from neardup.kernels.compilation import kernel
from neardup.kernels.folding import (
    INVISIBLE,
    KIND_MASK,
    SINGLE,
    WORD,
    ZERO,
    decode,
    fold_document,
)
from neardup.kernels.shingle import (
    SHORT,
    SPAN,
    find_edges,
    hash_long,
    hash_short,
    is_number,
    unpack_secrets,
)


@kernel
def hash_words(source, offsets, table, key, fold_numbers, words, ends, is_normal):
    """Write the hash of every word, all documents end to end.

    source        uint8 [num_bytes]     UTF-8 texts; nothing outside source[offsets[0]:offsets[-1]] is used
    offsets       int64 [num_docs + 1]  document d is source[offsets[d]:offsets[d + 1]]
    table         (index, entries, combining_index, combining) of kernels/unicode.py
    key           uint64[KEY_SIZE]      of kernels/keys.py
    fold_numbers  bool                  every word of digits alone is the same word
    words         uint64[...]           written; room for half a word per byte, and one more per document
    ends          int64 [num_docs + 1]  written; document d owns words[ends[d]:ends[d + 1]]
    is_normal     bool  [num_docs]      written; False where the text may not be in normal form C
    """
    longest = 0
    for doc in range(offsets.size - 1):
        longest = max(longest, offsets[doc + 1] - offsets[doc])
    folded = np.empty(2 * longest + 3 * BLOCK, np.uint8)
    mask = np.empty((longest >> 5) + 4, np.uint64)
    edge = np.zeros(BLOCK, np.uint8)
    edges = np.empty(SPAN * BLOCK + 16, np.uint64)
    masks, _, _ = unpack_secrets(key)
    one = np.uint64(1)
    to = np.uint64(0)
    ends[0] = 0
    for doc in range(offsets.size - 1):
        length, normal = fold_document(
            source, offsets[doc], offsets[doc + 1], table, edge, folded, mask
        )
        is_normal[doc] = normal
        num_blocks = (length + 63) >> 6
        in_word = ZERO
        num_edges = ZERO
        for block in range(0, num_blocks, SPAN):
            stop = min(block + SPAN, num_blocks)
            num_edges, in_word = find_edges(mask, block, stop, in_word, edges, num_edges)
            if stop == num_blocks and in_word:
                edges[num_edges] = np.uint64(length)
                num_edges += one
            num_words = num_edges >> one
            for at in range(num_words):
                start, end = np.int64(edges[at << one]), np.int64(edges[(at << one) | one])
                if fold_numbers and is_number(folded, start, end, table):
                    folded[start] = 48
                    end = start + 1
                # Branch here, because passing an array through another function costs as much as
                # the hash.
                if end - start <= SHORT:
                    words[to] = hash_short(folded, start, end - start, key, masks)
                else:
                    words[to] = hash_long(folded, start, end - start, masks)
                to += one
            if num_edges & one:  # a word that continues in the next span is hashed there
                edges[0] = edges[num_edges - one]
            num_edges &= one
        ends[doc + 1] = np.int64(to)


@kernel
def locate_words(source, offsets, table, edges, ends):
    """Write where every word of `hash_words` stands: its first byte in the document, and the byte behind it.

    source   uint8 [num_bytes]     UTF-8 texts
    offsets  int64 [num_docs + 1]  document d is source[offsets[d]:offsets[d + 1]]
    table    (index, entries, combining_index, combining) of kernels/unicode.py
    edges    int64 [...]           written: both bytes of each word in turn; room for one a byte, two more a document
    ends     int64 [num_docs + 1]  written; document d owns the words from ends[d] to ends[d + 1]
    """
    index, entries, _, _ = table
    folded = np.empty(BLOCK, np.uint8)
    one = np.uint64(1)
    to = 0
    ends[0] = 0
    for doc in range(offsets.size - 1):
        first = offsets[doc]
        end = offsets[doc + 1]
        at = first
        word_end = at
        in_word = False
        while at < end:
            if at + BLOCK <= end:
                words, above = fold_ascii_block(source, at, folded, 0)
                if not above:
                    turns = words ^ ((words << one) | np.uint64(in_word))
                    if in_word and turns & one:  # it ended before invisible characters
                        edges[to] = word_end - first
                        turns &= turns - one
                        to += 1
                    while turns:
                        edges[to] = at - first + np.int64(trailing_zeros(turns))
                        turns &= turns - one
                        to += 1
                    in_word = (words >> np.uint64(63)) != ZERO
                    at += BLOCK
                    word_end = at
                    continue
            stop = min(at + BLOCK, end)
            while at < stop:
                point = np.int64(source[at])
                width = 1
                if point >= 0x80:
                    point, width = decode(source, at, end)
                entry = entries[(np.int64(index[point >> 8]) << 8) + (point & 255)]
                kind = entry & KIND_MASK
                if entry & INVISIBLE:
                    at += width
                    continue
                if in_word != (kind == WORD):
                    edges[to] = (word_end if in_word else at) - first
                    to += 1
                if kind == SINGLE:
                    edges[to] = at - first
                    edges[to + 1] = at + width - first
                    to += 2
                in_word = kind == WORD
                at += width
                word_end = at
        if in_word:
            edges[to] = word_end - first
            to += 1
        ends[doc + 1] = to >> 1


@kernel
def count_before(source, offsets, bounds, ends, points, lines):
    """Count the code points and the line ends before bytes of documents.

    source   uint8[num_bytes]     UTF-8 texts
    offsets  int64[num_docs + 1]  document d is source[offsets[d]:offsets[d + 1]]
    bounds   int64[num_bounds]    bytes of documents, ascending within each
    ends     int64[num_docs + 1]  document d owns bounds[ends[d]:ends[d + 1]]
    points   int64[num_bounds]    written; the code points before each
    lines    int64[num_bounds]    written; the line ends before each
    """
    for doc in range(offsets.size - 1):
        at = offsets[doc]
        num_points = 0
        num_lines = 0
        for bound in range(ends[doc], ends[doc + 1]):
            stop = offsets[doc] + bounds[bound]
            while at < stop:
                byte = source[at]
                num_points += (byte & 0xC0) != 0x80
                num_lines += byte == 10
                at += 1
            points[bound] = num_points
            lines[bound] = num_lines


@kernel
def gather_bytes(source, starts, ends, gathered):
    """Copy pieces of a buffer, end to end.

    source    uint8[...]           copied from
    starts    int64[num_pieces]    where each piece begins
    ends      int64[num_pieces + 1]  piece p is gathered[ends[p]:ends[p + 1]]
    gathered  uint8[ends[-1]]      written
    """
    for piece in range(starts.size):
        shift = starts[piece] - ends[piece]
        for at in range(ends[piece], ends[piece + 1]):
            gathered[at] = source[at + shift]
