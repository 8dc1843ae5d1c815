"""Winnowing: anchors of a stream of words, such that equal windows of words have the same anchor.

A *gram* is a few consecutive words. The anchor of a window is its gram with the smallest hash, the
rightmost one of equal hashes: it depends on the words of the window alone, so that every window
that stands at several positions has an anchor in each, at the same distance from its start. Neighbouring windows
mostly share their anchor: two of (number of grams in a window + 1) grams are anchors.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.folding import ZERO
from neardup.kernels.shingle import finalise, power_of, swap_halves, unpack_secrets


@inner
def _hash_grams(words, first, last, size, key, grams):
    """Write the hash of every run of `size` words of words[first:last]."""
    _, final_masks, (base, swapped_base) = unpack_secrets(key)
    oldest_power = power_of(base, size)
    oldest_swapped_power = power_of(swapped_base, size)
    rolling = ZERO
    swapped = ZERO
    to = 0
    for at in range(first, last):
        word = words[at]
        oldest = words[at - size] if at - first >= size else ZERO
        rolling = rolling * base + (word - oldest * oldest_power)
        swapped = swapped * swapped_base + (
            swap_halves(word) - swap_halves(oldest) * oldest_swapped_power
        )
        if at - first >= size - 1:
            grams[to] = finalise(rolling, swapped, final_masks)
            to += 1


@kernel
def winnow(words, ends, key, size, window, salts, anchors, anchor_ends):
    """Write the anchors of every document, in order.

    words        uint64[num_words]     hashes of words, all documents end to end
    ends         int64 [num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    key          uint64[KEY_SIZE]      of kernels/keys.py
    size         int64                 words in a gram
    window       int64                 grams in a window of words
    salts        uint64[num_docs]      of the groups of documents: other groups have other keys
    anchors      (keys, positions, befores, counts), room for an anchor per word:
        keys       uint64  written; the hash of the gram
        positions  int32   written; its first word in the document
        befores    int32   written; the words from the first window with this anchor to the gram
        counts     int32   written; the windows with this anchor, which follow each other
    anchor_ends  int64 [num_docs + 1]  written; document d owns keys[anchor_ends[d]:anchor_ends[d + 1]]
    """
    keys, positions, befores, counts = anchors
    longest = 0
    for doc in range(ends.size - 1):
        longest = max(longest, ends[doc + 1] - ends[doc])
    grams = np.empty(longest + 1, np.uint64)
    to = 0
    anchor_ends[0] = 0
    for doc in range(ends.size - 1):
        num_grams = ends[doc + 1] - ends[doc] - size + 1
        if num_grams >= window:
            _hash_grams(words, ends[doc], ends[doc + 1], size, key, grams)
            best = 0
            last = -1
            for gram in range(num_grams):
                if gram - best >= window:
                    best = gram - window + 1
                    for other in range(best + 1, gram + 1):
                        if grams[other] <= grams[best]:
                            best = other
                elif grams[gram] <= grams[best]:
                    best = gram
                start = gram - window + 1
                if start < 0:
                    continue
                if best == last:
                    counts[to - 1] += 1
                    continue
                keys[to] = grams[best] ^ salts[doc]
                positions[to] = best
                befores[to] = best - start
                counts[to] = 1
                to += 1
                last = best
        anchor_ends[doc + 1] = to
