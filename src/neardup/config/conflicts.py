"""Checks of combinations of settings: each takes a Config, and raises an error that says what to leave out."""

from __future__ import annotations

from typing import Any

from neardup.config.checks import SET_MEASURES, VECTOR_MEASURES
from neardup.errors import ConfigError


def check_together(config: Any) -> None:
    """Raise if two settings contradict each other."""
    _check_method(config)
    _check_measure(config)
    _check_against(config)
    if config.items_column is not None:
        for name in ("text_column", "html", "fold_numbers", "fold_accents"):
            if getattr(config, name):
                raise ConfigError(
                    f"`items_column` and `{name}` cannot be combined: items are compared as they are",
                    hint=f"leave `{name}` out",
                )
    if config.lines and config.format not in (None, "lines"):
        raise ConfigError(
            f"`lines` and `format` {config.format!r} cannot be combined: with `lines` a line of text is a document",
            hint="leave one of them out; `format` 'lines' is the same as `lines` for files with any extension",
        )
    _check_code(config)
    _check_weights(config)
    _check_passages(config)
    _check_long(config)
    if config.keep_globs and config.engine == "spark":
        raise ConfigError(
            f"`keep` {config.keep!r} is not supported on Spark",
            hint="name the preferred files first, or use engine='local'",
        )
    if config.decisions is not None and config.measure != "jaccard":
        raise ConfigError(
            f"`decisions` needs the measure 'jaccard', got {config.measure!r}",
            hint="leave `decisions` out",
        )
    if config.mark and config.cut:
        raise ConfigError(
            "`mark` and `cut` cannot be combined: one writes all words, the other leaves some out",
            hint="leave one out",
        )
    _check_text_out(config)
    if config.mark and config.dry_run:
        raise ConfigError(
            "`mark` and `dry_run` cannot be combined: a dry run writes no rows",
            hint="leave one out",
        )


def _check_long(config: Any) -> None:
    if not config.long:
        return
    if config.items_column is None or config.measure not in SET_MEASURES:
        raise ConfigError(
            "`long` needs `items_column`, the column with one item a row, and a measure of sets",
            hint="items_column='item', for example",
        )
    for name, value in (("against", config.against), ("engine", config.engine == "spark")):
        if value:
            raise ConfigError(
                f"`long` and `{name}` cannot be combined: sets are grouped on this machine, in one input",
                hint=f"leave `{name}` out, or store each set in a row",
            )


def _check_text_out(config: Any) -> None:
    if config.text_out is None:
        return
    if not config.text_out.lower().endswith((".parquet", ".jsonl")):
        raise ConfigError(
            f"`text_out` must end in .parquet or .jsonl, got {config.text_out!r}",
            hint="the extension determines the format",
        )
    if config.measure not in SET_MEASURES:
        raise ConfigError(
            f"`text_out` needs a measure of texts or items without weights, got {config.measure!r}",
            hint="leave `text_out` out",
        )
    if config.engine == "spark":
        raise ConfigError(
            "`text_out` is not supported on Spark", hint="leave it out, or use engine='local'"
        )


