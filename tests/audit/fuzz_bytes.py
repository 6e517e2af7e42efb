"""Coverage-guided fuzzing (atheris) of everything that reads bytes from elsewhere: wire messages, profiles, amounts and bounds.

``pip install atheris``, then ``python tests/audit/fuzz_bytes.py -max_total_time=120``. Any exception but an `EvenhandError` stops it.
"""

from __future__ import annotations

import contextlib
import json
import sys

import atheris

with atheris.instrument_imports(include=["evenhand"]):
    from evenhand.guarantee import EvenhandError, parse_delta, parse_epsilon
    from evenhand.profiles import Profile
    from evenhand.recommender.messages import PublishedModel, Query, Report, Task
    from evenhand.statistics.quantiles import parse_quantiles
    from evenhand.tables import parse_bounds

MESSAGES = ((Task, b"EHT1"), (Query, b"EHQ1"), (Report, b"EHR1"), (PublishedModel, b"EHM1"))


def wire(data: bytes) -> None:
    """A message that is read is written as the same bytes again."""
    for message, magic in MESSAGES:
        for given in (data, magic + data):
            with contextlib.suppress(EvenhandError):
                read = message.from_bytes(given)
                assert message.from_bytes(read.to_bytes()) == read


def text(data: bytes) -> None:
    """Numbers as people type them, and profiles as JSON."""
    written = data.decode("utf-8", "replace")
    for parse in (parse_epsilon, parse_delta, parse_quantiles, parse_bounds):
        with contextlib.suppress(EvenhandError):
            parse(written)  # type: ignore[arg-type]
    with contextlib.suppress(EvenhandError):
        parse_bounds(written.split(":"))  # type: ignore[arg-type]
    with contextlib.suppress(ValueError, RecursionError):
        loaded = json.loads(written)
        if isinstance(loaded, dict):
            with contextlib.suppress(EvenhandError):
                Profile.from_dict(loaded)


def one_input(data: bytes) -> None:
    """The first byte decides who reads the rest."""
    if data:
        (wire if data[0] % 2 else text)(data[1:])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
