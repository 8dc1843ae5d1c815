"""The Arrow schema of every table that crosses a stage boundary or leaves the library.

Hashes travel as int64 with the same bits and are viewed as uint64 in kernels. `row` numbers the documents of a run;
DOCUMENTS, sketches, CLASSES, SELECTION and ROW_PAIRS are sorted by it where tables of the engine have an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

_ROW = pa.field("row", pa.int64(), nullable=False)
_SIMILARITY = pa.field("similarity", pa.float64(), nullable=False)

# The priority of a document that is kept ahead of all others and not compared with its like.
AHEAD: Final = -(2**63)
# priority: keep order, the smallest first, ties by row; group: a hash, only equal ones are compared.
# text: large_binary where a measure compares something else, such as vectors.
DOCUMENTS = pa.schema([_ROW, ("text", pa.large_string()), ("priority", pa.int64()), ("group", pa.int64())])
# One row a copy; representative: the document that stands for all with the same shingle set.
CLASSES = pa.schema([_ROW, ("representative", pa.int64())])
# The shingles of a document, in any order; those of another group are others.
SETS = pa.schema([_ROW, ("shingles", pa.large_list(pa.int64()))])
# What the choice of a method depends on; linked_documents: 1 for one that the exact join cannot rule out;
# linked_shingles: its num_shingles.
CONTENTS = pa.schema(
    [_ROW, *((name, pa.int64()) for name in ("documents", "postings", "linked_documents", "linked_shingles"))]
)
# One row a shingle of a prefix; place: its place in the order of the document, the rarest shingle first.
POSTINGS = pa.schema([_ROW, ("num_shingles", pa.int64()), ("place", pa.int64()), ("key", pa.int64())])
# smallest: the smallest row of a bucket that `row` is in; in the exact join a row that it may be similar to.
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
# Numbers that add up to one.
COUNTS = pa.schema([("count", pa.int64())])
# One row a removed document.
SELECTION = pa.schema([_ROW, ("kept_row", pa.int64()), _SIMILARITY])
ROW_PAIRS = pa.schema([("row_a", pa.int64()), ("row_b", pa.int64()), _SIMILARITY])
# Pairs by containment: the larger of the two shares, and that of each document in the other.
_SHARES = [pa.field(f"containment_{side}", pa.float64(), nullable=False) for side in "ab"]
CONTAINED = pa.schema([*ROW_PAIRS, *_SHARES])
# One row a batch of documents: how many pairs were compared for it, and those of them that contain each other.
CONTAINERS = pa.schema([("compared", pa.int64()), ("pairs", pa.large_list(pa.struct(list(CONTAINED))))])
# What it takes to select again: a document that stands in a pair, its place among all documents (-1 for one ahead),
# and its keep order.
KEEP_ORDER = pa.schema([_ROW, ("position", pa.int64()), ("priority", pa.int64())])
# A drawn document: row in its part, and the hash it was drawn by, the smallest first.
SAMPLED = pa.schema(
    [("part", pa.int64()), _ROW, ("draw", pa.int64()), ("group", pa.int64()), ("text", pa.large_string())]
)
# A document and a set of the sample, by its number, that are a pair; is_found: by the run.
PARTNERS = pa.schema([_ROW, ("number", pa.int64()), _SIMILARITY, ("is_found", pa.bool_())])
REJECTED = pa.schema([("file", pa.string()), _ROW, ("reason", pa.string())])


def documents(texts: pa.DataType) -> pa.Schema:
    """Return DOCUMENTS with texts of this type."""
    return DOCUMENTS.set(1, pa.field("text", texts))


def documents_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return batches of documents, whatever the type of their texts, as one table."""
    held = list(batches)
    return pa.Table.from_batches(held, schema=None if held else DOCUMENTS)


def sketches(num_bands: int, *, is_sampled: bool = False) -> pa.Schema:
    """Return the schema of sketched documents: sizes, set digests, where the set is held, if at all, and band keys.

    Without bands the set itself stands in their place, and where it is sampled, some shingles of it behind them.
    """
    keys = [(key_column(band), pa.int64()) for band in range(num_bands)]
    shingles = [("shingles", pa.large_list(pa.int64()))] if is_sampled or not keys else []
    return pa.schema(
        [
            _ROW,
            ("priority", pa.int64()),
            ("group", pa.int64()),
            ("text_bytes", pa.int64()),
            ("num_shingles", pa.int64()),
            ("digest_low", pa.int64()),
            ("digest_high", pa.int64()),
            ("held_at", pa.int64()),
            *keys,
            *shingles,
        ]
    )


def key_column(band: int) -> str:
    """Name the column with the keys of a band."""
    return f"key_{band}"


def pairs(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of listed pairs; doc_a stands before doc_b in the input."""
    return pa.schema([("doc_a", id_type), ("doc_b", id_type), _SIMILARITY])


def row_order(columns: pa.Schema) -> list[tuple[str, str]]:
    """Return how a table with these columns is sorted, where an engine keeps tables in order: by its rows."""
    return [(name, "ascending") for name in columns.names if name in ("row", "row_a", "row_b")]


def with_shares(named: pa.Schema, row_pairs: pa.Schema) -> pa.Schema:
    """Return the schema of named pairs with what those of rows say beyond their similarity."""
    return pa.schema([*named, *list(row_pairs)[len(ROW_PAIRS) :]])


def with_rows(named: pa.Schema, *rows: str) -> pa.Schema:
    """Return the schema of a table in memory whose ids repeat, so that rows tell documents apart."""
    return pa.schema([*named, *((row, pa.int64()) for row in rows)])


def missed(pairs: pa.Schema) -> pa.Schema:
    """Return the schema of missed pairs: that of listed pairs, and the chance that such a pair is found."""
    return pairs.insert(3, pa.field("chance", pa.float64(), nullable=False))


def buckets(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of buckets: the number of the band, the key, and the documents that share it."""
    return pa.schema([("band", pa.int64()), ("key", pa.uint64()), ("documents", pa.large_list(id_type))])


def removed(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of removed documents."""
    return pa.schema([("doc_id", id_type), ("kept_id", id_type), _SIMILARITY])


def clusters(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of clusters; a cluster is named by its kept document."""
    return pa.schema([("doc_id", id_type), ("cluster_id", id_type)])


def neighbours(own: Sequence[pa.DataType], other: Sequence[pa.DataType]) -> pa.Schema:
    """Return the schema of neighbours, ranked from 1.

    Args:
        own: types of the id and, from files, of file and row of those that ask.
        other: the same of their neighbours.
    """
    ranked = [
        ("doc_id", own[0]),
        ("neighbour_id", other[0]),
        _SIMILARITY,
        pa.field("rank", pa.int64(), nullable=False),
    ]
    places = [
        (f"{prefix}{name}", kind)
        for prefix, kinds in (("", own), ("neighbour_", other))
        for name, kind in zip(("file", "row"), kinds[1:], strict=False)
    ]
    return pa.schema([*ranked, *places])


# From files, where ids may repeat, file and row tell documents apart.
REMOVED_FROM_FILES = pa.schema(
    [
        *removed(pa.string()),
        ("file", pa.string()),
        ("row", pa.int64()),
        ("kept_file", pa.string()),
        ("kept_row", pa.int64()),
    ]
)
PAIRS_FROM_FILES = pa.schema(
    [
        *pairs(pa.string()),
        ("file_a", pa.string()),
        ("row_a", pa.int64()),
        ("file_b", pa.string()),
        ("row_b", pa.int64()),
    ]
)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return batches as one; without a copy where there is one."""
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return the chunks of a column as one array; without a copy where there is one chunk."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
