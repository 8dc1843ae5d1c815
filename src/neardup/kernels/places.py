"""The first place of every window of words, found through anchors and confirmed word by word.

Equal windows have equal anchors at the same distance from their start: the *reach* of a window, the words from
its start to its anchor. A *piece* is an anchor with the windows, by reach, whose first place is not known yet.
Pieces with the same key are a group, whose first piece is its leader: a window of another piece that equals the
window of the leader with the same reach has its first place there. What is left of a piece differs from its leader in
a word to the left, or in one to the right: it becomes a new piece, whose key has this word too. So a window is never
compared with all others of its anchor, and a key alone decides nothing.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, mix

TO_THE_LEFT = np.uint64(1)
TO_THE_RIGHT = np.uint64(2)
# Pieces with the same key, but other words.
ELSEWHERE = np.uint64(3)


@inner
def _next_key(key, side, extent, word):
    """Return the key of the pieces of a group that also share a word, `extent` words away from their anchor."""
    return mix(mix((key ^ side) + np.uint64(extent) * GOLDEN_MULTIPLIER) ^ word)


@kernel
def compare_pieces(first, stop, leaders, pieces, anchors, shape, words, runs, rest):
    """Compare pieces with their leaders; return the numbers of runs and of new pieces.

    first, stop  int64             the pieces to compare
    leaders      int64[num_pieces] the leader of each; its own number for a leader, -1 for a piece alone
    pieces       (keys, anchor, lows, highs, lefts, rights), each [num_pieces]:
        keys            uint64  equal in a group
        anchor          int64   number of the anchor
        lows, highs     int32   least and largest reach of the windows
        lefts, rights   int32   words next to the anchor that all pieces with this key share
    anchors      (docs, groups, positions, places), each [num_anchors]:
        docs       int64  the row of the document
        groups     int64  only documents of the same group are compared
        positions  int64  first word of the anchor in the document
        places     int64  the same in `words`
    shape        (size, longest): words in an anchor, and the largest reach a window can have
    words        uint64[...]       the words around anchors
    runs         (docs, starts, counts, sources, source_starts), int64, room for stop - first; written: consecutive
                 windows of a document, and where the first of them stands first
    rest         as pieces, room for twice stop - first; written: what is left
    """
    keys, owners, lows, highs, lefts, rights = pieces
    docs, groups, positions, places = anchors
    size, longest = shape
    run_docs, run_starts, run_counts, run_sources, run_source_starts = runs
    new_keys, new_owners, new_lows, new_highs, new_lefts, new_rights = rest
    num_runs = 0
    num_rest = 0
    for piece in range(first, stop):
        leader = leaders[piece]
        if leader < 0 or leader == piece:
            continue
        own = owners[piece]
        other = owners[leader]
        low = np.int64(lows[piece])
        high = np.int64(highs[piece])
        left = np.int64(lefts[piece])
        right = np.int64(rights[piece])
        is_alike = (
            own != other
            and groups[own] == groups[other]
            and left == lefts[leader]
            and right == rights[leader]
        )
        place = places[own]
        other_place = places[other]
        if is_alike:
            for at in range(size):
                if words[place + at] != words[other_place + at]:
                    is_alike = False
                    break
        before = np.int64(0)
        behind = np.int64(0)
        if is_alike:
            most = min(high, np.int64(highs[leader]))
            while before < most and words[place - 1 - before] == words[other_place - 1 - before]:
                before += 1
            most = longest - max(low, np.int64(lows[leader]))
            end = place + size
            other_end = other_place + size
            while behind < most and words[end + behind] == words[other_end + behind]:
                behind += 1
            is_alike = before >= left and behind >= right
        if not is_alike:
            new_keys[num_rest] = _next_key(keys[piece], ELSEWHERE, 0, GOLDEN_MULTIPLIER)
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
            last = num_runs - 1
            if (
                last >= 0
                and run_docs[last] == docs[own]
                and run_sources[last] == docs[other]
                and run_starts[last] + run_counts[last] == start
                and run_source_starts[last] + run_counts[last] == source_start
            ):
                run_counts[last] += count
            else:
                run_docs[num_runs] = docs[own]
                run_starts[num_runs] = start
                run_counts[num_runs] = count
                run_sources[num_runs] = docs[other]
                run_source_starts[num_runs] = source_start
                num_runs += 1
        if before < high:
            new_keys[num_rest] = _next_key(
                keys[piece], TO_THE_LEFT, before, words[place - 1 - before]
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
                keys[piece], TO_THE_RIGHT, behind, words[place + size + behind]
            )
            new_owners[num_rest] = own
            new_lows[num_rest] = low
            new_highs[num_rest] = most
            new_lefts[num_rest] = left
            new_rights[num_rest] = behind + 1
            num_rest += 1
    return num_runs, num_rest


@kernel
def cover_anchors(docs, positions, befores, counts, length, places, islands):
    """Lay out the words around anchors; return the numbers of islands and of words.

    docs, positions, befores, counts  [num_anchors]  of kernels/anchors.py, in input order
    length   int64               words in a window
    places   int64[num_anchors]  written: where the first word of each anchor will be
    islands  (docs, starts, ends, places), int64, room for one an anchor; written: the words of a document around
             neighbouring anchors, and where they will be
    """
    island_docs, island_starts, island_ends, island_places = islands
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
            island_places[last] = num_words
            num_words += end - start
            num_islands += 1
        places[anchor] = island_places[last] + positions[anchor] - island_starts[last]
    return num_islands, num_words


@kernel
def store_words(words, ends, first_islands, islands, stored):
    """Copy the words of islands to their places.

    words          uint64[...]           hashes of words, all documents end to end
    ends           int64 [num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    first_islands  int64 [num_docs]      the first island that may be of document d
    islands        (docs, starts, ends, places)  of `cover_anchors`
    stored         uint64[...]           written
    """
    island_docs, starts, stops, places = islands
    for doc in range(ends.size - 1):
        island = first_islands[doc]
        if island == island_docs.size:
            continue
        row = island_docs[island]
        while island < island_docs.size and island_docs[island] == row:
            for at in range(stops[island] - starts[island]):
                stored[places[island] + at] = words[ends[doc] + starts[island] + at]
            island += 1


@kernel
def join_runs(docs, starts, counts, sources, source_starts):
    """Join runs of windows that continue each other, in place; return how many are left.

    docs, starts, counts, sources, source_starts  int64[num_runs]  of `compare_pieces`, sorted by document and start
    """
    last = -1
    for run in range(docs.size):
        if (
            last >= 0
            and docs[last] == docs[run]
            and sources[last] == sources[run]
            and starts[last] + counts[last] == starts[run]
            and source_starts[last] + counts[last] == source_starts[run]
        ):
            counts[last] += counts[run]
            continue
        last += 1
        docs[last] = docs[run]
        starts[last] = starts[run]
        counts[last] = counts[run]
        sources[last] = sources[run]
        source_starts[last] = source_starts[run]
    return last + 1
