"""The command `neardup`: finds the named subcommand, and turns errors into messages."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import importlib
import io
import os
import select
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, Final

import click

import neardup
from neardup.cli.usage import as_options, nearest, usage_words
from neardup.errors import ConfigError, NearDupError

# Each command is one module with a click command of its name; it is imported when it is called or
# listed.
COMMANDS: Final = (
    *(
        "demo",
        "tune",
        "dedup",
        "pairs",
        "neighbours",
        "passages",
        "decontaminate",
        "compare",
        "plan",
        "audit",
        "evaluate",
        "explain",
        "review",
        "report",
        "serve",
        "token",
        "mcp",
        "index",
    ),
    "completion",
)
INTERRUPTED: Final = 130
_FORMAT_WARNING: Final = warnings.formatwarning
# Arrow imports pandas with its first array, Numba imports SciPy and YAML, for features no command
# uses; pandas takes 0.3 s. PySpark does need pandas.
_UNUSED: Final = ("pandas", "scipy", "yaml")


class _LeaveOut:
    """Hides installed packages that are not used, so that they are not imported."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Raise as the import system does for a package that is not installed."""
        del path, target
        if fullname in _UNUSED:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


class _InterruptedError(Exception):
    """The user pressed Ctrl-C; click would otherwise turn that into exit 1."""


class UnknownCommandError(click.UsageError):
    """No command has this name; `possible` is the most likely intended one."""

    def __init__(self, name: str, possible: str | None, ctx: click.Context) -> None:
        super().__init__(f"there is no command {name!r}", ctx)
        self.possible = possible


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
        command: click.Command = getattr(
            importlib.import_module(f"neardup.cli.{cmd_name}"), cmd_name
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by name; an unknown name gets the nearest one as a hint."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UnknownCommandError(args[0], nearest(args[0], COMMANDS), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; keep what click would swallow."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise _InterruptedError("interrupted", *getattr(error, "__notes__", [])) from error
        except BrokenPipeError as error:  # click would exit without a message
            if not _is_stdout_closed():
                raise NearDupError(str(error)) from error
            return None


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(neardup.__version__, prog_name="neardup")
def commands() -> None:
    """Find near-duplicate documents fast, with known recall."""


def main() -> None:
    """Run the command line; exit 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    # Arrow's own allocator touches fresh memory again and again: 44 s instead of 18 for 1 GB
    # (docs/decisions/0007).
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    # Its threads would spin, although nothing uses them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000)  # imports create many objects and no garbage
    if not any("spark" in word for word in sys.argv):
        sys.meta_path.insert(0, _LeaveOut())
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller, as `>&-` does
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows a question mark.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    _escape_controls()
    sys.exit(run())


def program() -> None:
    """Be the process `neardup`: run the command line, and end without tearing down the interpreter.

    The teardown takes .15 s, a tenth of a run on 100 MB of text.
    """
    try:
        main()
    except SystemExit as ending:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it any more
                stream.flush()
        os._exit(ending.code if isinstance(ending.code, int) else 1)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line, that of the process if none is given, and return the exit code."""
    try:
        _check_arguments(sys.argv[1:] if arguments is None else arguments)
        code = commands(arguments, prog_name="neardup", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError as error:
        code = 0 if _is_stdout_closed() else _fail(error)
    except (click.ClickException, _InterruptedError, NearDupError, OSError, MemoryError) as error:
        code = _fail(error)
    return code if isinstance(code, int) else 0


def _check_arguments(arguments: list[str]) -> None:
    """Raise if an argument cannot be one of a process: click would ask the system for a file of that name."""
    for argument in arguments:
        try:
            is_possible = b"\0" not in os.fsencode(argument)
        except UnicodeEncodeError:
            is_possible = False
        if not is_possible:
            raise click.UsageError(f"{argument!r} has a character that no argument can have")


def _escape_controls() -> None:
    """Escape control characters in what Python itself prints of errors and warnings, which may quote documents."""
    sys.excepthook = lambda _, error, __: _show_crash(error)
    threading.excepthook = lambda failed: _show_crash(failed.exc_value)
    warnings.formatwarning = _escaped_warning


def _show_crash(error: BaseException | None) -> None:
    from neardup.cli import render

    if error is not None:
        render.crash(error)


def _escaped_warning(*arguments: Any, **named: Any) -> str:
    from neardup.cli.visible import visible_lines

    return visible_lines(_FORMAT_WARNING(*arguments, **named))


def _fail(error: Exception) -> int:
    """Print the error; return the exit code."""
    from neardup.cli import render

    if isinstance(error, click.ClickException):
        if isinstance(error, click.exceptions.NoArgsIsHelpError):
            render.text(error.format_message(), is_error=True)
        else:
            message, hint = usage_words(error)
            render.failure(f"error: {message}", hint)
        return error.exit_code
    if isinstance(error, _InterruptedError):
        for line in error.args:
            render.failure(line)
        return INTERRUPTED
    message, hint = _message(error)
    render.failure(f"error: {message}", hint)
    return 2 if isinstance(error, ConfigError) else 1


def _message(error: Exception) -> tuple[str, str | None]:
    if isinstance(error, NearDupError):
        return as_options(error.message), error.hint and as_options(error.hint)
    if isinstance(error, MemoryError):
        return (
            f"out of memory{f': {error}' if str(error) else ''}",
            "pass a smaller --memory, or fewer --threads",
        )
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = f": {error.filename}" if error.filename else ""
        return (
            f"No space left on device{where}",
            "free some space or choose another disk, then run it again",
        )
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}", None
    return str(error), None


def _is_stdout_closed() -> bool:
    """Whether the reader of stdout has closed the pipe, as `head` does; if so, stop writing to it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        is_closed = True
    else:  # without a buffer there is nothing to flush; only a pipe without a reader is in error
        is_closed = hasattr(select, "poll") and _is_in_error(sys.stdout.fileno())
    if is_closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return is_closed


def _is_in_error(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
