"""The page of a run that came as a package, made of its data: a page of its own is never shown."""

from __future__ import annotations

from collections.abc import Mapping

from clustergate.core.model import BadRequest
from clustergate.core.store import RUN_DAMAGED_CASE
from clustergate.judge.history.listing import SUMMARY, VERDICTS
from clustergate.judge.history.packages import Package
from clustergate.report import export, page

FILE = "report.html"


def pages(package: Package) -> Mapping[str, bytes]:
    """Return the page of a package by its name; raises BadRequest where its verdicts are none."""
    try:
        answer = package.answer()
        rows = export.rows_of(answer)
        system = str(answer.get("system", ""))
        summary = package.files.get(SUMMARY, b"").decode(errors="replace")
        said = page.render(
            "package.html.j2",
            scripted=True,
            package=package,
            rows=rows,
            summary=summary,
            system=system,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRequest(RUN_DAMAGED_CASE(path=VERDICTS, why=error)) from None
    return {FILE: said.encode()}
