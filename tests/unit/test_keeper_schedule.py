"""Who is taken on, and when all are done, told from declared slots: by a clock that tests move."""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

import evenhand as eh
from evenhand.ledger.desk import Busy
from evenhand.service.jobs import Job, Lane
from evenhand.service.schedule import GRACE, RESERVE, SHARE, Place, Schedule, turns
from evenhand.service.slots import Slots

DEADLINE = 10.0


@dataclass
class Worker:
    """A worker without threads: what it takes on and in which order it goes through it, on a clock of its own.

    Args:
        used: what part of its slot each question really takes; 1 at most, and decided by rows as far as anybody knows.
    """

    used: random.Random | None = None
    now: float = 0.0
    idle_until: float = 0.0
    done: dict[int, float] = field(default_factory=dict)
    places: dict[int, Place] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.lane = Lane("test", Schedule(DEADLINE, clock=lambda: self.now))
        self.lane._threads = [None]  # type: ignore[list-item]  # none are started

    def ask(self, number: int, analyst: str, slot: float) -> None:
        try:
            place = self.places[number] = self.lane.schedule.reserve(analyst, slot)
        except (Busy, eh.UsageError):
            self.refused.add(number)
            return
        self.lane.add(Job(place, lambda work: None, str(number)))

    def run_until(self, time: float) -> None:
        """Go through what waits, until a time."""
        while self.lane._waiting and max(self.idle_until, self.now) < time:
            self.now = max(self.idle_until, self.now)
            job = self.lane._take()
            assert job is not None
            part = 1.0 if self.used is None else self.used.choice([0.0, 0.01, 0.5, 1.0])
            self.idle_until = self.now + part * job.place.slot
            self.done[int(job.id)] = self.idle_until
            self.lane._running = None
        self.now = max(self.now, time)


def crowd(seed: int) -> list[tuple[float, str, float]]:
    """Questions of one who floods and some who ask now and then: when, who, which slot."""
    draw, asked, time = random.Random(seed), list[tuple[float, str, float]](), 0.0
    while time < 40:
        time += draw.expovariate(20)
        who = draw.choice(["mal"] * 12 + ["ann", "bob", "cy"])
        asked.append((time, who, draw.choice([0.05, 0.1, 0.3, 3.0] if who == "mal" else [0.01, 0.1])))
    return asked


def played(asked: list[tuple[float, str, float]], used: random.Random | None) -> Worker:
    worker = Worker(used)
    for number, (time, who, slot) in enumerate(asked):
        worker.run_until(time)
        worker.ask(number, who, slot)
    worker.run_until(1000)
    return worker


@pytest.mark.parametrize("seed", range(5))
def test_nobody_is_late_and_rows_decide_nothing(seed: int) -> None:
    """However much of their slots questions use, the same are taken on, at the same times, and all are done before their deadlines."""
    asked = crowd(seed)
    worlds = [played(asked, used) for used in (None, *map(random.Random, range(4)))]
    assert len({frozenset(world.refused) for world in worlds}) == 1
    assert worlds[0].refused
    for world in worlds:
        assert set(world.done) == set(range(len(asked))) - world.refused
        for number, end in world.done.items():
            assert end <= asked[number][0] + SHARE * DEADLINE + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_who_asks_now_and_then_is_let_in_beside_a_flood(seed: int) -> None:
    asked = crowd(seed)
    worker = played(asked, None)
    rates: dict[str, list[bool]] = defaultdict(list)
    for number, (_, who, _) in enumerate(asked):
        rates[who].append(number in worker.refused)
    assert sum(rates["mal"]) > 20
    for who in ("ann", "bob", "cy"):
        assert not any(rates[who])


def test_a_queue_without_limits_per_analyst_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: first come, first served, with no share for others."""
    monkeypatch.setattr(Schedule, "_pruned", lambda *_: [])
    asked = crowd(0)
    worker = played(asked, None)
    assert any(number in worker.refused for number, (_, who, _) in enumerate(asked) if who != "mal")


def test_run_times_that_decide_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: a place is given back when its question is done, so that room depends on run times."""
    take = Lane._take

    def taken(self: Lane) -> Job | None:
        job = take(self)
        assert job is not None
        self.schedule.cancel(job.place)
        return job

    monkeypatch.setattr(Lane, "_take", taken)
    asked = crowd(0)
    assert played(asked, None).refused != played(asked, random.Random(1)).refused


def test_turns_go_around() -> None:
    """One who asks ten times waits for one who asks once, as long as nobody becomes late."""
    worker = Worker()
    for number in range(10):
        worker.ask(number, "mal", 0.3)
    worker.ask(10, "bob", 0.3)
    worker.run_until(100)
    assert sorted(worker.done, key=lambda number: worker.done[number])[:2] == [10, 0]
    assert [turns(last, ["ann", "cy"]) for last in ("", "ann", "bob", "cy", "z")] == ["ann", "cy", "cy", "ann", "ann"]


def test_what_would_be_late_comes_before_its_turn() -> None:
    worker = Worker()
    worker.ask(0, "zoe", 3.0)
    worker.now = 4.0  # the machine stood still: half of what was spare is gone
    worker.ask(1, "ann", 1.5)
    assert worker.lane.next(worker.now).id == "0"


