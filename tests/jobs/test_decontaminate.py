"""Items of benchmarks in documents, end to end: planted in texts, on files of every format, and as a run."""

from __future__ import annotations

import csv
import json
import random
import signal
import tempfile
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.engines.local.limits import Memory
from support import item_oracle, oracles
from support.corpora import contents, write_rows
from support.passage_texts import repetitive_texts, wrapped

COMMON = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an".split()
TOPICS = (
    "engine river market enzyme treaty planet voltage muscle comet reactor glacier ballot magnet kernel tissue canal "
    "anchor plasma senate copper lattice monsoon quarry tariff vaccine wetland pulley isotope tundra fungus beacon"
).split()


def prose(rng, count):
    """Words as in prose: half of them common, the others of a topic, with endings."""
    return [
        rng.choice(COMMON) if rng.random() < 0.5 else rng.choice(TOPICS) + rng.choice(["", "s", "al", "ing"])
        for _ in range(count)
    ]  # fmt: skip


def sentence(words):
    return " ".join(words).capitalize() + "."


def write_items(path, texts, **more):
    rows = [{"id": f"q{at}", "question": text} | more for at, text in enumerate(texts)]
    write_rows(path, rows)
    return path


def look(documents, items, tmp_path, **settings):
    bench = write_items(tmp_path / "bench.jsonl", items)
    return neardup.decontaminate(documents, against=bench, item_column="question", **settings)


def hits(report):
    return {(row["doc_id"], row["item_id"]) for row in report.contaminated.to_pylist()}


# What is found


@pytest.mark.parametrize("size", [20, 24, 60])
@pytest.mark.parametrize("edit", ["changed", "inserted", "deleted"])
def test_an_item_with_one_edit_anywhere_is_found(size, edit, tmp_path):
    rng = random.Random(size)
    item = prose(rng, size)
    documents = []
    for at in range(size):
        kept = item[at:] if edit == "inserted" else item[at + 1 :]
        new = [] if edit == "deleted" else [rng.choice([*COMMON, "zebra"])]
        documents.append(sentence([*prose(rng, 40), *item[:at], *new, *kept, *prose(rng, 40)]))
    documents += [sentence(prose(rng, 100)) for _ in range(50)]
    report = look(documents, [" ".join(item)], tmp_path)
    assert hits(report) == {(at, "q0") for at in range(size)}
    assert min(report.contaminated.column("score").to_pylist()) >= 0.8
    [row] = report.items.to_pylist()
    assert (row["status"], row["documents"], row["words"]) == ("found", size, size)


@pytest.mark.parametrize("where", ["beginning", "middle", "end", "all"])
def test_an_item_is_found_wherever_it_stands_and_however_it_is_printed(where, tmp_path):
    rng = random.Random(3)
    before = 0 if where in ("beginning", "all") else 60
    after = 0 if where in ("end", "all") else 60
    items = [" ".join(prose(rng, count)) for count in (8, 12, 19, 24, 60)]
    prints = [
        str,
        str.upper,
        lambda text: text.replace(" ", "\n"),
        lambda text: text.replace(" ", ", ", 3).replace(" the ", " «the» "),
        lambda text: wrapped(rng, text.split()),
        lambda text: f"({text})?!",
    ]
    documents = [
        f"{' '.join(prose(rng, before))} {shown(item)} {' '.join(prose(rng, after))}"
        for item in items
        for shown in prints
    ]
    report = look(documents, items, tmp_path)
    expected = [(doc, f"q{doc // len(prints)}") for doc in range(len(documents))]
    rows = report.contaminated.to_pylist()
    assert [(row["doc_id"], row["item_id"]) for row in rows] == expected
    for row in rows:
        text = documents[row["doc_id"]]
        item = items[int(row["item_id"][1:])]
        assert row["score"] == 1
        assert oracles.words(text[row["start"] : row["end"]]) == item.split()
        span = text.encode()[row["start_byte"] : row["end_byte"]].decode()
        assert span == text[row["start"] : row["end"]]
        assert item[row["item_start"] : row["item_end"]] == item
        assert row["matched_words"] == len(item.split())


