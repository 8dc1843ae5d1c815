"""Shared by the peer scripts: reading documents, words and shingles, writing the result.

A script is called as `python peers/NAME.py INPUT OUTPUT.tsv`. INPUT is a Parquet file, or a folder
of them, with the columns `id` and `text`. OUTPUT has one line per pair (two ids) or per removed
document (its id), without a header.
"""

import re
import sys
from pathlib import Path

import pyarrow.parquet as pq

SHINGLE_WORDS = 5
THRESHOLD = 0.8
NUM_PERM = 128
WORDS = re.compile("[a-z0-9]+")


def from_command_line():
    """Return the input file or folder, the output file and the words that follow them."""
    return Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]


def files(source):
    return sorted(source.glob("*.parquet")) if source.is_dir() else [source]


def read_batches(source, batch_size=2_000):
    """Yield (ids, texts) as lists, a bounded number of documents at a time."""
    for file in files(source):
        for batch in pq.ParquetFile(file).iter_batches(batch_size, columns=["id", "text"]):
            yield batch.column("id").to_pylist(), batch.column("text").to_pylist()


def shingle(text):
    """The distinct shingles of a text; a short text is one shingle, a text without words has none."""
    words = WORDS.findall(text.lower())
    if len(words) <= SHINGLE_WORDS:
        return {" ".join(words)} if words else set()
    return set(map(" ".join, zip(*(words[first:] for first in range(SHINGLE_WORDS)), strict=False)))


def read_shingles(source):
    """Yield (ids, shingle sets) of the documents that have shingles.

    Documents without words are left out: most peers treat all of them as copies of each other.
    """
    for ids, texts in read_batches(source):
        found = [
            (doc_id, shingles)
            for doc_id, text in zip(ids, texts, strict=True)
            if (shingles := shingle(text))
        ]
        yield [doc_id for doc_id, _ in found], [shingles for _, shingles in found]


def write_lines(output, rows):
    """Write one line a row: a tuple of ids."""
    with output.open("w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
