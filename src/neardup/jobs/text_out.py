"""`text_out`: write the text of every document as it was compared, after extraction from HTML and from records."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError
from neardup.io.documents.in_memory import InMemorySource
from neardup.io.documents.notes import Notes
from neardup.io.documents.row_names import RowNames
from neardup.io.records import ITEM_END
from neardup.io.storage.table_writer import TableWriter, reserved_table
from neardup.io.storage.work_folder import folder_of
from neardup.io.storage.workspace import Workspace, check_output, digest


def draft_name(config: Config) -> str:
    """Return the name of the file in the work folder that is published as `text_out`."""
    return f"texts{Path(config.text_out or '').suffix}"


def check_target(config: Config, out: Path) -> None:
    """Raise if `text_out` cannot be written: it is in the output, or exists and an earlier start has not written it."""
    if config.text_out is None:
        return
    target = os.path.realpath(config.text_out)
    if f"{target}{os.sep}".startswith(f"{os.path.realpath(out)}{os.sep}"):
        raise ConfigError(
            f"`text_out` {config.text_out} is in the output {out}",
            hint="write it beside the output",
        )
    if not Path(target).parent.is_dir():
        raise ConfigError(
            f"the folder of `text_out` {config.text_out} does not exist",
            hint="create it, or choose another path",
        )
    if not folder_of(out).exists():
        check_output(Path(config.text_out), overwrite=config.overwrite)


def write_texts(path: Path, names: RowNames, notes: Notes) -> None:
    """Write the texts of all documents of the input, from the notes of the first pass."""
    with TableWriter(path, schema.TEXTS) as writer:
        for batch in names.texts_of_input(notes):
            writer.write(_table(*batch))


def _table(ids: pa.Array, files: pa.Array | None, rows: Any, texts: pa.Array) -> pa.Table:
    """Return documents as schema.TEXTS; a set has one item per line."""
    if files is None:
        files = pa.nulls(len(ids), pa.string())
    lines = pc.replace_substring(texts, ITEM_END, "\n")
    return pa.table([ids.cast(pa.string()), files, pa.array(rows), lines], schema=schema.TEXTS)


def publish_texts(workspace: Workspace, config: Config) -> None:
    """Copy the texts to `text_out`, by one rename; done already if an earlier start was killed after it."""
    if config.text_out is None:
        return
    source = workspace.folder / draft_name(config)
    target = Path(config.text_out)
    if not target.is_symlink() and digest(target) == digest(source):
        return
    check_output(target, overwrite=config.overwrite)
    draft = target.with_name(f".{target.name}.neardup-draft")
    shutil.copyfile(source, draft, follow_symlinks=False)
    draft.replace(target)


def write_texts_in_memory(read: InMemorySource, config: Config) -> None:
    """Write the texts of documents in memory; a row is a position, from 0."""
    if config.text_out is None:
        return
    target = Path(config.text_out)
    with reserved_table(target, overwrite=config.overwrite) as write:
        write(pa.concat_tables(_in_memory(read)))


def _in_memory(read: InMemorySource) -> Iterator[pa.Table]:
    yield schema.TEXTS.empty_table()
    for batch in read.documents.select(["row", "text"]).to_batches():
        rows = batch.column("row")
        yield _table(read.ids.take(rows), None, rows.to_numpy(), batch.column("text"))
