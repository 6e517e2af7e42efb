"""A plan as one self-contained page: no script, no network, readable on a phone."""

from __future__ import annotations

from html import escape

from evenhand.guarantee import plain
from evenhand.planning.picture import error_by_epsilon, styled, to_svg, trade_off, users_cut
from evenhand.planning.plans import Plan
from evenhand.planning.tables import number
from evenhand.planning.words import explain

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; padding: 1rem; max-width: 46rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.mark { background: #d00000; color: #fff; padding: .6rem 1rem; font-weight: bold; border-radius: .3rem; }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; padding: 0; list-style: none; }
.facts li { background: #f3f3f0; border-radius: .4rem; padding: .5rem .8rem; }
.facts b { display: block; font-size: 1.2rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; } figcaption { color: #555; font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } tr.best { font-weight: bold; background: #f3f3f0; }
footer { color: #555; font-size: .85rem; margin-top: 2rem; }
"""

_SECTIONS = (
    (
        "Where the bound sits",
        trade_off,
        "A low bound cuts the busiest users short: bias. A high bound must hide what one busy user could add: noise. "
        "The black line is both together, and the best bound is its lowest point.",
    ),
    ("Whom it touches", users_cut, "How many users a bound holds back; all others count in full."),
    (
        "What more privacy costs",
        error_by_epsilon,
        "The best error each strategy reaches, from strong to weak protection.",
    ),
)


def page(plan: Plan) -> str:
    """The page as HTML text."""
    best = plan.best
    mark = f'<p class="mark">{escape(plan.profile.mark)}</p>' if plan.profile.mark else ""
    title = f"Plan for a {plan.statistic} at ε = {plain(plan.epsilon)}"
    facts = [
        (best.strategy, "strategy"),
        (number(best.bound), "bound"),
        (number(best.error), "forecast error"),
        (f"{best.users_cut:,.0f} of {plan.profile.users:,.0f}", "users held back"),
    ]
    cards = "".join(f"<li><b>{escape(value)}</b>{escape(name)}</li>" for value, name in facts)
    words = "".join(f"<p>{escape(part)}</p>" for part in explain(plan).split("\n"))
    figures = "".join(
        f"<h2>{escape(heading)}</h2><figure>{to_svg(styled(draw(plan)))}<figcaption>{escape(caption)}</figcaption></figure>"
        for heading, draw, caption in _SECTIONS
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f'{mark}<h1>{escape(title)}</h1><ul class="facts">{cards}</ul>{words}{figures}'
        f'<h2>In numbers</h2><div class="wide">{_table(plan)}</div>'
        "<p>≤ marks a proven bound, ~ a forecast under the stated assumptions or from a noisy profile. Errors are root mean squares.</p>"
        f"<footer>Made from {escape(str(plan.profile.basis))} ({escape(plan.profile.words)}). Nothing was spent to make this page."
        f"</footer>{mark}</body></html>\n"
    )


def _table(plan: Plan) -> str:
    table = plan.table()
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    body = "".join(
        ('<tr class="best">' if forecast == table.best else "<tr>")
        + "".join(f"<td>{escape(cell)}</td>" for cell in forecast.cells())
        + "</tr>"
        for forecast in table.rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
