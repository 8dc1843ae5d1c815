"""Repeated passages, end to end: against the oracle, on files of every format, and with the promises of a run."""

from __future__ import annotations

import json
import random
import signal
import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.engines.local.limits import Memory
from support import oracles, passage_oracle
from support.corpora import contents, write_rows
from support.passage_texts import repetitive_texts, wrapped

BANNER = "we use cookies to improve this site and show you what you like"


def places_of(report):
    """The places of a report, as the oracle lists them but for the starts, and with the words of each."""
    return [(row["doc_id"], row["words"], row["source_id"]) for row in report.passages.to_pylist()]


def spelt(text, row):
    return oracles.words(text[row["start"] : row["end"]])


@given(st.integers(0, 2**32), st.sampled_from([1, 3, 5, 9]), st.sampled_from([1, 2, 9]))
def test_places_passages_and_offsets_are_those_of_the_oracle(seed, min_words, vocabulary):
    rng = random.Random(seed)
    docs = passage_oracle.words_of(repetitive_texts(rng, min_words, vocabulary=vocabulary))
    texts = [wrapped(rng, words) for words in docs]
    report = neardup.find_passages(texts, min_words=min_words)
    expected = passage_oracle.places(docs, min_words)
    assert places_of(report) == [(place.doc, place.words, place.source) for place in expected]
    by_id = {row["passage_id"]: row for row in report.repeated.to_pylist()}
    for row, place in zip(report.passages.to_pylist(), expected, strict=True):
        text = texts[place.doc]
        words = docs[place.doc][place.start : place.start + place.words]
        assert spelt(text, row) == words
        assert (
            text.encode()[row["start_byte"] : row["end_byte"]].decode()
            == text[row["start"] : row["end"]]
        )
        assert row["line"] == text[: row["start"]].count("\n") + 1
        before = texts[place.source][: row["source_start"]]
        assert oracles.words(before) == docs[place.source][: place.source_start]
        passage = by_id[row["passage_id"]]
        assert passage["words"] == place.words
        assert oracles.words(passage["text"]) == words
    assert report.num_places == len(expected)
    assert report.num_words == sum(map(len, docs))


@pytest.mark.parametrize(
    "texts",
    [
        [
            "cafe\u0301 au lait, s'il vous plai\u0302t monsieur",
            "CAFÉ AU LAIT s'il vous plaît, monsieur!",
        ],
        [
            "\u1100\u1161 \u1102\u1161 \u1103\u1161 \u1105\u1161 \u1106\u1161 \u1107\u1161",
            "가 나 다 라 마 바",
        ],
        ["東京都の人口は増えている", "はい、東京都の人口は増えている。"],
        ["\u0958\u0959 a b c d", "क़ख़ A B C D"],
        ["q\u0307\u0323 x y z w v", "q\u0323\u0307 x y z w v"],
        ["cafe\u00ad\u0301 a\u200bu lait s'il vous", "Café au lait s'il vous"],
    ],
)
def test_offsets_are_those_of_the_text_as_it_came_in_any_normal_form(texts):
    report = neardup.find_passages(texts, min_words=5)
    [row] = report.passages.to_pylist()
    later = texts[1]
    earlier = texts[0]
    assert spelt(later, row) == oracles.words(earlier)[-row["words"] :]
    assert (
        later.encode()[row["start_byte"] : row["end_byte"]].decode()
        == later[row["start"] : row["end"]]
    )
    [passage] = report.repeated.to_pylist()
    assert passage["text"] in earlier
    assert earlier.index(passage["text"]) == row["source_start"]
    swapped = neardup.find_passages(texts[::-1], min_words=5)
    [row] = swapped.passages.to_pylist()
    assert earlier[row["start"] : row["end"]] == passage["text"]


def test_normal_forms_and_accents_are_folded_as_in_shingles():
    texts = ["ﬁne ½ ﬀ １９ ① words", "fine 1⁄2 ff 19 1 words", "finé 1⁄2 ff 19 1 wörds"]
    report = neardup.find_passages(texts, min_words=4, normalise="nfkc", fold_accents=True)
    first, second = report.passages.to_pylist()
    assert (first["start"], first["end"]) == (0, len(texts[1]))
    assert (second["start"], second["end"]) == (0, len(texts[2]))
    assert report.repeated.column("text").to_pylist() == [texts[0]]


