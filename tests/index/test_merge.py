"""A merged segment has the bytes of a segment that was written at once, whatever the size of the pieces."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.index import merge
from neardup.index.merge import merge_segments
from neardup.index.segment import Segment, write_segment
from neardup.index.settings import new_settings
from neardup.index.sketches import sketch_contents
from neardup.io import records

SETTINGS = new_settings(
    Config.of(size=1, num_perm=16, bands=2, rows=4, signature_filter=False),
    "shingles",
    containment=True,
)


def made_texts(draw, count):
    """Texts of few words, so that many share shingles and band keys; some are empty."""
    return [
        " ".join(f"w{word}" for word in draw.integers(6, size=draw.integers(5)))
        for _ in range(count)
    ]


def written(path, numbers, texts):
    sketches = sketch_contents(pa.array(texts, pa.large_string()), SETTINGS.plan, SETTINGS.config)
    write_segment(path, np.array(numbers, np.int64), sketches, SETTINGS.layout)
    return path


@pytest.mark.parametrize("at_once", [1, 3, 50, 1 << 20])
def test_a_merged_segment_is_the_segment_of_all_live_documents(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(merge, "_POSTINGS_AT_ONCE", at_once)
    monkeypatch.setattr(merge, "_ENTRIES_AT_ONCE", at_once)
    monkeypatch.setattr(records, "BATCH_BYTES", at_once * 40)
    draw = np.random.default_rng(at_once)
    segments = []
    is_live = []
    live_numbers = []
    live_texts = []
    for number, count in enumerate([7, 1, 30, 12]):
        texts = made_texts(draw, count)
        numbers = list(range(number * 100, number * 100 + count))
        live = draw.random(count) < 0.8
        segments.append(
            Segment(written(tmp_path / f"{number}.run", numbers, texts), SETTINGS.layout)
        )
        is_live.append(live)
        live_numbers += [doc for doc, is_kept in zip(numbers, live, strict=True) if is_kept]
        live_texts += [text for text, is_kept in zip(texts, live, strict=True) if is_kept]
    steps = []

    merged = merge_segments(
        tmp_path / "merged.run", segments, is_live, SETTINGS.layout, lambda: steps.append(1)
    )

    expected = written(tmp_path / "expected.run", live_numbers, live_texts)
    assert (tmp_path / "merged.run").read_bytes() == expected.read_bytes()
    assert merged.num_docs == len(live_numbers)
    assert merged.digest == expected.read_bytes()[4080:4096]
    assert len(steps) >= len(live_numbers) if at_once == 1 else steps


def test_a_posting_that_points_to_no_document_is_damage_and_leaves_no_file(tmp_path):
    segment = Segment(written(tmp_path / "a.run", [1, 2], ["a b", "c d"]), SETTINGS.layout)
    segment.arrays["docs"] = segment.arrays["docs"] + 7
    with pytest.raises(ValueError, match=r"a posting of .* points to no document"):
        merge_segments(tmp_path / "merged.run", [segment], [np.ones(2, np.bool_)], SETTINGS.layout)
    assert not (tmp_path / "merged.run").exists()


def test_segments_without_live_documents_make_no_file(tmp_path):
    segment = Segment(written(tmp_path / "a.run", [1, 2], ["a b", "c d"]), SETTINGS.layout)
    assert (
        merge_segments(
            tmp_path / "merged.run", [segment], [np.zeros(2, np.bool_)], SETTINGS.layout
        ).num_docs
        == 0
    )
    assert not (tmp_path / "merged.run").exists()
