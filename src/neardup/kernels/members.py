"""Remove from documents the shingles that belong to one large set, the ignored shingles."""

from neardup.kernels.compilation import kernel
from neardup.kernels.hash_sets import ZERO, home_of


@kernel
def fill_table(members, capacity, table):
    """Put hashes into a table with linear probing; a key that probes past the capacity has room behind it.

    members   uint64[num_members]                 distinct, none of them zero
    capacity  int64                               more than num_members
    table     uint64[capacity + num_members + 1]  zeros on entry; written
    """
    for member in members:
        index = home_of(member, capacity)
        while table[index] != ZERO:
            index += 1
        table[index] = member


@kernel
def drop_members(shingles, ends, capacity, table):
    """Remove the members of a table from the shingles of documents, in place; the others keep their order.

    shingles  uint64[num_shingles]      all documents end to end; none of them zero; rewritten up to the new ends[-1]
    ends      int64 [num_docs + 1]      document d owns shingles[ends[d]:ends[d + 1]]; rewritten
    capacity  int64                     of the table
    table     uint64[...]               as `fill_table` has written it
    """
    start = ends[0]
    to = ends[0]
    for doc in range(ends.size - 1):
        stop = ends[doc + 1]
        for at in range(start, stop):
            shingle = shingles[at]
            index = home_of(shingle, capacity)
            while table[index] != ZERO and table[index] != shingle:
                index += 1
            if table[index] == ZERO:
                shingles[to] = shingle
                to += 1
        start = stop
        ends[doc + 1] = to
