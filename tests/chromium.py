"""A Chromium for tests of the page: that of the machine, or, as root on Debian, its package."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# Without these Chromium asks its maker's hosts in the background.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Return the program of a Chromium; None where there is none and none can be installed."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None and hasattr(os, "geteuid") and os.geteuid() == 0 and Path("/usr/bin/apt-get").exists():
        for command in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(
                ["/usr/bin/apt-get", *command],
                env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
                capture_output=True,
                check=False,
            )
        found = shutil.which("chromium")
    return found
