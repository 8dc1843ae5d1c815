"""Try an installation without extras: the main jobs run, and what needs an extra says which one.

`make wheel` runs it with the Python of an empty environment, in a folder of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TEXT = "the harbour bridge will close for nine weekends this spring while its bearings are {}"
# A command, and the extra that it asks for.
NEEDS_EXTRA = {
    "html": ["dedup", "pages.jsonl", "-o", "pages", "--html"],
    "plot": ["plan", "--plot", "curve.png"],
    "serve": ["serve", "clean"],
    "spark": ["dedup", "pages.jsonl", "-o", "spark", "--engine", "spark"],
}
JOBS = (
    ["demo"],
    ["dedup", "pages.jsonl", "-o", "clean", "--threshold", "0.7"],
    ["pairs", "pages.jsonl", "-o", "pairs.csv"],
    ["passages", "pages.jsonl", "-o", "parts", "--min-words", "8"],
    ["report", "clean", "-o", "report.html"],
    ["audit", "clean"],
    ["index", "create", "seen.index"],
    ["index", "insert", "seen.index", "pages.jsonl"],
)


def run(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    command = [sys.executable, "-m", "neardup", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603


def main() -> None:
    """Run every job and every command that needs an extra; exit with 1 at the first surprise."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [{"id": str(n), "text": TEXT.format(word)} for n, word in enumerate("ab")]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "pages.jsonl").write_text(lines, "utf-8")
        for arguments in JOBS:
            done = run(folder, arguments)
            if done.returncode != 0:
                sys.exit(f"neardup {' '.join(arguments)} failed:\n{done.stderr}")
        removed = json.loads((folder / "clean" / "report.json").read_text("utf-8"))["removed"]
        if removed != 1:
            sys.exit(f"dedup removed {removed} documents instead of 1")
        for extra, arguments in NEEDS_EXTRA.items():
            done = run(folder, arguments)
            if done.returncode == 0 or f"neardup[{extra}]" not in done.stderr:
                sys.exit(f"neardup {' '.join(arguments)} does not name its extra:\n{done.stderr}")
    print(f"{len(JOBS)} jobs run without extras; {len(NEEDS_EXTRA)} commands name theirs")


if __name__ == "__main__":
    main()
