"""How functions that only kernels call are compiled."""

import numba

# Without the wrappers for Python they compile in half the time.
inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
