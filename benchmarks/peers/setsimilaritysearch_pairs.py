"""SetSimilaritySearch: exact all-pairs in Python; pairs."""

import documents
import SetSimilaritySearch

source, output, _ = documents.from_command_line()
names = []
all_sets = []
for ids, sets in documents.read_shingles(source):
    names += ids
    all_sets += sets
found = SetSimilaritySearch.all_pairs(
    all_sets, similarity_func_name="jaccard", similarity_threshold=documents.THRESHOLD
)
documents.write_lines(
    output, ((names[min(one, other)], names[max(one, other)]) for one, other, _ in found)
)
