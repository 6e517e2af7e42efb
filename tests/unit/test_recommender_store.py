"""The store of reports: one for each token, the first that came, whoever sends what in which order."""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from evenhand.guarantee import DataError, MessageError, UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_server import Fold
from evenhand.recommender.at_server.store import ReportStatus, ReportStore, is_store
from evenhand.recommender.messages import Report

FILMS = ["alien", "brazil", "casablanca", "dune"]
STORED, MALFORMED, FORGED, REDEEMED, CLOSED = ReportStatus


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "reports.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url"))


def make_campaign(users: int = 200, beacon: str = "lottery") -> Campaign:
    campaign = Campaign(FILMS, rated=2, users=users, secret=bytes(32))
    campaign.open(beacon)
    return campaign


def record(campaign: Campaign, serial: int, answer: int) -> bytes:
    return Report(campaign.task.short_id, serial, campaign.token(serial).tag, answer).to_bytes()


def folded(campaign: Campaign, *stores: ReportStore) -> Fold:
    fold = campaign.fold()
    for store in stores:
        for batch in store.batches():
            fold.add(batch)
    return fold


def test_the_first_report_of_a_token_counts_whatever_comes_with_it(location: str) -> None:
    campaign = make_campaign()
    store = ReportStore(location, campaign.task)
    yes, no, other = record(campaign, 3, 1), record(campaign, 3, 0), record(campaign, 150, 0)
    forged = yes[:16] + bytes(8) + yes[24:]
    elsewhere = yes[:4] + bytes(8) + yes[12:]
    unknown = Report(campaign.task.short_id, 200, bytes(8), 0).to_bytes()
    bits = yes[:24] + b"\x02\0\0\0"
    sent = [forged, yes, b"", yes[:-1], no, elsewhere, other, yes + b"x", b"XXXX" + yes[4:], unknown, bits, yes]
    expected = [FORGED, STORED, MALFORMED, MALFORMED, REDEEMED, MALFORMED, STORED, *[MALFORMED] * 4, STORED]
    assert store.take(sent, campaign.issuer) == expected
    again = ReportStore(location, campaign.task)
    assert again.take([no, yes], campaign.issuer) == [REDEEMED, STORED]
    late = record(campaign, 7, 1)
    assert again.take([late, yes, no], campaign.issuer, closed=True) == [CLOSED, STORED, REDEEMED]
    assert again.count() == 2
    fold, direct = folded(campaign, again), campaign.fold()
    direct.add_reports(map(Report.from_bytes, [yes, other]))
    assert fold.to_bytes() == direct.to_bytes()


def test_stores_of_several_machines_are_folded_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.recommender.at_server.store._AT_ONCE", 7)  # many short readings
    campaign, draw = make_campaign(), random.Random(1)
    reports = [record(campaign, serial, draw.getrandbits(1)) for serial in range(200)]
    stores = [ReportStore(tmp_path / f"{name}.db", campaign.task) for name in "ab"]
    draw.shuffle(reports)
    stores[0].take(reports[:120], campaign.issuer)
    stores[1].take(reports[100:], campaign.issuer)  # twenty people tried both
    merged, direct = folded(campaign, *stores), campaign.fold()
    direct.add_reports(map(Report.from_bytes, reports))
    assert (merged.counts.accepted, merged.counts.duplicate, merged.counts.forged) == (200, 20, 0)
    ours, theirs = merged.sums(), direct.sums()
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_nothing_but_serial_tag_and_answer_is_kept(tmp_path: Path) -> None:
    """Once the file is packed, which forgets where in its pages rows were put, not even the order of arrival."""
    campaign, contents = make_campaign(), []
    for name, order in (("up", range(40)), ("down", range(39, -1, -1))):
        store = ReportStore(tmp_path / name, campaign.task)
        for serial in order:
            assert store.take([record(campaign, serial, serial % 2)], campaign.issuer) == [STORED]
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            connection.execute("VACUUM")
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_a_task_is_opened_once(location: str, tmp_path: Path) -> None:
    waiting = Campaign(FILMS, rated=2, users=200, secret=bytes(32)).task
    store = ReportStore(location, waiting)
    store.open(make_campaign().task)
    store.open(make_campaign().task)
    for other in (make_campaign(beacon="another"), make_campaign(beacon="a third")):
        with pytest.raises(UsageError, match="another beacon"):
            ReportStore(location, other.task)
    with pytest.raises(UsageError, match="another one"):
        store.open(make_campaign(users=9).task)


def test_only_a_store_of_the_task_is_read(location: str, tmp_path: Path) -> None:
    ReportStore(location, make_campaign().task)
    assert is_store(location)
    with pytest.raises(DataError, match="no reports about this task"):
        ReportStore(location, make_campaign(users=9).task, create=False)
    (tmp_path / "reports.bin").write_bytes(record(make_campaign(), 1, 1))
    assert not is_store(str(tmp_path / "reports.bin"))


@pytest.mark.parametrize("place", ["", "reports.bin", "missing/reports.db", "mysql://host/base", "other.db"])
def test_a_place_that_can_not_be_used_is_said_to_be_one_of_reports(tmp_path: Path, place: str) -> None:
    (tmp_path / "reports.bin").write_bytes(b"x" * 28)
    (tmp_path / "other.db").write_bytes(b"x" * 4096)
    with pytest.raises((DataError, UsageError), match=r"^store of reports .*(expected|give|create)") as error:
        ReportStore(place if "://" in place else tmp_path / place, make_campaign().task)
    assert not re.search("ledger|spent", str(error.value))


def reference(campaign: Campaign, kept: dict[int, bytes], body: bytes) -> ReportStatus:
    """What becomes of a report, one at a time."""
    task = campaign.task
    try:
        report = Report.from_bytes(body)
    except MessageError:
        return MALFORMED
    if report.task != task.short_id or report.serial >= task.tokens or report.answer >> task.questions:
        return MALFORMED
    if campaign.token(report.serial).tag != report.tag:
        return FORGED
    return STORED if kept.setdefault(report.serial, body) == body else REDEEMED


@pytest.mark.parametrize(("sketch", "questions"), [("maxsense", 1), ("multi-maxsense", 3), ("multi-maxsense", 32)])
def test_batches_are_judged_as_single_reports_are(tmp_path: Path, sketch: str, questions: int) -> None:
    """Random reports with random damage, in random batches."""
    draw = random.Random(questions)
    films = [f"film {number}" for number in range(64)]
    campaign = Campaign(films, sketch, 8, 2, users=40, theta="0.03", questions=questions, secret=bytes(32))
    campaign.open("lottery")
    store = ReportStore(tmp_path / "reports.db", campaign.task)
    kept: dict[int, bytes] = {}
    for _ in range(12):
        batch = []
        for _ in range(draw.randrange(1, 60)):
            body = bytearray(record(campaign, draw.randrange(40), draw.getrandbits(questions)))
            if draw.random() < 0.4:
                place = draw.choice([0, 3, 4, 11, 12, 13, 15, 16, 23, 24, 25, 27])
                body[place] = draw.choice([0, 1, 2, 8, 39, 40, 127, 128, 255])
            if draw.random() < 0.1:
                body = body[draw.randrange(28) :] + body[: draw.randrange(28)]
            batch.append(bytes(body))
        expected = [reference(campaign, kept, body) for body in batch]
        assert store.take(batch, campaign.issuer) == expected
    assert folded(campaign, store).counts.accepted == len(kept) > 20
