"""Pack the browser's client for an origin that people trust, and as an extension; anybody gets the same bytes.

python web/bundle.py dist       # writes two archives and prints their SHA-256
python web/bundle.py --stamp    # after a change: writes the files' hashes into sw.js
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import sys
import zipfile
from pathlib import Path

WEB = Path(__file__).resolve().parent
KINDS = {".html", ".css", ".js", ".svg", ".webmanifest"}
WORKER = "sw.js"
STAMP = re.compile(r"^const FILES = \{.*?\};$", re.DOTALL | re.MULTILINE)


def page_files(web: Path = WEB) -> dict[str, bytes]:
    """The page's own files by path, without the worker that checks them and what only the extension needs."""
    found = {path.relative_to(web).as_posix(): path for path in web.rglob("*") if path.suffix in KINDS}
    return {
        name: found[name].read_bytes() for name in sorted(found) if name != WORKER and not name.startswith("extension/")
    }


def stamped_worker(web: Path = WEB) -> str:
    """The worker with the hashes of the files as they are now."""
    hashes = {name: base64.b64encode(hashlib.sha256(data).digest()).decode() for name, data in page_files(web).items()}
    stamp = f"const FILES = {json.dumps(hashes, indent=2)};"
    return STAMP.sub(lambda _: stamp, (web / WORKER).read_text(encoding="utf-8"))


def pack(target: Path, files: dict[str, bytes]) -> str:
    """Write an archive that depends on nothing but the files: no dates, no compression, one order. Returns its SHA-256."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, files[name])
    return hashlib.sha256(target.read_bytes()).hexdigest()


def bundle(folder: Path, web: Path = WEB) -> dict[str, str]:
    """Both archives; their SHA-256 by name."""
    if stamped_worker(web) != (web / WORKER).read_text(encoding="utf-8"):
        raise SystemExit(
            "sw.js holds the hashes of other files: run python web/bundle.py --stamp, and look at what changed."
        )
    folder.mkdir(parents=True, exist_ok=True)
    page = page_files(web)
    extension = {path.name: path.read_bytes() for path in sorted((web / "extension").iterdir())}
    archives = {
        "evenhand-home.zip": {**page, WORKER: (web / WORKER).read_bytes()},
        "evenhand-home-extension.zip": {**page, **extension},
    }
    return {name: pack(folder / name, files) for name, files in archives.items()}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where the archives go")
    parser.add_argument("--stamp", action="store_true", help="write the hashes of the files into sw.js")
    given = parser.parse_args(arguments)
    if given.stamp:
        (WEB / WORKER).write_text(stamped_worker(), encoding="utf-8")
    if given.folder:
        for name, digest in bundle(given.folder).items():
            print(f"{digest}  {name}")
    if not (given.stamp or given.folder):
        parser.error("name a folder for the archives, or --stamp")


if __name__ == "__main__":
    main(sys.argv[1:])
