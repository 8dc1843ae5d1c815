"""gaoya: 21 bands of 6, its own tokens (words of its analyzer, compiled), checked by its signature; pairs."""

import documents
import gaoya.minhash

source, output, _ = documents.from_command_line()
index = gaoya.minhash.MinHashStringIndex(
    hash_size=32,
    jaccard_threshold=documents.THRESHOLD,
    num_bands=21,
    band_size=6,
    analyzer="word",
    lowercase=True,
    ngram_range=(documents.SHINGLE_WORDS, documents.SHINGLE_WORDS),
)
names = []
for ids, texts in documents.read_batches(source):
    index.par_bulk_insert_docs(range(len(names), len(names) + len(ids)), texts)
    names += ids


def pairs():
    """Query the index with each document; an earlier one that answers is a pair."""
    row = 0
    for _, texts in documents.read_batches(source):
        for found in index.par_bulk_query(texts):
            yield from ((names[other], names[row]) for other in found if other < row)
            row += 1


documents.write_lines(output, pairs())
