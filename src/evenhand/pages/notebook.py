"""How objects show themselves in a notebook: a title, sentences beside their names, and a small table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from evenhand.pages.style import fragment, lines, table

_BAR = 30


@dataclass(frozen=True)
class Card:
    """What is shown of an object; ``mark``, such as NOT PRIVATE, stands first."""

    title: str
    named: Sequence[tuple[str, str]] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    mark: str = ""

    def html(self) -> str:
        """As a part of a notebook."""
        mark = f'<p class="mark">{escape(self.mark)}</p>' if self.mark else ""
        numbers = table(self.head, self.rows) if self.rows else ""
        return fragment(self.title, f"{mark}{lines(self.named) if self.named else ''}{numbers}")


class InNotebooks:
    """Shown as a small table in a notebook, and as text, never as a dump of arrays, where it is typed at a prompt."""

    def card(self) -> Card:
        """What is shown."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self.card().html()

    def __repr__(self) -> str:
        return str(self)


def bars(values: Sequence[float]) -> list[str]:
    """A bar of blocks for each number."""
    longest = max((value for value in values if value > 0), default=1.0)
    return ["█" * round(_BAR * max(value, 0.0) / longest) for value in values]
