"""``python -m tools.pictures report=RUN/report.html gate=RUN/gate.html …``: the pages' pictures.

Each is what a browser shows of a page that a run left, in a window of the picture's size.
"""

from __future__ import annotations

import argparse
import base64
import sys
import tempfile
from pathlib import Path

from clustergate.core.paths import checkout
from tests.browser import browsing

PICTURES = {
    "ab": (1280, 985, ""),
    "curves": (1280, 690, "curves"),
    "gate": (1280, 590, ""),
    "phone": (390, 660, ""),
    "report": (1280, 830, ""),
    "screening": (1280, 1000, ""),
}
"""Width and height in CSS pixels, and the section of the page that it begins with."""


def main() -> int:
    """Write the pictures that are named into ``docs/pictures``."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("pairs", nargs="+", metavar="NAME=PAGE", help=", ".join(PICTURES))
    pairs = [one.partition("=")[::2] for one in parser.parse_args().pairs]
    if unknown := [
        name for name, page in pairs if name not in PICTURES or not Path(page).is_file()
    ]:
        parser.error(f"{unknown[0]}: no picture of that name, or no such page")
    with tempfile.TemporaryDirectory() as profile, browsing(Path(profile)) as browser:
        for name, page in pairs:
            width, height, section = PICTURES[name]
            browser.look(width=width, height=height)
            browser.open(Path(page).resolve())
            browser.ask("document.getElementById(arguments[0])?.scrollIntoView();", section)
            drawn = browser.tell("Page.captureScreenshot", format="png")["data"]
            path = checkout() / "docs" / "pictures" / f"{name}.png"
            path.write_bytes(base64.b64decode(drawn))
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
