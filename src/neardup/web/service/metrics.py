"""Counts and latencies of the service, in the text format of Prometheus."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]


class Metrics:
    """What has been counted since the start; used by the event loop only."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._rejected: Counter[str] = Counter()
        self._latencies: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is one of the table, so that the number of series is bounded."""
        self._requests[method, route, status] += 1
        self._latencies[route][bisect.bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] += seconds

    def reject(self, code: str) -> None:
        """Count a request that was refused, by the code of its error."""
        self._rejected[code] += 1

    def lines(self, gauges: Iterable[tuple[str, str, Labels, float]]) -> Iterator[str]:
        """Yield every line: what was counted, and gauges (name, help, labels, value)."""
        yield from _head("neardup_requests_total", "counter", "Requests by route and status.")
        for (method, route, status), count in sorted(self._requests.items()):
            labels = (("method", method), ("route", route), ("status", str(status)))
            yield _line("neardup_requests_total", labels, count)
        yield from _head("neardup_rejected_total", "counter", "Refused requests by code.")
        for code, count in sorted(self._rejected.items()):
            yield _line("neardup_rejected_total", (("code", code),), count)
        yield from _head("neardup_request_seconds", "histogram", "Seconds until the last byte.")
        for route, counts in sorted(self._latencies.items()):
            yield from self._histogram(route, counts)
        described: set[str] = set()
        for name, about, own, value in gauges:
            if name not in described:
                described.add(name)
                yield from _head(name, "gauge", about)
            yield _line(name, own, value)

    def _histogram(self, route: str, counts: list[int]) -> Iterator[str]:
        total = 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
            total += count
            yield _line("neardup_request_seconds_bucket", (("route", route), ("le", bound)), total)
        yield _line("neardup_request_seconds_sum", (("route", route),), self._seconds[route])
        yield _line("neardup_request_seconds_count", (("route", route),), total)


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(own)}"' for key, own in labels)
    return f"{name}{{{shown}}} {value:g}" if shown else f"{name} {value:g}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
