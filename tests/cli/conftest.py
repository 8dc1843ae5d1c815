import json
import os
import subprocess
import sys

import pytest

START = "from neardup.cli.main import main; main()"
WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()


@pytest.fixture
def run(tmp_path):
    """Run the command line in a fresh process and folder; `before` is Python that runs first."""

    def run_command(*arguments, before="", stdin="", **environment):
        return subprocess.run(
            [sys.executable, "-c", f"{before}\n{START}", *map(str, arguments)],
            input=stdin,
            cwd=tmp_path,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run_command


@pytest.fixture
def pages(tmp_path):
    """Four documents, the second nearly and the fourth exactly the first, and one row that cannot be used."""
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
