"""Stage 1 of 6: texts become set digests and band keys, in one pass."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.measures import jaccard
from neardup.planner import Plan


def sketch(batch: pa.RecordBatch, plan: Plan, config: Config) -> pa.RecordBatch:
    """Replace the `text` column by size, digest and keys; rows and order stay."""
    sketched = jaccard.sketch_texts(batch.column("text"), plan.bands, plan.rows, config)
    return pa.record_batch(
        [
            batch.column("row"),
            batch.column("priority"),
            pa.array(sketched.sizes),
            pa.array(sketched.digests[:, 0].view(np.int64)),
            pa.array(sketched.digests[:, 1].view(np.int64)),
            pa.FixedSizeListArray.from_arrays(pa.array(sketched.keys.ravel().view(np.int64)), plan.bands),
        ],
        schema=schema.sketches(plan.bands),
    )
