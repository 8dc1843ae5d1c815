"""Which sets contain most of another: the exact join by containment.

If a share t of the n items of a set, the needle, is contained in another set, the two share one of
the needle's rarest n - ceil(t n) + 1 items, so the posting lists of these have all candidates.
"""

from neardup.kernels.bounds import least_share
from neardup.kernels.compilation import kernel
from neardup.kernels.sorted_sets import shared_items


@kernel
def find_containers(docs, walks, postings, needles, first_own, threshold, scratch, found):
    """Find the documents that contain each needle; return the number of pairs, and of candidates compared.

    A pair whose documents contain each other is found from its first document only.

    docs       Bags                         weights and totals are not read
    walks      Walks                        of every document, along lists with another one in them; no weights
    postings   Postings                     of the documents; keys and weights are not read
    needles    int64[num_needles]           documents that others may contain
    first_own  int64                        documents below it are not compared with each other
    threshold  float64
    scratch    (int64[num_docs], int64[1])  the walk that met a document last, the number of walks; zeros at first
    found      int64[room, 3]               written: needle, document, shared items; beyond its room only counted
    """
    hashes = docs.hashes
    ends = docs.ends
    groups = docs.groups
    seen, num_walks = scratch
    count = compared = 0
    for at in range(needles.size):
        needle = needles[at]
        size = ends[needle + 1] - ends[needle]
        if size == 0:
            continue
        num_walks[0] += 1
        least = least_share(size, threshold)
        # Items that no other document has are the rarest; their lists are not scanned.
        for step in range(walks.ends[needle], walks.ends[needle + 1] - least + 1):
            for index in range(
                postings.ends[walks.lists[step]], postings.ends[walks.lists[step] + 1]
            ):
                doc = postings.members[index]
                if seen[doc] == num_walks[0]:
                    continue
                seen[doc] = num_walks[0]
                other = ends[doc + 1] - ends[doc]
                if (
                    doc == needle
                    or other < least
                    or groups[doc] != groups[needle]
                    or max(doc, needle) < first_own
                ):
                    continue
                compared += 1
                shared = shared_items(hashes, ends, needle, hashes, ends, doc, least)
                if shared < 0 or (shared / other >= threshold and doc < needle):
                    continue
                if count < found.shape[0]:
                    found[count, 0] = needle
                    found[count, 1] = doc
                    found[count, 2] = shared
                count += 1
    return count, compared


@kernel
def count_shared(sets, others, pairs, threshold, shared):
    """Count the items that pairs of sets share, where these are a share of at least `threshold` of the second set.

    sets       Sets                   sorted and distinct, as `others`
    others     Sets                   none that is in a pair is empty
    pairs      int64[num_pairs, 2]    number of a set, number of one of the others
    threshold  float64
    shared     int64[num_pairs]       written; -1 where the share is smaller
    """
    for at in range(pairs.shape[0]):
        own = pairs[at, 0]
        other = pairs[at, 1]
        least = least_share(others.ends[other + 1] - others.ends[other], threshold)
        shared[at] = shared_items(
            sets.shingles, sets.ends, own, others.shingles, others.ends, other, least
        )
