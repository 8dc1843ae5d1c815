"""Source code with known copies: one module was copied and its names changed, another was only reformatted."""

from __future__ import annotations

from pathlib import Path

_PRICES = '''"""Prices of a basket."""

RATES = {"food": 0.07, "books": 0.07}


def gross(basket, rates=RATES):
    """Add the tax of every item."""
    total = 0.0
    for item in basket:
        rate = rates.get(item.kind, 0.19)
        if item.count < 1:
            raise ValueError(f"{item.name} has no count")
        total += item.count * item.price * (1 + rate)
    return round(total, 2)


def cheapest(baskets):
    # the first of equal ones
    return min(baskets, key=gross)
'''
_COSTS = """LEVIES = {"fuel": 0.3, "grain": 0.1}


def burden(load, levies=LEVIES):
    result = 0.0
    for part in load:
        levy = levies.get(part.sort, 0.25)  # the usual one
        if part.number < 1:
            raise ValueError(f"no number: {part.label}")
        result += part.number * part.value * (1 + levy)
    return round(result, 3)


def lightest(loads):
    return min(loads, key=burden)
"""
_QUEUE = """class Queue:
    def __init__(self, limit):
        self.limit = limit
        self.items = []

    def put(self, item):
        while len(self.items) >= self.limit:
            self.items.pop(0)
        self.items.append(item)

    def take(self):
        if not self.items:
            return None
        return self.items.pop(0)
"""
_VERSION = 'NAME = "shop"\nVERSION = "1.2"\n'


def make(folder: Path) -> None:
    """Write the modules, and the settings of a formatter beside them."""
    source = folder / "src"
    source.mkdir()
    for name, text in (
        ("prices.py", _PRICES),
        ("costs.py", _COSTS),
        ("queue.py", _QUEUE),
        ("version.py", _VERSION),
        ("release.py", _VERSION.replace("shop", "store")),
    ):
        (source / name).write_text(text, "utf-8")
    old = source / "old"
    old.mkdir()
    spaced = _QUEUE.replace("    ", "  ").replace("\n\n", "\n\n  # ---\n\n")
    (old / "queue.py").write_text(spaced, "utf-8")
    (source / "package.json").write_text('{"private": true}\n', "utf-8")
