"""The diary in a real Chromium: one coin per task and within the limits, whatever happens to tabs, processes and storage."""

from __future__ import annotations

import os
import random
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from campaign_people import FILMS, Person, grant, invitation, make_campaign
from campaign_server import CampaignServer, PageServer
from web.bundle import bundle

from chromium import FLAGS, _executable
from evenhand.recommender import Campaign
from web_cases import drawn_cases

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


def many_bits(epoch: str = "1", epsilon: str = "0.01") -> Campaign:
    """32 bits, each nearly a fair coin: a fresh draw agrees with an earlier one with probability below 2^-31."""
    items = [f"film {number}" for number in range(64)]
    return make_campaign(items=items, sketch="multi-maxsense", questions=32, epsilon=epsilon, theta="0.1", epoch=epoch)


@pytest.fixture(scope="module")
def home() -> Iterator[PageServer]:
    server = PageServer(ROOT / "web")
    yield server
    server.close()


@pytest.fixture(scope="module")
def page(chromium: Browser, home: PageServer) -> Iterator[Page]:
    context = chromium.new_context()
    page = context.new_page()
    grant(page, home.origin)
    page.goto(f"{home.url}icon.svg")  # of the same origin, and keeps no diary of its own
    yield page
    context.close()


# What every script below begins with: a diary, and a task with its token.
TOOLS = """
    const { Diary } = await import("/client/diary.js");
    const { Task, Token } = await import("/client/messages.js");
    const { answer } = await import("/client/answering.js");
    const { SecureCoins } = await import("/client/coins.js");
    const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const read = async ({ task, token }) => [await Task.fromJson(task), Token.parse(token)];
    const forget = () => new Promise((done, failed) => {
        const asked = indexedDB.deleteDatabase("evenhand-recommender");
        asked.onsuccess = done; asked.onerror = failed; asked.onblocked = failed;
    });
    const noticed = async (work) => { try { return await work(); } catch (error) { return `${error.constructor.name}: ${error.message}`; } };
"""


def run(page: Page, script: str, **given: Any) -> Any:
    """Run a script in the page; ``given`` is there under its names."""
    names = ", ".join(given)
    return page.evaluate(f"async ({{ {names} }}) => {{ {TOOLS} {script} }}", given)


def asked(campaign: Campaign, serial: int = 3) -> dict[str, str]:
    return {"task": campaign.task.to_json(), "token": str(campaign.token(serial))}


@pytest.mark.parametrize("locks", [True, False])
def test_two_tabs_draw_one_coin(page: Page, locks: bool) -> None:
    """Web Locks keep tabs apart, and without them the transactions do."""
    run(page, "await forget(); await new Diary().begin('1', '4');")
    other = page.context.new_page()
    other.goto(page.url)
    begin = """
        if (!locks) navigator.locks.request = (name, work) => work();
        const [task, token] = await read(one);
        window.answers = Promise.all(Array.from({ length: 15 }, () => new Diary().answer(task, token, async () => new Map())));
    """
    for tab in (page, other):
        run(tab, begin, one=asked(many_bits()), locks=locks)
    answers = {said for tab in (page, other) for said in run(tab, "return (await window.answers).map(hex);")}
    assert len(answers) == 1
    assert run(page, "return (await new Diary().look()).spent;") == "0.01"
    other.close()
    page.reload()


def test_a_forgetful_client_would_be_caught(page: Page) -> None:
    script = """
        const [task, token] = await read(one);
        return Array.from({ length: 30 }, () => hex(answer(task, token, new Map(), new SecureCoins())));
    """
    assert len(set(run(page, script, one=asked(many_bits())))) > 1


def test_the_cost_is_on_disk_before_ratings_are_read_and_the_answer_before_it_is_returned(page: Page) -> None:
    script = """
        await forget();
        await new Diary().begin("1", "4");
        const log = [];
        const begin = IDBDatabase.prototype.transaction;
        IDBDatabase.prototype.transaction = function (...given) {
            const transaction = begin.apply(this, given);
            log.push(transaction.durability);
            transaction.addEventListener("complete", () => log.push("on disk"));
            return transaction;
        };
        const secure = new SecureCoins();
        const coins = { below: (n) => secure.below(n), chance: (t) => (log.at(-1) === "coin" || log.push("coin"), secure.chance(t)) };
        const [task, token] = await read(one);
        await new Diary(coins).answer(task, token, async () => (log.push("ratings"), new Map()));
        log.push("returned");
        IDBDatabase.prototype.transaction = begin;
        return log;
    """
    assert run(page, script, one=asked(many_bits())) == [
        "strict", "on disk", "ratings", "strict", "coin", "on disk", "returned",
    ]  # fmt: skip


