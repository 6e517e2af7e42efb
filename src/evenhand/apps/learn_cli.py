"""``evenhand learn``: a model from one table, debited from a ledger, with its card."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.apps.console import check_writable, parse_list, parse_pair, progress, show_json
from evenhand.guarantee import UsageError, parse_delta, parse_epsilon

if TYPE_CHECKING:
    import evenhand as eh
    from evenhand.learning import BoundedERM, LabelPrivateRegression, WeightedERM
    from evenhand.learning.data.features import FeatureBounds

app = typer.Typer(no_args_is_help=True, help="Learn a model about people and write a model card.")

Source = Annotated[str, typer.Argument(help="A path or glob of Parquet, CSV or JSON files.")]
User = Annotated[str, typer.Option(help="The column (or columns, a,b) that name a person.")]
Label = Annotated[str, typer.Option(help="The column to predict.")]
Features = Annotated[str | None, typer.Option(help="Feature columns a,b,c; default all other columns.")]
Epsilon = Annotated[str, typer.Option(help="How much of the budget to spend, such as 1.")]
Ledger = Annotated[str | None, typer.Option(help="The budget: a SQLite file, or postgresql://... Default: none.")]
Budget = Annotated[str | None, typer.Option(help="Total epsilon of a ledger that does not exist yet.")]
Columns = Annotated[str | None, typer.Option(help="The columns of a JSON file: a,b,c.")]
Population = Annotated[str | None, typer.Option(help="A name for the people, if tables share a ledger.")]
Card = Annotated[Path | None, typer.Option(help="Write the model card to CARD.json and CARD.html.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the card as one JSON object and nothing else.")]


@app.command(
    epilog="Example: evenhand learn regression reviews.csv --user id --label rating --features age,price "
    "--label-bounds 1:10 --epsilon 1 --noise-sd 1.5 --card model"
)
def regression(
    source: Source,
    user: User,
    label: Label,
    label_bounds: Annotated[str, typer.Option(help="LOW:HIGH of a label; labels outside are clamped.")],
    epsilon: Epsilon,
    features: Features = None,
    categories: Annotated[str | None, typer.Option(help="Features to turn into 0/1 columns per value: a,b.")] = None,
    noise_sd: Annotated[
        str | None, typer.Option(help="Standard deviation of labels about the regression: a number, or 'private'.")
    ] = None,
    weighting: Annotated[str, typer.Option(help="optimal, row-limit or all.")] = "optimal",
    target: Annotated[str, typer.Option(help="auto, coefficients or predictions.")] = "auto",
    intercept: Annotated[bool, typer.Option(help="Whether to fit a constant.")] = True,
    ledger: Ledger = None,
    budget: Budget = None,
    population: Population = None,
    card: Card = None,
    as_json: AsJson = False,
) -> None:
    """Linear regression that protects all labels of a user; features and rows per user are public."""
    import evenhand as eh
    from evenhand.learning import LabelPrivateRegression

    parse_epsilon(epsilon)
    bounds = eh.tables.parse_bounds(parse_pair(label_bounds, "label-bounds"), "label_bounds")
    spread: Any = noise_sd if noise_sd in (None, "private") else _number(noise_sd, "noise-sd")
    _check_card(card)
    table = eh.read(source, parse_list(user), protects="labels", population=population)
    names = _feature_names(table, label, features)
    dummies = parse_list(categories)
    for name in dummies:
        table.require(name, "feature column")
    book = _open(ledger, epsilon, "0", budget)
    model = LabelPrivateRegression(
        epsilon, label_bounds=bounds, noise_sd=spread, fit_intercept=intercept, weighting=weighting,
        target=target, features=names, categories=dummies, ledger=book,
    )  # fmt: skip
    _learn(model, source, table, label, book, card, as_json)


@app.command(
    epilog="Example: evenhand learn logistic visits.csv --user id --label bought --features age,visits "
    "--feature-bounds age=18:90,visits=0:50 --epsilon 1 --delta 1e-6 --card model"
)
def logistic(
    source: Source,
    user: User,
    label: Label,
    epsilon: Epsilon,
    features: Features = None,
    feature_bounds: Annotated[
        str | None, typer.Option(help="LOW:HIGH for all features, or name=LOW:HIGH,name=LOW:HIGH.")
    ] = None,
    feature_norm: Annotated[
        float | None, typer.Option(help="Instead of bounds: clip rows to this Euclidean norm.")
    ] = None,
    classes: Annotated[str, typer.Option(help="The two labels: NEGATIVE,POSITIVE; with --delta also more.")] = "0,1",
    delta: Annotated[str, typer.Option(help="0: pure privacy (BoundedERM); else noisy descent (WeightedERM).")] = "0",
    protects: Annotated[str, typer.Option(help="presence, or values (row counts are public).")] = "presence",
    steps: Annotated[int, typer.Option(help="With --delta: gradient steps.")] = 100,
    engine: Annotated[str | None, typer.Option(help="duckdb (default) or spark.")] = None,
    columns: Columns = None,
    ledger: Ledger = None,
    budget: Budget = None,
    population: Population = None,
    card: Card = None,
    as_json: AsJson = False,
) -> None:
    """Logistic regression that protects all rows of a user, features included."""
    import evenhand as eh
    from evenhand.learning import BoundedERM, WeightedERM

    parse_epsilon(epsilon)
    _check_card(card)
    table = eh.read(
        source, parse_list(user), protects=protects, population=population, engine=engine,
        columns=parse_list(columns) or None,
    )  # fmt: skip
    names = _feature_names(table, label, features)
    bounds, labels = _feature_bounds(feature_bounds, names), _classes(classes)
    make = partial(WeightedERM, delta=delta, steps=steps) if parse_delta(delta) else BoundedERM
    book = _open(ledger, epsilon, delta, budget)
    model = make(
        epsilon=epsilon, features=names, feature_norm=feature_norm, feature_bounds=bounds, classes=labels, ledger=book
    )
    _learn(model, source, table, label, book, card, as_json)


def _learn(
    model: BoundedERM | WeightedERM | LabelPrivateRegression, source: str, table: eh.Table, label: str,
    book: eh.Ledger | None, card: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Fit, write the card and print it."""
    from evenhand.apps.options import ledger_facts
    from evenhand.learning.model_card import card_text, model_card
    from evenhand.pages.card import card_page

    with progress(f"Learning {label} from {source}"):
        model.fit(table, label)
    facts = model_card(model, label)
    if book is not None:
        facts["ledger"] = ledger_facts(book)
    if card is not None:
        card.with_suffix(".json").write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        card.with_suffix(".html").write_text(card_page(facts), encoding="utf-8")
    if as_json:
        show_json(facts)
        return
    print(card_text(facts))


