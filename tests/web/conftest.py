from __future__ import annotations

import pytest

import neardup
from support.browser_tab import Tab
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
