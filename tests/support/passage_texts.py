"""Random texts with passages that repeat: within a document, overlapping, touching, nested, whole documents."""

from __future__ import annotations


def repetitive_texts(rng, min_words, *, num_docs=8, vocabulary=5):
    """Texts of few words, put together from pieces of a few pools."""

    def words(count):
        return [f"w{rng.randrange(vocabulary)}" for _ in range(count)]

    pools = [words(rng.randint(1, 3 * min_words + 5)) for _ in range(4)]
    texts = []
    for _ in range(num_docs):
        text = []
        for _ in range(rng.randint(0, 6)):
            if rng.random() < 0.6:
                pool = rng.choice(pools)
                start = rng.randrange(len(pool))
                text += pool[start : start + rng.randint(1, 3 * min_words)]
            else:
                text += words(rng.randint(0, min_words))
        texts.append(rng.choice(texts) if texts and rng.random() < 0.1 else " ".join(text))
    return texts


def wrapped(rng, words):
    """The words as a text with other cases, marks and line breaks."""
    shown = [word.upper() if rng.random() < 0.3 else word for word in words]
    return "".join(word + rng.choice([" ", "\n", ", ", " — ", "\r\n\t"]) for word in shown)
