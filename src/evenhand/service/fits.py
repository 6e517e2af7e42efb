"""Models as questions: an estimator by its name and plain parameters, paid for first and fitted later; the model as released numbers.

Nothing that runs is sent either way: no loss of one's own, no callable, no pickle. A model comes back as the numbers that were released
and the public facts that predicting needs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import Guarantee, UsageError, suggest
from evenhand.pages.notebook import Card
from evenhand.profiles import Profile
from evenhand.release import Bounding, Error, Receipt
from evenhand.release.written import plain_value, read_guarantee, read_value, write_guarantee
from evenhand.service.parameters import as_data, from_data
from evenhand.service.searches import SEARCH, made_search, read_search, search_card, search_data, search_question
from evenhand.statistics import Draft, Outcome
from evenhand.tables import Table

if TYPE_CHECKING:
    from evenhand.learning import BoundedERM, PrivateSearchCV, WeightedERM

    Model = BoundedERM | WeightedERM

NUMBERS = {
    "WeightedERM": ("weight_bound_", "clip_", "noise_multiplier_", "noise_scale_", "usable_"),
    "BoundedERM": (
        "rows_per_user_",
        "regularisation_",
        "method_",
        "sensitivity_",
        "noise_scale_",
        "model_part_",
        "usable_",
    ),
}
"""The estimators that a server fits, and what they say of a fit beside the model itself."""

KEEPERS = ("ledger", "population", "profile")
"""Parameters that are the keeper's to say."""


class _NotYet(Error):  # noqa: N818 - a forecast, not an exception
    """What noise does to a model is said by the model."""

    def __str__(self) -> str:
        return self.basis


_BOUNDED = Bounding("of the estimator", None, "all rows of a user together are bounded", "by the estimator")
_AFTERWARDS = _NotYet(None, None, "not known before the fit; the model says what noise does to it")


def write_fit(estimator: Model | PrivateSearchCV, label: str) -> dict[str, Any]:
    """An estimator as data: its name, the label, and the parameters that are not defaults."""
    name = type(estimator).__name__
    if name == SEARCH and type(estimator) is kind_of(name):
        search: Any = estimator
        return {
            "ask": "fit",
            "estimator": name,
            "label": label,
            **search_question(search, write_fit(search.estimator, label)),
        }
    if name not in NUMBERS or type(estimator) is not kind_of(name):
        raise UsageError(f"a {name} can't be fitted by a server; expected one of {[*NUMBERS, SEARCH]}.")
    given = estimator.get_params(deep=False)
    for one in KEEPERS:
        if given[one] is not None:
            raise UsageError(
                f"{one}= is the keeper's to say: the server debits its own ledger for its own table, and uses a profile that was bought "
                "there in your name. Leave it out."
            )
    if not isinstance(given["loss"], str):
        raise UsageError(
            f"loss={type(given['loss']).__name__}: no code of an analyst's runs on a keeper's server; expected the name of a loss."
        )
    usual = kind_of(name)().get_params(deep=False)
    written = {one: _constraint_data(value) if one == "constraint" else as_data(value) for one, value in given.items()}
    chosen = {one: value for one, value in written.items() if one == "epsilon" or value != as_data(usual[one])}
    return {"ask": "fit", "estimator": name, "label": label, **chosen}


