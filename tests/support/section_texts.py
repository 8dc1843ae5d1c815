"""Random texts of lines and paragraphs that repeat, with every kind of line end and white space."""

from __future__ import annotations

# Line ends and gaps between paragraphs.
ENDS = ("\n", "\r\n", "\n\n", "\n \t\n", "\r\n\r\n", "\n\u3000\n", "\n\n\n")
NASTY = (
    "\x00 one\x00two three",
    "日本語の文章です。",
    "a\rb c d e",
    "-- --- !",
    "cafe\u0301 au lait noir",
    "Café au LAIT noir",
    "unit unit unit",
    "unit unit unit unit unit unit",
    "\ufeffzero\u200bwidth words here",
    "\u2028 separate \x85 lines",
    "    indented  by   spaces",
)


def sectioned_texts(rng, *, num_docs=6, vocabulary=3):
    """Texts of few different lines, blank ones among them, with and without a last line end."""

    def line():
        kind = rng.random()
        if kind < 0.3:
            return rng.choice(NASTY)
        if kind < 0.4:
            return rng.choice(["", " ", "\t", "\u3000"])
        words = [f"w{rng.randrange(vocabulary)}" for _ in range(rng.randint(1, 7))]
        if rng.random() < 0.2:
            words = [word.upper() for word in words]
        return rng.choice([" ", ", ", "  "]).join(words) + rng.choice(["", ".", " "])

    pool = [line() for _ in range(6)]
    texts = []
    for _ in range(num_docs):
        lines = [
            rng.choice(pool) if rng.random() < 0.7 else line() for _ in range(rng.randint(0, 9))
        ]
        text = "".join(own + rng.choice(ENDS) for own in lines)
        if rng.random() < 0.5:
            text = text.rstrip("\n\r")
        if rng.random() < 0.2:
            text = rng.choice(ENDS) + text
        texts.append(rng.choice(texts) if texts and rng.random() < 0.1 else text)
    return texts
