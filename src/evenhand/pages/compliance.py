"""The compliance page of a ledger: for whoever has to be convinced that people are protected."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from evenhand.guarantee import plain
from evenhand.pages.numbers import three_digits
from evenhand.pages.style import lines, page

if TYPE_CHECKING:
    from evenhand.guarantee import Guarantee

_NOT_COVERED = (
    "What can be learned about the group as a whole, with or without any one person in it.",
    "Several people at once, beyond k times the total ε for k of them.",
    "Whoever can read the table itself, or restore the ledger to an older state.",
)


def compliance_page(told: Mapping[str, Any]) -> str:
    """The page of what `evenhand.ledger.handout.compliance` says."""
    promise: Guarantee | None = told["promise"]
    total = [("total", str(told["total"])), ("spent", str(told["spent"])), ("left", str(told["remaining"]))]
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(one))}</tr>" for one in told["releases"]
    )
    head = "".join(
        f'<th scope="col">{name}</th>'
        for name in ("", "when (UTC), by whom", "what", "cost", "how one user is bounded")
    )
    releases = f'<table class="lines"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    askers = [(name, str(budget)) for name, budget in told["askers"].items()]
    missing = "".join(f"<li>{escape(text)}</li>" for text in _NOT_COVERED)
    return page(
        "How people are protected, and what was released",
        f"<h2>Who is protected from what</h2>{lines(_protected(promise))}"
        f"<h2>How much</h2>{lines([*total, ('how it adds up', told['composition'])])}"
        f"<h2>Who asked</h2>{lines(askers) if askers else '<p>Nobody yet.</p>'}"
        f"<h2>Every release</h2>{releases if rows else '<p>Nothing was released yet.</p>'}"
        f"<h2>What no such promise covers</h2><ul>{missing}</ul>"
        f"<footer>Ledger {escape(told['ledger'])}: {len(told['releases'])} events, verified: totals and the chain of hashes agree. "
        f"Head {escape(told['head'])}. Every event was written before its answer was drawn.</footer>",
    )


def _cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    cost = f"ε = {one['epsilon']}" + (f", δ = {one['delta']}" if one["delta"] != "0" else "")
    cost = cost.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    asked = f"{one['time'][:16].replace('T', ' ')}, {one.get('who', 'not recorded')}, {one['decided']}"
    return str(one["number"]), asked, f"{one['what']}; protects {one['protects']}", cost, one["bounded"]


def _protected(promise: Guarantee | None) -> list[tuple[str, str]]:
    if promise is None:
        return [("nobody yet", "The first release settles whose privacy this ledger keeps.")]
    odds = f"at most a factor of {three_digits(promise.odds)}"
    failing = f", except with probability {plain(promise.delta)}" if promise.delta else ""
    return [
        ("who", f"every user ({', '.join(promise.unit)}), with all of their rows"),
        ("what", promise.protected),
        ("from whom", "anybody who sees all releases together, whatever else they know or learn later"),
        ("how strongly", f"their odds about any one user change by {odds}{failing}"),
        ("not protected", f"{promise.treated_as_public}."),
    ]