def test_a_crash_between_cost_and_answer_costs_nothing_more(page: Page) -> None:
    script = """
        await forget();
        await new Diary().begin("1", "4");
        const [task, token] = await read(one);
        const broken = { below: () => { throw new Error("out of coins"); }, chance: () => { throw new Error("out of coins"); } };
        const first = await noticed(() => new Diary(broken).answer(task, token, async () => new Map()));
        const kept = await new Diary().look();
        const second = await new Diary().answer(task, token, async () => { throw new Error("ratings can't be read"); });
        return [first, kept.spent, kept.entries.map((entry) => entry.report), second.length, (await new Diary().look()).spent];
    """
    assert run(page, script, one=asked(many_bits())) == ["Error: out of coins", "0.01", [None], 28, "0.01"]


def test_another_token_beacon_or_rating_gets_the_first_answer(page: Page) -> None:
    script = """
        await forget();
        await new Diary().begin("1", "4");
        const said = [];
        for (const one of asked) {
            const [task, token] = await read(one);
            said.push(hex(await new Diary().answer(task, token, async () => new Map([[said.length, true]]))));
        }
        return [said, (await new Diary().look()).spent];
    """
    campaign = many_bits()
    reopened = campaign.task.opened(bytes(32)).to_json()
    said, spent = run(
        page, script, asked=[asked(campaign, 3), asked(campaign, 4), {**asked(campaign), "task": reopened}]
    )
    assert len(set(said)) == 1
    assert spent == "0.01"


def test_limits_are_exact_and_decided_once(page: Page) -> None:
    script = """
        await forget();
        const diary = new Diary();
        const refused = [await noticed(async () => diary.answer(...(await read(more)), async () => new Map()))];
        for (const wrong of ["", "0", "1e3", "-1", "much", "20000"]) refused.push(await noticed(() => diary.begin(wrong, "1")));
        await diary.begin("0.1", "1");
        const said = [];
        for (const one of tasks) said.push((await diary.answer(...(await read(one)), async () => new Map())).length);
        const over = await noticed(async () => diary.answer(...(await read(more)), async () => new Map()));
        const again = (await diary.answer(...(await read(tasks[3])), async () => new Map())).length;
        const changed = [await noticed(() => diary.begin("9", "9"))];
        await diary.decidePublicRated(false);
        changed.push(await noticed(() => diary.decidePublicRated(true)));
        const { spent, ceiling, lifetime, publicRated } = await diary.look();
        return { refused, said, over, again, changed, kept: [spent, ceiling, lifetime, publicRated] };
    """
    tasks = [asked(many_bits(str(number), "0.1")) for number in range(10)]  # ten times 0.1 is 1
    said = run(page, script, tasks=tasks, more=asked(many_bits("more", "0.000000001")))
    assert said["refused"][0].startswith("DiaryError: There is no diary")
    assert all(text.startswith("Declined: ") and "is no limit" in text for text in said["refused"][1:])
    assert said["said"] == [28] * 10
    assert "you have spent 1 of your lifetime budget of 1" in said["over"]
    assert said["again"] == 28
    assert [text.partition(":")[0] for text in said["changed"]] == ["Declined", "Declined"]
    assert said["kept"] == ["1", "0.1", "1", False]


