"""An entry for the public registry of deployments of differential privacy, in its schema.

The schema is that of the registry's data repository (opendp/deployments-registry-data, July 2026), which goes back to arXiv
2509.13509. A ledger knows the unit, the relation, ε and δ, the mechanisms and the composition; what only people know is left to
be filled in. The entry is a draft for people to read and send: nothing is sent from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from evenhand.guarantee import Guarantee, Relation, UsageError, plain
from evenhand.ledger.handout import composition, promise
from evenhand.ledger.ledger import Ledger

_BLANK = "TO BE FILLED IN: "

_NEIGHBOURS = {
    Relation.PRESENCE: "Two tables are adjacent if one has all rows of one more {unit} than the other.",
    Relation.VALUES: "Two tables are adjacent if they differ in any values of one {unit}, in columns not declared public.",
    Relation.LABELS: "Two tables are adjacent if they differ in any labels of one {unit}.",
}

_MECHANISMS = """Discrete Laplace and discrete Gaussian noise on integers, thresholds for hidden names of groups, and noisy maxima for choices; sampled exactly by OpenDP from the system's secure source.

Library: Evenhand {version}. Each user's influence is clamped inside the database, as integers, before noise is added, so no floating-point number lies between clamp and noise. Every release is debited in a durable ledger before anything is read."""

_TUNING = """Bounds on a user's influence are given, or chosen from noisy histograms that are paid for from the same ledger. Nothing is read before it is paid for."""

_JUSTIFICATION = "who chose ε and δ, and why"


@dataclass(frozen=True)
class Told:
    """What a ledger can't know.

    Args:
        name: of what is published.
        curator: who publishes it.
        use: what it is meant for.
        region: which region it describes.
        author: who writes the entry.
        why: who chose the budget, and why.
    """

    name: str | None = None
    curator: str | None = None
    use: str | None = None
    region: str | None = None
    author: str | None = None
    why: str | None = None


def entry(ledger: Ledger, told: Told = Told(), slug: str = "evenhand") -> dict[str, Any]:  # noqa: B008 - never changed
    """The entry as data. Raises UsageError for a ledger without a release: whose privacy it is, is not settled yet."""
    promised, events = promise(ledger), ledger.events
    if promised is None:
        raise UsageError(f"ledger {ledger.location} has no release yet, so there is nothing to register.")
    asked = any("desk" in event.query for event in events)
    statistics = sorted({str(event.query.get("statistic")) for event in events if event.query.get("statistic")})
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "_", slug.lower()).strip("_") or "evenhand",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": {
                "name": told.name or _BLANK + "the name of the data product",
                "data_curators": [told.curator or _BLANK + "who publishes it"],
                "intended_use": told.use or _BLANK + "what it is meant for",
                "data_product_type": "Interactive API" if asked else "Summary statistics",
                "data_product_region": told.region or _BLANK + "which region it describes, or whose law applies",
                "description": f"{len(events)} releases: {', '.join(statistics)}.",
                "publication_date": events[0].time[:10],
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if promised.delta else "Pure DP",
                "data_domain": f"Tables in which every row belongs to one user, named by {_users(promised)}.",
                "unprotected_quantities": f"{promised.treated_as_public}.",
            },
            "privacy_loss": _loss(ledger, promised),
            "deployment_model": _model(ledger, asked),
            "accounting": {
                "post_processing": "Corrections, intervals, rounding and verdicts are computed from the noisy numbers alone.",
                "composition": composition(ledger),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _TUNING,
                "mechanisms": _MECHANISMS.format(version=version("evenhand")),
                "justification": told.why or _BLANK + _JUSTIFICATION,
            },
            "administrative": {
                "notes": f"Made from a ledger whose history has the SHA-256 {ledger.head}.",
                "registry_authors": [told.author or _BLANK + "who writes this entry"],
            },
        },
    }


def _loss(ledger: Ledger, promised: Guarantee) -> dict[str, Any]:
    parameters: dict[str, Any] = {"epsilon": float(promised.epsilon)}
    if promised.delta:
        parameters["delta"] = float(promised.delta)
    return {
        "privacy_unit": f"user, with all rows ({_users(promised)})",
        "privacy_unit_details": _NEIGHBOURS[promised.relation].format(unit=f"user ({', '.join(promised.unit)})")
        + _reached(promised),
        "privacy_parameters": parameters,
        "privacy_parameters_details": (
            f"The total of all releases, past and future; so far {ledger.spent} is spent. Exact decimals: "
            f"ε = {plain(promised.epsilon)}, δ = {plain(promised.delta)}."
        ),
    }


def _reached(promised: Guarantee) -> str:
    """What comes and goes with a user, beside their own rows."""
    if not promised.parts:
        return ""
    parts = ", ".join(map(str, promised.parts))
    return f" With them come all rows that no other user reaches, of tables whose rows belong to users through a key: {parts}."


def _model(ledger: Ledger, asked: bool) -> dict[str, Any]:
    who = sorted({event.asked.who for event in ledger.events if event.asked.who})
    analysts = f" Who asked so far: {len(who)}." if who else ""
    model = {
        "model_name": "Central",
        "actors": (
            "The keeper holds the table and the ledger and is trusted. Analysts see answers only; they may collude, and are not "
            f"trusted with the table.{analysts}"
            if asked
            else f"Whoever holds the table runs the releases and is trusted; readers see releases only.{analysts}"
        ),
        "release_type": "Many releases" if len(ledger.events) > 1 else "One release",
        "release_type_details": "The budget never resets: the total holds for all releases together.",
        "data_source_type_details": _BLANK
        + "static, or dynamic if rows come in over time; the promise holds for either",
        "access_type": "Interactive" if asked else "Non-interactive",
    }
    if asked:
        model["access_type_details"] = (
            "Analysts have budgets of their own within the total, and may need approval above a sum. The promise is the total's, "
            "analysts who collude included. Answers appear at a public deadline, except to analysts who are trusted with timing."
        )
    return model


def _users(promised: Guarantee) -> str:
    return ", ".join(promised.user or promised.unit)


def yaml(data: Mapping[str, Any], indent: str = "") -> str:
    """Nested mappings of text, numbers and lists of text as YAML; text in JSON's quotes, which are YAML's too."""
    lines = ""
    for name, value in data.items():
        if isinstance(value, Mapping):
            lines += f"{indent}{name}:\n{yaml(value, indent + '  ')}"
        elif isinstance(value, list):
            lines += f"{indent}{name}:\n" + "".join(f"{indent}  - {_scalar(item)}\n" for item in value)
        else:
            lines += f"{indent}{name}: {_scalar(value)}\n"
    return lines


def _scalar(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
