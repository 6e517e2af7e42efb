"""What to expect of a question before it is paid: from guesses that people type, and from answers they have. No row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from evenhand.bounding.auto import MEAN_SHARE
from evenhand.guarantee import EvenhandError
from evenhand.pages.numbers import percent
from evenhand.planning import GroupPlan, Plan, plan
from evenhand.profiles import Profile
from evenhand.release import written
from evenhand.service.accounts import Account
from evenhand.service.answers import Desks
from evenhand.service.forms import guess
from evenhand.statistics.allocation import share_for

_PLANNED = {False: ("count", "sum", "mean"), True: ("count", "users", "sum")}
"""What can be forecast: for the whole table, and by group."""
_EPSILONS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
"""How far from the chosen ε the picture looks, in powers of ten."""
_ALIKE, _UNEVEN = 0.5, 1.5
"""Rows per person are assumed to lie between two laws: people much alike (log-normal), and a few with very many rows (Pareto)."""


def guesses(desks: Desks, account: Account, table: str) -> dict[str, str]:
    """How many people and rows there are, from answers that this analyst has."""
    found = {}
    for name, ask in (("people", "users"), ("rows", "count")):
        mine = [
            one
            for one in desks.history(account)["questions"]
            if one["table"] == table
            and one["standing"] == "paid"
            and set(one["question"]) <= {"ask", "epsilon", "delta"}
            and one["question"]["ask"] == ask
        ]
        answer = desks.shown(account, {"id": mine[-1]["id"]}, wait=0).get("answer") if mine else None
        if answer:
            found[name] = str(max(1, round(written.read(answer).value)))
    return found


def forecast(
    here: Mapping[str, Any],
    preview: Callable[[float], Mapping[str, Any]],
    question: Mapping[str, Any],
    given: Mapping[str, str],
    described: Mapping[str, Any],
) -> dict[str, Any]:
    """The error to expect, for the chosen ε and around it; or what is missing for saying so.

    What the preview ``here``, and previews for other ε, forecast is shown as it is; where they can't, because nobody has bought a
    profile, guesses take its place.
    """
    epsilon = float(here["guarantee"]["exact"]["epsilon"])
    spread = [round(epsilon * 10**power, 12) for power in _EPSILONS]
    where = " for a middling group" if question.get("by") else ""
    if _known(here) is not None:
        errors = [(one, _known(here if one == spread[4] else _other(preview, one))) for one in spread]
        points = [(one, error, error) for one, error in errors if error is not None]
        return {"epsilon": spread[4], "points": points, "basis": f"The forecast of the preview{where}."}
    if question["ask"] not in _PLANNED["by" in question]:
        return {"missing": "There is no forecast for this kind of question; its answer comes with an interval."}
    people, rows = guess(given, "people"), guess(given, "rows")
    if people is None or rows is None:
        return {
            "missing": "It depends on how many people and rows there are, which is private. Change the question and give a guess."
        }
    users = int(people)
    try:
        laws = (Profile.lognormal(_ALIKE, users, rows), Profile.pareto(_UNEVEN, users, rows))
        groups = _groups(question, described)
        plans = [_planned(question, law, described, epsilon, groups) for law in laws]
        bought = float(MEAN_SHARE) if question["ask"] == "mean" else share_for(groups[0] if groups else 1)
        errors_of = [[_error(each.at(max(one * (1 - bought), 1e-9))) for each in plans] for one in spread]
    except EvenhandError as error:
        return {"missing": f"There is no forecast: {error}"}
    basis = (
        f"A forecast{where} from your guess of people and rows: the lower edge if people have about equally many rows, the upper "
        f"one if a few have very many. {percent(bought)} of ε buys how many rows people have, from which the bound is chosen."
    )
    unit = next((one.get("unit", "") for one in described["columns"] if one["name"] == question.get("column")), "")
    return {
        "epsilon": spread[4],
        "points": [(one, min(both), max(both)) for one, both in zip(spread, errors_of, strict=True)],
        "size": rows if question["ask"] == "count" and not question.get("by") else None,
        "basis": basis,
        "unit": f" {unit}" if unit else "",
    }


def _other(preview: Callable[[float], Mapping[str, Any]], epsilon: float) -> Mapping[str, Any] | None:
    try:
        return preview(epsilon)
    except EvenhandError:  # an ε that nobody may spend
        return None


def _known(preview: Mapping[str, Any] | None) -> float | None:
    """The error that a preview states: of the number, or of a middling group if there is one statistic."""
    if preview is None:
        return None
    error, groups = preview["error"], list(preview.get("groups", {}).values())
    found = error["noise"] if error["total"] is None else error["total"]
    if len(groups) == 1 and groups[0].get("typical"):
        found = groups[0]["typical"][1]["error"]
    elif groups:
        return None
    return float(found) if found and math.isfinite(found) else None


def _groups(question: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[int, bool] | None:
    """How many groups there are, and whether their names are hidden; then 20 is a guess."""
    if not question.get("by"):
        return None
    facts = {one["name"]: one for one in described["columns"]}
    keys = question.get("keys") or facts.get(question["by"], {}).get("keys")
    return (len(keys), False) if keys else (20, True)


def _planned(
    question: Mapping[str, Any],
    profile: Profile,
    described: Mapping[str, Any],
    epsilon: float,
    groups: tuple[int, bool] | None,
) -> Plan | GroupPlan:
    facts = {one["name"]: one for one in described["columns"]}
    bounds = question.get("bounds") or facts.get(question.get("column"), {}).get("bounds")
    options: dict[str, Any] = {"bounds": tuple(bounds)} if bounds and question["ask"] != "count" else {}
    if groups:
        options |= {"groups": groups[0], "hidden": groups[1]} | (
            {"delta": question.get("delta", 0)} if groups[1] else {}
        )
    planned: Plan | GroupPlan = plan(question["ask"], profile, epsilon, protects=described["protects"], **options)
    return planned


def _error(planned: Plan | GroupPlan) -> float:
    if isinstance(planned, GroupPlan):
        return planned.best.typical[1].error
    return planned.best.error
