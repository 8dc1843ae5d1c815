"""Runs the command line by forking a process that has already loaded everything, which takes tenths of a second.

A test can pass Python code to run in the child first (`before`), such as the functions of this
module.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import gc
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

# Fields that may differ between a resumed run and an uninterrupted one.
TIME_AND_MEMORY = ("seconds", "stages", "peak_memory_bytes")
# A run that hangs is killed; others take a tenth of a second, or minutes on a busy machine.
_LONGEST_SECONDS = 300
# An uninterrupted slow read takes half a minute: this many steps of 0.02 s.
SLOW_STEPS = 1500
# Audit events that change something on disk; creating folders is atomic.
_EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree")


def without_progress(said: str) -> str:
    """Leave out the lines about slow stages, which a run prints on a busy machine only."""
    from neardup.cli.progress import STAGES

    stages = {*STAGES.values()}
    return "".join(
        line for line in said.splitlines(keepends=True) if line.partition(":")[0] not in stages
    )


@dataclasses.dataclass(frozen=True)
class Finished:
    """How a run ended; the code is negative for a signal; `stderr` is without progress."""

    code: int
    stdout: str
    stderr: str


class Running:
    """A running command, in its folder."""

    def __init__(self, programs: Programs, pid: int, spoken: Path) -> None:
        self._programs = programs
        self.pid = pid
        self._spoken = spoken

    def wait(self) -> Finished:
        """Wait for the end."""
        code = self._programs.ask(wait=self.pid)
        out, err = (
            self._spoken.with_suffix(ending).read_text("utf-8") for ending in (".out", ".err")
        )
        return Finished(code, out, without_progress(err))

    def signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


class Programs:
    """Starts runs, which one server process forks."""

    def __init__(self, folder: Path, wrapper: Sequence[str] = ()) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        command = [*wrapper, sys.executable, __file__]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.root = Path(f"/proc/{self._server.pid}/root")

    def ask(self, **request: Any) -> int:
        """Send a request and return the answer."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise RuntimeError("the process that starts runs has ended; its own words are above")
        return int(answer)

    def start(
        self,
        *arguments: str | Path,
        cwd: Path,
        before: str = "",
        stdin: str | bytes = "",
        **environment: str,
    ) -> Running:
        """Start `neardup` with arguments, standard input and environment variables in a folder."""
        spoken = self._folder / str(next(self._numbers))
        spoken.with_suffix(".in").write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        given = [str(argument) for argument in arguments]
        started = self.ask(
            arguments=given,
            cwd=str(cwd),
            before=before,
            spoken=str(spoken),
            environment=environment,
        )
        return Running(self, started, spoken)

    def run(
        self,
        *arguments: str | Path,
        cwd: Path,
        before: str = "",
        stdin: str | bytes = "",
        **environment: str,
    ) -> Finished:
        """Run `neardup` to its end."""
        return self.start(*arguments, cwd=cwd, before=before, stdin=stdin, **environment).wait()

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._server.communicate()


def sweep(room: str, begin: int, step: int) -> list[Any]:
    """Return the cases of a sweep of kills: a few points in `make test`, every `step`-th in `make test-all`."""
    import pytest

    return [(room, begin, 9 * step), pytest.param(room, begin, step, marks=pytest.mark.long)]


def kill_at_events(
    programs: Programs,
    command: Sequence[str],
    events: range,
    room: str,
    whole: dict[str, Any],
    folder: Path,
) -> int:
    """Kill a run at every given event, resume it, and compare its output with `whole`; return the last event tried."""
    number = 0
    for number in events:
        killed = programs.run(*command, cwd=folder, before=f"{room}; kill_at_event({number})")
        if killed.code == 0:
            break
        assert killed.code == -signal.SIGKILL, killed.stderr
        if not (folder / "out").exists():
            resumed = programs.run(*command, cwd=folder, before=room)
            assert resumed.code == 0, (number, resumed.stderr)
        assert contents(folder / "out") == whole, f"killed at {number}"
        shutil.rmtree(folder)
    return number


