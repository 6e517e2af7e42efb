"""What is served is what was reviewed: the bundle's bytes, its hashes, and rules that can be read from the code."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest
from web.bundle import WEB, bundle, page_files, stamped_worker


def test_the_worker_has_the_hashes_of_the_files() -> None:
    assert stamped_worker() == (WEB / "sw.js").read_text(encoding="utf-8"), "run python web/bundle.py --stamp"


def test_archives_depend_on_nothing_but_the_files(tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "web"
    shutil.copytree(WEB, copy)
    for path in copy.rglob("*"):
        path.chmod(0o700)
    first, second = bundle(tmp_path / "one"), bundle(tmp_path / "two", copy)
    assert first == second
    with zipfile.ZipFile(tmp_path / "one" / "evenhand-home-extension.zip") as archive:
        names = set(archive.namelist())
    assert names == {*page_files(), "manifest.json", "background.js"}
    (copy / "client" / "coins.js").write_text("// another coin")
    with pytest.raises(SystemExit, match="other files"):
        bundle(tmp_path / "two", copy)


RULES = {
    r"\bfetch\(": {"client/network.js"},
    r"\bgetRandomValues\(": {"client/coins.js"},
    r"\bindexedDB\b": {"client/diary.js"},
    r"Math\.random|innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|XMLHttpRequest|sendBeacon|WebSocket|"
    r"EventSource|RTCPeerConnection|localStorage|document\.cookie|https?://(?!localhost|127\.0\.0\.1|www\.w3\.org/2000/svg)[a-z]": set(),
}


@pytest.mark.parametrize("pattern", RULES)
def test_one_place_each_for_the_network_the_coins_and_the_diary(pattern: str) -> None:
    code = {name: data.decode() for name, data in page_files().items() if name.endswith(".js")}
    assert {name for name, text in code.items() if re.search(pattern, text)} == RULES[pattern]
    assert len(code) > 10
    assert max(text.count("\n") for text in code.values()) <= 300


def test_the_policy_of_page_and_extension() -> None:
    """No script, style or picture from elsewhere; requests to a campaign only over https, or on this machine."""
    page = re.findall(r'Content-Security-Policy" content="([^"]*)"', (WEB / "index.html").read_text(encoding="utf-8"))[
        0
    ]
    manifest = json.loads((WEB / "extension/manifest.json").read_text(encoding="utf-8"))
    for policy in (page, manifest["content_security_policy"]["extension_pages"]):
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["script-src"] == rules["style-src"] == rules["img-src"] == "'self'"
        assert set(rules["connect-src"].split()) - {"'self'"} == {"https:", "http://localhost:*", "http://127.0.0.1:*"}
    project = tomllib.loads((WEB.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert manifest["version"] == project["version"]
    assert manifest["incognito"] == "not_allowed"
    assert manifest["permissions"] == ["unlimitedStorage"]


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    digits = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(scheme: int) -> None:
    """A ratio of 4.5, as WCAG 2 asks of text (level AA)."""
    style = (WEB / "style.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"--([\w-]+): #(\w+);", style.split("@media (prefers-color-scheme: dark)")[scheme]))
    pairs = "ink/paper ink/card ink/notice soft/paper soft/card accent/card on-accent/accent card/like card/dislike"
    for pair in pairs.split():
        low, high = sorted(luminance(colours[name]) for name in pair.split("/"))
        assert (high + 0.05) / (low + 0.05) >= 4.5, pair
