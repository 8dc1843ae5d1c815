"""Operations that LLVM has and NumPy lacks: unaligned loads and stores, bit counts, and folding 64 bytes at once.

Each is a function in plain Python, replaced by an intrinsic in compiled code.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.compilation import overload

# One byte per bit of a bitmap word.
BLOCK = 64
_BYTE = ir.IntType(8)
_WORD64 = ir.IntType(64)


def _pointer(context, builder, array_type, array, index, target):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), target.as_pointer())


def load64(array, index):
    """Read eight bytes from any address."""
    return np.uint64(int.from_bytes(bytes(array[index : index + 8]), "little"))


@intrinsic
def _load64(typing_context, array, index):
    def codegen(context, builder, signature, args):
        return builder.load(
            _pointer(context, builder, signature.args[0], args[0], args[1], _WORD64), align=1
        )

    return types.uint64(array, types.int64), codegen


@overload(load64)
def _overload_load64(array, index):
    return lambda array, index: _load64(array, index)


def store64(array, index, value):
    """Write eight bytes to any address."""
    array[index : index + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


@intrinsic
def _store64(typing_context, array, index, value):
    def codegen(context, builder, signature, args):
        builder.store(
            args[2],
            _pointer(context, builder, signature.args[0], args[0], args[1], _WORD64),
            align=1,
        )
        return context.get_dummy_value()

    return types.void(array, types.int64, types.uint64), codegen


@overload(store64)
def _overload_store64(array, index, value):
    return lambda array, index, value: _store64(array, index, value)


def trailing_zeros(value):
    """Count the zero bits below the lowest set bit; 64 for zero."""
    value = int(value)
    return np.uint64((value & -value).bit_length() - 1 if value else 64)


@intrinsic
def _trailing_zeros(typing_context, value):
    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@overload(trailing_zeros)
def _overload_trailing_zeros(value):
    return lambda value: _trailing_zeros(value)


def count_bits(value):
    """Count the set bits."""
    return np.uint64(int(value).bit_count())


@intrinsic
def _count_bits(typing_context, value):
    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@overload(count_bits)
def _overload_count_bits(value):
    return lambda value: _count_bits(value)


def fold_ascii_block(source, at, target, to):
    """Write 64 bytes in lower case; return two bitmaps: bytes inside words, bytes above ASCII."""
    words = 0
    above = 0
    for position in range(BLOCK):
        byte = int(source[at + position])
        lower = byte | 32 if 65 <= byte <= 90 else byte
        target[to + position] = lower
        words |= (97 <= lower <= 122 or 48 <= lower <= 57) << position
        above |= (byte >= 128) << position
    return np.uint64(words), np.uint64(above)


@intrinsic
def _fold_ascii_block(typing_context, source, at, target, to):
    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, BLOCK)

        def constant(byte):
            return ir.Constant(vector, [byte] * BLOCK)

        def within(values, first, count):
            return builder.icmp_unsigned("<", builder.sub(values, constant(first)), constant(count))

        raw = builder.load(
            _pointer(context, builder, signature.args[0], args[0], args[1], vector), align=1
        )
        lower = builder.select(within(raw, 65, 26), builder.or_(raw, constant(32)), raw)
        builder.store(
            lower, _pointer(context, builder, signature.args[2], args[2], args[3], vector), align=1
        )
        words = builder.or_(within(lower, 97, 26), within(lower, 48, 10))
        above = builder.icmp_signed("<", raw, constant(0))
        return context.make_tuple(
            builder,
            signature.return_type,
            [builder.bitcast(words, _WORD64), builder.bitcast(above, _WORD64)],
        )

    return types.UniTuple(types.uint64, 2)(source, types.int64, target, types.int64), codegen


@overload(fold_ascii_block)
def _overload_fold_ascii_block(source, at, target, to):
    return lambda source, at, target, to: _fold_ascii_block(source, at, target, to)
