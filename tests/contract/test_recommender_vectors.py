"""Client and server derive the same bytes, and both the ones in the published test vectors."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.recommender import Campaign
from evenhand.recommender.at_home import check_query
from evenhand.recommender.at_home.coins import flip_threshold
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.at_home.stream import Stream, block
from evenhand.recommender.at_server import Issuer, RatedSets
from evenhand.recommender.at_server.sketches import sketch_for as server_sketch_for
from evenhand.recommender.at_server.stream import QUERY, keystream
from evenhand.recommender.messages import SKETCHES, MessageError, Report, Task

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, Any] = json.loads((ROOT / "docs/recommender/test-vectors.json").read_text())


def task_of(vector: dict[str, Any]) -> Task:
    fields = dict(vector["task"])
    if isinstance(fields["items"], str):
        fields["items"] = [f"item {number}" for number in range(4200)]
    return Task.from_json(json.dumps(fields))


tasks = pytest.mark.parametrize("vector", VECTORS["tasks"], ids=lambda vector: vector["task"]["id"][:6])


def test_chacha20_gives_the_block_of_the_rfc() -> None:
    vector = VECTORS["chacha20"]
    nonce = bytes.fromhex(vector["nonce"])
    first, second, third = (int.from_bytes(nonce[at : at + 4], "little") for at in (0, 4, 8))
    assert block(bytes.fromhex(vector["key"]), vector["counter"], (first, second, third)).hex() == vector["block"]


def test_streams_of_both_sides_agree_beyond_one_block() -> None:
    key, numbers = bytes(range(32)), np.array([0, 1, 2**16, 2**31 - 2])
    for row, number in zip(keystream(key, QUERY, numbers, 200), numbers.tolist(), strict=True):
        assert row.tobytes() == Stream(key, number).take(200)


def test_flip_thresholds() -> None:
    for epsilon, threshold in VECTORS["flip_thresholds"].items():
        assert flip_threshold(Decimal(epsilon)) == int(threshold)


@tasks
def test_task(vector: dict[str, Any]) -> None:
    task = task_of(vector)
    assert task.query_key.hex() == vector["query_key"]
    assert hashlib.sha256(task.to_bytes()).hexdigest() == vector["binary_sha256"]
    assert Task.from_bytes(task.to_bytes()) == task
    assert str(task.question_epsilon) == vector["question_epsilon"]
    assert vector["set_size"] in (None, task.set_size)


@tasks
def test_queries_of_both_sides(vector: dict[str, Any]) -> None:
    task = task_of(vector)
    public = VECTORS["public_rated_items"]
    rated = RatedSets([public] * task.tokens) if task.public_rated else None
    home, server = sketch_for(task), server_sketch_for(task, rated)
    for query in vector["queries"]:
        serial = query["serial"]
        assert Stream(task.query_key, task.query_number(serial)).take(16).hex() == query["stream"]
        derived = home.query(serial, public)
        shown = [part.hex() if isinstance(part, bytes) else part for part in derived]
        assert shown == query["query"]
        assert hashlib.sha256(home.encode(derived)).hexdigest() == query["digest"]
        assert server.encode(task.query_number(serial)) == home.encode(derived)


@tasks
def test_tokens_and_reports(vector: dict[str, Any]) -> None:
    task = task_of(vector)
    issuer = Issuer(task, bytes.fromhex(vector["secret"]))
    assert [str(issuer.token(serial)) for serial in (0, 9, 999)] == vector["tokens"]
    report = Report(task.short_id, vector["report"]["serial"], issuer.token(17).tag, vector["report"]["answer"])
    assert report.to_bytes().hex() == vector["report"]["bytes"]


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("items", [2, 3, 17, 64, 300])
def test_the_server_states_the_query_that_the_client_derives(sketch: str, items: int) -> None:
    names = [f"item {number}" for number in range(items)]
    campaign = Campaign(names, sketch, epsilon=8, rated=min(items, 9), users=50, pool=20)
    campaign.open("beacon")
    for serial in (0, 19, 20, 49):
        check_query(campaign.task, campaign.query(serial))


def imports_of(folder: Path) -> set[str]:
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module)
    return found


def test_the_two_sides_do_not_know_each_other() -> None:
    recommender = ROOT / "src/evenhand/recommender"
    home, server = imports_of(recommender / "at_home"), imports_of(recommender / "at_server")
    assert not [name for name in home if "at_server" in name]
    assert not [name for name in server if "at_home" in name]
    ours = ("evenhand.recommender.at_home", "evenhand.recommender.messages", "evenhand.guarantee")
    outside = [name for name in home if not name.startswith(ours)]
    assert {name.partition(".")[0] for name in outside} <= {*sys.stdlib_module_names, "platformdirs"}


def test_the_client_needs_no_heavy_library(tmp_path: Path) -> None:
    """With NumPy out of reach, and the rest of the package out of the way, a client still answers."""
    script = """
import sys, types
for name in ("numpy", "scipy", "duckdb", "ibis", "sqlalchemy", "opendp", "platformdirs"):
    sys.modules[name] = None
package = types.ModuleType("evenhand"); package.__path__ = [sys.argv[1]]
sys.modules["evenhand"] = package
from evenhand.recommender.at_home import Diary
from evenhand.recommender.messages import Task, Token
task = Task.from_json(sys.stdin.read())
diary = Diary(sys.argv[2], ceiling=2)
print(diary.answer(task, Token(task.short_id, 3, bytes(8)), {0: True}).serial)
"""
    task = task_of(VECTORS["tasks"][2])
    command = [sys.executable, "-c", script, str(ROOT / "src/evenhand"), str(tmp_path / "diary.db")]
    run = subprocess.run(command, input=task.to_json(), capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "3"


def test_ids_of_tasks_that_differ_in_the_last_digit() -> None:
    vector = VECTORS["task_ids_by_theta"]
    task = Task.from_json(json.dumps(vector["task"]))
    ids = {theta: dataclasses.replace(task, theta=Decimal(theta)).id.hex() for theta in vector["ids"]}
    assert ids == vector["ids"]
    assert len(set(ids.values())) == len(ids) == 3


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["why"])
def test_messages_that_every_client_refuses(vector: dict[str, str]) -> None:
    with pytest.raises(MessageError):
        {"task": Task.from_json, "report": Report.from_json}[vector["kind"]](vector["json"])
