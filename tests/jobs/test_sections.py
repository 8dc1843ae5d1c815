"""Repeated paragraphs and lines, end to end: against the oracle, on files of every format, with a run's promises."""

from __future__ import annotations

import json
import random
import signal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.engines.local.limits import Memory
from neardup.web.run_view import RunView
from support import oracles, section_oracle
from support.corpora import contents, write_rows
from support.section_texts import sectioned_texts

LINE = "the quick brown fox jumps over the lazy dog"
LEVELS = ("line", "paragraph")


def removed_parts(report):
    """The removed parts of a report on documents that are named by their position."""
    return [
        section_oracle.Removed(
            *(row[name] for name in ("doc_id", "start", "end", "line", "words")),
            *(row[name] for name in ("kept_id", "kept_start", "similarity")),
        )
        for row in report.removed_parts.to_pylist()
    ]


def kept_texts(report, num_docs):
    kept = {row["doc_id"]: row["text"] for row in report.kept.to_pylist()}
    return [kept.get(doc) for doc in range(num_docs)]


RULES = st.fixed_dictionaries(
    {
        "level": st.sampled_from(LEVELS),
        "min_words": st.sampled_from([1, 2, 4]),
        "min_count": st.sampled_from([2, 3]),
        "min_left": st.sampled_from([1, 4]),
    },
    optional={"keep": st.just("none"), "per_cluster": st.sampled_from([2, 3])},
).filter(lambda rule: not ("keep" in rule and "per_cluster" in rule))


@given(st.integers(0, 2**32), RULES)
def test_what_goes_and_what_stays_is_that_of_the_oracle(seed, rule):
    texts = sectioned_texts(random.Random(seed))
    report = neardup.deduplicate(texts, **rule)
    expected = section_oracle.remove(texts, **rule)
    assert removed_parts(report) == expected.removed
    assert kept_texts(report, len(texts)) == expected.kept
    gone = [doc for doc, text in enumerate(expected.kept) if text is None]
    assert report.removed.column("doc_id").to_pylist() == gone
    assert report.mask.tolist() == [text is not None for text in expected.kept]
    assert report.num_parts == len(expected.removed)
    assert report.num_words == sum(len(oracles.words(text)) for text in texts)
    assert report.removed_words == sum(part.words for part in expected.removed)


@given(st.integers(0, 2**32), RULES, st.sampled_from([0.4, 0.7]))
def test_below_a_threshold_of_1_sections_are_compared_by_similarity(seed, rule, threshold):
    texts = sectioned_texts(random.Random(seed), vocabulary=9)
    settings = rule | {"threshold": threshold, "size": 1}
    report = neardup.deduplicate(texts, **settings, method="exact")
    expected = section_oracle.remove(texts, **settings)
    assert removed_parts(report) == expected.removed
    assert kept_texts(report, len(texts)) == expected.kept


@given(st.integers(0, 2**32), st.sampled_from(LEVELS))
def test_every_removed_section_has_a_copy_that_stays(seed, level):
    texts = sectioned_texts(random.Random(seed))
    report = neardup.deduplicate(texts, level=level, min_words=2)
    kept = dict(
        zip(report.kept["doc_id"].to_pylist(), report.kept["text"].to_pylist(), strict=True)
    )
    for row in report.removed_parts.to_pylist():
        text = texts[row["doc_id"]][row["start"] : row["end"]]
        [own] = [
            section
            for section in section_oracle.sections_of(texts[row["kept_id"]], level)
            if section.start == row["kept_start"]
        ]
        first = texts[row["kept_id"]][own.start : own.end]
        assert oracles.words(first) == oracles.words(text)
        assert first in kept[row["kept_id"]]


def test_order_and_repetition_of_words_count():
    texts = ["a b c d", "d c b a", "a b a b", "a b", "a a b b", "A, b; C (d)"]
    report = neardup.deduplicate(texts, level="paragraph", min_words=1)
    assert [(part.doc, part.first_doc) for part in removed_parts(report)] == [(5, 0)]


def test_sections_with_few_words_stay():
    report = neardup.deduplicate([f"{LINE}\nseven words are not enough for it"] * 2, level="line")
    assert report.kept.column("text").to_pylist()[1] == "seven words are not enough for it"


def test_line_ends_stay_as_they_were():
    texts = [f"a\r\n{LINE}\r\nb", f"{LINE}\r\nc\r\n", f"c\n{LINE}", f"{LINE}\n\n\nd\n{LINE}\n"]
    report = neardup.deduplicate(texts, level="line")
    assert report.kept.column("text").to_pylist() == [texts[0], "c\r\n", "c", "\n\nd\n"]
    report = neardup.deduplicate(texts, level="paragraph")
    assert report.kept.column("text").to_pylist() == texts
    texts = [LINE, f"one\n\n{LINE}\n \r\n\ntwo\n", f"one\r\n\r\n\r\n{LINE}\n\n"]
    report = neardup.deduplicate(texts, level="paragraph")
    assert report.kept.column("text").to_pylist() == [LINE, "one\n\ntwo\n", "one\n\n"]


