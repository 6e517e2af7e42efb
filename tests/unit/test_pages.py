"""Pages and pictures: one style, no script, no network, everything escaped; bars of a release show what it holds."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.learning import BoundedERM, LabelPrivateRegression
from evenhand.pages.card import card_page
from evenhand.pages.charts import save
from evenhand.profiles import Profile

SCRIPT = "<script>alert('1')</script>"
PARTS = eh.SmoothWeights(10)
CARD = {
    "model": "BoundedERM",
    "label": SCRIPT,
    "guarantee": {"words": "a < b & c"},
    "bounding": SCRIPT,
    "confidence": 0.95,
    "range_covers": SCRIPT,
    "accounting": "nothing is recorded",
    "coefficients": [
        {"name": SCRIPT, "value": 1.23456789, "low": -1e6, "high": 2.0},
        {"name": "intercept", "value": 0.5, "low": None, "high": None},
    ],
    "forecast": {"noise_scale": 0.25, "bias": None},
}


@pytest.fixture
def session(tmp_path: Path) -> eh.Session:
    rows = pd.DataFrame({"user": range(60), SCRIPT: 2.0, "histogram": 1.0, "g": [SCRIPT, "b", "c"] * 20})
    return eh.Session(eh.read(rows, user="user"), eh.Ledger(tmp_path / "b.db", epsilon=100))


def by_group(session: eh.Session, column: str = SCRIPT) -> eh.Release:
    return session.mean(column, bounds=(0, 4), by="g", keys=[SCRIPT, "b"], epsilon=1, bounding=PARTS)


def cells(session: eh.Session) -> eh.Release:
    return session.histogram(SCRIPT, [0, 1, 4], by="g", keys=[SCRIPT, "b"], epsilon=1, bounding=PARTS)


ASKED: dict[str, Callable[[eh.Session], eh.Release]] = {
    "number": lambda session: session.mean(SCRIPT, bounds=(0, 4), epsilon=1, bounding=PARTS),
    "list": lambda session: session.mean([SCRIPT, "histogram"], bounds=(0, 4), epsilon=1, bounding=PARTS),
    "frame": by_group,
    "histogram": cells,
}


class Tags(HTMLParser):
    """Which tags stand open, and all text outside of tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check(html: str) -> Tags:
    """Closed tags, no script, nothing loaded, the common style."""
    tags = Tags(html)
    assert tags.open == []
    assert "script" not in tags.seen
    assert not re.search(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:http|//)", html)
    assert re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1] == STYLE  # type: ignore[index]
    return tags


STYLE = re.search(r"<style>(.*?)</style>", card_page(CARD), re.DOTALL)[1]  # type: ignore[index]


def test_the_style_touches_nothing_else_in_a_notebook() -> None:
    selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", STYLE) for part in rule.split(",")]
    assert len(selectors) > 10
    assert all(re.match(r"(body)?\.evenhand\b", selector) for selector in selectors)


@pytest.mark.parametrize("kind", ASKED)
def test_a_release_is_a_fragment_and_a_page(session: eh.Session, kind: str, tmp_path: Path) -> None:
    release = ASKED[kind](session)
    fragment, page = release._repr_html_(), release.to_html(tmp_path / "release.html")
    assert (tmp_path / "release.html").read_text("utf-8") == page == release.to_html()
    assert check(fragment).seen[0] == "section"
    assert "viewport" in page
    for tags in (check(fragment), check(page)):
        assert release.headline() in tags.text
        assert SCRIPT in tags.text
        assert release.guarantee.words() in tags.text
        assert tags.seen.count("table") == 1 + release.grouped
        if release.grouped:
            assert all(str(cell) in tags.text for row in release.table().itertuples(index=False) for cell in row)


@pytest.mark.parametrize("kind", ASKED)
def test_a_saved_release_says_the_same(session: eh.Session, kind: str, tmp_path: Path) -> None:
    release = ASKED[kind](session)
    release.save(tmp_path / "release.json")
    loaded = eh.load(tmp_path / "release.json")
    assert (str(loaded), loaded.to_html(), loaded.why) == (str(release), release.to_html(), release.why)
    assert repr(loaded.interval(0.8)) == repr(release.interval(0.8))


def test_what_is_no_saved_release_is_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"format": 1}'):
        (tmp_path / "other.json").write_text(text, encoding="utf-8")
        with pytest.raises(eh.EvenhandError, match=r"release\.save|has format"):
            eh.load(tmp_path / "other.json")


def test_objects_show_themselves_in_a_notebook_as_small_tables(session: eh.Session) -> None:
    profile = session.profile(epsilon=1)
    plans = [
        eh.plan("count", profile, epsilon=1),
        eh.plan("count", profile, epsilon=1, groups=30),
        eh.plan("erm", profile, epsilon=1, delta=1e-6, dimension=5),
    ]
    objects: list[Any] = [session.table, session.ledger, session, session.preview.count(epsilon=1), profile, *plans]
    for shown in objects:
        html = shown._repr_html_()
        assert {"section", "table"} <= set(check(html).seen), shown
        assert "array(" not in html + repr(shown)
        assert len(html) < 10_000
    assert SCRIPT in check(session.table._repr_html_()).text
    assert "profile" in session.ledger._repr_html_()


