"""The columns of a row other than its text and id, to compare two documents."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from neardup.errors import DataError
from neardup.io.documents.column_choice import choose_columns
from neardup.io.finished import finished_run
from neardup.io.formats import registry as formats
from neardup.web.run_view import RunView

# The other columns of a file are read as a whole, 0.2 s for a file of this size, so larger files
# are skipped.
_MAX_BYTES: Final = 64 << 20
# The approximate expansion of compressed text.
_GROWTH: Final = 8
# Tables are held until they are this large in total.
_MAX_CACHED: Final = 64 << 20
_MAX_COLUMNS: Final = 20
_MAX_CHARACTERS: Final = 200


class OtherColumns:
    """The other columns of the documents of a run; a file is read when one of its rows is requested."""

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._tables: dict[int, pa.Table | None] = {}
        self._files = {name: at for at, name in enumerate(run.files)}

    @property
    def note(self) -> str | None:
        """What the page says if the columns of some files are not shown."""
        if not any(
            entry["size"] > _MAX_BYTES for entry in self._run.report.inputs if "size" in entry
        ):
            return None
        return f"Other columns are shown for files of up to {_MAX_BYTES >> 20} MB only."

    def of(self, key: int) -> dict[str, str] | None:
        """Return the other columns of a document as texts; None for a file that has none or is large."""
        location = self._run.location(key)
        at = None if location.file is None else self._files[location.file]
        if at is None or at >= len(self._run.report.inputs):
            return None
        table = self._table(at)
        if table is None or location.row > table.num_rows:
            return None
        row: dict[str, Any] = table.slice(location.row - 1, 1).to_pylist()[0]
        return {name: _cut(str(value)) for name, value in row.items() if value is not None}

    def _table(self, at: int) -> pa.Table | None:
        if at not in self._tables:
            table = self._read(at)
            cached = sum(own.nbytes for own in self._tables.values() if own is not None)
            if cached + (0 if table is None else table.nbytes) > _MAX_CACHED:
                self._tables.clear()
            self._tables[at] = table
        return self._tables[at]

    def _read(self, at: int) -> pa.Table | None:
        entry = self._run.report.inputs[at]
        config = finished_run.settings_for(entry, self._run.report.config)
        try:
            file = finished_run.find_again(entry, config)
            if file.size * (_GROWTH if file.compression else 1) > _MAX_BYTES:
                return None
            form = formats.load(file.format)
            columns = choose_columns(file, form.column_names(file, config), config)
            shown = {
                name for name in (*columns.text, columns.id, columns.items, columns.vector) if name
            }
            table = form.table(file, config, without=shown)
        except DataError:
            return None
        if table is None:
            names = []
        else:
            names = [name for name in table.column_names if name][:_MAX_COLUMNS]
        return table.select(names) if table is not None and names else None


def _cut(value: str) -> str:
    """Return a value, visibly truncated if it is long."""
    if len(value) <= _MAX_CHARACTERS:
        return value
    return f"{value[:_MAX_CHARACTERS]}… ({len(value):,} characters)"
