"""FastSketchLSH: fast similarity sketch, 16 bands of 8, unverified; pairs."""

import documents
import FastSketchLSH
import numpy as np

source, output, _ = documents.from_command_line()
sketch = FastSketchLSH.FastSimilaritySketch(documents.NUM_PERM)
names = []
parts = []
for ids, sets in documents.read_shingles(source):
    parts.append(sketch.batch([list(shingles) for shingles in sets]))
    names += ids
signatures = np.concatenate(parts)
lsh = FastSketchLSH.LSH(documents.NUM_PERM, 16)
lsh.insert(signatures)


def pairs(batch=1_000):
    """Query the index with each signature; an earlier one that answers is a pair."""
    for first in range(0, len(names), batch):
        others, ends = lsh.query(signatures[first : first + batch], format="csr")
        rows = np.repeat(np.arange(first, first + len(ends) - 1), np.diff(ends.astype(np.int64)))
        earlier = others < rows
        yield from (
            (names[other], names[row])
            for other, row in set(zip(others[earlier], rows[earlier], strict=True))
        )


documents.write_lines(output, pairs())
