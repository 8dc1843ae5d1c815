"""The command `neardup`: finds the command that was named, and turns errors into messages."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Final

import click

import neardup
from neardup.errors import ConfigError, NearDupError

# Each command is one module with a click command of its name; it is imported when it is called or listed.
COMMANDS: Final = ("demo",)


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order a newcomer meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by name."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(f"neardup.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(neardup.__version__, prog_name="neardup")
def commands() -> None:
    """Find near-duplicate documents at the speed of reading them, with a promise about what was found."""


def main() -> None:
    """Run the command line; exit 0 done, 1 failed, 2 wrong usage."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character shows a question mark
            stream.reconfigure(errors="replace")
    try:
        commands()
    except (NearDupError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2 if isinstance(error, ConfigError) else 1)