def wait_until(is_so: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait for something that another process does."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(0.002)


def contents(out: Path) -> dict[str, Any]:
    """Everything in a complete output that must not differ."""
    found = everything(out)
    assert "report.json" in found
    return found


def everything(folder: Path) -> dict[str, Any]:
    """Every file below a folder by name: its bytes or, for a report, what must not differ."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        is_report = path.name.endswith("report.json")
        found[str(path.relative_to(folder))] = (
            _without_time(json.loads(data)) if is_report else data
        )
    return found


def _without_time(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name not in TIME_AND_MEMORY}


# --- for `before` ---


def kill_at_event(
    number: int, kind: int = signal.SIGKILL, is_counted: Callable[[], bool] = lambda: True
) -> None:
    """Kill this process right before it changes something on disk for the n-th time, from 1."""
    here = Path.cwd()
    events = itertools.count(1)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        is_read = event == "open" and str(arguments[1]).startswith("r")
        if event in _EVENTS and not is_read and isinstance(arguments[0], (str, os.PathLike)):
            path = here / os.fspath(arguments[0])
            if path.is_relative_to(here) and is_counted() and next(events) == number:
                os.kill(os.getpid(), kind)

    sys.addaudithook(heard)
    write = os.write

    def written(descriptor: int, data: bytes) -> int:
        heard("open", (str(here), "w"))
        return write(descriptor, data)

    os.write = written


def kill_at_finish(number: int) -> None:
    """Kill this process when the n-th part is finished, from 1."""
    after_finish(number, lambda: os.kill(os.getpid(), signal.SIGKILL))


def after_finish(number: int, act: Callable[[], Any]) -> None:
    """Do something when the n-th part is finished, from 1."""
    from neardup.io.storage.workspace import Workspace

    original = Workspace.finish
    numbers = itertools.count(1)

    def finish(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        if next(numbers) == number:
            act()

    Workspace.finish = finish  # type: ignore[method-assign]


def kill_at_part(name: str) -> None:
    """Kill this process just before the part of this name is written."""
    before_part(name, lambda: os.kill(os.getpid(), signal.SIGKILL))


def pause_at(name: str) -> None:
    """Pause before the part of this name is written, until the file `go` exists; the file `paused` signals it."""

    def pause() -> None:
        Path("paused").touch()
        wait_until(Path("go").exists)

    before_part(name, pause)


def before_part(name: str, act: Callable[[], Any]) -> None:
    """Do something just before the part of this name is written."""
    from neardup.io.storage.workspace import Workspace

    original = Workspace.draft

    def draft(self: Any, part: str) -> Path:
        if part == name:
            act()
        return original(self, part)

    Workspace.draft = draft  # type: ignore[method-assign]


def kill_when_published() -> None:
    """Kill this process just after the output is published."""
    _kill_when(lambda event, _: event == "shutil.rmtree" and Path("out").exists())


def kill_before_publishing() -> None:
    """Kill this process just before the output is published."""
    _kill_when(
        lambda event, arguments: (
            event == "os.rename" and Path(arguments[1]).absolute() == Path("out").absolute()
        )
    )


def _kill_when(is_so: Callable[[str, tuple[Any, ...]], bool]) -> None:
    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if is_so(event, arguments):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def before_report(act: Callable[[], Any]) -> None:
    """Do something right before the report is written, the last file of an output."""
    waiting = [act]

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event == "open"
            and str(arguments[0]).endswith("report.json")
            and "w" in str(arguments[1])
            and waiting
        ):
            waiting.pop()()

    sys.addaudithook(heard)


def kill_in_writing(name: str) -> None:
    """Kill this process after it has opened a file for writing, before it writes anything."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and str(arguments[0]).endswith(f"/{name}") and "w" in str(arguments[1]):
            os.truncate(arguments[0], 0)
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(heard)


def is_ending(out: str) -> bool:
    """Whether a run has written everything that it will publish, or has published it."""
    work = Path(f".{out}.neardup")
    is_declared = (work / "neardup.lock").exists() and b'"published"' in (
        work / "neardup.lock"
    ).read_bytes()
    return is_declared or (work / "out/report.json").exists() or Path(out).exists()


def is_replacing() -> bool:
    """Whether the new output is written and the old one is not deleted yet."""
    return any(Path(".out.neardup", name).exists() for name in ("out/report.json", "replaced"))


def remove_folder_before_locking() -> None:
    """Simulate another run that ends, and removes the work folder, just before this one locks it."""
    import fcntl

    original = fcntl.flock
    calls = itertools.count()

    def flock(file: Any, kind: int) -> None:
        if next(calls) == 0:
            shutil.rmtree(".out.neardup")
        original(file, kind)

    fcntl.flock = flock


def give_room(num_bytes: int) -> None:
    """Make stages believe that this much memory is left, so that even small input is spilled to disk."""
    from neardup.engines.local.limits import Memory

    Memory.room = lambda _: num_bytes  # type: ignore[method-assign]


def count_reads(target: str) -> None:
    """Write at exit how often each file was read for its texts in the first and in later passes.

    The sample of large clusters, which is read to detect templates, does not count.
    """
    from neardup.io.documents.file_reader import FileReader
    from neardup.jobs import templates

    templates.MAX_CLUSTERS = 0  # type: ignore[misc]
    original = FileReader.read
    counts = collections.Counter[str]()

    def read(self: Any, part: int, advance: Any) -> Iterator[Any]:
        counts[
            f"{'later' if self.first_rows.size else 'first'} {self.layout.piece(self.layout.part_pieces[part])[0]}"
        ] += 1
        return original(self, part, advance)

    FileReader.read = read  # type: ignore[method-assign]
    atexit.register(lambda: Path(target).write_text(json.dumps(counts), "utf-8"))


def slow_reading(part: int, which: str) -> None:
    """Make the first or a later pass over a part take SLOW_STEPS; write at exit how many of them it did."""
    from neardup.io.documents.file_reader import FileReader

    original = FileReader.read
    steps = []

    def read(self: Any, number: int, advance: Any) -> Iterator[Any]:
        for batch in original(self, number, advance):
            if number == part and which == ("later" if self.first_rows.size else "first"):
                Path("paused").touch()
                for _ in range(SLOW_STEPS):
                    steps.append(time.sleep(0.02))
                    yield batch.slice(0, 0)
            yield batch

    FileReader.read = read  # type: ignore[method-assign]
    atexit.register(lambda: Path("steps").write_text(str(len(steps)), "ascii"))


def sort_much() -> None:
    """Make every sort on disk start with one of 400 MB, in the same folder."""
    import numpy as np
    import pyarrow as pa

    from neardup.engines.local import engine as local

    original = local.sort_on_disk
    columns = pa.schema([("key", pa.int64()), ("row", pa.int64())])
    rng = np.random.default_rng(1)

    def sort_on_disk(batches: Any, schema: Any, by: Any, folder: Path, room: int) -> Iterator[Any]:
        numbers = (rng.integers(0, 1 << 60, 1 << 20) for _ in range(24))
        much = (pa.record_batch([keys, keys], schema=columns) for keys in numbers)
        for _ in original(much, columns, [("key", "ascending")], folder, room):
            pass
        return original(batches, schema, by, folder, room)

    local.sort_on_disk = sort_on_disk


def tell_peak(target: str) -> None:
    """Write the peak memory of this process at exit."""

    def tell() -> None:
        status = Path("/proc/self/status").read_text("ascii")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        Path(target).write_text(str(int(peak.split()[1]) << 10), "ascii")

    atexit.register(tell)


def fill_disk() -> None:
    """Fill the disk of this folder; deleting the file `ballast` frees the space again."""
    with Path("ballast").open("ab", buffering=0) as ballast, contextlib.suppress(OSError):
        while ballast.write(bytes(1 << 12)):
            pass


def limit_address_space(num_bytes: int) -> None:
    """Like `ulimit -v`."""
    resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))


