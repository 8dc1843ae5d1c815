"""The Arrow schema of every table that crosses a stage boundary or leaves the library.

Hashes travel as int64 with the same bits and are viewed as uint64 in kernels. `row` numbers the
documents of a run; DOCUMENTS, sketches, CLASSES, SELECTION and ROW_PAIRS are sorted by it where
tables of the engine have an order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ROW = pa.field("row", pa.int64(), nullable=False)
_SIMILARITY = pa.field("similarity", pa.float64(), nullable=False)

# The priority of a reference document (`against`): ahead of all input, and not compared with other
# reference documents.
REFERENCE_PRIORITY: Final = -(2**63)
# priority: keep order, the smallest first, ties by row; group: a hash; only documents of the same
# group are compared.
# text: large_binary if the measure compares something else, such as vectors.
DOCUMENTS = pa.schema(
    [_ROW, ("text", pa.large_string()), ("priority", pa.int64()), ("group", pa.int64())]
)
# One row per copy; representative: the document that represents all with the same shingle set.
CLASSES = pa.schema([_ROW, ("representative", pa.int64())])
# The shingles of a document, unsorted, salted by its group.
SETS = pa.schema([_ROW, ("shingles", pa.large_list(pa.int64()))])
# Documents that are compared with all others.
COMPARED = pa.schema([_ROW, ("group", pa.int64()), ("text", pa.large_binary())])
# The figures by which method="auto" chooses, per document; linked_documents: 1 if the exact join
# cannot rule it out;
# linked_shingles: its num_shingles in that case.
CONTENTS = pa.schema(
    [
        _ROW,
        *(
            (name, pa.int64())
            for name in ("documents", "postings", "linked_documents", "linked_shingles")
        ),
    ]
)
# One row per prefix shingle; `place`: its position in the document, the rarest shingle first.
POSTINGS = pa.schema(
    [_ROW, ("num_shingles", pa.int64()), ("place", pa.int64()), ("key", pa.int64())]
)
# smallest: the smallest row of a bucket of `row`; in the exact join a row that it may be similar
# to.
LINKS = pa.schema([_ROW, ("smallest", pa.int64())])
COMPONENTS = pa.schema([_ROW, ("component", pa.int64())])
# A pair found by verification: a document and its partner among the documents before it in keep
# order.
PARTNERED = pa.schema([_ROW, ("partner", pa.int64()), _SIMILARITY])
# One row per document: the kept document it matches (null if it is kept itself); compared: how many
# documents before it it was compared with, which depends on how the work was cut; found: how many
# of them are pairs, or without a list of pairs 1 for a document that is not kept, which does not
# depend on it; and, if pairs are listed and the engine does not take them apart, its partners as in
# PARTNERED.
VERIFIED = pa.schema(
    [
        _ROW,
        ("kept_row", pa.int64()),
        ("similarity", pa.float64()),
        ("compared", pa.int64()),
        ("found", pa.int64()),
        ("partners", pa.large_list(pa.int64())),
        ("partner_similarities", pa.large_list(pa.float64())),
    ]
)
# Partial counts.
COUNTS = pa.schema([("count", pa.int64())])
# One row per removed document.
SELECTION = pa.schema([_ROW, ("kept_row", pa.int64()), _SIMILARITY])
ROW_PAIRS = pa.schema([("row_a", pa.int64()), ("row_b", pa.int64()), _SIMILARITY])
# Pairs by containment: the larger of the two shares as similarity, and the share of each document
# in the other.
_SHARES = {
    end: pa.field(f"containment_{end}", pa.float64(), nullable=False)
    for end in ("a", "b", "removed", "kept")
}
CONTAINMENT_PAIRS = pa.schema([*ROW_PAIRS, _SHARES["a"], _SHARES["b"]])
# One row per batch of documents: the number of candidate pairs, and those where one contains the
# other.
CONTAINMENT_BATCHES = pa.schema(
    [
        ("compared", pa.int64()),
        ("found", pa.int64()),
        ("pairs", pa.large_list(pa.struct(list(CONTAINMENT_PAIRS)))),
    ]
)
# One row per document that contains a reference document: its similarity is the share of that
# document, the kept one.
CONTAINMENT_SELECTION = pa.schema([*SELECTION, _SHARES["removed"], _SHARES["kept"]])
# What `at_threshold` needs to select again: every document in a pair, its position among all
# documents (-1 for a reference document), and its keep priority.
KEEP_ORDER = pa.schema([_ROW, ("position", pa.int64()), ("priority", pa.int64())])
# A sampled document: its row in its part, and the hash that selected it; text as in DOCUMENTS.
SAMPLED = pa.schema(
    [
        ("part", pa.int64()),
        _ROW,
        ("draw", pa.int64()),
        ("group", pa.int64()),
        ("text", pa.large_string()),
    ]
)
# A pair of a document and a sampled set; is_found: whether the run finds it.
PARTNERS = pa.schema([_ROW, ("number", pa.int64()), _SIMILARITY, ("is_found", pa.bool_())])
# One row per document: the number of its words, and its anchors (kernels/anchors.py), in order.
ANCHORS = pa.schema(
    [
        _ROW,
        ("group", pa.int64()),
        ("num_words", pa.int64()),
        ("keys", pa.large_list(pa.int64())),
        ("positions", pa.large_list(pa.int32())),
        ("befores", pa.large_list(pa.int32())),
        ("counts", pa.large_list(pa.int32())),
    ]
)


def sampled(texts: pa.DataType) -> pa.Schema:
    """Return SAMPLED with the given type of texts."""
    return SAMPLED.set(4, pa.field("text", texts))


# What was compared, as `text_out` stores it; in memory there is no file, and a row is a position.
TEXTS = pa.schema(
    [
        pa.field("doc_id", pa.string()),
        pa.field("file", pa.string()),
        _ROW,
        pa.field("text", pa.large_string()),
    ]
)
REJECTED = pa.schema([("file", pa.string()), _ROW, ("reason", pa.string())])


# The common shingles of a run: salted with their group, and in how many of its documents they are.
COMMON = pa.schema([("shingle", pa.int64()), ("documents", pa.int64())])


def documents(texts: pa.DataType, *, has_common: bool = False) -> pa.Schema:
    """Return DOCUMENTS with the given type of texts; has_common: with their groups of `ignore_common`."""
    columns = DOCUMENTS.set(1, pa.field("text", texts))
    return columns.append(pa.field("common", pa.int64())) if has_common else columns


def documents_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return batches of documents, whatever the type of their texts, as one table."""
    collected = list(batches)
    return pa.Table.from_batches(collected, schema=None if collected else DOCUMENTS)


