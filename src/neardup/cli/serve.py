"""`neardup serve`: the page of a run or an index from a local server."""

from __future__ import annotations

import click

from neardup.cli import options


@click.command(
    cls=options.Command,
    short_help="Show a run, a list of pairs or an index in the browser.",
)
@click.argument("path", type=click.Path(), metavar="OUT|PAIRS|INDEX")
@click.option(
    "--host",
    cls=options.Option,
    heading=options.WORK,
    default="127.0.0.1",
    show_default=True,
    metavar="NAME",
    help="Loopback address to listen on; any other is refused.",
)
@click.option(
    "--port",
    cls=options.Option,
    heading=options.WORK,
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    metavar="N",
    help="Port to listen on; 0 picks a free one.",
)
def serve(path: str, host: str, port: int) -> None:
    """Show a finished run, a list of pairs or an index in the browser, from a server that only this machine can reach.

    The page is that of `neardup report`, with all clusters and documents instead of a sample. For an index, it finds
    the near-duplicates of a text that you paste or drop. The server is read-only. Stop it with Ctrl-C.

    \b
    Examples:
      neardup serve clean
      neardup serve clean --port 9000
      neardup serve pairs.csv
      neardup serve pages.index                    paste a text, see its near-duplicates
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render
    from neardup.errors import MissingExtraError

    with render.working("serve"):
        try:
            from neardup.web.server import serve as run
        except ImportError as error:
            raise MissingExtraError(
                f"the server needs {error.name}, which is not installed",
                hint='pip install "neardup[serve]"',
            ) from error
    run(
        path,
        host=host,
        port=port,
        on_start=lambda url: render.lines([f"Open {url} in your browser. Stop with Ctrl-C."]),
    )
