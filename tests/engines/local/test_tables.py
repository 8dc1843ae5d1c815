"""The views of a table are read together as far as memory allows, and hold the same rows either way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.engines.base import TableView
from neardup.engines.local.tables import read_views

NUM_ROWS = 100
NUM_BANDS = 5
VIEWS = [TableView(("row", f"key_{band}"), (f"key_{band}",), ("row",)) for band in range(NUM_BANDS)]
WHERE = np.arange(NUM_ROWS) % 3 > 0


class CountedTable:
    """A table in batches of ten rows that counts how often it is read."""

    def __init__(self):
        columns = {"row": np.arange(NUM_ROWS)} | {
            f"key_{band}": np.arange(NUM_ROWS) % (band + 2) for band in range(5)
        }
        self._whole = pa.table(columns)
        self.schema = self._whole.schema
        self.num_reads = 0

    def batches(self, columns):
        self.num_reads += 1
        yield from self._whole.select(list(columns)).to_batches(max_chunksize=10)


# The columns of 0, 1, 2, 4 and all views; a view has two columns and shares one of them.
@pytest.mark.parametrize(("num_columns", "num_reads"), [(1, 0), (2, 5), (3, 3), (5, 2), (6, 1)])
def test_as_many_views_as_fit_are_read_in_one_pass(num_columns, num_reads):
    table = CountedTable()
    num_chosen = np.count_nonzero(WHERE)
    found = list(read_views(table, VIEWS, WHERE, num_chosen, 8 * num_chosen * num_columns))
    assert table.num_reads == num_reads
    assert [view for view, _ in found] == VIEWS
    for band, (_, rows) in enumerate(found):
        if num_columns == 1:
            assert rows is None
            continue
        got = pa.Table.from_batches(rows)
        assert got.column_names == ["row", f"key_{band}"]
        assert got.column("row").to_pylist() == np.flatnonzero(WHERE).tolist()
        assert got.column(1).to_pylist() == (np.flatnonzero(WHERE) % (band + 2)).tolist()
