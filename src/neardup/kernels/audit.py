"""Audit: the documents of a corpus against the sets of a sample, exactly.

Two sets of similarity >= t share k of any n - ceil(t n) + k shingles of either, so only that many of each sample set
are looked for. These are, of those that are not frequent, the ones with the smallest hashes: so most shingles of a
document are dismissed by their top bits alone.
"""

import numba
import numpy as np

SIX = np.uint64(6)
IN_WORD = np.uint64(63)
ONE = np.uint64(1)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _least_overlap(size_a, size_b, threshold):
    """The least intersection with intersection / union >= threshold in doubles."""
    total = size_a + size_b
    overlap = np.int64(np.ceil(threshold / (1.0 + threshold) * total))
    while overlap > 0 and (overlap - 1) / (total - overlap + 1) >= threshold:
        overlap -= 1
    while overlap / (total - overlap) < threshold:
        overlap += 1
    return overlap


@numba.njit(cache=True, nogil=True)
def least_sizes(sizes, threshold, least):
    """Write the size of the smallest subset that is still similar to each set.

    sizes      int64[num_sets]
    threshold  float64
    least      int64[num_sets]  written; least / size >= threshold, in doubles
    """
    for at in range(sizes.size):
        size = np.int64(np.ceil(threshold * sizes[at]))
        while size > 1 and (size - 1) / sizes[at] >= threshold:
            size -= 1
        while size / sizes[at] < threshold:
            size += 1
        least[at] = size


@_inner
def _most(ends):
    most = 0
    for doc in range(ends.size - 1):
        most = max(most, ends[doc + 1] - ends[doc])
    return most


@_inner
def _set_bit(bits, place):
    bits[place >> SIX] |= ONE << (place & IN_WORD)


@_inner
def _bit(bits, place):
    return np.int64((bits[place >> SIX] >> (place & IN_WORD)) & ONE)


@_inner
def _pass_filters(shingles, start, end, index, passed):
    """Write the shingles that both filters let pass; without a branch, which nobody could predict."""
    coarse, coarse_shift, fine, fine_shift = index[:4]
    to = 0
    for at in range(start, end):
        passed[to] = shingles[at]
        to += _bit(coarse, shingles[at] >> coarse_shift)
    count, to = to, 0
    for at in range(count):
        shingle = passed[at]
        passed[to] = shingle
        to += _bit(fine, (shingle * SPREAD) >> fine_shift)
    return to


@numba.njit(cache=True, nogil=True)
def fill_index(keys, coarse, coarse_shift, fine, fine_shift, spreads, lists, starts, shift):
    """Set the bits of every key in two filters, and write the keys in an order that is searched from a start per place.

    No place is probed: whatever the keys are, the search for one takes as many steps as their number has bits.

    keys                      uint64[num_keys]     distinct shingles
    coarse, fine              uint64[]             all zero; written; a bit for each value of the top bits, of the key
                                                   and of the key spread over all numbers: most keys are small
    coarse_/fine_shift, shift uint64               64 less the number of top bits that choose a place
    spreads                   uint64[num_keys]     written; the keys spread, ascending
    lists                     int64 [num_keys]     written; the number of the key of each
    starts                    int64 [2**bits + 1]  written; spreads[starts[p]:starts[p + 1]] have the top bits p
    """
    all_spreads = keys * SPREAD
    order = np.argsort(all_spreads, kind="mergesort")
    starts[:] = 0
    for at in range(keys.size):
        number = order[at]
        lists[at], spreads[at] = number, all_spreads[number]
        _set_bit(coarse, keys[number] >> coarse_shift)
        _set_bit(fine, spreads[at] >> fine_shift)
        starts[np.int64(spreads[at] >> shift) + 1] += 1
    for place in range(starts.size - 1):
        starts[place + 1] += starts[place]


