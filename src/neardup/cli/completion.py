"""`neardup completion`: the script that lets a shell complete commands, options and files."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from neardup.cli import options

SHELLS: Final = ("bash", "zsh", "fish")


@click.command(cls=options.Command, short_help="Print a shell completion script.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a completion script for a shell: commands, options, choices and file names.

    \b
    Run one of these once, then start a new shell:
      neardup completion bash >> ~/.bashrc
      neardup completion zsh >> ~/.zshrc
      neardup completion fish > ~/.config/fish/completions/neardup.fish

    \b
    For this shell only:
      source <(neardup completion bash)
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    script = get_completion_class(shell)
    if script is not None:
        render.text(script(ctx.find_root().command, {}, "neardup", "_NEARDUP_COMPLETE").source())
