"""People with a browser each, for the tests of the recommender's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from campaign_server import CampaignServer

from evenhand.recommender import Campaign

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

PATIENCE = 60_000
"""Milliseconds before a test gives up waiting: only a failure takes that long, also on a slow machine."""
pytest.importorskip("playwright.sync_api").expect.set_options(timeout=PATIENCE)

FILMS = ["Alien", "Brazil", "Casablanca", "Dune", "Elf", "Fargo", "Gandhi", "Heat", "Ikiru", "Jaws", "Klute", "Léon"]


def make_campaign(**options: Any) -> Campaign:
    campaign = Campaign(options.pop("items", FILMS), **{"epsilon": 1, "rated": 5, "users": 300, **options})
    campaign.open("lottery of 15 November: 4 8 15 16 23 42")
    return campaign


def grant(page: Page, origin: str) -> None:
    """Persistent storage, which a person's browser grants for a page that is bookmarked, installed or allowed."""
    asked: dict[str, Any] = {"origin": origin, "permissions": ["durableStorage"]}
    mine = page.context.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]["browserContextId"]
    assert page.context.browser is not None
    browser = page.context.browser.new_browser_cdp_session()
    if mine in browser.send("Target.getBrowserContexts")["browserContextIds"]:  # else it is a profile on disk
        asked["browserContextId"] = mine
    browser.send("Browser.grantPermissions", asked)


class Person:
    """Someone with a browser of their own; what it asks of the network and complains about is written down."""

    def __init__(self, context: BrowserContext, home: str, invitation: str = "", granted: bool = True) -> None:
        self.context = context
        self.urls: list[tuple[str, str, bytes]] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda r: self.urls.append((r.method, r.url, r.post_data_buffer or b"")))
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        if granted:
            grant(self.page, home.rstrip("/"))
        self.open(home, invitation)

    def open(self, home: str, invitation: str = "") -> None:
        self.page.goto(f"{home}{invitation and '#' + invitation}")
        self.page.wait_for_selector("body[data-ready]")

    def begin(self, ceiling: str = "1", lifetime: str = "4", public: str = "") -> None:
        self.page.get_by_label("per campaign").fill(ceiling)
        self.page.get_by_label("in your lifetime").fill(lifetime)
        self.page.locator(f"input[name=public][value='{public}']").check()
        self.page.get_by_role("button", name="Begin diary").click()
        self.page.wait_for_selector("#diary:visible, #problem:visible")

    def look(self) -> None:
        self.page.get_by_role("button", name="Look at what it asks").click()
        self.page.wait_for_selector("#rate:visible")

    def rate(self, **opinions: bool) -> None:
        for film, liked in opinions.items():
            button = self.page.get_by_role("button", name=f"{'Like' if liked else 'Dislike'}: {film}", exact=True)
            button.click()
            self.page.wait_for_selector(
                f"button[aria-label='{'Like' if liked else 'Dislike'}: {film}'][aria-pressed=true]"
            )

    def send(self) -> None:
        self.page.locator("#send-button").click()
        self.page.wait_for_selector("#answered:visible")

    def problem(self) -> str:
        self.page.wait_for_selector("#problem:visible")
        return self.page.locator("#problem").inner_text()

    def spent(self) -> str:
        return self.page.locator("#spent-words").inner_text()


def invitation(server: CampaignServer, serial: int) -> str:
    return f"campaign={server.url}&token={server.campaign.token(serial)}"
