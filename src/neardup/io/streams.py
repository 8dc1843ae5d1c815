"""Byte streams of files, local or remote, plain or compressed."""

from __future__ import annotations

import codecs
import contextlib
import datetime as dt
import hashlib
import io
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

import msgspec
import pyarrow as pa

from neardup.config.checks import MARK
from neardup.errors import DataError, MissingExtraError, StaleError
from neardup.io.records import InputFile

# Small, because buffered bytes are copied once more.
BUFFER_BYTES: Final = 1 << 16
# Enough of a file to prove that the author of a report has read it.
HEAD_BYTES: Final = 1 << 16
# A file up to this size is read by one call.
SMALL_BYTES: Final = 1 << 20
_READ: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_WRITE: Final = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_TRUNC
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
# Keys under which remote filesystems report the version of a file, the most reliable first.
_MODIFIED_KEYS: Final = (
    "ETag",
    "etag",
    "mtime",
    "LastModified",
    "last_modified",
    "updated",
    "modified",
    "created",
)
_BYTE_ORDERS: Final = {
    "utf-16": {"le": codecs.BOM_UTF16_LE, "be": codecs.BOM_UTF16_BE},
    "utf-32": {"le": codecs.BOM_UTF32_LE, "be": codecs.BOM_UTF32_BE},
}
# The default of gzip; Arrow uses 9, which compresses source code at 11 instead of 39 MB/s, for 1.4
# % of the size.
_GZIP_LEVEL: Final = 6


