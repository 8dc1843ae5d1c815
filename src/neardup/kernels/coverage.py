"""How much of a short text, a benchmark item, a span of a document covers, in order and with gaps.

Words are numbers: those of the items from 0 on, -1 for every other word. A *chain* pairs words of an
item with equal words of a document, both in ascending order, with at most `gap` other words of the
document between neighbours. The score of an item is the weight of its best chain.

`find_regions` rules out almost all text without comparing it: a chain that lacks little weight has two
of the item's rarest words, its *probes*, in order and close enough.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import ZERO, home_of

Array = npt.NDArray[Any]
NO_WORD = -1
# Before every position.
FAR_AWAY = -1
# Probes of an item that are compared with one that occurs: a bound for very long items.
MAX_COMPARED = 64
# Of a pair in the ring of `cover`; the entry after the last pair has the position of its row, and its size.
POSITION, WEIGHT, FIRST, ITEM_FIRST, MATCHED = range(5)
AT, SIZE = range(2)


class Probes(NamedTuple):
    """The rarest words of the items, numbered by item and position.

    ends     int64[num_words + 1]  word w owns numbers[ends[w]:ends[w + 1]]
    numbers  int64[num_probes]     the probes by word
    items    int64[num_probes]     the item of a probe
    at       int64[num_probes]     its position in the item
    steps    int64[num_items]      the gap + 1: the most positions between neighbours of a chain of each item
    sizes    int64[num_items]      the words of each item
    """

    ends: Array
    numbers: Array
    items: Array
    at: Array
    steps: Array
    sizes: Array


class BenchItems(NamedTuple):
    """The items: their words, what each word weighs, and the limits of a chain.

    words    int64[num_words]      numbers, all items end to end
    weights  int64[num_words]      at least 1
    ends     int64[num_items + 1]  item i owns words[ends[i]:ends[i + 1]]
    gaps     int64[num_items]      the most other words between neighbours of a chain
    least    int64[num_items]      the least weight of a chain that counts
    """

    words: Array
    weights: Array
    ends: Array
    gaps: Array
    least: Array


@kernel
def fill_numbers(keys, capacity, table, numbers):
    """Put word hashes into a table with linear probing, each with its index as number.

    keys      uint64[num_keys]                 distinct, none of them zero
    capacity  int64                            more than num_keys
    table     uint64[capacity + num_keys + 1]  zeros on entry; written
    numbers   int64 [capacity + num_keys + 1]  written where the table is
    """
    for number in range(keys.size):
        index = home_of(keys[number], capacity)
        while table[index] != ZERO:
            index += 1
        table[index] = keys[number]
        numbers[index] = number


@kernel
def number_words(words, capacity, table, numbers, numbered):
    """Write the number of every word, NO_WORD for those outside the table.

    words     uint64[num_words]
    capacity  int64              of the table
    table     uint64[...]        as `fill_numbers` leaves it
    numbers   int64 [...]        the same
    numbered  int64 [num_words]  written
    """
    for at in range(words.size):
        index = home_of(words[at], capacity)
        while table[index] != ZERO and table[index] != words[at]:
            index += 1
        numbered[at] = numbers[index] if table[index] != ZERO else NO_WORD


@kernel
def count_documents(words, ends, last_doc, counts):
    """Add to the count of every word the documents that have it.

    words     int64[num_words]     numbers, all documents end to end
    ends      int64[num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    last_doc  int64[num_numbers]   -1 on entry; overwritten
    counts    int64[num_numbers]   added to
    """
    for doc in range(ends.size - 1):
        for at in range(ends[doc], ends[doc + 1]):
            word = words[at]
            if word != NO_WORD and last_doc[word] != doc:
                last_doc[word] = doc
                counts[word] += 1


@kernel
def find_regions(words, ends, probes, last_at, seen, found):
    """Write the regions of documents that may cover an item; return their number, which may exceed the room.

    Of two probes of a chain, the later one in the item is the later one in the document, and not farther away
    than the gap allows. A probe may have occurred again in between, but then it is even closer.

    words    int64[num_words]      numbers, all documents end to end
    ends     int64[num_docs + 1]   document d owns words[ends[d]:ends[d + 1]]
    probes   Probes
    last_at  int64[num_probes]     FAR_AWAY on entry; overwritten: where a probe has occurred last
    seen     int64[num_items, 2]   -1 on entry; overwritten: of each item the last document and the last region
    found    int64[room, 4]        written: document, item, first position and the one behind the last; regions of a
                                   document and an item may overlap
    """
    count = 0
    for doc in range(ends.size - 1):
        start = ends[doc]
        for at in range(start, ends[doc + 1]):
            word = words[at]
            if word == NO_WORD:
                continue
            for posting in range(probes.ends[word], probes.ends[word + 1]):
                number = probes.numbers[posting]
                last_at[number] = at
                item = probes.items[number]
                position = probes.at[number]
                step = probes.steps[item]
                # The probes of an item are consecutive, and ascend in the item. After many, assume that one is near.
                other = number - 1
                lowest = max(number - MAX_COMPARED, -1)
                while (
                    other > lowest
                    and probes.items[other] == item
                    and (
                        last_at[other] < start
                        or at - last_at[other] > (position - probes.at[other]) * step
                    )
                ):
                    other -= 1
                if other < 0 or probes.items[other] != item:
                    continue
                first = max(start, at - position * step)
                behind = min(ends[doc + 1], at + (probes.sizes[item] - 1 - position) * step + 1)
                if seen[item, 0] != doc:
                    seen[item, 0] = doc
                    seen[item, 1] = -1
                region = seen[item, 1]
                if 0 <= region < found.shape[0] and found[region, 3] >= first:
                    found[region, 2] = min(found[region, 2], first)
                    found[region, 3] = max(found[region, 3], behind)
                    continue
                seen[item, 1] = count
                if count < found.shape[0]:
                    found[count, 0] = doc
                    found[count, 1] = item
                    found[count, 2] = first
                    found[count, 3] = behind
                count += 1
    return count


@inner
def _sort_positions(words, order, starts, counts):
    """Write the positions of an item by word, ascending: those of word w to order[starts[w]:starts[w] + counts[w]]."""
    for at in range(words.size):
        counts[words[at]] += 1
    to = 0
    for at in range(words.size):
        word = words[at]
        if counts[word] > 0:  # not yet met
            starts[word] = to
            to += counts[word]
            counts[word] = 0
    for at in range(words.size):
        word = words[at]
        order[starts[word] + counts[word]] = at
        counts[word] += 1


@inner
def _is_better(weight, first, item_first, other):
    """Whether a chain is heavier than `other` (weight, first, first in the item), or as heavy and begins later."""
    other_weight, other_first, other_item_first = other
    if weight != other_weight:
        return weight > other_weight
    if first != other_first:
        return first > other_first
    return item_first > other_item_first


@inner
def _continued(ring, walked, at, position, current, gap, before):
    """Return the best chain that a pair of `at` and a position in the item may continue: `before` or one of the ring.

    The rows of the ring are walked on from where the position before this one left them.
    """
    last_entry = ring.shape[1] - 1
    weight, first, item_first, matched = before
    for row in range(walked.size):
        size = ring[row, last_entry, SIZE]
        # A row without pairs has no position yet.
        if row == current or size == 0 or at - ring[row, last_entry, AT] > gap + 1:
            continue
        while walked[row] < size and ring[row, walked[row], POSITION] < position:
            chain = ring[row, walked[row]]
            if _is_better(
                chain[WEIGHT], chain[FIRST], chain[ITEM_FIRST], (weight, first, item_first)
            ):
                weight = chain[WEIGHT]
                first = chain[FIRST]
                item_first = chain[ITEM_FIRST]
                matched = chain[MATCHED]
            walked[row] += 1
    return weight, first, item_first, matched


@inner
def _cover(words, start, stop, weights, limits, order, ring, starts, counts, found, count):
    """Append the chains of an item in words[start:stop] to `found`; return how many there are then, room or not.

    Of the last gap + 1 positions with words of the item, `ring` keeps every pair (position in the item) that
    a chain may continue, ascending, with the best chain that ends there. The pairs of one position look for
    the best chain that ends further left in both, together in one walk over the ring: the time is linear in
    the pairs times the gap.
    """
    gap, least = limits
    last_entry = ring.shape[1] - 1
    num_rows = gap + 2
    walked = np.empty(num_rows, np.int64)
    best = np.zeros(6, np.int64)
    for row in range(num_rows):
        ring[row, last_entry, SIZE] = 0
    row = 0
    for at in range(start, stop):
        word = words[at]
        if word == NO_WORD or counts[word] == 0:
            continue
        walked[:] = 0
        before = (np.int64(0), np.int64(0), np.int64(0), np.int64(0))
        size = 0
        for entry in range(starts[word], starts[word] + counts[word]):
            position = order[entry]
            before = _continued(ring, walked, at, position, row, gap, before)
            weight, first, item_first, matched = before
            if weight == 0:
                first = np.int64(at)
                item_first = position
            weight += weights[position]
            matched += 1
            pair = ring[row, size]
            pair[POSITION] = position
            pair[WEIGHT] = weight
            pair[FIRST] = first
            pair[ITEM_FIRST] = item_first
            pair[MATCHED] = matched
            size += 1
            if weight < least:
                continue
            is_apart = best[0] > 0 and first > best[2]
            if is_apart:
                if count < found.shape[0]:
                    found[count, 2:] = best
                count += 1
            is_shorter = weight == best[0] and at - first < best[2] - best[1]
            if is_apart or weight > best[0] or is_shorter:
                best[0] = weight
                best[1] = first
                best[2] = at
                best[3] = item_first
                best[4] = position
                best[5] = matched
        ring[row, last_entry, AT] = at
        ring[row, last_entry, SIZE] = size
        row = row + 1 if row + 1 < num_rows else 0
    if best[0] > 0:
        if count < found.shape[0]:
            found[count, 2:] = best
        count += 1
    return count


@inner
def _may_cover(words, start, stop, own, weights, least, region, last_region):
    """Whether words[start:stop] have enough of the words of an item, in any order and number.

    own, weights  the words of the item, and what each weighs
    region        int64                   a number that only this region has
    last_region   int32[num_numbers + 1]  overwritten: the last region with a word, at the end with NO_WORD
    """
    for at in range(start, stop):
        last_region[words[at]] = region
    found = np.int64(0)
    for at in range(own.size):
        if last_region[own[at]] == region:
            found += weights[at]
    return found >= least


@kernel
def cover_regions(words, regions, items, starts, counts, found):
    """Write the chains of items in regions of documents; return their number, which may exceed the room.

    Only chains of at least the least weight of the item count. Of chains that overlap in the document the heaviest
    is written, of equal ones the shortest, then the first; so the heaviest of all is always written.

    words    int64[...]             numbers
    regions  int64[num_regions, 4]  as `find_regions` writes them; those of a document and an item do not overlap
    items    BenchItems
    starts   int64[num_numbers]     scratch
    counts   int64[num_numbers]     zeros on entry and on return
    found    int64[room, 8]         written: document, item, weight, first and last position, first and last in the
                                    item, words matched
    """
    longest = np.int64(0)
    widest = np.int64(0)
    for region in range(regions.shape[0]):
        item = regions[region, 1]
        longest = max(longest, items.ends[item + 1] - items.ends[item])
        widest = max(widest, items.gaps[item])
    order = np.empty(longest, np.int64)
    rings = np.empty((widest + 2, longest + 1, 5), np.int64)
    last_region = np.full(counts.size + 1, -1, np.int32)
    count = 0
    for region in range(regions.shape[0]):
        doc, item, start, stop = regions[region]
        first = items.ends[item]
        behind = items.ends[item + 1]
        own = items.words[first:behind]
        limits = items.gaps[item], items.least[item]
        weights = items.weights[first:behind]
        if not _may_cover(words, start, stop, own, weights, items.least[item], region, last_region):
            continue
        _sort_positions(own, order, starts, counts)
        before = count
        count = _cover(
            words, start, stop, weights, limits, order, rings, starts, counts, found, count
        )
        for row in range(before, min(count, found.shape[0])):
            found[row, 0] = doc
            found[row, 1] = item
        for at in range(own.size):
            counts[own[at]] = 0
    return count
