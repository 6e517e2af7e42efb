"""``evenhand serve``: the keeper's server."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import UsageError

HELP = """Run a keeper's server: analysts ask over HTTP, the table stays.

With a keeper.toml it serves the tables that the file names, to the analysts that it names. With --demo it serves a generated table of a
streaming service, with tokens for an analyst and a keeper.
"""

EXAMPLES = """Examples:

evenhand serve --demo

evenhand serve keeper.toml

evenhand serve keeper.toml --token ann --days 90
"""


def serve(
    file: Annotated[Path | None, typer.Argument(help="A keeper.toml; see docs/keeper.md.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a generated table; nothing to configure.")] = False,
    host: Annotated[str | None, typer.Option(help="The address to listen on, instead of the file's.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port, instead of the file's; 0 takes a free one.", min=0, max=65535)
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="Print a new token for this analyst (or 'keeper') and stop; nothing is served.")
    ] = None,
    days: Annotated[float, typer.Option(help="How long the token is valid.")] = 90,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="With --demo, open the page in a browser.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object with url and token, then nothing.")] = False,
) -> None:
    """Start, say where, and serve until stopped."""
    if demo == (file is not None):
        raise UsageError("nothing to serve was named, or too much; expected either a keeper.toml or --demo.")
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise UsageError("the server is not installed. Install it with: pip install 'evenhand[service]'") from None
    if file is not None:
        _serve_file(file, host, port, token, days, as_json)
    elif token is not None:
        raise UsageError("--token needs a keeper.toml; the demo prints its tokens.")
    else:
        _serve_demo(host, port, browser and not as_json, as_json)


def _serve_file(file: Path, host: str | None, port: int | None, token: str | None, days: float, as_json: bool) -> None:
    from evenhand.service.accounts import Role
    from evenhand.service.config import load
    from evenhand.service.http import application
    from evenhand.service.running import run

    found = load(file)
    if token is not None:
        if token != "keeper" and token not in found.keeper.analysts:
            raise UsageError(
                f"--token {token}: expected keeper, or an analyst of {file}: {sorted(found.keeper.analysts)}."
            )
        secret = found.accounts.issue(token, Role.KEEPER if token == "keeper" else Role.ANALYST, days)
        show_json({"token": secret}) if as_json else typer.echo(secret)
        return
    app = application(found.keeper, found.accounts, per_minute=found.per_minute)

    def accepting(url: str) -> None:
        show_json({"url": url}) if as_json else typer.echo(f"Serving {', '.join(found.keeper.tables)} at {url}")

    run(found.keeper, app, host or found.host, found.port if port is None else port, accepting)


def _serve_demo(host: str | None, port: int | None, browser: bool, as_json: bool) -> None:
    import evenhand as eh
    from evenhand.apps.demo import make_views
    from evenhand.service.demo import COLUMNS, demo_keeper
    from evenhand.service.http import application
    from evenhand.service.running import run

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "views.parquet"
        make_views(path)
        keeper, accounts, analyst, owner = demo_keeper(Path(folder), eh.read(path, user="viewer", columns=COLUMNS))

        def accepting(url: str) -> None:
            if as_json:
                show_json({"url": url, "token": analyst, "keeper_token": owner})
            else:
                typer.echo(
                    f"Serving a generated table at {url}\n\nIn a browser, sign in with the analyst's token, or with the keeper's:\n\n"
                    f"  analyst  {analyst}\n  keeper   {owner}\n\nOr in Python:\n\n"
                    f'  import evenhand as eh\n  remote = eh.connect("{url}", token="{analyst}")\n'
                    "  print(remote.count(epsilon=0.1))\n\nStop with Ctrl-C."
                )
            if browser:
                webbrowser.open(url)

        run(keeper, application(keeper, accounts), host or "127.0.0.1", 8765 if port is None else port, accepting)