def test_short_items_must_be_complete_and_the_shortest_are_listed_as_too_short(tmp_path):
    rng = random.Random(5)
    items = [prose(rng, count) for count in (0, 1, 7, 8, 12, 19)]
    documents = [" ".join(item) for item in items[1:]]
    documents += [" ".join([*item[:4], "zebra", *item[4:]]) for item in items[3:]]
    documents += [" ".join(item[1:]) for item in items[3:]]
    report = look(documents, [" ".join(item) or "?" for item in items], tmp_path)
    assert hits(report) == {(2, "q3"), (3, "q4"), (4, "q5")}
    table = report.items.to_pylist()
    assert [row["status"] for row in table] == ["too_short"] * 3 + ["found"] * 3
    assert [row["words"] for row in table] == [0, 1, 7, 8, 12, 19]
    assert [row["best_score"] for row in table] == [None] * 3 + [1.0] * 3
    [bench] = report.benchmarks.to_pylist()
    assert (bench["items"], bench["found"], bench["too_short"], bench["documents"]) == (6, 3, 3, 3)


def test_a_half_of_an_item_or_its_phrases_are_not_found(tmp_path):
    rng = random.Random(6)
    phrase = "which of the following statements is the best answer to the question about"
    items = [f"{phrase} {' '.join(prose(rng, 24))}" for _ in range(5)]
    documents = [f"{' '.join(prose(rng, 50))} {phrase}" for _ in range(40)]
    documents += [" ".join(item.split()[:18]) for item in items]
    documents += [" ".join(sorted(item.split())) for item in items]
    documents += [f"{items[0]} {' '.join(prose(rng, 50))}"]
    assert hits(look(documents, items, tmp_path)) == {(50, "q0")}


def test_a_question_without_its_answer_is_found_if_it_is_most_of_the_item(tmp_path):
    rng = random.Random(7)
    question = " ".join(prose(rng, 50))
    answers = {"short": " ".join(prose(rng, 5)), "long": " ".join(prose(rng, 50))}
    rows = [{"id": name, "q": question, "a": answer} for name, answer in answers.items()]
    write_rows(tmp_path / "bench.jsonl", rows)
    report = neardup.decontaminate(
        [f"Asked: {question}", f"{question}\n{answers['long']}"],
        against=tmp_path / "bench.jsonl",
        item_column=["q", "a"],
    )
    assert hits(report) == {(0, "short"), (1, "short"), (1, "long")}


def test_changed_numbers_are_found_with_fold_numbers(tmp_path):
    item = (
        "Natalia sold 48 clips in April and then 12 fewer clips in each of the 3 months after it, "
        "at 5 cents each; how many cents did she earn in 2023?"
    )
    changed = item.translate(str.maketrans("0123456789", "5678901234"))
    one = item.replace("48", "84")
    assert hits(look([changed, one], [item], tmp_path)) == {(1, "q0")}
    report = look([changed, one], [item], tmp_path, fold_numbers=True)
    assert report.contaminated.column("score").to_pylist() == [1, 1]


