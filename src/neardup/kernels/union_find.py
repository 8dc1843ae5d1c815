"""Union-find: links to components."""

import numba

# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _find_root(parents, node):
    """Return the root of a node, halving the path on the way."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@numba.njit(cache=True, nogil=True)
def union_links(left, right, parents):
    """Join the two ends of every link; afterwards parents[node] is the smallest node of its component.

    left, right  int64[num_links]  nodes
    parents      int64[num_nodes]  parents[node] == node on entry, or the result of earlier links
    """
    for at in range(left.size):
        one, other = _find_root(parents, left[at]), _find_root(parents, right[at])
        if one < other:
            parents[other] = one
        else:
            parents[one] = other
    for node in range(parents.size):
        parents[node] = _find_root(parents, node)
