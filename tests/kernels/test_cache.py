import os
import shutil
import subprocess
import sys
from pathlib import Path

import neardup

RUN = (
    "import neardup; print(neardup.signatures(['a b c d e f']).shape, __import__('os').environ.get('NUMBA_CACHE_DIR'))"
)


def run_copy(folder, **environment):
    """Run a copy of the package in which no bytecode folder can be made."""
    package = folder / "neardup"
    shutil.copytree(Path(neardup.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "kernels" / "__pycache__").write_text("a file, so that not even root can make a folder here")
    (folder / "no-home").write_text("a file, too")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))},
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder / "no-home"),
    } | environment
    return subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_kernels_run_where_neither_package_nor_home_is_writable_and_leave_nothing_behind(tmp_path):
    shape, folder = run_copy(tmp_path).strip().rsplit(" ", 1)
    assert shape == "(1, 128)"
    assert Path(folder).name.startswith("neardup-")
    assert not Path(folder).exists()


def test_home_is_used_where_only_the_package_is_not_writable(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    assert run_copy(tmp_path, HOME=str(home)).strip() == "(1, 128) None"
    assert list((home / ".cache" / "numba").iterdir())
