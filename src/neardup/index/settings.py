"""The settings of an index: the fields of Config that apply, what is stored of documents, and their file format."""

from __future__ import annotations

import json
import reprlib
from numbers import Integral
from pathlib import Path
from typing import Any, Final, NamedTuple

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES, check_choice, check_type
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index.index_folder import FILE
from neardup.index.sketches import Layout, damaged, layout_of
from neardup.measures.registry import measure_of
from neardup.theory.plan import Plan, plan_for

STORES: Final = ("shingles", "text", "signature")
DURABILITIES: Final = ("full", "fast")
# How files are read; stored with the index, and can be overridden for every file.
READING: Final = (
    *(
        "text_column",
        "id_column",
        "items_column",
        "vector_column",
        "format",
        "encoding",
        "lines",
        "delimiter",
    ),
    *("max_document", "strict", "include", "exclude"),
)
# Settings of runs only: ignored shingles, which documents to keep, what to write, and where to run.
_OF_RUNS: Final = frozenset(
    {
        *(
            "keep",
            "cluster",
            "pairs",
            "collapse_empty",
            "group_column",
            "against",
            "only_against",
            "mark",
            "dry_run",
        ),
        *(
            "ignore",
            "ignore_common",
            "weights",
            "common_by",
            "text_out",
            "audit",
            "overwrite",
            "engine",
            "master",
            "spark_conf",
            "long",
            "per_cluster",
            "level",
        ),
    }
)
# Settings that never change an answer; not stored.
_NOT_STORED: Final = frozenset({*_OF_RUNS, "method", "threads", "memory", "include", "exclude"})


class IndexSettings(NamedTuple):
    """The settings of an index; store: what it stores of documents; containment: also postings of their shingles."""

    config: Config
    plan: Plan
    store: str
    containment: bool = False

    @property
    def layout(self) -> Layout:
        """The widths of its rows."""
        return layout_of(
            self.plan, self.config, store=self.store, has_set_postings=self.containment
        )

    def as_dict(self) -> dict[str, Any]:
        """Return what is stored."""
        values = self.config.as_dict()
        return {
            "settings": {name: value for name, value in values.items() if name not in _NOT_STORED},
            "store": self.store,
            "containment": self.containment,
            "plan": [self.plan.bands, self.plan.rows, self.plan.min_agreement],
            "signature_format": measure_of(self.config).signature_format(self.config),
        }


def new_settings(config: Config, store: str, *, containment: bool = False) -> IndexSettings:
    """Check the settings of a new index."""
    check_type("containment", containment, bool, "True or False")
    check_choice("store", store, STORES)
    for name in sorted(config.given & _OF_RUNS):
        if name == "group_column":
            hint = "store it in the payload, and filter queries with where="
        else:
            hint = f"leave `{name}` out"
        raise ConfigError(f"`{name}` does not apply to an index", hint=hint)
    if config.measure == "weighted" and config.items_column is None:
        config = Config.of(config, items_column="items")
    _check_together(config, store, containment=containment)
    config = Config.of(config, method="lsh")
    return IndexSettings(config, plan_for(config), store, containment)


def _check_together(config: Config, store: str, *, containment: bool) -> None:
    """Raise unless an index can have these settings together."""
    if config.asks_containment:
        raise ConfigError(
            "an index does not support the measure 'containment'",
            hint="create it with containment=True instead",
        )
    if containment and (config.measure != "jaccard" or store == "signature"):
        if config.measure != "jaccard":
            what = f"measure {config.measure!r}"
        else:
            what = "store 'signature'"
        raise ConfigError(
            f"containment=True needs stored sets, got {what}", hint="leave one of the two out"
        )
    if config.method == "exact" or config.recall == 1:
        raise ConfigError(
            "an index finds documents by banding, whose recall is below 1, got "
            + ("method 'exact'" if config.method == "exact" else "recall 1"),
            hint="pass recall=0.999, or use neardup.find_pairs",
        )
    if config.measure in VECTOR_MEASURES and config.dimension is None:
        raise ConfigError(
            "an index of vectors needs their `dimension`", hint="pass dimension=384, for example"
        )
    if store == "text" and (config.measure != "jaccard" or config.items_column is not None):
        raise ConfigError("store='text' needs texts", hint="leave `store` out")
    if store == "signature" and config.measure in ("hamming", "euclidean"):
        raise ConfigError(
            f"store='signature' cannot estimate the similarity by `measure` {config.measure!r}",
            hint="leave `store` out",
        )


