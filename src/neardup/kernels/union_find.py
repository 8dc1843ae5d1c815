"""Union-find: links to components."""

from neardup.kernels.compilation import inner, kernel


@inner
def find_root(parents, node):
    """Return the root of a node, halving the path on the way."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@inner
def join(parents, one, other):
    """Make one component of those of two nodes; its root is the smaller of both."""
    one, other = find_root(parents, one), find_root(parents, other)
    parents[max(one, other)] = min(one, other)


@kernel
def union_links(left, right, parents):
    """Join the two ends of every link; afterwards parents[node] is the smallest node of its component.

    left, right  int64[num_links]  nodes
    parents      int64[num_nodes]  parents[node] == node on entry, or the result of earlier links
    """
    for at in range(left.size):
        join(parents, left[at], right[at])
    for node in range(parents.size):
        parents[node] = find_root(parents, node)
