"""The maximal runs of words that two texts share, found in time about linear in their words.

Windows of `min_words` words that only one text has are dropped first, which leaves little of texts
that share little. A suffix automaton of what is left of text b then tells, for every position of
text a, the longest run ending there that b also has, and where in b it stands first. Nothing
depends on how often a word or a window is repeated.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import bits_for, find_firsts, find_firsts_by_sorting
from neardup.kernels.mixing import FIRST_MULTIPLIER, GOLDEN_MULTIPLIER, mix

NONE = np.int32(-1)
ROOT = np.int32(0)
HALF = np.uint64(32)
ZERO = np.uint64(0)
ONE = np.uint64(1)


@inner
def number_equal(keys, firsts):
    """Write to firsts[at] the first position of a key equal to keys[at]."""
    bits = bits_for(keys.size)
    owners = np.empty(np.int64(1) << bits, np.int64)
    if not find_firsts(keys, np.uint64(64 - bits), ZERO, owners, firsts):
        find_firsts_by_sorting(keys, firsts)


@inner
def window_keys(words, start, stop, size, keys, to):
    """Write a hash of every window of `size` words; equal windows have equal hashes. Return where they end."""
    base = GOLDEN_MULTIPLIER
    power = ONE
    for _ in range(size):
        power *= base
    rolling = ZERO
    for at in range(start, stop):
        rolling = rolling * base + mix(words[at] ^ FIRST_MULTIPLIER)
        if at - start >= size:
            rolling -= mix(words[at - size] ^ FIRST_MULTIPLIER) * power
        if at - start + 1 >= size:
            keys[to] = mix(rolling)
            to += 1
    return to


@inner
def _is_shared(words, num_a, size):
    """Tell of every word of both texts whether it lies in a window that both seem to have."""
    num_windows_a = max(np.int64(0), num_a - size + 1)
    num_windows_b = max(np.int64(0), words.size - num_a - size + 1)
    keys = np.empty(num_windows_a + num_windows_b, np.uint64)
    to = window_keys(words, np.int64(0), num_a, size, keys, np.int64(0))
    window_keys(words, num_a, np.int64(words.size), size, keys, to)
    firsts = np.empty(keys.size, np.int64)
    number_equal(keys, firsts)
    is_in_b = np.zeros(keys.size, np.bool_)
    for window in range(num_windows_a, keys.size):
        is_in_b[firsts[window]] = True
    shared = np.zeros(words.size, np.bool_)
    marked = np.int64(0)
    for window in range(keys.size):
        # The first window of its kind lies in a if any does.
        if firsts[window] < num_windows_a and is_in_b[firsts[window]]:
            start = window if window < num_windows_a else window - num_windows_a + num_a
            for at in range(max(start, marked), start + size):
                shared[at] = True
            marked = start + size
    return shared


@inner
def _home_of(state, symbol, shift):
    return np.int64(
        mix((np.uint64(state) << HALF) | np.uint64(symbol)) >> shift,
    )


@inner
def _find(automaton, state, symbol):
    """Return the transition of a state by a symbol, NONE if there is none."""
    _, _, _, _, origins, symbols, _, _, table, shift = automaton
    index = _home_of(state, symbol, shift)
    while table[index] != NONE:
        edge = table[index]
        if origins[edge] == state and symbols[edge] == symbol:
            return edge
        index = (index + 1) & (table.size - 1)
    return NONE


@inner
def _add(automaton, num_edges, state, symbol, target):
    _, _, _, heads, origins, symbols, targets, following, table, shift = automaton
    index = _home_of(state, symbol, shift)
    while table[index] != NONE:
        index = (index + 1) & (table.size - 1)
    table[index] = num_edges
    origins[num_edges] = state
    symbols[num_edges] = symbol
    targets[num_edges] = target
    following[num_edges] = heads[state]
    heads[state] = num_edges
    return num_edges + 1


@inner
def _build(symbols_of_b, automaton):
    """Build the suffix automaton of a sequence (Blumer and others, 1985)."""
    lengths, links, first_ends, heads, _, symbols, targets, following, _, _ = automaton
    lengths[ROOT] = 0
    links[ROOT] = NONE
    heads[ROOT] = NONE
    num_states = np.int32(1)
    num_edges = np.int32(0)
    last = ROOT
    for at in range(symbols_of_b.size):
        symbol = symbols_of_b[at]
        current = num_states
        num_states += np.int32(1)
        lengths[current] = lengths[last] + 1
        first_ends[current] = at
        heads[current] = NONE
        state = last
        edge = NONE
        while state != NONE:
            edge = _find(automaton, state, symbol)
            if edge != NONE:
                break
            num_edges = _add(automaton, num_edges, state, symbol, current)
            state = links[state]
        last = current
        if state == NONE:
            links[current] = ROOT
            continue
        target = targets[edge]
        if lengths[target] == lengths[state] + 1:
            links[current] = target
            continue
        clone = num_states
        num_states += np.int32(1)
        lengths[clone] = lengths[state] + 1
        links[clone] = links[target]
        first_ends[clone] = first_ends[target]
        heads[clone] = NONE
        copied = heads[target]
        while copied != NONE:
            num_edges = _add(automaton, num_edges, clone, symbols[copied], targets[copied])
            copied = following[copied]
        while state != NONE:
            edge = _find(automaton, state, symbol)
            if edge == NONE or targets[edge] != target:
                break
            targets[edge] = clone
            state = links[state]
        links[target] = clone
        links[current] = clone


@inner
def _automaton_of(symbols_of_b):
    num_states = 2 * symbols_of_b.size + 1
    num_edges = 3 * symbols_of_b.size + 1
    bits = bits_for(num_edges)
    automaton = (
        np.empty(num_states, np.int32),  # the words of the longest run of the state
        np.empty(num_states, np.int32),  # the state of its longest suffix that stands elsewhere too
        np.empty(num_states, np.int32),  # the position where its runs end first
        np.empty(num_states, np.int32),  # its newest transition
        np.empty(num_edges, np.int32),  # of transitions: the state they leave,
        np.empty(num_edges, np.int32),  # the word,
        np.empty(num_edges, np.int32),  # the state they enter,
        np.empty(num_edges, np.int32),  # and the transition before them of the same state
        np.full(np.int64(1) << bits, NONE, np.int32),  # transitions by state and word
        np.uint64(64 - bits),
    )
    _build(symbols_of_b, automaton)
    return automaton


@inner
def _gather(firsts, shared, start, stop, symbols, positions):
    """Copy the shared words of one text; each stretch begins with a symbol of its own. Return how many."""
    to = np.int64(0)
    for at in range(start, stop):
        if not shared[at]:
            continue
        if at == start or not shared[at - 1]:
            # No word has this number, because only the first of equal words gives its own.
            symbols[to] = shared.size + to
            positions[to] = at - start
            to += 1
        symbols[to] = firsts[at]
        positions[to] = at - start
        to += 1
    return to


@kernel
def shared_runs(words, num_a, size, runs):
    """Write the maximal runs of at least `size` words that both texts have; return how many.

    words  uint64[num_words]  the word hashes of text a, then those of text b
    num_a  int64              words of text a
    size   int64              at least 1
    runs   int64 [num_a, 3]   written: first word in a, first word of the leftmost such run in b, number of words;
                              in the order of a, and none within another one
    """
    num_b = words.size - num_a
    if min(num_a, num_b) < size:
        return 0
    shared = _is_shared(words, num_a, size)
    firsts = np.empty(words.size, np.int64)
    number_equal(words, firsts)
    symbols = np.empty(2 * num_b, np.int32)
    positions = np.empty(2 * num_b, np.int32)
    count = _gather(firsts, shared, num_a, np.int64(words.size), symbols, positions)
    automaton = _automaton_of(symbols[:count])
    lengths, links, first_ends, _, _, _, targets, _, _, _ = automaton
    num_runs = 0
    state = ROOT
    length = np.int64(0)
    open_length = np.int64(0)
    open_state = ROOT
    for at in range(num_a + 1):
        if at < num_a and shared[at]:
            edge = _find(automaton, state, np.int32(firsts[at]))
            while edge == NONE and state != ROOT:
                state = links[state]
                length = np.int64(lengths[state])
                edge = _find(automaton, state, np.int32(firsts[at]))
            if edge != NONE:
                state = targets[edge]
                length += 1
        else:
            state = ROOT
            length = np.int64(0)
        # A run that the next word does not continue lies in no longer one.
        if open_length >= size and length != open_length + 1:
            runs[num_runs, 0] = at - open_length
            # The stretch may begin anywhere before the run, so count back from its last word.
            runs[num_runs, 1] = positions[first_ends[open_state]] - open_length + 1
            runs[num_runs, 2] = open_length
            num_runs += 1
        open_length = length
        open_state = state
    return num_runs
