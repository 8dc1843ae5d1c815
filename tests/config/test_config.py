"""Every setting has the documented default, is checked, and is in the fingerprint when it can change a result."""

from __future__ import annotations

import dataclasses
import decimal
import json
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import neardup
from neardup.config import Config, DrawnSeed
from neardup.errors import ConfigError, NearDupError
from neardup.measures.jaccard import signature_format

# docs/settings.md lists them.
DEFAULTS = {
    "threshold": 0.8,
    "distance": None,
    "recall": 0.99,
    "unit": "word",
    "size": 5,
    "language": None,
    "code_names": "fold",
    "num_perm": 128,
    "bands": None,
    "rows": None,
    "seed": 1,
    "method": "auto",
    "measure": "jaccard",
    "dimension": None,
    "packed": False,
    "sketch": "fast",
    "signature_filter": True,
    "keep": "first",
    "cluster": "leader",
    "per_cluster": 1,
    "level": None,
    "decisions": None,
    "pairs": False,
    "passages": False,
    "edits": False,
    "min_words": None,
    "collapse_empty": False,
    "multiset": False,
    "weights": None,
    "fold_numbers": False,
    "normalise": "nfc",
    "fold_accents": False,
    "ignore": (),
    "ignore_common": None,
    "common_by": None,
    "html": False,
    "html_content": "main",
    "text_column": None,
    "id_column": None,
    "items_column": None,
    "long": False,
    "vector_column": None,
    "group_column": None,
    "format": None,
    "encoding": None,
    "include": (),
    "exclude": (),
    "lines": False,
    "delimiter": None,
    "max_document": 256 * 10**6,
    "against": (),
    "only_against": False,
    "one_to_one": False,
    "against_text_column": None,
    "against_items_column": None,
    "against_id_column": None,
    "min_count": 2,
    "min_left": 1,
    "cut": False,
    "item_column": None,
    "rule": "coverage",
    "weights_from": None,
    "around": 0,
    "remove": False,
    "mark": False,
    "dry_run": False,
    "text_out": None,
    "audit": False,
    "overwrite": False,
    "strict": False,
    "engine": "local",
    "master": None,
    "spark_conf": (),
    "memory": None,
    "threads": None,
}
OTHER_VALUES = {
    "threshold": 0.7,
    "distance": 0.3,
    "recall": 0.9,
    "unit": "char",
    "size": 4,
    "language": "python",
    "code_names": "keep",
    "num_perm": 256,
    "bands": 16,
    "rows": 6,
    "seed": 2,
    "method": "lsh",
    "measure": "weighted",
    "dimension": 64,
    "packed": True,
    "sketch": "minhash",
    "signature_filter": False,
    "keep": "longest",
    "cluster": "components",
    "per_cluster": 3,
    "level": "line",
    "decisions": "decisions.json",
    "pairs": True,
    "passages": True,
    "edits": True,
    "min_words": 12,
    "collapse_empty": True,
    "multiset": True,
    "weights": "idf",
    "fold_numbers": True,
    "normalise": "nfkc",
    "fold_accents": True,
    "ignore": ("template.txt",),
    "ignore_common": 0.05,
    "common_by": "host",
    "html": True,
    "html_content": "all",
    "text_column": "page",
    "id_column": "key",
    "items_column": "basket",
    "long": True,
    "vector_column": "embedding",
    "group_column": "language",
    "format": "lines",
    "encoding": "iso8859-1",
    "include": ("*.md", "docs/**"),
    "exclude": ("old",),
    "lines": True,
    "delimiter": ";",
    "max_document": 10**6,
    "against": ("old",),
    "only_against": True,
    "one_to_one": True,
    "against_text_column": "question",
    "against_items_column": "products",
    "against_id_column": "number",
    "min_count": 5,
    "min_left": 30,
    "cut": True,
    "item_column": "question",
    "rule": "ngram13",
    "weights_from": "found",
    "around": 20,
    "remove": True,
    "mark": True,
    "dry_run": True,
    "text_out": "texts.parquet",
    "audit": True,
    "overwrite": True,
    "strict": True,
    "engine": "spark",
    "master": "yarn",
    "spark_conf": ("spark.executor.memory=4g",),
    "memory": 2 * 10**9,
    "threads": 2,
}
NEVER_CHANGE_A_RESULT = (
    "threads",
    "strict",
    "memory",
    "engine",
    "master",
    "spark_conf",
    "overwrite",
)
# Settings that conflict with others of the table.
NOT_TOGETHER = (
    *("ignore_common", "common_by", "text_out"),
    *("passages", "edits", "one_to_one", "against_items_column"),
    *("items_column", "long", "language", "code_names", "weights"),
    "dry_run",
    "cut",
    "measure",
    "distance",
    "dimension",
    "packed",
    "vector_column",
    "cluster",
)
# Settings that only one measure has.
NEEDS_BITS = ("dimension", "packed", "vector_column")
# Settings that need another one.
NEEDS = {
    "common_by": {"ignore_common": 0.05},
    "only_against": {"against": "old"},
    "one_to_one": {"against": "old"},
    "against_text_column": {"against": "old"},
    "against_items_column": {"against": "old", "items_column": "basket"},
    "against_id_column": {"against": "old"},
    "edits": {"passages": True},
    "language": {"unit": "code"},
    "code_names": {"unit": "code"},
    "long": {"items_column": "item"},
}
NO_NUMBERS = ["0.8", None, True, [0.5], 1j, decimal.Decimal("0.5"), np.array([0.5, 0.6]), object]
NO_WHOLE_NUMBERS = ["5", 5.0, True, [5], math.nan, np.array([5, 6])]
NO_FLAGS = [1, 0, "yes", None, [True]]
BAD_VALUES = {
    "threshold": [0, -0.1, 1.0000001, 80, math.nan, math.inf, -math.inf, 10**400, *NO_NUMBERS],
    "distance": [-0.1, 1, 1.5, math.nan, math.inf, 10**400, "0.2", True, [0.5]],
    "recall": [0, -1, 1.001, 99, math.nan, math.inf, -(10**400), *NO_NUMBERS],
    "unit": ["words", "Word", "", None, 1, ["word"], np.array(["word", "char"])],
    "size": [0, -1, 65, 10**30, None, *NO_WHOLE_NUMBERS],
    "language": ["pyhton", "", 1, ["python"], True],
    "code_names": ["folded", "Keep", "", None, True],
    "num_perm": [0, 8, 100, 127, 2048, -128, 10**30, *NO_WHOLE_NUMBERS],
    "bands": [0, -1, 129, *NO_WHOLE_NUMBERS],
    "rows": [0, -1, 129, *NO_WHOLE_NUMBERS],
    "seed": [-1, 2**64, None, "Random", "", *NO_WHOLE_NUMBERS],
    "method": ["exakt", "LSH", None, 1],
    "measure": ["cosinus", "L2", None],
    "dimension": [0, -1, 2**24 + 1, *NO_WHOLE_NUMBERS],
    "packed": NO_FLAGS,
    "sketch": ["slow", "", None, b"fast"],
    "signature_filter": NO_FLAGS,
    "keep": [
        "max",
        "min",
        "max:",
        "min:",
        "first:x",
        "shortest",
        "",
        "FIRST",
        None,
        1,
        ["first"],
        ":score",
    ],
    "cluster": ["leaders", "component", None, True],
    "per_cluster": [0, -1, 10**9 + 1, None, *NO_WHOLE_NUMBERS],
    "level": ["word", "Line", "", 1, True],
    "decisions": [3, ["a", "b"], b"a", "a\0b"],
    "pairs": NO_FLAGS,
    "passages": NO_FLAGS,
    "edits": NO_FLAGS,
    "min_words": [0, -1, 10**9 + 1, *NO_WHOLE_NUMBERS],
    "collapse_empty": NO_FLAGS,
    "multiset": NO_FLAGS,
    "weights": ["tfidf", "", 1, True],
    "fold_numbers": NO_FLAGS,
    "normalise": ["NFC", "nfd", "", None, True],
    "fold_accents": NO_FLAGS,
    "ignore": [1, None, [1], {"old"}],
    "ignore_common": [0, 1, -0.1, 1.5, math.nan, math.inf, "5", "0%", "x%", "5%5", True, [0.5]],
    "common_by": [1, ["site"], b"site", True],
    "html": NO_FLAGS,
    "html_content": ["Main", "text", "", None, True],
    "text_column": [1, [], ["text", 1], b"text", True],
    "id_column": [1, ["id"], b"id", True],
    "items_column": [1, ["items"], b"items", True],
    "long": NO_FLAGS,
    "vector_column": [1, ["vector"], b"vector", True],
    "group_column": [1, ["group"], b"group", True],
    "format": ["xml", "JSONL", "", 1, True],
    "encoding": ["latin9000", "", 1, True, "zlib", b"utf-8"],
    "include": ["/", ["a", ""], 1],
    "exclude": ["", ["a", 2]],
    "lines": NO_FLAGS,
    "delimiter": ["", ",,", '"', "\n", "é", 1, b","],
    "max_document": [0, None, "4 giga", "GB", "", -1, True, "-4GB"],
    "against": [1, None, [1], {"old"}],
    "only_against": NO_FLAGS,
    "one_to_one": NO_FLAGS,
    "against_text_column": [1, [], ["text", 1], b"text", True],
    "against_items_column": [1, ["items"], b"items", True],
    "against_id_column": [1, ["id"], b"id", True],
    "min_count": [1, 10**9 + 1, *NO_WHOLE_NUMBERS],
    "min_left": [0, 10**9 + 1, *NO_WHOLE_NUMBERS],
    "cut": NO_FLAGS,
    "item_column": [1, [], ["question", 1], b"question", True],
    "rule": ["ngram", "Coverage", "", None, True],
    "weights_from": [3, ["a", "b"], b"a", "a\0b"],
    "around": [-1, 10**9 + 1, *NO_WHOLE_NUMBERS],
    "remove": NO_FLAGS,
    "mark": NO_FLAGS,
    "dry_run": NO_FLAGS,
    "text_out": [3, ["a.jsonl"], b"a.jsonl", "a\0b.jsonl"],
    "audit": NO_FLAGS,
    "overwrite": NO_FLAGS,
    "strict": NO_FLAGS,
    "engine": ["ray", None],
    "master": [1, ["yarn"]],
    "spark_conf": ["spark.executor.memory", [""], ["=4g"], [1], 7],
    "memory": [0, 1, "10MB", "4 giga", "GB", "", -1, True, "-4GB"],
    "threads": [0, -1, 1025, *NO_WHOLE_NUMBERS],
}
GOOD_VALUES = {
    "threshold": [5e-324, 0.5, 1, 1.0, np.float64(0.8), np.float32(0.5)],
    "recall": [0.001, 0.9999999, 1, 1.0],
    "size": [1, 64, np.int64(7)],
    "distance": [0, 0.0, 0.5, np.float32(0.25), None],
    "num_perm": [16, 32, 64, 128, 256, 512, 1024],
    "bands": [1, 128],
    "rows": [1, 128],
    "seed": [0, 2**64 - 1],
    "keep": ["first", "last", "longest", "none", "max:score", "min:a column: with a colon"],
    "text_column": ["page", ("title", "body"), None],
    "format": ["jsonl", "csv", "parquet", "arrow", "text", "lines", "json", "warc", None],
    "delimiter": [";", "\t", "|", None],
    "max_document": [1, 10**12],
    "memory": [10**9, None],
    "threads": [1, 1024, None],
}


