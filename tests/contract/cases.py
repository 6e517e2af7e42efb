"""Every strategy, statistic and relation whose declared sensitivity the neighbour suite checks.

A new statistic is one more line here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import evenhand as eh
from evenhand.audit.group_distances import distances, located_by_group
from evenhand.audit.located import located_mean, tilted
from evenhand.session import Drafts
from evenhand.statistics import Draft
from nasty import HIGH, KEYS, LOW
from watch import Ask

BOUNDS = (LOW, HIGH)
_FEW = 5


@dataclass(frozen=True)
class Case:
    """A question under a relation.

    Args:
        name: for test ids.
        relation: which neighbours.
        ask: the question.
        attains: the share of the declared L1 bound that some extreme pair reaches; None where the bound is chosen.
        steady: the strategy draws rows at random, so other users' rows are made alike.
        on_spark: part of the small suite on Spark.
        examples: how many pairs of tables to try, for a release of many statements; None for the usual number.
    """

    name: str
    relation: str
    ask: Ask
    attains: float | None = 1.0
    steady: bool = False
    on_spark: bool = False
    examples: int | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.relation}"


def _cases() -> Iterator[Case]:
    for relation in ("presence", "values"):
        for cap in ("0.001", 5, 60):
            yield Case(
                f"sum-TotalCap({cap})",
                relation,
                _ask("sum", "v", bounds=BOUNDS, epsilon=1, bounding=eh.TotalCap(cap)),
                on_spark=cap == 5,
            )
        yield Case(
            "sum-nonnegative-TotalCap(5)",
            relation,
            lambda ask: ask.sum("v", bounds=(0, HIGH), epsilon=1, bounding=eh.TotalCap(5)),
        )
        yield Case(
            "sum-nonpositive-TotalCap(5)",
            relation,
            lambda ask: ask.sum("v", bounds=(LOW, 0), epsilon=1, bounding=eh.TotalCap(5)),
        )
        for h in ("1/3", 2, 1000.5):
            yield Case(
                f"sum-SmoothWeights({h})",
                relation,
                _ask("sum", "v", bounds=BOUNDS, epsilon=1, bounding=eh.SmoothWeights(h)),
                attains=1 - 1e-6,
                on_spark=h == 2,
            )
            yield Case(
                f"mean-SmoothWeights({h})",
                relation,
                _ask("mean", "v", bounds=BOUNDS, epsilon=1, bounding=eh.SmoothWeights(h)),
                attains=1 - 1e-6,
                on_spark=h == "1/3",
            )
        yield Case(
            "sum-RowLimit(2)",
            relation,
            lambda ask: ask.sum("v", bounds=BOUNDS, epsilon=1, bounding=eh.RowLimit(2)),
            steady=True,
            on_spark=True,
        )
        yield Case(
            "mean-RowLimit(2)",
            relation,
            lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1, bounding=eh.RowLimit(2)),
            steady=True,
        )
        yield Case("sum-auto", relation, lambda ask: ask.sum("v", bounds=BOUNDS, epsilon=1), None)
        yield Case("mean-auto", relation, lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1), None, on_spark=True)
        yield Case("mean-auto-tiny-ε", relation, lambda ask: ask.mean("v", bounds=BOUNDS, epsilon="1e-6"), None)
        yield Case("mean-auto-large-ε", relation, lambda ask: ask.mean("v", bounds=BOUNDS, epsilon=1000), None)
        for below, above in ((1, 1), (1000, 3000), (2**40, 5), (2**52, 2**52)):
            yield Case(
                f"mean-located-{below}-{above}",
                relation,
                partial(located_mean, below=below, above=above, bounds=BOUNDS),
                1.0 if max(below, above) < 2**40 else None,
                on_spark=below == 1000,
            )
        yield Case("distances-by-rows", relation, lambda ask: tilted(ask), 1.0, on_spark=True)
        per_user: dict[str, Any] = {"bounds": BOUNDS, "epsilon": 1}
        yield Case("per-user-total-auto", relation, _ask("per_user_mean", "v", of="total", **per_user), None)
        for of, cap in (("mean", 3), ("total", "0.001")):
            question = _ask("per_user_mean", "v", of=of, **per_user, bounding=eh.TotalCap(cap))
            yield Case(f"per-user-{of}-TotalCap({cap})", relation, question)
        yield Case("share-of-rows", relation, _ask("share", "v > 0.5", epsilon=1, bounding=eh.SmoothWeights(2)), 0.99)
        yield Case("share-of-rows-auto", relation, _ask("share", "v > 0.5", epsilon=1), None)
        yield Case("share-of-users", relation, _ask("share", "v > 0.5", of="users", epsilon=1), on_spark=True)
        yield Case("means-of-two", relation, lambda ask: ask.mean(["v", "x"], bounds=BOUNDS, epsilon=1), None)
        yield Case("count-auto", relation, lambda ask: ask.count(epsilon=1), None)
        yield Case("users", relation, lambda ask: ask.users(epsilon=1))
    # What a view makes one row of for each user needs no profile and no cap.
    for name, asked in ONE_ROW_EACH.items():
        attains = 1 - 1e-6 if name.startswith(("one-row-count", "one-row-mean", "one-row-share")) else None
        yield Case(name, "presence", asked, attains, on_spark=name == "one-row-mean")
    for strategy in (eh.TotalCap(3), eh.SmoothWeights("2.5"), eh.RowLimit(3)):
        yield Case(
            f"count-{strategy.title}",
            "presence",
            _ask("count", epsilon=1, bounding=strategy),
        )
    for length in ("0.001", 5, 60):
        yield Case(
            f"sum-CentredInterval({length})",
            "values",
            _ask("sum", "v", bounds=BOUNDS, epsilon=1, bounding=eh.CentredInterval(length)),
        )
        yield Case(
            f"mean-CentredInterval({length})",
            "values",
            _ask("mean", "v", bounds=BOUNDS, epsilon=1, bounding=eh.CentredInterval(length)),
            on_spark=length == 5,
        )
    for bounding in (eh.NormClip(5), eh.NormClip("0.001"), eh.SmoothWeights(2), "auto", eh.NormClip()):
        yield Case(
            f"means-in-a-ball-{bounding}",
            "values",
            _ask("mean", ["v", "x"], ball=HIGH, epsilon=1, bounding=bounding),
            0.99 if bounding == eh.NormClip(5) else None,
            on_spark=bounding == "auto",
        )


def _of_one_row_each(question: str, *arguments: Any, **options: Any) -> Ask:
    def ask(drafts: Drafts) -> Draft:
        table = drafts.table.per_user(high=(eh._.v > 0.5).any(), most=eh._.v.max())
        return getattr(Drafts(table), question)(*arguments, **options)

    return ask


def _said_to_be_one_row_each(question: str, *arguments: Any, **options: Any) -> Ask:
    """A table with many rows per user that passes for one of single rows: the fact decides about accuracy, a clamp about privacy."""
    return lambda ask: getattr(Drafts(replace(ask.table, per_person=1)), question)(*arguments, **options)


ONE_ROW_EACH: dict[str, Ask] = {
    "one-row-count": _of_one_row_each("count", epsilon=1),
    "one-row-mean": _of_one_row_each("mean", "high", epsilon=1),
    "one-row-share": _of_one_row_each("share", "high", epsilon=1),
    "one-row-count-by": _of_one_row_each("count", by="high", keys=[True, False], epsilon=1),
    "one-row-wrongly-count": _said_to_be_one_row_each("count", epsilon=1),
    "one-row-wrongly-mean": _said_to_be_one_row_each("mean", "v", bounds=BOUNDS, epsilon=1),
    "one-row-wrongly-count-by": _said_to_be_one_row_each("count", by="g", keys=list(KEYS), epsilon=1),
    "one-row-wrongly-sum-by": _said_to_be_one_row_each("sum", "v", bounds=BOUNDS, by="g", keys=list(KEYS), epsilon=1),
    "one-row-median": _of_one_row_each("median", "most", bounds=BOUNDS, epsilon=1),
}


def _found_cases() -> Iterator[Case]:
    """Bounds that are found. At a large ε they stand out even in a small table, so that the release after them is compared too."""
    plain = {"epsilon": 1000}
    for relation in ("presence", "values"):
        yield Case("mean-found", relation, _ask("mean", "v", **plain), None, on_spark=True, examples=3)
    yield Case("total-per-user-found", "values", _ask("per_user_mean", "v", of="total", **plain), None, examples=2)
    # Without bounds on values: users' totals are counted in cells, and capped.
    yield Case("sum-open", "presence", _ask("sum", "v", **plain), None, on_spark=True, examples=3)
    yield Case("sum-open-from-0", "presence", _ask("sum", "v", bounds=(0, None), **plain), None, examples=2)
    yield Case("sum-open-TotalCap(2)", "presence", _ask("sum", "v", epsilon=1, bounding=eh.TotalCap(2)), attains=0.99)
    together = {"s": eh.sum("v", bounds=(0, None)), "q": eh.median("v"), "by": "g", "keys": list(KEYS)}
    yield Case("aggregate-found", "presence", _ask("aggregate", **together, **plain), None, examples=2)


def _grouped_cases() -> Iterator[Case]:
    by: dict[str, Any] = {"by": "g", "keys": list(KEYS)}
    third: dict[str, Any] = {**by, "other": "others"}
    edges = [LOW, 0, 1 / 3, 2, HIGH]
    for relation in ("presence", "values"):
        for how, bounding, attains in (
            ("auto", "auto", None),
            ("SmoothWeights(2)", eh.SmoothWeights(2), 0.99),
        ):
            given: dict[str, Any] = {"epsilon": 1, "bounding": bounding}
            yield Case(f"sum-by-{how}", relation, _ask("sum", "v", bounds=BOUNDS, **by, **given), attains)
            few = _FEW if bounding == "auto" else None
            yield Case(
                f"mean-by-{how}", relation, _ask("mean", "v", bounds=BOUNDS, **third, **given), attains, examples=few
            )
            yield Case(f"variance-{how}", relation, _ask("variance", "v", bounds=BOUNDS, **given), None)
            yield Case(f"histogram-{how}", relation, _ask("histogram", "v", edges, **given), attains)
            yield Case(f"median-by-{how}", relation, _ask("median", "v", bounds=BOUNDS, **by, **given), None)
            yield Case(
                f"aggregate-{how}",
                relation,
                _ask("aggregate", n=eh.count(), m=eh.mean("v", bounds=BOUNDS), **by, **given),
                None,
                examples=few,
            )
        for how, options in (
            ("laplace", {}),
            ("gaussian", {"delta": 1e-6, "other": None}),
            ("tiny-ε", {"epsilon": "1e-6"}),
        ):
            yield Case(
                f"mean-by-located-{how}",
                relation,
                _located_by_group(**options),
                None,
                examples=_FEW,
                on_spark=(how, relation) == ("laplace", "presence"),
            )
        yield Case("distances-by", relation, _distances, None, examples=2 * _FEW, on_spark=True)
        yield Case(
            "aggregate-of-all",
            relation,
            _ask(
                "aggregate",
                n=eh.count(),
                people=eh.users(),
                s=eh.sum("v", bounds=BOUNDS),
                q=eh.quantiles("v", [0.1, 0.5], BOUNDS),
                weights={"n": 3, "q": 0.5},
                **by,
                epsilon=1,
                delta=1e-6,
            ),
            None,
            examples=_FEW,
        )
        yield Case("count-by-auto", relation, _ask("count", **third, epsilon=1), None)
        yield Case("users-by-auto", relation, _ask("users", **by, epsilon=1), None)
        yield Case("quantiles", relation, _ask("quantiles", "v", [0.1, 0.9], bounds=BOUNDS, epsilon=1), None)
        many: dict[str, Any] = {"bounds": BOUNDS, "epsilon": 1, "bounding": eh.SmoothWeights(2)}
        yield Case("many-quantiles", relation, _ask("quantiles", "v", [0.05, 0.123, 0.5, 0.5, 0.95], **many), None)
        yield Case("quantiles-by", relation, _ask("quantiles", "v", [0.1, 0.5, 0.9], **many, **by), None)
        for how, clip in (("auto", eh.NormClip(norm=2)), ("NormClip(2)", eh.NormClip(2, norm=2))):
            given = {"epsilon": 1, "delta": 1e-6, "bounding": clip}
            yield Case(f"mean-by-gaussian-{how}", relation, _ask("mean", "v", bounds=BOUNDS, **by, **given), None)
            yield Case(f"sum-by-gaussian-{how}", relation, _ask("sum", "v", bounds=BOUNDS, **by, **given), None)
            if (
                how != "auto" or relation == "presence"
            ):  # under values a free choice of an L2 bound would look at values
                yield Case(f"histogram-gaussian-{how}", relation, _ask("histogram", "v", edges, **given), None)
        for of in ("mean", "total"):
            clipped = _ask("per_user_mean", "v", bounds=BOUNDS, of=of, **by, epsilon=1, bounding=eh.NormClip("1.5"))
            yield Case(f"per-user-{of}-by-NormClip(1.5)", relation, clipped, attains=0.99, on_spark=of == "total")
        clipped = _ask("share", "v > 0.5", of="users", **by, epsilon=1, bounding=eh.NormClip("1.5"))
        yield Case("share-of-users-by-NormClip(1.5)", relation, clipped, attains=0.99)
        yield Case("share-of-rows-by-auto", relation, _ask("share", "v > 0.5", **by, epsilon=1), None, examples=_FEW)
        yield Case(
            "sum-by-NormClip(20)",
            relation,
            _ask("sum", "v", bounds=BOUNDS, **by, epsilon=1, bounding=eh.NormClip(20)),
            attains=0.99,
        )
        yield Case(
            "sum-by-RowLimit(2)",
            relation,
            _ask("sum", "v", bounds=BOUNDS, **by, epsilon=1, bounding=eh.RowLimit(2)),
            steady=True,
        )
        yield Case("distinct-3", relation, _ask("distinct", "v", values_per_user=3, epsilon=1), None)
        yield Case("distinct-by-auto", relation, _ask("distinct", "v", **third, epsilon=1), None)
    ranked: dict[str, Any] = {"of": "rows", "keys": list(KEYS), "epsilon": 1}
    yield Case("top-rows", "presence", _ask("top", "g", 2, **ranked), None, steady=True)
    hidden: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
    yield Case("top-hidden", "presence", _ask("top", "g", 3, **hidden), None, steady=True)
    hidden |= {"of": "rows", "groups_per_user": 1}
    yield Case("top-hidden-1", "presence", _ask("top", "g", 3, **hidden), None, steady=True)
    # With 60 groups more Gaussian noise can win: which noise each statistic gets is decided by a bought profile.
    wide: dict[str, Any] = {"by": "g", "keys": [*KEYS, *(f"nobody is here {i}" for i in range(60))], "delta": 1e-6}
    yield Case("sum-by-63-auto", "presence", _ask("sum", "v", bounds=BOUNDS, **wide, epsilon=1), None, examples=_FEW)
    both: dict[str, Any] = {"n": eh.count(), "s": eh.sum("v", bounds=BOUNDS), "weights": {"s": 2}}
    yield Case("aggregate-by-63-of-two", "presence", _ask("aggregate", **both, **wide, epsilon=1), None, examples=_FEW)
    secret: dict[str, Any] = {"by": "g", "epsilon": 1, "delta": 1e-6}
    for k, other in ((None, None), (1, None), (3, "rest")):  # with 3, Gaussian numbers share (ε, δ) with the names
        asked = _ask("count", **secret, groups_per_user=k, other=other)
        yield Case(f"count-by-secret-keys-{k}", "presence", asked, None, steady=True)
    yield Case(
        "mean-by-secret-keys",
        "presence",
        _ask("mean", "v", bounds=BOUNDS, **secret, other="rest"),
        None,
        True,
        examples=_FEW,
    )
    ratio = _ask("ratio", eh.sum("v", bounds=BOUNDS), eh.users(), **secret, other="rest")
    l2: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounding": eh.NormClip(2, norm=2)}
    gaussian = _ask("ratio", eh.sum("v", bounds=BOUNDS), eh.users(), **by, **l2)
    yield Case("ratio-by-gaussian", "presence", gaussian, None)
    yield Case("ratio-by-secret-keys", "presence", ratio, None, steady=True, examples=_FEW)
    yield Case("users-by-two-secret-keys", "presence", _ask("users", **{**secret, "by": ["g", "v"]}), None, steady=True)
    for strategy in (eh.NormClip(2), eh.TotalCap(2), eh.RowLimit(2)):
        given = {"epsilon": 1, "bounding": strategy}
        yield Case(f"count-by-{strategy.title}", "presence", _ask("count", **by, **given), steady=True)
        yield Case(f"users-by-{strategy.title}", "presence", _ask("users", **by, **given), steady=True)


def _located_by_group(**options: Any) -> Ask:
    return lambda ask: located_by_group(ask, "v", BOUNDS, "g", list(KEYS), **{"other": "others", **options})


def _distances(ask: Drafts) -> Draft:
    return distances(ask)


def _ask(question: str, *arguments: Any, **options: Any) -> Ask:
    return lambda ask: getattr(ask, question)(*arguments, **options)


CASES = (*_cases(), *_found_cases(), *_grouped_cases())
