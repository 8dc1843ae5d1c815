"""The options of a query, checked against what the index can answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from neardup.config import Config
from neardup.config.checks import as_float, check_real
from neardup.errors import ConfigError
from neardup.index.result_types import filter_of
from neardup.index.settings import Settings
from neardup.index.store import Document

# More matches than any index has documents.
_MOST_MATCHES: Final = 1 << 40


class QueryOptions(NamedTuple):
    """The options of a query; least: the minimum similarity, or containment of the smaller in the larger."""

    k: int | None
    least: float
    is_requested: Callable[[Document], bool] | None = None
    is_containment: bool = False


def check_query(
    settings: Settings,
    path: Path,
    k: Any,
    threshold: Any = None,
    where: Any = None,
    since: Any = None,
    containment: Any = None,
) -> QueryOptions:
    """Return the options of queries; raise if the index cannot answer them."""
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 1):
        raise ConfigError(f"`k` must be a whole number >= 1, or None for all, got {k!r}")
    k = None if k is None else min(k, _MOST_MATCHES)
    if containment is None:
        return QueryOptions(k, _least_similarity(threshold, settings.config), filter_of(where, since))
    if threshold is not None:
        raise ConfigError("a query takes `threshold` or `containment`, not both", hint="leave one of them out")
    if not settings.containment:
        raise ConfigError(
            f"the index {path} has no postings of shingles, which a query with `containment` needs",
            hint="create it with containment=True",
        )
    check_real("containment", containment, "in (0, 1]", 0 < as_float(containment) <= 1)
    return QueryOptions(k, float(containment), filter_of(where, since), is_containment=True)


def _least_similarity(threshold: Any, config: Config) -> float:
    if threshold is None:
        return config.threshold
    least = Config.of(threshold=threshold).threshold
    if least < config.threshold:
        raise ConfigError(
            f"`threshold` {least:g} is below that of the index, {config.threshold:g}: its bands would miss many"
            " documents in between",
            hint=f"create an index with threshold={least:g}",
        )
    return least
