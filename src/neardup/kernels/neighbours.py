"""The nearest documents of each, exactly: walks of postings for sets, blocks of all pairs for bits and vectors.

The best of a query stand in one row of `best_values` and `best_rows`, the most similar first, ties by row. Whoever
calls fills them with a value that must be exceeded and with NOBODY.
"""

import numba
import numpy as np

NOBODY = -1
# So many times as many documents as are asked for are compared as soon as they are met; they set the bar for the rest.
EAGER = 4
# A cosine above this is 1, as in the verification.
NEARLY_ONE = 1.0 - 2.0**-48
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _enters(value, row, values, rows):
    """Whether a document is better than the last of the best."""
    last = values.size - 1
    return value > values[last] or (value == values[last] and row < rows[last])


@_inner
def _enter(value, row, values, rows):
    """Put a document in its place among the best, if it has one."""
    if not _enters(value, row, values, rows):
        return
    at = values.size - 1
    while at > 0 and (value > values[at - 1] or (value == values[at - 1] and row < rows[at - 1])):
        values[at], rows[at] = values[at - 1], rows[at - 1]
        at -= 1
    values[at], rows[at] = value, row


@_inner
def _shared(queries, docs, query, doc):
    """Sum of the smaller and sum of the larger weights, added in the order of the hashes."""
    hashes, weights, ends = queries[0], queries[1], queries[2]
    others, other_weights, other_ends = docs[0], docs[1], docs[2]
    here, end, there, other_end = ends[query], ends[query + 1], other_ends[doc], other_ends[doc + 1]
    smaller, larger = 0.0, 0.0
    while here < end and there < other_end:
        if hashes[here] < others[there]:
            larger += weights[here]
            here += 1
        elif others[there] < hashes[here]:
            larger += other_weights[there]
            there += 1
        else:
            smaller += min(weights[here], other_weights[there])
            larger += max(weights[here], other_weights[there])
            here += 1
            there += 1
    for at in range(here, end):
        larger += weights[at]
    for at in range(there, other_end):
        larger += other_weights[at]
    return smaller, larger


@_inner
def _set_similarity(queries, docs, query, doc, is_containment):
    smaller, larger = _shared(queries, docs, query, doc)
    if is_containment:
        return smaller / min(queries[3][query], docs[3][doc])
    return smaller / larger


@_inner
def _most(shared, total, other, is_containment):
    """The largest similarity that a document with so much shared at most can have."""
    shared = min(shared, total, other)
    return shared / min(total, other) if is_containment else shared / (total + other - shared)


@numba.njit(cache=True, nogil=True)
def nearest_sets(queries, docs, walks, lists, own, span, rule, scratch, best_values, best_rows):
    """Find the best of some queries among weighted sets.

    The lists of a query's items are walked, the rarest item first. Who was not met before a list shares no more than
    what remains; where that cannot beat the last of the best, the walk ends. Whom it met by then is looked at again.

    queries      (uint64[], float64[], int64[num_queries + 1], float64[num_queries], int64[num_queries])
                 items in the order of their hashes, weights, ends, sums of weights, groups
    docs         as queries
    walks        (int64[], float64[], int64[num_queries + 1])  lists of every query, the shortest first; weights; ends
    lists        (int64[num_lists + 1], int64[], float64[])    ends; documents, ascending in each list; weights
    own          int64[num_queries]             the document that a query is itself, or NOBODY
    span         (int64, int64)                 the queries to answer
    rule         (bool, float64)                whether by containment; what a bound is raised by for rounding
    scratch      (int64[num_docs], float64[num_docs], int64[num_docs], int64[1])  the walk that met a document last;
                 what they shared; whom a walk met; the number of walks; zeros before the first call
    best_values  float64[span, k]               written
    best_rows    int64  [span, k]               written
    """
    is_containment, slack = rule
    seen, shared, met, num_walks = scratch
    for query in range(span[0], span[1]):
        values, rows = best_values[query - span[0]], best_rows[query - span[0]]
        total, group, eager, num_met = queries[3][query], queries[4][query], EAGER * values.size, 0
        num_walks[0] += 1
        walk, rest = num_walks[0], 0.0
        for at in range(walks[2][query], walks[2][query + 1]):
            rest += walks[1][at]
        for at in range(walks[2][query], walks[2][query + 1]):
            # A smaller set may be contained whole, so by containment every list is walked.
            bound = np.inf if is_containment else min(1.0, rest / total * slack)
            if bound < values[-1]:
                break
            weight, is_over = walks[1][at], False
            for place in range(lists[0][walks[0][at]], lists[0][walks[0][at] + 1]):
                doc = lists[1][place]
                if doc == own[query] or docs[4][doc] != group:
                    continue
                if bound <= values[-1] and doc > rows[-1]:
                    is_over = True
                    break
                if seen[doc] != walk:
                    seen[doc] = walk
                    shared[doc] = 0.0
                    if eager > 0:
                        eager -= 1
                        shared[doc] = -np.inf
                        _enter(_set_similarity(queries, docs, query, doc, is_containment), doc, values, rows)
                    else:
                        met[num_met] = doc
                        num_met += 1
                shared[doc] += min(weight, lists[2][place])
            if is_over:
                break
            rest -= weight
        for at in range(num_met):
            doc = met[at]
            most = _most(shared[doc] + rest, total, docs[3][doc], is_containment) * slack
            if _enters(most, doc, values, rows):
                _enter(_set_similarity(queries, docs, query, doc, is_containment), doc, values, rows)


