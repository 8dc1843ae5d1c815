"""Kernels in plain Python: the oracle of their compiled selves."""

import types


def plain(module):
    """A copy of a kernel module that runs in plain Python, its inner calls too."""
    copy = types.ModuleType(f"plain_{module.__name__}")
    for name, value in vars(module).items():
        function = getattr(value, "py_func", None)
        setattr(copy, name, types.FunctionType(function.__code__, vars(copy)) if function else value)
    return copy
