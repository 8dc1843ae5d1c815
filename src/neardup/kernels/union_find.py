"""Union-find: links to components."""

from neardup.kernels.compilation import kernel, uncounted


@uncounted
def find_root(parents, node):
    """Return the root of a node, halving the path on the way."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@uncounted
def join(parents, one, other):
    """Unite the components of two nodes; the smaller root becomes the root."""
    one = find_root(parents, one)
    other = find_root(parents, other)
    parents[max(one, other)] = min(one, other)


@kernel
def union_links(left, right, parents):
    """Join the two ends of every link; `find_roots` names the components once all links are joined.

    left, right  int64[num_links]  nodes
    parents      int64[num_nodes]  parents[node] == node on entry, or the result of earlier links
    """
    for at in range(left.size):
        join(parents, left[at], right[at])


@kernel
def find_roots(parents):
    """Make parents[node] the smallest node of its component.

    parents  int64[num_nodes]  as `union_links` leaves it
    """
    for node in range(parents.size):
        parents[node] = find_root(parents, node)
