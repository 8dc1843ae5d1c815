"""Tokens of the service: a file of hashed secrets, each with a collection, a scope and a time of expiry."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec

from neardup.config.checks import check_choice, check_text
from neardup.errors import ConfigError, DataError
from neardup.index.facts import as_time

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such module
    fcntl = None  # type: ignore[assignment]

# Each scope may do what those before it may.
SCOPES: Final = ("read", "write", "admin")
EVERY: Final = "*"
_TOKEN: Final = re.compile(r"ndup_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_SECRET_BYTES: Final = 32
_SALT_BYTES: Final = 16
_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_FILE: Final = 1 << 24
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Token(msgspec.Struct, frozen=True):
    """What is stored of a token: never the secret, only its salted digest."""

    token_id: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{8}$")]
    collection: str
    scope: str
    created: float
    expires: float | None
    salt: str
    digest: str

    def is_expired(self, now: float) -> bool:
        """Whether the token is no longer valid."""
        return self.expires is not None and self.expires <= now

    def covers(self, collection: str) -> bool:
        """Whether the token is for a collection."""
        return self.collection in (EVERY, collection)


class _Stored(msgspec.Struct, frozen=True):
    """The contents of the file."""

    version: int
    tokens: list[Token]


def default_path() -> Path:
    """Return where tokens are stored unless another file is named."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "neardup" / "tokens.json"


def digest_of(secret: str, salt: bytes) -> bytes:
    """Return the salted digest of a secret; it has 256 random bits, so a slow hash adds nothing."""
    return hashlib.blake2b(secret.encode(), digest_size=32, salt=salt).digest()


class TokenFile:
    """The file of tokens; changes by other processes are noticed at the next question."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: tuple[int, int, int] | None = None
        self._tokens: dict[str, Token] = {}

    def new(
        self, *, collection: str = EVERY, scope: str = "read", expires: object = None
    ) -> tuple[str, Token]:
        """Store a new token; return it whole, which is the only time, and what is stored of it."""
        check_choice("scope", scope, SCOPES)
        if not collection or "/" in collection:
            raise ConfigError(
                f"`collection` must be the name of a collection, got {collection!r}",
                hint="it is the folder of the index without .index; pass * for all collections",
            )
        check_text("collection", collection)
        until = as_time("expires", expires)
        if until is not None and until <= time.time():
            raise ConfigError("`expires` is in the past", hint="write a time such as 2031-01-31")
        with self._locked():
            known = self._read()
            token_id = _new_id(known)
            secret = secrets.token_urlsafe(_SECRET_BYTES)
            salt = secrets.token_bytes(_SALT_BYTES)
            token = Token(
                token_id=token_id,
                collection=collection,
                scope=scope,
                created=time.time(),
                expires=until,
                salt=base64.b64encode(salt).decode(),
                digest=base64.b64encode(digest_of(secret, salt)).decode(),
            )
            self._write({**known, token_id: token})
        return f"ndup_{token_id}_{secret}", token

    def listed(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        return sorted(self._read().values(), key=lambda token: (token.created, token.token_id))

    def revoke(self, token_id: str) -> Token:
        """Remove a token by its id, which is also the middle part of the token."""
        with self._locked():
            known = self._read()
            if token_id not in known:
                raise DataError(
                    f"there is no token {token_id!r} in {self.path}",
                    hint="`neardup token list` shows the ids",
                )
            token = known.pop(token_id)
            self._write(known)
        return token

    def find(self, given: str) -> Token | None:
        """Return the valid token that was given, or None; takes as long whether or not its id exists."""
        parts = _TOKEN.fullmatch(given)
        token_id, secret = parts.groups() if parts else ("", "")
        token = self._current().get(token_id, _NOBODY)
        expected = base64.b64decode(token.digest)
        is_equal = hmac.compare_digest(digest_of(secret, base64.b64decode(token.salt)), expected)
        is_known = is_equal and token is not _NOBODY and not token.is_expired(time.time())
        return token if is_known else None

    def _current(self) -> dict[str, Token]:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - half the time of Path.stat
        except OSError:
            self._seen = None
            return {}
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            self._tokens = self._read()
            self._seen = seen
        return self._tokens

    def _read(self) -> dict[str, Token]:
        try:
            file = os.open(self.path, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}") from error
        with open(file, "rb") as opened:  # noqa: PTH123 - of a descriptor
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise DataError(f"{self.path} is not a regular file", hint="choose another file")
            if found.st_mode & _OTHERS:
                raise DataError(
                    f"{self.path} can be read by other users", hint=f"chmod 600 {self.path}"
                )
            content = opened.read(_MAX_FILE)
        try:
            stored = msgspec.json.decode(content, type=_Stored)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(
                f"{self.path} is not a file of tokens: {error}",
                hint="`neardup token new` writes one; choose another path",
            ) from error
        return {token.token_id: token for token in stored.tokens}

    def _write(self, tokens: dict[str, Token]) -> None:
        draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
        try:
            with open(file, "wb") as opened:  # noqa: PTH123 - of a descriptor
                stored = _Stored(1, list(tokens.values()))
                opened.write(msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
                opened.flush()
                os.fsync(opened.fileno())
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing the file."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self.path.with_name(f"{self.path.name}.lock")
        file = os.open(lock, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)


def _new_id(known: dict[str, Token]) -> str:
    while (token_id := secrets.token_hex(4)) in known:
        pass
    return token_id


# Compared with what is no token, so that the time of an answer does not tell which ids exist.
_NOBODY: Final = Token(
    token_id="00000000",  # noqa: S106 - a name
    collection="",
    scope="read",
    created=0.0,
    expires=0.0,
    salt=base64.b64encode(bytes(_SALT_BYTES)).decode(),
    digest=base64.b64encode(bytes(32)).decode(),
)
