"""Sources of plain Python and of matrices: dicts, (id, text) tuples, items as bool or sparse, vectors of weights."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError, NotStoredError
from support import oracles

FOX = "the quick brown fox jumps over the lazy dog"
SEA = "an entirely different sentence about the sea"


@pytest.fixture
def sparse():
    import scipy.sparse

    return scipy.sparse


def reasons(report):
    return {row["row"]: row["reason"] for row in report.rejected.to_pylist()}


# dicts and tuples


def test_a_list_of_dicts_is_a_table():
    rows = [
        {"url": "a", "body": FOX, "score": 1},
        {"url": "b", "body": SEA},
        {"score": 3, "url": "c", "body": FOX},
    ]
    report = neardup.deduplicate(rows, keep="max:score")
    assert report.removed.to_pylist() == [{"doc_id": "a", "kept_id": "c", "similarity": 1.0}]
    assert report.kept.to_pylist() == [
        {"doc_id": "b", "url": "b", "body": SEA, "score": None},
        {"doc_id": "c", "url": "c", "body": FOX, "score": 3},
    ]
    assert report.columns == {"text": "body", "id": "url"}


def test_dicts_give_what_a_table_of_them_gives():
    texts = oracles.random_corpus(7, 200)
    rows = [{"id": f"d{row}", "text": text, "lang": row % 2} for row, text in enumerate(texts)]
    settings = {"threshold": 0.5, "size": 2, "group_column": "lang", "pairs": True}
    in_dicts, in_table = (
        neardup.deduplicate(source, **settings) for source in (rows, pa.Table.from_pylist(rows))
    )
    assert in_dicts.num_removed > 20
    for name in ("kept", "removed", "pairs", "clusters"):
        assert getattr(in_dicts, name).to_pylist() == getattr(in_table, name).to_pylist()


def test_rows_that_are_not_dicts_and_values_that_are_not_texts_are_rejected():
    rows = [
        {"id": "a", "text": FOX},
        None,
        "text",
        {"id": "b"},
        {"id": "c", "text": 3},
        {"id": "d", "text": FOX},
    ]
    rows += [{"id": "e", "text": SEA}] * 4
    report = neardup.deduplicate(rows)
    assert reasons(report) == {
        1: "row is null",
        2: "row is str, not a dict",
        3: "text is null",
        4: "text is int, not str: 3",
    }
    assert report.removed.column("doc_id").to_pylist() == ["d", "e", "e", "e"]
    with pytest.raises(DataError, match="row 1 cannot be used: row is null"):
        neardup.deduplicate(rows, strict=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"title": FOX}], r"no column named text, content, body[\s\S]*text_column='title'"),
        (
            [{"text": FOX, "score": 1}, {"text": FOX, "score": "high"}],
            "'score' of the dicts cannot be converted",
        ),
        ([{1: FOX}], "names of columns must be strings, got 1"),
        ([{"id": "a", "text": FOX}, {"text": FOX}], "the id of row 1 is null"),
    ],
)
def test_dicts_that_are_not_a_table_are_an_error(rows, message):
    with pytest.raises(DataError, match=message):
        neardup.deduplicate(rows)


def test_dicts_hold_vectors_and_items_too():
    vectors = [
        {"name": "p", "embedding": [1.0, 2.0]},
        {"name": "q", "embedding": [1.0, 2.0]},
        {"embedding": "far"},
    ]
    report = neardup.deduplicate(vectors, measure="cosine")
    assert report.kept.to_pylist() == [{"doc_id": 0, "name": "p", "embedding": [1.0, 2.0]}]
    assert reasons(report) == {2: "vector is not a list of numbers: 'far'"}
    baskets = [{"who": "ann", "bought": ["tea", "jam"]}, {"who": "bob", "bought": ["jam", "tea"]}]
    report = neardup.deduplicate(baskets, items_column="bought", id_column="who")
    assert report.removed.to_pylist() == [{"doc_id": "bob", "kept_id": "ann", "similarity": 1.0}]


def test_tuples_of_id_and_text_give_the_ids():
    report = neardup.deduplicate([("a", FOX), ("b", SEA), ("c", FOX), ("d", None), ("e",), "f"])
    assert report.removed.to_pylist() == [{"doc_id": "c", "kept_id": "a", "similarity": 1.0}]
    assert report.kept.to_pylist() == [{"doc_id": "a", "text": FOX}, {"doc_id": "b", "text": SEA}]
    assert reasons(report) == {
        3: "text is null",
        4: "row is tuple of 1, not an (id, text) tuple",
        5: "row is str, not an (id, text) tuple",
    }
    with pytest.raises(ConfigError, match=r"`ids` and the \(id, text\) tuples both give the ids"):
        neardup.deduplicate([("a", FOX)], ids=["b"])


def test_tuples_give_ids_of_items_and_vectors_unless_both_parts_are_data():
    vectors = [("p", [1.0, 2.0]), ("q", np.array([1.0, 2.0]))]
    assert neardup.find_pairs(vectors, measure="cosine").pairs.column("doc_b").to_pylist() == ["q"]
    assert neardup.find_pairs([(1, 2), (1, 2)], measure="cosine").pairs.column(
        "doc_b"
    ).to_pylist() == [1]
    baskets = [("ann", ["tea", "jam"]), ("bob", {"jam", "tea"})]
    assert neardup.find_pairs(items=baskets).pairs.column("doc_b").to_pylist() == ["bob"]
    assert neardup.find_pairs(items=[("tea", "jam"), ("jam", "tea")]).pairs.column(
        "doc_b"
    ).to_pylist() == [1]
    weights = [("ann", {"tea": 2.0}), ("bob", [("tea", 2.0)])]
    assert neardup.find_pairs(items=weights, measure="weighted").pairs.column(
        "doc_b"
    ).to_pylist() == ["bob"]
    pairs_of_weights = [(("tea", 1.0), ("jam", 2.0)), (("tea", 1.0), ("jam", 2.0))]
    assert neardup.find_pairs(items=pairs_of_weights, measure="weighted").pairs.column(
        "doc_b"
    ).to_pylist() == [1]


# repeated ids


def test_repeated_ids_are_distinguished_by_row():
    report = neardup.find_pairs([FOX, SEA, FOX, SEA, "x"], ids=["u", "u", "u", "v", "w"])
    assert report.removed.to_pylist() == [
        {"doc_id": "u", "kept_id": "u", "similarity": 1.0, "row": 2, "kept_row": 0},
        {"doc_id": "v", "kept_id": "u", "similarity": 1.0, "row": 3, "kept_row": 1},
    ]
    assert report.pairs.select(["row_a", "row_b"]).to_pylist() == [
        {"row_a": 0, "row_b": 2},
        {"row_a": 1, "row_b": 3},
    ]
    assert report.mask.tolist() == [True, True, False, False, True]
    assert report.kept.column("doc_id").to_pylist() == ["u", "u", "w"]
    assert report.largest_clusters().column("documents").to_pylist() == [2, 2]
    assert report.at_threshold(0.9).removed.column("kept_row").to_pylist() == [0, 1]
    audit = neardup.audit(report)
    assert (audit.recall, audit.pairs, audit.precision, audit.missed.num_rows) == (1.0, 2, 1.0, 0)


def test_tables_have_no_row_column_if_ids_are_unique():
    report = neardup.find_pairs([FOX, FOX], ids=["u", "v"])
    assert report.removed.column_names == ["doc_id", "kept_id", "similarity"]
    assert report.pairs.column_names == ["doc_a", "doc_b", "similarity"]


# mask and kept


@pytest.mark.parametrize("keep", ["first", "last"])
def test_mask_is_true_for_every_kept_row(keep):
    texts = [FOX, None, FOX.upper(), SEA, 3, ""]
    report = neardup.deduplicate(texts, keep=keep)
    assert report.mask.dtype == np.bool_
    assert report.mask.tolist() == [keep == "first", False, keep == "last", True, False, True]
    assert report.kept.column("text").to_pylist() == [
        text for text, is_kept in zip(texts, report.mask, strict=True) if is_kept
    ]
    assert neardup.deduplicate([]).mask.tolist() == []


def test_mask_filters_a_pandas_frame_and_a_matrix():
    import pandas as pd

    frame = pd.DataFrame({"text": [FOX, FOX, SEA]}, index=[7, 8, 9])
    assert frame[neardup.deduplicate(frame).mask].index.tolist() == [7, 9]
    matrix = np.array([[1.0, 2.0], [9.0, 0.1], [1.0, 2.0]])
    assert (
        matrix[neardup.deduplicate(matrix, measure="cosine").mask].tolist() == matrix[:2].tolist()
    )


def test_mask_of_files_counts_rows_of_all_files_blank_and_rejected_ones_too(tmp_path):
    lines = [f'{{"text": "{text}"}}' for text in (FOX, SEA)]
    (tmp_path / "a.jsonl").write_text(f"{lines[0]}\n\nnot json\n{lines[0]}\n{lines[1]}\n", "utf-8")
    (tmp_path / "b.jsonl").write_text(f"{lines[1]}\n{lines[0].replace('fox', 'cat')}\n", "utf-8")
    expected = [True, False, False, False, True, False, True]
    report = neardup.deduplicate(
        tmp_path / "*.jsonl", out=tmp_path / "clean", pairs=True, size=2, threshold=0.6
    )
    assert report.mask.tolist() == [*expected[:-1], False]
    assert report.at_threshold(0.9).mask.tolist() == expected
    in_memory = neardup.deduplicate(tmp_path / "b.jsonl", against=tmp_path / "a.jsonl")
    assert in_memory.mask.tolist() == [False, True]


def test_mask_of_a_list_of_pairs_in_files_says_what_to_call(tmp_path):
    (tmp_path / "a.txt").write_text(FOX, "utf-8")
    with pytest.raises(
        NotStoredError,
        match=r"lists pairs and removes nothing[\s\S]*hint: call neardup.deduplicate",
    ):
        _ = neardup.find_pairs(tmp_path / "a.txt").mask


def test_kept_has_doc_id_beside_the_columns_of_the_source():
    table = pa.table(
        {"id": ["a", "b"], "doc_id": ["x", "y"], "doc_id_": [1, 2], "text": [FOX, SEA]}
    )
    assert neardup.deduplicate(table).kept.column_names == [
        "doc_id",
        "id",
        "doc_id__",
        "doc_id_",
        "text",
    ]
    assert neardup.deduplicate(table, id_column="doc_id").kept.equals(table)
    again = neardup.deduplicate(neardup.deduplicate([FOX, FOX, SEA]).kept)
    assert again.kept.to_pylist() == [{"doc_id": 0, "text": FOX}, {"doc_id": 2, "text": SEA}]


# matrices


def random_matrix(seed=3, rows=60, columns=25):
    rng = np.random.default_rng(seed)
    matrix = rng.random((rows, columns)) < 0.25
    matrix[rows // 2 :] = matrix[: rows - rows // 2]
    matrix[rows // 2 :, 0] ^= rng.random(rows - rows // 2) < 0.5
    matrix[5] = False
    return matrix


def as_items(matrix):
    return [np.flatnonzero(row).tolist() for row in matrix]


def pairs_of(**arguments):
    return neardup.find_pairs(threshold=0.6, method="lsh", num_perm=256, **arguments).pairs


@pytest.mark.parametrize(
    "kind", ["bool", "Fortran order", "csr", "csc", "coo", "sparse array", "counts", "stored zeros"]
)
def test_a_matrix_of_items_gives_what_lists_of_column_numbers_give(kind, sparse):
    matrix = random_matrix()
    given = {
        "bool": lambda: matrix,
        "Fortran order": lambda: np.asfortranarray(matrix),
        "csr": lambda: sparse.csr_matrix(matrix),
        "csc": lambda: sparse.csc_matrix(matrix),
        "coo": lambda: sparse.coo_matrix(matrix),
        "sparse array": lambda: sparse.csr_array(matrix),
        "counts": lambda: sparse.csr_matrix(matrix * 3),
        "stored zeros": lambda: sparse.csr_matrix(
            (matrix.reshape(-1).astype(float), np.tile(np.arange(25), 60), np.arange(61) * 25),
            shape=matrix.shape,
        ),
    }[kind]()
    expected = pairs_of(items=as_items(matrix))
    assert expected.num_rows > 20
    assert pairs_of(items=given).equals(expected)


def test_a_sparse_matrix_is_not_modified(sparse):
    entries = sparse.csr_matrix(
        (np.ones(4), np.array([3, 1, 1, 0]), np.array([0, 3, 4])), shape=(2, 5)
    )
    before = entries.indices.tolist(), entries.data.tolist()
    neardup.find_pairs(items=entries)
    assert (entries.indices.tolist(), entries.data.tolist()) == before


def test_whole_numbers_are_items_but_a_matrix_of_0_and_1_is_an_error_with_a_hint():
    matrix = random_matrix()
    for kind in (np.int64, np.uint8):
        with pytest.raises(
            DataError, match=r"matrix of 0 and 1[\s\S]*hint: pass matrix.astype\(bool\)"
        ):
            neardup.find_pairs(items=matrix.astype(kind))
    numbers = np.array([[1, 2, 3], [3, 2, 1], [7, 8, 9]])
    assert neardup.find_pairs(items=numbers).pairs.to_pylist() == [
        {"doc_a": 0, "doc_b": 1, "similarity": 1.0}
    ]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            np.ones((2, 2)),
            r"matrix of bool, or of weights with measure='weighted', got float64[\s\S]*hint: matrix != 0",
        ),
        (np.array([["a", "b"]]), "matrix of bool or numbers, got the type <U1"),
        (np.ma.array([[True, False]], mask=[[True, False]]), "masked entries"),
    ],
)
def test_matrices_that_do_not_hold_items_are_errors(matrix, message):
    with pytest.raises(DataError, match=message):
        neardup.find_pairs(items=matrix)
    with pytest.raises(ConfigError, match=r"`multiset`[\s\S]*measure='weighted'"):
        neardup.find_pairs(items=matrix, multiset=True)


def test_a_sparse_matrix_with_an_entry_that_is_not_a_number_is_an_error(sparse):
    with pytest.raises(DataError, match="NaN or infinite"):
        neardup.find_pairs(items=sparse.csr_matrix(np.array([[np.nan, 1.0]])))


# vectors of weights


@pytest.mark.parametrize("kind", ["array", "source", "integers", "sparse", "lists", "Arrow"])
def test_weight_vectors_equal_dicts_of_position_to_weight(kind, sparse):
    rng = np.random.default_rng(5)
    weights = random_matrix() * rng.integers(1, 4, (60, 25))
    weights[40] = weights[3]
    dicts = [
        {str(place): float(weight) for place, weight in enumerate(row) if weight} for row in weights
    ]
    given = {
        "array": lambda: {"items": weights.astype(np.float64)},
        "source": lambda: {"source": weights.astype(np.float32)},
        "integers": lambda: {"items": weights},
        "sparse": lambda: {"items": sparse.csc_matrix(weights)},
        "lists": lambda: {"items": weights.tolist()},
        "Arrow": lambda: {"items": pa.array(weights.tolist())},
    }[kind]()
    settings = {"measure": "weighted", "threshold": 0.3}
    expected = neardup.find_pairs(items=dicts, **settings).pairs
    assert expected.num_rows > 3
    assert neardup.find_pairs(**given, **settings).pairs.equals(expected)


def test_invalid_weights_are_rejected_with_their_reasons():
    weights = np.array([[1.0, 0.0, 2.0], [1.0, -0.5, 0.0], [np.nan, 1.0, 0.0], [1.0, 0.0, 2.0]])
    report = neardup.find_pairs(weights, measure="weighted")
    assert reasons(report) == {
        1: "the weight of item '1' is -0.5, below 0",
        2: "the weight of item '0' is NaN",
    }
    assert report.pairs.to_pylist() == [{"doc_a": 0, "doc_b": 3, "similarity": 1.0}]


# signatures of items


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
def test_signatures_of_items_estimate_and_merge(sketch):
    sets = [{"tea", "milk", "jam"}, {"tea", "milk", "nails"}, set()]
    left, right, nothing, union = neardup.signatures(
        items=[*sets, sets[0] | sets[1]], sketch=sketch, num_perm=1024
    )
    assert abs((left == right).mean() - 0.5) < 0.07
    assert (nothing == 2**32 - 1).all()
    assert np.array_equal(neardup.merge_signatures(left, right), union)
    assert np.array_equal(neardup.merge_signatures(left, nothing), left)


def test_signatures_of_items_are_those_of_a_matrix_and_need_one_source():
    matrix = random_matrix()
    assert np.array_equal(
        neardup.signatures(items=matrix), neardup.signatures(items=as_items(matrix))
    )
    with pytest.raises(DataError, match="pass either a source or items, got both"):
        neardup.signatures([FOX], items=[["a"]])


def test_neighbours_take_matrices_as_items_and_as_queries(sparse):
    matrix = random_matrix()
    expected = neardup.neighbours(items=as_items(matrix), queries=as_items(matrix[:7]), k=2)
    assert neardup.neighbours(items=matrix, queries=sparse.csr_matrix(matrix[:7]), k=2).equals(
        expected
    )


def test_scipy_is_not_imported_to_recognise_a_source():
    program = (
        "import sys; import numpy as np; import neardup; neardup.find_pairs(items=np.eye(3, dtype=bool));"
        "print('scipy.sparse' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"


NESTED = [
    {"page": {"body": {"text": FOX}, "name": "a", "score": 1, "site": "x"}, "n": 1},
    {"page": {"body": {"text": FOX}, "name": "b", "score": 3, "site": "x"}, "n": 2},
    {"page": {"body": None, "name": "c", "score": 2, "site": "x"}, "n": 3},
    {"page": {"body": {"text": FOX}, "name": "d", "score": 9, "site": "y"}, "n": 4},
]


@pytest.mark.parametrize("kind", ["dicts", "table", "frame"])
def test_columns_within_objects_are_named_by_a_path(kind):
    table = pa.Table.from_pylist(NESTED)
    source = {"dicts": NESTED, "table": table, "frame": table.to_pandas()}[kind]
    settings = {
        "text_column": "page.body.text",
        "id_column": "page.name",
        "group_column": "page.site",
    }
    report = neardup.deduplicate(source, keep="max:page.score", **settings)
    assert report.removed.select(["doc_id", "kept_id"]).to_pylist() == [
        {"doc_id": "a", "kept_id": "b"}
    ]
    assert report.rejected.column("row").to_pylist() == [2]
    assert report.kept.to_pylist() == [
        {"doc_id": NESTED[row]["page"]["name"]} | NESTED[row] for row in (1, 3)
    ]
    assert report.columns == {"text": "page.body.text", "id": "page.name"}
    with pytest.raises(
        ConfigError, match=r"names 'page\.x', which is not a column[\s\S]*the columns are page, n"
    ):
        neardup.deduplicate(table, text_column="page.x")
