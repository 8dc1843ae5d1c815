"""The settings of a run: their values, types, checks, conflicts and distances. Import `Config` from here."""

from neardup.config.config import (
    AUDIT_SAMPLE,
    CHOICES,
    DEFAULT_MIN_WORDS,
    KEEP_BY_PATH,
    KEEP_COLUMN_ORDERS,
    KEEP_NOTHING,
    KEEP_ORDERS,
    MIN_MEMORY,
    NUM_NEIGHBOURS,
    RANDOM_SEED,
    REVIEW_SAMPLE,
    TUNE_SAMPLE,
    Config,
    DrawnSeed,
)

__all__ = [
    "AUDIT_SAMPLE",
    "CHOICES",
    "DEFAULT_MIN_WORDS",
    "KEEP_BY_PATH",
    "KEEP_COLUMN_ORDERS",
    "KEEP_NOTHING",
    "KEEP_ORDERS",
    "MIN_MEMORY",
    "NUM_NEIGHBOURS",
    "RANDOM_SEED",
    "REVIEW_SAMPLE",
    "TUNE_SAMPLE",
    "Config",
    "DrawnSeed",
]
