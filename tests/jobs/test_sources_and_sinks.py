"""Every source with every output: the same documents give the same result, and kept rows are unchanged."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections import Counter

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from support import corpora
from support.corpora import EVERY_PAIR, PAGE, Truth

START = "from neardup.cli.main import main; main()"
DOCUMENTS = corpora.rows()
TRUTH = Truth(corpora.texts_of(DOCUMENTS))
KEPT_IDS = [DOCUMENTS[row]["id"] for row in TRUTH.kept]
MARKS = ("neardup_kept", "neardup_kept_id", "neardup_similarity", "neardup_cluster_size")
EVERY_FORMAT = pytest.mark.parametrize("form", corpora.FORMATS)


def as_in_csv(documents):
    return [{name: str(value) for name, value in document.items()} for document in documents]


def expected_rows(documents, form):
    return as_in_csv(documents) if form.startswith(("csv", "tsv")) else list(documents)


def marks(documents):
    """The marks of every document, as Python values."""
    sizes = Counter(kept_row for kept_row, _ in TRUTH.removed.values())
    for row, document in enumerate(documents):
        kept_row, similarity = TRUTH.removed.get(row, (None, None))
        size = 1 + sizes[row if kept_row is None else kept_row]
        values = (
            kept_row is None,
            None if kept_row is None else documents[kept_row]["id"],
            similarity,
            size,
        )
        yield document | dict(zip(MARKS, values, strict=True))


def test_the_corpus_has_removed_kept_and_empty_documents():
    assert len(TRUTH.removed) > 8
    assert len(TRUTH.kept) > 8
    assert any(not text.strip() for text in corpora.texts_of(DOCUMENTS))


@EVERY_FORMAT
def test_every_format_agrees_with_the_oracle_and_preserves_rows(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, **EVERY_PAIR)
    assert corpora.removed_rows(report) == TRUTH.removed
    assert corpora.pair_rows(report.pairs) == TRUTH.pairs
    assert [path.name for path in (tmp_path / "out" / "kept").iterdir()] == [f"corpus.{form}"]
    kept = corpora.read_rows(tmp_path / "out" / "kept" / f"corpus.{form}")
    assert kept == expected_rows([DOCUMENTS[row] for row in TRUTH.kept], form)
    assert [row["doc_id"] for row in report.clusters.to_pylist()] == [
        document["id"] for document in DOCUMENTS
    ]


def test_files_and_memory_agree(tmp_path):
    path = corpora.write_rows(tmp_path / "corpus.jsonl", DOCUMENTS)
    from_files = corpora.deduplicate([path], tmp_path / "out", pairs=True, **EVERY_PAIR)
    in_memory = neardup.find_pairs(pa.Table.from_pylist(list(DOCUMENTS)), **EVERY_PAIR)
    for name in ("removed", "pairs"):
        columns = getattr(in_memory, name).column_names
        assert (
            getattr(from_files, name).select(columns).to_pylist()
            == getattr(in_memory, name).to_pylist()
        )
    assert from_files.clusters.to_pylist() == in_memory.clusters.to_pylist()
    for fact in ("documents", "num_kept", "num_removed", "exact_duplicates", "bytes_read"):
        assert getattr(from_files, fact) == getattr(in_memory, fact)


@pytest.mark.parametrize(
    "form", [form for form in corpora.FORMATS if form.startswith(corpora.LINE_FORMATS)]
)
def test_kept_records_have_their_original_bytes(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "out", **EVERY_PAIR)
    content = corpora.unpacked(path)
    kept = corpora.unpacked(tmp_path / "out" / "kept" / f"corpus.{form}")
    if form.startswith(("csv", "tsv")):
        delimiter = "," if form.startswith("csv") else "\t"
        records = raw_records(content, delimiter)
        assert kept == b"".join([records[0], *(records[row + 1] for row in TRUTH.kept)])
    else:
        lines = content.splitlines(keepends=True)
        assert kept == b"".join(lines[row] for row in TRUTH.kept)


def raw_records(content, delimiter):
    """The bytes of each record of CSV."""
    records = []
    taken = []

    def lines():
        for line in io.BytesIO(content):
            taken.append(line)
            yield line.decode()

    for _ in csv.reader(lines(), delimiter=delimiter):
        records.append(b"".join(taken))
        taken.clear()
    return records


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows", "feather"])
def test_columns_of_every_type_round_trip_with_schema_and_metadata(form, tmp_path):
    table = pa.Table.from_pylist(list(DOCUMENTS))
    wide = {
        "nested": pa.array([[{"a": number, "b": [str(number)]}] for number in range(40)]),
        "when": pa.array(range(40), pa.timestamp("ms", tz="UTC")),
        "price": pa.array(range(40), pa.int64()).cast(pa.decimal128(30, 2)),
        "kind": pa.array(["x", None] * 20).dictionary_encode(),
        "raw": pa.array([b"\xff\x00"] * 40, pa.large_binary()),
        "nothing": pa.nulls(40),
    }
    for name, column in wide.items():
        table = table.append_column(name, column)
    table = table.replace_schema_metadata({b"who": b"me"})
    (tmp_path / f"wide.{form}").write_bytes(corpora._table_bytes(table, form))
    corpora.deduplicate([tmp_path / f"wide.{form}"], tmp_path / "out", **EVERY_PAIR)
    read = {
        "parquet": lambda path: pq.read_table(path),
        "arrows": lambda path: pa.ipc.open_stream(path.read_bytes()).read_all(),
    }.get(form, lambda path: pa.ipc.open_file(path.read_bytes()).read_all())
    kept = read(tmp_path / "out" / "kept" / f"wide.{form}")
    assert kept.schema.equals(read(tmp_path / f"wide.{form}").schema, check_metadata=True)
    assert kept.to_pylist() == table.take(TRUTH.kept).to_pylist()


def _spelled(value):
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@EVERY_FORMAT
def test_mark_writes_every_row_with_its_verdict(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "out", mark=True, **EVERY_PAIR)
    marked = corpora.read_rows(tmp_path / "out" / "kept" / f"corpus.{form}")
    expected = list(marks(DOCUMENTS))
    if form.startswith(("csv", "tsv")):
        expected = [{name: _spelled(value) for name, value in row.items()} for row in expected]
    assert marked == expected


@pytest.mark.parametrize("form", ["parquet", "arrow", "arrows"])
def test_marks_of_an_earlier_run_are_replaced_in_tables(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "first", mark=True, **EVERY_PAIR | {"threshold": 0.9})
    again = tmp_path / "first" / "kept" / path.name
    corpora.deduplicate([again], tmp_path / "second", mark=True, **EVERY_PAIR)
    assert corpora.read_rows(tmp_path / "second" / "kept" / path.name) == list(marks(DOCUMENTS))


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv.gz"])
def test_rows_of_text_are_not_marked_twice(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    corpora.deduplicate([path], tmp_path / "first", mark=True, **EVERY_PAIR)
    again = tmp_path / "first" / "kept" / path.name
    with pytest.raises(neardup.errors.DataError, match="neardup_kept"):
        corpora.deduplicate([again], tmp_path / "second", mark=True, **EVERY_PAIR)
    assert not (tmp_path / "second").exists()
    assert corpora.deduplicate([again], tmp_path / "third", **EVERY_PAIR).num_removed == len(
        TRUTH.removed
    )


@EVERY_FORMAT
def test_a_dry_run_writes_the_same_tables_and_no_rows(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    report = corpora.deduplicate([path], tmp_path / "out", dry_run=True, **EVERY_PAIR)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"removed.parquet", "clusters.parquet", "rejected.jsonl", "report.json"}
    assert corpora.removed_rows(report) == TRUTH.removed
    assert (report.num_kept, report.num_removed) == (len(TRUTH.kept), len(TRUTH.removed))


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv", "PARQUET", "Csv"])
@pytest.mark.parametrize("form", ["jsonl.zst", "tsv", "parquet", "arrows"])
def test_pairs_are_the_same_in_every_format(form, ending, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    out = tmp_path / f"pairs.{ending}"
    report = corpora.find_pairs([path], out, **EVERY_PAIR)
    assert corpora.pair_rows(report.pairs) == TRUTH.pairs
    assert list(corpora.pair_rows(report.pairs)) == sorted(TRUTH.pairs)
    beside = {path.name for path in tmp_path.iterdir()} - {path.name}
    assert beside == {out.name, f"{out.name}.rejected.jsonl", f"{out.name}.report.json"}
    if ending.lower() == "csv":
        lines = list(csv.DictReader(io.StringIO(out.read_bytes().decode(), newline="")))
        assert {
            (int(line["row_a"]) - 1, int(line["row_b"]) - 1): float(line["similarity"])
            for line in lines
        } == (TRUTH.pairs)
        assert [line["doc_a"] for line in lines] == [
            DOCUMENTS[a]["id"] for a, _ in sorted(TRUTH.pairs)
        ]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_pairs_can_be_read_back_whatever_the_ids_are(ending, tmp_path):
    names = [
        "a\u2028b",
        "c\u0085d",
        'quote " and, comma',
        "line\nbreak",
        "\ttab",
        "",
        "NULL",
        "\x00",
        "ü\u200d😀",
    ]
    documents = [{"id": name, "text": PAGE} for name in names]
    lines = [json.dumps(document, ensure_ascii=False) for document in documents]
    path = corpora.write_json_lines(tmp_path / "odd.jsonl", lines)
    report = corpora.find_pairs([path], tmp_path / f"pairs.{ending}")
    assert report.pairs.column("doc_b").to_pylist()[: len(names) - 1] == names[1:]


def test_an_unknown_extension_of_pairs_fails_before_the_work_begins(tmp_path):
    path = corpora.write_json_lines(tmp_path / "a.jsonl", [{"text": "a"}])
    with pytest.raises(neardup.errors.ConfigError, match=r"pairs\.xlsx") as caught:
        corpora.find_pairs([path], tmp_path / "pairs.xlsx")
    assert ".neardup" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


MIXED = (
    ("a/one.jsonl.gz", 0, 11),
    ("a/two.csv", 11, 18),
    ("b/c/three.parquet", 18, 30),
    ("b/four.arrows", 30, 40),
)
FIRSTS = {name: first for name, first, _ in MIXED}


def write_mixed(folder):
    for name, first, stop in MIXED:
        corpora.write_rows(folder / name, DOCUMENTS[first:stop])


@pytest.mark.parametrize(
    "inputs",
    [
        ["data"],
        ["data/**/*.*"],
        ["data/a", "data/b"],
        [f"data/{name}" for name, _, _ in MIXED],
        ["d[a]ta"],
    ],
    ids=["folder", "glob", "folders", "files", "glob of folders"],
)
def test_mixed_formats_in_folders_and_globs_are_one_corpus(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_mixed(tmp_path / "data")
    report = corpora.deduplicate(inputs, "out", pairs=True, **EVERY_PAIR)
    by_last_part = {name.rpartition("/")[2]: first for name, first, _ in MIXED}
    shortened = [
        {
            key: value.rpartition("/")[2] if key.endswith("file") else value
            for key, value in row.items()
        }
        for row in report.removed.to_pylist()
    ]
    found = {
        by_last_part[row["file"]] + row["row"] - 1: (
            by_last_part[row["kept_file"]] + row["kept_row"] - 1
        )
        for row in shortened
    }
    assert found == {row: kept for row, (kept, _) in TRUTH.removed.items()}
    kept = {path.name: path for path in (tmp_path / "out" / "kept").rglob("*") if path.is_file()}
    assert set(kept) == set(by_last_part)
    for name, first, stop in MIXED:
        expected = [DOCUMENTS[row] for row in TRUTH.kept if first <= row < stop]
        assert corpora.read_rows(kept[name.rpartition("/")[2]]) == expected_rows(
            expected, name.partition(".")[2]
        )


def test_kept_mirrors_the_relative_paths_and_holds_nothing_else(tmp_path):
    write_mixed(tmp_path / "data")
    (tmp_path / "data" / "readme.unknown").write_text("not an input")
    (tmp_path / "data" / ".hidden.jsonl").write_text("not an input")
    corpora.deduplicate([tmp_path / "data"], tmp_path / "out", **EVERY_PAIR)
    kept = tmp_path / "out" / "kept"
    assert {path.relative_to(kept).as_posix() for path in kept.rglob("*") if path.is_file()} == set(
        FIRSTS
    )


def test_files_with_the_same_name_are_distinguished_by_their_folders(tmp_path):
    for folder in ("x", "y"):
        corpora.write_json_lines(
            tmp_path / folder / "part.jsonl", [{"text": PAGE}, {"text": folder * 9}]
        )
    report = corpora.deduplicate(
        [tmp_path / "x/part.jsonl", tmp_path / "y/part.jsonl"], tmp_path / "out"
    )
    assert report.removed.select(["doc_id", "kept_id"]).to_pylist() == [
        {"doc_id": "y/part.jsonl:1", "kept_id": "x/part.jsonl:1"}
    ]
    assert (tmp_path / "out/kept/y/part.jsonl").read_text() == '{"text": "yyyyyyyyy"}\n'


def test_mixed_schemas_take_the_usual_columns_of_each_file(tmp_path):
    corpora.write_json_lines(
        tmp_path / "a.jsonl", [{"id": 1, "text": PAGE}, {"text": corpora.OTHER, "x": []}]
    )
    corpora.write_json_lines(tmp_path / "b.jsonl", [{"url": "u", "content": corpora.NEAR}])
    (tmp_path / "c.csv").write_text(f'n,body\n1,"{PAGE}"\n')
    report = corpora.deduplicate([tmp_path], tmp_path.parent / f"{tmp_path.name}-out")
    assert report.removed.column("doc_id").to_pylist() == ["u", "c.csv:1"]
    assert report.removed.column("kept_id").to_pylist() == ["1", "1"]
    assert report.columns == {"text": "text, content, body", "id": "id, url"}


def test_several_text_columns_are_joined_in_every_format(tmp_path):
    documents = [
        {"id": str(number), "title": document["text"][:9], "body": document["text"][9:]}
        for number, document in enumerate(DOCUMENTS)
    ]
    joined = Truth([f"{document['title']}\n{document['body']}" for document in documents])
    for form in ("jsonl", "csv", "tsv", "parquet", "arrow"):
        path = corpora.write_rows(tmp_path / f"corpus.{form}", documents)
        report = corpora.deduplicate(
            [path], tmp_path / f"out-{form}", text_column=("title", "body"), **EVERY_PAIR
        )
        assert corpora.removed_rows(report) == joined.removed, form
        assert report.columns["text"] == "title + body"


ITEMS = [
    ["milk", "bread", "tea"],
    ["tea", "milk", "bread"],
    ["milk", "bread", "jam"],
    ["nails"],
    [],
    ["milk"],
]


def test_items_are_compared_as_sets_in_every_format(tmp_path):
    sets = [frozenset(items) for items in ITEMS]
    expected = {
        (a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        for b in range(len(sets))
        for a in range(b)
        if sets[a] and sets[b] and len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= 0.5
    }
    for form in ("jsonl", "csv", "tsv", "parquet", "arrow", "feather", "arrows"):
        is_text = form in ("csv", "tsv")
        documents = [
            {"id": str(at), "basket": " ".join(items) if is_text else items}
            for at, items in enumerate(ITEMS)
        ]
        path = corpora.write_rows(tmp_path / f"baskets.{form}", documents)
        report = corpora.find_pairs(
            [path], tmp_path / f"{form}.parquet", items_column="basket", **EVERY_PAIR
        )
        assert corpora.pair_rows(report.pairs) == expected, form


def test_numbers_have_the_same_spelling_in_every_format(tmp_path):
    """As ids and as groups: 1 and 1.0 in another file are the same group."""
    numbers = [1.0, 2.5, 1e20, 1e-7, -0.0, 123456.75, 1e15, 1 / 3]
    spelled = []
    for form in ("jsonl", "parquet", "arrow"):
        documents = [{"id": number, "text": PAGE, "g": number} for number in numbers]
        path = corpora.write_rows(tmp_path / f"corpus.{form}", documents)
        report = corpora.deduplicate([path], tmp_path / f"out-{form}")
        spelled.append(report.clusters.column("doc_id").to_pylist())
    assert spelled[0] == spelled[1] == spelled[2]
    assert list(map(float, spelled[0])) == numbers
    paths = [tmp_path / f"corpus.{form}" for form in ("jsonl", "parquet", "arrow")]
    report = corpora.deduplicate(paths, tmp_path / "out", group_column="g")
    assert report.num_kept == len(numbers)


ONE_LINE = [" ".join(text.split()) for text in corpora.texts_of(DOCUMENTS) if text.split()]


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "txt.zst", "log", "md"])
def test_lines_are_documents(ending, tmp_path):
    path = tmp_path / f"lines.{ending}"
    truth = Truth(ONE_LINE)
    content = "".join(f"{line}\n" for line in ONE_LINE).encode()
    path.write_bytes(corpora.packed(content, path.suffix))
    report = corpora.deduplicate([path], tmp_path / "out", lines=True, pairs=True, **EVERY_PAIR)
    assert corpora.removed_rows(report) == truth.removed
    assert corpora.pair_rows(report.pairs) == truth.pairs
    lines = content.splitlines(keepends=True)
    assert corpora.unpacked(tmp_path / "out/kept" / path.name) == b"".join(
        lines[row] for row in truth.kept
    )
    assert report.kept.column("text").to_pylist() == [ONE_LINE[row] for row in truth.kept]


@pytest.mark.parametrize("ending", ["txt", "md", "rst", "txt.gz", "text.zst"])
def test_a_text_file_is_one_document_and_kept_files_are_copied(ending, tmp_path):
    texts = corpora.texts_of(DOCUMENTS)[:20]
    truth = Truth(texts)
    for number, text in enumerate(texts):
        path = tmp_path / "in" / f"{number:02}.{ending}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(corpora.packed(text.encode(), path.suffix))
    report = corpora.deduplicate([tmp_path / "in"], tmp_path / "out", **EVERY_PAIR)
    firsts = {f"{number:02}.{ending}": number for number in range(20)}
    assert corpora.removed_rows(report, firsts) == truth.removed
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").iterdir()}
    names = [f"{row:02}.{ending}" for row in truth.kept]
    assert kept == {name: (tmp_path / "in" / name).read_bytes() for name in names}


@pytest.mark.parametrize("form", ["html", "jsonl", "parquet", "csv"])
def test_html_is_compared_by_its_visible_text(form, tmp_path):
    pages = [
        f"<html><head><title>x{at}</title><style>p {{width: {at}}}</style></head><body><p>{text}</p></body></html>"
        for at, text in enumerate([PAGE, corpora.NEAR, corpora.OTHER])
    ]
    if form == "html":
        for at, page in enumerate(pages):
            (tmp_path / f"{at}.html").write_text(page)
        inputs = sorted(tmp_path.glob("*.html"))
    else:
        inputs = [
            corpora.write_rows(
                tmp_path / f"pages.{form}",
                [{"id": str(at), "text": page} for at, page in enumerate(pages)],
            )
        ]
    report = corpora.deduplicate(inputs, tmp_path / "out", html=True)
    similarity = neardup.compare(PAGE, corpora.NEAR).jaccard
    assert report.removed.column("similarity").to_pylist() == [similarity]
    assert report.num_kept == 2


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv.zst", "parquet", "arrow", "arrows"])
def test_addresses_of_fsspec_are_sources(form, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    remote = fsspec.filesystem("memory")
    remote.pipe(f"/{tmp_path.name}/corpus.{form}", path.read_bytes())
    for number, address in enumerate([f"corpus.{form}", "", "*"]):
        out = tmp_path / f"out{number}"
        report = corpora.deduplicate(
            [f"memory://{tmp_path.name}/{address}".rstrip("/")], out, **EVERY_PAIR
        )
        assert corpora.removed_rows(report) == TRUTH.removed
        kept = corpora.read_rows(out / "kept" / path.name)
        assert kept == expected_rows([DOCUMENTS[row] for row in TRUTH.kept], form)


def piped(arguments, content, folder):
    return subprocess.run(
        [sys.executable, "-c", START, *map(str, arguments)],
        input=content,
        cwd=folder,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet", "arrow", "arrows"])
def test_standard_input_is_a_source(form, programs, tmp_path):
    content = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS).read_bytes()
    options = ["--bands", "20", "--rows", "1", "--no-signature-filter", "-t", "0.5", "--size", "2"]
    options += ["--delimiter", ","] if form == "csv" else []
    command = ["dedup", "-", "-o", "out", *options]
    if form in (
        "jsonl",
        "parquet",
    ):  # rows that a pipe delivers one by one, and a footer that is read first
        finished = piped(command, content, tmp_path)
        assert finished.returncode == 0, finished.stderr
    else:
        assert programs.run(*command, cwd=tmp_path, stdin=content).code == 0
    removed = pq.read_table(tmp_path / "out" / "removed.parquet")
    assert removed.column("doc_id").to_pylist() == [DOCUMENTS[row]["id"] for row in TRUTH.removed]
    kept = corpora.read_rows(tmp_path / "out" / "kept" / f"stdin.{form}")
    assert kept == expected_rows([DOCUMENTS[row] for row in TRUTH.kept], form)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_same_standard_input_gives_the_same_bytes(tmp_path):
    content = corpora.encoded(DOCUMENTS, "jsonl")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert piped(["dedup", "-", "-o", "out", "-q"], content, tmp_path / name).returncode == 0
    first, second = (corpora.contents(tmp_path / name / "out") for name in ("one", "two"))
    assert first == second
