"""Only the release room opens a secret, draws noise or counts down a receipt: read off the tree of the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import evenhand

SOURCE = Path(evenhand.__file__).parent

ALLOWED = {
    "passed": ("release/", "statistics/selection.py", "statistics/top.py"),
    "reveal": ("release/", "tables/secret.py"),
    "_use": ("release/door.py",),
    "not_private": ("release/", "profiles/profile.py", "audit/"),
    # The samplers of `noise`. The audit draws from them to test them; it reads nobody's table.
    "add_to": ("release/", "noise/", "audit/"),
    "passing": ("release/", "noise/", "audit/", "statistics/selection.py"),
    "NoisyMax": ("release/", "noise/", "audit/"),
    "choose_top": ("release/", "noise/", "audit/"),
    "add_spherical": ("release/", "noise/"),
    "add_normal": ("release/", "noise/"),
    "seam": ("noise/", "audit/"),
}
"""Names, and where they may be used: rooms, or single modules."""


def breaches(module: str, text: str) -> Iterator[str]:
    """Uses of a name where it may not be used, as a call, a reference or an import."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name) | ast.FunctionDef(name=name):
                names = [name]
            case ast.ImportFrom(module=str(origin)):
                names = origin.split(".")
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(name)), *_]):
                names = [name]
            case _:
                continue
        for name in names:
            if name in ALLOWED and not module.startswith(ALLOWED[name]):
                yield f"{module} uses {name!r}, which only {', '.join(ALLOWED[name])} may"


MODULES = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}


def test_secrets_are_opened_and_noise_is_drawn_by_the_release_room_only() -> None:
    assert [breach for module, text in MODULES.items() for breach in breaches(module, text)] == []


@pytest.mark.parametrize("name", ALLOWED)
def test_every_name_is_one_that_is_used(name: str) -> None:
    """A rule about a name that is gone, or was renamed, would hold for ever."""
    everywhere = [text for module, text in MODULES.items() if module.startswith(ALLOWED[name])]
    assert any(name in text for text in everywhere)


@pytest.mark.parametrize(
    "line",
    [
        "exact = engine.fetch(rows).reveal()",
        "opened = list(map(Secret.reveal, secrets))",
        "exact = getattr(secret, 'reveal')()",
        "receipt._use(epsilon)",
        "exact = not_private(secret)",
        "from evenhand.release import not_private as fetched",
        "noisy = noise.add_to(values)",
        "place = NoisyMax.calibrated(1, epsilon).choose(scores)",
        "places = TopK(3, 1, None, epsilon).choose_top(scores)",
        "from evenhand.noise import add_spherical",
        "noisy = vectors.add_normal(values, scale)",
        "from evenhand.noise.seam import replaced",
    ],
)
def test_one_more_line_is_noticed(line: str) -> None:
    module = "statistics/sum.py"
    before = list(breaches(module, MODULES[module]))
    assert len(list(breaches(module, f"{MODULES[module]}\n{line}\n"))) > len(before)
