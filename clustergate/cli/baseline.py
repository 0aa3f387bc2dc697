"""``clustergate baseline``: references from stored runs, as a difference to review."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import difflib
import fnmatch
import functools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustergate.benchmarks.registry import every_check
from clustergate.cli import selection
from clustergate.cli.passing_on import option
from clustergate.cli.selection import add_site, choose_site
from clustergate.cli.suite_options import add_suite, past_named
from clustergate.core import store
from clustergate.core.model import BadRequest, CaseRecord
from clustergate.core.notation import counted
from clustergate.core.reasons import Words
from clustergate.core.words import BASELINE_NO_FIGURE, OPTION_RANGE
from clustergate.judge.history import series
from clustergate.judge.history.listing import keep_for_baseline, writing_baseline
from clustergate.judge.history.node_states import changed_between
from clustergate.judge.history.stored_runs import left_out
from clustergate.judge.references import lookup as references
from clustergate.judge.sharing import exclusive_partitions
from clustergate.report import console
from clustergate.sites import configs as sites
from clustergate.sites.modes import has_layout

if TYPE_CHECKING:
    from clustergate.judge.baselines.proposals import Acceptance, Baseline, Drift, Refusal, Rule

DESCRIPTION = """\
Make references from stored runs and write references/SYSTEM.yaml, to be reviewed like any other
change. For each case the newest runs of the same build on the same nodes count. The reference of a
figure is the best that they reached; the tolerance on the worse side is how far above it unchanged
runs are, 5 % at least. A day on which the machine was slow is left out. A figure keeps its old
reference when its runs are too few or differ too much, when it is slower than in its last or its
first accepted baseline by more than chance explains, or better than an unchanged machine gets; each
is listed with what to do.

Exit status 0: every figure of the runs has a new reference; 1: at least one has not; 2: somebody
else changed the file meanwhile, and nothing was written."""
_REFUSALS_SHOWN = 12
# A tolerance that grows by so much is told: noisier runs, or slower ones, made it.
_WIDER = 1.2
_LONGEST_HOURS = 1e6
_BLESSED = re.compile(r"^ +blessed: .*\n", re.MULTILINE)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    selection.add_options(parser)
    option(parser, "--mode NAME", "only runs in this mode")
    # The defaults are those of baselines.Rule, which takes a second to import.
    option(parser, "--runs N", "use the newest N at most (default: 30)", type=int)
    option(parser, "--min-runs N", "require N runs (default and minimum: 5)", type=int)
    option(
        parser,
        "--min-hours H",
        "require H hours from the first run to the last (default: 1)",
        type=float,
    )
    option(
        parser,
        "--accept-worse PATTERN",
        "figures that may become worse, such as 'PingPong.*.latency_us'",
        action="append",
        default=[],
    )
    option(parser, "--because REASON", "why worse is right", default="")
    option(
        parser,
        "--accept-better PATTERN",
        "figures that the machine was changed to be much better at",
        action="append",
        default=[],
    )
    add_suite(parser)
    option(
        parser,
        "--write FILE",
        "with --reframe: write the suite's references to it, for its tests' $ref; else print them",
        type=Path,
    )
    option(parser, "--dry-run", "print the diff, write nothing")
    option(parser, "--all", "print every refusal")
    option(parser, "--json", "print a JSON object")


BASELINE_LOST = Words(
    "baseline.lost",
    "the site config no longer has {cases:names}",
    cause="what was measured of them is left out",
    remedy="correct the site config if they are still there",
)
CHANGED_MEANWHILE = Words(
    "baseline.changed-meanwhile",
    "{path} changed while this baseline was made, as by somebody else's; nothing was written",
    remedy="review that change (git diff), then run `clustergate baseline` again",
)


WRITE_THERE = Words(
    "baseline.write-there",
    "{path} is there, and is left as it is",
    remedy="name another file, or move it away",
)
SUITE_TOO_FEW = Words(
    "suite.too-few",
    "{figures:figure has|figures have} no reference: fewer than five sessions have them, or they "
    "differ too much",
    remedy="run the suite on more days",
)
BASELINE_FORM = Words(
    "baseline.form",
    "--json tells of references/SYSTEM.yaml, which --reframe does not write",
    remedy="take --write FILE, or what it prints without",
)
SUITE_UNINDEXED = Words(
    "suite.unindexed",
    "not written are {tests:names}: ReFrame finds no reference by their fixtures or nodes",
    remedy="without --write their tuples are printed",
)


def _of_suite(arguments: argparse.Namespace) -> int:
    """Write or print the references of a suite's sessions; 1 when a figure got none."""
    from clustergate.suites.judging import references_of_suite
    from clustergate.suites.written import as_tuples, as_yaml, is_indexed, unindexed

    if arguments.json:
        raise BadRequest(BASELINE_FORM())
    past = past_named(arguments, {arguments.session})
    wanted = selection.named_cases(arguments)
    known = references_of_suite(past)
    made = {
        (case, figure): one
        for (case, figure), one in known.items()
        if wanted(CaseRecord("", case.check, case.stack, case.partition, {}))
    }
    newest = past.runs[-1].records
    lacking = sum(len(one.samples) for one in newest if wanted(one)) - len(made)
    if lacking > 0:
        print(arguments.invocation.completed(SUITE_TOO_FEW(figures=lacking)), file=sys.stderr)
    path: Path | None = arguments.write
    if path is None:
        print("\n".join(as_tuples(made)))
        return 1 if lacking > 0 else 0
    if without := unindexed(made):
        print(arguments.invocation.completed(SUITE_UNINDEXED(tests=without)), file=sys.stderr)
    indexed = {key: one for key, one in made.items() if is_indexed(key[0])}
    text = as_yaml(indexed, path.name) if indexed else ""
    if path.exists():
        raise BadRequest(WRITE_THERE(path=path))
    if text and not arguments.dry_run:
        store.write_text(path, text)
        print(f"{path} has {counted(len(indexed), 'reference')}; review it")
    elif text:
        print(text, end="")
    return 1 if lacking > 0 or without or not text else 0


