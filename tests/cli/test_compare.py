import gzip
import json

import pytest


@pytest.fixture
def two(tmp_path):
    (tmp_path / "a.txt").write_text("one two three four five six seven eight", "utf-8")
    (tmp_path / "b.txt").write_text("one two three four five six seven nine", "utf-8")
    return "a.txt", "b.txt"


def test_compare_shows_numbers_and_what_differs(run, two):
    finished = run("compare", *two, "--size", "2")
    assert finished.returncode == 0
    lines = finished.stdout.splitlines()
    assert lines[0] == "exact similarity         0.7500  not a pair at threshold 0.8"
    assert lines[2].startswith("A contained in B         0.8571  A: a.txt, 7 shingles")
    assert lines[-5:] == [
        "--- A  a.txt",
        "+++ B  b.txt",
        "  one two three four five six seven",
        "- eight",
        "+ nine",
    ]


def test_json_holds_the_numbers_only(run, two):
    answer = json.loads(run("compare", *two, "--size", "2", "--threshold", "0.7", "--json").stdout)
    assert answer["jaccard"] == 0.75
    assert answer["is_pair"] is True
    assert {"estimate", "containment_a", "containment_b", "chance", "shared", "threshold"} <= set(
        answer
    )


def test_quiet_leaves_the_texts_out(run, two):
    assert "eight" not in run("compare", *two, "--quiet").stdout


def test_equal_texts_are_reported_as_equal(run, two):
    assert "The two texts are equal, word for word." in run("compare", two[0], two[0]).stdout


def test_one_text_may_come_from_standard_input(run, two):
    finished = run(
        "compare",
        "-",
        two[1],
        "--json",
        "--size",
        "2",
        stdin="one two three four five six seven eight",
    )
    assert json.loads(finished.stdout)["jaccard"] == 0.75


@pytest.mark.usefixtures("two")
def test_a_compressed_file_is_read_as_its_text(run, tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress((tmp_path / "a.txt").read_bytes()))
    assert json.loads(run("compare", "a.txt.gz", "a.txt", "--json").stdout)["jaccard"] == 1


def test_html_compares_and_shows_the_visible_text(run, tmp_path):
    (tmp_path / "a.html").write_text("<p class=x>one two three four five <b>six</b></p>", "utf-8")
    (tmp_path / "b.html").write_text("<div>one two three four five seven</div>", "utf-8")
    finished = run("compare", "a.html", "b.html", "--html")
    assert "- six\n+ seven\n" in finished.stdout
    assert "<b>" not in finished.stdout


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-", "-"], 2, 'A and B cannot both be "-"'),
        (["a.txt"], 2, "missing argument 'B'"),
        (["a.txt", "nowhere.txt"], 1, "nowhere.txt does not exist"),
        (["a.txt", "."], 1, ". is a folder"),
        (["a.txt", "latin.txt"], 1, "latin.txt is not UTF-8 text: byte 3 is 0xe9"),
        (["a.txt", "cut.gz"], 1, "cut.gz is truncated or damaged"),
        (["a.txt", "b.txt", "--size", "0"], 2, "--size must be a whole number from 1"),
    ],
)
def test_a_mistake_is_a_message(run, tmp_path, arguments, code, words):
    (tmp_path / "latin.txt").write_bytes("café".encode("latin1"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"some text " * 1000)[:-12])
    finished = run("compare", *arguments)
    assert finished.returncode == code
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr


@pytest.mark.parametrize(("threshold", "chance"), [("0.75", 1.0), ("0.76", 0.0)])
def test_with_the_exact_method_the_chance_is_zero_or_one(run, two, threshold, chance):
    options = ("--size", "2", "--method", "exact", "--threshold", threshold)
    assert json.loads(run("compare", *two, *options, "--json").stdout)["chance"] == chance
    expected = f"the exact method finds every pair with similarity >= {threshold}"
    assert expected in run("compare", *two, *options, "--quiet").stdout


@pytest.mark.parametrize(("measure", "is_pair"), [("jaccard", False), ("containment", True)])
def test_the_verdict_uses_the_chosen_measure(run, tmp_path, measure, is_pair):
    (tmp_path / "book.txt").write_text("a b c d e f g h", "utf-8")
    (tmp_path / "quote.txt").write_text("c d e f", "utf-8")
    arguments = ("compare", "book.txt", "quote.txt", "--size", "2", "--measure", measure)
    assert json.loads(run(*arguments, "--json").stdout)["is_pair"] is is_pair
    words = "by containment a pair at threshold 0.8" if is_pair else "not a pair at threshold 0.8"
    assert words in run(*arguments).stdout


@pytest.mark.usefixtures("pages")
def test_documents_of_a_file_are_named_by_id_or_by_row(run):
    named = run("compare", "pages.jsonl:a", "pages.jsonl:b", "--json")
    assert (named.returncode, json.loads(named.stdout)["jaccard"]) == (0, 14 / 16)
    assert (
        json.loads(run("compare", "pages.jsonl:1", "pages.jsonl:b", "--json").stdout)["jaccard"]
        == 14 / 16
    )
    assert (
        "A: pages.jsonl:a, 15 shingles" in run("compare", "pages.jsonl:a", "pages.jsonl:b").stdout
    )