def test_damaged_diaries_are_not_guessed_and_other_storage_is_refused(page: Page) -> None:
    script = """
        const spoil = (store, key, value) => new Promise((done) => {
            const opened = indexedDB.open("evenhand-recommender", 1);
            opened.onsuccess = () => {
                const transaction = opened.result.transaction(store, "readwrite");
                transaction.objectStore(store).put(value, key);
                transaction.oncomplete = () => { opened.result.close(); done(); };
            };
        });
        const [task, token] = await read(one);
        const id = hex(task.id);
        const said = [];
        for (const [store, key, value] of [
            ["diary", "limits", { ceiling: "1", lifetime: "much", publicRated: null }],
            ["diary", "limits", { ceiling: "1" }],
            ["answers", "another", { task: "another", epsilon: "NaN", report: null }],
            ["answers", id, { task: id, epsilon: "0.01", report: new Uint8Array(3) }],
        ]) {
            await forget();
            await new Diary().begin("1", "4");
            await spoil(store, key, value);
            said.push(await noticed(() => new Diary().answer(task, token, async () => new Map())));
        }
        await forget();
        await new Diary().begin("1", "4");
        const begin = IDBDatabase.prototype.transaction;
        IDBDatabase.prototype.transaction = function (stores, mode) { return begin.call(this, stores, mode); };
        said.push(await noticed(() => new Diary().answer(task, token, async () => new Map())));
        IDBDatabase.prototype.transaction = begin;
        const persisted = navigator.storage.persisted, persist = navigator.storage.persist;
        navigator.storage.persisted = navigator.storage.persist = async () => false; // revoked since the diary was begun
        said.push(await noticed(() => new Diary().answer(task, token, async () => new Map())));
        Object.assign(navigator.storage, { persisted: () => persisted.call(navigator.storage), persist: () => persist.call(navigator.storage) });
        return [said, (await new Diary().look()).spent];
    """
    said, spent = run(page, script, one=asked(many_bits()))
    assert [text.partition(": ")[0] for text in said] == ["DiaryError"] * 6
    assert "on disk" in said[4]
    assert "persistent storage" in said[5]
    assert spent == "0"


def drawn_people(draw: random.Random) -> dict[str, Any]:
    """A task of any kind, a person's decisions, and two ratings that have nothing in common."""
    sketch = draw.choice(["pairwise", "pairwise", "maxsense", "multi-maxsense", "projection"])
    public = sketch == "pairwise" and draw.random() < 0.7
    items = FILMS[: draw.randint(2, 12)]
    theta: Any = {"theta": "0.5"} if "sense" in sketch else {}
    epsilon = draw.choice(["0.1", "1", "1", "2"])
    campaign = Campaign(
        items, sketch, epsilon, rated=draw.randint(1, len(items)), users=8, public_rated=public, **theta
    )
    if draw.random() < 0.9:
        campaign.open("beacon")
    junk: list[Any] = [None, True, False, "yes", 1, 0.5, -1]
    ratings = [
        [[draw.choice([*range(-1, 13), None, "0", 0.5]), draw.choice(junk)] for _ in range(n)]
        for n in (draw.choice([0, 1]), 12)
    ]
    token = str(draw.choice([campaign, campaign, campaign, many_bits()]).token(draw.randrange(8)))
    decided = draw.choice([None, False, True, True])
    return {"task": campaign.task.to_json(), "token": token, "public": decided, "ratings": ratings}


def test_nothing_that_can_be_noticed_depends_on_ratings(page: Page) -> None:
    """Report or refusal, its text, sizes, what was spent and kept: the same for any ratings, but for the answer's bits."""
    script = """
        const told = [];
        for (const { task: text, token: line, public: decided, ratings } of people) {
            const [task, token] = await read({ task: text, token: line });
            told.push(await Promise.resolve().then(async () => {
                const both = [];
                for (const mine of ratings) {
                    await forget();
                    const diary = new Diary();
                    await diary.begin("1", "4", decided);
                    const first = await noticed(async () => hex(await diary.answer(task, token, async () => new Map(mine))));
                    const second = await noticed(async () => hex(await diary.answer(task, token, async () => new Map())));
                    const { spent, entries } = await diary.look();
                    both.push(JSON.stringify([first.slice(0, 48), first.length, first === second, spent, entries.length]));
                }
                return both;
            }));
        }
        return told;
    """
    draw = random.Random(21)
    told = run(page, script, people=[drawn_people(draw) for _ in range(60)])
    assert [pair for pair in told if pair[0] != pair[1]] == []
    outcomes = {one for one, _ in told}
    assert sum('["45485231' in one for one in outcomes) > 10  # reports,
    assert len({one[:30] for one in outcomes if "Declined" in one}) >= 4  # and refusals of several kinds