@dataclass(frozen=True)
class Fitted:
    """A model that may leave, with the question that it answers."""

    question: Mapping[str, Any]
    model: Model | PrivateSearchCV
    event: str

    def to_dict(self) -> dict[str, Any]:
        """The released numbers, and the public facts that predicting needs."""
        model: Any = self.model
        if self.question["estimator"] == SEARCH:
            return {"question": dict(self.question), "event": self.event, **search_data(model, self._winner(model))}
        mapped, encoding = model.feature_map_, model.encoding_
        classes = getattr(model, "classes_", None)
        return {
            "question": dict(self.question),
            "event": self.event,
            "guarantee": write_guarantee(model.guarantee_),
            "coefficients": model.coef_.tolist(),
            "intercept": plain_value(model.intercept_)
            if isinstance(model.intercept_, float)
            else model.intercept_.tolist(),
            "classes": None if classes is None else classes.tolist(),
            "columns": list(encoding.columns),
            "levels": [[name, list(levels)] for name, levels in encoding.levels.items()],
            "map": {**vars(mapped), "centre": mapped.centre.tolist(), "scale": mapped.scale.tolist()},
            "forecast": plain_value(vars(model.forecast_)),
            "numbers": {name: plain_value(getattr(model, name)) for name in NUMBERS[type(model).__name__]},
            "ranges": _ranges_data(model),
        }

    def _winner(self, search: PrivateSearchCV) -> dict[str, Any] | None:
        """The model of a search; its debit was that of the search."""
        if not search.refit:
            return None
        best = search.best_estimator_.set_params(**dict.fromkeys(KEEPERS))
        return Fitted(write_fit(best, self.question["label"]), best, self.event).to_dict()


def read_model(data: Mapping[str, Any]) -> Model:
    """The fitted estimator, as the keeper's server released it."""
    import numpy as np

    from evenhand.learning.data.features import Encoding, FeatureMap
    from evenhand.learning.loss_forecast import LossForecast
    from evenhand.planning.row_choice import RowChoice

    model: Any = _estimator(data["question"])
    if "chosen" in data:
        read_search(model, data, None if data["best"] is None else read_model(data["best"]))
        return model  # type: ignore[no-any-return]
    model.encoding_ = Encoding(tuple(data["columns"]), {name: tuple(levels) for name, levels in data["levels"]})
    model.columns_, names = model.encoding_.columns, model.encoding_.names
    model.n_features_in_, model.feature_names_in_ = len(names), np.array(names, dtype=object)
    given = data["map"]
    model.feature_map_ = FeatureMap(**{**given, "centre": np.array(given["centre"]), "scale": np.array(given["scale"])})
    model.coef_ = np.array(data["coefficients"])
    constant = data["intercept"]
    model.intercept_ = np.array(constant) if isinstance(constant, list) else float(constant)
    if data["classes"] is not None:
        model.classes_ = np.array(data["classes"])
    kind: type[LossForecast] | type[RowChoice] = LossForecast if "clip_" in data["numbers"] else RowChoice
    model.forecast_ = kind(**read_value(data["forecast"]))
    model.plan_ = None
    if kind is LossForecast:
        _read_ranges(model, data["ranges"])
    for name, value in data["numbers"].items():
        setattr(model, name, read_value(value))
    model.guarantee_, model.event_ = read_guarantee(data["guarantee"]), str(data["event"])
    return model  # type: ignore[no-any-return]


def _ranges_data(model: Model) -> dict[str, Any] | None:
    """What ranges of coefficients are made of."""
    spread, curvature = getattr(model, "spread_", None), getattr(model, "curvature_", None)
    if spread is None:
        return None
    return {
        "why": spread.why,
        "covariance": spread.covariance.tolist(),
        "unlearned": spread.unlearned.tolist(),
        "to_original": vars(model)["_to_original"].tolist(),
        "curvature": None if curvature is None else curvature.tolist(),
    }


def _read_ranges(model: WeightedERM, data: Mapping[str, Any]) -> None:
    import numpy as np

    from evenhand.learning.descent.coefficient_ranges import Spread

    unlearned = np.array(data["unlearned"])
    covariance = np.array(data["covariance"]).reshape(len(unlearned), len(unlearned))
    model.spread_ = Spread(covariance, unlearned, str(data["why"]))
    model._to_original = np.array(data["to_original"])
    model.curvature_ = None if data["curvature"] is None else np.array(data["curvature"])


def model_card(model: Model | PrivateSearchCV, label: str) -> Card:
    """What the page shows of a model; of a search, of its winner."""
    from evenhand.learning import PrivateSearchCV
    from evenhand.learning.model_card import model_card as card_of

    if isinstance(model, PrivateSearchCV):
        winner = model_card(model.best_estimator_, label) if model.refit else None
        return search_card(model, label, winner)
    from evenhand.pages.card import coefficients, worth_lines

    told = card_of(model, label)
    named = [("worth", line) for line in worth_lines(told)]
    named += [("bound on a person", told["bounding"]), ("ranges", told["range_covers"])]
    named += [("guarantee", told["guarantee"]["words"])]
    head = ("coefficient", "value", f"{told['confidence']:.0%} range")
    return Card(f"{told['model']} of {label}", named, head, coefficients(told))