def test_a_card_is_a_page() -> None:
    tags = check(card_page(CARD))
    assert tags.text.count(SCRIPT) == 5  # title twice, bounding, coefficient, what the range covers
    for words in ("a < b & c", "1.2346", "-1e+06 to 2", "—", "95% range", "noise scale"):
        assert words in tags.text
    assert "bias" not in tags.text


def test_models_show_what_they_learned() -> None:
    drawn = np.random.default_rng(1)
    X, users = drawn.uniform(size=(300, 30)), np.arange(300)
    y = X[:, 0]
    unknown = BoundedERM(epsilon=1, loss="squared", feature_bounds=(0, 1), label_bounds=(0, 1))
    known = LabelPrivateRegression(epsilon=1, label_bounds=(0, 1), noise_sd=1)
    for model in (unknown, known):
        assert "sk-" in model._repr_html_()
        model.fit(X if model is unknown else X[:, :2], y, users=users)
        tags = check(model._repr_html_())
        assert type(model).__name__ in tags.text
        assert ("11 more in coef_" in tags.text) == (model is unknown)
        assert model._repr_mimebundle_(include=None)["text/html"] == model._repr_html_()


def test_a_plan_is_a_page_with_its_mark_at_both_ends() -> None:
    made = eh.plan("count", Profile.counts([1] * 900 + [50] * 100), epsilon=0.5)
    html = made.to_html()
    tags = check(html)
    assert tags.seen.count("svg") == 3
    assert html.count('<tr class="best">') == 1
    assert 'class="mark"' not in html
    for words in (made.explain(), *(cell for row in made.table() for cell in row.cells())):
        assert words in tags.text
    rows = eh.read(pd.DataFrame({"user": [1, 1, 2]}), user="user")
    exact = eh.plan("count", Profile.exact(rows), epsilon=0.5)
    assert exact.to_html().count('<p class="mark">NOT PRIVATE') == 2


def test_charts_are_saved_without_scripts(session: eh.Session, tmp_path: Path) -> None:
    release = by_group(session)
    files = save(release.plot(), tmp_path / "bars.v2", SCRIPT)
    assert files == [str(tmp_path / f"bars.v2{kind}") for kind in (".png", ".svg", ".html")]
    assert all(Path(file).stat().st_size > 1000 for file in files)
    tags = check(Path(files[2]).read_text(encoding="utf-8"))
    assert SCRIPT in tags.text
    with pytest.raises(eh.DataError, match="can't be written"):
        save(release.plot(), tmp_path / "no" / "bars", "bars")


def values(chart: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The data of each picture."""
    return [chart["datasets"][part["data"]["name"]] if "name" in part["data"] else part["data"]["values"]
            for part in chart["vconcat"]]  # fmt: skip


def test_bars_show_values_and_intervals(session: eh.Session) -> None:
    release = session.aggregate(
        n=eh.count(), m=eh.mean(SCRIPT, bounds=(0, 4)), by="g", keys=["b", "c"], epsilon=1, bounding=PARTS
    )
    chart, frame = release.plot().to_dict(), release.interval(0.95)
    assert [[row["value"] for row in rows] for rows in values(chart)] == [frame[name].tolist() for name in ("n", "m")]
    for name, rows in zip(("n", "m"), values(chart), strict=True):
        for end in ("low", "high"):
            assert [row[end] for row in rows] == frame[f"{name}_{end}"].tolist()
    assert '["b", "c"][datum.value]' in str(chart)
    assert "covers the noise" in chart["title"]["subtitle"]


def test_a_cell_is_labelled_by_its_edges(session: eh.Session) -> None:
    assert '"b, 0.0 to 1.0", "b, 1.0 to 4.0"]' in str(cells(session).plot().to_dict())


@pytest.mark.parametrize("kind", ["number", "list"])
def test_a_single_value_is_not_drawn(session: eh.Session, kind: str) -> None:
    with pytest.raises(eh.UsageError, match="no groups to draw"):
        ASKED[kind](session).plot()


def test_a_column_called_histogram_makes_no_cells(session: eh.Session) -> None:
    assert by_group(session, "histogram").headline() == "mean of histogram by g: 2 groups"
    assert cells(session).headline() == f"histogram of {SCRIPT} by g: 4 cells"


def test_without_altair_the_error_says_what_to_install(session: eh.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    release = by_group(session)
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(eh.UsageError, match=r"evenhand\[plots\]"):
        release.plot()
    assert "<table" in release.to_html()


def test_html_and_charts_are_made_in_one_room() -> None:
    source = Path(eh.__file__).parent
    made = re.compile(
        r"</?(?:html|style|table|tr|td|div|section|svg|p|h[1-6])\b[^>]*>|\bimport (?:altair|html)\b|html import"
    )
    rooms = {path.relative_to(source).parts[0] for path in source.rglob("*.py") if made.search(path.read_text("utf-8"))}
    assert rooms == {"pages"}
