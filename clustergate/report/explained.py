"""What messages and words mean: the documentation's two pages of them, for a report.

They come with the package, and lie beside each report as HTML, so that it explains itself offline.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from markupsafe import Markup, escape

from clustergate.core.paths import suite_folder

PAGES = {"reasons.html": "Reasons", "glossary.html": "Glossary"}
"""The title of each, by its file."""
_CELLS = re.compile(r"(?<!\\)\|")
_CODE, _TERM = re.compile(r"`([^`]+)`"), re.compile(r"\*\*([^*]+)\*\*")
_INLINE = (
    (_TERM, r"<strong>\1</strong>"),
    (re.compile(r"(?<![*\w])\*([^*]+)\*(?![*\w])"), r"<em>\1</em>"),
    # Other pages are not beside a report.
    (re.compile(r"\[([^]]+)\]\([^)]*\)"), r"\1"),
)


@functools.cache
def words() -> frozenset[str]:
    """Return the words that the glossary explains."""
    return frozenset(_TERM.findall("\n".join(_first_cells(_text("glossary.html")))))


def anchor(word: str) -> str:
    """Return where a word or a code is explained on its page."""
    return word.replace(" ", "-")


def content(name: str) -> Markup:
    """Return what a page says, as HTML."""
    return Markup("\n".join(blocks(_text(name))))


def _text(name: str) -> str:
    path = suite_folder("docs") / name.replace(".html", ".md")
    return path.read_text(encoding="utf-8")


def _first_cells(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("|"):
            yield _CELLS.split(line)[1]


def blocks(text: str) -> Iterator[str]:
    """Yield the HTML of what these pages hold: headings, tables, quotes and paragraphs.

    A row of a table is found by the code or the word that it begins with.
    """
    for block in re.split(r"\n{2,}", text.strip()):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            yield _table(lines)
        elif heading := re.fullmatch(r"(#+) (.*)", block):
            # The first stands in the head of the page.
            if len(heading[1]) > 1:
                yield f"<h2>{_inline(heading[2])}</h2>"
        elif lines[0].startswith("> "):
            quote = " ".join(line.removeprefix("> ") for line in lines)
            yield f"<blockquote>{_inline(quote)}</blockquote>"
        else:
            yield f"<p>{_inline(' '.join(lines))}</p>"


def _table(lines: list[str]) -> str:
    head, _, *rows = (_CELLS.split(line)[1:-1] for line in lines)
    heads = "".join(f'<th scope="col">{_inline(cell.strip())}</th>' for cell in head)
    return (
        f'<div class="scroll" tabindex="0"><table class="stacked"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(map(_row, rows))}</tbody></table></div>"
    )


def _row(cells: list[str]) -> str:
    first = cells[0].strip()
    name = _CODE.fullmatch(first) or _TERM.fullmatch(first)
    at = f' id="{escape(anchor(name[1]))}"' if name else ""
    return f"<tr{at}>{''.join(f'<td>{_inline(cell.strip())}</td>' for cell in cells)}</tr>"


def _inline(text: str) -> str:
    # What is code has no marks.
    parts = _CODE.split(re.sub(r"\\([<>|*_\[\]])", r"\1", text))
    html = "\0".join(str(escape(part)) for part in parts[::2])
    for pattern, replacement in _INLINE:
        html = pattern.sub(replacement, html)
    codes = iter(parts[1::2])
    return re.sub("\0", lambda _: f"<code>{escape(next(codes))}</code>", html)
