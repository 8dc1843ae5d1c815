"""From text to set to signature: frozen in a golden file, and independent of the memory layout.

`golden_signatures.json` freezes what signatures contain. Changing it is a decision: raise the
number in FORMATS of measures/jaccard.py, say so in the CHANGELOG, then write it again:

    PYTHONPATH=src:tests:tests/measures python -c "import test_jaccard; test_jaccard.regenerate()"
"""

from __future__ import annotations

import hashlib
import itertools
import json
import pathlib
import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.io.columns.main_content import versions
from neardup.measures import jaccard
from neardup.measures.base import band_keys
from neardup.theory.plan import plan_for
from support import oracles

# 16 bands of 6 rows.
PLAN = plan_for(Config(threshold=0.8, recall=0.99))
GOLDEN = pathlib.Path(__file__).parent / "golden_signatures.json"
TEXTS = {
    "empty": "",
    "no words": "... – 😀 !",
    "one word": "Harbour",
    "fewer words than a shingle": "the harbour bridge",
    "exactly one shingle": "the harbour bridge will close",
    "sentence": "The harbour bridge will close for nine weekends from March 7, says the Port Authority.",
    "repetitions": "a rose is a rose is a rose is a rose",
    "numbers": "On 12 March 2024 the price rose from 3.14 to 1,000 (or ١٢ or １９) in room b12.",
    "accents": "Straße, Café, naïve, ÅNGSTRÖM; ΣΟΦΌΣ σοφός; Ёлка їжак",
    "decomposed": unicodedata.normalize("NFD", "Café naïve ÅNGSTRÖM 한국어 が Ёлка"),
    "scripts": "العربية हिन्दी क्षत्रिय ภาษาไทย ລາວ ខ្មែរ မြန်မာ 東京タワー ひらがな 中文分词 한국어 Ⅷ x²",
    "invisible": "\ufeffDonau\u00addampf\u200bschiff e\u00ad\u0301 می\u200cروم क्\u200dष ภา\u200bษา "
    "1\u20602 \u00ad a \u200d b",
    "invisible only": "\u00ad\u200b \u200c\u200d\u2060\ufeff",
    "long words": f"{'donaudampfschifffahrt' * 4} {'x' * 16} {'x' * 17} {'é' * 40} end of the long words",
    "long": " ".join(
        f"line {number} of the long document, number {number * number}." for number in range(200)
    ),
}
# Sets: every item is terminated by U+001F.
ITEM_TEXTS = {
    "no items": "",
    "empty item": "\x1f",
    "one item": "bread\x1f",
    "case, blanks and normal form count": "Bread\x1fbread\x1f bread\x1fcafe\u0301\x1fcafé\x1fsourdough bread\x1f",
    "one item twice": "milk\x1fbread\x1fmilk\x1f",
    "items of 15, 16, 17 and 40 bytes": f"{'x' * 15}\x1f{'x' * 16}\x1f{'x' * 17}\x1f{'x' * 40}\x1f",
    "many items": "".join(f"product {number * number}\x1f" for number in range(300)),
}
SETTINGS = [
    *(
        {"sketch": sketch, "unit": unit, "size": 5, "num_perm": num_perm}
        for sketch in ("fast", "minhash")
        for unit in ("word", "char")
        for num_perm in (16, 128)
    ),
    {"unit": "word", "size": 2, "multiset": True},
    {"unit": "char", "size": 3, "multiset": True},
    {"unit": "word", "size": 3, "fold_numbers": True},
    {"unit": "char", "size": 3, "fold_numbers": True},
    {"sketch": "fast", "size": 1, "num_perm": 1024, "seed": 2**64 - 1},
    {"sketch": "minhash", "size": 1, "num_perm": 1024, "seed": 0},
]
ITEM_SETTINGS = [
    {"items_column": "items"},
    {"items_column": "items", "sketch": "minhash", "num_perm": 16, "seed": 7},
    {"items_column": "items", "multiset": True},
]
FROZEN_TEXTS = {
    **{Config(**settings): TEXTS for settings in SETTINGS},
    **{Config(**settings): ITEM_TEXTS for settings in ITEM_SETTINGS},
}
FROZEN = [(config, name) for config, texts in FROZEN_TEXTS.items() for name in texts]
EVERY_FROZEN = pytest.mark.parametrize(
    ("config", "name"),
    FROZEN,
    ids=[f"{jaccard.signature_format(config)}, {name}" for config, name in FROZEN],
)