class _Decoded(io.RawIOBase):
    """Decodes a stream in another encoding to UTF-8."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        self._stream = stream
        self._ready = b""
        self._is_over = False
        self._decoder = codecs.getincrementaldecoder(encoding)(MARK)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_over:
            chunk = self._stream.read(BUFFER_BYTES)
            self._is_over = not chunk
            self._ready = self._decoder.decode(chunk, final=not chunk).encode("utf-8", MARK)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Encoded:
    """Encodes UTF-8 in the original encoding of a file."""

    def __init__(self, stream: IO[bytes], file: InputFile) -> None:
        self._stream = stream
        self._path = file.path
        encoding, byte_order_mark = _spelling(file)
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._encoder = codecs.getincrementalencoder(encoding)()
        self._first = byte_order_mark

    def write(self, content: bytes) -> int:
        """Encode and write UTF-8."""
        if self._first:
            self._stream.write(self._first)
            self._first = b""
            content = content.removeprefix(codecs.BOM_UTF8)
        try:
            self._stream.write(self._encoder.encode(self._decoder.decode(content)))
        except UnicodeEncodeError as error:
            raise DataError(
                f"{error.object[error.start]!r} cannot be written in {self._encoding}, the encoding of {self._path}",
                hint="convert the input to UTF-8, or leave mark=True out",
            ) from error
        return len(content)


def _spelling(file: InputFile) -> tuple[str, bytes]:
    """Return the encoding of a file with its byte order, and its byte order mark."""
    encoding = str(file.encoding)
    if encoding not in _BYTE_ORDERS:
        return encoding, b""
    with _open_bytes(file) as stream:
        head = stream.read(4)
    orders = _BYTE_ORDERS[encoding]
    return next(
        ((f"{encoding}-{order}", mark) for order, mark in orders.items() if head.startswith(mark)),
        (f"{encoding}-{sys.byteorder[0]}e", b""),
    )


class _Checked(io.RawIOBase):
    """A stream whose errors name the file."""

    def __init__(self, file: InputFile, plain: Any, stream: Any) -> None:
        self._file = file
        self._plain = plain
        self._stream = stream

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.compression is None

    def readinto(self, buffer: Any) -> int:
        with _named(self._file):
            return int(self._stream.readinto(buffer))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with _named(self._file):
            return int(self._stream.seek(offset, whence))

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._plain.close()
        super().close()


@contextlib.contextmanager
def _named(file: InputFile) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        raise _failure(file, error) from error


def _failure(file: InputFile, error: OSError | EOFError) -> DataError:
    if isinstance(error, OSError) and error.errno is not None:
        return DataError(f"{file.path} cannot be read: {error.strerror or error}")
    return DataError(
        f"{file.path} is truncated or damaged: {error}",
        hint="fetch or write the file again, or leave it out",
    )


def is_remote(path: str) -> bool:
    """Whether a path is an address for fsspec."""
    return "://" in path


def filesystem(address: str) -> tuple[Any, str]:
    """Return the fsspec filesystem of an address, and the path in it."""
    import fsspec  # type: ignore[import-untyped]

    try:
        filesystem, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        protocol = address.partition("://")[0]
        raise MissingExtraError(
            f"{address} needs a package that is not installed: {error}",
            hint=f"install what fsspec needs for {protocol}://, as with pip install 'fsspec[{protocol}]'",
        ) from error
    except ValueError as error:
        raise DataError(
            f"{address} cannot be opened: {error}", hint="use a local path or an fsspec address"
        ) from error
    return filesystem, path


def version_of(path: str) -> tuple[int, str]:
    """Return size and modification time or tag of a file, to detect changes."""
    if not is_remote(path):
        return local_version(os.stat(path))[:2]  # noqa: PTH116
    files, inner = filesystem(path)
    files.invalidate_cache()
    return version_in(files.info(inner), path)


def local_version(status: os.stat_result) -> tuple[int, str, str]:
    """Return size, modification time and identity (inode, change time) of a local file, to detect a replacement."""
    return status.st_size, str(status.st_mtime_ns), f"{status.st_ino} {status.st_ctime_ns}"


def version_in(info: dict[str, Any], path: str) -> tuple[int, str]:
    """Return size and modification time or tag from the fsspec information of a file."""
    if info.get("size") is None:
        raise DataError(
            f"the server does not report the size of {path}",
            hint="download it and name the local file",
        )
    return int(info["size"]), _spelled(
        next((info[key] for key in _MODIFIED_KEYS if info.get(key)), "")
    )


def head_of(path: str) -> str:
    """Return a digest of the first bytes of a local file; empty for a remote one, whose server reports a version."""
    if is_remote(path):
        return ""
    try:
        descriptor = os.open(path, _READ)
        try:
            return hashlib.sha256(os.read(descriptor, HEAD_BYTES)).hexdigest()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _spelled(modified: Any) -> str:
    """Format a time: some filesystems report a number in a listing and a date for a single file."""
    return str(modified.timestamp() if isinstance(modified, dt.datetime) else modified)


def check_unchanged(file: InputFile) -> None:
    """Raise if a file has changed since the start of the run."""
    if file.reason:  # nothing is read of it
        return
    with _named(file):
        found = (
            (*version_of(file.path), "")
            if is_remote(file.path)
            else local_version(os.stat(file.path))  # noqa: PTH116
        )
    _check_version(file, found)


def _check_version(file: InputFile, found: tuple[int, str, str]) -> None:
    if found != (file.size, file.modified, file.identity or found[2]):
        raise StaleError(
            f"{file.path} changed while it was read",
            hint="wait until it is complete, then run the command again",
        )


def read_small(file: InputFile) -> tuple[bytes, int] | None:
    """Return the bytes and the mode of a small local file; None for any other file.

    Raises if the file has changed since the start of the run. For many small files, this takes a
    third of the time of `open_input` and `check_unchanged`: four system calls and no buffers.
    """
    if file.size > SMALL_BYTES or is_remote(file.path):
        return None
    try:
        descriptor = os.open(file.path, _READ)
        try:
            content = os.read(descriptor, file.size + 1)
            status = os.fstat(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _failure(file, error) from error
    _check_version(file, local_version(status))
    return (content, status.st_mode) if len(content) == file.size else None


def write_small(target: str, content: bytes, mode: int) -> None:
    """Write a local file with the read and write permissions of this mode, and those of the owner."""
    mode = mode & 0o666 | 0o600
    try:
        descriptor = os.open(target, _WRITE, mode)
    except FileNotFoundError:  # rare: for most files the folder already exists
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, _WRITE, mode)
    try:
        written = os.write(descriptor, content)
        while written < len(content):
            written += os.write(descriptor, content[written:])
        is_same = stat.S_IMODE(os.fstat(descriptor).st_mode) == mode
    finally:
        os.close(descriptor)
    if not is_same:  # the umask removed some permissions, or the file already existed
        os.chmod(target, mode)  # noqa: PTH101


def open_input(file: InputFile) -> io.BufferedReader:
    """Open a file for reading, decompressed, and as UTF-8 if it is text in another encoding."""
    if file.encoding is None:
        return _open_bytes(file)
    encoding, _ = _spelling(file)
    return io.BufferedReader(_Decoded(_open_bytes(file), encoding), BUFFER_BYTES)


def _open_bytes(file: InputFile) -> io.BufferedReader:
    with _named(file):
        if is_remote(file.path):
            files, inner = filesystem(file.path)
            plain = files.open(inner, "rb")
        else:
            plain = open(file.path, "rb", buffering=0)  # noqa: PTH123, SIM115
    if file.compression is None:
        return io.BufferedReader(_Checked(file, plain, plain), BUFFER_BYTES)
    if file.size == 0:
        plain.close()
        raise DataError(
            f"{file.path} is truncated or damaged: it has no bytes",
            hint="fetch or write the file again",
        )
    stream = pa.CompressedInputStream(pa.PythonFile(plain, "r"), file.compression)
    return io.BufferedReader(_Checked(file, plain, stream), BUFFER_BYTES)


@contextlib.contextmanager
def open_output_like(file: InputFile, target: str) -> Iterator[IO[bytes]]:
    """Open a file for rows of another, with the same compression and encoding; the caller writes UTF-8."""
    with open_output(target, file.compression) as output:
        yield output if file.encoding is None else cast(IO[bytes], _Encoded(output, file))


@contextlib.contextmanager
def open_output(target: str, compression: str | None) -> Iterator[IO[bytes]]:
    """Open a file for writing; equal content gives equal bytes, also if compressed."""
    with contextlib.ExitStack() as stack:
        plain = stack.enter_context(_open_target(target))
        if compression == "gzip":
            import gzip  # takes 5 ms, and few outputs are compressed

            # No name and no time in the header, so that the bytes are reproducible.
            yield cast(
                IO[bytes], stack.enter_context(gzip.GzipFile("", "wb", _GZIP_LEVEL, plain, mtime=0))
            )
        elif compression is not None:
            yield stack.enter_context(
                pa.CompressedOutputStream(pa.PythonFile(plain, "w"), compression)
            )
        else:
            yield plain


def open_arrow_output(target: str) -> Any:
    """Open a file for Arrow to write to; a local file bypasses Python, which would need the GIL."""
    if is_remote(target):
        return pa.PythonFile(_open_target(target), "w")
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    return pa.OSFile(target, "wb")


def _open_target(target: str) -> IO[bytes]:
    if is_remote(target):
        files, inner = filesystem(target)
        return cast(IO[bytes], files.open(inner, "wb"))
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    return Path(target).open("wb")


def copy_file(file: InputFile, target: str) -> None:
    """Copy a file byte for byte, without decompressing it."""
    with _named(file):
        if not is_remote(file.path) and not is_remote(target):
            try:
                shutil.copyfile(file.path, target)
            except FileNotFoundError:  # rare: for most files the folder already exists
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, target)
            return
    with (
        open_input(msgspec.structs.replace(file, compression=None, encoding=None)) as stream,
        open_output(target, None) as output,
    ):
        shutil.copyfileobj(stream, output)


def copy_permissions(file: InputFile, target: str) -> None:
    """Copy the read and write permissions of an input file, and let the owner read and write; not for remote files."""
    if file.reason or is_remote(file.path) or is_remote(target):
        return
    with contextlib.suppress(FileNotFoundError):  # a removed text leaves no file
        with _named(file):
            mode = os.stat(file.path).st_mode  # noqa: PTH116
        os.chmod(target, mode & 0o666 | 0o600)  # noqa: PTH101
