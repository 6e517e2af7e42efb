"""``evenhand recommender``: a campaign from plan to recommendation, played with files. The server's commands."""

from __future__ import annotations

import csv
import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand.apps.console import AsJson, progress, require_server, say, show_json, write
from evenhand.apps.recommender_home import TaskFile, answer, diary, recommend, write_message
from evenhand.apps.recommender_studies import plan, simulate
from evenhand.guarantee import DataError, UsageError
from evenhand.recommender.messages import DEFAULT_SKETCH, SKETCHES, Groups, PublishedModel, Task, find_sketch
from evenhand.recommender.messages.exchange import read_message
from evenhand.recommender.messages.model import epoch_after
from evenhand.recommender.messages.sketches import which
from evenhand.recommender.messages.wire import read

if TYPE_CHECKING:
    from evenhand.recommender.at_server import RatedSets
    from evenhand.service.campaign_config import Configured

_SKETCH_HELP = "What people are asked. " + "; ".join(f"{name}: {sketch.asks}" for name, sketch in SKETCHES.items())

app = typer.Typer(
    no_args_is_help=True,
    help="Learn tastes from one randomised bit per person, on a server that nobody needs to trust. "
    "The server runs task, serve, fold and publish; everyone else runs answer, diary and recommend, at home.",
)


def task(
    source: Annotated[Path, typer.Argument(help="The catalogue, one item per line; or, with --open, a task.")],
    epsilon: Annotated[str, typer.Option(help="The ε of one person's answer.")] = "1",
    rated: Annotated[int, typer.Option(help="How many ratings a person is expected to have.")] = 40,
    users: Annotated[int, typer.Option(help="How many people may answer: as many tokens are made.")] = 1000,
    sketch: Annotated[str, typer.Option(help=_SKETCH_HELP)] = DEFAULT_SKETCH,
    pool: Annotated[str, typer.Option(help="Different queries: a number, auto, or own for one each.")] = "own",
    epoch: Annotated[str, typer.Option(help="Tells apart campaigns that are otherwise the same.")] = "1",
    public_rated: Annotated[
        bool, typer.Option("--public-rated", help=f"Who rated what is public; for {which('public_rated')}.")
    ] = False,
    groups: Annotated[
        bool, typer.Option("--groups", help="The source is a CSV with columns item and group: ask about the groups.")
    ] = False,
    after: Annotated[
        Path | None, typer.Option(help="A second round, on the sides of an axis of this model of a first round.")
    ] = None,
    axis: Annotated[int, typer.Option(help="With --after: which axis, from 1.")] = 1,
    out: Annotated[Path, typer.Option(help="Where to write the task.")] = Path("task.json"),
    secret: Annotated[Path, typer.Option(help="Where to keep the server's secret.")] = Path("server.secret"),
    tokens: Annotated[Path, typer.Option(help="Where to write the tokens, one per line.")] = Path("tokens.txt"),
    opening: Annotated[bool, typer.Option("--open", help="Publish the beacon of a task made before.")] = False,
    beacon: Annotated[str | None, typer.Option(help="With --open: public randomness; drawn if left out.")] = None,
    query: Annotated[int | None, typer.Option(help="Print the query of this serial, for its client to check.")] = None,
    as_json: AsJson = False,
) -> None:
    """Server: make a task and its tokens; then, once the tokens are handed out, open it.

    Examples: evenhand recommender task films.txt --rated 5 --users 12; evenhand recommender task task.json --open
    """
    from evenhand.recommender import Campaign

    if query is not None or opening:
        campaign = Campaign.resume(read_message(Task, source), bytes(32))
        if query is not None:
            print(campaign.query(query).to_json())
            return
        campaign.open(beacon)
        write_message(source, campaign.task)
        say(as_json, {"task": campaign.task.id.hex(), "open": True}, f"{source} is open: clients can answer now.")
        return
    size = None if pool == "own" else int(pool) if pool.isdigit() else pool
    catalogue = Groups.read(source).names if groups else _read_catalogue(source)
    if after is not None:
        first = read_message(PublishedModel, after)
        if first.items != tuple(catalogue) or not find_sketch(sketch).senses:
            raise UsageError(f"--after {after}: expected a model of the same catalogue, and one of {which('senses')}.")
        epoch = epoch_after(first, axis, epoch)
    campaign = Campaign(
        catalogue, sketch, epsilon, rated, users=users, pool=size, epoch=epoch, public_rated=public_rated
    )
    for path in (out, secret, tokens):
        if path.exists():
            raise UsageError(f"{path} exists already: name another file, or move it away.")
    write(secret, campaign.secret.hex().encode(), mode=0o600)
    write(tokens, "".join(f"{token}\n" for token in campaign.tokens()).encode(), mode=0o600)
    write_message(out, campaign.task)
    say(
        as_json,
        {"task": campaign.task.id.hex(), "files": [str(out), str(secret), str(tokens)], "tokens": users},
        f"Wrote {out}; keep {secret} to yourself, and give each person a line of {tokens}. "
        f"Then: evenhand recommender task {out} --open\n{campaign.task.guarantee}",
    )