SCRIPTS = {
    "japanese": "次の文章を読んで、筆者の主張として最も適切なものを一つ選びなさい。",
    "russian": "какое из следующих чисел является решением уравнения если известно что сумма двух его корней равна "
    "семи а их произведение равно двенадцати при любом значении параметра",
    "arabic": "ما هي عاصمة الدولة التي تقع في شمال القارة والتي يبلغ عدد سكانها أكثر من عشرين مليون نسمة وتشتهر بزراعة "
    "القمح وصناعة النسيج منذ القرن التاسع عشر",
    "hindi": "निम्नलिखित में से कौन सा कथन सही है यदि किसी त्रिभुज के तीनों कोणों का योग एक सौ अस्सी अंश होता है और उसकी "
    "दो भुजाएँ बराबर हैं",
    "french": "quel élève a déjà été interrogé à l'école où le maître préfère répéter la même règle après chaque leçon "
    "qu'il a donnée à côté",
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_items_of_every_script_and_normal_form_are_found(script, form, tmp_path):
    item = SCRIPTS[script]
    words = oracles.words(item)
    edited = item.replace(words[9], "x", 1)
    documents = [unicodedata.normalize(form, f"« {text} » x") for text in (item, edited)]
    report = look([*documents, "nothing of it"], [item], tmp_path)
    rows = report.contaminated.to_pylist()
    assert [(row["doc_id"], row["score"] == 1) for row in rows] == [(0, True), (1, False)]
    found = documents[0][rows[0]["start"] : rows[0]["end"]]
    assert oracles.words(unicodedata.normalize("NFC", found)) == words


@given(st.integers(0, 2**32), st.sampled_from([3, 8, 30]), st.sampled_from([0.5, 0.8, 1.0]))
def test_scores_are_those_of_the_oracle(seed, vocabulary, threshold):
    rng = random.Random(seed)
    texts = repetitive_texts(rng, 14, num_docs=12, vocabulary=vocabulary)
    items = [text for text in texts[8:] if text] or ["none"]
    documents = [wrapped(rng, text.split()) for text in texts[:8]]
    documents += [item.replace(" w1 ", " ", 1) for item in items[:2]]
    words = [list(map(oracles.words, side)) for side in (documents, items)]
    with tempfile.TemporaryDirectory() as folder:
        report = look(documents, items, Path(folder), threshold=threshold)
        grams = look(documents, items, Path(folder), rule="ngram13")
    assert best(report) == item_oracle.scores(*words, threshold)
    assert best(grams) == item_oracle.gram_scores(*words)


def best(report):
    found = {}
    for row in report.contaminated.to_pylist():
        pair = row["doc_id"], int(row["item_id"][1:])
        found[pair] = max(row["score"], found.get(pair, 0))
    return found


def test_by_the_13_gram_rule_thirteen_words_in_a_row_are_enough(tmp_path):
    rng = random.Random(8)
    items = [" ".join(prose(rng, count)) for count in (12, 13, 26)]
    half = items[2].split()
    documents = [items[0], items[1], " ".join(half[:13]), " ".join([*half[:12], "x", *half[13:25]])]
    report = look(documents, items, tmp_path, rule="ngram13")
    assert best(report) == {(1, 1): 1.0, (2, 2): 0.5}
    assert report.items.column("status").to_pylist() == ["too_short", "found", "found"]
    assert report.contaminated.column("matched_words").to_pylist() == [13, 13]


# Benchmarks


def test_benchmarks_of_the_same_name_duplicates_and_missing_ids_are_told_apart(tmp_path):
    rng = random.Random(9)
    text = " ".join(prose(rng, 24))
    for name, rows in {
        "one": [{"id": "a", "text": text}, {"id": None, "text": text}, {"id": "a", "text": text}],
        "two": [{"id": 7, "text": text}],
    }.items():
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "test.jsonl", rows)
    report = neardup.decontaminate([text], against=[tmp_path / "one", tmp_path / "two"])
    listed = report.items.select(["benchmark", "item_id", "item_row"]).to_pylist()
    names = report.benchmarks.column("benchmark").to_pylist()
    assert len(set(names)) == 2
    assert [tuple(row.values()) for row in listed] == [
        (names[0], "a", 1),
        (names[0], f"{names[0]}:2", 2),
        (names[0], "a", 3),
        (names[1], "7", 1),
    ]
    assert report.benchmarks.column("found").to_pylist() == [3, 1]
    assert report.benchmarks.column("documents").to_pylist() == [1, 1]
    assert report.contaminated.column("item_row").to_pylist() == [1, 2, 3, 1]


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "json"])
def test_a_benchmark_in_any_format_is_read(ending, tmp_path):
    text = " ".join(prose(random.Random(1), 24))
    write_rows(tmp_path / f"bench.{ending}", [{"id": "a", "question": text}])
    report = neardup.decontaminate(
        [text], against=tmp_path / f"bench.{ending}", item_column="question"
    )
    assert hits(report) == {(0, "a")}


def test_a_benchmark_can_be_the_input(tmp_path):
    rng = random.Random(2)
    bench = write_items(tmp_path / "bench.jsonl", [" ".join(prose(rng, 24)) for _ in range(3)])
    report = neardup.decontaminate(
        bench, against=bench, item_column="question", text_column="question"
    )
    assert [(row["doc_id"], row["item_id"]) for row in report.contaminated.to_pylist()] == [
        (f"q{at}", f"q{at}") for at in range(3)
    ]


def test_items_are_not_parsed_as_html_and_documents_are(tmp_path):
    item = " ".join(["if a < b and c > d then", *prose(random.Random(4), 20)])
    page = f"<html><body><p>{item.replace('<', '&lt;').replace('>', '&gt;')}</p></body></html>"
    report = look([page], [item], tmp_path, html=True, html_content="all")
    assert report.contaminated.column("score").to_pylist() == [1]


