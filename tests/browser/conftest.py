"""The site as `make docs` makes it, opened from its folder in Debian's Chromium."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def build(out: Path, *arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    """One run of ``docs build``, with warnings of Python as errors."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [sys.executable, "-m", "ascend_compat", "docs", "build", "--out", str(out), *arguments],
        capture_output=True,
        text=True,
        env=surroundings,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="session")
def site(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site. ``ASCEND_COMPAT_SITE`` names one that is built already."""
    given = os.environ.get("ASCEND_COMPAT_SITE")
    if given:
        return Path(given).resolve()
    out = tmp_path_factory.mktemp("site")
    done = build(out)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return out


@dataclass
class Tab:
    """A page and what went wrong in it."""

    page: Page
    site: Path
    wrong: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def open(self, path: str) -> Page:
        """Open a file of the site; what follows ``#`` or ``?`` belongs to the address."""
        self.page.goto(self.site.as_uri() + "/" + path)
        return self.page


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium")
    assert path, "chromium is not installed: apt-get install chromium"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


Opener = Callable[..., Tab]


@pytest.fixture
def tab(browser: Browser, site: Path) -> Iterator[Opener]:
    """Opens tabs: ``tab(width=390, dark=True)``. At the end none may have said anything wrong or asked anyone outside."""
    contexts: list[BrowserContext] = []
    tabs: list[Tab] = []

    def make(width: int = 1280, dark: bool = False) -> Tab:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", locale="en-US"
        )
        contexts.append(context)
        made = Tab(context.new_page(), site)
        tabs.append(made)

        def heard(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                made.wrong.append(f"console: {message.text}")

        def asked(request: Request) -> None:
            made.loaded.append(request.url)
            if not request.url.startswith(("file://", "data:")):
                made.wrong.append(f"outside: {request.url}")

        made.page.on("console", heard)
        made.page.on("pageerror", lambda error: made.wrong.append(f"error: {error}"))
        made.page.on("request", asked)
        made.page.on("requestfailed", lambda request: made.wrong.append(f"failed: {request.url}"))
        return made

    yield make
    wrong = [each for made in tabs for each in made.wrong]
    for context in contexts:
        context.close()
    assert wrong == []