def sketches(num_bands: int, *, has_shingles: bool = False, ignores: bool = False) -> pa.Schema:
    """Return the schema of sketched documents: sizes, set digest, offset of the set in memory, and band keys.

    With `has_shingles`, the set follows, or where there are bands a sample of it.
    If shingles are ignored, only_ignored is 1 for a document that has no others, else 0.
    """
    keys = [(key_column(band), pa.int64()) for band in range(num_bands)]
    if has_shingles:
        shingles = [("shingles", pa.large_list(pa.int64()))]
    else:
        shingles = []
    names = (
        "priority",
        "group",
        "text_bytes",
        "num_shingles",
        "digest_low",
        "digest_high",
        "held_at",
    )
    marks = ["only_ignored"] if ignores else []
    return pa.schema([_ROW, *((name, pa.int64()) for name in (*names, *marks)), *keys, *shingles])


def key_column(band: int) -> str:
    """Return the name of the column with the keys of a band."""
    return f"key_{band}"


def pairs(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of listed pairs; doc_a comes before doc_b in the input."""
    return pa.schema([("doc_a", id_type), ("doc_b", id_type), _SIMILARITY])


def row_order(columns: pa.Schema) -> list[tuple[str, str]]:
    """Return the sort keys of a table with these columns, for engines whose tables have an order: its rows."""
    return [(name, "ascending") for name in columns.names if name in ("row", "row_a", "row_b")]


def with_shares(named: pa.Schema, by_row: pa.Schema) -> pa.Schema:
    """Return the schema of pairs or removed documents by id, with the extra columns of the table by row."""
    return pa.schema([*named, *list(by_row)[len(ROW_PAIRS) :]])


def with_rows(named: pa.Schema, *rows: str) -> pa.Schema:
    """Return the schema of a table in memory whose ids repeat, with rows to distinguish documents."""
    return pa.schema([*named, *((row, pa.int64()) for row in rows)])


# In memory: whether the kept document, or the first of a pair, is one of `against`.
IS_AGAINST: Final = pa.field("is_against", pa.bool_(), nullable=False)


def missed(pairs: pa.Schema) -> pa.Schema:
    """Return the schema of missed pairs: listed pairs with the chance that such a pair is found."""
    return pairs.insert(3, pa.field("chance", pa.float64(), nullable=False))


def buckets(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of buckets: band number, key, and the documents that share it."""
    return pa.schema(
        [("band", pa.int64()), ("key", pa.uint64()), ("documents", pa.large_list(id_type))]
    )


def removed(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of removed documents."""
    return pa.schema([("doc_id", id_type), ("kept_id", id_type), _SIMILARITY])


def clusters(id_type: pa.DataType) -> pa.Schema:
    """Return the schema of clusters; a cluster is named by its kept document."""
    return pa.schema([("doc_id", id_type), ("cluster_id", id_type), ("cluster_size", pa.int64())])


def neighbours(
    own: Sequence[pa.DataType], other: Sequence[pa.DataType], *, has_shares: bool = False
) -> pa.Schema:
    """Return the schema of neighbours, ranked from 1.

    Args:
        own: types of the id and, from files, of file and row of the queries.
        other: the same for their neighbours.
        has_shares: whether both containment shares are listed next to the similarity.
    """
    ranked = [
        ("doc_id", own[0]),
        ("neighbour_id", other[0]),
        _SIMILARITY,
        pa.field("rank", pa.int64(), nullable=False),
    ]
    locations = [
        (f"{prefix}{name}", kind)
        for prefix, kinds in (("", own), ("neighbour_", other))
        for name, kind in zip(("file", "row"), kinds[1:], strict=False)
    ]
    sides = ("query", "neighbour") if has_shares else ()
    shares = [pa.field(f"containment_{side}", pa.float64(), nullable=False) for side in sides]
    return pa.schema([*ranked, *shares, *locations])


# Ids from files may repeat, so file and row identify a document.
_PLACES: Final = (pa.string(), pa.int64()) * 2
REMOVED_FROM_FILES = pa.schema(
    [*removed(pa.string()), *zip(("file", "row", "kept_file", "kept_row"), _PLACES, strict=True)]
)
PAIRS_FROM_FILES = pa.schema(
    [*pairs(pa.string()), *zip(("file_a", "row_a", "file_b", "row_b"), _PLACES, strict=True)]
)
_POSITIONS_IN_PAIR: Final = tuple(
    f"{name}_{side}"
    for side in ("a", "b")
    for name in ("start", "end", "start_byte", "end_byte", "line")
)
# A passage that two texts share, and the column of pairs that lists those of each.
PASSAGE = pa.struct(
    [*((name, pa.int64()) for name in (*_POSITIONS_IN_PAIR, "words")), ("similarity", pa.float64())]
)
PAIR_PASSAGES: Final = pa.field("passages", pa.list_(PASSAGE), nullable=False)


def passages(id_type: pa.DataType, *, has_files: bool = False) -> pa.Schema:
    """Return the schema of the places of passages: code points and bytes of the text, and where it stands first."""

    def of_files(prefix: str) -> list[tuple[str, pa.DataType]]:
        return [(f"{prefix}file", pa.string()), (f"{prefix}row", pa.int64())] if has_files else []

    numbers = ("start", "end", "start_byte", "end_byte", "line", "words")
    return pa.schema(
        [
            ("passage_id", pa.int64()),
            ("doc_id", id_type),
            *of_files(""),
            *((name, pa.int64()) for name in numbers),
            ("source_id", id_type),
            *of_files("source_"),
            ("source_start", pa.int64()),
        ]
    )


# One row per passage, most words times places first.
REPEATED = pa.schema(
    [
        *(("passage_id", pa.int64()), ("words", pa.int64())),
        *(("places", pa.int64()), ("documents", pa.int64()), ("text", pa.large_string())),
    ]
)


# One row per document: its words and sections (kernels/sections.py), and those of its sections that have enough words:
# their digests, numbers in the document, words and places.
SECTION_NUMBERS: Final = (
    *("number", "words", "start_byte", "end_byte", "before", "behind"),
    *("start", "end", "line"),
)
SECTIONS = pa.schema(
    [
        *(_ROW, ("num_words", pa.int64()), ("num_sections", pa.int64())),
        *((name, pa.large_list(pa.int64())) for name in ("low", "high")),
        *((name, pa.large_list(pa.int32())) for name in SECTION_NUMBERS),
    ]
)


def removed_parts(id_type: pa.DataType, *, has_files: bool = False) -> pa.Schema:
    """Return the schema of removed sections: code points and line, and the place that stays; null if none does."""

    def of_files(prefix: str) -> list[tuple[str, pa.DataType]]:
        return [(f"{prefix}file", pa.string()), (f"{prefix}row", pa.int64())] if has_files else []

    return pa.schema(
        [
            ("doc_id", id_type),
            *of_files(""),
            *((name, pa.int64()) for name in ("start", "end", "line", "words")),
            ("kept_id", id_type),
            *of_files("kept_"),
            ("kept_start", pa.int64()),
            ("similarity", pa.float64()),
        ]
    )


# One row per document: the number of its words.
WORD_COUNTS = pa.schema([_ROW, ("num_words", pa.int64())])
# A span of a document that covers an item of a benchmark: by number of words in both, from 0.
HITS = pa.schema(
    [
        _ROW,
        *((name, pa.int64()) for name in ("num_words", "item", "weight", "first", "last")),
        *((name, pa.int64()) for name in ("item_first", "item_last", "matched")),
    ]
)


# In how many documents a word of an item stands; the word as its hash, ascending as an unsigned number.
WORD_WEIGHTS = pa.schema([("word", pa.int64()), ("documents", pa.int64())])


def contaminated(id_type: pa.DataType, *, has_files: bool = False) -> pa.Schema:
    """Return the schema of the spans of documents that cover items: code points and bytes of the text."""
    files = [("file", pa.string()), ("row", pa.int64())] if has_files else []
    numbers = ("start", "end", "start_byte", "end_byte", "item_start", "item_end", "matched_words")
    return pa.schema(
        [
            ("doc_id", id_type),
            *files,
            ("benchmark", pa.string()),
            ("item_id", pa.string()),
            ("item_row", pa.int64()),
            ("score", pa.float64()),
            *((name, pa.int64()) for name in numbers),
        ]
    )


# One row per item of a benchmark; best_score is null unless it was found.
BENCH_ITEMS = pa.schema(
    [
        *(("benchmark", pa.string()), ("item_id", pa.string()), ("item_row", pa.int64())),
        *(("words", pa.int64()), ("status", pa.string()), ("documents", pa.int64())),
        ("best_score", pa.float64()),
    ]
)
BENCHMARKS = pa.schema(
    [
        ("benchmark", pa.string()),
        *((name, pa.int64()) for name in ("items", "found", "too_short", "documents")),
    ]
)


def left_over(id_type: pa.DataType, *, has_files: bool = False) -> pa.Schema:
    """Return the schema of documents that a cut has left with too few words: removed for no other document."""
    columns = [("doc_id", id_type), ("kept_id", id_type), ("similarity", pa.float64())]
    if has_files:
        columns += zip(("file", "row", "kept_file", "kept_row"), _PLACES, strict=True)
    return pa.schema(columns)


def partnered(verified: pa.Table) -> pa.RecordBatch:
    """Return the partners of VERIFIED as PARTNERED."""
    partners = one_array(verified.column("partners"))
    similarities = one_array(verified.column("partner_similarities")).flatten()
    rows = np.repeat(verified.column("row").to_numpy(), partners.value_lengths().to_numpy())
    return pa.record_batch([pa.array(rows), partners.flatten(), similarities], schema=PARTNERED)


def batch_of(columns: pa.Schema, *values: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return arrays as a batch with these columns."""
    return pa.record_batch([pa.array(column) for column in values], schema=columns)


def one_batch(batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Concatenate batches; a single batch is not copied."""
    if len(batches) == 1:
        return batches[0]
    whole = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """Concatenate the chunks of a column; a single chunk is not copied."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks:
        return pa.concat_arrays(column.chunks)
    return pa.array([], column.type)
