"""Projections of vectors on random lines, and digests of rows of words.

Sums always add the numbers of a vector in order, so the bytes are the same for any batch, while a BLAS matrix product
rounds differently depending on its shape.
"""

import numpy as np

from neardup.kernels.compilation import kernel
from neardup.kernels.mixing import fold_multiply

# Secrets of a digest: a mask and a factor for each half.
KEY_SIZE = 4


@kernel
def project(vectors, lines, projections):
    """Write the product of every vector with every line.

    vectors      float[num_docs, dimension]
    lines        float[dimension, num_lines]  of the same type
    projections  float[num_docs, num_lines]   written
    """
    dimension = vectors.shape[1]
    by_four = dimension - dimension % 4
    for doc in range(vectors.shape[0]):
        sums = projections[doc]
        sums[:] = 0
        for at in range(0, by_four, 4):  # four numbers per iteration save three of four loads of the sums
            first, second, third, fourth = vectors[doc, at : at + 4]
            one, two, three, four = lines[at], lines[at + 1], lines[at + 2], lines[at + 3]
            for line in range(sums.size):
                sums[line] = (
                    ((sums[line] + first * one[line]) + second * two[line]) + third * three[line]
                ) + fourth * four[line]
        for at in range(by_four, dimension):
            number, row = vectors[doc, at], lines[at]
            for line in range(sums.size):
                sums[line] += number * row[line]


@kernel
def digest_words(words, ends, key, digests):
    """Write a 128-bit digest of the words of every document, in their order.

    Equal digests count as equal documents, so a key prevents anyone from constructing other words with the same digest.

    words    uint64[num_words]     all documents end to end
    ends     int64 [num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    key      uint64[KEY_SIZE]      of kernels/keys.py
    digests  uint64[num_docs, 2]   written; equal words in equal order have equal digests
    """
    low_mask, low_factor, high_mask, high_factor = key[0], key[1], key[2], key[3]
    for doc in range(ends.size - 1):
        low = fold_multiply(np.uint64(ends[doc + 1] - ends[doc]) ^ low_mask, low_factor)
        high = fold_multiply(np.uint64(ends[doc + 1] - ends[doc]) ^ high_mask, high_factor)
        for at in range(ends[doc], ends[doc + 1]):
            low = fold_multiply(low ^ words[at] ^ low_mask, low_factor)
            high = fold_multiply(high ^ words[at] ^ high_mask, high_factor)
        digests[doc, 0], digests[doc, 1] = low, high
