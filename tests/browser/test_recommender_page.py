"""The recommender's page in a real Chromium: several people, a campaign, and every request written down."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from campaign_people import FILMS, Person, grant, invitation, make_campaign
from campaign_server import CampaignServer, PageServer
from web.bundle import stamped_worker

from evenhand.recommender.at_home import answer
from evenhand.recommender.at_home.coins import SecureCoins
from evenhand.recommender.messages import RECORD_SIZE, Report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def home() -> Iterator[PageServer]:
    """The origin that people trust: it has the page, and never sees more than requests for its files."""
    server = PageServer(ROOT / "web")
    yield server
    assert all(request.method == "GET" and not request.body for request in server.requests)
    assert {request.headers["Cookie"] for request in server.requests} == {None}
    server.close()


@pytest.fixture
def campaign() -> Iterator[CampaignServer]:
    server = CampaignServer(make_campaign())
    yield server
    server.close()


def publish(server: CampaignServer) -> None:
    """The other people answer, and the server publishes: everybody likes the first six films."""
    draw, task = np.random.default_rng(3), server.campaign.task
    fold = server.campaign.fold()
    records = dict(server.reports)
    for serial in range(task.tokens):
        if serial not in records:
            liked = {int(film): bool(film < 6) for film in draw.choice(12, 5, replace=False)}
            records[serial] = answer(task, server.campaign.token(serial), liked, SecureCoins()).to_bytes()
    fold.add_reports(map(Report.from_bytes, records.values()))
    server.publish(server.campaign.publish(fold, 2))


def test_several_people_take_part_and_nothing_but_the_report_leaves(
    chromium: Browser, home: PageServer, campaign: CampaignServer
) -> None:
    opinions: list[dict[str, bool]] = [{}, {"Alien": True, "Brazil": False}, dict.fromkeys(FILMS[:11], True)]
    people = [Person(chromium.new_context(), home.url, invitation(campaign, serial)) for serial in range(3)]
    seen = []
    for serial, (person, ratings) in enumerate(zip(people, opinions, strict=True)):
        assert person.page.url == home.url  # the invitation does not stay in the address
        person.begin()
        person.look()
        person.rate(**ratings)
        offer = person.page.locator("#offer").inner_text()
        assert "One bit, yes or no" in offer
        assert "26.9%" in offer
        assert "factor of 2.72" in offer
        assert campaign.reports.get(serial) is None
        person.send()
        assert person.spent() == "Spent: ε = 1 of your lifetime’s 4"
        mine = [(method, url, body) for method, url, body in person.urls if not url.startswith(home.url)]
        assert [(method, url, len(body)) for method, url, body in mine] == [
            ("GET", f"{campaign.url}task", 0),
            ("POST", f"{campaign.url}report", RECORD_SIZE),
        ]
        report = Report.from_bytes(campaign.reports[serial])
        assert (report.serial, report.answer in (0, 1)) == (serial, True)
        assert person.page.locator("#answered-bytes").inner_text() == campaign.reports[serial].hex()
        assert f"You sent “{'yes' if report.answer else 'no'}”" in person.page.locator("#answered-words").inner_text()
        seen.append([(r.method, r.path, r.headers.items(), len(r.body)) for r in campaign.requests])
        campaign.requests.clear()
        person.page.locator("#send-button").click()  # again: the same bytes, taken once
        expect(person.page.locator("#requests tr")).to_have_count(3)
        assert [r.body for r in campaign.requests] == [campaign.reports[serial]]
        campaign.requests.clear()
    assert seen[0] == seen[1] == seen[2]  # headers too: they do not depend on ratings

    publish(campaign)
    for person, ratings in zip(people, opinions, strict=True):
        person.page.get_by_role("button", name="Fetch the published model").click()
        person.page.wait_for_selector("#list li")
        listed = person.page.locator("#list li").all_inner_texts()
        assert listed == [film for film in listed if film not in ratings]
        assert [(r.method, r.path, r.body) for r in campaign.requests] == [("GET", "/model", b"")]
        campaign.requests.clear()
        assert person.complaints == []  # no violation of the content policy, no error
        person.context.close()


def wait_for_worker(person: Person) -> None:
    late = "new Promise((done) => setTimeout(done, 60000, false))"  # a worker that fails to install is never ready
    assert person.page.evaluate(f"Promise.race([navigator.serviceWorker.ready.then(() => true), {late}])")


def test_the_page_works_without_a_network_once_it_was_loaded(chromium: Browser, campaign: CampaignServer) -> None:
    home = PageServer(ROOT / "web")
    person = Person(chromium.new_context(), home.url, invitation(campaign, 0))
    person.begin()
    person.look()
    person.send()
    publish(campaign)
    person.page.get_by_role("button", name="Fetch the published model").click()
    person.page.wait_for_selector("#list li")
    wait_for_worker(person)
    home.close()
    asked = len(campaign.requests)
    person.open(home.url)
    first = person.page.locator("#list li").first.inner_text()
    person.rate(**{first: True})
    expect(person.page.locator("#list")).not_to_contain_text(first)
    person.page.locator("#find").fill("LÉ")
    expect(person.page.locator("#films li")).to_have_text("LéonLikeDislike")
    assert len(campaign.requests) == asked
    person.context.close()


def test_a_large_model_is_used_and_not_kept(chromium: Browser, home: PageServer, campaign: CampaignServer) -> None:
    """The diary is in the page's storage, of which there is only so much; a model can be fetched again."""
    person = Person(chromium.new_context(), home.url, invitation(campaign, 0))
    person.begin()
    person.look()
    publish(campaign)
    text = campaign.model.read_text(encoding="utf-8")
    answer = {"body": text[:-1] + " " * (5 * 2**20) + "}", "headers": {"Access-Control-Allow-Origin": "*"}}
    person.context.route("**/model", lambda route: route.fulfill(**answer))
    person.page.get_by_role("button", name="Fetch the published model").click()
    person.page.wait_for_selector("#list li")
    person.open(home.url)
    expect(person.page.locator("#diary")).to_be_visible()
    expect(person.page.locator("#list li")).to_have_count(0)
    person.context.close()


