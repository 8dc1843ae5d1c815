"""How long does it take to write a report and to see a view, and how much memory does the server need?

The report of the licences as one file; then a run on 240,000 documents behind `neardup serve`. A
view is timed inside Chromium, from the click until its content has been drawn. `load_average` shows
whether the machine was quiet.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from playwright.sync_api import sync_playwright

import corpus
import harness
import neardup
import process

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.chromium import FLAGS, find_chromium

NUM_DOCUMENTS = 240_000
# Waits until a condition holds and the frame with it has been drawn; times from just before the
# action.
TIMED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const main = document.querySelector("main"), before = main.innerText;
  const began = performance.now();
  %s;
  while (main.innerText === before || !(%s)) {
    if (performance.now() - began > 20000) throw new Error("this view never came");
    await frame();
  }
  await frame();
  await new Promise((done) => setTimeout(done));
  return performance.now() - began;
}"""
ROW = "document.querySelector('.virtual-row [data-row]')"


def neardup_command(*words):
    return [sys.executable, "-m", "neardup", *map(str, words)]


def report_rows(source, name, folder, driver, repeat):
    """The report of a corpus in one file: how long it takes to write, its size, and its first view."""
    process.run(
        neardup_command("dedup", source, "-o", folder / "run", "--pairs", "--quiet"), folder / "log"
    )
    target = folder / "report.html"
    command = neardup_command("report", folder / "run", "-o", target, "--overwrite")
    runs = [process.run(command, folder / "log") for _ in range(repeat)]
    best = min(runs, key=lambda run: run.seconds)
    yield {
        "what": f"report.html of {name}: written",
        "ms": 1e3 * best.seconds,
        "CPU ms": 1e3 * best.cpu_seconds,
    }
    yield {"what": f"report.html of {name}: size", "MB": target.stat().st_size / 1e6}
    shown = []
    for _ in range(repeat):
        with driver.chromium.launch(executable_path=find_chromium(), args=FLAGS) as browser:
            page = browser.new_page()
            page.goto(f"file://{target}")
            page.wait_for_selector("main h1")
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            while page.evaluate(paint) is None:
                page.wait_for_timeout(20)
            shown.append(page.evaluate(paint))
    yield {"what": f"report.html of {name}: first view", "ms": min(shown), "slowest ms": max(shown)}


