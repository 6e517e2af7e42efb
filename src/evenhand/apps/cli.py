"""``evenhand``: the command line. Thin: every command calls the library and prints."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

import typer

from evenhand.apps import (
    aggregate_cli,
    audit_cli,
    convert_cli,
    describe_cli,
    learn_cli,
    ledger_cli,
    plan_cli,
    recommender_cli,
    release_cli,
    reproduce_cli,
    serve_cli,
    sql_cli,
)
from evenhand.apps.console import fail
from evenhand.guarantee import UsageError

app = typer.Typer(
    name="evenhand",
    help="Statistics and models about people under user-level differential privacy, with the bound on each person "
    "chosen for you. Start with: evenhand demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="release", help=release_cli.HELP, epilog=release_cli.EXAMPLES)(release_cli.release)
app.command(name="aggregate", help=aggregate_cli.HELP, epilog=aggregate_cli.EXAMPLES)(aggregate_cli.aggregate)
app.command(name="sql", help=sql_cli.HELP, epilog=sql_cli.EXAMPLES)(sql_cli.sql)
app.command(name="describe", help=describe_cli.HELP, epilog=describe_cli.EXAMPLES)(describe_cli.describe)
app.command(name="convert", help=convert_cli.HELP, epilog=convert_cli.EXAMPLES)(convert_cli.convert)
app.command(name="plan", help=plan_cli.HELP, epilog=plan_cli.EXAMPLES)(plan_cli.plan)
app.command(name="reproduce", help=reproduce_cli.HELP, epilog=reproduce_cli.EXAMPLES)(reproduce_cli.reproduce)
app.command(name="audit", help=audit_cli.HELP, epilog=audit_cli.EXAMPLES)(audit_cli.audit)
app.add_typer(serve_cli.app, name="serve")
app.add_typer(ledger_cli.app, name="ledger")
app.add_typer(learn_cli.app, name="learn")
app.add_typer(recommender_cli.app, name="recommender")


@app.command()
def demo() -> None:
    """Four private statistics of a generated table, next to the true values. Nothing to configure."""
    from evenhand.apps.demo import run

    run()


@app.command()
def version() -> None:
    """Print the version."""
    import evenhand

    print(f"evenhand {evenhand.__version__}")


def main() -> None:
    """Run the command line; errors become one line, or with ``--json`` one object, and an exit code."""
    as_json = "--json" in sys.argv[1:]
    try:
        for plugin in entry_points(group="evenhand.plugins"):
            plugin.load()  # registers statistics, strategies, engines or sketches
        if not as_json:
            app()
        sys.exit(app(standalone_mode=False) or 0)
    except Exception as error:
        # What is wrong with the command line itself: Typer carries its own copy of click, whose errors have no public name.
        wrong = getattr(error, "format_message", None)
        sys.exit(fail(UsageError(wrong()) if wrong else error, as_json))
