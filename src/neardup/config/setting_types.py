"""The settings as keyword arguments: their types, so that editors and type checkers know every name and value.

`Config` holds the same settings, with defaults and bounds; a test keeps the two in sync.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

Unit = Literal["word", "char", "code"]
Weights = Literal["idf"]
CodeNames = Literal["fold", "keep"]
Method = Literal["auto", "lsh", "exact"]
Measure = Literal["jaccard", "containment", "weighted", "hamming", "cosine", "euclidean"]
EngineName = Literal["local", "spark"]
Sketch = Literal["fast", "minhash"]
Cluster = Literal["leader", "components"]
HtmlContent = Literal["main", "all"]
Normalise = Literal["nfc", "nfkc"]
Level = Literal["paragraph", "line"]
Rule = Literal["coverage", "ngram13"]
FormatName = Literal["jsonl", "csv", "parquet", "arrow", "text", "lines", "json", "warc"]
Contained = Literal["query", "neighbour", "either"]
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class RunSettings(TypedDict, total=False):
    """Every setting but `engine`, which the functions that run take as an argument of their own."""

    threshold: float
    distance: float | None
    recall: float
    unit: Unit
    size: int
    language: str | None
    code_names: CodeNames
    num_perm: int | None
    bands: int | None
    rows: int | None
    seed: int | Literal["random"]
    method: Method
    measure: Measure
    dimension: int | None
    packed: bool
    sketch: Sketch
    signature_filter: bool
    keep: str
    cluster: Cluster
    per_cluster: int
    level: Level | None
    decisions: str | os.PathLike[str] | None
    pairs: bool
    passages: bool
    edits: bool
    min_words: int | None
    collapse_empty: bool
    multiset: bool
    weights: Weights | None
    fold_numbers: bool
    normalise: Normalise
    fold_accents: bool
    ignore: Paths
    ignore_common: float | str | None
    common_by: str | None
    html: bool
    html_content: HtmlContent
    text_column: str | Sequence[str] | None
    id_column: str | None
    items_column: str | None
    long: bool
    vector_column: str | None
    group_column: str | None
    format: FormatName | None
    encoding: str | None
    include: str | Sequence[str]
    exclude: str | Sequence[str]
    lines: bool
    delimiter: str | None
    max_document: int | str
    against: Any  # paths, or documents in memory
    only_against: bool
    one_to_one: bool
    against_text_column: str | Sequence[str] | None
    against_items_column: str | None
    against_id_column: str | None
    min_count: int
    min_left: int
    cut: bool
    item_column: str | Sequence[str] | None
    rule: Rule
    weights_from: str | os.PathLike[str] | None
    around: int
    remove: bool
    mark: bool
    dry_run: bool
    text_out: str | os.PathLike[str] | None
    audit: bool
    overwrite: bool
    strict: bool
    master: str | None
    spark_conf: str | Sequence[str]
    memory: int | str | None
    threads: int | None


class Settings(RunSettings, total=False):
    """Every setting."""

    engine: EngineName
