"""The interface of a measure, and what measures share: hashes, band keys, groups, and contents as 64-bit words.

A measure is a module of this folder with the functions of `Measure`; `registry.py` lists them.
Stages use only these functions and the item types of the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import bands, digests
from neardup.kernels import similarity as kernel
from neardup.kernels.keys import digest_key, own_secret
from neardup.kernels.mixing import FIRST_MULTIPLIER, GOLDEN_MULTIPLIER, SECOND_MULTIPLIER
from neardup.theory.plan import Plan

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
# Signatures have 32 bits per slot or 64 slots per word; the kernel has a comparison for each.
Signatures = npt.NDArray[Any]
# One number per slot, of any type.
Slots = npt.NDArray[Any]
# Copies values to where they are kept in memory; returns their offset.
Hold = Callable[[U64], int]
Items = TypeVar("Items", bound=kernel.Items)

# If the contents of digests change, change the name here: a run that was started with others is not
# resumed.
DIGEST_FORMAT: Final = "product-1"
# Documents processed together, so that their slots (up to 1,024 of 4 bytes) stay in the cache of a
# core.
RUN_DOCS: Final = 256


class Sketched(NamedTuple):
    """The result of the first pass for each document.

    sizes: number of items, 0 for a document that is never similar to another; held_at: offset of
    its set in memory.
    """

    sizes: I64
    digests: U64
    keys: U64
    held_at: I64


class Measure(Protocol):
    """What similarity means. Contents are the `text` column of schema.DOCUMENTS."""

    def signature_format(self, config: Config) -> str:
        """Name the format of a signature: equal names mean comparable signatures."""

    def sketch(
        self,
        contents: pa.Array,
        plan: Plan,
        config: Config,
        groups: I64 | None = None,
        hold: Hold | None = None,
        secret: bytes | None = None,
    ) -> Sketched:
        """Return size, digest and band keys of every document; documents of different groups share neither.

        `hold` keeps the items in memory, for measures with `registry.holds_items`. Only digests
        under the same secret can be compared; None takes that of this process.
        """

    def items(self, contents: pa.Array, config: Config) -> kernel.Items:
        """Return what the kernel compares, for every document."""

    def sign(self, items: Any, plan: Plan, config: Config) -> tuple[Signatures, Slots]:
        """Return the signatures for the signature filter, and the slots for banding."""


def mix(values: U64) -> U64:
    """Mix 64 bits, bijectively (the finaliser of SplitMix64)."""
    values = values + GOLDEN_MULTIPLIER
    values = (values ^ (values >> np.uint64(30))) * FIRST_MULTIPLIER
    values = (values ^ (values >> np.uint64(27))) * SECOND_MULTIPLIER
    return values ^ (values >> np.uint64(31))


def salt(seed: int) -> np.uint64:
    """Return the salt of a seed."""
    return np.uint64(mix(np.array([seed], np.uint64))[0])


def group_salts(groups: I64 | U64) -> U64:
    """Return a distinct salt for every group, zero for group 0."""
    return mix(groups.view(np.uint64)) ^ mix(np.zeros(1, np.uint64))


def band_keys(slots: Slots, plan: Plan, groups: I64 | None = None) -> U64:
    """Return the band keys of every document; documents of different groups share none, group 0 means no group."""
    keys = np.empty((slots.shape[0], plan.bands), np.uint64)
    bands.band_keys(slots, plan.rows, keys)
    if groups is not None and groups.any():
        keys ^= group_salts(groups)[:, None]
    return keys


def digests_of(words: U64, ends: I64, groups: I64 | None, secret: bytes | None) -> U64:
    """Return the digest of the words of every document; groups as for `band_keys`, secret as for `Measure.sketch`."""
    found = np.empty((ends.size - 1, 2), np.uint64)
    key = digest_key_of(secret)
    digests.digest_words(words, ends, key, found)
    separate_groups(found, groups, key)
    return found


def digest_key_of(secret: bytes | None) -> U64:
    """Return the key of the digests under a secret; None takes that of this process."""
    return digest_key(own_secret() if secret is None else secret)


def separate_groups(found: U64, groups: I64 | None, key: U64) -> None:
    """Make the digests of different groups differ, in place; groups as for `band_keys`."""
    if groups is not None and groups.any():
        words = groups.view(np.uint64)
        words.flags.writeable = False  # as in `content_words`
        digests.separate_groups(words, key, found)


def sketch_rows(
    rows: U64,
    slots_of: Callable[[slice], Slots],
    plan: Plan,
    groups: I64 | None,
    secret: bytes | None,
) -> Sketched:
    """Sketch vectors: none is empty, and equal words have equal digests.

    rows: the words of every vector; slots_of: returns the slots of a slice of them.
    """
    num_docs, num_words = rows.shape
    keys = np.empty((num_docs, plan.bands), np.uint64)
    for run in runs(num_docs):
        run_groups = None if groups is None else groups[run]
        keys[run] = band_keys(slots_of(run), plan, run_groups)
    ends = np.arange(num_docs + 1, dtype=np.int64) * num_words
    return Sketched(
        sizes=np.ones(num_docs, np.int64),
        digests=digests_of(rows.reshape(-1), ends, groups, secret),
        keys=keys,
        held_at=np.zeros(num_docs, np.int64),
    )


def slots_of_all(num_docs: int, num_slots: int, slots_of: Callable[[slice], Slots]) -> Slots:
    """Return the slots of all vectors, computed RUN_DOCS at a time."""
    parts = [slots_of(run) for run in runs(num_docs)]
    if parts:
        return np.concatenate(parts)
    return np.empty((0, num_slots), np.uint8)


def runs(num_docs: int) -> Iterator[slice]:
    """Cut documents into runs of RUN_DOCS."""
    for start in range(0, num_docs, RUN_DOCS):
        yield slice(start, min(start + RUN_DOCS, num_docs))


def content_words(contents: pa.Array) -> tuple[U64, I64]:
    """Return the 64-bit words of binary contents, without a copy, and the ends of each document."""
    _, offsets, data = contents.buffers()
    first = contents.offset
    ends = np.frombuffer(offsets, np.int64)[first : first + len(contents) + 1]
    source = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]
    if source.size:
        words = np.require(source.view(np.uint64), requirements="A")
    else:
        words = np.empty(0, np.uint64)
    # Numba compiles kernels for writable and read-only arrays separately: use one kind.
    words.flags.writeable = False
    return words, (ends - ends[0]) // 8


def content_rows(contents: pa.Array) -> U64:
    """Return binary contents of equal length as a matrix of words, one row per document."""
    words, ends = content_words(contents)
    if ends.size > 1:
        return words.reshape(ends.size - 1, -1)
    return np.empty((0, 0), np.uint64)


def num_docs_of(items: kernel.Items) -> int:
    """Return the number of documents."""
    if isinstance(items, (kernel.Sets, kernel.Weights)):
        return items.ends.size - 1
    return int(items[0].shape[0])


def are_empty(items: kernel.Items) -> npt.NDArray[np.bool_]:
    """Return which documents have no items, and are therefore never similar to another."""
    if isinstance(items, (kernel.Sets, kernel.Weights)):
        is_empty: npt.NDArray[np.bool_] = np.diff(items.ends) == 0
        return is_empty
    return np.zeros(num_docs_of(items), np.bool_)


def joined(first: Items, second: Items) -> Items:
    """Concatenate the items of two batches."""
    return concatenated([first, second])


def concatenated(batches: Sequence[Items]) -> Items:
    """Concatenate the items of one or more batches."""
    filled = [items for items in batches if num_docs_of(items)]
    if len(filled) < 2:
        return filled[0] if filled else batches[0]
    fields: dict[str, Any] = {}
    for name, first in filled[0]._asdict().items():
        parts = [getattr(items, name) for items in filled]
        if name == "ends":
            fields[name] = _joined_ends(parts)
        elif isinstance(first, np.ndarray):
            fields[name] = np.concatenate(parts)
        else:
            fields[name] = first
    return type(filled[0])(**fields)


def _joined_ends(parts: Sequence[I64]) -> I64:
    joined = [np.zeros(1, np.int64)]
    for ends in parts:
        joined.append(joined[-1][-1] + ends[1:])
    return np.concatenate(joined)
