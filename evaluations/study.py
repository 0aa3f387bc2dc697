"""A run of an evaluation: what is to be launched, what was, and the package that it ends in.

Its state is kept beside the runs, so that what was interrupted goes on where it was.
"""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clustergate.core import store
from clustergate.core.files.stored import decode, encode
from clustergate.core.files.whole import read_json
from clustergate.core.model import CaseRecord
from clustergate.core.notation import counted
from clustergate.core.paths import state_dir
from clustergate.stacks.manifest import ManifestError, manifest_path, read_manifest
from clustergate.stats.rounds import FEWEST
from evaluations import papers
from evaluations.evidence import case_trials
from evaluations.facts import Paper
from evaluations.plan import Part, stacks_of
from evaluations.sheet import Conclusion

# Of a conclusion that says how many more launches would probably decide, so many are made at least,
# and so many before it is asked again.
_FEWEST_MORE, _MOST_AT_ONCE = 1, 5


@dataclass(frozen=True)
class Step:
    """A part of the plan as a run: ``run`` is empty until it was begun."""

    part: Part
    run: str = ""
    ended: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Study:
    """What an evaluation is asked for, and its steps.

    ``roles`` are the stacks that stand for systems of the paper.
    """

    paper: str
    stacks: tuple[str, ...]
    roles: Mapping[str, str]
    full: bool
    steps: Sequence[Step] = field(default_factory=tuple)

    @property
    def runs(self) -> list[str]:
        """Return the runs that were begun."""
        return [step.run for step in self.steps if step.run]

    @property
    def seconds(self) -> float:
        """Return what its runs took."""
        return sum(step.seconds for step in self.steps)

    def with_step(self, k: int, **changed: Any) -> Study:
        """Return the same with a changed step."""
        steps = list(self.steps)
        steps[k] = replace(steps[k], **changed)
        return replace(self, steps=tuple(steps))


def _state(paper: str) -> Path:
    return store.runs_folder().parent / f"evaluation-{paper}.json"


def save_state(study: Study) -> None:
    """Keep how far a study is."""
    store.write_json(_state(study.paper), encode(study))


def load_state(paper: str) -> Study | None:
    """Return the last study of a paper, None where there is none that can be read."""
    try:
        return decode(read_json(_state(paper)), Study)
    except (OSError, ValueError):
        return None


def steps_of(parts: Sequence[Part]) -> list[Step]:
    """Return the steps of a plan: what is launched often is launched in rounds, all stacks in each.

    So stacks are compared by launches of the same minutes, and what disturbs one disturbs the
    others. The gate comes first; what no conclusion asks for is launched less often, and last.
    """
    launches = [int(str(part.settings.get("launches", 1))) for part in parts]
    rounds = [
        Step(replace(part, settings={**part.settings, "launches": 1}, is_round=True))
        for k in range(max(launches))
        for part, count in zip(parts, launches, strict=True)
        if k < count >= FEWEST
    ]
    others = [part for part, count in zip(parts, launches, strict=True) if count < FEWEST]
    gates = [Step(part) for part in others if part.gates]
    return [*gates, *rounds, *(Step(part) for part in others if not part.gates)]


def second_round(steps: Sequence[Step]) -> int:
    """Return the place of the step with which the second round ends, -1 where there is none."""
    rounds = [(k, step.part) for k, step in enumerate(steps) if step.part.is_round]
    places = [[k for k, part in rounds if part == one] for _, one in rounds]
    return max((of[1] for of in places if len(of) > 1), default=-1)


def more_rounds(
    steps: Sequence[Step], conclusions: Sequence[Conclusion], check_of: Mapping[str, str]
) -> list[Step]:
    """Return the steps that would probably decide or contradict what is not, none where none would.

    They repeat those rounds of which such a conclusion asks: ``check_of`` tells by which check a
    benchmark was measured.
    """
    asked: dict[tuple[str, str], int] = {}
    for one in conclusions:
        further = [d.further for d in one.here if d.further]
        leaves = one.predicate.here.leaves if one.predicate.here and further else ()
        for figure in (leaf.figures[0] for leaf in leaves if leaf.figures):
            key = (check_of.get(figure.benchmark, ""), figure.conditions.get("mode", ""))
            asked[key] = max(asked.get(key, _FEWEST_MORE), *further)
    found = []
    rounds: list[Part] = []
    for step in steps:
        if step.part.is_round and step.part not in rounds:
            rounds.append(step.part)
    for part in rounds:
        # Only conclusions on another mode than the paper's name it.
        wanted = [
            count
            for (check, mode), count in asked.items()
            if mode == part.mode and check and check in (part.checks or (check,))
        ]
        found += [Step(part)] * min(max(wanted, default=0), _MOST_AT_ONCE)
    return found


