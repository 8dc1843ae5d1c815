"""Stretches that one text copies from another with edits: words changed, left out, added, moved.

Seeds are what survives edits: three words in a row, and two neighbouring uncommon words in any order.
Seeds that are near in both texts make a cluster. Its ends are then chosen so that it is most likely
copied: a word that agrees tells more if it would rarely do so by chance. Clusters that are near become
one span. docs/decisions/0046 has what was measured.

A gram that stands at many positions of both texts is no seed: MAX_SEEDS bounds the pairs of them.
So the seeds are at most a few per word, and all steps are about linear in the words. Long runs of
equal words are seeds in any case.
"""

import numpy as np

from neardup.kernels.align_exact import number_equal
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.mixing import mix
from neardup.kernels.sorting import order_of
from neardup.kernels.union_find import find_root, join

NOWHERE = -1
# Pairs of positions of one gram.
MAX_SEEDS = 64
RUN_WORDS = 3
# Two uncommon words may stand this far apart: others between them are common.
MAX_PAIR_WORDS = 12
# The share of a word in both texts is taken with this many more of it, in so many more words: in
# short texts every word looks frequent.
EXTRA_COUNT = 0.25
EXTRA_WORDS = 250.0
# Words with a larger share are common.
COMMON_SHARE = 0.018
# Seeds that begin within so many words, in both texts, are of one cluster.
MAX_GAP = 60
# A span may end so many words outside its seeds.
REACH = 20
# The share of the words of a copied stretch that agree because they were copied; others may agree by
# chance.
COPIED_SHARE = 0.6
# However often a word is repeated, that it agrees tells a little: texts of one word share it.
MAX_CHANCE = 0.9
ROUNDS = 3
# What is left of a cluster beside a span is searched again, to this depth.
MAX_SPLITS = 4
# Spans are joined if they are so near in one text, and so near in the other.
MAX_NEAR_GAP = 30
MAX_FAR_GAP = 150


@inner
def _share_of(count, num_words):
    """Return the share of a word in both texts, as estimated from its count."""
    return (count + EXTRA_COUNT) / (num_words + EXTRA_WORDS)


@inner
def _number_grams(firsts, positions, num_a, size, kinds):
    """Write to kinds[at] the first of the grams that equal the one at `at`, NOWHERE if there is none.

    firsts     int64[num_words]  the first word that equals each
    positions  int64[...]        the words that grams are made of, those of text a first
    num_a      int64             how many of the positions are in text a
    size       int64             3: words in a row; 2: neighbours in `positions`, in any order
    """
    keys = np.empty(positions.size, np.uint64)
    owners = np.empty(positions.size, np.int64)
    num_grams = 0
    for at in range(positions.size):
        kinds[at] = NOWHERE
        last = at + size - 1
        if last >= positions.size or (at < num_a <= last):
            continue
        one = firsts[positions[at]]
        two = firsts[positions[at + 1]]
        if size == RUN_WORDS:
            key = mix(mix(np.uint64(one)) + np.uint64(two))
            key = mix(key + np.uint64(firsts[positions[last]]))
        else:
            if positions[last] - positions[at] >= MAX_PAIR_WORDS:
                continue
            key = mix(mix(np.uint64(min(one, two))) + np.uint64(max(one, two)))
        keys[num_grams] = key
        owners[num_grams] = at
        num_grams += 1
    same = np.empty(num_grams, np.int64)
    number_equal(keys[:num_grams], same)
    for gram in range(num_grams):
        kinds[owners[gram]] = owners[same[gram]]


@inner
def _count_seeds(kinds, num_a, in_a, in_b, newest, before):
    """Return how many pairs of `_list_seeds` there are; link the positions of each gram in text b."""
    for at in range(kinds.size):
        in_a[at] = 0
        in_b[at] = 0
        newest[at] = NOWHERE
    for at in range(kinds.size - 1, -1, -1):
        kind = kinds[at]
        if kind == NOWHERE:
            continue
        if at < num_a:
            in_a[kind] += 1
        else:
            in_b[kind] += 1
            before[at] = newest[kind]
            newest[kind] = at
    count = np.int64(0)
    for kind in range(kinds.size):
        pairs = in_a[kind] * in_b[kind]
        if pairs <= MAX_SEEDS:
            count += pairs
    return count


