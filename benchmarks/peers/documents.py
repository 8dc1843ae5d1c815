"""What the peer scripts share: reading documents, the words and shingles they are given, writing the answer.

A script is called as `python peers/NAME.py INPUT OUTPUT.tsv`. INPUT is a Parquet file, or a folder of them, with the
columns `id` and `text`. OUTPUT has one line a pair (two ids) or one line a removed document (its id), without a header.
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
    """The distinct shingles of a text; one of all words where they are fewer than a shingle has, none without words."""
    words = WORDS.findall(text.lower())
    if len(words) <= SHINGLE_WORDS:
        return {" ".join(words)} if words else set()
    return set(map(" ".join, zip(*(words[first:] for first in range(SHINGLE_WORDS)), strict=False)))


def read_shingles(source):
    """Yield (ids, shingle sets) of the documents that have shingles.

    Documents without words are left out: most peers would call all of them copies of each other.
    """
    for ids, texts in read_batches(source):
        found = [(doc_id, shingles) for doc_id, text in zip(ids, texts, strict=True) if (shingles := shingle(text))]
        yield [doc_id for doc_id, _ in found], [shingles for _, shingles in found]


def write_lines(output, rows):
    """Write one line a row: a tuple of ids."""
    with output.open("w", encoding="utf-8") as file:
        file.writelines("\t".join(row) + "\n" for row in rows)
