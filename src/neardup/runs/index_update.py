"""Insert the kept documents of a run into the index of --against: one commit, made once, after publishing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.index.index import Index
from neardup.index.input_batches import batches_of
from neardup.io.storage.workspace import REPORT, digest
from neardup.runs.indexed import indexes_of
from neardup.runs.start import RunSetup


def index_update(config: Config, out: str) -> Callable[[], None]:
    """Return a function that inserts the kept documents of a published run into the index of --against."""
    found = indexes_of(config)
    if not found:
        raise ConfigError(
            "--update needs an index in --against", hint="neardup index create pages.index, then --against pages.index"
        )
    for name in ("mark", "dry_run", "items_column"):
        if getattr(config, name):
            raise ConfigError(f"`{name}` and --update cannot be combined", hint=f"leave `{name}` out")
    if config.measure != "jaccard":
        raise ConfigError(f"--update inserts texts, got `measure` {config.measure!r}", hint="insert the kept files")
    return partial(_insert, found[0], Path(out))


def _insert(index_path: str, out: Path) -> None:
    # The report of a run is unique, so its digest identifies the run.
    tag = f"{out.resolve()} {digest(out / REPORT)}"
    with Index.open(index_path) as index:
        # A row whose payload is not one would be rejected, and its copies would then be kept by the next run.
        index.insert_many(out, payload="", expires="", tag=tag)


def check_new_ids(setup: RunSetup) -> None:
    """Raise if the index already has an id of the input, or if an id of the input is not unique."""
    seen: set[str] = set()
    with Index.open(indexes_of(setup.config)[0], read_only=True) as index:
        for batch in batches_of([Path(file.path) for file in setup.own], setup.config, named=True):
            known = index.known_ids(batch.ids)
            if known:
                raise DataError(
                    f"the index {index.path} already has the id {known[0]!r} of the input",
                    hint="leave out --update, or give new documents new ids",
                )
            for doc_id in batch.ids:
                if doc_id in seen:
                    raise DataError(
                        f"two documents of the input have the id {doc_id!r}", hint="--update needs an id for each"
                    )
                seen.add(doc_id)
