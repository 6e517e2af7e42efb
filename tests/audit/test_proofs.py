"""Proofs stay about the code they were written for, and what they say can be run."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest

from evenhand.bounding import LARGEST_AMOUNT
from evenhand.statistics.weighted_rows import FULL

PROOFS = Path(__file__).parents[2] / "docs" / "proofs"


@pytest.fixture(scope="module")
def stamp() -> ModuleType:
    specification = importlib.util.spec_from_file_location("stamp", PROOFS / "stamp.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_proof_names_its_code(stamp: ModuleType) -> None:
    written = {path.stem for path in PROOFS.glob("*.md")} - {"README"}
    assert written == set(stamp.load())


def test_no_proof_is_stale(stamp: ModuleType) -> None:
    stale = stamp.stale()
    assert not stale, (
        f"the code under {stale} has changed: read docs/proofs/NAME.md again, correct it or the code, then run "
        f"python docs/proofs/stamp.py {' '.join(stale)}"
    )


def test_a_change_is_noticed_and_a_comment_is_not(
    stamp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "src" / "evenhand"
    room.mkdir(parents=True)
    stamp_here = stamp.digest
    original = 'class A:\n    def f(self, x):\n        """Words."""\n        return min(x, 1)\n'
    variants = {
        original: True,
        original.replace("Words.", "Other words."): True,
        original.replace("        return", "        # why\n        return"): True,
        original.replace("min(x, 1)", "min(\n            x,\n            1,\n        )"): True,
        original.replace("min(x, 1)", "min(x, 2)"): False,
        original.replace("min", "max"): False,
    }
    monkeypatch.setattr(stamp, "ROOT", tmp_path)
    digests = {}
    for text in variants:
        (room / "a.py").write_text(text)
        digests[text] = stamp_here(["a.py::A.f"])
    with pytest.raises(LookupError, match="is gone"):
        stamp_here(["a.py::A.g"])
    assert {text: digest == digests[original] for text, digest in digests.items()} == variants


def test_lemma_of_rameshwar_is_false_for_vectors() -> None:
    """docs/proofs/papers.md: noise for the lemma's sensitivity loses ε = 9 instead of 1."""
    U, d, epsilon, sizes = 1, 2, 1, (8, 4, 2, 1, 1, 1)
    T = sorted((U * s for s in sizes), reverse=True)[math.ceil(2 * d / epsilon) - 1]
    s = sizes[0]
    a, b = Fraction(U * s - T, 2 * s), Fraction(U * s + T, 2 * s)
    declared = s * (b - a)
    one, other = [(b, Fraction(0))] * s, [(Fraction(0), b)] * s
    assert all(a <= sum(sample) <= b for sample in (*one, *other)), "both are in the annulus"
    moved = sum(abs(sum(x) - sum(y)) for x, y in zip(zip(*one, strict=True), zip(*other, strict=True), strict=True))
    assert declared == T == 1
    assert moved / (declared / Fraction(epsilon)) == 9
    # And for what Evenhand does instead, per coordinate with ε/d, the same change is within the bound.
    assert all(
        abs(sum(x) - sum(y)) <= s * b for x, y in zip(zip(*one, strict=True), zip(*other, strict=True), strict=True)
    )


def test_weights_are_exact_quotients_up_to_the_largest_amount() -> None:
    """Near the end of the range, where rounding would show first."""
    capacity = LARGEST_AMOUNT * FULL
    for n in (capacity, capacity - 1, capacity // 3, FULL * 7):
        for norm in (1, 3, FULL - 1, FULL + 1, n // FULL + 1, n // 7 + 1, n - 1, n, n + 1, 2**53 + 1, 2**62):
            assert math.floor(float(n) / float(norm)) == n // norm, (n, norm)
    broken = 2**54 - 1  # beyond the limit the quotient of doubles may be too large
    assert any(math.floor(float(broken) / float(norm)) > broken // norm for norm in (2**53, 2**52 * 3 // 2, 2**40))
