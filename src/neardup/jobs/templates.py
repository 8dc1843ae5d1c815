"""Detects clusters of different documents that share only a template, so that a few shingles cause most removals."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.engines.base import Documents, no_progress
from neardup.events import Watch
from neardup.measures.jaccard import text_sets
from neardup.pipeline import PipelineOutcome

I64 = npt.NDArray[np.int64]
# The minimum number of documents of a cluster, not counting exact copies; how many of the largest
# clusters are examined, by a sample of each, in how many parts of the input: the cost does not grow
# with the input.
MIN_MEMBERS: Final = 10
MAX_CLUSTERS: Final = 32
SAMPLE: Final = 10
MAX_PARTS: Final = 4
# Pages of a template share its shingles and hardly any others, and each has many of its own: more
# than the names and dates in which copies of a licence differ. Edited copies share shingles that
# only some of them have.
MIN_CORE: Final = 0.9
MIN_OWN_SHINGLES: Final = 20
MAX_SIMILARITY: Final = 0.95
# Warn only if most removals are of this kind: in corpora of real licences and manuals, up to a
# quarter are.
MIN_SHARE: Final = 0.5
_ODD: Final = np.uint64(0x9E3779B97F4A7C15)


class _Cluster(NamedTuple):
    """A large cluster: how many documents were removed, and the rows of a sample of those that are not exact copies."""

    num_removed: int
    sample: I64


def warn_of_templates(
    outcome: PipelineOutcome[pa.Table], documents: Documents, config: Config, watch: Watch
) -> None:
    """Warn if many removed documents share a template, and say what to do."""
    has_texts = config.measure in SET_MEASURES and config.items_column is None
    if not (has_texts and outcome.selects) or config.weights is not None:
        return
    clusters = _largest(outcome.selection, documents)
    if not clusters:
        return
    rows = np.unique(np.concatenate([cluster.sample for cluster in clusters]))
    sets = dict(zip(rows.tolist(), _sets(rows, documents, config), strict=True))
    num_removed = 0
    num_clusters = 0
    for cluster in clusters:
        if is_template([sets[row] for row in cluster.sample.tolist()]):
            num_removed += cluster.num_removed
            num_clusters += 1
    num_all = outcome.selection.num_rows
    if num_clusters and num_removed >= MIN_SHARE * num_all:
        watch.warn(advise_on_templates(num_removed, num_all, num_clusters), is_urgent=True)


def advise_on_templates(num_removed: int, num_all: int, num_clusters: int) -> str:
    """Return the warning about documents that were removed because of a template.

    >>> print(advise_on_templates(340, 400, 6).partition(";")[0])
    340 of 400 removed documents, in 6 clusters, share little but a template with the kept document
    """
    if num_clusters == 1:
        in_clusters = "1 cluster"
    else:
        in_clusters = f"{num_clusters:,} clusters"
    return (
        f"{num_removed:,} of {num_all:,} removed documents, in {in_clusters}, share little but a template with the "
        "kept document; if they are different documents, pass the template in `ignore`, or compare web pages "
        "with html=True and html_content='main'"
    )


def is_template(sets: list[npt.NDArray[np.uint64]]) -> bool:
    """Whether any two of these sets share only what all of them share, and each has much of its own."""
    if len(sets) < 2:
        return False
    core = sets[0]
    for other in sets[1:]:
        core = np.intersect1d(core, other, assume_unique=True)
    shared = [np.intersect1d(a, b, assume_unique=True).size for a, b in combinations(sets, 2)]
    own = np.median([shingles.size - core.size for shingles in sets])
    return bool(own >= MIN_OWN_SHINGLES and core.size >= MIN_CORE * np.mean(shared))


def _largest(selection: pa.Table, documents: Documents) -> list[_Cluster]:
    """The largest clusters of similar but unequal documents, with a sample chosen by a hash of the row."""
    rows = selection.column("row").to_numpy()
    kept_rows = selection.column("kept_row").to_numpy()
    similarity = selection.column("similarity").to_numpy()
    near = np.flatnonzero(similarity < 1)
    kept, inverse, counts = np.unique(kept_rows[near], return_inverse=True, return_counts=True)
    sums = np.bincount(inverse, similarity[near], kept.size)
    large = np.flatnonzero((counts >= MIN_MEMBERS) & (sums < MAX_SIMILARITY * counts))
    large = large[np.argsort(-counts[large], kind="stable")][:MAX_CLUSTERS]
    found = [near[inverse == number] for number in large.tolist()]
    part_of = [
        np.searchsorted(documents.first_rows, rows[members], side="right") for members in found
    ]
    parts, sizes = np.unique(np.concatenate([np.empty(0, np.int64), *part_of]), return_counts=True)
    looked_at = parts[np.argsort(-sizes, kind="stable")][:MAX_PARTS]
    clusters = []
    for members, part in zip(found, part_of, strict=True):
        own = rows[members[np.isin(part, looked_at)]]
        drawn = own[np.argsort(own.astype(np.uint64) * _ODD, kind="stable")][:SAMPLE]
        if drawn.size == SAMPLE:
            clusters.append(_Cluster(members.size, np.sort(drawn)))
    return clusters


def _sets(rows: I64, documents: Documents, config: Config) -> list[npt.NDArray[np.uint64]]:
    """The shingles of some documents, which are read again."""
    texts: list[Any] = []
    ends = np.searchsorted(rows, documents.first_rows)
    for part in np.flatnonzero(np.diff(ends)).tolist():
        for batch in documents.read(part, no_progress):
            is_wanted = np.isin(batch.column("row").to_numpy(), rows, assume_unique=True)
            if is_wanted.any():
                texts.append(batch.column("text").filter(pa.array(is_wanted)))
    shingles, set_ends = text_sets(pa.concat_arrays(texts), config)
    return [shingles[start:stop] for start, stop in pairwise(set_ends.tolist())]
