"""``clustergate evaluation run`` and ``report``: from a paper to runs, a page and a package."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustergate import version
from clustergate.benchmarks.registry import every_check
from clustergate.cli.running import run_and_tell
from clustergate.cli.selection import choose_site, named_run
from clustergate.core import store
from clustergate.core.model import ClustergateError
from clustergate.core.notation import counted
from clustergate.core.texts import duration
from clustergate.judge.history.node_states import NODE_STATE
from clustergate.judge.history.stored_runs import in_order, seconds_taken
from clustergate.judge.judging import worst_status
from clustergate.report import console
from clustergate.run.reframe import PROCESS_COUNTS, with_settings
from clustergate.run.request import Request, read_request
from clustergate.sites import choice, modes
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition
from clustergate.stats.rounds import FEWEST
from evaluations import derivation, plan, predicates, scope, sheet, study, tables
from evaluations import text as published_text
from evaluations.evidence import Subject, merged, subjects_in_run
from evaluations.facts import Paper, load_paper
from evaluations.inference import Outcome
from evaluations.page import render_page
from evaluations.text import Findings

# What is launched in rounds is launched in random order.
_BY_LOT = "--exec-order=random"


class PublishedError(ClustergateError):
    """What was asked of the published evaluations cannot be."""

    exit_status = 1


def run(arguments: argparse.Namespace) -> int:
    """Run what a paper's conclusions need, until they are decided or the budget ends."""
    paper = load_paper(arguments.paper)
    if not scope.available(paper):
        raise PublishedError("; ".join(scope.missing(paper)))
    site = choose_site(arguments.site)
    partition = sites.load(site.path).partitions[0]
    known = study.load_state(paper.id) if arguments.resume else None
    if arguments.resume and known is None:
        raise PublishedError(f"there is no run of paper {paper.id} to resume; leave --resume out")
    roles = dict(map(_role, arguments.roles))
    if known is not None:
        _require_same(known, roles, arguments)
        parts = plan.parts_of(paper, partition.shape, full=known.full)
        begun_with = [step.part for step in study.steps_of(parts)]
        if any(step.part not in begun_with for step in known.steps):
            raise PublishedError(
                f"{paper.source.name} asks for other launches than the run to resume began with; "
                "leave --resume out"
            )
    else:
        stacks = tuple(arguments.stack) or plan.stacks_of(paper, partition.stacks, roles)
        _require_known(paper, roles)
        _require_apart(roles)
        if strangers := [name for name in roles.values() if name not in stacks]:
            raise PublishedError(f"{strangers[0]} is not run; the stacks are {', '.join(stacks)}")
        parts = plan.parts_of(paper, partition.shape, full=arguments.full)
        steps = tuple(study.steps_of(parts))
        known = study.Study(paper.id, stacks, roles, arguments.full, steps)
    _tell_plan(known, paper, partition, arguments)
    if arguments.plan:
        return 0
    statuses: dict[str, list[int]] = {}
    started = time.monotonic()
    for k, step in enumerate(known.steps):
        if not step.ended:
            known = _run_step(known, paper, k, site, arguments, statuses)
            if step.part.gates and statuses[_words(step.part, paper)][-1]:
                study.save_state(known.with_step(k, run="", ended=False))
                raise PublishedError(
                    f"{', '.join(step.part.checks)} did not pass, so that nothing is compared; see "
                    f"its report, and go on: clustergate evaluation run {arguments.paper} --resume"
                )
            if k == study.second_round(known.steps):
                _tell_lacking(known, paper, partition)
            _tell_left(known, k)
    while True:
        runs = _useful(known.runs)
        found = _found_by(known, paper, runs)
        more = [
            *study.more_rounds(known.steps, found.conclusions, _check_of(runs)),
            *study.steps_for_disturbed_trials(
                known.steps, {run: store.read_cases(run) for run in runs}
            ),
        ]
        before = len(known.steps)
        for step in more:
            longest = max(one.seconds for one in known.steps if one.part == step.part)
            if arguments.budget - (time.monotonic() - started) < longest:
                continue
            print(f"again: {_words(step.part, paper)}")
            known = replace(known, steps=(*known.steps, step))
            known = _run_step(known, paper, len(known.steps) - 1, site, arguments, statuses)
        if len(known.steps) == before:
            break
    if more:
        print(
            f"the budget of {duration(arguments.budget)} has ended; "
            f"`{published_text.more_launches(found)}` goes on"
        )
    for sentence in scope.missing(paper):
        print(sentence)
    told = published_text.report(found, width=console.width())
    told += study.repeat_lines(known, paper, partition.stacks, *_given_by_hand(known))
    page = render_page(found)
    print(told, end="")
    entry = study.bibtex(paper, known, version())
    print(f"package: {study.write_package(known, paper, page, told, entry)}")
    played = [f"--as {name}={one}" for name, one in _played(known, runs).items()]
    named = " ".join([arguments.paper, *known.runs, *played])
    print(f"the page again: clustergate evaluation report {named}")
    # Of rounds one launch may fail, but not all; of parts the worst counts, with 1 above 2.
    of_parts = [1 if 1 in of_rounds else min(of_rounds) for of_rounds in statuses.values()]
    for part, of_rounds in statuses.items():
        if min(of_rounds) == 2:
            print(f"no launch of {part} proved itself; the reports of its runs say why")
    return worst_status(of_parts)


