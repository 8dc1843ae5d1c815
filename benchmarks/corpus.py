"""Generated inputs of the benchmarks: edited copies of real text, short documents, a million copies of one page.

Everything follows from a seed: the same call writes the same documents.
"""

import math
import re
from contextlib import ExitStack

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import harness

SCHEMA = pa.schema({"id": pa.large_string(), "text": pa.large_string()})
WORD = re.compile("[A-Za-z0-9]+")
NUM_FILES = 8
SHINGLE_WORDS = 5
MAX_WORDS = 36
PAGE_BATCH = 250_000
FEWEST_PAGE_WORDS = 250
MAX_PAGE_WORDS = 1_000
NO_WORD = 0
# Of `_random_words`: 3 to 9 letters and a space.
MEAN_WORD_BYTES = 7
# The similarity of an edited copy to its document: about half of the copies are duplicates at .8,
# or none is.
NEAR = (0.6, 1.0)
FAR = (0.2, 0.4)
REPEATED = 0.02


def base(corpora, folder):
    """Return the file of documents that copies are made of: docs.parquet, or the standard library of this Python."""
    if corpora is not None:
        return corpora / "docs.parquet"
    file = folder / "standard-library.parquet"
    texts = harness.standard_library()
    pq.write_table(
        pa.table({"id": [f"file-{number}" for number in range(len(texts))], "text": texts}), file
    )
    return file


def text_bytes(source):
    """The UTF-8 bytes of all texts of a Parquet file or a folder of them."""
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    return sum(
        pc.sum(pc.binary_length(pq.read_table(file, columns=["text"]).column("text"))).as_py()
        for file in files
    )


def num_documents(source):
    files = sorted(source.glob("*.parquet")) if source.is_dir() else [source]
    return sum(pq.ParquetFile(file).metadata.num_rows for file in files)


def edited_copies(source, folder, num_bytes, *, num_documents=math.inf, seed=1):
    """Write edited copies of the documents of a file until the text reaches `num_bytes`, or there are `num_documents`.

    Copy 0 is the document itself; the others replace a share of its words so that the similarity to
    copy 0 is spread evenly over .6 to 1.0. Copies of one document lie far apart, in any of the
    files. Written three times: `parquet/` and `jsonl/` in 8 files each, `one-file.parquet`.
    """
    _write_edited(source, folder, (num_bytes, num_documents), NEAR, seed)


def few_duplicates(source, folder, num_bytes, *, seed=1):
    """Write differently edited copies of a corpus until the text reaches `num_bytes`, as `edited_copies` does.

    Every copy, the first one too, is only .2 to .4 similar to its document, so that two of them are
    hardly ever similar. One document in fifty is the copy before with a word at its end.
    """
    _write_edited(source, folder, (num_bytes, math.inf), FAR, seed)


def _write_edited(source, folder, limits, targets, seed):
    num_bytes, num_documents = limits
    table = pq.read_table(source, columns=["id", "text"])
    ids = table.column("id").to_pylist()
    texts = table.column("text").to_pylist()
    spans = [[found.span() for found in WORD.finditer(text)] for text in texts]
    vocabulary = _vocabulary(texts)
    before = {}
    random = np.random.default_rng(seed)
    written = 0
    copy = 0
    count = 0
    with ExitStack() as stack:
        writers = [stack.enter_context(_Writer(folder, number)) for number in range(NUM_FILES)]
        while written < num_bytes and count < num_documents:
            for doc, text in enumerate(texts):
                if targets == NEAR:
                    edited = (
                        text if copy == 0 else _edit(text, spans[doc], vocabulary, random, targets)
                    )
                elif doc in before and random.random() < REPEATED:
                    edited = f"{before[doc]} {vocabulary[random.integers(len(vocabulary))]}"
                else:
                    edited = before[doc] = _edit(text, spans[doc], vocabulary, random, targets)
                written += writers[random.integers(NUM_FILES)].add(f"{ids[doc]}-{copy}", edited)
                count += 1
                if written >= num_bytes or count >= num_documents:
                    break
            copy += 1
    _join(folder)


