"""Bitmaps of sets: from a few words of each set, an upper bound of how many shingles two sets share.

Every shingle flips one bit of the bitmap of its set, chosen by its hash. A shingle of both sets
flips the same bit in both, so the bitmaps differ in at most as many bits as there are shingles in
only one of the sets: two sets whose bitmaps differ in more bits than the threshold allows shingles
are not similar. This is the bitmap filter of Sandes, Teodoro and Melo (2020), with bitmaps whose
width grows with the set; see docs/decisions/0035.

The bitmaps of a run stand end to end, each in as many words as `first_word` leaves between two
documents, so no offsets are stored.
"""

from typing import Any

import numpy as np

from neardup.kernels.bounds import least_overlap
from neardup.kernels.compilation import inner, kernel, uncounted
from neardup.kernels.similarity import count_ones

# Two bits per shingle: of sets with a Jaccard similarity of .75, below the threshold .8, 99 % are
# recognised.
SHINGLES_A_WORD = 32
# A bitmap uses a number of words with four leading binary digits, so that sets of about the same
# size often have bitmaps of the same width, and a query is seldom written again.
WIDTH_DIGITS = 4
# More than there are widths: 8 for each power of two.
NUM_WIDTHS = 512
NOT_WRITTEN = -1


def first_word(shingles_before: Any, doc: Any) -> Any:
    """Return the offset of the bitmap of a document: where that of the document before it ends."""
    return shingles_before // SHINGLES_A_WORD + doc


_first_word = uncounted(first_word)


@inner
def _used_width(num_words):
    """Return how many of the words are used, and the number of this width among all widths."""
    shift = 0
    while (num_words >> shift) >= (1 << WIDTH_DIGITS):
        shift += 1
    leading = num_words >> shift
    return leading << shift, (shift << (WIDTH_DIGITS - 1)) + leading


@inner
def _flip(words, first, width, shingles, start, stop):
    """Flip the bit of every shingle in words[first:first + width], which are zeros."""
    num_bits = np.uint64(width * 64)
    for at in range(start, stop):
        bit = ((shingles[at] >> np.uint64(32)) * num_bits) >> np.uint64(32)
        words[first + np.int64(bit >> np.uint64(6))] ^= np.uint64(1) << (bit & np.uint64(63))


@uncounted
def _is_over(own, own_first, bitmaps, first, width, most):
    """Whether two bitmaps differ in more than `most` bits."""
    one = own[own_first : own_first + width]
    other = bitmaps[first : first + width]
    differing = 0
    for at in range(width):
        differing += count_ones(one[at] ^ other[at])
    return differing > most


@inner
def _with_room(words, needed):
    """Return the words, with room for at least `needed`."""
    if needed <= words.size:
        return words
    grown = np.zeros(2 * needed, np.uint64)
    for at in range(words.size):
        grown[at] = words[at]
    return grown


@kernel
def write_bitmaps(sets, before, words):
    """Write the bitmaps of documents that follow others in a run.

    sets    Sets
    before  int64              shingles of the documents before them
    words   uint64[num_words]  zeros; first_word(before + num_shingles, num_docs) - first_word(before, 0)
    """
    shingles, ends = sets
    origin = _first_word(before, 0)
    for doc in range(ends.size - 1):
        first = _first_word(before + ends[doc], doc) - origin
        stop = _first_word(before + ends[doc + 1], doc + 1) - origin
        width, _ = _used_width(stop - first)
        _flip(words, first, width, shingles, ends[doc], ends[doc + 1])


@kernel
def mark_possible(shingles, ends, bitmaps, docs, threshold, is_possible):
    """Mark the documents that can be similar to a set according to their bitmaps.

    shingles     uint64 [size]          the set
    ends         int64  [num_docs + 1]  of the sets of a run; where it is damaged, documents are marked
    bitmaps      uint64 [num_words]     of the sets of the run
    docs         int64  [num_marked]
    threshold    float64                the least similarity, above 0
    is_possible  bool   [num_marked]    written
    """
    # The bitmaps of the set, one for each width that was needed.
    own = np.zeros(64, np.uint64)
    used = 0
    offsets = np.full(NUM_WIDTHS, NOT_WRITTEN, np.int64)
    last_size = np.int64(NOT_WRITTEN)
    most = np.int64(0)
    for at in range(docs.size):
        start, stop = ends[docs[at]], ends[docs[at] + 1]
        first, end = _first_word(start, docs[at]), _first_word(stop, docs[at] + 1)
        is_possible[at] = True
        if start < 0 or stop < start or end > bitmaps.size:
            continue
        width, number = _used_width(end - first)
        if offsets[number] == NOT_WRITTEN:
            own = _with_room(own, used + width)
            _flip(own, used, width, shingles, 0, shingles.size)
            offsets[number] = used
            used += width
        if stop - start != last_size:
            last_size = stop - start
            most = (
                shingles.size + last_size - 2 * least_overlap(shingles.size, last_size, threshold)
            )
        is_possible[at] = not _is_over(own, offsets[number], bitmaps, first, width, most)
