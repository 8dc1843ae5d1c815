"""The groups in which `ignore_common` counts shingles: the host of an address, a file, or the value of a column."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.config import Config
from neardup.io.columns.column_checks import hash_groups, is_valid

I64 = npt.NDArray[np.int64]

# The column of addresses; without it, the ids are taken as addresses.
URL_COLUMN: Final = "url"
# A document of no group, such as one without an address, and the one group of all documents.
NO_GROUP: Final = 0
ALL: Final = 1
_HOST: Final = (
    r"^\s*[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@\s]*@)?(?P<host>\[[^\]/?#]*\]|[^/?#:@\[\]\s]+)"
)


def hosts_of(addresses: pa.Array) -> pa.Array:
    """Return the host of each address, in lower case, without user, port and a dot at its end; null if it has none.

    >>> hosts_of(pa.array(["https://me@News.Example.:8080/a?b", "/a", None])).to_pylist()
    ['news.example', None, None]
    """
    found = pc.extract_regex(addresses.cast(pa.string()), _HOST)
    hosts = pc.utf8_rtrim(pc.utf8_lower(pc.struct_field(found, "host")), ".")
    return pc.if_else(pc.equal(hosts, ""), None, hosts)


def common_keys(
    ids: pa.Array, values: pa.Array | None, config: Config, file: str | None = None
) -> I64:
    """Return a hash of the group of every document, NO_GROUP for those of none.

    ids: the ids of the documents; values: those of the column that groups them; file: their file,
    None for a file that is one document.
    """
    if config.common_by is None:
        return np.full(len(ids), ALL)
    if config.common_by == "file":
        if file is None:
            return np.full(len(ids), NO_GROUP)
        return np.repeat(hash_groups(pa.array([file]), config.seed), len(ids))
    if config.common_by == "host":
        names = hosts_of(ids if values is None else values)
    else:
        names = pa.nulls(len(ids), pa.string()) if values is None else values
    return np.where(is_valid(names), hash_groups(names, config.seed), NO_GROUP)
