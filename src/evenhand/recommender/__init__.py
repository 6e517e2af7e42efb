"""The untrusted recommender: learn tastes from one randomised bit per person.

    recommender/messages    all that crosses the trust boundary
    recommender/at_home     what runs on a person's device, and trusts nobody
    recommender/at_server   what runs on the server, which nobody needs to trust
    recommender/tastes      the block model: classes of people, classes of items, and who likes what
    recommender/tuning      a campaign's public facts, and the choices made from them alone
    recommender/bounds      how many people no method can do without, and how many are proven to be enough
    recommender/planning    how many items a sketch misplaces, and how many people that takes, before asking any
    recommender/simulation  what a campaign would find, on simulated or resampled people

`at_home` and `at_server` never import each other.

Reference: Banerjee, Hegde and Massoulié, The Price of Privacy in Untrusted Recommendation Engines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.recommender.at_server.campaign import Campaign

__all__ = ["Campaign"]


def __getattr__(name: str) -> type[Campaign]:
    # On demand, so that a client that imports `at_home` does not need NumPy.
    if name == "Campaign":
        from evenhand.recommender.at_server.campaign import Campaign

        return Campaign
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
