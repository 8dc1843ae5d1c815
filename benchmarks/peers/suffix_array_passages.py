"""pydivsufsort: the suffix array of all texts, and the bytes in repeated substrings of 300 bytes or more."""

import documents
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydivsufsort import divsufsort, kasai

# About fifty words.
MIN_BYTES = 300

source, output, _ = documents.from_command_line()
texts = pa.chunked_array(
    chunk
    for file in documents.files(source)
    for chunk in pq.read_table(file, columns=["text"]).column("text").chunks
)
content = b"\xff".join(text.encode() for text in texts.to_pylist())
suffixes = divsufsort(content)
common = kasai(content, suffixes)
starts = np.sort(suffixes[:-1][common[:-1] >= MIN_BYTES])
covered = int(np.minimum(np.diff(starts, append=len(content)), MIN_BYTES).sum())
documents.write_lines(output, [(str(covered),)])