def slice_of(source, file, num_bytes):
    """Write the first documents of a file, up to a number of bytes, to another file."""
    table = pq.read_table(source, columns=["id", "text"])
    ends = np.cumsum(pc.binary_length(table.column("text")).to_numpy())
    pq.write_table(table.slice(0, int(np.searchsorted(ends, num_bytes)) + 1), file)


def _vocabulary(texts):
    """Replacement words: every hundredth word of the first texts, so that frequent ones stay frequent."""
    words = [word for text in texts[:500] for word in WORD.findall(text)]
    return words[::100]


def _edit(text, spans, vocabulary, random, targets):
    """Replace words so that the Jaccard similarity of the 5-word shingles comes near a random one of the targets."""
    target = random.uniform(*targets)
    # A shingle stays when none of its words is replaced; a share f that stays gives J = f / (2 -
    # f).
    share = 1 - (2 * target / (1 + target)) ** (1 / SHINGLE_WORDS)
    chosen = (
        np.sort(random.choice(len(spans), round(share * len(spans)), replace=False))
        if spans
        else []
    )
    pieces = []
    end = 0
    for word, number in zip(
        chosen, random.integers(len(vocabulary), size=len(chosen)), strict=True
    ):
        begin, next_end = spans[word]
        pieces += [text[end:begin], vocabulary[number]]
        end = next_end
    return "".join([*pieces, text[end:]])


