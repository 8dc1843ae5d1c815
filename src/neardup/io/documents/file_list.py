"""A compact list of the files of a run, possibly a million."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

import msgspec

from neardup.io.records import InputFile

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(InputFile)


class FileList(Sequence[InputFile]):
    """A list of about 210 bytes per file, a third of the size of the objects, which are created on access."""

    def __init__(self, files: Iterable[InputFile] = ()) -> None:
        if isinstance(files, FileList):
            self._packed: list[bytes] = files._packed
        else:
            self._packed = [*map(_ENCODER.encode, files)]

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, at: int) -> InputFile: ...
    @overload
    def __getitem__(self, at: slice) -> list[InputFile]: ...
    def __getitem__(self, at: int | slice) -> InputFile | list[InputFile]:
        if isinstance(at, slice):
            return list(map(_DECODER.decode, self._packed[at]))
        return _DECODER.decode(self._packed[at])

    def __iter__(self) -> Iterator[InputFile]:
        return map(_DECODER.decode, self._packed)

    def __add__(self, others: FileList) -> FileList:
        """Concatenate two lists, sharing their contents."""
        both = FileList()
        both._packed = self._packed + others._packed
        return both
