"""Runs with encoding="auto": what is read, recorded, written, and used again."""

from __future__ import annotations

import json
import shutil
import signal

import pytest

import neardup
from neardup.errors import ConfigError
from neardup.io.storage.workspace import MANIFEST
from support.programs import contents, everything

TEXT = "Le café où l'été dernier nous étions allés à la fenêtre était fermé; ça n’a pas plu à l’œuvre {}"
WORDS = ("hier", "demain", "jamais", "souvent", "toujours")


def write_essays(folder, num_essays=40):
    """Essays of known truth: each twice, in another encoding, and every seventh not in UTF-8."""
    folder.mkdir()
    for number in range(num_essays):
        text = " ".join(TEXT.format(f"{word} {number}") for word in WORDS)
        (folder / f"a-{number:02}.txt").write_text(text, "utf-8")
        other = "cp1252" if number % 7 else "utf-16"
        (folder / f"b-{number:02}.txt").write_bytes(text.encode(other if number % 2 else "utf-8"))
    return folder


@pytest.fixture
def essays(tmp_path):
    return write_essays(tmp_path / "essays")


def test_files_in_other_encodings_are_copies_of_those_in_utf8(programs, tmp_path):
    write_essays(tmp_path / "essays")
    done = programs.run("dedup", "essays", "-o", "plain", cwd=tmp_path)
    assert "20 of 80 rows are not valid UTF-8. Hint: pass --encoding auto to detect" in done.stderr
    done = programs.run("dedup", "essays", "-o", "out", "--encoding", "auto", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert "80 documents: 40 kept, 40 removed (40 exact), 0 rejected" in done.stdout
    assert "20 files are not in UTF-8; detected: 17 cp1252, 3 utf-16" in done.stderr
    stored = json.loads((tmp_path / "out" / "report.json").read_text())
    encodings = {entry["file"]: entry["encoding"] for entry in stored["inputs"]}
    assert encodings["a-01.txt"] is None
    assert encodings["b-01.txt"] == "cp1252"
    assert encodings["b-07.txt"] == "utf-16"


def test_rows_are_kept_in_the_encoding_of_their_file(tmp_path, monkeypatch):
    rows = [
        json.dumps({"id": at, "text": TEXT.format(at // 2)}, ensure_ascii=False) for at in range(8)
    ]
    lines = "".join(f"{row}\n" for row in rows)
    (tmp_path / "a.jsonl").write_bytes(lines.encode("cp1252"))
    (tmp_path / "b.csv").write_bytes(
        ("id,text\n" + "".join(f'x{at},"{TEXT.format(at)}"\n' for at in range(3))).encode("utf-16")
    )
    monkeypatch.chdir(tmp_path)
    report = neardup.deduplicate(
        [tmp_path / "a.jsonl", tmp_path / "b.csv"],
        out=tmp_path / "out",
        encoding="auto",
        threshold=1,
    )
    assert report.documents == 11
    kept = (tmp_path / "out" / "kept" / "a.jsonl").read_bytes().decode("cp1252")
    assert kept == "".join(f"{row}\n" for row in rows[::2])
    # Nothing is detected again from what was kept, or for an audit.
    monkeypatch.setattr("neardup.io.documents.file_encodings.detect_encoding", _never)
    loaded = neardup.load(tmp_path / "out")
    assert loaded.kept.column("text").to_pylist()[:2] == [TEXT.format(0), TEXT.format(1)]
    assert neardup.audit(tmp_path / "out").recall == 1
    assert neardup.explain(tmp_path / "out", "1").kept_text == TEXT.format(0)


def _never(stream):
    raise AssertionError(f"{stream} is detected again")


def test_a_killed_run_uses_the_encodings_it_has_recorded(programs, essays, tmp_path):
    """The list of files comes from standard input, in another order than that of their names."""
    names = sorted(
        (f"essays/{path.name}" for path in essays.iterdir()), key=lambda name: name[::-1]
    )
    (tmp_path / "list.txt").write_text("\n".join(names))
    command = ("dedup", "--files-from", "list.txt", "-o", "out", "--encoding", "auto")
    command = (*command, "--threads", "1", "--pairs", "--quiet")
    assert programs.run(*command, cwd=tmp_path).code == 0
    whole = contents(tmp_path / "out")
    assert [entry["path"] for entry in whole["report.json"]["inputs"]] == names
    shutil.rmtree(tmp_path / "out")
    forbid = (
        "import neardup.io.documents.file_encodings as module\n"
        "def never(stream): raise SystemExit('detected again')\n"
        "module.detect_encoding = never"
    )
    for number in (1, 2, 4):
        killed = programs.run(*command, cwd=tmp_path, before=f"kill_at_finish({number})")
        assert killed.code == -signal.SIGKILL, killed.stderr
        assert (tmp_path / ".out.neardup" / MANIFEST).exists()
        again = programs.run(*command, cwd=tmp_path, before=forbid)
        assert again.code == 0, again.stderr
        assert contents(tmp_path / "out") == whole
        shutil.rmtree(tmp_path / "out")
    assert programs.run(*command, cwd=tmp_path, before=forbid).code != 0


def test_another_list_of_files_is_not_the_run_that_was_killed(programs, essays, tmp_path):
    names = sorted(f"essays/{path.name}" for path in essays.iterdir())
    command = (
        "dedup",
        "--files-from",
        "list.txt",
        "-o",
        "out",
        "--encoding",
        "auto",
        "--threads",
        "1",
    )
    (tmp_path / "list.txt").write_text("\n".join(names))
    killed = programs.run(*command, cwd=tmp_path, before="kill_at_part('out/removed.parquet')")
    assert killed.code == -signal.SIGKILL
    (tmp_path / "list.txt").write_text("\n".join(names[1:]))
    done = programs.run(*command, cwd=tmp_path)
    assert done.code == 2
    assert "essays/a-00.txt was an input of that run" in done.stderr
    (tmp_path / "list.txt").write_text("\n".join([*names[1:], names[0]]))
    assert "the inputs differ" in programs.run(*command, cwd=tmp_path).stderr
    assert everything(tmp_path / "essays")


def test_compare_detects_the_encodings_of_both_texts(programs, tmp_path):
    write_essays(tmp_path / "essays")
    done = programs.run("compare", "essays/a-07.txt", "essays/b-07.txt", cwd=tmp_path)
    assert "--encoding auto" in done.stderr
    done = programs.run(
        "compare", "essays/a-07.txt", "essays/b-07.txt", "--encoding", "auto", cwd=tmp_path
    )
    assert "equal, word for word" in done.stdout


def test_auto_is_for_files_only():
    with pytest.raises(ConfigError, match="`encoding` needs files as the source"):
        neardup.deduplicate(["a"], encoding="auto")
