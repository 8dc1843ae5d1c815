"""The start of every run on files: check the settings, find the files, lock the work folder, and resume."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from neardup.config import RANDOM_SEED, Config, DrawnSeed
from neardup.config.checks import AUTO, SET_MEASURES
from neardup.engines.local.limits import Memory
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.events import Watch
from neardup.index.index_folder import is_index
from neardup.io.documents.column_choice import with_dimension
from neardup.io.documents.discover import RealPaths, find_files, has_documents, is_input
from neardup.io.documents.file_list import FileList
from neardup.io.documents.sample import estimate_sizes, sample_files
from neardup.io.documents.stdin import STDIN_PATH, spool
from neardup.io.finished import finished_run
from neardup.io.finished.run_folders import kept_of_runs
from neardup.io.finished.word_counts import FILE as WEIGHTS
from neardup.io.records import InputFile
from neardup.io.storage.work_folder import folder_of, list_files, remove_folder, reserve
from neardup.io.storage.workspace import (
    REPORT,
    STANDARD_INPUT,
    Workspace,
    digest,
    earlier_manifest,
    is_published,
    open_workspace,
)
from neardup.io.streams import head_of, is_remote
from neardup.jobs.long_form import group_rows, warn_of_long_form
from neardup.jobs.output import Output, PairsFile
from neardup.measures.base import DIGEST_FORMAT
from neardup.measures.jaccard import collect_texts
from neardup.measures.registry import measure_of
from neardup.report import format_bytes
from neardup.theory.plan import Plan, plan_for
from neardup.version import VERSION

# Bytes per document in the work folder, apart from band keys: row, priority, sizes, digest, id.
_NOTE_BYTES: Final = 88
# Bytes per shingle there in the exact join: the shingle itself and, for at most half of them, a
# posting of 32 bytes.
_SHINGLE_BYTES: Final = 24
_SAMPLED_FILES: Final = 4
_DONE: Final = "finished parts stay in {folder}; run the same command again to resume"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RunSetup:
    """A run on files that is ready to start: reference files, input files, and the workspace.

    spooled: the file that standard input was copied to; config: the settings, completed by the
    files.
    """

    output: Output
    references: FileList
    own: FileList
    workspace: Workspace
    spooled: str | None
    config: Config
    plan: Plan


@contextlib.contextmanager
def begin(
    output: Output, inputs: Sequence[str], config: Config, watch: Watch
) -> Iterator[RunSetup | None]:
    """Find the files of a run and open its workspace; errors inside the block say how to resume.

    Yields None if an earlier start of the same run has already published the output.
    """
    check_settings(config)
    check_against(config)
    # Spark workers, and later commands on the finished run, may have another working directory.
    config = Config.of(
        config,
        ignore=[path if is_remote(path) else os.path.abspath(path) for path in config.ignore],  # noqa: PTH100
    )
    out = output.target
    if config.text_out is not None:
        config = Config.of(config, text_out=os.path.abspath(config.text_out))  # noqa: PTH100
        from neardup.jobs.text_out import check_target

        check_target(config, out)
    with _explained(out), reserve(out) as folder:
        with watch.stage("read"):
            paths, spooled = spool(inputs, folder / STANDARD_INPUT, config)
            if config.long:
                _check_long(output.command)
                spooled = group_rows(paths, folder / STANDARD_INPUT, config, watch)
                paths = [spooled]
                config = Config.of(config, include=(), exclude=(), format=None)
            _check_no_runs(paths)
            known = earlier_manifest(folder).get("inputs", ()) if config.encoding == AUTO else ()
            own = find_files(paths, config, watch.warn, known)
            config = _with_earlier_seed(with_dimension(own, config), folder)
            plan = plan_for(config)
            warn_of_long_form(own, config, watch)
            references = _find_references(own, config, out, known)
            check_apart(out, references + own)
            if config.text_out is not None:
                check_apart(Path(config.text_out), references + own)
            references = _with_heads(references)
            own = _with_heads(own)
            manifest = _manifest(output.command, references + own, config, spooled)
        if is_published(out, manifest):
            output.finish()
            remove_folder(folder)
            yield None
            return
        output.check(overwrite=config.overwrite)
        is_fresh = spooled is not None
        workspace = open_workspace(
            folder,
            out,
            manifest,
            overwrite=config.overwrite,
            is_fresh=is_fresh,
            reusable=output.reusable,
        )
        del manifest  # it is large for many files, and this stack frame stays alive
        if output.stores_sets:
            needed = needed_disk(own, plan, config)
        else:
            needed = kept_disk(own, config) if output.has_kept else 0
        _check_disk(needed, folder)
        yield RunSetup(
            output=output,
            references=references,
            own=own,
            workspace=workspace,
            spooled=spooled,
            config=config,
            plan=plan,
        )


def _check_long(command: str) -> None:
    if command != PairsFile.command:
        raise ConfigError(
            f"`long` is for lists of pairs: {command} writes rows of the input, and a set has many",
            hint="call neardup.find_pairs, or `neardup pairs`",
        )


def _with_heads(files: FileList) -> FileList:
    return FileList(
        file if file.reason else msgspec.structs.replace(file, head=head_of(file.path))
        for file in files
    )


def check_settings(config: Config) -> None:
    """Raise for settings that cannot work, before anything is read."""
    for name in ("master", "spark_conf"):
        if config.engine != "spark" and getattr(config, name):
            raise ConfigError(
                f"`{name}` applies only to Spark, but `engine` is {config.engine!r}",
                hint="use engine='spark'",
            )
    if config.decisions is not None and config.engine == "spark":
        raise ConfigError(
            "`decisions` is not supported on Spark", hint="leave it out, or use engine='local'"
        )
    # A distance in bits needs the dimension.
    if config.measure != "hamming" or config.distance is None:
        plan_for(config)


@contextlib.contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Turn a full disk and similar failures into errors that say how to resume."""
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
        raise NearDupError("memory ran out", hint=f"pass a smaller `memory`; {go_on}") from error