def test_room_is_refused_before_it_is_paid_for() -> None:
    schedule = Schedule(DEADLINE, clock=lambda: 0.0)
    largest = SHARE * DEADLINE / 2
    with pytest.raises(eh.UsageError, match=r"declared time is 3\.8 s.*it may be 3\.8 s"):
        schedule.reserve("ann", largest + 0.01)
    first = schedule.reserve("ann", largest)
    with pytest.raises(
        Busy,
        match=r"you have as many questions waiting as one analyst may; ask again in \d s. Nothing was read or spent",
    ):
        schedule.reserve("ann", 0.1)
    schedule.reserve("bob", largest / 2)
    with pytest.raises(Busy, match="the server is busy"):
        schedule.reserve("cy", largest / 3)
    schedule.cancel(first)
    schedule.reserve("cy", largest / 3)


def test_the_reserve_is_lent_and_no_more() -> None:
    """A question may use more than its slot while nobody is late for it."""
    worker = Worker()
    worker.ask(0, "ann", 1.0)
    assert worker.lane.schedule.grace(1.0) == GRACE
    worker.now += RESERVE * DEADLINE - 0.25  # the worker has done nothing yet
    assert worker.lane.schedule.grace(1.0) == pytest.approx(0.25)
    worker.now += 1
    assert worker.lane.schedule.grace(1.0) == 0


COUNT = {"statistic": "count"}


def test_slots_are_told_from_public_facts() -> None:
    slots = Slots({"small": 1000, "large": 10_000_000})
    plain = slots.of("small", COUNT)
    assert plain < 0.01
    assert slots.of("large", COUNT) > 100 * plain
    keys = [slots.of("small", {"statistic": "sum", "by": ["g"], "keys": number}) for number in (1, 100, 10_000)]
    assert keys == sorted(keys)
    assert keys[2] > 5
    hidden = {"statistic": "sum", "keys": "selected privately"}
    assert slots.of("large", {**hidden, "by": ["g", "h"]}) > 2 * slots.of("large", {**hidden, "by": ["g"]})
    some = {"statistic": "quantiles", "quantiles": [0.1, 0.5, 0.9]}
    assert slots.of("small", {**some, "by": ["g"], "keys": 500}) > 25
    parts = {"a": COUNT, "b": {"statistic": "sum"}}
    assert slots.of("large", {"statistic": "aggregate", "parts": parts}) > slots.of("large", COUNT)
    assert Slots({}, slowness=3).of("any", COUNT) == pytest.approx(3 * Slots({}).of("any", COUNT))


def test_slots_of_models_grow_with_settings_and_steps() -> None:
    slots = Slots({"t": 1_000_000})
    fit = {"ask": "fit", "estimator": "WeightedERM", "features": ["x"], "steps": 100}
    one = slots.of_fit("t", {"features": ["x"]}, fit)
    assert slots.of_fit("t", {"features": ["x"]}, {**fit, "steps": 1000}) > 2 * one
    settings = [{"regularisation": "0.1"}] * 31
    search = slots.of_fit("t", {"settings": settings}, {"ask": "fit", "estimator": "PrivateSearchCV", "of": fit})
    assert search > 30 * one
    assert slots.of_fit("t", {"settings": [{"steps": "5000"}]}, {"of": fit}) > 10 * one


@pytest.mark.parametrize("seed", range(5))
def test_what_is_given_back_leaves_room_for_all_that_was_paid(seed: int) -> None:
    """However long a refusal took, the clock of slots never runs out before the slots of what was paid."""
    draw, now = random.Random(seed), [0.0]
    schedule = Schedule(DEADLINE, clock=lambda: now[0])
    places: list[Place] = []
    for _ in range(600):
        now[0] += draw.choice([0.0, 0.01, 0.3])
        if places and draw.random() < 0.5:
            schedule.cancel(places.pop(draw.randrange(len(places))))
        with suppress(Busy):
            places.append(schedule.reserve(draw.choice("abc"), draw.choice([0.01, 0.5, 1.9])))
        begins = sorted((place.end - place.slot, place.end) for place in places if place.end > now[0])
        assert all(end <= begin + 1e-9 for (_, end), (begin, _) in pairwise(begins))  # one after the other
        assert schedule.waiting() >= max((end for _, end in begins), default=0) - now[0] - 1e-9
    assert len(places) > 20


def test_time_that_is_over_is_not_given_back() -> None:
    now = [0.0]
    schedule = Schedule(DEADLINE, clock=lambda: now[0])
    refused, kept = schedule.reserve("mal", 1.0), schedule.reserve("ann", 1.9)
    now[0] = 0.9
    schedule.cancel(refused)
    assert schedule.waiting() == pytest.approx(1.9)  # ann's question may not have begun
    assert kept.end == pytest.approx(2.8)
    for _ in range(100):  # one refused question after the other, each over before the next is
        held = schedule.reserve("mal", 0.5)
        now[0] += 0.01
        following = schedule.reserve("mal", 0.5)
        schedule.cancel(held)
        schedule.cancel(following)
    assert schedule.waiting() >= 2.8 - now[0] - 1e-9
