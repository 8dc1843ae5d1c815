"""Training documents and the questions of a benchmark, with known truth.

Of the questions, some are copied as they are, some quoted inside long documents, some paraphrased,
and some only share common phrases with a training document; among the clean documents some are
near-duplicates of each other.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

NUM_QUESTIONS = 12
SHORT = {"q11": "Who wrote Hamlet?", "q12": "What is osmosis?"}
# What the recipe must remove, by training document: the question, and how it got there.
QUOTED = {"train-03": "q01", "train-07": "q02", "train-12": "q03"}
COPIED = {"train-15": "q04", "train-20": "q05"}
COPIED_SHORT = {"train-25": "q11"}
# What it must leave alone.
PARAPHRASED = {"train-22": "q06"}
SHARES_PHRASES = ("train-23", "train-24")
NEAR_DUPLICATES = (("train-01", "train-02"), ("train-08", "train-09"))
NUM_TRAINING = 30
_PHRASE = "which of the following statements is the best answer to the question"
_WORDS = (
    "cell river energy border market planet engine signal protein valley enzyme orbit treaty harvest current mirror "
    "crystal forest desert voltage muscle island comet union reactor membrane glacier ballot magnet kernel tissue "
    "canal anchor plasma senate copper lattice monsoon quarry tariff vaccine wetland xylem zenith pulley isotope "
    "tundra fungus beacon"
).split()


def _words(seed: str, number: int) -> list[str]:
    rng = random.Random(seed)
    return [rng.choice(_WORDS) + rng.choice(["", "", "s", "al", "ing"]) for _ in range(number)]


def questions() -> dict[str, str]:
    """The questions by id: ten of some twenty words, two of three."""
    made = {
        f"q{at:02}": f"{_PHRASE}: {' '.join(_words(f'question {at}', 20))}?"
        for at in range(1, NUM_QUESTIONS - 1)
    }
    return made | SHORT


def training() -> dict[str, str]:
    """The training documents by id, of some 300 words each."""
    asked = questions()
    made = {
        f"train-{at:02}": " ".join(_words(f"page {at}", 300)) + "."
        for at in range(1, NUM_TRAINING + 1)
    }
    for name, question in QUOTED.items():
        words = made[name].split()
        made[name] = " ".join([*words[:150], asked[question], *words[150:]])
    made |= {name: asked[question] for name, question in (COPIED | COPIED_SHORT).items()}
    for name, question in PARAPHRASED.items():
        made[name] += " " + " ".join(sorted(asked[question].split()))
    for name in SHARES_PHRASES:
        made[name] = f"{_PHRASE}? {made[name]}"
    for first, second in NEAR_DUPLICATES:
        made[second] = made[first].replace(".", " again.")
    return made


def make(folder: Path) -> None:
    """Write questions.jsonl and train.jsonl."""
    for name, documents in (("questions", questions()), ("train", training())):
        lines = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in documents.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
