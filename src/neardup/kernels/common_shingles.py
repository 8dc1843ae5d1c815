"""Count in how many documents of a group a shingle is, and remove the common ones."""

import numpy as np

from neardup.kernels.compilation import kernel
from neardup.kernels.hash_sets import ZERO, home_of
from neardup.kernels.mixing import mix


@kernel
def claim(digests, capacity, table, is_new):
    """Put digests into a table with linear probing, and mark those that were not in it; return how many.

    digests   uint64[num_docs, 2]        keyed with a secret, so that nobody can make them collide
    capacity  int64                      of the table, a power of two, more than all that is put into it
    table     uint64[capacity, 2]        zeros at first; written
    is_new    bool  [num_docs]           written
    """
    num_new = 0
    for doc in range(digests.shape[0]):
        low = digests[doc, 0]
        high = digests[doc, 1]
        index = np.int64(low & np.uint64(capacity - 1))
        while (table[index, 0] != ZERO or table[index, 1] != ZERO) and (
            table[index, 0] != low or table[index, 1] != high
        ):
            index = (index + 1) & (capacity - 1)
        is_new[doc] = table[index, 0] == ZERO and table[index, 1] == ZERO
        if is_new[doc]:
            table[index, 0] = low
            table[index, 1] = high
            num_new += 1
    return num_new


@kernel
def add_to_counters(keys, ends, is_counted, counters):
    """Count the shingles of documents in counters that several shingles share, so that none is counted too low.

    keys        uint64[num_keys]      the shingles, salted by group, all documents end to end
    ends        int64 [num_docs + 1]  document d owns keys[ends[d]:ends[d + 1]]
    is_counted  bool  [num_docs]      which documents count
    counters    uint32[a power of 2]  increased
    """
    mask = np.uint64(counters.size - 1)
    one = np.uint32(1)
    for doc in range(ends.size - 1):
        if is_counted[doc]:
            for at in range(ends[doc], ends[doc + 1]):
                counters[np.int64(keys[at] & mask)] += one


@kernel
def choose_candidates(keys, ends, needs, counters, chosen, chosen_needs):
    """Copy the shingles that may be in enough documents; return how many.

    keys          uint64[num_keys]      as in `add_to_counters`
    ends          int64 [num_docs + 1]  document d owns keys[ends[d]:ends[d + 1]]
    needs         int64 [num_docs]      in how many documents a shingle is common; 0 for a document that does not count
    counters      uint32[a power of 2]  as `add_to_counters` has written them
    chosen        uint64[num_keys]      written
    chosen_needs  int64 [num_keys]      the need of each; written
    """
    mask = np.uint64(counters.size - 1)
    num_chosen = 0
    for doc in range(ends.size - 1):
        need = needs[doc]
        if need > 0:
            for at in range(ends[doc], ends[doc + 1]):
                if np.int64(counters[np.int64(keys[at] & mask)]) >= need:
                    chosen[num_chosen] = keys[at]
                    chosen_needs[num_chosen] = need
                    num_chosen += 1
    return num_chosen


@kernel
def hide(keys, secret, hidden):
    """Mix keys with a secret, one to one, so that nobody can choose where they are in a table.

    keys    uint64[num_keys]
    secret  uint64
    hidden  uint64[num_keys]  written; never zero
    """
    for at in range(keys.size):
        hidden[at] = max(mix(keys[at] ^ secret), np.uint64(1))


@kernel
def drop_common(shingles, ends, salts, secret, capacity, table):
    """Remove the common shingles from documents, in place; the others keep their order.

    shingles  uint64[num_shingles]  all documents end to end; rewritten up to the new ends[-1]
    ends      int64 [num_docs + 1]  document d owns shingles[ends[d]:ends[d + 1]]; rewritten
    salts     uint64[num_docs]      the salt of the group of a document, 0 if it is in none
    secret    uint64                as in `hide`
    capacity  int64                 of the table
    table     uint64[...]           as `fill_table` has written it with hidden keys
    """
    start = ends[0]
    to = ends[0]
    for doc in range(ends.size - 1):
        stop = ends[doc + 1]
        for at in range(start, stop):
            shingle = shingles[at]
            is_common = False
            if salts[doc] != ZERO:
                key = max(mix(shingle ^ salts[doc] ^ secret), np.uint64(1))
                index = home_of(key, capacity)
                while table[index] != ZERO and table[index] != key:
                    index += 1
                is_common = table[index] == key
            if not is_common:
                shingles[to] = shingle
                to += 1
        start = stop
        ends[doc + 1] = to
