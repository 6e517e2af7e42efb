"""Model cards: what was learned, under which guarantee, how users were bounded, and how far to trust it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand.guarantee import UsageError
from evenhand.learning.base import accounting
from evenhand.learning.bounded_erm import BoundedERM
from evenhand.learning.evaluation import ModelLoss
from evenhand.learning.private_values import Floats
from evenhand.learning.regression import LabelPrivateRegression
from evenhand.learning.weighted_erm import WeightedERM
from evenhand.pages.card import coefficients, worth_lines
from evenhand.planning import ModelPlan

Model = LabelPrivateRegression | BoundedERM | WeightedERM


def model_card(
    model: Model,
    label: str = "the label",
    confidence: float = 0.95,
    plan: ModelPlan | None = None,
    loss: ModelLoss | None = None,
) -> dict[str, Any]:
    """The card as data; everything in it is public or was released.

    Args:
        model: a fitted model.
        label: what it predicts.
        confidence: of the ranges of coefficients.
        plan: what ``eh.plan("erm", ...)`` forecast before the fit.
        loss: what `model_loss` found afterwards.
    """
    if isinstance(model, LabelPrivateRegression):
        facts = _regression(model, confidence)
    elif isinstance(model, BoundedERM):
        facts = _bounded(model, confidence)
    elif isinstance(model, WeightedERM):
        facts = _weighted(model, confidence)
    else:
        raise UsageError(f"a card is for a fitted model of this package, not for {type(model).__name__}.")
    about = {"model": type(model).__name__, "label": label, "guarantee": model.guarantee_.to_dict()}
    plan = plan or getattr(model, "plan_", None)
    worth = {"planned": plan.to_dict() if plan else None, "loss": None if loss is None else _loss(loss, confidence)}
    return {**about, "accounting": _accounted(model), **facts, **worth}


def _accounted(model: Model) -> str:
    event = getattr(model, "event_", None)
    return accounting(model.ledger) if event is None else f"Debited by a keeper's server, event {event}."


def card_text(card: dict[str, Any]) -> str:
    """The card for a terminal."""
    width = max(len(row["name"]) for row in card["coefficients"])
    lines = [f"{card['model']} of {card['label']}", ""]
    lines += [f"  {name:<{width}}  {value:>12}   {between}" for name, value, between in coefficients(card)]
    lines += [
        "",
        *(f"  {line}" for line in worth_lines(card)),
        f"  {card['range_covers']}",
        f"  {card['bounding']}",
        f"  {card['guarantee']['words']}",
        f"  {card['accounting']}",
    ]
    return "\n".join(lines)


def _regression(model: LabelPrivateRegression, confidence: float) -> dict[str, Any]:
    weights = model.weights_
    how = {
        "optimal": "optimal weights: no other linear unbiased estimate with this noise rule has a smaller total variance "
        f"(certified to {weights.gap:.1g})",
        "row-limit": f"least squares on at most {weights.row_limit} random rows per user",
        "all": "least squares on all rows: heavy users need much noise",
    }[weights.weighting]
    values = [model.intercept_, *model.coef_.tolist()] if model.fit_intercept else model.coef_.tolist()
    named = list(zip(model.coefficient_names_, values, strict=True))
    return {
        "bounding": f"{how[0].upper()}{how[1:]}; minimised: the variance of the {model.target_}.",
        "confidence": confidence,
        "range_covers": "The range covers privacy noise and sampling error, for a linear relation with independent errors "
        f"of standard deviation {model.noise_sd_:.4g} (assumed, not checked).",
        "coefficients": _coefficients(named, model.interval(confidence)),
        "forecast": {
            "variance": model.variance_,
            "noise_scale": model.noise_scale_,
            "noise_sd_assumed": model.noise_sd_,
            "objective": weights.value,
            "lower_bound_of_the_objective": weights.bound if weights.weighting == "optimal" else None,
        },
        "likely": model.forecast_.words,
    }


def _bounded(model: BoundedERM, confidence: float) -> dict[str, Any]:
    forecast, output = model.forecast_, model.method_ == "output"
    return {
        "bounding": f"At most {model.rows_per_user_} random rows of each user; regularisation {model.regularisation_:.4g}.",
        "confidence": confidence,
        "range_covers": "The range covers privacy noise only: not sampling error, not the shrinkage of the regulariser."
        if output
        else "No range: how far the noise in the objective moves a coefficient depends on the private curvature of the loss.",
        "coefficients": _coefficients(_named(model), model.interval(confidence) if output else None),
        "forecast": {
            "noise_scale": model.noise_scale_,
            "excess_loss_by_noise": _known(forecast.noise),
            "excess_loss_by_regularisation": _known(forecast.shrinkage),
            "bias_of_the_row_limit": _known(forecast.bias),
        },
        **({} if math.isnan(forecast.excess) else {"likely": _lost(forecast.excess, model.usable_, model.model_part_)}),
    }


def _lost(excess: float, usable: bool, part: float) -> str:
    verdict = (
        "likely to beat a constant model"
        if usable
        else "not sure to beat a constant model, if a tenth of its loss can be saved"
    )
    kept = "" if part == 1 else f" Beside a constant model, {part:.0%} of it was kept."
    return f"by forecast it loses {excess:.2g} of the average loss to noise and bounding: {verdict}.{kept}"


def _weighted(model: WeightedERM, confidence: float) -> dict[str, Any]:
    why = model.spread_.why
    return {
        "bounding": f"All rows of a user together have a weight of at most {model.weight_bound_:.4g}, spread evenly over them.",
        "confidence": confidence,
        "range_covers": f"No range: {why}."
        if why
        else "The range is for the minimum of the same weighted loss on the same rows: it covers privacy noise, what the clamp cut off and what "
        "steps left unlearned; not sampling error.",
        "coefficients": _coefficients(_named(model), None if why else model.interval(confidence)),
        "forecast": {
            "noise_of_a_step": model.noise_scale_,
            "noise_multiplier": model.noise_multiplier_,
            "steps": model.steps,
            "loss_by_noise": None if math.isinf(model.forecast_.noise) else model.forecast_.noise,
            "gain_by_features": model.forecast_.gain,
        },
        "likely": model.forecast_.words,
    }


def _loss(loss: ModelLoss, confidence: float) -> dict[str, Any]:
    """What `model_loss` found, as data."""
    return {
        "scoring": loss.scoring,
        "value": loss.value,
        "range": list(loss.interval(confidence)),
        "constant": loss.constant,
        "better_than_constant_by": loss.gain.value,
        "better_range": list(loss.gain_interval(confidence)),
        "beats_constant": loss.beats_constant,
        "guarantee": loss.guarantee.to_dict() if loss.guarantee else None,
        "words": loss.words(),
    }


def _named(model: BoundedERM | WeightedERM) -> list[tuple[str, float]]:
    names = [*getattr(model, "feature_names_in_", [f"x{index}" for index in range(model.n_features_in_)])]
    rows, constants = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    if model.fit_intercept:
        names, rows = [*names, "intercept"], np.column_stack([rows, constants])
    prefixes = [""] if len(rows) == 1 else [f"{label}: " for label in model.classes_]
    return [
        (f"{prefix}{name}", float(value))
        for prefix, row in zip(prefixes, rows, strict=True)
        for name, value in zip(names, row, strict=True)
    ]


def _coefficients(named: list[tuple[str, float]], ranges: Floats | None) -> list[dict[str, Any]]:
    ends = [(None, None)] * len(named) if ranges is None else ranges.tolist()
    pairs = zip(named, ends, strict=True)
    return [{"name": name, "value": value, "low": low, "high": high} for (name, value), (low, high) in pairs]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
