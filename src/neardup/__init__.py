"""Find near-duplicate documents fast, with known recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.platforms import require_supported
from neardup.version import VERSION

require_supported()

if TYPE_CHECKING:
    from neardup.align.shared_passages import Passage
    from neardup.api import (
        audit,
        decontaminate,
        deduplicate,
        evaluate,
        explain,
        find_pairs,
        find_passages,
        load,
        neighbours,
        plan,
        review,
        tune,
    )
    from neardup.client import AsyncClient, Client
    from neardup.config import Config
    from neardup.engines.spark import SparkEngine
    from neardup.errors import NearDupError
    from neardup.index.index import Index
    from neardup.index.result_types import (
        Inserted,
        InsertNewResult,
        InsertResult,
        Match,
        PassageMatch,
        PutResult,
        StoredDocument,
    )
    from neardup.jobs.bucketing import buckets, merge_signatures
    from neardup.jobs.compare import (
        Comparison,
        compare,
        estimate,
        jaccard,
        passages,
        shingles,
        signatures,
    )
    from neardup.jobs.evaluate import Evaluation
    from neardup.jobs.explain import Explanation
    from neardup.jobs.review import Removal, Review
    from neardup.jobs.tune import Tuning
    from neardup.report import Audit, Report
    from neardup.theory import families as families
    from neardup.theory import textbook as textbook
    from neardup.theory.plan import Plan

__version__ = VERSION
__all__ = [
    "AsyncClient",
    "Audit",
    "Client",
    "Comparison",
    "Config",
    "Evaluation",
    "Explanation",
    "Index",
    "InsertNewResult",
    "InsertResult",
    "Inserted",
    "Match",
    "NearDupError",
    "Passage",
    "PassageMatch",
    "Plan",
    "PutResult",
    "Removal",
    "Report",
    "Review",
    "SparkEngine",
    "StoredDocument",
    "Tuning",
    "audit",
    "buckets",
    "compare",
    "decontaminate",
    "deduplicate",
    "estimate",
    "evaluate",
    "explain",
    "find_pairs",
    "find_passages",
    "jaccard",
    "load",
    "merge_signatures",
    "neighbours",
    "passages",
    "plan",
    "review",
    "shingles",
    "signatures",
    "tune",
]

# Where each public name lives; loaded at first use, because Numba and Arrow take a second to
# import.
_HOMES = {
    "AsyncClient": "neardup.client",
    "Audit": "neardup.report",
    "Client": "neardup.client",
    "Comparison": "neardup.jobs.compare",
    "Config": "neardup.config",
    "Evaluation": "neardup.jobs.evaluate",
    "Explanation": "neardup.jobs.explain",
    "Index": "neardup.index.index",
    "InsertNewResult": "neardup.index.result_types",
    "InsertResult": "neardup.index.result_types",
    "Inserted": "neardup.index.result_types",
    "Match": "neardup.index.result_types",
    "NearDupError": "neardup.errors",
    "Passage": "neardup.align.shared_passages",
    "PassageMatch": "neardup.index.result_types",
    "Plan": "neardup.theory.plan",
    "PutResult": "neardup.index.result_types",
    "Removal": "neardup.jobs.review",
    "Report": "neardup.report",
    "Review": "neardup.jobs.review",
    "SparkEngine": "neardup.engines.spark",
    "StoredDocument": "neardup.index.result_types",
    "Tuning": "neardup.jobs.tune",
    "buckets": "neardup.jobs.bucketing",
    "compare": "neardup.jobs.compare",
    "estimate": "neardup.jobs.compare",
    "jaccard": "neardup.jobs.compare",
    "merge_signatures": "neardup.jobs.bucketing",
    "passages": "neardup.jobs.compare",
    "shingles": "neardup.jobs.compare",
    "signatures": "neardup.jobs.compare",
}
# Modules that are public as a whole: the theory as functions, and the method in plain Python.
_MODULES = {"families": "neardup.theory.families", "textbook": "neardup.theory.textbook"}

# Functions of earlier versions, and what replaces them.
_RENAMED = {
    "deduplicate_files": "deduplicate",
    "find_pairs_files": "find_pairs",
    "neighbours_files": "neighbours",
    "plan_files": "plan",
}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        raise AttributeError(
            f"neardup.{name} does not exist: call neardup.{_RENAMED[name]}, which takes files too"
        )
    if name not in __all__ and name not in _MODULES:
        raise AttributeError(f"module 'neardup' has no attribute {name!r}")
    import importlib

    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    value = getattr(importlib.import_module(_HOMES.get(name, "neardup.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