def _tell_plan(
    known: study.Study, paper: Paper, partition: Partition, arguments: argparse.Namespace
) -> None:
    """Print what is to be run, what it takes, and what cannot be decided here."""
    seconds, unknown = 0.0, set()
    told_of: list[study.Step] = []
    for step in known.steps:
        if any((one.part, one.ended) == (step.part, step.ended) for one in told_of):
            continue
        told_of.append(step)
        times = sum((one.part, one.ended) == (step.part, step.ended) for one in known.steps)
        mode = modes.mode_named(step.part.mode or paper.mode)
        checks = step.part.checks or tuple(check for check in mode.only if check in every_check())
        cases = modes.expected_cases(checks, [partition], mode)
        wanted = [case for case in cases if case.stack in known.stacks]
        if not step.ended:
            taken_s = _seconds_before(mode.name, step.part)
            pairs = dict.fromkeys((case.check, case.stack) for case in wanted)
            seconds += times * sum(taken_s.get(pair, 0.0) for pair in pairs)
            unknown |= {check for check, stack in pairs if (check, stack) not in taken_s}
        done = "done" if step.ended else "to run"
        of_another = [f"mode {step.part.mode}"] if step.part.mode else []
        settings = ", ".join([*of_another, *_settings_of(step.part, checks)])
        rounds = f"{counted(times, 'round')} of " if step.part.is_round else ""
        print(f"{done}: {rounds}{counted(len(wanted), 'case')} of {', '.join(checks)} ({settings})")
    told = [f"it takes about {duration(seconds)} by earlier launches"] if seconds else []
    if unknown:
        these = ", ".join(sorted(unknown))
        told.append(f"no earlier launch here tells how long these take: {these}")
    print(f"{'; '.join(told)}; then again what is inconclusive, up to {duration(arguments.budget)}")
    for system in paper.systems.values() if paper.is_study else ():
        if not system.played_by or {*system.played_by} & {*known.stacks}:
            continue
        players, here = (", ".join(of) for of in (system.played_by, partition.stacks))
        if {*system.played_by} & {*partition.stacks}:
            print(f"{system.id} is played by {players}, which this run leaves out")
        else:
            print(f"{system.id} is played by {players}, and the stacks of this site are {here}")
    if paper.is_study:
        from evaluations.settings import misspelt_benchmarks

        for sentence in misspelt_benchmarks(paper):
            print(sentence)
        if not any(step.part.is_round for step in known.steps):
            print(
                f"nothing that compares stacks can be decided: it takes `launches: {FEWEST}` or "
                "more in the study's settings"
            )
    idle = [name for name in partition.stacks if name not in known.stacks]
    if idle and not (paper.is_study or arguments.stack or known.runs):
        every = " ".join(f"--stack {name}" for name in partition.stacks)
        print(f"{', '.join(idle)} would stand for no system and is not run; {every} runs all")
    refused = plan.undecidable(paper, partition.shape, known.stacks, known.roles, full=known.full)
    against = sum(one.can_fail for one in refused.values())
    print(
        f"{len(paper.predicates) - len(refused)} of {len(paper.predicates)} conclusions can be "
        "decided here"
        + (f", {against} more can be contradicted" if against else "")
        + ("; not:" if refused else "")
    )
    by_reason: dict[plan.Lacking, list[str]] = {}
    for name, one in refused.items():
        by_reason.setdefault(one, []).append(name)
    for one, names in by_reason.items():
        only = "; what is here can only contradict it" if one.can_fail else ""
        print(f"  {', '.join(names)}: {one.why}{only}")
    if any("stands for" in one.why for one in by_reason):
        print("--as SYSTEM=STACK lets a stack stand for one of the paper's systems")


