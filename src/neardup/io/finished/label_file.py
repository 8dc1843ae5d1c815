"""Labels: which documents are known to be the same, as pairs or as clusters, or from a reviewer's decisions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from neardup import schema
from neardup.config.checks import as_path
from neardup.errors import ConfigError, DataError
from neardup.io.finished.decision_file import read_decisions

Bools = npt.NDArray[np.bool_]
PAIR_COLUMNS: Final = ("doc_a", "doc_b", "same")
CLUSTER_COLUMNS: Final = ("doc_id", "cluster")
_TRUE: Final = ("true", "1", "yes", "same")
_FALSE: Final = ("false", "0", "no", "different")
_FORMS: Final = "columns doc_a, doc_b, same, or doc_id, cluster"


class PairLabels(NamedTuple):
    """Labelled pairs, by id."""

    doc_a: pa.Array
    doc_b: pa.Array
    same: Bools


class ClusterLabels(NamedTuple):
    """The cluster of every labelled document, by id: two of one cluster are the same, any others are not."""

    doc_id: pa.Array
    cluster: pa.Array


Labels = PairLabels | ClusterLabels


def read_labels(labels: Any, removed: pa.Table | None) -> Labels:
    """Read labels from a file, a table, a data frame or a dict of id to cluster.

    removed: the removed documents of the run, by file and row, which the decisions of a review
    judge.
    """
    if isinstance(labels, Mapping):
        ids, clusters = map(str, labels.keys()), map(str, labels.values())
        return ClusterLabels(pa.array(ids, pa.string()), pa.array(clusters, pa.string()))
    if isinstance(labels, (str, os.PathLike)):
        path = Path(as_path("labels", labels) or "")
        if path.suffix == ".json":
            return _from_decisions(str(path), removed)
        return _from_table(_read_table(path), str(path))
    if hasattr(labels, "to_arrow"):
        labels = labels.to_arrow()
    elif not isinstance(labels, pa.Table) and hasattr(labels, "iloc"):
        labels = pa.Table.from_pandas(labels, preserve_index=False)
    if not isinstance(labels, pa.Table):
        raise ConfigError(
            f"`labels` must be a file, a table or a dict of id to cluster, got {type(labels).__name__}",
            hint=f"a table has the {_FORMS}",
        )
    return _from_table(labels, "labels")


def _read_table(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            return pq.read_table(path)
        if path.suffix == ".jsonl":
            return pyarrow.json.read_json(path)
        names = (*PAIR_COLUMNS, *CLUSTER_COLUMNS)
        text = dict.fromkeys(names, pa.string())
        return pyarrow.csv.read_csv(
            path,
            parse_options=pyarrow.csv.ParseOptions(
                delimiter="\t" if path.suffix == ".tsv" else ",", newlines_in_values=True
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=text, strings_can_be_null=False
            ),
        )
    except OSError as error:
        raise ConfigError(
            f"`labels` {path} cannot be read: {error.strerror or error}",
            hint=f"name a .csv, .jsonl or .parquet file with the {_FORMS}",
        ) from error
    except pa.ArrowException as error:
        raise DataError(
            f"the labels {path} cannot be read: {error}",
            hint=f"they need the {_FORMS}, in .csv, .jsonl or .parquet",
        ) from error


def _from_table(table: pa.Table, where: str) -> Labels:
    names = table.column_names
    if set(PAIR_COLUMNS) <= set(names):
        doc_a, doc_b, same = (_texts(table, name, where) for name in PAIR_COLUMNS)
        return PairLabels(doc_a, doc_b, _as_bools(same, where))
    if set(CLUSTER_COLUMNS) <= set(names):
        return ClusterLabels(*(_texts(table, name, where) for name in CLUSTER_COLUMNS))
    raise DataError(f"{where} has the columns {', '.join(names)}", hint=f"labels need the {_FORMS}")


def _texts(table: pa.Table, name: str, where: str) -> pa.Array:
    column = schema.one_array(table.column(name).cast(pa.string()))
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0]) + 1
        raise DataError(f"{where} has no `{name}` in row {row:,}", hint="leave this row out")
    return column


def _as_bools(values: pa.Array, where: str) -> Bools:
    lower = pc.utf8_lower(values)
    is_true = pc.is_in(lower, pa.array(_TRUE)).to_numpy(zero_copy_only=False)
    is_false = pc.is_in(lower, pa.array(_FALSE)).to_numpy(zero_copy_only=False)
    unknown = np.flatnonzero(~(is_true | is_false))
    if unknown.size:
        row = int(unknown[0])
        raise DataError(
            f"`same` must be true or false, got {values[row].as_py()!r} in row {row + 1:,} of {where}",
            hint="true, 1 and yes mean the same document; false, 0 and no different ones",
        )
    found: Bools = is_true
    return found


def _from_decisions(path: str, removed: pa.Table | None) -> PairLabels:
    """Removals that were judged: `remove` says that the two documents are the same, `keep` that they are not."""
    decisions = read_decisions(path)
    if removed is None:
        raise ConfigError(
            "decisions judge the removals of a run, and this one lists pairs",
            hint=f"pass labels with the {_FORMS}",
        )
    judged = {(one.file, one.row): one.decision == "remove" for one in decisions}
    rows = [
        (row["doc_id"], row["kept_id"], judged[row["file"], row["row"]])
        for row in removed.filter(
            pc.is_in(removed.column("row"), pa.array([row for _, row in judged], pa.int64()))
        ).to_pylist()
        if (row["file"], row["row"]) in judged
    ]
    doc_a, doc_b, same = zip(*rows, strict=True) if rows else ((), (), ())
    return PairLabels(
        pa.array(doc_a, pa.string()), pa.array(doc_b, pa.string()), np.array(same, np.bool_)
    )
