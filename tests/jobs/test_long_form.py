"""Sets with one row per item: grouped by id, and noticed before the work where they are not."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import ConfigError, DataError

COMMAND = ("--items-column", "item", "--id-column", "customer", "--threshold", "0.6")


def baskets():
    """Baskets of known truth: customers 2n and 2n + 1 share nine of eleven items."""
    draw = random.Random(3)
    found = {}
    for number in range(0, 20, 2):
        shared = draw.sample(range(10_000), 11)
        found[str(number)] = shared[:10]
        found[str(number + 1)] = [*shared[:9], shared[10]]
    return found


def rows_of(found):
    rows = [(customer, item) for customer, items in found.items() for item in items]
    random.Random(4).shuffle(rows)
    return rows


@pytest.fixture
def orders(tmp_path):
    rows = rows_of(baskets())
    lines = "".join(f"{customer},{item}\n" for customer, item in rows)
    (tmp_path / "orders.csv").write_text("customer,item\n" + lines)
    return rows


def pairs_in(path):
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {tuple(sorted((row["doc_a"], row["doc_b"]))): row["similarity"] for row in found}


EXPECTED = {tuple(sorted((str(number), str(number + 1)))): 9 / 11 for number in range(0, 20, 2)}


def test_rows_with_the_same_id_are_one_set(programs, orders, tmp_path):
    done = programs.run("pairs", "orders.csv", "-o", "p.jsonl", *COMMAND, "--long", cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert "20 documents: 10 pairs" in done.stdout
    assert pairs_in(tmp_path / "p.jsonl") == EXPECTED
    names, items = zip(*orders, strict=True)
    pq.write_table(pa.table({"customer": names, "item": items}), tmp_path / "orders.parquet")
    (tmp_path / "a.jsonl").write_text(
        "".join(
            json.dumps({"customer": int(name), "item": item}) + "\n" for name, item in orders[:70]
        )
    )
    (tmp_path / "b.csv").write_text(
        "customer,item\n" + "".join(f"{name},{item}\n" for name, item in orders[70:])
    )
    settings = {"items_column": "item", "id_column": "customer", "threshold": 0.6, "long": True}
    for number, source in enumerate((["orders.parquet"], ["a.jsonl", "b.csv"])):
        out = tmp_path / f"{number}.jsonl"
        report = neardup.find_pairs([tmp_path / name for name in source], out=out, **settings)
        assert pairs_in(out) == EXPECTED
        assert report.documents == 20


def test_repeated_ids_are_a_warning_before_the_work(programs, orders, tmp_path):
    assert len(orders) == 200
    done = programs.run("pairs", "orders.csv", "-o", "p.jsonl", *COMMAND, cwd=tmp_path)
    assert (
        "20 ids name 200 of the first rows of orders.csv, each with one item, so every row is a set of its own; "
        "pass --long to make one set of the rows with the same id"
    ) in done.stderr
    (tmp_path / "wide.csv").write_text("customer,item\n1,a b c\n1,a b d\n2,e f\n1,g\n1,h\n")
    done = programs.run("pairs", "wide.csv", "-o", "w.jsonl", *COMMAND, cwd=tmp_path)
    assert "ids name" not in done.stderr


def test_rows_without_an_id_or_an_item_are_counted(programs, tmp_path):
    rows = [
        {"customer": 1, "item": "a"},
        {"customer": None, "item": "b"},
        {"customer": 2, "item": "a"},
    ]
    rows += [{"customer": 2, "item": None}]
    (tmp_path / "o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = programs.run("pairs", "o.jsonl", "-o", "p.jsonl", *COMMAND, "--long", cwd=tmp_path)
    assert "2 rows were left out: no id, or no item" in done.stderr
    assert pairs_in(tmp_path / "p.jsonl") == {("1", "2"): 1.0}
    done = programs.run(
        "pairs", "o.jsonl", "-o", "q.jsonl", *COMMAND, "--long", "--strict", cwd=tmp_path
    )
    assert done.code == 1
    assert "2 rows have no id or no item" in done.stderr


def test_what_cannot_be_grouped_is_an_error(orders, tmp_path):
    assert orders
    path = tmp_path / "orders.csv"
    with pytest.raises(ConfigError, match="`long` needs `items_column`"):
        neardup.find_pairs(path, long=True)
    with pytest.raises(ConfigError, match="has no column named id or url"):
        neardup.find_pairs(path, long=True, items_column="item")
    with pytest.raises(DataError, match=r"no column named 'itm'(.|\n)*did you mean 'item'"):
        neardup.find_pairs(path, long=True, items_column="itm", id_column="customer")
    for call in (neardup.deduplicate, neardup.neighbours, neardup.tune, neardup.plan):
        with pytest.raises(ConfigError, match="`long` is for lists of pairs"):
            call(path, long=True, items_column="item", id_column="customer")
    for settings in ({"against": path}, {"engine": "spark"}):
        with pytest.raises(ConfigError, match=r"`long` and .* cannot be combined"):
            neardup.find_pairs(path, long=True, items_column="item", **settings)
    with pytest.raises(ConfigError, match="`long` needs files as the source"):
        neardup.find_pairs(items={"a": ["x"]}, long=True, items_column="item")
    nested = tmp_path / "n.jsonl"
    nested.write_text(json.dumps({"customer": 1, "item": ["a", "b"]}) + "\n")
    with pytest.raises(DataError, match="not one value a row"):
        neardup.find_pairs(nested, long=True, items_column="item", id_column="customer")


def test_one_basket_a_line_is_told_how_to_be_read(programs, tmp_path):
    (tmp_path / "baskets.txt").write_text("a b c d e\ne d c b a\nx y z\n")
    done = programs.run("pairs", "baskets.txt", "-o", "p.jsonl", *COMMAND, cwd=tmp_path)
    assert done.code == 2
    assert "--lines with --size 1 compares every line as a set of words" in done.stderr
    done = programs.run(
        "pairs", "baskets.txt", "-o", "p.jsonl", "--lines", "--size", "1", cwd=tmp_path
    )
    assert "3 documents: 1 pair " in done.stdout
