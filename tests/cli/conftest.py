import json
import os
import subprocess
import sys

import pytest

from support.programs import without_progress

START = "from neardup.cli.main import main; main()"
WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()


@pytest.fixture
def run(programs, tmp_path):
    """Run the command line in a fresh folder; `before` is Python that runs first."""

    def run_command(*arguments, before="", stdin="", **environment):
        done = programs.run(*arguments, cwd=tmp_path, before=before, stdin=stdin, **environment)
        return subprocess.CompletedProcess(arguments, done.code, done.stdout, done.stderr)

    return run_command


@pytest.fixture
def run_afresh(tmp_path):
    """Run the command line in a fresh process, to measure its start."""

    # As for a user, bytecode is cached.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }

    def run_command(*arguments, before=""):
        done = subprocess.run(
            [sys.executable, "-c", f"{before}\n{START}", *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        done.stderr = without_progress(done.stderr)
        return done

    return run_command


@pytest.fixture
def pages(tmp_path):
    """Four documents, the second a near-copy and the fourth a copy of the first, and one unusable row."""
    near = [*WORDS[:-1], "station"]
    texts = {
        "a": " ".join(WORDS),
        "b": " ".join(near),
        "c": "nothing like the others at all, not a bit",
        "d": " ".join(WORDS),
    }
    lines = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
    path = tmp_path / "pages.jsonl"
    path.write_text("\n".join([*lines, "{broken"]) + "\n", "utf-8")
    return path
