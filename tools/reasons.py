"""Make docs/reasons.md of the catalog: ``python -m tools.reasons > docs/reasons.md``."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import clustergate
import evaluations
from clustergate.model import ClustergateError
from clustergate.wording.catalog import CATALOG, IN_WORDS, TOPICS

_HEAD = """# Reasons: codes, causes, remedies

Every verdict, every complaint of the proof, every disturbance and every error has a code that
stays as it is. It stands beside its facts and its sentence in `verdicts.json` and `cases/*.json` in
the folder of a run, and at the end of a failure's text in `junit.xml`. What is in braces are facts.
An empty code is that of a sentence without one, as in runs of before there were codes.

This page is made by `python -m tools.reasons > docs/reasons.md`.
"""


def error_classes() -> dict[str, type[ClustergateError]]:
    """Return the classes of errors of the installed packages, by their codes, which are unique."""
    for package in (clustergate, evaluations):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    classes: list[type[ClustergateError]] = [ClustergateError, *_below(ClustergateError)]
    by_code: dict[str, type[ClustergateError]] = {}
    for cls in classes:
        if cls.__module__.partition(".")[0] in ("clustergate", "evaluations"):
            assert by_code.setdefault(cls.code, cls) is cls, f"two classes have {cls.code}"
    return by_code


def _below(cls: type[ClustergateError]) -> Iterator[type[ClustergateError]]:
    for below in cls.__subclasses__():
        yield below
        yield from _below(below)


def page() -> str:
    """Return the page."""
    classes = error_classes()
    lines = [_HEAD]
    for title, codes in TOPICS.items():
        lines += [
            f"## {title}\n",
            "| code | what it says | cause | what to do |",
            "|---|---|---|---|",
        ]
        for code in sorted(codes):
            says, cause, remedy = CATALOG[code]
            if says == IN_WORDS[0] and code in classes:
                says = (inspect.getdoc(classes[code]) or "").partition("\n")[0]
            cells = (f"`{code}`", says, cause, remedy)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
