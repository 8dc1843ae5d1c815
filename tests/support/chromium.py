"""A Chromium for tests of the page: that of the machine, or, as root on Debian, its package."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

# Without these, Chromium contacts Google's servers in the background.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_APT = Path("/usr/bin/apt-get")
_ATTEMPTS = 5


class NoChromiumError(Exception):
    """There is no Chromium, and it could not be installed; the message says why."""


def find_chromium() -> str:
    """Return the path of a Chromium executable; install it if possible."""
    found = _on_path()
    if found is not None:
        return found
    if hasattr(os, "geteuid") and os.geteuid() == 0 and _APT.exists():
        return install_chromium()
    raise NoChromiumError("no Chromium: install the package chromium")


def install_chromium(apt: Path = _APT, pause_seconds: float = 5.0) -> str:
    """Install the package, one process at a time, again while another program holds apt's lock."""
    import fcntl

    with Path(tempfile.gettempdir(), "neardup-tests-chromium.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = ""
        for attempt in range(_ATTEMPTS):
            found = _on_path()  # another process may have installed it meanwhile
            if found is not None:
                return found
            if attempt:
                time.sleep(pause_seconds)
            said = _run(apt, "update", "-qq") + _run(
                apt,
                "install",
                "-qq",
                "-y",
                "--no-install-recommends",
                "-o",
                "DPkg::Lock::Timeout=120",
                "chromium",
            )
        found = _on_path()
    if found is None:
        raise NoChromiumError(
            f"no Chromium: apt could not install it {_ATTEMPTS} times; it said:\n{said}"
        )
    return found


def _run(apt: Path, *arguments: str) -> str:
    """Run apt, and return what it says."""
    done = subprocess.run(
        [apt, *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def _on_path() -> str | None:
    return next(filter(None, map(shutil.which, _NAMES)), None)
