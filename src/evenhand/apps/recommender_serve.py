"""``evenhand recommender serve``: a campaign's server."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.console import require_server, show_json
from evenhand.apps.recommender_files import Json
from evenhand.guarantee import UsageError

if TYPE_CHECKING:
    from evenhand.service.campaign_config import Configured


def serve(
    file: Annotated[Path | None, typer.Argument(help="A campaign.toml; see docs/recommender/server.md.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve a made-up campaign; nothing to configure.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="With --demo: a folder with the client, web/ of the sources, to be served too.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on, instead of the file's.")] = None,
    port: Annotated[
        int | None, typer.Option(help="The port, instead of the file's; 0 takes a free one.", min=0, max=65535)
    ] = None,
    as_json: Json = False,
) -> None:
    """Server: give out the task, store reports, and give out the model once it is published.

    Examples: evenhand recommender serve campaign.toml; evenhand recommender serve --demo --page web
    """
    if demo == (file is not None):
        raise UsageError("nothing to serve was named, or too much; expected either a campaign.toml or --demo.")
    if page is not None and not (demo and (page / "index.html").is_file()):
        raise UsageError(f"--page {page}: expected a folder with the client's index.html, together with --demo.")
    require_server()
    if file is not None:
        from evenhand.service.campaign_config import load

        _run(load(file), None, host, port, as_json, [])
        return
    from evenhand.service.campaign_demo import demo_campaign

    with tempfile.TemporaryDirectory() as folder:
        found, tokens = demo_campaign(Path(folder))
        _run(found, page, host or "localhost", port, as_json, tokens)


def _run(
    found: Configured, page: Path | None, host: str | None, port: int | None, as_json: bool, tokens: list[str]
) -> None:
    from evenhand.service.campaign_http import CampaignServer, application
    from evenhand.service.listening import refuse_plain
    from evenhand.service.running import serve

    def accepting(url: str) -> None:
        if as_json:
            show_json({"url": f"{url}/", **({"tokens": tokens} if tokens else {})})
            return
        typer.echo(f"Serving the task {found.issuer.task.short_id.hex()} at {url}/")
        if tokens:
            typer.echo(
                "This is a demonstration: the model is learnt from simulated people, and everything is deleted at the end."
            )
            client = f"{url}/" if page else "CLIENT/"
            typer.echo("Invitations, one per person:\n")
            for token in tokens:
                typer.echo(f"  {client}#campaign={url}/&token={token}")
        if page is not None:
            typer.echo(
                "\nThe page comes from the campaign's own server here, which could swap it: a real campaign's people have it from elsewhere."
            )

    app, asked = application(CampaignServer(found), page), found.listening
    host, limits = host or asked.host, replace(asked.limits, by_address=0)  # no address is looked at
    if page is None:
        refuse_plain(host, asked.proxies)
    serve(app, host, asked.port if port is None else port, accepting, limits=limits)