@_inner
def _count_ones(word):
    """Add neighbours of 1, 2 and 4 bits, then all bytes at once by a product; LLVM makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_inner
def _most_differing(value, num_bits):
    """How many bits may differ for a similarity of this, and one for what rounding may hide."""
    return np.int64((1.0 - value) * num_bits) + 1


@numba.njit(cache=True, nogil=True)
def nearest_bits(queries, docs, num_bits, own, groups, span, doc_span, best_values, best_rows):
    """Compare some queries with a block of bit vectors.

    queries      uint64 [num_queries, num_words]
    docs         uint64 [num_words, num_docs]   word by word, so that many documents are counted at once
    num_bits     int64
    own          int64  [num_queries]           the document that a query is itself, or NOBODY
    groups       (int64[num_queries], int64[num_docs])  only equal ones are compared
    span         (int64, int64)                 the queries to answer
    doc_span     (int64, int64)                 the documents to compare them with
    best_values  float64[span, k]               written
    best_rows    int64  [span, k]               written
    """
    differing = np.empty(doc_span[1] - doc_span[0], np.int64)
    for query in range(span[0], span[1]):
        values, rows = best_values[query - span[0]], best_rows[query - span[0]]
        most = _most_differing(values[-1], num_bits)
        differing[:] = 0
        for at in range(queries.shape[1]):
            word, words = queries[query, at], docs[at, doc_span[0] : doc_span[1]]
            for place in range(differing.size):
                differing[place] += _count_ones(word ^ words[place])
        for place in range(differing.size):
            doc = doc_span[0] + place
            if differing[place] <= most and doc != own[query] and groups[0][query] == groups[1][doc]:
                _enter((num_bits - differing[place]) / num_bits, doc, values, rows)
                most = _most_differing(values[-1], num_bits)


@_inner
def _dot(one, two):
    """Sum of the products in the order of the verification, so that it gives the same number."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for at in range(0, one.size - 3, 4):
        first += one[at] * two[at]
        second += one[at + 1] * two[at + 1]
        third += one[at + 2] * two[at + 2]
        fourth += one[at + 3] * two[at + 3]
    for at in range(one.size - one.size % 4, one.size):
        first += one[at] * two[at]
    return (first + second) + (third + fourth)


@numba.njit(cache=True, nogil=True)
def nearest_vectors(products, queries, docs, own, groups, margin, span, first_doc, best_values, best_rows):
    """Compare some queries with a block of vectors by their angle; only those that may be near are computed exactly.

    products     float32[span, block]           cosines, about
    queries      (float64[num_queries, dimension], float64[num_queries])  vectors and their lengths
    docs         as queries
    own          int64  [num_queries]           the document that a query is itself, or NOBODY
    groups       (int64[num_queries], int64[num_docs])  only equal ones are compared
    margin       float64                        what a product may be too small by
    span         (int64, int64)                 the queries to answer
    first_doc    int64                          the first document of the block
    best_values  float64[span, k]               written
    best_rows    int64  [span, k]               written
    """
    for query in range(span[0], span[1]):
        row = query - span[0]
        values, rows = best_values[row], best_rows[row]
        least = values[-1] - margin
        for column in range(products.shape[1]):
            if products[row, column] < least:
                continue
            doc = first_doc + column
            if doc != own[query] and groups[0][query] == groups[1][doc]:
                value = _dot(queries[0][query], docs[0][doc]) / (queries[1][query] * docs[1][doc])
                _enter(1.0 if value > NEARLY_ONE else max(0.0, value), doc, values, rows)
                least = values[-1] - margin


@_inner
def _squared(one, two):
    """Squared distance in the order of the verification, so that it gives the same number."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for at in range(0, one.size - 3, 4):
        first += (one[at] - two[at]) * (one[at] - two[at])
        second += (one[at + 1] - two[at + 1]) * (one[at + 1] - two[at + 1])
        third += (one[at + 2] - two[at + 2]) * (one[at + 2] - two[at + 2])
        fourth += (one[at + 3] - two[at + 3]) * (one[at + 3] - two[at + 3])
    for at in range(one.size - one.size % 4, one.size):
        first += (one[at] - two[at]) * (one[at] - two[at])
    return (first + second) + (third + fourth)


@_inner
def _farthest(value):
    """The squared distance from which a similarity is below this one, raised by what rounding may hide."""
    if value <= 0.0:
        return np.inf
    return (1.0 / value - 1.0 + 2e-15 / value) ** 2 * (1.0 + 1e-12)


@numba.njit(cache=True, nogil=True)
def nearest_points(products, queries, docs, own, groups, margin, span, first_doc, best_values, best_rows):
    """Compare some queries with a block of vectors by their distance, as `nearest_vectors` does.

    products  float64[span, block]  products of the vectors, about
    queries   (float64[num_queries, dimension], float64[num_queries])  vectors and their lengths
    margin    float64               what a squared distance may be off by, in squares of the sum of both lengths
    """
    for query in range(span[0], span[1]):
        row = query - span[0]
        values, rows = best_values[row], best_rows[row]
        farthest, length = _farthest(values[-1]), queries[1][query]
        for column in range(products.shape[1]):
            doc = first_doc + column
            other = docs[1][doc]
            rounding = margin * (length + other) ** 2
            # What overflows is no number, which is never beyond: it is computed.
            if length**2 + other**2 - 2.0 * products[row, column] - rounding > farthest:
                continue
            if doc != own[query] and groups[0][query] == groups[1][doc]:
                distance = np.sqrt(_squared(queries[0][query], docs[0][doc]))
                _enter(1.0 / (1.0 + distance), doc, values, rows)
                farthest = _farthest(values[-1])
