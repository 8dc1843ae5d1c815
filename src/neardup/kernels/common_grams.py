"""Windows of a fixed number of words, *grams*, that items of benchmarks and documents have in common.

Words are numbers, as in coverage.py. A table finds a gram by its hash, and compares it word by word.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import FREE, home_of
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, mix

Array = npt.NDArray[Any]
ONE = np.uint64(1)
# Columns of `find_spans`.
DOC, ITEM, COVERED, FIRST, LAST, ITEM_FIRST, ITEM_LAST, MATCHED = range(8)


class Grams(NamedTuple):
    """The grams of items.

    words      int64[num_words]       numbers, all items end to end
    slots      int64[...]             where a gram first begins in `words`, as `number_grams` leaves it
    grams      int64[num_words]       the number of the gram that begins at a word; NO_GRAM if none does
    ends       int64[num_grams + 1]   gram g is in the items of entries ends[g] to ends[g + 1]
    items      int64[num_entries]     an item with a gram
    firsts     int64[num_entries]     where the gram begins there for the first time, from the first word of the item
    lasts      int64[num_entries]     and for the last time
    starts     int64[num_entries+1]   entry e owns positions[starts[e]:starts[e + 1]]
    positions  int64[num_positions]   all positions in `words` where the gram begins
    """

    words: Array
    slots: Array
    grams: Array
    ends: Array
    items: Array
    firsts: Array
    lasts: Array
    starts: Array
    positions: Array


NO_GRAM = -1


@inner
def _power(size):
    """Return the factor of the first of `size` words in a hash."""
    factor = ONE
    for _ in range(size):
        factor *= GOLDEN_MULTIPLIER
    return factor


@inner
def _slot_of(slots, capacity, hashed, grams, words, at, size):
    """Return the slot of the gram at words[at], or the free slot where it belongs.

    grams  int64[...]  the words that slots point to
    """
    slot = home_of(mix(hashed), capacity)
    while slots[slot] != FREE:
        other = slots[slot]
        same = 0
        while same < size and grams[other + same] == words[at + same]:
            same += 1
        if same == size:
            break
        slot += 1
    return slot


@kernel
def number_grams(words, ends, size, capacity, slots, grams):
    """Number the grams of items: equal ones have equal numbers; return how many numbers there are.

    words     int64[num_words]                 numbers, all items end to end
    ends      int64[num_items + 1]             item i owns words[ends[i]:ends[i + 1]]
    size      int64                            of a gram, in words
    capacity  int64                            more than num_words
    slots     int64[capacity + num_words + 1]  FREE on entry; written: the first position of a gram
    grams     int64[num_words]                 written: the number of the gram that begins here, NO_GRAM if none does
    """
    count = 0
    factor = _power(size)
    for item in range(ends.size - 1):
        hashed = np.uint64(0)
        for at in range(ends[item], ends[item + 1]):
            grams[at] = NO_GRAM
            hashed = hashed * GOLDEN_MULTIPLIER + np.uint64(words[at] + 1)
            first = at - size + 1
            if first < ends[item]:
                continue
            if first > ends[item]:
                hashed -= np.uint64(words[first - 1] + 1) * factor
            slot = _slot_of(slots, capacity, hashed, words, words, first, size)
            if slots[slot] == FREE:
                slots[slot] = first
                grams[first] = count
                count += 1
            else:
                grams[first] = grams[slots[slot]]
    return count


@inner
def _cover(grams, entry, size, doc, covered_in):
    """Return the number of words of an item that a gram covers and no earlier gram of the document has covered."""
    count = 0
    for posting in range(grams.starts[entry], grams.starts[entry + 1]):
        first = grams.positions[posting]
        for at in range(first, first + size):
            if covered_in[at] != doc:
                covered_in[at] = doc
                count += 1
    return count


@inner
def _extend(doc, first, gram, size, grams, is_new, seen, covered_in, found, count):
    """Add a gram of a document to the spans of the items that have it; return the number of spans."""
    for entry in range(grams.ends[gram], grams.ends[gram + 1]):
        item = grams.items[entry]
        if seen[item, 0] != doc:
            seen[item, 0] = doc
            seen[item, 1] = 0
            seen[item, 3] = -1
        if is_new:
            seen[item, 1] += _cover(grams, entry, size, doc, covered_in)
        item_first = grams.firsts[entry]
        item_last = grams.lasts[entry] + size - 1
        if first > seen[item, 3]:
            seen[item, 2] = count
            if count < found.shape[0]:
                found[count, DOC] = doc
                found[count, ITEM] = item
                found[count, FIRST] = first
                found[count, ITEM_FIRST] = item_first
                found[count, ITEM_LAST] = item_last
            count += 1
        last = first + size - 1
        seen[item, 3] = last
        row = seen[item, 2]
        if row < found.shape[0]:
            found[row, LAST] = last
            found[row, MATCHED] = last + 1 - found[row, FIRST]
            found[row, ITEM_FIRST] = min(found[row, ITEM_FIRST], item_first)
            found[row, ITEM_LAST] = max(found[row, ITEM_LAST], item_last)
    return count


@kernel
def find_spans(words, ends, size, capacity, grams, scratch, found):
    """Write the spans of documents whose words are in grams of an item; return their number, room or not.

    A span is as long as possible: grams that overlap are in one.

    words     int64[...]            numbers
    ends      int64[num_docs + 1]   document d owns words[ends[d]:ends[d + 1]]
    size      int64                 of a gram, in words
    capacity  int64                 of the slots
    grams     Grams
    scratch   (int64[num_items, 4], int64[num_grams], int64[num_words]), -1 on entry; overwritten: of each item the
              last document, its words that are covered, the last span and its end; of each gram the last document,
              and of each word of items the last document that covers it
    found     int64[room, 8]        written: document, item, words of the item that the document covers, first and
                                    last position, first and last in the item, words of the span
    """
    seen, last_doc, covered_in = scratch
    count = 0
    factor = _power(size)
    for doc in range(ends.size - 1):
        before = count
        hashed = np.uint64(0)
        known = 0
        for at in range(ends[doc], ends[doc + 1]):
            if words[at] < 0:
                known = 0
                hashed = np.uint64(0)
                continue
            hashed = hashed * GOLDEN_MULTIPLIER + np.uint64(words[at] + 1)
            known += 1
            first = at - size + 1
            if known > size:
                hashed -= np.uint64(words[first - 1] + 1) * factor
            if known < size:
                continue
            slot = _slot_of(grams.slots, capacity, hashed, grams.words, words, first, size)
            if grams.slots[slot] == FREE:
                continue
            gram = grams.grams[grams.slots[slot]]
            is_new = last_doc[gram] != doc
            last_doc[gram] = doc
            count = _extend(doc, first, gram, size, grams, is_new, seen, covered_in, found, count)
        for row in range(before, min(count, found.shape[0])):
            found[row, COVERED] = seen[found[row, ITEM], 1]
    return count
