"""The rule that `make check` holds the package to finds arithmetic in the caller's decimal context, in the forms that were there."""

from __future__ import annotations

from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api")

ROOT = Path(__file__).parents[2]

HEAD = """
from collections.abc import Sequence
from decimal import Decimal
def split(epsilon: Decimal) -> tuple[Decimal, Decimal]: return epsilon, epsilon
class Share:
    epsilon: Decimal
    paid: Decimal | None
def found(epsilon: Decimal, share: Share, parts: Sequence[Decimal], left: Decimal, size: float) -> object:
"""
BROKEN = {
    "a difference of fields": "return share.epsilon - epsilon",
    "counted down": "left -= split(epsilon)[0]; return left",
    "counted up": "share.epsilon += epsilon; return share",
    "a sum": "return sum(parts) + epsilon",
    "a sum of a tuple": "return sum(split(epsilon))",
    "a multiple": "return 3 * epsilon",
    "a part": "return left <= epsilon / 3",
    "a negative": "return -epsilon",
    "an absolute value": "return abs(epsilon)",
    "rounded": "return round(epsilon, 3)",
    "normalised": "return epsilon.normalize()",
    "scaled": "return Decimal(5).scaleb(-30)",
    "inside": "return [float(one * 2) for one in parts]",
    "where None was excluded": "return share.paid and share.paid * 2",
    "a text that is stored": "return str(epsilon)",
    "beside a float": "return epsilon < 0.5",
    "of a float": "return Decimal(size)",
}
ALLOWED = """
    return (
        max(epsilon, left) if epsilon < left and left != 0 else epsilon.copy_abs(),
        split(epsilon)[0],
        float(epsilon) * 2 - size,
        Decimal(1),
        Decimal("0.5"),
        epsilon.is_finite(),
        f"{epsilon}",
    )
"""


def test_the_rule_finds_what_it_is_about(tmp_path: Path) -> None:
    """All forms in one file, each in a function of its own: one run of mypy, with the plugin that `make check` uses."""
    package = tmp_path / "src" / "evenhand"
    package.mkdir(parents=True)
    text, where = "", dict[int, str]()
    for name, line in BROKEN.items():
        text += f"{HEAD}    {line}\n"
        where[text.count("\n")] = name
    text += HEAD + ALLOWED
    (package / "forms.py").write_text(text)
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\nplugins = {ROOT / 'tests' / 'amounts_rule.py'}\ndisable_error_code = no-redef\n"
    )
    shown, failed, _ = mypy.run(
        ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache"), str(package / "forms.py")]
    )
    # Where mypy tries several ways to read an expression, it says of an amount that none of them fits.
    reported = [line for line in shown.splitlines() if line.endswith(("[amount]", "[operator]", "[arg-type]"))]
    found = {where.get(int(line.split("forms.py:")[1].split(":")[0]), line) for line in reported}
    assert found == set(BROKEN), shown + failed
    assert len(shown.splitlines()) == len(reported) + 1, shown  # and nothing else is wrong with the forms


def test_the_package_is_checked_with_it() -> None:
    import tomllib

    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["plugins"] == ["tests/amounts_rule.py"]
