"""Look up band keys in the sorted postings of an index, and compare queries with the documents found.

The files of an index may be damaged, so every number that is read from them is checked before use.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel, uncounted
from neardup.kernels.similarity import agreement, count_ones, passes, scratch_for, similarity_of

# A directory of one entry uses no bits; the shift would be 64, which is undefined.
WHOLE = 64
# With more words of marks per document than this, documents are sorted instead: it takes as long as
# reading 64 words.
WORDS_A_DOC = 64


@inner
def _first_at(keys, low, high, key):
    """Return the first index from low to high whose key is at least `key`."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _part_of(directory, bits, key):
    """Return the range of postings that may contain a key."""
    if bits > 0:
        part = np.int64(key >> np.uint64(WHOLE - bits))
    else:
        part = np.int64(0)
    return directory[part], directory[part + 1]


@inner
def _bits_of(directory):
    """Return how many leading bits of a key a directory uses."""
    bits = 0
    while (1 << bits) < directory.size - 1:
        bits += 1
    return bits


@inner
def _postings_of(key, keys, directory, bits):
    """Return where the postings with a key begin and end; (0, -1) if the directory leads outside them."""
    low, high = _part_of(directory, bits, key)
    if low < 0 or high < low or high > keys.size:
        return 0, -1
    first = _first_at(keys, low, high, key)
    last = first
    while last < high and keys[last] == key:
        last += 1
    return first, last


@uncounted
def _doc_at(docs, sizes, at):
    """Return the document of a posting; -1 if there is none that could have it."""
    doc = np.int64(docs[at])
    return doc if doc < sizes.size and sizes[doc] > 0 else np.int64(-1)


@inner
def _grown(numbers):
    more = np.empty(2 * numbers.size, np.int64)
    for at in range(numbers.size):
        more[at] = numbers[at]
    return more


@uncounted
def _is_within(size, other, threshold):
    """Whether two sets of these sizes can be similar; always true for a threshold of 0."""
    if threshold > 0.0:
        return min(size, other) / max(size, other) >= threshold
    return True


@inner
def _with_room(numbers, used, needed):
    """Return the numbers, of which some are used, with room for at least `needed`."""
    if needed <= numbers.size:
        return numbers
    more = np.empty(2 * needed, np.int64)
    more[:used] = numbers[:used]
    return more


@uncounted
def _collect(docs, sizes, size, threshold, met, count):
    """Write the documents of postings whose size is similar after met[:count].

    Returns how many are written by then, and whether all postings are valid.
    """
    is_sound = True
    last_size = np.int64(-1)
    is_within = False
    for at in range(docs.size):
        doc = _doc_at(docs, sizes, at)
        if doc < 0:
            is_sound = False
            continue
        if sizes[doc] != last_size:
            last_size = sizes[doc]
            is_within = _is_within(size, last_size, threshold)
        met[count] = doc
        count += is_within
    return count, is_sound


@inner
def _append_distinct(met, count, query, found):
    """Append the distinct ones of met[:count] as pairs with the query; return the grown columns and their length."""
    queries, docs, to = found
    met[:count].sort()
    for at in range(count):
        if at > 0 and met[at] == met[at - 1]:
            continue
        if to == queries.size:
            queries = _grown(queries)
            docs = _grown(docs)
        queries[to] = query
        docs[to] = met[at]
        to += 1
    return queries, docs, to


@uncounted
def _sort_marked(met, marks, docs):
    """Write the distinct ones of the documents `met` to `docs`, ascending; return their number.

    Every document marks a bit, so it takes linear time. marks: a bit per document, zeros before and
    after.
    """
    low, high = marks.size, np.int64(-1)
    for at in range(met.size):
        word = met[at] >> 6
        marks[word] |= np.uint64(1) << np.uint64(met[at] & 63)
        low, high = min(low, word), max(high, word)
    to = 0
    for word in range(low, high + 1):
        rest = marks[word]
        marks[word] = np.uint64(0)
        while rest != np.uint64(0):
            lowest = rest & (~rest + np.uint64(1))
            docs[to] = (word << 6) + count_ones(lowest - np.uint64(1))
            to += 1
            rest ^= lowest
    return to


@inner
def _append_marked(met, count, query, found, marks):
    """Like `_append_distinct`, for many documents."""
    queries, docs, to = found
    queries = _with_room(queries, to, to + count)
    docs = _with_room(docs, to, to + count)
    num_distinct = _sort_marked(met[:count], marks, docs[to:])
    queries[to : to + num_distinct] = query
    return queries, docs, to + num_distinct


@kernel
def find_postings(asked, keys, directory, firsts, lasts):
    """Find where the postings of each key begin and end: [firsts[k], lasts[k]); empty if the directory is damaged.

    asked      uint64[num_asked]
    keys       uint64[num_postings]  ascending
    directory  int64 [2**bits + 1]   as for `look_up`
    firsts     int64 [num_asked]     written
    lasts      int64 [num_asked]     written
    """
    bits = _bits_of(directory)
    for at in range(asked.size):
        firsts[at], lasts[at] = _postings_of(asked[at], keys, directory, bits)