@_inner
def _find_list(shingle, spreads, lists, starts, shift):
    """Return the number of the list of a shingle, or -1."""
    spread = shingle * SPREAD
    place = np.int64(spread >> shift)
    low, high = starts[place], starts[place + 1]
    while low < high:
        middle = (low + high) >> 1
        if spreads[middle] < spread:
            low = middle + 1
        else:
            high = middle
    return lists[low] if low < starts[place + 1] and spreads[low] == spread else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def find_candidates(shingles, ends, groups, index, least, needed, set_groups, first_doc, seen, found):
    """Write which documents share enough indexed shingles with which sets of their group; return how many.

    shingles    uint64[num_shingles]  all documents end to end, with repetitions, in any order
    ends        int64 [num_docs + 1]  document d owns shingles[ends[d]:ends[d + 1]]
    groups      int64 [num_docs]
    index       (coarse, coarse_shift, fine, fine_shift, spreads, lists, starts, shift, list_ends, members): what
                `fill_index` wrote; the sets that have the shingle of list l are members[list_ends[l]:list_ends[l + 1]]
    least       int64 [num_sets]      how many shingles a partner has at least
    needed      int64 [num_sets]      how many of its indexed shingles a partner has at least
    set_groups  int64 [num_sets]
    first_doc   int64                 added to documents in `seen`, so that it serves for many calls
    seen        (int64[num_lists], int64[num_sets], int64[num_sets])  the last document that met each list and each
                set, and how many shingles it shared with the set; overwritten
    found       int64 [room, 2]       written: document, set; what is beyond its room is only counted
    """
    spreads, lists, starts, shift, list_ends, members = index[4:]
    seen_lists, seen_sets, shared = seen
    passed = np.empty(_most(ends) + 1, np.uint64)
    count = 0
    for doc in range(ends.size - 1):
        stamp, num_shingles = first_doc + doc, ends[doc + 1] - ends[doc]
        for at in range(_pass_filters(shingles, ends[doc], ends[doc + 1], index, passed)):
            number = _find_list(passed[at], spreads, lists, starts, shift)
            if number < 0 or seen_lists[number] == stamp:
                continue
            seen_lists[number] = stamp
            for member in range(list_ends[number], list_ends[number + 1]):
                other = members[member]
                if seen_sets[other] != stamp:
                    seen_sets[other] = stamp
                    shared[other] = 0
                shared[other] += 1
                if shared[other] == needed[other] and num_shingles >= least[other] and groups[doc] == set_groups[other]:
                    if count < found.shape[0]:
                        found[count, 0], found[count, 1] = doc, other
                    count += 1
    return count


@numba.njit(cache=True, nogil=True)
def partner_similarities(shingles, ends, others, other_ends, pairs, threshold, values):
    """Write the exact Jaccard similarity of documents and sets; 0 where it is below the threshold.

    shingles    uint64 [num_shingles]  sorted and distinct in each document
    ends        int64  [num_docs + 1]
    others      uint64 [num_others]    sorted and distinct in each set
    other_ends  int64  [num_sets + 1]
    pairs       int64  [num_pairs, 2]  document, set; none of them empty
    threshold   float64
    values      float64[num_pairs]     written
    """
    for at in range(pairs.shape[0]):
        here, end = ends[pairs[at, 0]], ends[pairs[at, 0] + 1]
        there, other_end = other_ends[pairs[at, 1]], other_ends[pairs[at, 1] + 1]
        total = end - here + other_end - there
        needed = _least_overlap(end - here, other_end - there, threshold)
        spare, other_spare = end - here - needed, other_end - there - needed
        overlap = 0
        while spare >= 0 and other_spare >= 0 and here < end and there < other_end:
            if shingles[here] == others[there]:
                overlap += 1
                here += 1
                there += 1
            elif shingles[here] < others[there]:
                here += 1
                spare -= 1
            else:
                there += 1
                other_spare -= 1
        values[at] = overlap / (total - overlap) if overlap >= needed else 0.0


@numba.njit(cache=True, nogil=True)
def mark_found(signatures, keys, set_signatures, set_keys, pairs, min_agreement, is_found):
    """Say of pairs whether banding finds them: they share a bucket, and their signatures agree enough.

    signatures      uint32[num_docs, num_perm]
    keys            uint64[num_docs, bands]
    set_signatures  uint32[num_sets, num_perm]
    set_keys        uint64[num_sets, bands]
    pairs           int64 [num_pairs, 2]        document, set
    min_agreement   int64                       the fewest equal slots
    is_found        bool  [num_pairs]           written
    """
    for at in range(pairs.shape[0]):
        doc, other = pairs[at, 0], pairs[at, 1]
        shares = False
        for band in range(keys.shape[1]):
            if keys[doc, band] == set_keys[other, band]:
                shares = True
                break
        agreement = 0
        if shares:
            for slot in range(signatures.shape[1]):
                agreement += signatures[doc, slot] == set_signatures[other, slot]
        is_found[at] = shares and agreement >= min_agreement
