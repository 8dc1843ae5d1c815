"""What a run changes in the rows that it writes: spans of the text that it leaves out, or columns that it adds."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import DataError
from neardup.io.columns.text_cuts import TextCuts
from neardup.io.records import CUT_TEXTS, MARKED_SPAN, PASSAGE_MARKS, InputFile

I64 = npt.NDArray[np.int64]
_TEXT_TYPES: Final = (pa.string(), pa.large_string(), pa.string_view())


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class PassageMarks:
    """The marks of the rows of a file: repeated words and their share, one per row; and spans, by row, from 0."""

    words: I64
    shares: npt.NDArray[np.float64]
    rows: I64
    starts: I64
    ends: I64

    @property
    def schema(self) -> pa.Schema:
        """The columns that are added."""
        return PASSAGE_MARKS

    def columns(self, first: int, stop: int) -> list[pa.Array]:
        """Return the columns of some rows, as `schema`."""
        begin, end = np.searchsorted(self.rows, [first, stop]).tolist()
        bounds = np.searchsorted(self.rows[begin:end], np.arange(first, stop + 1))
        spans = pa.StructArray.from_arrays(
            [pa.array(self.starts[begin:end]), pa.array(self.ends[begin:end])],
            fields=list(MARKED_SPAN),
        )
        return [
            pa.array(self.words[first:stop]),
            pa.array(self.shares[first:stop]),
            pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), spans),
        ]

    def values(self, first: int, stop: int) -> list[tuple[int, float, list[dict[str, int]]]]:
        """Return the marks of some rows as Python values."""
        columns = (column.to_pylist() for column in self.columns(first, stop))
        return list(zip(*columns, strict=True))

    def cells(self, row: int) -> list[str]:
        """Return the marks of a row as they stand in CSV."""
        [(words, share, spans)] = self.values(row, row + 1)
        listed = json.dumps([[span["start"], span["end"]] for span in spans])
        return [str(words), repr(share), listed]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class CutTexts:
    """The texts of HTML pages without the spans that are cut, one per row of a file: a column of its own.

    texts: of all rows, null for those that are no documents.
    """

    texts: pa.ChunkedArray
    cuts: TextCuts

    @property
    def schema(self) -> pa.Schema:
        """The column that is added."""
        return CUT_TEXTS

    def columns(self, first: int, stop: int) -> list[pa.Array]:
        """Return the column for some rows."""
        chunks = self.texts.slice(first, stop - first).chunks
        texts = pa.concat_arrays(chunks) if chunks else pa.array([], self.texts.type)
        return [self.cuts.of(first, stop).apply(texts)]

    def values(self, first: int, stop: int) -> list[tuple[str | None]]:
        """Return the texts of some rows as Python values."""
        return [(text,) for text in self.columns(first, stop)[0].to_pylist()]

    def cells(self, row: int) -> list[str]:
        """Return the text of a row as it stands in CSV."""
        [(text,)] = self.values(row, row + 1)
        return [text or ""]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TextEdits:
    """The changes of one file: `cuts` in the texts of a column (None for a format without columns), or added `marks`.

    Rows count from 0 at the start of the file.
    """

    column: str | None
    cuts: TextCuts | None = None
    marks: PassageMarks | CutTexts | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return self.marks is None and (self.cuts is None or not self.cuts.rows.size)

    @property
    def added(self) -> pa.Schema:
        """The columns that are added."""
        return pa.schema([]) if self.marks is None else self.marks.schema

    def touched(self, first: int, stop: int) -> list[int]:
        """Return the rows with cuts from `first` to `stop`."""
        if self.cuts is None:
            return []
        begin, end = np.searchsorted(self.cuts.rows, [first, stop]).tolist()
        rows: list[int] = np.unique(self.cuts.rows[begin:end]).tolist()
        return rows

    def cut(self, rows: Sequence[int], texts: Sequence[str]) -> list[str]:
        """Return the texts of some rows, which ascend, without the spans."""
        if self.cuts is None or not rows:
            return list(texts)
        chosen = self.cuts.among(np.array(rows, np.int64))
        cut: list[str] = chosen.apply(pa.array(texts, pa.large_string())).to_pylist()
        return cut

    def edited(self, file: InputFile, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return the rows of a columnar file from `first` on with the changes."""
        if self.cuts is not None:
            batch = self._without_spans(file, batch, self.cuts.of(first, first + batch.num_rows))
        if self.marks is None:
            return batch
        columns = [
            (name, column)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
            if name not in self.added.names
        ]
        arrays = [column for _, column in columns]
        arrays += self.marks.columns(first, first + batch.num_rows)
        return pa.record_batch(arrays, schema=self.schema_of(batch.schema))

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the changed rows; new marks replace those of an earlier run."""
        fields = [field for field in schema if field.name not in self.added.names]
        return pa.schema([*fields, *self.added], schema.metadata)

    def _without_spans(
        self, file: InputFile, batch: pa.RecordBatch, cuts: TextCuts
    ) -> pa.RecordBatch:
        if not cuts.rows.size:
            return batch
        at = batch.schema.get_field_index(self.column)
        field = None if at < 0 else batch.schema.field(at)
        if field is None or field.type not in _TEXT_TYPES:
            kind = "a field of another column" if field is None else str(field.type)
            raise DataError(
                f"{file.path}: the text in {self.column!r} cannot be cut, because it is {kind}",
                hint="store it as a column of strings, or leave cut=True out",
            )
        cut = cuts.apply(batch.column(at).cast(pa.large_string()))
        return batch.set_column(at, field, cut.cast(field.type))


def uncuttable(file: InputFile, kind: str) -> DataError:
    """Return the error for a file whose format cannot hold changed texts."""
    return DataError(
        f"{file.path} is {kind}, whose texts cannot be cut",
        hint="convert it to JSON Lines or Parquet, or leave cut=True out",
    )