@dataclass(frozen=True)
class FitDraft(Draft):
    """A draft whose answer is a fitted model."""

    fit: Callable[[str], Fitted] | None = None

    def drawn(self, receipt: Receipt) -> Fitted:  # type: ignore[override]
        """The model that was paid for."""
        assert self.fit is not None
        return self.fit(receipt.event)


def fit_draft(table: Table, profile: Profile | None, question: Mapping[str, Any]) -> FitDraft:
    """A fit before anything is spent or read; ``profile`` is one that the analyst bought, for estimators that choose by one."""
    estimator, label = _estimator(question), question.get("label")
    from evenhand.learning.selection.budget import PaidFit, Quote

    inner = estimator.estimator if question["estimator"] == SEARCH else estimator
    if hasattr(inner, "rows_per_user") or getattr(inner, "clip", None) == "lipschitz":
        inner.set_params(profile=profile)

    def paid_by(ledger: Quote | PaidFit) -> Any:  # noqa: ANN401 - a fitted estimator
        inner.set_params(ledger=ledger)
        return estimator.fit(table, label)

    quote = Quote.of(paid_by)
    cost, guarantee = quote.cost, quote.guarantee
    assert cost is not None
    assert isinstance(guarantee, Guarantee)

    def fit(event: str) -> Fitted:
        return Fitted(question, paid_by(PaidFit(cost, event)), event)

    words = f"{type(estimator).__name__} of {label}"
    query = dict(quote.query or {})
    return FitDraft(words, guarantee, cost, query, _BOUNDED, _AFTERWARDS, _no_outcome, source=table.source, fit=fit)


def _no_outcome(receipt: Receipt) -> Outcome:
    raise NotImplementedError("a model is fitted, not measured: it is no release of a value")


def _estimator(question: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one of the estimators
    """The estimator that a question names, with its parameters."""
    rest = {name: given for name, given in question.items() if name not in ("ask", "label")}
    name = rest.pop("estimator", None)
    if name == SEARCH:
        return made_search(kind_of(SEARCH), rest, _estimator, KEEPERS)
    if name not in NUMBERS:
        raise UsageError(f"estimator={name!r}: expected one of {[*NUMBERS, SEARCH]}.")
    kind = kind_of(name)
    known = [one for one in inspect.signature(kind).parameters if one not in (*KEEPERS, "protects")]
    for one in rest:
        if one not in known:
            raise UsageError(f"{name} has no parameter {one!r} over a server; expected {known}.{suggest(one, known)}")
    return kind(**{one: _constraint(given) if one == "constraint" else from_data(given) for one, given in rest.items()})


def kind_of(name: str) -> Any:  # noqa: ANN401 - the class of an estimator
    try:
        from evenhand import learning
    except ImportError as error:
        raise UsageError(f"models can't be fitted or read here: {error}.") from None
    return getattr(learning, name)


def _constraint_data(constraint: Any) -> Any:  # noqa: ANN401 - a ball, a box, or none
    if constraint is None:
        return None
    from evenhand.learning import Ball, Box

    if type(constraint) not in (Ball, Box):
        raise UsageError(f"constraint={constraint!r}: expected Ball(radius) or Box(low, high) of evenhand.learning.")
    parts = {one.name: float(getattr(constraint, one.name)) for one in fields(constraint)}
    return {type(constraint).__name__: {one: plain_value(number) for one, number in parts.items()}}


def _constraint(given: Any) -> Any:  # noqa: ANN401 - a ball, a box, or none
    if given is None:
        return None
    from evenhand.learning import Ball, Box

    ((kind, parts),) = given.items()
    return {"Ball": Ball, "Box": Box}[kind](**{name: float(read_value(part)) for name, part in parts.items()})
