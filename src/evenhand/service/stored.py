"""Answers as they are stored and sent, and back: a release, a profile or a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenhand.pages.notebook import Card
from evenhand.profiles import Profile
from evenhand.release import Release, written
from evenhand.service.fits import Fitted, model_card, read_model

Answer = Release | Profile | Fitted


def answer_text(answer: Answer) -> str:
    """An answer as it is stored and sent."""
    if isinstance(answer, Release):
        data = written.write(answer)
    else:
        data = {"profile" if isinstance(answer, Profile) else "model": answer.to_dict()}
    return json.dumps(data, allow_nan=False)


def read_answer(data: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a release, a profile, or a fitted estimator
    """The answer that was written."""
    if "model" in data:
        return read_model(data["model"])
    return Profile.from_dict(data["profile"]) if "profile" in data else written.read(data)


def shown(data: Mapping[str, Any]) -> Release | Card:
    """What the page shows of an answer."""
    answer = read_answer(data)
    if isinstance(answer, Release):
        return answer
    card: Card = (
        answer.card() if isinstance(answer, Profile) else model_card(answer, data["model"]["question"]["label"])
    )
    return card
