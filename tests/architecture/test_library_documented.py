"""docs/library.md has every public name, and every public function documents its arguments and has an example."""

from __future__ import annotations

import dataclasses
import inspect
import re
from pathlib import Path

import pytest

import neardup

PAGE = (Path(__file__).parents[2] / "docs" / "library.md").read_text("utf-8")
NAMES = [*neardup.__all__, "families", "textbook"]
FUNCTIONS = [name for name in neardup.__all__ if inspect.isfunction(getattr(neardup, name))]
# Documented on their own pages.
ELSEWHERE = {"Config", "Index", "NearDupError", "SparkEngine"}
CLASSES = [name for name in neardup.__all__ if name not in FUNCTIONS and name not in ELSEWHERE]


def section(name):
    return PAGE.partition(f"\n### neardup.{name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]


def words_in_code(text):
    """Every name in code spans, alone or as a call."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", code)}


def members(thing):
    """Public attributes, methods and fields of a class; public functions and classes of a module."""
    if inspect.ismodule(thing):
        own = {
            name
            for name, value in vars(thing).items()
            if getattr(value, "__module__", "") == thing.__name__
        }
        return {name for name in own if not name.startswith("_")}
    fields = (
        {field.name for field in dataclasses.fields(thing)}
        if dataclasses.is_dataclass(thing)
        else set()
    )
    return fields | {name for name in vars(thing) if not name.startswith("_")}


def test_every_public_name_has_a_section_and_every_section_a_name():
    assert sorted(re.findall(r"^### neardup\.(\w+)$", PAGE, re.MULTILINE)) == sorted(NAMES)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_documented_with_its_signature_and_every_argument(name):
    documented = section(name)
    parameters = inspect.signature(getattr(neardup, name)).parameters
    shown = documented.strip().splitlines()[0]
    assert re.findall(r"(?:^`\w+\(|, )\**(\w+)", shown.partition(" -> ")[0]) == list(parameters)
    assert set(parameters) <= words_in_code(documented.partition(shown)[2])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_documents_its_arguments_and_has_an_example(name):
    function = getattr(neardup, name)
    described = re.findall(r"^ {8}(\w+): \S", function.__doc__, re.MULTILINE)
    assert described == list(inspect.signature(function).parameters)
    assert ">>> " in function.__doc__


@pytest.mark.parametrize("name", [*CLASSES, "families", "textbook"])
def test_every_public_member_is_documented(name):
    thing = getattr(neardup, name)
    aliases = {"Item", "Row"}  # of types
    assert members(thing) - aliases - words_in_code(section(name)) == set()
