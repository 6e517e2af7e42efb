"""The list of sketches: what each asks, what a task for it may say, and where its two halves are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from evenhand.guarantee import UsageError, suggest


@dataclass(frozen=True)
class Sketch:
    """One entry of the list.

    Guarantee:
        ε does not depend on an entry or on the code that it names: at home `answer` turns whatever a sketch returns
        into one bit per question, and flips each. A wrong sketch costs accuracy.

    Args:
        asks: what a person is asked, in words.
        sees: what the server learns from many answers, in words.
        home: the client's half, a `HomeSketch`, as ``module:class``; imported where people answer, and only there.
        server: the server's half, a `ServerSketch`, likewise.
        senses: whether a query draws sets of items, and a task has a θ for their size.
        several: whether a task may ask several questions, with ε shared among them.
        public_rated: whether a task may treat as public which items people rated.
        capped: whether ratings beyond the task's public cap are left out, chosen at random.
    """

    asks: str
    sees: str
    home: str
    server: str
    senses: bool = False
    several: bool = False
    public_rated: bool = False
    capped: bool = True


def _ours(place: str) -> tuple[str, str]:
    return f"evenhand.recommender.at_home.sketches.{place}", f"evenhand.recommender.at_server.sketches.{place}"


_LIKED, _TOGETHER = "how much items are liked", "which items are liked together"

SKETCHES = {
    "pairwise": Sketch(
        "did you rate both of these items, and the same?",
        _TOGETHER,
        *_ours("pairwise:Pairwise"),
        public_rated=True,
        capped=False,
    ),
    "maxsense": Sketch(
        "is any of these Nθ/w items one that you liked?", _LIKED, *_ours("maxsense:MaxSense"), senses=True
    ),
    "multi-maxsense": Sketch(
        "the maxsense question about Q disjoint sets, with ε/Q each; better above ε = 3",
        _LIKED,
        *_ours("maxsense:MultiMaxSense"),
        senses=True,
        several=True,
    ),
    "projection": Sketch(
        "do your tastes lean the same way along two random directions?", _TOGETHER, *_ours("projection:Projection")
    ),
}
"""Every sketch by its name in tasks. One put here from outside is known everywhere: ``docs/recommender/new-sketch.md``."""

DEFAULT_SKETCH = "maxsense"


def find_sketch(name: str) -> Sketch:
    """The entry of this name; an unknown one is a `UsageError` that lists the names."""
    if not isinstance(name, str) or name not in SKETCHES:
        raise UsageError(f"sketch={name!r} is unknown; expected one of {list(SKETCHES)}.{suggest(str(name), SKETCHES)}")
    return SKETCHES[name]


def which(trait: str) -> str:
    """The names of the sketches whose entries have this trait, for messages."""
    return " and ".join(name for name, sketch in SKETCHES.items() if getattr(sketch, trait))


@cache
def load_half(place: str) -> type:
    """The class at ``module:class``."""
    module, _, name = place.partition(":")
    half = getattr(import_module(module), name, None)
    if not isinstance(half, type):
        raise UsageError(f"{place!r}, named by a sketch, is not a class: expected module:class.")
    return half