def test_rows_of_benchmarks_that_are_no_items_are_counted_listed_and_fail_if_strict(tmp_path):
    rng = random.Random(2)
    item = " ".join(prose(rng, 24))
    bench = tmp_path / "bench.jsonl"
    lines = [json.dumps({"id": 1, "text": text}) for text in (None, item, 3)]
    bench.write_text("\n".join([*lines, "{broken"]) + "\n", "utf-8")
    with pytest.warns(UserWarning, match=r"3 rows of `against` .* bench.jsonl row 1: text is null"):
        report = neardup.decontaminate([item, None], against=bench)
    rows = report.rejected.select(["file", "row"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        *((("bench.jsonl"), row) for row in (1, 3, 4)),
        (None, 1),
    ]
    assert (report.num_items, report.num_items_rejected, report.num_rejected) == (1, 3, 1)
    with pytest.raises(neardup.NearDupError, match=r"bench\.jsonl row 1 cannot be used"):
        neardup.decontaminate([item], against=bench, strict=True)
    bench.write_text(lines[0] + "\n", "utf-8")
    with pytest.raises(neardup.NearDupError, match=r"no row of `against` can be used: .*is null"):
        neardup.decontaminate([item], against=bench)


def test_documents_without_words_have_no_items(tmp_path):
    item = " ".join(prose(random.Random(2), 24))
    report = look(["", "...", None, item], [item], tmp_path)
    assert hits(report) == {(3, "q0")}
    assert report.mask.tolist() == [True, True, False, False]
    assert look([], [item], tmp_path).contaminated.num_rows == 0


def test_an_item_of_one_word_and_a_text_of_it_take_no_square_of_time(tmp_path):
    report = look([" ".join(["yes"] * 100_000)], [" ".join(["yes"] * 25)], tmp_path)
    assert report.items.column("best_score").to_pylist() == [1.0]


# Files


ITEM = " ".join(prose(random.Random(1), 24))
EDITED = " ".join([*ITEM.split()[:10], "zebra", *ITEM.split()[11:]])
ROWS = [
    {"id": "a", "text": f"Tides today. {EDITED.upper()}! And the news.", "n": 1},
    {"id": "b", "text": ITEM, "n": 2},
    {"id": "c", "text": "nothing of that kind", "n": 3},
]
FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "csv", "tsv", "parquet", "arrow", "json")


def run_on(path, out, **settings):
    bench = write_items(path.parent / "bench" / "bench.jsonl", [ITEM, "too short", "zebra " * 30])
    return neardup.decontaminate(
        path, out=path.parent / out, against=bench, item_column="question", **settings
    )


@pytest.fixture
def bench_folder(tmp_path):
    (tmp_path / "bench").mkdir()


@pytest.mark.usefixtures("bench_folder")
@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_every_format_are_removed_cut_and_marked(ending, tmp_path):
    path = tmp_path / f"train.{ending}"
    write_rows(path, ROWS)
    report = run_on(path, "removed", remove=True)
    kept = report.kept.to_pylist()
    assert [(row["id"], row["text"], int(row["n"])) for row in kept] == [("c", ROWS[2]["text"], 3)]
    assert report.removed.column("doc_id").to_pylist() == ["a", "b"]
    assert report.removed.column("kept_id").null_count == 2
    assert (report.num_kept, report.num_removed, report.num_contaminated) == (1, 2, 2)
    report = run_on(path, "cut", cut=True)
    assert [(row["id"], row["text"]) for row in report.kept.to_pylist()] == [
        ("a", "Tides today. And the news."),
        ("c", ROWS[2]["text"]),
    ]
    assert report.removed.column("doc_id").to_pylist() == ["b"]
    report = run_on(path, "around", cut=True, around=2, min_left=2)
    assert [row["text"] for row in report.kept.to_pylist()] == ["news.", ROWS[2]["text"]][1:]
    assert report.removed.column("doc_id").to_pylist() == ["a", "b"]
    run_on(path, "marked", mark=True)
    marked = neardup.find_passages(
        tmp_path / "marked" / "kept" / path.name, out=tmp_path / "rows", cut=True
    )
    rows = marked.cut().to_pylist()
    assert [int(row["neardup_repeated_words"]) for row in rows] == [24, 24, 0]
    assert [float(row["neardup_repeated_share"]) for row in rows] == [24 / 29, 1, 0]


