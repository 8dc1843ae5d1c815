"""The sources of the Spark engine: files that workers read, or a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

from neardup import schema as schemas
from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.engines.base import BatchStep, Source
from neardup.engines.spark.arrow_steps import Batches, StreamStep, arrow_schema, map_frame
from neardup.engines.spark.naming import Names, dense_rows
from neardup.engines.spark.reading import (
    I64,
    ROW_BITS,
    EndsParam,
    folded_schema,
    note,
    notes_schema,
    read_parts,
    read_texts,
    renumber,
    texts_schema,
)
from neardup.engines.spark.storage import Storage, StoredTable, in_order, one_task_each
from neardup.errors import DataError
from neardup.io.columns import keep_order
from neardup.io.columns.arrow_rows import batch_records, wanted_names
from neardup.io.columns.column_checks import choose
from neardup.io.columns.scores import SCORES
from neardup.io.columns.vector_columns import vector_contents
from neardup.io.documents.file_reader import documents_of, read_pieces
from neardup.io.documents.in_memory import ID_COLUMNS, content_names
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_names import name_rows
from neardup.io.formats import arrow, parquet
from neardup.io.records import Columns, InputFile, Records
from neardup.io.streams import is_remote
from neardup.theory.shingle_advice import FEW_SHINGLES

_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
# Formats that take less time to read than their texts to sketch.
_CHEAP: Final = (parquet, arrow)
# Bytes of text that are worth a task of their own, and the most tasks that read the same part.
_MIN_SHARE: Final = 16 << 20
_MAX_SHARES: Final = 8
_SHARED_ROW_BITS: Final = 6
_DIMENSIONS: Final = pa.schema([("row", pa.int64()), ("dimension", pa.int64())])


class SparkSource(Source, Protocol):
    """Documents that workers read, at most twice."""

    config: Config
    # The values of `metrics`, once they are computed.
    counted: dict[str, int]

    def read(self, step: BatchStep, schema: pa.Schema) -> DataFrame:
        """Sketch every document; return the notes of reading.py."""

    def metrics(self) -> dict[str, Column]:
        """Return the metrics to compute while the notes are stored."""

    def facts(self) -> dict[str, Any]:
        """Return what workers have reported while the notes were stored, as JSON."""

    def finish_reading(self, notes: StoredTable, storage: Storage) -> None:
        """Derive what the whole run needs from the stored notes."""

    def sketches(self, schema: pa.Schema) -> DataFrame:
        """Return the sketches of all documents, after `finish_reading`."""

    def map_texts(self, members: DataFrame, schema: pa.Schema, step: StreamStep) -> DataFrame:
        """Read the texts of the members of components, and apply a step to batches of reading.texts_schema."""


class _Noted:
    """Shared by both kinds of sources: notes, and ranks by score."""

    unit = "bytes"
    num_references = -(1 << 63)  # an id may be below 0

    def __init__(self, config: Config) -> None:
        self.config = config
        self._notes: DataFrame | None = None
        # The values of `metrics`, once they are computed.
        self.counted: dict[str, int] = {}
        self._ranks: DataFrame | None = None

    @property
    def notes(self) -> DataFrame:
        """The stored notes."""
        if self._notes is None:
            raise RuntimeError("documents must be read first")
        return self._notes

    @property
    def documents(self) -> DataFrame:
        """The notes of documents alone."""
        return self.notes.where(F.col("num_shingles").isNotNull())

    @property
    def rejected(self) -> DataFrame:
        """The rejected rows, with the reason."""
        return self.notes.where(F.col("reason").isNotNull()).select("row", "reason")

    def metrics(self) -> dict[str, Column]:
        """Return the counts of a report: documents and rejected rows of the input, and of the reference files."""
        is_own = F.col("row") >= F.lit(self.num_references)
        num_shingles = F.col("num_shingles")
        return {
            "own_documents": F.count(F.when(is_own, F.col("num_shingles"))),
            "own_rejected": F.count(F.when(is_own, F.col("reason"))),
            "own_bytes": F.sum(F.when(is_own, F.col("text_bytes"))),
            "reference_documents": F.count(F.when(~is_own, F.col("num_shingles"))),
            "reference_rejected": F.count(F.when(~is_own, F.col("reason"))),
            "reference_shingles": F.sum(F.when(~is_own, num_shingles)),
            "with_shingles": F.count_if(num_shingles > 0),
            "with_few_shingles": F.count_if((num_shingles > 0) & (num_shingles < FEW_SHINGLES)),
        }

    def facts(self) -> dict[str, Any]:
        """Return nothing: the metrics are enough."""
        return {}

    def finish_reading(self, notes: StoredTable, storage: Storage) -> None:
        """Rank the documents by score, if `keep` names a column."""
        self._notes = notes.frame
        self.counted = {name: int(notes.observed[name] or 0) for name in self.metrics()}
        if self.config.keep_column is not None:
            self._ranks = storage.checkpoint("ranks", lambda: self._rank(storage)).frame

    def _rank(self, storage: Storage) -> DataFrame:
        """Number the rows in the order of their score, the best first, rows without a score last, ties by row."""
        score = F.col("score")
        is_missing = score["number"].isNull() & score["text"].isNull()
        kinds = self.documents.agg(
            F.max(score["number"].isNotNull()), F.max(score["text"].isNotNull())
        )
        found: Any = storage.run(kinds.first)
        if found and all(found):
            raise keep_order.mixed_kinds(self.config.keep)
        columns = {field.name: score[field.name] for field in SCORES} | {
            "is_missing": is_missing,
            "row": F.col("row"),
        }
        keys = keep_order.sort_keys(self.config.keep)
        ordered = self.documents.orderBy(
            *(
                columns[name].desc() if direction == "descending" else columns[name].asc()
                for name, direction in keys
            )
        )
        # Increases along the order: the number of the partition, then the position in it.
        return ordered.select("row", F.monotonically_increasing_id().alias("rank"))

    def sketches(self, schema: pa.Schema) -> DataFrame:
        """Return the sketches; ranks replace the priorities."""
        documents = self.documents
        if self._ranks is not None:
            is_reference = F.col("priority") == F.lit(schemas.REFERENCE_PRIORITY)
            ranked = documents.join(self._ranks, "row")
            documents = ranked.withColumn(
                "priority", F.when(is_reference, F.col("priority")).otherwise(F.col("rank"))
            )
        return documents.select(*folded_schema(schema).names)


class FileSource(_Noted):
    """Files that the workers read directly, as the local engine does."""

    def __init__(
        self,
        spark: SparkSession,
        files: Sequence[InputFile],
        num_reference_files: int,
        config: Config,
    ) -> None:
        super().__init__(config)
        self._spark = spark
        self._paths = [file.path for file in files]
        # Workers have another current folder. With `strict`, rejections are checked after reading,
        # to raise the first.
        whole = [msgspec.structs.replace(file, path=_whole_path(file.path)) for file in files]
        self.layout = FileLayout(whole, num_reference_files, Config.of(config, strict=False))
        self.total = self.layout.total
        self._ends = spark.sparkContext.accumulator({}, EndsParam())
        self.num_rows = self.layout.num_parts << ROW_BITS
        self.num_references = self.layout.num_reference_parts << ROW_BITS

    def read(self, step: BatchStep, schema: pa.Schema) -> DataFrame:
        """Sketch with one task per part, or several where there are fewer parts than cores."""
        num_parts = self.layout.num_parts
        num_shares = self._num_shares()
        numbers = self._spark.range(0, num_parts * num_shares, 1, max(num_parts * num_shares, 1))
        notes = notes_schema(schema)
        read = partial(
            read_parts,
            layout=self.layout,
            num_shares=num_shares,
            step=step,
            notes=notes,
            report=self._ends.add,
        )
        return map_frame(numbers, notes, read)

    def read_ahead(self) -> Iterator[pa.RecordBatch]:
        """Read the reference documents, on the driver."""
        for part in range(self.layout.num_reference_parts):
            for _, rows in read_pieces(self.layout, part):
                for first_row, found in rows:
                    yield renumber(
                        documents_of(found, found.rows + first_row, self.layout.config),
                        part,
                        self.layout,
                    )

    def _num_shares(self) -> int:
        """Return how many tasks share a part: each reads all of it and uses only its own rows."""
        if not self.layout.num_parts or not all(
            self.layout.formats[at] in _CHEAP for at in self.layout.own_files()
        ):
            return 1
        most = max(self.layout.total // (self.layout.num_parts * _MIN_SHARE), 1)
        return min(
            -(-self._spark.sparkContext.defaultParallelism // self.layout.num_parts),
            most,
            _MAX_SHARES,
        )

    def facts(self) -> dict[str, Any]:
        """Return the rows of pieces and the columns found, of every part."""
        ends = [self._ends.value[part] for part in range(self.layout.num_parts)]
        return {"ends": ends, "num_shares": self._num_shares()}

    def finish_reading(self, notes: StoredTable, storage: Storage) -> None:
        """Count the rows of files, check what was found, and rank."""
        ends = notes.observed["ends"]
        self._stored_notes = notes
        self.layout.number([count for piece_rows, _ in ends for count in piece_rows])
        self.layout.check_found([(sum(piece_rows), found) for piece_rows, found in ends])
        super().finish_reading(notes, storage)
        if self.config.strict:
            self._check_strict(storage)

    def _check_strict(self, storage: Storage) -> None:
        first = storage.run(self.rejected.orderBy("row").first)
        if first is not None:
            files, numbers = self.locate(np.array([first["row"]]))
            path = next(
                entry["path"] for entry in self.summary() if entry["file"] == files[0].as_py()
            )
            raise DataError(
                f"{path}, row {numbers[0]} cannot be used: {first['reason']}",
                hint="leave out strict=True to skip such rows and list them as rejected",
            )

    def summary(self) -> list[dict[str, Any]]:
        """Return the entry of every file in the report, with the path as the user gave it."""
        return [
            entry | {"path": path}
            for entry, path in zip(self.layout.summary(), self._paths, strict=True)
        ]

    def map_texts(self, members: DataFrame, schema: pa.Schema, step: StreamStep) -> DataFrame:
        """Read the parts that have members again, and apply a step; texts stay on the worker until then."""
        num_shares = self._num_shares()
        share = F.pmod(F.shiftright("row", _SHARED_ROW_BITS), F.lit(num_shares))
        by_part = members.withColumn("part", F.shiftright("row", ROW_BITS))
        by_part = by_part.withColumn("task", F.col("part") * num_shares + share)
        ordered = one_task_each(
            by_part, "task", self.layout.num_parts * num_shares
        ).sortWithinPartitions("part", "row")
        layout = self.layout
        return map_frame(ordered, schema, lambda batches: step(read_texts(batches, layout)))

    def names(self) -> Names:
        """Return the lookup of the names of rows, for any worker, once the documents have been read."""
        notes = self._stored_notes
        return Names(notes.path, int(notes.observed["num_shares"]), self.layout)

    def locate(self, rows: I64) -> tuple[pa.Array, I64]:
        """Return the file of each row, by name, and its number there, from 1."""
        return locate(rows, self.layout)

    def ids(self) -> DataFrame:
        """Return the id of every document that has one."""
        return self.documents.where(F.col("id").isNotNull()).select(
            "row", F.col("id").alias("doc_id")
        )

    def add_locations(
        self, table: DataFrame, ends: Sequence[tuple[str, str, str, str]]
    ) -> DataFrame:
        """Add the file and number of rows, and name documents without an id by them; (row, id, file, number) each."""
        kinds = (pa.int64(), pa.string(), pa.string(), pa.int64())
        added = [field for end in ends for field in zip(end, kinds, strict=True)]
        named = {name for name, _ in added}
        target = pa.schema(
            [*(field for field in arrow_schema(table) if field.name not in named), *added]
        )
        layout = self.layout

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _placed(batch, ends, target, layout)

        return map_frame(table, target, run)


def _whole_path(path: str) -> str:
    return path if is_remote(path) else str(Path(path).absolute())


def locate(rows: I64, layout: FileLayout) -> tuple[pa.Array, I64]:
    """Return file and row number of rows that are encoded by part and position."""
    return layout.locate(dense_rows(layout, rows))


def _placed(
    batch: pa.RecordBatch,
    ends: Sequence[tuple[str, str, str, str]],
    target: pa.Schema,
    layout: FileLayout,
) -> pa.RecordBatch:
    columns = {name: batch.column(name) for name in batch.schema.names}
    for row, doc_id, file, number in ends:
        files, numbers = locate(columns[row].to_numpy(), layout)
        own = name_rows(layout, dense_rows(layout, columns[row].to_numpy()))
        columns |= {
            doc_id: pc.coalesce(columns[doc_id], own),
            file: files,
            number: pa.array(numbers),
        }
    return pa.record_batch([columns[name] for name in target.names], schema=target)


class FrameSource(_Noted):
    """A DataFrame with a column of unique ids, which defines the order of the rows."""

    num_rows = 1 << 63
    unit = "documents"

    def __init__(self, frame: DataFrame, config: Config, storage: Storage) -> None:
        self.frame = frame
        self.columns = _choose(frame, config)
        self.id_column = str(self.columns.id)
        self.total = self._check_ids(storage)
        self._rows = self._number(storage)
        super().__init__(self._with_dimension(config, storage))

    def _check_ids(self, storage: Storage) -> int:
        """Return the number of rows; raise for the first id that is null or occurs twice."""
        own = F.col(_quoted(self.id_column))
        counts = self.frame.groupBy(own.alias("id")).count()
        is_odd = F.col("id").isNull() | (F.col("count") > 1)
        first_odd = F.min(F.when(is_odd, F.struct("id", "count")))  # null before any other
        found: Any = storage.run(counts.agg(F.sum("count"), first_odd).first)
        total, odd = found
        if odd is not None:
            if odd["id"] is None:
                what = "null in a row"
            else:
                what = f"{odd['id']!r} in {odd['count']} rows"
            raise DataError(
                f"the id column {self.id_column!r} must have a unique value in every row, got {what}"
            )
        return int(total or 0)

    def _number(self, storage: Storage) -> DataFrame:
        """Add `row`: the id if it is an integer, else its position in the order of ids."""
        own = F.col(_quoted(self.id_column))
        wanted = [F.col(_quoted(name)) for name in wanted_names(self.columns)]
        if isinstance(self.frame.schema[self.id_column].dataType, _WHOLE):
            return self.frame.select(own.cast("long").alias("neardup_row"), *wanted)
        ids = in_order(self.frame.select(own.alias("neardup_id")), ["neardup_id"], self.total)
        rows = F.monotonically_increasing_id().alias("neardup_row")
        numbered = storage.checkpoint("ids", lambda: ids.select("neardup_id", rows))
        named = self.frame.join(numbered.frame, own == F.col("neardup_id"))
        return named.select("neardup_row", *wanted)

    def _with_dimension(self, config: Config, storage: Storage) -> Config:
        """Return the settings with the dimension of the first usable vector, unless it is set."""
        if config.measure not in VECTOR_MEASURES or config.dimension is not None:
            return config
        vector = str(self.columns.vector)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                ordered = batch.sort_by("neardup_row")
                found = vector_contents(ordered.column(vector), config)
                first = next((at for at in range(batch.num_rows) if at not in found.reasons), None)
                if first is not None:
                    row = ordered.column("neardup_row").slice(first, 1)
                    yield pa.record_batch([row, pa.array([found.dimension])], schema=_DIMENSIONS)

        first = storage.run(map_frame(self._rows, _DIMENSIONS, run).orderBy("row").first)
        if first is None:
            return config
        return Config.of(config, dimension=first["dimension"])

    def read(self, step: BatchStep, schema: pa.Schema) -> DataFrame:
        """Sketch the rows in their partitions."""
        notes = notes_schema(schema)
        columns = self.columns
        config = self.config

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                documents, rows, found = _documents(batch, columns, config)
                yield from note(step(documents), found, np.delete(rows, found.rows), notes)

        return map_frame(self._rows, notes, run)

    def finish_reading(self, notes: StoredTable, storage: Storage) -> None:
        """Rank; with `strict`, raise for the first rejected row."""
        super().finish_reading(notes, storage)
        if self.config.strict:
            first = storage.run(self.rejected.orderBy("row").first)
        else:
            first = None
        if first is not None:
            raise DataError(
                f"a row cannot be used: {first['reason']}",
                hint="leave out strict to skip such rows",
            )

    def map_texts(self, members: DataFrame, schema: pa.Schema, step: StreamStep) -> DataFrame:
        """Select the texts of members from the frame, and apply a step."""
        columns = self.columns
        config = self.config
        target = texts_schema(self.config)
        wanted = pa.schema([field for field in target if field.name in ("row", "text", "group")])

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield _documents(batch, columns, config)[0].select(wanted.names)

        own = self._rows.join(
            members.select(F.col("row").alias("neardup_row")), "neardup_row", "left_semi"
        )
        texts = map_frame(own, wanted, run).join(
            members.select("row", "component", "priority"), "row"
        )

        def widened(batches: Batches) -> Iterator[pa.RecordBatch]:
            return (batch.select(target.names).cast(target) for batch in batches if batch.num_rows)

        return map_frame(texts, schema, lambda batches: step(widened(batches)))

    def ids(self) -> DataFrame:
        """Return the id of every row, in its original type."""
        return self._rows.select(
            F.col("neardup_row").alias("row"), F.col(_quoted(self.id_column)).alias("doc_id")
        )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _choose(frame: DataFrame, config: Config) -> Columns:
    names = frame.columns
    is_vector = config.measure in VECTOR_MEASURES
    contents = content_names(names, config)
    own = choose(names, config.id_column, "id_column", ID_COLUMNS)
    if own is None:
        raise DataError(
            "a Spark DataFrame needs a column of unique ids: its rows have no order that could break ties",
            hint="name it with id_column=..., or add one with monotonically_increasing_id() and store the frame",
        )
    return Columns(
        text=() if is_vector or config.items_column is not None else contents,
        items=config.items_column,
        vector=contents[0] if is_vector else None,
        id=own,
        score=choose(names, config.keep_column, "keep", ()),
        group=choose(names, config.group_column, "group_column", ()),
    )


def _documents(
    batch: pa.RecordBatch, columns: Columns, config: Config
) -> tuple[pa.RecordBatch, I64, Records]:
    rows: I64 = batch.column("neardup_row").to_numpy()
    found = batch_records(batch, columns, config)
    return documents_of(found, rows[found.rows], config), rows, found
