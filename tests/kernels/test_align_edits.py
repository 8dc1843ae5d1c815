"""Stretches copied with edits: what is found, what a result promises, and bounded work."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import align_edits
from neardup.kernels.align_exact import shared_runs
from support import passages as oracle
from support.plain_kernels import plain

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
PLAIN = plain(align_edits)
HASH = np.uint64(0x9E3779B97F4A7C15)
MIN_WORDS = 18


def run(kernel, a, b, min_words=MIN_WORDS):
    """Spans, and the matches of each."""
    numbers = {word: at for at, word in enumerate(dict.fromkeys([*a, *b]), 1)}
    words = np.array([numbers[word] for word in [*a, *b]], np.uint64) * HASH
    runs = np.empty((len(a), 3), np.int64)
    num_runs = shared_runs(words, len(a), min_words, runs)
    spans, matches, ends = kernel(words, len(a), min_words, runs[:num_runs])
    by_span = [matches[start:end].tolist() for start, end in itertools.pairwise(ends)]
    return spans.tolist(), by_span


def check_promises(a, b, min_words, spans, matches):
    """Matched words are equal, lie in their span, are matched once, and are as many as asked."""
    for (start_a, end_a, start_b, end_b), pairs in zip(spans, matches, strict=True):
        assert len(pairs) >= min_words
        assert all(a[at] == b[other] for at, other in pairs)
        assert all(start_a <= at < end_a and start_b <= other < end_b for at, other in pairs)
        for side in zip(*pairs, strict=True):
            assert max(Counter(side).values()) == 1
    assert spans == sorted(spans, key=lambda span: span[0])


small = st.integers(1, 12).flatmap(lambda most: st.lists(st.integers(0, most - 1), max_size=60))


@given(small, small, st.integers(1, 6))
def test_compiled_and_plain_spans_are_equal_and_keep_the_promises(a, b, min_words):
    found = run(align_edits.edited_spans, a, b, min_words)
    assert run(PLAIN.edited_spans, a, b, min_words) == found
    check_promises(a, b, min_words, *found)


def planted(seed, share):
    """Two texts of which the second has 120 words of the first with edits; where they stand in both."""
    rng = random.Random(seed)
    a = oracle.prose(rng, 800)
    copied = oracle.edited(a[300:420], rng, share)
    before = [f"x{word}" for word in oracle.prose(rng, 200)]
    after = [f"x{word}" for word in oracle.prose(rng, 300)]
    return a, [*before, *copied, *after], (300, 420, 200, 200 + len(copied))


def test_a_copy_with_edits_is_one_span_with_its_ends():
    for seed in range(20):
        for share, tolerance in ((0.0, 20), (0.1, 20), (0.3, 40)):
            a, b, expected = planted(seed, share)
            spans, matches = run(align_edits.edited_spans, a, b)
            assert len(spans) == 1
            misses = np.abs(np.subtract(spans[0], expected))
            assert misses.max() <= tolerance
            check_promises(a, b, MIN_WORDS, spans, matches)
            assert len(matches[0]) >= (1 - share) * 110


def test_sentences_in_another_order_are_one_span():
    rng = random.Random(7)
    a = oracle.prose(rng, 900)
    sentences = [a[at : at + 15] for at in range(300, 420, 15)]
    rng.shuffle(sentences)
    b = [f"x{word}" for word in oracle.prose(rng, 300)] + list(itertools.chain(*sentences))
    spans, matches = run(align_edits.edited_spans, a, b)
    assert spans == [[300, 420, 300, 420]]
    assert len(matches[0]) == 120


def test_two_copies_of_one_stretch_are_two_spans_of_a():
    rng = random.Random(8)
    quote = oracle.prose(rng, 60)
    a = [*quote, *("y" + word for word in oracle.prose(rng, 10)), *quote]
    spans, _ = run(align_edits.edited_spans, a, quote)
    assert spans == [[0, 60, 0, 60], [70, 130, 0, 60]]


def test_texts_of_common_words_alone_share_nothing():
    for seed in range(20):
        rng = random.Random(seed)
        texts = [
            [word if int(word[1:]) < 100 else f"{side}{word}" for word in oracle.prose(rng, 2000)]
            for side in "xy"
        ]
        assert run(align_edits.edited_spans, *texts)[0] == []


def test_a_text_that_repeats_itself_is_found_in_itself():
    for period in (1, 2, 50, 3000):
        text = [f"w{at % period}" for at in range(6000)]
        spans, matches = run(align_edits.edited_spans, text, text)
        assert sum(map(len, matches)) >= 0.9 * len(text), period
        assert spans[0][0] == 0
        spans, matches = run(align_edits.edited_spans, text, text[:3000])
        assert sum(map(len, matches)) >= 2700, period


def test_more_than_the_permitted_seeds_of_a_gram_are_left_out(monkeypatch):
    a, b, _ = planted(1, 0.1)
    assert run(PLAIN.edited_spans, a, b)[0]
    monkeypatch.setattr(PLAIN, "MAX_SEEDS", 0)
    assert run(PLAIN.edited_spans, a, b)[0] == []


def test_hostile_texts_take_time_about_linear_in_their_words():
    num_words = 30_000
    rng = np.random.default_rng(1)
    blocks = [np.arange(30) + 30 * (at // 8) for at in rng.permutation(num_words // 30)]
    other_blocks = [np.arange(30) + 30 * (at // 8) for at in rng.permutation(num_words // 30)]
    texts = {
        "one word": (np.zeros(num_words, int), np.zeros(num_words // 2, int)),
        "a period": (np.arange(num_words) % 3750, np.arange(num_words) % 3750),
        "50 words": (rng.integers(0, 50, num_words), rng.integers(0, 50, num_words)),
        "300 words": (rng.integers(0, 300, num_words), rng.integers(0, 300, num_words)),
        "blocks in eight places": (np.concatenate(blocks), np.concatenate(other_blocks)),
        "all in one place": (np.arange(num_words), np.tile(np.arange(num_words // 64), 64)),
    }
    run(align_edits.edited_spans, [1, 2], [1, 2])
    for name, (a, b) in texts.items():
        began = time.process_time()
        _, matches = run(align_edits.edited_spans, a.tolist(), b.tolist())
        assert time.process_time() - began < 10, name
        # Of spans that overlap in a, only some are listed.
        assert sum(map(len, matches)) <= 2 * num_words, name
