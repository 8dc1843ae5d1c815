"""Kernels in plain Python: the oracle of their compiled selves."""

import types


def _rebound(function, module):
    return types.FunctionType(function.__code__, vars(module), closure=function.__closure__)


def plain(module):
    """A copy of a kernel module that runs in plain Python, its inner calls too."""
    copy = types.ModuleType(f"plain_{module.__name__}")
    for name, value in vars(module).items():
        is_ours = isinstance(value, types.FunctionType) and value.__module__ == module.__name__
        function = getattr(value, "py_func", value if is_ours else None)
        setattr(copy, name, _rebound(function, copy) if function else value)
    return copy
