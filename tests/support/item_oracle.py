"""Which items of benchmarks documents contain, in plain Python: by coverage, and by the 13-gram rule."""

from __future__ import annotations

import math

SIZE = 13


def weights_of(documents, words):
    """What words weigh among documents: from 64, in none, to 16, in all."""
    weights = {}
    for word in words:
        count = sum(word in text for text in documents)
        commonness = math.log2(count + 1) / math.log2(len(documents) + 2)
        weights[word] = round(16 + 48 * (1 - min(commonness, 1)))
    return weights


def best_chain(text, item, weights, gap):
    """The weight of the heaviest chain of an item in a text, by every pair of equal words and every pair before it."""
    best = {}
    for at, word in enumerate(text):
        for position, own in enumerate(item):
            if own == word:
                before = [
                    weight
                    for (other_at, other_position), weight in best.items()
                    if other_position < position and 0 < at - other_at <= gap + 1
                ]
                best[at, position] = weights[word] + max(before, default=0)
    return max(best.values(), default=0)


def scores(documents, items, threshold):
    """The score of every item in every document that contains it, by (document, item)."""
    sets = [set(text) for text in documents]
    found = {}
    for number, item in enumerate(items):
        weights = weights_of(sets, set(item))
        is_long = len(item) >= 20
        for doc, text in enumerate(documents):
            weight = best_chain(text, item, weights, 5 if is_long else 0)
            score = weight / max(sum(weights[word] for word in item), 1)
            if len(item) >= 8 and score >= (threshold if is_long else 1):
                found[doc, number] = score
    return found


def grams(text):
    """All windows of 13 words."""
    return [tuple(text[at : at + SIZE]) for at in range(len(text) - SIZE + 1)]


def covered(text, wanted):
    """The positions of a text in windows of 13 words that are among `wanted`."""
    return {
        at + word for at, gram in enumerate(grams(text)) if gram in wanted for word in range(SIZE)
    }


def gram_scores(documents, items):
    """The share of the words of every item that windows of 13 words of a document cover, by (document, item)."""
    found = {}
    for doc, text in enumerate(documents):
        own = set(grams(text))
        for number, item in enumerate(items):
            if share := len(covered(item, own)):
                found[doc, number] = share / len(item)
    return found
