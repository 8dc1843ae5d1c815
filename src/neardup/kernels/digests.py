"""128-bit digests of sets and of rows of words, under a secret key.

Equal digests count as equal documents, without a comparison. Half a digest is a polynomial of the
contents, evaluated at a secret point modulo the prime 2**61 - 1: two polynomials agree at no more
points than their degree. So whatever the documents are, and whoever wrote them, only the key
decides whether two different ones share a digest. The bound is in docs/decisions/0033. It holds
only while the key is unknown: it must not follow from a public seed.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.compilation import inner, kernel, overload

# For each half: an odd multiplier, the point of the contents and the point of the group.
KEY_SIZE = 6
PRIME = np.uint64((1 << 61) - 1)
PRIME_BITS = np.uint64(61)
# Factors are stored eight times as large: the high half of a product of 128 bits is then the part
# beyond 61 bits.
SCALE_BITS = np.uint64(3)
FACTOR_BITS = np.uint64(59)
DROPPED_BITS = np.uint64(64) - FACTOR_BITS
ONE = np.uint64(1)
# Multiplying by it changes nothing.
FACTOR_ONE = ONE << SCALE_BITS
_WORD64 = ir.IntType(64)
_DOUBLE = ir.IntType(128)


def multiply_modulo(value, factor):
    """Return value * factor / 8 modulo PRIME, less than 2**62 but not reduced to the remainder.

    value   uint64  at most 2**62 + 2**59
    factor  uint64  8 times a number below 2**60
    """
    product = int(value) * int(factor)
    return np.uint64((product >> 64) + ((product & 0xFFFF_FFFF_FFFF_FFFF) >> 3))


@intrinsic
def _multiply_modulo(typing_context, value, factor):
    def codegen(context, builder, signature, args):
        product = builder.mul(builder.zext(args[0], _DOUBLE), builder.zext(args[1], _DOUBLE))
        high = builder.trunc(builder.lshr(product, ir.Constant(_DOUBLE, 64)), _WORD64)
        low = builder.lshr(builder.trunc(product, _WORD64), ir.Constant(_WORD64, 3))
        return builder.add(high, low)

    return types.uint64(types.uint64, types.uint64), codegen


@overload(multiply_modulo)
def _overload_multiply_modulo(value, factor):
    return lambda value, factor: _multiply_modulo(value, factor)


@inner
def coefficient(word, multiplier):
    """Return a word as a number below 2**59; different words rarely have the same one, whatever they are.

    A word has more bits than a remainder, so words could be chosen that have the same remainder
    under any key.
    """
    return (word * multiplier) >> DROPPED_BITS


@inner
def factor_of(word, multiplier, point):
    """Return the factor that stands for a word, scaled."""
    return (coefficient(word, multiplier) << SCALE_BITS) + point


@inner
def remainder_of(value):
    """Return a number below 2**63 modulo PRIME."""
    remainder = (value & PRIME) + (value >> PRIME_BITS)
    if remainder >= PRIME:
        remainder -= PRIME
    return remainder


@inner
def add_to_digest(words, start, end, key, low, high):
    """Multiply both halves of an unfinished digest by the factors of words[start:end]."""
    for at in range(start, end):
        low = multiply_modulo(low, factor_of(words[at], key[0], key[1]))
        high = multiply_modulo(high, factor_of(words[at], key[3], key[4]))
    return low, high


@kernel
def digest_words(words, ends, key, digests):
    """Write a 128-bit digest of the words of every document, in their order.

    words    uint64[num_words]     all documents end to end
    ends     int64 [num_docs + 1]  document d owns words[ends[d]:ends[d + 1]]
    key      uint64[KEY_SIZE]      of kernels/keys.py
    digests  uint64[num_docs, 2]   written; equal words in equal order have equal digests
    """
    for doc in range(ends.size - 1):
        low = ONE
        high = ONE
        for at in range(ends[doc], ends[doc + 1]):
            low = multiply_modulo(low + coefficient(words[at], key[0]), key[1])
            high = multiply_modulo(high + coefficient(words[at], key[3]), key[4])
        digests[doc, 0] = remainder_of(low)
        digests[doc, 1] = remainder_of(high)


@kernel
def separate_groups(groups, key, digests):
    """Make the digests of documents in different groups differ; group 0 means no group and changes nothing.

    groups   uint64[num_docs]
    key      uint64[KEY_SIZE]     that of the digests
    digests  uint64[num_docs, 2]  changed
    """
    for doc in range(groups.size):
        if groups[doc] != 0:
            low = multiply_modulo(digests[doc, 0], factor_of(groups[doc], key[0], key[2]))
            high = multiply_modulo(digests[doc, 1], factor_of(groups[doc], key[3], key[5]))
            digests[doc, 0] = remainder_of(low)
            digests[doc, 1] = remainder_of(high)
