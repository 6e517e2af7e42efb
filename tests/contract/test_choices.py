"""Every choice among candidates loses no more privacy than it was paid for, and its twin with too little noise is noticed.

The noise of a choice is scaled to how far one user moves scores, and is half as large where they all move one way. Here both are
judged by the exact scores of neighbouring tables and by the noise that was calibrated, whatever was declared. `CHOICES` names every
place of the package where something is chosen or shown: a new one needs a line, or the first test fails.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import evenhand as eh
from evenhand.guarantee import Relation
from evenhand.learning import BoundedERM, HypothesisSelection, PrivateSearchCV
from evenhand.learning.perturbation.shrink_to_constant import ShrinkToConstant
from evenhand.learning.regression import noise_level
from evenhand.learning.selection import train_test_split
from evenhand.learning.selection.per_user_loss import scoring_for
from evenhand.noise import NoisyMax, NormalThreshold, ShownCounts, TopK, TruncatedGeometric, seam
from evenhand.release import Receipt
from evenhand.statistics import supports
from evenhand.statistics.supports import Pairs
from evenhand.tables import Secret
from neighbouring import check_steps, compare
from visible import Tape
from watch import Ask, choices

PACKAGE = Path(eh.__file__).parent
WAYS = ("choices", "largest", "selected", "supporters")
"""The methods of a receipt that choose."""

Twin: TypeAlias = Callable[[], Any]
"""A patch that breaks a choice while it is in force."""


@dataclass(frozen=True)
class Choice:
    """A place where something is chosen.

    Args:
        check: compares neighbours, in which one user does as much as a user can.
        twins: what must be noticed.
    """

    check: Callable[[], object]
    twins: dict[str, Twin]


def calls() -> set[str]:
    """Every call of a receipt's ways to choose, by module and function."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        module = file.relative_to(PACKAGE).with_suffix("").as_posix()
        text = file.read_text(encoding="utf-8")
        if module.startswith("audit/") or module == "release/door" or not any(f".{way}(" in text for way in WAYS):
            continue
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef):
                found |= {
                    f"{module}:{function.name}:{node.func.attr}"
                    for node in ast.walk(function)
                    if isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in WAYS
                    and "receipt" in ast.unparse(node.func.value)
                }
    return found


def test_every_choice_is_checked() -> None:
    """A new choice must be added to `CHOICES`, with twins."""
    assert calls() == {name.partition(" ")[0] for name in CHOICES}
    assert all(choice.twins for choice in CHOICES.values())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "choice" in metafunc.fixturenames and "twin" in metafunc.fixturenames:
        broken = [(name, twin) for name, choice in CHOICES.items() for twin in choice.twins]
        metafunc.parametrize(("choice", "twin"), broken, ids=[f"{name}, {twin}" for name, twin in broken])
    elif "choice" in metafunc.fixturenames:
        metafunc.parametrize("choice", CHOICES)


def test_a_choice_loses_no_more_than_was_paid(choice: str) -> None:
    CHOICES[choice].check()


def test_a_broken_twin_is_noticed(choice: str, twin: str) -> None:
    with CHOICES[choice].twins[twin](), pytest.raises(AssertionError, match=NOTICED):
        CHOICES[choice].check()


NOTICED = "lost ε|lost ρ|declared monotone|moved the integers|price calls for|in L2 norm"


# Twins. Each is in force around one comparison.


@contextmanager
def half_the_noise() -> Iterator[None]:
    """Permute-and-flip with half its scale."""
    honest = NoisyMax.calibrated.__func__  # type: ignore[attr-defined]

    def calibrated(cls: type[NoisyMax], *given: Any) -> NoisyMax:
        return NoisyMax(honest(cls, *given).scale / 2)

    with mock.patch.object(NoisyMax, "calibrated", classmethod(calibrated)):
        yield


@contextmanager
def called_monotone() -> Iterator[None]:
    """Scores are declared to move one way, which halves the noise."""
    honest = NoisyMax.calibrated.__func__  # type: ignore[attr-defined]

    def calibrated(cls: type[NoisyMax], sensitivity: int, epsilon: Decimal, monotone: bool = False) -> NoisyMax:
        return honest(cls, sensitivity, epsilon, True)

    with mock.patch.object(NoisyMax, "calibrated", classmethod(calibrated)):
        yield


def half_the_scale() -> Any:
    """Of what the highest scores get."""
    honest = TopK.scale.fget  # type: ignore[attr-defined]
    return mock.patch.object(TopK, "scale", property(lambda top: honest(top) / 2))


