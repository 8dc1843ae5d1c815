"""A byte that changed is told when it is read, or by check(), or does no harm; and it never crashes."""

from __future__ import annotations

import shutil

import pytest

from index.corpora import texts
from neardup import Index
from neardup.errors import NearDupError

DOCUMENTS = texts(40, seed=8)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A small index with a run, fresh documents, an alias and a removed document, and what it answers."""
    folder = tmp_path_factory.mktemp("sound")
    with Index.create(folder / "index", num_perm=16, bands=4, rows=4, signature_filter=False) as index:
        index.insert_many(dict(list(DOCUMENTS.items())[:25]))
        index.compact()
        for name, text in list(DOCUMENTS.items())[25:30]:
            index.insert(name, text, payload={"n": name})
        index.insert_new("alias", DOCUMENTS["8-0"], "link")
        index.remove("8-3")
    with Index.open(folder / "index") as index:
        return folder / "index", answers(index)


def answers(index):
    documents = [index.get(doc_id) for doc_id in index.ids()]
    return index.query_many(DOCUMENTS, k=None).to_pylist(), documents, "alias" in index


def flip(sound, tmp_path, name, place):
    """Flip the bits of one byte; raise where that is neither told nor harmless."""
    path, expected = sound
    copy = tmp_path / "copy"
    shutil.copytree(path, copy)
    target = next(copy.rglob(name))
    data = bytearray(target.read_bytes())
    data[place] ^= 0xFF
    target.write_bytes(data)
    try:
        with Index.open(copy, read_only=True) as index:
            found, damage = answers(index), index.check()
        assert damage or found == expected, f"byte {place} of {name} changed the answer, and nobody noticed"
    except NearDupError:
        pass
    finally:
        shutil.rmtree(copy)


def sweep(sound, tmp_path, step):
    path, _ = sound
    for name in ("*.run", "index.sqlite"):
        size = next(path.rglob(name)).stat().st_size
        for place in range(step // 2 if step > 1 else 0, size, step):
            flip(sound, tmp_path, name, place)


def test_flipped_bytes_are_detected_or_harmless(sound, tmp_path):
    sweep(sound, tmp_path, 1499)
    for place in (*range(0, 120, 7), *range(4000, 4200, 31)):
        flip(sound, tmp_path, "*.run", place)


@pytest.mark.long
@pytest.mark.slow("opens an index for every 29th byte of it")
def test_a_flipped_byte_anywhere_is_noticed_or_does_no_harm(sound, tmp_path):
    sweep(sound, tmp_path, 29)


@pytest.mark.parametrize("size", [0, 100, 4096, 5000])
def test_a_truncated_run_file_is_reported(sound, tmp_path, size):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    run = next(copy.rglob("*.run"))
    run.write_bytes(run.read_bytes()[:size])
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match="damaged"):
            index.query(DOCUMENTS["8-1"])
        assert index.check()


def test_a_missing_run_file_is_reported(sound, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    next(copy.rglob("*.run")).unlink()
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match="is missing"):
            index.query(DOCUMENTS["8-1"])
        assert index.check()
