"""Baskets of customers: some buy for the same household; truth.csv says who."""

from __future__ import annotations

import json
import random
from pathlib import Path

PRODUCTS = [
    f"{what} {kind}"
    for what in "green black white fresh dried smoked salted roasted organic frozen".split()
    for kind in "tea coffee rice beans bread butter cheese fish apples nuts pasta oil".split()
]
NUM_CUSTOMERS = 400
NUM_HOUSEHOLDS = 40


def make(folder: Path) -> None:
    """Write customers.jsonl, and truth.json with the customers that are one household."""
    rng = random.Random(11)
    baskets = [rng.sample(PRODUCTS, rng.randrange(8, 25)) for _ in range(NUM_CUSTOMERS)]
    for number in range(NUM_HOUSEHOLDS):  # the second of a household buys nearly the same
        own = list(baskets[number])
        own[rng.randrange(len(own))] = rng.choice(
            [product for product in PRODUCTS if product not in own]
        )
        baskets.append(own)
    rows = [{"id": f"k{number:03}", "products": basket} for number, basket in enumerate(baskets)]
    (folder / "customers.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), "utf-8"
    )
    truth = {f"k{NUM_CUSTOMERS + number:03}": f"k{number:03}" for number in range(NUM_HOUSEHOLDS)}
    (folder / "truth.json").write_text(json.dumps(truth), "utf-8")
