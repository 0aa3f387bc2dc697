"""Make docs/reasons.md of the catalog: ``python -m tools.reasons > docs/reasons.md``."""

from __future__ import annotations

from clustergate.wording.catalog import CATALOG, TOPICS

_HEAD = """# Reasons: codes, causes, remedies

Every verdict, every complaint of the proof, every disturbance and every error has a code that
stays as it is. It stands beside its facts and its sentence in `verdicts.json` and `cases/*.json` in
the folder of a run, and at the end of a failure's text in `junit.xml`. What is in braces are facts.
An empty code is that of a sentence without one, as in runs of before there were codes.

This page is made by `python -m tools.reasons > docs/reasons.md`.
"""


def page() -> str:
    """Return the page."""
    lines = [_HEAD]
    for title, codes in TOPICS.items():
        lines += [
            f"## {title}\n",
            "| code | what it says | cause | what to do |",
            "|---|---|---|---|",
        ]
        for code in sorted(codes):
            says, cause, remedy = CATALOG[code]
            cells = (f"`{code}`", says, cause, remedy)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
