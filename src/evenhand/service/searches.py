"""Searches among settings of an estimator as questions, and what they chose, as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import UsageError
from evenhand.pages.notebook import Card
from evenhand.release.written import read_guarantee, write_guarantee
from evenhand.service.parameters import as_data, from_data

if TYPE_CHECKING:
    from evenhand.learning import PrivateSearchCV

SEARCH = "PrivateSearchCV"

MOST_SETTINGS = 32
"""That a search may try on a server, which fits one model at a time."""

SAID = ("epsilon", "delta", "scoring", "refit", "param_grid")  # beside the estimator
_FOUND = ("best_index_", "best_params_", "candidate_epsilon_", "scorer_")


def search_question(search: PrivateSearchCV, inner: Mapping[str, Any]) -> dict[str, Any]:
    """What a question says of a search, given what it says of the estimator."""
    given = search.get_params(deep=False)
    return {**{name: as_data(given[name]) for name in SAID}, "of": dict(inner)}


def made_search(
    kind: type[PrivateSearchCV],
    given: Mapping[str, Any],
    estimator: Callable[[Mapping[str, Any]], Any],
    keepers: Sequence[str],
) -> PrivateSearchCV:
    """The search that a question names, by what makes its estimator; ``keepers`` are parameters that only a keeper sets."""
    if set(given) != {*SAID, "of"} or not isinstance(given["of"], Mapping) or given["of"].get("estimator") == SEARCH:
        raise UsageError(f"{SEARCH}: expected {[*SAID]}, and an estimator.")
    inner = estimator(given["of"])
    search = kind(inner, **{name: from_data(given[name]) for name in SAID})
    candidates = search._candidates()
    if len(candidates) > MOST_SETTINGS:
        raise UsageError(f"param_grid has {len(candidates)} settings; expected at most {MOST_SETTINGS} over a server.")
    known = inspect.signature(type(inner)).parameters
    for name in {name for candidate in candidates for name in candidate}:
        if name in (*keepers, "constraint") or name not in known:
            raise UsageError(
                f"param_grid has {name!r}; expected parameters of {type(inner).__name__} that can be sent."
            )
    return search


def search_data(search: PrivateSearchCV, best: dict[str, Any] | None) -> dict[str, Any]:
    """What was chosen, and the model that was fitted with it."""
    chosen = {name: as_data(getattr(search, name)) for name in _FOUND}
    return {"guarantee": write_guarantee(search.guarantee_), "chosen": chosen, "best": best}


def read_search(search: PrivateSearchCV, data: Mapping[str, Any], best: Any) -> None:  # noqa: ANN401 - an estimator
    """Take over what a server's search chose."""
    for name, value in data["chosen"].items():
        setattr(search, name, from_data(value))
    if best is not None:
        search.best_estimator_ = best
    search.cv_results_ = {"params": search._candidates()}
    search.guarantee_ = read_guarantee(data["guarantee"])
    search.__dict__["event_"] = str(data["event"])


def search_card(search: PrivateSearchCV, label: str, winner: Card | None) -> Card:
    """What the page shows of a search: that of its winner, after what was chosen."""
    named = [("chosen", str(search.best_params_)), ("guarantee", search.guarantee_.words())]
    shown = winner or Card(f"settings for {label}")
    return replace(shown, title=f"{SEARCH}: {shown.title}", named=[*named, *shown.named])