def sha256(array):
    return hashlib.sha256(
        np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    ).hexdigest()


def frozen_set(text, config):
    shingles = jaccard.text_sets(pa.array([text]), config).shingles
    return {
        "num_shingles": shingles.size,
        "first": [f"{value:016x}" for value in shingles[:4]],
        "sha256": sha256(shingles),
    }


def frozen_signature(text, config):
    (signature,) = jaccard.text_signatures(pa.array([text]), config)
    return {"first": signature[:8].tolist(), "sha256": sha256(signature)}


def regenerate():
    frozen = {}
    for config, name in FROZEN:
        of_format = frozen.setdefault(jaccard.signature_format(config), {})
        of_format[name] = {
            "shingles": frozen_set(FROZEN_TEXTS[config][name], config),
            "signature": frozen_signature(FROZEN_TEXTS[config][name], config),
        }
    lines = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(text)}: {json.dumps(values)}" for text, values in of_format.items()
        )
        + "\n}"
        for name, of_format in frozen.items()
    ]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@EVERY_FROZEN
def test_shingle_hashes_match_the_golden_file(golden, config, name):
    assert (
        frozen_set(FROZEN_TEXTS[config][name], config)
        == golden[jaccard.signature_format(config)][name]["shingles"]
    )


@EVERY_FROZEN
def test_signatures_match_the_golden_file(golden, config, name):
    signature = golden[jaccard.signature_format(config)][name]["signature"]
    assert frozen_signature(FROZEN_TEXTS[config][name], config) == signature


def test_the_golden_file_has_no_other_entries(golden):
    assert {name: list(texts) for name, texts in golden.items()} == {
        jaccard.signature_format(config): list(texts) for config, texts in FROZEN_TEXTS.items()
    }


# The name of a format


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "fast-3 word-5 perm-128 seed-1 unicode-14.0"),
        ({"sketch": "minhash"}, "minhash-3 word-5 perm-128 seed-1 unicode-14.0"),
        ({"unit": "char", "size": 9, "num_perm": 16}, "fast-3 char-9 perm-16 seed-1 unicode-14.0"),
        ({"seed": 7, "multiset": True}, "fast-3 word-5 perm-128 seed-7 unicode-14.0 multiset"),
        (
            {"fold_numbers": True, "html": True},
            f"fast-3 word-5 perm-128 seed-1 unicode-14.0 fold_numbers html-main {versions()}",
        ),
        (
            {"html": True, "html_content": "all"},
            "fast-3 word-5 perm-128 seed-1 unicode-14.0 html-all",
        ),
        ({"items_column": "products", "size": 9}, "fast-2 items perm-128 seed-1 unicode-14.0"),
    ],
)
def test_the_format_includes_every_setting_that_changes_signatures(settings, name):
    assert jaccard.signature_format(Config(**settings)) == name


@pytest.mark.parametrize(
    "settings", [{"threshold": 0.5}, {"recall": 0.9}, {"bands": 4, "rows": 4}, {"keep": "last"}]
)
def test_the_format_ignores_settings_that_do_not_change_signatures(settings):
    assert jaccard.signature_format(Config(**settings)) == jaccard.signature_format(Config())


# Memory layout

MANY = [*TEXTS.values(), *(" ".join(map(str, range(first, first + 60))) for first in range(300))]
VARIANTS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"unit": "char"},
        {"sketch": "minhash", "size": 2},
        {"multiset": True, "size": 2},
        {"fold_numbers": True},
        {"multiset": True, "unit": "char", "fold_numbers": True},
        {"items_column": "items", "multiset": True},
    ],
    ids=str,
)


