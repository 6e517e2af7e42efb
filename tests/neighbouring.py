"""Comparing two neighbouring tables step by step under the same noisy outputs, as adaptive composition does."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import evenhand as eh
from evenhand.statistics import Draft
from reachable import difference
from watch import Ask, Step, watch


def compare(ask: Ask, one: eh.Table, other: eh.Table, seed: int | None = None) -> list[float]:
    """Check two neighbouring tables; returns the share of each declared L1 bound that was reached."""
    played = watch(one, ask, seed=seed)
    replayed = watch(other, ask, replay=played.steps)
    assert _public(played.draft) == _public(replayed.draft), "what is said before anything is read depends on rows"
    reached = check_steps(played.steps, replayed.steps)
    seen, theirs = played.seen, replayed.seen
    assert seen == theirs, f"the release depends on more than the noisy integers: {difference(seen, theirs)}"
    assert pickle.dumps(played.outcome) == pickle.dumps(replayed.outcome), "the pickle depends on more than that"
    return reached


def check_steps(played: Sequence[Step], replayed: Sequence[Step]) -> list[float]:
    """Check what was handed to the noise on two neighbouring tables under the same outputs; returns as `compare`.

    Each step stays within what was declared for it; and what the noise really lost, from the integers and its scale alone,
    stays within what was paid, whatever was declared.
    """
    assert len(played) == len(replayed), "how often noise is drawn depends on rows"
    reached = [_change(*steps) for steps in zip(played, replayed, strict=True)]
    chosen: dict[int, float] = defaultdict(float)
    epsilon: dict[int, Fraction] = defaultdict(Fraction)
    rho: dict[int, Fraction] = defaultdict(Fraction)
    for step, theirs, share in zip(played, replayed, reached, strict=True):
        chosen[step.payment] += share if step.kind == "choice" else 0.0
        lost = step.lost(theirs)
        epsilon[step.payment] += lost[0]
        rho[step.payment] += lost[1]
        assert epsilon[step.payment] <= step.paid.epsilon, (
            f"the noise of a {step.kind} lost ε = {float(epsilon[step.payment])}, paid {float(step.paid.epsilon)}"
        )
        assert rho[step.payment] <= step.paid.rho, (
            f"the noise of a {step.kind} lost ρ = {float(rho[step.payment])}, paid {float(step.paid.rho)}"
        )
    assert max(chosen.values(), default=0) <= 1, "choices paid for once lose more together than one may"
    return reached


def _change(step: Step, other: Step) -> float:
    assert (step.kind, step.l1, step.l2_squared, step.monotone, step.scale, step.paid) == (
        other.kind, other.l1, other.l2_squared, other.monotone, other.scale, other.paid,
    ), "the declared bound depends on rows"  # fmt: skip
    l1, l2_squared = step.change(other)
    assert step.l1 is None or l1 <= step.l1, f"one user moved the integers by {l1} in L1 norm, declared {step.l1}"
    assert step.l2_squared is None or l2_squared <= step.l2_squared, (
        f"one user moved the integers by √{l2_squared} in L2 norm, declared √{step.l2_squared}"
    )
    if step.most is not None:
        supported = sum(move != 0 for move in step.moves(other))
        assert supported <= step.most, f"one user moved the integers of {supported} groups, declared {step.most}"
    if step.monotone:
        moves = step.moves(other)
        assert min(moves, default=0) >= 0 or max(moves, default=0) <= 0, (
            f"one user moved scores up by {max(moves)} and down by {-min(moves)}, declared monotone"
        )
    return l1 / step.l1 if step.l1 else 0.0


def _public(draft: Draft) -> dict[str, object]:
    """What a draft says, and what a preview would; not what the source is called or where it is."""
    said: dict[str, object] = {
        name: repr(value)
        for name, value in vars(draft).items()
        if name not in ("run", "foreseen", "source", "engine", "beforehand")
    }
    foreseen = {name: forecast.to_dict() for name, forecast in draft.foreseen().items()}
    return said | {"foreseen": foreseen, "refused": _refused(draft)}


def _refused(draft: Draft) -> str:
    """What is said before the debit by those facts of the table that are public."""
    try:
        if draft.beforehand is not None:
            draft.beforehand()
    except eh.EvenhandError as refused:
        return str(refused)
    return ""