def run(arguments: argparse.Namespace) -> int:
    """Write the references, or print what would change; 1 when a figure got none."""
    if arguments.reframe:
        return _of_suite(arguments)
    from clustergate.judge.baselines.of_before import judging_references
    from clustergate.judge.baselines.proposals import make_baseline

    rule = rule_of(arguments)
    site = sites.load(choose_site(arguments.site, sys.stderr).path)
    system = site.name
    # Before it is understood, so that whatever changes it from here on is noticed.
    before = _text_of(references.reference_file(system))
    facts = {partition.fullname: partition.facts for partition in site.partitions}
    known = judging_references(system, facts)
    named = selection.named_cases(arguments)

    lost: set[str] = set()

    def wanted(record: CaseRecord) -> bool:
        where, conditions = record.partition, record.conditions
        of_mode = arguments.mode in (None, conditions.get("mode"))
        if not (named(record) and of_mode and where.partition(":")[0] == system):
            return False
        if "ranks" in conditions and not has_layout(
            site.partitions, record.check, where, conditions
        ):
            lost.add(str(series.key_of(record)))
            return False
        return not conditions.get("settings")

    runs = [*selection.named_runs(arguments)]
    for line in left_out(run.doubt for run in runs):
        print(arguments.invocation.completed(line), file=sys.stderr)
    figures = series.collect(runs, facts, wanted)
    for line in series.copies(figures):
        print(line, file=sys.stderr)
    if not figures:
        raise BadRequest(BASELINE_NO_FIGURE(system=system, folder=store.runs_folder()))
    if lost:
        why = BASELINE_LOST(cases=sorted(lost))
        print(arguments.invocation.completed(why), file=sys.stderr)
    # As a check sees it that judges by them.
    exclusive = exclusive_partitions((one for run in runs for one in run.records), facts)
    nodes = {name: dataclasses.replace(x, exclusive=name in exclusive) for name, x in facts.items()}
    made = make_baseline(figures, known, rule, _acceptance(arguments), nodes)
    # Of a file that holds nothing yet there is nothing to keep.
    base = before if known.document.data else ""
    after = _blessed(base, made) if made.measured or known.document.data else before
    if after != before:
        references.parse_references(after, known.source, every_check())
    if not arguments.dry_run and after != before:
        with writing_baseline():
            if _text_of(known.source) != before:
                raise store.StoreError(CHANGED_MEANWHILE(path=known.source))
            keep_for_baseline(made.runs)
            store.write_text(known.source, after)
    if arguments.json:
        answer = _plain(made, system, known, arguments, changed=after != before)
        print(json.dumps(arguments.invocation.in_json(answer), indent=1))
        return 1 if made.refusals else 0
    if arguments.dry_run:
        print(_difference(before, after, known), end="")
    stream = sys.stderr if arguments.dry_run else sys.stdout
    for line in _summary(made, known, arguments, unchanged=after == before):
        print(arguments.invocation.completed(line), file=stream)
    return 1 if made.refusals else 0


