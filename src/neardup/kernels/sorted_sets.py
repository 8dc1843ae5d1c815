"""Intersection of two sorted sets, by merging."""

import numpy as np

from neardup.kernels.compilation import inner


@inner
def shared_items(hashes, ends, doc, others, other_ends, other, least):
    """Return how many items two sets share, or -1 as soon as the number cannot reach `least`."""
    here = ends[doc]
    end = ends[doc + 1]
    there = other_ends[other]
    other_end = other_ends[other + 1]
    spare = end - here - least
    other_spare = other_end - there - least
    shared = np.int64(0)
    while spare >= 0 and other_spare >= 0 and here < end and there < other_end:
        if hashes[here] == others[there]:
            shared += 1
            here += 1
            there += 1
        elif hashes[here] < others[there]:
            here += 1
            spare -= 1
        else:
            there += 1
            other_spare -= 1
    return shared if shared >= least else np.int64(-1)


@inner
def weight_sums(bags, doc, other_bags, other):
    """Return the sum of the smaller and the sum of the larger weights of two sets, added in the order of the hashes."""
    hashes = bags.hashes
    weights = bags.weights
    here = bags.ends[doc]
    end = bags.ends[doc + 1]
    others = other_bags.hashes
    other_weights = other_bags.weights
    there = other_bags.ends[other]
    other_end = other_bags.ends[other + 1]
    smaller = 0.0
    larger = 0.0
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
