"""Sorting in O(n log n) for any values: quicksort is quadratic for some, and documents may be hostile.

Numba's own merge sort takes seconds to compile, as do array slices, so this file uses plain loops.
"""

import numpy as np

from neardup.kernels.compilation import inner

# Runs of this many values are sorted by insertion before they are merged.
RUN = 16


@inner
def clear(values, count):
    """Write zeros to the first `count` entries."""
    for at in range(count):
        values[at] = 0


@inner
def sort_values(values, spare, count):
    """Sort the first `count` values, ascending.

    values, spare  uint64[count or more]  the second is overwritten
    """
    for start in range(0, count, RUN):
        for position in range(start + 1, min(start + RUN, count)):
            value = values[position]
            at = position
            while at > start and values[at - 1] > value:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
    width = RUN
    while width < count:
        for start in range(0, count, 2 * width):
            middle = min(start + width, count)
            end = min(start + 2 * width, count)
            left = start
            right = middle
            to = start
            # No branch on which one is smaller, which would be unpredictable.
            while left < middle and right < end:
                one = values[left]
                two = values[right]
                spare[to] = min(one, two)
                left += one <= two
                right += one > two
                to += 1
            for at in range(left, middle):
                spare[to] = values[at]
                to += 1
            for at in range(right, end):
                spare[to] = values[at]
                to += 1
        for at in range(count):
            values[at] = spare[at]
        width *= 2


@inner
def order_of(values):
    """Return the positions of values in ascending order; the sort is stable."""
    count = values.size
    width = 1
    order = np.empty(count, np.int64)
    merged = np.empty(count, np.int64)
    for at in range(count):
        order[at] = at
    while width < count:
        for start in range(0, count, 2 * width):
            middle = min(start + width, count)
            end = min(start + 2 * width, count)
            left, right = start, middle
            for to in range(start, end):
                is_left = right == end or (
                    left < middle and values[order[left]] <= values[order[right]]
                )
                merged[to] = order[left] if is_left else order[right]
                left += is_left
                right += not is_left
        order, merged = merged, order
        width *= 2
    return order