def _check_measure(config: Any) -> None:
    """Settings that apply only to some measures."""
    is_vector = config.measure in VECTOR_MEASURES
    for name in (
        "text_column",
        "items_column",
        "html",
        "fold_numbers",
        "fold_accents",
        "multiset",
        "lines",
    ):
        if is_vector and getattr(config, name):
            raise ConfigError(
                f"`{name}` does not apply to vectors, which `measure` {config.measure!r} compares",
                hint=f"leave `{name}` out, or use the measure 'jaccard'",
            )
    for name in ("vector_column", "dimension"):
        if not is_vector and getattr(config, name) is not None:
            raise ConfigError(
                f"`{name}` needs a vector measure, got {config.measure!r}",
                hint="use 'hamming', 'cosine' or 'euclidean'",
            )
    if config.packed and config.measure != "hamming":
        raise ConfigError(
            f"`packed` needs the measure 'hamming', got {config.measure!r}",
            hint="leave `packed` out",
        )
    if config.asks_containment and config.collapse_empty:
        raise ConfigError(
            "`collapse_empty` and the measure 'containment' cannot be combined: no document contains an empty one",
            hint="leave `collapse_empty` out",
        )
    if config.audit and config.measure != "jaccard":
        raise ConfigError(
            f"`audit` needs the measure 'jaccard', got {config.measure!r}", hint="leave `audit` out"
        )
    if config.ignore and config.measure not in SET_MEASURES:
        raise ConfigError(
            f"`ignore` needs a measure of shingles or items without weights, got {config.measure!r}",
            hint="leave `ignore` out, or use the measure 'jaccard'",
        )
    _check_common(config)
    if config.measure == "weighted" and config.multiset:
        raise ConfigError(
            "`multiset` and the measure 'weighted' cannot be combined", hint="leave `multiset` out"
        )


def _check_common(config: Any) -> None:
    """`ignore_common` counts shingles in a pass of its own, which only runs on this machine make."""
    if config.ignore_common is None:
        if config.common_by is not None:
            raise ConfigError(
                f"`common_by` {config.common_by!r} needs `ignore_common`",
                hint="pass ignore_common=0.05 to ignore what is in more than 5 % of a group",
            )
        return
    if config.measure not in SET_MEASURES:
        raise ConfigError(
            f"`ignore_common` needs a measure of shingles or items without weights, got {config.measure!r}",
            hint="leave `ignore_common` out, or use the measure 'jaccard'",
        )
    if config.engine == "spark":
        raise ConfigError(
            "`ignore_common` is not supported on Spark",
            hint="leave it out, name the template in `ignore`, or use engine='local'",
        )


def _check_method(config: Any) -> None:
    if config.asks_containment and config.method == "lsh":
        raise ConfigError(
            "banding cannot find containment, got method 'lsh' with the measure 'containment'",
            hint="leave `method` out: containment is always found exactly",
        )
    if config.method == "lsh" and config.recall == 1:
        raise ConfigError(
            "`recall` must be below 1 with method 'lsh', got 1: banding finds a pair with a probability below 1",
            hint="pass method='exact', which finds every pair, or recall=0.999",
        )
    if config.asks_exact:
        for name in ("bands", "rows"):
            if getattr(config, name) is not None:
                if config.method == "exact":
                    asked = "method 'exact'"
                else:
                    asked = "recall 1"
                if config.asks_containment:
                    asked = "the measure 'containment'"
                else:
                    asked = asked
                raise ConfigError(
                    f"`{name}` and {asked} cannot be combined: the exact join has no bands",
                    hint=f"leave `{name}` out, or pass method='lsh' and a recall below 1",
                )


def _check_against(config: Any) -> None:
    if config.asks_containment and config.per_cluster > 1:
        raise ConfigError(
            f"`per_cluster` {config.per_cluster} and the measure 'containment' cannot be combined",
            hint="leave `per_cluster` out",
        )
    if config.only_against and not config.against:
        raise ConfigError(
            "`only_against` needs `against`: there is nothing to compare the input with",
            hint="name the documents to compare with: against='benchmark.jsonl'",
        )
    if config.one_to_one and not config.against:
        raise ConfigError(
            "`one_to_one` needs `against`: it links the input to other documents",
            hint="name these documents: against='catalogue.jsonl'",
        )
    if config.one_to_one and config.audit:
        raise ConfigError(
            "`one_to_one` and `audit` cannot be combined: the list does not have all pairs that were found",
            hint="leave `one_to_one` out to measure the recall",
        )
    for name in ("against_text_column", "against_items_column", "against_id_column"):
        if getattr(config, name) is not None and not config.against:
            raise ConfigError(
                f"`{name}` needs `against`: it names a column of its documents",
                hint=f"leave `{name}` out, or name the documents: against='benchmark.jsonl'",
            )
    has_items = config.items_column is not None
    if config.against_items_column is not None and not has_items:
        raise ConfigError(
            "`against_items_column` needs `items_column`: the input is compared by its text",
            hint="name the column of the input in `items_column`, or leave `against_items_column` out",
        )
    if config.against_text_column is not None and (has_items or config.measure in VECTOR_MEASURES):
        raise ConfigError(
            "`against_text_column` needs an input that is compared by its text",
            hint="leave `against_text_column` out; `against_items_column` names a column of items",
        )
    if config.only_against and config.cluster == "components":
        raise ConfigError(
            "`only_against` and cluster 'components' cannot be combined: no chains are built",
            hint="leave `cluster` out",
        )