FEW_RUNS = Words(
    "baseline.few-runs",
    "--min-runs {runs}",
    cause="fewer than {fewest} runs do not show their spread",
)
FEWER_RUNS = Words(
    "baseline.fewer-runs",
    "--runs {runs}",
    cause="a baseline needs at least {fewest} runs",
)


def rule_of(arguments: argparse.Namespace) -> Rule:
    """Return the rule with what the options say otherwise; raises :class:`BadRequest`."""
    from clustergate.judge.baselines.proposals import Rule

    usual = Rule()
    fewest = usual.fewest_runs if arguments.min_runs is None else arguments.min_runs
    most = usual.most_runs if arguments.runs is None else arguments.runs
    hours = usual.shortest.total_seconds() / 3600
    if arguments.min_hours is not None:
        hours = arguments.min_hours
    if fewest < usual.fewest_runs:
        raise BadRequest(FEW_RUNS(runs=fewest, fewest=usual.fewest_runs))
    if most < fewest:
        raise BadRequest(FEWER_RUNS(runs=most, fewest=fewest))
    if not 0 <= hours < _LONGEST_HOURS:
        within = {"low": 0, "high": _LONGEST_HOURS, "value": hours}
        raise BadRequest(OPTION_RANGE(option="--min-hours", unit="hours", **within))
    return Rule(fewest, most, datetime.timedelta(hours=hours))


BASELINE_BECAUSE = Words(
    "baseline.because",
    "--accept-worse and --because go together",
    remedy="name the figures, and the reason",
)


def _acceptance(arguments: argparse.Namespace) -> Acceptance:
    from clustergate.judge.baselines.proposals import Acceptance

    because = arguments.because.strip()
    if bool(arguments.accept_worse) != bool(because):
        raise BadRequest(BASELINE_BECAUSE())
    return Acceptance(
        functools.partial(_is_named, arguments.accept_worse),
        because,
        functools.partial(_is_named, arguments.accept_better),
    )


