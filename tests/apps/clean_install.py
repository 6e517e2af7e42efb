"""Run by ``make package`` with nothing installed but the wheel and its base dependencies: what works, and what says which extra is missing.

Standard library only: it is no test module, and pytest does not collect it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import evenhand as eh

SCRIPT = Path(sys.executable).with_name("evenhand")
EXTRAS: dict[str, str | list[str]] = {
    "evenhand[plots]": "import evenhand as eh; eh.plan('count', eh.Profile.counts([1, 2, 3]), epsilon=1).plot()",
    "evenhand[learning]": "import evenhand.learning as l; l.WeightedERM",
    "'evenhand[learning]'": [
        str(SCRIPT),
        "learn",
        "logistic",
        "t.csv",
        "--user",
        "user",
        "--label",
        "x",
        "--features",
        "x",
        "--epsilon",
        "1",
    ],
    "evenhand[service]": [str(SCRIPT), "serve", "--demo", "--no-browser"],
    "evenhand[postgres]": "import evenhand as eh; eh.Ledger('postgresql://nobody@localhost/none', epsilon=1)",
    "evenhand[spark]": "import evenhand as eh; eh.read('t.csv', user='user', engine='spark')",
    "evenhand[recommender]": [
        str(SCRIPT),
        "recommender",
        "plan",
        "--items",
        "12",
        "--rated",
        "5",
        "--epsilon",
        "1",
        "--users",
        "100",
    ],
}


def run(command: str | list[str], folder: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-c", command] if isinstance(command, str) else command
    return subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def main() -> None:
    """Release a number, then ask for what is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.csv").write_text(
            "user,x\n" + "".join(f"u{k % 500},{k % 7}\n" for k in range(5000)), encoding="utf-8"
        )
        release = [str(SCRIPT), "release", "count", "t.csv", "--user", "user", "--epsilon", "1", "--ledger", "b.db"]
        done = run(release, folder)
        assert done.returncode == 0, done.stderr
        assert "number of rows" in done.stdout
        for extra, command in EXTRAS.items():
            refused = run(command, folder)
            assert refused.returncode != 0, f"{extra}: worked without its packages"
            assert extra in refused.stderr, f"{extra}: not named in\n{refused.stderr[-800:]}"
    packages = Path(eh.__file__).parents[1]
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) / 1e6
    print(f"evenhand {eh.__version__}: base install of {size:,.0f} MB works, and missing extras are named")


if __name__ == "__main__":
    main()
