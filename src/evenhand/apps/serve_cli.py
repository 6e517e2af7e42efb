"""``evenhand serve``: the keeper's server."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.apps import token_cli
from evenhand.apps.console import require_server, show_json
from evenhand.guarantee import UsageError

HELP = """Run a keeper's server: analysts ask over HTTP, the table stays.

With a keeper.toml it serves the tables that the file names, to the analysts that it names. With --demo it serves a generated table of a
streaming service, with tokens for an analyst and a keeper.
"""

EXAMPLES = """Examples:

evenhand serve --demo

evenhand serve keeper.toml

evenhand serve token create keeper.toml ann --days 90
"""


class Serving(typer.core.TyperGroup):
    """``serve FILE`` and ``serve --demo`` beside ``serve token ...``: what names no subcommand is served."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - a context of click's, under Typer's own name
        return super().parse_args(ctx, args if args[:1] == ["token"] else ["run", *args])


class Unnamed(typer.core.TyperCommand):
    """The command behind ``serve FILE``: it has no name that people type, so none in its usage line."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - click's
        return super().make_context(parent.info_name, args, parent.parent, **extra)


app = typer.Typer(cls=Serving, help=HELP, epilog=EXAMPLES)
app.add_typer(token_cli.app, name="token")


@app.command("run", cls=Unnamed, help=HELP, epilog=EXAMPLES, hidden=True)
def serve(
    file: Annotated[Path | None, typer.Argument(help="A keeper.toml; see docs/keeper.md.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a generated table; nothing to configure.")] = False,
    host: Annotated[str | None, typer.Option(help="The address to listen on, instead of the file's.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port, instead of the file's; 0 takes a free one.", min=0, max=65535)
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="With --demo, open the page in a browser.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object with url and token, then nothing.")] = False,
) -> None:
    """Start, say where, and serve until stopped."""
    if demo == (file is not None):
        raise UsageError("nothing to serve was named, or too much; expected either a keeper.toml or --demo.")
    require_server()
    if file is not None:
        _serve_file(file, host, port, as_json)
    else:
        _serve_demo(host, port, browser and not as_json, as_json)


def _serve_file(file: Path, host: str | None, port: int | None, as_json: bool) -> None:
    from evenhand.service import logs
    from evenhand.service.config import load
    from evenhand.service.http import application
    from evenhand.service.listening import refuse_plain
    from evenhand.service.running import run

    found = load(file)
    asked = found.listening
    refuse_plain(host or asked.host, asked.proxies)
    logs.install()
    found.warn()
    limits = asked.limits
    served = application(found.keeper, found.accounts, per_minute=found.per_minute, by_address=limits.by_address)

    def accepting(url: str) -> None:
        show_json({"url": url}) if as_json else typer.echo(f"Serving {', '.join(found.keeper.tables)} at {url}")

    port = asked.port if port is None else port
    run(found.keeper, served, host or asked.host, port, accepting, limits=limits, proxies=asked.proxies)


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
