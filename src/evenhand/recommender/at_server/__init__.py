"""The server: issues tasks and tokens, folds reports, clusters items, publishes. Nobody needs to trust it.

It sees randomised reports only; the guarantee was given at home, before anything was sent.
"""

from evenhand.recommender.at_server.campaign import Campaign, publish
from evenhand.recommender.at_server.fold import Counts, Fold
from evenhand.recommender.at_server.reports import Batch
from evenhand.recommender.at_server.sketches import RatedSets
from evenhand.recommender.at_server.tokens import Issuer

__all__ = ["Batch", "Campaign", "Counts", "Fold", "Issuer", "RatedSets", "publish"]
