"""What a type checker sees of the library: names and types of settings, and return types."""

from __future__ import annotations

import dataclasses
import inspect
import os
import subprocess
import sys
import types
import typing
from pathlib import Path

import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.config.setting_types import RunSettings, Settings

ROOT = Path(__file__).parents[2]
# Settings that may be given as more types than Config holds: "4GB", a list of columns or paths,
# "random".
WIDER = {
    "decisions",
    "item_column",
    "text_column",
    "against_text_column",
    "weights_from",
    "max_document",
    "against",
    "ignore",
    "include",
    "exclude",
    "ignore_common",
    "text_out",
    "spark_conf",
    "memory",
    "seed",
}
RUNS = ("deduplicate", "find_pairs", "neighbours")
WITH_SETTINGS = (*RUNS, "buckets", "compare", "plan", "shingles", "signatures")
GOOD = """
import neardup
from pathlib import Path

report = neardup.deduplicate(["a", "b"], threshold=0.9, keep="longest", memory="4GB", seed="random")
neardup.find_pairs(["a"], against=[Path("old")], engine="local", text_column=["title", "body"])
neardup.compare("a", "b", unit="char", size=3)
neardup.neighbours(["a"], k=3, multiset=True)
neardup.signatures(["a"], sketch="minhash", num_perm=100)
config: neardup.Config = neardup.Config.of(threshold=0.9, max_document="1GB")
ratio: float = report.duplicate_ratio
"""
BAD = {
    'neardup.deduplicate(["a"], treshold=0.9)': 'Unexpected keyword argument "treshold" for "deduplicate"',
    'neardup.find_pairs(["a"], threshold="high")': 'incompatible type "str"; expected "float"',
    'neardup.compare("a", "b", unit="words")': "expected \"Literal['word', 'char', 'code']\"",
    'neardup.neighbours(["a"], multi_set=True)': 'Unexpected keyword argument "multi_set" for "neighbours"',
    "neardup.plan(recal=0.9)": 'Unexpected keyword argument "recal" for "plan"',
    'neardup.buckets(["a"], band=3)': 'Unexpected keyword argument "band" for "buckets"',
    'neardup.signatures(["a"], num_perms=3)': 'Unexpected keyword argument "num_perms" for "signatures"',
    'neardup.shingles("a", sizes=3)': 'Unexpected keyword argument "sizes" for "shingles"',
    "neardup.Config.of(treshold=0.9)": 'Unexpected keyword argument "treshold" for "of" of "Config"',
    "neardup.Config(treshold=0.9)": 'Unexpected keyword argument "treshold" for "Config"',
}


def members(kind):
    """The types that a union is made of."""
    return (
        set(typing.get_args(kind))
        if isinstance(kind, types.UnionType) or is_optional(kind)
        else {kind}
    )


def is_optional(kind):
    return typing.get_origin(kind) is typing.Union


def test_typed_settings_are_the_fields_of_config():
    hints = typing.get_type_hints(Config)
    typed = typing.get_type_hints(Settings)
    assert set(typed) == {field.name for field in dataclasses.fields(Config)}
    assert set(typed) - set(typing.get_type_hints(RunSettings)) == {"engine"}
    for name, kind in typed.items():
        if name not in WIDER:
            assert members(kind) - {types.NoneType} == members(hints[name]) - {types.NoneType}, name


@pytest.mark.parametrize("name", WITH_SETTINGS)
def test_functions_with_settings_take_typed_ones(name):
    parameter = inspect.signature(getattr(neardup, name)).parameters["settings"]
    expected = "RunSettings" if name in RUNS else "Settings"
    assert parameter.annotation == f"Unpack[{expected}]"


def test_tables_are_typed_as_arrow_tables():
    for name in ("kept", "removed", "clusters", "rejected", "pairs"):
        assert typing.get_type_hints(getattr(neardup.Report, name).func)["return"] is pa.Table
    for function in (neardup.neighbours, neardup.buckets):
        assert typing.get_type_hints(function)["return"] is pa.Table


@pytest.mark.long
@pytest.mark.slow("mypy reads the whole package where `make check` has not done so before")
def test_mypy_reports_a_misspelt_setting_and_a_value_of_the_wrong_type(tmp_path):
    (tmp_path / "good.py").write_text(GOOD, "utf-8")
    (tmp_path / "bad.py").write_text("import neardup\n" + "\n".join(BAD), "utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", tmp_path / "good.py", tmp_path / "bad.py"],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in answer.stdout.splitlines() if ": error:" in line]
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert len(errors) == len(BAD), answer.stdout
    for number, (line, message) in enumerate(zip(errors, BAD.values(), strict=True), start=2):
        assert f"bad.py:{number}: error:" in line
        assert message in line
