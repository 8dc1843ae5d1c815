"""Audit: verify candidate pairs of a document and a set of the sample, and mark those that banding finds."""

from neardup.kernels.bands import shares_bucket
from neardup.kernels.bounds import least_overlap
from neardup.kernels.compilation import kernel
from neardup.kernels.similarity import agreement
from neardup.kernels.sorted_sets import shared_items


@kernel
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
        doc = pairs[at, 0]
        other = pairs[at, 1]
        size_a, size_b = ends[doc + 1] - ends[doc], other_ends[other + 1] - other_ends[other]
        needed = least_overlap(size_a, size_b, threshold)
        overlap = shared_items(shingles, ends, doc, others, other_ends, other, needed)
        if overlap >= 0:
            values[at] = overlap / (size_a + size_b - overlap)
        else:
            values[at] = 0.0


@kernel
def mark_found(signatures, keys, set_signatures, set_keys, pairs, min_agreement, is_found):
    """Mark the pairs that banding finds: they share a bucket, and their signatures agree enough.

    signatures      uint32[num_docs, num_perm]
    keys            uint64[num_docs, bands]
    set_signatures  uint32[num_sets, num_perm]
    set_keys        uint64[num_sets, bands]
    pairs           int64 [num_pairs, 2]        document, set
    min_agreement   int64                       the fewest equal slots
    is_found        bool  [num_pairs]           written
    """
    for at in range(pairs.shape[0]):
        doc = pairs[at, 0]
        other = pairs[at, 1]
        is_found[at] = (
            shares_bucket(keys, doc, set_keys, other)
            and agreement(signatures[doc], set_signatures[other]) >= min_agreement
        )
