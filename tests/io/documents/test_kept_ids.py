"""The ids of kept documents, looked up in batches."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.io.documents.kept_ids import KeptIds

KEPT_ROWS = np.array([5, 2, 5, 9, 0, 2, 7])


@pytest.mark.parametrize("num_at_once", [1, 2, 3, 100])
def test_ids_follow_the_removed_documents_and_are_loaded_in_bounded_batches(num_at_once):
    asked = []

    def ids_of(rows):
        asked.append(rows.tolist())
        return pa.array([f"id{row}" for row in rows])

    ids = KeptIds(KEPT_ROWS, ids_of, num_at_once)

    found = [
        ids.slice(first, length).to_pylist() for first, length in ((0, 4), (4, 0), (4, 3), (1, 2))
    ]

    names = [f"id{row}" for row in KEPT_ROWS]
    assert found == [names[:4], [], names[4:], names[1:3]]
    assert max(map(len, asked)) <= num_at_once
    assert all(rows == sorted(set(rows)) for rows in asked)
