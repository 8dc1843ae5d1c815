"""Text to shingle hashes: compiled against plain Python, against the oracle, and at the end of the buffer."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import random
import signal
import subprocess
import sys
import time
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import neardup
from neardup.kernels import folding, shingle, unicode
from neardup.kernels.keys import shingle_key
from support import oracles
from support.plain_kernels import plain

TABLE = tuple(unicode.load_table())
KERNELS = pytest.mark.parametrize("name", ["shingle_words", "shingle_characters"])
EVERY_KERNEL = pytest.mark.parametrize(
    "name", ["shingle_words", "shingle_characters", "shingle_items"]
)
FLAGS = pytest.mark.parametrize("fold_numbers", [False, True])

VOCABULARY = """
the Harbour BRIDGE don't e-mail x² a1 _ 7 2024 3.14 ab1234567890123456789 internationalisierung
Café naïve straße ÅNGSTRÖM Ⱥlias ſharp ﬁne Ǆ İstanbul ΣΟΦΌΣ σοφός Ἀθῆναι Москва ЁЛКА їжак
العربية كِتَاب ١٢٣ हिन्दी क्षत्रिय १२ ไทย กำลัง ๑๒ ລາວ ខ្មែរ မြန်မာ
東京 カード ひらがな 人々 〇 中文分词 한국어 Ⅷ 😀 👩‍💻 𝒳 𠀀 １９ می\u200cروم Donau\u00addampf \ufeff
""".split()
BLANKS = (" ", "  ", "\n", "\t", "\u00a0", "\u3000", ", ", ". ", "", " – ", "\u00ad", " \u200b ")
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
# One of each kind of invalid UTF-8: truncated, overlong, a surrogate, above U+10FFFF, a lone
# continuation, never valid.
INVALID = {
    "two bytes cut off": b"\xc3",
    "three bytes cut off after one": b"\xe6",
    "three bytes cut off after two": b"\xe6\xbc",
    "four bytes cut off after one": b"\xf0",
    "four bytes cut off after two": b"\xf0\x9f",
    "four bytes cut off after three": b"\xf0\x9f\x98",
    "overlong in two bytes": b"\xc0\xaf",
    "overlong letter": b"\xc1\xa1",
    "overlong in three bytes": b"\xe0\x81\xa1",
    "overlong in four bytes": b"\xf0\x80\x81\xa1",
    "first surrogate": b"\xed\xa0\x80",
    "last surrogate": b"\xed\xbf\xbf",
    "first above U+10FFFF": b"\xf4\x90\x80\x80",
    "first byte F5": b"\xf5\x80\x80\x80",
    "byte FE": b"\xfe",
    "byte FF": b"\xff",
    "lone continuation": b"\x80",
    "many continuations": b"\xbf" * 70,
    "two bytes then a letter": b"\xc3a",
    "three bytes then a letter": b"\xe6\xbca",
    "three bytes then a sequence": b"\xe6\xbc\xc3\xa9",
}


PLAIN = plain(shingle)


def readonly(data):
    source = np.frombuffer(data, np.uint8)
    source.flags.writeable = False
    return source


def run(kernel, source, offsets, *, size=1, seed=1, fold_numbers=False):
    """Run a kernel over the documents of a buffer; return (hashes, ends, is_normal)."""
    offsets = np.asarray(offsets, np.int64)
    shingles = np.zeros(int(offsets[-1] - offsets[0]) + offsets.size, np.uint64)
    ends = np.full(offsets.size, -1, np.int64)
    is_normal = np.zeros(offsets.size - 1, np.bool_)
    with np.errstate(over="ignore"):
        kernel(
            source, offsets, TABLE, size, shingle_key(seed), fold_numbers, shingles, ends, is_normal
        )
    return shingles[: ends[-1]].tolist(), ends.tolist(), is_normal.tolist()


def run_documents(name, documents, **options):
    """Run a compiled kernel over texts or byte strings end to end."""
    documents = [doc.encode() if isinstance(doc, str) else doc for doc in documents]
    offsets = list(itertools.accumulate(map(len, documents), initial=0))
    return run(getattr(shingle, name), readonly(b"".join(documents)), offsets, **options)


def hashes_of(name, document, **options):
    return run_documents(name, [document], **options)[0]


def hashes_by_document(name, documents, **options):
    hashes, ends, _ = run_documents(name, documents, **options)
    return [hashes[start:end] for start, end in itertools.pairwise(ends)]


def assert_compiled_is_plain(name, data, offsets, **options):
    source = readonly(data)
    compiled = run(getattr(shingle, name), source, offsets, **options)
    assert compiled == run(getattr(PLAIN, name), source, offsets, **options)


def random_text(rng, num_words):
    return "".join(rng.choice(VOCABULARY) + rng.choice(BLANKS) for _ in range(num_words))


def nfc(text):
    return unicodedata.normalize("NFC", text)


def oracle_windows(unit, text, size, fold_numbers=False):
    units = {"word": oracles.words, "char": oracles.characters}[unit](
        text, fold_numbers=fold_numbers
    )
    return (
        [tuple(units[at : at + size]) for at in range(max(1, len(units) - size + 1))]
        if units
        else []
    )


def assert_hashes_name_windows(name, texts, size, fold_numbers=False):
    """The hashes are in the order of the oracle's windows; equal windows have equal hashes, others differ."""
    unit = {"shingle_words": "word", "shingle_characters": "char"}[name]
    windows = [oracle_windows(unit, text, size, fold_numbers) for text in texts]
    hashes, ends, _ = run_documents(name, texts, size=size, fold_numbers=fold_numbers)
    assert np.diff(ends).tolist() == [len(document) for document in windows]
    named = set(zip(itertools.chain(*windows), hashes, strict=True))
    assert len(named) == len({window for window, _ in named}) == len({value for _, value in named})


