"""What the gate says first, on its page and in the terminal: answer, causes, what next. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clustergate.core.commands import NO_CALL, Invocation
from clustergate.core.model import Case, Evidence, Run, Verdict
from clustergate.core.notation import counted
from clustergate.core.texts import duration, shortened
from clustergate.report import page, summary
from clustergate.report.summary import CAUSES_SHOWN, FirstScreen
from clustergate.run.gate.contract import Requirement
from clustergate.run.gate.decision import (
    CLOSED,
    MEANINGS,
    NOTHING_KNOWN,
    NOTHING_TO_COMPARE,
    OPEN,
    SCREENING_DOUBT,
    UNJUDGED,
    YOU_DECIDE,
    Decision,
    status_of,
)
from clustergate.run.gate.workflow import Answer
from clustergate.sites.modes import MAINTENANCE

_LOOKS = {OPEN: "pass", CLOSED: "regression", UNJUDGED: "inconclusive"}
_AGAIN = "`clustergate gate` judges again, once that is fixed"
_LONGER = "give `clustergate gate` a larger `--budget`, with less running beside it"
_STEPS, _NOTE = 2, 94
# Parts of a gate of which the first screen says that nothing speaks against them.
_HELD = ("screening", "what must be judged", "expectations", "software")


def first_screen(
    decision: Decision,
    run_id: str,
    cases: Sequence[Case] = (),
    software_s: float = 0.0,
    resume: Sequence[str] = (),
    passed: Sequence[Evidence] = (),
) -> FirstScreen:
    """Return what is said first of a gate; ``cases`` are those of its benchmarks.

    With a budget of ``software_s`` golden builds would probably decide what they leave open.
    ``resume`` are the commands that give nodes to jobs again, ``passed`` is the evidence that
    speaks for opening.
    """
    if decision.status == OPEN:
        by = "".join(f", such as by `{line}`" for line in resume[:1])
        steps = [
            f"delete the reservation, or resume the nodes that were judged{by}; what is excluded "
            "stays drained"
        ]
    elif decision.nothing_known:
        steps = [
            "to know more the next time: `clustergate check --mode maintenance` on five days, then "
            "`clustergate baseline`"
        ]
    else:
        # What is in doubt beside a fault is seen once that is repaired.
        decisive = [one for one in decision.evidence if status_of(one) == decision.status]
        noisy = any(one.reasons[0].code == SCREENING_DOUBT.code for one in decisive)
        of_each = (_step(one, run_id, cases, software_s) for one in decisive)
        by_command: dict[object, str] = {}
        for step in filter(None, of_each):
            by_command.setdefault(tuple(re.findall("`[^`]*`", step)) or step, step)
        steps = [*by_command.values(), *[_LONGER] * noisy] or [_AGAIN]
    word, sentence = decision.word, MEANINGS[decision.status]
    if decision.nothing_known:
        word, sentence = NOTHING_KNOWN, YOU_DECIDE
    held = {
        one.part.partition(":")[0]: one.sentence
        for one in reversed(passed)
        if one.part.startswith(_HELD)
    }
    beside = [f"{part}: {held[part]}" for part in _HELD if part in held]
    return FirstScreen(
        _LOOKS[decision.status],
        word,
        sentence,
        list(map(summary.cause_of, decision.evidence)),
        steps[:CAUSES_SHOWN],
        [("clustergate gate", decision.status, decision.word.lower())],
        beside,
        told_by_cause=True,
    )


def terminal_lines(answer: Answer, first: FirstScreen) -> list[str]:
    """Return what a terminal says of a gate: the answer, why, what held, what to do now.

    What a line cannot say is on the page; what the answer does not speak of is told.
    """
    run, (_, *notes), decision = answer.run, answer.notes, answer.decision
    more = f" (and {len(notes) - 1} more on the page)" * (len(notes) > 1)
    silent = [f"{shortened(notes[0], _NOTE)}{more}"] if notes else []
    causes = first.causes
    if decision.nothing_known:
        count = NOTHING_TO_COMPARE.code
        known = [why for one in decision.evidence for why in one.reasons if why.code == count]
        silent, causes = [*map(str, known), *silent], ()
    first = replace(
        first,
        causes=causes,
        next_steps=first.next_steps[:_STEPS],
        beside=[*first.beside, *silent],
    )
    cases = counted(len(run.cases), "case")
    return [
        f"clustergate gate   {run.system}   {cases}   {duration(run.duration_s)}",
        *first.lines(),
        f" Page  `clustergate open {run.run_id}`",
        f"clustergate gate: exit status {decision.status}: {decision.word}",
    ]


def _step(one: Evidence, run_id: str, cases: Sequence[Case], software_s: float) -> str:
    """Return the command that follows from a piece of evidence, empty where none does."""
    if commands := [why.remedy for why in one.reasons if "`" in why.remedy]:
        return commands[0]
    part, _, of = one.part.partition(": ")
    if part == "software" and one.verdict is Verdict.REGRESSION:
        return (
            f"`clustergate ab --stored {run_id}/golden-{of}` shows which sizes, and `clustergate "
            "golden list` what differs between both builds"
        )
    if part == "software" and one.verdict is Verdict.INCONCLUSIVE and software_s:
        minutes = math.ceil(software_s / 60)
        return (
            f"`clustergate gate --budget {minutes}m` would probably decide what golden builds "
            "leave open"
        )
    if part.startswith("screening") and " against " in part:
        before = one.reasons[0].facts["run"]
        return f"`clustergate machine --diff {before} {run_id}` shows what changed on the nodes"
    if part.startswith("screening") and one.verdict is Verdict.REGRESSION:
        return (
            "drain and exclude what is slow, with the lines on the screening's page; then "
            "`clustergate gate` judges the others"
        )
    if part.startswith("against the run "):
        before = part.removeprefix("against the run ")
        return f"`clustergate compare {before} {run_id}` lists every figure of both"
    if part != "benchmarks":
        return ""
    steps = summary.next_commands(cases, run_id, MAINTENANCE)
    return next((f"`{command}`: {why}" for why, command in steps), "")


def render_gate(
    first: FirstScreen,
    run: Run,
    folder: Path,
    notes: Sequence[str] = (),
    items: Sequence[Requirement] = (),
    invocation: Invocation = NO_CALL,
) -> str:
    """Return the page of a gate, with links to those other pages that are in its run's folder.

    ``run`` has the benchmarks and all evidence, ``items`` are what must be judged.
    """
    # What the first screen says whole is not repeated below.
    whole = {(c.where, c.sentence) for c in first.causes[:CAUSES_SHOWN] if c.short == c.sentence}
    parts: dict[str, list[Evidence]] = {}
    for one in run.evidence:
        cause = summary.cause_of(one)
        if (cause.where, cause.sentence) not in whole:
            parts.setdefault(one.part, []).append(one)
    return page.render(
        "gate.html.j2",
        invocation=invocation,
        beside="",
        first=first,
        parts=parts,
        measured=summary.measured(run),
        system=run.system,
        started=run.started,
        notes=notes,
        links=_links(folder),
        items=items,
    )


def _links(folder: Path) -> list[tuple[str, str]]:
    pages = [("the screening, with its heat map", folder / "screening" / "screening.html")]
    pages += [
        (f"the screening of {path.parents[1].name}", path)
        for path in sorted(folder.glob("*/screening/screening.html"))
    ]
    pages.append(("the benchmarks", folder / "report.html"))
    return [(title, str(path.relative_to(folder))) for title, path in pages if path.is_file()]
