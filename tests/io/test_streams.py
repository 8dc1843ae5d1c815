"""Bytes of files: compressed, damaged, changed, remote."""

from __future__ import annotations

import gzip
import os
import stat

import fsspec
import msgspec
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.errors import DataError, NearDupError
from neardup.io import streams
from neardup.io.documents.discover import find_files

CONTENT = b"".join(b"line %d of the file\n" % number for number in range(5000))


def found(path, content):
    path.write_bytes(content)
    return find_files([str(path)], Config())[0]


def read_all(file):
    with streams.open_input(file) as stream:
        return stream.read()


def zstd(content):
    return pa.compress(content, "zstd", asbytes=True)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd), ("", bytes)])
def test_concatenated_gzip_members_are_read_as_one_file(tmp_path, ending, pack):
    assert (
        read_all(found(tmp_path / f"a.txt{ending}", pack(CONTENT) + pack(b"more\n")))
        == CONTENT + b"more\n"
    )


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
@pytest.mark.parametrize("cut", [0, 1, 12, -8, -1])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path, ending, pack, cut):
    file = found(tmp_path / f"a.txt{ending}", pack(CONTENT)[:cut])
    with pytest.raises(DataError, match=rf"a\.txt\{ending} is truncated or damaged"):
        read_all(file)


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd)])
def test_bytes_that_are_not_compressed_are_an_error(tmp_path, ending, pack):
    with pytest.raises(DataError, match="truncated or damaged"):
        read_all(found(tmp_path / f"a.txt{ending}", CONTENT))
    with pytest.raises(DataError, match="truncated or damaged"):
        read_all(found(tmp_path / f"b.txt{ending}", pack(CONTENT) + b"garbage behind"))


@pytest.mark.parametrize("compression", ["gzip", "zstd", None])
def test_equal_content_is_written_as_equal_bytes(tmp_path, compression):
    ending = {"gzip": ".gz", "zstd": ".zst", None: ""}[compression]
    for name in ("a", "b"):
        with streams.open_output(
            str(tmp_path / "new" / f"{name}.txt{ending}"), compression
        ) as output:
            output.write(CONTENT)
            output.write(b"end")
    paths = [tmp_path / "new" / f"{name}.txt{ending}" for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert read_all(find_files([str(paths[0])], Config())[0]) == CONTENT + b"end"


def test_a_file_that_changed_since_it_was_found_is_an_error(tmp_path):
    file = found(tmp_path / "a.txt", CONTENT)
    streams.check_unchanged(file)
    with pytest.raises(DataError, match=r"a\.txt changed while it was read"):
        streams.check_unchanged(msgspec.structs.replace(file, modified="1"))
    (tmp_path / "a.txt").write_bytes(CONTENT + b"x")
    with pytest.raises(DataError, match=r"a\.txt changed while it was read"):
        streams.check_unchanged(file)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(DataError, match=r"a\.txt cannot be read: No such file"):
        streams.check_unchanged(file)
    with pytest.raises(DataError, match=r"a\.txt cannot be read: No such file"):
        streams.open_input(file)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_remote_files_are_read_written_copied_and_checked(name):
    files = fsspec.filesystem("memory")
    files.pipe(f"/streams/{name}", gzip.compress(CONTENT) if name.endswith("gz") else CONTENT)
    file = find_files([f"memory://streams/{name}"], Config())[0]
    assert read_all(file) == CONTENT
    streams.check_unchanged(file)
    streams.copy_file(file, f"memory://streams/copy/{name}")
    assert files.cat(f"/streams/copy/{name}") == files.cat(f"/streams/{name}")
    files.pipe(f"/streams/{name}", b"other")
    with pytest.raises(DataError, match="changed while it was read"):
        streams.check_unchanged(file)


def test_an_unknown_protocol_is_an_error_with_a_hint():
    with pytest.raises(NearDupError, match="nosuch://a"):
        streams.filesystem("nosuch://a/b.jsonl")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("mode", [0o644, 0o664, 0o400, 0o777])
def test_a_small_file_is_copied_with_its_permissions_whatever_the_umask(tmp_path, umask, mode):
    file = found(tmp_path / "a.txt", CONTENT)
    before = os.umask(umask)
    try:
        streams.write_small(str(tmp_path / "new" / "a.txt"), streams.read_small(file)[0], mode)
    finally:
        os.umask(before)

    assert (tmp_path / "new" / "a.txt").read_bytes() == CONTENT
    assert stat.S_IMODE((tmp_path / "new" / "a.txt").stat().st_mode) == mode & 0o666 | 0o600


def test_a_small_file_replaces_a_longer_one_and_no_link(tmp_path):
    (tmp_path / "old.txt").write_bytes(CONTENT)
    (tmp_path / "link.txt").symlink_to(tmp_path / "old.txt")
    with pytest.raises(OSError, match="symbolic links"):
        streams.write_small(str(tmp_path / "link.txt"), b"short", 0o644)

    streams.write_small(str(tmp_path / "old.txt"), b"short", 0o644)

    assert (tmp_path / "old.txt").read_bytes() == b"short"


@pytest.mark.parametrize("change", ["content", "time", "inode"])
def test_a_small_file_that_changed_is_not_read(tmp_path, change):
    path = tmp_path / "a.txt"
    file = found(path, b"some words")
    status = path.stat()
    if change == "content":
        path.write_bytes(b"more words than before")
    elif change == "time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    else:
        (tmp_path / "other").write_bytes(b"same_words")
        os.utime(tmp_path / "other", ns=(status.st_atime_ns, status.st_mtime_ns))
        (tmp_path / "other").replace(path)

    with pytest.raises(DataError, match="changed while it was read"):
        streams.read_small(file)


def test_a_large_or_remote_file_is_not_read_as_a_small_one(tmp_path, monkeypatch):
    fsspec.filesystem("memory").pipe("/streams/small.txt", CONTENT)
    assert streams.read_small(find_files(["memory://streams/small.txt"], Config())[0]) is None
    monkeypatch.setattr(streams, "SMALL_BYTES", len(CONTENT) - 1)
    assert streams.read_small(found(tmp_path / "a.txt", CONTENT)) is None
