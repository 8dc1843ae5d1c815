"""Texts without some of their words, and with the white space around them mended."""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.folding import KIND_MASK, SPACE, WORD, decode


@inner
def _entry_of(point, table):
    return table[1][(np.int64(table[0][point >> 8]) << 8) + (point & 255)]


@inner
def _step_back(source, at, first):
    """Return where the character before `at` begins."""
    at -= 1
    least = max(first, at - 3)
    while at > least and (source[at] & 0xC0) == 0x80:
        at -= 1
    return at


@inner
def _skip_marks(source, at, end, table):
    """Return the end of the characters from `at` on that are neither in words nor white space."""
    while at < end:
        point, width = decode(source, at, end)
        if _entry_of(point, table) & (KIND_MASK | SPACE):
            break
        at += width
    return at


@inner
def _skip_marks_back(source, at, first, table):
    """Return the start of the characters up to `at` that are neither in words nor white space."""
    while at > first:
        before = _step_back(source, at, first)
        point, _ = decode(source, before, at)
        if _entry_of(point, table) & (KIND_MASK | SPACE):
            break
        at = before
    return at


@inner
def _skip_to_line_end(source, at, end, table):
    """Return the end of the line from `at` on if it has no words there, else `at`."""
    there = at
    while there < end and source[there] != 10:
        point, width = decode(source, there, end)
        if _entry_of(point, table) & KIND_MASK:
            return at
        there += width
    return there


@inner
def _skip_to_line_start(source, at, first, table):
    """Return the start of the line before `at` if it has no words there, else `at`."""
    there = at
    while there > first and source[there - 1] != 10:
        before = _step_back(source, there, first)
        point, _ = decode(source, before, there)
        if _entry_of(point, table) & KIND_MASK:
            return at
        there = before
    return there


@inner
def _skip_space(source, at, end, table):
    while at < end:
        point, width = decode(source, at, end)
        if not _entry_of(point, table) & SPACE:
            break
        at += width
    return at


@inner
def _skip_space_back(source, at, first, table):
    while at > first:
        before = _step_back(source, at, first)
        point, _ = decode(source, before, at)
        if not _entry_of(point, table) & SPACE:
            break
        at = before
    return at


@inner
def _count_lines(source, start, stop):
    num_lines = 0
    for at in range(start, stop):
        num_lines += source[at] == 10
    return num_lines


@inner
def _are_words(source, first, last_stop, next_start, end, table):
    """Whether two characters would become one word if they stood side by side."""
    before, _ = decode(source, _step_back(source, last_stop, first), last_stop)
    behind, _ = decode(source, next_start, end)
    is_word = (_entry_of(before, table) & KIND_MASK) == WORD
    return is_word and (_entry_of(behind, table) & KIND_MASK) == WORD


@kernel
def cut_texts(source, offsets, starts, stops, ends, table, out, out_offsets):
    """Write texts without some spans of words.

    With a word go the characters next to it that are neither white space nor in words, and what is left of its line if
    there are no words in it, such as the sign of a comment. Of the white space on both
    sides of a cut, the run with more line ends stays, then the longer one; at the ends of a text none. Where there is
    none, a space separates words that the cut would join.

    source       uint8[num_bytes]      UTF-8 texts
    offsets      int64[num_docs + 1]   document d is source[offsets[d]:offsets[d + 1]]
    starts       int64[num_spans]      first byte of each span in its document, ascending in a document
    stops        int64[num_spans]      the byte behind it
    ends         int64[num_docs + 1]   document d owns starts[ends[d]:ends[d + 1]]
    table        (index, entries, combining_index, combining) of kernels/unicode.py
    out          uint8[...]            written; room for the texts and a byte for each span
    out_offsets  int64[num_docs + 1]   written; as offsets
    """
    to = 0
    out_offsets[0] = 0
    for doc in range(offsets.size - 1):
        first = offsets[doc]
        end = offsets[doc + 1]
        begin = to
        at = first
        gap_start = gap_stop = first
        last_stop = first
        for span in range(ends[doc], ends[doc + 1] + 1):
            is_last = span == ends[doc + 1]
            is_first = span == ends[doc]
            if is_last:
                left = end
            else:
                left = _skip_marks_back(source, first + starts[span], at, table)
                left = _skip_to_line_start(source, left, at, table)
            start = at
            stop = left
            if not is_first:
                start = _skip_space(source, at, left, table)
                gap = _count_lines(source, gap_start, gap_stop)
                other = _count_lines(source, at, start)
                if other > gap or (other == gap and start - at > gap_stop - gap_start):
                    gap_start = at
                    gap_stop = start
            if not is_last:
                stop = _skip_space_back(source, left, start, table)
            if stop > start:
                if to > begin and gap_stop > gap_start:
                    for byte in range(gap_start, gap_stop):
                        out[to] = source[byte]
                        to += 1
                elif (
                    to > begin
                    and not is_first
                    and _are_words(source, first, last_stop, start, end, table)
                ):
                    out[to] = 32
                    to += 1
                for byte in range(start, stop):
                    out[to] = source[byte]
                    to += 1
                last_stop = stop
                gap_start = stop
                gap_stop = left
            elif is_first:
                gap_start = gap_stop = left
            if not is_last:
                at = _skip_marks(source, first + stops[span], end, table)
                at = _skip_to_line_end(source, at, end, table)
        out_offsets[doc + 1] = to
