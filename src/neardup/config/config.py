"""Config: every setting with its default and its bounds; it computes nothing from them."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import secrets
from typing import Any, Final, Self, Unpack, cast, get_args

from neardup.config.checks import (
    SET_MEASURES,
    as_bytes,
    as_columns,
    as_encoding,
    as_float,
    as_globs,
    as_path,
    as_paths,
    as_share,
    as_spark_conf,
    asks_containment,
    check_bands,
    check_choice,
    check_delimiter,
    check_int,
    check_language,
    check_num_perm,
    check_real,
    check_text,
    check_type,
)
from neardup.config.conflicts import check_together
from neardup.config.distances import SCALES
from neardup.config.setting_types import (
    Cluster,
    CodeNames,
    EngineName,
    FormatName,
    HtmlContent,
    Level,
    Measure,
    Method,
    Normalise,
    Rule,
    Settings,
    Sketch,
    Unit,
    Weights,
)
from neardup.errors import ConfigError

CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "unit": get_args(Unit),
    "code_names": get_args(CodeNames),
    "method": get_args(Method),
    "measure": get_args(Measure),
    "engine": get_args(EngineName),
    "sketch": get_args(Sketch),
    "cluster": get_args(Cluster),
    "html_content": get_args(HtmlContent),
    "normalise": get_args(Normalise),
    "format": get_args(FormatName),
    "weights": get_args(Weights),
    "rule": get_args(Rule),
    "level": get_args(Level),
}
# None leaves the choice to the files, and compares documents as a whole.
_NONE_GOES: Final = ("format", "level", "weights")
KEEP_ORDERS: Final = ("first", "last", "longest")
KEEP_COLUMN_ORDERS: Final = ("max", "min")
KEEP_BY_PATH: Final = "path"
# Only of repeated passages.
KEEP_NOTHING: Final = "none"
# What `common_by` may be besides a column.
COMMON_GROUPS: Final = ("host", "file")
# Measures whose slots are single bits, and therefore need more of them.
_BIT_MEASURES: Final = ("hamming", "cosine")
_BY_MEASURE: Final[Any] = None
DEFAULT_THRESHOLD: Final = 0.8
NUM_NEIGHBOURS: Final = 10
DEFAULT_MIN_WORDS: Final = 50
MAX_COUNT: Final = 10**9
AUDIT_SAMPLE: Final = 1000
TUNE_SAMPLE: Final = 1000
REVIEW_SAMPLE: Final = 30
MAX_SIZE: Final = 64
MAX_PER_CLUSTER: Final = 10**9
MAX_MIN_WORDS: Final = 10**9
MAX_DIMENSION: Final = 2**24
MAX_SEED: Final = 2**64 - 1
RANDOM_SEED: Final = "random"
# Settings that only affect how the work is done, never the result, so they are not in the
# fingerprint.
_NOT_IN_FINGERPRINT: Final = frozenset(
    {"threads", "strict", "memory", "engine", "master", "spark_conf", "overwrite"}
)
# With less memory, the imports alone leave no room to work.
MIN_MEMORY: Final = 400 * 10**6
DEFAULT_MAX_DOCUMENT: Final = 256 * 10**6
# Signatures of texts before invisible characters were dropped (docs/decisions/0040); items are not folded.
_SEPARATING_FORMATS: Final = ("fast-2", "minhash-2")


class _BesidesSettings:
    """What comes with the settings but is none: not part of equality or of the fingerprint.

    given: which settings were given explicitly; separates_invisible: whether invisible characters separate words,
    as they did for an older version, whose runs and indexes are read with these settings.
    """

    __slots__ = ("given", "separates_invisible")
    given: frozenset[str]
    separates_invisible: bool

    def __new__(cls, **settings: Any) -> Self:
        """Record the names before the settings are checked."""
        made = super().__new__(cls)
        object.__setattr__(made, "given", frozenset(settings))
        object.__setattr__(made, "separates_invisible", False)
        return made


class DrawnSeed(int):
    """A seed drawn by "random"; a resumed run reuses the seed it was started with."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Config(_BesidesSettings):
    """Every setting of a run, checked.

    Attributes:
        threshold: two documents with a similarity >= threshold are a pair; in (0, 1].
        distance: the threshold as a distance instead: bits for hamming, 1 - similarity for cosine,
            jaccard and weighted, d for euclidean, whose similarity is 1 / (1 + d).
        recall: the probability of finding a pair at exactly `threshold`; in (0, 1], 1 selects
        method "exact".
        unit: the unit of a shingle: "word", "char", or "code", the tokens of source code.
        size: the number of consecutive units in a shingle.
        language: with unit="code", the language of all texts, by a name that Pygments knows; None goes
            by the ending of each file.
        code_names: with unit="code", whether names are all the same token, "fold", or "keep".
        num_perm: slots per signature; a power of two from 16 to 1024, with sketch="minhash" any
            number from 1 to 1024; None means 128, or 1024 for hamming and cosine.
        bands: bands per signature; None derives it from `threshold` and `recall`.
        rows: rows per band; None derives it from `threshold` and `recall`.
        seed: the key of every hash; another seed gives other signatures. "random" draws a secret
            seed, for hostile documents.
        method: how pairs are found: "lsh" uses bands of signatures, "exact" finds every pair,
        "auto" chooses.
        measure: what similarity means: "jaccard" of texts or items, "containment" (the share of the
            smaller contained in the larger), "weighted" Jaccard of items with weights, "hamming" of
            bits, "cosine" or "euclidean" of vectors.
        dimension: the dimension of the vectors, in numbers or bits; None takes it from the first
        one.
        packed: bits are packed into bytes, eight to a byte, most significant first.
        sketch: "fast" (Fast Similarity Sketching) or "minhash" (k permutations).
        signature_filter: skip the exact comparison if the signatures already rule a pair out.
        keep: which document of a cluster to keep: "first", "last", "longest", "max:COLUMN" or
            "min:COLUMN"; "path:GLOB,GLOB" prefers files by the first glob that matches their path; of a
            repeated passage, paragraph or line, which place to keep: "first" or "none".
        cluster: "leader" (removed documents are similar to the kept one) or "components"
        (transitive closure).
        per_cluster: the number of documents to keep per cluster: the kept one, and the next ones in
        keep order; with `level`, of equal paragraphs or lines, those that stand first.
        level: remove repeated paragraphs ("paragraph": what blank lines separate) or lines
            ("line") from the texts, instead of documents; None compares documents. The threshold is then
            1, equal words in equal order, unless one is given.
        decisions: a file with decisions about single documents, exported from the page of a run:
            `keep` documents are kept, `remove` documents are removed, whatever they are similar to.
        pairs: also store every found pair, not only the match of each removed document.
        passages: also list the passages that two texts share, for every pair or comparison;
            `find_pairs` without a threshold lists every pair that shares one.
        edits: find passages that were copied with edits: words changed, left out, added or moved.
        min_words: the least number of words of a passage; with `edits`, of those that agree; with
            `level`, of a paragraph or line. None means 8, and 18 with `edits`; of a repeated passage,
            50. With unit="code", the least number of tokens of a document that is compared.
        collapse_empty: treat documents without shingles as exact copies of each other.
        multiset: count repeated shingles instead of ignoring repetitions.
        weights: "idf" weighs shingles or items by how rare they are in the documents of the run and of
            `against`, and compares by weighted Jaccard similarity; None weighs all the same.
        fold_numbers: treat every number as the same token.
        normalise: the Unicode normalisation form: "nfc", or "nfkc", which also treats compatibility
            characters as equal, such as ligatures, full-width letters and superscripts.
        fold_accents: treat letters with and without accents as equal.
        ignore: files whose shingles are ignored, such as a template or a licence header.
        ignore_common: the share of documents from which on a shingle is ignored: shingles in more
            than this share of the documents of a group of at least 50 do not count, such as those
            of a template; in (0, 1), or text like "5%".
        common_by: what a group of `ignore_common` is: "host" of an address, "file", or a column;
            None means all documents.
        html: parse the texts as HTML and compare their content.
        html_content: which part of an HTML page is compared: "main", its main content, without
            navigation and other template text (a page without any is compared as a whole), or
            "all", all visible text.
        text_column: the column with the text, or several, joined by a newline; None takes text,
        content or body.
        id_column: the column with the id; None takes id or url, in memory also doc_id, else the
        position.
        items_column: the column with a list of items (or items separated by white space) to compare
        instead of a text.
        long: rows of `items_column` have one item each; those with the same id are one set.
        vector_column: the column with the vectors; None takes vector or embedding.
        group_column: compare only documents with the same value in this column.
        format: the format of all files, regardless of extension: "jsonl", "csv", "parquet",
            "arrow", "text" (a file is a document), "lines" (a line is), "json" (an array of
            objects) or "warc"; None goes by the extension.
        encoding: the encoding of text files, JSON and CSV, by a name that Python knows; None means
            UTF-8, "auto" detects that of every file.
        include: globs: of folders and globs, read only files whose path below them matches one.
        exclude: globs: leave out files whose path matches one, whatever `include` says.
        lines: treat every line of a plain text file as a document, not the whole file.
        delimiter: the column separator of CSV files; None means a comma, or a tab for .tsv.
        max_document: bytes (or text like "1GB"); a longer line, CSV record, value or text file is a
        rejected row.
        against: files, finished runs (a folder, a folder of them, a glob) or an index, whose
        documents are always kept.
        only_against: compare the input with `against` only, not with itself.
        one_to_one: of pairs, list only those of an input document and a document of `against` that are
            each other's most similar partner.
        against_text_column: the column with the text of the documents of `against`, or several; None
            takes that of the input.
        against_items_column: the column with their items; None takes that of the input.
        against_id_column: the column with their ids; None takes that of the input.
        min_count: cut or mark only words in a window of `min_words` words that stands in at least
        this many places; with `level`, remove only paragraphs or lines that do.
        min_left: with cut=True or `level`, remove a document of which fewer words are left.
        cut: write the rows of the input without the repeated passages in their text.
        item_column: the column of the items of benchmarks in `against`; several are joined in order.
        rule: when a document contains an item of a benchmark: "coverage" (a span has `threshold` of its
            words, in order, with gaps) or "ngram13" (13 consecutive words in common).
        weights_from: a finished run, whose counts of words weigh the words of items, so that shards agree.
        around: with cut=True, so many words beside each item are cut as well.
        remove: write the rows of the input without the documents that contain items of benchmarks.
        mark: write every row, with columns that say whether it is kept, instead of the kept rows.
        dry_run: write the removed documents and the report, but no kept rows.
        text_out: a file (.parquet or .jsonl) for the text of every document as it is compared, such
            as the text extracted from HTML: doc_id, file, row, text.
        audit: measure the recall on a sample of the documents after the run.
        overwrite: replace an existing output.
        strict: raise at the first row that cannot be used, instead of listing it as rejected.
        engine: where to run: "local" (this machine) or "spark" (a cluster; see docs/spark.md).
        master: the address of the Spark cluster, such as "yarn"; None takes the one of spark-submit
        or the session.
        spark_conf: settings of Spark, each as "name=value".
        memory: the memory target of a run on files, in bytes or as text like "4GB"; None means half
        of the free memory.
        threads: the number of threads; None means one per available core. Never changes the result.
    """

    threshold: float = DEFAULT_THRESHOLD
    distance: float | None = None
    recall: float = 0.99
    unit: Unit = "word"
    size: int = 5
    language: str | None = None
    code_names: CodeNames = "fold"
    num_perm: int = _BY_MEASURE
    bands: int | None = None
    rows: int | None = None
    seed: int = 1
    method: Method = "auto"
    measure: Measure = "jaccard"
    dimension: int | None = None
    packed: bool = False
    sketch: Sketch = "fast"
    signature_filter: bool = True
    keep: str = "first"
    cluster: Cluster = "leader"
    per_cluster: int = 1
    level: Level | None = None
    decisions: str | None = None
    pairs: bool = False
    passages: bool = False
    edits: bool = False
    min_words: int | None = None
    collapse_empty: bool = False
    multiset: bool = False
    weights: Weights | None = None
    fold_numbers: bool = False
    normalise: Normalise = "nfc"
    fold_accents: bool = False
    ignore: tuple[str, ...] = ()
    ignore_common: float | None = None
    common_by: str | None = None
    html: bool = False
    html_content: HtmlContent = "main"
    text_column: str | tuple[str, ...] | None = None
    id_column: str | None = None
    items_column: str | None = None
    long: bool = False
    vector_column: str | None = None
    group_column: str | None = None
    format: FormatName | None = None
    encoding: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    lines: bool = False
    delimiter: str | None = None
    max_document: int = DEFAULT_MAX_DOCUMENT
    against: tuple[str, ...] = ()
    only_against: bool = False
    one_to_one: bool = False
    against_text_column: str | tuple[str, ...] | None = None
    against_items_column: str | None = None
    against_id_column: str | None = None
    min_count: int = 2
    min_left: int = 1
    cut: bool = False
    item_column: str | tuple[str, ...] | None = None
    rule: Rule = "coverage"
    weights_from: str | None = None
    around: int = 0
    remove: bool = False
    mark: bool = False
    dry_run: bool = False
    text_out: str | None = None
    audit: bool = False
    overwrite: bool = False
    strict: bool = False
    engine: EngineName = "local"
    master: str | None = None
    spark_conf: tuple[str, ...] = ()
    memory: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if getattr(value, "shape", None) == ():  # NumPy scalars are accepted as numbers
                self._set(field.name, value.item())
            if isinstance(field.default, bool):
                check_type(field.name, getattr(self, field.name), bool, "True or False")
        for name, choices in CHOICES.items():
            if name not in _NONE_GOES or getattr(self, name) is not None:
                check_choice(name, getattr(self, name), choices)
        self._check_numbers()
        _check_keep(self.keep)
        self._check_columns()
        for name in ("decisions", "weights_from", "text_out"):
            self._set(name, as_path(name, getattr(self, name)))
        check_language(self.language)
        if self.master is not None:
            check_type("master", self.master, str, "the address of a Spark cluster, or None")
            check_text("master", self.master)
        self._set("spark_conf", as_spark_conf(self.spark_conf))
        for name in ("against", "ignore"):
            self._set(name, as_paths(name, getattr(self, name)))
        for name in ("include", "exclude"):
            self._set(name, as_globs(name, getattr(self, name)))
        check_delimiter(self.delimiter)
        self._set("encoding", as_encoding(self.encoding))
        check_together(self)

    def _check_columns(self) -> None:
        for name in ("text_column", "item_column", "against_text_column"):
            self._set(name, as_columns(name, getattr(self, name)))
        for name in (
            *("id_column", "items_column", "vector_column", "group_column", "common_by"),
            *("against_items_column", "against_id_column"),
        ):
            if getattr(self, name) is not None:
                check_type(name, getattr(self, name), str, "the name of a column, or None")
                check_text(name, getattr(self, name))

    def _check_numbers(self) -> None:
        if self.num_perm is None:
            self._set("num_perm", default_num_perm(self.measure))
        if self.dimension is not None:
            check_int("dimension", self.dimension, 1, MAX_DIMENSION)
        if self.distance is not None:
            self._set("threshold", _threshold_at(self))
        check_real("threshold", self.threshold, "in (0, 1]", 0 < as_float(self.threshold) <= 1)
        check_real("recall", self.recall, "in (0, 1]", 0 < as_float(self.recall) <= 1)
        check_int("size", self.size, 1, MAX_SIZE)
        check_int("per_cluster", self.per_cluster, 1, MAX_PER_CLUSTER)
        if self.min_words is not None:
            check_int("min_words", self.min_words, 1, MAX_MIN_WORDS)
        check_int("min_count", self.min_count, 2, MAX_COUNT)
        check_int("min_left", self.min_left, 1, MAX_COUNT)
        check_int("around", self.around, 0, MAX_COUNT)
        check_num_perm(self.num_perm, self.measure, self.sketch)
        check_bands(self.bands, self.rows, self.num_perm)
        self._set("ignore_common", as_share("ignore_common", self.ignore_common))
        self._set("seed", _drawn(self.seed))
        check_int("seed", self.seed, 0, MAX_SEED)
        self._set("max_document", _max_document_bytes(self.max_document))
        self._set("memory", _memory_bytes(self.memory))
        if self.threads is not None:
            check_int("threads", self.threads, 1, 1024)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, base: Config | None = None, /, **settings: Unpack[Settings]) -> Self:
        """Build a Config from `base` (or the defaults) and settings by name; an unknown name raises.

        >>> Config.of(threshold=0.9).threshold
        0.9
        """
        if base is not None and not isinstance(base, Config):
            raise ConfigError(
                f"`config` must be a neardup.Config, got {type(base).__name__}",
                hint="build one with neardup.Config(threshold=0.8), or pass the settings by name",
            )
        names = [field.name for field in dataclasses.fields(cls)]
        given = cast("dict[str, Any]", settings)
        for name in given:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                if near:
                    hint = f"did you mean `{near[0]}`?"
                else:
                    hint = f"the settings are {', '.join(names)}"
                raise ConfigError(f"unknown setting `{name}`", hint=hint)
        if base is None:
            values = {}
        else:
            values = {name: getattr(base, name) for name in names}
        made = cls(**(values | _free(values, given) | given))
        if (
            given.get("distance") is not None
            and given.get("threshold", made.threshold) != made.threshold
        ):
            raise ConfigError(
                f"`threshold` {given['threshold']!r} and `distance` {given['distance']!r} disagree",
                hint="leave one of them out",
            )
        before = frozenset() if base is None else base.given
        object.__setattr__(made, "given", before | frozenset(given))
        if base is not None:
            object.__setattr__(made, "separates_invisible", base.separates_invisible)
        return made

    def for_format(self, signature_format: str) -> Self:
        """Return the settings for reading what was written with signatures of this format, also by an older version."""
        is_older = signature_format.partition(" ")[0] in _SEPARATING_FORMATS
        has_texts = self.measure in SET_MEASURES and self.items_column is None
        return self.with_invisible(separates=is_older and has_texts)

    def with_invisible(self, *, separates: bool) -> Self:
        """Return these settings with invisible characters that separate words, or are dropped."""
        made = self.of(self)
        object.__setattr__(made, "separates_invisible", separates)
        return made

    def as_dict(self) -> dict[str, Any]:
        """Return every setting by name."""
        values = dataclasses.asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def fingerprint(self) -> str:
        """Return a digest of the settings that can change a result."""
        return hashlib.sha256(
            json.dumps(self.result_settings(), sort_keys=True).encode()
        ).hexdigest()[:16]

    def result_settings(self) -> dict[str, Any]:
        """Return the settings that can change a result."""
        values = {
            name: value for name, value in self.as_dict().items() if name not in _NOT_IN_FINGERPRINT
        }
        return values | {"threshold": float(self.threshold), "recall": float(self.recall)}

    @property
    def is_threshold_given(self) -> bool:
        """Whether the threshold was given explicitly, as a similarity or as a distance."""
        return not self.given.isdisjoint(("threshold", "distance"))

    @property
    def asks_containment(self) -> bool:
        """Whether to find which documents contain which, and not which are similar."""
        return asks_containment(self.measure)

    @property
    def asks_exact(self) -> bool:
        """Whether the settings ask for every pair, so that there are no bands."""
        return self.method == "exact" or self.recall == 1 or self.asks_containment

    @property
    def asks_code(self) -> bool:
        """Whether the tokens of source code are compared."""
        return self.unit == "code"

    @property
    def goes_by_endings(self) -> bool:
        """Whether every file is source code in the language of its ending."""
        return self.asks_code and self.language is None and self.format is None

    @property
    def ignores_shingles(self) -> bool:
        """Whether some shingles do not count."""
        return bool(self.ignore) or self.ignore_common is not None

    @property
    def common_column(self) -> str | None:
        """The column that `common_by` names."""
        return None if self.common_by in COMMON_GROUPS else self.common_by

    @property
    def keep_column(self) -> str | None:
        """The column named by keep="max:COLUMN" or keep="min:COLUMN"."""
        order, _, column = self.keep.partition(":")
        return column if order in KEEP_COLUMN_ORDERS else None

    @property
    def keep_globs(self) -> tuple[str, ...]:
        """The globs of keep="path:GLOB,GLOB", empty for another order."""
        order, _, globs = self.keep.partition(":")
        return tuple(globs.split(",")) if order == KEEP_BY_PATH else ()


