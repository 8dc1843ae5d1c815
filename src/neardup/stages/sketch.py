"""Stage 1 of 6: texts become set digests and band keys, in one pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.measures import jaccard
from neardup.planner import Plan


def sketch(
    batch: pa.RecordBatch, plan: Plan, config: Config, hold: Callable[[npt.NDArray[np.uint64]], int] | None = None
) -> pa.RecordBatch:
    """Replace the `text` column by sizes, digest and keys; rows and order stay. `hold` keeps the sets."""
    text, groups = batch.column("text"), batch.column("group")
    sketched = jaccard.sketch_texts(text, plan.bands, plan.rows, config, groups.to_numpy(), hold)
    keys = np.ascontiguousarray(sketched.keys.T).view(np.int64)
    return pa.record_batch(
        [
            batch.column("row"),
            batch.column("priority"),
            groups,
            pc.binary_length(text).cast(pa.int64()),
            pa.array(sketched.sizes),
            pa.array(sketched.digests[:, 0].view(np.int64)),
            pa.array(sketched.digests[:, 1].view(np.int64)),
            pa.array(sketched.held_at),
            *(pa.array(keys[band]) for band in range(plan.bands)),
        ],
        schema=schema.sketches(plan.bands),
    )
