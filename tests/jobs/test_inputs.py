"""Other inputs: formats by name, JSON arrays, nested columns, encodings, and any text file as a document."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import DataError
from neardup.io.finished.finished_run import restore
from support import corpora
from support.corpora import NEAR, OTHER, PAGE

ROWS = [{"id": "a", "text": PAGE}, {"id": "b", "text": NEAR}, {"id": "c", "text": OTHER}]
ACCENTED = (
    "la première fête du quartier aura lieu à l'été près de la forêt où était l'ancien théâtre"
)


def removed(folder):
    return {
        row["doc_id"]: row["kept_id"]
        for row in pq.read_table(folder / "removed.parquet").to_pylist()
    }


def lines_of(documents):
    return "".join(json.dumps(document) + "\n" for document in documents)


def csv_of(documents):
    return "id,text\n" + "".join(
        f'{document["id"]},"{document["text"]}"\n' for document in documents
    )


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "arrow", "text", "lines", "json"])
def test_format_overrides_the_extension(form, run, tmp_path):
    content = {
        "jsonl": lambda: lines_of(ROWS).encode(),
        "csv": lambda: csv_of(ROWS).encode(),
        "json": lambda: json.dumps(ROWS, indent=2).encode(),
        "text": lambda: PAGE.encode(),
        "lines": lambda: f"{PAGE}\n{NEAR}\n{OTHER}\n".encode(),
    }.get(form, lambda: corpora.encoded(ROWS, form))()
    (tmp_path / "rows.data").write_bytes(content)
    (tmp_path / "more").mkdir()
    (tmp_path / "more/again.txt").write_bytes(content)
    done = run("dedup", "rows.data", "more", "-o", "out", "--format", form, "--threshold", "0.7")
    assert done.code == 0, done.stderr
    documents = 1 if form == "text" else 3
    kept = 1 if form == "text" else 2
    assert f"{2 * documents} documents: {kept} kept" in done.stdout
    # The output can be read in the same format, under the same name.
    again = run(
        "dedup", "out/kept/rows.data", "-o", "again", "--format", form, "--threshold", "0.7"
    )
    noun = "document" if kept == 1 else "documents"
    assert f"{kept} {noun}: {kept} kept, 0 removed" in again.stdout, again.stderr


def test_csv_is_read_from_standard_input(programs, tmp_path):
    done = programs.run(
        "dedup", "-", "-o", "out", "--format", "csv", "-t", "0.7", cwd=tmp_path, stdin=csv_of(ROWS)
    )
    assert done.code == 0, done.stderr
    assert removed(tmp_path / "out") == {"b": "a"}
    (kept,) = (tmp_path / "out/kept").iterdir()
    assert kept.read_text() == csv_of([ROWS[0], ROWS[2]])


def test_a_json_array_is_read_from_standard_input(programs, tmp_path):
    done = programs.run(
        "dedup", "-", "-o", "out", "-t", "0.7", cwd=tmp_path, stdin=json.dumps(ROWS)
    )
    assert done.code == 0, done.stderr
    assert removed(tmp_path / "out") == {"b": "a"}


def test_kept_elements_of_an_array_keep_their_bytes(tmp_path):
    spelled = [
        f'{{"text":  "{PAGE}",\n   "id": "a"}}',
        f'{{"id":"b","text":"{NEAR}"}}',
        '{"id": "c", "text": "\\u00e9"}',
    ]
    (tmp_path / "rows.json").write_text(
        f"\ufeff [ {spelled[0]} , {spelled[1]},7,{spelled[2]} ]", "utf-8"
    )
    report = corpora.deduplicate([tmp_path / "rows.json"], tmp_path / "out", threshold=0.7)
    assert removed(tmp_path / "out") == {"b": "a"}
    assert report.rejected.to_pylist()[0] | {"reason": ""} == {
        "file": "rows.json",
        "row": 3,
        "reason": "",
    }
    assert (tmp_path / "out/kept/rows.json").read_text(
        "utf-8"
    ) == f"[\n{spelled[0]},\n{spelled[2]}\n]\n"
    corpora.deduplicate([tmp_path / "rows.json"], tmp_path / "marked", threshold=0.7, mark=True)
    marked = json.loads((tmp_path / "marked/kept/rows.json").read_text("utf-8"))
    assert [(row["id"], row["neardup_kept"], row["neardup_kept_id"]) for row in marked] == [
        ("a", True, None),
        ("b", False, "a"),
        ("c", True, None),
    ]


@pytest.mark.parametrize("content", ["[", '[{"text": "a"}', '[{"text": "a"}] x', "[1,,2]"])
def test_broken_array_fails_and_leaves_no_output(content, run, tmp_path):
    (tmp_path / "rows.json").write_text(content)
    done = run("dedup", "rows.json", "-o", "out")
    assert done.code == 1
    assert "rows.json is not a readable JSON array: " in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_array_that_does_not_fit_in_memory_is_an_error_with_a_hint(run, tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([{"text": "x" * 1000}] * 40_000))
    done = run("dedup", "rows.json", "-o", "out", "--memory", "400MB")
    assert done.code == 1
    assert "rows.json is a JSON array, which must fit in memory" in done.stderr
    assert "--memory 413MB or more, or rewrite it as JSON Lines" in done.stderr.replace("\n", " ")


def test_an_array_is_bounded_by_the_free_memory_where_no_limit_is_set(tmp_path, monkeypatch):
    (tmp_path / "rows.json").write_text(json.dumps([{"text": "x" * 1000}] * 40_000))
    monkeypatch.setattr("neardup.io.formats.json_array.free_bytes", lambda: 10**8)
    with pytest.raises(DataError, match="it takes more than 400,000,000 bytes"):
        neardup.neighbours(tmp_path / "rows.json", format="json")


def test_only_an_oversized_element_is_rejected(tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([ROWS[0], {"text": "x" * 3000}, ROWS[2]]))
    report = corpora.deduplicate([tmp_path / "rows.json"], tmp_path / "out", max_document=2000)
    assert (report.num_kept, report.num_rejected) == (2, 1)
    assert (
        "more than the 2,000 that max_document allows" in report.rejected.to_pylist()[0]["reason"]
    )


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "arrow", "arrows"])
def test_columns_within_objects_are_named_with_dots(form, tmp_path):
    rows = [
        {"meta": {"id": row["id"], "site": {"lang": "en"}}, "data": {"text": row["text"], "n": 1}}
        for row in ROWS
    ]
    rows.insert(1, {"meta": {"id": "x", "site": None}, "data": None})
    path = tmp_path / f"rows.{form}"
    content = json.dumps(rows).encode() if form == "json" else corpora.encoded(rows, form)
    path.write_bytes(content)
    names = {"text_column": "data.text", "id_column": "meta.id", "group_column": "meta.site.lang"}
    report = corpora.deduplicate([path], tmp_path / "out", threshold=0.7, **names)
    assert removed(tmp_path / "out") == {"b": "a"}
    assert [row["row"] for row in report.rejected.to_pylist()] == [2]
    assert report.columns == {"text": "data.text", "id": "meta.id", "group": "meta.site.lang"}


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_a_column_with_a_dot_in_its_name_takes_precedence_over_a_nested_field(form, tmp_path):
    rows = [{"data.text": row["text"], "data": {"text": str(at)}} for at, row in enumerate(ROWS)]
    path = tmp_path / f"rows.{form}"
    path.write_bytes(corpora.encoded(rows, form))
    report = corpora.deduplicate([path], tmp_path / "out", threshold=0.7, text_column="data.text")
    assert report.num_removed == 1


def test_a_nested_column_that_does_not_exist_is_an_error(tmp_path):
    path = corpora.write_json_lines(tmp_path / "rows.jsonl", [{"data": {"text": PAGE}}])
    with pytest.raises(DataError, match=r"`text_column` names 'data\.body', a column that no row"):
        corpora.deduplicate([path], tmp_path / "out", text_column="data.body")


@pytest.mark.parametrize(
    "encoding", ["latin-1", "cp1252", "utf-16", "utf-16-be", "utf-8-sig", "gb18030"]
)
@pytest.mark.parametrize("form", ["jsonl", "csv", "json", "txt", "lines"])
def test_kept_rows_are_written_in_the_encoding_they_came_in(encoding, form, tmp_path):
    rows = [
        {"id": "a", "text": ACCENTED},
        {"id": "b", "text": f"{ACCENTED} !"},
        {"id": "c", "text": "tout à fait autre"},
    ]
    spelled = [json.dumps(row, ensure_ascii=False) for row in rows]
    whole, kept = {
        "jsonl": ("\n".join(spelled) + "\n", f"{spelled[0]}\n{spelled[2]}\n"),
        "json": (f"[{','.join(spelled)}]", f"[\n{spelled[0]},\n{spelled[2]}\n]\n"),
        "csv": (csv_of(rows), csv_of([rows[0], rows[2]])),
        "lines": (
            "".join(f"{row['text']}\n" for row in rows),
            f"{rows[0]['text']}\n{rows[2]['text']}\n",
        ),
        "txt": (ACCENTED, ACCENTED),
    }[form]
    path = tmp_path / f"rows.{form.replace('lines', 'txt')}"
    path.write_bytes(whole.encode(encoding))
    report = corpora.deduplicate([path], tmp_path / "out", encoding=encoding, lines=form == "lines")
    assert (report.num_rejected, report.num_removed) == (0, 0 if form == "txt" else 1)
    # Without a byte order mark, because the kept lines or records are cut out of a file that has
    # one.
    mark_less = "utf-8" if encoding == "utf-8-sig" and form != "txt" else encoding
    written = (tmp_path / "out/kept" / path.name).read_bytes()
    assert written in (kept.encode(encoding), kept.encode(mark_less))


def test_big_endian_stays_big_endian(tmp_path):
    content = "\ufeff" + "".join(f"{row['text']}\n" for row in ROWS)
    (tmp_path / "rows.txt").write_bytes(content.encode("utf-16-be"))
    report = corpora.deduplicate(
        [tmp_path / "rows.txt"], tmp_path / "out", encoding="utf-16", lines=True, threshold=0.7
    )
    assert report.num_removed == 1
    kept = f"\ufeff{PAGE}\n{OTHER}\n"
    assert (tmp_path / "out/kept/rows.txt").read_bytes() == kept.encode("utf-16-be")


def test_only_a_line_that_cannot_be_decoded_is_rejected(tmp_path):
    lines = [PAGE.encode("cp1252"), b"\x81 undefined", "été".encode("cp1252")]
    (tmp_path / "rows.txt").write_bytes(b"\n".join(lines))
    report = corpora.deduplicate(
        [tmp_path / "rows.txt"], tmp_path / "out", encoding="cp1252", lines=True
    )
    assert report.rejected.to_pylist() == [
        {"file": "rows.txt", "row": 2, "reason": "not valid cp1252"}
    ]
    assert (tmp_path / "out/kept/rows.txt").read_bytes() == lines[0] + b"\n" + lines[2]


def test_a_large_encoded_file_can_be_split_at_any_byte(tmp_path, monkeypatch):
    corpora.cut(monkeypatch, batch_bytes=300, part_bytes=500)
    texts = [f"{ACCENTED} {number}" for number in range(200)]
    (tmp_path / "rows.txt").write_bytes("\n".join(texts).encode("utf-16"))
    settings = {"lines": True, "unit": "char", "threshold": 1.0}
    report = corpora.deduplicate(
        [tmp_path / "rows.txt"], tmp_path / "out", encoding="utf-16", **settings
    )
    assert (report.documents, report.num_removed, report.num_rejected) == (200, 0, 0)


CODE = "def add(first, second):\n    total = first + second\n    print('the total is', total)\n    return total\n"


def test_a_folder_of_source_code_is_read_and_what_is_left_out_is_counted(run, tmp_path):
    folder = tmp_path / "homework"
    for name, content in {
        "ann/main.py": CODE,
        "bob/main.py": CODE.replace("total", "total", 1),
        "bob/README": OTHER,
        "bob/photo.png": "\0\1\2",
        "bob/core": "\0\1\2",
        "bob/.git/config": "hidden",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    done = run("dedup", "homework", "-o", "out")
    assert done.code == 0, done.stderr
    assert removed(tmp_path / "out") == {"bob/main.py": "ann/main.py"}
    assert "2 files were left out (1 with no extension, 1 with .png)" in done.stderr
    assert "--format text" in done.stderr
    everything = run("dedup", "homework", "-o", "all", "--format", "text")
    assert "5 documents" in everything.stdout
    assert "left out" not in everything.stderr


def test_a_folder_of_tables_is_not_read_for_source_code(run, tmp_path):
    corpora.write_json_lines(tmp_path / "data/rows.jsonl", ROWS)
    (tmp_path / "data/build.py").write_text(CODE)
    (tmp_path / "data/_SUCCESS").write_text("")
    done = run("dedup", "data", "-o", "out")
    assert "3 documents" in done.stdout
    assert "1 file was left out (1 with .py)" in done.stderr


def test_named_files_and_globs_with_any_extension_are_documents(run, tmp_path):
    (tmp_path / "essay.tex").write_text(PAGE)
    (tmp_path / "essay.odd").write_text(PAGE)
    (tmp_path / "Makefile").write_text(OTHER)
    done = run("dedup", "essay.*", "Makefile", "-o", "out")
    assert done.code == 0, done.stderr
    assert removed(tmp_path / "out") == {"essay.tex": "essay.odd"}
    clusters = pq.read_table(tmp_path / "out/clusters.parquet").column("doc_id").to_pylist()
    assert clusters == ["essay.odd", "essay.tex", "Makefile"]
    again = run("explain", "out", "essay.tex")
    assert again.code == 0, again.stderr


@pytest.mark.parametrize("name", ["rows.zip", "rows.tar.gz", "rows.jsonl.xz"])
def test_an_archive_is_an_error(name, run, tmp_path):
    (tmp_path / name).write_bytes(b"PK")
    done = run("dedup", name, "-o", "out")
    assert done.code == 1
    assert f"{name} is an archive, or compressed in a way that cannot be read" in done.stderr


def test_kept_documents_of_whole_files_keep_their_names(tmp_path):

    for name, text in (("a.txt", PAGE), ("b.txt", PAGE), ("c.txt", OTHER)):
        (tmp_path / "in" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    neardup.deduplicate(tmp_path / "in", out=tmp_path / "out")
    assert restore(tmp_path / "out").kept.column("doc_id").to_pylist() == ["a.txt", "c.txt"]


def test_arrow_null_structs_have_no_text(tmp_path):
    kind = pa.struct([("text", pa.string())])
    column = pa.StructArray.from_arrays(
        [pa.array([PAGE, "hidden"])], ["text"], mask=pa.array([False, True])
    )
    pq.write_table(pa.table({"data": column.cast(kind)}), tmp_path / "rows.parquet")
    report = corpora.deduplicate(
        [tmp_path / "rows.parquet"], tmp_path / "out", text_column="data.text"
    )
    assert (report.num_kept, report.rejected.column("reason").to_pylist()) == (1, ["text is null"])
