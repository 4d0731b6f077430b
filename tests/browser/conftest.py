"""A real browser for the tests of the page: the machine's Chromium, driven by Playwright.

Where there is none the tests are skipped with a note; in continuous integration (CI=true) that is
a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        message = "there is no Chromium here: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        # Containers have no user namespaces for its sandbox; it opens our own page alone.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class WatchedPage:
    """A page whose complaints are kept; `complaints` must stay empty."""

    def __init__(self, page: Page) -> None:
        self.page, self.complaints = page, list[str]()
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._asked)
        self.requests = list[str]()
        self.may_be_lost = False
        """Whether the page may say, at the end, that it has lost its server or cannot draw."""
        page.set_default_timeout(10_000)

    def _heard(self, message: object) -> None:
        kind, text = message.type, message.text  # type: ignore[attr-defined]
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _asked(self, request: object) -> None:
        self.requests.append(request.url)  # type: ignore[attr-defined]


@pytest.fixture
def watched(browser: Browser) -> Iterator[WatchedPage]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = WatchedPage(context.new_page())
    yield page
    assert page.complaints == []
    if not page.may_be_lost and (lost := page.page.query_selector("#lost")) is not None:
        assert lost.inner_text() == ""
    context.close()