def _tell_left(known: study.Study, k: int) -> None:
    """Print after each round how many are left, and how long they take by those before."""
    left = [step for step in known.steps[k + 1 :] if step.part.is_round and not step.ended]
    done = [step for step in known.steps[: k + 1] if step.part.is_round]
    # A round ends where its first part comes again.
    if not done or not left or left[0].part != done[0].part:
        return
    seconds = sum(
        next((last.seconds for last in reversed(done) if last.part == step.part), 0.0)
        for step in left
    )
    rounds = sum(step.part == left[0].part for step in left)
    print(f"{counted(rounds, 'round')} left, about {duration(seconds)} by the last one")


def _found_by(known: study.Study, paper: Paper, runs: Sequence[str]) -> Findings:
    return _findings(paper, runs, _played(known, runs))


def _played(known: study.Study, runs: Sequence[str]) -> dict[str, str]:
    """Return the last run and the stack that stand for each system, as ``report`` takes them."""
    return {name: f"{_last_with(runs, stack)}:{stack}" for name, stack in known.roles.items()}


def _tell_lacking(known: study.Study, paper: Paper, partition: Partition) -> None:
    """Print which conclusions ask for what was not measured, though the plan counted on it.

    So a benchmark or a condition that no program prints is told after two rounds of many.
    """
    with contextlib.suppress(PublishedError):
        found = _found_by(known, paper, _useful(known.runs))
        refused = plan.undecidable(
            paper, partition.shape, known.stacks, known.roles, full=known.full
        )
        for one in found.conclusions:
            if one.predicate.id not in refused and {d.outcome for d in one.here} == {
                Outcome.NOT_CHECKABLE
            }:
                print(f"{one.predicate.id} cannot be decided by this run: {one.here[0].sentence}")


def _given_by_hand(known: study.Study) -> tuple[str, list[str]]:
    """Return the process counts and the options that its runs had beside the study's settings."""
    counts = ""
    found: dict[str, None] = {}
    for step in known.steps:
        # What is damaged is no reason to end without a package.
        with contextlib.suppress(ClustergateError):
            asked = read_request(step.run)
            own = {*with_settings(step.part.settings), _BY_LOT}
            counts = asked.process_counts or counts
            found |= dict.fromkeys(one for one in asked.options if one not in own)
    return f"{PROCESS_COUNTS}={counts} " if counts else "", list(found)


def _seconds_before(mode: str, part: plan.Part) -> dict[tuple[str, str], float]:
    """Return what each check took with each stack, the last time that it ran so."""
    wanted = set(with_settings(part.settings))
    named = [path.name for path in store.runs_folder().glob("*") if path.is_dir()]
    found: dict[tuple[str, str], float] = {}
    for run in sorted(named)[-50:]:
        # What is damaged there is no reason not to run.
        with contextlib.suppress(ClustergateError):
            asked = read_request(run)
            given = {option for option in asked.options if option.startswith("--setvar=")}
            if (asked.mode.name, given) == (mode, wanted):
                taken = seconds_taken(store.read_cases(run))
                found |= {pair: sum(map(sum, one.values())) for pair, one in taken.items()}
    return found


def _words(part: plan.Part, paper: Paper) -> str:
    """Return how a part of the plan is called: its checks, its mode and its settings."""
    checks = [*(part.checks or paper.checks.values())]
    how = [part.mode or paper.mode, *_settings_of(part, checks)]
    return f"{', '.join(checks)} ({', '.join(how)})"


