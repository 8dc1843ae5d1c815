"""Progress counts text: the amount in a file is looked up or estimated before reading."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.events import StageAdvanced, StageStarted
from neardup.io.documents.discover import find_files
from neardup.io.documents.text_size import num_text_bytes

TEXTS = [
    f"page {number}: " + "the ferry leaves every morning at nine " * 60 for number in range(200)
]
NUM_BYTES = sum(map(len, TEXTS))


@pytest.fixture
def table(tmp_path):
    columns = {"text": TEXTS, "other": ["x" * 500] * len(TEXTS)}
    pq.write_table(
        pa.table(columns), tmp_path / "a.parquet", compression="zstd", use_dictionary=False
    )
    return tmp_path / "a.parquet"


def test_the_text_size_of_a_parquet_file_comes_from_its_metadata(table):
    (file,) = find_files([str(table)], Config())
    assert file.size < NUM_BYTES / 10
    assert num_text_bytes(file, ["text"]) == pytest.approx(NUM_BYTES, rel=0.05)
    assert num_text_bytes(file) > num_text_bytes(file, ["text"])


def test_the_text_size_of_other_files_is_their_size(tmp_path):
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS).encode()
    (tmp_path / "a.jsonl").write_bytes(lines)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    plain, compressed = find_files([str(tmp_path)], Config())
    assert num_text_bytes(plain) == pytest.approx(NUM_BYTES, rel=0.1)
    assert num_text_bytes(compressed) == 4 * compressed.size


def test_progress_of_a_compressed_table_counts_its_text_up_to_all_of_it(table, tmp_path):
    events = []
    neardup.deduplicate(str(table), out=tmp_path / "out", progress=events.append)
    (started,) = (
        event for event in events if isinstance(event, StageStarted) and event.stage == "sketch"
    )
    done = [
        event.done
        for event in events
        if isinstance(event, StageAdvanced) and event.stage == "sketch"
    ]
    assert (started.unit, started.total) == ("bytes", pytest.approx(NUM_BYTES, rel=0.05))
    assert done == sorted(done)
    assert done[-1] == started.total