def steps_for_disturbed_trials(
    steps: Sequence[Step], cases: Mapping[str, Sequence[CaseRecord]]
) -> list[Step]:
    """Return the parts of which a stack has single trials of disturbed launches alone.

    They are drawn one by one, and say so; of rounds there are many. ``cases`` are those of the
    runs, by their names.
    """
    found: list[Step] = []
    for part in [step.part for step in steps if not step.part.is_round]:
        if part in [one.part for one in found]:
            continue
        records = [one for step in steps if step.part == part for one in cases.get(step.run, ())]
        trials = [
            (record.stack, one["disturbed"]) for record in records for one in case_trials(record)
        ]
        if {stack for stack, _ in trials} - {
            stack for stack, is_disturbed in trials if not is_disturbed
        }:
            found.append(Step(part))
    return found


def write_package(study: Study, paper: Paper, page: str, told: str, citation: str) -> Path:
    """Write what can be cited: page, text, data of the runs, locks of the stacks; return where.

    It is a folder below the results, and an archive of it beside it.
    """
    folder = store.runs_folder().parent / "evaluations" / f"{paper.id}-{study.runs[0]}"
    shutil.rmtree(folder, ignore_errors=True)
    store.make_folder(folder)
    store.write_text(folder / "index.html", page)
    store.write_text(folder / "report.txt", told)
    store.write_text(folder / "citation.bib", citation)
    store.write_json(folder / "study.json", encode(study))
    store.write_text(folder / paper.source.name, paper.text)
    if not paper.is_study:
        # To be read: what decides the conclusions of a paper is never taken from a package.
        conclusions = papers.source_of(paper.id)
        store.write_text(folder / conclusions.name, conclusions.read_text(encoding="utf-8"))
    stacks = {record.stack for run in study.runs for record in store.read_cases(run)}
    for run in study.runs:
        store.copy_run(run, folder / "runs")
    for stack in sorted(stacks):
        try:
            read_manifest(state_dir(), stack)
        except ManifestError:
            continue
        text = manifest_path(state_dir(), stack).read_text(encoding="utf-8")
        store.write_text(folder / "locks" / f"{stack}.json", text)
    with tarfile.open(folder.with_suffix(".tar.gz"), "w:gz") as archive:
        archive.add(folder, folder.name)
    return folder


def repeat_lines(
    study: Study, paper: Paper, stacks_here: Sequence[str], before: str, options: Sequence[str]
) -> str:
    """Return the lines that say how to repeat a study, and whether its own file is all it takes.

    ``stacks_here`` are those of the site; ``before`` and ``options`` stood before the command and
    behind its two dashes.
    """
    words = [f"--as {system}={stack}" for system, stack in study.roles.items()]
    if set(study.stacks) != set(stacks_of(paper, stacks_here, study.roles)):
        words += [f"--stack {name}" for name in study.stacks]
    words += ["--full"] if study.full else []
    words += ["--", *options] if options else []
    name = paper.source.name if paper.is_study else paper.id
    told = f"repeat it: {before}{' '.join(['clustergate evaluation run', name, *words])}\n"
    if not paper.is_study:
        return told
    if words or before:
        return f"{told}{name} alone does not repeat it: write into it what stands beside its name\n"
    return f"{told}{name} alone repeats it\n"


def bibtex(paper: Paper, study: Study, version: str) -> str:
    """Return the entry by which the package can be cited; its authors are those of a study."""
    first, *others = study.runs
    title = paper.title or paper.about
    if not paper.is_study:
        title = f"Evaluation {paper.id} repeated: {paper.about}"
    author = f"  author = {{{paper.authors}}},\n" if paper.is_study and paper.authors else ""
    last = f" to {others[-1]}" if others else ""
    return (
        f"@misc{{clustergate-{paper.id}-{first},\n"
        f"{author}"
        f"  title = {{{title}}},\n"
        f"  year = {{{first[:4]}}},\n"
        f"  note = {{clustergate {version}, {counted(len(study.runs), 'run')}: {first}{last}}},\n"
        "}\n"
    )
