"""WARC and WET files: which records are documents, and that kept records keep their bytes."""

from __future__ import annotations

import gzip
import json

import pyarrow.parquet as pq
import pytest

from neardup.io.formats import registry
from support import corpora, web_pages
from support.corpora import NEAR, OTHER, PAGE


def record(kind, url, content_type, content, length=None):
    lines = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        "WARC-Record-ID: <urn:uuid:0>",
        "WARC-Date: 2026-01-01T00:00:00Z",
    ]
    lines += [f"WARC-Target-URI: {url}"] * bool(url)
    lines += [
        f"Content-Type: {content_type}",
        f"Content-Length: {len(content) if length is None else length}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + content + b"\r\n\r\n"


def response(url, content, content_type="text/html; charset=utf-8"):
    header = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return record("response", url, "application/http; msgtype=response", header.encode() + content)


def page(text):
    return f"<html><head><title>t</title></head><body><nav>home</nav><p>{text}</p></body></html>".encode()


INFO = record("warcinfo", "", "application/warc-fields", b"software: made\r\n")
RECORDS = [
    INFO,
    response("http://a.org/1", page(PAGE)),
    record(
        "request", "http://a.org/1", "application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"
    ),
    response("http://a.org/2", page(NEAR)),
    response("http://a.org/3.png", b"\x89PNG", "image/png"),
    response(
        "http://a.org/4",
        page("été " + OTHER).decode().encode("latin-1"),
        "text/html; charset=iso-8859-1",
    ),
    record("response", "http://a.org/5", "application/http; msgtype=response", b"no header at all"),
    record("conversion", "http://a.org/6", "text/plain", f"{OTHER} < 7 & more of it".encode()),
    record("metadata", "http://a.org/6", "application/warc-fields", b"fetchTimeMs: 1\r\n"),
]
KEPT = [0, 1, 5, 7]
ENDINGS = [".warc", ".warc.gz", ".warc.wet.gz"]


def packed(records, ending):
    return b"".join(
        gzip.compress(one, mtime=0) if ending.endswith(".gz") else one for one in records
    )


@pytest.mark.parametrize("options", [(), ("--html",)])
@pytest.mark.parametrize("ending", ENDINGS)
def test_kept_records_keep_their_bytes(ending, options, run, tmp_path):
    (tmp_path / f"crawl{ending}").write_bytes(packed(RECORDS, ending))
    done = run("dedup", f"crawl{ending}", "-o", "out", "-t", "0.7", *options)
    assert done.code == 0, done.stderr
    removed = pq.read_table(tmp_path / "out/removed.parquet").to_pylist()
    assert [(row["doc_id"], row["kept_id"], row["row"]) for row in removed] == [
        ("http://a.org/2", "http://a.org/1", 4)
    ]
    rejected = [
        json.loads(line) for line in (tmp_path / "out/rejected.jsonl").read_text().splitlines()
    ]
    assert [(row["row"], row["reason"]) for row in rejected] == [
        (7, "the response has no HTTP header")
    ]
    kept = (tmp_path / f"out/kept/crawl{ending}").read_bytes()
    assert kept == packed([RECORDS[at] for at in KEPT], ending)
    again = run("dedup", f"out/kept/crawl{ending}", "-o", "again", "-t", "0.7", *options)
    assert "3 documents: 3 kept, 0 removed" in again.stdout
    explained = run("explain", "out", "http://a.org/2")
    assert explained.code == 0, explained.stderr


def test_warc_is_read_under_any_name_and_from_standard_input(programs, tmp_path):
    (tmp_path / "crawl.data").write_bytes(packed(RECORDS, ".gz"))
    done = programs.run(
        "dedup", "crawl.data", "-o", "out", "-t", "0.7", "--format", "warc", cwd=tmp_path
    )
    assert "5 documents: 3 kept, 1 removed (0 exact), 1 rejected" in done.stdout, done.stderr
    text = b"".join(RECORDS[:5]).replace(b"\x89PNG", b"1PNG").decode()
    done = programs.run("dedup", "-", "-o", "piped", "-t", "0.7", cwd=tmp_path, stdin=text)
    assert "2 documents: 1 kept, 1 removed" in done.stdout, done.stderr


def test_a_truncated_record_is_rejected(tmp_path):
    cut = record("conversion", "http://a.org/7", "text/plain", PAGE.encode(), length=5000)
    (tmp_path / "crawl.warc").write_bytes(b"".join([*RECORDS[:2], cut]))
    report = corpora.deduplicate([tmp_path / "crawl.warc"], tmp_path / "out")
    assert report.num_kept == 1
    assert report.rejected.to_pylist() == [
        {"file": "crawl.warc", "row": 3, "reason": "the record is truncated"}
    ]


def test_a_long_record_is_rejected(tmp_path):
    (tmp_path / "crawl.warc").write_bytes(
        b"".join(RECORDS[:2]) + response("http://a.org/9", page("x" * 9000))
    )
    report = corpora.deduplicate([tmp_path / "crawl.warc"], tmp_path / "out", max_document=2000)
    assert (report.num_kept, report.num_rejected) == (1, 1)
    assert (
        "more than the 2,000 that max_document allows" in report.rejected.to_pylist()[0]["reason"]
    )


@pytest.mark.parametrize(
    "content", [b"hello world\n" * 9, b"".join(RECORDS[:2]) + b"garbage\r\n\r\nmore\r\n\r\n"]
)
def test_an_invalid_warc_file_is_an_error_and_leaves_no_output(content, run, tmp_path):
    (tmp_path / "crawl.warc").write_bytes(content)
    done = run("dedup", "crawl.warc", "-o", "out")
    assert done.code == 1
    assert "crawl.warc is not a readable WARC file" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_compressed_as_a_whole_can_be_compared_but_not_extracted(run, tmp_path):
    (tmp_path / "crawl.warc.gz").write_bytes(gzip.compress(b"".join(RECORDS)))
    done = run("dedup", "crawl.warc.gz", "-o", "out", "-t", "0.7")
    assert done.code == 1
    assert "is compressed as a whole, so its records cannot be extracted" in done.stderr
    done = run("dedup", "crawl.warc.gz", "-o", "out", "-t", "0.7", "--dry-run", "--overwrite")
    assert "5 documents: 3 kept, 1 removed" in done.stdout, done.stderr


def test_mirrors_in_a_warc_file_are_found(tmp_path):
    pages, mirrors = web_pages.crawl()
    chosen = [(url, text) for url, text in pages if url in mirrors or url in mirrors.values()]
    records = [response(f"http://made.org/{url}", text.encode()) for url, text in chosen]
    (tmp_path / "crawl.warc.gz").write_bytes(packed([INFO, *records], ".gz"))
    report = corpora.deduplicate([tmp_path / "crawl.warc.gz"], tmp_path / "out")
    found = {
        row["doc_id"].rpartition("/")[2]: row["kept_id"].rpartition("/")[2]
        for row in report.removed.to_pylist()
    }
    assert found == mirrors


def test_an_empty_file_has_no_documents(tmp_path):
    (tmp_path / "crawl.warc").write_bytes(b"")
    assert corpora.deduplicate([tmp_path / "crawl.warc"], tmp_path / "out").documents == 0


def test_warc_extensions_are_recognised():
    assert {ending for ending, form in registry.ENDINGS.items() if form == "warc"} == {
        ".warc",
        ".wet",
    }