def _check_weights(config: Any) -> None:
    """What does not apply to shingles that are weighed by how rare they are."""
    if config.weights is None:
        return
    if config.measure != "jaccard":
        raise ConfigError(
            f"`weights` {config.weights!r} needs the measure 'jaccard', got {config.measure!r}",
            hint="leave `measure` out, or leave `weights` out",
        )
    for name in ("multiset", "ignore", "ignore_common", "decisions", "audit", "collapse_empty"):
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` and `weights` {config.weights!r} cannot be combined",
                hint=f"leave `{name}` out",
            )
    if config.asks_code:
        raise ConfigError(
            f"`unit` 'code' and `weights` {config.weights!r} cannot be combined",
            hint="leave `weights` out",
        )
    if config.sketch != "fast":
        raise ConfigError(
            f"`sketch` {config.sketch!r} and `weights` {config.weights!r} cannot be combined: weighted shingles have "
            "signatures of their own",
            hint="leave `sketch` out",
        )
    if config.engine == "spark":
        raise ConfigError(
            f"`weights` {config.weights!r} is not supported on Spark",
            hint="leave it out, or use engine='local'",
        )


def _check_code(config: Any) -> None:
    """Settings of source code, and what does not apply to it."""
    if not config.asks_code:
        for name, value in (("language", config.language), ("code_names", config.code_names)):
            if value not in (None, "fold"):
                raise ConfigError(
                    f"`{name}` {value!r} needs `unit` 'code', got {config.unit!r}",
                    hint=f"pass unit='code', or leave `{name}` out",
                )
        return
    for name in ("items_column", "html", "fold_numbers", "fold_accents", "lines", "passages"):
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` and `unit` 'code' cannot be combined: the tokens of code are compared",
                hint=f"leave `{name}` out",
            )
    if config.measure not in SET_MEASURES:
        raise ConfigError(
            f"`unit` 'code' needs a measure of texts, got {config.measure!r}",
            hint="use the measure 'jaccard' or 'containment'",
        )
    if config.format in ("lines", "warc"):
        raise ConfigError(
            f"`format` {config.format!r} and `unit` 'code' cannot be combined: a document is a whole file",
            hint="leave `format` out",
        )


def _check_passages(config: Any) -> None:
    if config.edits and not config.passages:
        raise ConfigError(
            "`edits` needs `passages`: it says which passages are listed",
            hint="pass passages=True, or leave `edits` out",
        )
    if config.passages and config.items_column is not None:
        raise ConfigError(
            "`passages` and `items_column` cannot be combined: items have no order",
            hint="leave `passages` out",
        )
    if config.passages and config.measure not in SET_MEASURES:
        raise ConfigError(
            f"`passages` needs texts, got `measure` {config.measure!r}",
            hint="leave `passages` out, or use the measure 'jaccard'",
        )
    if config.passages and config.engine == "spark":
        raise ConfigError(
            "`passages` and `engine` 'spark' cannot be combined: the texts of pairs stay on the workers",
            hint="find the pairs on Spark, then compare the texts of a pair with neardup.passages",
        )
