"""Every reproduction, with something in it replaced by a broken twin, is found out by one of its checks."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.apps.reproduce_cli import registry
from evenhand.learning import LabelPrivateRegression, WeightedERM
from evenhand.noise import seam
from evenhand.planning.excess_risk import Participation, chaudhuri
from evenhand.recommender.simulation import study

Twin = Callable[[Any], Any]
"""Makes the broken thing of the right one."""


class EverybodyHeavy(Participation):
    """Counts users at the cap as above it, as the paper's example does."""

    def heavy_users(self, n: float, delta: float) -> int:
        return int((self.p >= self.gamma).sum())


class TooSure(Participation):
    """Divides the bias by two."""

    def bias(self, variance: float = 0.25) -> float:
        return super().bias(variance) / 2


def less_sharp(law: Any) -> Any:
    """A tenth of the loss in the exponents of the exponential mechanism."""
    return lambda losses, sharpness: law(losses, sharpness / 10)


def uncapped(_: Any) -> Any:
    """The deviation of losses of which no row was dropped."""

    def deviation(drawn: Participation, means: np.ndarray, n: int, rng: np.random.Generator) -> float:
        counts = rng.multinomial(n, drawn.p)
        return float(np.abs(rng.binomial(counts[:, None], means).sum(axis=0) / n - drawn.q @ means).max())

    return deviation


def half_the_noise(seeded: Callable[[int], AbstractContextManager[None]]) -> Any:
    """Noise of half the scale."""

    @contextmanager
    def halved(seed: int) -> Any:
        with seeded(seed):
            draw = seam.current()
            assert draw is not None
            with seam.replaced(lambda name, values, scale: draw(name, values, scale / 2)):
                yield

    return halved


class AlwaysRowLimit(LabelPrivateRegression):
    """Takes row limits for optimal weights."""

    def fit(self, *arguments: Any, **named: Any) -> Any:
        if self.weights is None and self.weighting == "optimal":
            self.weighting = "row-limit"
        return super().fit(*arguments, **named)


class SameWeights(WeightedERM):
    """One h, however it is to be chosen."""

    def fit(self, *arguments: Any, **named: Any) -> Any:
        self.weight_bound = 3.0
        return super().fit(*arguments, **named)


def with_given(**fixed: Any) -> Twin:
    """A study that takes no notice of some of what it is given."""

    def twin(_: Any) -> Any:
        def ignoring(tastes: Any, items: int, rated: int, epsilon: Any, *rest: Any, **more: Any) -> Any:
            about = {"items": items, "rated": rated, "epsilon": epsilon} | {
                k: v for k, v in fixed.items() if k not in more
            }
            more |= {k: v for k, v in fixed.items() if k in more}
            return study(tastes, about["items"], min(about["rated"], about["items"]), about["epsilon"], *rest, **more)

        return ignoring

    return twin


TWINS: list[tuple[str, str, str, Twin]] = [
    ("amin2018-lemma1", "amin2018.lemma1", "expected_excess", less_sharp),
    ("amin2018-lemma1", "amin2018.lemma1", "EPSILON", lambda epsilon: 20 * epsilon),
    ("amin2018-theorem1", "amin2018.theorem1", "deviation", uncapped),
    ("amin2018-theorem1", "amin2018.theorem1", "Participation", lambda _: TooSure),
    ("amin2018-corollary1", "amin2018.corollary1", "Participation", lambda _: EverybodyHeavy),
    ("amin2019-fig1", "amin2019.fig1", "best_cap", lambda right: lambda counts, epsilon: right(counts, epsilon / 10)),
    ("amin2019-fig1", "amin2019.fig1", "chosen", lambda right: lambda *given: 20 * right(*given)),
    ("amin2019-fig2", "amin2019.fig2", "participation", lambda right: lambda alpha, users: right(alpha + 0.3, users)),
    ("amin2019-fig3", "amin2019.fig3", "chaudhuri", lambda _: lambda: chaudhuri(10)),
    ("amin2019-fig3", "amin2019.fig3", "participation", lambda right: lambda alpha, users: right(alpha + 1, users)),
    ("rameshwar2024-fig2", "rameshwar2024.figures", "centred_bound", lambda right: lambda s, u, e: right(s, u, e / 4)),
    ("rameshwar2024-fig2", "rameshwar2024.figures", "worst_case", lambda right: lambda counts, e: right(counts, e / 2)),
    ("rameshwar2024-fig3", "rameshwar2024.figures", "worst_case", lambda right: lambda counts, e: right(counts, e / 2)),
    ("rameshwar2024-fig3", "rameshwar2024.figures", "gaussian", lambda _: lambda rng, count: np.zeros(count)),
    ("epasto2020-example1", "epasto2020.example1", "LabelPrivateRegression", lambda _: AlwaysRowLimit),
    ("epasto2020-table1", "epasto2020.methods", "LabelPrivateRegression", lambda _: AlwaysRowLimit),
    ("epasto2020-theorem2", "epasto2020.theorem3", "smooth_bound", lambda right: lambda *given: 1.5 * right(*given)),
    ("epasto2020-theorem3", "epasto2020.theorem3", "row_limit_bound", lambda _: lambda *given: 10_000.0),
    ("epasto2020-logistic", "epasto2020.logistic", "excess", lambda right: lambda *given: right(*given)[::-1]),
    ("epasto2020-fig1", "epasto2020.methods", "LabelPrivateRegression", lambda _: AlwaysRowLimit),
    ("epasto2020-fig1", "epasto2020.methods", "seeded_noise", half_the_noise),
    ("epasto2020-fig2", "epasto2020.methods", "synthetic", lambda right: lambda n, alpha, seed: right(n, 2.0, seed)),
    ("epasto2020-fig2", "epasto2020.methods", "seeded_noise", half_the_noise),
    ("epasto2020-algorithm2", "epasto2020.published", "WeightedERM", lambda _: SameWeights),
    ("banerjee-maxsense-scaling", "banerjee.common", "study", with_given(rated=10)),
    ("banerjee-exact", "banerjee.exact", "study", with_given(epsilon=2.0)),
    ("banerjee-exact-pairwise", "banerjee.exact", "study", with_given(epsilon=1.0)),
    ("banerjee-exact-several", "banerjee.exact", "study", with_given(epsilon=8.0)),
    ("banerjee-several-questions", "banerjee.several_questions", "study", with_given(questions=1)),
    ("banerjee-pairwise-rich", "banerjee.common", "study", with_given(rated=20)),
    ("banerjee-public-rated", "banerjee.public_rated", "study", with_given(public_rated=False)),
    ("banerjee-regimes", "banerjee.common", "study", with_given(rated=30)),
    ("banerjee-mirrored", "banerjee.mirrored", "study", with_given(epsilon=0.2)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "module", "broken", "twin"), TWINS)
def test_a_broken_twin_is_found_out(
    name: str, module: str, broken: str, twin: Twin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At reduced size."""
    run, home = registry()[name], importlib.import_module(f"reproductions.{module}")
    monkeypatch.setattr(home, broken, twin(getattr(home, broken)))
    assert not run(tmp_path, "small").holds


def test_every_reproduction_has_a_broken_twin() -> None:
    assert {name for name, *_ in TWINS} == set(registry())
