"""Part of docs/on-real-data.md: vectors of handwritten digits, compared by cosine.

The truth of neighbours and pairs is a brute force in NumPy with float64; that of a digit is its label.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import neardup
from harness import machine
from pair_scores import Pairs, as_pairs, is_installed, versions

NUM_NEIGHBOURS = 5
THRESHOLD = 0.95
_ABOUT = (
    "The handwritten digits of scikit-learn: images of 8 x 8 pixels as vectors, with the digit as their",
    "label. Nothing is chosen here. Right is what a brute force over all pairs in NumPy (float64) says;",
    "the accuracy is the share of images whose nearest other image has the same digit.",
)
Nearest = tuple[np.ndarray, np.ndarray]  # positions and cosines, each of shape [images, neighbours]


class Digits(NamedTuple):
    """Images and their digits."""

    images: np.ndarray
    labels: np.ndarray


def is_complete() -> bool:
    """Whether the data are installed."""
    return is_installed("sklearn")


def load() -> Digits:
    """Return the images that scikit-learn carries."""
    from sklearn.datasets import load_digits

    return Digits(*load_digits(return_X_y=True))


def measure(digits: Digits) -> dict[str, Any]:
    """Run every tool, and compare it with the brute force in NumPy."""
    return {
        "machine": machine("neardup", "numpy"),
        "peers": versions({"scikit-learn": "sklearn", "faiss-cpu": "faiss"}),
        "images": len(digits.images),
        "neighbours": compare_neighbours(digits),
        "pairs": compare_pairs(digits),
    }


def compare_neighbours(digits: Digits) -> list[dict[str, Any]]:
    """Find the nearest images with every tool."""
    right = neighbours_by_numpy(digits.images)
    rows = []
    for tool, find in neighbour_tools():
        find(digits.images[:100])  # compiles and imports
        began = time.process_time()
        places, cosines = find(digits.images)
        rows.append(
            {
                "tool": tool,
                "core_seconds": round(time.process_time() - began, 2),
                "different": int((places != right[0]).any(axis=1).sum()),
                "largest_error": float(f"{np.abs(cosines - right[1]).max():.1e}"),
                "accuracy": round(float((digits.labels[places[:, 0]] == digits.labels).mean()), 4),
            }
        )
        sys.stdout.write(f"{rows[-1]}\n")
    return rows


def neighbour_tools() -> Iterator[tuple[str, Callable[[np.ndarray], Nearest]]]:
    """Every tool that finds neighbours."""
    yield "neardup neighbours, cosine", neighbours_by_neardup
    yield "NumPy, brute force", neighbours_by_numpy
    yield "scikit-learn, NearestNeighbors", neighbours_by_sklearn
    if is_installed("faiss"):
        yield "faiss, IndexFlatIP, float32", neighbours_by_faiss


def neighbours_by_neardup(images: np.ndarray) -> Nearest:
    """Find neighbours with neardup."""
    table = neardup.neighbours(images, measure="cosine", k=NUM_NEIGHBOURS)
    table = table.sort_by([("doc_id", "ascending"), ("rank", "ascending")])
    shape = (len(images), NUM_NEIGHBOURS)
    places = table.column("neighbour_id").to_numpy().reshape(shape)
    return places, table.column("similarity").to_numpy().reshape(shape)


def neighbours_by_numpy(images: np.ndarray) -> Nearest:
    """Sort all cosines; of equal ones, the first image comes first."""
    cosines = all_cosines(images)
    np.fill_diagonal(cosines, -np.inf)
    places = np.argsort(-cosines, axis=1, kind="stable")[:, :NUM_NEIGHBOURS]
    return places, np.take_along_axis(cosines, places, axis=1)


def neighbours_by_sklearn(images: np.ndarray) -> Nearest:
    """Ask for the neighbours of all images but the image itself."""
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=NUM_NEIGHBOURS, metric="cosine").fit(images)
    distances, places = model.kneighbors()
    return places, 1 - distances


def neighbours_by_faiss(images: np.ndarray) -> Nearest:
    """Search all images, and take the image itself out."""
    import faiss

    unit = np.ascontiguousarray(unit_vectors(images), dtype=np.float32)
    index = faiss.IndexFlatIP(unit.shape[1])
    index.add(unit)
    cosines, places = index.search(unit, NUM_NEIGHBOURS + 1)
    is_other = places != np.arange(len(images))[:, None]
    is_other[is_other.all(axis=1), -1] = False  # the image itself is not among its nearest
    shape = (len(images), NUM_NEIGHBOURS)
    return places[is_other].reshape(shape), cosines[is_other].reshape(shape)


def compare_pairs(digits: Digits) -> list[dict[str, Any]]:
    """Find all pairs above a threshold with every tool."""
    right = pairs_by_numpy(digits.images)
    rows = []
    for tool, find in pair_tools():
        find(digits.images[:100])
        began = time.process_time()
        found = find(digits.images)
        rows.append(
            {
                "tool": tool,
                "core_seconds": round(time.process_time() - began, 2),
                "pairs": len(found),
                "missed": len(right - found),
                "false": len(found - right),
            }
        )
        sys.stdout.write(f"{rows[-1]}\n")
    return rows


def pair_tools() -> Iterator[tuple[str, Callable[[np.ndarray], Pairs]]]:
    """Every tool that finds pairs."""
    yield "neardup pairs, --method exact", lambda images: pairs_by_neardup(images, "exact")
    yield "neardup pairs, --method lsh", lambda images: pairs_by_neardup(images, "lsh")
    yield "neardup pairs, --method auto (default)", lambda images: pairs_by_neardup(images, "auto")
    yield "NumPy, brute force", pairs_by_numpy
    yield "scikit-learn, radius_neighbors", pairs_by_sklearn


def pairs_by_neardup(images: np.ndarray, method: str) -> Pairs:
    """Find pairs with neardup."""
    pairs = neardup.find_pairs(images, measure="cosine", threshold=THRESHOLD, method=method).pairs
    return as_pairs(*(pairs.column(f"doc_{side}").to_pylist() for side in "ab"))


def pairs_by_numpy(images: np.ndarray) -> Pairs:
    """Compare all pairs."""
    first, second = np.nonzero(np.triu(all_cosines(images), 1) >= THRESHOLD)
    return as_pairs(first.tolist(), second.tolist())


def pairs_by_sklearn(images: np.ndarray) -> Pairs:
    """Ask for all images within a cosine distance."""
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(radius=1 - THRESHOLD, metric="cosine").fit(images)
    places = model.radius_neighbors(return_distance=False)
    firsts = np.repeat(np.arange(len(images)), [len(own) for own in places])
    return as_pairs(firsts.tolist(), np.concatenate(places).tolist())


def all_cosines(images: np.ndarray) -> np.ndarray:
    """Return the cosines of all pairs."""
    unit = unit_vectors(images)
    return unit @ unit.T


def unit_vectors(images: np.ndarray) -> np.ndarray:
    """Return the vectors with length 1."""
    return images / np.linalg.norm(images, axis=1, keepdims=True)


def section(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the page for the results of this part."""
    lines = [
        "## Vectors: handwritten digits",
        "",
        *_ABOUT,
        "",
        f"**The {NUM_NEIGHBOURS} nearest images** of each of {measured['images']:,}:",
        "",
        "| tool | images with other neighbours than NumPy's | largest error of a cosine | accuracy | core-seconds |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['tool']} | {row['different']:,} | {row['largest_error']:.1e} | {row['accuracy']:.4f} "
        f"| {row['core_seconds']:.2f} |"
        for row in measured["neighbours"]
    ]
    lines += [
        "",
        f"**All pairs with a cosine of at least {THRESHOLD}:**",
        "",
        "| tool | pairs | missed | false | core-seconds |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['tool']} | {row['pairs']:,} | {row['missed']:,} | {row['false']:,} "
        f"| {row['core_seconds']:.2f} |"
        for row in measured["pairs"]
    ]
    peers = ", ".join(f"{name} {version}" for name, version in measured["peers"].items())
    return [*lines, "", f"Versions: {peers}.", ""]
