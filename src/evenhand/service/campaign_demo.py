"""A made-up campaign about films: simulated people have answered and the model is out, and a few tokens are left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Fold
from evenhand.recommender.at_server.store import ReportStore
from evenhand.recommender.simulation import BlockPeople
from evenhand.recommender.tastes import preset
from evenhand.service.campaign_config import Configured

_SIMULATED, _LEFT, _RATED = 30_000, 5, 8
_FILMS = (
    "Alien, Brazil, Casablanca, Dune, Elf, Fargo, Gandhi, Heat, Ikiru, Jaws, Klute, Léon, Metropolis, Network, Okja, Psycho, "
    "Quadrophenia, Ran, Sabrina, Tootsie, Ugetsu, Vertigo, Witness, Xala, Yojimbo, Zodiac"
)


def demo_campaign(folder: Path) -> tuple[Configured, list[str]]:
    """The campaign, with its files in a folder, and the tokens that are left."""
    films = _FILMS.split(", ")
    campaign = Campaign(films, epsilon=1, rated=_RATED, users=_SIMULATED + _LEFT, epoch="demonstration")
    fold = Fold(campaign.open())
    BlockPeople(preset("popular"), len(films), _RATED).answer(fold, 0, _SIMULATED)
    model = campaign.publish(fold)
    model = replace(model, notes=(*model.notes, f"A demonstration: learnt from {_SIMULATED:,} simulated people."))
    (folder / "task.json").write_text(campaign.task.to_json(), encoding="utf-8")
    (folder / "model.json").write_text(model.to_json(), encoding="utf-8")
    store = ReportStore(folder / "reports.db", campaign.task)
    found = Configured(folder / "task.json", campaign.issuer, store, folder / "model.json")
    return found, [str(token) for token in campaign.tokens(_SIMULATED, _LEFT)]
