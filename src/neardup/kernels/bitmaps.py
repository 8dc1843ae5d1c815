"""Bitmaps of sets: from a few words of each set, an upper bound of how many shingles two sets share.

Every shingle flips one bit of the bitmap of its set, chosen by its hash. A shingle of both sets flips the same bit in
both, so the bitmaps differ in at most as many bits as there are shingles in only one of the sets: two sets whose
bitmaps differ in more bits than the threshold allows shingles are not similar. This is the bitmap filter of Sandes,
Teodoro and Melo (2020), with bitmaps whose width grows with the set; see docs/decisions/0035.

The bitmaps of all documents stand end to end: the set of document d, with the shingles [start, stop) of its run, has
the words [start // SHINGLES_A_WORD + d, stop // SHINGLES_A_WORD + d + 1), so no offsets are stored.
"""

import numpy as np

from neardup.kernels.bounds import least_overlap
from neardup.kernels.compilation import inner, kernel, uncounted
from neardup.kernels.similarity import count_ones

# Two bits per shingle: of sets with a Jaccard similarity of .75, below the threshold .8, 99 % are recognised.
SHINGLES_A_WORD = 32
# A bitmap uses a number of words with four leading binary digits, so that sets of about the same size often have
# bitmaps of the same width, and a query is seldom written again.
WIDTH_DIGITS = 4
# More than there are widths: 8 for each power of two.
NUM_WIDTHS = 512
NOT_WRITTEN = -1


def num_words(num_docs, before, num_shingles):
    """Return how many words the bitmaps of documents have that follow others with `before` shingles."""
    return (before + num_shingles) // SHINGLES_A_WORD - before // SHINGLES_A_WORD + num_docs


def bitmaps_between(starts, stops, docs):
    """Return the first words of bitmaps, and those after their last, for arrays or numbers."""
    return starts // SHINGLES_A_WORD + docs, stops // SHINGLES_A_WORD + docs + 1


_words_of = uncounted(bitmaps_between)


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
    """Return the words with at least `needed` places."""
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
    words   uint64[num_words]  zeros; as many as `num_words` says
    """
    shingles, ends = sets
    origin = before // SHINGLES_A_WORD
    for doc in range(ends.size - 1):
        first, stop = _words_of(before + ends[doc], before + ends[doc + 1], doc)
        width, _ = _used_width(stop - first)
        _flip(words, first - origin, width, shingles, ends[doc], ends[doc + 1])


@kernel
def mark_possible(sets, ends, bitmaps, queries, docs, threshold, is_possible):
    """Mark the pairs that can be similar according to their bitmaps; pairs of one query stand together.

    sets           Sets                of the queries
    ends           int64 [num_docs+1]  of the sets of the documents; a damaged one marks the pair as possible
    bitmaps        uint64[num_words]   of the documents
    queries, docs  int64 [num_pairs]   a query and a document each
    threshold      float64             the least similarity, above 0
    is_possible    bool  [num_pairs]   written
    """
    shingles, query_ends = sets
    # The bitmaps of the current query, one for each width that was needed.
    own = np.zeros(64, np.uint64)
    places = np.full(NUM_WIDTHS, NOT_WRITTEN, np.int64)
    used, most, last_size = 0, np.int64(0), NOT_WRITTEN
    for at in range(queries.size):
        query, doc = queries[at], docs[at]
        if at > 0 and query != queries[at - 1]:
            own[:used] = np.uint64(0)
            places[:] = NOT_WRITTEN
            used, last_size = 0, NOT_WRITTEN
        start, stop = ends[doc], ends[doc + 1]
        first, end = _words_of(start, stop, doc)
        is_possible[at] = True
        if start < 0 or stop < start or end > bitmaps.size:
            continue
        width, number = _used_width(end - first)
        query_start, query_stop = query_ends[query], query_ends[query + 1]
        if places[number] == NOT_WRITTEN:
            own = _with_room(own, used + width)
            _flip(own, used, width, shingles, query_start, query_stop)
            places[number] = used
            used += width
        size = stop - start
        if size != last_size:
            query_size = query_stop - query_start
            most = query_size + size - 2 * least_overlap(query_size, size, threshold)
            last_size = size
        is_possible[at] = not _is_over(own, places[number], bitmaps, first, width, most)
