"""What a run will take, from a sample: near the truth on files of every format."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.estimate import estimate
from neardup.io import formats, parquet, records, tables
from neardup.io.files import find_files
from neardup.planner import plan_for

# How far from the truth an estimate may be, either way.
FACTOR = 3.0
NUM_ROWS = 3000


# A format is loaded late; one that is loaded while sizes are small would keep them.
for name in ("jsonl", "parquet", "arrow", "csv"):
    formats.load(name)


def texts(seed=1, num_rows=NUM_ROWS):
    rng = random.Random(seed)
    words = [f"word{number}" for number in range(5000)]
    return [" ".join(rng.choices(words, k=rng.randint(5, 100))) for _ in range(num_rows)]


def jsonl_bytes(rows):
    return "".join(json.dumps({"id": f"document-{at}", "text": text}) + "\n" for at, text in enumerate(rows)).encode()


def csv_bytes(rows):
    sink = io.StringIO()
    csv.writer(sink).writerows([("id", "text"), *enumerate(rows)])
    return sink.getvalue().encode()


def table_of(rows):
    return pa.table({"id": [f"document-{at}" for at in range(len(rows))], "text": rows})


def parquet_bytes(rows, **layout):
    sink = io.BytesIO()
    pq.write_table(table_of(rows), sink, row_group_size=500, **layout)
    return sink.getvalue()


def arrow_bytes(rows):
    sink = io.BytesIO()
    table = table_of(rows)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
    return sink.getvalue()


FORMATS = {
    "a.jsonl": jsonl_bytes,
    "a.jsonl.gz": lambda rows: gzip.compress(jsonl_bytes(rows)),
    "a.jsonl.zst": lambda rows: pa.compress(jsonl_bytes(rows), "zstd", asbytes=True),
    "a.csv": csv_bytes,
    "a.csv.gz": lambda rows: gzip.compress(csv_bytes(rows)),
    "a.parquet": parquet_bytes,
    "plain.parquet": lambda rows: parquet_bytes(rows, compression="none", use_dictionary=False),
    "a.arrow": arrow_bytes,
}


def estimated(*paths, is_timed=False, **settings):
    config = Config(**settings)
    return estimate(find_files(list(map(str, paths)), config), plan_for(config), config, is_timed=is_timed)


def assert_near(found, documents, text_bytes):
    assert documents / FACTOR <= found.documents <= documents * FACTOR
    assert text_bytes / FACTOR <= found.text_bytes <= text_bytes * FACTOR


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "a.arrow"])
def test_a_small_file_is_sampled_whole(tmp_path, name):
    rows = texts()
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    found = estimated(tmp_path / name)
    assert (found.documents, found.text_bytes) == (NUM_ROWS, sum(map(len, rows)))


@pytest.mark.parametrize("name", FORMATS)
def test_a_large_file_is_estimated_from_its_beginning(tmp_path, monkeypatch, name):
    monkeypatch.setattr(records, "PART_BYTES", 200_000)
    monkeypatch.setattr(records, "BATCH_BYTES", 50_000)
    monkeypatch.setattr(tables, "PART_BYTES", 200_000)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 50_000)
    rows = texts()
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    assert_near(estimated(tmp_path / name), NUM_ROWS, sum(map(len, rows)))


def test_many_files_are_estimated_from_some(tmp_path):
    num_documents = num_bytes = 0
    for number in range(50):
        rows = texts(number, 20 + number % 7)
        (tmp_path / f"{number:02}.jsonl").write_bytes(jsonl_bytes(rows))
        num_documents += len(rows)
        num_bytes += sum(map(len, rows))
    assert_near(estimated(tmp_path), num_documents, num_bytes)


def test_text_files_are_a_document_each(tmp_path):
    rows = texts(2, 40)
    for number, text in enumerate(rows):
        (tmp_path / f"{number:02}.txt").write_text(text)
    assert_near(estimated(tmp_path), 40, sum(map(len, rows)))


def test_an_empty_input_takes_nothing_much(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    found = estimated(tmp_path / "a.jsonl", is_timed=True)
    assert (found.documents, found.text_bytes, found.disk_bytes) == (0, 0, 0)
    assert found.seconds >= 0


def test_time_is_told_only_where_it_was_measured(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    assert estimated(tmp_path / "a.jsonl").seconds is None
    timed = estimated(tmp_path / "a.jsonl", is_timed=True)
    assert 0 < timed.seconds < 60
    assert timed.as_dict()["seconds"] == timed.seconds


def test_a_dry_run_needs_no_room_for_kept_rows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    whole, dry = estimated(tmp_path / "a.jsonl"), estimated(tmp_path / "a.jsonl", dry_run=True)
    assert whole.disk_bytes - dry.disk_bytes == (tmp_path / "a.jsonl").stat().st_size
    assert dry.disk_bytes > 0


def test_more_bands_take_more_disk(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    few, many = (estimated(tmp_path / "a.jsonl", bands=bands, rows=2).disk_bytes for bands in (10, 50))
    assert many - few == 200 * 8 * 40


def test_memory_is_never_estimated_beyond_the_limit(tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    free = estimated(tmp_path / "a.jsonl", memory="8GB").memory_bytes
    assert 100e6 < free < 1e9
    monkeypatch.setattr("neardup.estimate._MEMORY_BYTES", 10**9)
    assert estimated(tmp_path / "a.jsonl", memory="8GB").memory_bytes == Config(memory="8GB").memory


def test_the_disk_is_at_least_what_a_run_takes(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl_bytes(texts(4, 2000)))
    taken = []

    def measure(draft, out):
        files = [file for file in draft.parent.rglob("*") if file.is_file()]
        taken.append(sum(file.stat().st_size for file in files))
        draft.replace(out)

    monkeypatch.setattr("neardup.io.workspace.publish", measure)
    neardup.deduplicate(path, out=tmp_path / "out")
    assert taken[0] / FACTOR <= estimated(path).disk_bytes <= taken[0] * FACTOR
