"""The progress of Spark jobs, as steps of a stage."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from typing import Final

from pyspark import SparkContext, StatusTracker

from neardup.engines.base import Advance

_SECONDS_BETWEEN: Final = 0.25
_GROUP: Final = "spark.jobGroup.id"
_DESCRIPTION: Final = "spark.job.description"


@contextlib.contextmanager
def report_jobs(context: SparkContext, what: str, advance: Advance, total: int) -> Iterator[None]:
    """Report the finished tasks of the jobs started in this block as progress, `total` steps at its end.

    what: describes the jobs in Spark's own interface.
    """
    group = f"neardup-{uuid.uuid4()}"
    ended = threading.Event()
    done = 0
    own = {_GROUP: group, _DESCRIPTION: f"neardup: {what}"}
    before = {name: context.getLocalProperty(name) for name in own}
    for name, value in own.items():
        context.setLocalProperty(name, value)

    def report(share: float) -> None:
        nonlocal done
        steps = max(int(share * total) - done, 0)
        done += steps
        if steps:
            advance(steps)

    failed: list[Exception] = []

    def listen() -> None:
        tracker = context.statusTracker()
        try:
            while not ended.wait(_SECONDS_BETWEEN):
                report(_share(tracker, group))
        except Exception as error:  # noqa: BLE001 - raised where it can be seen
            failed.append(error)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield
    finally:
        ended.set()
        listener.join()
        for name, former in before.items():
            context.setLocalProperty(name, former)  # type: ignore[arg-type] # None takes it away
    if failed:
        raise failed[0]
    report(1.0)


def _share(tracker: StatusTracker, group: str) -> float:
    """The share of finished tasks among those of all stages known so far."""
    num_tasks = num_finished = 0
    for job in tracker.getJobIdsForGroup(group):
        known = tracker.getJobInfo(job)
        for stage in known.stageIds if known else ():
            info = tracker.getStageInfo(stage)
            if info is not None:
                num_tasks = num_tasks + info.numTasks
                num_finished = num_finished + info.numCompletedTasks
    return num_finished / num_tasks if num_tasks else 0.0
