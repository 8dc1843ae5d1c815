"""Find values in ascending arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def find_sorted(
    ascending: npt.NDArray[Any], wanted: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], Any]:
    """Return which values an ascending array contains, and where; the position of a missing value is undefined."""
    last = max(ascending.size - 1, 0)
    at = np.minimum(np.searchsorted(ascending, wanted), last)
    if ascending.size:
        is_found = ascending[at] == wanted
    else:
        is_found = np.zeros(wanted.size, np.bool_)
    return is_found, at
