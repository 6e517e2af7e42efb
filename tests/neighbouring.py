"""Comparing two neighbouring tables step by step under the same noisy outputs, as adaptive composition does."""

from __future__ import annotations

from collections import defaultdict

import evenhand as eh
from evenhand.statistics import Draft
from watch import Ask, Step, watch


def compare(ask: Ask, one: eh.Table, other: eh.Table, seed: int | None = None) -> list[float]:
    """Check two neighbouring tables; returns the share of each declared L1 bound that was reached."""
    played = watch(one, ask, seed=seed)
    replayed = watch(other, ask, replay=played.steps)
    assert _public(played.draft) == _public(replayed.draft), "what is said before anything is read depends on rows"
    assert len(played.steps) == len(replayed.steps), "how often noise is drawn depends on rows"
    reached = [_change(*steps) for steps in zip(played.steps, replayed.steps, strict=True)]
    chosen: dict[int, float] = defaultdict(float)
    for step, share in zip(played.steps, reached, strict=True):
        chosen[step.payment] += share if step.kind == "choice" else 0.0
    assert max(chosen.values(), default=0) <= 1, "choices paid for once lose more together than one may"
    assert played.seen == replayed.seen, "the release depends on more than the noisy integers"
    return reached


def _change(step: Step, other: Step) -> float:
    assert (step.kind, step.l1, step.l2_squared) == (other.kind, other.l1, other.l2_squared), (
        "the declared bound depends on rows"
    )
    l1, l2_squared = step.change(other)
    assert step.l1 is None or l1 <= step.l1, f"one user moved the integers by {l1} in L1 norm, declared {step.l1}"
    assert step.l2_squared is None or l2_squared <= step.l2_squared, (
        f"one user moved the integers by √{l2_squared} in L2 norm, declared √{step.l2_squared}"
    )
    return l1 / step.l1 if step.l1 else 0.0


def _public(draft: Draft) -> dict[str, object]:
    """What a draft says, and what a preview would; not what the source is called or where it is."""
    said: dict[str, object] = {
        name: repr(value) for name, value in vars(draft).items() if name not in ("run", "foreseen", "source", "engine")
    }
    return said | {"foreseen": {name: forecast.to_dict() for name, forecast in draft.foreseen().items()}}
