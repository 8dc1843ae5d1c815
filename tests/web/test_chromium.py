"""Chromium is installed once, whoever needs it first."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from support import chromium

# Fails as apt does while another one runs; the package is a file on the PATH.
APT = """#!/bin/sh
mkdir {folder}/running 2>/dev/null || {{ echo "E: Could not get lock"; exit 100; }}
echo "$1" >> {folder}/calls
/bin/sleep 0.2
[ "$1" = install ] && {install}
rmdir {folder}/running
"""


@pytest.fixture
def apt(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/sbin")
    monkeypatch.setattr(chromium, "_NAMES", ("chromium-of-this-test",))
    monkeypatch.setattr(chromium.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / "bin").mkdir()

    def write(install):
        path = tmp_path / "apt-get"
        path.write_text(APT.format(folder=tmp_path, install=install))
        path.chmod(0o755)
        return path

    return write


def test_two_processes_install_it_once(apt, tmp_path):
    program = tmp_path / "bin/chromium-of-this-test"
    script = apt(f"{{ echo '#!/bin/sh' > {program}; chmod +x {program}; }}")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: chromium.install_chromium(script), range(2)))
    assert found == [str(program)] * 2
    assert (tmp_path / "calls").read_text().split() == ["update", "install"]


def test_installation_is_retried_and_the_error_of_apt_is_shown(apt, tmp_path):
    script = apt("echo 'E: Unable to locate package chromium'")
    with pytest.raises(chromium.NoChromiumError, match="Unable to locate package chromium"):
        chromium.install_chromium(script, pause_seconds=0)
    assert (tmp_path / "calls").read_text().split() == ["update", "install"] * 5
