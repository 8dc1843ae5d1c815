"""Keep priorities that are given for single documents, whatever the keep order of the run says."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.io.documents.layout import FileLayout

I64 = npt.NDArray[np.int64]


class FixedPriorities(NamedTuple):
    """Documents of files with a priority each: the number of the file, and the row there, from 1."""

    files: I64
    rows: I64
    priorities: I64

    def rows_with(self, priority: int, layout: FileLayout) -> I64:
        """Return the rows of the run that have a priority, ascending; known once rows are numbered."""
        is_wanted = self.priorities == priority
        first_rows = layout.file_first_rows[self.files[is_wanted]]
        return np.sort(first_rows + self.rows[is_wanted] - 1)
