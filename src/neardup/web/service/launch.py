"""Start the service: open the indexes, decide which tokens are needed, listen, and stop cleanly."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from neardup.errors import ConfigError, DataError
from neardup.index.index_folder import is_index
from neardup.web.guard import App, Senders
from neardup.web.served_index import ServedIndex
from neardup.web.server import (
    BACKLOG,
    LOOPBACK,
    address_of,
    configure,
    listen,
    page_app,
    run_until_signal,
)
from neardup.web.service.access import ADMIN, ANYBODY, READ, WRITE, Access, Grant
from neardup.web.service.app import TOOLS_PREFIX, Service, Tools, nothing_beside
from neardup.web.service.collection import Collection, name_of
from neardup.web.service.listening import listen_at, remove
from neardup.web.tokens import TokenFile, default_path

_NO_PAGE: Final = "default-src 'none'; frame-ancestors 'none'"
_MIN_TOKEN: Final = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """How the service listens, and whom it answers.

    write: whether documents may be changed; mcp: whether agents are offered tools;
    unix_socket: the path of a socket to listen on instead
    of a port; token: a token with every right; token_file: the file of `neardup token`;
    certificate, key: files for TLS; hosts, origins: further names of the server, and sites whose
    pages may ask; rate: requests per second of a token; access_log: called with every line.
    """

    write: bool = False
    mcp: bool = False
    host: str = "127.0.0.1"
    port: int = 8321
    unix_socket: str | None = None
    token: str | None = None
    token_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    rate: float = 10_000.0
    access_log: Callable[[bytes], object] | None = None


def serve_indexes(
    paths: Sequence[str], options: ServiceOptions, on_start: Callable[[list[str]], None]
) -> None:
    """Serve indexes until a signal; `on_start` is called with lines for the user."""
    _check(options)
    with contextlib.ExitStack() as stack:
        collections = _open_all(paths, stack, write=options.write)
        access, notes = _access(options)
        beside, policy, description = _beside(paths, stack)
        service = Service(
            beside,
            policy,
            collections,
            access,
            senders=_senders(options),
            log=options.access_log,
            description=description,
            tools=_tools(collections, options),
        )
        stack.callback(service.close)
        bound, address = _listen(options, service, stack)
        on_start([f"Serving {', '.join(collections)} at {address}", *notes])
        run_until_signal(_configured(options, service), bound)


def _check(options: ServiceOptions) -> None:
    if options.key is not None and options.certificate is None:
        raise ConfigError("`tls_key` needs `tls_cert`", hint="name the certificate, too")
    if options.unix_socket is not None and options.certificate is not None:
        raise ConfigError("`unix_socket` takes no `tls_cert`", hint="leave one of them out")
    for path in (options.certificate, options.key):
        if path is not None and not Path(path).is_file():
            raise DataError(f"{path} does not exist", hint="name a file in PEM format")
    if options.token is not None and len(options.token) < _MIN_TOKEN:
        raise ConfigError(
            f"the token has {len(options.token)} characters, fewer than {_MIN_TOKEN}",
            hint="NEARDUP_TOKEN=$(openssl rand -hex 32), or `neardup token new`",
        )
    for origin in options.origins:
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2:
            raise ConfigError(
                f"`allow_origin` must be a site, got {origin!r}", hint="https://example.org"
            )


def _open_all(
    paths: Sequence[str], stack: contextlib.ExitStack, *, write: bool
) -> dict[str, Collection]:
    named: dict[str, str] = {}
    for path in paths:
        if not is_index(path):
            raise DataError(
                f"{path} is not an index", hint="several paths, and --write, are for indexes only"
            )
        name = name_of(path)
        if name in named:
            raise ConfigError(
                f"{named[name]} and {path} are both the collection {name!r}",
                hint="rename the folder of one of them",
            )
        named[name] = path
    collections = {}
    for name, path in named.items():
        collections[name] = Collection(path, is_writable=write)
        stack.callback(collections[name].close)
    return collections


def _access(options: ServiceOptions) -> tuple[Access, list[str]]:
    """Return who may do what, and what to tell the user about it."""
    notes = []
    stored = _stored_tokens(options)
    given = [] if options.token is None else [options.token]
    without: Grant | None = ANYBODY
    if options.unix_socket is not None:
        without = Grant("unix", ADMIN)
    elif options.host not in LOOPBACK:
        without = None
        if options.certificate is None:
            notes.append(
                "Traffic is not encrypted: pass --tls-cert, or put a proxy with TLS in front."
            )
    needs_token = options.unix_socket is None and (options.write or without is None)
    if needs_token and not given and (stored is None or not stored.listed()):
        made = f"ndup_session_{secrets.token_urlsafe(32)}"
        given = [made]
        notes.append(f"Token for this session: {made}")
    access = Access(given=given, stored=stored, without=without, rate=options.rate)
    return access, notes


def _stored_tokens(options: ServiceOptions) -> TokenFile | None:
    if options.token_file is not None:
        return TokenFile(options.token_file)
    path = default_path()
    return TokenFile(path) if path.is_file() else None


def _beside(
    paths: Sequence[str], stack: contextlib.ExitStack
) -> tuple[App, str, dict[str, Any] | None]:
    """Return what answers beside the service: the page of a single index, else nothing."""
    if len(paths) > 1:
        return nothing_beside, _NO_PAGE, None
    served = ServedIndex(paths[0])
    stack.callback(served.close)
    app, policy = page_app(served)
    description = app.openapi()
    for path in ("/healthz",):
        description["paths"].pop(path, None)
    return app, policy, description


def _tools(collections: dict[str, Collection], options: ServiceOptions) -> Tools | None:
    """Return the tools for agents, for those who read and, if documents may be changed, those who write."""
    if not options.mcp:
        return None
    from neardup.mcp import McpApp, make_server

    apps = {}
    for scope in (READ, WRITE) if options.write else (READ,):
        servers = {
            f"{TOOLS_PREFIX}{name}": make_server(collection.index, write=scope == WRITE)
            for name, collection in collections.items()
        }
        apps[scope] = McpApp(servers)
    return apps


def _senders(options: ServiceOptions) -> Senders:
    hosts = list(options.hosts)
    if options.host not in LOOPBACK:
        hosts.append(f"[{options.host}]" if ":" in options.host else options.host)
    scheme = "http" if options.certificate is None else "https"
    return Senders(hosts, options.origins, scheme)


def _configured(options: ServiceOptions, service: Service) -> Any:
    certificate = None
    if options.certificate is not None:
        certificate = (options.certificate, options.key)
    return configure(service, host=options.host, port=options.port, certificate=certificate)


def _listen(
    options: ServiceOptions, service: Service, stack: contextlib.ExitStack
) -> tuple[Any, str]:
    if options.unix_socket is not None:
        bound: Any = listen_at(options.unix_socket, BACKLOG)
        stack.callback(remove, options.unix_socket)
        return bound, options.unix_socket
    bound = listen(_configured(options, service), options.host, options.port)
    scheme = "http" if options.certificate is None else "https"
    return bound, address_of(bound, scheme)


@contextlib.contextmanager
def log_file(path: str | None) -> Iterator[Callable[[bytes], object] | None]:
    """Open an access log for appending, closed to other users; None for none."""
    if path is None:
        yield None
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    file = 2 if path == "-" else os.open(path, flags, 0o600)
    try:
        yield lambda line: os.write(file, line)
    finally:
        if path != "-":
            os.close(file)
