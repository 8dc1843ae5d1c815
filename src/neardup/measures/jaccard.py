"""Jaccard similarity of shingle sets: from texts to sets, and from sets to signatures and band keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.io.columns.main_content import versions
from neardup.kernels import bands, distinct, members, shingle
from neardup.kernels import sketch as sketcher
from neardup.kernels.keys import shingle_key
from neardup.kernels.similarity import Sets
from neardup.kernels.unicode import UNICODE_VERSION, fold_accents, load_table, normalise
from neardup.measures.base import (
    I64,
    U8,
    U32,
    U64,
    Hold,
    Signatures,
    Sketched,
    Slots,
    content_words,
    digest_key_of,
    group_salts,
    mix,
    separate_groups,
)
from neardup.measures.ignored import load_ignored
from neardup.theory.plan import Plan

SHINGLERS: Final = {
    "word": shingle.shingle_words,
    "char": shingle.shingle_characters,
    "items": shingle.shingle_items,
}
SKETCHES: Final = {"fast": sketcher.fast_sketch, "minhash": sketcher.minhash}
# If the contents of signatures change, increase the number here and add a golden file to the tests.
FORMATS: Final = {"fast": "fast-3", "minhash": "minhash-3"}
# Of items, which are not folded, and of texts whose invisible characters separate words (docs/decisions/0040).
UNCHANGED_FORMATS: Final = {"fast": "fast-2", "minhash": "minhash-2"}
# Replaces the shingles of a document if all of them are ignored; no shingle has this hash.
ONLY_IGNORED: Final = np.uint64(0)
# Bytes of text per kernel call, so that the shingles (8 bytes for about 6 of text) stay in the
# cache of a core.
CACHE_BYTES: Final = 512 << 10
# The least bytes of text per shingle: a letter and a space, a character, or the end of an item.
_BYTES_PER_SHINGLE: Final = {"word": 2, "char": 1, "items": 1}


class Collected(NamedTuple):
    """The result of the first pass of the exact join for each document, including its set, unsorted."""

    sizes: I64
    digests: U64
    sets: Sets
    held_at: I64


def signature_format(config: Config) -> str:
    """Name the format of a signature: equal names mean comparable signatures."""
    kind = _kind(config)
    names = FORMATS
    if kind == "items" or config.separates_invisible:
        names = UNCHANGED_FORMATS
    parts = [names[config.sketch]]
    if kind == "items":
        parts.append(kind)
    else:
        parts.append(f"{kind}-{config.size}")
    parts.append(f"perm-{config.num_perm}")
    parts.append(f"seed-{config.seed}")
    parts.append(f"unicode-{UNICODE_VERSION}")
    # What follows is only there if it is not the default, so that older signatures keep their name.
    flags = ("multiset", "fold_numbers", "fold_accents")
    parts += [name for name in flags if getattr(config, name)]
    if config.normalise != "nfc":
        parts.append(config.normalise)
    if config.ignore:
        parts.append(f"ignore-{load_ignored(config, distinct_shingles).digest}")
    if config.ignore_common is not None:
        parts.append(f"common-{config.ignore_common:g}-{config.common_by or 'all'}")
    if config.weights is not None:
        parts.append(f"weights-{config.weights}")
    if config.html:
        parts.append(f"html-{config.html_content}")
        if config.html_content == "main":
            parts.append(versions())
    if config.asks_code:
        from neardup.io.columns.code import signature_name  # few runs compare code

        parts.append(signature_name(config))
    return " ".join(parts)


def holds_sets(config: Config) -> bool:
    """Whether the set of a document is about as large as its text, so that it is kept in memory instead."""
    return _kind(config) == "word"


def sketch(
    contents: pa.Array,
    plan: Plan,
    config: Config,
    groups: I64 | None = None,
    hold: Hold | None = None,
    secret: bytes | None = None,
) -> Sketched:
    """Return number of shingles, digest and band keys of every text, in one pass; `hold` keeps the sets.

    Texts of different groups share neither; group 0 means no group. Secret as for `Measure.sketch`.
    """
    num_docs = len(contents)
    sizes = np.empty(num_docs, np.int64)
    digests = np.empty((num_docs, 2), np.uint64)
    keys = np.empty((num_docs, plan.bands), np.uint64)
    held_at = np.zeros(num_docs, np.int64)
    digest_key = digest_key_of(secret)
    for start, stop, shingles, ends in _shingled(contents, config):
        signatures = np.empty((stop - start, config.num_perm), np.uint32)
        _sketch(shingles, ends, config, signatures)
        bands.band_keys(signatures, plan.rows, keys[start:stop])
        distinct.digest_sets(shingles, ends, digest_key, digests[start:stop], sizes[start:stop])
        if hold is not None:
            set_ends = np.cumsum(sizes[start:stop])
            set_starts = set_ends - sizes[start:stop]
            held_at[start:stop] = hold(shingles[: set_ends[-1]]) + set_starts
    if groups is not None and groups.any():
        keys ^= group_salts(groups)[:, None]
    separate_groups(digests, groups, digest_key)
    return Sketched(sizes, digests, keys, held_at)


def items(contents: pa.Array, config: Config) -> Sets:
    """Return the sets of documents, unsorted, from their texts or from the sets kept in memory."""
    if not pa.types.is_large_list_view(contents.type):
        return collect_texts(contents, config).sets
    ends: I64 = np.cumsum(np.r_[0, contents.sizes.to_numpy()], dtype=np.int64)
    gathered = np.empty(ends[-1], np.uint64)
    in_place = contents.values.to_numpy().view(np.uint64)
    distinct.gather_sets(in_place, contents.offsets.to_numpy(), gathered, ends)
    return Sets(gathered, ends)


def sign(items: Sets, plan: Plan, config: Config) -> tuple[Signatures, Slots]:
    """Return the signatures, which are the slots as well."""
    del plan
    signatures = set_signatures(items, config)
    return signatures, signatures


def text_sets(texts: pa.Array, config: Config) -> Sets:
    """Return the shingle set of every text, in ascending order."""
    parts = [np.empty(0, np.uint64)]
    ends = np.zeros(len(texts) + 1, np.int64)
    for start, shingles, raw_ends in shingle_runs(texts, config):
        sets = raw_sets(shingles, raw_ends)
        stop = start + sets.ends.size - 1
        parts.append(sets.shingles.copy())
        ends[start + 1 : stop + 1] = ends[start] + sets.ends[1:]
    return Sets(np.concatenate(parts), ends)


def collect_texts(
    texts: pa.Array,
    config: Config,
    groups: I64 | None = None,
    hold: Hold | None = None,
    secret: bytes | None = None,
) -> Collected:
    """Return the set of every text, its size and digest, in one pass; groups, `hold` and secret as for `sketch`."""
    parts = [np.empty(0, np.uint64)]
    sizes = np.empty(len(texts), np.int64)
    digests = np.empty((sizes.size, 2), np.uint64)
    digest_key = digest_key_of(secret)
    for start, shingles, raw_ends in shingle_runs(texts, config):
        stop = start + raw_ends.size - 1
        distinct.digest_sets(shingles, raw_ends, digest_key, digests[start:stop], sizes[start:stop])
        parts.append(shingles[: sizes[start:stop].sum()].copy())
    collected = np.concatenate(parts)
    ends = np.cumsum(np.r_[0, sizes], dtype=np.int64)
    held_at = ends[:-1].copy()
    if hold is not None:
        held_at += hold(collected)
    if groups is not None and groups.any():
        collected ^= np.repeat(group_salts(groups), sizes)
    separate_groups(digests, groups, digest_key)
    return Collected(sizes, digests, Sets(collected, ends), held_at)


def shingle_runs(texts: pa.Array, config: Config) -> Iterator[tuple[int, U64, I64]]:
    """Iterate over cache-sized runs of texts: position of the first, and all shingles, unsorted, with repetitions."""
    for start, _, shingles, ends in _shingled(texts, config):
        yield start, shingles, ends


def raw_sets(shingles: U64, ends: I64) -> Sets:
    """Return the shingles of documents as sets: sorted and distinct."""
    sets = np.empty(shingles.size, np.uint64)
    set_ends = np.empty(ends.size, np.int64)
    distinct.sort_sets(shingles, ends, sets, set_ends)
    return Sets(sets[: set_ends[-1]], set_ends)


def text_signatures(texts: pa.Array, config: Config, out: U32 | None = None) -> U32:
    """Return the signature of every text, written to `out` if given."""
    if out is None:
        signatures = np.empty((len(texts), config.num_perm), np.uint32)
    else:
        signatures = out
    for start, stop, shingles, ends in _shingled(texts, config):
        _sketch(shingles, ends, config, signatures[start:stop])
    return signatures


def set_signatures(sets: Sets, config: Config) -> U32:
    """Return the signature of every set, equal to that of its text."""
    signatures = np.empty((sets.ends.size - 1, config.num_perm), np.uint32)
    _sketch(sets.shingles, sets.ends, config, signatures)
    return signatures


def component_keys(components: I64, groups: I64) -> U64:
    """Return one key per document, shared by all documents of its component and group."""
    return (mix(components.view(np.uint64)) ^ group_salts(groups))[:, None]


def text_buffers(texts: pa.Array) -> tuple[U8, I64]:
    """Return the bytes and the offsets of a string array without nulls, without a copy."""
    _, offsets, data = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    if offsets:
        view = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1]
    else:
        view = np.zeros(1)
    return _readonly(data or b""), view.astype(np.int64)


def _readonly(data: pa.Buffer | bytes) -> U8:
    """Return a read-only view: Numba compiles kernels for writable and read-only arrays separately."""
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


def cache_sized(offsets: I64) -> Iterator[tuple[int, int]]:
    """Split documents into runs of about CACHE_BYTES, at least one document each."""
    start = 0
    num_docs = offsets.size - 1
    while start < num_docs:
        stop = int(np.searchsorted(offsets, offsets[start] + CACHE_BYTES, side="right")) - 1
        stop = min(max(stop, start + 1), num_docs)
        yield start, stop
        start = stop


def _shingled(contents: pa.Array, config: Config) -> Iterator[tuple[int, int, U64, I64]]:
    """Iterate over cache-sized runs of documents: their bounds, and all shingles that count."""
    if pa.types.is_large_binary(contents.type):
        yield from _counted(contents, config)
        return
    if config.ignore_common is not None:
        raise RuntimeError("texts were not replaced by their shingles, of which some are common")
    source, offsets = text_buffers(contents)
    for start, stop in cache_sized(offsets):
        yield start, stop, *_shingle(source, offsets[start : stop + 1], config)


def _counted(contents: pa.Array, config: Config) -> Iterator[tuple[int, int, U64, I64]]:
    """Iterate over runs of documents whose contents are their shingles, without the common ones."""
    words, word_ends = content_words(contents)
    for start, stop in cache_sized(word_ends * words.itemsize):
        shingles = words[word_ends[start] : word_ends[stop]].copy()
        ends = word_ends[start : stop + 1] - word_ends[start]
        is_shingle = shingles != ONLY_IGNORED
        if not is_shingle.all():
            ends = np.cumsum(np.r_[0, is_shingle])[ends]
            shingles = shingles[is_shingle]
        if config.multiset:
            distinct.number_repetitions(shingles, ends)
        yield start, stop, shingles, ends


def _shingle(source: U8, offsets: I64, config: Config) -> tuple[U64, I64]:
    if (config.normalise != "nfc" or config.fold_accents) and _kind(config) != "items":
        source, offsets = fold_run(source, offsets, config)
    shingles, ends, is_normal = _run_shingler(source, offsets, config)
    if not is_normal.all():
        shingles, ends, _ = _run_shingler(
            *normalise_run(source, offsets, is_normal, config), config
        )
    if config.ignore:
        ignored = load_ignored(config, distinct_shingles)
        members.drop_members(shingles, ends, ignored.capacity, ignored.table)
        shingles = shingles[: ends[-1]]
    if config.multiset:
        distinct.number_repetitions(shingles, ends)
    return shingles, ends


def _kind(config: Config) -> str:
    if config.items_column is not None:
        return "items"
    return "word" if config.asks_code else config.unit


def _run_shingler(
    source: U8, offsets: I64, config: Config
) -> tuple[U64, I64, npt.NDArray[np.bool_]]:
    num_docs = offsets.size - 1
    kind = _kind(config)
    room = int(offsets[-1] - offsets[0]) // _BYTES_PER_SHINGLE[kind] + num_docs + 1
    shingles = np.empty(room, np.uint64)
    ends = np.empty(num_docs + 1, np.int64)
    is_normal = np.empty(num_docs, np.bool_)
    table = tuple(load_table(separates_invisible=config.separates_invisible))
    asked = table, config.size, shingle_key(config.seed), config.fold_numbers
    SHINGLERS[kind](source, offsets, *asked, shingles, ends, is_normal)
    return shingles[: ends[-1]], ends, is_normal


def distinct_shingles(texts: pa.Array, config: Config) -> U64:
    """Return the distinct shingles of all texts, in ascending order."""
    return np.unique(text_sets(texts, config).shingles)


def have_shingles(texts: pa.Array, config: Config) -> npt.NDArray[np.bool_]:
    """Return which texts have shingles, ignored ones included."""
    whole = Config.of(config, ignore=(), ignore_common=None, common_by=None)
    has_any: npt.NDArray[np.bool_] = np.diff(text_sets(texts, whole).ends) > 0
    return has_any


def fold_run(source: U8, offsets: I64, config: Config) -> tuple[U8, I64]:
    """Copy a run of documents in the requested normal form; pure ASCII documents are not copied."""
    run = source[offsets[0] : offsets[-1]]
    if not run.size or run.max() < 0x80:  # ASCII runs at 292 MB/s with and without this check
        return source, offsets

    def fold(text: str) -> str:
        text = normalise(text, config.normalise, separates_invisible=config.separates_invisible)
        return fold_accents(text) if config.fold_accents else text

    texts = _cut(source, offsets)
    return _rewritten(texts, [text.isascii() for text in texts], fold)


def normalise_run(
    source: U8, offsets: I64, is_normal: npt.NDArray[np.bool_], config: Config
) -> tuple[U8, I64]:
    """Copy a run of documents, normalising those that may not be in Unicode normal form C."""
    rewrite = partial(normalise, separates_invisible=config.separates_invisible)
    return _rewritten(_cut(source, offsets), is_normal.tolist(), rewrite)


def _cut(source: U8, offsets: I64) -> list[bytes]:
    return [source[start:stop].tobytes() for start, stop in pairwise(offsets.tolist())]


def _rewritten(
    texts: list[bytes], stays: list[bool], rewrite: Callable[[str], str]
) -> tuple[U8, I64]:
    """Concatenate texts, rewriting all except those already in normal form."""
    rewritten = [
        text if stay else rewrite(text.decode("utf-8", "replace")).encode("utf-8", "replace")
        for text, stay in zip(texts, stays, strict=True)
    ]
    return _readonly(b"".join(rewritten)), np.cumsum([0, *map(len, rewritten)], dtype=np.int64)


def _sketch(shingles: U64, ends: I64, config: Config, signatures: U32) -> None:
    multipliers, addends = _coefficients()
    SKETCHES[config.sketch](
        shingles, ends, multipliers[: config.num_perm], addends[: config.num_perm], signatures
    )


@cache
def _coefficients() -> tuple[U32, U32]:
    """The linear hash functions of MinHash and of the fallback round: fixed, because the seed keys the shingle hash."""
    drawn = mix(mix(np.arange(1024, dtype=np.uint64)))
    return (drawn >> np.uint64(32)).astype(np.uint32) | np.uint32(1), drawn.astype(np.uint32)
