"""Runs programs in children of a process that has loaded Numba, which takes half a second, and nothing of ours."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path


class Forked:
    """Starts programs, which one server process forks."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._said = folder / "said"
        self._server = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def run(self, program: str, environment: dict[str, str], copies: int = 1) -> list[str]:
        """Run a program, or copies of it side by side; return the words that they printed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        request = {
            "program": program,
            "environment": environment,
            "said": str(self._said),
            "copies": copies,
        }
        self._said.write_bytes(b"")
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        codes = json.loads(self._server.stdout.readline())
        said = self._said.read_text("utf-8")
        assert codes == [0] * copies, said
        return said.split()

    def close(self) -> None:
        """End the process."""
        self._server.communicate()


def _serve() -> None:
    """Fork a child for every request, or several, and answer with their exit codes."""
    import numba
    import numpy as np

    numba.njit(lambda count: np.empty(count, np.int64))(1)  # compilation loads more
    for line in sys.stdin.buffer:
        request = json.loads(line)
        children = []
        for _ in range(request.pop("copies")):
            child = os.fork()
            if not child:
                _become(**request)
            children.append(child)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


def _become(program: str, environment: dict[str, str], said: str) -> None:
    """Run a program as a fresh process with these variables would."""
    file = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:1] = environment["PYTHONPATH"].split(os.pathsep)
    code = 1
    try:
        import numba

        numba.config.reload_config()
        exec(program, {"__name__": "__main__"})  # noqa: S102
        code = 0
    except BaseException:  # noqa: BLE001 - what Python would do
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
