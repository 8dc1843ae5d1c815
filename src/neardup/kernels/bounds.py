"""Exact integer bounds on the overlap of similar sets, consistent with similarities computed in doubles."""

import numpy as np

from neardup.kernels.compilation import inner, kernel


@kernel
def least_overlap(size_a, size_b, threshold):
    """Return the least intersection with intersection / union >= threshold."""
    total = size_a + size_b
    overlap = np.int64(np.ceil(threshold / (1.0 + threshold) * total))
    while overlap > 0 and (overlap - 1) / (total - overlap + 1) >= threshold:
        overlap -= 1
    while overlap / (total - overlap) < threshold:
        overlap += 1
    return overlap


@inner
def least_share(size, threshold):
    """Return the least count, at least 1, with count / size >= threshold."""
    count = np.int64(np.ceil(threshold * size))
    while count > 1 and (count - 1) / size >= threshold:
        count -= 1
    while count / size < threshold:
        count += 1
    return count


@inner
def prefix_size(size, threshold):
    """Return the prefix length: in an order common to all sets, every partner shares a shingle of the prefix."""
    return size - least_share(size, threshold) + 1


@inner
def is_in_reach(size, position, other_size, other_position, threshold):
    """Whether two sets may be similar if their first shared shingle is at these positions of their orders."""
    most = min(size - position, other_size - other_position)
    return most / (size + other_size - most) >= threshold
