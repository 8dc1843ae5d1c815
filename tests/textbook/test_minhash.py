"""MinHash by one pass over the rows and by permutations, number by number."""

import itertools
import math
from fractions import Fraction

import pytest

from neardup.errors import ConfigError, DataError
from neardup.theory.textbook import (
    jaccard,
    minhash_one_pass,
    one_pass_states,
    permutation_signatures,
    signature_similarity,
)

INF = math.inf


def jaccard_table(columns):
    return {
        (left, right): jaccard(columns[left], columns[right])
        for left, right in itertools.combinations(range(len(columns)), 2)
    }


TWO_COLUMNS = [{1, 3, 4}, {2, 3, 5}]
X_MOD_5_AND_2X_PLUS_1_MOD_5 = [lambda x: x % 5, lambda x: (2 * x + 1) % 5]


def test_x_and_2x_plus_1_mod_5_give_columns_12_and_00():
    signatures = minhash_one_pass(TWO_COLUMNS, X_MOD_5_AND_2X_PLUS_1_MOD_5)
    assert signatures == [[1, 0], [2, 0]]
    assert list(zip(*signatures, strict=True)) == [(1, 2), (0, 0)]


def test_x_and_2x_plus_1_mod_5_after_each_row():
    states = list(one_pass_states(TWO_COLUMNS, X_MOD_5_AND_2X_PLUS_1_MOD_5, rows=range(1, 6)))
    assert states == [
        (1, [[1, INF], [3, INF]]),  # h 1, g 3
        (2, [[1, 2], [3, 0]]),  # h 2, g 0
        (3, [[1, 2], [2, 0]]),  # h 3, g 2
        (4, [[1, 2], [2, 0]]),  # h 4, g 4: nothing smaller
        (5, [[1, 0], [2, 0]]),  # h 0, g 1
    ]


FOUR_COLUMNS = [{0, 3}, {2}, {1, 3, 4}, {0, 2, 3}]
X_PLUS_1_AND_3X_PLUS_1_MOD_5 = [lambda x: (x + 1) % 5, lambda x: (3 * x + 1) % 5]


def test_x_plus_1_and_3x_plus_1_mod_5_on_four_columns():
    assert minhash_one_pass(FOUR_COLUMNS, X_PLUS_1_AND_3X_PLUS_1_MOD_5) == [
        [1, 3, 0, 1],
        [0, 2, 0, 0],
    ]


def test_x_plus_1_and_3x_plus_1_mod_5_after_each_row():
    states = one_pass_states(FOUR_COLUMNS, X_PLUS_1_AND_3X_PLUS_1_MOD_5, rows=range(5))
    assert [matrix for _, matrix in states] == [
        [[1, INF, INF, 1], [1, INF, INF, 1]],
        [[1, INF, 2, 1], [1, INF, 4, 1]],
        [[1, 3, 2, 1], [1, 2, 4, 1]],
        [[1, 3, 2, 1], [0, 2, 0, 0]],
        [[1, 3, 0, 1], [0, 2, 0, 0]],
    ]


def test_two_hash_functions_estimate_four_columns_roughly():
    estimates = signature_similarity(minhash_one_pass(FOUR_COLUMNS, X_PLUS_1_AND_3X_PLUS_1_MOD_5))
    truth = jaccard_table(FOUR_COLUMNS)
    assert (estimates[0, 3], truth[0, 3]) == (1, 2 / 3)
    assert (estimates[0, 2], truth[0, 2]) == (1 / 2, 1 / 4)
    assert (estimates[0, 1], truth[0, 1]) == (0, 0)


def test_3r_plus_1_and_7r_plus_1_mod_10_on_five_documents_with_rows_from_one():
    documents = [{3, 7, 8}, {1, 6, 9}, {1, 4, 6, 9, 10}, {1, 5}, {2, 8}]
    hash_functions = [lambda r: (3 * r + 1) % 10, lambda r: (7 * r + 1) % 10]
    assert minhash_one_pass(documents, hash_functions) == [[0, 4, 1, 4, 5], [0, 3, 1, 6, 5]]


