"""The Arrow schema of every table that crosses a stage boundary or leaves the library.

Hashes travel as int64 with the same bits and are viewed as uint64 in kernels. `row` numbers the documents of a run;
DOCUMENTS, sketches, CLASSES and SELECTION are sorted by it.
"""

from __future__ import annotations

import pyarrow as pa

_ROW = pa.field("row", pa.int64(), nullable=False)
_SIMILARITY = pa.field("similarity", pa.float64(), nullable=False)

# priority: the document's place in keep order; the best is 0, no two are equal.
DOCUMENTS = pa.schema([_ROW, ("text", pa.large_string()), ("priority", pa.int64())])
# representative: the document that stands for all with the same shingle set.
CLASSES = pa.schema([_ROW, ("representative", pa.int64())])
BAND = pa.schema([_ROW, ("key", pa.int64())])
# smallest: the smallest row of a bucket that `row` is in.
LINKS = pa.schema([_ROW, ("smallest", pa.int64())])
COMPONENTS = pa.schema([_ROW, ("component", pa.int64())])
# One row a document: the kept document it matches (null if it is kept itself), and, where pairs are listed, its
# partners among the documents before it in keep order.
VERIFIED = pa.schema(
    [
        _ROW,
        ("kept_row", pa.int64()),
        ("similarity", pa.float64()),
        ("compared", pa.int64()),
        ("partners", pa.large_list(pa.int64())),
        ("partner_similarities", pa.large_list(pa.float64())),
    ]
)
# kept_row == row for a kept document.
SELECTION = pa.schema([_ROW, ("kept_row", pa.int64()), _SIMILARITY])
ROW_PAIRS = pa.schema([("row_a", pa.int64()), ("row_b", pa.int64()), _SIMILARITY])
REJECTED = pa.schema([("file", pa.string()), _ROW, ("reason", pa.string())])


def sketches(num_bands: int) -> pa.Schema:
    """Return the schema of sketched documents: sizes, set digests and band keys."""
    return pa.schema(
        [
            _ROW,
            ("priority", pa.int64()),
            ("num_shingles", pa.int64()),
            ("digest_low", pa.int64()),
            ("digest_high", pa.int64()),
            ("keys", pa.list_(pa.field("item", pa.int64(), nullable=False), num_bands)),
        ]
    )


def pairs(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of listed pairs; doc_a stands before doc_b in the input."""
    return pa.schema([("doc_a", id_type), ("doc_b", id_type), _SIMILARITY])


def removed(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of removed documents."""
    return pa.schema([("doc_id", id_type), ("kept_id", id_type), _SIMILARITY])


def clusters(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of clusters; a cluster is named by its kept document."""
    return pa.schema([("doc_id", id_type), ("cluster_id", id_type)])


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return the chunks of a column as one array; without a copy where there is one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
