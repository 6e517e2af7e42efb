"""What a desk knows of a question: what its analyst may spend, where it stands, and its answer."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import BudgetExceeded, EvenhandError, LedgerError
from evenhand.ledger.composition import Budget

if TYPE_CHECKING:
    from sqlalchemy import Row

EVERYBODY = "*"
"""The holder under which the spending of all analysts is added up."""


class Standing(StrEnum):
    """Where a question stands."""

    WAITING = "waiting"
    """For the keeper's approval."""
    APPROVED = "approved"
    DENIED = "denied"
    PAID = "paid"
    """Debited; no answer is stored yet."""
    ANSWERED = "answered"


class NeedsApproval(BudgetExceeded):
    """The question waits for the keeper. Nothing was read or spent."""


class Busy(EvenhandError):  # noqa: N818 - as BudgetExceeded
    """There is no room for the question now. Nothing was read or spent.

    Args:
        message: what to do.
        retry_after: seconds after which to ask again.
    """

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


MOST_WAITING = 20
"""Questions of one analyst that may wait for approval: as many as a keeper reads in one sitting."""
MOST_WAITING_TEXT = 1_000_000
"""Characters of all of them together: that of one question with many public keys (`service.questions.LARGEST`)."""


@dataclass(frozen=True)
class Limits:
    """What a keeper grants an analyst, beside the population's total. ε and δ simply add up here.

    Args:
        total: of all questions, ever.
        per_period: of all questions in one period; None for no limit but the total.
        per_question: the largest ε of one question.
        unapproved: ε in sum, ever, of questions that the keeper did not approve one by one; None if none needs approval.
            A sum, so that a question split into parts needs approval as soon as the whole would.
        waiting: how many questions may wait for approval.
    """

    total: Budget
    per_period: Budget | None = None
    per_question: Decimal | None = None
    unapproved: Decimal | None = None
    waiting: int = MOST_WAITING


@dataclass(frozen=True)
class StoredQuestion:
    """A question as it is stored.

    Args:
        id: random.
        analyst: who asked.
        key: given by the analyst; with the analyst's name it is unique.
        question: the normalised question, as text.
        cost: what it costs.
        standing: where it stands.
        time: when it was paid, UTC; before that, when it was asked.
        decided_by: who approved or denied it.
        event: the number of its debit.
        answer: as stored, to be sent as often as wanted.
    """

    id: str
    analyst: str
    key: str
    question: str
    cost: Budget
    standing: Standing
    time: str
    decided_by: str | None
    event: int | None
    answer: str | None


class AlreadyPaid(LedgerError):  # noqa: N818 - as BudgetExceeded
    """The question was debited before: what was drawn for it is all that is drawn for that debit.

    Args:
        question: as it is stored.
    """

    def __init__(self, question: StoredQuestion) -> None:
        self.question = question
        todo = (
            f"draw it with desk.redraw({question.id!r}, ...), which stores what it draws"
            if question.answer is None
            else f"take its answer from desk.find({question.id!r})"
        )
        super().__init__(
            f"the key {question.key!r} was debited before, and one debit pays for one answer; {todo}, or ask under a new key. "
            "Nothing was read or spent."
        )


def stored(row: Row[Any]) -> StoredQuestion:
    """A question from its row."""
    return StoredQuestion(
        row.id,
        row.analyst,
        row.key,
        row.question,
        Budget(Decimal(row.epsilon), Decimal(row.delta)),
        Standing(row.standing),
        row.time,
        row.decided_by,
        row.event,
        row.answer,
    )