SIX_ROWS = [{2, 5}, {0, 1}, {3, 4}, {0, 2, 4}]
THREE_FUNCTIONS_MOD_6 = [
    lambda x: (2 * x + 1) % 6,
    lambda x: (3 * x + 2) % 6,
    lambda x: (5 * x + 2) % 6,
]


def test_three_functions_mod_6_on_four_columns():
    assert minhash_one_pass(SIX_ROWS, THREE_FUNCTIONS_MOD_6) == [
        [5, 1, 1, 1],
        [2, 2, 2, 2],
        [0, 1, 4, 0],
    ]


def test_functions_mod_6_with_collisions_overestimate_similarity():
    assert [len({function(row) for row in range(6)}) for function in THREE_FUNCTIONS_MOD_6] == [
        3,
        2,
        6,
    ]
    estimates = signature_similarity(minhash_one_pass(SIX_ROWS, THREE_FUNCTIONS_MOD_6))
    assert list(estimates.values()) == [1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3]
    assert list(jaccard_table(SIX_ROWS).values()) == [0, 0, 1 / 4, 0, 1 / 4, 1 / 4]


def test_the_order_of_the_rows_does_not_change_the_result():
    results = [
        minhash_one_pass(FOUR_COLUMNS, X_PLUS_1_AND_3X_PLUS_1_MOD_5, rows=order)
        for order in itertools.permutations(range(5))
    ]
    assert all(result == results[0] for result in results)


# Five rows, three columns, permutations that list the rows in their new order.
R1_TO_R5 = [{1, 3, 4}, {2, 5}, {1, 2, 4}]
ORDERS = [(1, 2, 3, 4, 5), (5, 4, 3, 2, 1), (3, 4, 5, 1, 2)]


def test_permutations_given_as_orders_return_the_first_row_with_a_one():
    assert permutation_signatures(R1_TO_R5, ORDERS) == [[1, 2, 1], [4, 5, 4], [3, 5, 4]]


def test_similarity_tables_of_the_five_row_example():
    assert jaccard_table(R1_TO_R5) == {(0, 1): 0, (0, 2): 2 / 4, (1, 2): 1 / 4}
    signatures = permutation_signatures(R1_TO_R5, ORDERS)
    assert signature_similarity(signatures) == {(0, 1): 0, (0, 2): 2 / 3, (1, 2): 0}


# Seven rows, four columns, permutations that give each row its position.
SEVEN_BY_FOUR = [{1, 2, 6, 7}, {3, 4, 5}, {1, 6, 7}, {2, 3, 4, 5}]
POSITIONS = [
    dict(enumerate(positions, start=1))
    for positions in [(2, 3, 7, 6, 1, 5, 4), (4, 2, 1, 3, 6, 7, 5), (3, 4, 7, 2, 6, 1, 5)]
]


def test_permutations_given_as_positions_return_the_smallest_position_with_a_one():
    assert permutation_signatures(SEVEN_BY_FOUR, POSITIONS) == [
        [2, 1, 2, 1],
        [2, 1, 4, 1],
        [1, 2, 1, 2],
    ]


def test_similarity_tables_of_the_seven_row_example():
    # Three quarters of columns 0 and 2 is estimated as 2/3, three quarters of columns 1 and 3 as 1.
    truth = {(0, 1): 0, (0, 2): 3 / 4, (0, 3): 1 / 7, (1, 2): 0, (1, 3): 3 / 4, (2, 3): 0}
    estimate = {(0, 1): 0, (0, 2): 2 / 3, (0, 3): 0, (1, 2): 0, (1, 3): 1, (2, 3): 0}
    assert jaccard_table(SEVEN_BY_FOUR) == truth
    assert signature_similarity(permutation_signatures(SEVEN_BY_FOUR, POSITIONS)) == estimate


