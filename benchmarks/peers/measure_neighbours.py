"""The k nearest neighbours of every item, found by one tool: MEASURE TOOL DATA K OUT.

Run as a separate process, to measure its memory. DATA is an .npz of bench_neighbours.py; OUT gets a
row of positions for each item, -1 where the tool found none, and the seconds of the search, without
imports and compilation.
"""

import sys
import time

import numpy as np

BLOCK = 1000
NOBODY = -1


def neardup_nearest(given, measure, k, **settings):
    import neardup

    # Load the kernels first: in a long run this does not matter.
    small = {name: value[:50] for name, value in given.items()}
    neardup.neighbours(**small, measure=measure, k=k, **settings)
    began = time.perf_counter()
    table = neardup.neighbours(**given, measure=measure, k=k, **settings)
    seconds = time.perf_counter() - began
    (values,) = given.values()
    nearest = np.full((len(values), k), NOBODY)
    doc, other, rank = (
        table.column(name).to_numpy() for name in ("doc_id", "neighbour_id", "rank")
    )
    nearest[doc, rank - 1] = other
    return nearest, seconds


def best_of(scores, k):
    """The k best columns of every row, in no order."""
    return np.argpartition(-scores, k, axis=1)[:, :k].copy()


def unit(vectors):
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def cosine_neardup(data, k):
    return neardup_nearest({"source": data["vectors"]}, "cosine", k)


def cosine_numpy(data, k):
    began = time.perf_counter()
    units = unit(data["vectors"])
    found = []
    for first in range(0, len(units), BLOCK):
        scores = units[first : first + BLOCK] @ units.T
        scores[np.arange(len(scores)), np.arange(first, first + len(scores))] = -np.inf
        found.append(best_of(scores, k))
    return np.concatenate(found), time.perf_counter() - began


def cosine_faiss_flat(data, k):
    import faiss

    return cosine_faiss(faiss.IndexFlatIP(data["vectors"].shape[1]), data, k)


def cosine_faiss_lsh(data, k):
    import faiss

    return cosine_faiss(faiss.IndexLSH(data["vectors"].shape[1], 1024), data, k)


def cosine_faiss(index, data, k):
    began = time.perf_counter()
    units = unit(data["vectors"])
    index.add(units)
    _, nearest = index.search(units, k + 1)
    return without_self(nearest, k), time.perf_counter() - began


def hamming_neardup(data, k):
    return neardup_nearest({"source": data["packed"]}, "hamming", k, packed=True)


def hamming_faiss_flat(data, k):
    import faiss

    began = time.perf_counter()
    index = faiss.IndexBinaryFlat(data["packed"].shape[1] * 8)
    index.add(data["packed"])
    _, nearest = index.search(data["packed"], k + 1)
    return without_self(nearest, k), time.perf_counter() - began


def without_self(nearest, k):
    """Drop each row's own number; where it is not listed, the last."""
    is_own = nearest == np.arange(len(nearest))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    return nearest[~is_own].reshape(len(nearest), k)


def jaccard_neardup(data, k):
    import pyarrow as pa

    items = data["items"]
    return neardup_nearest(
        {"items": pa.FixedSizeListArray.from_arrays(pa.array(items.ravel()), items.shape[1])},
        "jaccard",
        k,
    )


def jaccard_scipy(data, k):
    """Sparse products: the sets have one size, so the most shared items are the most similar."""
    import scipy.sparse

    began = time.perf_counter()
    items = data["items"]
    ends = np.arange(0, items.size + 1, items.shape[1])
    matrix = scipy.sparse.csr_matrix((np.ones(items.size, np.float32), items.ravel(), ends))
    transposed = matrix.T.tocsr()
    found = []
    for first in range(0, len(items), BLOCK):
        scores = (matrix[first : first + BLOCK] @ transposed).toarray()
        scores[np.arange(len(scores)), np.arange(first, first + len(scores))] = -1
        found.append(best_of(scores, k))
    return np.concatenate(found), time.perf_counter() - began


def jaccard_datasketch(data, k):
    from datasketch import MinHash, MinHashLSHForest

    began = time.perf_counter()
    signed = MinHash.bulk(
        ([b"%d" % item for item in items] for items in data["items"].tolist()), num_perm=128
    )
    forest = MinHashLSHForest(num_perm=128, l=8)
    for row, signature in enumerate(signed):
        forest.add(row, signature)
    forest.index()
    nearest = np.full((len(signed), k), NOBODY)
    for row, signature in enumerate(signed):
        found = [other for other in forest.query(signature, k + 1) if other != row][:k]
        nearest[row, : len(found)] = found
    return nearest, time.perf_counter() - began


TOOLS = {
    ("jaccard", "neardup"): jaccard_neardup,
    ("jaccard", "scipy, brute force"): jaccard_scipy,
    ("jaccard", "datasketch MinHashLSHForest"): jaccard_datasketch,
    ("cosine", "neardup"): cosine_neardup,
    ("cosine", "numpy, brute force"): cosine_numpy,
    ("cosine", "faiss IndexFlatIP"): cosine_faiss_flat,
    ("cosine", "faiss IndexLSH"): cosine_faiss_lsh,
    ("hamming", "neardup"): hamming_neardup,
    ("hamming", "faiss IndexBinaryFlat"): hamming_faiss_flat,
}


def main():
    measure, tool, data, k, out = sys.argv[1:]
    nearest, seconds = TOOLS[measure, tool](np.load(data), int(k))
    np.savez(out, nearest=nearest.astype(np.int64), seconds=seconds)


if __name__ == "__main__":
    main()
