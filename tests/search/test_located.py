"""Where places stand in the texts: the work of a run of texts does not grow with what stands in others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.measures import jaccard
from neardup.search.located import Locator
from neardup.search.places import Stretches
from neardup.search.spans import NO_PASSAGES, Spans

NUM_DOCS = 50


class Counted(np.ndarray):
    """Numbers that count with how many of them is calculated."""

    calculated = 0

    def __array_ufunc__(self, ufunc, method, *operands, **options):
        plain = [np.asarray(each) for each in operands]
        Counted.calculated += max(each.size for each in plain)
        return getattr(ufunc, method)(*plain, **options)


def test_every_place_is_calculated_once_however_many_runs_of_texts_there_are(monkeypatch):
    monkeypatch.setattr(jaccard, "CACHE_BYTES", 1)  # every text is a run
    docs = np.arange(NUM_DOCS)
    starts = np.ones(NUM_DOCS, np.int64)
    counts = np.ones(NUM_DOCS, np.int64).view(Counted)
    ends = np.full(NUM_DOCS, 3).view(Counted)
    places = Stretches(docs, starts, counts, docs * 0, starts)
    locator = Locator(places, NO_PASSAGES, Spans(docs, starts, ends), 2, Config())
    Counted.calculated = 0
    texts = pa.array([f"x{at} two words" for at in docs], pa.large_string())
    locator.locate(pa.record_batch({"row": docs, "text": texts}))
    assert Counted.calculated == 2 * NUM_DOCS
    assert locator.places.start_bytes.tolist() == [len(f"x{at} ") for at in docs]
    assert locator.spans.end_bytes.tolist() == [len(f"x{at} two words") for at in docs]
