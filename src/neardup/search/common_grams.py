"""Benchmark items in documents by the rule of published reports: documents that share 13 consecutive words with one."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.kernels import common_grams as kernel
from neardup.kernels.hash_sets import FREE
from neardup.search.bench_items import ItemSearch, in_order

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
GRAM_WORDS: Final = 13
_ROOM: Final = 1 << 10


class GramSearch(ItemSearch):
    """Finds items by runs of GRAM_WORDS words that documents share with them; `weigh` gives all words the same weight.

    The weight of a span is the number of words of the item that such runs cover anywhere in the document.
    """

    min_words = GRAM_WORDS

    def __init__(self, words: U64, ends: I64) -> None:
        """Take the word hashes of all items end to end; item i owns words[ends[i]:ends[i + 1]]."""
        super().__init__(words, ends)
        self._gram_capacity = 2 * self._words.size + 8
        self._grams = self._number_grams()

    def weigh(self) -> None:
        """Weigh all words equally."""
        self.totals = self.sizes

    def find(self, words: U64, ends: I64) -> I64:
        """Return the spans of documents whose words are in shared runs, sorted by document, item and position."""
        numbered = self._numbered(words)
        found = np.empty((_ROOM, 8), np.int64)
        while True:
            seen = np.full((self.sizes.size, 4), -1)
            last_doc = np.full(self._grams.ends.size - 1, -1)
            covered_in = np.full(self._words.size, -1)
            scratch = seen, last_doc, covered_in
            count = kernel.find_spans(
                numbered, ends, GRAM_WORDS, self._gram_capacity, self._grams, scratch, found
            )
            if count <= found.shape[0]:
                break
            found = np.empty((count, 8), np.int64)
        return in_order(found[:count], ends)

    def _number_grams(self) -> kernel.Grams:
        words = self._words
        slots = np.full(self._gram_capacity + words.size + 1, FREE)
        grams = np.empty(words.size, np.int64)
        num_grams = kernel.number_grams(
            words, self._ends, GRAM_WORDS, self._gram_capacity, slots, grams
        )
        owners = np.repeat(np.arange(self.sizes.size), self.sizes)
        begins = np.flatnonzero(grams != kernel.NO_GRAM)
        # By gram, and then by position, which is also by item.
        positions = begins[np.argsort(grams[begins], kind="stable")]
        of_position = grams[positions]
        items = owners[positions]
        is_new = np.ones(positions.size, np.bool_)
        is_new[1:] = (of_position[1:] != of_position[:-1]) | (items[1:] != items[:-1])
        starts = np.append(np.flatnonzero(is_new), positions.size)
        in_item = positions - self._ends[items]
        return kernel.Grams(
            words=words,
            slots=slots,
            grams=grams,
            ends=np.searchsorted(of_position[starts[:-1]], np.arange(num_grams + 1)),
            items=items[starts[:-1]],
            firsts=in_item[starts[:-1]],
            lasts=in_item[starts[1:] - 1],
            starts=starts,
            positions=positions,
        )
