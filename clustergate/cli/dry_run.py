"""``clustergate dry-run``: ReFrame's dry run of every check on every site config."""

from __future__ import annotations

import argparse
import errno
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

from clustergate.benchmarks.registry import every_check, lost_tests, not_loaded
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.core.files.whole import full_disk
from clustergate.core.model import BadRequest, CaseId, ClustergateError
from clustergate.core.notation import counted, listed
from clustergate.core.paths import is_clone, suite_folder
from clustergate.core.reasons import Words
from clustergate.judge.references.lookup import references_of
from clustergate.launch.dialects import Layout
from clustergate.machine.processes import capture
from clustergate.run import reframe
from clustergate.sites import choice, modes
from clustergate.sites import configs as sites
from clustergate.sites.description import Partition
from clustergate.sites.layouts import layout_on_partition

DESCRIPTION = "Let ReFrame write every job script of every site config and run none."


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "--site NAME", "only this site config")
    option(parser, "--mode", "quick, smoke, maintenance or acceptance", default="smoke")


def run(arguments: argparse.Namespace) -> int:
    """Dry-run one site config, or all and a clone's template; say how many cases each has."""
    mode = modes.mode_named(arguments.mode)
    files = [choice.find(arguments.site)] if arguments.site else choice.site_files()
    if is_clone() and not arguments.site:
        files = [*files, suite_folder("site_configs") / "template.py"]
    # ReFrame runs one system in a process of its own.
    with Progress(arguments.invocation) as say, ThreadPoolExecutor(os.cpu_count()) as pool:
        say(f"writing the job scripts of {counted(len(files), 'site config')}")
        failed: list[ClustergateError] = []
        for path, cases in zip(files, pool.map(_tried, files, repeat(mode)), strict=True):
            if isinstance(cases, int):
                print(f"{path.name}: {cases} cases", flush=True)
            else:
                failed.append(cases)
    for error in failed[1:]:
        print(f"clustergate: {arguments.invocation.completed(error)}", file=sys.stderr)
    if failed:
        raise failed[0]
    return 0


def _tried(site: Path, mode: modes.Mode) -> int | ClustergateError:
    """Return what became of a site config: the others go on without it."""
    try:
        return dry_run(site, mode)
    except ClustergateError as error:
        return error


DRY_RUN_FAILED = Words("dry-run.failed", "ReFrame's dry run {ended}", cause="{why}")
DRY_RUN_DIFFERS = Words(
    "dry-run.differs",
    "the dry run differs from the site config",
    cause="{faults}",
)


def dry_run(site: Path, mode: modes.Mode) -> int:
    """Return how many cases the dry run of a site config wrote.

    A system whose first partition names a mode has the cases of that one, others of all checks.
    Raises :class:`BadRequest` when ReFrame fails, writes other cases than the site config asks
    for, or jobs that ask the scheduler for other nodes than their ranks need, and with the line of
    a reference that is wrong, though no dry run needs them.
    """
    for why in (*not_loaded().values(), *lost_tests().values()):
        raise ClustergateError(why)
    described = sites.load(site)
    references_of(described.name)
    if own := described.partitions[0].mode:
        mode = modes.mode_named(own, described.checks)
    checks = mode.checks if own else [*every_check(), modes.SCREEN_CHECK]
    expected = modes.expected_cases(checks, described.partitions, mode)
    options = modes.reframe_options(mode, checks)
    environment = {**reframe.environment_for(site, described), sites.LOG_LEVEL: "info"}

    def write(partition: Partition) -> Path:
        report = Path(scratch) / f"{partition.name}.json"
        only = [*options, f"--system={partition.fullname}"]
        command = reframe.command(only, report=report, action="--dry-run")
        ended = capture(command, env=environment)
        if ended.returncode:
            if os.strerror(errno.ENOSPC) in ended.stdout + ended.stderr:
                raise ClustergateError(full_disk("while ReFrame wrote job scripts"))
            why = reframe.last_error((ended.stdout + ended.stderr).splitlines())
            how = reframe.how_it_ended(ended.returncode)
            raise BadRequest(DRY_RUN_FAILED(at=str(site), ended=how, why=why))
        return report

    # ReFrame works on one core.
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = [*pool.map(write, described.partitions)]
        written = [one.identity for each in reports for one in reframe.read_outcomes(each, 0)]
        cases = [c for each in filter(Path.is_file, reports) for c in reframe.reported_cases(each)]
    faults = [*case_differences(expected, written), *_script_faults(cases, described.partitions)]
    if faults:
        raise BadRequest(DRY_RUN_DIFFERS(at=str(site), faults="; ".join(faults)))
    return len(written)


