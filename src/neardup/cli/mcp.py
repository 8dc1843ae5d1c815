"""`neardup mcp`: an index as tools of an agent."""

from __future__ import annotations

import click

from neardup.cli import options


@click.command(cls=options.Command, short_help="Offer an index to agents as tools (MCP).")
@click.argument("folder", metavar="INDEX", type=click.Path())
@options.option(
    "--write",
    heading=options.WORK,
    what="Let agents store documents, too.",
    is_flag=True,
)
def mcp(folder: str, write: bool) -> None:
    """Offer an index to agents as tools, by the Model Context Protocol on standard input and output.

    The tools are check, query, compare, explain and passages, and with --write also insert_new. `neardup serve --mcp`
    offers the same over HTTP.

    \b
    Examples:
      neardup mcp pages.index
      neardup mcp memory.index --write
      neardup mcp /data/pages.index
    """  # noqa: D301 - click reads the backspace
    from neardup.index.index import Index
    from neardup.mcp import make_server

    with Index.open(folder, read_only=not write) as index:
        make_server(index, write=write).run()
