"""Every pair of documents with an exact Jaccard similarity >= t, by a plain method that shares no code with neardup.

    python benchmarks/truth.py INPUT OUTPUT.parquet [--words ascii|unicode] [--threshold .8]

Sets of 5-word shingles, equal sets once, then the prefix filter: two sets with J >= t share one of
the rarest n - ceil(t n) + 1 shingles of each. A sparse product of the prefixes gives the
candidates, one of the whole sets their intersections. `ascii` are the words [a-z0-9]+ that the
peers are given; `unicode` those that neardup takes: letters, marks and digits of every script, one
word per character in scripts written without spaces.
"""

import argparse
import re
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

sys.path.insert(0, str(Path(__file__).parent / "peers"))
import documents

SPACELESS = re.compile("CJK|HIRAGANA|KATAKANA|THAI |LAO |KHMER|MYANMAR|IDEOGRAPHIC ITERATION")
CANDIDATE_BLOCK = 2_000


class UnicodeWords(dict):
    """A table for str.translate: folds word characters, and turns separators into spaces."""

    def __missing__(self, code):
        character = chr(code)
        category = unicodedata.category(character)
        if category[0] not in "LM" and category not in ("Nd", "Nl"):
            value = " "
        elif SPACELESS.match(unicodedata.name(character, "")):
            value = f" {character} "
        else:
            folded = (character.casefold(), character.lower())
            value = next((one for one in folded if len(one) == 1), character)
        self[code] = value
        return value


UNICODE = UnicodeWords()


def unicode_words(text):
    return unicodedata.normalize("NFC", text).translate(UNICODE).split()


def ascii_words(text):
    return documents.WORDS.findall(text.lower())


SPLITTERS = {"ascii": ascii_words, "unicode": unicode_words}


class Shingler:
    """Texts to sorted distinct 64-bit shingle hashes: a random number per word, combined by position."""

    def __init__(self, words="ascii"):
        self._split = SPLITTERS[words]
        self._numbers = {}
        self._random = np.random.default_rng(7)
        self._of_word = self._random.integers(0, 2**64, 1 << 16, dtype=np.uint64)
        self._factors = self._random.integers(
            0, 2**63, documents.SHINGLE_WORDS, dtype=np.uint64
        ) * np.uint64(2) + np.uint64(1)

    def shingles(self, text):
        """The hashes of one text; a short text is one shingle."""
        numbers = self._numbers
        words = self._split(text)
        ids = np.fromiter(
            (numbers.setdefault(word, len(numbers)) for word in words), np.int64, len(words)
        )
        if len(words) == 0:
            return np.empty(0, np.uint64)
        values = self._random_values(ids)
        size = min(len(words), documents.SHINGLE_WORDS)
        hashes = np.zeros(len(words) - size + 1, np.uint64)
        for position in range(size):
            part = values[position : position + len(hashes)] * self._factors[position]
            hashes += part ^ (part >> np.uint64(29))
        return np.unique(hashes)

    def _random_values(self, ids):
        while len(self._numbers) > len(self._of_word):
            more = self._random.integers(0, 2**64, len(self._of_word), dtype=np.uint64)
            self._of_word = np.concatenate([self._of_word, more])
        return self._of_word[ids]


def read_sets(source, words):
    """The ids and shingle hashes of the documents that have shingles."""
    shingler = Shingler(words)
    names = []
    sets = []
    for ids, texts in documents.read_batches(source):
        for doc_id, text in zip(ids, texts, strict=True):
            hashes = shingler.shingles(text)
            if len(hashes):
                names.append(doc_id)
                sets.append(hashes)
    return names, sets


def least_overlap(size, threshold):
    """The minimum number of a set's shingles that any set with J >= t shares with it."""
    overlap = np.ceil(size * threshold).astype(np.int64)
    overlap[(overlap - 1) / size >= threshold] -= 1
    return overlap


