"""Tasks, tokens, ratings and coins for the recommender's client in JavaScript, and what Python's makes of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from evenhand.guarantee import UsageError
from evenhand.recommender.at_home import answer
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.messages import SKETCHES, Task, Token


class WrittenCoins:
    """Coins that say what they are told, the same in both languages."""

    def __init__(self, words: list[int]) -> None:
        self.words, self.at = words, 0

    def _next(self) -> int:
        self.at += 1
        return self.words[(self.at - 1) % len(self.words)]

    def below(self, n: int) -> int:
        return self._next() % n

    def chance(self, threshold: int) -> bool:
        return self._next() < threshold


def decimal_from(draw: random.Random, most: float) -> Decimal:
    """Short and long decimals, up to the forty digits that are allowed."""
    places = draw.choice([0, 1, 2, 5, 9, 18, 30, 36])
    return Decimal(draw.randint(1, max(1, int(most * 10**places)))).scaleb(-places)


def drawn_task(draw: random.Random) -> Task:
    """A task of any kind that there is."""
    while True:
        sketch = draw.choice(list(SKETCHES))
        kind = SKETCHES[sketch]
        size = draw.choice([2, 3, 7, 8, 9, 20, draw.randint(2, 60)]) if draw.random() < 0.997 else 4100
        rated = draw.randint(1, size)
        questions = draw.choice([1, 2, 5, min(32, size)]) if kind.several else 1
        tokens = draw.choice([1, 5, 1000, 2**31 - 1])
        public = kind.public_rated and draw.random() < 0.5
        alphabet = 'ab é\u3042\U0001f600"\\\n\u2028'
        prefix = "".join(draw.choices(alphabet, k=draw.randint(0, 3)))
        try:
            return Task(
                items=tuple(f"{prefix}{number}" for number in range(size)),
                sketch=sketch,
                epsilon=decimal_from(draw, draw.choice([0.5, 4, 60, 10_000])),
                rated=rated,
                tokens=tokens,
                pool=tokens if public or draw.random() < 0.5 else draw.randint(1, tokens),
                theta=decimal_from(draw, rated / questions) if kind.senses else None,
                questions=questions,
                public_rated=public,
                epoch=prefix,
                beacon=draw.randbytes(32),
            )
        except UsageError:
            continue  # more sets than items, an ε below the smallest


def drawn_cases(count: int) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Tasks, tokens, ratings and coins, and what Python makes of them."""
    draw = random.Random(17)
    for _ in range(count):
        task = drawn_task(draw)
        serial = draw.randrange(min(task.tokens, 2**31 - 1))
        rated = draw.sample(range(len(task.items)), draw.randint(0, min(len(task.items), 12)))
        ratings = {item: draw.random() < 0.5 for item in rated}
        words = [draw.getrandbits(64) >> draw.choice([0, 0, 1, 2, 40]) for _ in range(23)]
        token = Token(task.short_id, serial, draw.randbytes(8))
        sketch = sketch_for(task)
        query = sketch.encode(sketch.query(serial, sorted(rated)))
        case = {"task": task.to_json(), "serial": serial, "tag": token.tag.hex(), "rated": sorted(rated)}
        yield (
            {"do": "answer", **case, "ratings": list(ratings.items()), "words": list(map(str, words))},
            {
                "id": task.id.hex(),
                "digest": hashlib.sha256(query).hexdigest(),
                "report": answer(task, token, ratings, WrittenCoins(words)).to_bytes().hex(),
            },
        )