def test_the_vectors_in_a_browser(chromium: Browser) -> None:
    """What Node computes, Chromium computes too: the first 400 of the ten thousand."""
    server = PageServer(ROOT)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{server.url}web/icon.svg")
    cases, expected = zip(*drawn_cases(400), strict=True)
    script = "async (cases) => { const { run } = await import('/tests/contract/web_client.mjs'); return Promise.all(cases.map(run)); }"
    said = page.evaluate(script, list(cases))
    assert [{name: one["result"][name] for name in right} for one, right in zip(said, expected, strict=True)] == list(
        expected
    )
    context.close()
    server.close()


def processes(folder: Path) -> dict[int, list[bytes]]:
    """The arguments of the Chromium processes with this profile, by process; what is dead has none."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"--user-data-dir={folder}".encode() in words:
            found[int(process.name)] = words
    return found


def kill(folder: Path) -> None:
    """SIGKILL for the Chromium that this test started with this profile; returns when the profile is free again."""
    running = processes(folder)
    (browser,) = (number for number, words in running.items() if not any(word.startswith(b"--type=") for word in words))
    os.kill(browser, signal.SIGKILL)
    for _ in range(600):
        if not processes(folder):
            return
        time.sleep(0.1)
    raise AssertionError("the browser's processes live on")


def test_a_browser_that_is_killed_sends_the_same_answer_later(
    profile: Callable[..., BrowserContext], tmp_path: Path, home: PageServer
) -> None:
    """Killed between cost and answer, between storing and sending, and between sending and hearing from the server."""
    server = CampaignServer(many_bits())
    link, one = invitation(server, 3), asked(server.campaign)
    person = Person(profile("ada"), home.url, link)
    person.begin()
    person.look()
    paid = "const [task, token] = await read(one); await new Promise((done) => void new Diary().answer(task, token, () => (done(), new Promise(() => {}))));"
    run(person.page, paid, one=one)
    kill(tmp_path / "ada")

    person = Person(profile("ada"), home.url)
    assert person.spent() == "Spent: ε = 0.01 of your lifetime’s 4"
    expect(person.page.locator("#send-button")).to_have_text("Send the stored answer")
    drawn = "const [task, token] = await read(one); return hex(await new Diary().answer(task, token, async () => new Map([[0, true]])));"
    stored = run(person.page, drawn, one=one)
    kill(tmp_path / "ada")

    server.before_report = lambda: kill(tmp_path / "ada")
    person = Person(profile("ada"), home.url)
    assert server.reports == {}
    person.rate(**{"film 1": True})
    with pytest.raises(Exception, match="closed"):
        person.send()
    assert [r.body.hex() for r in server.requests if r.method == "POST"] == [stored]

    server.before_report = lambda: None
    person = Person(profile("ada"), home.url)
    person.send()
    assert {serial: body.hex() for serial, body in server.reports.items()} == {3: stored}
    assert person.spent() == "Spent: ε = 0.01 of your lifetime’s 4"
    server.close()


def test_the_extension_has_its_own_pinned_code_and_storage(playwright: Playwright, tmp_path: Path) -> None:
    """Persistent without asking, and out of reach for a campaign that clears its site's data."""
    bundle(tmp_path)
    code = tmp_path / "code"
    zipfile.ZipFile(tmp_path / "evenhand-home-extension.zip").extractall(code)
    loaded = [f"--disable-extensions-except={code}", f"--load-extension={code}"]
    context = playwright.chromium.launch_persistent_context(
        str(tmp_path / "profile"),
        executable_path=_executable(),
        args=[*FLAGS, *loaded],
        ignore_default_args=["--disable-extensions"],
    )
    worker = context.service_workers[0] if context.service_workers else context.wait_for_event("serviceworker")
    origin = worker.url.rpartition("/")[0]
    server = CampaignServer(make_campaign())
    server.headers["Clear-Site-Data"] = '"*"'
    person = Person(context, f"{origin}/index.html", invitation(server, 5), granted=False)
    person.begin()
    person.look()
    person.rate(Alien=True)
    person.send()
    person.open(f"{origin}/index.html")
    assert person.spent() == "Spent: ε = 1 of your lifetime’s 4"
    assert [(r.method, r.path) for r in server.requests] == [("GET", "/task"), ("POST", "/report")]
    assert {text.partition(" header")[0] for text in person.complaints} == {"Clear-Site-Data"}  # which Chromium ignored
    context.close()
    server.close()
