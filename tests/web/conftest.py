from __future__ import annotations

import pytest

import neardup
from support.chromium import FLAGS, NoChromiumError, find_chromium
from support.made_run import make_run


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="session")
def report(run_folder):
    return neardup.load(run_folder)


@pytest.fixture(scope="module")
def browser():
    """One Chromium for the tests of a file; the event loop of its driver would stop others in the same thread."""
    from playwright.sync_api import sync_playwright

    try:
        program = find_chromium()
    except NoChromiumError as missing:
        pytest.skip(str(missing))
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


class Tab:
    """A tab that notes every error and every request that leaves the page."""

    def __init__(self, browser, own, **settings):
        self.own, self.errors, self.foreign = own, [], []
        self.context = browser.new_context(accept_downloads=True, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda line: self.errors.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._note)

    def _note(self, request):
        if not request.url.startswith((self.own, "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, fragment=""):
        """Go to a view, and wait for its title."""
        self.page.goto(f"{self.own}#/{fragment}")
        self.page.wait_for_selector("main h1, main [role=alert]")
        return self.page

    def forget(self):
        """Leave the page as a new tab would find it; fail as `close` does."""
        self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.emulate_media(media="null")
        self.page.goto("about:blank")
        self._check()

    def close(self):
        """Close the tab; fail on errors and on requests to anywhere else."""
        self.context.close()
        self._check()

    def _check(self):
        assert self.errors == []
        assert self.foreign == []


@pytest.fixture(scope="session")
def report_path(report, tmp_path_factory):
    from neardup.web.report_file import write_html

    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(report, path)
    return path


@pytest.fixture(scope="module")
def only_tab(browser, report_path):
    """One tab for the tests of a file: another one takes as long as a test."""
    opened = Tab(browser, f"file://{report_path}")
    yield opened
    opened.close()


@pytest.fixture
def tab(only_tab):
    """The report, opened from disk, as for the first time."""
    yield only_tab
    only_tab.forget()
