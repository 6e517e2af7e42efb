"""The client: derives its query, answers with randomised bits, remembers, and recommends. It trusts nobody.

Only the standard library, `messages` and `guarantee` are used here, so that it can be carried over to a phone
or a browser; ``docs/recommender/wire-format.md`` gives test vectors for that.
"""

from evenhand.recommender.at_home.answering import answer, check_query, on_one_side
from evenhand.recommender.at_home.diary import Diary
from evenhand.recommender.at_home.ratings import Ratings, read_ratings
from evenhand.recommender.at_home.recommending import (
    Recommendation,
    opinions_of_groups,
    recommend,
    recommend_from_groups,
)

__all__ = [
    "Diary",
    "Ratings",
    "Recommendation",
    "answer",
    "check_query",
    "on_one_side",
    "opinions_of_groups",
    "read_ratings",
    "recommend",
    "recommend_from_groups",
]
