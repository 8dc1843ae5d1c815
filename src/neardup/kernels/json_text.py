"""Extract one text column from JSON Lines and unescape it; the rest of each line is left to a JSON parser.

A text is replaced by an empty string, a token of the same kind, so the remaining lines are valid
JSON exactly if the original lines are. Only the inside of the texts, which the parser no longer
sees, is checked here.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from neardup.kernels.compilation import inner, kernel, overload

# Returned for lines that need the slower path.
ODD = -1
QUOTE = 0x22
BACKSLASH = 0x5C
NEWLINE = 0x0A
SPACE = 0x20
COLON = 0x3A
SMALL_U = 0x75
NO_CHARACTER = 0xFF
# The character that each byte after a backslash stands for.
UNESCAPED = np.full(256, NO_CHARACTER, np.uint8)
UNESCAPED[np.frombuffer(b'"\\/bfnrt', np.uint8)] = np.frombuffer(b'"\\/\b\f\n\r\t', np.uint8)
HEX_DIGITS = np.full(256, NO_CHARACTER, np.uint8)
HEX_DIGITS[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
HEX_DIGITS[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
# The constant part of a surrogate pair that does not belong to the code point.
HALVES = (0xD800 << 10) + 0xDC00 - 0x10000
# The change in nesting depth for each bracket.
DEPTHS = np.zeros(256, np.int8)
DEPTHS[np.frombuffer(b"{[", np.uint8)] = 1
DEPTHS[np.frombuffer(b"}]", np.uint8)] = -1
# Bytes per step: texts have an escape about every 30 bytes.
BLOCK = 32
_BYTE = ir.IntType(8)
_WORD64 = ir.IntType(64)


def copy_block(source, at, target, to):
    """Copy 32 bytes; return how many precede the first quote, backslash or control character."""
    block = source[at : at + BLOCK]
    target[to : to + BLOCK] = block
    odd = np.flatnonzero((block == QUOTE) | (block == BACKSLASH) | (block < SPACE))
    return int(odd[0]) if odd.size else BLOCK


@intrinsic
def _copy_block(typing_context, source, at, target, to):
    def codegen(context, builder, signature, args):
        vector = ir.VectorType(_BYTE, BLOCK)

        def pointer(argument, index):
            data = context.make_array(signature.args[argument])(
                context, builder, args[argument]
            ).data
            return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())

        def constant(byte):
            return ir.Constant(vector, [byte] * BLOCK)

        raw = builder.load(pointer(0, args[1]), align=1)
        builder.store(raw, pointer(2, args[3]), align=1)
        is_end = builder.or_(
            builder.icmp_unsigned("==", raw, constant(QUOTE)),
            builder.icmp_unsigned("==", raw, constant(BACKSLASH)),
        )
        is_end = builder.or_(is_end, builder.icmp_unsigned("<", raw, constant(SPACE)))
        bits = builder.zext(builder.bitcast(is_end, ir.IntType(BLOCK)), _WORD64)
        # The bit above the block stops the count if the whole block is plain.
        return builder.cttz(
            builder.or_(bits, ir.Constant(_WORD64, 1 << BLOCK)), ir.Constant(ir.IntType(1), 1)
        )

    return types.int64(source, types.int64, target, types.int64), codegen


@overload(copy_block)
def _overload_copy_block(source, at, target, to):
    return lambda source, at, target, to: _copy_block(source, at, target, to)


@inner
def _unit(source, at):
    """The UTF-16 code unit of the escape at `at`; ODD if there is none."""
    if at + 6 > source.size or source[at] != BACKSLASH or source[at + 1] != SMALL_U:
        return ODD
    unit = 0
    end = at + 6
    at += 2
    while at < end:
        digit = np.int64(HEX_DIGITS[source[at]])
        if digit == NO_CHARACTER:
            return ODD
        unit = unit << 4 | digit
        at += 1
    return unit


@inner
def _unescape_unit(source, at, target, to):
    """Write the character of a u-escape or a surrogate pair as UTF-8; return bytes read, or ODD, and bytes written."""
    point = _unit(source, at)
    num_read = 6
    if 0xD800 <= point < 0xDC00:
        low = _unit(source, at + 6)
        point = (point << 10) + low - HALVES if 0xDC00 <= low < 0xE000 else ODD
        num_read = 12
    if point == ODD or 0xDC00 <= point < 0xE000:
        return ODD, 0
    if point < 0x80:
        target[to] = point
        return num_read, 1
    if point < 0x800:
        width = 2
    elif point < 0x10000:
        width = 3
    else:
        width = 4
    position = to + width
    lead = 0xF00 >> width & 0xFF
    while position > to + 1:
        position -= 1
        target[position] = 0x80 | point & 0x3F
        point >>= 6
    target[to] = lead | point
    return num_read, width


@inner
def _unescape(source, at, target, to):
    """Unescape the string after the quote before `at`; return where its closing quote is, or ODD, and its end."""
    while True:
        while at + BLOCK <= source.size:
            num_plain = copy_block(source, at, target, to)
            at += num_plain
            to += num_plain
            if num_plain < BLOCK:
                break
        while at < source.size and SPACE <= source[at] != QUOTE and source[at] != BACKSLASH:
            target[to] = source[at]
            at += 1
            to += 1
        if at + 1 >= source.size or source[at] != BACKSLASH:
            return at if at < source.size and source[at] == QUOTE else ODD, to
        character = UNESCAPED[source[at + 1]]
        if character != NO_CHARACTER:
            target[to] = character
            at += 2
            to += 1
        else:
            num_read, num_written = _unescape_unit(source, at, target, to)
            if num_read == ODD:
                return ODD, to
            at += num_read
            to += num_written


@inner
def _is_name(text, start, end, name):
    if end - start != name.size:
        return False
    for position in range(name.size):
        if text[start + position] != name[position]:
            return False
    return True


@inner
def _copy(source, start, end, target, to):
    for position in range(end - start):
        target[to + position] = source[start + position]
    return to + end - start


def most_lines(num_bytes: int, num_name_bytes: int) -> int:
    """Return how many lines with a text, at least `{"name":""` and a newline, fit into bytes."""
    return (num_bytes + 1) // (num_name_bytes + 7)


@kernel
def cut_texts(lines, name, texts, ends, rest):
    """Extract the text of every line, and return the number of remaining bytes; ODD unless each line has exactly one.

    ODD is also returned for any string with a broken escape, a lone surrogate or a control
    character.

    lines  uint8[num_bytes]       lines, each with its newline, which the last may lack; valid UTF-8
    name   uint8[num_name_bytes]  the column of the text
    texts  uint8[num_bytes + 32]  written from the front: the texts end to end, as UTF-8; the rest is undefined
    ends   int64[most_lines + 1]  written from the front: the text of line r is texts[ends[r]:ends[r + 1]]
    rest   uint8[num_bytes]       written from the front: the lines with empty texts
    """
    at = to = num_rest = copied = row = depth = np.int64(0)
    is_name = is_named = has_text = (
        False  # the last string is the name; the value is next; it was found
    )
    ends[0] = 0
    while at < lines.size:
        byte = lines[at]
        if byte == QUOTE:
            # Other strings are unescaped too, to validate them; the next string overwrites them.
            start = at + 1
            at, end = _unescape(lines, start, texts, to)
            if at == ODD:
                return ODD
            if is_named:
                is_named = False
                has_text = True
                num_rest = _copy(lines, copied, start, rest, num_rest)
                copied = at
                to = end
            elif depth == 1:
                is_name = _is_name(texts, to, end, name)
        elif byte == NEWLINE:
            if not has_text:
                return ODD
            row += 1
            ends[row] = to
            depth = np.int64(0)
            is_name = False
            has_text = False
        elif byte > SPACE:
            if is_named:
                return ODD
            if byte == COLON and depth == 1 and is_name:
                if has_text:
                    return ODD
                is_named = True
            depth += DEPTHS[byte]
        at += 1
    if lines.size and lines[lines.size - 1] != NEWLINE:
        if not has_text:
            return ODD
        ends[row + 1] = to
    return _copy(lines, copied, lines.size, rest, num_rest)