@pytest.mark.parametrize(
    ("document", "error", "hint"),
    [
        ("pages.jsonl:aa", "pages.jsonl has no document 'aa'", "did you mean a?"),
        ("pages.jsonl:99", "pages.jsonl has no document '99'", "its ids look like a, b, c"),
        ("x:1", "x:1 does not exist", "check the spelling and the current folder"),
    ],
)
@pytest.mark.usefixtures("pages")
def test_a_missing_document_is_named_in_the_error(run, document, error, hint):
    finished = run("compare", document, "pages.jsonl:a")
    assert (finished.returncode, finished.stderr) == (1, f"error: {error}\n\nhint: {hint}\n")


def test_file_names_and_ids_can_contain_colons(run, tmp_path):
    (tmp_path / "a:b.txt").write_text("one two three four five six")
    (tmp_path / "pages.csv").write_text('url,story\nhttp://x/1,"one two three four five six"\n')
    finished = run("compare", "a:b.txt", "pages.csv:http://x/1", "--text-column", "story", "--json")
    assert json.loads(finished.stdout)["jaccard"] == 1


def test_compare_at_similarity_0_says_that_no_shingle_is_shared(run, tmp_path):
    (tmp_path / "a.txt").write_text("one two three four five six")
    (tmp_path / "b.txt").write_text("seven eight nine ten eleven twelve")
    *_, found = run("compare", "a.txt", "b.txt", "--quiet").stdout.splitlines()
    assert found == "chance of being found    0.0000  they have no shingle in common"


def test_encoding_is_that_of_both_files(run, tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_bytes(
            "Öl und Käse, Brot und Wein, süß und scharf".encode("latin-1")
        )
    finished = run("compare", "a.txt", "b.txt", "--json")
    assert finished.returncode == 1
    assert (
        "a.txt is not UTF-8 text: byte 0 is 0xd6\n\nhint: pass its encoding, for example --encoding latin-1"
        in finished.stderr
    )
    finished = run("compare", "a.txt", "b.txt", "--json", "--encoding", "latin-1")
    assert json.loads(finished.stdout)["jaccard"] == 1.0
    (tmp_path / "rows.csv").write_bytes("id,text\n1,Käse\n2,Käse\n".encode("latin-1"))
    finished = run("compare", "rows.csv:1", "rows.csv:2", "--json", "--encoding", "latin-1")
    assert json.loads(finished.stdout)["jaccard"] == 1.0


QUOTE = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"


@pytest.fixture
def essay(tmp_path):
    changed = QUOTE.replace("morning", "day").replace("customs ", "")
    (tmp_path / "essay.txt").write_text(f"My essay.\n{changed}\n", "utf-8")
    (tmp_path / "source.txt").write_text(f"Timetable\n\n{QUOTE}\n", "utf-8")
    return "essay.txt", "source.txt"


def test_passages_are_listed_with_lines_and_shares(run, essay):
    lines = run("compare", *essay, "--passages", "--min-words", "5").stdout.splitlines()
    assert lines[6:] == [
        "",
        "They share 2 passages of at least 5 words: 80.0 % of A, 80.0 % of B.",
        "",
        "  9 words: A line 2, B line 3",
        "    at nine from the second pier behind the old",
        "",
        "  7 words: A line 2, B line 3",
        "    the ferry to the island leaves every",
    ]
    finished = run("compare", *essay, "--passages", "--edits", "--min-words", "15", "--quiet")
    assert "passage" not in finished.stdout


def test_json_has_every_passage_with_its_positions(run, essay, tmp_path):
    answer = json.loads(run("compare", *essay, "--passages", "--edits", "--json").stdout)
    assert answer["passages"] == []
    assert answer["share_a"] == 0
    asked = ("--passages", "--edits", "--min-words", "15", "--json")
    answer = json.loads(run("compare", *essay, *asked).stdout)
    (passage,) = answer["passages"]
    assert (passage["line_a"], passage["line_b"], passage["words"]) == (2, 3, 16)
    text = (tmp_path / "source.txt").read_text("utf-8")
    assert text[passage["start_b"] : passage["end_b"]] in QUOTE
    assert passage["similarity"] > 0.9
    assert answer["share_b"] > 0.8
    assert "passages" not in json.loads(run("compare", *essay, "--json").stdout)


def test_edits_without_passages_are_refused(run, essay):
    finished = run("compare", *essay, "--edits")
    assert finished.returncode == 2
    assert "--edits needs --passages" in finished.stderr


@pytest.mark.parametrize("ending", ["txt", "py"])
def test_ends_of_lines_alone_are_no_difference(run, tmp_path, ending):
    lines = "one two three\nfour five six\nseven eight nine\nten eleven twelve\n"
    (tmp_path / f"unix.{ending}").write_bytes(lines.encode())
    (tmp_path / f"dos.{ending}").write_bytes(lines.replace("\n", "\r\n").encode())
    changed = lines.replace("five", "5").replace("\n", "\r\n")
    (tmp_path / f"changed.{ending}").write_bytes(changed.encode())
    equal = run("compare", f"unix.{ending}", f"dos.{ending}").stdout
    assert "equal, word for word; only the ends of their lines differ (CRLF in B)." in equal
    differing = run("compare", f"unix.{ending}", f"changed.{ending}").stdout
    assert "1 place differs: 1 word only in A, 1 only in B." in differing
    assert "seven eight nine" in differing
    assert "\r" not in differing
