"""One contract for every engine: what Spark answers is what the local engine answers."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import neardup
from neardup.errors import NotStoredError
from support.spark_corpora import agree, vectors

pytestmark = pytest.mark.slow("jobs of Spark")

# A component of more bytes than this goes block by block.
COMPONENT_BYTES = 600


def corpus(seed, num_documents=240):
    """Families of increasingly different texts, exact copies, empty texts and very short ones."""
    rng = random.Random(seed)
    families = [
        [f"w{rng.randrange(300)}" for _ in range(rng.randint(3, 40))]
        for _ in range(num_documents // 8)
    ]
    texts = []
    for _ in range(num_documents):
        words = list(rng.choice(families))
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            words[rng.randrange(len(words))] = f"x{rng.randrange(6)}"
        texts.append(" ".join(words))
    return [None, "", "...", *texts, "", *texts[:20]]


def frame_of(spark, ids, texts, num_partitions, **columns):
    table = pa.table({"id": ids, "text": pa.array(texts, pa.string())} | columns)
    return spark.createDataFrame(table).repartition(num_partitions)


@pytest.mark.parametrize(
    ("num_partitions", "settings", "few_links"),
    [
        pytest.param(2, {"pairs": True, "threshold": 0.6}, 0, marks=pytest.mark.long),
        (
            5,
            {
                "cluster": "components",
                "threshold": 0.5,
                "size": 2,
                "keep": "longest",
                "pairs": True,
            },
            0,
        ),
        (3, {"method": "exact", "threshold": 0.6, "pairs": True}, None),
        pytest.param(
            3, {"method": "exact", "threshold": 0.6, "pairs": True}, 0, marks=pytest.mark.long
        ),
    ],
)
def test_spark_reports_on_a_frame_what_the_local_engine_reports(
    spark, num_partitions, settings, few_links
):
    texts = corpus(num_partitions)
    ids = [f"d{number:05}" for number in range(len(texts))]
    expected = neardup.deduplicate(pa.table({"id": ids, "text": texts}), **settings)
    frame = frame_of(spark, ids, texts, num_partitions)
    # With no links few enough for one task, they are joined by rounds of stars from the first on.
    has_own = few_links is not None
    engine = (
        neardup.SparkEngine(spark, component_bytes=COMPONENT_BYTES, few_links=few_links)
        if has_own
        else None
    )
    found = neardup.deduplicate(frame, engine=engine, **settings)
    agree(found, expected, pairs=settings.get("pairs", False))
    assert [row.doc_id for row in found.rejected.collect()] == ["d00000"]
    assert found.engine["largest_component_bytes"] > COMPONENT_BYTES
    assert (len(found.engine["component_rounds"]) > 1) == has_own


@pytest.mark.parametrize(
    ("column", "make", "kind", "settings"),
    [
        (
            "vector",
            vectors,
            pa.list_(pa.float64()),
            {"measure": "cosine", "threshold": 0.9, "pairs": True},
        ),
        pytest.param(
            "text", lambda: corpus(11), pa.string(), {"threshold": 0.7}, marks=pytest.mark.long
        ),
    ],
    ids=["vectors", "texts"],
)
def test_negative_integer_ids_are_rows(spark, column, make, kind, settings):
    values = make()
    ids = [7 * number - 900 for number in range(len(values))]
    scores = [None if number % 9 == 0 else float(number % 5) for number in ids]
    settings = settings | {"keep": "max:score", "group_column": "group", "method": "lsh"}
    groups = [str(number % 2) for number in ids]
    table = pa.table({"id": ids, column: pa.array(values, kind), "score": scores, "group": groups})
    expected = neardup.deduplicate(table, **settings)
    events = []
    found = neardup.deduplicate(
        spark.createDataFrame(table).repartition(4),
        engine=neardup.SparkEngine(spark, component_bytes=2000),
        progress=events.append,
        **settings,
    )
    agree(found, expected, pairs=settings.get("pairs", False))
    check_events(events, len(values), found.plan.bands)
    assert found.columns == {"id": "id", "keep": "score", "group": "group"} | expected.columns
    assert found.kept.columns == ["doc_id", "id", column, "score", "group"]
    assert all(row.doc_id == row.id for row in found.kept.collect())
    for ask, hint in [
        (lambda: found.mask, "use report.kept"),
        (lambda: neardup.explain(found, ids[3]), "filter report.removed"),
    ]:
        with pytest.raises(NotStoredError, match=rf"stay on its workers[\s\S]*hint: {hint}"):
            ask()


def test_a_frame_without_unique_ids_is_an_error(spark):
    twice = spark.createDataFrame(pa.table({"id": [1, 2, 2], "text": ["a", "b", "c"]}))
    with pytest.raises(
        neardup.NearDupError, match=r"must have a unique value in every row, got 2 in 2 rows"
    ):
        neardup.deduplicate(twice)
    with pytest.raises(neardup.NearDupError, match="needs a column of unique ids"):
        neardup.deduplicate(twice.select("text"))
    with pytest.raises(neardup.NearDupError, match="no column named text, content, body"):
        neardup.deduplicate(twice.select("id"))


def test_spark_rejects_documents_in_memory():
    with pytest.raises(neardup.NearDupError, match="needs files or a Spark DataFrame"):
        neardup.deduplicate(["a", "b"], engine="spark")


def check_events(events, num_documents, num_bands):
    """Progress uses the events of the local engine, and reaches the total of every stage that has one."""
    begun = [event.stage for event in events if type(event).__name__ == "StageStarted"]
    assert begun == ["read", "sketch", "collapse", "link", "verify", "select", "report"]
    done = {event.stage: event for event in events if type(event).__name__ == "StageAdvanced"}
    assert {stage: event.done for stage, event in done.items()} == {
        "sketch": num_documents,
        "link": num_bands,
        "verify": done["verify"].total,
    }
