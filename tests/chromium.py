"""A real Chromium for the tests of pages, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Playwright

# Debian's Chromium as root; nothing but the page under test may use the network.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def _executable() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    return found


# Playwright keeps an event loop while it runs, which other tests of the same process can't share: one per module.
@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Playwright itself, for tests that need a browser with a profile of its own."""
    api = pytest.importorskip("playwright.sync_api")
    _executable()
    api.expect.set_options(timeout=30_000)  # its five seconds are not enough on a busy machine
    with api.sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """One headless Chromium; ``chromium.new_context()`` is a new person with an empty, private profile."""
    browser = playwright.chromium.launch(executable_path=_executable(), args=list(FLAGS))
    yield browser
    browser.close()


@pytest.fixture
def profile(playwright: Playwright, tmp_path: Path) -> Iterator[Callable[..., BrowserContext]]:
    """Opens a Chromium with a profile kept on disk under ``name``: the same name is the same person, later."""
    opened: list[BrowserContext] = []

    def opens(name: str, **options: object) -> BrowserContext:
        context = playwright.chromium.launch_persistent_context(
            str(tmp_path / name),
            executable_path=_executable(),
            args=list(FLAGS),
            **options,  # type: ignore[arg-type]
        )
        opened.append(context)
        return context

    yield opens
    for context in opened:
        context.close()