def _full(out: Path) -> DataError:
    return DataError(
        f"the disk of {out} is full", hint=f"free some space; {_DONE.format(folder=folder_of(out))}"
    )


def _check_no_runs(paths: Sequence[str]) -> None:
    for path in paths:
        if finished_run.is_run(Path(path)):
            raise DataError(
                f"the input {path} is the output of a run", hint=f"its kept rows are in {path}/kept"
            )


def _find_references(
    own: FileList, config: Config, out: Path, known: Iterable[Mapping[str, Any]]
) -> FileList:
    """Find the files of `against`, with names that no input file has."""
    paths = kept_of_runs([path for path in config.against if not is_index(path)], out)
    if not paths:
        return FileList()
    references = find_files(paths, Config.of(config, include=(), exclude=()), known=known)
    taken = {file.name for file in own}
    if not taken.isdisjoint(file.name for file in references):
        references = FileList(
            msgspec.structs.replace(file, name=f"against/{file.name}") for file in references
        )
    return references


def check_against(config: Config) -> None:
    """Raise if `against` names something without documents, and say what to name instead."""
    for path in config.against:
        if is_index(path):
            continue
        hint = "name the output folder of a finished run, or files with documents"
        if not is_input(path) and folder_of(Path(path)).is_dir():
            raise ConfigError(
                f"`against` names {path}, a run that has not finished",
                hint="run the command that writes it again: it resumes where it stopped",
            )
        if not is_input(path):
            raise ConfigError(f"`against` names {path}, which does not exist", hint=hint)
        if Path(f"{path}.{REPORT}").is_file():
            raise ConfigError(
                f"`against` names {path}, a list of pairs, not of documents", hint=hint
            )
        if Path(path).is_dir() and not has_documents(path, config):
            raise ConfigError(
                f"`against` names {path}, which is neither a finished run nor a folder with documents",
                hint=hint,
            )


def _with_earlier_seed(config: Config, folder: Path) -> Config:
    """Reuse the random seed of an interrupted run, if this run draws one, too."""
    if isinstance(config.seed, DrawnSeed):
        earlier: Any = earlier_manifest(folder).get("drawn_seed")
    else:
        earlier = None
    if earlier is None:
        return config
    return Config.of(config, seed=DrawnSeed(earlier))


