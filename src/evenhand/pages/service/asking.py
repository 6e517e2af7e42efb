"""Building a question, by choosing or in SQL, and its price before it is paid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from evenhand.pages.numbers import percent, three_digits
from evenhand.pages.pictures import curve
from evenhand.pages.service.frame import (
    CURRENT,
    NOTHING,
    Person,
    alert,
    amount,
    area,
    badge,
    card,
    choice,
    facts,
    field,
    form,
    hidden,
    html,
    joined,
    whole,
)
from evenhand.pages.service.home import budget_card
from evenhand.pages.service.words import TITLES, column_words, columns_table, titled


def ask(
    described: Mapping[str, Any], offered: Sequence[str], given: Mapping[str, str], person: Person, message: str = ""
) -> str:
    """The form to build a question about a table, filled in as it was given; above it, what was wrong with it."""
    name = described["name"]
    sql = given.get("ask") == "sql"
    parts = _in_sql(given) if sql else _by_choosing(described, offered, given)
    parts = [hidden("table", name), *parts, *_price(given)]
    tabs = joined(
        html('<a href="/ask?{}"{}>{}</a>', urlencode({"table": name, **more}), CURRENT if here else NOTHING, text)
        for text, more, here in (("By choosing", {}, not sql), ("In SQL", {"ask": "sql"}, sql))
    )
    built = html('<nav class="tabs" aria-label="Ways to ask">{}</nav>', tabs)
    built += form("/price", parts, "Show the price", person, builder=True)
    columns = joined(
        [
            card(f"Columns of {name}", columns_table(described)),
            *(card(f"Joined in SQL: {part['name']}", _joinable(name, part)) for part in described["parts"]),
        ]
    )
    body = alert(message) + html('<div class="columns">{}{}</div>', card("", built), columns)
    return whole(f"Ask about {name}", body, person, lead="Nothing is spent on this page, nor on the next.")


def _joinable(name: str, part: Mapping[str, Any]) -> Markup:
    """How the rows of a part are reached, as SQL has it."""
    equal = " AND ".join(f"{name}.{one} = {part['name']}.{other}" for one, other in part["on"].items())
    how = html(
        "<p>Its rows belong to people through a key: <code>FROM table JOIN {} ON {}</code></p>", part["name"], equal
    )
    return how + columns_table({**part, "user": []})


def _by_choosing(described: Mapping[str, Any], offered: Sequence[str], given: Mapping[str, str]) -> list[Markup]:
    columns = [
        (column["name"], f"{column['name']} ({column_words(column)})"[:80])
        for column in described["columns"]
        if column["name"] not in described["user"]
    ]
    whole_table = [("", "the whole table")]
    bounds = "Such as 0 to 240. Left out, they are as stated, or found privately."
    return [
        choice("ask", "What to compute", [(one, TITLES.get(one, one)) for one in offered], given.get("ask", "count")),
        choice("column", "Of which column", columns, given.get("column", ""), look="of-column"),
        field("bounds", "Smallest and largest value", bounds, given.get("bounds", ""), look="of-bounds"),
        field("quantiles", "Which quantiles", "Such as 0.5, 0.9.", given.get("quantiles", ""), look="of-quantiles"),
        choice("by", "For", [*whole_table, *((one, f"each {one}") for one, _ in columns)], given.get("by", "")),
        field(
            "keys",
            "Names of the groups",
            "If they are public, such as drama, comedy. Left out, they are as stated, or found privately, which needs δ.",
            given.get("keys", ""),
            look="of-groups",
        ),
    ]


def _in_sql(given: Mapping[str, str]) -> list[Markup]:
    example = "One SELECT with COUNT, SUM, AVG and others; such as SELECT genre, COUNT(*) FROM table WHERE stars > 3 GROUP BY genre"
    return [hidden("ask", "sql"), area("text", "Query", example, given.get("text", ""))]


def _price(given: Mapping[str, str]) -> list[Markup]:
    guesses = "Your guess, or a public figure, for the forecast only; it changes no answer."
    return [
        Markup('<fieldset><legend>Price</legend><div class="halves">'),
        field(
            "epsilon", "ε", "What to spend. A smaller one protects more and is noisier.", given.get("epsilon", "0.1")
        ),
        field("delta", "δ", "Only where names of groups are found, such as 1e-6.", given.get("delta", "")),
        Markup('</div></fieldset><fieldset><legend>For the forecast</legend><div class="halves">'),
        field("people", "About how many people", guesses, given.get("people", "")),
        field("rows", "About how many rows", "", given.get("rows", "")),
        Markup("</div></fieldset>"),
    ]


def price(
    preview: Mapping[str, Any],
    asked: Mapping[str, Any],
    budget: Mapping[str, Any],
    forecast: Mapping[str, Any],
    person: Person,
) -> str:
    """What a question would cost, how well it would do, and the button that pays for it.

    ``asked`` holds the question, its table and key, the form it came from, and whether it needs approval.
    """
    question, table = asked["question"], asked["table"]
    cost = {name: preview["guarantee"]["exact"][name] for name in ("epsilon", "delta")}
    sent = [hidden("table", table), hidden("key", asked["key"]), hidden("question", json.dumps(question))]
    if not preview["affordable"]:
        act = alert("This is more than your budget, or everybody's, holds. Choose a smaller ε, or talk to the keeper.")
    elif asked["approval"]:
        act = Markup(
            "<p>This is more than you may spend without approval. The keeper sees the question and its price, and decides.</p>"
        )
        act += form("/pay", sent, "Ask the keeper for approval", person)
    else:
        act = form("/pay", sent, f"Pay {amount(cost)} and ask", person)
    back = html('<a class="button second" href="/ask?{}">Change the question</a>', urlencode(asked["form"]))
    main = card("How good the answer will be", _forecast(forecast))
    main += card("What is promised", html("<p>{}</p>", preview["guarantee"]["words"]) + facts(_details(preview)))
    price = html('<p class="big">{}</p>', amount(cost)) + budget_card(budget, cost["epsilon"])
    side = card("Price", price + html('<div class="side">{}{}</div>', act, back))
    body = html('<div class="columns"><div>{}</div><div>{}</div></div>', main, side)
    title, query = titled(question)
    return whole(title, query + body, person, lead=f"About {table}. Nothing was read or spent yet.")


def _details(preview: Mapping[str, Any]) -> list[tuple[str, str]]:
    bounding = preview["bounding"]
    chosen = f" ({bounding['chosen']})" if bounding.get("chosen") else ""
    known = [
        (
            "noise per group" if len(preview["groups"]) == 1 else f"noise per group of {name}",
            "; ".join(
                f"{kind} of {', '.join(map(str, noises))}: {', '.join(f'± {three_digits(one)}' for one in noises.values())}"
                for kind, noises in one.get("noise_for_bounds", {}).items()
            ),
        )
        for name, one in preview.get("groups", {}).items()
    ]
    return [
        ("computes", preview["statistic"]),
        ("bound on a person", f"{bounding['words']}{chosen}"),
        *((name, text) for name, text in known if text),
    ]


def _forecast(forecast: Mapping[str, Any]) -> Markup:
    """The error that is to be expected, as words and as a picture over ε; else what is missing for one."""
    if "points" not in forecast:
        return html("<p>{}</p><p>{}</p>", badge("no forecast", "plain"), forecast["missing"])
    size, unit = forecast.get("size"), forecast.get("unit", "")
    low, high = next((low, high) for epsilon, low, high in forecast["points"] if epsilon == forecast["epsilon"])
    error = _between(_about(low), _about(high)) + unit
    # A relative error only means something for what can't be near 0.
    part = f", which is {_between(percent(low / size), percent(high / size))} of {_about(size)}" if size else ""
    title = f"expected error{f',{unit}' if unit else ''}"
    drawn = curve(forecast["points"], forecast["epsilon"], title, f"The expected error for each ε; here {error}")
    return html(
        '<p class="big">± {}</p><p>The answer is typically off by {}.</p>'
        "<figure>{}<figcaption>Expected error for each ε; the line marks yours. {}</figcaption></figure>",
        error, error + part, Markup(drawn), forecast["basis"],
    )  # fmt: skip


def _about(value: float) -> str:
    """A forecast has no third digit."""
    return three_digits(float(f"{value:.2g}"))


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"
