"""rensa: full-set R-MinHash, 16 bands of 8, unverified; pairs."""

import documents
import rensa

source, output, _ = documents.from_command_line()
lsh = rensa.RMinHashLSH(threshold=documents.THRESHOLD, num_perm=documents.NUM_PERM, num_bands=16)
names = []
signatures = []
for ids, sets in documents.read_shingles(source):
    signatures += rensa.RMinHash.from_token_sets(sets, documents.NUM_PERM, 42)
    names += ids
lsh.insert_many(signatures)
found = lsh.query_all(signatures)
documents.write_lines(
    output,
    (
        (names[other], names[row])
        for row, others in enumerate(found)
        for other in set(others)
        if other < row
    ),
)