def test_numbers_can_be_folded():
    texts = ["on 12 May 3 ferries left", "on 9 may 27 ferries left"]
    assert neardup.find_passages(texts, min_words=6).num_places == 0
    assert neardup.find_passages(texts, min_words=6, fold_numbers=True).num_places == 1


@pytest.mark.parametrize("min_words", [1, 7, 16, 30, 33, 50, 120])
def test_every_planted_quote_is_found_from_min_words_on_and_none_below(min_words):
    rng = random.Random(min_words)

    def fresh(count):
        return [f"x{rng.randrange(1 << 60)}" for _ in range(count)]

    for length in (min_words - 1, min_words, min_words + 1):
        quote = fresh(length)
        docs = [fresh(200) + quote + fresh(3)]
        docs += [fresh(rng.randrange(100)) + quote + fresh(rng.randrange(100)) for _ in range(5)]
        report = neardup.find_passages([wrapped(rng, words) for words in docs], min_words=min_words)
        assert places_of(report) == [(doc, length, 0) for doc in range(1, 6)] * (
            length >= min_words
        )


def test_repetition_within_one_document_is_no_place():
    report = neardup.find_passages([f"{BANNER}. {BANNER}", "other words"], min_words=5)
    assert (report.num_places, report.num_passages) == (0, 0)
    assert report.cut().column("text").to_pylist() == [f"{BANNER}. {BANNER}", "other words"]


def test_documents_without_anything_to_find():
    report = neardup.find_passages(["", "one", "...", None], min_words=2)
    assert (report.num_places, report.documents, report.num_rejected) == (0, 4, 1)
    assert report.passages.num_rows == report.repeated.num_rows == 0
    assert report.rejected.column("row").to_pylist() == [3]
    assert neardup.find_passages([], min_words=2).num_places == 0


def test_ids_that_repeat_are_told_apart_by_row():
    report = neardup.find_passages([BANNER, "x", f"so {BANNER}"], ids=["a", "b", "a"], min_words=5)
    [row] = report.passages.to_pylist()
    assert (row["doc_id"], row["row"], row["source_id"], row["source_row"]) == ("a", 2, "a", 0)


def test_groups_have_passages_of_their_own():
    rows = [{"text": BANNER, "site": site} for site in "abcab"]
    report = neardup.find_passages(rows, min_words=5, group_column="site")
    assert places_of(report) == [(3, 13, 0), (4, 13, 1)]


# Cutting


@given(
    st.integers(0, 2**32),
    st.sampled_from([2, 4]),
    st.integers(2, 4),
    st.sampled_from(["first", "none"]),
)
def test_a_cut_leaves_exactly_the_words_of_the_oracle(seed, min_words, min_count, keep):
    rng = random.Random(seed)
    docs = passage_oracle.words_of(repetitive_texts(rng, min_words))
    settings = {"min_words": min_words, "min_count": min_count, "keep": keep}
    report = neardup.find_passages([wrapped(rng, words) for words in docs], **settings)
    first = passage_oracle.first_places(docs, min_words)
    counts = passage_oracle.num_places(docs, min_words)
    gone = set()
    for (doc, at), (source, source_at) in first.items():
        if counts[source, source_at] >= min_count and (doc != source or keep == "none"):
            gone |= {(doc, at + word) for word in range(min_words)}
    left = [
        [word for at, word in enumerate(words) if (doc, at) not in gone]
        for doc, words in enumerate(docs)
    ]
    expected = [(doc, words) for doc, words in enumerate(left) if words or not docs[doc]]
    found = [(row["doc_id"], oracles.words(row["text"])) for row in report.cut().to_pylist()]
    assert found == expected
    assert report.repeated_words == len(gone)


@given(st.integers(0, 2**32), st.sampled_from([2, 4]))
def test_every_word_that_is_cut_has_a_kept_copy_along_source_links(seed, min_words):
    docs = passage_oracle.words_of(repetitive_texts(random.Random(seed), min_words))
    report = neardup.find_passages([" ".join(words) for words in docs], min_words=min_words)
    source_of = {}
    for row in report.passages.to_pylist():
        start = len(" ".join(docs[row["doc_id"]])[: row["start"]].split())
        source_start = len(" ".join(docs[row["source_id"]])[: row["source_start"]].split())
        for word in range(row["words"]):
            source_of[row["doc_id"], start + word] = (row["source_id"], source_start + word)
    for place in list(source_of):
        spelling = docs[place[0]][place[1]]
        while place in source_of:
            assert source_of[place][0] < place[0]
            place = source_of[place]
            assert docs[place[0]][place[1]] == spelling