def _settings_of(part: plan.Part, checks: Sequence[str]) -> list[str]:
    """Return the settings of a part that concern its checks."""
    return [
        f"{name}={value}"
        for name, value in part.settings.items()
        if "." not in name or name.partition(".")[0] in checks
    ]


def _run_step(
    known: study.Study,
    paper: Paper,
    k: int,
    site: choice.Choice,
    arguments: argparse.Namespace,
    statuses: dict[str, list[int]],
) -> study.Study:
    """Run a part of the plan, or what was left of it, and keep how far it is."""
    step, now = known.steps[k], datetime.datetime.now().astimezone()
    resumes = bool(step.run) and store.run_folder(step.run).is_dir()
    run = step.run if resumes else store.new_run_id(now)
    request = Request(
        modes.mode_named(step.part.mode or paper.mode),
        site.path,
        known.stacks,
        step.part.checks,
        (
            *with_settings(step.part.settings),
            *([_BY_LOT] if step.part.is_round else []),
            *arguments.reframe_options,
        ),
        os.environ.get(PROCESS_COUNTS, ""),
        str(site),
        site.fallback,
        # A round counts however busy the node is.
        0.0 if step.part.is_round and k else arguments.wait,
    )
    known = known.with_step(k, run=run)
    study.save_state(known)
    begun = time.monotonic()
    again = f"evaluation run {arguments.paper} --resume"
    before = any(one.ended and one.part == step.part for one in known.steps[:k])
    status = run_and_tell(
        request, run, now, arguments.invocation, resumes=resumes, again=again, brief=before
    )
    statuses.setdefault(_words(step.part, paper), []).append(status)
    known = known.with_step(k, ended=True, seconds=time.monotonic() - begun)
    study.save_state(known)
    return known


def _measured(run: str, stack: str = "") -> list[Subject]:
    """Return what each stack of a run measured, or one of them."""
    by_lot = False
    # A run whose request is lost or damaged is none of rounds.
    with contextlib.suppress(ClustergateError):
        by_lot = _BY_LOT in read_request(run).options
    return subjects_in_run(run, store.read_cases(run), stack, by_lot=by_lot)


def _useful(runs: Sequence[str]) -> list[str]:
    """Return the runs that hold a case that proved itself; raises where none does."""
    found = [run for run in runs if _measured(run)]
    if not found:
        raise PublishedError("no case of these runs proved itself; their reports say why")
    return found


def _last_with(runs: Sequence[str], stack: str) -> str:
    """Return the last run in which a stack measured something; raises where none has it."""
    for run in reversed(runs):
        if _measured(run, stack):
            return run
    raise PublishedError(f"nothing that {stack} measured proved itself")


def _check_of(runs: Sequence[str]) -> dict[str, str]:
    """Return by which check each benchmark was measured."""
    return {
        sample.benchmark: record.check
        for run in runs
        for record in store.read_cases(run)
        for sample in record.samples
    }


def report(arguments: argparse.Namespace) -> int:
    """Print a paper beside runs, and write the page with its figures."""
    paper = load_paper(arguments.paper)
    if not in_order():
        makes = f"`clustergate evaluation run {arguments.paper}`"
        raise PublishedError(
            f"there is no run in {store.runs_folder()} yet; {makes} makes what the report needs"
        )
    found = _findings(paper, arguments.runs, dict(map(_role, arguments.roles)))
    path = _write_page(render_page(found), arguments.output, paper.id, arguments.runs)
    if arguments.json:
        print(json.dumps({**found.plain(), "page": str(path)}, indent=1))
        return 0
    print(published_text.report(found, width=console.width()), end="")
    print(f"figures: {path}")
    return 0


