import dataclasses

import click
import pytest

from neardup.cli import options
from neardup.cli.dedup import dedup
from neardup.cli.main import COMMANDS, commands
from neardup.config import Config
from neardup.errors import ConfigError

FIELDS = {field.name: field.default for field in dataclasses.fields(Config)}


def configured(*arguments):
    """The Config that a command with all settings makes of its arguments."""
    seen = []

    @click.command(cls=options.Command)
    @options.settings(*FIELDS)
    def command(config):
        seen.append(config)

    command.main(list(arguments), standalone_mode=False)
    return seen[0]


def test_every_setting_is_an_option_of_dedup_and_nothing_else_is():
    own = {"inputs", "files_from", "out", "update", "report", "as_json", "quiet"}
    of_passages = {"cut"}
    of_items = {"item_column", "rule", "weights_from", "around", "remove"}
    of_pairs = {"one_to_one", "long"}
    of_dedup = set(FIELDS) - of_passages - of_items - of_pairs
    assert {parameter.name for parameter in dedup.params} == of_dedup | own
    assert set(options.SETTINGS) == set(FIELDS)


def test_without_options_the_config_is_the_default():
    assert configured() == Config()


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["-t", "0.9"], "threshold", 0.9),
        (["--num-perm", "256"], "num_perm", 256),
        (["--bands", "4"], "bands", 4),
        (["--unit", "char"], "unit", "char"),
        (["--keep", "max:score"], "keep", "max:score"),
        (["--text-column", "title"], "text_column", "title"),
        (["--text-column", "title", "--text-column", "body"], "text_column", ("title", "body")),
        (["--against", "old", "--against", "older"], "against", ("old", "older")),
        (["--against", "old", "--only-against"], "only_against", True),
        (["--per-cluster", "3"], "per_cluster", 3),
        (["--passages"], "passages", True),
        (["--passages", "--edits"], "edits", True),
        (["--min-words", "12"], "min_words", 12),
        (["--memory", "4GB"], "memory", 4 * 10**9),
        (["--delimiter", r"\t"], "delimiter", "\t"),
        (["--delimiter", ";"], "delimiter", ";"),
        (["--no-signature-filter"], "signature_filter", False),
        (["--fold-numbers"], "fold_numbers", True),
        (["--dry-run"], "dry_run", True),
        (["--threads", "3"], "threads", 3),
    ],
)
def test_every_option_sets_its_setting(arguments, name, value):
    assert getattr(configured(*arguments), name) == value


def test_a_value_out_of_bounds_is_the_librarys_error():
    with pytest.raises(ConfigError, match="`memory` must be a number of bytes"):
        configured("--memory", "lots")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_heading_and_a_help_text(name):
    command = commands.get_command(click.Context(commands), name)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.heading in options.HEADINGS
            assert parameter.help.endswith(".")


def test_help_lists_options_under_headings_in_order():
    text = dedup.get_help(click.Context(dedup, info_name="dedup"))
    places = [text.index(f"\n{heading}:") for heading in options.HEADINGS]
    assert places == sorted(places)
    assert "[default: 0.8]" in " ".join(text.split())