def test_a_random_seed_differs_each_time_and_is_stored_in_the_config():
    drawn = [Config(seed="random") for _ in range(20)]
    assert len({config.seed for config in drawn}) == 20
    assert all(0 <= config.seed <= 2**64 - 1 for config in drawn)
    again = Config.of(drawn[0], threshold=0.5)
    assert again.seed == drawn[0].seed
    assert isinstance(again.seed, DrawnSeed)
    assert json.loads(json.dumps(again.as_dict()))["seed"] == again.seed


def test_random_seed_is_drawn_by_every_function_of_the_library():
    assert not np.array_equal(*(neardup.shingles("a b c d e f", seed="random") for _ in range(2)))
    report = neardup.deduplicate(["a b c d e f"] * 2, seed="random")
    assert report.num_removed == 1
    assert f"seed-{report.config.seed} " in report.signature_format


def test_the_package_of_the_settings_exports_the_public_class():
    assert Config is neardup.Config
    assert Config.__module__ == "neardup.config.config"


def test_defaults_are_those_of_the_design():
    assert Config().as_dict() == DEFAULTS | {
        name: [] for name in ("against", "ignore", "spark_conf", "include", "exclude")
    }


@pytest.mark.parametrize("table", [OTHER_VALUES, BAD_VALUES])
def test_every_setting_is_tested_here(table):
    assert list(table) == list(DEFAULTS) == [field.name for field in dataclasses.fields(Config)]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_VALUES.items() for value in values],
    ids=lambda value: f"{value!r:.30}",
)
def test_bad_value_is_an_error_that_names_setting_and_value(name, value):
    with pytest.raises(ConfigError) as raised:
        Config(**{name: value})
    assert isinstance(raised.value, NearDupError)
    assert isinstance(raised.value, ValueError)
    message = str(raised.value)
    assert message.startswith(f"`{name}` must be ")
    assert f"got {value!r}" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in GOOD_VALUES.items() for value in values],
    ids=lambda value: f"{value!r:.30}",
)
def test_values_at_the_bounds_are_accepted(name, value):
    assert getattr(Config(**{name: value}), name) == value


