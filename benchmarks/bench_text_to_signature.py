"""How fast does text become a 128-slot signature of its 5-word shingles, on one thread?

neardup reads Arrow text. The others take tokens, so the Python shingling that they need is included
in their time, and also timed alone. Peers run on a slice of the same documents; the rate is per
megabyte of that slice.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasketch import MinHash
from rensa import RMinHash

import harness
import neardup

WORD = re.compile(r"\w+")
PEER_BYTES = 8_000_000


def shingle(text):
    words = WORD.findall(text.lower())
    return [" ".join(words[at : at + 5]) for at in range(max(1, len(words) - 4))] if words else []


def with_datasketch(texts):
    for text in texts:
        MinHash(num_perm=128).update_batch([token.encode() for token in shingle(text)])


def with_rensa(texts):
    RMinHash.digest_matrix_from_token_sets([shingle(text) for text in texts], 128, 1)


def measure(corpus, texts, repeat):
    neardup.signatures(texts.slice(0, 100))
    num_bytes = pc.sum(pc.binary_length(texts)).as_py()
    ends = np.cumsum(pc.binary_length(texts).to_numpy())
    part = texts.slice(0, int(np.searchsorted(ends, PEER_BYTES)) + 1)
    part_bytes = pc.sum(pc.binary_length(part)).as_py()
    strings = part.to_pylist()
    rows = [
        (
            "neardup.signatures",
            num_bytes,
            harness.best_seconds(lambda: neardup.signatures(texts), repeat),
        )
    ]
    for tool, work in (
        ("Python shingling alone", lambda: [shingle(text) for text in strings]),
        ("Python shingling + rensa full set", lambda: with_rensa(strings)),
        ("Python shingling + datasketch", lambda: with_datasketch(strings)),
    ):
        rows.append((tool, part_bytes, harness.best_seconds(work, min(repeat, 2))))
    return [
        {
            "corpus": corpus,
            "tool": tool,
            "MB": size / 1e6,
            "seconds": seconds,
            "MB/s": size / 1e6 / seconds,
        }
        for tool, size, seconds in rows
    ]


def main():
    options = harness.arguments(__doc__)
    rows = []
    for corpus in ("docs", "multilingual"):
        name, texts = harness.load_texts(options.corpora, corpus)
        texts = texts.cast(pa.large_string())
        if corpus == "docs":
            rows += measure(
                f"{name}, ASCII documents", texts.filter(pc.string_is_ascii(texts)), options.repeat
            )
        if options.corpora:
            rows += measure(name, texts, options.repeat)
    harness.publish("text_to_signature", rows, harness.machine("rensa", "datasketch"))


if __name__ == "__main__":
    main()