def less_noise_than_paid(kind: type, change: Callable[[Any], Any]) -> Twin:
    """A way to select that is calibrated for more than it costs."""

    def twin() -> Any:
        honest = kind.way.__func__  # type: ignore[attr-defined]

        def way(cls: type, groups: int, epsilon: Decimal, *rest: Any, **more: Any) -> Any:
            found = honest(kind, groups, epsilon, *rest, **more)
            return found and replace(found, rounds=tuple(map(change, found.rounds)))

        # Only what the package calls: the suite calibrates on its own.
        return mock.patch(
            f"evenhand.statistics.support_choice.{kind.__name__}",
            type(kind.__name__, (kind,), {"way": classmethod(way)}),
        )

    return twin


def more_groups_than_paid() -> Any:
    """Users support twice as many groups as the noise is for."""
    honest = Pairs._supports
    return mock.patch.object(Pairs, "_supports", lambda pairs, look, limit: honest(pairs, look, 2 * limit))


def swapped_supports() -> Any:
    """Where one user's own groups are there too, groups get each other's supports: sorted they look the same."""
    honest = supports._by_place

    def by_place(found: pa.Table) -> list[int]:
        result = honest(found)
        if len(result) > 3:
            one, other = sorted(range(len(result)), key=lambda place: -result[place])[:2]
            result[one], result[other] = result[other], result[one]
        return result

    return mock.patch.object(supports, "_by_place", by_place)


# Statistics, on tables in which one user comes or goes, or changes.


def table(rows: Sequence[tuple[object, object, float]], relation: str = "presence") -> eh.Table:
    users, groups, values = zip(*rows, strict=True)
    columns = {
        "u": pa.array(users, pa.int64()),
        "g": pa.array(groups, pa.string()),
        "v": pa.array(values, pa.float64()),
    }
    return eh.read(pa.table(columns), user="u", protects=relation, public=["g"] if relation == "values" else [])


def both_ways(ask: Ask, one: Sequence[Any], other: Sequence[Any], relation: str = "presence") -> Callable[[], None]:
    def check() -> None:
        for first, second in ((one, other), (other, one)):
            compare(ask, table(first, relation), table(second, relation))

    return check


ME = 10**6
CROWD = [(user, "aab"[user % 3], float(user % 7)) for user in range(40)]
SEVERAL = [*CROWD, *((user, name, 1.0) for user in range(40) for name in "abcdef")]
MINE = [(ME, name, 1.0) for name in ("a", "b", "c", "g", "h", *map(str, range(30)))]
HIDDEN: dict[str, Any] = {"by": "g", "delta": 1e-3}


def _statistics() -> Iterator[tuple[str, Choice]]:
    halves: dict[str, Twin] = {"half the noise": half_the_noise}
    both: dict[str, Twin] = {**halves, "called monotone": called_monotone}
    # The best number of values per user lies in between: smaller ones get worse by a user with many, larger ones better.
    many = [(user, "a", 40.0 * user + value) for user in range(100) for value in range(40)]
    mine = [(ME, "a", -1.0 - value) for value in range(1100)]
    distinct: Ask = lambda ask: ask.distinct("v", epsilon=1)  # noqa: E731
    yield "statistics/distinct:_release:choices", Choice(both_ways(distinct, many, [*many, *mine]), both)
    less: dict[str, Twin] = {"half the scale": half_the_scale}
    names = list("abcdefgh")
    for how, top in {
        "one after the other": lambda ask: ask.top("g", 2, keys=names, epsilon=1, groups_per_user=8),
        "at once": lambda ask: ask.top("g", 3, keys=names, epsilon=1, groups_per_user=1),
        "one after the other, hidden": lambda ask: ask.top("g", 2, epsilon=100, delta=1e-3, groups_per_user=8),
        "at once, hidden": lambda ask: ask.top("g", 3, epsilon=100, delta=1e-3, groups_per_user=1),
    }.items():
        rows = SEVERAL if "after" in how else CROWD
        yield f"statistics/top:_run:largest {how}", Choice(both_ways(top, rows, [*rows, *MINE]), less)
    for how, k, epsilon, twin in (
        (
            "by number",
            1,
            100,
            less_noise_than_paid(TruncatedGeometric, lambda look: replace(look, factor=look.factor**2)),
        ),
        ("weighted", 16, 1, less_noise_than_paid(NormalThreshold, lambda look: replace(look, scale=look.scale / 2))),
    ):
        twins = {
            "less noise than paid": twin,
            "more groups than paid": more_groups_than_paid,
            "swapped": swapped_supports,
        }
        asked: Ask = lambda ask, k=k, e=epsilon: ask.sum("v", bounds=(0, 1), **HIDDEN, epsilon=e, groups_per_user=k)  # type: ignore[misc]  # noqa: E731
        rows = [*CROWD, *((user, "z", 1.0) for user in range(40, 60))]
        yield f"statistics/selection:_shown:selected {how}", Choice(both_ways(asked, rows, [*rows, *MINE]), twins)
    counts: Ask = lambda ask: ask.users(**HIDDEN, epsilon=8)  # noqa: E731
    twins = {
        "less noise than paid": less_noise_than_paid(ShownCounts, lambda look: replace(look, factor=look.factor**2)),
        "more groups than paid": more_groups_than_paid,
        "swapped": swapped_supports,
    }
    rows = [*CROWD, *((user, "z", 1.0) for user in range(40, 60))]
    yield "statistics/selection:select_keys:supporters", Choice(both_ways(counts, rows, [*rows, *MINE]), twins)


