"""A password in a ledger's URL goes to the server and nowhere else."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sklearn.base import clone

import evenhand as eh
from evenhand.guarantee import EvenhandError
from evenhand.learning import BoundedERM, HypothesisSelection, LabelPrivateRegression, WeightedERM
from evenhand.ledger import Ledger
from evenhand.ledger.store import Store

SECRET = "hunter2-4f1b"
URLS = {
    "before the host": "postgresql://analyst:{}@127.0.0.1:9/budgets",
    "escaped": "postgresql://analyst:%68{}@127.0.0.1:9/budgets",
    "as an option": "postgresql://analyst@127.0.0.1:9/budgets?password={}&sslmode=prefer",
    "of the key": "postgresql://analyst@127.0.0.1:9/budgets?sslpassword={}&sslmode=prefer",
    "with the driver": "postgresql+psycopg://analyst:{}@127.0.0.1:9/budgets",
}


def told(thing: Any) -> bytes:
    """All that is easily had from a thing: texts, the pickle, and its attributes' texts."""
    texts = [repr(thing), str(thing), f"{thing}", repr(vars(thing))]
    for attribute in vars(thing).values():
        texts += [repr(attribute), str(attribute)]
    return "\n".join(texts).encode() + pickle.dumps(thing)


def opened(url: str) -> Ledger:
    """A ledger that has not connected yet, as one that was unpickled."""
    ledger = Ledger.__new__(Ledger)
    ledger._store, ledger._seen = Store(url), None
    return ledger


@pytest.mark.parametrize("place", URLS)
def test_nothing_made_from_a_ledger_holds_its_password(place: str) -> None:
    ledger = opened(URLS[place].format(SECRET))
    assert SECRET.encode() not in told(ledger)
    assert SECRET.encode() not in told(ledger._store)
    assert SECRET not in ledger.location
    for model in (BoundedERM, WeightedERM, LabelPrivateRegression, HypothesisSelection):
        fresh = model(ledger=ledger)
        assert SECRET.encode() not in told(fresh)
        assert SECRET not in fresh._repr_html_()


@pytest.mark.parametrize("place", URLS)
def test_no_error_quotes_the_password(place: str) -> None:
    ledger = opened(URLS[place].format(SECRET))
    for work in (lambda: Ledger(URLS[place].format(SECRET), epsilon=1), lambda: ledger.remaining, ledger.verify):
        with pytest.raises(EvenhandError) as caught:
            work()
        shown = "".join(traceback.format_exception(caught.value)).replace(URLS[place], "")
        assert SECRET not in shown
        assert SECRET not in repr(caught.value)
        assert "127.0.0.1:9/budgets" in str(caught.value)


@pytest.mark.parametrize("url", ["mysql://u:{}@h/d", "postgresql://u:{}@h:port/d", "postgresql://u:{}@[::1/d"])
def test_a_url_that_can_not_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(EvenhandError) as caught:
        Ledger(url.format(SECRET), epsilon=1)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_copies_and_clones_keep_the_password_and_are_the_same_ledger() -> None:
    ledger = opened(URLS["before the host"].format(SECRET))
    assert copy.copy(ledger) is copy.deepcopy(ledger) is ledger
    assert clone(BoundedERM(ledger=ledger)).ledger is ledger


def test_an_unpickled_ledger_works_where_the_server_needs_no_password(postgres_url: str) -> None:
    with_password = postgres_url.replace("postgres:@", f"postgres:{SECRET}@")
    ledger = Ledger(with_password, epsilon=1)
    rows = eh.read(pa.table({"u": [1, 2, 3]}), user="u")
    session = eh.Session(rows, ledger)
    release = session.users(epsilon="0.1")
    assert SECRET not in json.dumps([event.to_dict() for event in ledger.events])
    assert SECRET not in repr(session) + str(release) + release.to_html() + json.dumps(release.to_dict())
    assert SECRET.encode() not in pickle.dumps(release)
    again = pickle.loads(pickle.dumps(ledger))
    assert len(again.events) == 1
    assert again._store._secrets() == {}


def test_a_model_is_unpickled_where_its_ledger_is_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "b.db", epsilon=1)
    pickled = pickle.dumps(BoundedERM(ledger=ledger))
    (tmp_path / "b.db").unlink()
    model = pickle.loads(pickled)
    with pytest.raises(EvenhandError, match="can't be opened"):
        _ = model.ledger.remaining
