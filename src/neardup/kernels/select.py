"""Leaders over a listed graph of pairs."""

import numpy as np

from neardup.kernels.compilation import kernel
from neardup.kernels.similarity import NOBODY


@kernel
def lead(order, starts, partners, similarities, matches, values):
    """Process documents in keep order; a partner of a kept document is removed, and points to the most similar one.

    A copy of an earlier document (similarity 1) follows it, even if a more similar one has been
    kept since.

    order         int64  [num_docs]      documents, best keep priority first
    starts        int64  [num_docs + 1]  document d has partners[starts[d]:starts[d + 1]]
    partners      int64  [2 * num_pairs] ascending in each document, so that ties go to the smallest
    similarities  float64[2 * num_pairs]
    matches       int64  [num_docs]      written; NOBODY for a kept document
    values        float64[num_docs]      written; 1 for a kept document
    """
    is_done = np.zeros(order.size, np.bool_)
    for doc in order:
        is_done[doc] = True
        matches[doc] = NOBODY
        values[doc] = 1.0
        for at in range(starts[doc], starts[doc + 1]):
            partner = partners[at]
            if not is_done[partner]:
                continue
            if similarities[at] == 1.0:
                if matches[partner] == NOBODY:
                    matches[doc] = partner
                else:
                    matches[doc] = matches[partner]
                values[doc] = values[partner]
                break
            if matches[partner] == NOBODY and (
                matches[doc] == NOBODY or similarities[at] > values[doc]
            ):
                matches[doc] = partner
                values[doc] = similarities[at]
