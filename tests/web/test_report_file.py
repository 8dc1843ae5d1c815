"""The report in one file: what is in it, what is not, and how large it gets."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from collections import Counter
from pathlib import Path

import pytest

import neardup
from neardup.errors import ConfigError, DataError, NotStoredError
from neardup.web import page
from neardup.web.page_data import Pieces
from neardup.web.report_file import write_html
from neardup.web.run_view import RunView
from support.made_run import SETTINGS, data_of, documents, make_run

STATIC = Path(page.__file__).parent / "static"


@pytest.fixture(scope="module")
def data(report):
    return data_of(report.to_html())


def text_of(data, doc_id):
    at = data["documents"]["id"].index(doc_id)
    return "".join(data["pieces"][number] for number in data["documents"]["text"][at])


def test_vendored_files_are_those_that_were_published():
    listed = json.loads((STATIC / "vendor" / "vendored.json").read_text("utf-8"))
    sources = {
        path.name for path in (STATIC / "vendor").iterdir() if path.suffix in (".js", ".css")
    }
    assert {entry["file"] for entry in listed} == sources
    for entry in listed:
        content = (STATIC / "vendor" / entry["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"], entry["file"]
        assert entry["version"]
        assert entry["licence"]
    assert {path.name for path in (STATIC / "vendor").glob("LICENSE-*")} == {
        "LICENSE-htm.txt",
        "LICENSE-preact.txt",
    }


def test_none_of_our_scripts_turns_text_into_html():
    for path in STATIC.glob("*.js"):
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc",
            path.read_text("utf-8"),
            re.IGNORECASE,
        )
        assert found == [], path.name


def test_every_source_is_part_of_the_page():
    assert {f"{path.name}" for path in STATIC.glob("*.js")} == {
        name for name in page.SCRIPTS if "/" not in name
    }


def test_the_policy_allows_exactly_this_script_and_style(report):
    text = report.to_html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    script, style = (
        re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1] for tag in ("script", "style")
    )
    for name, content in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_the_overview_has_the_numbers_of_the_report(report, data):
    info = data["info"]
    assert info["counts"]["removed"] == report.num_removed > 5
    assert info["counts"]["identical"] == report.removed.column("similarity").to_pylist().count(1)
    assert info["counts"]["kept"] == report.num_kept
    assert info["counts"]["rejected"] == report.num_rejected == 1
    assert sum(info["histogram"]["removed"]) == report.num_removed
    assert sum(info["histogram"]["pairs"]) == report.num_pairs
    assert (
        sum(size * count for size, count in info["sizes"]) - info["counts"]["clusters"]
        == report.num_removed
    )
    assert info["rejected"]["rows"][0]["row"] == len(documents()) + 1
    largest = report.largest_clusters(1).to_pylist()[0]
    assert (info["largest"][0]["id"], info["largest"][0]["size"]) == (
        largest["cluster_id"],
        largest["documents"],
    )
    assert info["largest"][0]["weakest"] == largest["similarity"]


def test_the_slider_counts_as_at_threshold_does(report, data):
    steps = data["info"]["slider"]["steps"]
    assert [step["threshold"] for step in steps] == [step / 100 for step in range(60, 101)]
    for step in steps[::8]:
        again = report.at_threshold(step["threshold"])
        assert (step["removed"], step["kept"], step["pairs"]) == (
            again.num_removed,
            again.num_kept,
            again.num_pairs,
        )
        assert step["clusters"] == len(set(again.removed.column("kept_id").to_pylist()))


@pytest.mark.parametrize("settings", [{}, {"per_cluster": 2}, {"cluster": "components"}])
def test_the_slider_in_memory_and_on_files_agree(settings, tmp_path):
    texts = {name: text for name, text in documents().items() if not name.startswith("long")}
    (tmp_path / "pages.jsonl").write_text(
        "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()),
        "utf-8",
    )
    chosen = SETTINGS | settings
    in_memory = data_of(neardup.deduplicate(texts, **chosen).to_html())["info"]["slider"]
    on_files = data_of(neardup.deduplicate(tmp_path / "pages.jsonl", **chosen).to_html())["info"][
        "slider"
    ]
    assert in_memory == on_files
    assert in_memory["steps"] or "cluster" in settings


def test_without_pairs_the_page_says_how_to_get_them():
    info = data_of(neardup.deduplicate(["a b c d e f", "a b c d e f"]).to_html())["info"]
    assert info["slider"] == {
        "steps": [],
        "hint": "Run `neardup dedup --pairs` to see what a higher threshold would remove.",
    }


def test_the_heat_map_holds_exact_similarities(data):
    row = next(row for row in data["clusters"] if row[1] == 6)
    keys = row[3]
    values = data["matrices"][str(row[0])]
    ids = dict(zip(data["documents"]["key"], data["documents"]["id"], strict=True))
    texts = documents()
    at = 0
    for low, first in enumerate(keys):
        for second in keys[low + 1 :]:
            exact = neardup.compare(
                texts[ids[first]], texts[ids[second]], size=2, seed=SETTINGS["seed"]
            ).jaccard
            assert values[at] == pytest.approx(exact, abs=5e-5)
            at += 1
    assert at == len(values) == 15


def test_texts_round_trip_and_long_ones_are_cut(data):
    for name, text in documents().items():
        shown = text_of(data, name)
        assert text.startswith(shown)
        at = data["documents"]["id"].index(name)
        assert data["documents"]["is_whole"][at] == (shown == text)
        assert data["documents"]["bytes"][at] == len(text.encode())
    assert len(text_of(data, "long-0")) <= 50_000
    assert data["info"]["bytes"]["removed"] == sum(
        len(documents()[name].encode())
        for name, kept in zip(data["documents"]["id"], data["documents"]["kept"], strict=True)
        if kept is not None
    )


def test_every_pair_shows_all_that_differs_or_counts_what_is_left_out():
    """Words that stand anywhere in long texts, and some that no page has room for."""
    chance = random.Random(5)
    texts = {}
    for number in range(12):
        words = [f"w{chance.randrange(10**6)}" for _ in range(chance.choice([300, 9_000, 12_000]))]
        words[::12] = [f"{word}." for word in words[::12]]
        texts[f"{number}-0"] = " ".join(words)
        for copy in (1, 2):
            changed = list(words)
            for place in chance.sample(range(len(words)), len(words) // 600 or 2):
                changed[place] = f"edited{number}x{copy}x{place}"
            if number == 0:
                changed += ["y" * 40_000]
            texts[f"{number}-{copy}"] = " ".join(changed)
    report = neardup.deduplicate(texts)
    small, whole = (report.to_html(limit=limit) for limit in (400_000, 3_000_000))
    assert len(small.encode()) <= 400_000
    some = check_evidence(data_of(small), texts)
    assert some["pairs"] >= 5
    assert some["by hunks"] >= 2
    every = check_evidence(data_of(whole), texts)
    assert every["pairs"] == 24
    assert every["left out"] == 2


def check_evidence(data, texts):
    """For every pair of a page: the whole texts, or hunks with every differing word, or a number of those left out."""
    told = data["documents"]
    whole = dict(zip(told["key"], told["is_whole"], strict=True))
    ids = dict(zip(told["key"], told["id"], strict=True))
    hunks = {tuple(one["pair"]): one for one in data["hunks"]}
    counts = Counter()
    for kept, *members in (row[3] for row in data["clusters"]):
        for member in members:
            counts["pairs"] += 1
            if whole[kept] and whole[member]:
                assert text_of(data, ids[kept]) == texts[ids[kept]]
                assert text_of(data, ids[member]) == texts[ids[member]]
                continue
            found = hunks[kept, member]
            counts["by hunks"] += 1
            counts["left out"] += sum(found["left_out"]) > 0
            for side, number in enumerate((kept, member)):
                shown = Counter(word for part in found["parts"] for word in part[1 + side].split())
                own = Counter(texts[ids[number]].split())
                other = Counter(texts[ids[member if side == 0 else kept]].split())
                missing = (own - other) - shown
                assert missing.total() == found["left_out"][side]
                assert shown <= own
    return counts


def test_what_all_members_share_is_found_in_whole_texts():
    words = [f"w{number}" for number in range(15_000)]
    texts = [
        " ".join(words),
        " ".join(words[:-3]),
        " ".join([*words[:14_000], "new", *words[14_000:]]),
    ]
    data = data_of(neardup.deduplicate(texts).to_html())
    sets = [set(neardup.shingles(text).tolist()) for text in texts]
    [shared] = data["shared"].values()
    assert shared["shared"] == len(set.intersection(*sets)) == 14_996 - 3 - 4
    assert (shared["shingles"], shared["members"]) == (14_996, 3)
    spans = [texts[0][start:stop] for start, stop in shared["spans"]]
    assert spans == [" ".join(words[:-3])]


def test_the_seed_is_not_in_the_page(report):
    assert report.config.seed == SETTINGS["seed"]
    assert str(SETTINGS["seed"]) not in report.to_html()


def test_hostile_texts_do_not_end_the_data(report):
    text = report.to_html()
    assert text.count("</script>") == 2
    packed = text.partition('id="data">')[2].partition("</script>")[0]
    assert re.fullmatch(r"[A-Za-z0-9+/]+=*", packed)
    assert "hacked = 1" in json.dumps(data_of(text))
    assert "window.hacked = 1" not in text
    assert "\u2028" not in text
    assert "\u2029" not in text


def test_a_small_limit_leaves_clusters_out_and_says_so():
    texts = []
    for number in range(700):
        words = " ".join(f"w{number}x{place}" for place in range(60))
        texts += [words, f"{words} tail"]
    whole, small = (neardup.deduplicate(texts).to_html(limit=limit) for limit in ("3MB", "300kB"))
    assert len(whole.encode()) <= 3_000_000
    assert len(small.encode()) <= 300_000
    assert data_of(whole)["info"]["sample"] | {"documents": 0} == {
        "largest": 500,
        "drawn": 200,
        "alone": 0,
        "pairs": 0,
        "members": 20,
        "documents": 0,
    }
    sample = data_of(small)["info"]["sample"]
    assert 0 < sample["largest"] + sample["drawn"] == len(data_of(small)["clusters"]) < 700
    assert data_of(small)["info"]["counts"]["clusters"] == 700
    with pytest.raises(ConfigError, match="`limit` must be at least 300 kB"):
        neardup.deduplicate(texts[:4]).to_html(limit=1000)


def test_what_fits_is_counted_before_it_is_written():
    pieces = Pieces(
        {
            0: "one sentence here that is rather long indeed. " * 3 + "end",
            1: "another, and <b> tags",
        }
    )
    assert pieces.cut_for([0, 1], 10**6) > 10**6
    assert pieces.cut_for([0, 1], 10) == 0
    assert pieces.cut_for([], 10**6) == 0
    shown, is_whole = pieces.beginning(0, 50)
    assert ("".join(shown), is_whole) == (
        "one sentence here that is rather long indeed. " * 2,
        False,
    )


def test_without_texts_none_is_in_the_file(report):
    text = json.dumps(data_of(report.to_html(text=False)))
    assert "ferry-0" in text
    assert documents()["ferry-0"].split()[0] not in text
    assert json.loads(text)["info"]["texts"]["reason"] == "this report was written without texts"
    assert set(json.loads(text)["documents"]["digest"]) == {None}


def test_changed_inputs_leave_the_texts_out_and_say_why(tmp_path):
    folder = make_run(tmp_path)
    (tmp_path / "pages.jsonl").write_text("{}\n", "utf-8")
    info = data_of(neardup.load(folder).to_html())["info"]
    assert info["texts"]["state"] == "absent"
    assert "has changed since the run" in info["texts"]["reason"]


def test_a_run_in_memory_has_the_same_page():
    report = neardup.deduplicate(
        {"a": "one two three four five six", "b": "One two three four five six!"}
    )
    data = data_of(report.to_html())
    assert text_of(data, "a") == "one two three four five six"
    assert data["clusters"] == [[0, 2, 1.0, [0, 1]]]
    assert RunView(report).location(1) == (None, 1)


def test_a_run_of_items_shows_them_line_by_line():
    report = neardup.deduplicate(items=[["tea", "milk"], ["milk", "tea"]])
    data = data_of(report.to_html())
    assert sorted(text_of(data, "0").split()) == ["milk", "tea"]
    assert data["info"]["shingles"]["unit"] == "item"


def test_vectors_have_no_texts():
    report = neardup.deduplicate([[1.0, 2.0], [1.0, 2.0]], measure="cosine")
    assert "by cosine, not texts" in data_of(report.to_html())["info"]["texts"]["reason"]


def test_documents_of_against_are_shown_with_their_texts(tmp_path):
    text = " ".join(f"w{place}" for place in range(30))
    for name in ("old", "new"):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"id": name, "text": text}) + "\n", "utf-8"
        )
    report = neardup.deduplicate(
        tmp_path / "new.jsonl", out=tmp_path / "clean", against=tmp_path / "old.jsonl"
    )
    data = data_of(report.to_html())
    assert text_of(data, "old") == text_of(data, "new") == text
    assert data["documents"]["kept"][data["documents"]["id"].index("new")] == 0


def test_a_file_is_written_whole_and_never_over_another(report, tmp_path):
    size = write_html(report, tmp_path / "report.html")
    assert size == (tmp_path / "report.html").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(DataError, match="already exists"):
        write_html(report, tmp_path / "report.html")
    with pytest.raises(DataError, match="is a folder"):
        write_html(report, tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        write_html(report, tmp_path / "no" / "report.html")


def test_a_run_of_passages_is_refused_by_name(tmp_path):
    text = "one two three four five six seven eight nine ten"
    (tmp_path / "pages.jsonl").write_text((json.dumps({"text": text}) + "\n") * 3, "utf-8")
    run = neardup.find_passages(
        tmp_path / "pages.jsonl", out=tmp_path / "cut", cut=True, min_words=5
    )
    with pytest.raises(NotStoredError, match="this run searched texts"):
        write_html(run, tmp_path / "report.html")


def test_only_a_page_is_overwritten(report, tmp_path):
    path = tmp_path / "report.html"
    for written in (b"", b"\n<!DOCTYPE html><title>older</title>"):
        path.write_bytes(written)
        write_html(report, path, overwrite=True)
    pairs = tmp_path / "pairs.parquet"
    pairs.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="is not an HTML page, so it is not replaced"):
        write_html(report, pairs, overwrite=True)
    assert pairs.read_bytes() == b"PAR1"


def test_dedup_writes_the_page_into_its_output_and_may_overwrite_it(programs, tmp_path):
    rows = [
        {"id": "a", "text": "one two three four five six"},
        {"id": "b", "text": "One two three four five six!"},
    ]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    command = ("dedup", "pages.jsonl", "-o", "clean", "--report")
    for extra in ((), ("--overwrite",)):
        done = programs.run(*command, *extra, cwd=tmp_path)
        assert done.code == 0, done.stderr
    data = data_of((tmp_path / "clean" / "report.html").read_text("utf-8"))
    assert data["info"]["name"] == "clean"
    assert text_of(data, "b") == rows[1]["text"]
    assert "report.html" in neardup.load(tmp_path / "clean").files
    done = programs.run("report", "clean", "-o", "page.html", cwd=tmp_path)
    assert (done.code, done.stdout[:20]) == (0, "Written to page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == (
        tmp_path / "clean" / "report.html"
    ).read_text("utf-8")
    again = programs.run("report", "clean", "-o", "page.html", cwd=tmp_path)
    assert again.code == 1
    assert "already exists" in again.stderr
