"""Union-find against a plain breadth-first search."""

from __future__ import annotations

import collections

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import union_find as components
from support.plain_kernels import plain

PLAIN = plain(components)


def union_links(num_nodes, links, module=components, parents=None):
    parents = np.arange(num_nodes) if parents is None else parents
    module.union_links(*ends_of(links), parents)
    module.find_roots(parents)
    return parents.tolist()


def ends_of(links):
    return np.array(links, np.int64).reshape(-1, 2).T.copy()


def smallest_reachable(num_nodes, links):
    """Label every node with the smallest one of its component, by breadth-first search."""
    neighbours = collections.defaultdict(list)
    for one, other in links:
        neighbours[one].append(other)
        neighbours[other].append(one)
    labels = [-1] * num_nodes
    for start in range(num_nodes):
        if labels[start] >= 0:
            continue
        labels[start] = start
        queue = collections.deque([start])
        while queue:
            for neighbour in neighbours[queue.popleft()]:
                if labels[neighbour] < 0:
                    labels[neighbour] = start
                    queue.append(neighbour)
    return labels


@st.composite
def graphs(draw):
    num_nodes = draw(st.integers(1, 40))
    node = st.integers(0, num_nodes - 1)
    return num_nodes, draw(st.lists(st.tuples(node, node), max_size=60))


@given(graph=graphs())
def test_parents_are_the_smallest_node_of_the_component(graph):
    assert union_links(*graph) == smallest_reachable(*graph)


@given(graph=graphs())
def test_the_compiled_kernel_equals_plain_python(graph):
    assert union_links(*graph) == union_links(*graph, PLAIN)


@given(graph=graphs(), cut=st.integers(0, 60))
def test_links_may_come_in_several_calls(graph, cut):
    num_nodes, links = graph
    parents = np.arange(num_nodes)
    components.union_links(*ends_of(links[:cut]), parents)
    assert union_links(num_nodes, links[cut:], parents=parents) == smallest_reachable(
        num_nodes, links
    )


@pytest.mark.parametrize("num_links", [0, 10_000, 50_000, 200_000])
def test_large_random_graph_has_the_components_of_a_search(num_links):
    links = np.random.default_rng(num_links).integers(0, 100_000, (num_links, 2)).tolist()
    assert union_links(100_000, links) == smallest_reachable(100_000, links)


ORDERS = {
    "ascending": lambda links: links,
    "descending": lambda links: links[::-1],
    "shuffled": lambda links: np.random.default_rng(1).permutation(links),
    "turned around": lambda links: links[:, ::-1],
    "odd links first": lambda links: np.concatenate([links[1::2], links[::2]]),
}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_path_of_100_000_nodes_is_one_component(order):
    path = np.stack([np.arange(99_999), np.arange(1, 100_000)], axis=1)
    assert union_links(100_000, order(path)) == [0] * 100_000


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
def test_star_around_its_largest_node_is_one_component(order):
    star = np.stack([np.full(99_999, 99_999), np.arange(99_999)], axis=1)
    assert union_links(100_000, order(star)) == [0] * 100_000


def test_link_from_a_node_to_itself_joins_nothing():
    assert union_links(3, [(1, 1), (2, 2)]) == [0, 1, 2]