def all_pairs(sets, threshold):
    """Yield arrays (one, other, similarity) that together hold each pair of rows with J >= t once."""
    first_of = {}
    classes = [first_of.setdefault(one.tobytes(), len(first_of)) for one in sets]
    rows_of = [[] for _ in first_of]
    for row, number in enumerate(classes):
        rows_of[number].append(row)
    distinct = [sets[rows[0]] for rows in rows_of]
    equal = ((number, number, 1.0) for number, rows in enumerate(rows_of) if len(rows) > 1)
    for one, other, similarity in [*equal, *distinct_pairs(distinct, threshold)]:
        for left in rows_of[one]:
            for right in rows_of[other]:
                if one != other or left < right:
                    yield min(left, right), max(left, right), similarity


def distinct_pairs(sets, threshold):
    """The pairs of different sets, as (one, other, similarity)."""
    sizes = np.array([len(one) for one in sets])
    whole, prefix = matrices(sets, sizes, threshold)
    found = []
    for first in range(0, len(sets), CANDIDATE_BLOCK):
        candidates = scipy.sparse.triu(
            prefix[first : first + CANDIDATE_BLOCK] @ prefix.T, k=first + 1, format="coo"
        )
        one = candidates.row + first
        other = candidates.col
        near = (
            np.minimum(sizes[one], sizes[other])
            >= threshold * np.maximum(sizes[one], sizes[other]) - 1
        )
        found += verified(whole, sizes, one[near], other[near], threshold)
    return found


def matrices(sets, sizes, threshold):
    """Two matrices of documents x shared shingles: all of them, and only the prefixes."""
    rows, columns, counts = shared_shingles(sets, sizes)
    by_rarity = np.lexsort((columns, counts[columns], rows))
    rows, columns = rows[by_rarity], columns[by_rarity]
    num_shared = np.bincount(rows, minlength=len(sets))
    # Shingles of a single document are its rarest: they precede the shared ones, and are not
    # stored.
    first_rank = (sizes - num_shared) - (np.cumsum(num_shared) - num_shared)
    rank = np.arange(len(rows)) + first_rank[rows]
    in_prefix = rank < (sizes - least_overlap(sizes, threshold) + 1)[rows]
    shape = (len(sets), len(counts))
    return tuple(
        scipy.sparse.csr_array((np.ones(len(part), np.int32), (part, of_part)), shape)
        for part, of_part in ((rows, columns), (rows[in_prefix], columns[in_prefix]))
    )


def shared_shingles(sets, sizes):
    """Row and column of every shingle that two documents have, and the number of documents of each column."""
    hashes = np.concatenate(sets)
    order = np.argsort(hashes)
    hashes = hashes[order]
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]])
    counts = np.diff(np.r_[starts, len(order)])
    is_shared = np.repeat(counts > 1, counts)
    counts = counts[counts > 1].astype(np.int32)
    rows = np.repeat(np.arange(len(sets), dtype=np.int32), sizes)[order[is_shared]]
    return rows, np.repeat(np.arange(len(counts), dtype=np.int32), counts), counts


def verified(whole, sizes, one, other, threshold, block=50_000):
    """The candidates whose exact similarity reaches the threshold."""
    found = []
    for first in range(0, len(one), block):
        left, right = one[first : first + block], other[first : first + block]
        shared = np.asarray(whole[left].multiply(whole[right]).sum(axis=1)).ravel()
        similarity = shared / (sizes[left] + sizes[right] - shared)
        true = similarity >= threshold
        found += zip(
            left[true].tolist(), right[true].tolist(), similarity[true].tolist(), strict=True
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--words", choices=SPLITTERS, default="ascii")
    parser.add_argument("--threshold", type=float, default=documents.THRESHOLD)
    options = parser.parse_args()
    names, sets = read_sets(options.source, options.words)
    rows = list(all_pairs(sets, options.threshold))
    columns = {
        "doc_a": pa.array([names[one] for one, _, _ in rows], pa.large_string()),
        "doc_b": pa.array([names[other] for _, other, _ in rows], pa.large_string()),
        "similarity": pa.array([similarity for _, _, similarity in rows], pa.float64()),
    }
    pq.write_table(pa.table(columns), options.output)


if __name__ == "__main__":
    main()
