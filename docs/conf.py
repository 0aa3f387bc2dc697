"""How `make docs` makes the site: Sphinx, whose search needs no server and no network."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

# The tools are not installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import reference

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "clustergate"
author = "the clustergate authors"
version = release = version_of("clustergate")
extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_heading_anchors = 4
highlight_language = "bash"
html_theme = "furo"
html_title = "clustergate"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_copyright = html_show_sphinx = False

# Pages that stand elsewhere in the repository, and where the site has them.
_ON_THE_SITE = {
    "../README.md": "index.md",
    "../references/README.md": "references.md",
    "../spack-repo/README.md": "spack.md",
}
_OUTWARD = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]*|examples/[^)#\s]*)(#[^)\s]*)?\)")
_BY_FILE = re.compile(r"\[`[\w./-]+\.md`\]\((?!https?:)")
# Read in a clone, a page that includes another says where that is.
_POINTER = re.compile(r"\A[^\n]+\n\n(?=```\{include\})")


def _inward(link: re.Match[str]) -> str:
    """Return a link to a file of the repository as one to its page of the site, or as its name."""
    text, target, heading = link.groups()
    if target in _ON_THE_SITE:
        return f"[{text}]({_ON_THE_SITE[target]}{heading or ''})"
    return text


def _within_the_site(app: Sphinx, name: str, source: list[str]) -> None:
    # A page is called by its title here, and not by its file.
    text = _POINTER.sub("", source[0])
    source[0] = _BY_FILE.sub("[](", _OUTWARD.sub(_inward, text))


def _made_of_the_code(app: Sphinx) -> None:
    reference.write(Path(app.srcdir) / "generated")


def setup(app: Sphinx) -> None:
    """Have pages made, and links out of the folder mended: the site holds nothing but pages."""
    app.connect("builder-inited", _made_of_the_code)
    app.connect("source-read", _within_the_site)