@inner
def _list_seeds(kinds, positions, num_a, size, tables, seeds, to):
    in_a, in_b, newest, before = tables
    for at in range(num_a):
        kind = kinds[at]
        if kind == NOWHERE or in_a[kind] * in_b[kind] > MAX_SEEDS:
            continue
        other = newest[kind]
        while other != NOWHERE:
            seeds[to, 0] = positions[at]
            seeds[to, 1] = positions[at + size - 1] + 1
            seeds[to, 2] = positions[other]
            seeds[to, 3] = positions[other + size - 1] + 1
            to += 1
            other = before[other]
    return to


@inner
def _order_by(values, num_values):
    """Return the positions of small numbers in ascending order; the sort is stable."""
    ends = np.zeros(num_values + 1, np.int64)
    for at in range(values.size):
        ends[values[at] + 1] += 1
    for value in range(num_values):
        ends[value + 1] += ends[value]
    order = np.empty(values.size, np.int64)
    for at in range(values.size):
        order[ends[values[at]]] = at
        ends[values[at]] += 1
    return order


@inner
def _list_long_runs(runs, num_a, seeds, to):
    """Add what each run has behind the runs before it, so that all together are no longer than text a."""
    end = np.int64(0)
    for run in range(runs.shape[0]):
        skipped = max(np.int64(0), end - runs[run, 0])
        if runs[run, 2] - skipped < RUN_WORDS:
            continue
        end = runs[run, 0] + runs[run, 2]
        seeds[to, 0] = runs[run, 0] + skipped
        seeds[to, 1] = end
        seeds[to, 2] = runs[run, 1] + skipped + num_a
        seeds[to, 3] = runs[run, 1] + runs[run, 2] + num_a
        to += 1
    return to


@inner
def _find_seeds(firsts, counts, num_a, long_runs):
    """Return all seeds, as (start and end in a, start and end in b), in order of where they begin in a."""
    every = np.arange(firsts.size)
    uncommon = np.empty(firsts.size, np.int64)
    num_uncommon = 0
    num_uncommon_a = 0
    for at in range(firsts.size):
        if _share_of(counts[firsts[at]], firsts.size) <= COMMON_SHARE:
            uncommon[num_uncommon] = at
            num_uncommon += 1
            num_uncommon_a += at < num_a
    uncommon = uncommon[:num_uncommon]
    runs = np.empty(every.size, np.int64)
    _number_grams(firsts, every, num_a, RUN_WORDS, runs)
    pairs = np.empty(uncommon.size, np.int64)
    _number_grams(firsts, uncommon, num_uncommon_a, 2, pairs)
    run_tables = (
        np.empty(runs.size, np.int64),
        np.empty(runs.size, np.int64),
        np.empty(runs.size, np.int64),
        np.empty(runs.size, np.int64),
    )
    pair_tables = (
        np.empty(pairs.size, np.int64),
        np.empty(pairs.size, np.int64),
        np.empty(pairs.size, np.int64),
        np.empty(pairs.size, np.int64),
    )
    room = long_runs.shape[0] + _count_seeds(runs, num_a, *run_tables)
    room += _count_seeds(pairs, num_uncommon_a, *pair_tables)
    seeds = np.empty((room, 4), np.int64)
    to = _list_seeds(runs, every, num_a, RUN_WORDS, run_tables, seeds, 0)
    to = _list_seeds(pairs, uncommon, num_uncommon_a, 2, pair_tables, seeds, to)
    room = _list_long_runs(long_runs, num_a, seeds, to)
    ordered = np.empty((room, 4), np.int64)
    order = _order_by(seeds[:room, 0], num_a)
    for to in range(room):
        for side in range(4):
            ordered[to, side] = seeds[order[to], side]
    return ordered


