"""Which sets hold most of another: the exact join by containment.

Where a share t of the n items of a set, the needle, lies in another one, the two share one of the needle's rarest
n - ceil(t n) + 1 items: the lists of these name everybody who may hold it.
"""

import numba
import numpy as np

# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _least_shared(size, threshold):
    """The least count with count / size >= threshold in doubles."""
    shared = np.int64(np.ceil(threshold * size))
    while shared > 1 and (shared - 1) / size >= threshold:
        shared -= 1
    while shared / size < threshold:
        shared += 1
    return shared


@_inner
def _shared(hashes, ends, needle, doc, least):
    """How many items two sets share, or -1 as soon as they cannot be as many as `least`."""
    here, end, there, other_end = ends[needle], ends[needle + 1], ends[doc], ends[doc + 1]
    spare, shared = end - here - least, 0
    while here < end and there < other_end and spare >= 0:
        if hashes[here] == hashes[there]:
            shared += 1
            here += 1
            there += 1
        elif hashes[here] < hashes[there]:
            here += 1
            spare -= 1
        else:
            there += 1
    return shared if shared >= least else np.int64(-1)


@numba.njit(cache=True, nogil=True)
def find_containers(docs, walks, lists, needles, first_own, threshold, scratch, found):
    """Find whom each needle lies in; return how many pairs there are, and how many were compared.

    A pair that both contain each other is found from its first document alone.

    docs       (uint64[], int64[num_docs + 1], int64[num_docs])  items in the order of their hashes, ends, groups
    walks      (int64[], int64[num_docs + 1])   lists of every document with another one in them, the shortest first
    lists      (int64[num_lists + 1], int64[])  ends, documents
    needles    int64[num_needles]               documents that may lie in others
    first_own  int64                            documents below it are not compared with each other
    threshold  float64
    scratch    (int64[num_docs], int64[1])      the walk that met a document last, the number of walks; zeros at first
    found      int64[room, 3]                   written: needle, document, shared items; beyond its room only counted
    """
    hashes, ends, groups = docs
    seen, num_walks = scratch
    count = compared = 0
    for at in range(needles.size):
        needle = needles[at]
        size = ends[needle + 1] - ends[needle]
        if size == 0:
            continue
        num_walks[0] += 1
        least = _least_shared(size, threshold)
        # Items that nobody else has are the rarest, and no list is walked for them.
        for step in range(walks[1][needle], walks[1][needle + 1] - least + 1):
            for place in range(lists[0][walks[0][step]], lists[0][walks[0][step] + 1]):
                doc = lists[1][place]
                if seen[doc] == num_walks[0]:
                    continue
                seen[doc] = num_walks[0]
                other = ends[doc + 1] - ends[doc]
                if doc == needle or other < least or groups[doc] != groups[needle] or max(doc, needle) < first_own:
                    continue
                compared += 1
                shared = _shared(hashes, ends, needle, doc, least)
                if shared < 0 or (shared / other >= threshold and doc < needle):
                    continue
                if count < found.shape[0]:
                    found[count, 0], found[count, 1], found[count, 2] = needle, doc, shared
                count += 1
    return count, compared
