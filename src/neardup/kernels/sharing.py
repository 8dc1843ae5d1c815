"""Which sets share a few items, however large they are: the candidates for pairs that share a passage."""

import numpy as np

from neardup.kernels.compilation import kernel
from neardup.kernels.sorted_sets import shared_items


@kernel
def find_sharing(docs, walks, postings, needles, first_own, limits, scratch, found):
    """Find for each needle the earlier documents that share enough items; return the numbers of pairs and of compared.

    docs       Bags                         weights and totals are not read
    walks      Walks                        of every document, along lists with another one in them; no weights
    postings   Postings                     of the documents; keys and weights are not read
    needles    int64[num_needles]           the later documents of pairs
    first_own  int64                        documents below it are not compared with each other
    limits     (least, most): a pair shares `least` items; of an item with more than `most` documents, only the
               pairs with one of the first `most` share it
    scratch    (int64[num_docs], int64[num_docs])  zeros on entry and on return; not read
    found      int64[room, 3]               written: earlier document, needle, shared items; beyond it only counted
    """
    least, most = limits
    counts, met = scratch
    hashes = docs.hashes
    ends = docs.ends
    count = compared = 0
    for at in range(needles.size):
        needle = needles[at]
        num_met = 0
        for step in range(walks.ends[needle], walks.ends[needle + 1]):
            first = postings.ends[walks.lists[step]]
            stop = min(first + most, postings.ends[walks.lists[step] + 1])
            for index in range(first, stop):
                doc = postings.members[index]
                if doc >= needle:
                    break
                if counts[doc] == 0:
                    met[num_met] = doc
                    num_met += 1
                counts[doc] += 1
        for one in range(num_met):
            doc = met[one]
            is_enough = counts[doc] >= least
            counts[doc] = 0
            compared += 1
            if not is_enough or docs.groups[doc] != docs.groups[needle] or needle < first_own:
                continue
            if count < found.shape[0]:
                found[count, 0] = doc
                found[count, 1] = needle
                found[count, 2] = shared_items(hashes, ends, doc, hashes, ends, needle, np.int64(0))
            count += 1
    return count, compared
