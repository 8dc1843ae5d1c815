"""Exact k-nearest-neighbour search: posting lists for sets, blocks of all pairs for bits and vectors.

The best of a query are in one row of `best_values` and `best_rows`, the most similar first, ties by
row. The caller initialises them with a value that must be exceeded and with NOBODY.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.similarity import cosine, count_ones, nearness
from neardup.kernels.sorted_sets import weight_sums

# The first k times this many candidates are compared immediately, which raises the bound for the
# rest.
EAGER = 4
# The denominator of the share: the union (Jaccard), the query's items, the neighbour's, or those of
# the smaller set.
OF_UNION = np.int64(0)
OF_QUERY = np.int64(1)
OF_NEIGHBOUR = np.int64(2)
OF_SMALLER = np.int64(3)


@inner
def _enters(value, row, values, rows):
    """Whether a document is better than the worst of the current best."""
    last = values.size - 1
    return value > values[last] or (value == values[last] and row < rows[last])


@inner
def _enter(value, row, values, rows):
    """Insert a document among the best if it is good enough."""
    if not _enters(value, row, values, rows):
        return
    at = values.size - 1
    while at > 0 and (value > values[at - 1] or (value == values[at - 1] and row < rows[at - 1])):
        values[at] = values[at - 1]
        rows[at] = rows[at - 1]
        at -= 1
    values[at] = value
    rows[at] = row


@inner
def _whole(total, other, share):
    """The denominator of the share of a query and a document, by containment."""
    if share == OF_QUERY:
        return total
    return other if share == OF_NEIGHBOUR else min(total, other)


@inner
def _set_similarity(queries, docs, query, doc, share):
    smaller, larger = weight_sums(queries, query, docs, doc)
    return smaller / (
        larger if share == OF_UNION else _whole(queries.totals[query], docs.totals[doc], share)
    )


@inner
def _most(shared, total, other, share):
    """The largest possible similarity of a document that shares at most this much."""
    shared = min(shared, total, other)
    return shared / (total + other - shared if share == OF_UNION else _whole(total, other, share))


@inner
def _most_unseen(rest, total, share, slack):
    """The largest possible similarity of a document that shares none of the items scanned so far."""
    # A smaller set may be contained completely, so every list must be scanned.
    is_bounded = share != OF_NEIGHBOUR and share != OF_SMALLER
    return min(1.0, rest / total * slack) if is_bounded else np.inf


@kernel
def nearest_sets(queries, docs, walks, postings, own, span, rule, scratch, best_values, best_rows):
    """Find the best of some queries among weighted sets.

    The posting lists of a query are scanned, the rarest item first. A document that is in none of
    the lists so far shares at most the remaining weight; once that cannot beat the worst of the
    best, the scan ends, and the candidates found by then are compared exactly.

    queries      Bags
    docs         Bags
    walks        Walks                          of the queries
    postings     Postings                       of the documents
    own          int64[num_queries]             the document that a query is itself, or NOBODY
    span         (int64, int64)                 the queries to answer
    rule         (int64, float64)               OF_UNION or another share; the factor that raises bounds for rounding
    scratch      (int64[num_docs], float64[num_docs], int64[num_docs], int64[1])  the walk that met a document last;
                 what they shared; whom a walk met; the number of walks; zeros before the first call
    best_values  float64[span, k]               written
    best_rows    int64  [span, k]               written
    """
    share, slack = rule
    seen, shared, met, num_walks = scratch
    for query in range(span[0], span[1]):
        values = best_values[query - span[0]]
        rows = best_rows[query - span[0]]
        total = queries.totals[query]
        group = queries.groups[query]
        eager = EAGER * values.size
        num_met = 0
        num_walks[0] += 1
        walk = num_walks[0]
        rest = 0.0
        for at in range(walks.ends[query], walks.ends[query + 1]):
            rest += walks.weights[at]
        for at in range(walks.ends[query], walks.ends[query + 1]):
            bound = _most_unseen(rest, total, share, slack)
            if bound < values[-1]:
                break
            weight = walks.weights[at]
            is_over = False
            for index in range(postings.ends[walks.lists[at]], postings.ends[walks.lists[at] + 1]):
                doc = postings.members[index]
                if doc == own[query] or docs.groups[doc] != group:
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
                        _enter(_set_similarity(queries, docs, query, doc, share), doc, values, rows)
                    else:
                        met[num_met] = doc
                        num_met += 1
                shared[doc] += min(weight, postings.weights[index])
            if is_over:
                break
            rest -= weight
        for at in range(num_met):
            doc = met[at]
            most = _most(shared[doc] + rest, total, docs.totals[doc], share) * slack
            if _enters(most, doc, values, rows):
                _enter(_set_similarity(queries, docs, query, doc, share), doc, values, rows)


@kernel
def list_sets(
    queries, docs, walks, postings, own, span, rule, above, scratch, found_values, found_ends
):
    """List all documents above a similarity for some queries, in any order; return how many there are.

    Arguments as for `nearest_sets`, except

    above         float64                  a document must exceed it
    found_values  float64[room]            written as far as there is room
    found_ends    int64  [2, room]         query and document of each
    """
    share, slack = rule
    seen, shared, met, num_walks = scratch
    count = 0
    for query in range(span[0], span[1]):
        total = queries.totals[query]
        group = queries.groups[query]
        num_met = 0
        num_walks[0] += 1
        walk = num_walks[0]
        rest = 0.0
        for at in range(walks.ends[query], walks.ends[query + 1]):
            rest += walks.weights[at]
        for at in range(walks.ends[query], walks.ends[query + 1]):
            if _most_unseen(rest, total, share, slack) <= above:
                break
            weight = walks.weights[at]
            for index in range(postings.ends[walks.lists[at]], postings.ends[walks.lists[at] + 1]):
                doc = postings.members[index]
                if doc == own[query] or docs.groups[doc] != group:
                    continue
                if seen[doc] != walk:
                    seen[doc] = walk
                    shared[doc] = 0.0
                    met[num_met] = doc
                    num_met += 1
                shared[doc] += min(weight, postings.weights[index])
            rest -= weight
        for at in range(num_met):
            doc = met[at]
            if _most(shared[doc] + rest, total, docs.totals[doc], share) * slack <= above:
                continue
            value = _set_similarity(queries, docs, query, doc, share)
            if value > above:
                if count < found_values.size:
                    found_values[count] = value
                    found_ends[0, count] = query
                    found_ends[1, count] = doc
                count += 1
    return count


@kernel
def shared_items(queries, docs, ends, shared):
    """Sum the weights that queries and documents share.

    queries  Bags
    docs     Bags
    ends     int64  [2, num_pairs]  query and document of each pair
    shared   float64[num_pairs]     overwritten
    """
    for at in range(shared.size):
        shared[at] = weight_sums(queries, ends[0, at], docs, ends[1, at])[0]


@inner
def _most_differing(value, num_bits):
    """How many bits may differ at this similarity, plus one to allow for rounding."""
    return np.int64((1.0 - value) * num_bits) + 1


@kernel
def nearest_bits(queries, docs, num_bits, own, groups, span, doc_span, best_values, best_rows):
    """Compare some queries with a block of bit vectors.

    queries      uint64 [num_queries, num_words]
    docs         uint64 [num_words, num_docs]   transposed, so that many documents are counted at once
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
        values = best_values[query - span[0]]
        rows = best_rows[query - span[0]]
        most = _most_differing(values[-1], num_bits)
        differing[:] = 0
        for at in range(queries.shape[1]):
            word = queries[query, at]
            words = docs[at, doc_span[0] : doc_span[1]]
            for index in range(differing.size):
                differing[index] += count_ones(word ^ words[index])
        for index in range(differing.size):
            doc = doc_span[0] + index
            if (
                differing[index] <= most
                and doc != own[query]
                and groups[0][query] == groups[1][doc]
            ):
                _enter((num_bits - differing[index]) / num_bits, doc, values, rows)
                most = _most_differing(values[-1], num_bits)


