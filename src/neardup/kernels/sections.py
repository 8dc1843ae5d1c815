"""Sections of texts, which are paragraphs or lines: where they stand, and texts without some of them.

A line ends at a line feed; a carriage return ahead of it belongs to the line end. Lines of white space
alone separate paragraphs. What stands between two sections is a gap.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.folding import SPACE, decode

LINE_FEED = np.uint8(10)
CARRIAGE_RETURN = np.uint8(13)


@inner
def _is_blank(source, at, end, index, entries):
    """Whether source[at:end] has nothing but white space."""
    while at < end:
        point, width = decode(source, at, end)
        if not entries[(np.int64(index[point >> 8]) << 8) + (point & 255)] & SPACE:
            return False
        at += width
    return True


@kernel
def split_texts(source, offsets, table, by_line, sections, ends):
    """Write where the sections of every document stand.

    source    uint8[num_bytes]      UTF-8 texts
    offsets   int64[num_docs + 1]   document d is source[offsets[d]:offsets[d + 1]], of less than 2**31 bytes
    table     (index, entries, combining_index, combining) of kernels/unicode.py
    by_line   bool                  lines, else paragraphs
    sections  (starts, stops, befores, behinds, points, point_stops, lines), int32, room for one a line end
              and one a document:
        starts, stops        written; first byte in the document, and the byte behind the last, without the line end
        befores, behinds     written; bytes of the gaps to the sections next to it, or to an end of the document
        points, point_stops  written; starts and stops in code points
        lines                written; line ends ahead of it
    ends      int64[num_docs + 1]   written; document d owns starts[ends[d]:ends[d + 1]]
    """
    index, entries, _, _ = table
    starts, stops, befores, behinds, points, point_stops, lines = sections
    to = 0
    ends[0] = 0
    for doc in range(offsets.size - 1):
        first = offsets[doc]
        end = offsets[doc + 1]
        at = first
        last_stop = first
        num_points = 0
        num_lines = 0
        is_open = False
        while at < end:
            begin_points = num_points
            stop = at
            while stop < end and source[stop] != LINE_FEED:
                num_points += (source[stop] & 0xC0) != 0x80
                stop += 1
            text_stop = stop
            if at < stop < end and source[stop - 1] == CARRIAGE_RETURN:
                text_stop -= 1
            if by_line or not _is_blank(source, at, text_stop, index, entries):
                if by_line or not is_open:
                    starts[to] = at - first
                    befores[to] = at - last_stop
                    points[to] = begin_points
                    lines[to] = num_lines
                    if to > ends[doc]:
                        behinds[to - 1] = at - last_stop
                    to += 1
                    is_open = True
                stops[to - 1] = text_stop - first
                point_stops[to - 1] = num_points - (stop - text_stop)
                last_stop = text_stop
            else:
                is_open = False
            at = stop + 1
            num_points += 1
            num_lines += 1
        if to > ends[doc]:
            behinds[to - 1] = end - last_stop
        ends[doc + 1] = to


@kernel
def drop_spans(source, offsets, starts, stops, ends, out, out_offsets):
    """Write texts without some spans, and nothing else changed.

    source       uint8[num_bytes]      UTF-8 texts
    offsets      int64[num_docs + 1]   document d is source[offsets[d]:offsets[d + 1]]
    starts       int64[num_spans]      first byte of each span in its document, ascending in a document
    stops        int64[num_spans]      the byte behind it
    ends         int64[num_docs + 1]   document d owns starts[ends[d]:ends[d + 1]]
    out          uint8[...]            written; room for the texts
    out_offsets  int64[num_docs + 1]   written; as offsets
    """
    to = 0
    out_offsets[0] = 0
    for doc in range(offsets.size - 1):
        at = offsets[doc]
        for span in range(ends[doc], ends[doc + 1] + 1):
            if span < ends[doc + 1]:
                stop = offsets[doc] + starts[span]
            else:
                stop = offsets[doc + 1]
            for byte in range(at, stop):
                out[to] = source[byte]
                to += 1
            if span < ends[doc + 1]:
                at = offsets[doc] + stops[span]
        out_offsets[doc + 1] = to
