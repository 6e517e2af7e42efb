"""The fold counts each token once, drops what does not belong, and adds up whatever the order and the machine."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.guarantee import DataError, UsageError
from evenhand.recommender import Campaign
from evenhand.recommender.at_home import answer
from evenhand.recommender.at_home.coins import SecureCoins
from evenhand.recommender.at_home.sketches import sketch_for
from evenhand.recommender.at_server import Batch, Counts, Fold, RatedSets
from evenhand.recommender.at_server import reports as reading
from evenhand.recommender.messages import RECORD_SIZE, SKETCHES, Report


def make_campaign(sketch: str = "maxsense", users: int = 60, pool: int | None = None, **more: Any) -> Campaign:
    campaign = Campaign(
        (f"item {n}" for n in range(12)), sketch, epsilon=7, rated=4, users=users, pool=pool, secret=bytes(32), **more
    )
    campaign.open("beacon")
    return campaign


def answers_to(campaign: Campaign) -> list[Report]:
    coins = SecureCoins()
    ratings = [{(n + k) % 12: k % 2 == 0 for k in range(4)} for n in range(12)]
    return [answer(campaign.task, token, ratings[token.serial % 12], coins) for token in campaign.tokens()]


def same(one: Fold, other: Fold) -> bool:
    ours, theirs = one.sums(), other.sums()
    return one.counts.accepted == other.counts.accepted and all(np.array_equal(ours[k], theirs[k]) for k in ours)


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("pool", [None, 7])
def test_sums_are_what_the_definition_says(sketch: str, pool: int | None) -> None:
    """Against plain loops over the queries that the clients derive."""
    campaign = make_campaign(sketch, pool=pool)
    fold, home = campaign.fold(), sketch_for(campaign.task)
    reports = answers_to(campaign)
    fold.add_reports(reports)
    sums = fold.sums()
    sensed, ones = np.zeros(12, int), np.zeros(12, int)
    pairs: dict[tuple[int, int], list[int]] = {}
    product = np.zeros((12, 12), int)
    for report in reports:
        query = home.query(report.serial, [])
        if sketch == "pairwise":
            counts = pairs.setdefault(query, [0, 0])
            counts[0] += 1
            counts[1] += report.answer
        elif sketch == "projection":
            h1, h2 = (np.unpackbits(np.frombuffer(h, np.uint8), count=12, bitorder="little") * 2 - 1.0 for h in query)
            product += (2 * report.answer - 1) * np.outer(h1, h2).astype(int)
        else:
            for number, items in enumerate(query if sketch == "multi-maxsense" else [query]):
                np.add.at(sensed, items, 1)
                np.add.at(ones, items, report.answer >> number & 1)
    if sketch == "pairwise":
        places = {(i, j): j * (j - 1) // 2 + i for j in range(12) for i in range(j)}
        assert {
            pair: [sums["asked"][at], sums["ones"][at]] for pair, at in places.items() if sums["asked"][at]
        } == pairs
    elif sketch == "projection":
        assert np.array_equal(sums["product"], product)
    else:
        assert np.array_equal(sums["sensed"], sensed)
        assert np.array_equal(sums["ones"], ones)


def test_public_rated_sets_ask_about_rated_items_only() -> None:
    campaign = make_campaign("pairwise", public_rated=True)
    rows = [[(n + 3 * k) % 12 for k in range(n % 5)] for n in range(60)]
    fold = campaign.fold(RatedSets(rows))
    coins = SecureCoins()
    liked = [dict.fromkeys(row, True) for row in rows]
    fold.add_reports(answer(campaign.task, token, liked[token.serial], coins) for token in campaign.tokens())
    asked = fold.sums()["asked"]
    assert asked.sum() == sum(len(row) >= 2 for row in rows)
    together = {(i, j) for row in rows for i in row for j in row if i < j}
    assert all((i, j) in together for j in range(12) for i in range(j) if asked[j * (j - 1) // 2 + i])
    with pytest.raises(UsageError, match="Rated sets"):
        campaign.fold()
    for wrong in (rows[:-1], [*rows[:-1], [12]], [*rows[:-1], [-1]]):
        with pytest.raises(UsageError, match="expected one for each of 60 tokens"):
            campaign.fold(RatedSets(wrong))


@pytest.mark.parametrize("sketch", SKETCHES)
@pytest.mark.parametrize("pool", [None, 7])
@given(cut=st.lists(st.integers(0, 2), min_size=60, max_size=60), seed=st.integers(0, 999))
@settings(max_examples=5, deadline=None)
def test_any_split_in_any_order_merges_to_the_whole(sketch: str, pool: int | None, cut: list[int], seed: int) -> None:
    campaign = make_campaign(sketch, pool=pool)
    reports = answers_to(campaign)
    whole = campaign.fold()
    whole.add_reports(reports)
    shuffled = np.random.default_rng(seed).permutation(len(reports))
    merged = campaign.fold()
    for machine in range(3):
        part = campaign.fold()
        part.add_reports(reports[at] for at in shuffled if cut[at] == machine)
        stored = campaign.fold()
        stored.restore(part.to_bytes())
        merged.merge(stored)
    assert same(whole, merged)


def test_folding_again_after_a_crash_changes_nothing(tmp_path: Path) -> None:
    campaign = make_campaign()
    reports = answers_to(campaign)
    (tmp_path / "reports.bin").write_bytes(b"".join(report.to_bytes() for report in reports))
    once = campaign.fold()
    once.add_file(tmp_path / "reports.bin")
    begun = campaign.fold()
    begun.add_reports(reports[:25])
    begun.save(tmp_path / "campaign.fold")
    resumed = campaign.fold()
    resumed.load(tmp_path / "campaign.fold")
    resumed.add_file(tmp_path / "reports.bin")
    assert same(once, resumed)
    assert resumed.counts.duplicate == 25


def test_overlapping_folds_are_refused_rather_than_counted_twice() -> None:
    campaign = make_campaign()
    reports = answers_to(campaign)
    one, other = campaign.fold(), campaign.fold()
    one.add_reports(reports[:30])
    other.add_reports(reports[29:])
    with pytest.raises(DataError, match="share 1 reports"):
        one.merge(other)
    assert one.counts.accepted == 30


def test_one_report_repeated_a_million_times_counts_once(tmp_path: Path) -> None:
    campaign = make_campaign()
    report = answers_to(campaign)[7]
    (tmp_path / "spam.bin").write_bytes(report.to_bytes() * 1_000_000)
    fold = campaign.fold()
    fold.add_file(tmp_path / "spam.bin")
    assert fold.counts == Counts(accepted=1, duplicate=999_999)


def test_whoever_lacks_the_secret_is_forged() -> None:
    campaign = make_campaign()
    reports = answers_to(campaign)
    fold = campaign.fold()
    fold.add_reports(Report(report.task, report.serial, b"guessed!", report.answer) for report in reports)
    stolen = Report(reports[1].task, 0, reports[1].tag, 1)  # another token's tag
    fold.add_reports([stolen])
    assert fold.counts == Counts(forged=61)
    fold.add_reports(reports)  # and forgeries do not keep the true ones out
    assert fold.counts.accepted == 60


def test_what_does_not_belong_is_counted_and_dropped() -> None:
    campaign, other = make_campaign(), make_campaign(epoch="2")
    fold = campaign.fold()
    genuine = answers_to(campaign)[0]
    fold.add_reports(answers_to(other)[:5])
    fold.add_reports([Report(genuine.task, 60, genuine.tag, 0), Report(genuine.task, 0, genuine.tag, 2)])
    assert fold.counts == Counts(foreign=5, malformed=2)


@pytest.mark.parametrize("garbage", [b"x", b"EHR1", b"EHR1" * 30, bytes(RECORD_SIZE), b"\n", b"{}\n"])
@pytest.mark.parametrize("where", [0, 100, RECORD_SIZE * 20, RECORD_SIZE * 60])
def test_garbage_in_a_file_costs_no_more_than_it_covers(
    garbage: bytes, where: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", RECORD_SIZE * 8)
    campaign = make_campaign()
    data = b"".join(report.to_bytes() for report in answers_to(campaign))
    (tmp_path / "reports.bin").write_bytes(data[:where] + garbage + data[where:])
    fold = campaign.fold()
    fold.add_file(tmp_path / "reports.bin")
    lost = 60 - fold.counts.accepted
    assert lost <= 1 + len(garbage) // RECORD_SIZE or garbage.startswith((b"EHR1", b"{"))
    assert fold.counts.malformed + fold.counts.foreign + fold.counts.forged >= 1


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_random_bytes_are_no_reports(data: bytes) -> None:
    campaign = make_campaign()
    fold = campaign.fold()
    fold.add(reading.from_records(data, campaign.task.short_id))
    assert fold.counts.accepted == 0


def test_truncated_file_loses_its_last_record_only(tmp_path: Path) -> None:
    campaign = make_campaign()
    data = b"".join(report.to_bytes() for report in answers_to(campaign))
    (tmp_path / "cut.bin").write_bytes(data[:-5])
    fold = campaign.fold()
    fold.add_file(tmp_path / "cut.bin")
    assert fold.counts == Counts(accepted=59, malformed=1)


def test_json_lines_with_rubbish_between(tmp_path: Path) -> None:
    campaign = make_campaign()
    lines = [report.to_json() for report in answers_to(campaign)[:10]]
    lines[3:3] = ["not json", '{"evenhand": "report"}', ""]
    (tmp_path / "reports.json").write_text("\n".join(lines))
    fold = campaign.fold()
    fold.add_file(tmp_path / "reports.json")
    assert fold.counts == Counts(accepted=10, malformed=2)
    with pytest.raises(DataError, match="can't be read"):
        fold.add_file(tmp_path / "missing.bin")


def test_arrow_batches() -> None:
    campaign = make_campaign()
    reports = answers_to(campaign)
    whole, arrow = campaign.fold(), campaign.fold()
    whole.add_reports(reports)
    tags = np.frombuffer(b"".join(report.tag for report in reports), "<i8")  # signed, as Spark has them
    table = pa.table({
        "serial": pa.array([report.serial for report in reports], pa.int64()),
        "answer": [report.answer for report in reports],
        "tag": tags,
    })  # fmt: skip
    for batch in table.to_batches(max_chunksize=13):
        arrow.add_arrow(batch)
    assert same(whole, arrow)
    odd = Fold(campaign.task)
    odd.add_arrow(pa.table({"serial": [-1, 2**40, 3], "answer": [0, 0, -5]}))
    assert odd.counts == Counts(malformed=3)
    for wrong in ({"serial": [1]}, {"serial": [1.5], "answer": [1]}, {"serial": [1, None], "answer": [1, 1]}):
        with pytest.raises(DataError, match="Arrow batch"):
            odd.add_arrow(pa.table(wrong))


def test_a_task_that_is_not_open_has_nothing_to_fold() -> None:
    with pytest.raises(UsageError, match="not open"):
        Campaign(["a", "b"], rated=1).fold()


def test_damaged_or_foreign_folds_are_refused(tmp_path: Path) -> None:
    campaign = make_campaign()
    stored = campaign.fold().to_bytes()
    for damaged in (b"", b"garbage", stored[: len(stored) // 2]):
        with pytest.raises(DataError):
            campaign.fold().restore(damaged)
    with pytest.raises(DataError, match="another task"):
        make_campaign(epoch="2").fold().restore(stored)
    with pytest.raises(DataError, match="can't be read"):
        campaign.fold().load(tmp_path / "missing.fold")
    with pytest.raises(DataError, match="can't be written"):
        campaign.fold().save(tmp_path / "no such folder" / "x.fold")


def test_memory_does_not_grow_with_the_number_of_reports() -> None:
    def peak(reports: int) -> int:
        campaign = make_campaign(users=1 << 19, pool=1000)
        fold = Fold(campaign.task)
        tracemalloc.start()
        for at in range(0, reports, 1 << 14):
            serials = np.arange(at, at + (1 << 14), dtype=np.uint32)
            fold.add(Batch(serials, serials & np.uint32(1), None))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(1 << 19) < 1.1 * peak(1 << 15)
