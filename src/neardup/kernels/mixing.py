"""Multipliers and functions that spread the bits of a 64-bit number."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.compilation import inner, overload

# The constants of SplitMix64: 2**64 by the golden ratio, and the two multipliers of its finaliser.
GOLDEN_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
# Half the number of bits.
HALF = np.uint64(32)
_WORD64 = ir.IntType(64)
_DOUBLE = ir.IntType(128)


@inner
def mix(value):
    """Return the finaliser of SplitMix64: every bit of the value changes about half of the bits."""
    value = (value ^ (value >> np.uint64(30))) * FIRST_MULTIPLIER
    value = (value ^ (value >> np.uint64(27))) * SECOND_MULTIPLIER
    return value ^ (value >> np.uint64(31))


def fold_multiply(left, right):
    """Return the low half of the 128-bit product xor its high half."""
    product = int(left) * int(right)
    return np.uint64((product ^ (product >> 64)) & 0xFFFF_FFFF_FFFF_FFFF)


@intrinsic
def _fold_multiply(typing_context, left, right):
    def codegen(context, builder, signature, args):
        product = builder.mul(builder.zext(args[0], _DOUBLE), builder.zext(args[1], _DOUBLE))
        high = builder.trunc(builder.lshr(product, ir.Constant(_DOUBLE, 64)), _WORD64)
        return builder.xor(builder.trunc(product, _WORD64), high)

    return types.uint64(types.uint64, types.uint64), codegen


@overload(fold_multiply)
def _overload_fold_multiply(left, right):
    return lambda left, right: _fold_multiply(left, right)