class _Writer:
    """One of the files, as Parquet and as JSON Lines, a bounded number of documents at a time."""

    def __init__(self, folder, number):
        for name in ("parquet", "jsonl"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._parquet = pq.ParquetWriter(folder / "parquet" / f"part-{number}.parquet", SCHEMA)
        self._jsonl = (folder / "jsonl" / f"part-{number}.jsonl").open("wb")
        self._ids = []
        self._texts = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._flush()
        self._parquet.close()
        self._jsonl.close()

    def add(self, doc_id, text):
        """Take a document; return the bytes of its text."""
        self._ids.append(doc_id)
        self._texts.append(text)
        if len(self._ids) == 2_000:
            self._flush()
        return len(text.encode())

    def _flush(self):
        self._parquet.write_table(pa.table([self._ids, self._texts], schema=SCHEMA))
        for doc_id, text in zip(self._ids, self._texts, strict=True):
            self._jsonl.write(msgspec.json.encode({"id": doc_id, "text": text}) + b"\n")
        self._ids = []
        self._texts = []


def _join(folder):
    """Write the Parquet files once more as one file."""
    with pq.ParquetWriter(folder / "one-file.parquet", SCHEMA) as writer:
        for file in sorted((folder / "parquet").glob("*.parquet")):
            reader = pq.ParquetFile(file)
            for batch in reader.iter_batches():
                writer.write_batch(batch)


def short_documents(file, count, *, seed=1):
    """Write documents of 20 to 36 words, about 200 bytes; one in ten is a near-copy of one in the tenth before it."""
    random = np.random.default_rng(seed)
    words = _random_words(50_000, random)
    _write_words(file, words, _short_batches(count, len(words), random))


def hot_page(file, count, *, strays=0.0, seed=1):
    """Write one page of 120 words, then copies of it: a fifth exact, the others with one or two words replaced.

    All of them are >= .8 similar to the page. `strays` is the share with six words replaced, which
    are not.
    """
    random = np.random.default_rng(seed)
    words = _random_words(50_000, random)
    page = random.integers(1, len(words), 120, dtype=np.int32)
    _write_words(file, words, _page_batches(page, count, strays, len(words), random))


def pages(folder, num_bytes, *, seed=1):
    """Write pages of 250 to 1,000 words, about `num_bytes` in 8 files; one in fifty is a near-copy of another."""
    random = np.random.default_rng(seed)
    words = _random_words(50_000, random)
    folder.mkdir()
    for number in range(NUM_FILES):
        batches = _page_texts(num_bytes // NUM_FILES, len(words), random)
        _write_words(folder / f"part-{number}.parquet", words, batches)


def _page_texts(num_bytes, num_words, random):
    mean_words = (FEWEST_PAGE_WORDS + MAX_PAGE_WORDS) / 2
    count = max(2, round(num_bytes / (mean_words * MEAN_WORD_BYTES)))
    previous = None
    for size in _batch_sizes(count, 1_000):
        # Half as many of twice the rank, as in natural text.
        numbers = (num_words ** random.random((size, MAX_PAGE_WORDS), dtype=np.float32)).astype(
            np.int32
        )
        numbers[
            np.arange(MAX_PAGE_WORDS)
            >= random.integers(FEWEST_PAGE_WORDS, MAX_PAGE_WORDS + 1, (size, 1))
        ] = NO_WORD
        if previous is not None:
            rows = np.flatnonzero(random.random(size) < REPEATED)
            numbers[rows] = previous[random.integers(len(previous), size=len(rows))]
            numbers[rows, random.integers(FEWEST_PAGE_WORDS, size=len(rows))] = random.integers(
                1, num_words, len(rows)
            )
        previous = numbers
        yield numbers


def _short_batches(count, num_words, random):
    previous = None
    # Ten batches at every size, so that a larger input has more copies but not more of one
    # document.
    for size in _batch_sizes(count, count // 10):
        numbers = random.integers(1, num_words, (size, MAX_WORDS), dtype=np.int32)
        lengths = random.integers(20, MAX_WORDS + 1, (size, 1))
        numbers[np.arange(MAX_WORDS) >= lengths] = NO_WORD
        if previous is not None:
            _plant_copies(numbers, previous, num_words, random)
        previous = numbers
        yield numbers


def _plant_copies(numbers, previous, num_words, random):
    """Overwrite one document in ten: a third by exact copies, the others with one of the first four words replaced."""
    rows = np.flatnonzero(random.random(len(numbers)) < 0.1)
    numbers[rows] = previous[random.integers(len(previous), size=len(rows))]
    edited = rows[len(rows) // 3 :]
    numbers[edited, random.integers(4, size=len(edited))] = random.integers(
        1, num_words, len(edited)
    )


def _page_batches(page, count, strays, num_words, random):
    first = True
    for size in _batch_sizes(count, PAGE_BATCH):
        numbers = np.tile(page, (size, 1))
        num_edits = np.where(
            random.random(size) < strays, 6, random.choice(3, size, p=[0.2, 0.5, 0.3])
        )
        if first:
            num_edits[0] = 0
            first = False
        for edit in range(6):
            rows = np.flatnonzero(num_edits > edit)
            numbers[rows, random.integers(len(page), size=len(rows))] = random.integers(
                1, num_words, len(rows)
            )
        yield numbers


def _batch_sizes(count, batch):
    return [min(batch, count - first) for first in range(0, count, batch)]


def _random_words(count, random):
    """Words of 3 to 9 letters and a space, padded with zero bytes; the first is empty."""
    words = random.integers(ord("a"), ord("z") + 1, (count, 10), dtype=np.uint8)
    lengths = random.integers(3, 10, count)
    words[np.arange(10) > lengths[:, None]] = 0
    words[np.arange(count), lengths] = ord(" ")
    words[NO_WORD] = 0
    return words


def _write_words(file, words, batches):
    """Write documents that are given as word numbers; the ids count from 0."""
    row = 0
    with pq.ParquetWriter(file, SCHEMA) as parquet:
        for numbers in batches:
            for part in np.array_split(numbers, max(1, len(numbers) // 50_000)):
                ids = pc.cast(pa.array(np.arange(row, row + len(part))), pa.large_string())
                parquet.write_table(pa.table([ids, _texts(words, part)], schema=SCHEMA))
                row += len(part)


def _texts(words, numbers):
    """Turn word numbers, one row per document, into texts, whole columns at a time."""
    characters = words[numbers].reshape(len(numbers), -1)
    is_used = characters != 0
    ends = np.r_[0, np.cumsum(is_used.sum(axis=1))].astype(np.int64)
    return pa.LargeStringArray.from_buffers(
        len(numbers), pa.py_buffer(ends), pa.py_buffer(characters[is_used])
    )
