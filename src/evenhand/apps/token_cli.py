"""``evenhand serve token``: who may ask a keeper's server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.apps.console import show_json
from evenhand.guarantee import UsageError

app = typer.Typer(help="Tokens of a keeper's server: make, list and revoke them.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The keeper.toml.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    file: File,
    name: Annotated[
        str, typer.Argument(help="An analyst of the file, 'keeper', or a reader's name with --role reader.")
    ],
    role: Annotated[str, typer.Option(help="analyst, reader or keeper; keeper for the name 'keeper'.")] = "",
    days: Annotated[float, typer.Option(help="How long the token is valid.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Print a new token. It is shown this once; only its hash is stored."""
    from evenhand.service.accounts import Role
    from evenhand.service.config import accounts_of

    accounts, analysts = accounts_of(file)
    wanted = role or ("keeper" if name == "keeper" else "analyst")
    if wanted not in list(Role):
        raise UsageError(f"--role {role}: expected analyst, reader or keeper.")
    if wanted == Role.ANALYST and name not in analysts:
        raise UsageError(
            f"{name!r} is not an analyst of {file}; expected one of {sorted(analysts)}, or another --role."
        )
    token = accounts.issue(name, Role(wanted), days)
    show_json({"token": token}) if as_json else typer.echo(token)


@app.command("list")
def list_all(file: File, as_json: AsJson = False) -> None:
    """All tokens: whose, until when, whether revoked; not the tokens themselves."""
    from evenhand.service.config import accounts_of

    found = accounts_of(file)[0].listed()
    if as_json:
        show_json({"tokens": found})
        return
    for one in found:
        ended = f"revoked {one['revoked'][:10]}" if one["revoked"] else f"until {one['expires'][:10]}"
        typer.echo(f"{one['id']}  {one['role']:<8} {one['name']:<20} {ended}")


@app.command()
def revoke(file: File, id: Annotated[str, typer.Argument(help="As listed.")]) -> None:
    """End a token at once."""
    from evenhand.service.config import accounts_of

    accounts_of(file)[0].revoke(id)
