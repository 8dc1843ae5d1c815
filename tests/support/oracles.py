"""The whole algorithm in plain Python sets, written independently of the package: the reference for every run.

It imports nothing of neardup. Documents are rows of a list; a pair is (row_a, row_b) with row_a <
row_b.
"""

from __future__ import annotations

import math
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Pairs = dict[tuple[int, int], float]
Removed = dict[int, tuple[int, float]]

# Unicode's White_Space; str.isspace() also accepts U+001C to U+001F.
WHITE_SPACE = frozenset(
    map(
        chr,
        [
            *range(9, 14),
            0x20,
            0x85,
            0xA0,
            0x1680,
            *range(0x2000, 0x200B),
            0x2028,
            0x2029,
            0x202F,
            0x205F,
            0x3000,
        ],
    )
)
# Scripts written without spaces, by the ranges that the tests use; other characters in them still
# separate.
ONE_TOKEN_A_CHARACTER = (
    *((0x0E01, 0x0E5B), (0x0E81, 0x0EDF)),  # Thai, Lao
    *((0x1000, 0x109F), (0xA9E0, 0xA9FE), (0xAA60, 0xAA7F), (0x1780, 0x17F9)),  # Myanmar, Khmer
    *((0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),  # Hiragana, Katakana, their marks
    *(
        (0x3005, 0x3007),
        (0x3021, 0x302D),
        (0x3031, 0x303C),
        (0x3400, 0x9FFF),
        (0xF900, 0xFAD9),
        (0x20000, 0x3134A),
    ),
)


# Nobody sees them, so they split no word: soft hyphen, zero-width characters, word joiner, byte order mark.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"


def fold_case(character: str) -> str:
    """Simple case folding: one character for one character, or none at all (so `ß` and `İ` stay)."""
    candidates = (character.casefold(), character.lower())
    return next((folded for folded in candidates if len(folded) == 1), character)


def normalize(text: str, form: str = "nfc", *, without_accents: bool = False) -> str:
    text = "".join(character for character in text if character not in INVISIBLE)
    text = unicodedata.normalize(form.upper(), text)
    if without_accents:
        letters = [
            character
            for character in unicodedata.normalize("NFD", text)
            if not "\u0300" <= character <= "\u036f"
        ]
        text = unicodedata.normalize("NFC", "".join(letters))
    return "".join(map(fold_case, text))


def is_digit(character: str) -> bool:
    return unicodedata.category(character) == "Nd"


def is_word_character(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LM" or category in ("Nd", "Nl")


def words(text: str, *, fold_numbers: bool = False) -> list[str]:
    tokens = [""]
    for character in normalize(text):
        if not is_word_character(character):
            tokens.append("")
        elif any(low <= ord(character) <= high for low, high in ONE_TOKEN_A_CHARACTER):
            tokens += [character, ""]
        else:
            tokens[-1] += character
    return [
        "0" if fold_numbers and all(map(is_digit, token)) else token for token in tokens if token
    ]


def characters(text: str, *, fold_numbers: bool = False) -> list[str]:
    """The text with each run of white space as one space, also at both ends."""
    units: list[str] = []
    for character in normalize(text):
        unit = (
            " "
            if character in WHITE_SPACE
            else "0"
            if fold_numbers and is_digit(character)
            else character
        )
        joins_a_run = unit == " " or (fold_numbers and unit == "0")
        if not (joins_a_run and units and units[-1] == unit):
            units.append(unit)
    return units


def shingles(
    text: str,
    *,
    unit: str = "word",
    size: int = 5,
    multiset: bool = False,
    fold_numbers: bool = False,
    normalise: str = "nfc",
    fold_accents: bool = False,
) -> frozenset:
    """The set of windows; one shingle of everything when the text is shorter; the empty set when it has no unit."""
    if normalise != "nfc" or fold_accents:
        text = normalize(text, normalise, without_accents=fold_accents)
    units = {"word": words, "char": characters}[unit](text, fold_numbers=fold_numbers)
    windows = (
        [tuple(units[at : at + size]) for at in range(max(1, len(units) - size + 1))]
        if units
        else []
    )
    if not multiset:
        return frozenset(windows)
    return frozenset((window, windows[:at].count(window)) for at, window in enumerate(windows))


def common_shingles(
    sets: Sequence[frozenset], groups: Sequence[Any], share: float
) -> dict[Any, frozenset]:
    """The shingles in more than a share of the distinct sets of a group that has at least 50; None is no group."""
    found = {}
    for group in {*groups} - {None}:
        own = {
            members
            for members, other in zip(sets, groups, strict=True)
            if other == group and members
        }
        counts = Counter(shingle for members in own for shingle in members)
        common = (shingle for shingle, count in counts.items() if count > share * len(own))
        found[group] = frozenset(common) if len(own) >= 50 else frozenset()
    return found


def jaccard(a: frozenset, b: frozenset) -> float:
    """A document without shingles is similar to nothing, not even to itself."""
    return len(a & b) / len(a | b) if a and b else 0.0


def true_pairs(
    sets: Sequence[frozenset], threshold: float, *, collapse_empty: bool = False
) -> Pairs:
    found = {}
    for row_b, b in enumerate(sets):
        for row_a, a in enumerate(sets[:row_b]):
            similarity = 1.0 if collapse_empty and not a and not b else jaccard(a, b)
            if similarity >= threshold:
                found[row_a, row_b] = similarity
    return dict(sorted(found.items()))


def num_exact_duplicates(sets: Sequence[frozenset], *, collapse_empty: bool = False) -> int:
    """Documents that are a copy of a better one: all but one of each class of equal sets."""
    classes = Counter(members for members in sets if members or collapse_empty)
    return sum(classes.values()) - len(classes)


def keep_order(
    keep: str, texts: Sequence[str], scores: Sequence[float | None] | None = None
) -> list[int]:
    """Rows in keep order; ties by row, null and NaN last."""
    rows = range(len(texts))
    if keep == "first":
        return list(rows)
    if keep == "last":
        return list(reversed(rows))
    if keep == "longest":
        return sorted(rows, key=lambda row: -len(texts[row].encode()))
    unknown = [row for row in rows if scores[row] is None or math.isnan(scores[row])]
    known = [row for row in rows if row not in unknown]
    sign = {"max": -1, "min": 1}[keep.partition(":")[0]]
    return sorted(known, key=lambda row: sign * scores[row]) + unknown


def similarity_of(pairs: Pairs, row: int, other: int) -> float | None:
    return pairs.get((min(row, other), max(row, other)))


def leaders(order: Iterable[int], pairs: Pairs) -> Removed:
    """Keep a document unless it is a pair with a kept one; then it points to the most similar kept one so far.

    A copy follows the first of its copies, even if a more similar document was kept in the
    meantime.
    """
    kept: list[int] = []
    removed: Removed = {}
    best_copy: dict[int, int] = {}
    for row in order:
        best_copy[row] = next(
            (other for other in best_copy if similarity_of(pairs, row, other) == 1), row
        )
        matches = [
            (-similarity_of(pairs, row, other), other)
            for other in kept
            if similarity_of(pairs, row, other)
        ]
        if best_copy[row] in removed:
            removed[row] = removed[best_copy[row]]
        elif matches:
            similarity, kept_row = min(matches)
            removed[row] = (kept_row, -similarity)
        else:
            kept.append(row)
    return dict(sorted(removed.items()))


def components(order: Iterable[int], pairs: Pairs, sets: Sequence[frozenset]) -> Removed:
    """Keep the best document of each connected component; the similarity to it may be below the threshold."""
    component = list(range(len(sets)))
    for a, b in pairs:
        old = component[b]
        new = component[a]
        component = [new if label == old else label for label in component]
    best: dict[int, int] = {}
    removed: Removed = {}
    for row in order:
        kept_row = best.setdefault(component[row], row)
        if kept_row != row:
            found = similarity_of(pairs, row, kept_row)
            removed[row] = (
                kept_row,
                jaccard(sets[row], sets[kept_row]) if found is None else found,
            )
    return dict(sorted(removed.items()))


def select(cluster: str, order: Iterable[int], pairs: Pairs, sets: Sequence[frozenset]) -> Removed:
    return leaders(order, pairs) if cluster == "leader" else components(order, pairs, sets)


def thin(order: Iterable[int], members: Removed, per_cluster: int) -> Removed:
    """Keep `per_cluster` documents of every cluster: the kept one, and the next ones in keep order."""
    num_kept: Counter[int] = Counter()
    removed: Removed = {}
    for row in order:
        if row in members:
            kept_row = members[row][0]
            num_kept[kept_row] += 1
            if num_kept[kept_row] > per_cluster - 1:
                removed[row] = members[row]
    return dict(sorted(removed.items()))


def clusters(num_documents: int, removed: Removed) -> list[int]:
    """The kept row of the cluster of each row."""
    return [removed[row][0] if row in removed else row for row in range(num_documents)]


WORDS = """
the harbour bridge Will close FOR nine weekends from March says Port authority don't e-mail x² 😀 a1 _ 7 2024 3.14
١٢ １９ Café naïve straße ΣΟΦΌΣ σοφός हिन्दी 한국어 Ⅷ 東京 カード ひらがな 人々 ไทย ລາວ ខ្មែរ မြန်မာ
"""
BLANKS = (" ", "  ", "\n", "\t", "\u00a0", "\u3000", ", ")


def capitals(text: str) -> str:
    return "".join(
        character.upper() if len(character.upper()) == 1 else character for character in text
    )


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def random_corpus(
    seed: int, num_documents: int, vocabulary: Sequence[str] = tuple(WORDS.split())
) -> list[str]:
    """Documents of few words with edited copies, copies of copies, exact copies in another spelling, and empty ones."""
    rng = random.Random(seed)
    corpus: list[list[str]] = []
    texts: list[str] = []
    for _ in range(num_documents):
        is_copy = corpus and rng.random() < 0.7
        document = list(rng.choice([corpus[-1], *corpus[-20:]])) if is_copy else []
        for _ in range(rng.choice([0, 1, 1, 2, 4]) if document else 0):
            at = rng.randrange(len(document) + 1)
            document[at : at + rng.randrange(2)] = rng.choices(vocabulary, k=rng.randrange(3))
        if not is_copy:
            document = rng.choices(vocabulary, k=rng.choice([0, 0, 1, 3, 5, 8, 12, 20, 30, 40]))
        corpus.append(document)
        blanks = rng.choice([" ", BLANKS])
        text = "".join(word + rng.choice(blanks) for word in document) or rng.choice(
            ["", "", " ", "\n", "...", "😀"]
        )
        texts.append(rng.choice([str, str, str.strip, str.lower, capitals, decomposed])(text))
    return texts


def without_references(pairs: Pairs, references: Iterable[int]) -> Pairs:
    """Reference documents are not compared with each other."""
    references = set(references)
    return {
        (a, b): similarity
        for (a, b), similarity in pairs.items()
        if not (a in references and b in references)
    }


def across(pairs: Pairs, num_references: int) -> Pairs:
    """Only pairs with a reference document count."""
    return {(a, b): similarity for (a, b), similarity in pairs.items() if a < num_references <= b}


def verified_leaders(order: Iterable[int], pairs: Pairs) -> Removed:
    """`leaders` before copies follow the first of their copies."""
    removed: Removed = {}
    passed: list[int] = []
    for row in order:
        kept = [
            other for other in passed if other not in removed and similarity_of(pairs, row, other)
        ]
        if kept:
            best = min(kept, key=lambda other: (-similarity_of(pairs, row, other), other))
            removed[row] = (best, similarity_of(pairs, row, best))
        passed.append(row)
    return removed


def verified_closure(
    order: Iterable[int], pairs: Pairs, sets: Sequence[frozenset], references: Iterable[int]
) -> Removed:
    """`components` where reference documents are always kept."""
    closed = components(order, pairs, sets)
    return {row: match for row, match in closed.items() if row not in set(references)}


def shares_group(pairs: Pairs, groups: Sequence[int]) -> Pairs:
    """Only documents of one group are compared."""
    return {(a, b): similarity for (a, b), similarity in pairs.items() if groups[a] == groups[b]}


class Truth:
    """The expected result of a run on texts, by row from 0; removed as (kept row, similarity).

    The first `num_references` documents are those of --against. A text that is None is a rejected
    row.
    """

    def __init__(
        self,
        texts: Sequence[str | None],
        *,
        threshold: float,
        keep: str = "first",
        cluster: str = "leader",
        scores: Sequence[float | None] | None = None,
        groups: Sequence[str | None] | None = None,
        num_references: int = 0,
        collapse_empty: bool = False,
        only_against: bool = False,
        per_cluster: int = 1,
        ignore_common: float | None = None,
        common_groups: Sequence[Any] | None = None,
        **reading: Any,
    ) -> None:
        self.rows = [row for row, text in enumerate(texts) if text is not None]
        self.num_references = num_references
        self.cluster = cluster
        self.collapse_empty = collapse_empty
        self.only_against = only_against
        self.per_cluster = per_cluster
        self.sets = [shingles(text or "", **reading) for text in texts]
        if ignore_common is not None:
            known = ["all"] * len(texts) if common_groups is None else list(common_groups)
            single = [shingles(text or "", **reading | {"multiset": False}) for text in texts]
            common = common_shingles(single, known, ignore_common)
            gone = [common.get(group, frozenset()) for group in known]
            is_multiset = reading.get("multiset", False)
            self.sets = [
                frozenset(one for one in own if (one[0] if is_multiset else one) not in lost)
                for own, lost in zip(self.sets, gone, strict=True)
            ]
        self.groups = [None] * len(texts) if groups is None else groups
        pairs = shares_group(
            true_pairs(self.sets, threshold, collapse_empty=collapse_empty), self.groups
        )
        pairs = {pair: similarity for pair, similarity in pairs.items() if {*pair} <= {*self.rows}}
        self.pairs = (
            across(pairs, num_references)
            if only_against
            else without_references(pairs, range(num_references))
        )
        order = keep_order(keep, [text or "" for text in texts], scores)
        is_known = set(self.rows).__contains__
        self.order = [
            *filter(is_known, range(num_references)),
            *(row for row in order if row >= num_references and is_known(row)),
        ]
        self.removed = self.select(self.pairs)
        self.kept = [row for row in self.own_rows if row not in self.removed]

    @property
    def own_rows(self) -> list[int]:
        return [row for row in self.rows if row >= self.num_references]

    def members(self, found: Pairs) -> Removed:
        """The members of clusters, given the found pairs."""
        chosen = select(self.cluster, self.order, found, self.sets)
        return {row: match for row, match in chosen.items() if row >= self.num_references}

    def select(self, found: Pairs) -> Removed:
        """The removed documents, given the found pairs."""
        return thin(self.order, self.members(found), self.per_cluster)

    def clusters(self, found: Pairs) -> list[tuple[int, int, int]]:
        """Every own document, the kept one of its cluster, and the size of the cluster."""
        members = self.members(found)
        sizes = Counter(kept_row for kept_row, _ in members.values())
        kept = {row: members[row][0] if row in members else row for row in self.own_rows}
        return [(row, kept_row, sizes[kept_row] + 1) for row, kept_row in kept.items()]

    def classes(self) -> list[list[int]]:
        """Documents that are copies of each other, each class in keep order; those without shingles if asked."""
        found: dict[Any, list[int]] = {}
        for row in self.order:
            if self.sets[row] or self.collapse_empty:
                found.setdefault((self.groups[row], self.sets[row]), []).append(row)
        return list(found.values())

    @property
    def exact_duplicates(self) -> int:
        """The input's own documents that are a copy of a better one; with only_against, of one ahead."""
        classes = [
            copies
            for copies in self.classes()
            if not self.only_against or copies[0] < self.num_references
        ]
        return sum(row >= self.num_references for copies in classes for row in copies[1:])

    def count_against(self, removed: Removed) -> int:
        """How many are removed because of a reference document."""
        return sum(kept_row < self.num_references for kept_row, _ in removed.values())

    def with_copies(self, found: Pairs) -> Pairs:
        """Extend found pairs to copies: a copy has the partners of its original, and is its partner."""
        class_of = {row: copies for copies in self.classes() for row in copies}
        spread = {
            (min(a, b), max(a, b))
            for pair in found
            for a in class_of[pair[0]]
            for b in class_of[pair[1]]
        }
        spread |= {(a, b) for copies in self.classes() for a in copies for b in copies}
        return {pair: similarity for pair, similarity in self.pairs.items() if pair in spread}
