"""The task: what everyone is asked, and with how much privacy."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

from evenhand.guarantee import MessageError, UsageError, divide, exact_text, fixed_context, parse_epsilon, plain
from evenhand.recommender.messages import wire
from evenhand.recommender.messages.sketches import Sketch, find_sketch, which

MOST_ITEMS = 1 << 16
MOST_TOKENS = (1 << 31) - 1
MOST_QUESTIONS = 32
SHORT_ID_SIZE = 8
LONGEST_TEXT = 1000
"""Characters in an item's name or an epoch."""

_MOST_DIGITS = 40
_EXACT = fixed_context(_MOST_DIGITS)  # rounding θ would give two tasks one id

_PREFIX = b"evenhand/recommender/1/"
_MAGIC = b"EHT1"
_NUMBERS = ("rated", "questions", "tokens", "pool")


@dataclass(frozen=True)
class Task:
    """What everyone is asked, and with how much privacy: public, and fixed by its `id`.

    Guarantee:
        Whoever answers it once is protected by `guarantee`, whatever the server does with the answer. The id
        is a hash of every field but the beacon, so none can change after a client has looked at it. Different
        tasks are hashed from different bytes: every field has one spelling, and its length goes before it.

    Args:
        items: the catalogue; an item's number is its place in it.
        sketch: a name from the list `SKETCHES`.
        epsilon: the ε of one client's whole answer.
        rated: the public cap w on ratings per client; who has more subsamples at home.
        tokens: how many clients may answer.
        pool: number of different queries; equal to ``tokens`` when everyone has their own.
        theta: a sensing query draws every item θ/w times on average.
        questions: how many bits an answer has.
        public_rated: which items a client rated is public, only likes are protected; for sketches that allow it.
        epoch: tells apart campaigns that are otherwise the same.
        beacon: 32 public random bytes that nobody knew when the tokens were handed out; None until then.
    """

    items: tuple[str, ...] = field(repr=False)
    sketch: str
    epsilon: Decimal
    rated: int
    tokens: int
    pool: int
    theta: Decimal | None = None
    questions: int = 1
    public_rated: bool = False
    epoch: str = "1"
    beacon: bytes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        object.__setattr__(self, "epsilon", parse_epsilon(self.epsilon))
        check_catalogue(self.items)
        kind = find_sketch(self.sketch)
        _check_count("rated", self.rated, len(self.items), "the number of items")
        _check_count("tokens", self.tokens, MOST_TOKENS, "the most that one task serves")
        _check_count("pool", self.pool, self.tokens, "the number of tokens")
        _check_count("questions", self.questions, MOST_QUESTIONS, "the most bits in one report")
        if self.questions > 1 and not kind.several:
            raise UsageError(f"questions={self.questions}: only {which('several')} can ask more than one.")
        if not isinstance(self.public_rated, bool):
            raise UsageError(f"public_rated={self.public_rated!r} is neither True nor False.")
        if self.public_rated and not (kind.public_rated and self.pool == self.tokens):
            raise UsageError(f"public_rated=True is for {which('public_rated')} without a pool: leave it out here.")
        self._check_theta(kind)
        if not wire.is_text(self.epoch, LONGEST_TEXT):
            raise UsageError(f"The epoch must be a text that UTF-8 can write, of at most {LONGEST_TEXT} characters.")
        if self.beacon is not None and not wire.is_bytes(self.beacon, 32):
            raise UsageError("The beacon must be 32 bytes: hash what was published.")

    def _check_theta(self, kind: Sketch) -> None:
        if (self.theta is None) == kind.senses:
            raise UsageError(f"theta={self.theta}: {which('senses')} need one, the other sketches have none.")
        if self.theta is None:
            return
        if not isinstance(self.theta, Decimal) or len(self.theta.as_tuple().digits) > _MOST_DIGITS:
            raise UsageError(f"theta must be a Decimal of at most {_MOST_DIGITS} digits.")
        if not (self.theta.is_finite() and Decimal("0.000001") <= self.theta <= self.rated):
            raise UsageError(f"theta={self.theta} is out of range: expected 0.000001 <= theta <= rated={self.rated}.")
        object.__setattr__(self, "theta", self.theta.normalize(_EXACT))
        if self.questions * self.set_size > len(self.items):
            raise UsageError(
                f"questions={self.questions} disjoint sets of {self.set_size} items need more than "
                f"{len(self.items)} items: ask fewer questions or lower theta."
            )

    @cached_property
    def id(self) -> bytes:
        """SHA-256 over every field but the beacon: no two tasks that differ in another field share one."""
        return hashlib.sha256(_PREFIX + b"task\0" + self._body()).digest()

    @property
    def short_id(self) -> bytes:
        """The first bytes of the id: enough to route reports by, and short enough to send with each."""
        return self.id[:SHORT_ID_SIZE]

    @property
    def set_size(self) -> int:
        """How many items a sensing query draws: Nθ/w, rounded half up, at least 1."""
        exact = len(self.items) * Fraction(self.theta or 0) / self.rated
        return max(1, math.floor(exact + Fraction(1, 2)))

    @property
    def question_epsilon(self) -> Decimal:
        """The ε of each of the answer's bits."""
        return divide(self.epsilon, self.questions)

    @cached_property
    def query_key(self) -> bytes:
        """The public key of the stream that all queries come from: a hash of the id and the beacon."""
        if self.beacon is None:
            raise UsageError("The task is not open yet: its beacon is published once the tokens are out. Wait for it.")
        return hashlib.sha256(_PREFIX + b"query\0" + self.id + self.beacon).digest()

    def query_number(self, serial: int) -> int:
        """Which query the token with this serial gets."""
        return serial % self.pool

    @property
    def guarantee(self) -> LocalGuarantee:
        """What is promised to whoever answers."""
        return LocalGuarantee(self.epsilon, self.public_rated)

    def opened(self, beacon: bytes) -> Task:
        """The same task with its beacon; the id does not change."""
        return dataclasses.replace(self, beacon=beacon)

    def _body(self) -> bytes:
        texts = (self.sketch, *self._amounts().values())
        numbers = (getattr(self, name) for name in _NUMBERS)
        head = [*map(wire.text, texts), *map(wire.u32, numbers), wire.u8(self.public_rated), wire.text(self.epoch)]
        return b"".join([*head, wire.u32(len(self.items)), *map(wire.text, self.items)])

    def _amounts(self) -> dict[str, str]:
        theta = "" if self.theta is None else wire.to_decimal(self.theta)
        return {"epsilon": wire.to_decimal(self.epsilon), "theta": theta}

    def to_bytes(self) -> bytes:
        return _MAGIC + self.id + self._body() + wire.u8(self.beacon is not None) + (self.beacon or b"")

    @classmethod
    def from_bytes(cls, data: bytes) -> Task:
        """Read what `to_bytes` wrote; anything else, such as an altered task, is a `MessageError`."""
        reader = wire.ByteReader(data, "task", _MAGIC)
        stated = reader.take(32)
        found: dict[str, Any] = {name: reader.text() for name in ("sketch", "epsilon", "theta")}
        found |= {name: reader.u32() for name in _NUMBERS}
        found |= {"public_rated": reader.flag(), "epoch": reader.text()}
        count = reader.u32()
        if count > MOST_ITEMS:
            raise MessageError("The task claims more items than any task may have: it is damaged.")
        found["items"] = [reader.text() for _ in range(count)]
        found["beacon"] = reader.take(32) if reader.flag() else None
        reader.end()
        return cls._received(stated, found)

    def to_json(self) -> str:
        fields = {name: getattr(self, name) for name in ("sketch", *_NUMBERS)} | self._amounts()
        fields |= {"public_rated": self.public_rated, "epoch": self.epoch, "items": list(self.items)}
        return wire.to_json("task", {"id": self.id.hex(), **fields, "beacon": (self.beacon or b"").hex()})

    @classmethod
    def from_json(cls, data: str | bytes) -> Task:
        """Read what `to_json` wrote; anything else, such as an altered task, is a `MessageError`."""
        texts = dict.fromkeys(("id", "sketch", "epsilon", "theta", "epoch", "beacon"), str)
        numbers = dict.fromkeys(_NUMBERS, int)
        found = wire.from_json(data, "task", {**texts, **numbers, "public_rated": bool, "items": list})
        stated = wire.from_hex(found.pop("id"), 32, "task")
        found["beacon"] = wire.from_hex(found["beacon"], 32, "task") if found["beacon"] else None
        return cls._received(stated, found)

    @classmethod
    def _received(cls, stated: bytes, found: dict[str, Any]) -> Task:
        for name in ("epsilon", "theta"):
            found[name] = wire.from_decimal(found[name], "task", name) if found[name] or name == "epsilon" else None
        with wire.receiving("task"):
            task = cls(**found)
        if task.id != stated:
            raise MessageError(
                "The task's content does not match its id: it was altered after it was issued. "
                "Do not answer it; ask for the task again."
            )
        return task


