"""`neardup serve`: the page of a run from a local server, and indexes as a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from neardup.cli import options

Function = TypeVar("Function", bound=Callable[..., Any])
_LOOPBACK = "127.0.0.1"
# The options that the page of a run has, too.
_OF_EVERY_PAGE = ("host", "port")


def _own(*names: str, what: str, **attributes: Any) -> Callable[[Function], Function]:
    return options.option(*names, heading=options.WORK, what=what, **attributes)


@click.command(
    cls=options.Command,
    short_help="Show a run or an index in the browser; serve indexes.",
)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="OUT|PAIRS|INDEX...")
@_own(
    "--write", what="Let programs with a token change the documents of the indexes.", is_flag=True
)
@_own("--mcp", what="Also offer every index to agents as tools, at /mcp/NAME.", is_flag=True)
@_own(
    "--host",
    default=_LOOPBACK,
    metavar="NAME",
    envvar="NEARDUP_HOST",
    what="Address to listen on; beyond loopback, which is for indexes only, every request needs a token.",
)
@_own(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    metavar="N",
    envvar="NEARDUP_PORT",
    what="Port to listen on; 0 picks a free one.",
)
@_own(
    "--unix-socket",
    type=click.Path(),
    metavar="PATH",
    envvar="NEARDUP_UNIX_SOCKET",
    what="Listen on a socket that only you can open, instead of a port; it needs no token.",
)
@_own(
    "--token-file",
    type=click.Path(),
    metavar="FILE",
    envvar="NEARDUP_TOKEN_FILE",
    what="File of tokens; default: neardup/tokens.json in the folder for configuration.",
)
@_own(
    "--tls-cert",
    type=click.Path(),
    metavar="FILE",
    envvar="NEARDUP_TLS_CERT",
    what="TLS certificate, in PEM format.",
)
@_own(
    "--tls-key",
    type=click.Path(),
    metavar="FILE",
    envvar="NEARDUP_TLS_KEY",
    what="Key of the TLS certificate, unless its file has it.",
)
@_own(
    "--allow-host",
    multiple=True,
    metavar="NAME",
    envvar="NEARDUP_ALLOW_HOST",
    what="Another name of this server, as clients call it; repeatable.",
)
@_own(
    "--allow-origin",
    multiple=True,
    metavar="URL",
    envvar="NEARDUP_ALLOW_ORIGIN",
    what="Site whose pages may send requests, such as https://example.org; repeatable.",
)
@_own(
    "--rate",
    type=click.FloatRange(1),
    default=10_000.0,
    metavar="N",
    envvar="NEARDUP_RATE",
    what="Requests per second of one token.",
)
@_own(
    "--access-log",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    envvar="NEARDUP_ACCESS_LOG",
    what="Append one JSON line per request to a file, without texts, ids and tokens; - for stderr.",
)
def serve(paths: tuple[str, ...], **given: Any) -> None:
    """Show a finished run, a list of pairs or an index in the browser, and serve indexes to programs.

    The page is that of `neardup report`, with all clusters and documents instead of a sample. For an index, it finds
    the near-duplicates of a text that you paste or drop, and programs reach every index as a
    collection: docs/service.md lists the routes. Without --write the server is read-only. Stop it with Ctrl-C.

    \b
    Examples:
      neardup serve clean
      neardup serve clean --port 9000
      neardup serve pairs.csv
      neardup serve pages.index                    paste a text, see its near-duplicates
      neardup serve pages.index --write            programs store documents, with the token that is printed
      neardup serve a.index b.index --write --unix-socket /run/neardup.sock
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render
    from neardup.errors import MissingExtraError
    from neardup.index.index_folder import is_index

    with render.working("serve"):
        try:
            from neardup.web import server
            from neardup.web.service import launch as service
        except ImportError as error:
            raise MissingExtraError(
                f"the server needs {error.name}, which is not installed",
                hint='pip install "neardup[serve]"',
            ) from error
    if is_index(paths[0]) or len(paths) > 1:
        _serve_indexes(service, paths, given)
        return
    _refuse_options_of_indexes(paths[0], given)
    server.serve(
        paths[0],
        host=given["host"],
        port=given["port"],
        on_start=lambda url: render.lines([f"Open {url} in your browser. Stop with Ctrl-C."]),
    )


def _refuse_options_of_indexes(path: str, given: dict[str, Any]) -> None:
    """Raise if an option is given that has no effect on the page of a run or of pairs."""
    from neardup.errors import ConfigError

    context = click.get_current_context()
    for name, value in given.items():
        source = context.get_parameter_source(name)
        if name in _OF_EVERY_PAGE or source is not click.core.ParameterSource.COMMANDLINE:
            continue
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, tuple):
            option += f" {value[0]}"
        elif value is not True:
            option += f" {value}"
        raise ConfigError(
            f"{option} is for indexes, which {path} is not",
            hint="leave it out, or name a folder that `neardup index create` made",
        )


def _serve_indexes(service: Any, paths: Sequence[str], given: dict[str, Any]) -> None:
    import os

    from neardup.cli import render

    with service.log_file(given["access_log"]) as write_line:
        chosen = service.ServiceOptions(
            write=given["write"],
            mcp=given["mcp"],
            host=given["host"],
            port=given["port"],
            unix_socket=given["unix_socket"],
            token=os.environ.get("NEARDUP_TOKEN") or None,
            token_file=given["token_file"],
            certificate=given["tls_cert"],
            key=given["tls_key"],
            hosts=given["allow_host"],
            origins=given["allow_origin"],
            rate=given["rate"],
            access_log=write_line,
        )
        service.serve_indexes(
            paths,
            chosen,
            lambda lines: render.lines([*lines, "Stop with Ctrl-C."]),
        )