@pytest.mark.parametrize("num_perm", [1, 7, 100, 1000, 1024, np.int64(100)])
def test_minhash_accepts_any_number_of_slots(num_perm):
    assert Config(sketch="minhash", num_perm=num_perm).num_perm == num_perm
    assert (
        Config.of(Config(sketch="minhash", num_perm=num_perm), threshold=0.5).num_perm == num_perm
    )


@pytest.mark.parametrize("num_perm", [0, -1, 1025, *NO_WHOLE_NUMBERS])
def test_minhash_rejects_numbers_of_slots_out_of_range(num_perm):
    with pytest.raises(
        ConfigError, match=r"^`num_perm` must be a whole number from 1 to 1024, got "
    ):
        Config(sketch="minhash", num_perm=num_perm)


def test_a_number_of_slots_that_only_minhash_supports_is_an_error_that_names_it():
    with pytest.raises(
        ConfigError, match=r"^`num_perm` must be a power of two from 16 to 1024 with sketch 'fast'"
    ):
        Config.of(Config(sketch="minhash", num_perm=100), sketch="fast")


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"threshold": 80}, "use 0.8 for 80 %"),
        ({"threshold": 99.5}, "use 0.995 for 99.5 %"),
        ({"recall": 95}, "use 0.95 for 95 %"),
        (
            {"recall": 1.0, "method": "lsh"},
            "pass method='exact', which finds every pair, or recall=0.999",
        ),
        (
            {"method": "exact", "bands": 4},
            "leave `bands` out, or pass method='lsh' and a recall below 1",
        ),
        ({"recall": 1, "rows": 4}, "leave `rows` out, or pass method='lsh' and a recall below 1"),
        ({"method": "exac"}, "did you mean 'exact'?"),
        (
            {"num_perm": 100},
            "use one of 16, 32, 64, 128, 256, 512, 1024; sketch='minhash' takes any number from 1 to 1024",
        ),
        (
            {"num_perm": 100, "measure": "cosine", "sketch": "minhash"},
            "use one of 16, 32, 64, 128, 256, 512, 1024",
        ),
        ({"bands": 20, "rows": 10}, "use at most 12 bands of 10 rows, or a larger `num_perm`"),
        (
            {"only_against": True},
            "name the documents to compare with: against='benchmark.jsonl'",
        ),
        ({"only_against": True, "against": "old", "cluster": "components"}, "leave `cluster` out"),
        ({"per_cluster": 2, "measure": "containment"}, "leave `per_cluster` out"),
        ({"edits": True}, "pass passages=True, or leave `edits` out"),
        ({"passages": True, "items_column": "basket"}, "leave `passages` out"),
        ({"keep": "max"}, "name the column: keep='max:score'"),
        ({"keep": "min:"}, "name the column: keep='min:score'"),
        ({"unit": "words"}, "did you mean 'word'?"),
        ({"sketch": "min-hash"}, "did you mean 'minhash'?"),
        ({"cluster": "leaders"}, "did you mean 'leader'?"),
        ({"treshold": 0.8}, "did you mean `threshold`?"),
        ({"num_perms": 64}, "did you mean `num_perm`?"),
        ({"collapse_empties": True}, "did you mean `collapse_empty`?"),
    ],
)
def test_a_mistake_with_an_obvious_fix_has_a_hint(settings, hint):
    with pytest.raises(ConfigError) as raised:
        Config.of(**settings)
    assert raised.value.hint == hint
    assert str(raised.value).endswith(f"\n\nhint: {hint}")


