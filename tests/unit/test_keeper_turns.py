"""Whose turn it is: one account's work keeps neither others nor the check of tokens waiting."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from evenhand.service.refusals import Refused
from evenhand.service.turns import Threads, Turns


def test_work_that_waits_leaves_tokens_and_others_their_threads() -> None:
    async def story() -> None:
        threads, go = Threads(prices=2), threading.Event()
        try:
            many = [asyncio.create_task(threads.work.run("mal", go.wait, 10)) for _ in range(200)]
            many += [asyncio.create_task(threads.prices.run("mal", go.wait, 10)) for _ in range(16)]
            await asyncio.sleep(0.2)
            started = time.monotonic()
            assert await threads.checked(lambda: "a token") == "a token"
            assert await threads.work.run("ann", lambda: "an answer") == "an answer"
            assert await threads.prices.run("ann", lambda: "a price") == "a price"
            assert time.monotonic() - started < 2
            assert not any(one.done() for one in many)
        finally:
            go.set()
        assert all(await asyncio.gather(*many))

    asyncio.run(story())


def test_who_has_too_much_waiting_is_refused() -> None:
    """And nothing is kept about accounts that have nothing waiting."""

    async def story() -> None:
        turns, go, most = Turns(threads=4, at_once=2, waiting=3), threading.Event(), [0, 0]

        def work() -> None:
            most[0] += 1
            most[1] = max(most)
            go.wait(10)
            most[0] -= 1

        asked = [asyncio.create_task(turns.run("mal", work)) for _ in range(5)]
        await asyncio.sleep(0.2)
        with pytest.raises(Refused, match="5 of your requests are waiting"):
            await turns.run("mal", work)
        go.set()
        await asyncio.gather(*asked)
        assert most[1] == 2
        assert not turns._here
        assert not turns._turns

    asyncio.run(story())
