"""What a campaign would find: simulated people of the block model, or people resampled from a real table.

Nothing here is a private release. Simulated people are nobody's data; resampled ones are the table holder's own,
for the holder only.
"""

from evenhand.recommender.simulation.people import BlockPeople, People, ResampledPeople
from evenhand.recommender.simulation.quality import HeldOut, Quality, compare, draw_opinions
from evenhand.recommender.simulation.ratings_table import RatingsTable, read_table
from evenhand.recommender.simulation.study import Point, items_wrong, study, study_ratings, verdicts

__all__ = [
    "BlockPeople",
    "HeldOut",
    "People",
    "Point",
    "Quality",
    "RatingsTable",
    "ResampledPeople",
    "compare",
    "draw_opinions",
    "items_wrong",
    "read_table",
    "study",
    "study_ratings",
    "verdicts",
]