def drop_privileges() -> None:
    """Become nobody if this is root, who may read and write everything."""
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)


# --- the process that forks ---


def _serve() -> None:
    _load()
    # Freeze loaded objects: a garbage collection in a child would copy every page of them.
    gc.collect()
    gc.freeze()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                _become(**request)
                return
        sys.stdout.buffer.write(b"%d\n" % answer)
        sys.stdout.buffer.flush()


def _load() -> None:
    """Load kernels and modules by running what tests run, also with so little memory that data is spilled to disk."""
    from neardup.cli.main import commands
    from neardup.engines.local.limits import Memory

    texts = [
        " ".join(f"word{at}" for at in range(number, number + 90))
        for number in (0, 0, 1, 2, 3, 4, 5, 50)
    ]
    room = Memory.room
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "warm.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
        for number in range(2):
            arguments = [
                "dedup",
                str(path),
                "-o",
                f"{name}/{number}",
                "--pairs",
                "--threads",
                "1",
                "--json",
            ]
            with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
                commands(arguments, standalone_mode=False)
            give_room(1_000)
    Memory.room = room  # type: ignore[method-assign]


def _become(
    arguments: list[str], cwd: str, before: str, spoken: str, environment: dict[str, str]
) -> None:
    """Become the command line."""
    Path(cwd).mkdir(parents=True, exist_ok=True)
    os.chdir(cwd)
    for descriptor, ending in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(spoken + ending, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), descriptor)
    os.dup2(os.open(spoken + ".in", os.O_RDONLY), 0)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - the old one has read ahead
    os.environ.update(environment)
    if "PYTHONIOENCODING" in environment:  # Python itself reads it only at startup
        sys.stdout.reconfigure(encoding=environment["PYTHONIOENCODING"])  # type: ignore[union-attr]
    signal.alarm(_LONGEST_SECONDS)
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored if tests run in the background of a shell
    from neardup.io.documents import layout

    layout.JOINED_BYTES = 0  # type: ignore[misc] # every small file is a part of its own
    exec(before, globals())  # noqa: S102
    sys.argv = ["neardup", *arguments]
    from neardup.cli.main import main

    code = 1
    try:
        main()
    except SystemExit as ending:
        code = int(ending.code or 0)
    except BaseException:  # noqa: BLE001 - what Python would do, without taking everything down again, which costs half a second
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _serve()
