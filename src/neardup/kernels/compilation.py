"""How kernels, and the functions that only kernels call, are compiled and loaded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numba
from numba import extending
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

# Without the wrappers for Python they compile in half the time.
_UNWRAPPED: Final[Any] = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = numba.njit(**_UNWRAPPED)
# What stands for a function of plain Python in compiled code.
overload = partial(extending.overload, jit_options=_UNWRAPPED)


class _CompiledBefore(FunctionCache):
    """Loads compiled code without the registries of Numba, which only compiling asks: 0.15 s of every start."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code for arguments of these types, None where there is none yet."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
        return None


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call with arguments of some types, and keep the code for later processes."""
    dispatcher: Any = numba.njit(nogil=True)(function)
    dispatcher._cache = _CompiledBefore(function)
    return dispatcher
