"""rensa: its RMinHashDeduplicator, 16 bands of 8, checked by its signature; removed documents."""

import documents
import rensa

source, output, _ = documents.from_command_line()
deduplicator = rensa.RMinHashDeduplicator(
    documents.THRESHOLD, documents.NUM_PERM, use_lsh=True, num_bands=16
)
removed = []
for ids, sets in documents.read_shingles(source):
    signatures = rensa.RMinHash.from_token_sets(sets, documents.NUM_PERM, 42)
    is_new = deduplicator.add_pairs(list(zip(ids, signatures, strict=True)))
    removed += [(doc_id,) for doc_id, new in zip(ids, is_new, strict=True) if not new]
documents.write_lines(output, removed)