def test_following_the_hints_works():
    assert neardup.plan(recall=0.999).keeps_recall
    assert Config(bands=12, rows=10).bands == 12


def test_bands_times_rows_shows_the_arithmetic_that_failed():
    with pytest.raises(ConfigError, match="got 20 x 10 = 200 > 128"):
        Config(bands=20, rows=10)


def test_an_unknown_setting_lists_the_known_ones():
    known = r"unknown setting `zzz`[\s\S]*threshold, distance, recall, unit, .*memory, threads"
    with pytest.raises(ConfigError, match=known):
        Config.of(zzz=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda **settings: neardup.deduplicate(["a"], **settings),
        lambda **settings: neardup.find_pairs(["a"], **settings),
        lambda **settings: neardup.compare("a", "b", **settings),
        lambda **settings: neardup.shingles("a", **settings),
        lambda **settings: neardup.signatures(["a"], **settings),
        neardup.plan,
    ],
)
def test_every_function_checks_its_settings(call):
    with pytest.raises(ConfigError, match="did you mean `threshold`"):
        call(treshold=0.8)
    with pytest.raises(ConfigError, match="`threshold` must be a number in"):
        call(threshold=80)
    with pytest.raises(
        ConfigError, match=r"`config` must be a neardup.Config, got dict[\s\S]*hint: "
    ):
        call(config={"threshold": 0.8})