def everything_of(texts, config):
    """All results of the module for some texts, as lists."""
    sets = jaccard.text_sets(texts, config)
    sketched = jaccard.sketch(texts, PLAN, config)
    return {
        "shingles": [
            sets.shingles[start:end].tolist() for start, end in itertools.pairwise(sets.ends)
        ],
        "signatures": jaccard.text_signatures(texts, config).tolist(),
        "signatures of sets": jaccard.set_signatures(sets, config).tolist(),
        "sizes": sketched.sizes.tolist(),
        "digests": sketched.digests.tolist(),
        "keys": sketched.keys.tolist(),
    }


@VARIANTS
@pytest.mark.parametrize("cache_bytes", [1, 1000, 1 << 30])
def test_sets_in_memory_equal_those_of_the_texts(monkeypatch, settings, cache_bytes):
    monkeypatch.setattr(jaccard, "CACHE_BYTES", cache_bytes)
    config = Config(**settings)
    held = [np.zeros(3, np.uint64)]

    def hold(shingles):
        held.append(shingles.copy())
        return sum(one.size for one in held[:-1])

    texts = pa.array(MANY)
    sketched = jaccard.sketch(texts, PLAN, config, hold=hold)
    views = pa.LargeListViewArray.from_arrays(
        pa.array(sketched.held_at),
        pa.array(sketched.sizes),
        pa.array(np.concatenate(held).view(np.int64)),
    )
    expected = jaccard.text_sets(texts, config)
    for sets in (jaccard.items(views, config), jaccard.items(texts, config)):
        assert sets.ends.tolist() == expected.ends.tolist()
        for start, stop in itertools.pairwise(sets.ends):
            assert (
                sorted(sets.shingles[start:stop].tolist()) == expected.shingles[start:stop].tolist()
            )


@VARIANTS
@pytest.mark.parametrize("cache_bytes", [1, 1000, 1 << 30])
def test_results_do_not_depend_on_the_batch_size(monkeypatch, settings, cache_bytes):
    config = Config(**settings)
    expected = everything_of(pa.array(MANY), config)
    monkeypatch.setattr(jaccard, "CACHE_BYTES", cache_bytes)
    assert everything_of(pa.array(MANY), config) == expected


@VARIANTS
def test_a_text_gives_the_same_result_alone_and_among_others(settings):
    config = Config(**settings)
    among_others = everything_of(pa.array(MANY), config)
    for row in range(0, len(MANY), 7):
        alone = everything_of(pa.array([MANY[row]]), config)
        assert {name: values[0] for name, values in alone.items()} == {
            name: values[row] for name, values in among_others.items()
        }


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()])
@pytest.mark.parametrize(
    ("start", "length"), [(0, 313), (1, 312), (5, 20), (12, 1), (40, 0), (313, 0)]
)
def test_a_slice_gives_the_same_result_as_a_copy(text_type, start, length):
    sliced = pa.array(MANY, text_type).slice(start, length)
    copied = pa.array(MANY[start : start + length], pa.string())
    assert everything_of(sliced, Config()) == everything_of(copied, Config())


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()])
def test_array_of_empty_texts_has_no_shingles(text_type):
    everything = everything_of(pa.array(["", "", ""], text_type), Config(num_perm=128))
    assert everything["shingles"] == [[], [], []]
    assert everything["sizes"] == [0, 0, 0]


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string()])
def test_array_without_texts_has_no_result(text_type):
    assert set(map(tuple, everything_of(pa.array([], text_type), Config()).values())) == {()}


def test_buffers_are_not_copied():
    texts = pa.array(MANY)
    source, _ = jaccard.text_buffers(texts.slice(3, 5))
    assert source.ctypes.data == texts.buffers()[2].address


# Consistency of the parts


@VARIANTS
def test_the_signature_of_a_set_equals_that_of_its_text(settings):
    everything = everything_of(pa.array(MANY), Config(**settings))
    assert everything["signatures of sets"] == everything["signatures"]


@VARIANTS
def test_one_pass_gives_the_sizes_and_keys_of_the_separate_steps(settings):
    config = Config(**settings)
    everything = everything_of(pa.array(MANY), config)
    signatures = jaccard.text_signatures(pa.array(MANY), config)
    assert everything["sizes"] == [len(shingles) for shingles in everything["shingles"]]
    assert everything["keys"] == band_keys(signatures, PLAN).tolist()


