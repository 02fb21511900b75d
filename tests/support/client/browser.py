"""A real browser: Debian's Chromium, driven by playwright; without one its tests are left out by name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS_MAX = 30_000


def chromium() -> str:
    """The executable; a test that needs it is skipped where there is none."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium; on Debian: apt-get install chromium")


@contextmanager
def a_browser() -> Iterator[Browser]:
    """One browser for many pages. Chromium's own sandbox does not work for root."""
    executable = chromium()
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Watched:
    """A page, and what went wrong in it or left this machine."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        """Open an address of the console."""
        self.page.goto(self.base + path)
        return self.page


@contextmanager
def opened(browser: Browser, address: str, **settings: Any) -> Iterator[Watched]:
    """A page that has the console's cookie; at the end nothing must have gone wrong."""
    base = address.partition("/?")[0]
    context = browser.new_context(**settings)
    context.set_default_timeout(WAIT_MS_MAX)
    watched = Watched(context.new_page(), base)

    def heard(message: Any) -> None:
        if message.type in ("error", "warning"):
            watched.wrong.append(f"{message.type}: {message.text}")

    def requested(request: Any) -> None:
        if not request.url.startswith(f"{base}/"):
            watched.wrong.append(f"foreign request: {request.url}")

    watched.page.on("console", heard)
    watched.page.on("pageerror", lambda error: watched.wrong.append(f"page error: {error}"))
    watched.page.on("request", requested)
    try:
        watched.page.goto(address)
        yield watched
    finally:
        context.close()
    assert watched.wrong == []