def fold(
    task_file: TaskFile,
    reports: Annotated[
        list[str],
        typer.Argument(help="Files of reports, binary or JSON lines; or stores of a server: SQLite, postgresql://..."),
    ],
    secret: Annotated[Path, typer.Option(help="The secret that the tokens were made with.")] = Path("server.secret"),
    into: Annotated[Path, typer.Option(help="The running total; taken up again if it exists.")] = Path("campaign.fold"),
    rated_sets: Annotated[Path | None, typer.Option(help="With public rated items: CSV with serial and item.")] = None,
    as_json: AsJson = False,
) -> None:
    """Server: add reports to a running total. Folding a report twice changes nothing.

    Examples: evenhand recommender fold task.json report-*.bin; evenhand recommender fold task.json reports.db
    """
    from evenhand.recommender import Campaign
    from evenhand.recommender.at_server.store import ReportStore, is_store
    from evenhand.recommender.at_server.tokens import read_secret

    asked = read_message(Task, task_file)
    total = Campaign.resume(asked, read_secret(secret)).fold(_read_rated_sets(rated_sets, asked))
    if into.exists():
        total.load(into)
    with progress(f"Folding {len(reports)} sources"):
        for place in reports:
            if is_store(place):
                for batch in ReportStore(place, asked, create=False).batches():
                    total.add(batch)
            else:
                total.add_file(place)
    total.save(into)
    say(as_json, {"fold": str(into), **asdict(total.counts)}, f"{total.counts} (in {into})")


def publish(
    task_file: TaskFile,
    folds: Annotated[list[Path], typer.Argument(help="Running totals; several are merged.")],
    clusters: Annotated[int | None, typer.Option(help="How many clusters; chosen if left out.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write the model; .json or binary.")] = Path("model.json"),
    rated_sets: Annotated[Path | None, typer.Option(help="With public rated items: CSV with serial and item.")] = None,
    as_json: AsJson = False,
) -> None:
    """Server: cluster the items and publish the model.

    Example: evenhand recommender publish task.json campaign.fold --out model.json
    """
    from evenhand.recommender.at_server import Fold
    from evenhand.recommender.at_server import publish as publish_model

    asked = read_message(Task, task_file)
    sets = _read_rated_sets(rated_sets, asked)
    total = Fold(asked, rated=sets)
    for path in folds:
        part = Fold(asked, rated=sets)
        part.load(path)
        total.merge(part)
    with progress("Clustering"):
        model = publish_model(total, clusters)
    write_message(out, model)
    count = max(model.clusters) + 1
    say(
        as_json,
        {
            "model": str(out),
            "reports": model.reports,
            "clusters": count,
            "dimensions": model.dimensions,
            "notes": list(model.notes),
            "guarantee": model.guarantee.to_dict(),
        },
        "\n".join([f"Wrote {out}. Clusters: {count}; reports: {model.reports}.", *model.notes, str(model.guarantee)]),
    )


def _read_catalogue(path: Path) -> list[str]:
    try:
        lines = read(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text: expected a catalogue with one item per line.") from None
    return [line.strip() for line in lines if line.strip()]


def _read_rated_sets(path: Path | None, asked: Task) -> RatedSets | None:
    if path is None:
        return None
    from evenhand.recommender.at_server import RatedSets

    numbers = {item: number for number, item in enumerate(asked.items)}
    rows: list[list[int]] = [[] for _ in range(asked.tokens)]
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                serial, item = row["serial"] or "", row["item"] or ""
                if not (re.fullmatch("[0-9]{1,10}", serial) and int(serial) < asked.tokens and item in numbers):
                    raise DataError(f"{path} names a serial or an item that the task does not have.")
                rows[int(serial)].append(numbers[item])
    except (OSError, UnicodeDecodeError, csv.Error, KeyError):
        raise DataError(f"{path} can't be read: expected a CSV file with the columns serial and item.") from None
    return RatedSets(rows)


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
    as_json: AsJson = False,
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


for command in (plan, simulate, serve, diary, answer, recommend, task, fold, publish):
    app.command()(command)
