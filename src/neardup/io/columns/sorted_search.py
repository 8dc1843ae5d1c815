"""Find values in ascending arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def find_sorted(
    ascending: npt.NDArray[Any], wanted: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], Any]:
    """Return which values an ascending array contains, and where; the position of a missing value is undefined."""
    at = np.minimum(np.searchsorted(ascending, wanted), max(ascending.size - 1, 0))
    return (ascending[at] == wanted if ascending.size else np.zeros(wanted.size, np.bool_)), at
