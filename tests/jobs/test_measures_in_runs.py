"""Runs by other measures: from memory and from files, against brute force, with bad rows, in every mode."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.engines.local import engine as local
from neardup.errors import ConfigError, DataError
from support import oracles
from support.grids import turning_grid

# These tests reject most rows on purpose.
MAX_REJECTED = pytest.mark.filterwarnings(
    r"ignore:\d+ of \d+ rows were rejected; the first is :UserWarning"
)

RNG = np.random.default_rng(21)
CENTRES = RNG.standard_normal((40, 16))
VECTORS = np.concatenate(
    [CENTRES, CENTRES[::2] + 0.15 * RNG.standard_normal((20, 16)), CENTRES[:10] * 2, CENTRES[:5]]
)
BITS = (VECTORS > 0).astype(np.uint8)
BASKETS = [
    {f"item_{at}": round(abs(number), 3) for at, number in enumerate(vector.tolist())}
    for vector in VECTORS
]
SETS = [[f"item_{at}" for at in np.flatnonzero(bits)] for bits in BITS]
SOURCES = {
    "cosine": VECTORS,
    "euclidean": VECTORS,
    "hamming": BITS,
    "weighted": BASKETS,
    "jaccard": SETS,
}
THRESHOLDS = {"cosine": 0.9, "euclidean": 0.4, "hamming": 0.9, "weighted": 0.7, "jaccard": 0.75}
EVERY_MEASURE = pytest.mark.parametrize("measure", SOURCES)
VECTOR_MEASURES = ("cosine", "euclidean", "hamming")


def weighted_jaccard(a, b):
    pairs = [(a.get(item, 0.0), b.get(item, 0.0)) for item in sorted(a.keys() | b.keys())]
    return math.fsum(map(min, pairs)) / math.fsum(map(max, pairs))


SIMILARITIES = {
    "cosine": lambda a, b: float(a @ b / math.sqrt((a @ a) * (b @ b))),
    "euclidean": lambda a, b: 1 / (1 + math.dist(a, b)),
    "hamming": lambda a, b: int((a == b).sum()) / a.size,
    "weighted": weighted_jaccard,
    "jaccard": lambda a, b: neardup.jaccard(a, b),
}


def true_pairs(measure):
    source = SOURCES[measure]
    found = {}
    for b in range(len(source)):
        for a in range(b):
            similarity = min(1.0, SIMILARITIES[measure](source[a], source[b]))
            assert abs(similarity - THRESHOLDS[measure]) > 1e-9 or measure in ("hamming", "jaccard")
            if similarity >= THRESHOLDS[measure]:
                found[a, b] = similarity
    return found


def given(measure, source=None):
    source = SOURCES[measure] if source is None else source
    return {"items": source} if measure in ("weighted", "jaccard") else {"source": source}


def run(measure, source=None, *, call=neardup.find_pairs, **settings):
    # A recall this high finds all of a few hundred pairs: a missing pair has another cause.
    settings = {
        "measure": measure,
        "threshold": THRESHOLDS[measure],
        "method": "lsh",
        "recall": 0.9998,
        "num_perm": 1024,
    } | settings
    return call(**given(measure, source), **settings)


def pairs_of(report):
    return {(pair["doc_a"], pair["doc_b"]): pair["similarity"] for pair in report.pairs.to_pylist()}


@EVERY_MEASURE
def test_pairs_match_brute_force(measure):
    found = pairs_of(run(measure))
    expected = true_pairs(measure)
    assert len(expected) > 15
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-14) for pair in expected)


@EVERY_MEASURE
@pytest.mark.parametrize("cluster", ["leader", "components"])
@pytest.mark.parametrize("keep", ["first", "last"])
def test_removed_documents_match_the_oracle(measure, cluster, keep):
    report = run(measure, call=neardup.deduplicate, cluster=cluster, keep=keep)
    pairs = true_pairs(measure)
    order = list(range(len(VECTORS)))
    order = order if keep == "first" else order[::-1]
    found = {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in report.removed.to_pylist()
    }
    if cluster == "leader":
        expected = oracles.leaders(order, pairs)
        assert {row: kept for row, (kept, _) in found.items()} == {
            row: kept for row, (kept, _) in expected.items()
        }
    for row, (kept, similarity) in found.items():
        exact = min(1.0, SIMILARITIES[measure](SOURCES[measure][row], SOURCES[measure][kept]))
        assert similarity == pytest.approx(exact, abs=1e-14)
        assert similarity >= THRESHOLDS[measure] or cluster == "components"
    assert report.kept.num_rows + len(found) == len(VECTORS)


@EVERY_MEASURE
def test_pairs_do_not_depend_on_threads(measure):
    one, two = (run(measure, threads=threads) for threads in (1, 3))
    assert one.pairs.equals(two.pairs)
    assert one.pairs.to_pylist() == two.pairs.to_pylist()


@pytest.mark.parametrize("measure", VECTOR_MEASURES)
def test_every_source_of_vectors_gives_the_same_result(measure):
    array = SOURCES[measure]
    lists = array.tolist()
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
    sources = [
        lists,
        list(array),
        array.astype(np.float64),
        np.asfortranarray(array),
        np.concatenate([array, array])[: len(array)],
        fixed,
        pa.chunked_array([fixed.slice(0, 7), fixed.slice(7)]),
        pa.array(lists, pa.list_(pa.float64())),
        pa.table({"id": [f"v{row}" for row in range(len(array))], "vector": fixed}),
        pd.DataFrame({"embedding": lists}),
        pl.DataFrame({"embedding": lists}),
        dict(enumerate(lists)),
    ]
    expected = run(measure)
    for source in sources:
        found = run(measure, source)
        assert found.plan == expected.plan
        assert (
            found.pairs.column("similarity").to_pylist()
            == expected.pairs.column("similarity").to_pylist()
        )
        assert [row["doc_id"] for row in found.clusters.to_pylist()] == found.clusters.column(
            "doc_id"
        ).to_pylist()
    assert found.config.dimension == array.shape[1]


def test_32_bit_floats_are_compared_as_64_bit_floats():
    single = VECTORS.astype(np.float32)
    assert pairs_of(run("cosine", single)) == pairs_of(run("cosine", single.astype(np.float64)))


def test_bits_of_any_type_and_packed_bits_give_the_same_result():
    expected = run("hamming").pairs.to_pylist()
    for source in (BITS.astype(bool), BITS.astype(np.int64), BITS.astype(bool).tolist()):
        assert run("hamming", source).pairs.to_pylist() == expected
    packed = np.packbits(BITS, axis=1)
    for source in (packed, pa.array([row.tobytes() for row in packed]), pa.array(packed.tolist())):
        assert run("hamming", source, packed=True).pairs.to_pylist() == expected


def test_a_distance_in_bits_is_known_when_the_bits_are():
    report = neardup.find_pairs(BITS, measure="hamming", distance=1)
    assert report.plan.distance == 1
    assert report.config.threshold == 1 - 1 / 16
    assert min(report.pairs.column("similarity").to_pylist()) == 1 - 1 / 16


def test_every_source_of_items_gives_the_same_result():
    expected = run("jaccard").pairs.to_pylist()
    numbers = [np.flatnonzero(bits).tolist() for bits in BITS]
    by_number = run("jaccard", numbers).pairs.to_pylist()
    assert [pair["similarity"] for pair in by_number] == [pair["similarity"] for pair in expected]
    for source in (list(map(set, SETS)), list(map(tuple, SETS)), pa.array(SETS)):
        assert run("jaccard", source).pairs.to_pylist() == expected
    for source in (
        [np.array(row) for row in numbers],
        [[str(item) for item in row] for row in numbers],
    ):
        assert run("jaccard", source).pairs.to_pylist() == by_number
    named = run("jaccard", {f"c{row}": items for row, items in enumerate(SETS)})
    assert named.pairs.column("similarity").to_pylist() == [pair["similarity"] for pair in expected]
    assert set(named.pairs.column("doc_a").to_pylist()) <= {f"c{row}" for row in range(len(SETS))}
    table = pa.table({"basket": SETS})
    assert (
        neardup.find_pairs(
            table, items_column="basket", threshold=0.75, recall=0.9998, num_perm=1024
        ).pairs.to_pylist()
        == expected
    )


def test_repeated_items_count_with_multiset():
    baskets = [["tea", "tea", "milk"], ["tea", "milk"], ["milk", "tea"]]
    assert pairs_of(neardup.find_pairs(items=baskets, threshold=0.6)) == {
        (0, 1): 1.0,
        (0, 2): 1.0,
        (1, 2): 1.0,
    }
    found = pairs_of(
        neardup.find_pairs(
            items=baskets, threshold=0.6, multiset=True, num_perm=1024, recall=0.9998
        )
    )
    assert found == {(0, 1): 2 / 3, (0, 2): 2 / 3, (1, 2): 1.0}


def test_every_source_of_weights_gives_the_same_result():
    expected = run("weighted").pairs.to_pylist()
    pairs = [list(basket.items()) for basket in BASKETS]
    structs = [[{"item": item, "weight": weight} for item, weight in row] for row in pairs]
    for source in (pairs, pa.array(pairs, pa.map_(pa.string(), pa.float64())), pa.array(structs)):
        assert run("weighted", source).pairs.to_pylist() == expected


BAD_VECTORS = {
    "cosine": [
        ([math.nan, 1.0], "element 1 of the vector is NaN"),
        ([1.0, -math.inf], "element 2 of the vector is infinite"),
        ([0.0, -0.0], "vector is zero, so it has no direction"),
        ([1.0], "vector has 1 numbers, not 2"),
        ([1.0, 2.0, 3.0], "vector has 3 numbers, not 2"),
        ([], "vector is empty"),
        (None, "vector is null"),
        ([1.0, None], "vector contains a null"),
    ],
    "euclidean": [
        ([1.0, math.inf], "element 2 of the vector is infinite"),
        (None, "vector is null"),
    ],
    "hamming": [
        ([1, 2], "element 2 of the vector is 2, neither 0 nor 1"),
        ([0.5, 1], "element 1 of the vector is 0.5, neither 0 nor 1"),
        ([1, 0, 1], "vector has 3 bits, not 2"),
    ],
}


@MAX_REJECTED
@pytest.mark.parametrize("measure", BAD_VECTORS)
def test_only_the_bad_vector_is_rejected_with_its_reason(measure):
    good = [[1, 0], [1, 0], [0, 1]]
    bad = [vector for vector, _ in BAD_VECTORS[measure]]
    report = neardup.find_pairs([*good, *bad], measure=measure)
    assert report.rejected.column("reason").to_pylist() == [
        reason for _, reason in BAD_VECTORS[measure]
    ]
    assert report.rejected.column("row").to_pylist() == list(range(3, 3 + len(bad)))
    assert pairs_of(report) == {(0, 1): 1.0}
    assert report.documents == report.num_kept + report.num_removed + report.num_rejected
    for vector, reason in BAD_VECTORS[measure]:
        with pytest.raises(DataError, match=reason):
            neardup.find_pairs([*good, vector], measure=measure, strict=True)


@MAX_REJECTED
def test_a_bad_vector_comes_first_and_does_not_set_the_dimension():
    report = neardup.find_pairs([None, [], [1.0, 2.0], [1.0], [2.0, 4.0]], measure="cosine")
    assert report.config.dimension == 2
    assert report.rejected.column("row").to_pylist() == [0, 1, 3]


@MAX_REJECTED
def test_mixed_types_are_rejected_row_by_row():
    report = neardup.find_pairs([[1.0, 2.0], "a text", [1.0, "x"], 7, {"a": 1}], measure="cosine")
    reasons = report.rejected.column("reason").to_pylist()
    assert report.rejected.column("row").to_pylist() == [1, 2, 3, 4]
    assert reasons[0] == "vector is not a list of numbers: 'a text'"
    assert all(reason.startswith("vector is not a list of numbers") for reason in reasons)


BAD_ITEMS = [
    ({"tea": -1}, "the weight of item 'tea' is -1, below 0"),
    ({"tea": math.nan}, "the weight of item 'tea' is NaN"),
    ({"tea": math.inf}, "the weight of item 'tea' is infinite"),
    ({"tea": "much"}, "items are not pairs of item and weight"),
    (7, "items are not pairs of item and weight"),
    (None, "items are null"),
    ([("tea", 1, 2)], "items are not pairs of item and weight"),
    ({"a\x1fb": 1}, r"item 'a\\x1fb' holds the character"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_ITEMS, ids=str)
def test_bad_weights_are_rejected_with_their_reason(bad, reason):
    report = neardup.find_pairs(items=[{"tea": 1}, bad, {"tea": 1}], measure="weighted")
    assert pairs_of(report) == {(0, 2): 1.0}
    assert report.rejected.column("row").to_pylist() == [1]
    with pytest.raises(DataError, match=reason):
        neardup.find_pairs(items=[bad], measure="weighted", strict=True)


@MAX_REJECTED
def test_bad_items_are_rejected_with_their_reason():
    report = neardup.find_pairs(items=[["tea"], 7, [["nested"]], None, ["tea"]])
    assert report.rejected.column("reason").to_pylist() == [
        "items are int, not a collection",
        "an item is list, neither text nor a number: ['nested']",
        "items are null",
    ]
    assert pairs_of(report) == {(0, 4): 1.0}


def test_documents_without_items_are_similar_to_nothing():
    assert neardup.find_pairs(items=[[], [], ["tea"]]).pairs.num_rows == 0
    assert neardup.find_pairs(items=[{}, {"tea": 0}, {}], measure="weighted").pairs.num_rows == 0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: neardup.find_pairs(), DataError, "pass either a source or items, got neither"),
        (
            lambda: neardup.find_pairs(["a"], items=[["a"]]),
            DataError,
            "pass either a source or items, got both",
        ),
        (
            lambda: neardup.find_pairs(["a"], measure="weighted"),
            ConfigError,
            "the measure 'weighted' compares items",
        ),
        (
            lambda: neardup.find_pairs(VECTORS),
            DataError,
            r"`source` must be a one-dimensional array of texts",
        ),
        (
            lambda: neardup.find_pairs(VECTORS[0], measure="cosine", strict=True),
            DataError,
            "not a list of numbers",
        ),
        (
            lambda: neardup.find_pairs(VECTORS[None], measure="cosine"),
            DataError,
            "an array of vectors, one per row",
        ),
        (
            lambda: neardup.find_pairs(VECTORS.astype(str), measure="cosine"),
            DataError,
            "an array of numbers or bits",
        ),
        (
            lambda: neardup.find_pairs(pa.table({"x": [[1.0]]}), measure="cosine"),
            DataError,
            "no column named vector, embedding in the source",
        ),
        (
            lambda: neardup.compare("a", "b", measure="cosine"),
            ConfigError,
            "texts are compared by 'jaccard'",
        ),
        (
            lambda: neardup.signatures(["a"], measure="cosine"),
            ConfigError,
            "texts are compared by 'jaccard'",
        ),
    ],
)
def test_invalid_sources_and_settings_are_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_at_threshold_equals_a_run_at_that_threshold():
    report = run("cosine", cluster="components")
    again = report.at_threshold(0.99)
    expected = {pair: value for pair, value in pairs_of(report).items() if value >= 0.99}
    assert pairs_of(again) == expected
    assert len(again.removed) < len(report.removed)


def write(path, measure):
    """A file with the source of a measure, in the column that it takes, or in `basket`."""
    source = SOURCES[measure]
    rows = source.tolist() if measure in VECTOR_MEASURES else source
    name = "vector" if measure in VECTOR_MEASURES else "basket"
    ids = [f"d{row}" for row in range(len(rows))]
    if path.suffix == ".parquet":
        kind = pa.map_(pa.string(), pa.float64()) if measure == "weighted" else None
        column = pa.array(
            [list(row.items()) for row in rows] if measure == "weighted" else rows, kind
        )
        pq.write_table(pa.table({"id": ids, name: column}), path, row_group_size=20)
    elif path.suffix == ".jsonl":
        lines = (json.dumps({"id": key, name: row}) for key, row in zip(ids, rows, strict=True))
        path.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        if measure == "weighted":
            cells = [" ".join(f"{item}:{weight!r}" for item, weight in row.items()) for row in rows]
        elif measure == "jaccard":
            cells = [" ".join(row) for row in rows]
        else:
            cells = [" ".join(map(repr, row)) for row in rows]
        lines = [f"{key},{cell}" for key, cell in zip(ids, cells, strict=True)]
        path.write_text("\n".join([f"id,{name}", *lines]) + "\n", "utf-8")


@EVERY_MEASURE
@pytest.mark.parametrize("ending", [".parquet", ".jsonl", ".csv"])
def test_files_of_every_format_give_the_same_result_as_memory(measure, ending, tmp_path):
    path = tmp_path / f"input{ending}"
    write(path, measure)
    settings = {
        "measure": measure,
        "threshold": THRESHOLDS[measure],
        "recall": 0.9998,
        "num_perm": 1024,
    }
    if measure in ("weighted", "jaccard"):
        settings["items_column"] = "basket"
    report = neardup.find_pairs(path, **settings)
    found = {
        (int(pair["doc_a"][1:]), int(pair["doc_b"][1:])): pair["similarity"]
        for pair in report.pairs.to_pylist()
    }
    assert found == pairs_of(run(measure))
    kept = neardup.deduplicate(path, out=tmp_path / "out", **settings)
    assert kept.num_removed == run(measure, call=neardup.deduplicate).num_removed
    assert (tmp_path / "out" / "kept" / path.name).exists()


def test_vectors_of_other_files_must_fit_the_first(tmp_path):
    for name, vectors in (("a", [[1.0, 2.0], [2.0, 4.0]]), ("b", [[1.0, 2.0, 3.0], [3.0, 6.0]])):
        lines = (json.dumps({"embedding": vector}) for vector in vectors)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), "utf-8")
    report = neardup.deduplicate(tmp_path, measure="cosine")
    assert report.rejected.to_pylist() == [
        {"file": "b.jsonl", "row": 1, "reason": "vector has 3 numbers, not 2"}
    ]
    assert report.num_removed == 2
    assert report.columns == {"vector": "embedding"}


@MAX_REJECTED
def test_bad_rows_of_files_are_rejected_with_their_reason(tmp_path):
    lines = [
        '{"vector": [1, 0]}',
        '{"vector": null}',
        '{"vector": "x"}',
        '{"vector": [1, "x"]}',
        '{"v": 1}',
    ]
    lines += [
        '{"vector": [0, 0]}',
        '{"vector": [1]}',
        '{"vector": [1, true]}',
        "{",
        '{"vector": [2, 0]}',
    ]
    (tmp_path / "input.jsonl").write_text("\n".join(lines), "utf-8")
    report = neardup.deduplicate(tmp_path / "input.jsonl", measure="cosine")
    assert [row["reason"] for row in report.rejected.to_pylist()][:-1] == [
        "vector is null",
        "vector is text, not a list of numbers",
        "element 2 of the vector is text",
        "no column 'vector'",
        "vector is zero, so it has no direction",
        "vector has 1 numbers, not 2",
        "element 2 of the vector is true or false",
    ]
    assert report.num_removed == 1
    (tmp_path / "bad.csv").write_text('id,vector\na,"[1, 2]"\nb,1 x\nc,"2,4"\n', "utf-8")
    report = neardup.deduplicate(tmp_path / "bad.csv", measure="cosine")
    assert [row["reason"] for row in report.rejected.to_pylist()] == [
        "vector is not a list of numbers: could not convert string to float: 'x'"
    ]
    assert report.num_removed == 1


@pytest.mark.parametrize(
    ("name", "content", "settings", "message"),
    [
        ("a.txt", "text", {"measure": "cosine"}, "compares vectors, but .* is plain text"),
        ("a.csv", "id,x\n1,2\n", {"measure": "cosine"}, "has no column named vector, embedding"),
        (
            "a.csv",
            "id,x\n1,2\n",
            {"measure": "cosine", "vector_column": "y"},
            "`vector_column` names 'y', a column that no row",
        ),
        ("a.csv", "id,x\n1,2\n", {"measure": "weighted"}, "the measure 'weighted' compares items"),
    ],
)
def test_files_without_what_the_measure_needs_are_an_error(
    name, content, settings, message, tmp_path
):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises((ConfigError, DataError), match=message):
        neardup.deduplicate(tmp_path / name, **settings)


@pytest.mark.parametrize(
    ("measure", "settings"), turning_grid(SOURCES, [{"pairs": True}, {}, {"cluster": "components"}])
)
def test_blocks_and_against_give_the_same_result_as_one_run(
    measure, settings, tmp_path, monkeypatch
):
    """Components of many blocks, with a limit of a few documents per block."""
    write(tmp_path / "input.parquet", measure)
    common = {"measure": measure, "threshold": THRESHOLDS[measure]} | settings
    if measure in ("weighted", "jaccard"):
        common["items_column"] = "basket"
    whole = neardup.deduplicate(tmp_path / "input.parquet", out=tmp_path / "whole", **common)
    plan_shelves = local.plan_shelves
    monkeypatch.setattr(
        local,
        "plan_shelves",
        lambda members, size, limit: plan_shelves(members, size, 20_000),  # noqa: ARG005
    )
    blocks = neardup.deduplicate(tmp_path / "input.parquet", out=tmp_path / "blocks", **common)
    assert blocks.removed.to_pylist() == whole.removed.to_pylist()
    if "pairs" in settings:
        assert blocks.pairs.to_pylist() == whole.pairs.to_pylist()
    references = neardup.deduplicate(
        tmp_path / "input.parquet", out=tmp_path / "ahead", against=[tmp_path / "whole"], **common
    )
    if not settings.get("cluster"):
        assert references.num_kept == 0
        assert min(references.removed.column("similarity").to_pylist()) >= THRESHOLDS[measure]


def test_a_small_customer_corpus_is_found_exactly(tmp_path):
    """Customers by products, as pairs of item Jaccard >= 0.4 by brute force."""
    rng = np.random.default_rng(8)
    popular = 1 / (1 + np.arange(400))
    customers = [
        sorted(set(rng.choice(400, size=rng.integers(1, 12), p=popular / popular.sum()).tolist()))
        for _ in range(300)
    ]
    customers += [[*basket[1:], 400] for basket in customers[:60]]
    expected = {
        (a, b): neardup.jaccard(customers[a], customers[b])
        for b in range(len(customers))
        for a in range(b)
        if neardup.jaccard(customers[a], customers[b]) >= 0.4
    }
    settings = {"threshold": 0.4, "recall": 0.9998, "num_perm": 1024}
    assert len(expected) > 100
    assert pairs_of(neardup.find_pairs(items=customers, **settings)) == expected
    texts = pa.table({"products": [" ".join(map(str, basket)) for basket in customers]})
    pq.write_table(texts, tmp_path / "customers.parquet")
    report = neardup.find_pairs(tmp_path / "customers.parquet", items_column="products", **settings)
    assert report.num_pairs == len(expected)
