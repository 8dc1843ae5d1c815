"""The instructions for coding agents name commands and options that exist, and are installed with the package."""

from __future__ import annotations

import importlib
import re
from importlib import resources

import pytest

from neardup.cli.main import COMMANDS

PAGE = (resources.files("neardup") / "skills" / "neardup" / "SKILL.md").read_text("utf-8")
LINES = re.findall(r"`neardup ([^`]+)`", PAGE)


def test_the_page_has_a_name_and_says_when_to_use_it():
    head = PAGE.split("---\n")[1]

    assert "name: neardup\n" in head
    assert re.search(r"^description: .*Use it when", head, re.MULTILINE)
    assert len(LINES) >= 8


@pytest.mark.parametrize("line", LINES)
def test_every_command_of_the_page_exists_with_its_options(line):
    name, *rest = line.split()
    assert name in COMMANDS

    command = getattr(importlib.import_module(f"neardup.cli.{name}"), name)
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= options