@pytest.mark.usefixtures("bench_folder")
def test_nothing_is_written_but_tables_unless_it_is_asked_for(tmp_path):
    path = tmp_path / "train.jsonl"
    write_rows(path, ROWS)
    report = run_on(path, "found")
    assert sorted(file.name for file in (tmp_path / "found").iterdir()) == sorted(
        [
            *("benchmarks.parquet", "contaminated.parquet", "items.parquet", "rejected.jsonl"),
            *("report.json", "weights.parquet"),
        ]
    )
    assert (report.num_kept, report.num_removed) == (3, 0)
    rows = report.contaminated.to_pylist()
    assert [(row["doc_id"], row["file"], row["row"]) for row in rows] == [
        ("a", "train.jsonl", 1),
        ("b", "train.jsonl", 2),
    ]
    run_on(path, "dry", remove=True, dry_run=True)
    assert not (tmp_path / "dry" / "kept").exists()
    assert pq.read_table(tmp_path / "dry" / "removed.parquet").num_rows == 2


@pytest.mark.usefixtures("bench_folder")
def test_a_finished_run_is_loaded_with_its_tables(tmp_path):
    path = tmp_path / "train.jsonl"
    write_rows(path, ROWS)
    report = run_on(path, "found", remove=True)
    again = neardup.load(tmp_path / "found")
    for name in ("contaminated", "items", "benchmarks", "removed", "kept", "rejected"):
        assert getattr(again, name).equals(getattr(report, name)), name
    assert str(again).startswith("3 documents: 2 with 1 of 3 items of benchmarks;")
    assert (again.num_items, again.num_too_short) == (3, 1)


@pytest.mark.usefixtures("bench_folder")
@pytest.mark.parametrize("name", ["contaminated", "items", "benchmarks"])
def test_a_null_in_a_table_of_a_finished_run_is_damage(name, tmp_path):
    path = tmp_path / "train.jsonl"
    write_rows(path, ROWS)
    run_on(path, "found")
    file = tmp_path / "found" / f"{name}.parquet"
    table = pq.read_table(file)
    nulls = pa.nulls(table.num_rows, table.schema.field("benchmark").type)
    at = table.column_names.index("benchmark")
    pq.write_table(table.set_column(at, "benchmark", nulls), file)
    with pytest.raises(neardup.NearDupError, match="'benchmark' has a null"):
        getattr(neardup.load(tmp_path / "found"), name)


