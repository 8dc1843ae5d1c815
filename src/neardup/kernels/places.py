"""The first place of every window of words, found through anchors and confirmed word by word.

Equal windows have equal anchors at the same distance from their start: the *reach* of a window, the words from
its start to its anchor. A *bundle* is an anchor with the windows, by reach, whose first place is not known yet.
Bundles with the same key are a group, whose first bundle is its leader: a window of another bundle that equals the
window of the leader with the same reach has its first place there. What is left of a bundle differs from its leader in
a word to the left, or in one to the right: it becomes a new bundle, whose key has this word too. So a window is never
compared with all others of its anchor, and a key alone decides nothing.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, mix

TO_THE_LEFT = np.uint64(1)
TO_THE_RIGHT = np.uint64(2)
# Bundles with the same key, but other words.
ELSEWHERE = np.uint64(3)


@inner
def _next_key(key, side, extent, word):
    """Return the key of the bundles of a group that also share a word, `extent` words away from their anchor."""
    return mix(mix((key ^ side) + np.uint64(extent) * GOLDEN_MULTIPLIER) ^ word)


@kernel
def compare_bundles(first, stop, leaders, bundles, anchors, shape, words, stretches, rest):
    """Compare bundles with their leaders; return the numbers of stretches and of new bundles.

    first, stop  int64             the bundles to compare
    leaders      int64[num_bundles] the leader of each; its own number for a leader, -1 for a bundle alone
    bundles       (keys, anchor, lows, highs, lefts, rights), each [num_bundles]:
        keys            uint64  equal in a group
        anchor          int64   number of the anchor
        lows, highs     int32   least and largest reach of the windows
        lefts, rights   int32   words next to the anchor that all bundles with this key share
    anchors      (docs, groups, positions, offsets), each [num_anchors]:
        docs       int64  the row of the document
        groups     int64  only documents of the same group are compared
        positions  int64  first word of the anchor in the document
        offsets    int64  the same in `words`
    shape        (size, longest): words in an anchor, and the largest reach a window can have
    words        uint64[...]       the words around anchors
    stretches    (docs, starts, counts, sources, source_starts), int64, room for stop - first; written: consecutive
                 windows of a document, and where the first of them stands first
    rest         as bundles, room for twice stop - first; written: what is left
    """
    keys, owners, lows, highs, lefts, rights = bundles
    docs, groups, positions, offsets = anchors
    size, longest = shape
    stretch_docs, stretch_starts, stretch_counts, stretch_sources, stretch_source_starts = stretches
    new_keys, new_owners, new_lows, new_highs, new_lefts, new_rights = rest
    num_stretches = 0
    num_rest = 0
    for bundle in range(first, stop):
        leader = leaders[bundle]
        if leader < 0 or leader == bundle:
            continue
        own = owners[bundle]
        other = owners[leader]
        low = np.int64(lows[bundle])
        high = np.int64(highs[bundle])
        left = np.int64(lefts[bundle])
        right = np.int64(rights[bundle])
        is_alike = (
            own != other
            and groups[own] == groups[other]
            and left == lefts[leader]
            and right == rights[leader]
        )
        offset = offsets[own]
        other_offset = offsets[other]
        if is_alike:
            for at in range(size):
                if words[offset + at] != words[other_offset + at]:
                    is_alike = False
                    break
        before = np.int64(0)
        behind = np.int64(0)
        if is_alike:
            most = min(high, np.int64(highs[leader]))
            while before < most and words[offset - 1 - before] == words[other_offset - 1 - before]:
                before += 1
            most = longest - max(low, np.int64(lows[leader]))
            end = offset + size
            other_end = other_offset + size
            while behind < most and words[end + behind] == words[other_end + behind]:
                behind += 1
            is_alike = before >= left and behind >= right
        if not is_alike:
            new_keys[num_rest] = _next_key(keys[bundle], ELSEWHERE, 0, GOLDEN_MULTIPLIER)
            new_owners[num_rest] = own
            new_lows[num_rest] = low
            new_highs[num_rest] = high
            new_lefts[num_rest] = left
            new_rights[num_rest] = right
            num_rest += 1
            continue
        least = max(low, longest - behind)
        most = min(high, before)
        if least <= most:
            start = positions[own] - most
            source_start = positions[other] - most
            count = most - least + 1
            last = num_stretches - 1
            if (
                last >= 0
                and stretch_docs[last] == docs[own]
                and stretch_sources[last] == docs[other]
                and stretch_starts[last] + stretch_counts[last] == start
                and stretch_source_starts[last] + stretch_counts[last] == source_start
            ):
                stretch_counts[last] += count
            else:
                stretch_docs[num_stretches] = docs[own]
                stretch_starts[num_stretches] = start
                stretch_counts[num_stretches] = count
                stretch_sources[num_stretches] = docs[other]
                stretch_source_starts[num_stretches] = source_start
                num_stretches += 1
        if before < high:
            new_keys[num_rest] = _next_key(
                keys[bundle], TO_THE_LEFT, before, words[offset - 1 - before]
            )
            new_owners[num_rest] = own
            new_lows[num_rest] = max(low, before + 1)
            new_highs[num_rest] = high
            new_lefts[num_rest] = before + 1
            new_rights[num_rest] = right
            num_rest += 1
        most = min(high, before, longest - behind - 1)
        if low <= most:
            new_keys[num_rest] = _next_key(
                keys[bundle], TO_THE_RIGHT, behind, words[offset + size + behind]
            )
            new_owners[num_rest] = own
            new_lows[num_rest] = low
            new_highs[num_rest] = most
            new_lefts[num_rest] = left
            new_rights[num_rest] = behind + 1
            num_rest += 1
    return num_stretches, num_rest


@kernel
def cover_anchors(docs, positions, befores, counts, length, offsets, islands):
    """Lay out the words around anchors; return the numbers of islands and of words.

    docs, positions, befores, counts  [num_anchors]  of kernels/anchors.py, in input order
    length   int64               words in a window
    offsets  int64[num_anchors]  written: where the first word of each anchor will be
    islands  (docs, starts, ends, offsets), int64, room for one an anchor; written: the words of a document around
             neighbouring anchors, and where they will be
    """
    island_docs, island_starts, island_ends, island_offsets = islands
    num_islands = 0
    num_words = 0
    for anchor in range(docs.size):
        start = np.int64(positions[anchor]) - befores[anchor]
        end = start + counts[anchor] - 1 + length
        last = num_islands - 1
        if last >= 0 and island_docs[last] == docs[anchor] and start <= island_ends[last]:
            num_words += max(end - island_ends[last], 0)
            island_ends[last] = max(end, island_ends[last])
        else:
            last = num_islands
            island_docs[last] = docs[anchor]
            island_starts[last] = start
            island_ends[last] = end
            island_offsets[last] = num_words
            num_words += end - start
            num_islands += 1
        offsets[anchor] = island_offsets[last] + positions[anchor] - island_starts[last]
    return num_islands, num_words


@kernel
def store_words(words, ends, first_islands, islands, stored):
    """Copy the words of islands to their places.

    words          uint64[...]           hashes of words, all documents end to end
    ends           int64 [num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    first_islands  int64 [num_docs]      the first island that may be of document d
    islands        (docs, starts, ends, offsets)  of `cover_anchors`
    stored         uint64[...]           written
    """
    island_docs, starts, stops, offsets = islands
    for doc in range(ends.size - 1):
        island = first_islands[doc]
        if island == island_docs.size:
            continue
        row = island_docs[island]
        while island < island_docs.size and island_docs[island] == row:
            first = ends[doc] + starts[island]
            to = offsets[island]
            for at in range(stops[island] - starts[island]):
                stored[to + at] = words[first + at]
            island += 1


@kernel
def join_stretches(docs, starts, counts, sources, source_starts):
    """Join stretches of windows that continue each other, in place; return how many are left.

    docs, starts, counts, sources, source_starts  int64[num_stretches]  sorted by document and start
    """
    last = -1
    for stretch in range(docs.size):
        if (
            last >= 0
            and docs[last] == docs[stretch]
            and sources[last] == sources[stretch]
            and starts[last] + counts[last] == starts[stretch]
            and source_starts[last] + counts[last] == source_starts[stretch]
        ):
            counts[last] += counts[stretch]
            continue
        last += 1
        docs[last] = docs[stretch]
        starts[last] = starts[stretch]
        counts[last] = counts[stretch]
        sources[last] = sources[stretch]
        source_starts[last] = source_starts[stretch]
    return last + 1
