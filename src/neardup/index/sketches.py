"""The sketches of an index: items, signatures, band keys and sizes, one row per document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import DamageError
from neardup.kernels import distinct
from neardup.kernels.similarity import Bits, Items, Points, Sets, Vectors, Weights
from neardup.measures.base import I64, U64, Signatures, band_keys, num_docs_of
from neardup.measures.registry import measure_of
from neardup.theory.plan import Plan

ITEM_TYPES: Final[dict[str, Any]] = {
    "jaccard": Sets,
    "weighted": Weights,
    "hamming": Bits,
    "cosine": Vectors,
    "euclidean": Points,
}
# Arrays of items with one entry per item; `ends` gives their documents. All other arrays have one
# row per document.
FLAT: Final = ("shingles", "hashes", "weights")


class Sketches(NamedTuple):
    """Documents in comparable form; items: None if the index stores signatures only."""

    items: Items | None
    signatures: Signatures
    keys: U64
    sizes: I64


def sketch_contents(contents: pa.Array, plan: Plan, config: Config) -> Sketches:
    """Compute the sketches of contents, as a run does to verify them."""
    measure = measure_of(config)
    items = measure.items(contents, config)
    signatures, slots = measure.sign(items, plan, config)
    return Sketches(items, signatures, band_keys(slots, plan), sizes_of(items))


def sizes_of(items: Items) -> I64:
    """Return the sizes of sets; a vector counts as 1."""
    if isinstance(items, (Sets, Weights)):
        return np.diff(items.ends)
    return np.ones(num_docs_of(items), np.int64)


def item_arrays(items: Items | None) -> dict[str, Any]:
    """Return the arrays that items are made of, by name."""
    fields = {} if items is None else items._asdict()
    return {name: array for name, array in fields.items() if isinstance(array, np.ndarray)}


def item_columns(config: Config) -> dict[str, tuple[str, int | None]]:
    """Return type and width of the arrays that items are made of; None: one entry per item, 0: one per document."""
    dimension = config.dimension or 0
    columns: dict[Any, dict[str, tuple[str, int | None]]] = {
        Sets: {"shingles": ("<u8", None), "ends": ("<i8", 0)},
        Weights: {"hashes": ("<u8", None), "weights": ("<f8", None), "ends": ("<i8", 0)},
        Bits: {"words": ("<u8", -(-dimension // 64))},
        Vectors: {"values": ("<f8", dimension), "norms": ("<f8", 0)},
        Points: {"values": ("<f8", dimension)},
    }
    return columns[ITEM_TYPES[config.measure]]


def items_from(arrays: dict[str, Any], config: Config) -> Items:
    """Build items from arrays."""
    numbers: dict[str, int] = {}
    if config.measure == "hamming":
        numbers["num_bits"] = config.dimension or 0
    elif config.measure == "cosine":
        numbers["num_slots"] = config.num_perm
    items: Items = ITEM_TYPES[config.measure](**arrays, **numbers)
    return items


def take_items(
    arrays: dict[str, Any], docs: I64, config: Config, source: object = "memory"
) -> Items:
    """Copy the items of some documents, each once, out of arrays of a source that may be damaged."""
    taken: dict[str, Any] = {}
    if "ends" in arrays:
        starts, stops = arrays["ends"][docs], arrays["ends"][docs + 1]
        size = next(array.size for name, array in arrays.items() if name in FLAT)
        # The last condition: forged sets may overlap, so that a few need more memory than the file
        # has bytes.
        if (
            not ((starts >= 0) & (starts <= stops) & (stops <= size)).all()
            or (stops - starts).sum() > size
        ):
            raise damaged(f"a set in {source} ends before it begins, or is in another one")
        taken["ends"] = np.cumsum(np.r_[0, stops - starts], dtype=np.int64)
    for name, array in arrays.items():
        if name in FLAT:
            gathered = np.empty(taken["ends"][-1], np.uint64)
            distinct.gather_sets(array.view(np.uint64), starts, gathered, taken["ends"])
            taken[name] = gathered.view(array.dtype)
        elif name != "ends":
            taken[name] = array[docs]
    return items_from(taken, config)


def damaged(what: str) -> DamageError:
    """Return the error for damaged data."""
    return DamageError(
        f"the index is damaged: {what}",
        hint="run `neardup index check`, and restore the index from a snapshot, or repair it",
    )


def to_bytes(sketches: Sketches, doc: int) -> bytes:
    """Return one document as bytes: size, keys, signature, then its items, array by array."""
    parts = [sketches.sizes[doc : doc + 1], sketches.keys[doc], sketches.signatures[doc]]
    arrays = item_arrays(sketches.items)
    for name, array in arrays.items():
        if name in FLAT:
            parts.append(array[arrays["ends"][doc] : arrays["ends"][doc + 1]])
        elif name != "ends":
            parts.append(array[doc])
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def bytes_of(sketches: Sketches) -> int:
    """Return the bytes that documents take in memory."""
    arrays = [
        sketches.signatures,
        sketches.keys,
        sketches.sizes,
        *item_arrays(sketches.items).values(),
    ]
    return sum(array.nbytes for array in arrays)


def check_items(items: Items | None, sizes: I64, source: str) -> None:
    """Raise if items are not what kernels rely on: as many as the sizes say, with weights and norms above 0."""
    if isinstance(items, (Sets, Weights)) and (np.diff(items.ends) != sizes).any():
        raise damaged(f"the sizes in {source} do not match its sets")
    if isinstance(items, Weights) and not _are_positive(items.weights):
        raise damaged(f"a weight in {source} is not above 0")
    if isinstance(items, Vectors) and not _are_positive(items.norms):
        raise damaged(f"the length of a vector in {source} is not above 0")


def _are_positive(values: Any) -> bool:
    return bool((np.isfinite(values) & (values > 0)).all())


def from_bytes(numbers: Sequence[int], blobs: Sequence[bytes], layout: Layout) -> Sketches:
    """Return the documents of `to_bytes`; raise for the number of the one whose bytes are invalid."""
    records = [
        _parse(number, np.frombuffer(blob, np.uint8), layout)
        for number, blob in zip(numbers, blobs, strict=True)
    ]
    keys = np.array([record[1] for record in records], np.uint64).reshape(len(blobs), layout.bands)
    signatures = np.array([record[2] for record in records], layout.signature_type)
    sizes = np.array([record[0] for record in records], np.int64)
    items = None
    if layout.has_items:
        arrays: dict[str, Any] = {}
        for name, (kind, width) in item_columns(layout.config).items():
            if name == "ends":
                arrays[name] = np.cumsum(np.r_[0, sizes], dtype=np.int64)
            elif width is None:
                arrays[name] = np.concatenate([record[3][name] for record in records])
            else:
                rows = np.array([record[3][name] for record in records], kind)
                if width:
                    arrays[name] = rows.reshape(len(blobs), width)
                else:
                    arrays[name] = rows.reshape(-1)
        items = items_from(arrays, layout.config)
        check_items(
            items,
            sizes,
            f"documents number {numbers[0]} to {numbers[-1]}, which are not yet in a run,",
        )
    return Sketches(items, signatures.reshape(len(blobs), layout.signature_width), keys, sizes)


class Layout(NamedTuple):
    """The widths of the rows of an index, and what they hold."""

    config: Config
    bands: int
    signature_type: Any
    signature_width: int
    has_items: bool
    has_set_postings: bool
    has_texts: bool

    @property
    def has_bitmaps(self) -> bool:
        """Whether segments hold a bitmap of every set."""
        return self.has_items and self.config.measure == "jaccard"

    @property
    def has_slots(self) -> bool:
        """Whether similar documents agree in many slots of their signatures."""
        return self.config.measure in ("jaccard", "weighted")


def layout_of(plan: Plan, config: Config, *, store: str, has_set_postings: bool = False) -> Layout:
    """Return the widths of the rows of an index with these settings; store: what it stores of documents."""
    kind: Any = np.uint64 if config.measure == "cosine" else np.uint32
    widths = {
        "cosine": -(-config.num_perm // 64),
        "jaccard": config.num_perm,
        "weighted": config.num_perm,
    }
    width = widths.get(config.measure, 0)
    return Layout(
        config, plan.bands, kind, width, store != "signature", has_set_postings, store == "text"
    )


def _parse(number: int, data: Any, layout: Layout) -> tuple[int, U64, Any, dict[str, Any]]:
    """Parse the bytes of one document."""
    sketch = f"the sketch of document number {number}, which is not yet in a run,"
    head = 8 + 8 * layout.bands
    signature_end = head + layout.signature_width * np.dtype(layout.signature_type).itemsize
    if data.size < signature_end:
        raise damaged(f"{sketch} is too short")
    size = int(data[:8].view(np.int64)[0])
    at = signature_end
    arrays: dict[str, Any] = {}
    for name, (kind, width) in item_columns(layout.config).items() if layout.has_items else ():
        if name == "ends":
            continue
        stop = at + 8 * (size if width is None else max(width, 1))
        if size < 0 or stop > data.size:
            raise damaged(f"{sketch} is too short")
        arrays[name] = data[at:stop].copy().view(kind)
        at = stop
    if at != data.size:
        raise damaged(f"{sketch} is too long")
    return (
        size,
        data[8:head].copy().view(np.uint64),
        data[head:signature_end].copy().view(layout.signature_type),
        arrays,
    )


class GrowingSketches:
    """A growing array of documents, in amortised constant time per document."""

    def __init__(self) -> None:
        self._buffers: dict[str, Any] = {}
        self._used: dict[str, int] = {}

    def append(self, sketches: Sketches) -> None:
        """Add documents."""
        arrays = {"signatures": sketches.signatures, "keys": sketches.keys, "sizes": sketches.sizes}
        for name, array in (arrays | item_arrays(sketches.items)).items():
            if name == "ends":
                if name in self._buffers:
                    last = self._buffers[name][self._used[name] - 1]
                else:
                    last = 0
                array = array[1:] + last if name in self._buffers else array
            self._extend(name, array)

    def _extend(self, name: str, array: Any) -> None:
        used = self._used.get(name, 0)
        needed = used + array.shape[0]
        previous = self._buffers.get(name)
        if previous is None or previous.shape[0] < needed:
            grown = np.empty((max(64, 2 * needed), *array.shape[1:]), array.dtype)
            if previous is not None:
                grown[:used] = previous[:used]
            self._buffers[name] = grown
        self._buffers[name][used:needed] = array
        self._used[name] = needed

    def view(self, config: Config) -> Sketches | None:
        """Return the documents added so far, without a copy; None if there are none."""
        if not self._buffers:
            return None
        arrays = {name: buffer[: self._used[name]] for name, buffer in self._buffers.items()}
        signatures, keys, sizes = (arrays.pop(name) for name in ("signatures", "keys", "sizes"))
        return Sketches(items_from(arrays, config) if arrays else None, signatures, keys, sizes)


def take_sketches(sketches: Sketches, docs: I64, config: Config) -> Sketches:
    """Copy some documents."""
    if sketches.items is None:
        items = None
    else:
        items = take_items(item_arrays(sketches.items), docs, config)
    return Sketches(items, sketches.signatures[docs], sketches.keys[docs], sketches.sizes[docs])


def with_keys(sketches: Sketches, plan: Plan, config: Config) -> Sketches:
    """Compute the band keys of documents without any, such as those of a segment."""
    if sketches.keys.shape[1]:
        return sketches
    if config.measure == "cosine":
        slots = np.unpackbits(sketches.signatures.view(np.uint8), axis=1)[:, : config.num_perm]
    elif config.measure in ("jaccard", "weighted"):
        slots = sketches.signatures
    else:
        _, slots = measure_of(config).sign(sketches.items, plan, config)
    return sketches._replace(keys=band_keys(slots, plan))