@kernel
def look_up(query_keys, query_sizes, keys, docs, directory, sizes, threshold, begin, enough):
    """Find documents that share a bucket with each query, in order, from the query `begin` on.

    query_keys   uint64[num_queries, bands]
    query_sizes  int64 [num_queries]        0 for a query that is similar to nothing
    keys         uint64[num_postings]       ascending
    docs         uint32[num_postings]       the document of each posting
    directory    int64 [2**bits + 1]        postings whose key begins with the bits b are [directory[b], directory[b+1])
    sizes        int64 [num_docs]           of the sets
    threshold    float64                    minimum ratio of two sizes; 0 where sizes do not matter
    begin        int64                      the first query
    enough       int64                      pairs after which no other query is begun

    Returns queries, documents, the first query that was not looked up, and whether all postings are
    valid.
    """
    bits = _bits_of(directory)
    found = (np.empty(64, np.int64), np.empty(64, np.int64), 0)
    met = np.empty(64, np.int64)
    marks = np.empty(0, np.uint64)
    is_sound = True
    query = begin
    while query < query_keys.shape[0] and found[2] < enough:
        count = 0
        for band in range(query_keys.shape[1] if query_sizes[query] > 0 else 0):
            first, last = _postings_of(query_keys[query, band], keys, directory, bits)
            if last < first:
                is_sound = False
                continue
            met = _with_room(met, count, count + last - first)
            count, is_valid = _collect(
                docs[first:last], sizes, query_sizes[query], threshold, met, count
            )
            is_sound = is_sound and is_valid
        num_words = (sizes.size + 63) >> 6
        if count * WORDS_A_DOC < num_words or count < WORDS_A_DOC:
            found = _append_distinct(met, count, query, found)
        else:
            if marks.size == 0:
                marks = np.zeros(num_words, np.uint64)
            found = _append_marked(met, count, query, found, marks)
        query += 1
    return found[0][: found[2]], found[1][: found[2]], query, is_sound


@kernel
def mark_agreeing(query_signatures, signatures, queries, docs, min_agreement, is_agreeing):
    """Mark the pairs that pass the signature filter of sets, so that only their items are read.

    query_signatures  uint32[num_queries, num_perm]
    signatures        uint32[num_docs, num_perm]
    queries, docs     int64 [num_pairs]              a query and a document each
    min_agreement     int64
    is_agreeing       bool  [num_pairs]              written
    """
    for at in range(queries.size):
        is_agreeing[at] = (
            agreement(query_signatures[queries[at]], signatures[docs[at]]) >= min_agreement
        )


@kernel
def scan(query_keys, query_sizes, keys, sizes, threshold):
    """Like `look_up`, for a few documents with unsorted keys; return (queries, documents).

    query_keys   uint64[num_queries, bands]
    query_sizes  int64 [num_queries]
    keys         uint64[num_docs, bands]
    sizes        int64 [num_docs]
    threshold    float64
    """
    found = (np.empty(64, np.int64), np.empty(64, np.int64), 0)
    met = np.empty(keys.shape[0], np.int64)
    for query in range(query_keys.shape[0]):
        count = 0
        for doc in range(keys.shape[0] if query_sizes[query] > 0 else 0):
            shared = 0
            for band in range(keys.shape[1]):  # without a branch, so that many are compared at once
                shared += keys[doc, band] == query_keys[query, band]
            if (
                shared > 0
                and sizes[doc] > 0
                and _is_within(query_sizes[query], sizes[doc], threshold)
            ):
                met[count] = doc
                count += 1
        found = _append_distinct(met, count, query, found)
    return found[0][: found[2]], found[1][: found[2]]


@kernel
def count_shared(sets, keys, docs, directory, sizes, threshold):
    """Count the shingles that sets share with documents, if they are at least `threshold` of the smaller of the two.

    sets       Sets
    keys       uint64[num_postings]  the shingles of all documents, ascending
    docs       uint32[num_postings]  the document of each posting
    directory  int64 [2**bits + 1]   as for `look_up`
    sizes      int64 [num_docs]      of the documents
    threshold  float64               above 0

    Returns (sets, documents, shared shingles), and whether all postings are valid.
    """
    bits = _bits_of(directory)
    owners = np.empty(64, np.int64)
    met = np.empty(64, np.int64)
    shared = np.empty(64, np.int64)
    total = 0
    counts = np.zeros(sizes.size, np.int64)
    touched = np.empty(64, np.int64)
    is_sound = True
    for owner in range(sets.ends.size - 1):
        count = 0
        size = sets.ends[owner + 1] - sets.ends[owner]
        for item in range(sets.ends[owner], sets.ends[owner + 1]):
            first, last = _postings_of(sets.shingles[item], keys, directory, bits)
            is_sound = is_sound and last >= 0
            for at in range(first, last):
                doc = _doc_at(docs, sizes, at)
                is_sound = is_sound and doc >= 0
                if doc < 0:
                    continue
                if counts[doc] == 0:
                    if count == touched.size:
                        touched = _grown(touched)
                    touched[count] = doc
                    count += 1
                counts[doc] += 1
        for at in range(count):
            doc = touched[at]
            if counts[doc] / min(size, sizes[doc]) >= threshold:
                if total == owners.size:
                    owners = _grown(owners)
                    met = _grown(met)
                    shared = _grown(shared)
                owners[total] = owner
                met[total] = doc
                shared[total] = counts[doc]
                total += 1
            counts[doc] = 0
    return owners[:total], met[:total], shared[:total], is_sound


@kernel
def verify_pairs(items, signatures, left, right, threshold, min_agreement, values):
    """Write the exact similarity of every pair that is found, else -1: the rule of `walk_components`.

    items          Items
    signatures     uint32[num_docs, num_perm]  as for `walk_components`
    left, right    int64  [num_pairs]          documents; pairs of one left document stand together
    threshold      float64                     the least similarity
    min_agreement  int64                       the signature filter; 0 turns it off
    values         float64[num_pairs]          written
    """
    scratch = scratch_for(items)
    for at in range(left.size):
        values[at] = -1.0
        if passes(items, signatures, left[at], right[at], threshold, min_agreement):
            value = similarity_of(items, scratch, left[at], right[at], threshold)
            if value >= threshold:
                values[at] = value
