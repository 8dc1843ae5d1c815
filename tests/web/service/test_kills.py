"""`kill -9` of the service while it writes: nothing acknowledged is lost, and repeated requests store once."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

import neardup
from support.server_process import Started

TOKEN = "a token of the test"  # noqa: S105
PATH = "/v1/collections/pages/documents"
NUM_THREADS = 4


def document(thread, number):
    return {
        "id": f"{thread}/{number}",
        "text": f"{thread} and {number} and words of {thread}/{number}",
    }


def write(netloc, thread, answers, is_enough, num_before):
    """Send documents, one connection after the other, until the server is gone."""
    number = 0
    try:
        while True:
            answers[thread, number] = send(netloc, thread, number)[1]
            number += 1
            if len(answers) >= num_before:
                is_enough.set()
    except OSError:
        return
    except http.client.HTTPException:
        return


def send(netloc, thread, number):
    connection = http.client.HTTPConnection(netloc, timeout=60)
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {TOKEN}",
        "Idempotency-Key": f"key-{thread}-{number}",
    }
    try:
        connection.request("POST", PATH, json.dumps(document(thread, number)), headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    assert answer.status in (200, 201), content
    return answer.getheader("idempotency-replayed"), content


@pytest.mark.parametrize("num_before", [40, pytest.param(400, marks=pytest.mark.long)])
def test_nothing_acknowledged_is_lost_and_repeated_requests_store_once(tmp_path, num_before):
    path = tmp_path / "pages.index"
    neardup.Index.create(path, size=2).close()
    started = Started(path, "--write", NEARDUP_TOKEN=TOKEN)
    answers = {}
    is_enough = threading.Event()
    threads = [
        threading.Thread(
            target=write, args=(started.netloc, thread, answers, is_enough, num_before)
        )
        for thread in range(NUM_THREADS)
    ]
    for one in threads:
        one.start()
    assert is_enough.wait(120)
    started.process.kill()
    for one in threads:
        one.join()
    started.process.communicate()
    acknowledged = dict(answers)

    again = Started(path, "--write", NEARDUP_TOKEN=TOKEN)
    for (thread, number), content in acknowledged.items():
        replayed, repeated = send(again.netloc, thread, number)
        assert (replayed, repeated) == ("true", content)
    # The next request of each thread may have been made or not: repeating it makes it once.
    for thread in range(NUM_THREADS):
        last = max((number for own, number in acknowledged if own == thread), default=-1)
        first, second = (send(again.netloc, thread, last + 1) for _ in range(2))
        assert first[1] == second[1]
        assert second[0] == "true"
    assert again.stop() == 0
    with neardup.Index.open(path, read_only=True) as index:
        ids = list(index.ids())
        assert index.check() == []
    stored = {json.loads(content)["id"] for content in acknowledged.values()}
    new = {json.loads(one)["id"] for one in acknowledged.values() if json.loads(one)["is_new"]}
    assert new <= set(ids)
    assert len(ids) == len(set(ids)) <= len(stored) + NUM_THREADS