def test_a_document_with_too_few_words_left_is_removed():
    texts = [BANNER, f"short {BANNER} end", f"{BANNER} and many more words here"]
    report = neardup.find_passages(texts, min_words=5, min_left=3)
    assert report.cut().column("doc_id").to_pylist() == [0, 2]


# Files


ROWS = [
    {"id": "a", "text": f"Tides today.\n{BANNER}!", "n": 1},
    {"id": "b", "text": f"{BANNER.upper()}. News of the day", "n": 2},
    {"id": "c", "text": BANNER, "n": 3},
    {"id": "d", "text": "nothing of that kind", "n": 4},
]
CUT = [ROWS[0]["text"], "News of the day", None, ROWS[3]["text"]]
FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "csv", "tsv", "parquet", "arrow", "json")


@pytest.mark.parametrize("ending", FORMATS)
def test_rows_of_every_format_are_cut_and_marked(ending, tmp_path):
    path = tmp_path / f"pages.{ending}"
    write_rows(path, ROWS)
    report = neardup.find_passages(path, out=tmp_path / "cut", min_words=5, cut=True)
    cut = report.cut().to_pylist()
    assert [row["text"] for row in cut] == [text for text in CUT if text is not None]
    assert [(row["id"], int(row["n"])) for row in cut] == [("a", 1), ("b", 2), ("d", 4)]
    [gone] = report.removed.to_pylist()
    assert (gone["doc_id"], gone["kept_id"], gone["file"], gone["row"]) == ("c", None, path.name, 3)
    assert (report.num_kept, report.num_removed) == (3, 1)
    neardup.find_passages(path, out=tmp_path / "marked", min_words=5, mark=True)
    marked = tmp_path / "marked" / "kept" / path.name
    again = neardup.find_passages(marked, out=tmp_path / "again", min_words=5, cut=True)
    rows = again.cut().to_pylist()
    assert [int(row["neardup_repeated_words"]) for row in rows] == [0, 13, 0]
    assert [float(row["neardup_repeated_share"]) for row in rows] == [0, 13 / 17, 0]
    spans = rows[1]["neardup_passages"]
    if isinstance(spans, str):
        spans = [dict(zip(("start", "end"), span, strict=True)) for span in json.loads(spans)]
    assert spans == [{"start": 0, "end": len(BANNER)}]


def test_untouched_rows_stay_byte_for_byte(tmp_path):
    lines = [
        '{"text":  "nothing here" , "n": 1.50}\r\n',
        json.dumps({"text": BANNER, "n": 1e300}) + "\n",
        '{"n": 1.50, "big": 123456789012345678901234567890, "text": "BANNER. More"}\n'.replace(
            "BANNER", BANNER
        ),
    ]
    (tmp_path / "pages.jsonl").write_bytes("".join(lines).encode())
    neardup.find_passages(tmp_path / "pages.jsonl", out=tmp_path / "out", min_words=5, cut=True)
    written = (
        (tmp_path / "out" / "kept" / "pages.jsonl").read_bytes().decode().splitlines(keepends=True)
    )
    assert written[:2] == lines[:2]
    assert written[2] == '{"n":1.50,"big":123456789012345678901234567890,"text":"More"}\n'


