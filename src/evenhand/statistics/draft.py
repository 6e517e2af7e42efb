"""A `Draft`: a release worked out from public facts alone, ready to be previewed or paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from evenhand.guarantee import Guarantee, plain
from evenhand.ledger import Cost, Ledger
from evenhand.pages.notebook import Card, InNotebooks
from evenhand.pages.progress import watched
from evenhand.release import Bounding, Error, Interval, Receipt, Release, Rule, debit
from evenhand.release.rehearsal import rehearse
from evenhand.release.result import hanging
from evenhand.tables.engines import Engine, one_reading

NOTHING = Cost.pure(0)
"""What a public fact costs."""

UNBOUNDED = Bounding("none", None, "nothing has to be bounded", "a public fact under this relation")
EXACT = Error(0.0, 0.0, "the exact answer is public")
NOBODY = Bounding("none", None, "no group is shown, so nobody was bounded", "nothing had to be chosen")
UNKNOWN = Error(None, None, "not known: it depends on the heavy users")


class Foreseen(Protocol):
    """What a preview says about groups (`foresight.py`)."""

    def lines(self) -> list[tuple[str, str]]:
        """In words, each with its name."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""


@dataclass(frozen=True)
class NothingShown(Error):  # noqa: N818 - a forecast, not an exception
    """The error of a release without groups: there is no value to be wrong, and none to call exact."""

    noise: float | None = None
    basis: str = (
        "none to state: no group had enough support to be shown, which says nothing about groups that are there"
    )

    def __str__(self) -> str:
        return self.basis


NOT_SHOWN = NothingShown()


@dataclass(frozen=True)
class Outcome:
    """What running a draft yields: a value that may leave, and what is now known about it.

    ``public_rows`` is the number of rows, where counts are public; ``cells``, whether groups are the cells of a histogram; ``rules``
    say by column when a number is precise enough to be used, where the columns were not known before; ``total`` was measured beside groups.
    """

    value: Any
    interval: Interval
    bounding: Bounding
    error: Error
    details: dict[str, Any] = field(default_factory=dict)
    public_rows: int | None = None
    cells: bool = False
    rules: Mapping[str, Rule] = field(default_factory=dict)
    total: Outcome | None = None


@dataclass(frozen=True)
class Draft:
    """A release before anything is spent or read.

    Args:
        statistic: what is asked for, in words.
        guarantee: what the release will promise.
        cost: what it will cost; None for a fact that is public under the table's relation. The ledger is asked and
            told all the same: what is public for this table may be what the ledger protects.
        query: the public parameters, for the ledger.
        bounding: how users are, or will be, bounded.
        error: the forecast, as far as public facts tell.
        run: measures and adds noise, given the receipt of the debit.
        rules: when a number is precise enough to be used, by column.
        foreseen: works out, by statistic, the forecast for groups.
        units: of the released numbers, by column; empty if none has one.
        additive: the columns whose groups add up to a total.
        finish: computes what was asked for from what was released.
        source: the name of the table, for the ledger.
        engine: where the table is; what it can't evaluate is refused before the debit.
        beforehand: refuses, by public facts of the table, what would say nothing; asked before the debit, and not by a preview.
    """

    statistic: str
    guarantee: Guarantee
    cost: Cost | None
    query: dict[str, Any]
    bounding: Bounding
    error: Error
    run: Callable[[Receipt], Outcome]
    rules: Mapping[str, Rule] = field(default_factory=dict)
    foreseen: Callable[[], Mapping[str, Foreseen]] = dict
    units: Mapping[str, str] = field(default_factory=dict)
    additive: tuple[str, ...] = ()
    finish: Callable[[Release, Outcome], Release] = field(
        default=lambda release, outcome: release, repr=False, compare=False
    )
    source: str | None = None
    engine: Engine | None = field(default=None, repr=False, compare=False)
    beforehand: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    def release(self, ledger: Ledger) -> Release:
        """Debit, then run. Nothing is drawn, nor anything private read, before the debit is committed."""
        return replace(self.drawn(self.pay(ledger)), _left=str(ledger.remaining))

    def pay(self, ledger: Ledger) -> Receipt:
        """Debit, and nothing else."""
        cost = self.cost or NOTHING
        if self.engine is not None:
            rehearse(self.engine, self.run, cost.epsilon, cost.delta)
        if self.beforehand is not None:
            self.beforehand()
        query = self.query if self.cost else {**self.query, "exact": f"public under protects={self.guarantee.relation}"}
        return debit(ledger, self.guarantee, cost, query, self.source)

    def drawn(self, receipt: Receipt) -> Release:
        """The release that was paid for."""
        outcome = self.measure(receipt)
        release = Release(
            statistic=self.statistic,
            value=outcome.value,
            guarantee=self.guarantee,
            bounding=outcome.bounding,
            error=outcome.error,
            event=receipt.event,
            details=outcome.details,
            cells=outcome.cells,
            rules=outcome.rules or self.rules,
            units=self.units,
            additive=self.additive,
            _interval=outcome.interval,
        )
        return self.finish(release, outcome)

    def measure(self, receipt: Receipt) -> Outcome:
        """Run on one reading of the table."""
        with one_reading(), watched(self.statistic):
            return self.run(receipt)

    def preview(self, ledger: Ledger | None) -> Preview:
        """What the release would cost and how well it would do; a ledger that is yet to be made can afford it."""
        affordable = ledger is None or ledger.can_afford(self.cost or NOTHING, self.guarantee)
        return Preview(self.statistic, self.guarantee, self.bounding, self.error, affordable, self.foreseen())


@dataclass(frozen=True, repr=False)
class Preview(InNotebooks):
    """What a call would cost and how well it would do, without spending anything."""

    statistic: str
    guarantee: Guarantee
    bounding: Bounding
    error: Error
    affordable: bool
    groups: Mapping[str, Foreseen] = field(default_factory=dict)
    """By statistic, the forecast for a small, a middling and a large group, or what is missing for one."""

    @property
    def cost(self) -> Guarantee:
        """What the ledger would be debited: ``.cost.epsilon`` and ``.cost.delta``."""
        return self.guarantee

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "statistic": self.statistic,
            "guarantee": self.guarantee.to_dict(),
            "bounding": self.bounding.to_dict(),
            "error": self.error.to_dict(),
            "affordable": self.affordable,
            **({"groups": {name: one.to_dict() for name, one in self.groups.items()}} if self.groups else {}),
        }

    def card(self) -> Card:
        """What a notebook shows."""
        return Card(self._title, self._lines())

    def __str__(self) -> str:
        return f"{self._title}\n{hanging(self._lines())}"

    @property
    def _title(self) -> str:
        return f"{self.statistic} (preview: nothing was read or spent)"

    def _lines(self) -> list[tuple[str, str]]:
        delta = f", δ = {plain(self.guarantee.delta)}" if self.guarantee.delta else ""
        ledger = "the ledger holds enough" if self.affordable else "MORE THAN THE LEDGER HOLDS"
        return [
            ("would cost", f"ε = {plain(self.guarantee.epsilon)}{delta}; {ledger}"),
            ("bound on a user", str(self.bounding)),
            *(self._forecasts() or [("error", str(self.error))]),
            ("guarantee", self.guarantee.words()),
        ]

    def _forecasts(self) -> list[tuple[str, str]]:
        alone = len(self.groups) == 1
        return [
            (name, text if alone else f"{statistic}: {text}")
            for statistic, one in self.groups.items()
            for name, text in one.lines()
        ]