def _is_named(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _text_of(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8")
    return ""


def _blessed(before: str, made: Baseline) -> str:
    """Return a reference file with new references that say who made them today.

    Where nothing else is new it stays as it is.
    """
    from clustergate.judge.baselines.writer import updated

    unblessed = _BLESSED.sub("", before)
    if updated(unblessed, made.measured, made.anchors) == unblessed:
        return before
    by = f"{store.user_name()}, {datetime.date.today()}"
    blessed = [dataclasses.replace(batch, blessed=by) for batch in made.measured]
    return updated(before, blessed, made.anchors)


def _difference(before: str, after: str, known: references.References) -> str:
    name = f"references/{known.source.name}"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{name}" if before else "/dev/null",
        f"b/{name}",
    )
    return "".join(lines)


def _plain(
    made: Baseline,
    system: str,
    known: references.References,
    arguments: argparse.Namespace,
    *,
    changed: bool,
) -> dict[str, Any]:
    of_case, parts = dataclasses.asdict, ("value", "lower", "upper", "unit")
    entries = [
        {**of_case(batch.case), "figure": name, **dict(zip(parts, entry, strict=True))}
        for batch in made.measured
        for name, entry in batch.entries.items()
    ]
    refused = [
        {**of_case(one.case), "figures": list(one.names), "why": str(one.reason)}
        for one in made.refusals
    ]
    return {
        "system": system,
        "file": str(known.source),
        "written": changed and not arguments.dry_run,
        "runs": list(made.runs),
        "references": entries,
        "refused": refused,
        "always_zero": made.silent,
        "left_out": [
            {**of_case(case), "day": day, "why": why}
            for case, of_days in made.left_out.items()
            for day, why in of_days.items()
        ],
        "exit_status": 1 if made.refusals else 0,
    }


# --- for a reader -----------------------------------------------------------------------------


def _summary(
    made: Baseline, known: references.References, arguments: argparse.Namespace, *, unchanged: bool
) -> Iterator[str]:
    if made.drifts and not arguments.dry_run:
        yield "Drift since the last baseline in percent, + is worse:"
        yield _drift_table(made.drifts)
    shown = made.refusals if arguments.all else made.refusals[:_REFUSALS_SHOWN]
    refused = sum(len(refusal.names) for refusal in made.refusals)
    if refused:
        yield f"{counted(refused, 'figure')} without a new reference:"
    yield from (f"  {refusal}" for refusal in shown)
    if left := len(made.refusals) - len(shown):
        yield f"  and {left} more like these (--all)"
    yield from _next(made.refusals)
    if made.silent:
        yield f"{counted(made.silent, 'figure')} always zero, without a reference"
    yield from _left_out(made)
    yield from _changes(made.runs)
    written = sum(len(batch.entries) for batch in made.measured)
    if not unchanged and not written:
        would = "would say" if arguments.dry_run else "says"
        yield f"{known.source} {would} what drifted, and keeps its references; review the change"
    elif unchanged:
        yield f"{known.source} {'is unchanged' if known.source.exists() else 'was not written'}"
    else:
        would = "would get" if arguments.dry_run else "has"
        first, last = made.runs[0], made.runs[-1]
        yield (
            f"{known.source} {would} {counted(written, 'new reference')} from "
            f"{len(made.runs)} runs, {first} to {last}; review the change (git diff; "
            "of a new file after git add -N)"
        )


def _left_out(made: Baseline) -> Iterator[str]:
    """Yield the days that were slow, once for all cases that ran together."""
    days: dict[tuple[str, str, str], str] = {}
    for case, of_case in made.left_out.items():
        for day, why in of_case.items():
            days[day, case.partition, case.effort] = why
    for (day, partition, effort), why in sorted(days.items()):
        yield (
            f"{day} left out of {partition}, {effort}: {why}; if the machine is to stay so, "
            f"measure more such days and start with it: --since {day}"
        )


def _next(refusals: Sequence[Refusal]) -> Iterator[str]:
    """Yield of each mode of which several cases lack runs what measures all of them."""
    missing: dict[str, list[int]] = {}
    for refusal in refusals:
        if refusal.missing:
            mode = refusal.case.effort.partition("+")[0]
            missing.setdefault(mode, []).append(refusal.missing)
    for mode, runs in missing.items():
        if len(runs) > 1:
            cases, times = counted(len(runs), "case"), counted(max(runs), "more time")
            yield f"next: `clustergate check --mode {mode}` {times} for all {cases}"


def _drift_table(drifts: Sequence[Drift]) -> str:
    """Return the drift of every figure: a line per benchmark and metric of a case."""
    lines: dict[tuple[str, str], list[str]] = {}
    for drift in drifts:
        benchmark, _, rest = drift.name.partition(".")
        conditions, _, metric = rest.rpartition(".")
        what = " ".join(word for word in (benchmark, metric) if word)
        lines.setdefault((f"{drift.case.check} {drift.case.stack}", what), []).append(
            " ".join(word for word in (conditions, _signed(drift)) if word)
        )
    rows = [(case, what, ", ".join(figures)) for (case, what), figures in lines.items()]
    out = console.new_console(console.width())
    with out.capture() as captured:
        out.print(console.table(("case", "benchmark", "figures"), rows))
    return captured.get()


def _signed(drift: Drift) -> str:
    from clustergate.judge.history.trends import percent

    text = f"{'+' if drift.worse_by > 0 else '-'}{percent(drift.worse_by).removesuffix(' %')}"
    if drift.refused:
        return f"{text} (refused)"
    before, after = (
        max(abs(end or 0.0) for end in ends)
        for ends in ((drift.before.lower, drift.before.upper), drift.after[1:3])
    )
    return f"{text} (tolerates {after:.0%}, not {before:.0%})" if after > _WIDER * before else text


def _changes(runs: Sequence[str]) -> Iterable[str]:
    changed = changed_between(runs[0], runs[-1]) if runs else []
    return [f"since the run {runs[0]}: {', '.join(changed)}"] if changed else []
