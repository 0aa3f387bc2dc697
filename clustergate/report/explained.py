"""What messages and words mean: the documentation's two pages of them, for a report.

They come with the package, and lie beside each report as HTML, so that it explains itself offline.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from clustergate.core.paths import suite_folder

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PAGES = {"reasons.html": "Reasons", "glossary.html": "Glossary"}
"""The title of each, by its file."""
_WORD = re.compile(r"^\| \*\*(.+?)\*\* \|", re.MULTILINE)
_RULES = {
    "table_open": '<div class="scroll" tabindex="0"><table class="stacked">',
    "table_close": "</table></div>",
    # Other pages are not beside a report.
    "link_open": "",
    "link_close": "",
}


@functools.cache
def words() -> frozenset[str]:
    """Return the words that the glossary explains."""
    # By the lines alone: to parse the page takes longer than to render a report.
    return frozenset(_WORD.findall(markdown("glossary.html")))


def anchor(word: str) -> str:
    """Return where a word or a code is explained on its page."""
    return word.replace(" ", "-")


def content(name: str) -> Markup:
    """Return what a page says below its title, as HTML."""
    # The first heading stands in the head of the page.
    _, _, text = markdown(name).partition("\n")
    return as_html(text)


def as_html(text: str) -> Markup:
    """Return the HTML of Markdown; a row of a table is found by the code or word it begins with."""
    parser = _parser()
    tokens = parser.parse(text)
    for row, word in _named_rows(tokens):
        row.attrSet("id", anchor(word))
    for token in tokens:
        # Of thousands of cells, none needs a line of its own.
        token.block = False
        if token.type == "th_open":
            token.attrSet("scope", "col")
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def markdown(name: str) -> str:
    """Return the Markdown that a page is made of."""
    path = suite_folder("docs") / name.replace(".html", ".md")
    return path.read_text(encoding="utf-8")


@functools.cache
def _parser() -> MarkdownIt:
    # It takes a moment to load, and only who writes a page needs it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    for rule, html in _RULES.items():
        parser.add_render_rule(rule, lambda *_, html=html: html)
    return parser


def _named_rows(tokens: Sequence[Token]) -> Iterator[tuple[Token, str]]:
    """Yield the rows of tables that begin with a code or a word in bold, each with that."""
    for row, cell, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if (row.type, cell.type) == ("tr_open", "td_open"):
            marks = [one.type for one in inline.children or () if one.type != "text" or one.content]
            if marks in (["code_inline"], ["strong_open", "text", "strong_close"]):
                yield row, inline.content.strip("`*")