def default_num_perm(measure: str) -> int:
    """Return the default number of slots of a signature."""
    return 1024 if measure in _BIT_MEASURES else 128


def _drawn(seed: Any) -> Any:
    """Draw a secret seed if the setting is "random"."""
    if isinstance(seed, str) and seed == RANDOM_SEED:
        return DrawnSeed(secrets.randbits(64))
    return seed


def _free(values: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of the base that the new ones reset: the default num_perm of another measure, threshold or distance."""
    freed: dict[str, Any] = {}
    if (
        values
        and "measure" in settings
        and values["num_perm"] == default_num_perm(values["measure"])
    ):
        freed["num_perm"] = None
    if "threshold" in settings:
        freed["distance"] = None
    elif values.get("distance") is not None or "distance" in settings:
        freed["threshold"] = DEFAULT_THRESHOLD
    return freed


def _threshold_at(config: Config) -> float:
    """The similarity at a distance; the default if it is in bits and the dimension is not known yet."""
    scale = SCALES[config.measure]
    dimension = config.dimension or MAX_DIMENSION
    check_real(
        "distance",
        config.distance,
        scale.bounds,
        scale.is_within(as_float(config.distance), dimension),
    )
    is_known = config.measure != "hamming" or config.dimension is not None
    if is_known:
        threshold = scale.similarity(as_float(config.distance), dimension)
    else:
        threshold = DEFAULT_THRESHOLD
    if config.threshold not in (DEFAULT_THRESHOLD, threshold):
        raise ConfigError(
            f"`threshold` {config.threshold!r} and `distance` {config.distance!r} disagree",
            hint="leave one of them out",
        )
    return threshold


def _max_document_bytes(value: Any) -> int:
    size = as_bytes("max_document", value)
    if size < 1:
        raise ConfigError(
            f"`max_document` must be at least 1 byte, got {value!r}", hint="the default is '256MB'"
        )
    return size


def _memory_bytes(value: Any) -> int | None:
    if value is None:
        return None
    size = as_bytes("memory", value)
    if size < MIN_MEMORY:
        raise ConfigError(
            f"`memory` must be at least {MIN_MEMORY // 10**6} MB, got {value!r}",
            hint="the libraries alone take about 250 MB",
        )
    return size


def _check_keep(keep: Any) -> None:
    if isinstance(keep, str):
        check_text("keep", keep)
    order, colon, column = keep.partition(":") if isinstance(keep, str) else ("", "", "")
    is_order = order in (*KEEP_ORDERS, KEEP_NOTHING) and not colon
    if is_order or (order in KEEP_COLUMN_ORDERS and column):
        return
    if order == KEEP_BY_PATH and all(glob.strip("/") for glob in column.split(",")):
        return
    near = difflib.get_close_matches(order, KEEP_ORDERS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else None
    if order in KEEP_COLUMN_ORDERS:
        hint = f"name the column: keep='{order}:score'"
    if order == KEEP_BY_PATH:
        hint = "name globs, separated by commas: keep='path:curated/**,*.md'"
    raise ConfigError(
        f"`keep` must be 'first', 'last', 'longest', 'max:COLUMN', 'min:COLUMN' or 'path:GLOB,GLOB', got {keep!r}",
        hint=hint,
    )
