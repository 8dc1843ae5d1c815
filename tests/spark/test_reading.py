"""What workers read of a part: the same rows, however many tasks share it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from neardup import schema
from neardup.config import Config
from neardup.engines.spark.reading import notes_schema, read_parts
from neardup.io.documents.discover import find_files
from neardup.io.documents.layout import FileLayout
from neardup.io.formats import parquet
from neardup.stages.sketch import sketch
from neardup.theory.plan import plan_for
from support.corpora import rows, write_rows


@pytest.mark.parametrize("num_shares", [2, 3, 50])
def test_tasks_that_share_a_part_read_what_one_task_reads(tmp_path, monkeypatch, num_shares):
    monkeypatch.setattr(parquet, "BATCH_BYTES", 500)
    config = Config(method="lsh")
    source = write_rows(tmp_path / "in.parquet", rows(3, 80))
    parts = FileLayout(find_files([str(source)], config), 0, config)
    plan = plan_for(config)
    notes = notes_schema(schema.sketches(plan.bands))

    def read(num_shares):
        ends = {}
        tables = []
        for number in range(num_shares):
            numbers = [pa.record_batch({"id": [number]})]
            found = read_parts(
                numbers,
                parts,
                num_shares,
                lambda batch: sketch(batch, plan, config),
                notes,
                ends.update,
            )
            tables.append([row for batch in found for row in batch.to_pylist()])
        return tables, ends

    (whole,), ends = read(1)
    shares, shared_ends = read(num_shares)
    assert sorted((row for share in shares for row in share), key=lambda row: row["row"]) == whole
    assert sum(map(bool, shares)) > 1
    assert shared_ends == ends
    assert sum(ends[0][0]) == len(whole) == len(rows(3, 80))
