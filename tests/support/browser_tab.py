"""A tab of Chromium that notes errors and requests, and waiting for what it shows."""

from __future__ import annotations

import pytest


class Tab:
    """A tab that notes every error and every request that leaves the page."""

    def __init__(self, browser, own, **settings):
        self.own = own
        self.errors = []
        self.foreign = []
        self.context = browser.new_context(accept_downloads=True, **settings)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on(
            "console", lambda line: self.errors.append(line.text) if line.type == "error" else None
        )
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


def until(page, condition):
    """Wait for a condition; the policy of the page forbids Playwright's own way, which is eval."""
    for _ in range(3000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    pytest.fail(f"never true: {condition}")
