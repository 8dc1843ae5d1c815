"""A sample of files gives good estimates of documents, bytes and disk space, in every format."""

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
from neardup.io import records
from neardup.io.columns import arrow_rows as tables
from neardup.io.documents.discover import find_files
from neardup.io.documents.sample import estimate_sizes, sample_files
from neardup.io.formats import parquet
from neardup.io.formats import registry as formats
from neardup.jobs.start import needed_disk
from neardup.theory.plan import plan_for

# How far from the truth an estimate may be, either way.
FACTOR = 3.0
NUM_ROWS = 3000


# Formats are imported late; one imported while sizes are small would keep them.
for name in ("jsonl", "parquet", "arrow", "csv"):
    formats.load(name)


def texts(seed=1, num_rows=NUM_ROWS):
    rng = random.Random(seed)
    words = [f"word{number}" for number in range(5000)]
    return [" ".join(rng.choices(words, k=rng.randint(5, 100))) for _ in range(num_rows)]


def jsonl_bytes(rows):
    return "".join(
        json.dumps({"id": f"document-{at}", "text": text}) + "\n" for at, text in enumerate(rows)
    ).encode()


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


def sampled(*paths, num_files=4):
    config = Config()
    return sample_files(
        find_files(list(map(str, paths)), config), config, num_files=num_files, most_bytes=1
    )


def disk_of(path, **settings):
    config = Config(**settings)
    return needed_disk(find_files([str(path)], config), plan_for(config), config)


def assert_near(found, documents, text_bytes):
    assert documents / FACTOR <= found.documents <= documents * FACTOR
    assert text_bytes / FACTOR <= found.text_bytes <= text_bytes * FACTOR


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "a.arrow"])
def test_a_small_file_is_sampled_whole(tmp_path, name):
    rows = texts()
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    found = sampled(tmp_path / name)
    assert (found.documents, found.text_bytes) == (NUM_ROWS, sum(map(len, rows)))


@pytest.mark.parametrize("name", FORMATS)
def test_a_large_file_is_estimated_from_its_beginning(tmp_path, monkeypatch, name):
    monkeypatch.setattr(records, "PART_BYTES", 200_000)
    monkeypatch.setattr(records, "BATCH_BYTES", 50_000)
    monkeypatch.setattr(tables, "PART_BYTES", 200_000)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 50_000)
    rows = texts()
    (tmp_path / name).write_bytes(FORMATS[name](rows))
    assert_near(sampled(tmp_path / name), NUM_ROWS, sum(map(len, rows)))


def test_many_files_are_estimated_from_some(tmp_path):
    num_documents = num_bytes = 0
    for number in range(50):
        rows = texts(number, 20 + number % 7)
        (tmp_path / f"{number:02}.jsonl").write_bytes(jsonl_bytes(rows))
        num_documents += len(rows)
        num_bytes += sum(map(len, rows))
    assert_near(sampled(tmp_path), num_documents, num_bytes)


def test_every_text_file_is_one_document(tmp_path):
    rows = texts(2, 40)
    for number, text in enumerate(rows):
        (tmp_path / f"{number:02}.txt").write_text(text)
    assert_near(sampled(tmp_path), 40, sum(map(len, rows)))


def test_an_empty_input_needs_no_disk(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"")
    found = sampled(tmp_path / "a.jsonl")
    assert (found.documents, found.text_bytes, disk_of(tmp_path / "a.jsonl")) == (0, 0, 0)


@pytest.mark.parametrize("num_files", [1, 2, 9])
def test_the_disk_space_of_parquet_files_follows_from_their_metadata(
    tmp_path, monkeypatch, num_files
):
    for number in range(9):
        pq.write_table(
            pa.table({"text": texts(number, 300), "other": range(300)}),
            tmp_path / f"{number}.parquet",
        )
    monkeypatch.delattr(pq.ParquetFile, "iter_batches")
    config = Config()
    documents, num_bytes = estimate_sizes(
        find_files([str(tmp_path)], config), config, num_files=num_files
    )
    true_bytes = sum(len(text) for number in range(9) for text in texts(number, 300))
    assert documents == pytest.approx(2700, rel=0.1)
    assert num_bytes == pytest.approx(true_bytes, rel=0.2)
    assert disk_of(tmp_path, dry_run=True) > 2500 * 8 * plan_for(config).bands


def test_a_dry_run_needs_no_room_for_kept_rows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    whole = disk_of(tmp_path / "a.jsonl")
    dry = disk_of(tmp_path / "a.jsonl", dry_run=True)
    assert whole - dry == (tmp_path / "a.jsonl").stat().st_size
    assert dry > 0


def test_more_bands_take_more_disk(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(jsonl_bytes(texts(3, 200)))
    few, many = (disk_of(tmp_path / "a.jsonl", bands=bands, rows=2) for bands in (10, 50))
    assert many - few == 200 * 8 * 40


def test_the_estimated_disk_space_covers_the_run(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl_bytes(texts(4, 2000)))
    taken = []

    def measure(draft, out, *, overwrite):
        files = [file for file in draft.parent.rglob("*") if file.is_file()]
        taken.append(sum(file.stat().st_size for file in files))
        assert not overwrite
        draft.replace(out)

    monkeypatch.setattr("neardup.io.storage.workspace.publish", measure)
    neardup.deduplicate(path, out=tmp_path / "out")
    assert taken[0] / FACTOR <= disk_of(path) <= taken[0] * FACTOR


def test_one_long_document_in_a_small_sample_does_not_inflate_the_text(tmp_path):
    rng = random.Random(4)
    texts = [" ".join(str(rng.randrange(10**6)) for _ in range(300)) for _ in range(3000)]
    texts[3] = " ".join(str(rng.randrange(10**6)) for _ in range(200_000))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    config = Config()
    found = sample_files(
        find_files([str(tmp_path / "a.parquet")], config),
        config,
        num_files=1,
        most_bytes=10**5,
        spread=8,
    )
    sampled = sum(len(batch.texts) for batch in found.records)
    assert sampled < 1500
    true_bytes = sum(map(len, texts))
    assert 0.9 * true_bytes < found.text_bytes < 1.1 * true_bytes
    assert sampled * found.scale == pytest.approx(3000, rel=0.01)
