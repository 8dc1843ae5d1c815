"""Kernels in plain Python: the oracle of their compiled selves."""

import types

from neardup.stages import match


def _rebound(function, module):
    return types.FunctionType(function.__code__, vars(module), closure=function.__closure__)


def _plain_value(value, module, copy):
    if isinstance(value, dict):
        return {key: _plain_value(entry, module, copy) for key, entry in value.items()}
    is_ours = isinstance(value, types.FunctionType) and value.__module__ == module.__name__
    function = getattr(value, "py_func", value if is_ours else None)
    return _rebound(function, copy) if function else value


def plain_match(failed_base=None):
    """A copy of the matching of components over plain kernels; hot after `failed_base` failures, if given."""
    copy = plain(match)
    copy.kernel, copy.lists = plain(match.kernel), plain(match.lists)
    copy.match_components.__kwdefaults__ = match.match_components.__kwdefaults__
    if failed_base is not None:
        copy.kernel.FAILED_BASE, copy.kernel.FAILED_PER_DOC = failed_base, 0
    return copy


def plain(module):
    """A copy of a kernel module that runs in plain Python, its inner calls too."""
    copy = types.ModuleType(f"plain_{module.__name__}")
    for name, value in vars(module).items():
        setattr(copy, name, value if name.startswith("__") else _plain_value(value, module, copy))
    return copy