def _manifest(
    command: str, files: Sequence[InputFile], config: Config, spooled: str | None
) -> dict[str, Any]:
    encode = msgspec.json.Encoder().encode
    manifest: dict[str, Any] = {
        "version": VERSION,
        "command": command,
        "settings": config.result_settings(),
        # Encoded one by one: as dicts, those of 100,000 files take 100 MB.
        "inputs": msgspec.Raw(
            b"[%b]"
            % b",".join(
                encode(_as_piped(file) if file.path == spooled else file.as_found())
                for file in files
            )
        ),
        "signature_format": measure_of(config).signature_format(config),
        "digest_format": DIGEST_FORMAT,
    }
    # HTML in WARC files is extracted whatever `html` says.
    if config.html_content == "main" and any(file.format == "warc" for file in files):
        from neardup.io.columns.main_content import versions

        manifest["signature_format"] += f" {versions()}"
    if config.decisions is not None:
        from neardup.io.finished.decision_file import content_digest

        manifest["decisions"] = content_digest(config.decisions)
    if config.weights_from is not None:
        manifest["weights"] = digest(Path(config.weights_from, WEIGHTS))
    if isinstance(config.seed, DrawnSeed):
        manifest["settings"]["seed"] = RANDOM_SEED
        manifest["drawn_seed"] = int(config.seed)
    return manifest


def _as_piped(file: InputFile) -> dict[str, Any]:
    """The identity of standard input, which is stored again at each start: every byte, but not the time."""
    return file.as_found() | {"path": STDIN_PATH, "modified": "", "head": digest(Path(file.path))}


def check_apart(out: Path, files: Sequence[InputFile]) -> None:
    """Raise if an output would replace an input or a folder that contains one."""
    whole = os.path.realpath(out)
    real_paths = RealPaths()
    if not os.path.lexists(whole):  # so it contains no input
        return
    for path in (file.path for file in files if not is_remote(file.path)):
        real = real_paths.of(path)
        if f"{real}/".startswith(f"{whole.rstrip('/')}/"):
            if real == whole:
                what = "is the input itself"
            else:
                what = f"contains the input {path}"
            raise ConfigError(
                f"the output {out} {what}",
                hint=f"write elsewhere, for example out='{out.stem or 'input'}-clean'",
            )


def _check_disk(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    done = sum(entry.stat(follow_symlinks=False).st_size for entry in list_files(folder))
    if needed - done > free:
        raise DataError(
            f"this run needs about {format_bytes(needed - done)} more on the disk of {folder.parent}, which has "
            f"{format_bytes(free)} left",
            hint="free some space, choose another `out`, or pass dry_run=True to write no kept rows",
        )


def needed_disk(files: Sequence[InputFile], plan: Plan, config: Config) -> int:
    """Estimate the most disk space of the work folder and the output from some of the files."""
    kept = kept_disk(files, config)
    if not plan.is_exact:
        return kept + most_disk(
            *estimate_sizes(files, config, num_files=_SAMPLED_FILES), 0, plan, config
        )
    if config.measure not in SET_MEASURES:  # the vectors are stored to be compared
        documents, text_bytes = estimate_sizes(files, config, num_files=_SAMPLED_FILES)
        return kept + text_bytes + most_disk(documents, text_bytes, 0, plan, config)
    sample = sample_files(files, config, num_files=_SAMPLED_FILES, most_bytes=1)
    counted = Config.of(config, ignore_common=None, common_by=None)
    num_shingles = sum(
        collect_texts(found.texts, counted).sets.shingles.size for found in sample.records
    )
    return kept + most_disk(
        sample.documents, sample.text_bytes, round(num_shingles * sample.scale), plan, config
    )


def kept_disk(files: Sequence[InputFile], config: Config) -> int:
    """Return the disk space of the kept rows, if all are kept."""
    return 0 if config.dry_run else sum(file.size for file in files)


def most_disk(
    documents: int, text_bytes: int, num_shingles: int, plan: Plan, config: Config
) -> int:
    """Return the most disk space of the work folder; `num_shingles` counts those that are stored."""
    work = documents * (8 * plan.bands + _NOTE_BYTES) + num_shingles * _SHINGLE_BYTES
    # In the worst case every document has a partner, and texts that do not fit in a third of memory
    # are spilled.
    if config.text_out is not None:
        work += 2 * text_bytes
    return work + (text_bytes if text_bytes > Memory(config.memory).limit // 3 else 0)
