"""Pairs of items at least as similar as a threshold, found by one tool: MEASURE TOOL DATA THRESHOLD OUT.

Run as a separate process, to measure its memory. DATA is an .npz of bench_measures.py; OUT gets the
pairs and the seconds of the search, without imports and compilation.
"""

import sys
import time
from itertools import pairwise

import numpy as np

BLOCK = 2000
NEIGHBOURS = 32


def pairs_above(scores, first, threshold):
    """Pairs (row, column) of a block of a matrix of similarities, each once."""
    rows, columns = np.nonzero(scores >= threshold)
    rows = rows + first
    return np.stack([rows, columns], axis=1)[rows < columns]


def neardup_pairs(given, measure, threshold, **settings):
    import neardup

    # Load the kernels first: in a long run this does not matter.
    small = {name: value[:50] for name, value in given.items()}
    neardup.find_pairs(**small, measure=measure, threshold=threshold, **settings)
    began = time.perf_counter()
    report = neardup.find_pairs(**given, measure=measure, threshold=threshold, **settings)
    seconds = time.perf_counter() - began
    return np.stack(
        [report.pairs.column(name).to_numpy() for name in ("doc_a", "doc_b")], axis=1
    ), seconds


def cosine_neardup(data, threshold):
    return neardup_pairs({"source": data["vectors"]}, "cosine", threshold)


def cosine_numpy(data, threshold):
    began = time.perf_counter()
    units = data["vectors"] / np.linalg.norm(data["vectors"], axis=1, keepdims=True)
    blocks = range(0, len(units), BLOCK)
    found = [
        pairs_above(units[first : first + BLOCK] @ units.T, first, threshold) for first in blocks
    ]
    return np.concatenate(found), time.perf_counter() - began


def cosine_faiss_flat(data, threshold):
    import faiss

    began = time.perf_counter()
    units = (data["vectors"] / np.linalg.norm(data["vectors"], axis=1, keepdims=True)).astype(
        np.float32
    )
    index = faiss.IndexFlatIP(units.shape[1])
    index.add(units)
    return ranged(*index.range_search(units, threshold)), time.perf_counter() - began


def cosine_faiss_lsh(data, threshold):
    """The LSH index of faiss answers the nearest by signature only; they are compared exactly here."""
    import faiss

    began = time.perf_counter()
    units = (data["vectors"] / np.linalg.norm(data["vectors"], axis=1, keepdims=True)).astype(
        np.float32
    )
    index = faiss.IndexLSH(units.shape[1], 1024)
    index.add(units)
    _, nearest = index.search(units, NEIGHBOURS)
    rows = np.repeat(np.arange(len(units)), NEIGHBOURS)
    pairs = np.stack([rows, nearest.ravel()], axis=1)
    pairs = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
    is_pair = np.einsum("ij,ij->i", units[pairs[:, 0]], units[pairs[:, 1]]) >= threshold
    return pairs[is_pair], time.perf_counter() - began


def ranged(limits, distances, labels):
    """The pairs of a range search, each once."""
    del distances
    rows = np.repeat(np.arange(limits.size - 1), np.diff(limits.astype(np.int64)))
    return np.stack([rows, labels], axis=1)[rows < labels]


def hamming_neardup(data, threshold):
    return neardup_pairs({"source": data["packed"]}, "hamming", threshold, packed=True)


def hamming_numpy(data, threshold):
    began = time.perf_counter()
    signs = np.unpackbits(data["packed"], axis=1).astype(np.float32) * 2 - 1
    blocks = range(0, len(signs), BLOCK)
    # Of m bits (m + sum of products) / 2 are equal.
    least = 2 * threshold * signs.shape[1] - signs.shape[1]
    found = [pairs_above(signs[first : first + BLOCK] @ signs.T, first, least) for first in blocks]
    return np.concatenate(found), time.perf_counter() - began


def hamming_faiss_flat(data, threshold):
    import faiss

    began = time.perf_counter()
    packed = data["packed"]
    index = faiss.IndexBinaryFlat(packed.shape[1] * 8)
    index.add(packed)
    return ranged(
        *index.range_search(packed, radius_of(packed, threshold))
    ), time.perf_counter() - began


def hamming_faiss_hash(data, threshold):
    import faiss

    began = time.perf_counter()
    packed = data["packed"]
    index = faiss.IndexBinaryMultiHash(packed.shape[1] * 8, 16, 16)
    index.add(packed)
    return ranged(
        *index.range_search(packed, radius_of(packed, threshold))
    ), time.perf_counter() - began


def radius_of(packed, threshold):
    """The radius for a search with a strict bound."""
    return int((1 - threshold) * packed.shape[1] * 8 + 1e-9) + 1


def weighted_neardup(data, threshold):
    return neardup_pairs({"items": baskets_of(data)}, "weighted", threshold)


def baskets_of(data):
    ends = data["ends"].tolist()
    items = data["items"].tolist()
    weights = data["weights"].tolist()
    return [
        dict(zip(items[start:stop], weights[start:stop], strict=True))
        for start, stop in pairwise(ends)
    ]


