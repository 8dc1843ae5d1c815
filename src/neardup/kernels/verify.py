"""Verification: the documents of a component, in keep order, against those before them that share a bucket.

Each bucket is a list of documents already passed. A document walks the lists of its buckets; whom it meets is
compared by size, then by signature, then exactly. Where too many comparisons fail, the component also keeps lists by
prefix shingle: two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, so walking those
lists, and asking afterwards for a shared bucket, meets the same pairs. Each document walks whichever lists cost
less.
"""

import numba
import numpy as np

LEADERS, PAIRS, CLOSURE = 0, 1, 2
NOBODY = -1
# A component starts its prefix lists after this many failed comparisons, and this many more per document passed.
FAILED_BASE, FAILED_PER_DOC = 2000, 64
MAX_COUNT_BITS = 26
# Whom a bucket list brings is compared; most of whom a prefix list brings is dismissed by its place, ten times faster.
COMPARISON_COST = 8
KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@numba.njit(cache=True, nogil=True)
def least_overlap(size_a, size_b, threshold):
    """The least intersection with intersection / union >= threshold in doubles."""
    total = size_a + size_b
    overlap = np.int64(np.ceil(threshold / (1.0 + threshold) * total))
    while overlap > 0 and (overlap - 1) / (total - overlap + 1) >= threshold:
        overlap -= 1
    while overlap / (total - overlap) < threshold:
        overlap += 1
    return overlap


@_inner
def _prefix_size(size, threshold):
    """How many of its rarest shingles a set must show so that every partner shares one."""
    overlap = np.int64(np.ceil(threshold * size))
    while overlap > 1 and (overlap - 1) / size >= threshold:
        overlap -= 1
    while overlap / size < threshold:
        overlap += 1
    return size - overlap + 1


@_inner
def _overlap(shingles, at_a, end_a, at_b, end_b, needed):
    """Size of the intersection of two sorted runs, or -1 as soon as it cannot reach `needed`."""
    spare_a, spare_b = end_a - at_a - needed, end_b - at_b - needed
    if spare_a < 0 or spare_b < 0:
        return -1
    overlap = 0
    while at_a < end_a and at_b < end_b:
        if shingles[at_a] == shingles[at_b]:
            overlap += 1
            at_a += 1
            at_b += 1
        elif shingles[at_a] < shingles[at_b]:
            at_a += 1
            spare_a -= 1
            if spare_a < 0:
                return -1
        else:
            at_b += 1
            spare_b -= 1
            if spare_b < 0:
                return -1
    return overlap if overlap >= needed else -1


@numba.njit(cache=True, nogil=True)
def similarities(shingles, ends, left, right, values):
    """Write the exact Jaccard similarity of pairs of documents.

    shingles     uint64[num_shingles]  sorted and distinct in each document
    ends         int64 [num_docs + 1]
    left, right  int64 [num_pairs]     documents
    values       float64[num_pairs]    written; 0 where both sets are empty
    """
    for at in range(left.size):
        start_a, end_a = ends[left[at]], ends[left[at] + 1]
        start_b, end_b = ends[right[at]], ends[right[at] + 1]
        overlap = _overlap(shingles, start_a, end_a, start_b, end_b, 0)
        union = end_a - start_a + end_b - start_b - overlap
        values[at] = overlap / union if union else 0.0


@_inner
def _compare(sets, signatures, doc, other, threshold, min_agreement, bar):
    """Return the similarity of a found pair of at least `bar`, else -1."""
    shingles, ends = sets
    size_a, size_b = ends[doc + 1] - ends[doc], ends[other + 1] - ends[other]
    if min(size_a, size_b) / max(size_a, size_b) < threshold:
        return -1.0
    agreement = 0
    for slot in range(signatures.shape[1]):
        agreement += signatures[doc, slot] == signatures[other, slot]
    if agreement < min_agreement:
        return -1.0
    needed = least_overlap(size_a, size_b, max(threshold, bar))
    overlap = _overlap(shingles, ends[doc], ends[doc + 1], ends[other], ends[other + 1], needed)
    return overlap / (size_a + size_b - overlap) if overlap >= 0 else -1.0