def _check_card(card: Path | None) -> None:
    if card is not None:
        check_writable(card.with_suffix(".json"), "card")
        check_writable(card.with_suffix(".html"), "card")


def _open(location: str | None, epsilon: str, delta: str, budget: str | None) -> eh.Ledger | None:
    from evenhand.apps.options import open_ledger

    if location is None:
        if budget is not None:
            raise UsageError("--budget without --ledger: which ledger should hold it? For example --ledger budget.db.")
        return None
    return open_ledger(location, epsilon, delta, budget, None)


def _feature_names(table: eh.Table, label: str, features: str | None) -> list[str]:
    from evenhand.learning.data.public_rows import column_names

    _, names = column_names(table, label, parse_list(features) or None)
    if not names:
        raise UsageError("there are no feature columns beside user and label; give --features a,b,c.")
    return list(names)


def _feature_bounds(text: str | None, names: list[str]) -> FeatureBounds | None:
    if text is None:
        return None
    if "=" not in text:
        return parse_pair(text, "feature-bounds")
    pairs = dict(part.partition("=")[::2] for part in parse_list(text))
    missing = [name for name in names if name not in pairs]
    if missing:
        raise UsageError(f"--feature-bounds says nothing about {missing}; expected name=LOW:HIGH for every feature.")
    found = [parse_pair(pairs[name], "feature-bounds") for name in names]
    return [pair for pair in found if pair is not None]


def _classes(text: str) -> tuple[Any, ...]:
    labels = parse_list(text)
    if len(labels) < 2:
        raise UsageError(f"--classes {text!r}: expected two labels, NEGATIVE,POSITIVE, such as --classes no,yes.")
    try:
        return tuple(map(float, labels))
    except ValueError:
        return tuple(labels)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"--{option} {text!r}; expected a number, or 'private'.") from None
