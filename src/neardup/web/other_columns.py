"""The columns of a row beside its text and its id, for two documents side by side."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from neardup.errors import DataError
from neardup.io import finished
from neardup.io.formats import registry as formats
from neardup.io.sources.column_choice import choose_columns
from neardup.web.run_view import RunView

# A table is read as a whole, so larger files are left alone.
_MOST_BYTES: Final = 16 << 20
_MOST_COLUMNS: Final = 20
_MOST_CHARACTERS: Final = 200


class OtherColumns:
    """The other columns of the documents of a run; a file is read when one of its rows is asked for."""

    def __init__(self, run: RunView) -> None:
        self._run = run
        self._tables: dict[int, pa.Table | None] = {}
        self._files = {name: at for at, name in enumerate(run.files)}

    def of(self, key: int) -> dict[str, str] | None:
        """Return the other columns of a document as texts; None for a file that has none or is large."""
        place = self._run.place(key)
        at = None if place.file is None else self._files[place.file]
        if at is None or at >= len(self._run.report.inputs):
            return None
        if at not in self._tables:
            self._tables[at] = self._read(at)
        table = self._tables[at]
        if table is None or place.row > table.num_rows:
            return None
        row: dict[str, Any] = table.slice(place.row - 1, 1).to_pylist()[0]
        return {name: str(value)[:_MOST_CHARACTERS] for name, value in row.items() if value is not None}

    def _read(self, at: int) -> pa.Table | None:
        config = self._run.report.config
        try:
            file = finished.find_again(self._run.report.inputs[at], config)
            form = formats.load(file.format)
            columns = choose_columns(file, form.column_names(file, config), config)
            table = form.table(file, config) if file.size <= _MOST_BYTES else None
        except DataError:
            return None
        if table is None:
            return None
        shown = set(columns.text) | {columns.id, columns.items, columns.vector}
        names = [name for name in table.column_names if name not in shown]
        return table.select(names[:_MOST_COLUMNS]) if names else None