def test_one_huge_line_and_many_short_ones():
    words = [f"w{number}" for number in range(40_000)]
    texts = [" ".join(words), " ".join(words).upper(), "\n".join(words), "\n" * 5_000]
    report = neardup.deduplicate(texts, level="line")
    assert [(part.doc, part.words) for part in removed_parts(report)] == [(1, 40_000)]
    report = neardup.deduplicate(texts, level="paragraph")
    assert [(part.doc, part.words) for part in removed_parts(report)] == [(1, 40_000), (2, 40_000)]


def test_groups_have_first_places_of_their_own():
    rows = [{"text": LINE, "site": site} for site in "abcab"]
    report = neardup.deduplicate(rows, level="line", group_column="site")
    assert [(part.doc, part.first_doc) for part in removed_parts(report)] == [(3, 0), (4, 1)]


def test_numbers_and_accents_can_be_folded():
    texts = [
        "page 12 of the café on the hill by the sea",
        "Page 9 of the cafe on the hill by the sea",
    ]
    assert neardup.deduplicate(texts, level="line").num_parts == 0
    folded = neardup.deduplicate(texts, level="line", fold_numbers=True, fold_accents=True)
    assert folded.num_parts == 1


def test_ids_that_repeat_are_told_apart_by_row():
    report = neardup.deduplicate([LINE, "x", LINE], ids=["a", "b", "a"], level="line")
    [row] = report.removed_parts.to_pylist()
    assert (row["doc_id"], row["row"], row["kept_id"], row["kept_row"]) == ("a", 2, "a", 0)


def test_rejected_rows_are_listed_and_documents_without_words_stay():
    report = neardup.deduplicate(["", None, "\n \n", "...", LINE, LINE], level="line")
    assert report.rejected.column("row").to_pylist() == [1]
    assert report.kept.column("text").to_pylist() == ["", "\n \n", "...", LINE]
    assert (report.documents, report.num_kept, report.num_removed, report.num_rejected) == (
        6,
        4,
        1,
        1,
    )


# Files


ROWS = [
    {"id": "a", "text": f"Tides today.\n\n{LINE}!", "n": 1},
    {"id": "b", "text": f"{LINE.upper()}.\n\nNews of the day\n", "n": 2},
    {"id": "c", "text": LINE, "n": 3},
    {"id": "d", "text": "nothing of that kind", "n": 4},
]
LEFT = [ROWS[0]["text"], "News of the day\n", ROWS[3]["text"]]
FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "csv", "tsv", "parquet", "arrow", "json")


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_every_format_are_cut_and_marked(ending, tmp_path):
    path = tmp_path / f"pages.{ending}"
    write_rows(path, ROWS)
    report = neardup.deduplicate(path, out=tmp_path / "cut", level="paragraph")
    kept = report.kept.to_pylist()
    assert [row["text"] for row in kept] == LEFT
    assert [(row["id"], int(row["n"])) for row in kept] == [("a", 1), ("b", 2), ("d", 4)]
    [gone] = report.removed.to_pylist()
    assert (gone["doc_id"], gone["kept_id"], gone["file"], gone["row"]) == ("c", None, path.name, 3)
    first, second = report.removed_parts.to_pylist()
    assert list(first.values())[:7] == ["b", path.name, 2, 0, len(LINE) + 1, 1, 9]
    assert list(first.values())[7:] == ["a", path.name, 1, 14, 1.0]
    assert (second["doc_id"], second["kept_id"]) == ("c", "a")
    neardup.deduplicate(path, out=tmp_path / "marked", level="paragraph", mark=True)
    again = neardup.deduplicate(
        tmp_path / "marked" / "kept" / path.name, out=tmp_path / "again", level="paragraph"
    )
    rows = again.kept.to_pylist()
    assert [int(row["neardup_repeated_words"]) for row in rows] == [0, 9, 0]
    assert [float(row["neardup_repeated_share"]) for row in rows] == [0, 9 / 13, 0]
    spans = rows[1]["neardup_passages"]
    if isinstance(spans, str):
        spans = [dict(zip(("start", "end"), span, strict=True)) for span in json.loads(spans)]
    assert spans == [{"start": 0, "end": len(LINE) + 1}]


