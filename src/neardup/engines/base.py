"""What an engine can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import pyarrow as pa

BatchStep = Callable[[pa.RecordBatch], pa.RecordBatch]
Advance = Callable[[int], None]


class Engine(Protocol):
    """Where stages run. Every engine gives equal tables."""

    def map_batches(
        self, batches: Iterable[pa.RecordBatch], step: BatchStep, schema: pa.Schema, advance: Advance
    ) -> pa.Table:
        """Apply a step to every batch; `advance` hears how many rows are done."""

    def cut(self, documents: pa.Table) -> Iterable[pa.RecordBatch]:
        """Cut documents into batches that a step can hold."""

    def cut_groups(self, documents: pa.Table, groups: pa.Table) -> Iterable[pa.RecordBatch]:
        """Cut the documents of (row, component) into batches of whole components, best priority first in each."""

    def connected_components(self, links: pa.Table) -> pa.Table:
        """Name for every linked row the smallest row it is connected with."""
