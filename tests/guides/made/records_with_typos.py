"""Contacts of which some are in the list twice, with a typo or two; truth.csv says which."""

from __future__ import annotations

import csv
import random
from pathlib import Path

# As in real lists, people share first names and kinds of streets, and hardly any other name.
FIRST = "Margaret Tomasz Eleanor Rashid Ingrid Patrick Yolanda Dmitri Beatrice Hamish Concepcion Oluwaseun".split()
SYLLABLES = (
    "ab ber cas dor el fen gra hol ick jun kel lind mor nes oak pry quin rus sed tham urn vil wen yar zel"
).split()
WAYS = "Lane Road Drive Street Hill Row".split()
NUM_PEOPLE = 300
NUM_TWICE = 60


def make(folder: Path) -> None:
    """Write contacts.csv, and truth.csv with the ids of contacts that are one person."""
    rng = random.Random(7)
    people = [_contact(rng, number) for number in range(NUM_PEOPLE)]
    rows = [(f"c{number:03}", *person) for number, person in enumerate(people)]
    twice = [
        (f"d{number:03}", f"c{number:03}", _mistyped(rng, people[number]))
        for number in range(NUM_TWICE)
    ]
    rows += [(own, *person) for own, _, person in twice]
    _write(folder / "contacts.csv", ["id", "name", "address", "phone"], rows)
    _write(folder / "truth.csv", ["id", "same_as"], [(own, other) for own, other, _ in twice])


def _contact(rng: random.Random, number: int) -> tuple[str, ...]:
    name = f"{rng.choice(FIRST)} {rng.choice('ABCDEFGHJKLMNPRSTW')}. {_word(rng)}"
    address = f"{rng.randrange(1, 400)} {_word(rng)} {rng.choice(WAYS)}, {_word(rng)} {_word(rng)}"
    return name, address, f"0{rng.randrange(10**9, 10**10)}{number % 10}"


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=3)).capitalize()


def _mistyped(rng: random.Random, person: tuple[str, ...]) -> tuple[str, ...]:
    """Swap two letters of the name, and drop one of the address in every second contact."""
    name, address, phone = person
    at = rng.randrange(1, len(name) - 2)
    name = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    if rng.random() < 0.5:
        at = rng.randrange(5, len(address) - 1)
        address = address[:at] + address[at + 1 :]
    return name, address, phone


def _write(path: Path, names: list[str], rows: list[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
