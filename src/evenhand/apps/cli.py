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
for module in (
    release_cli, aggregate_cli, sql_cli, describe_cli, convert_cli, plan_cli, reproduce_cli, audit_cli
):  # fmt: skip
    name = module.__name__.rpartition(".")[2].removesuffix("_cli")
    app.command(name, help=module.HELP, epilog=module.EXAMPLES)(getattr(module, name))
for group in (serve_cli, ledger_cli, learn_cli, recommender_cli):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2].removesuffix("_cli"))


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