def test_orders_and_positions_of_one_permutation_give_the_same_similarities():
    orders = [sorted(positions, key=positions.__getitem__) for positions in POSITIONS]
    assert permutation_signatures(SEVEN_BY_FOUR, orders) == [
        [1, 5, 1, 5],
        [2, 3, 1, 3],
        [6, 4, 6, 4],
    ]
    by_order, by_position = (
        permutation_signatures(SEVEN_BY_FOUR, kind) for kind in (orders, POSITIONS)
    )
    assert signature_similarity(by_order) == signature_similarity(by_position)


def test_positions_behave_like_a_hash_function_without_collisions():
    by_hashing = minhash_one_pass(SEVEN_BY_FOUR, [positions.__getitem__ for positions in POSITIONS])
    assert by_hashing == permutation_signatures(SEVEN_BY_FOUR, POSITIONS)


def test_rows_can_be_named_by_letters():
    assert permutation_signatures([set("ad"), set("c"), set("bde"), set("acd")], ["beadc"]) == [
        ["a", "c", "b", "a"]
    ]


@pytest.mark.parametrize(
    ("left", "right"), [({0, 3}, {0, 2, 3}), ({0, 3}, {1, 3, 4}), ({2}, {0, 2, 3}), ({0}, {1})]
)
def test_agreement_over_all_permutations_equals_the_jaccard_similarity(left, right):
    orders = list(itertools.permutations(range(5)))
    signatures = permutation_signatures([left, right], orders)
    assert signature_similarity(signatures) == {(0, 1): jaccard(left, right)}
    assert Fraction(sum(a == b for a, b in signatures), 120) == Fraction(
        len(left & right), len(left | right)
    )


def test_cyclic_permutations_alone_do_not_estimate_jaccard():
    left, right = {0, 1}, {1, 2}
    orders = [[(start + step) % 4 for step in range(4)] for start in range(4)]
    assert jaccard(left, right) == 1 / 3
    assert signature_similarity(permutation_signatures([left, right], orders)) == {(0, 1): 1 / 4}


def test_an_empty_column_is_refused():
    for signatures in (
        lambda columns: minhash_one_pass(columns, [lambda x: x]),
        lambda columns: permutation_signatures(columns, [[0]]),
    ):
        with pytest.raises(DataError, match="column 1 is empty"):
            signatures([{0}, set()])


def test_a_column_that_is_not_a_set_is_refused():
    with pytest.raises(DataError, match="column 0 must be the set of its rows, got list"):
        minhash_one_pass([[1, 0, 1]], [lambda x: x])


def test_a_row_outside_the_given_rows_is_refused():
    with pytest.raises(
        DataError, match="column 1 has a 1 in row 5, which `rows` does not list"
    ) as caught:
        minhash_one_pass(TWO_COLUMNS, X_MOD_5_AND_2X_PLUS_1_MOD_5, rows=range(5))
    assert "both from 0 or both from 1" in caught.value.hint


def test_an_empty_list_of_hash_functions_is_an_error():
    with pytest.raises(ConfigError, match="`hash_functions` must hold at least one"):
        minhash_one_pass(TWO_COLUMNS, [])


@pytest.mark.parametrize("permutation", [(1, 2, 2, 3), {1: 1, 2: 2, 3: 2}])
def test_a_permutation_with_a_repeated_position_is_an_error(permutation):
    with pytest.raises(
        DataError, match="permutation 0 is not a permutation: 2 occurs more than once"
    ):
        permutation_signatures([{1, 3}], [permutation])


def test_a_permutation_with_a_missing_row_is_an_error():
    with pytest.raises(
        DataError, match="column 0 has a 1 in row 3, which permutation 0 does not list"
    ):
        permutation_signatures([{3}], [(1, 2)])


@pytest.mark.parametrize("signatures", [[], [[1, 2], [1]]])
def test_a_ragged_or_empty_signature_matrix_is_refused(signatures):
    with pytest.raises(DataError, match="`signatures` must be one list per hash function"):
        signature_similarity(signatures)
