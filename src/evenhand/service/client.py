"""``eh.connect``: the questions of a session, asked of a keeper's server."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from evenhand.guarantee import Amount, BudgetExceeded, DataError, EvenhandError, UsageError, suggest
from evenhand.ledger.desk import Busy, NeedsApproval
from evenhand.profiles import Profile
from evenhand.release import Release, written
from evenhand.service import questions
from evenhand.service.stored import read_answer

_ERRORS: dict[str, type[EvenhandError]] = {
    "usage": UsageError,
    "not allowed": UsageError,
    "budget": BudgetExceeded,
    "needs approval": NeedsApproval,
}
A = TypeVar("A")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_TRIES = 5
_LATER = (429, 503)  # asked again with the same key, nothing is paid twice
_TURN = 30  # seconds: who is told to come back later than that waits for a person
_PATIENCE = 600.0  # seconds for an answer that has no deadline


def connect(url: str, *, token: str, table: str | None = None) -> Remote:
    """A session whose table stays with its keeper.

    Args:
        url: of the keeper's server; https, except on this machine.
        token: from the keeper.
        table: which table; may be left out if there is one.

    Example:
        >>> remote = eh.connect("https://keeper.example", token="...")
        >>> remote.mean("rating", bounds=(0.5, 5), epsilon=0.2)
    """
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise UsageError(
            f"connect({url!r}): expected the address of a keeper's server, such as https://keeper.example."
        )
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise UsageError(f"connect({url!r}): the token would travel unencrypted; expected https.")
    return Remote(url.rstrip("/"), token, table)


if TYPE_CHECKING:
    from evenhand.session import Questions
    from evenhand.statistics import Draft

    class _Asking(Questions[A]):
        """For type checkers: the methods of a session."""

        def _answer(self, draft: Draft) -> A: ...
else:

    class _Asking(Generic[A]):
        """Methods by the names of questions; ``_send`` says what becomes of one."""

        def __getattr__(self, name: str) -> Callable[..., A]:
            if name not in questions.names():
                raise AttributeError(f"there is no question {name!r}{suggest(name, questions.names())}")
            return lambda *arguments, **options: self._send(questions.write(name, arguments, options))

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *questions.names()})


class Remote(_Asking[Release]):
    """The questions of a `Session`, answered by a keeper's server. Made by :func:`connect`.

    Every answer is a `Release` with intervals at 50, 80, 90, 95 and 99%. A lost connection is tried again with the same key, so
    that nothing is paid twice.
    """

    def __init__(self, url: str, token: str, table: str | None) -> None:
        self.url, self._token, self._table = url, token, table

    @property
    def preview(self) -> RemotePreviews:
        """The same questions without spending."""
        return RemotePreviews(self)

    def tables(self) -> list[dict[str, Any]]:
        """The tables that may be asked about, with their columns."""
        found: list[dict[str, Any]] = self._call("GET", "/v1/tables")["tables"]
        return found

    def budget(self) -> dict[str, Any]:
        """What is left: yours, and the population's."""
        return self._call("GET", "/v1/budget")

    def history(self) -> list[dict[str, Any]]:
        """What was asked with this name."""
        page = self._call("GET", "/v1/questions")
        found: list[dict[str, Any]] = page["questions"]
        while "before" in page:
            page = self._call("GET", f"/v1/questions?before={quote(page['before'], safe='')}")
            found = page["questions"] + found
        return found

    def answer(self, id: str) -> Any:  # noqa: ANN401 - what the question was answered with
        """The answer to an earlier question, a `Release`, a `Profile` or a fitted model; never drawn again."""
        return read_answer(self._answered(self._call("GET", f"/v1/questions/{quote(id, safe='')}")))

    def profile(self, *, epsilon: Amount | None = None) -> Profile:
        """As `Session.profile`: for ``eh.plan``, and for bounds that are chosen later in this name; kept until the server stops."""
        asked = questions.write("profile", (), {} if epsilon is None else {"epsilon": epsilon})
        bought: Profile = read_answer(self._answered(self._pay(asked)))
        return bought

    def fit(self, estimator: A, label: str) -> A:
        """As ``estimator.fit(table, label)``, on the keeper's table: a fitted copy that holds released numbers only.

        For `BoundedERM`, `WeightedERM` and `PrivateSearchCV` among settings of one of them, with a named loss: no code is sent. It can take minutes.

        Example:
            >>> model = remote.fit(WeightedERM(epsilon=1, delta=1e-6, features=["age"], feature_bounds=(0, 120)), "smokes")
            >>> model.predict(frame)
        """
        fitted: A = read_answer(self._answered(self._pay(questions.write("fit", (estimator, label), {}))))
        return fitted

    def _send(self, question: dict[str, Any]) -> Release:
        return self._released(self._pay(question))

    def _pay(self, question: dict[str, Any]) -> dict[str, Any]:
        asked = {"table": self._table, "question": question, "key": str(uuid.uuid4())}
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._call("POST", "/v1/questions", asked)
            except Busy as busy:
                if busy.retry_after > _TURN or time.monotonic() > until:
                    raise
                time.sleep(busy.retry_after)

    def _released(self, asked: dict[str, Any]) -> Release:
        return written.read(self._answered(asked))

    def _answered(self, asked: dict[str, Any]) -> dict[str, Any]:
        until = time.monotonic() + _PATIENCE
        while not asked.get("answer"):
            if asked["standing"] in ("waiting", "denied"):
                raise NeedsApproval(f"question {asked['id']} is {asked['standing']}.")
            ready = asked.get("ready")
            if not ready and time.monotonic() > until:
                raise DataError(
                    f"question {asked['id']} was paid for and has no answer yet; fetch it later with .answer(id)."
                )
            pause = (datetime.fromisoformat(ready) - datetime.now(UTC)).total_seconds() if ready else 0.5
            time.sleep(min(max(pause, 0.05), 60))
            asked = self._call("GET", f"/v1/questions/{asked['id']}")
        answer: dict[str, Any] = asked["answer"]
        return answer

    def _call(self, method: str, path: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if data is None else json.dumps(data, allow_nan=False).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request(self.url + path, content, headers, method=method)
        for left in reversed(range(_TRIES)):
            try:
                with urlopen(request, timeout=60) as response:
                    return dict(json.load(response))
            except HTTPError as error:
                refusal, pause = _refusal(error), _whole(error.headers.get("Retry-After"))
                if error.code not in _LATER or isinstance(refusal, Busy) or not left or pause > _TURN:
                    raise refusal from None
                time.sleep(pause)
            except (URLError, HTTPException, OSError, ValueError) as error:  # also an answer that broke off
                if not left:
                    raise DataError(
                        f"{self.url} can't be reached ({type(error).__name__}); is the server running?"
                    ) from None
                time.sleep(0.2)
        raise AssertionError

    def __repr__(self) -> str:
        return f"Remote({self.url!r}{f', table={self._table!r}' if self._table else ''})"


class RemotePreviews(_Asking["RemotePreview"]):
    """Prices and forecasts; nothing is spent."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def profile(self, *, epsilon: Amount | None = None) -> RemotePreview:
        """The price of a profile."""
        return self._send(questions.write("profile", (), {} if epsilon is None else {"epsilon": epsilon}))

    def fit(self, estimator: object, label: str) -> RemotePreview:
        """The price of a model."""
        return self._send(questions.write("fit", (estimator, label), {}))

    def _send(self, question: dict[str, Any]) -> RemotePreview:
        asked = {"table": self._remote._table, "question": question}
        return RemotePreview(self._remote._call("POST", "/v1/preview", asked))


class RemotePreview:
    """What a question would cost, as the server says."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {name: value for name, value in self._data.items() if name != "text"}

    @property
    def affordable(self) -> bool:
        """Whether the budget allows it now."""
        return bool(self._data["affordable"])

    def __str__(self) -> str:
        return str(self._data["text"])

    __repr__ = __str__


def _refusal(error: HTTPError) -> EvenhandError:
    try:
        told = json.load(error)
        kind, message = str(told["error"]), str(told["message"])
    except (ValueError, KeyError, TypeError, HTTPException, OSError):
        kind, message = "", f"the server answered with status {error.code}; is this a keeper's server?"
    if kind == "busy":
        return Busy(message, _whole(error.headers.get("Retry-After")))
    return _ERRORS.get(kind, DataError)(message)


def _whole(given: str | None) -> int:
    return int(given) if given and given.isascii() and given.isdecimal() else 5
