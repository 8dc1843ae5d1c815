"""`neardup token`: make, list and revoke the tokens of a service."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import click

from neardup.cli import options

if TYPE_CHECKING:
    from neardup.web.tokens import Token, TokenFile

_FILE: Final = options.option(
    "--token-file",
    heading=options.WORK,
    what="File of tokens; default: neardup/tokens.json in the folder for configuration.",
    type=click.Path(),
    metavar="FILE",
    envvar="NEARDUP_TOKEN_FILE",
)


@click.group(short_help="Make, list and revoke the tokens of a service.")
def token() -> None:
    """Make, list and revoke the tokens with which programs reach `neardup serve`.

    \b
    Examples:
      neardup token new --collection pages --scope write
      neardup token new --scope read --expires 2031-01-31
      neardup token list
      neardup token revoke 1f2e3d4c
    """  # noqa: D301 - click reads the backspace


@token.command(cls=options.Command, short_help="Make a token, and show it once.")
@options.option(
    "--collection",
    heading=options.WORK,
    what="Collection that the token is for; * for all.",
    default="*",
    metavar="NAME",
)
@options.option(
    "--scope",
    heading=options.WORK,
    what="What the token may do: read, also write, or also compact, check and copy.",
    type=click.Choice(("read", "write", "admin")),
    default="read",
)
@options.option(
    "--expires",
    heading=options.WORK,
    what="When the token ends, such as 2031-01-31 or 2031-01-31T12:00.",
    metavar="TIME",
)
@_FILE
@options.as_json("the token")
def new(
    collection: str, scope: str, expires: str | None, token_file: str | None, as_json: bool
) -> None:
    """Make a token and show it: only its salted hash is stored."""
    from neardup.cli import render

    secret, stored = _file(token_file).new(collection=collection, scope=scope, expires=expires)
    if as_json:
        render.as_json({"token": secret, **_facts(stored)})
    else:
        render.lines([secret])


@token.command("list", cls=options.Command, short_help="List tokens, without their secrets.")
@_FILE
@options.as_json("the tokens")
def list_tokens(token_file: str | None, as_json: bool) -> None:
    """List the tokens: id, scope, collection, and when they were made and end."""
    from neardup.cli import render

    listed = [_facts(stored) for stored in _file(token_file).listed()]
    if as_json:
        render.as_json({"tokens": listed})
        return
    render.lines(
        f"{one['id']}  {one['scope']:5}  {one['collection']}  made {one['created']}"
        f"  {'ends ' + one['expires'] if one['expires'] else 'does not end'}"
        for one in listed
    )


@token.command(cls=options.Command, short_help="Revoke a token; a running service notices.")
@click.argument("token_id", metavar="ID")
@_FILE
@options.quiet("Print errors only.")
def revoke(token_id: str, token_file: str | None, quiet: bool) -> None:
    """Revoke the token with this id, at once also for services that run."""
    from neardup.cli import render

    stored = _file(token_file).revoke(token_id)
    if not quiet:
        render.lines([f"Revoked {stored.token_id} ({stored.scope} on {stored.collection})."])


def _file(path: str | None) -> TokenFile:
    from neardup.web.tokens import TokenFile, default_path

    return TokenFile(default_path() if path is None else path)


def _facts(stored: Token) -> dict[str, Any]:
    return {
        "id": stored.token_id,
        "scope": stored.scope,
        "collection": stored.collection,
        "created": _shown(stored.created),
        "expires": None if stored.expires is None else _shown(stored.expires),
    }


def _shown(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds")