def case_differences(expected: Iterable[CaseId], written: Iterable[CaseId]) -> Iterator[str]:
    """Yield a sentence per partition whose written cases differ from the expected ones."""
    wanted, present = Counter(expected), Counter(written)
    for partition in dict.fromkeys(key.partition for key in (*wanted, *present)):
        differences = {"lacks": wanted - present, "also has": present - wanted}
        parts = [
            f"{word} {sum(these.values())} ({named})"
            for word, difference in differences.items()
            if (these := {k: n for k, n in difference.items() if k.partition == partition})
            and (named := listed([_case_text(key) for key in these]))
        ]
        if parts:
            total = sum(n for key, n in wanted.items() if key.partition == partition)
            yield f"of {total} cases {partition} {' and '.join(parts)}"


def _case_text(key: CaseId) -> str:
    return " ".join([key.check, *(value for _, value in key.parameters), "with", key.stack])


def _script_faults(
    cases: Iterable[Mapping[str, Any]], partitions: Sequence[Partition]
) -> Iterator[str]:
    """Yield, per partition, the jobs that request other nodes than their launches need."""
    described = {partition.fullname: partition for partition in partitions}
    faults: dict[str, list[str]] = {}
    for case in cases:
        where = f"{case['system']}:{case['partition']}"
        script = reframe.job_script(case)
        if case["result"] != "pass" or "placement" not in case or not script.is_file():
            continue
        how = (case["ranks"], case["placement"], case["cores_per_rank"])
        layout = layout_on_partition(*how, described[where])
        text = script.read_text(encoding="utf-8")
        sentences = [f"{case['name']}: {one}" for one in complaints(text, layout)]
        faults.setdefault(where, []).extend(sentences)
    yield from (f"{where}: {listed(sentences)}" for where, sentences in faults.items() if sentences)


# Where Slurm, PBS, LSF and OAR are told the nodes; the last word of several holds.
_NODES = re.compile(
    r"^#(?:SBATCH +(?:--nodes[= ]|-N *)|PBS +-l *select=|BSUB +-nnodes +|OAR +-l +/host=)(\d+)",
    re.MULTILINE,
)
_TASKS = re.compile(r"^#SBATCH +(?:--ntasks[= ]|-n *)(\d+)", re.MULTILINE)
_PER_NODE = re.compile(
    r"^#(?:SBATCH +--ntasks-per-node[= ]|PBS +-l *select=\d+:mpiprocs=|OAR +-l +/host=\d+/core=)"
    r"(\d+)",
    re.MULTILINE,
)


def complaints(script: str, layout: Layout) -> Iterator[str]:
    """Yield what a job's script asks for that is not what its launch needs.

    Schedulers that are told in other words are not looked at.
    """
    asked = {
        name: int(numbers[-1])
        for name, pattern in (("nodes", _NODES), ("tasks", _TASKS), ("per node", _PER_NODE))
        if (numbers := pattern.findall(script))
    }
    ranks = f"{counted(layout.ranks, 'rank')}, {layout.ranks_per_node} per node"
    needs = f"{ranks}, need {layout.nodes}"
    if (nodes := asked.get("nodes", layout.nodes)) != layout.nodes:
        yield f"it requests {counted(nodes, 'node')}, but {needs}"
    if "#SBATCH" in script and not asked.keys() & {"nodes", "per node"}:
        yield f"it does not say how many nodes, but {needs}"
    if (per_node := asked.get("per node", layout.ranks_per_node)) != layout.ranks_per_node:
        yield f"it requests {counted(per_node, 'task')} per node, but {needs}"
    tasks = asked.get("tasks", layout.tasks_to_ask_for)
    if not layout.ranks <= tasks <= layout.tasks_to_ask_for:
        yield f"it requests {counted(tasks, 'task')}, but {needs}"