def _findings(paper: Paper, runs: Sequence[str], named: Mapping[str, str]) -> Findings:
    """Return a paper beside what runs measured; ``named`` are systems with a stack of a run."""
    given = {name: _one_subject(run) for name, run in named.items()}
    _require_known(paper, given)
    subjects = merged(subject for run in runs for subject in _subjects(run))
    roles = {}
    for name, one in given.items():
        # With all the launches that its stack has in these runs.
        alike = (s for s in subjects if (s.stack, s.system) == (one.stack, one.system))
        pooled = next(alike, None)
        roles[name] = pooled if pooled and one.runs <= pooled.runs else one
    _require_apart({name: one.name for name, one in roles.items()})
    subjects += [one for one in roles.values() if one not in subjects]
    here = predicates.cast(paper, subjects, roles)
    return Findings(
        paper,
        subjects,
        sheet.value_rows(paper, here),
        sheet.conclusions(paper, here),
        sheet.drawings(paper, subjects),
        derivation.derived_rows(subjects, _links(subjects)),
        [*sheet.disturbance_notes(subjects), *scope.missing(paper)],
        _machine(subjects),
        here.roles,
    )


def _machine(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Return the facts of the machine of the first run, none where it kept nothing of it."""
    run = min(run for one in subjects for run in one.runs)
    try:
        state = json.loads((store.run_folder(run) / NODE_STATE).read_text(encoding="utf-8"))
        return tables.machine_facts(state, [one.stack for one in subjects])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _links(subjects: Sequence[Subject]) -> dict[str, float]:
    """Return what a node of each subject's system sends at most, where its site config says it."""
    found = {}
    for name in {subject.system for subject in subjects}:
        try:
            first, *_ = sites.load(choice.find(name)).partitions
        except ClustergateError:
            # A run may be of a system whose site config is no longer here.
            continue
        if first.link_mb_s:
            found[name] = float(first.link_mb_s)
    return found


def _require_known(paper: Paper, roles: Mapping[str, object]) -> None:
    if unknown := [name for name in roles if name not in paper.systems]:
        known = ", ".join(paper.systems)
        raise PublishedError(f"paper {paper.id} has no system {unknown[0]!r}; it has {known}")


def _require_same(
    known: study.Study, roles: Mapping[str, str], arguments: argparse.Namespace
) -> None:
    """Refuse what would be passed over in silence: a resumed run keeps what it began with."""
    for option, asked, began in (
        ("--as", dict(roles), dict(known.roles)),
        ("--stack", set(arguments.stack), set(known.stacks)),
        ("--full", arguments.full, known.full),
    ):
        if asked and asked != began:
            raise PublishedError(
                f"the run to resume began with another {option}; leave it or --resume out"
            )


def _require_apart(roles: Mapping[str, str]) -> None:
    """Refuse a stack in two roles: beside itself it would contradict any order."""
    for name, stack in roles.items():
        if twins := [other for other in roles if roles[other] == stack and other != name]:
            raise PublishedError(
                f"{stack} cannot stand for both {name} and {twins[0]}: compared with itself it "
                "says nothing; name another stack for one of them"
            )


def _role(text: str) -> tuple[str, str]:
    system, _, run = text.partition("=")
    if not (system and run):
        raise PublishedError(
            f"{text!r} is not SYSTEM=STACK, or in a report SYSTEM=RUN:STACK, such as "
            "nec-sx8=last:mpich"
        )
    return system, run


def _one_subject(run: str) -> Subject:
    found = _subjects(run)
    if len(found) != 1:
        stacks = ", ".join(subject.stack for subject in found)
        raise PublishedError(f"{run} has the stacks {stacks}; name one, such as {run}:mpich")
    return found[0]


def _subjects(run: str) -> list[Subject]:
    stack = run.partition(":")[2]
    run_id = _run_id(run)
    found = _measured(run_id, stack)
    if not found:
        raise PublishedError(
            f"{run} holds no case that proved itself; name another run, or run again"
        )
    return found


def _run_id(run: str) -> str:
    return named_run(run.partition(":")[0])


def _write_page(page: str, output: Path | None, paper: str, runs: Sequence[str]) -> Path:
    """Write the page where it was asked for, else beside the first run, and return where."""
    path = _page_path(paper, runs) if output is None else output
    store.write_text(path, page)
    return path


def _page_path(paper: str, runs: Sequence[str]) -> Path:
    return store.run_folder(_run_id(runs[0])) / f"published-{paper}.html"
