"""Parse report.json by a strict schema, because a report may come from someone else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec

from neardup.config import Config
from neardup.config.checks import check_text
from neardup.errors import ConfigError, DataError
from neardup.io.storage.workspace import REPORT

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
# No system allows NUL in a path.
FilePath = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]+\Z")]
# All rows of a run are numbered with 64 bits; what is left out leaves room for one more file.
MAX_TOTAL_ROWS: Final = 2**61
# From this schema version on, a report lists the files that the run has written.
_LISTS_FILES: Final = 2


class StoredInput(TypedDict):
    """An input file of a run.

    head: its `streams.head_of`, empty for a remote file; encoding: as it was detected, if it was.
    """

    file: FilePath
    path: FilePath
    size: Count
    modified: str
    head: NotRequired[str]
    rows: Count
    ahead: bool
    encoding: NotRequired[str | None]


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a plan that does not follow from the settings."""

    method: Literal["lsh", "exact"]
    bands: Count
    rows: Count
    reason: str | None = None
    shared_words: Count | None = None


class _StoredCluster(TypedDict):
    cluster_id: str
    documents: Count
    weakest_id: str
    similarity: float


class _Missed(TypedDict):
    doc_a: str
    doc_b: str
    similarity: float
    chance: float
    file_a: str
    row_a: Count
    file_b: str
    row_b: Count


class _Audit(TypedDict):
    recall: float | None
    low: float | None
    high: float | None
    predicted: float | None
    promised: float
    pairs: Count
    missed: list[_Missed]
    precision: float | None
    verified: Count
    sample: Count
    threshold: float
    seconds: Seconds


class _Passages(TypedDict):
    num_places: Count
    num_passages: Count
    num_words: Count
    repeated_words: Count


class _Parts(TypedDict):
    num_parts: Count
    num_words: Count
    removed_words: Count


class _Contamination(TypedDict):
    num_items: Count
    num_items_found: Count
    num_too_short: Count
    num_items_rejected: Count
    num_contaminated: Count


class StoredReport(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of report.json of a finished run.

    files: the files that the run wrote, relative to its folder, with "/"; None if the report does
    not list them;
    removed_against: None in a report of a version that did not count it;
    passages, contamination, parts: the counts of a search for repeated passages, for items of benchmarks, or for
    repeated paragraphs or lines; None for others.
    """

    schema: Count = 1
    files: list[FilePath] | None = None
    config: dict[str, Any]
    plan: _Plan
    documents: Count
    kept: Count
    removed: Count
    removed_against: Count | None = None
    decisions: dict[str, Count] | None = None
    ignored_common: dict[str, Count] | None = None
    weights: dict[str, Count] | None = None
    rejected: Count
    exact_duplicates: Count
    pairs_verified: Count
    pairs: Count | None
    seconds: Seconds
    bytes_read: Count
    peak_memory_bytes: Count | None
    stages: dict[str, Seconds]
    columns: dict[str, str]
    signature_format: str
    warnings: list[str]
    largest_clusters: list[_StoredCluster]
    inputs: list[StoredInput]
    audit: _Audit | None = None
    passages: _Passages | None = None
    contamination: _Contamination | None = None
    parts: _Parts | None = None

    def check_compares(self, run: Path) -> None:
        """Raise for a search in texts, which compares no documents: it has no duplicates, pairs or clusters."""
        if self.passages is not None:
            made, table = "neardup passages", "passages.parquet"
        elif self.contamination is not None:
            made, table = "neardup decontaminate", "contaminated.parquet"
        elif self.parts is not None:
            made, table = "neardup dedup --level", "removed_parts.parquet"
        else:
            return
        raise DataError(
            f"{run} is the output of {made}, which does not say which documents are similar",
            hint=f"{table} lists what was found; this command needs the output of neardup dedup of whole documents",
        )

    @property
    def written(self) -> frozenset[str] | None:
        """The files that the run has written, None if the report does not list them."""
        if self.schema < _LISTS_FILES or self.files is None:
            return None
        return frozenset(self.files)

    def settings(self) -> Config:
        """Return the settings of the run."""
        names = Config.__dataclass_fields__
        known = {name: value for name, value in self.config.items() if name in names}
        return Config.of(**known).for_format(self.signature_format)


def read_report(run: Path) -> StoredReport:
    """Read report.json of a run, which is a folder, or the output file of a run of pairs."""
    check_text("run", str(run), "a path in UTF-8")  # Arrow opens no other
    if run.is_file():
        path = run.with_name(f"{run.name}.{REPORT}")
    else:
        path = run / REPORT
    try:
        if path.exists() and not path.is_file():  # a pipe or a device could be read forever
            raise DataError(
                f"{path} cannot be read: it is not a regular file",
                hint="restore it, or repeat the run",
            )
        report = msgspec.json.decode(path.read_bytes(), type=StoredReport)
        report.settings()
        num_rows = sum(entry["rows"] for entry in report.inputs)
        if num_rows > MAX_TOTAL_ROWS:
            raise _not_ours(
                path,
                f"its inputs have {num_rows} rows, and at most {MAX_TOTAL_ROWS} can be numbered",
            )
    except (FileNotFoundError, NotADirectoryError) as error:
        if run.exists():
            what = f"is not a finished run: it has no {REPORT}"
        else:
            what = "does not exist"
        raise DataError(f"{run} {what}", hint="name the output folder of a run (`out`)") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ConfigError as error:
        raise _not_ours(path, error.message) from error
    except (ValueError, RecursionError) as error:
        raise _not_ours(path, str(error)) from error
    return report


def _not_ours(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path} is damaged or was not written by neardup: {reason}",
        hint="run neardup again on the input files",
    )