class Server:
    """`neardup serve` in a separate process."""

    def __init__(self, run):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(  # noqa: S603
            neardup_command("serve", run, "--port", "0"),
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
        self.url = next(
            word
            for line in self.process.stdout
            for word in line.decode().split()
            if word.startswith("http")
        )

    def seconds_until(self, is_done):
        """Seconds from the start until the state of the texts that the server reports is the one waited for."""
        while not is_done(json.load(urlopen(f"{self.url}v1/info"))["texts"]):  # noqa: S310
            time.sleep(0.2)
        return time.perf_counter() - self.began

    def stop(self):
        """End the server."""
        self.process.terminate()
        self.process.wait()


def views_of(info):
    """Every view as (name, action, condition that it is drawn), in the order of a visit."""
    largest = info["largest"][0]
    middle = info["counts"]["clusters"] // 2
    key = largest["key"]
    weakest = largest["weakest_key"]
    go = "location.hash = '#/{}'".format
    title = "document.querySelector('main h1')?.innerText".format
    found = "document.querySelector('.caption')?.innerText.includes('found') && {}".format
    slide = (
        "const range = document.getElementById('threshold'); "
        "range.value = {}; range.dispatchEvent(new Event('input'))"
    )
    filtered = (
        "const box = document.querySelector('main input'); "
        "box.value = '{}'; box.dispatchEvent(new Event('input'))"
    )
    return [
        ("review", go("review"), f"{title()} === 'Review'"),
        ("overview", go(""), "document.querySelectorAll('canvas').length === 3"),
        (
            "threshold slider",
            slide.format(10),
            "document.querySelector('#at-threshold').innerText.startsWith('At 0.90')",
        ),
        ("clusters", go("clusters"), ROW),
        (
            "clusters, by weakest similarity",
            go("clusters?sort=weakest"),
            f"location.hash.includes('weakest') && {ROW}",
        ),
        (
            "clusters, scrolled to the middle",
            f"document.querySelector('.virtual').scrollTop = 44 * {middle}",
            f"document.querySelector('[aria-rowindex=\\'{middle + 2}\\'] a')",
        ),
        (
            "clusters, filter typed",
            filtered.format("the"),
            f"location.hash.includes('search=the') && {ROW}",
        ),
        ("cluster", go(f"cluster/{key}"), "document.getElementById('members')"),
        ("pair", go(f"pair/{key}/{weakest}"), "document.querySelector('[data-side=b]')"),
        ("document", go(f"document/{weakest}"), "document.getElementById('why')"),
        (
            "search, a rare word",
            go("search?search=deallocates"),
            found("location.hash.endsWith('deallocates')"),
        ),
        (
            "search, a word of nearly all documents",
            go("search?search=the"),
            found("location.hash.endsWith('=the')"),
        ),
        (
            "search, four words",
            go("search?search=copy%20of%20the%20vector"),
            found("location.hash.endsWith('vector')"),
        ),
        (
            "search, typed",
            filtered.format("constructor"),
            found("location.hash.includes('constructor')"),
        ),
    ]


def served_rows(run, driver, repeat):
    """The page of the server: how long until it is complete, every view after a click, and its memory."""
    server = Server(run)
    yield {
        "what": "server: until the first answer",
        "ms": 1e3 * server.seconds_until(lambda _: True),
    }
    yield {
        "what": "server: until all texts are there",
        "ms": 1e3 * server.seconds_until(lambda told: told["state"] == "here"),
    }
    is_indexed = lambda told: told["search"]["indexed"] >= told["search"]["documents"] > 0  # noqa: E731
    yield {
        "what": "server: until all words are indexed",
        "ms": 1e3 * server.seconds_until(is_indexed),
    }
    info = json.load(urlopen(f"{server.url}v1/info"))  # noqa: S310
    with driver.chromium.launch(executable_path=find_chromium(), args=FLAGS) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(server.url)
        page.wait_for_selector("main h1")
        times = {}
        for _ in range(repeat):
            for name, action, ready in views_of(info):
                times.setdefault(name, []).append(page.evaluate(TIMED % (action, ready)))
        check_slider(page, server.url, run)
    for name, own in times.items():
        yield {"what": f"served: {name}", "ms": sorted(own)[len(own) // 2], "slowest ms": max(own)}
    yield {"what": "server: peak memory", "MB": process.highest_bytes(server.process.pid) / 1e6}
    server.stop()


def check_slider(page, url, run):
    """Raise unless the slider shows what `at_threshold` counts."""
    report = neardup.load(run)
    page.goto(f"{url}#/")
    page.wait_for_selector("#threshold")
    for threshold in (0.8, 0.9, 1.0):
        page.fill("#threshold", str(round((threshold - report.config.threshold) * 100)))
        again = report.at_threshold(threshold)
        expected = f"At {threshold:.2f}: {again.num_removed:,} removed, {again.num_kept:,} kept"
        said = page.inner_text("#at-threshold")
        if not said.startswith(expected):
            raise RuntimeError(f"the slider says {said!r}, at_threshold {expected!r}")


def main():
    options = harness.arguments(__doc__)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as driver:
        folder = Path(scratch)
        source = corpus.base(options.corpora, folder)
        name = "licences" if options.corpora else "the standard library"
        few = options.corpora / "licences.parquet" if options.corpora else source
        about = harness.machine("fastapi", "playwright")
        rows = list(report_rows(few, name, folder, driver, options.repeat))
        corpus.edited_copies(source, folder / "many", float("inf"), num_documents=NUM_DOCUMENTS)
        command = neardup_command(
            "dedup", folder / "many" / "parquet", "-o", folder / "large", "--pairs", "--quiet"
        )
        process.run(command, folder / "log")
        rows += served_rows(folder / "large", driver, options.repeat)
    harness.publish("page", rows, about)


if __name__ == "__main__":
    main()
