"""What the selection of hidden group names did, in figures and in words: everything follows from public facts and released numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.noise import NormalThreshold, Way
from evenhand.profiles import Support
from evenhand.statistics.support_choice import doubled, needed


def facts(way: Way, groups: Support | None) -> dict[str, Any]:
    """The mechanism, how many groups of a user count, and about how many users a group needs to be shown.

    ``users_needed`` is for users in one group only; with weights or sampling it takes more of those who are in many.
    """
    few, many, busy = _needs(way, groups)
    return {
        "mechanism": "truncated geometric" if _counted(way) else "weighted Gaussian",
        "groups_per_user": way.groups,
        "rounds": len(way.rounds),
        "users_needed": few,
        "users_needed_in_many_groups": {"groups": busy, "users": many},
    }


def words(way: Way, groups: Support | None, shown: bool) -> str:
    """The same for a person, and what helps if nothing is shown."""
    few, many, busy = _needs(way, groups)
    need = f"about {few:,} users"
    if _counted(way):
        need += f", where each user counts in at most {way.groups:,} of their groups, drawn at random"
    elif busy > 1:
        need += f" who are in this group only, or {many:,} who are in {busy:,} groups each"
    if shown:
        return f"a group was shown from {need}"
    less = round(needed(doubled(way)))
    return (
        f"no group was shown: each needs {need}. With twice the epsilon about {less:,} would do "
        f"instead of {few:,}. Fewer and larger groups (months instead of days, regions instead of towns) have more users each; and "
        "groups that you list with keys= need no selection."
    )


def _needs(way: Way, groups: Support | None) -> tuple[int, int, int]:
    """Users that a group needs if they are in one group only; if they are in many; and how many that is.

    Many: a tenth of all users are in as many or more, as far as is known; else as many as may count.
    """
    busy = way.groups
    if groups is not None:
        from_top = np.cumsum(groups.users[::-1])
        busy = round(float(groups.sizes[::-1][int(np.searchsorted(from_top, groups.people / 10))]))
    return round(needed(way)), round(needed(way, busy)), busy


def _counted(way: Way) -> bool:
    return not isinstance(way.rounds[0], NormalThreshold)
