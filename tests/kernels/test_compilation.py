"""Compiled kernels are cached in a writable folder, reused, and never stale."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import neardup
from neardup import kernels

# A package with one kernel that imports a helper, compiled and cached as ours are.
HELPER = """from neardup.kernels.compilation import inner

@inner
def helped(value):
    return value + {}
"""
KERNEL = """import numpy as np
from neardup.kernels import compilation
from neardup.kernels.helper import helped

@compilation.kernel
def kernel(value):
    room = np.empty(1, np.int64)
    room[0] = helped(value)
    return room[0]
"""
ASK = "from neardup.kernels.kernel import kernel; print(kernel(1), sum(kernel.stats.cache_hits.values()))"


def environment(folder, **other):
    own = {
        name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))
    }
    return own | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"} | other


def ask(program, copies=1, **variables):
    """Run a program in new processes, side by side; return the words that all of them printed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(copies)
    ]
    words = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * copies
    return list(itertools.chain.from_iterable(words))


@pytest.fixture
def package(tmp_path):
    """A copy of the package with the kernels' own cache and two small kernels in their place."""
    folder = tmp_path / "neardup" / "kernels"
    folder.mkdir(parents=True)
    (tmp_path / "neardup" / "__init__.py").touch()
    for name in ("__init__.py", "compilation.py"):
        shutil.copy(Path(neardup.__file__).parent / "kernels" / name, folder)
    (folder / "helper.py").write_text(HELPER.format(1))
    (folder / "kernel.py").write_text(KERNEL)
    return tmp_path


def test_an_edit_in_a_shared_helper_is_picked_up(package):
    assert ask(ASK, folder=package) == ["2", "0"]
    assert ask(ASK, folder=package) == ["2", "1"]
    (package / "neardup" / "kernels" / "helper.py").write_text(HELPER.format(5))
    assert ask(ASK, folder=package) == ["6", "0"]


@pytest.fixture
def locked(package):
    """A package in which no bytecode folder can be made, not even by root, and a home that is not a folder."""
    (package / "neardup" / "kernels" / "__pycache__").write_text("a file")
    (package / "no-home").write_text("a file, too")
    return package


WHERE = f"{ASK}; from neardup.kernels import cache_folder; print(cache_folder())"


def test_kernels_run_and_leave_nothing_if_neither_package_nor_home_is_writable(locked):
    *answer, folder = ask(WHERE, folder=locked, HOME=str(locked / "no-home"))
    assert answer == ["2", "0"]
    assert Path(folder).name.startswith("neardup-")
    assert not Path(folder).exists()


def test_home_is_used_if_the_package_is_not_writable(locked):
    *_, folder = ask(WHERE, folder=locked, HOME=str(locked))
    assert Path(folder).parent == locked / ".cache"
    assert list(Path(folder).glob("*.nbc"))


def test_a_numba_cache_folder_set_by_the_user_takes_precedence(package):
    *_, folder = ask(WHERE, folder=package, NUMBA_CACHE_DIR=str(package / "chosen"))
    assert Path(folder).parent == package / "chosen"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"not a pickle", b"\x80\x05\x95"])
def test_a_damaged_cache_file_is_compiled_again_and_replaced(package, ending, damage):
    *_, folder = ask(WHERE, folder=package)
    [file] = Path(folder).glob(f"*.{ending}")
    file.write_bytes(damage)
    assert ask(ASK, folder=package) == ["2", "0"]
    assert ask(ASK, folder=package) == ["2", "1"]


def test_code_for_arguments_of_other_types_is_not_used(package):
    both = "from neardup.kernels.kernel import kernel; print(kernel(1), kernel(-0.5))"
    *_, folder = ask(
        f"{both}; from neardup.kernels import cache_folder; print(cache_folder())", folder=package
    )
    of_whole_numbers, of_fractions = sorted(Path(folder).glob("*.nbc"))
    shutil.copy(of_whole_numbers, of_fractions)
    assert ask(both, folder=package) == ["2", "0"]


def test_first_runs_side_by_side_agree_and_leave_a_cache(package):
    assert ask(ASK, copies=3, folder=package)[::2] == ["2", "2", "2"]
    assert ask(ASK, folder=package) == ["2", "1"]


def test_only_the_kernel_itself_becomes_machine_code_and_compilation_leaves_no_traces(package):
    program = """
import gc, numba, numpy as np
from neardup.kernels.helper import helped
from neardup.kernels.kernel import kernel
kernel(1)
for function in (kernel, helped):
    [compiled] = function.overloads.values()
    names = [found.name for found in compiled.library.get_defined_functions() if "helped" in found.name]
    engine = compiled.library._codegen._engine
    print(type(compiled.library).__name__, any(map(engine.is_symbol_defined, names)))
print(gc.isenabled(), numba.njit(lambda count: np.empty(count, np.int64).size)(3))
"""
    assert ask(program, folder=package) == [
        "JITCodeLibrary",
        "False",
        "_LinkedCode",
        "False",
        "True",
        "3",
    ]


def test_caches_of_other_packages_are_not_touched(tmp_path):
    (tmp_path / "theirs.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x\n"
    )
    program = "import neardup.kernels, theirs; print(theirs.f._cache.cache_path)"
    source = str(Path(neardup.__file__).parents[1])
    [path] = ask(program, folder=os.pathsep.join([str(tmp_path), source]))
    assert Path(path) == tmp_path / "__pycache__"


def test_every_kernel_is_cached_in_one_folder():
    from neardup.kernels import distinct
    from neardup.kernels import union_find as components

    found = {
        Path(kernel._cache.cache_path) for kernel in (components.union_links, distinct.digest_sets)
    }
    assert found == {kernels.cache_folder()}
    assert isinstance(components.union_links, numba.core.registry.CPUDispatcher)
