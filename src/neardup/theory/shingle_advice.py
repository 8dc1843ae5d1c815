"""Which shingles suit documents of which length: the advice of a run and of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from neardup.config import Config
from neardup.config.checks import SET_MEASURES

# One changed word touches up to `size` shingles: of fewer than ten it leaves less than half.
FEW_SHINGLES: Final = 10
# The size at which a typo changes only about three shingles.
SHORT_SIZE: Final = 3
_LONG_CHARACTERS: Final = 2000


def has_shorter_shingles(config: Config) -> bool:
    """Whether the shingles are longer than short texts need."""
    is_text = config.measure in SET_MEASURES and config.items_column is None
    return is_text and not config.asks_code and (config.unit == "word" or config.size > SHORT_SIZE)


def advise_on_short(num_short: int, num_documents: int) -> str | None:
    """Return advice if most documents have fewer than FEW_SHINGLES shingles, otherwise None.

    >>> print(advise_on_short(31, 33))
    31 of 33 documents have fewer than 10 shingles, so a single typo can hide a match; consider unit='char' and size=3
    """
    if num_documents < 2 or 2 * num_short <= num_documents:
        return None
    return (
        f"{num_short:,} of {num_documents:,} documents have fewer than {FEW_SHINGLES} shingles, so a single typo can "
        f"hide a match; consider unit='char' and size={SHORT_SIZE}"
    )


def advise_on_length(num_characters: float, config: Config) -> Iterator[str]:
    """Advise on the size of character shingles for texts of this median length; the textbook's sizes are 5 and 10."""
    if config.unit == "char" and config.size < 8 and num_characters >= _LONG_CHARACTERS:
        yield (
            f"half of the documents have {num_characters:,.0f} characters or more, so unrelated ones share "
            f"{config.size}-character shingles by chance; consider size=10"
        )
    elif config.unit == "char" and config.size > 7 and num_characters < _LONG_CHARACTERS // 4:
        yield f"half of the documents have {num_characters:,.0f} characters or fewer; consider size=5"
