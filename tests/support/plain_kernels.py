"""Kernels in plain Python: the oracles of the compiled kernels."""

import sys
import types

import numpy as np

from neardup.stages import match

KERNELS = "neardup.kernels."


def plain(module):
    """A copy of a kernel module that runs in plain Python, including inner calls and imported kernels."""
    return _copy(module, {})


def plain_match(failed_base=None):
    """A copy of the matching of components over plain kernels; hot after `failed_base` failures, if given."""
    copies = {}
    copy = _copy(match, copies)
    copy.kernel, copy.list_kernel = (
        _copy(module, copies) for module in (match.kernel, match.list_kernel)
    )
    if failed_base is not None:
        copy.kernel.FAILED_BASE = failed_base
        copy.kernel.FAILED_PER_DOC = 0
    return copy


class PutPairs:
    """Takes the pairs found, piece by piece."""

    def __init__(self):
        self.pieces = []

    def __call__(self, left, right, similarities):
        self.pieces.append((left, right, similarities))

    def columns(self):
        nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        return tuple(map(np.concatenate, zip(nothing, *self.pieces, strict=True)))


def _copy(module, copies):
    """`copies`: the copies made so far, by name; a function runs among the names of the copy of its own module."""
    if module.__name__ not in copies:
        copy = copies[module.__name__] = types.ModuleType(f"plain_{module.__name__}")
        for name, value in vars(module).items():
            setattr(
                copy, name, value if name.startswith("__") else _plain_value(value, module, copies)
            )
    return copies[module.__name__]


def _plain_value(value, module, copies):
    if isinstance(value, dict):
        return {key: _plain_value(entry, module, copies) for key, entry in value.items()}
    function = getattr(value, "py_func", value)
    is_ours = isinstance(function, types.FunctionType) and function.__module__.startswith(
        (KERNELS, module.__name__)
    )
    if not is_ours:
        return value
    home = _copy(sys.modules[function.__module__], copies)
    rebound = types.FunctionType(function.__code__, vars(home), closure=function.__closure__)
    rebound.__kwdefaults__ = function.__kwdefaults__
    return rebound
