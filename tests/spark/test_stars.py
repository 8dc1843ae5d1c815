"""Connected components by stars, against networkx."""

from __future__ import annotations

import random
from itertools import pairwise

import networkx as nx
import pyarrow as pa
import pytest

from neardup.engines.spark.stars import connect
from neardup.engines.spark.storage import Storage

pytestmark = pytest.mark.slow("jobs of Spark")

NUM_LONG = 100_000
ONLY_LONG = pytest.mark.long, pytest.mark.slow("rounds of stars over 100,000 links")


def random_links(seed):
    rng = random.Random(seed)
    return [(rng.randrange(3000), rng.randrange(3000)) for _ in range(1500)]


def path(num_rows):
    """Rows in no order along the path, so that every round has something to do."""
    rows = list(range(num_rows))
    random.Random(5).shuffle(rows)
    return list(pairwise(rows))


def mixed():
    """A path, a star and a link."""
    return [*path(16), *((20, row) for row in range(21, 40)), (41, 42)]


def star():
    return [(NUM_LONG // 2, row) for row in range(NUM_LONG) if row != NUM_LONG // 2]


@pytest.mark.parametrize(
    ("links", "num_partitions", "few_links"),
    [
        pytest.param(random_links(1), 3, 0, marks=pytest.mark.long, id="random"),
        pytest.param(mixed(), 4, 0, marks=pytest.mark.long, id="path, star and link"),
        pytest.param(path(NUM_LONG), 4, 0, marks=ONLY_LONG, id="path"),
        pytest.param(star(), 4, 0, marks=ONLY_LONG, id="star"),
        pytest.param(random_links(2), 1, 1 << 22, id="in one task"),
        pytest.param([], 1, 0, id="none"),
    ],
)
def test_components_match_networkx(spark, tmp_path, links, num_partitions, few_links):
    # A link leads from a row to a smaller one.
    links = [(max(link), min(link)) for link in links if link[0] != link[1]]
    table = pa.table(
        [[row for row, _ in links], [row for _, row in links]],
        pa.schema([("row", pa.int64()), ("smallest", pa.int64())]),
    )
    frame = spark.createDataFrame(table).repartition(num_partitions)

    found, rounds = connect(frame, Storage(spark, str(tmp_path)), few_links)
    expected = {}
    for rows in nx.connected_components(nx.Graph(links)):
        expected |= dict.fromkeys(rows, min(rows))
    labels = found.toArrow()
    assert labels.num_rows == len(expected)
    assert (
        dict(zip(labels["row"].to_pylist(), labels["component"].to_pylist(), strict=True))
        == expected
    )
    assert len(rounds) <= 25
