"""Homework of five students, who begin with given code, one a copy; and essays, one with a paragraph of another."""

from __future__ import annotations

from pathlib import Path

GIVEN = '''"""Exercise 4: shortest paths. Complete the function below; do not change the code above it."""

import heapq


def read_graph(path):
    graph = {}
    with open(path) as file:
        for line in file:
            source, target, weight = line.split()
            graph.setdefault(source, []).append((target, float(weight)))
            graph.setdefault(target, []).append((source, float(weight)))
    return graph


'''
_HEAP = """def shortest(graph, start):
    distance = {start: 0}
    queue = [(0, start)]
    while queue:
        length, node = heapq.heappop(queue)
        if length > distance[node]:
            continue
        for neighbour, weight in graph[node]:
            other = length + weight
            if other < distance.get(neighbour, float("inf")):
                distance[neighbour] = other
                heapq.heappush(queue, (other, neighbour))
    return distance
"""
_ROUNDS = """def shortest(graph, start):
    best = dict.fromkeys(graph, float("inf"))
    best[start] = 0
    for round in range(len(graph)):
        for left in graph:
            for right, cost in graph[left]:
                best[right] = min(best[right], best[left] + cost)
    return best
"""
_RECURSIVE = """def shortest(graph, start, seen=None, so_far=0):
    seen = {} if seen is None else seen
    if so_far < seen.get(start, so_far + 1):
        seen[start] = so_far
        for following, step in graph[start]:
            shortest(graph, following, seen, so_far + step)
    return seen
"""
_UNFINISHED = """def shortest(graph, start):
    raise NotImplementedError("I was ill this week")
"""
_CLEO = """The mill stood idle for thirty years before anyone asked who owned it.

Its wheel had been built by two brothers from the upper valley, who floated the oak beams down the river in spring,
when the water was high enough to carry them over the weir, and who were paid in flour because the village
had no money left after the war.

Today it is a museum, and children may grind a handful of grain.
"""
_DAN = """Water power shaped our town more than the railway did. Nobody remembers the first owners of its seven mills.
The oldest wheel had been made by two brothers from the upper valley, who floated the heavy oak beams down the river in
spring, when the water was deep enough to carry them over the weir, and who were rewarded in flour since the village
had no money left after that war.
The others were all built by one company, and burnt down one after the other.
"""
_EVE = """Bread was the only food that the town taxed, and so the only one of which we know the price in every year.
"""
ESSAYS = {"cleo": _CLEO, "dan": _DAN, "eve": _EVE}
ANSWERS = {
    "ann": _HEAP,
    "bob": _HEAP.replace("other", "candidate").replace(
        "    return distance", "    # all done\n    return distance"
    ),
    "cid": _ROUNDS,
    "dee": _RECURSIVE,
    "eve": _UNFINISHED,
}


def make(folder: Path) -> None:
    """Write the given code, a folder of answers, and one of essays."""
    (folder / "given.py").write_text(GIVEN, "utf-8")
    for name, answer in ANSWERS.items():
        path = folder / "homework" / name / "paths.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GIVEN + answer, "utf-8")
    (folder / "essays").mkdir()
    for name, essay in ESSAYS.items():
        (folder / "essays" / f"{name}.txt").write_text(essay, "utf-8")
