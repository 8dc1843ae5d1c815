"""text_out: what was compared, for every kind of input."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.jobs import files
from support import corpora

TEXTS = {"a": "to be or not to be", "b": "to be or not\nto be, that is", "c": "Étude \u200b 東京"}
DOCUMENTS = [{"id": name, "text": text} for name, text in TEXTS.items()]
PAGE = "<html><body><nav>Home News</nav><article><p>{}</p></article></body></html>"


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("form", corpora.FORMATS)
@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_texts_of_every_format_are_written_in_input_order(form, ending, tmp_path):
    path = tmp_path / f"corpus.{form}"
    corpora.write_rows(path, DOCUMENTS)
    target = tmp_path / f"texts.{ending}"
    neardup.deduplicate(path, out=tmp_path / "out", text_out=target)
    assert [(row["file"], row["row"]) for row in read(target)] == [
        (path.name, at) for at in (1, 2, 3)
    ]
    assert [(row["doc_id"], row["text"]) for row in read(target)] == list(TEXTS.items())


def test_parts_and_threads_do_not_matter_and_rejected_rows_and_references_are_left_out(
    monkeypatch, tmp_path
):
    rows = [json.dumps({"id": f"d{at}", "text": f"word{at} " * 20}) for at in range(60)]
    rows[7] = '{"id": "bad"}'
    (tmp_path / "rows.jsonl").write_text("\n".join(rows) + "\n")
    (tmp_path / "old.jsonl").write_text('{"id": "old", "text": "an old one"}\n')
    found = []
    for threads, size in ((1, 1 << 22), (3, 500)):
        with monkeypatch.context() as patch:
            corpora.cut(patch, batch_bytes=size, part_bytes=3 * size)
            target = tmp_path / f"texts{threads}.parquet"
            neardup.find_pairs(
                tmp_path / "rows.jsonl",
                out=tmp_path / f"pairs{threads}.csv",
                against=tmp_path / "old.jsonl",
                threads=threads,
                text_out=target,
                id_column="id",
            )
            found.append(target.read_bytes())
    assert found[0] == found[1]
    ids = [row["doc_id"] for row in read(target)]
    assert ids == [f"d{at}" for at in range(60) if at != 7]


def test_main_content_of_html_is_what_text_out_and_explain_show(tmp_path):
    words = " ".join(f"word{at}" for at in range(60))
    (tmp_path / "a.html").write_text(PAGE.format(words))
    (tmp_path / "b.html").write_text(PAGE.format(f"{words} more").replace("News", "Contact"))
    target = tmp_path / "texts.jsonl"
    neardup.deduplicate(
        tmp_path, out=tmp_path / "../out-of-html", html=True, text_out=target, overwrite=True
    )
    texts = {row["doc_id"]: row["text"] for row in read(target)}
    assert texts == {"a.html": words, "b.html": f"{words} more"}
    answer = neardup.explain(tmp_path / "../out-of-html", "b.html")
    assert (answer.text, answer.kept_text) == (texts["b.html"], texts["a.html"])


def test_items_and_documents_in_memory_are_written_too(tmp_path):
    neardup.find_pairs(TEXTS, text_out=tmp_path / "texts.parquet")
    assert read(tmp_path / "texts.parquet") == [
        {"doc_id": name, "file": None, "row": at, "text": text}
        for at, (name, text) in enumerate(TEXTS.items())
    ]
    neardup.find_pairs(items=[["tea", "milk"], ["tea"]], text_out=tmp_path / "items.jsonl")
    assert [row["text"] for row in read(tmp_path / "items.jsonl")] == ["tea\nmilk\n", "tea\n"]
    neardup.find_pairs(
        pa.table({"text": pa.array([], pa.string())}), text_out=tmp_path / "none.jsonl"
    )
    assert read(tmp_path / "none.jsonl") == []


def test_existing_file_is_replaced_only_with_overwrite(tmp_path):
    corpora.write_rows(tmp_path / "rows.jsonl", DOCUMENTS)
    target = tmp_path / "texts.jsonl"
    target.write_text("mine")
    given = {"out": tmp_path / "out", "text_out": target}
    with pytest.raises(DataError, match="already exists"):
        neardup.deduplicate(tmp_path / "rows.jsonl", **given)
    assert (target.read_text(), (tmp_path / "out").exists()) == ("mine", False)
    neardup.deduplicate(tmp_path / "rows.jsonl", **given, overwrite=True)
    assert len(read(target)) == 3


def test_interrupted_run_writes_the_same_texts(monkeypatch, tmp_path):
    corpora.write_rows(tmp_path / "rows.jsonl", DOCUMENTS)
    target = tmp_path / "texts.jsonl"
    given = {"out": tmp_path / "out", "text_out": target}
    for place in ("warn_of_templates", "DedupFolder.publish"):
        with monkeypatch.context() as patch:
            if place == "warn_of_templates":
                patch.setattr(files, place, lambda *_: 1 / 0)
            else:
                patch.setattr(f"neardup.jobs.output.{place}", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                neardup.deduplicate(tmp_path / "rows.jsonl", **given)
    assert target.exists()  # the second start was stopped between the two outputs
    neardup.deduplicate(tmp_path / "rows.jsonl", **given)
    assert [row["text"] for row in read(target)] == list(TEXTS.values())
    assert (tmp_path / "out").is_dir()


def test_what_cannot_be_written_is_an_error(tmp_path):
    corpora.write_rows(tmp_path / "rows.jsonl", DOCUMENTS)
    path = tmp_path / "rows.jsonl"
    neardup.deduplicate(path, out=tmp_path / "run", pairs=True)
    for call, message in (
        (lambda: Config(text_out="x.csv"), r"must end in \.parquet or \.jsonl"),
        (lambda: Config(text_out="x.jsonl", measure="cosine"), "needs a measure of texts"),
        (lambda: Config(text_out="x.jsonl", engine="spark"), "not supported on Spark"),
        (lambda: neardup.neighbours(["a"], text_out="x.jsonl"), "does not apply"),
        (lambda: neardup.compare("a", "b", text_out="x.jsonl"), "does not apply"),
        (
            lambda: neardup.find_pairs(
                tmp_path / "run", out=tmp_path / "p.csv", text_out="x.jsonl"
            ),
            "does not apply",
        ),
        (
            lambda: neardup.deduplicate(path, out=tmp_path / "o", text_out=tmp_path / "o/t.jsonl"),
            "in the output",
        ),
        (
            lambda: neardup.deduplicate(path, out=tmp_path / "o", text_out=tmp_path / "no/t.jsonl"),
            "does not exist",
        ),
        (
            lambda: neardup.deduplicate(path, out=tmp_path / "o", text_out=path, overwrite=True),
            "is the input itself",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            call()
    assert path.read_text().count("\n") == 3