def weighted_exact(data, threshold):
    """Every two baskets that share an item, compared in plain Python."""
    baskets = baskets_of(data)
    began = time.perf_counter()
    by_item = {}
    found = []
    for row, basket in enumerate(baskets):
        met = set()
        for item in basket:
            met.update(by_item.setdefault(item, []))
            by_item[item].append(row)
        found += [
            (other, row) for other in met if weighted_jaccard(baskets[other], basket) >= threshold
        ]
    return np.array(found), time.perf_counter() - began


def weighted_jaccard(one, two):
    shared = sum(min(weight, two[item]) for item, weight in one.items() if item in two)
    return shared / (sum(one.values()) + sum(two.values()) - shared)


def weighted_datasketch(data, threshold):
    """Its weighted MinHash takes dense vectors over all items."""
    from datasketch import MinHashLSH, WeightedMinHashGenerator

    baskets = baskets_of(data)
    num_items = int(data["items"].max()) + 1
    began = time.perf_counter()
    generator = WeightedMinHashGenerator(num_items, 128, seed=1)
    lsh = MinHashLSH(threshold=threshold, num_perm=128)
    found = []
    signed = []
    for row, basket in enumerate(baskets):
        vector = np.zeros(num_items)
        vector[list(basket)] = list(basket.values())
        signature = generator.minhash(vector)
        found += [
            (other, row)
            for other in lsh.query(signature)
            if signed[other].jaccard(signature) >= threshold
        ]
        lsh.insert(row, signature)
        signed.append(signature)
    return np.array(found), time.perf_counter() - began


def baskets_neardup(data, threshold):
    import pyarrow as pa

    size = len(data["items"]) // data["count"].item()
    column = pa.FixedSizeListArray.from_arrays(pa.array(data["items"]), size)
    return neardup_pairs({"items": column}, "jaccard", threshold)


def sets_of(data):
    ends = data["ends"].tolist()
    items = data["items"].tolist()
    return [items[start:stop] for start, stop in pairwise(ends)]


def containment_neardup(data, threshold):
    import pyarrow as pa

    column = pa.ListArray.from_arrays(pa.array(data["ends"], pa.int32()), pa.array(data["items"]))
    return neardup_pairs({"items": column}, "containment", threshold)


def containment_exact(data, threshold):
    """Every two sets that share an item, compared in plain Python."""
    sets = [set(items) for items in sets_of(data)]
    began = time.perf_counter()
    by_item = {}
    found = []
    for row, own in enumerate(sets):
        met = {}
        for item in own:
            for other in by_item.setdefault(item, []):
                met[other] = met.get(other, 0) + 1
            by_item[item].append(row)
        found += [
            (other, row)
            for other, shared in met.items()
            if is_contained(shared, min(len(own), len(sets[other])), threshold)
        ]
    return np.array(found), time.perf_counter() - began


def is_contained(shared, size, threshold):
    return shared / size >= threshold


def containment_datasketch(data, threshold):
    """Its ensemble of LSH indexes lists sets that may contain the query; they are compared exactly here."""
    from datasketch import MinHash, MinHashLSHEnsemble

    sets = [set(items) for items in sets_of(data)]
    began = time.perf_counter()
    signed = MinHash.bulk(([b"%d" % item for item in items] for items in sets), num_perm=128)
    ensemble = MinHashLSHEnsemble(threshold=threshold, num_perm=128, num_part=16)
    ensemble.index(
        (row, signature, len(items))
        for row, (signature, items) in enumerate(zip(signed, sets, strict=True))
    )
    found = set()
    for row, (signature, items) in enumerate(zip(signed, sets, strict=True)):
        for other in ensemble.query(signature, len(items)):
            if other != row and is_contained(
                len(items & sets[other]), min(len(items), len(sets[other])), threshold
            ):
                found.add((min(row, other), max(row, other)))
    return np.array(sorted(found)), time.perf_counter() - began


TOOLS = {
    ("cosine", "neardup"): cosine_neardup,
    ("cosine", "numpy, brute force"): cosine_numpy,
    ("cosine", "faiss IndexFlatIP"): cosine_faiss_flat,
    ("cosine", "faiss IndexLSH"): cosine_faiss_lsh,
    ("hamming", "neardup"): hamming_neardup,
    ("hamming", "numpy, brute force"): hamming_numpy,
    ("hamming", "faiss IndexBinaryFlat"): hamming_faiss_flat,
    ("hamming", "faiss IndexBinaryMultiHash"): hamming_faiss_hash,
    ("weighted", "neardup"): weighted_neardup,
    ("weighted", "plain Python, exact"): weighted_exact,
    ("weighted", "datasketch WeightedMinHash"): weighted_datasketch,
    ("containment", "neardup"): containment_neardup,
    ("containment", "plain Python, exact"): containment_exact,
    ("containment", "datasketch MinHashLSHEnsemble"): containment_datasketch,
    ("baskets", "neardup"): baskets_neardup,
}


def main():
    measure, tool, data, threshold, out = sys.argv[1:]
    pairs, seconds = TOOLS[measure, tool](np.load(data), float(threshold))
    np.savez(out, pairs=pairs.reshape(-1, 2).astype(np.int64), seconds=seconds)


if __name__ == "__main__":
    main()
