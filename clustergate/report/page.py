"""The frame of all HTML pages: one base template, one style sheet, one script. Pure.

A page is one file that opens without a network. Whatever comes from an output, a host or a setting
passes :func:`printable` and the escaping of Jinja; should either fail, the page's content security
policy runs no script but ours.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.resources
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from jinja2 import (
    BytecodeCache,
    ChoiceLoader,
    Environment,
    PackageLoader,
    StrictUndefined,
    pass_context,
)
from jinja2.bccache import Bucket
from jinja2.runtime import Context
from markupsafe import Markup, escape

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Better
from clustergate.core.notation import number, printable
from clustergate.core.texts import DOUBTFUL, duration, shape
from clustergate.report import explained, plots
from clustergate.report.summary import CAUSES_SHOWN, codes_of, gain_text

BETTER = {Better.LOWER: "lower is better", Better.HIGHER: "higher is better"}
# A bandwidth starts from 0: on a logarithmic axis it would tell what the time tells already.
LOGARITHMIC = ("us", "ms", "s", "1/s")
_CODE = re.compile("`([^`]+)`")


@dataclass(frozen=True)
class Plot:
    """One drawing and what stands above it, the ``remark`` smaller."""

    caption: str
    svg: Markup
    remark: str = ""


@dataclass(frozen=True)
class Sketch:
    """Curves with what stands above them, and what a screen reader says of them."""

    caption: str
    remark: str
    description: str
    unit: str
    lines: Sequence[plots.Curve]
    logarithmic: bool


def drawn(sketches: Sequence[Sketch]) -> list[Plot]:
    """Return curves as plots; those of one unit share their axes."""
    of_unit: dict[str, list[Sketch]] = {}
    for one in sketches:
        of_unit.setdefault(one.unit, []).append(one)
    axes = {
        unit: plots.axes_of(
            [line for one in alike for line in one.lines],
            unit=unit,
            logarithmic=alike[0].logarithmic,
        )
        for unit, alike in of_unit.items()
    }
    return [
        Plot(
            one.caption,
            plots.curves(one.lines, axes[one.unit], description=one.description),
            one.remark,
        )
        for one in sketches
    ]


@functools.cache
def explanation(file: str) -> str:
    """Return one of the pages that explain messages and words."""
    others = {title: name for name, title in explained.PAGES.items() if name != file}
    content = explained.content(file)
    title = explained.PAGES[file]
    return render("explained.html.j2", title=title, content=content, others=others) + _ending(file)


def explains_as_now(file: str, text: str) -> bool:
    """Tell whether a text is what :func:`explanation` returns, without rendering that."""
    return text.endswith(_ending(file))


@functools.cache
def _ending(file: str) -> str:
    """Return the last line of a page that explains: a hash of all that it is made of."""
    templates = importlib.resources.files("clustergate.report") / "templates"
    made_of = [Path(code).read_text(encoding="utf-8") for code in (__file__, explained.__file__)]
    made_of += [explained.markdown(file), *map(_text, sorted(x.name for x in templates.iterdir()))]
    return f"<!-- {hashlib.sha256(json.dumps(made_of).encode()).hexdigest()} -->\n"


def render(
    template: str,
    *packages: str,
    scripted: bool = False,
    invocation: Invocation = NO_CALL,
    beside: str | None = None,
    **said: Any,
) -> str:
    """Return a page of a template that extends ``base.html.j2``, with what it is to say.

    Packages may have templates of their own beside those of this one. Where the pages that explain
    its messages lie, ``beside`` leads to that folder: empty for its own, None where there are none.
    """
    # Not as a template: the policy names the script by its hash, to the last byte.
    script = _text("page.js") if scripted else ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment(packages, invocation)
        .get_template(template)
        .render(
            script=Markup(script),
            script_hash=f"sha256-{digest}",
            style=Markup(_text("page.css")),
            doubtful=DOUBTFUL,
            causes_shown=CAUSES_SHOWN,
            beside=beside,
            terms=explained.words(),
            **said,
        )
    )


class _Compiled(BytecodeCache):
    """The code of templates, which takes longer to make than a page."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, str], CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.by_key.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code:
            self.by_key[bucket.key, bucket.checksum] = bucket.code


_COMPILED = _Compiled()


@functools.cache
def _environment(packages: Sequence[str], invocation: Invocation) -> Environment:
    def late(function: Callable[[Any], str]) -> Callable[[Context, Any], str]:
        # With a context it is applied to no constant while a template is compiled, so that calls
        # share the code of that.
        return pass_context(lambda _, value: function(value))

    def said(value: object) -> str:
        # Markup is ours, and printable already.
        return value if isinstance(value, Markup) else printable(invocation.completed(value))

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(p) for p in (*packages, "clustergate.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=late(said),
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_COMPILED,
    )
    environment.filters.update(
        number=number,
        duration=duration,
        shape=shape,
        completed=late(invocation.completed),
        coded=late(lambda text: coded(invocation.completed(text))),
        gain=gain_text,
        anchor=explained.anchor,
        codes=codes_of,
    )
    return environment


def coded(text: str) -> Markup:
    """Return a sentence with what stands between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))


@functools.cache
def _text(name: str) -> str:
    folder = importlib.resources.files("clustergate.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")
