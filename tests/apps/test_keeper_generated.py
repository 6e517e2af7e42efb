"""Questions that the server's own description allows, made at random: whatever they are, the server answers them."""

from __future__ import annotations

import http.client
import json
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from evenhand.learning import Ball, BoundedERM, WeightedERM
from evenhand.service import questions
from evenhand.service.accounts import Role
from evenhand.service.config import accounts_of
from evenhand.service.pricing import drafts
from evenhand.service.schemas import question_schemas
from generated_questions import Generator
from keeper_process import Server

FILE = """
deadline = 60
model_deadline = 600
per_minute = 1000000
[populations.people]
ledger = "budget.db"
epsilon = 1000
delta = 0.5
[tables.visits]
source = "visits.parquet"
user = "u"
population = "people"
[tables.visits.columns.v]
bounds = [0, 6]
[analysts.ann]
epsilon = 1000
delta = 0.5
"""


QUESTION = {"$ref": "#/components/schemas/Question"}


def _visits() -> pd.DataFrame:
    noise = np.random.default_rng(1)
    columns = {"u": noise.integers(0, 50, 500), "v": noise.normal(3, 1, 500), "y": noise.integers(0, 2, 500)}
    frame = pd.DataFrame({**columns, "g": noise.choice(list("abc"), 500)})
    frame["d"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(columns["u"], unit="h")
    return frame


class Asked:
    """A server, its description, and what it said to each question."""

    def __init__(self, folder: Path) -> None:
        frame = _visits()
        frame.to_parquet(folder / "visits.parquet")
        (folder / "keeper.toml").write_text(FILE)
        self.server = Server(folder)
        self.token = accounts_of(folder / "keeper.toml")[0].issue("ann", Role.ANALYST)
        self.statuses: Counter[int] = Counter()
        self.description = self.call("GET", "/openapi.json")[1]
        schemas = self.description["components"]["schemas"]
        self.questions = Generator(schemas, list(frame.columns)).of(QUESTION)

    def call(self, method: str, path: str, data: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", int(self.server.url.rpartition(":")[2]), timeout=120)
        headers = {"Authorization": f"Bearer {self.token}"}
        connection.request(method, path, None if data is None else json.dumps(data), headers)
        response = connection.getresponse()
        told = json.loads(response.read())
        connection.close()
        return response.status, told


def test_some_questions_are_drafted_or_refused(tmp_path: Path) -> None:
    """Whatever the description allows, a draft is made or the question is refused: nothing else is raised."""
    table = eh.read(_visits(), user="u", columns={"v": {"bounds": (0, 6)}})
    asked, drafted = drafts(table, None), Counter[str]()

    @settings(max_examples=60)
    @given(Generator(question_schemas(), table.columns).of(QUESTION))
    def search(question: dict[str, Any]) -> None:
        try:
            questions.ask(asked, question)
        except eh.EvenhandError:
            drafted["refused"] += 1
        else:
            drafted["drafted"] += 1

    search()
    assert drafted["drafted"], drafted


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("count", (), {"by": "g", "keys": ["a", "b"], "epsilon": 0.1}),
        ("mean", ("v",), {"bounds": (0, 6), "epsilon": "0.5", "bounding": eh.TotalCap(5)}),
        ("mean", (["v", "y"],), {"bounds": [(0, 6), (0, 1)], "epsilon": 1, "bounding": eh.Auto(share=0.2)}),
        ("quantiles", ("v", [0.5, 0.9]), {"epsilon": Decimal("0.5"), "delta": 1e-6}),
        ("ratio", (eh.sum("v", (0, 6)), eh.count()), {"epsilon": 1}),
        ("aggregate", (), {"n": eh.count(), "m": eh.mean("v"), "weights": {"n": 2.0}, "epsilon": 1}),
        ("count", (), {"by": ["g", "y"], "keys": {"g": ["a"], "y": [0, 1]}, "epsilon": 1}),
        ("sum", ("v",), {"epsilon": 1, "bounding": eh.Auto(profile=eh.Profile.pareto(1.5, users=10, rows=100))}),
        ("sql", ("SELECT COUNT(*) FROM table",), {"epsilon": 1}),
        ("profile", (), {"epsilon": 0.1}),
        ("fit", (BoundedERM(epsilon=1, features=["v"], feature_norm=1), "y"), {}),
        ("fit", (WeightedERM(features=["v"], feature_bounds=(0, 6), constraint=Ball(2.0)), "y"), {}),
    ],
)
def test_what_a_client_sends_is_as_described(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """And a parameter that a question does not have is not."""
    schema = {**QUESTION, "components": {"schemas": question_schemas()}}
    written = json.loads(json.dumps(questions.write(name, arguments, options)))
    jsonschema.validate(written, schema)
    for wrong in ({**written, "nothing": 1}, {**written, "ask": "nothing"}, {**written, "epsilon": None}):
        if name == "aggregate" and "nothing" in wrong:
            wrong["nothing"] = {"statistic": "nothing"}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


@pytest.mark.thorough
@pytest.mark.xdist_group("keeper")
def test_many_questions_are_answered(tmp_path: Path) -> None:
    asked = Asked(tmp_path)

    @settings(max_examples=2000)
    @given(st.data())
    def search(data: st.DataObject) -> None:
        question = data.draw(asked.questions)
        pays = data.draw(st.integers(0, 9)) == 0 and question["ask"] != "fit"
        body = {"question": question, **({"key": str(uuid.uuid4())} if pays else {})}
        status, told = asked.call("POST", "/v1/questions" if pays else "/v1/preview", body)
        asked.statuses[status] += 1
        assert status in (200, 400, 402, 422, 429), (status, told, question)  # 429: more waits already than fits

    try:
        search()
        assert asked.statuses[200] >= 100, asked.statuses  # they reach what they are about
    finally:
        asked.server.stop()
    assert '"defect"' not in (tmp_path / "log.txt").read_text()