@kernel
def nearest_vectors(
    products, queries, docs, own, groups, margin, span, first_doc, best_values, best_rows
):
    """Compare some queries with a block of vectors by angle; only possible neighbours are computed exactly.

    products     float32[span, block]           approximate cosines
    queries      (float64[num_queries, dimension], float64[num_queries])  vectors and their lengths
    docs         as queries
    own          int64  [num_queries]           the document that a query is itself, or NOBODY
    groups       (int64[num_queries], int64[num_docs])  only equal ones are compared
    margin       float64                        the error bound of a product
    span         (int64, int64)                 the queries to answer
    first_doc    int64                          the first document of the block
    best_values  float64[span, k]               written
    best_rows    int64  [span, k]               written
    """
    for query in range(span[0], span[1]):
        row = query - span[0]
        values = best_values[row]
        rows = best_rows[row]
        least = values[-1] - margin
        for column in range(products.shape[1]):
            if products[row, column] < least:
                continue
            doc = first_doc + column
            if doc != own[query] and groups[0][query] == groups[1][doc]:
                value = cosine(queries[0][query], docs[0][doc], queries[1][query] * docs[1][doc])
                _enter(value, doc, values, rows)
                least = values[-1] - margin


@inner
def _farthest(value):
    """The squared distance beyond which the similarity is below this one, raised to allow for rounding."""
    if value <= 0.0:
        return np.inf
    return (1.0 / value - 1.0 + 2e-15 / value) ** 2 * (1.0 + 1e-12)


@kernel
def nearest_points(
    products, queries, docs, own, groups, margin, span, first_doc, best_values, best_rows
):
    """Compare some queries with a block of vectors by their distance, as `nearest_vectors` does.

    products  float64[span, block]  approximate dot products
    queries   (float64[num_queries, dimension], float64[num_queries])  vectors and their lengths
    margin    float64               the relative error of a squared distance, to the square of the sum of both lengths
    """
    for query in range(span[0], span[1]):
        row = query - span[0]
        values = best_values[row]
        rows = best_rows[row]
        farthest = _farthest(values[-1])
        length = queries[1][query]
        for column in range(products.shape[1]):
            doc = first_doc + column
            other = docs[1][doc]
            rounding = margin * (length + other) ** 2
            # An overflow gives NaN, which never exceeds a bound, so the distance is computed
            # exactly.
            if length**2 + other**2 - 2.0 * products[row, column] - rounding > farthest:
                continue
            if doc != own[query] and groups[0][query] == groups[1][doc]:
                _enter(nearness(queries[0][query], docs[0][doc]), doc, values, rows)
                farthest = _farthest(values[-1])
