"""From shingle hashes to signatures: k slots of 32 bits, which agree with probability equal to the Jaccard similarity.

`fast_sketch` is a member of the Fast Similarity Sketching family (Dahlgaard, Knudsen, Thorup 2017):
one round puts every hash into one slot, and only slots left empty take the minimum over all hashes.
`minhash` is the classic family of k linear permutations. In both the slot-wise minimum of two
signatures is the signature of the union.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from neardup.kernels.compilation import inner, kernel, overload

NO_SHINGLES = np.uint32(0xFFFF_FFFF)
# Set in slots filled by the fallback, so that they are larger than every value of the first round.
FALLBACK = np.uint32(0x8000_0000)


def _vector_kernel(lanes):
    """Make the inner loop for `lanes` slots at once: a function for plain Python and its compiled twin."""
    narrow = ir.IntType(32)
    vector = ir.VectorType(narrow, lanes)

    def min_lines(multipliers, addends, at, shingles, start, end, smallest):
        low = shingles[start:end].astype(np.uint32)
        lines = multipliers[at : at + lanes, None] * low + addends[at : at + lanes, None]
        smallest[at : at + lanes] = lines.min(axis=1, initial=NO_SHINGLES)

    @intrinsic
    def compiled(typing_context, multipliers, addends, at, shingles, start, end, smallest):
        def codegen(context, builder, signature, args):
            def pointer(argument, index, target):
                data = context.make_array(signature.args[argument])(
                    context, builder, args[argument]
                ).data
                return builder.bitcast(builder.gep(data, [index]), target.as_pointer())

            multiplier = builder.load(pointer(0, args[2], vector), align=4)
            addend = builder.load(pointer(1, args[2], vector), align=4)
            smallest_so_far = cgutils.alloca_once_value(
                builder, ir.Constant(vector, [0xFFFF_FFFF] * lanes)
            )
            with cgutils.for_range_slice(
                builder, args[4], args[5], ir.Constant(args[4].type, 1)
            ) as (index, _):
                low = builder.load(pointer(3, index, narrow), align=8)
                first = builder.insert_element(
                    ir.Constant(vector, ir.Undefined), low, ir.Constant(narrow, 0)
                )
                spread = builder.shuffle_vector(first, first, ir.Constant(vector, [0] * lanes))
                line = builder.add(builder.mul(multiplier, spread), addend)
                before = builder.load(smallest_so_far)
                builder.store(
                    builder.select(builder.icmp_unsigned("<", line, before), line, before),
                    smallest_so_far,
                )
            builder.store(builder.load(smallest_so_far), pointer(6, args[2], vector), align=4)
            return context.get_dummy_value()

        return types.void(
            multipliers, addends, types.intp, shingles, types.intp, types.intp, smallest
        ), codegen

    @overload(min_lines)
    def use_compiled(multipliers, addends, at, shingles, start, end, smallest):
        return lambda multipliers, addends, at, shingles, start, end, smallest: compiled(
            multipliers, addends, at, shingles, start, end, smallest
        )

    return min_lines


# (multipliers, addends, at, shingles, start, end, smallest): write to smallest[at:at + lanes] the
# minimum over shingles[start:end] of (multiplier * low32(shingle) + addend) mod 2**32, which one
# SIMD loop gives for all lanes.
WIDE = 32
NARROW = 8
min_lines_wide = _vector_kernel(WIDE)
min_lines_narrow = _vector_kernel(NARROW)


@inner
def _min_all_lines(multipliers, addends, count, shingles, start, end, smallest):
    """`count` slots, in whole vectors: the arrays have room up to the next multiple of NARROW."""
    at = 0
    while at + WIDE <= count:
        min_lines_wide(multipliers, addends, at, shingles, start, end, smallest)
        at += WIDE
    while at < count:
        min_lines_narrow(multipliers, addends, at, shingles, start, end, smallest)
        at += NARROW


@kernel
def minhash(shingles, ends, multipliers, addends, signatures):
    """Write one signature per document: slot j holds min (multipliers[j] * low32(shingle) + addends[j]) mod 2**32.

    shingles     uint64[num_shingles]       all documents end to end; repetitions do not matter
    ends         int64 [num_docs + 1]       document d owns shingles[ends[d]:ends[d + 1]]
    multipliers  uint32[num_perm]           odd
    addends      uint32[num_perm]
    signatures   uint32[num_docs, num_perm] overwritten in full; NO_SHINGLES for a document without shingles
    """
    num_slots = multipliers.size
    whole = num_slots - num_slots % NARROW
    rest = num_slots - whole
    # A vector has NARROW lanes, so the last slots are computed in a buffer: the next document
    # follows them in memory.
    rest_multipliers = np.zeros(NARROW, np.uint32)
    rest_addends = np.zeros(NARROW, np.uint32)
    rest_smallest = np.empty(NARROW, np.uint32)
    rest_multipliers[:rest] = multipliers[whole:]
    rest_addends[:rest] = addends[whole:]
    for doc in range(ends.size - 1):
        start, end = ends[doc], ends[doc + 1]
        _min_all_lines(multipliers, addends, whole, shingles, start, end, signatures[doc])
        if rest:
            min_lines_narrow(rest_multipliers, rest_addends, 0, shingles, start, end, rest_smallest)
            signatures[doc, whole:] = rest_smallest[:rest]


@kernel
def fast_sketch(shingles, ends, multipliers, addends, signatures):
    """Write one signature per document; arguments as for `minhash`, num_perm a power of two."""
    num_slots = signatures.shape[1]
    log_slots = 0
    while (1 << log_slots) < num_slots:
        log_slots += 1
    to_slot = np.uint64(64 - log_slots)
    to_top = np.uint64(log_slots)
    to_value = np.uint64(33)
    empty = np.empty(num_slots + NARROW, np.int64)
    empty_multipliers = np.zeros(num_slots + NARROW, np.uint32)
    empty_addends = np.zeros(num_slots + NARROW, np.uint32)
    smallest = np.empty(num_slots + NARROW, np.uint32)
    for doc in range(ends.size - 1):
        slots = signatures[doc]
        start, end = ends[doc], ends[doc + 1]
        for slot in range(num_slots):
            slots[slot] = NO_SHINGLES
        if start == end:
            continue
        for at in range(start, end):
            shingle = shingles[at]
            slot = np.int64(shingle >> to_slot)
            slots[slot] = min(slots[slot], np.uint32((shingle << to_top) >> to_value))
        # Most slots are empty: computing all lanes costs less than selecting.
        if end - start <= num_slots >> 1:
            _min_all_lines(multipliers, addends, num_slots, shingles, start, end, smallest)
            for slot in range(num_slots):
                fallback = (smallest[slot] >> np.uint32(1)) | FALLBACK
                slots[slot] = fallback if slots[slot] == NO_SHINGLES else slots[slot]
            continue
        num_empty = np.int64(0)
        for slot in range(num_slots):
            empty[num_empty] = slot
            num_empty += slots[slot] == NO_SHINGLES
        if num_empty == 0:
            continue
        for at in range(num_empty):
            empty_multipliers[at] = multipliers[empty[at]]
            empty_addends[at] = addends[empty[at]]
        _min_all_lines(empty_multipliers, empty_addends, num_empty, shingles, start, end, smallest)
        for at in range(num_empty):
            slots[empty[at]] = (smallest[at] >> np.uint32(1)) | FALLBACK
