"""Arrays in files: what is read of them at random maps little memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from neardup.io.storage.big_arrays import BigArrays, write_pieces


def test_content_of_any_length_is_written_and_appended(tmp_path: Path) -> None:
    content = np.random.default_rng(1).bytes(200_001)
    path = tmp_path / "content"

    write_pieces(path, content[:70_000], "wb")
    write_pieces(path, content[70_000:], "ab")

    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_touch_of_an_array_in_a_file_maps_few_pages(tmp_path: Path) -> None:
    arrays = BigArrays(tmp_path / "arrays", lambda: 0)
    array = arrays.empty("numbers", 4 << 20, np.int64)
    array[:] = 1
    arrays.drop_pages()
    before = _mapped_bytes()

    touched = array[:: array.size // 16].sum()

    mapped = _mapped_bytes() - before
    assert touched == 16
    assert mapped <= 16 * (256 << 10)


def _mapped_bytes() -> int:
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("RssFile:")).split()[1]) << 10