def _check_count(name: str, given: int, most: int, what: str) -> None:
    if not wire.is_count(given, 1, most):
        raise UsageError(f"{name}={given!r} is out of range: expected a whole number from 1 to {most}, {what}.")


def check_catalogue(items: tuple[str, ...]) -> None:
    """Refuse a catalogue whose items are too few, too many, no texts, or named twice."""
    if not 2 <= len(items) <= MOST_ITEMS:
        raise UsageError(f"The catalogue has {len(items)} items; expected 2 to {MOST_ITEMS}.")
    if not all(item and wire.is_text(item, LONGEST_TEXT) for item in items):
        raise UsageError(
            f"Every item of the catalogue must be a text of 1 to {LONGEST_TEXT} characters that UTF-8 can write."
        )
    if len(set(items)) != len(items):
        raise UsageError("The catalogue names an item twice: every item must have its own name.")


@dataclass(frozen=True)
class LocalGuarantee:
    """An ε-local differential-privacy guarantee for all ratings of one person, against everybody else.

    Guarantee:
        For any two sets of ratings x, x' a person might have, and any report y:
        P(y | x) <= e^ε P(y | x'). With ``public_rated`` x and x' rate the same items.

    Args:
        epsilon: the privacy-loss bound ε, an exact decimal.
        public_rated: whether which items a person rated is treated as public.
    """

    epsilon: Decimal
    public_rated: bool = False

    @property
    def odds(self) -> float:
        """The factor e^ε by which an observer's odds about any one person can change."""
        return math.exp(min(float(self.epsilon), 700.0))

    def words(self) -> str:
        """The guarantee as sentences that a manager can read."""
        hidden, known = "all ratings of any one person", ""
        if self.public_rated:
            hidden, known = "what any one person thinks of the items they rated", ", and which items they rated,"
        odds = f"{self.odds:.3g}" if self.odds < 1000 else f"{self.odds:.1e}"
        return (
            f"Protects {hidden} from everyone, the server included (ε = {plain(self.epsilon)}): whatever "
            f"an observer believed before, seeing this person's report changes their odds by at most a factor of "
            f"{odds}. That a person took part{known} is not hidden."
        )

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as data; ε as a number and as exact text."""
        return {
            "epsilon": float(self.epsilon),
            "delta": 0.0,
            "exact": {"epsilon": exact_text(self.epsilon), "delta": "0"},
            "protects": "ratings, locally",
            "public": ["participation", "rated items"] if self.public_rated else ["participation"],
            "words": self.words(),
        }

    def __str__(self) -> str:
        return self.words()
