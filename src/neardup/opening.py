"""What every run from files begins and ends with: the files, the workspace, the checks, where the output appears."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from neardup.config import Config
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.estimate import estimate
from neardup.io import finished
from neardup.io.files import find_files, with_dimension
from neardup.io.outputs import known_ending
from neardup.io.records import InputFile
from neardup.io.spool import spool
from neardup.io.workspace import (
    PUBLISHED,
    REPORT,
    STANDARD_INPUT,
    Workspace,
    check_output,
    folder_of,
    is_finished,
    is_published,
    open_workspace,
    publish,
    remove_tree,
    reserve,
)
from neardup.planner import Plan, plan_for
from neardup.report import Watch
from neardup.version import VERSION

_DONE: Final = "finished parts stay in {folder}; run the same command again to go on"


def local_path(out: str) -> Path:
    """Return where the output goes."""
    if "://" in out:
        raise ConfigError(f"the output must be on a local disk, got {out}", hint="write it here and copy it")
    return Path(out)


def output_folder(out: str) -> Path:
    """Return the folder that a run writes."""
    target = local_path(out)
    if target.exists() and not target.is_dir():
        raise DataError(f"the output {out} is a file, not a folder", hint="choose another -o")
    return target


def output_file(out: str) -> Path:
    """Return the file that a run writes."""
    target = local_path(out)
    if target.is_dir():
        raise DataError(f"the output {out} is a folder, not a file", hint="name a file: -o pairs.parquet")
    known_ending(target)
    return target


def files_beside(target: Path, config: Config) -> dict[str, Path]:
    """Return what a run of pairs writes beside its file."""
    beside = {name: target.with_name(f"{target.name}.{name}") for name in ("rejected.jsonl", REPORT)}
    for path in beside.values():
        check_output(path, overwrite=config.overwrite or (folder_of(target) / PUBLISHED).exists())
    return beside


def publish_pairs(workspace: Workspace, pairs: Path, rejected: Path, target: Path, beside: dict[str, Path]) -> None:
    """Let the files of a run of pairs appear, and end the workspace."""
    (workspace.folder / PUBLISHED).touch()
    publish(rejected, beside["rejected.jsonl"])
    publish(workspace.folder / "out" / REPORT, beside[REPORT])
    publish(pairs, target)
    remove_tree(workspace.folder)


class Published(Exception):  # noqa: N818 - not an error
    """An earlier start of the same run has written the output already."""


class Opened(NamedTuple):
    """What a run from files begins with: files kept ahead, those of the input, and where the work is done.

    spooled: the file that standard input was stored in; config: the settings, with what the files add to them.
    """

    ahead: list[InputFile]
    own: list[InputFile]
    workspace: Workspace
    spooled: str | None
    config: Config
    plan: Plan


@contextlib.contextmanager
def opened(command: str, inputs: Sequence[str], out: Path, config: Config, watch: Watch) -> Iterator[Opened]:
    """Find the files of a run and open its workspace; what stops a run says how to go on."""
    check_plan(config)
    with _explained(out), reserve(out) as folder:
        with watch.stage("read"):
            paths, spooled = spool(inputs, folder / STANDARD_INPUT, config)
            _check_no_runs(paths)
            own = find_files(paths, config)
            config = with_dimension(own, config)
            plan = plan_for(config)
            ahead = _find_ahead(own, config)
            _check_apart(out, [*ahead, *own])
            manifest = _manifest(command, [*ahead, *own], config)
        if is_published(out, manifest):
            remove_tree(folder)
            raise Published
        if not plan.keeps_recall:
            watch.warn(plan.judgement())
        is_fresh = spooled is not None
        workspace = open_workspace(folder, out, manifest, overwrite=config.overwrite, is_fresh=is_fresh)
        _check_disk(own, plan, config, folder)
        yield Opened(ahead, own, workspace, spooled, config, plan)


def check_plan(config: Config) -> None:
    """Fail before anything is read where settings cannot be kept; a number of bits has to wait for the first vector."""
    if config.measure != "hamming" or config.distance is None:
        plan_for(config)


@contextlib.contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Turn a full disk and the like into errors that say how to go on."""
    go_on = _DONE.format(folder=folder_of(out))
    try:
        yield
    except KeyboardInterrupt as error:
        if folder_of(out).exists():
            error.add_note(go_on)
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC or "No space left" in str(error):
            raise _full(out) from error
        raise
    except MemoryError as error:
        raise NearDupError("memory ran out", hint=f"pass a smaller --memory; {go_on}") from error
    except Exception as error:
        if type(error).__module__.startswith(("duckdb", "_duckdb")):
            if "max_temp_directory_size" in str(error) or "No space left" in str(error):
                raise _full(out) from error
            raise NearDupError(f"sorting on disk failed: {error}", hint=go_on) from error
        raise


def _full(out: Path) -> DataError:
    return DataError(f"the disk of {out} is full", hint=f"make room; {_DONE.format(folder=folder_of(out))}")


def _check_no_runs(paths: Sequence[str]) -> None:
    for path in paths:
        if is_finished(Path(path)):
            raise DataError(f"the input {path} is the output of a run", hint=f"its kept rows are in {path}/kept")


def _find_ahead(own: Sequence[InputFile], config: Config) -> list[InputFile]:
    """Find the files of --against, with names that no file of the input has."""
    paths = finished.kept_of_runs(config.against)
    ahead, taken = find_files(paths, config) if paths else [], {file.name for file in own}
    if not taken.isdisjoint(file.name for file in ahead):
        ahead = [dataclasses.replace(file, name=f"against/{file.name}") for file in ahead]
    return ahead


def _manifest(command: str, files: Sequence[InputFile], config: Config) -> dict[str, Any]:
    return {
        "version": VERSION,
        "command": command,
        "settings": config.result_settings(),
        "inputs": [dataclasses.asdict(file) for file in files],
    }


def _check_apart(out: Path, files: Sequence[InputFile]) -> None:
    whole = os.path.realpath(out)
    for file in files:
        if "://" not in file.path and f"{os.path.realpath(file.path)}/".startswith(f"{whole.rstrip('/')}/"):
            raise ConfigError(f"the output {out} holds the input {file.path}", hint="choose another -o")


def _check_disk(files: Sequence[InputFile], plan: Plan, config: Config, folder: Path) -> None:
    needed = estimate(files, plan, config).disk_bytes
    free = shutil.disk_usage(folder).free
    done = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if needed - done > free:
        raise DataError(
            f"this run needs about {needed / 1e9:.1f} GB on the disk of {folder.parent}, which has {free / 1e9:.1f} GB",
            hint="make room, choose another -o, or pass --dry-run to write no kept rows",
        )