def test_text_files_keep_every_other_byte(tmp_path):
    texts = {"a.txt": f"\tone\r\n{LINE}\r\n", "b.txt": f"{LINE}\r\n  two  \r\n", "c.txt": LINE}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
    report = neardup.deduplicate(sorted(tmp_path.glob("*.txt")), out=tmp_path / "out", level="line")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "out" / "kept").iterdir()}
    assert kept == {"a.txt": texts["a.txt"].encode(), "b.txt": b"  two  \r\n"}
    assert report.removed.column("doc_id").to_pylist() == ["c.txt"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three files, a bad row in the first, and reference documents."""
    folder = tmp_path_factory.mktemp("sections")
    texts = sectioned_texts(random.Random(5), num_docs=90)
    # A NUL cannot be written to CSV, and rows of white space alone are none in it.
    texts = [text.replace("\x00", "") + "x" for text in texts]
    rows = []
    for number, name in enumerate(("a.jsonl", "b.csv", "c.parquet")):
        own = texts[30 * number : 30 * number + 30]
        rows.append([{"id": f"{name}{at}", "text": text} for at, text in enumerate(own)])
        write_rows(folder / name, rows[-1])
    with (folder / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"broken\n')
    (folder / "rows").write_text(json.dumps([row for own in rows for row in own]), "utf-8")
    (folder / "old").mkdir()
    old = [{"id": f"o{at}", "text": texts[at]} for at in range(5, 90, 17)]
    write_rows(folder / "old" / "old.jsonl", old)
    return folder


def inputs(folder):
    return [folder / name for name in ("a.jsonl", "b.csv", "c.parquet")]


SETTINGS = {"level": "line", "min_words": 2, "overwrite": True}


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    neardup.deduplicate(inputs(corpus), out=out, **SETTINGS)
    return contents(out)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("room", [None, 1])
def test_threads_memory_and_batches_do_not_change_a_byte(
    threads, room, corpus, whole, tmp_path, monkeypatch
):
    from neardup.io import records
    from neardup.jobs import section_files
    from neardup.search import sections

    if room is not None:
        monkeypatch.setattr(Memory, "room", lambda _: room)
        monkeypatch.setattr(records, "BATCH_BYTES", 300)
        monkeypatch.setattr(records, "PART_BYTES", 1000)
        monkeypatch.setattr(sections, "_CHUNK", 13)
        monkeypatch.setattr(section_files, "ROWS_AT_ONCE", 7)
    neardup.deduplicate(inputs(corpus), out=tmp_path / "out", threads=threads, **SETTINGS)
    assert contents(tmp_path / "out") == whole


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"keep": "none", "min_count": 3},
        {"only_against": True},
        {"threshold": 0.6, "size": 1, "method": "exact", "per_cluster": 2},
    ],
)
def test_reference_documents_stand_ahead_of_all_and_lose_nothing(rule, corpus, tmp_path):
    old = corpus / "old" / "old.jsonl"
    settings = {"level": "line", "min_words": 2} | rule
    report = neardup.deduplicate(inputs(corpus), out=tmp_path / "out", against=old, **settings)
    old_rows = [json.loads(line) for line in old.read_text("utf-8").splitlines()]
    own_rows = json.loads((corpus / "rows").read_text("utf-8"))
    rows = old_rows + own_rows
    settings.pop("method", None)
    texts = [row["text"] for row in rows]
    expected = section_oracle.remove(texts, **settings, num_references=len(old_rows))
    found = [
        (row["doc_id"], row["start"], row["kept_id"], row["kept_start"], row["similarity"])
        for row in report.removed_parts.to_pylist()
    ]
    assert found == [
        (
            *(rows[part.doc]["id"], part.start),
            *(None if part.first_doc is None else rows[part.first_doc]["id"], part.first_start),
            part.similarity,
        )
        for part in expected.removed
    ]
    kept = [
        {"id": row["id"], "text": text}
        for row, text in zip(own_rows, expected.kept, strict=True)
        if text is not None
    ]
    assert [{name: row[name] for name in ("id", "text")} for row in report.kept.to_pylist()] == kept


def test_a_finished_run_is_loaded_with_its_tables(corpus, whole, tmp_path):
    report = neardup.deduplicate(inputs(corpus), out=tmp_path / "out", **SETTINGS)
    again = neardup.load(tmp_path / "out")
    assert again.removed_parts.equals(report.removed_parts)
    assert again.kept.equals(report.kept)
    assert again.removed.equals(report.removed)
    assert (again.num_parts, again.removed_words) == (report.num_parts, report.removed_words)
    assert "removed copies" in again.to_html()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("kept", "rejected.jsonl", "removed.parquet", "removed_parts.parquet", "report.json"),
    ]
    with pytest.raises(neardup.NearDupError, match="compared no documents"):
        RunView(again)
    for ask in (neardup.audit, lambda run: neardup.explain(run, "a.jsonl1")):
        with pytest.raises(neardup.NearDupError):
            ask(tmp_path / "out")
    del whole


def test_a_dry_run_writes_the_tables_alone(corpus, tmp_path):
    neardup.deduplicate(inputs(corpus), out=tmp_path / "out", dry_run=True, **SETTINGS)
    assert (tmp_path / "out" / "removed_parts.parquet").exists()
    assert not (tmp_path / "out" / "kept").exists()


COMMAND = ["-o", "out", "--level", "line", "--min-words", "2", "--overwrite", "-q"]


@pytest.mark.parametrize("number", [1, 3, 5, 8])
def test_a_killed_run_resumes_to_the_same_bytes(number, programs, corpus, whole, tmp_path):
    command = ["dedup", *map(str, inputs(corpus)), *COMMAND]
    killed = programs.run(*command, cwd=tmp_path, before=f"kill_at_finish({number})")
    assert killed.code == -signal.SIGKILL, killed.stderr
    finished = programs.run(*command, cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    assert contents(tmp_path / "out") == whole
    assert not (tmp_path / ".out.neardup").exists()


def test_a_killed_run_by_similarity_resumes_and_another_rule_reuses_the_sections(
    programs, corpus, tmp_path
):
    similar = ["--threshold", "0.6", "--size", "1"]
    command = ["dedup", *map(str, inputs(corpus)), *COMMAND, *similar]
    killed = programs.run(*command, cwd=tmp_path, before="kill_before_publishing()")
    assert killed.code == -signal.SIGKILL, killed.stderr
    work = tmp_path / ".out.neardup"
    made = {path: path.stat().st_mtime_ns for path in work.glob("sections/*")}
    assert made
    other = [*command, "--min-count", "3"]
    killed = programs.run(*other, cwd=tmp_path, before="kill_before_publishing()")
    assert killed.code == -signal.SIGKILL, killed.stderr
    assert {path: path.stat().st_mtime_ns for path in work.glob("sections/*")} == made
    assert programs.run(*other, cwd=tmp_path).code == 0
    again = programs.run(*other, "--seed", "1", cwd=tmp_path)
    assert again.code == 0, again.stderr
    found = contents(tmp_path / "out")
    programs.run(*other[:-1], "3", "-o", "fresh", cwd=tmp_path)
    fresh = contents(tmp_path / "fresh")
    assert found["removed_parts.parquet"] == fresh["removed_parts.parquet"]


def test_the_command_prints_what_it_removed(programs, corpus, tmp_path):
    arguments = ["dedup", str(corpus / "a.jsonl"), "--level", "line", "--min-words", "2"]
    done = programs.run(*arguments, "-o", "out", "--report", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert "repeated lines removed" in done.stdout
    assert "removed copies" in (tmp_path / "out" / "report.html").read_text("utf-8")
    shown = programs.run(*arguments, "-o", "json", "--json", cwd=tmp_path)
    report = json.loads(shown.stdout)
    assert report["config"]["threshold"] == 1
    assert report["parts"]["num_parts"] > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": "last"}, "`keep` must be 'first' or 'none'"),
        ({"keep": "none", "per_cluster": 2}, "`per_cluster` 2 and `keep` 'none'"),
        ({"measure": "containment"}, "`measure` 'containment' does not apply"),
        ({"pairs": True}, "`pairs` True does not apply"),
        ({"text_column": ["a", "b"]}, "`level` needs one text column"),
        ({"html": True}, "`html` True does not apply"),
        ({"level": "word"}, "`level` must be"),
        ({"max_document": "3GB"}, "`max_document` must be below 2 GB"),
        ({"mark": True}, "`mark` needs files"),
        ({"items": [["a"]]}, "`items` does not apply"),
        ({"update": True}, "`update` does not apply"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, message):
    given = {"level": "line"} | settings
    with pytest.raises(neardup.NearDupError, match=message):
        neardup.deduplicate(["a text"], **given)


@pytest.mark.parametrize("job", [neardup.find_pairs, neardup.neighbours, neardup.find_passages])
def test_other_jobs_refuse_the_level(job):
    with pytest.raises(neardup.NearDupError, match="`level`"):
        job(["a", "b"], level="line")


@pytest.mark.parametrize("name", ["min_count", "min_left"])
def test_settings_of_sections_are_refused_without_a_level(name):
    with pytest.raises(neardup.NearDupError, match=f"`{name}` is for passages, paragraphs"):
        neardup.deduplicate(["a", "b"], **{name: 3})


def test_frames_are_sources_as_well():
    table = pa.table({"doc_id": ["x", "y"], "text": [LINE, f"new\n{LINE}"], "n": [1, 2]})
    pandas = table.to_pandas()
    for source in (table, pandas, {"x": LINE, "y": f"new\n{LINE}"}, table.to_pylist()):
        report = neardup.deduplicate(source, level="line")
        assert report.kept.column("text").to_pylist() == [LINE, "new"]
        assert report.removed_parts.column("doc_id").to_pylist() == ["y"]
