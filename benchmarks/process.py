"""Run a command as a fresh process; measure its time, its threads, and the memory of its whole process tree."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.02
LIMIT_SECONDS = 2 * 3600


@dataclass(frozen=True)
class Run:
    """What one process cost; `samples`: (seconds since its start, its CPU seconds, its runnable threads)."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    # Of every descendant that was seen, including those that no parent waits for, such as Spark
    # executors.
    tree_cpu_seconds: float = 0.0
    samples: tuple[tuple[float, float, int], ...] = ()

    def between(self, begin, end):
        """CPU seconds between two times, and the share of that time in which at least two threads were runnable."""
        own = [sample for sample in self.samples if begin <= sample[0] <= end]
        if not own:
            return 0.0, None
        return own[-1][1] - own[0][1], sum(running > 1 for _, _, running in own) / len(own)


def run(command, log, limit_seconds=LIMIT_SECONDS):
    """Run a command to its end; its output goes to the file `log`, whose last lines are shown if it fails."""
    with Path(log).open("wb") as output:
        began = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            [str(word) for word in command], stdout=output, stderr=output, start_new_session=True
        )
        peak = _Peak(process.pid)
        peak.start()
        # A tool that hangs is killed here with all its processes, and the benchmark continues.
        limit = threading.Timer(limit_seconds, os.killpg, (process.pid, signal.SIGKILL))
        limit.start()
        _, status, usage = os.wait4(process.pid, 0)
        limit.cancel()
        seconds = time.perf_counter() - began
        peak.stop()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        words = " ".join(map(str, command))
        end = Path(log).read_text("utf-8", "replace")[-2000:]
        raise RuntimeError(
            f"{words}\n{end}\nexit status {process.returncode} after {seconds:.0f} s"
        )
    # Sampling needs /proc; elsewhere the largest process of the tree is used instead.
    own = usage.ru_utime + usage.ru_stime
    of_tree = max(own, sum(peak.cpu_seconds.values()))
    return Run(seconds, peak.num_bytes or usage.ru_maxrss * 1024, own, of_tree, tuple(peak.samples))


class _Peak(threading.Thread):
    """Sample the resident memory of a process and its descendants, summed, and the threads of the process.

    The rusage of a child starts at the size of its parent (Linux carries it over the exec), so it
    is only the fallback. The high-water mark of each process catches what happened between two
    samples.
    """

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.num_bytes = 0
        self.samples = []
        self._began = time.perf_counter()
        self.cpu_seconds = {}
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(SAMPLE_SECONDS):
            tree = _tree(self.pid)
            resident = sum(map(_resident_bytes, tree))
            self.num_bytes = max(self.num_bytes, resident, *map(highest_bytes, tree))
            cpu_seconds = _cpu_seconds(self.pid)
            if cpu_seconds:
                self.samples.append(
                    (time.perf_counter() - self._began, cpu_seconds, _num_running(self.pid))
                )
            self.cpu_seconds |= {pid: seconds for pid in tree if (seconds := _cpu_seconds(pid))}

    def stop(self):
        self._ended.set()
        self.join()


def anonymous_bytes():
    """The anonymous memory of this process: without mapped files, whose pages the system can drop."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1]) * 1024


def _tree(pid):
    """A process and its descendants."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):  # it has just ended
            for thread in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(child) for child in _read(thread).split()]
    return found


def _resident_bytes(pid):
    fields = _read(f"/proc/{pid}/statm").split()
    return int(fields[1]) * PAGE_BYTES if fields else 0


def highest_bytes(pid):
    lines = [line for line in _read(f"/proc/{pid}/status").splitlines() if line.startswith("VmHWM")]
    return int(lines[0].split()[1]) * 1024 if lines else 0


def _cpu_seconds(pid):
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0


def _num_running(pid):
    """Threads that run or wait for a core or a disk."""
    states = [
        _read(thread).rpartition(")")[2].split()[:1]
        for thread in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return sum(state in (["R"], ["D"]) for state in states)


def _read(path):
    """The text of a file of /proc; empty if its process is gone."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
