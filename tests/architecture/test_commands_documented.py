"""docs/commands.md documents every command and option, and no others."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from neardup.cli.main import COMMANDS, commands
from neardup.cli.options import HEADINGS

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text("utf-8")
CONTEXT = click.Context(commands)
BY_NAME = {name: commands.get_command(CONTEXT, name) for name in COMMANDS}
# Those of a group of commands are commands of their own, named after both.
EVERY = BY_NAME | {
    f"{name} {below}": command
    for name, group in BY_NAME.items()
    if isinstance(group, click.Group)
    for below, command in group.commands.items()
}
OPTIONS = [
    (name, option)
    for name in EVERY
    for option in EVERY[name].params
    if isinstance(option, click.Option)
]


def flags(option):
    return "/".join([", ".join(sorted(option.opts, key=len)), *option.secondary_opts])


def documented_options():
    """(heading, command, flags) to (default, meaning), of every row of the tables."""
    found = {}
    for heading in HEADINGS:
        section = PAGE.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
        for line in section.splitlines():
            if line.startswith("| `"):
                names, default, used_by, meaning = (
                    cell.strip() for cell in line.strip("|").split(" | ")
                )
                for command in used_by.split(", "):
                    found[heading, command, names.strip("`")] = (default.strip("`"), meaning)
    return found


def default_words(option):
    if option.required:
        return "required"
    if (
        option.multiple
        or not isinstance(option.default, (bool, int, float, str))
        or option.default is False
    ):
        return ""
    return "on" if option.default is True else str(option.default)


def example_lines(text):
    """Every example command in a text, without a preceding pipe and trailing comment."""
    for line in re.findall(
        r"^ +(?:[^\n]*\| )?(neardup [a-z]+ [^\n]*|neardup [a-z]+)$", text, re.MULTILINE
    ):
        yield re.split(r" {3,}| >", line)[0].split("\n")[0]


def test_every_command_has_a_section_and_every_section_a_command():
    assert re.findall(r"^## neardup (\w+)$", PAGE, re.MULTILINE) == list(COMMANDS)


def test_every_option_is_documented_with_its_default_and_its_help_and_nothing_else_is():
    offered = {
        (option.heading, name, flags(option)): (default_words(option), option.help)
        for name, option in OPTIONS
    }
    assert documented_options() == offered


@pytest.mark.parametrize("name", COMMANDS)
def test_help_opens_with_what_it_does_and_real_examples(name):
    text = BY_NAME[name].help
    examples = list(example_lines(text))
    assert text.splitlines()[0].endswith((".", ".\n"))
    assert len(examples) >= 3
    for example in examples:
        parse(example)


@pytest.mark.parametrize(
    "example", [line for line in example_lines(PAGE) if not re.search(r"INPUT|A B|OUT|SHELL", line)]
)
def test_every_example_of_the_page_is_a_command_that_parses(example):
    parse(example)


def parse(example):
    _, name, *arguments = shlex.split(example)
    if isinstance(BY_NAME[name], click.Group):
        name = f"{name} {arguments[0]}"
        arguments = arguments[1:]
    EVERY[name].make_context(name, arguments, parent=CONTEXT)
