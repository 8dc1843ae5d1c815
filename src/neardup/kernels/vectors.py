"""Projections of vectors on random lines.

Sums always add the numbers of a vector in order, so the bytes are the same for any batch, while a
BLAS matrix product rounds differently depending on its shape.
"""

from neardup.kernels.compilation import kernel


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
        # Four numbers per iteration save three of four loads of the sums.
        for at in range(0, by_four, 4):
            first, second, third, fourth = vectors[doc, at : at + 4]
            one = lines[at]
            two = lines[at + 1]
            three = lines[at + 2]
            four = lines[at + 3]
            for line in range(sums.size):
                sums[line] = (
                    ((sums[line] + first * one[line]) + second * two[line]) + third * three[line]
                ) + fourth * four[line]
        for at in range(by_four, dimension):
            number = vectors[doc, at]
            row = lines[at]
            for line in range(sums.size):
                sums[line] += number * row[line]