@pytest.mark.usefixtures("bench_folder")
def test_commands_that_need_duplicates_name_the_kind_of_run(tmp_path):
    path = tmp_path / "train.jsonl"
    write_rows(path, ROWS)
    report = run_on(path, "found", remove=True)
    with pytest.raises(neardup.NearDupError, match="output of neardup decontaminate"):
        neardup.find_pairs(tmp_path / "found", out=tmp_path / "pairs.csv")
    with pytest.raises(neardup.NearDupError, match="compared no documents"):
        neardup.audit(tmp_path / "found")
    assert "Items of benchmarks in documents" in report.to_html()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three files with items, edited or not, a bad row, and two benchmarks."""
    folder = tmp_path_factory.mktemp("decontaminate")
    rng = random.Random(5)
    items = [prose(rng, rng.randint(5, 40)) for _ in range(40)]
    names = ("a.jsonl", "b.csv", "c.parquet")
    for number, name in enumerate(names):
        rows = []
        for at in range(30):
            item = list(items[(number * 30 + at) % 40])
            item[at % len(item)] = rng.choice(["zebra", item[at % len(item)]])
            text = wrapped(rng, prose(rng, at) + item * (at % 3) + prose(rng, 20))
            rows.append({"id": f"{name}{at}", "text": text})
        write_rows(folder / name, rows)
    with (folder / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"broken\n')
    (folder / "bench").mkdir()
    for number in range(2):
        own = items[number * 20 : number * 20 + 20]
        write_items(folder / "bench" / f"{number}.jsonl", map(" ".join, own))
    return folder


def inputs(folder):
    return [folder / name for name in ("a.jsonl", "b.csv", "c.parquet")]


def settings_of(corpus):
    return {
        "against": corpus / "bench",
        "item_column": "question",
        "cut": True,
        "around": 2,
        "overwrite": True,
    }


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    report = neardup.decontaminate(inputs(corpus), out=out, **settings_of(corpus))
    assert report.num_contaminated > 30
    assert report.num_rejected == report.rejected.num_rows == 1
    return contents(out)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("room", [None, 1])
def test_threads_memory_and_batches_do_not_change_a_byte(
    threads, room, corpus, whole, tmp_path, monkeypatch
):
    from neardup.io import records
    from neardup.jobs import decontaminate_files, text_files
    from neardup.search import bench_items

    if room is not None:
        monkeypatch.setattr(Memory, "room", lambda _: room)
        monkeypatch.setattr(records, "BATCH_BYTES", 300)
        monkeypatch.setattr(records, "PART_BYTES", 1000)
        monkeypatch.setattr(bench_items, "_ROOM", 1)
        monkeypatch.setattr(text_files, "ROWS_AT_ONCE", 7)
        monkeypatch.setattr(decontaminate_files, "ROWS_AT_ONCE", 7)
    settings = settings_of(corpus)
    neardup.decontaminate(inputs(corpus), out=tmp_path / "out", threads=threads, **settings)
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize(
    "number",
    [3, 7, *(pytest.param(at, marks=pytest.mark.long) for at in (1, 2, 4, 5, 6, 8, 9, 10, 12))],
)
def test_a_killed_run_resumes_to_the_same_bytes(number, programs, corpus, whole, tmp_path):
    command = ["decontaminate", *map(str, inputs(corpus)), "-o", "out", "--cut", "--around", "2"]
    command += ["--against", str(corpus / "bench"), "--item-column", "question"]
    command += ["--overwrite", "-q"]
    killed = programs.run(*command, cwd=tmp_path, before=f"kill_at_finish({number})")
    assert killed.code == -signal.SIGKILL, killed.stderr
    finished = programs.run(*command, cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    assert contents(tmp_path / "out") == whole
    assert not (tmp_path / ".out.neardup").exists()


def test_documents_in_memory_have_the_same_items(corpus, tmp_path):
    settings = settings_of(corpus) | {"cut": False, "around": 0}
    report = neardup.decontaminate(inputs(corpus), out=tmp_path / "out", **settings)
    texts = []
    for path in inputs(corpus):
        if path.suffix == ".parquet":
            texts += pq.read_table(path).to_pylist()
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                texts += list(csv.DictReader(file))
        else:
            texts += [json.loads(line) for line in path.read_text("utf-8").split("\n")[:30]]
    settings.pop("overwrite")
    own = neardup.decontaminate(texts, **settings)
    columns = own.contaminated.column_names
    assert own.contaminated.equals(report.contaminated.select(columns))
    assert own.items.equals(report.items)
    assert own.benchmarks.equals(report.benchmarks)
    contaminated = set(report.contaminated.column("doc_id").to_pylist())
    assert own.mask.tolist() == [row["id"] not in contaminated for row in texts]


# Weights of another run


def test_shards_agree_with_the_weights_of_the_whole(corpus, tmp_path):
    settings = settings_of(corpus) | {"cut": False, "around": 0}
    report = neardup.decontaminate(inputs(corpus), out=tmp_path / "whole", **settings)
    shards = [
        neardup.decontaminate(
            path, out=tmp_path / path.stem, weights_from=tmp_path / "whole", **settings
        )
        for path in inputs(corpus)
    ]
    assert pa.concat_tables([shard.contaminated for shard in shards]).equals(report.contaminated)
    own = neardup.decontaminate(inputs(corpus)[0], out=tmp_path / "own", **settings)
    assert not own.contaminated.equals(shards[0].contaminated)
    stored = pq.read_table(tmp_path / "whole" / "weights.parquet")
    again = pq.read_table(tmp_path / "a" / "weights.parquet")
    assert again.equals(stored, check_metadata=True)
    assert 1 < max(stored.column("documents").to_pylist()) <= 90
    # The weights of a run with other items: an unknown word weighs as one that no document has.
    write_items(tmp_path / "new.jsonl", ["quagga " * 24])
    new = settings | {"against": tmp_path / "new.jsonl", "weights_from": tmp_path / "whole"}
    report = neardup.decontaminate(inputs(corpus), out=tmp_path / "new", **new)
    assert pq.read_table(tmp_path / "new" / "weights.parquet").column("documents").to_pylist() == [
        0
    ]
    assert report.contaminated.num_rows == 0


@pytest.mark.usefixtures("bench_folder")
def test_weights_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "train.jsonl"
    write_rows(path, ROWS)
    run_on(path, "first")
    weights = tmp_path / "first" / "weights.parquet"
    stored = pq.read_table(weights)
    for settings, message in (
        ({"seed": 2}, "`weights_from` .* was made with seed 1, and this run has 2"),
        ({"fold_numbers": True}, "was made with fold_numbers False"),
        ({"normalise": "nfkc"}, "was made with normalise 'nfc'"),
        ({"weights_from": tmp_path / "bench"}, "has no weights.parquet"),
        ({"rule": "ngram13"}, "`weights_from` does not apply to the rule 'ngram13'"),
    ):
        with pytest.raises(neardup.NearDupError, match=message):
            run_on(path, "second", **({"weights_from": tmp_path / "first"} | settings))
        assert not (tmp_path / "second").exists()
    run_on(path, "secret", seed="random")
    with pytest.raises(neardup.NearDupError, match="has a secret seed"):
        run_on(path, "second", weights_from=tmp_path / "secret")
    counts = stored.column("documents").to_numpy()
    for table, message in (
        (stored.replace_schema_metadata(None), "its metadata cannot be read"),
        (stored.take(np.arange(stored.num_rows)[::-1]), "its words are not in order"),
        (stored.set_column(1, "documents", pa.array(counts + 99)), "above the number of documents"),
        (stored.set_column(1, "documents", pa.array(counts - 9)), "a count is negative"),
        (stored.drop_columns(["word"]), "no column 'word'"),
    ):
        pq.write_table(table, weights)
        with pytest.raises(neardup.NearDupError, match=message):
            run_on(path, "second", weights_from=tmp_path / "first")


# Mistakes


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"against": []}, "`against` is missing"),
        ({"against": "nowhere.jsonl"}, "`against` names nowhere.jsonl, which does not exist"),
        ({"item_column": "answer"}, "answer"),
        ({"item_column": None}, "has no column named text"),
        ({"threshold": 0.1}, "`threshold` must be at least 0.25"),
        ({"unit": "char"}, "`unit` 'char' does not apply to decontamination"),
        ({"engine": "spark"}, "on Spark, a search in texts needs files"),
        ({"rule": "ngram8"}, "`rule` must be"),
        ({"rule": "ngram13", "threshold": 0.9}, "`threshold` does not apply to the rule"),
        ({"remove": True, "cut": True}, "`remove` and `cut` cannot be combined"),
        ({"around": 5}, "`around` needs `cut`"),
        ({"remove": True, "mark": True}, "`remove` and `mark` cannot be combined"),
        ({"cut": True, "html": True}, "`cut` needs the text of one column"),
        ({"cut": True, "text_column": ["a", "b"]}, "`cut` needs the text of one column"),
        ({"remove": True}, "`remove` needs files as the source"),
        ({"out": "somewhere"}, "`out` needs files as the source"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, message, tmp_path):
    bench = write_items(tmp_path / "bench.jsonl", [ITEM])
    given = {"against": bench, "item_column": "question"} | settings
    with pytest.raises(neardup.NearDupError, match=message) as caught:
        neardup.decontaminate(["a text"], **given)
    assert "hint: " in str(caught.value)


def test_other_columns_are_named_in_a_hint(tmp_path):
    bench = write_items(tmp_path / "bench.jsonl", [ITEM], answer="four")
    with pytest.raises(neardup.NearDupError) as caught:
        neardup.decontaminate(["a text"], against=bench)
    assert "item_column='question'" in str(caught.value)


def test_an_index_has_no_items(tmp_path):
    with neardup.Index.create(tmp_path / "index") as index:
        index.insert("a", ITEM)
    with pytest.raises(neardup.NearDupError, match="an index, which has no items"):
        neardup.decontaminate(["a text"], against=tmp_path / "index")


@pytest.mark.parametrize(
    "settings", [{"remove": True}, {"item_column": "question"}, {"weights_from": "found"}]
)
def test_other_jobs_refuse_settings_of_items(settings):
    with pytest.raises(neardup.NearDupError, match="is for the items of benchmarks"):
        neardup.deduplicate(["a text"], **settings)
