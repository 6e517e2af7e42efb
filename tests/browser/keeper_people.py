"""People at a keeper's server: each with a Chromium of their own that notes whatever a careful visitor would complain about."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1180, "height": 800}

# What is wrong with a page for somebody who can't see it well, reads it with a screen reader, or holds a phone.
_COMPLAINTS = """() => {
  const found = [];
  const shown = one => one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().right > 0;
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > innerWidth && !one.closest('.wide'));
    found.push(`sideways: ${document.documentElement.scrollWidth} > ${innerWidth} by ${wide.map(one => one.tagName + ' ' + one.className).join(', ')}`);
  }
  if (!document.documentElement.lang || !document.title) found.push('no language or no title');
  if (document.querySelectorAll('h1').length !== 1 || document.querySelectorAll('main').length !== 1) found.push('not one h1 in one main');
  let level = 1;
  for (const head of document.querySelectorAll('h1, h2, h3, h4')) {
    if (+head.tagName[1] > level + 1) found.push(`heading skips a level: ${head.textContent}`);
    level = +head.tagName[1];
  }
  for (const one of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
    if (!one.labels.length || !one.labels[0].textContent.trim()) found.push(`no label: ${one.name}`);
  for (const one of document.querySelectorAll('a, button')) {
    if (!one.textContent.trim()) found.push('a link or button without words');
    const box = one.getBoundingClientRect();
    if (one.tagName === 'BUTTON' && shown(one) && Math.min(box.width, box.height) < 24) found.push(`small button: ${one.textContent}`);
  }
  for (const one of document.querySelectorAll('svg')) if (!one.getAttribute('aria-label')) found.push('a picture without words');
  for (const one of document.querySelectorAll('table')) if (!one.querySelector('th')) found.push('a table without headings');
  const part = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, place) => sum + v * [.2126, .7152, .0722][place], 0);
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || one.tagName === 'OPTION' || !shown(one)) continue;
    let behind = one, back = [255, 255, 255];
    for (; behind; behind = behind.parentElement) {
      const colour = part(getComputedStyle(behind).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) { back = colour; break; }
    }
    const style = getComputedStyle(one);
    const [a, b] = [light(part(one instanceof SVGElement ? style.fill : style.color)), light(back)].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.push(`contrast ${((a + .05) / (b + .05)).toFixed(1)}: ${one.textContent.slice(0, 40)}`);
  }
  return found;
}"""


class Visitor:
    """Somebody with a browser of their own.

    Args:
        chromium: the browser.
        url: of the server.
    """

    def __init__(self, chromium: Browser, url: str) -> None:
        self.context = chromium.new_context(viewport=DESK, accept_downloads=True)  # type: ignore[arg-type]
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self._url = url
        self.page.on("console", self._heard)
        self.page.on("dialog", self._asked)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))

    def go(self, path: str) -> Visitor:
        try:
            self.page.goto(self._url + path)
        except Exception as error:  # a page that waits for an answer may just have gone there by itself
            if "interrupted by another navigation" not in str(error):
                raise
            self.page.goto(self._url + path)
        return self

    def enter(self, token: str) -> Visitor:
        """Sign in without the form, for whom that is not the point."""
        assert self.context.request.post(f"{self._url}/in", form={"token": token}).ok
        return self.go("/")

    def sign_in(self, token: str) -> Visitor:
        self.page.get_by_label("Token").fill(token)
        self.press("Sign in")
        return self

    def ask(self, path: str = "/ask?table=visits", **fields: str) -> Visitor:
        """Fill in the form and go to the price."""
        self.go(path)
        for name, value in fields.items():
            field = self.page.locator(f"[name={name}]:visible")
            field.select_option(value) if field.evaluate("one => one.tagName") == "SELECT" else field.fill(value)
        self.press("Show the price")
        return self

    def press(self, button: str, within: Locator | None = None) -> None:
        """Send a form: the page has no script, so every button leads to another page, and nobody looks before it is there."""
        with self.page.expect_navigation():
            (within or self.page).get_by_role("button", name=button).first.click()

    def says(self, text: str) -> None:
        """Wait until the page says something, and is there as a whole."""
        self.page.get_by_text(text).first.wait_for()
        self.page.wait_for_load_state()

    def look(self, picture: str = "") -> None:
        """Note what is wrong with the page; for the documentation, take a picture."""
        self.complaints += self.page.evaluate(_COMPLAINTS)
        folder = os.environ.get("EVENHAND_SCREENSHOTS")
        if folder and picture:
            box = self.page.evaluate(
                "() => ({width: innerWidth, height: Math.min(document.documentElement.scrollHeight, 1100)})"
            )
            taken = self.context.new_cdp_session(self.page).send(
                "Page.captureScreenshot",
                {
                    "format": "webp",
                    "quality": 60,
                    "captureBeyondViewport": True,
                    "clip": {"x": 0, "y": 0, **box, "scale": 1},
                },
            )
            Path(folder, f"keeper-{picture}.webp").write_bytes(base64.b64decode(taken["data"]))

    def download(self, link: str) -> str:
        with self.page.expect_download() as waiting:
            self.page.get_by_role("link", name=link).first.click()
        return waiting.value.path().read_text(encoding="utf-8")

    def done(self) -> list[str]:
        """What there was to complain about until now; whoever comes back begins anew."""
        self.page.set_viewport_size(DESK)  # type: ignore[arg-type]
        found, self.complaints = self.complaints, []
        return found

    def close(self) -> list[str]:
        """Go; what there was to complain about."""
        self.context.close()
        return self.complaints

    def _heard(self, message: ConsoleMessage) -> None:
        # Chromium says there which page broke the content policy; a refused page is no complaint.
        if message.type in ("error", "warning") and "the server responded with a status of" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _asked(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def focused(page: Any) -> str:
    """What a keyboard would act on now, in the words that a screen reader says."""
    return str(
        page.evaluate(
            "() => { const one = document.activeElement; return (one.labels && one.labels[0] || one).textContent.trim(); }"
        )
    )