def test_settings_by_name_win_over_those_of_a_config():
    base = Config(threshold=0.7, size=3)
    assert Config.of(base, threshold=0.9) == Config(threshold=0.9, size=3)
    assert neardup.deduplicate(["a"], config=base, size=2).config == Config(threshold=0.7, size=2)


def test_a_config_is_frozen_and_hashable():
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.threshold = 0.9
    assert {config: 1}[Config()] == 1
    with pytest.raises(TypeError):
        Config(0.9)


@pytest.mark.parametrize("name", DEFAULTS)
def test_fingerprint_changes_with_settings_that_can_change_a_result(name):
    base = Config(measure="hamming") if name in NEEDS_BITS else Config(**NEEDS.get(name, {}))
    changed = Config.of(base, **{name: OTHER_VALUES[name]})
    assert (changed.fingerprint() == base.fingerprint()) == (name in NEVER_CHANGE_A_RESULT)


def test_fingerprint_is_the_same_for_equal_numbers():
    assert Config(threshold=1).fingerprint() == Config(threshold=1.0).fingerprint()
    assert Config(threshold=np.float64(0.8)).fingerprint() == Config().fingerprint()


def test_fingerprint_is_the_same_in_every_process():
    program = "import neardup; print(neardup.Config(keep='max:score').fingerprint())"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {Config(keep="max:score").fingerprint()}


def test_settings_can_be_stored_and_read_back():
    config = Config(
        **{name: value for name, value in OTHER_VALUES.items() if name not in NOT_TOGETHER}
    )
    assert Config(**json.loads(json.dumps(config.as_dict()))) == config


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("4GB", 4 * 10**9),
        ("500mb", 5 * 10**8),
        ("1.5 GB", 1_500_000_000),
        ("1T", 10**12),
        (10**9, 10**9),
    ],
)
def test_memory_is_bytes_or_text_with_a_unit(given, taken):
    assert Config(memory=given).memory == taken


def test_several_text_columns_and_paths_become_tuples():
    assert Config(text_column=["title", "body"]).text_column == ("title", "body")
    assert Config(text_column=["title"]).text_column == "title"
    assert Config(against="old").against == Config(against=["old"]).against == ("old",)


@pytest.mark.parametrize(
    "settings",
    [
        {"items_column": "basket", "text_column": "text"},
        {"items_column": "basket", "html": True},
        {"items_column": "basket", "fold_numbers": True},
        {"mark": True, "dry_run": True},
    ],
)
def test_settings_that_exclude_each_other_are_an_error(settings):
    with pytest.raises(ConfigError, match="cannot be combined"):
        Config(**settings)


def test_column_of_keep_is_what_follows_the_colon():
    assert Config(keep="max:a:b").keep_column == "a:b"
    assert Config(keep="first").keep_column is None


