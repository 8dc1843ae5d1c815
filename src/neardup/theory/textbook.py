"""The method as a lecture teaches it, in plain Python on small sets: written to be read, not to be fast.

From shingles to Jaccard, from MinHash signatures to bands and buckets. A column is the set of rows
that have a 1 in it; rows carry the caller's own numbers (most lectures count from 1, some books
from 0), columns are named by their position from 0. `docs/lecture.md` walks through this file; the
rest of the library does the same work on millions of texts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import math
import operator
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar, overload

from neardup.config.checks import check_int
from neardup.errors import ConfigError, DataError

Item = TypeVar("Item", bound=Hashable)
Row = TypeVar("Row", bound=Hashable)
Pair = tuple[int, int]
# A Mersenne prime, larger than any number of 4 or 7 bytes.
PRIME = 2**61 - 1


# A string is also a sequence of strings; the first matching overload applies.
@overload
def shingle_set(tokens: str, size: int) -> set[str]: ...  # type: ignore[overload-overlap]
@overload
def shingle_set(tokens: Sequence[Item], size: int) -> set[tuple[Item, ...]]: ...
def shingle_set(tokens: Sequence[Hashable] | str, size: int) -> set[Any]:
    """Return every run of `size` consecutive tokens, once: substrings of a string, tuples of any other sequence.

    Fewer tokens than `size` give no shingle. (The library makes one shingle of all of them, so that
    short texts count.)

    >>> sorted(shingle_set("abcdabd", 2))
    ['ab', 'bc', 'bd', 'cd', 'da']
    >>> sorted(shingle_set("to be or not to be".split(), 2))
    [('be', 'or'), ('not', 'to'), ('or', 'not'), ('to', 'be')]
    """
    return set(_windows(tokens, size))


@overload
def shingle_bag(tokens: str, size: int) -> Counter[str]: ...  # type: ignore[overload-overlap]
@overload
def shingle_bag(tokens: Sequence[Item], size: int) -> Counter[tuple[Item, ...]]: ...
def shingle_bag(tokens: Sequence[Hashable] | str, size: int) -> Counter[Any]:
    """Return every run of `size` consecutive tokens with the number of times it occurs.

    >>> shingle_bag("abcdabd", 2)["ab"]
    2
    """
    return Counter(_windows(tokens, size))


def shingle_number(shingle: str, num_bytes: int = 4) -> int:
    """Return a number of `num_bytes` bytes for a shingle, the same on every machine; different shingles may collide.

    >>> shingle_number("touchdown") < 2**32
    True
    """
    check_int("num_bytes", num_bytes, 1)
    digest = hashlib.blake2b(shingle.encode(), digest_size=num_bytes).digest()
    return int.from_bytes(digest, "big")


@dataclasses.dataclass(frozen=True, slots=True)
class UniversalHash:
    """One member of the universal class h(x) = ((a x + b) mod p) mod n, of Carter and Wegman.

    For two different numbers below p, at most 1/n of all members give them the same value. That
    needs a prime p, which is not checked here, so that you can try other numbers.

    >>> UniversalHash(3, 5, prime=11, num_buckets=4)(7)
    0
    """

    multiplier: int
    addend: int
    prime: int
    num_buckets: int

    def __post_init__(self) -> None:
        check_int("num_buckets", self.num_buckets, 1)
        if not 1 <= self.multiplier < self.prime or not 0 <= self.addend < self.prime:
            raise ConfigError(
                f"a must be in [1, p) and b in [0, p), got a = {self.multiplier}, b = {self.addend}, p = {self.prime}"
            )

    @classmethod
    def draw(cls, num_buckets: int, generator: random.Random, prime: int = PRIME) -> UniversalHash:
        """Draw random a and b."""
        return cls(generator.randrange(1, prime), generator.randrange(prime), prime, num_buckets)

    def __call__(self, number: int) -> int:
        """Return the bucket of a number below the prime."""
        if not 0 <= number < self.prime:
            raise DataError(
                f"a number to hash must be in [0, {self.prime}), got {number!r}",
                hint="take a larger prime",
            )
        return (self.multiplier * number + self.addend) % self.prime % self.num_buckets


def columns_of(
    matrix: Sequence[Sequence[int]], rows: Sequence[Row] | None = None
) -> list[set[Any]]:
    """Return the columns of a 0/1 matrix as sets of rows, which `rows` names; without it they count from 1.

    >>> columns_of([[1, 0], [0, 1], [1, 1]])
    [{1, 3}, {2, 3}]
    """
    names: Sequence[Any] = range(1, len(matrix) + 1) if rows is None else rows
    widths = {len(values) for values in matrix}
    if not matrix or len(widths) > 1 or len(names) != len(matrix):
        raise DataError(
            f"a matrix needs rows of equal length and a name for each, got lengths {sorted(widths)}, {len(names)} names"
        )
    if odd := set(itertools.chain.from_iterable(matrix)) - {0, 1}:
        raise DataError(f"a boolean matrix holds 0 and 1 only, got {min(odd)!r}")
    return [set(itertools.compress(names, bits)) for bits in zip(*matrix, strict=True)]


def matrix_of(
    columns: Sequence[AbstractSet[Any]], rows: Sequence[Any] | None = None
) -> list[list[int]]:
    """Return the 0/1 matrix of columns, a list per row: of `rows` in their order, or of those in use, sorted.

    >>> matrix_of([{1, 3}, {2, 3}])
    [[1, 0], [0, 1], [1, 1]]
    """
    names = sorted(set[Any]().union(*columns)) if rows is None else rows
    _check_covered(columns, names, "`rows`")
    return [[int(row in ones) for ones in columns] for row in names]


def jaccard(a: AbstractSet[Item], b: AbstractSet[Item]) -> float:
    """Return the size of the intersection over the size of the union; 0 for two empty sets, which share nothing.

    >>> jaccard({1, 2, 3, 4}, {2, 3, 5, 7})
    0.3333333333333333
    """
    for name, value in (("a", a), ("b", b)):
        if not isinstance(value, AbstractSet):
            raise DataError(
                f"`{name}` must be a set, got {type(value).__name__} {value!r}",
                hint="shingle_set(text, size) makes a set of a text; set(values) of anything else",
            )
    if not a and not b:
        return 0.0
    return len(a & b) / len(a | b)


def bag_jaccard(a: Mapping[Item, int], b: Mapping[Item, int]) -> float:
    """Return the Jaccard similarity of two bags: the smaller counts over the larger counts, item by item.

    Equal to `jaccard` of the sets that number their repetitions, {(a, 1), (a, 2), ...}; equal bags
    have similarity 1.

    >>> bag_jaccard(Counter("aaab"), Counter("aabbc"))
    0.5
    """
    _check_bags(a, b)
    items = a.keys() | b.keys()
    larger = sum(max(a.get(item, 0), b.get(item, 0)) for item in items)
    return _overlap(a, b) / larger if larger else 0.0


def bag_jaccard_of_sums(a: Mapping[Item, int], b: Mapping[Item, int]) -> float:
    """Return the variant in which the union of two bags has the sum of both sizes, so equal bags have similarity 1/2.

    >>> bag_jaccard_of_sums(Counter("aaab"), Counter("aabbc"))
    0.3333333333333333
    """
    _check_bags(a, b)
    both = sum(a.values()) + sum(b.values())
    return _overlap(a, b) / both if both else 0.0


def minhash_one_pass(
    columns: Sequence[AbstractSet[int]],
    hash_functions: Sequence[Callable[[int], int]],
    rows: Iterable[int] | None = None,
) -> list[list[int]]:
    """Return the signature matrix, one list per hash function, one value per column: its least hash value.

    >>> minhash_one_pass([{1, 3, 4}, {2, 3, 5}], [lambda x: x % 5, lambda x: (2 * x + 1) % 5])
    [[1, 0], [2, 0]]

    A hash function maps a row to an integer; where no two rows collide it is a permutation of the
    rows. `rows` are the rows in the order in which they are read (None: those in use, sorted),
    which does not change the result. An empty column has no least value and raises.
    """
    signatures: list[list[float]] = [[] for _ in hash_functions]
    for _, state in one_pass_states(columns, hash_functions, rows):
        signatures = state
    return [[int(value) for value in slots] for slots in signatures]


def one_pass_states(
    columns: Sequence[AbstractSet[int]],
    hash_functions: Sequence[Callable[[int], int]],
    rows: Iterable[int] | None = None,
) -> Iterator[tuple[int, list[list[float]]]]:
    """Yield each row that the one pass reads and the signature matrix after it; infinity where no 1 was met yet.

    >>> for row, signatures in one_pass_states([{1}, {2}], [lambda x: 5 - x]):
    ...     print(row, signatures)
    1 [[4, inf]]
    2 [[4, 3]]
    """
    _check_columns(columns)
    if not hash_functions:
        raise ConfigError(
            "`hash_functions` must hold at least one function, got none",
            hint="e.g. [lambda x: x % 5]",
        )
    in_use = set[int]().union(*columns)
    order = sorted(in_use) if rows is None else list(rows)
    _check_covered(columns, order, "`rows`")
    return _read_rows(columns, hash_functions, order)


def _read_rows(
    columns: Sequence[AbstractSet[int]],
    hash_functions: Sequence[Callable[[int], int]],
    order: Sequence[int],
) -> Iterator[tuple[int, list[list[float]]]]:
    signatures = [[math.inf] * len(columns) for _ in hash_functions]
    for row in order:
        # Each hash function is computed once per row, not once per 1 in the row.
        values = [hash_function(row) for hash_function in hash_functions]
        for column, ones in enumerate(columns):
            if row in ones:
                for slots, value in zip(signatures, values, strict=True):
                    slots[column] = min(slots[column], value)
        yield row, [list(slots) for slots in signatures]


@overload
def permutation_signatures(
    columns: Sequence[AbstractSet[Row]], permutations: Sequence[Mapping[Row, int]]
) -> list[list[int]]: ...
@overload
def permutation_signatures(
    columns: Sequence[AbstractSet[Row]], permutations: Sequence[Sequence[Row]]
) -> list[list[Row]]: ...
def permutation_signatures(
    columns: Sequence[AbstractSet[Any]], permutations: Sequence[Sequence[Any] | Mapping[Any, int]]
) -> list[list[Any]]:
    """Return the signature matrix, one list per permutation, one value per column.

    Books write a permutation down in two ways, and the slot of a column follows the way that is
    used:

    * a sequence lists the rows in permuted order; the slot is the name of the first row in that
    order that has a 1; * a mapping gives each row its position in permuted order; the slot is the
    least position of a row that has a 1.

    Both choose the same row, so two columns agree in one exactly when they agree in the other.

    >>> permutation_signatures([{1, 3, 4}, {2, 5}], [[3, 4, 5, 1, 2]])
    [[3, 5]]
    >>> permutation_signatures([{1, 3, 4}, {2, 5}], [{3: 1, 4: 2, 5: 3, 1: 4, 2: 5}])
    [[1, 3]]
    """
    _check_columns(columns)
    signatures = []
    for number, permutation in enumerate(permutations):
        _check_permutation(columns, permutation, number)
        signatures.append([_first_met(ones, permutation) for ones in columns])
    return signatures


def _first_met(ones: AbstractSet[Any], permutation: Sequence[Any] | Mapping[Any, int]) -> Any:
    """The slot of a column: the least position of its rows, or the name of the first one."""
    if isinstance(permutation, Mapping):
        return min(permutation[row] for row in ones)
    return next(row for row in permutation if row in ones)


def signature_similarity(signatures: Sequence[Sequence[Hashable]]) -> dict[Pair, float]:
    """Return the fraction of equal slots for each two columns of a signature matrix: the estimate of their Jaccard.

    >>> signature_similarity([[1, 1, 2], [4, 4, 4]])
    {(0, 1): 1.0, (0, 2): 0.5, (1, 2): 0.5}
    """
    columns = _columns_of(signatures)
    return {
        (left, right): _share_of_equal(columns[left], columns[right])
        for left, right in itertools.combinations(range(len(columns)), 2)
    }


def _share_of_equal(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    num_equal: int = sum(map(operator.eq, a, b))
    return num_equal / len(a)


def buckets(
    signatures: Sequence[Sequence[Hashable]], bands: int
) -> list[dict[tuple[Hashable, ...], list[int]]]:
    """Cut a signature matrix into bands; return the buckets of each: the slots of a column there, and its columns.

    The bucket is named by the slots, not by a hash of them, so no two columns collide by accident.

    >>> buckets([[1, 1, 2], [4, 4, 4]], bands=2)
    [{(1,): [0, 1], (2,): [2]}, {(4,): [0, 1, 2]}]
    """
    columns = _columns_of(signatures)
    rows = _rows_per_band(len(signatures), bands)
    found: list[dict[tuple[Hashable, ...], list[int]]] = [{} for _ in range(bands)]
    for band, of_band in enumerate(found):
        first = band * rows
        for column, slots in enumerate(columns):
            of_band.setdefault(slots[first : first + rows], []).append(column)
    return found


def banded_candidates(signatures: Sequence[Sequence[Hashable]], bands: int) -> set[Pair]:
    """Return the pairs of columns that share a bucket: they are equal in all rows of some band.

    >>> sorted(banded_candidates([[1, 1, 2], [4, 4, 4], [7, 8, 8], [9, 9, 9]], bands=2))
    [(0, 1), (1, 2)]
    """
    candidates: set[Pair] = set()
    for of_band in buckets(signatures, bands):
        for members in of_band.values():
            candidates.update(itertools.combinations(members, 2))
    return candidates


def keep_agreeing(
    candidates: AbstractSet[Pair], signatures: Sequence[Sequence[Hashable]], least: float
) -> set[Pair]:
    """Keep the candidates whose signatures agree in at least this share of their slots, without looking at the sets.

    >>> sorted(keep_agreeing({(0, 1), (0, 2)}, [[1, 1, 2], [4, 4, 4]], least=0.8))
    [(0, 1)]
    """
    columns = _columns_of(signatures)
    return {
        (left, right)
        for left, right in candidates
        if _share_of_equal(columns[left], columns[right]) >= least
    }


def keep_similar(
    candidates: AbstractSet[Pair], columns: Sequence[AbstractSet[Any]], threshold: float
) -> set[Pair]:
    """Keep the candidates whose exact Jaccard similarity is at least the threshold.

    >>> keep_similar({(0, 1), (0, 2)}, [{1, 2}, {2, 1}, {2, 3}], threshold=0.5)
    {(0, 1)}
    """
    return {
        (left, right)
        for left, right in candidates
        if jaccard(columns[left], columns[right]) >= threshold
    }


def fitting_sizes(size: int, threshold: float) -> range:
    """Return the sizes of the sets that can reach a Jaccard similarity with a set of this size: the length filter.

    >>> fitting_sizes(10, 0.8)
    range(8, 13)
    """
    check_int("size", size, 1)
    _check_threshold(threshold)
    # The same division as in `jaccard`, so that rounding cannot rule out a pair.
    smallest = next(other for other in range(1, size + 1) if other / size >= threshold)
    largest = size
    while size / (largest + 1) >= threshold:
        largest += 1
    return range(smallest, largest + 1)


def prefix(ones: AbstractSet[Row], threshold: float, counts: Mapping[Row, int]) -> list[Row]:
    """Return the rarest rows of a set, so many that a similar set must contain one of them: the prefix filter.

    `counts` is how many columns contain each row; equally rare rows come in their own order.

    >>> prefix({1, 2, 3, 4, 5}, 0.8, Counter({1: 9, 2: 7, 3: 1, 4: 2, 5: 8}))
    [3, 4]
    """
    least_common = fitting_sizes(len(ones), threshold)[0]
    rarest_first = sorted(ones, key=lambda row: (counts[row], row))
    return rarest_first[: len(ones) - least_common + 1]


def prefix_candidates(columns: Sequence[AbstractSet[Row]], threshold: float) -> set[Pair]:
    """Return the pairs of columns that share a row of their prefixes and fit in size; no similar pair is missing.

    >>> sorted(prefix_candidates([{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 6, 7, 8}], threshold=0.6))
    [(0, 1)]
    """
    _check_columns(columns)
    counts = Counter(row for ones in columns for row in ones)
    posting_lists: dict[Row, list[int]] = {}
    for column, ones in enumerate(columns):
        for row in prefix(ones, threshold, counts):
            posting_lists.setdefault(row, []).append(column)
    found = set()
    for posting_list in posting_lists.values():
        for left, right in itertools.combinations(posting_list, 2):
            if len(columns[right]) in fitting_sizes(len(columns[left]), threshold):
                found.add((left, right))
    return found


def _windows(tokens: Sequence[Hashable] | str, size: int) -> list[Hashable]:
    check_int("size", size, 1)
    if not isinstance(tokens, Sequence):
        raise DataError(
            f"`tokens` must be a string or a sequence, got {type(tokens).__name__} {tokens!r}",
            hint="a shingle is a run of consecutive tokens, so their order matters: pass a list or a tuple",
        )
    runs = (tokens[start : start + size] for start in range(len(tokens) - size + 1))
    if isinstance(tokens, str):
        return list(runs)
    return [tuple(run) for run in runs]


def _overlap(a: Mapping[Item, int], b: Mapping[Item, int]) -> int:
    return sum(min(count, b.get(item, 0)) for item, count in a.items())


def _columns_of(signatures: Sequence[Sequence[Hashable]]) -> list[tuple[Hashable, ...]]:
    """Turn a signature matrix into one tuple of slots per column."""
    widths = [len(slots) for slots in signatures]
    if not widths or len(set(widths)) > 1:
        raise DataError(
            f"`signatures` must be one list per hash function, all of one length, got lengths {widths}",
            hint="minhash_one_pass and permutation_signatures return such a matrix",
        )
    return list(zip(*signatures, strict=True))


def _rows_per_band(num_slots: int, bands: int) -> int:
    check_int("bands", bands, 1)
    if num_slots % bands:
        fitting = [count for count in range(1, num_slots + 1) if num_slots % count == 0]
        raise ConfigError(
            f"`bands` must divide the {num_slots} rows of the signature matrix, got {bands}",
            hint=f"use one of {', '.join(map(str, fitting))}",
        )
    return num_slots // bands


def _check_threshold(threshold: float) -> None:
    if not 0 < threshold <= 1:
        raise ConfigError(
            f"`threshold` must be in (0, 1], got {threshold!r}", hint="use 0.8 for 80 %"
        )


def _check_bags(*bags: Any) -> None:
    for bag in bags:
        if not isinstance(bag, Mapping) or any(count < 0 for count in bag.values()):
            raise DataError(
                f"a bag must map items to counts >= 0, got {bag!r}",
                hint="collections.Counter(items) counts them",
            )


def _check_columns(columns: Sequence[Any]) -> None:
    for column, ones in enumerate(columns):
        if not isinstance(ones, AbstractSet):
            raise DataError(
                f"column {column} must be the set of its rows, got {type(ones).__name__} {ones!r}",
                hint="write {1, 3, 4} for a column with a 1 in the rows 1, 3 and 4",
            )
        if not ones:
            raise DataError(
                f"column {column} is empty: without a 1 it has no signature",
                hint="leave it out; a set without elements is similar to nothing",
            )


def _check_covered(
    columns: Sequence[AbstractSet[Any]], order: Iterable[Any], order_name: str
) -> None:
    known = set(order)
    for column, ones in enumerate(columns):
        missing = [row for row in ones if row not in known]
        if missing:
            raise DataError(
                f"column {column} has a 1 in row {missing[0]!r}, which {order_name} does not list",
                hint="number rows and columns alike, both from 0 or both from 1",
            )


def _check_permutation(
    columns: Sequence[AbstractSet[Any]], permutation: Sequence[Any] | Mapping[Any, int], number: int
) -> None:
    if isinstance(permutation, Mapping):
        positions = list(permutation.values())
    else:
        positions = list(permutation)
    repeated = [position for position, count in Counter(positions).items() if count > 1]
    if repeated:
        raise DataError(
            f"permutation {number} is not a permutation: {repeated[0]!r} occurs more than once in {permutation!r}",
            hint="for hash functions with collisions, use minhash_one_pass",
        )
    _check_covered(columns, permutation, f"permutation {number}")