# Models: a fit, or the part of one that chooses, on neighbouring rows.


def fits(run: Callable[[Any], object], one: Any, other: Any) -> Callable[[], None]:
    """Run on both under the same noise, either way round."""

    def check() -> None:
        for first, second in ((one, other), (other, one)):
            tape = Tape()
            with seam.replaced(tape.draw), choices() as played:
                run(first)
            with seam.replaced(Tape(played=tape).draw), choices(played) as replayed:
                run(second)
            assert played
            check_steps(played, replayed)

    return check


def receipt() -> Receipt:
    return Receipt(Decimal(1), Decimal(0), "test")


def _models() -> Iterator[tuple[str, Choice]]:
    users = np.arange(20)
    X, y = np.ones((20, 2)), np.arange(20) % 2
    flipped = np.where(users == 19, 1 - y, y)
    before = {"presence": (X[:19], y[:19], users[:19]), "values": (X, flipped, users)}
    twins: dict[str, dict[str, Twin]] = {
        "presence": {"half the noise": half_the_noise},  # scores of a row do move one way
        "values": {"half the noise": half_the_noise, "called monotone": called_monotone},
    }
    for relation, other in before.items():

        def selection(data: Any, relation: str = relation) -> object:
            models = [lambda rows: np.ones(len(rows)), lambda rows: np.zeros(len(rows))]
            return HypothesisSelection(models, epsilon=1, rows_per_user=1, protects=relation).fit(*data)

        def search(data: Any, relation: str = relation) -> object:
            fit = BoundedERM.fit

            def opposed(model: BoundedERM, *given: Any) -> BoundedERM:
                fit(model, *given)
                model.coef_, model.intercept_ = np.full(2, float(model.regularisation) - 2), 0.1
                return model

            with (
                mock.patch.object(train_test_split, "coins", lambda count: np.arange(count) % 2 == 1),
                mock.patch.object(BoundedERM, "fit", opposed),
            ):
                base = BoundedERM(rows_per_user=1, feature_norm=1.0, protects=relation)
                return PrivateSearchCV(base, {"regularisation": [1.0, 3.0]}, 1, 0, refit=False).fit(*data)

        def beside(data: Any, relation: str = relation) -> object:
            model = BoundedERM(1.0, feature_bounds=(-1, 1), rows_per_user=1, regularisation=50.0)
            model.fit(np.zeros((2, 2)), np.array([0, 1]), users=[0, 1])
            model.coef_, targets = np.full((1, 2), 9.0), model._targets()
            rows = Secret((data[0], targets.targets(data[1])))
            own = ShrinkToConstant(rows, Relation(relation), targets, (1.0, 1.0), scoring_for(None, model), 0.5)
            return own.kept_part(model, 0.5, Decimal(1), receipt())

        for name, run in {
            "learning/selection/hypotheses:fit": selection,
            "learning/selection/search_cv:_choose": search,
            "learning/perturbation/shrink_to_constant:kept_part": beside,
        }.items():
            yield f"{name}:choices under {relation}", Choice(fits(run, (X, y, users), other), twins[relation])
    design = np.repeat(np.random.default_rng(1).normal(size=(9, 1)), 3, axis=1).reshape(-1, 1)
    blocks = noise_level.contrasts(design, np.repeat(np.arange(9), 3))
    labels = np.sin(np.arange(27.0))
    mine = np.where(np.arange(27) < 3, np.sign(blocks[0][1].sum()) * 5 * np.resize(blocks[0][1], 27), labels)

    def spread(own: Any) -> object:
        return noise_level.buy(blocks, Secret(own), (-5.0, 5.0), Decimal(1), receipt())

    calm = np.where(np.arange(27) < 3, 0.0, labels)
    yield "learning/regression/noise_level:buy:choices", Choice(fits(spread, calm, mine), twins["values"])


CHOICES: dict[str, Choice] = {**dict(_statistics()), **dict(_models())}