# Compiled against plain Python


@st.composite
def buffers(draw, pieces):
    """Bytes, and offsets that split them into documents anywhere, even inside a character."""
    data = b"".join(draw(st.lists(pieces, max_size=12)))
    cuts = draw(st.lists(st.integers(0, len(data)), max_size=3))
    return data, sorted([draw(st.sampled_from([0, len(data) // 3])), len(data), *cuts])


RUN_OPTIONS = {
    "size": st.integers(1, 8),
    "fold_numbers": st.booleans(),
    "seed": st.integers(0, 2**64 - 1),
}
UNICODE_PIECES = st.one_of(
    st.sampled_from([*VOCABULARY, *BLANKS]),
    st.text(max_size=8),
    st.text("aZ09 é漢Ⱥ\u0301", max_size=90),
).map(lambda text: text.encode("utf-8", "replace"))
BYTE_PIECES = st.one_of(
    st.binary(max_size=70), st.sampled_from([*INVALID.values(), b"a", b" ", b"\xc3\xa9"])
)


@EVERY_KERNEL
@given(case=buffers(BYTE_PIECES), options=st.fixed_dictionaries(RUN_OPTIONS))
@example(case=(b"", [0, 0]), options={"size": 1, "fold_numbers": False, "seed": 0})
@example(case=(b"a", [0, 1]), options={"size": 8, "fold_numbers": True, "seed": 2**64 - 1})
def test_the_compiled_kernel_equals_plain_python_on_random_bytes(name, case, options):
    assert_compiled_is_plain(name, *case, **options)


@EVERY_KERNEL
@given(case=buffers(UNICODE_PIECES), options=st.fixed_dictionaries(RUN_OPTIONS))
def test_the_compiled_kernel_equals_plain_python_on_random_text(name, case, options):
    assert_compiled_is_plain(name, *case, **options)


@EVERY_KERNEL
@FLAGS
@pytest.mark.parametrize("around", [b"", b"a", b"word ", b"x" * 63, "漢é".encode()])
@pytest.mark.parametrize("broken", INVALID.values(), ids=INVALID)
def test_invalid_utf8_is_read_as_in_plain_python(name, fold_numbers, around, broken):
    for data in (broken, around + broken, broken + around, around + broken + around):
        assert_compiled_is_plain(name, data, [0, len(data)], fold_numbers=fold_numbers)


@pytest.mark.parametrize("broken", INVALID.values(), ids=INVALID)
def test_invalid_utf8_separates_words(broken):
    without_letters = broken.rstrip(b"a").removesuffix("é".encode())
    assert hashes_of("shingle_words", b"left" + without_letters + b" right") == hashes_of(
        "shingle_words", "left right"
    )


@KERNELS
@pytest.mark.parametrize(
    "unit",
    [
        "Ⱥ",
        "aⱥ",
        "Ⱥ漢",
        "a漢",
        "aไ",
        "a b ",
        "漢",
        "𠀀",
        "a𠀀",
        "\u212a",
        "ſ",
        "١",
        "a١",
        "😀",
        "\u0301",
        "ab\u0301",
    ],
)
def test_case_folding_that_changes_the_length_stays_within_buffers(name, unit):
    """Plain Python checks every index, so an overflow would raise here."""
    data = (unit * 50).encode()
    assert_compiled_is_plain(name, data, [0, len(data)], fold_numbers=True)


@KERNELS
def test_every_code_point_is_read_as_in_plain_python(name):
    """Every 37th, between two letters; each document also starts at another offset in its block."""
    points = "".join(
        chr(point) for point in range(0x80, 0x110000, 37) if not 0xD800 <= point < 0xE000
    )
    documents = [f"a{points[at : at + 64]}b " for at in range(0, len(points), 64)]
    data = "".join(documents).encode()
    offsets = [0, *itertools.accumulate(len(document.encode()) for document in documents)]
    assert_compiled_is_plain(name, data, offsets)


# The position of a document


@EVERY_KERNEL
@pytest.mark.parametrize("before", ["x", " ", "é", "漢"])
@pytest.mark.parametrize("after", ["", "y", "é"])
def test_hashes_do_not_depend_on_the_position_in_the_buffer(name, before, after):
    document = ("Straße " * 11 + "x" * 70 + " 東京 1234 a\u0301b end").encode()
    alone = run_documents(name, [document], size=2)
    for offset in range(71):
        front = before.encode() * offset
        source = readonly(front + document + after.encode() * (offset % 67))
        hashes, _, is_normal = run(
            getattr(shingle, name), source, [len(front), len(front) + len(document)], size=2
        )
        assert (hashes, is_normal) == (alone[0], alone[2])


@EVERY_KERNEL
def test_documents_of_one_call_do_not_affect_each_other(name):
    rng = random.Random(1)
    documents = [random_text(rng, rng.choice([0, 0, 1, 3, 20, 60])) for _ in range(200)]
    alone = [hashes_of(name, document, size=3) for document in documents]
    assert hashes_by_document(name, documents, size=3) == alone


def guarded(data, page=mmap.PAGESIZE):
    """The bytes directly before a page that must not be read."""
    num_pages = -(-len(data) // page) + 1
    memory = mmap.mmap(-1, (num_pages + 1) * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    no_access = 0
    end = num_pages * page
    memory[end - len(data) : end] = data
    if libc.mprotect(address + end, page, no_access):
        raise OSError(ctypes.get_errno(), "mprotect")
    source = np.frombuffer(memory, np.uint8)[end - len(data) : end]
    source.flags.writeable = False
    return source


READ_PAST_THE_END = """
import ctypes, mmap
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + mmap.PAGESIZE
ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), 0)
ctypes.string_at(address - 1, 1)
ctypes.string_at(address - 1, 2)
"""


def test_guard_page_kills_a_process_that_reads_past_the_end():
    finished = subprocess.run([sys.executable, "-c", READ_PAST_THE_END], check=False)
    assert finished.returncode == -signal.SIGSEGV


@EVERY_KERNEL
@pytest.mark.parametrize(
    "pattern",
    ["word and ", "x", "Straße é ", "漢字 かな", "😀a", " ", "1234567 "],
    ids=lambda pattern: repr(pattern),
)
def test_nothing_is_read_past_the_end_of_the_buffer(name, pattern):
    """A page without access follows the last byte: reading it would end this process."""
    for length in (*range(140), 4095, 4096, 4097):
        data = (pattern.encode() * 4200)[-length:] if length else b""
        expected = run_documents(name, [data], size=2)
        assert run(getattr(shingle, name), guarded(data), [0, length], size=2) == expected


@EVERY_KERNEL
@pytest.mark.parametrize("broken", INVALID.values(), ids=INVALID)
def test_nothing_is_read_past_a_broken_sequence_at_the_end_of_the_buffer(name, broken):
    for data in (broken, b"x" * 64 + broken, b"word " * 20 + broken):
        assert run(getattr(shingle, name), guarded(data), [0, len(data)]) == run_documents(
            name, [data]
        )


@pytest.mark.parametrize(
    ("name", "text", "bytes_per_shingle"),
    [
        ("shingle_words", "a b c d ", 2),
        ("shingle_words", "a漢", 2),
        ("shingle_characters", "ab", 1),
    ],
)
def test_no_more_hashes_are_written_than_the_docstring_states(name, text, bytes_per_shingle):
    documents = [(text * 40)[:length].encode() for length in range(1, 100)]
    offsets = np.cumsum([0, *map(len, documents)])
    room = int(offsets[-1]) // bytes_per_shingle + len(documents)
    shingles = np.full(room + 1000, 7, np.uint64)
    ends = np.empty(offsets.size, np.int64)
    is_normal = np.empty(len(documents), np.bool_)
    source = readonly(b"".join(documents))
    key = shingle_key(1)
    getattr(shingle, name)(source, offsets, TABLE, 1, key, False, shingles, ends, is_normal)
    assert (shingles[room:] == 7).all()


# Words of every width


@pytest.mark.parametrize("width", [*range(1, 35), 63, 64, 65, 127, 128, 129, 1000, 1001, 4099])
def test_every_byte_of_a_word_counts(width):
    positions = range(width) if width < 200 else {*range(0, width, 61), *range(width - 20, width)}
    words = ["x" * width, *("x" * at + "y" + "x" * (width - at - 1) for at in positions)]
    hashes = hashes_by_document("shingle_words", words)
    assert len({value for (value,) in hashes}) == len(words)


def test_words_of_one_letter_differ_by_their_width():
    assert (
        len(set(hashes_of("shingle_words", " ".join("z" * width for width in range(1, 1500)))))
        == 1499
    )


@pytest.mark.parametrize("width", [1, 8, 15, 16, 17, 31, 63, 64, 65, 128, 129, 300, 1000])
@pytest.mark.parametrize("letter", ["q", "é", "漢"])
def test_the_hash_of_a_word_does_not_depend_on_block_boundaries(width, letter):
    """Scripts without spaces give one word per character, the others one word that spans several blocks."""
    word = letter * (width // len(letter.encode()) or 1)
    expected = hashes_of("shingle_words", word)
    documents = [" " * offset + word + "!" for offset in range(66)]
    assert hashes_by_document("shingle_words", documents) == [expected] * 66


def test_word_that_ends_with_a_block_does_not_join_the_next():
    for width in (63, 64, 65, 128, 192):
        text = "x" * width + " next"
        assert hashes_of("shingle_words", text) == [
            *hashes_of("shingle_words", "x" * width),
            *hashes_of("shingle_words", "next"),
        ]


# Against the oracle


@KERNELS
@FLAGS
@pytest.mark.parametrize("size", range(1, 9))
def test_hashes_correspond_to_oracle_shingles_of_multilingual_text(name, size, fold_numbers):
    rng = random.Random(size)
    texts = [nfc(random_text(rng, rng.choice([0, 1, 2, 5, 30, 200]))) for _ in range(30)]
    assert_hashes_name_windows(name, texts, size, fold_numbers)


ALPHABET = "aAbZz09 _-é ÉßẞσΣςЖжаبِ٣नी१ไ๑ກ東々かカーｶ한글Ⅷⅷ😀\u200d\u00a0\u3000\n\t\x1c\x85²½\u2028"


@KERNELS
@given(texts=st.lists(st.text(ALPHABET, max_size=60).map(nfc), max_size=4), size=st.integers(1, 8))
@example(texts=["İi̇Iıi"], size=1)
@example(texts=["漢漢a漢 漢漢"], size=2)
def test_hashes_correspond_to_oracle_shingles_of_random_text(name, texts, size):
    assert_hashes_name_windows(name, texts, size)


@KERNELS
@given(texts=st.lists(st.text("0179 ١٣१２๑ab漢.", max_size=40), max_size=4), size=st.integers(1, 4))
def test_hashes_correspond_to_oracle_shingles_with_folded_numbers(name, texts, size):
    assert_hashes_name_windows(name, texts, size, fold_numbers=True)


@pytest.mark.parametrize(
    ("unit", "size"), [("word", 1), ("word", 3), ("word", 5), ("char", 3), ("char", 7)]
)
def test_two_texts_share_as_many_hashes_as_oracle_shingles(unit, size):
    rng = random.Random(7)
    for _ in range(20):
        words = [rng.choice(VOCABULARY) for _ in range(120)]
        texts = [" ".join(words[:80]), oracles.decomposed(" ".join(words[40:]))]
        first, second = (neardup.shingles(text, unit=unit, size=size) for text in texts)
        oracle_first, oracle_second = (
            oracles.shingles(text, unit=unit, size=size) for text in texts
        )
        assert np.intersect1d(first, second).size == len(oracle_first & oracle_second)


@pytest.mark.parametrize("word", VOCABULARY)
def test_word_of_any_script_gives_the_oracles_number_of_tokens(word):
    assert len(hashes_of("shingle_words", nfc(word))) == len(oracles.words(word))


# Sizes, ends, normal form, seed, numbers


@KERNELS
@pytest.mark.parametrize("size", range(1, 9))
def test_ends_count_windows_and_a_short_document_is_one_shingle(name, size):
    text = {"shingle_words": "漢", "shingle_characters": "x"}[name]
    _, ends, _ = run_documents(name, [text * count for count in range(20)], size=size)
    assert np.diff(ends).tolist() == [0, *(max(1, count - size + 1) for count in range(1, 20))]


@KERNELS
def test_call_without_documents_writes_one_end(name):
    assert run(getattr(shingle, name), readonly(b""), [0]) == ([], [0], [])


@pytest.mark.parametrize("text", ["", " ", "\n\t", "...", "😀", "—", "\u200d", "²", "_"])
def test_text_without_words_has_no_shingles(text):
    assert hashes_of("shingle_words", text) == []


def test_short_document_differs_from_its_own_start_in_a_longer_one():
    short, long = hashes_by_document("shingle_words", ["a b", "a b c"], size=3)
    assert set(short).isdisjoint(long)


def test_the_order_of_words_matters():
    (first,), (second,) = hashes_by_document("shingle_words", ["a b", "b a"], size=2)
    assert first != second


@KERNELS
@given(
    text=st.one_of(
        st.text(max_size=30),
        st.text("aeé\u0301\u0323\u0327नी\u093cかが\u3099\u1100\u1161\u11a8", max_size=12),
    )
)
def test_text_that_is_not_in_normal_form_never_passes_as_normal(name, text):
    document = text.encode("utf-8", "replace").decode()
    _, _, (is_normal,) = run_documents(name, [document])
    assert not is_normal or unicodedata.is_normalized("NFC", document)


@KERNELS
@pytest.mark.parametrize("word", [nfc(word) for word in VOCABULARY])
def test_word_in_normal_form_passes_as_normal(name, word):
    assert run_documents(name, [f"a {word} b"])[2] == [True]


@KERNELS
def test_normal_form_is_reported_per_document(name):
    documents = ["cafe", "cafe\u0301", "café", "e", "\u0301", "한", "\u1112\u1161\u11ab"]
    assert run_documents(name, documents)[2] == [
        unicodedata.is_normalized("NFC", text) for text in documents
    ]


@KERNELS
def test_another_key_gives_other_hashes_in_the_same_pattern(name):
    text = nfc(random_text(random.Random(3), 500))
    first, second = (hashes_of(name, text, size=2, seed=seed) for seed in (1, 2))
    assert set(first).isdisjoint(second)
    assert len(set(zip(first, second, strict=True))) == len(set(first)) == len(set(second))


def test_another_seed_gives_other_hashes():
    first, second = (neardup.shingles("one two three four five six", seed=seed) for seed in (1, 2))
    assert np.intersect1d(first, second).size == 0


def test_no_hash_is_zero():
    assert shingle.finalise.py_func(np.uint64(5), np.uint64(9), (np.uint64(5), np.uint64(7))) == 1
    assert 0 not in hashes_of("shingle_words", " ".join(map(str, range(20000))))


@pytest.mark.parametrize("number", ["7", "2024", "0", "٣", "１９", "1２", "१२३", "9" * 100])
def test_folded_number_is_the_number_zero(number):
    assert hashes_of("shingle_words", number, fold_numbers=True) == hashes_of("shingle_words", "0")


@pytest.mark.parametrize("word", ["a1", "1a", "a12b", "x2024", "é9"])
def test_a_word_that_contains_a_digit_is_not_a_number(word):
    assert hashes_of("shingle_words", word, fold_numbers=True) == hashes_of("shingle_words", word)


def test_words_with_different_digits_of_another_script_in_them_differ():
    assert_hashes_name_windows("shingle_words", ["a１ a２ a0 a٣ नी१ नी२"], 1, fold_numbers=True)


@pytest.mark.parametrize("text", ["room 12a", "room 9912a", "room 0a", "room ٣a"])
def test_folded_run_of_digits_is_one_character(text):
    assert hashes_of("shingle_characters", text, size=3, fold_numbers=True) == hashes_of(
        "shingle_characters", "room 0a", size=3
    )


@pytest.mark.parametrize("blank", ["  ", "\n", " \t ", "\u00a0", "\u3000\u3000", "\u2028"])
def test_run_of_white_space_is_one_character(blank):
    assert hashes_of("shingle_characters", f"a{blank}b", size=2) == hashes_of(
        "shingle_characters", "a b", size=2
    )


# Constants


@pytest.mark.parametrize(
    "name",
    [
        "FOLD_MASK",
        "DIGIT",
        "NFC_ATTENTION",
        "NFC_NO",
        "COMPOSES",
        "SPACE",
        "NFC_MAYBE",
        "UNKNOWN",
        "REPLACEMENT",
    ],
)
def test_kernel_and_table_agree_on_a_constant(name):
    assert int(getattr(folding, name)) == getattr(unicode, name)


@pytest.mark.parametrize("name", ["KIND_MASK", "WORD", "SINGLE"])
def test_kernel_reads_kinds_where_the_table_has_them(name):
    assert int(getattr(folding, name)) == getattr(unicode, name) << unicode.KIND_SHIFT


def test_table_has_pages_of_256_code_points_as_the_kernel_reads_them():
    assert (unicode.BLOCK_SHIFT, unicode.BLOCK_SIZE, unicode.SEPARATOR) == (8, 256, 0)


# A document of 100 MB


@pytest.fixture(scope="module")
def paragraphs():
    """About 100 MB in paragraphs of about 1 kB, of slowly changing length, so that blocks fall everywhere."""
    sentence = (
        "The harbour bridge will close for nine weekends, says the Café Straße authority in 東京; "
    )
    long_word = "donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
    body = sentence * 9 + long_word * 2
    num_paragraphs = 100_000_000 // len(body.encode()) + 1
    return [
        f"{body} paragraph {number}{' ' * (number % 71)}.\n" for number in range(num_paragraphs)
    ]


@pytest.fixture(scope="module")
def words_of_paragraphs(paragraphs):
    return shingles_at(
        paragraphs, itertools.accumulate((len(text.encode()) for text in paragraphs), initial=0)
    )


def shingles_at(paragraphs, offsets):
    """The raw hashes of single words, as an array."""
    source = readonly("".join(paragraphs).encode())
    offsets = np.fromiter(offsets, np.int64)
    shingles = np.empty(source.size // 2 + offsets.size, np.uint64)
    ends = np.empty(offsets.size, np.int64)
    shingle.shingle_words(
        source,
        offsets,
        TABLE,
        1,
        shingle_key(1),
        False,
        shingles,
        ends,
        np.empty(offsets.size - 1, np.bool_),
    )
    return shingles[: ends[-1]]


def test_words_of_a_document_of_100_mb_are_the_words_of_its_paragraphs(
    paragraphs, words_of_paragraphs
):
    num_bytes = sum(len(text.encode()) for text in paragraphs)
    assert np.array_equal(shingles_at(paragraphs, [0, num_bytes]), words_of_paragraphs)


def test_the_signature_of_a_document_of_100_mb_is_correct_and_takes_bounded_time(paragraphs):
    """About 1 s on one core; the bound leaves room for a slow and busy machine."""
    text = "".join(paragraphs)
    start = time.process_time()
    signature = neardup.signatures([text], size=1, num_perm=16)[0]
    seconds = time.process_time() - start
    parts = neardup.signatures(pa.array(paragraphs), size=1, num_perm=16)
    assert np.array_equal(signature, parts.min(axis=0))
    assert seconds < 60


# Items

ITEMS = st.lists(
    st.one_of(
        st.text("abA é\u0301漢", max_size=20), st.sampled_from(["x" * 16, "x" * 17, "é" * 30])
    ),
    max_size=6,
)


def item_text(items):
    return "".join(f"{item}\x1f" for item in items)


@given(sets=st.lists(ITEMS, max_size=5), seed=st.integers(0, 2**64 - 1))
@example(sets=[[""], [], ["", "x" * 15]], seed=0)
def test_hashes_of_items_use_their_exact_bytes(sets, seed):
    hashes = hashes_by_document("shingle_items", map(item_text, sets), seed=seed)
    assert list(map(len, hashes)) == list(map(len, sets))
    named = {
        (item, value)
        for items, values in zip(sets, hashes, strict=True)
        for item, value in zip(items, values, strict=True)
    }
    assert len(named) == len({item for item, _ in named}) == len({value for _, value in named})


@given(sets=st.lists(ITEMS, max_size=5), options=st.fixed_dictionaries(RUN_OPTIONS))
def test_items_compiled_are_those_of_plain_python(sets, options):
    documents = [item_text(items).encode() for items in sets]
    offsets = [0, *itertools.accumulate(map(len, documents))]
    assert_compiled_is_plain("shingle_items", b"".join(documents), offsets, **options)


def test_item_that_is_a_plain_word_has_the_hash_of_that_word():
    words = ["a", "harbour", "x" * 8, "x" * 16, "x" * 17, "donaudampfschifffahrt" * 4]
    assert hashes_of("shingle_items", item_text(words)) == hashes_of(
        "shingle_words", " ".join(words)
    )


def test_items_need_no_normal_form_and_an_empty_text_has_none():
    assert run_documents("shingle_items", ["", "e\u0301\x1f", "\x1f"])[1:] == (
        [0, 0, 1, 2],
        [True] * 3,
    )


@pytest.mark.parametrize(
    "pattern", ["\x1f", "a\x1f", f"{'x' * 15}\x1f", f"{'x' * 16}\x1f", f"{'x' * 17}\x1f"]
)
def test_nothing_is_read_past_the_last_item(pattern):
    for length in (*range(70), 4095, 4096, 4097):
        data = (pattern.encode() * length)[:length]
        assert run(shingle.shingle_items, guarded(data), [0, len(data)]) == run_documents(
            "shingle_items", [data]
        )


# Invisible characters


def with_invisible(rng, text):
    """Put invisible characters between any two characters, at the beginning and at the end."""
    parts = []
    for character in ["", *text]:
        parts += [character, "".join(rng.choices(INVISIBLE, k=rng.choice((0, 0, 1, 2))))]
    return "".join(parts)


@KERNELS
@FLAGS
def test_invisible_characters_change_no_shingle_of_text_in_normal_form(name, fold_numbers):
    rng = random.Random(40)
    for size in (1, 2, 5):
        for num_words in (1, 3, 40):
            text = nfc("".join(filter(lambda c: c not in INVISIBLE, random_text(rng, num_words))))
            options = {"size": size, "fold_numbers": fold_numbers}
            assert hashes_of(name, with_invisible(rng, text), **options) == hashes_of(
                name, text, **options
            )


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"fold_numbers": True, "multiset": True}, {"normalise": "nfkc"}, {"fold_accents": True}],
    ids=str,
)
def test_invisible_characters_change_no_shingle_of_any_text(unit, settings):
    rng = random.Random(41)
    marks = [
        "e\u0301",
        "a\u0323\u0302",
        "\u1100\u1161\u11a8",
        "か\u3099",
        "ﬁ",
        "क\u094dष",
        "12",
        "\u0301",
        "ab ",
    ]
    for _ in range(60):
        text = "".join(rng.choice([*marks, *BLANKS[:8]]) for _ in range(rng.randrange(1, 30)))
        found, expected = (
            neardup.shingles(each, unit=unit, size=2, **settings).tolist()
            for each in (with_invisible(rng, text), text)
        )
        assert found == expected


@pytest.mark.parametrize("unit", ["word", "char"])
def test_a_mark_joins_its_letter_across_an_invisible_character(unit):
    for between in INVISIBLE:
        found = neardup.shingles(f"caf e{between}\u0301", unit=unit, size=1)
        assert found.tolist() == neardup.shingles("caf \u00e9", unit=unit, size=1).tolist()


@pytest.mark.parametrize("unit", ["word", "char"])
def test_a_document_of_invisible_characters_has_no_shingles(unit):
    for document in (INVISIBLE, "\u00ad", "\ufeff" * 200):
        assert neardup.shingles(document, unit=unit).size == 0
    assert neardup.find_pairs([INVISIBLE, "\u00ad", ""], unit=unit).pairs.num_rows == 0


def test_invisible_characters_separate_words_with_the_table_of_fast_2():
    old = tuple(unicode.load_table(separates_invisible=True))
    source = readonly("Donau\u00addampf".encode())
    shingles, ends, is_normal = (
        np.zeros(16, np.uint64),
        np.zeros(2, np.int64),
        np.zeros(1, np.bool_),
    )
    shingle.shingle_words(
        source, np.array([0, source.size]), old, 1, shingle_key(1), False, shingles, ends, is_normal
    )
    assert shingles[: ends[-1]].tolist() == hashes_of("shingle_words", "donau dampf")


def test_a_page_with_soft_hyphens_equals_the_page_without_them():
    words = "Donaudampfschifffahrt und Eisenbahngesellschaft fahren wieder bis Weihnachten ans andere Ufer".split()
    plain_page = f"<html><body><p>{' '.join(words)}</p></body></html>"
    hyphens = " ".join(f"{word[:3]}&shy;{word[3:]}&#8203;" for word in words)
    page = f"<html><body><p>{hyphens}</p></body></html>"
    for unit in ("word", "char"):
        assert neardup.compare(page, plain_page, html=True, unit=unit).jaccard == 1