@pytest.mark.parametrize(
    ("measure", "distance", "dimension", "threshold"),
    [
        ("jaccard", 0.25, None, 0.75),
        ("weighted", 0.25, None, 0.75),
        ("cosine", 0.25, None, 0.75),
        ("hamming", 3, 64, 1 - 3 / 64),
        ("euclidean", 3, None, 0.25),
    ],
)
def test_a_distance_sets_the_threshold_in_units_of_the_measure(
    measure, distance, dimension, threshold
):
    config = Config(measure=measure, distance=distance, dimension=dimension)
    assert config.threshold == threshold
    assert neardup.plan(config=config).distance == pytest.approx(distance)
    assert Config.of(**config.as_dict()) == config


@pytest.mark.parametrize("make", [Config, Config.of, neardup.plan])
def test_threshold_and_distance_exclude_each_other(make):
    with pytest.raises(ConfigError, match=r"`threshold` 0.9 and `distance` 0.2 disagree"):
        make(threshold=0.9, distance=0.2)


def test_a_threshold_by_name_wins_over_the_distance_of_a_config_and_the_other_way_round():
    assert Config.of(Config(distance=0.3), threshold=0.9).distance is None
    assert Config.of(Config(threshold=0.9), distance=0.3).threshold == 0.7


def test_bits_need_a_dimension_before_a_distance_means_anything():
    with pytest.raises(
        ConfigError,
        match=r"`distance` 3 is a number of bits, but the total number of bits is unknown",
    ):
        neardup.plan(measure="hamming", distance=3)
    early = Config(measure="hamming", distance=3)
    assert Config.of(early, dimension=64) == Config(measure="hamming", distance=3, dimension=64)


@pytest.mark.parametrize(
    ("measure", "num_perm"),
    [("jaccard", 128), ("weighted", 128), ("euclidean", 128), ("hamming", 1024), ("cosine", 1024)],
)
def test_a_measure_with_one_bit_slots_has_more_slots(measure, num_perm):
    assert Config(measure=measure).num_perm == num_perm
    assert Config.of(Config(), measure=measure).num_perm == num_perm
    assert Config.of(Config(num_perm=256), measure=measure).num_perm == 256


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"measure": "cosine", "items_column": "basket"},
            "`items_column` does not apply to vectors",
        ),
        ({"measure": "hamming", "multiset": True}, "`multiset` does not apply to vectors"),
        ({"vector_column": "embedding"}, "`vector_column` needs a vector measure, got 'jaccard'"),
        ({"measure": "weighted", "dimension": 4}, "`dimension` needs a vector measure"),
        ({"measure": "cosine", "packed": True}, "`packed` needs the measure 'hamming'"),
        (
            {"measure": "weighted", "multiset": True},
            "`multiset` and the measure 'weighted' cannot be combined",
        ),
    ],
)
def test_a_setting_of_another_measure_is_an_error(settings, message):
    with pytest.raises(ConfigError, match=message):
        Config(**settings)


def test_a_config_records_which_settings_were_given():
    assert Config().given == frozenset()
    assert Config(threshold=0.8).is_threshold_given
    assert not Config.of(Config(), size=3).is_threshold_given
    assert Config.of(Config(threshold=0.8), size=3).given == {"threshold", "size"}
    assert Config.of(distance=0.2).is_threshold_given
    assert pickle.loads(pickle.dumps(Config(threshold=0.8))) == Config()  # noqa: S301


def test_given_settings_are_not_part_of_equality_or_fingerprint():
    assert Config(threshold=0.8) == Config()
    assert Config(threshold=0.8).fingerprint() == Config().fingerprint()
    assert "given" not in Config().as_dict()


def test_settings_for_an_older_format_are_equal_and_lead_to_that_format():
    older = Config(size=3).for_format("fast-2 word-3 perm-128 seed-1 unicode-14.0")
    assert older == Config(size=3)
    assert older.fingerprint() == Config(size=3).fingerprint()
    assert older.separates_invisible
    assert Config.of(older, threshold=0.5).separates_invisible
    assert not older.for_format("fast-3 word-3 perm-128 seed-1 unicode-14.0").separates_invisible
    assert signature_format(older) == "fast-2 word-3 perm-128 seed-1 unicode-14.0"


@pytest.mark.parametrize("settings", [{"items_column": "items"}, {"measure": "cosine"}], ids=str)
def test_formats_without_texts_have_no_older_folding(settings):
    assert not Config(**settings).for_format("fast-2 items").separates_invisible