def stored_settings(folder: Path, meta: dict[str, Any]) -> IndexSettings:
    """Return the settings that the index in a folder was created with."""
    try:
        config = Config.of(**meta["settings"], method="lsh").for_format(
            str(meta.get("signature_format"))
        )
        check_choice("store", meta["store"], STORES)
        _check_together(config, meta["store"], containment=meta["containment"] is True)
        settings = IndexSettings(
            config, plan_for(config), meta["store"], meta["containment"] is True
        )
    except (KeyError, TypeError, ConfigError) as error:
        reason = error.message if isinstance(error, ConfigError) else error
        raise damaged(f"the settings in {folder / FILE} cannot be used: {reason}") from error
    was = meta
    now = json.loads(json.dumps(settings.as_dict()))
    for name in ("signature_format", "plan"):
        if was.get(name) != now[name]:
            raise DataError(
                f"the index {folder} has the {name.replace('_', ' ')} {was.get(name)}, but this neardup has"
                f" {now[name]}",
                hint=f"use the neardup that wrote it, or build the index again: {rebuilding(settings, folder)}",
            )
    return settings


def check_current(settings: IndexSettings, folder: Path) -> None:
    """Raise if documents cannot be added, because this version computes other signatures than those of the index."""
    if not settings.config.separates_invisible:
        return
    current = settings.config.with_invisible(separates=False)
    measure = measure_of(current)
    raise DataError(
        f"the index {folder} has the signature format `{measure.signature_format(settings.config)}`, and this neardup"
        f" writes `{measure.signature_format(current)}`, so it can be read, but documents cannot be added",
        hint=f"build it again: {rebuilding(settings, folder)}",
    )


def rebuilding(settings: IndexSettings, folder: Path) -> str:
    """Return how an index is built again by this version."""
    create = "`neardup index create NEW` with its settings (`neardup index info` lists them)"
    if settings.store == "text":
        return (
            f"`neardup index export {folder} -o FILE.jsonl`, {create}, "
            "`neardup index insert NEW FILE.jsonl`"
        )
    return (
        f"{create}, then `neardup index insert NEW` with the documents, of which this one stores no texts;"
        f" `neardup index export {folder} -o FILE.jsonl` lists their ids and payloads"
    )


def check_same(stored: IndexSettings, given: dict[str, Any]) -> None:
    """Raise if an index is opened with different settings than it was created with."""
    asked = Config.of(stored.config, **given)
    for name in given:
        was = getattr(stored.config, name)
        now = getattr(asked, name)
        if was != now and name not in ("method", "threads", "memory"):
            raise ConfigError(
                f"the index was created with `{name}` {was!r}, but opened with {now!r}",
                hint="leave the setting out, or create another index",
            )


def check_alike(*indexes: tuple[IndexSettings, Path]) -> None:
    """Raise if two indexes compare documents in different ways."""
    (mine, own_path), (theirs, other_path) = (
        (settings.as_dict(), path) for settings, path in indexes
    )
    for name in ("signature_format", "plan", "store"):
        if mine[name] != theirs[name]:
            raise ConfigError(
                f"the index {own_path} has the {name.replace('_', ' ')} {mine[name]}, but {other_path} "
                f"has {theirs[name]}",
                hint="create both with the same settings",
            )


def for_reading(stored: Config, given: Config) -> Config:
    """Return the settings of an index with other settings for reading files; what is compared stays the same."""
    holds_items = stored.items_column is not None
    if "items_column" in given.given and (given.items_column is not None) != holds_items:
        if holds_items:
            message = "this index was created for items, so `items_column` cannot be None"
        else:
            message = (
                f"`items_column` {given.items_column!r} does not suit this index, "
                "which was created for texts"
            )
        raise ConfigError(message, hint="leave it out, or create another index with the setting")
    own = {name: getattr(given, name) for name in READING if name in given.given}
    return Config.of(stored, **own)


def check_durability(durability: Any, timeout: Any) -> None:
    """Raise for an unknown durability or timeout."""
    check_choice("durability", durability, DURABILITIES)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise ConfigError(f"`timeout` must be a number of seconds >= 0, got {timeout!r}")


def is_id(value: Any) -> bool:
    """Whether a value can be an id."""
    try:
        check_id(value)
    except NearDupError:
        return False
    return True


def check_id(doc_id: Any) -> str:
    """Return an id, or raise; a whole number becomes its digits, as ids of a source do."""
    if isinstance(doc_id, Integral) and not isinstance(doc_id, bool):
        return str(int(doc_id))
    if not isinstance(doc_id, str):
        raise ConfigError(
            f"`doc_id` must be a string or a whole number, got {reprlib.repr(doc_id)}",
            hint="the id comes first, then the document",
        )
    try:
        doc_id.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the id {doc_id!a} is not valid Unicode", hint="use another id") from error
    if "\0" in doc_id:
        raise DataError(f"the id {doc_id!r} contains a NUL character", hint="use another id")
    return str(doc_id)