def test_a_new_version_replaces_the_old_one_as_a_whole(chromium: Browser, tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(ROOT / "web", web)
    home = PageServer(web)
    person = Person(chromium.new_context(), home.url)
    heading = person.page.locator("h1")
    wait_for_worker(person)
    page = (web / "index.html").read_text(encoding="utf-8")
    (web / "index.html").write_text(page.replace("<h1>Recommended at home", "<h1>Version two"), encoding="utf-8")
    person.open(home.url)
    expect(heading).to_have_text("Recommended at home")  # its hash is not in the worker, so it is not taken
    (web / "sw.js").write_text(stamped_worker(web), encoding="utf-8")
    before = person.page.evaluate("caches.keys()")
    # Browsers look for a new worker some time after a page was opened; here at once.
    person.page.evaluate("navigator.serviceWorker.getRegistration().then((mine) => mine.update()).then(() => {})")
    replaced = """async (before) => {
        for (let tries = 0; tries < 600; tries += 1) {
            const kept = await caches.keys();
            if (kept.length === 1 && kept[0] !== before[0]) return true;
            await new Promise((done) => setTimeout(done, 100));
        }
        return false;
    }"""
    assert person.page.evaluate(replaced, before)
    person.open(home.url)
    expect(heading).to_have_text("Version two")
    person.context.close()
    home.close()


def test_without_persistent_storage_nothing_is_begun_or_asked(
    chromium: Browser, home: PageServer, campaign: CampaignServer
) -> None:
    """A private window is such a browser: this context is one, and nobody granted anything."""
    person = Person(chromium.new_context(), home.url, invitation(campaign, 0), granted=False)
    person.begin()
    assert "has not granted persistent storage" in person.problem()
    assert person.page.locator("#begin").is_visible()
    assert campaign.requests == []
    person.context.close()


def test_inside_another_page_nothing_is_begun(chromium: Browser, home: PageServer, tmp_path: Path) -> None:
    """There a browser keeps a storage of its own for each site around it, so that each would be a new diary."""
    (tmp_path / "index.html").write_text(f'<iframe src="{home.url}" width="800" height="800"></iframe>')
    around = PageServer(tmp_path)
    context = chromium.new_context()
    page = context.new_page()
    grant(page, home.origin)
    page.goto(around.url)
    inside = page.frame_locator("iframe")
    inside.get_by_role("button", name="Begin diary").click()
    expect(inside.locator("#problem")).to_contain_text("inside another page")
    context.close()
    around.close()


def test_what_the_person_decided_cannot_be_changed_by_a_campaign(chromium: Browser, home: PageServer) -> None:
    """Above the ceiling, beyond the lifetime, wanting rated items to be public, or a second round: declined before anything is sent."""
    servers = [
        CampaignServer(make_campaign(epsilon="0.5", epoch="1")),
        CampaignServer(make_campaign(epsilon="0.7")),
        CampaignServer(make_campaign(epsilon="0.5", epoch="2")),
        CampaignServer(make_campaign(sketch="pairwise", epsilon="0.1", public_rated=True)),
        CampaignServer(make_campaign(epsilon="0.1", epoch=f"1; side 1 of model {'0f' * 16}")),
        CampaignServer(make_campaign(epsilon="0.4", epoch="3")),
    ]
    over, public = "spent 0.5 of your lifetime budget of 0.9", "not for a task"
    reasons = ["", "above your ceiling of 0.6", over, public, "second round", ""]
    person = Person(chromium.new_context(), home.url)
    person.begin("0.6", "0.9", "no")
    for server, reason in zip(servers, reasons, strict=True):
        person.page.goto("about:blank")
        person.open(home.url, invitation(server, 0))
        person.look()
        expect(person.page.locator("#objection")).to_contain_text(reason)
        expect(person.page.locator("#send-button")).to_be_enabled(enabled=not reason)
        if not reason:
            person.send()
        assert len(server.reports) == (not reason)
        server.close()
    assert person.spent() == "Spent: ε = 0.9 of your lifetime’s 0.9"
    person.context.close()


def test_hostile_names_and_damaged_messages(chromium: Browser, home: PageServer) -> None:
    server = CampaignServer(make_campaign(items=[HOSTILE, "b"], rated=1, epoch=HOSTILE))
    person = Person(chromium.new_context(), home.url, invitation(server, 0))
    person.begin()
    person.look()
    assert person.page.locator("#films span").first.inner_text() == HOSTILE
    person.rate(b=True)
    person.send()
    assert person.page.title() == "Recommended at home"
    assert person.complaints == []
    right = server.campaign.task.to_json()
    for wrong in (
        right.replace('"epsilon": "1"', '"epsilon": "2"'),
        right[:-5],
        "null",
        right.replace(HOSTILE[:4], "x"),
    ):
        server.damaged_task = wrong
        person.page.get_by_role("button", name="Look at what it asks").click()
        assert person.problem()
        assert "went wrong" not in person.problem()
    person.context.close()
    server.close()


def test_keyboard_only_and_on_a_phone(chromium: Browser, home: PageServer, campaign: CampaignServer) -> None:
    phone: Any = {"viewport": {"width": 360, "height": 740}}
    person = Person(chromium.new_context(**phone), home.url, invitation(campaign, 0))
    press = person.page.keyboard.press

    def reach(name: str) -> None:
        """Press Tab until something of this name has the focus."""
        for _ in range(80):
            press("Tab")
            focused = person.page.evaluate(
                "(document.activeElement.labels?.[0] ?? document.activeElement).innerText + '|' +"
                " (document.activeElement.getAttribute('aria-label') ?? '')"
            )
            if name in focused:
                return
        raise AssertionError(f"{name} can't be reached")

    reach("Begin diary")
    press("Enter")
    person.page.wait_for_selector("#campaign:visible")
    reach("Look at what it asks")
    press("Enter")
    person.page.wait_for_selector("#rate:visible")
    reach("Like: Alien")
    press("Space")
    person.page.wait_for_selector("button[aria-label='Like: Alien'][aria-pressed=true]")
    assert person.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Like: Alien"
    reach("Answer and send")
    press("Enter")
    person.page.wait_for_selector("#answered:visible")
    assert len(campaign.reports) == 1
    assert person.page.evaluate("document.documentElement.scrollWidth") <= 360
    unnamed = """() => [...document.querySelectorAll('input, button, progress')]
        .filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.innerText.trim() || e.closest('[hidden]'))).length"""
    assert person.page.evaluate(unnamed) == 0
    person.context.close()


def test_the_campaigns_own_page_says_that_it_is_a_demonstration(chromium: Browser, home: PageServer) -> None:
    """And why: its server can clear the diary, which no other campaign's can."""
    demo = CampaignServer(make_campaign(), demo=ROOT / "web")
    other = CampaignServer(make_campaign(epoch="other"))
    person = Person(chromium.new_context(), demo.url, invitation(demo, 0))
    person.begin()
    person.look()
    assert person.page.locator("#demo").is_visible()
    person.send()
    careful = Person(chromium.new_context(), home.url, invitation(other, 0))
    careful.begin()
    careful.look()
    assert not careful.page.locator("#demo").is_visible()
    for server in (demo, other):
        server.headers["Clear-Site-Data"] = '"*"'
    careful.send()
    careful.page.get_by_role("button", name="Fetch the published model").click()
    expect(careful.page.locator("#status")).to_contain_text("not published")
    careful.open(home.url)
    assert careful.spent() == "Spent: ε = 1 of your lifetime’s 4"
    # The demonstration's diary is gone, and the person is told what a new one means before they begin it.
    person.page.goto(f"{demo.url}task")
    demo.headers.clear()
    person.open(demo.url)
    assert person.page.locator("#begin").is_visible()
    assert "that spending is not counted here" in person.page.locator("#begin").inner_text()
    for one in (person, careful):
        one.context.close()
    demo.close()
    other.close()


def test_a_browser_that_evicts_the_diary_sends_nothing(
    chromium: Browser, home: PageServer, campaign: CampaignServer
) -> None:
    person = Person(chromium.new_context(), home.url, invitation(campaign, 0))
    person.begin()
    person.look()
    session = person.context.new_cdp_session(person.page)
    session.send("Storage.clearDataForOrigin", {"origin": home.origin, "storageTypes": "all"})
    person.page.locator("#send-button").click()
    assert "it was cleared" in person.problem()
    expect(person.page.locator("#begin")).to_be_visible()  # the page looks at its storage after it has said so
    assert [r.path for r in campaign.requests] == ["/task"]
    person.context.close()