@VARIANTS
def test_digests_are_equal_if_and_only_if_sets_are(settings):
    everything = everything_of(pa.array(MANY * 2), Config(**settings))
    sets = map(tuple, everything["shingles"])
    digests = map(tuple, everything["digests"])
    named = set(zip(sets, digests, strict=True))
    assert (
        len(named) == len({members for members, _ in named}) == len({digest for _, digest in named})
    )


@VARIANTS
@pytest.mark.parametrize("form", ["NFD", "NFC"])
def test_text_in_another_normal_form_is_the_same_text_but_not_the_same_item(settings, form):
    texts = [
        *TEXTS.values(),
        "e\u0323\u0301 é\u0323",
        "ạ\u0308",
        "각",
        "がぎ",
        "क़",
        "\u212b \u2126",
        "ṩ",
    ]
    again = [unicodedata.normalize(form, text) for text in texts]
    config = Config(**settings)
    is_same = everything_of(pa.array(again), config) == everything_of(pa.array(texts), config)
    assert is_same == (config.items_column is None)


def test_a_normalised_text_is_unaffected_by_an_unnormalised_neighbour():
    """A run of documents is hashed again as soon as one of them had to be normalised."""
    texts = ["plain words here", "cafe\u0301 au lait", "東京 and more", ""]
    expected = [
        jaccard.text_sets(pa.array([text]), Config(size=1)).shingles.tolist() for text in texts
    ]
    assert everything_of(pa.array(texts), Config(size=1))["shingles"] == expected


def test_multiset_counts_repetitions():
    sets = jaccard.text_sets(pa.array(["a a a b", "a b"]), Config(size=1, multiset=True))
    first = sets.shingles[: sets.ends[1]]
    second = sets.shingles[sets.ends[1] :]
    assert (first.size, second.size, np.intersect1d(first, second).size) == (4, 2, 2)


def test_multipliers_are_odd_and_coefficients_are_distinct():
    multipliers, addends = jaccard._coefficients()
    assert (multipliers % 2 == 1).all()
    assert (
        len(set(zip(multipliers.tolist(), addends.tolist(), strict=True)))
        == len(set(multipliers.tolist()))
        == 1024
    )


def test_a_shorter_minhash_signature_is_a_prefix_of_a_longer_one():
    few, more = (
        jaccard.text_signatures(pa.array(MANY), Config(sketch="minhash", num_perm=k))
        for k in (16, 1024)
    )
    assert np.array_equal(few, more[:, :16])


# Items


def test_items_are_the_set_of_strings_between_the_terminators():
    baskets = [
        ["bread", "milk"],
        [],
        ["milk", "bread", "milk"],
        ["Bread", "milk"],
        ["bread milk"],
        [""],
    ]
    texts = pa.array(["".join(f"{item}\x1f" for item in basket) for basket in baskets])
    shingles = everything_of(texts, Config(items_column="items"))["shingles"]
    assert list(map(len, shingles)) == [len(set(basket)) for basket in baskets]
    for a, of_a in zip(baskets, shingles, strict=True):
        for b, of_b in zip(baskets, shingles, strict=True):
            assert len(set(of_a) & set(of_b)) == len(set(a) & set(b))


def test_items_ignore_unit_and_size():
    texts = pa.array(list(ITEM_TEXTS.values()))
    expected = everything_of(texts, Config(items_column="items"))
    assert everything_of(texts, Config(items_column="items", unit="char", size=2)) == expected


# Groups

# The last one is mixed to zero.
GROUPS = np.array([0, 1, 2, -1, 2**63 - 1, -(2**63), 3, 0x61C8864680B583EB], np.int64)


def sketched_in_groups(text, groups):
    return jaccard.sketch(pa.array([text] * groups.size), PLAN, Config(), groups)


@pytest.mark.parametrize("name", TEXTS)
def test_equal_texts_in_different_groups_share_nothing(name):
    sketched = sketched_in_groups(TEXTS[name], GROUPS)
    for band in range(16):
        assert len(set(sketched.keys[:, band].tolist())) == GROUPS.size
    for word in range(2):
        assert len(set(sketched.digests[:, word].tolist())) == GROUPS.size
    assert len(set(sketched.sizes.tolist())) == 1


