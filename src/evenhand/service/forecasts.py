"""What to expect of a question before it is paid: from guesses that people type, and from answers they have. No row is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand.guarantee import EvenhandError
from evenhand.planning import GroupPlan, Plan, plan
from evenhand.profiles import Profile
from evenhand.release import written
from evenhand.service.accounts import Account
from evenhand.service.answers import Desks
from evenhand.service.forms import number

_PLANNED = {False: ("count", "sum", "mean"), True: ("count", "users", "sum")}
"""What can be forecast: for the whole table, and by group."""
_EPSILONS = (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)
"""How far from the chosen ε the picture looks, in powers of ten."""
_LEFT = 0.6
"""The part of ε that is left where a bound is chosen privately, roughly: that takes a quarter to 44%."""
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
    preview: Mapping[str, Any], question: Mapping[str, Any], given: Mapping[str, str], described: Mapping[str, Any]
) -> dict[str, Any]:
    """The error to expect, for the chosen ε and around it; or what is missing for saying so."""
    epsilon = float(preview["guarantee"]["exact"]["epsilon"])
    noise = preview["error"]["noise"]
    spread = [round(epsilon * 10**power, 12) for power in _EPSILONS]
    if noise and math.isfinite(noise) and not question.get("by"):
        points = [(one, noise * epsilon / one, noise * epsilon / one) for one in spread]
        return {"epsilon": spread[4], "points": points, "basis": "From the noise alone, which is known in advance."}
    if question["ask"] not in _PLANNED["by" in question]:
        return {"missing": "There is no forecast for this kind of question; its answer comes with an interval."}
    if not (given.get("people", "").strip() and given.get("rows", "").strip()):
        return {
            "missing": "It depends on how many people and rows there are, which is private. Change the question and give a guess."
        }
    users, rows = int(number(given["people"])), number(given["rows"])
    try:
        laws = (Profile.lognormal(_ALIKE, users, rows), Profile.pareto(_UNEVEN, users, rows))
        plans = [_planned(question, law, described, epsilon) for law in laws]
        errors = [[_error(each.at(max(one * _LEFT, 1e-9))) for each in plans] for one in spread]
    except EvenhandError as error:
        return {"missing": f"There is no forecast: {error}"}
    where = " for a middling group" if question.get("by") else ""
    basis = (
        f"A forecast{where} from your guess of people and rows: the lower edge if people have about equally many rows, the upper "
        "one if a few have very many. A third of ε goes into choosing the bound."
    )
    unit = next((one.get("unit", "") for one in described["columns"] if one["name"] == question.get("column")), "")
    return {
        "epsilon": spread[4],
        "points": [(one, min(both), max(both)) for one, both in zip(spread, errors, strict=True)],
        "size": rows if question["ask"] == "count" and not question.get("by") else None,
        "basis": basis,
        "unit": f" {unit}" if unit else "",
    }


def _planned(
    question: Mapping[str, Any], profile: Profile, described: Mapping[str, Any], epsilon: float
) -> Plan | GroupPlan:
    facts = {one["name"]: one for one in described["columns"]}
    bounds = question.get("bounds") or facts.get(question.get("column"), {}).get("bounds")
    options: dict[str, Any] = {"bounds": tuple(bounds)} if bounds and question["ask"] != "count" else {}
    if question.get("by"):
        keys = question.get("keys") or facts.get(question["by"], {}).get("keys")
        options |= {"groups": len(keys) if keys else 20, "hidden": not keys}
        if not keys:
            options["delta"] = question.get("delta", 0)
    planned: Plan | GroupPlan = plan(question["ask"], profile, epsilon, protects=described["protects"], **options)
    return planned


def _error(planned: Plan | GroupPlan) -> float:
    if isinstance(planned, GroupPlan):
        return planned.best.typical[1].error
    return planned.best.error
