"""Pages of segments: which are requested before they are read, and what a query reads from disk."""

from __future__ import annotations

import itertools
import mmap
import os
import resource
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup.index.page_requests import DiskReads, blocks_read, page_ranges

PAGE = mmap.PAGESIZE
BLOCK_BYTES = 512


def evict(folder):
    """Drop the pages of all files of an index from memory."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def texts(count, seed=1):
    """Texts of 150 random words."""
    draw = np.random.default_rng(seed)
    return [
        " ".join(f"w{word}" for word in row)
        for row in draw.integers(50_000, size=(count, 150)).tolist()
    ]


@pytest.mark.parametrize("seed", range(5))
def test_ranges_of_pages_contain_all_bytes_and_nothing_far_from_them(seed):
    draw = np.random.default_rng(seed)
    starts = draw.integers(0, 500 * PAGE, 40)
    stops = starts + draw.integers(-PAGE, 3 * PAGE, 40)
    pairs = [
        (start, stop)
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        if start < stop
    ]
    used = {page for start, stop in pairs for page in range(start // PAGE, -(-stop // PAGE))}
    ranges = list(page_ranges(starts, stops))
    pages = [page for first, stop in ranges for page in range(first // PAGE, stop // PAGE)]
    assert used <= set(pages)
    assert all(any(abs(page - near) <= 4 for near in used) for page in pages)
    assert pages == sorted(set(pages))
    assert all(after[0] - before[1] >= 4 * PAGE for before, after in itertools.pairwise(ranges))


def test_no_pages_are_requested_for_empty_ranges():
    assert list(page_ranges(np.array([5, 9]), np.array([5, 3]))) == []
    assert list(page_ranges(np.empty(0, np.int64), np.empty(0, np.int64))) == []


def test_pages_are_requested_ahead_until_queries_no_longer_read_from_disk():
    reads = DiskReads()
    assert reads.are_expected()
    reads.note(1, blocks_read())
    assert reads.are_expected()
    reads.note(1000, blocks_read())
    assert not reads.are_expected()
    reads.note(1, blocks_read() - 1)
    assert reads.are_expected()


# Settings, options of a query, and the most bytes that it may read: about one page for each key and
# document.
CASES = {
    "shingles": ({}, {}, 300_000),
    "signatures": ({"store": "signature"}, {}, 300_000),
    "containment": ({"containment": True}, {"containment": 0.9}, 1_300_000),
    "vectors": ({"measure": "cosine", "dimension": 64, "threshold": 0.95}, {}, 550_000),
}


@pytest.mark.parametrize("case", CASES)
def test_a_query_of_an_index_that_is_not_in_memory_reads_only_its_own_pages(tmp_path, case):
    settings, options, most_bytes = CASES[case]
    documents = (
        np.random.default_rng(2).standard_normal((20_000, 64))
        if case == "vectors"
        else texts(20_000)
    )
    with neardup.Index.create(tmp_path / "index", durability="fast", **settings) as index:
        index.insert_many(documents, ids=list(map(str, range(len(documents)))))
        index.compact()
    asked = documents[:2000:100]
    with neardup.Index.open(tmp_path / "index", read_only=True) as index:
        expected = [index.query(one, **options) for one in asked]
        in_batch = index.query_many(asked, **options)
    assert [matches[0].doc_id for matches in expected] == list(map(str, range(0, 2000, 100)))
    evict(tmp_path / "index")
    with neardup.Index.open(tmp_path / "index", read_only=True) as index:
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        blocks = blocks_read()
        assert [index.query(one, **options) for one in asked] == expected
        assert (blocks_read() - blocks) * BLOCK_BYTES <= len(asked) * most_bytes
        assert resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults <= len(asked)
    evict(tmp_path / "index")
    with neardup.Index.open(tmp_path / "index", read_only=True) as index:
        assert index.query_many(asked, **options).equals(in_batch)


def test_a_closed_index_maps_no_files(tmp_path):
    index = neardup.Index.create(tmp_path / "index")
    index.insert_many({"a": "to be or not to be that is the question"})
    index.compact()
    assert index.query("to be or not to be that is the question")
    segment = next((tmp_path / "index" / "runs").iterdir())
    assert str(segment) in Path("/proc/self/maps").read_text()
    index.close()
    assert str(segment) not in Path("/proc/self/maps").read_text()