@_inner
def _shares_bucket(keys, doc, other):
    for band in range(keys.shape[1]):
        if keys[doc, band] == keys[other, band]:
            return True
    return False


@_inner
def _find_root(parents, node):
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@_inner
def _number_buckets(keys):
    """Give every (document, band) the number of its bucket; buckets are numbered from 0."""
    num_docs, num_bands = keys.shape
    bits = 1
    while (1 << bits) < 2 * keys.size:
        bits += 1
    shift, last = np.uint64(64 - bits), (1 << bits) - 1
    owner = np.empty(1 << bits, np.int64)
    for place in range(owner.size):
        owner[place] = NOBODY
    buckets = np.empty((num_docs, num_bands), np.int64)
    num_buckets = 0
    for doc in range(num_docs):
        for band in range(num_bands):
            key = keys[doc, band]
            place = np.int64((key * KEY_MULTIPLIER) >> shift)
            while owner[place] >= 0 and keys[owner[place] // num_bands, owner[place] % num_bands] != key:
                place = (place + 1) & last
            if owner[place] < 0:
                owner[place] = doc * num_bands + band
                buckets[doc, band] = num_buckets
                num_buckets += 1
            else:
                buckets[doc, band] = buckets[owner[place] // num_bands, owner[place] % num_bands]
    return buckets, num_buckets


@_inner
def _count_shingles(shingles, start, end):
    """Count the shingles of a component in a saturating table; it only sets an order, so collisions do no harm."""
    bits = 1
    while (1 << bits) < end - start and bits < MAX_COUNT_BITS:
        bits += 1
    shift = np.uint64(64 - bits)
    counts = np.zeros(1 << bits, np.uint8)
    for at in range(start, end):
        place = np.int64(shingles[at] >> shift)
        counts[place] += counts[place] < 255
    return counts, shift


@_inner
def _prefix(sets, doc, threshold, counts, shift):
    """The rarest shingles of a document in (count, hash) order, which is the same in every document.

    A count and the top of the hash share one number. The shingles are sorted, so counting places by count suffices.
    """
    shingles, ends = sets
    starts = np.zeros(257, np.int64)
    for at in range(ends[doc], ends[doc + 1]):
        starts[np.int64(counts[np.int64(shingles[at] >> shift)]) + 1] += 1
    for count in range(256):
        starts[count + 1] += starts[count]
    ranked = np.empty(ends[doc + 1] - ends[doc], np.uint64)
    for at in range(ends[doc], ends[doc + 1]):
        count = np.int64(counts[np.int64(shingles[at] >> shift)])
        ranked[starts[count]] = (np.uint64(count) << np.uint64(56)) | (shingles[at] >> np.uint64(8))
        starts[count] += 1
    return ranked[: _prefix_size(ranked.size, threshold)]


@_inner
def _place(owners, ranked):
    """Return the list of a prefix shingle, or the free one where it belongs."""
    last = owners.size - 1
    place = np.int64((ranked * KEY_MULTIPLIER) >> np.uint64(11)) & last
    while owners[place] != 0 and owners[place] != ranked:
        place = (place + 1) & last
    return place


@_inner
def _new_lists(num_lists, num_entries):
    """Linked lists of documents: (heads, nexts, skips, docs, lengths)."""
    heads = np.empty(num_lists, np.int64)
    lengths = np.empty(num_lists, np.int64)
    for number in range(num_lists):
        heads[number], lengths[number] = NOBODY, 0
    nexts, skips, docs = (
        np.empty(num_entries, np.int64),
        np.empty(num_entries, np.int64),
        np.empty(num_entries, np.int64),
    )
    return heads, nexts, skips, docs, lengths


@_inner
def _append(lists, number, entry, doc, parents):
    """Put a document at the head of a list; `skips` leads past the run of documents already joined with it."""
    heads, nexts, skips, docs, lengths = lists
    follower = heads[number]
    heads[number] = entry
    nexts[entry] = follower
    docs[entry] = doc
    lengths[number] += 1
    joined = follower >= 0 and _find_root(parents, docs[follower]) == _find_root(parents, doc)
    skips[entry] = skips[follower] if joined else follower


@_inner
def _new_postings(sets, first, stop, threshold):
    """Empty prefix lists with room for every document of a component.

    (counts, shift, owners, used, lists, places, smallest): places[entry] is the place of the shingle in its document's
    prefix, smallest[number] the size of the smallest set in a list.
    """
    shingles, ends = sets
    total = np.int64(0)
    for doc in range(first, stop):
        total += _prefix_size(ends[doc + 1] - ends[doc], threshold)
    num_lists = 2
    while num_lists < 2 * total:
        num_lists *= 2
    counts, shift = _count_shingles(shingles, ends[first], ends[stop])
    owners, used, places = np.zeros(num_lists, np.uint64), np.zeros(1, np.int64), np.empty(total, np.int64)
    smallest = np.empty(num_lists, np.int64)
    for number in range(num_lists):
        smallest[number] = shingles.size
    return counts, shift, owners, used, _new_lists(num_lists, total), places, smallest


@_inner
def _post(postings, prefix, doc, size, parents):
    _, _, owners, used, lists, places, smallest = postings
    for at in range(prefix.size):
        number = _place(owners, prefix[at])
        if at > 0 and prefix[at] == prefix[at - 1]:  # equal but for the last bits of the hash: the first place counts
            continue
        owners[number] = prefix[at]
        places[used[0]] = at
        smallest[number] = min(smallest[number], size)
        _append(lists, number, used[0], doc, parents)
        used[0] += 1


@_inner
def _is_out_of_reach(size, at, other_size, other_at, threshold):
    """Whether two sets whose first shared shingle stands at these places of their order cannot be similar any more."""
    most = min(size - at, other_size - other_at)
    return most / (size + other_size - most) < threshold


@_inner
def _is_list_out_of_reach(size, at, smallest, threshold):
    """Whether this holds for every set of a list; a larger set than what remains of this one is only less similar."""
    return smallest >= size - at and _is_out_of_reach(size, at, smallest, np.int64(0), threshold)


@_inner
def _is_cheaper_by_prefix(postings, prefix, size, threshold, bucket_lengths, buckets):
    _, _, owners, _, (_, _, _, _, lengths), _, smallest = postings
    by_bucket = by_prefix = 0
    for bucket in buckets:
        by_bucket += bucket_lengths[bucket]
    for at in range(prefix.size):
        number = _place(owners, prefix[at])
        if not _is_list_out_of_reach(size, at, smallest[number], threshold):
            by_prefix += lengths[number]
    return by_prefix < COMPARISON_COST * by_bucket


@_inner
def _grow(pairs):
    left, right, values = pairs
    more_left, more_right = np.empty(2 * left.size, np.int64), np.empty(2 * left.size, np.int64)
    more_values = np.empty(2 * left.size, np.float64)
    for at in range(left.size):
        more_left[at], more_right[at], more_values[at] = left[at], right[at], values[at]
    return more_left, more_right, more_values


@numba.njit(cache=True, nogil=True)
def match_components(
    shingles,
    ends,
    signatures,
    keys,
    rows,
    component_ends,
    threshold,
    min_agreement,
    mode,
    matches,
    values,
    parents,
    compared,
):
    """Compare the documents of whole components.

    shingles        uint64 [num_shingles]        sorted and distinct in each document
    ends            int64  [num_docs + 1]        document d owns shingles[ends[d]:ends[d + 1]]; none is empty
    signatures      uint32 [num_docs, num_perm]
    keys            uint64 [num_docs, bands]     band keys
    rows            int64  [num_docs]            breaks ties between equally similar kept documents
    component_ends  int64  [num_components + 1]  component c is documents [component_ends[c], component_ends[c + 1]),
                                                 best keep priority first
    threshold       float64
    min_agreement   int64                        the signature filter; 0 turns it off
    mode            LEADERS: keep a list of kept documents only; PAIRS: also list every found pair;
                    CLOSURE: join what is connected by found pairs, comparing no two documents already joined
    matches         int64  [num_docs]            written; the most similar kept document, NOBODY for a kept one
                                                 (not in CLOSURE)
    values          float64[num_docs]            written; the similarity to it
    parents         int64  [num_docs]            written in PAIRS and CLOSURE; first document of the closure

    compared        int64  [num_docs]            written; comparisons of this document with earlier ones

    Returns (left, right, similarity) of the found pairs, ordered by left, the later document of the two.
    """
    num_docs, num_bands = keys.shape
    sets = (shingles, ends)
    buckets, num_buckets = _number_buckets(keys)
    bucket_lists = _new_lists(num_buckets, num_docs * num_bands)
    pairs = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.float64))
    num_pairs = 0
    seen = np.empty(num_docs, np.int64)
    for doc in range(num_docs):
        parents[doc], compared[doc], seen[doc] = doc, 0, NOBODY
    for component in range(component_ends.size - 1):
        first, stop = component_ends[component], component_ends[component + 1]
        failed, has_postings, posted = 0, False, first
        prefix = np.empty(0, np.uint64)
        for doc in range(first, stop):
            is_late = not has_postings and failed > FAILED_BASE + FAILED_PER_DOC * (doc - first)
            if doc == first or is_late:
                has_postings = is_late
                postings = _new_postings(sets, first, stop if is_late else first, threshold)
            size, by_prefix = ends[doc + 1] - ends[doc], False
            if has_postings:
                for other in range(posted, doc + 1):  # the first time, those passed without prefix lists too
                    prefix = _prefix(sets, other, threshold, postings[0], postings[1])
                    if other < doc and (mode != LEADERS or matches[other] == NOBODY):
                        _post(postings, prefix, other, ends[other + 1] - ends[other], parents)
                posted = doc + 1
                by_prefix = _is_cheaper_by_prefix(postings, prefix, size, threshold, bucket_lists[4], buckets[doc])
            best, bar = NOBODY, 0.0
            heads, nexts, skips, docs, _ = postings[4] if by_prefix else bucket_lists
            for walk in range(prefix.size if by_prefix else num_bands):
                number = _place(postings[2], prefix[walk]) if by_prefix else buckets[doc, walk]
                if by_prefix and _is_list_out_of_reach(size, walk, postings[6][number], threshold):
                    continue
                entry = heads[number]
                while entry >= 0:
                    other = docs[entry]
                    if mode == CLOSURE and _find_root(parents, other) == _find_root(parents, doc):
                        entry = skips[entry]
                        continue
                    met, entry = entry, nexts[entry]
                    if seen[other] == doc:
                        continue
                    seen[other] = doc
                    value = -1.0
                    if not by_prefix or (
                        not _is_out_of_reach(size, walk, ends[other + 1] - ends[other], postings[5][met], threshold)
                        and _shares_bucket(keys, doc, other)
                    ):
                        compared[doc] += 1
                        value = _compare(sets, signatures, doc, other, threshold, min_agreement, bar)
                    if value < 0:
                        failed += 1
                        continue
                    if (
                        mode != CLOSURE
                        and matches[other] == NOBODY
                        and (
                            best == NOBODY or value > values[doc] or (value == values[doc] and rows[other] < rows[best])
                        )
                    ):
                        best, values[doc] = other, value
                        if mode == LEADERS:  # from now on only a better one counts
                            bar = value
                    if mode != LEADERS:
                        one, two = _find_root(parents, doc), _find_root(parents, other)
                        parents[max(one, two)] = min(one, two)
                    if mode == PAIRS:
                        if num_pairs == pairs[0].size:
                            pairs = _grow(pairs)
                        pairs[0][num_pairs], pairs[1][num_pairs], pairs[2][num_pairs] = doc, other, value
                        num_pairs += 1
            matches[doc] = best
            if mode != LEADERS or best == NOBODY:
                for band in range(num_bands):
                    _append(bucket_lists, buckets[doc, band], doc * num_bands + band, doc, parents)
                if has_postings:
                    _post(postings, prefix, doc, size, parents)
    for doc in range(num_docs):
        parents[doc] = _find_root(parents, doc)
    return pairs[0][:num_pairs], pairs[1][:num_pairs], pairs[2][:num_pairs]
