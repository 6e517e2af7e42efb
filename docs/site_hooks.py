"""What the site needs beyond `mkdocs.yml`: pages from outside ``docs/``, and notebooks as pages.

The same Markdown is read in the repository and on the site. In the repository a link may lead to any file or folder; on the site
such files become pages under ``repository/``, and links to folders lead to their README.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = "repository"
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_SHOWN = {".md", ".py", ".toml", ".txt", ".json", ".ipynb", ""}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside ``docs/``, and what those link to in turn; and each notebook as a page."""
    waiting = [ROOT / "docs" / file.src_uri for file in files if file.src_uri.endswith(".md")]
    waiting += [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    added: set[str] = set()
    while waiting:
        source = waiting.pop()
        place = _place(source)
        if place.startswith(OUTSIDE) and place not in added:
            added.add(place)
            files.append(File.generated(config, place, content=_text(source)))
        for target in _targets(source):
            if _place(target).startswith(OUTSIDE) and _place(target) not in added:
                waiting.append(target)
    for notebook in sorted((ROOT / "docs").rglob("*.ipynb")):
        files.append(File.generated(config, _place(notebook), content=from_notebook(notebook)))
        found = files.get_file_from_path(notebook.relative_to(ROOT / "docs").as_posix())
        if found is not None:
            files.remove(found)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site."""
    source = _source(page.file.src_uri)

    def on_site(link: re.Match[str]) -> str:
        target = _target(source, link[2])
        if target is None:
            return link[0]
        place = os.path.relpath(_place(target), PurePosixPath(page.file.src_uri).parent)
        return f"{link[1]}{place}{link[3] or ''}{link[4]}"

    parts = _CODE.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(on_site, part) for part in parts)


def from_notebook(path: Path) -> str:
    """A notebook as Markdown: its text, its code, and what the code printed or drew."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            data: dict[str, Any] = output.get("data", {"text/plain": output.get("text", "")})
            if "text/html" in data:
                parts.append("".join(data["text/html"]).replace("\n", " "))
            elif "image/svg+xml" in data:
                parts.append("".join(data["image/svg+xml"]).replace("\n", " "))
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _targets(source: Path) -> list[Path]:
    if source.suffix != ".md":
        return []
    text = _CODE.sub("", source.read_text(encoding="utf-8"))
    return [target for link in _LINK.finditer(text) if (target := _target(source, link[2])) is not None]


def _target(source: Path, link: str) -> Path | None:
    """The file that a link leads to; None for an address."""
    if "://" in link or link.startswith("mailto:"):
        return None
    target = (source.parent / link).resolve()
    if target.is_dir():
        readme = target / "README.md"
        return readme if readme.exists() else sorted(target.glob("*.*"))[-1]
    return target


def _place(source: Path) -> str:
    """Where a file of the repository lies on the site."""
    path = source.relative_to(ROOT)
    if path.parts[0] == "docs":
        place = PurePosixPath(*path.parts[1:])
        return str(place.with_suffix(".md")) if place.suffix == ".ipynb" else str(place)
    place = PurePosixPath(OUTSIDE, *path.parts)
    return str(place) if place.suffix in {".md", ".svg", ".png"} else f"{place}.md"


def _source(place: str) -> Path:
    """The file of the repository that lies there on the site."""
    path = PurePosixPath(place)
    if path.parts[0] != OUTSIDE:
        notebook = ROOT / "docs" / path.with_suffix(".ipynb")
        return notebook if notebook.exists() else ROOT / "docs" / path
    inner = ROOT.joinpath(*path.parts[1:])
    return inner if inner.exists() else inner.with_suffix("")


def _text(source: Path) -> str:
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        return text
    if source.suffix not in _SHOWN:
        raise ValueError(f"a page links to {source.relative_to(ROOT)}, which the site can't show")
    return f"# {source.relative_to(ROOT).as_posix()}\n\n```{source.suffix.lstrip('.')}\n{text}\n```\n"
