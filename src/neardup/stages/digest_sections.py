"""Repeated sections, stage 1: the paragraphs or lines of documents, with the digests of their words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import sections as kernel
from neardup.kernels.unicode import load_table
from neardup.kernels.words import gather_bytes
from neardup.measures.base import digests_of
from neardup.measures.jaccard import text_buffers
from neardup.measures.words import word_runs

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
_LINE_FEED = 10


class Split(NamedTuple):
    """The sections of texts, as kernels/sections.py writes them; ends: of each text among them."""

    ends: I64
    starts: I32
    stops: I32
    befores: I32
    behinds: I32
    points: I32
    point_stops: I32
    lines: I32


def split(texts: pa.Array, config: Config) -> Split:
    """Cut texts into the sections of `level`."""
    source, offsets = text_buffers(texts)
    own = source[offsets[0] : offsets[-1]]
    room = int(np.count_nonzero(own == _LINE_FEED)) + len(texts)
    columns = tuple(np.empty(room, np.int32) for _ in Split._fields[1:])
    ends = np.empty(len(texts) + 1, np.int64)
    by_line = config.level == "line"
    kernel.split_texts(source, offsets, tuple(load_table()), by_line, columns, ends)
    return Split(ends, *(column[: ends[-1]] for column in columns))


def count_words(texts: pa.Array, found: Split, config: Config) -> tuple[I64, list[tuple[U64, I64]]]:
    """Return the number of words of every section, and the words of runs of sections with the end of each."""
    _, offsets = text_buffers(texts)
    # A gap is white space, which has no words: so every section may reach to the next one, and no text is copied.
    firsts = offsets[np.repeat(np.arange(len(texts)), np.diff(found.ends))] + found.starts
    bounds = np.append(firsts, offsets[-1])
    whole = pa.LargeStringArray.from_buffers(
        firsts.size, pa.py_buffer(bounds), texts.buffers()[2] or pa.py_buffer(b"")
    )
    runs = []
    counts = np.zeros(firsts.size, np.int64)
    for run in word_runs(whole, config):
        counts[run.start : run.start + run.ends.size - 1] = np.diff(run.ends)
        runs.append((run.words, run.ends))
    return counts, runs


def long_sections(texts: pa.Array, config: Config) -> tuple[I64, pa.Array]:
    """Return the sections of texts with at least `min_words` words: the number of the text of each, and its own."""
    source, offsets = text_buffers(texts)
    found = split(texts, config)
    counts, _ = count_words(texts, found, config)
    chosen = np.flatnonzero(counts >= (config.min_words or 1))
    of_text: I64 = np.repeat(np.arange(len(texts)), np.diff(found.ends))[chosen]
    sizes = (found.stops - found.starts)[chosen].astype(np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    gathered = np.empty(ends[-1], np.uint8)
    gather_bytes(source, offsets[of_text] + found.starts[chosen], ends, gathered)
    own = pa.LargeStringArray.from_buffers(chosen.size, pa.py_buffer(ends), pa.py_buffer(gathered))
    return of_text, own


def digest_sections(batch: pa.RecordBatch, config: Config, secret: bytes) -> pa.RecordBatch:
    """Return the sections of documents with at least `min_words` words, as schema.SECTIONS."""
    texts = batch.column("text")
    groups: I64 = batch.column("group").to_numpy()
    found = split(texts, config)
    counts, runs = count_words(texts, found, config)
    num_sections = np.diff(found.ends)
    doc_of = np.repeat(np.arange(batch.num_rows), num_sections)
    digests = np.empty((counts.size, 2), np.uint64)
    at = 0
    for words, ends in runs:
        stop = at + ends.size - 1
        digests[at:stop] = digests_of(words, ends, groups[doc_of[at:stop]], secret)
        at = stop
    chosen = np.flatnonzero(counts >= (config.min_words or 1))
    numbers = (np.arange(counts.size) - found.ends[doc_of]).astype(np.int32)
    own_ends = np.searchsorted(chosen, found.ends)
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    columns = [digests[:, 0].view(np.int64), digests[:, 1].view(np.int64), numbers]
    columns += [counts.astype(np.int32), *found[1:]]
    lists = [
        pa.LargeListArray.from_arrays(pa.array(own_ends), pa.array(column[chosen]))
        for column in columns
    ]
    facts = [pa.array(np.diff(totals[found.ends])), pa.array(num_sections)]
    return pa.record_batch([batch.column("row"), *facts, *lists], schema=schema.SECTIONS)