def test_equal_texts_in_one_group_share_everything():
    sketched = sketched_in_groups(TEXTS["sentence"], np.array([5, 6, 5]))
    assert sketched.keys[0].tolist() == sketched.keys[2].tolist() != sketched.keys[1].tolist()
    assert sketched.digests[0].tolist() == sketched.digests[2].tolist()


def test_collected_sets_match_the_texts_and_are_salted_by_group():
    texts = pa.array(MANY)
    groups = np.arange(len(MANY)) % 3
    for config in (Config(), Config(unit="char", size=3), Config(size=2, multiset=True)):
        expected = jaccard.text_sets(texts, config)
        sketched = jaccard.sketch(texts, PLAN, config, groups)
        alone = jaccard.collect_texts(texts, config)
        salted = jaccard.collect_texts(texts, config, groups)
        assert np.array_equal(alone.sets.ends, expected.ends)
        assert np.array_equal(salted.sizes, sketched.sizes)
        assert np.array_equal(salted.digests, sketched.digests)
        for doc, (start, end) in enumerate(itertools.pairwise(expected.ends)):
            own, other = (collected.sets.shingles[start:end] for collected in (alone, salted))
            assert np.array_equal(np.sort(own), expected.shingles[start:end])
            assert np.array_equal(own, other) == (groups[doc] == 0 or start == end)
            assert np.unique(own ^ other).size <= 1


def test_collected_sets_are_kept_in_memory_without_salt():
    held = [np.zeros(7, np.uint64)]

    def hold(values):
        start = sum(map(len, held))
        held.append(values.copy())
        return start

    collected = jaccard.collect_texts(pa.array(MANY), Config(), np.arange(len(MANY)), hold)
    alone = jaccard.collect_texts(pa.array(MANY), Config()).sets
    assert np.array_equal(collected.held_at, 7 + alone.ends[:-1])
    assert np.array_equal(np.concatenate(held)[7:], alone.shingles)


def test_group_zero_means_no_group():
    texts = pa.array(MANY)
    alone = jaccard.sketch(texts, PLAN, Config())
    groups = np.arange(len(MANY)) % 2
    mixed = jaccard.sketch(texts, PLAN, Config(), groups)
    assert np.array_equal(mixed.keys[groups == 0], alone.keys[groups == 0])
    assert np.array_equal(mixed.digests[groups == 0], alone.digests[groups == 0])


def test_keys_of_signatures_are_salted_as_those_of_texts():
    texts = pa.array([TEXTS["sentence"]] * GROUPS.size)
    groups = GROUPS
    signatures = jaccard.text_signatures(texts, Config())
    keys = band_keys(signatures, PLAN, groups)
    assert np.array_equal(keys, jaccard.sketch(texts, PLAN, Config(), groups).keys)


FORMS = [
    *("ﬁne ＡＢＣ ²", "fine abc 2"),
    *("Été à Paris", "e\u0301te\u0301 a paris", "ete a paris"),
    *("がぎ ガギ", "нёй", "\u0378x"),
]


@pytest.mark.parametrize("unit", ["word", "char"])
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
@pytest.mark.parametrize("without_accents", [False, True])
def test_texts_are_compared_in_the_requested_normal_form(unit, form, without_accents):
    settings = {"unit": unit, "size": 1, "normalise": form, "fold_accents": without_accents}
    known = [text.replace("\u0378", "\ufffd") for text in FORMS]
    expected = [oracles.shingles(text, **settings) for text in known]
    sets = jaccard.text_sets(pa.array(FORMS, pa.large_string()), Config(**settings))
    got = [sets.shingles[start:stop].tolist() for start, stop in itertools.pairwise(sets.ends)]
    for at, windows in enumerate(expected):
        for other, others in enumerate(expected):
            assert len(set(got[at]) & set(got[other])) == len(windows & others)
    are_equal = expected[0] == expected[1], expected[3] == expected[4]
    assert are_equal == (form == "nfkc", without_accents)
