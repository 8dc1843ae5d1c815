"""The documents of an index that share passages with a text: candidates share shingles, and are then aligned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.align.shared_passages import MIN_WORDS, SharedPassages, share_passages
from neardup.align.words_in_text import words_of
from neardup.config import Config
from neardup.config.checks import check_int
from neardup.errors import ConfigError
from neardup.index.bulk import sketch_batch
from neardup.index.filters import filter_of
from neardup.index.segment import directory_of, set_postings
from neardup.index.settings import IndexSettings
from neardup.index.store import Document, Shared, StoreView
from neardup.kernels import lookup
from neardup.kernels.similarity import Sets
from neardup.measures.base import I64

# Any shared shingle is enough.
_MIN_SHARE = 1e-300
_AT_ONCE = 1024


class PassageOptions(NamedTuple):
    """The options of a question for passages."""

    min_words: int
    is_requested: Callable[[Document], bool] | None


class DocumentPassages(NamedTuple):
    """A document, and the passages that it shares with the text."""

    document: Document
    shared: SharedPassages


def check_passages(
    settings: IndexSettings, path: Path, min_words: int | None, where: Any
) -> PassageOptions:
    """Return the options; raise if the index cannot answer."""
    config = settings.config
    if settings.store != "text":
        raise ConfigError(
            f"the index {path} stores no texts, in which passages could be found",
            hint="create it with store='text'",
        )
    if config.unit != "word":
        raise ConfigError(
            f"the index {path} has shingles of characters, by which shared passages can be missed",
            hint="create it with unit='word'",
        )
    least = max(MIN_WORDS, config.size) if min_words is None else min_words
    check_int("min_words", least, 1)
    if least < config.size:
        raise ConfigError(
            f"`min_words` must be at least {config.size}, the words of a shingle of this index, got {least}",
            hint=f"create an index with size={least} to find shorter passages",
        )
    return PassageOptions(least, filter_of(where, None))


def find_passages(
    view: StoreView, contents: pa.Array, options: PassageOptions, settings: IndexSettings
) -> list[DocumentPassages]:
    """Return the documents that share passages with a text, those that share most of its words first.

    A passage of at least as many words as a shingle has a shingle that both texts have. So every document with a
    passage is a candidate.
    """
    config = Config.of(settings.config, min_words=options.min_words)
    text = words_of(contents[0].as_py(), config)
    sketches = sketch_batch(contents, settings)
    least = _least_shared(text.hashes.tolist(), options.min_words, config)
    if not least or not isinstance(sketches.items, Sets):
        return []
    numbers = [
        shared.numbers[shared.counts >= least]
        for shared in _sharing(view, sketches.items, settings)
    ]
    candidates = np.unique(np.concatenate([np.empty(0, np.int64), *numbers])).tolist()
    found = []
    for first in range(0, len(candidates), _AT_ONCE):
        live = view.fetch(candidates[first : first + _AT_ONCE])
        for number, document in sorted(live.items()):
            if options.is_requested is not None and not options.is_requested(document):
                continue
            shared = share_passages(text, words_of(view.text_of(number) or "", config), config)
            if shared.columns["words"].size:
                found.append(DocumentPassages(document, shared))
    found.sort(key=lambda each: -each.shared.share_a)  # stable: ties in insertion order
    return found


def _least_shared(words: Sequence[int], min_words: int, config: Config) -> int:
    """Return how many distinct shingles every run of `min_words` words of a text has at least; 0 if it is shorter."""
    if len(words) < min_words:
        return 0
    size = config.size
    window = min_words - size + 1
    counts: dict[tuple[int, ...], int] = {}
    inside: deque[tuple[int, ...]] = deque()
    least = window
    for at in range(len(words) - size + 1):
        shingle = tuple(words[at : at + size])
        inside.append(shingle)
        counts[shingle] = counts.get(shingle, 0) + 1
        if len(inside) > window:
            gone = inside.popleft()
            counts[gone] -= 1
            if not counts[gone]:
                del counts[gone]
        if len(inside) == window:
            least = min(least, len(counts))
    return least


def _sharing(view: StoreView, sets: Sets, settings: IndexSettings) -> Iterator[Shared]:
    """Iterate over the documents that share shingles: by postings if the index has them, else through all sets."""
    if settings.containment:
        yield from view.count_shared(sets, _MIN_SHARE)
        return
    keys, owners = set_postings(sets)
    directory = directory_of([keys], keys.size)
    sizes: I64 = np.diff(sets.ends)
    for numbers, stored in view.sketches():
        docs, queries, counts, _ = lookup.count_shared(
            stored.items, keys, owners, directory, sizes, _MIN_SHARE
        )
        yield Shared(queries, numbers[docs], counts, stored.sizes[docs])
