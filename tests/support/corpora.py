"""Small corpora for runs on files: rows, their encoding in every format, and the oracle's result."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

from neardup import api
from neardup.cli.options import as_paths
from neardup.config import Config
from neardup.engines.local.limits import Memory
from neardup.io import records
from neardup.io.columns import arrow_rows
from neardup.io.documents import in_memory, layout
from neardup.io.formats import arrow, json_array, parquet, text, warc
from neardup.measures import jaccard
from support import oracles

# One equal slot makes a bucket, so that a run finds what the oracle finds: 2**-20 misses a pair at
# the threshold.
EVERY_PAIR = {"bands": 20, "rows": 1, "signature_filter": False, "threshold": 0.5, "size": 2}
TABLE_FORMATS = ("parquet", "pq", "arrow", "feather", "ipc", "arrows")
LINE_FORMATS = ("jsonl", "ndjson", "json", "csv", "tsv")
COMPRESSIONS = ("", ".gz", ".zst")
FORMATS = (*TABLE_FORMATS, *(form + packed for form in LINE_FORMATS for packed in COMPRESSIONS))
WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
PAGE = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "station"])
OTHER = "nothing like the others at all, not a bit"


@functools.cache
def rows(seed=3, num_documents=40):
    """Rows of texts of all kinds, some near-copies of others, some without a word."""
    texts = oracles.random_corpus(seed, num_documents)
    return tuple(
        {
            "id": f"d{number * 7 % 997:03}",
            "text": text,
            "score": number * 5 % 13,
            "site": f"site{number % 3}",
        }
        for number, text in enumerate(texts)
    )


def texts_of(documents):
    return [document["text"] for document in documents]


def packed(content, ending):
    if ending == ".gz":
        return gzip.compress(content, mtime=0)
    return pa.compress(content, "zstd", asbytes=True) if ending == ".zst" else content


def unpacked(path):
    if path.suffix == ".zst":
        return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd").read()
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def encoded(documents, form):
    """The bytes of rows in a format; JSON Lines and CSV in a spelling that no writer would choose again."""
    if form in ("jsonl", "ndjson", "json"):
        return "".join(
            json.dumps(document, ensure_ascii=number % 2 == 0, separators=(",", ": "))
            + ("\r\n" if number % 3 else "\n")
            for number, document in enumerate(documents)
        ).encode()
    if form in ("csv", "tsv"):
        lines = io.StringIO()
        writer = csv.writer(
            lines,
            delimiter="," if form == "csv" else "\t",
            lineterminator="\n",
            quoting=csv.QUOTE_ALL,
        )
        writer.writerow(documents[0])
        writer.writerows(document.values() for document in documents)
        return lines.getvalue().encode()
    return _table_bytes(pa.Table.from_pylist(list(documents)), form)


def _table_bytes(table, form):
    sink = pa.BufferOutputStream()
    if form in ("parquet", "pq"):
        pq.write_table(table, sink, row_group_size=9, compression="zstd")
    elif form == "feather":
        pyarrow.feather.write_feather(table, sink, chunksize=11)
    else:
        with (pa.ipc.new_stream if form == "arrows" else pa.ipc.new_file)(
            sink, table.schema
        ) as writer:
            writer.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


def write_rows(path, documents):
    """Write rows in the format that the ending of the path names."""
    form, _, compression = path.name.partition(".")[2].partition(".")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packed(encoded(documents, form), f".{compression}"))
    return path


def read_rows(path):
    """Read rows back without neardup; every value of CSV is a text."""
    form = path.name.partition(".")[2].partition(".")[0]
    content = unpacked(path)
    if form in ("jsonl", "ndjson", "json"):
        return [json.loads(line) for line in content.split(b"\n") if line.strip()]
    if form in ("csv", "tsv"):
        return list(
            csv.DictReader(
                io.StringIO(content.decode(), newline=""), delimiter="," if form == "csv" else "\t"
            )
        )
    if form in ("parquet", "pq"):
        return pq.read_table(pa.BufferReader(content)).to_pylist()
    opened = pa.ipc.open_stream if form == "arrows" else pa.ipc.open_file
    return opened(pa.BufferReader(content)).read_all().to_pylist()


def write_json_lines(path, documents):
    """Write rows, or lines verbatim."""
    lines = [line if isinstance(line, str) else json.dumps(line) for line in documents]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def deduplicate(inputs, out, **settings):
    """Run on files with settings by name; with LSH unless stated otherwise."""
    return api.deduplicate(
        as_paths(map(str, inputs)), out=out, config=_by_bands(settings), progress=lambda _: None
    )


def find_pairs(inputs, out, **settings):
    return api.find_pairs(
        as_paths(map(str, inputs)), out=out, config=_by_bands(settings), progress=lambda _: None
    )


def _by_bands(settings):
    return Config.of(**({} if "recall" in settings else {"method": "lsh"}) | settings)


# Where the code reads each limit on the size of a piece of the input.
LIMITS = {
    "batch_bytes": ("BATCH_BYTES", (records, arrow_rows, json_array, parquet, text, warc)),
    "part_bytes": ("PART_BYTES", (records, arrow, arrow_rows)),
    "joined_bytes": ("JOINED_BYTES", (layout,)),
    "batch_rows": ("BATCH_ROWS", (in_memory,)),
    "cache_bytes": ("CACHE_BYTES", (jaccard,)),
}


def cut(monkeypatch, **limits):
    """Split the input into batches and parts of about this many bytes or rows, in every format."""
    if "part_bytes" in limits:
        limits.setdefault("joined_bytes", limits["part_bytes"])
    for name, limit in limits.items():
        constant, modules = LIMITS[name]
        for module in modules:
            monkeypatch.setattr(module, constant, limit)


def shrink(monkeypatch, room):
    """Make a run believe that this much memory is left."""
    monkeypatch.setattr(Memory, "room", lambda _: room)


# The oracle's result for texts with the settings of EVERY_PAIR.
Truth = functools.partial(oracles.Truth, threshold=EVERY_PAIR["threshold"], size=EVERY_PAIR["size"])


def removed_rows(report, firsts=None):
    """The kept row of each removed row, counted from 0 over all files; `firsts` are the first rows by file name."""
    firsts = firsts or {}
    return {
        firsts.get(row["file"], 0) + row["row"] - 1: (
            firsts.get(row["kept_file"], 0) + row["kept_row"] - 1,
            row["similarity"],
        )
        for row in report.removed.to_pylist()
    }


def pair_rows(pairs, firsts=None):
    firsts = firsts or {}
    return {
        (
            firsts.get(row["file_a"], 0) + row["row_a"] - 1,
            firsts.get(row["file_b"], 0) + row["row_b"] - 1,
        ): row["similarity"]
        for row in pairs.to_pylist()
    }


def contents(folder, *, without=("seconds", "stages", "peak_memory_bytes")):
    """Every file of an output; report.json without what may differ."""
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    report = json.loads(found["report.json"])
    report["config"] = {
        name: value for name, value in report["config"].items() if name not in ("threads", "memory")
    }
    if report["audit"] is not None:
        report["audit"] = {
            name: value for name, value in report["audit"].items() if name not in without
        }
    found["report.json"] = {name: value for name, value in report.items() if name not in without}
    return found