@inner
def _cluster(seeds, num_a, num_words):
    """Return for each seed the first one of its cluster.

    Two seeds are joined if they begin within MAX_GAP words in both texts. Cells are MAX_GAP words of b: recent
    seeds of one cell are joined already, so a seed needs only the newest of its own cell, and any recent one near
    enough of each cell beside it.
    """
    parents = np.arange(seeds.shape[0])
    newest_at = np.full(num_words - num_a, NOWHERE, np.int64)
    newest_in = np.full((num_words - num_a) // MAX_GAP + 3, NOWHERE, np.int64)
    for seed in range(seeds.shape[0]):
        oldest = seeds[seed, 0] - MAX_GAP
        position = seeds[seed, 2] - num_a
        cell = position // MAX_GAP + 1
        newest = newest_in[cell]
        if newest != NOWHERE and seeds[newest, 0] >= oldest:
            join(parents, seed, newest)
        newest = newest_in[cell - 1]
        if newest != NOWHERE and seeds[newest, 0] >= oldest:
            for at in range((cell - 1) * MAX_GAP - 1, position - MAX_GAP - 1, -1):
                newest = newest_at[at]
                if newest != NOWHERE and seeds[newest, 0] >= oldest:
                    join(parents, seed, newest)
                    break
        newest = newest_in[cell + 1]
        if newest != NOWHERE and seeds[newest, 0] >= oldest:
            for at in range(cell * MAX_GAP, min(position + MAX_GAP + 1, newest_at.size)):
                newest = newest_at[at]
                if newest != NOWHERE and seeds[newest, 0] >= oldest:
                    join(parents, seed, newest)
                    break
        newest_at[position] = seed
        newest_in[cell] = seed
    for seed in range(seeds.shape[0]):
        parents[seed] = find_root(parents, seed)
    return parents


@inner
def _number_clusters(clusters):
    """Replace the first seed of each cluster by the number of the cluster; return how many there are."""
    num_clusters = 0
    for seed in range(clusters.size):
        # The first seed is the smallest one, so its number is known before it is asked for.
        if clusters[seed] == seed:
            clusters[seed] = num_clusters
            num_clusters += 1
        else:
            clusters[seed] = clusters[clusters[seed]]
    return num_clusters


@inner
def _box_of(seeds, order, first, stop):
    """Return the box of some seeds: start and end in a, start and end in b."""
    start_a, end_a, start_b, end_b = seeds[order[first]]
    for at in range(first + 1, stop):
        seed = order[at]
        end_a = max(end_a, seeds[seed, 1])
        start_b = min(start_b, seeds[seed, 2])
        end_b = max(end_b, seeds[seed, 3])
    return start_a, end_a, start_b, end_b


@inner
def _find_runs(seeds, numbers, num_clusters, num_words, ends):
    """Return the runs of equal words of every cluster, as (start in a, start in b, words), the longest first.

    numbers  int64[num_seeds]         the cluster of each seed
    ends     int64[num_clusters + 1]  written; cluster c owns runs[ends[c]:ends[c + 1]]
    """
    keys = np.empty(seeds.shape[0], np.uint64)
    for seed in range(seeds.shape[0]):
        diagonal = seeds[seed, 2] - seeds[seed, 0]
        keys[seed] = np.uint64(numbers[seed]) * np.uint64(num_words + 1) + np.uint64(diagonal)
    runs = np.empty((seeds.shape[0], 4), np.int64)
    num_runs = 0
    last_key = np.uint64(0)
    for seed in order_of(keys):
        is_run = (
            seeds[seed, 1] - seeds[seed, 0] == RUN_WORDS
            and seeds[seed, 3] - seeds[seed, 2] == RUN_WORDS
        )
        if not is_run:
            continue
        last = num_runs - 1
        if num_runs and keys[seed] == last_key and seeds[seed, 0] <= runs[last, 0] + runs[last, 2]:
            runs[last, 2] = max(runs[last, 2], seeds[seed, 1] - runs[last, 0])
            continue
        last_key = keys[seed]
        runs[num_runs, 0] = seeds[seed, 0]
        runs[num_runs, 1] = seeds[seed, 2]
        runs[num_runs, 2] = RUN_WORDS
        runs[num_runs, 3] = numbers[seed]
        num_runs += 1
    for cluster in range(num_clusters + 1):
        ends[cluster] = 0
    longest_first = np.empty(num_runs, np.uint64)
    for run in range(num_runs):
        ends[runs[run, 3] + 1] += 1
        longest_first[run] = np.uint64(runs[run, 3]) * np.uint64(num_words + 1) + np.uint64(
            num_words - runs[run, 2]
        )
    for cluster in range(num_clusters):
        ends[cluster + 1] += ends[cluster]
    ordered = np.empty((num_runs, 3), np.int64)
    order = order_of(longest_first)
    for to in range(num_runs):
        for side in range(3):
            ordered[to, side] = runs[order[to], side]
    return ordered


@inner
def _match_runs(firsts, runs, first, stop, partners):
    """Match the words of runs one to one, in the order of the runs."""
    for run in range(first, stop):
        for step in range(runs[run, 2]):
            one = runs[run, 0] + step
            other = runs[run, 1] + step
            # Grams are equal by their hashes only, so the words are compared here.
            is_free = partners[one] == NOWHERE and partners[other] == NOWHERE
            if is_free and firsts[one] == firsts[other]:
                partners[one] = other
                partners[other] = one


@inner
def _forget_runs(runs, first, stop, partners):
    for run in range(first, stop):
        for step in range(runs[run, 2]):
            partners[runs[run, 0] + step] = NOWHERE
            partners[runs[run, 1] + step] = NOWHERE


@inner
def _match_rest(firsts, box, partners, matched, newest, before):
    """Write the partner of every word of a box: that of its run if it is in the box, else an equal word left over.

    box      (start and end in a, start and end in b)
    newest   int64[num_words]  NOWHERE everywhere, before and after
    """
    start_a, end_a, start_b, end_b = box
    for at in range(end_b - 1, start_b - 1, -1):
        partner = partners[at]
        if start_a <= partner < end_a:
            matched[at] = partner
        else:
            matched[at] = NOWHERE
            before[at] = newest[firsts[at]]
            newest[firsts[at]] = at
    for at in range(start_a, end_a):
        partner = partners[at]
        if not start_b <= partner < end_b:
            partner = newest[firsts[at]]
            if partner != NOWHERE:
                newest[firsts[at]] = before[partner]
                matched[partner] = at
        matched[at] = partner
    for at in range(start_b, end_b):
        newest[firsts[at]] = NOWHERE


@inner
def _count_inside(firsts, box, step, inside):
    for at in range(box[0], box[1]):
        inside[firsts[at]] += step
    for at in range(box[2], box[3]):
        inside[firsts[at]] += step


@inner
def _most_copied(texts, matched, start, end, box, num_other):
    """Return the stretch that is most likely copied, by the logarithm of the odds; empty if there is none.

    box        what is known to be copied: how often a word stands elsewhere gives the chance that it agrees
    num_other  the words of the other text that it may agree with
    """
    firsts, counts, inside, _ = texts
    _count_inside(firsts, box, 1, inside)
    best = 0.0
    best_start = start
    best_end = start
    odds = 0.0
    since = start
    of_different = np.log(1.0 - COPIED_SHARE)
    for at in range(start, end):
        if odds <= 0.0:
            odds = 0.0
            since = at
        if matched[at] == NOWHERE:
            odds += of_different
        else:
            elsewhere = counts[firsts[at]] - inside[firsts[at]]
            chance = 1.0 - np.exp(-num_other * _share_of(elsewhere, firsts.size))
            chance = min(chance, MAX_CHANCE)
            odds += np.log(1.0 + COPIED_SHARE * (1.0 - chance) / chance)
        if odds > best:
            best = odds
            best_start = since
            best_end = at + 1
    _count_inside(firsts, box, -1, inside)
    return best_start, best_end


@inner
def _refine(texts, box, bounds, scratch):
    """Return the box with the ends of each side chosen by the words of the other side; empty if nothing is left.

    bounds  the words of a that the box may have
    """
    firsts, _, _, num_a = texts
    partners, matched, newest, before = scratch
    start_a, end_a, start_b, end_b = box
    for _ in range(ROUNDS):
        low = max(bounds[0], start_a - REACH)
        high = min(bounds[1], end_a + REACH)
        _match_rest(firsts, (low, high, start_b, end_b), partners, matched, newest, before)
        box = (start_a, end_a, start_b, end_b)
        start_a, end_a = _most_copied(texts, matched, low, high, box, end_b - start_b)
        low = max(num_a, start_b - REACH)
        high = min(np.int64(firsts.size), end_b + REACH)
        _match_rest(firsts, (start_a, end_a, low, high), partners, matched, newest, before)
        box = (start_a, end_a, start_b, end_b)
        start_b, end_b = _most_copied(texts, matched, low, high, box, end_a - start_a)
        if end_a == start_a or end_b == start_b:
            break
    return start_a, end_a, start_b, end_b


@inner
def _num_matched(matched, start, end):
    count = 0
    for at in range(start, end):
        count += matched[at] != NOWHERE
    return count


@inner
def _is_near(one, other):
    gap_a = max(one[0], other[0]) - min(one[1], other[1])
    gap_b = max(one[2], other[2]) - min(one[3], other[3])
    is_same_a = -2 * gap_a > min(one[1] - one[0], other[1] - other[0])
    is_same_b = -2 * gap_b > min(one[3] - one[2], other[3] - other[2])
    if is_same_a != is_same_b:  # two copies of one stretch
        return False
    return min(gap_a, gap_b) <= MAX_NEAR_GAP and max(gap_a, gap_b) <= MAX_FAR_GAP


@inner
def _join_near(spans, parents):
    """Join spans that are near in both texts, and write the first span of each union; spans begin in order in a."""
    for span in range(parents.size):
        parents[span] = span
    for span in range(parents.size):
        for later in range(span + 1, parents.size):
            if spans[later, 0] - spans[span, 1] > MAX_FAR_GAP:
                break
            if _is_near(spans[span], spans[later]):
                join(parents, span, later)
    for span in range(parents.size):
        root = find_root(parents, span)
        parents[span] = root
        spans[root, 0] = min(spans[root, 0], spans[span, 0])
        spans[root, 1] = max(spans[root, 1], spans[span, 1])
        spans[root, 2] = min(spans[root, 2], spans[span, 2])
        spans[root, 3] = max(spans[root, 3], spans[span, 3])


@inner
def _first_from(seeds, order, first, stop, start):
    """Return the first of some seeds, in the order of a, that begins at `start` or later."""
    while first < stop:
        middle = (first + stop) >> 1
        if seeds[order[middle], 0] < start:
            first = middle + 1
        else:
            stop = middle
    return first


@inner
def _push(todo, num_todo, part, bounds, depth):
    todo[num_todo, 0], todo[num_todo, 1] = part
    todo[num_todo, 2], todo[num_todo, 3] = bounds
    todo[num_todo, 4] = depth
    return num_todo + 1


@inner
def _refine_clusters(texts, min_words, seeds, numbers, num_clusters, runs, run_ends, scratch):
    """Return the spans of clusters in which enough words agree, each with the number of its cluster.

    texts  (firsts, counts, inside, num_a): of each word the first equal one, and of each first one how often it stands
           in both texts; inside is zero before and after

    Seeds before and behind a span of their cluster may make spans of their own.
    """
    firsts, _, _, num_a = texts
    partners, matched, newest, before = scratch
    order = _order_by(numbers, num_clusters)
    spans = np.empty((seeds.shape[0], 5), np.int64)
    todo = np.empty((2 * MAX_SPLITS + 2, 5), np.int64)
    num_spans = 0
    first = 0
    while first < order.size:
        cluster = numbers[order[first]]
        stop = first
        while stop < order.size and numbers[order[stop]] == cluster:
            stop += 1
        _match_runs(firsts, runs, run_ends[cluster], run_ends[cluster + 1], partners)
        num_todo = _push(todo, 0, (first, stop), (np.int64(0), num_a), 0)
        while num_todo:
            num_todo -= 1
            low, high, bound_low, bound_high, depth = todo[num_todo]
            if high == low:
                continue
            start_a, end_a, start_b, end_b = _box_of(seeds, order, low, high)
            if high - low == 1 and end_a - start_a < MAX_PAIR_WORDS:
                continue
            box = (start_a, min(end_a, bound_high), start_b, end_b)
            box = _refine(texts, box, (bound_low, bound_high), scratch)
            start_a, end_a, start_b, end_b = box
            if end_a == start_a or end_b == start_b:
                continue
            _match_rest(firsts, box, partners, matched, newest, before)
            if _num_matched(matched, start_a, end_a) < min_words:
                continue
            spans[num_spans, 0] = start_a
            spans[num_spans, 1] = end_a
            spans[num_spans, 2] = start_b
            spans[num_spans, 3] = end_b
            spans[num_spans, 4] = cluster
            num_spans += 1
            if depth < MAX_SPLITS:
                middle = _first_from(seeds, order, low, high, start_a)
                num_todo = _push(todo, num_todo, (low, middle), (bound_low, start_a), depth + 1)
                middle = _first_from(seeds, order, low, high, end_a)
                num_todo = _push(todo, num_todo, (middle, high), (end_a, bound_high), depth + 1)
        _forget_runs(runs, run_ends[cluster], run_ends[cluster + 1], partners)
        first = stop
    order = _order_by(spans[:num_spans, 0], num_a)
    ordered = np.empty((num_spans, 5), np.int64)
    for to in range(num_spans):
        for side in range(5):
            ordered[to, side] = spans[order[to], side]
    return ordered


@inner
def _match_span(firsts, spans, members, first, stop, runs, run_ends, scratch):
    """Match the words of a union of spans; return how many."""
    partners, matched, newest, before = scratch
    root = members[first]
    box = (spans[root, 0], spans[root, 1], spans[root, 2], spans[root, 3])
    for at in range(first, stop):
        cluster = spans[members[at], 4]
        _match_runs(firsts, runs, run_ends[cluster], run_ends[cluster + 1], partners)
    _match_rest(firsts, box, partners, matched, newest, before)
    for at in range(first, stop):
        cluster = spans[members[at], 4]
        _forget_runs(runs, run_ends[cluster], run_ends[cluster + 1], partners)
    return _num_matched(matched, box[0], box[1])


@inner
def _choose(spans, words, num_a):
    """Tell which spans to list: of those that overlap in a, the ones with the most words."""
    most_first = np.empty(words.size, np.uint64)
    most = np.int64(0)
    for span in range(words.size):
        most = max(most, words[span])
    for span in range(words.size):
        most_first[span] = np.uint64(most - words[span])
    covered = np.zeros(num_a, np.bool_)
    chosen = np.zeros(words.size, np.bool_)
    for span in order_of(most_first):
        if words[span] == 0:
            continue
        num_covered = np.int64(0)
        for at in range(spans[span, 0], spans[span, 1]):
            num_covered += covered[at]
        if 2 * num_covered > spans[span, 1] - spans[span, 0]:
            continue
        chosen[span] = True
        for at in range(spans[span, 0], spans[span, 1]):
            covered[at] = True
    return chosen


@kernel
def edited_spans(words, num_a, min_words, long_runs):
    """Return the spans that agree, the words that do, and where the words of each span end.

    words      uint64[num_words]      the word hashes of text a, then those of text b
    num_a      int64                  words of text a
    min_words  int64                  matched words of a span
    long_runs  int64[num_runs, 3]     of `shared_runs`: seeds however often they are repeated

    spans      int64[num_spans, 4]    start and end in a, start and end in b, in words; in the order of a
    matches    int64[num_matches, 2]  equal words, one of a and one of b, in the order of a
    ends       int64[num_spans + 1]   span s owns matches[ends[s]:ends[s + 1]]
    """
    num_words = words.size
    firsts = np.empty(num_words, np.int64)
    number_equal(words, firsts)
    counts = np.zeros(num_words, np.int64)
    for at in range(num_words):
        counts[firsts[at]] += 1
    seeds = _find_seeds(firsts, counts, num_a, long_runs)
    numbers = _cluster(seeds, num_a, num_words)
    num_clusters = _number_clusters(numbers)
    run_ends = np.empty(num_clusters + 1, np.int64)
    runs = _find_runs(seeds, numbers, num_clusters, num_words, run_ends)
    scratch = (
        np.full(num_words, NOWHERE, np.int64),
        np.full(num_words, NOWHERE, np.int64),
        np.full(num_words, NOWHERE, np.int64),
        np.full(num_words, NOWHERE, np.int64),
    )
    texts = (firsts, counts, np.zeros(num_words, np.int64), num_a)
    spans = _refine_clusters(
        texts, min_words, seeds, numbers, num_clusters, runs, run_ends, scratch
    )
    roots = np.empty(spans.shape[0], np.int64)
    _join_near(spans, roots)
    members = _order_by(roots, spans.shape[0])
    # The number of matched words stands with the first span of a union.
    counts = np.zeros(spans.shape[0], np.int64)
    stops = np.zeros(spans.shape[0], np.int64)
    first = 0
    for at in range(members.size):
        stops[roots[members[at]]] = at + 1
    while first < members.size:
        root = members[first]
        counts[root] = _match_span(
            firsts, spans, members, first, stops[root], runs, run_ends, scratch
        )
        first = stops[root]
    chosen = _choose(spans, counts, num_a)
    num_chosen = 0
    num_matches = np.int64(0)
    for span in range(chosen.size):
        if chosen[span]:
            num_chosen += 1
            num_matches += counts[span]
    found = np.empty((num_chosen, 4), np.int64)
    matches = np.empty((num_matches, 2), np.int64)
    ends = np.zeros(num_chosen + 1, np.int64)
    to = 0
    num_written = 0
    first = 0
    while first < members.size:
        root = members[first]
        if chosen[root]:
            _match_span(firsts, spans, members, first, stops[root], runs, run_ends, scratch)
            matched = scratch[1]
            for at in range(spans[root, 0], spans[root, 1]):
                if matched[at] != NOWHERE:
                    matches[num_written, 0] = at
                    matches[num_written, 1] = matched[at] - num_a
                    num_written += 1
            found[to, 0] = spans[root, 0]
            found[to, 1] = spans[root, 1]
            found[to, 2] = spans[root, 2] - num_a
            found[to, 3] = spans[root, 3] - num_a
            to += 1
            ends[to] = num_written
        first = stops[root]
    return found, matches, ends