def test_text_files_and_lines_are_cut(tmp_path):
    for name, text in (
        ("a.txt", f"First.\n{BANNER}\n"),
        ("b.txt", f"{BANNER}\n\nSecond.\n"),
        ("c.txt", BANNER),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    report = neardup.find_passages(
        sorted(tmp_path.glob("*.txt")), out=tmp_path / "out", min_words=5, cut=True
    )
    kept = tmp_path / "out" / "kept"
    assert {path.name: path.read_text() for path in kept.iterdir()} == {
        "a.txt": f"First.\n{BANNER}\n",
        "b.txt": "Second.\n",
    }
    assert report.removed.column("doc_id").to_pylist() == ["c.txt"]
    (tmp_path / "all.txt").write_text(f"one\n{BANNER}\r\nmore: {BANNER}\r\n", "utf-8")
    neardup.find_passages(
        tmp_path / "all.txt", out=tmp_path / "lines", min_words=5, cut=True, lines=True
    )
    assert (tmp_path / "lines/kept/all.txt").read_bytes() == f"one\n{BANNER}\r\nmore:\r\n".encode()


def test_a_nested_text_is_cut_in_json_and_refused_in_columns(tmp_path):
    rows = [{"page": {"body": text, "n": 1}} for text in (BANNER, f"More {BANNER}")]
    write_rows(tmp_path / "pages.jsonl", rows)
    settings = {"min_words": 5, "cut": True, "text_column": "page.body"}
    report = neardup.find_passages(tmp_path / "pages.jsonl", out=tmp_path / "out", **settings)
    assert report.cut().to_pylist()[1] == {"page": {"body": "More", "n": 1}}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pages.parquet")
    with pytest.raises(neardup.NearDupError, match=r"'page\.body' cannot be cut"):
        neardup.find_passages(tmp_path / "pages.parquet", out=tmp_path / "no", **settings)
    assert not (tmp_path / "no").exists()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three files with passages, a bad row in each, and reference documents."""
    folder = tmp_path_factory.mktemp("passages")
    rng = random.Random(5)
    texts = repetitive_texts(rng, 6, num_docs=90, vocabulary=9)
    for number, name in enumerate(("a.jsonl", "b.csv", "c.parquet")):
        own = texts[30 * number : 30 * number + 30]
        write_rows(
            folder / name, [{"id": f"{name}{at}", "text": text} for at, text in enumerate(own)]
        )
    with (folder / "a.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"broken\n')
    rows = [
        {"id": f"{name}{at % 30}", "text": texts[at]}
        for number, name in enumerate(("a.jsonl", "b.csv", "c.parquet"))
        for at in range(30 * number, 30 * number + 30)
    ]
    (folder / "rows").write_text(json.dumps(rows), "utf-8")
    (folder / "old").mkdir()
    write_rows(
        folder / "old" / "old.jsonl",
        [{"id": f"o{at}", "text": texts[at]} for at in range(5, 90, 7)],
    )
    return folder


def inputs(folder):
    return [folder / name for name in ("a.jsonl", "b.csv", "c.parquet")]


SETTINGS = {"min_words": 6, "cut": True, "overwrite": True}


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "out"
    neardup.find_passages(inputs(corpus), out=out, **SETTINGS)
    return contents(out)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("room", [None, 1])
def test_threads_memory_and_batches_do_not_change_a_byte(
    threads, room, corpus, whole, tmp_path, monkeypatch
):
    from neardup.io import records
    from neardup.jobs import passage_files
    from neardup.search import located, places

    if room is not None:
        monkeypatch.setattr(Memory, "room", lambda _: room)
        monkeypatch.setattr(records, "BATCH_BYTES", 300)
        monkeypatch.setattr(records, "PART_BYTES", 1000)
        monkeypatch.setattr(places, "_BLOCK", 11)
        monkeypatch.setattr(places, "_CHUNK", 13)
        monkeypatch.setattr(located, "_CACHED_BYTES", 50)
        monkeypatch.setattr(passage_files, "ROWS_AT_ONCE", 7)
        monkeypatch.setattr(passage_files, "_TEXT_AT_ONCE", 20)
    neardup.find_passages(inputs(corpus), out=tmp_path / "out", threads=threads, **SETTINGS)
    assert contents(tmp_path / "out") == whole


def test_the_tables_of_files_are_those_of_the_oracle(corpus, tmp_path):
    report = neardup.find_passages(inputs(corpus), out=tmp_path / "out", min_words=6)
    texts = [row["text"] for row in all_rows(corpus)]
    expected = passage_oracle.places(passage_oracle.words_of(texts), 6)
    ids = [row["id"] for row in all_rows(corpus)]
    found = report.passages.to_pylist()
    assert [(row["doc_id"], row["words"], row["source_id"]) for row in found] == [
        (ids[place.doc], place.words, ids[place.source]) for place in expected
    ]
    assert [(row["file"], row["row"]) for row in found] == [
        (("a.jsonl", "b.csv", "c.parquet")[place.doc // 30], place.doc % 30 + 1)
        for place in expected
    ]
    assert report.num_rejected == report.rejected.num_rows == 1
    again = neardup.load(tmp_path / "out")
    assert again.passages.equals(report.passages)
    assert again.repeated.equals(report.repeated)
    assert (again.num_places, again.num_words) == (report.num_places, report.num_words)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("passages.parquet", "rejected.jsonl", "repeated.parquet", "report.json"),
    ]


def all_rows(corpus):
    return json.loads((corpus / "rows").read_text("utf-8"))


@pytest.mark.parametrize("only_against", [False, True])
def test_reference_documents_stand_ahead_of_all_and_are_never_listed(
    only_against, corpus, tmp_path
):
    old = corpus / "old" / "old.jsonl"
    report = neardup.find_passages(
        inputs(corpus),
        out=tmp_path / "out",
        min_words=6,
        against=old,
        only_against=only_against,
        cut=True,
        keep="none",
    )
    old_rows = [json.loads(line) for line in old.read_text("utf-8").splitlines()]
    rows = old_rows + all_rows(corpus)
    docs = passage_oracle.words_of(row["text"] for row in rows)
    expected = passage_oracle.places(docs, 6, None, len(old_rows), only_against=only_against)
    assert [
        (row["doc_id"], row["words"], row["source_id"]) for row in report.passages.to_pylist()
    ] == [(rows[place.doc]["id"], place.words, rows[place.source]["id"]) for place in expected]
    assert report.num_words == sum(map(len, docs[len(old_rows) :]))
    assert {path.name for path in (tmp_path / "out" / "kept").iterdir()} == {
        "a.jsonl",
        "b.csv",
        "c.parquet",
    }


@pytest.mark.parametrize("number", [1, 3, 5, 8, 12])
def test_a_killed_run_resumes_to_the_same_bytes(number, programs, corpus, whole, tmp_path):
    command = [
        "passages",
        *map(str, inputs(corpus)),
        "-o",
        "out",
        "--min-words",
        "6",
        "--cut",
        "--overwrite",
        "-q",
    ]
    killed = programs.run(*command, cwd=tmp_path, before=f"kill_at_finish({number})")
    assert killed.code == -signal.SIGKILL, killed.stderr
    finished = programs.run(*command, cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    assert contents(tmp_path / "out") == whole
    assert not (tmp_path / ".out.neardup").exists()


def test_a_killed_run_with_other_cuts_reuses_the_anchors(programs, corpus, whole, tmp_path):
    command = ["passages", *map(str, inputs(corpus)), "-o", "out", "--min-words", "6", "-q"]
    killed = programs.run(*command, "--mark", cwd=tmp_path, before="kill_before_publishing()")
    assert killed.code == -signal.SIGKILL, killed.stderr
    work = tmp_path / ".out.neardup"
    made = {path: path.stat().st_mtime_ns for path in work.glob("sketch/*")}
    assert made
    killed = programs.run(*command, "--cut", cwd=tmp_path, before="kill_before_publishing()")
    assert killed.code == -signal.SIGKILL, killed.stderr
    assert {path: path.stat().st_mtime_ns for path in work.glob("sketch/*")} == made
    refused = programs.run(*command, "--cut", "--fold-numbers", cwd=tmp_path)
    assert refused.code == 2
    assert "fold_numbers was False, now True" in refused.stderr
    finished = programs.run(*command, "--cut", "--overwrite", cwd=tmp_path)
    assert finished.code == 0, finished.stderr
    assert tables(contents(tmp_path / "out")) == tables(whole)


def tables(found):
    return {name: content for name, content in found.items() if name != "report.json"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": "last"}, "`keep` must be 'first' or 'none'"),
        ({"unit": "char"}, "`unit` 'char' does not apply to passages"),
        ({"ignore": ["x"]}, "`ignore`"),
        ({"cut": True, "mark": True}, "`mark` and `cut` cannot be combined"),
        ({"cut": True, "text_column": ["a", "b"]}, "`cut` needs one text column"),
        ({"cut": True}, "`cut` needs files"),
        ({"min_words": 0}, "`min_words` must be a whole number from 1"),
        ({"min_count": 1}, "`min_count` must be a whole number from 2"),
        ({"against": ["x"]}, "`against` needs files"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, message):
    with pytest.raises(neardup.NearDupError, match=message):
        neardup.find_passages(["a text"], **settings)


@pytest.mark.parametrize(("name", "value"), [("keep", "none"), ("cut", True)])
def test_settings_of_passages_are_refused_where_whole_documents_are_removed(name, value):
    for job in (neardup.deduplicate, neardup.find_pairs, neardup.neighbours):
        with pytest.raises(neardup.NearDupError, match=f"`{name}` .*is for passages"):
            job(["a", "b"], **{name: value})


def test_all_rows_rejected_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "pages.jsonl").write_text("{bad\n", "utf-8")
    with pytest.raises(neardup.NearDupError, match="the only row was rejected"):
        neardup.find_passages(tmp_path / "pages.jsonl", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_hold_marks_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text(BANNER, "utf-8")
    with pytest.raises(neardup.NearDupError, match="has no columns"):
        neardup.find_passages(tmp_path / "a.txt", out=tmp_path / "out", mark=True)


def test_the_list_of_passages_is_a_template_to_ignore(tmp_path):
    """The boilerplate of a crawl, found in one run, is left out of the comparison in the next."""
    rng = random.Random(2)
    pages = [" ".join(f"w{rng.randrange(10**6)}" for _ in range(20)) for _ in range(4)]
    rows = [
        {"id": str(at), "text": f"{BANNER} {BANNER[::-1]} {page}"} for at, page in enumerate(pages)
    ]
    write_rows(tmp_path / "pages.jsonl", rows)
    neardup.find_passages(tmp_path / "pages.jsonl", out=tmp_path / "parts", min_words=8)
    plain = neardup.find_pairs(tmp_path / "pages.jsonl", threshold=0.3, size=3)
    assert plain.num_pairs == 6
    ignored = neardup.find_pairs(
        tmp_path / "pages.jsonl",
        threshold=0.3,
        size=3,
        ignore=tmp_path / "parts" / "repeated.parquet",
    )
    assert ignored.num_pairs == 0


def test_texts_in_another_encoding_are_cut_in_it(tmp_path):
    lines = [
        json.dumps({"text": text}, ensure_ascii=False)
        for text in (f"Café {BANNER}", f"Plötzlich: {BANNER} é")
    ]
    (tmp_path / "pages.jsonl").write_bytes("\n".join(lines).encode("latin-1"))
    neardup.find_passages(
        tmp_path / "pages.jsonl", out=tmp_path / "out", min_words=5, cut=True, encoding="latin-1"
    )
    written = (
        (tmp_path / "out" / "kept" / "pages.jsonl").read_bytes().decode("latin-1").splitlines()
    )
    assert json.loads(written[1]) == {"text": "Plötzlich: é"}
    assert unicodedata.is_normalized("NFC", written[1])


# HTML: places are those of the extracted text, which a cut writes in a column of its own


def html_rows():
    pages = [
        f"<html><body><p>Tides &amp; moons of today.</p><p>{BANNER}</p></body></html>",
        f"<html><body><p>{BANNER}!</p><p>News &lt;of&gt; the day</p></body></html>",
        f"<html><body><p>{BANNER}</p></body></html>",
        "<html><body><p>nothing of that kind</p></body></html>",
    ]
    return [{"id": f"h{at}", "text": page} for at, page in enumerate(pages)]


HTML = {"min_words": 5, "html": True, "html_content": "all"}


@pytest.mark.parametrize("ending", FORMATS)
def test_a_cut_of_html_writes_the_text_without_passages_beside_the_page(ending, tmp_path):
    rows = html_rows()
    path = tmp_path / f"pages.{ending}"
    write_rows(path, rows)
    report = neardup.find_passages(path, out=tmp_path / "out", cut=True, **HTML)
    cut = report.cut().to_pylist()
    assert [row["text"] for row in cut] == [rows[at]["text"] for at in (0, 1, 3)]
    assert [oracles.words(row["neardup_text"]) for row in cut] == [
        ["tides", "moons", "of", "today", *BANNER.split()],
        ["news", "of", "the", "day"],
        ["nothing", "of", "that", "kind"],
    ]
    assert report.removed.column("doc_id").to_pylist() == ["h2"]


def test_a_cut_of_html_in_memory_leaves_the_pages_as_they_are():
    rows = html_rows()
    cut = neardup.find_passages([*rows[:2], {"id": "no", "text": None}, rows[3]], **HTML).cut()
    assert cut.column("text").to_pylist() == [rows[at]["text"] for at in (0, 1, 3)]
    assert oracles.words(cut.column("neardup_text")[1].as_py()) == ["news", "of", "the", "day"]


def test_a_cut_of_html_needs_files_with_columns(tmp_path):
    (tmp_path / "a.html").write_text(html_rows()[0]["text"], "utf-8")
    with pytest.raises(neardup.NearDupError, match=r"adds a column .*a\.html has no columns"):
        neardup.find_passages(tmp_path / "a.html", out=tmp_path / "out", cut=True, **HTML)
    with pytest.raises(neardup.NearDupError, match="`cut` with `html` needs the local engine"):
        neardup.find_passages(tmp_path, out=tmp_path / "out", cut=True, engine="spark", **HTML)
    with pytest.raises(neardup.NearDupError, match="`mark` and `html`"):
        neardup.find_passages(tmp_path / "a.html", out=tmp_path / "out", mark=True, **HTML)
