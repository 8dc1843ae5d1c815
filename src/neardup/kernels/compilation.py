"""How kernels, and the functions that only kernels call, are compiled and loaded."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

import numba
from numba import extending
from numba.core import serialize
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

# For each array that a kernel returns, Numba calls this function, which is all the Python that runs
# in a kernel: Ctrl-C that comes meanwhile is raised in it, and Numba goes on with what was not
# returned: a SystemError instead of KeyboardInterrupt, or a crash. The cache runs no Python code
# after the first call of a kernel.
serialize._numba_unpickle = lru_cache(maxsize=None)(serialize._numba_unpickle)
# Without wrappers for Python, they compile in half the time.
_UNWRAPPED: Final[Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = numba.njit(**_UNWRAPPED)
# A kernel that allocates no arrays needs no reference counting. Numba counts references on every
# access to an array in a tuple and on every view, with atomic instructions: half of the time of
# comparing sets of 100 shingles.
_UNCOUNTED: Final[Any] = _UNWRAPPED | {"_nrt": False}
uncounted = numba.njit(**_UNCOUNTED)
# The compiled replacement of a plain Python function, and the same without reference counting.
overload = partial(extending.overload, jit_options=_UNWRAPPED)
uncounted_overload = partial(extending.overload, jit_options=_UNCOUNTED)


class _LinkedCode(JITCodeLibrary):
    """The code of a function that only compiled code calls: it becomes part of its callers, and is optimised there.

    Numba would optimise such a function, and compile it to machine code, again at every level of
    calls: a fifth of the compile time (docs/decisions/0025).
    """

    def _optimize_final_module(self) -> None:
        """Do nothing: callers optimise the code that they link."""

    def _finalize_final_module(self) -> None:
        """Make the code linkable; Numba would also compile it to machine code and load it."""
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> _LinkedCode:
        """Return this object, with which a loaded function would be registered."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the code is not loaded, so there is no address to write to."""


class _KernelCompiler(Compiler):
    """Compiles a kernel to machine code once, with all functions that it calls."""

    def compile_extra(self, func: Any) -> Any:
        """Compile a function; Numba holds its compiler lock, so no other thread compiles."""
        codegen = self.state.targetctx.codegen()
        self.state.library = JITCodeLibrary(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        was_collecting = gc.isenabled()
        usual = codegen._library_class
        gc.disable()  # compilation creates many objects and little garbage; collection took 4 % of the time
        codegen._library_class = _LinkedCode
        try:
            return super().compile_extra(func)
        finally:
            codegen._library_class = usual
            if was_collecting:
                gc.enable()


class _CompiledBefore(FunctionCache):
    """Loads compiled code without Numba's registries, which only compilation needs: saves 0.15 s of every start.

    If a cache file is damaged in any way, the kernel is compiled, and saved again if the disk has
    space.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for arguments of these types, None if there is none yet."""
        rtsys.initialize(target_context)
        try:
            found = self._load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - unpickling a damaged file, such as after a full disk, can raise anything
            self._forget()
            return None
        # Two processes saved it simultaneously.
        if found is not None and tuple(found.signature.args) != tuple(sig):
            self._forget()
            return None
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code for later processes."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)

    def _forget(self) -> None:
        with contextlib.suppress(OSError):
            self.flush()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call with arguments of some types, and cache the code for later processes."""
    dispatcher: Any = numba.njit(nogil=True, no_cfunc_wrapper=True, pipeline_class=_KernelCompiler)(
        function
    )
    dispatcher._cache = _CompiledBefore(function)
    return dispatcher
