"""Links of all pairs: every document of a block against every document of another one.

Vectors are compared by approximate products first. A product decides alone where it is farther from
the threshold than its error bound; otherwise the similarity does, as verification computes it. So the
links, and which documents are connected, do not depend on how products are computed.
"""

import numpy as np

from neardup.kernels.compilation import kernel, uncounted
from neardup.kernels.similarity import cosine, nearness, scratch_for, similarity_of
from neardup.kernels.union_find import find_root, join

# A sum of weights is added in another order than the sums of minima and maxima.
SLACK = 1.0 + 1e-9


@uncounted
def _may_pair(roles, only_against, doc, other):
    """Whether two documents are compared: those of a group, but not two reference documents.

    With `only_against` one of the two is a reference document.
    """
    groups, is_reference = roles
    if groups[doc] != groups[other]:
        return False
    if only_against:
        return is_reference[doc] != is_reference[other]
    return not (is_reference[doc] and is_reference[other])


@kernel
def join_vectors(products, docs, others, roles, only_against, threshold, margin, span, parents):
    """Join the vectors of two blocks whose cosine is at least the threshold.

    products      float32[span, num_others]    approximate cosines
    docs          (float64[num_docs, dimension], float64[num_docs])      vectors and their lengths
    others        as docs
    roles         (int64[num_docs + num_others], bool[num_docs + num_others])  groups, and the reference documents
    only_against  bool                         compare reference documents with the others alone
    threshold     float64
    margin        float64                      the error bound of a product
    span          (int64, int64, int64)        the documents to compare, and how many of them the first other one
                                               is compared with; each further one is compared with one more
    parents       int64[num_docs + num_others] a union-find forest of the documents, then the others
    """
    first, stop, below = span
    num_docs = docs[1].size
    least = threshold - margin
    sure = threshold + margin
    for doc in range(first, stop):
        for other in range(max(np.int64(0), doc - below + 1), others[1].size):
            product = products[doc - first, other]
            if product < least or not _may_pair(roles, only_against, doc, num_docs + other):
                continue
            if find_root(parents, doc) == find_root(parents, num_docs + other):
                continue
            if product >= sure:
                join(parents, doc, num_docs + other)
                continue
            value = cosine(docs[0][doc], others[0][other], docs[1][doc] * others[1][other])
            if value >= threshold:
                join(parents, doc, num_docs + other)


@kernel
def join_points(products, docs, others, roles, only_against, threshold, bounds, span, parents):
    """Join the vectors of two blocks whose distance is small enough; other arguments as for `join_vectors`.

    products  float64[span, num_others]    approximate dot products
    bounds    (float64, float64, float64)  the relative error of a squared distance, to the square of the sum of both
                                           lengths; the squared distances up to which two vectors are surely similar,
                                           and beyond which they are surely not
    """
    first, stop, below = span
    num_docs = docs[1].size
    margin, near, far = bounds
    for doc in range(first, stop):
        length = docs[1][doc]
        for other in range(max(np.int64(0), doc - below + 1), others[1].size):
            other_length = others[1][other]
            rounding = margin * (length + other_length) ** 2
            # An overflow gives NaN, which is on neither side of a bound.
            distance = length**2 + other_length**2 - 2.0 * products[doc - first, other]
            if distance - rounding > far:
                continue
            if not _may_pair(roles, only_against, doc, num_docs + other):
                continue
            if find_root(parents, doc) == find_root(parents, num_docs + other):
                continue
            if distance + rounding <= near or nearness(docs[0][doc], others[0][other]) >= threshold:
                join(parents, doc, num_docs + other)


@kernel
def join_items(items, totals, roles, only_against, threshold, span, parents):
    """Join the documents of two blocks by their exact similarity; other arguments as for `join_vectors`.

    items   Items                     of the documents, then of the others
    totals  float64[num_items]        the similarity of two documents is at most the ratio of theirs
    span    (int64, int64, int64, int64)  the documents to compare; how many of them the first other one is compared
                                      with; the position of the first other one
    """
    first, stop, below, num_docs = span
    scratch = scratch_for(items)
    for doc in range(first, stop):
        for other in range(num_docs + max(np.int64(0), doc - below + 1), totals.size):
            smaller = min(totals[doc], totals[other])
            if smaller * SLACK < threshold * max(totals[doc], totals[other]):
                continue
            if not _may_pair(roles, only_against, doc, other):
                continue
            if find_root(parents, doc) == find_root(parents, other):
                continue
            if similarity_of(items, scratch, doc, other, threshold) >= threshold:
                join(parents, doc, other)
