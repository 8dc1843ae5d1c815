"""One finished run for all tests of the page: a heat map, hostile documents, a rejected row; the data of its page."""

from __future__ import annotations

import base64
import functools
import gzip
import json
import random
import re
from pathlib import Path

import neardup

WORDS = "the ferry to island leaves every morning at nine from second pier behind old customs house and returns".split()
SETTINGS = {"threshold": 0.6, "size": 2, "pairs": True, "seed": 9182736455}
SCRIPT = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'> <!--<script> </script x"


def sentence(random_number: random.Random, num_words: int) -> str:
    return " ".join(
        random_number.choice(WORDS) + str(random_number.randrange(90)) for _ in range(num_words)
    )


@functools.cache
def documents() -> dict[str, str]:
    random_number = random.Random(7)
    page = sentence(random_number, 60)
    found = {"ferry-0": page}
    for number in range(1, 6):
        words = page.split()
        for place in random_number.sample(range(60), number):
            words[place] = f"changed{place}x{number}"
        found[f"ferry-{number}"] = " ".join(words)
    hostile = sentence(random_number, 40)
    found["</script><b>bold"] = f"{hostile} </script>{SCRIPT} \u2028 line \u2029 end"
    found['=1+1,"x"'] = f"{hostile} </script>{SCRIPT} \u2028 line \u2029 done"
    found["bidi \u202egpj"] = f"{sentence(random_number, 30)} \u202eevil\u202c \x1b[2J \u200f\ufeff"
    found["bidi \u202egpk"] = f"{found['bidi ' + chr(0x202E) + 'gpj']} \u202eevil"
    long = sentence(random_number, 400)
    found["long-0"] = " ".join([long] * 4 + ["x" * 10_000_000, "deepword"])
    found["long-1"] = f"{found['long-0']} tail"
    for number in range(12):
        found[f"alone-{number}"] = sentence(random_number, 30)
    return found


def make_run(folder: Path) -> Path:
    """Write the corpus and the run; return the folder of the run."""
    lines = [
        json.dumps({"id": name, "text": text, "lang": "en"}) for name, text in documents().items()
    ]
    (folder / "pages.jsonl").write_text("\n".join([*lines, "{broken"]) + "\n", "utf-8")
    neardup.deduplicate(folder / "pages.jsonl", out=folder / "clean", **SETTINGS)
    return folder / "clean"


_DATA = re.compile(r'(?<=id="data">)[^<]*(?=</script>)')


def data_of(text):
    """The data of a page, as a browser reads it."""
    return json.loads(gzip.decompress(base64.b64decode(_DATA.search(text)[0])))


def with_data(text, data):
    """A page with other data."""
    packed = base64.b64encode(gzip.compress(json.dumps(data).encode())).decode()
    return _DATA.sub(packed, text)
