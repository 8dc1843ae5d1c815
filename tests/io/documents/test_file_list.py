"""The packed list of input files."""

from __future__ import annotations

import pickle
import sys

import msgspec
import pytest

from neardup.io.documents.file_list import FileList
from neardup.io.records import InputFile

FILE = InputFile(
    path="/corpus/000/000001.txt",
    name="000/000001.txt",
    format="text",
    compression=None,
    size=345,
    modified="1790000000123456789",
    identity="12345678 1790000000123456789",
    head="0" * 64,
)


def numbered(number):
    return msgspec.structs.replace(
        FILE, path=f"/corpus/é{number}.txt", size=2**40 + number, encoding="latin-1"
    )


def test_packed_files_round_trip():
    files = [numbered(number) for number in range(5)]
    packed = FileList(files)

    assert len(packed) == 5
    assert list(packed) == files
    assert [packed[at] for at in range(-5, 5)] == files + files
    assert packed[1:4] == files[1:4]
    assert list(pickle.loads(pickle.dumps(packed))) == files  # noqa: S301
    with pytest.raises(IndexError):
        packed[5]


def test_lists_are_joined_without_changing_either():
    one = FileList([numbered(0)])
    two = FileList([numbered(1), numbered(2)])

    assert list(one + two) == [numbered(0), numbered(1), numbered(2)]
    assert (len(one), len(two)) == (1, 2)


def test_a_file_takes_about_210_bytes():
    assert sum(map(sys.getsizeof, FileList([FILE])._packed)) <= 210
