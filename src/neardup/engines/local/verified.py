"""Verified documents, in memory, and the pairs found among them, which may exceed it: with a workspace, on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import PutPairs, Sort, VerifiedPairs
from neardup.engines.local.tables import LocalTable, batches_of
from neardup.io.storage.workspace import Workspace, read_batches

# Makes a table in memory unless an interrupted run has finished it.
Checkpoint = Callable[[str, Callable[[], pa.Table]], pa.Table]
# Verifies documents, and puts their pairs.
Verification = Callable[[PutPairs], pa.Table]


class VerifiedTable:
    """Verified documents as schema.VERIFIED with empty lists, and the files or batches of their pairs."""

    def __init__(self, documents: pa.Table, pairs: Sequence[Path | pa.RecordBatch]) -> None:
        self.documents = documents
        self.schema = documents.schema
        self._pairs = pairs

    @classmethod
    def joined(cls, tables: Sequence[VerifiedTable]) -> VerifiedTable:
        """Return several tables as one."""
        documents = [schemas.VERIFIED.empty_table(), *(table.documents for table in tables)]
        return cls(
            pa.concat_tables(documents), [pairs for table in tables for pairs in table._pairs]
        )

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns of the documents."""
        return batches_of(self.documents, columns)

    def pairs(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the pairs, as schema.PARTNERED, in any order."""
        for pairs in self._pairs:
            if isinstance(pairs, pa.RecordBatch):
                yield pairs
            elif pairs.exists():
                yield from read_batches(pairs)


def found_pairs(verified: LocalTable, sort: Sort) -> VerifiedPairs:
    """Return the pairs of verified documents, for a step that lists them."""
    if not isinstance(verified, VerifiedTable):
        raise TypeError(f"verified documents come from map_components, got {type(verified)}")
    return VerifiedPairs(verified.documents.column("row").to_numpy(), verified.pairs, sort)


def has_verified(workspace: Workspace, name: str) -> bool:
    """Whether an interrupted run has finished a table of verified documents, with its pairs."""
    return all(map(workspace.has, _files(name)))


def verified_checkpoint(
    workspace: Workspace | None, checkpoint: Checkpoint, name: str, verify: Verification
) -> VerifiedTable:
    """Verify documents unless an interrupted run has; their pairs are finished before they are."""
    if workspace is None:
        collected: list[pa.RecordBatch] = []
        return VerifiedTable(verify(collected.append), collected)
    documents_file, pairs_file = _files(name)
    pairs_path = workspace.folder / pairs_file
    if not has_verified(workspace, name):
        workspace.forget(documents_file)
        workspace.forget(pairs_file)
        pairs_path.unlink(missing_ok=True)

    def verify_and_write() -> pa.Table:
        verified = []

        def write(path: Path) -> None:
            with _PairWriter(path) as writer:
                verified.append(verify(writer.put))

        workspace.checkpoint(pairs_file, write)
        return verified[0]

    return VerifiedTable(checkpoint(name, verify_and_write), [pairs_path])


def _files(name: str) -> tuple[str, str]:
    """Return the files of verified documents and of their pairs."""
    return f"{name}.arrow", f"{name}-pairs.arrow"


class _PairWriter:
    """Writes pairs to a file as they are found; thread-safe. Without pairs there is no file."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)  # that of a killed run
        self._path = path
        self._sink: pa.NativeFile | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._lock = threading.Lock()

    def put(self, pairs: pa.RecordBatch) -> None:
        """Write pairs, as schema.PARTNERED."""
        with self._lock:
            if self._writer is None:
                self._sink = pa.OSFile(str(self._path), "wb")
                self._writer = pa.ipc.new_file(self._sink, schemas.PARTNERED)
            self._writer.write_batch(pairs)

    def __enter__(self) -> _PairWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for opened in (self._writer, self._sink):
            if opened is not None:
                opened.close()
