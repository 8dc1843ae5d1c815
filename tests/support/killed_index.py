"""A process that changes an index until it is killed, and prints what was acknowledged: `killed.py FOLDER SEED`."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sys
from pathlib import Path

from neardup import Index
from neardup.index import folder_view, merge_thread
from support.index_texts import texts


def main(path, seed):
    folder_view.UNFLUSHED_DOCS = 16
    merge_thread.TIER = 3
    draw = random.Random(int(seed))
    with Index.open(path) as index:
        for number in itertools.count():
            name = f"{seed}/{number}"
            step = draw.choice(
                ["insert", "insert", "insert_many", "remove", "replace", "compact", "snapshot"]
            )
            say("began", step, name)
            if step == "insert":
                index.insert(name, f"{name} alone with some words of its own")
            elif step == "insert_many":
                index.insert_many(
                    {f"{name}/{at}": text for at, text in enumerate(texts(12, number).values())}
                )
            elif step == "remove":
                removed = sorted(index.ids())[:3]
                say("removing", *removed)
                index.remove(removed)
            elif step == "replace":
                index.insert(name, "first text of this name is here")
                say("done", "insert", name)
                index.replace(name, f"{name} alone with some words of its own")
            elif step == "compact":
                index.compact()
            else:
                copy = Path(path).with_name("copy")
                old = Path(path).with_name("old")
                shutil.rmtree(old, ignore_errors=True)
                if copy.exists():
                    copy.rename(old)  # a kill must not leave a partly deleted copy
                index.snapshot(copy)
            say("done", step, name)


def say(*words):
    os.write(1, ("\t".join(words) + "\n").encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
