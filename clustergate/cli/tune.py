"""``clustergate tune hpl``: find the fastest HPL configuration of this machine and keep it."""

from __future__ import annotations

import argparse
import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clustergate import store
from clustergate.benchmarks.hpl.sizing import DEFAULT_MEMORY_FRACTION, hpl_problem_size
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_site, taken
from clustergate.history.listing import keep_made
from clustergate.launching.ending import interruptible
from clustergate.machine.configuration import described, personal_files
from clustergate.machine.node import Node, read_node
from clustergate.machine.nominal import nominal_gflops_per_core
from clustergate.model import ClustergateError
from clustergate.paths import state_dir
from clustergate.sites import configs as sites
from clustergate.sites.description import Site
from clustergate.stacks.manifest import Manifest, read_manifest
from clustergate.tuning import runs
from clustergate.tuning.file import HplTuning, model_of, read_tunings, tuning_file, write_tunings
from clustergate.tuning.search import STEP, Limits, Outcome, Request, Worth, search
from clustergate.tuning.space import (
    KERNELS,
    NB_FINE,
    Configuration,
    default_configuration,
    space_of,
)
from clustergate.wording.quantities import parse_duration

DESCRIPTION = """\
Find the fastest HPL configuration of this node for each MPI stack of its site config: BLAS kernels,
ranks and threads, NB and HPL's options, and the gain of each choice. The result is written to a
file beside the site config. The budget is the time for all stacks together. On a cluster, run it
inside a job on one node."""

SHORTEST_SECONDS = 20.0
"""For one stack: less does not even show how fast the machine is."""

SHORTEST_TRIAL = 0.03
LONGEST_TRIAL = 0.5
"""In seconds, of DGEMM and of multiply-adds."""

CAUTIOUS_GFLOPS_PER_CORE = 5.0
"""First guess where neither DGEMM nor the data sheet gives a rate."""

EXPECTED_EFFICIENCY = 0.7
"""Of DGEMM or of the nominal peak: a first guess for HPL."""

FMA_PEAK = "the FMA peak"

# In the folder of the run.
_FOLDER = "tuning"

NOISY = 0.05
"""Spread of two runs of the same configuration, as a fraction, above which the node is busy."""


class Interrupted(ClustergateError):
    """The user interrupted the search before it had a result."""

    exit_status = 130


@dataclass(frozen=True)
class Ceilings:
    """What HPL is compared with, in Gflop/s on all cores; None, with the reasons in ``missing``."""

    dgemm: float | None
    fma_peak: float | None
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuned:
    """One stack's result."""

    manifest: Manifest
    outcome: Outcome
    ceilings: Ceilings
    kernels: runs.Kernels | None
    seconds: float


def add_options(parser: argparse.ArgumentParser) -> None:
    option(parser, "benchmark", "what to tune", choices=["hpl"])
    add_site(parser)
    option(parser, "--stack NAME", "only this stack (default: all of the site)")
    option(parser, "--budget TIME", "such as 90s or 1h; default: %(default)s", default="10m")
    option(parser, "--output FILE", "default: beside the site config")


def run(arguments: argparse.Namespace) -> int:
    """Tune HPL for the stacks, print the results, and write them for the checks."""
    site = taken(arguments.site).path
    path = Path(arguments.output) if arguments.output else tuning_file(site)
    before = read_tunings(path)
    described_site = sites.load(site)
    manifests = _manifests(described_site, arguments.stack)
    seconds = parse_duration(arguments.budget) / len(manifests)
    if seconds < SHORTEST_SECONDS:
        facts = {"seconds": seconds, "shortest": SHORTEST_SECONDS}
        raise ClustergateError("tune.short-budget", budget=arguments.budget, **facts)
    node = read_node()
    cores = _cores(node, described_site)
    results = {}
    run_id = store.new_run_id(datetime.datetime.now().astimezone())
    where = store.run_folder(run_id) / _FOLDER
    try:
        with interruptible(), Progress() as say:
            keep_made(run_id, "tune", described_site.name)
            store.make_folder(where)
            for manifest in manifests:
                preload = sites.preload_of(described_site, manifest.stack)
                runner = runs.HplRunner(manifest, where, preload)
                results[manifest.stack] = _tune(runner, node, cores, seconds, say)
    except KeyboardInterrupt:
        left = "is unchanged" if path.exists() else "was not written"
        raise Interrupted("tune.interrupted", path=path, left=left) from None
    today = datetime.date.today().isoformat()
    model = model_of(node)
    tunings = {name: _tuning(result, today, model, cores) for name, result in results.items()}
    for result in results.values():
        print("\n".join(_report(result, model, cores)), end="\n\n")
    write_tunings(path, {**before, **tunings})
    print("".join(f"{line}\n" for line in described(personal_files(Path.home()))), end="")
    print(f"launches: {where}")
    print(f"written to {path}")
    return 0


def _manifests(site: Site, only: str | None) -> list[Manifest]:
    stacks = site.stacks_named([] if only is None else [only])
    manifests = [read_manifest(state_dir(), stack.name) for stack in stacks]
    available = [manifest for manifest in manifests if not manifest.unavailable]
    if not available:
        why = "; ".join(manifest.unavailable for manifest in manifests)
        raise ClustergateError("tune.no-stack", why=why)
    return available


def _cores(node: Node, site: Site) -> int:
    cores = node.usable_cores
    if cores is None:
        raise ClustergateError("tune.no-cores")
    known = {partition.cores_per_node for partition in site.partitions}
    if cores not in known:
        raise ClustergateError("node.other", cores=cores, known=", ".join(map(str, sorted(known))))
    return cores


# --- one stack --------------------------------------------------------------------------------


def _tune(
    runner: runs.HplRunner, node: Node, cores: int, seconds: float, say: Callable[[str], None]
) -> Tuned:
    start, manifest = time.monotonic(), runner.manifest
    name = f"{manifest.mpi_name} {manifest.mpi_version}"
    say(f"{name}: measuring DGEMM and the FMA peak")
    trial = _trial_seconds(seconds, cores)
    kernels = None
    by_block: dict[tuple[str, int], float] = {}
    if not manifest.program("dgemm").unavailable:
        cpu = node.cpus_allowed[0]
        kernels = runs.find_kernels(runner, cpu, trial)
        names = ("", *kernels.worthwhile())
        by_block = runs.dgemm_by_block(runner, cpu, names, trial)
    first = _ceilings(runner, default_configuration(cores), trial)
    measuring = time.monotonic() - start
    space = space_of(
        cores,
        kernels.worthwhile() if kernels else (),
        huge_pages=runs.huge_pages_on_demand(),
        keep_memory=runs.memory_can_be_kept(),
        dgemm_gflops={key: gflops * cores for key, gflops in by_block.items()},
    )
    per_core = max(kernels.gflops.values()) if kernels else nominal_gflops_per_core()
    limits = Limits(
        # The ceilings are measured once more at the end, in half of that time.
        seconds=max(SHORTEST_SECONDS / 2, seconds - 1.5 * measuring),
        n_max=_largest_order(node, cores),
        gflops=(per_core or CAUTIOUS_GFLOPS_PER_CORE) * EXPECTED_EFFICIENCY * cores,
    )
    searching = search(space, limits)
    try:
        request = next(searching)
        while True:
            say(_step(request))
            request = searching.send(runner.measure(request))
    except StopIteration as stop:
        outcome: Outcome = stop.value
    say(f"{name}: measuring DGEMM and the FMA peak again")
    last = _ceilings(runner, outcome.best, trial)
    same = (outcome.best.nb, outcome.best.kernel) == (space.start.nb, space.start.kernel)
    highest = replace(
        last,
        dgemm=_higher(first.dgemm if same else None, last.dgemm),
        fma_peak=_higher(first.fma_peak, last.fma_peak),
    )
    return Tuned(manifest, outcome, highest, kernels, time.monotonic() - start)


def _trial_seconds(seconds: float, cores: int) -> float:
    """Return the seconds of one DGEMM trial that keep all of them to a few % of the budget."""
    # The ceilings measure each core alone and then all at once, five times, of two kinds, twice.
    trials = 2 * 2 * runs.CEILING_TRIALS * (cores + 1) + 4 * runs.TRIALS * len(NB_FINE)
    return min(LONGEST_TRIAL, max(SHORTEST_TRIAL, 0.06 * seconds / trials))


def _ceilings(runner: runs.HplRunner, best: Configuration, trial: float) -> Ceilings:
    manifest = runner.manifest
    absent = [name for name in ("dgemm", "node_peaks") if manifest.program(name).unavailable]
    dgemm = fma_peak = None
    if "dgemm" not in absent:
        dgemm = runs.dgemm_gflops(runner, best, trial)
    if "node_peaks" not in absent:
        fma_peak = runs.fma_gflops(runner, trial)
    reasons = (
        f"{name} is not available here: {manifest.program(name).unavailable}" for name in absent
    )
    return Ceilings(dgemm, fma_peak, tuple(reasons))


def _higher(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _largest_order(node: Node, cores: int) -> int:
    bound = node.memory_bound(cores)
    if bound is None:
        raise ClustergateError("tune.no-memory")
    return hpl_problem_size(bound.available_bytes, DEFAULT_MEMORY_FRACTION, STEP)


def _step(request: Request) -> str:
    count = len(request.configurations)
    what = f"{count} candidates in turn" if count > 1 else "one run"
    times = f", {request.rounds} times" if request.rounds > 1 else ""
    return f"{request.purpose}: {what} at N={request.n}{times}"


def _tuning(tuned: Tuned, date: str, model: str, cores: int) -> HplTuning:
    best, outcome = tuned.outcome.best, tuned.outcome
    return HplTuning(
        date=date,
        build_key=tuned.manifest.build_key,
        node_model=model,
        cores=cores,
        ranks=best.ranks,
        cores_per_rank=best.cores_per_rank,
        p=best.p,
        q=best.q,
        n=outcome.n,
        gflops=round(outcome.gflops, 3),
        dgemm_gflops=_rounded(tuned.ceilings.dgemm),
        fma_peak_gflops=_rounded(tuned.ceilings.fma_peak),
        environment=runs.rank_environment(tuned.manifest, best),
        **best.options(),
    )


def _rounded(gflops: float | None) -> float | None:
    return None if gflops is None else round(gflops, 3)


# --- output -----------------------------------------------------------------------------------


def _report(tuned: Tuned, model: str, cores: int) -> Iterator[str]:
    outcome, manifest = tuned.outcome, tuned.manifest
    blas = f"{manifest.blas.name} {manifest.blas.version}" if manifest.blas else "no BLAS known"
    yield (
        f"HPL {manifest.program('xhpl').version} with {manifest.mpi_name} {manifest.mpi_version} "
        f"and {blas} on {cores} cores of {model}, tuned in {tuned.seconds:.0f} s"
    )
    yield f"  {_against_ceilings(outcome.gflops, tuned.ceilings, outcome.best.nb)}"
    yield "  by N: " + ", ".join(f"{rate:.1f} at {n}" for n, rate in outcome.rates.items())
    yield from (f"  {reason}" for reason in tuned.ceilings.missing)
    yield ""
    start = default_configuration(cores)
    space = space_of(cores, huge_pages=True, keep_memory=True)
    yield "best configuration (* is not HPL's default)"
    kernel = outcome.best.kernel or (tuned.kernels.own if tuned.kernels else "its own")
    rows = [
        ("*" if outcome.best.kernel else "", KERNELS, kernel),
        *(
            ("" if c.value(outcome.best) == c.value(start) else "*", c.name, c.label(outcome.best))
            for c in space.choices
            if c.matters(outcome.best)
        ),
    ]
    yield from _table(rows)
    yield ""
    yield "gain of each choice, the others unchanged, with 95 % intervals"
    worths = [*outcome.worths, *([outcome.total] if outcome.total else [])]
    yield from _table(
        [
            ("choice", "chosen", "gain", "interval", "over", "at N"),
            *map(_worth_row, worths),
            *_kernel_rows(tuned.kernels, outcome.best.kernel),
        ]
    )
    yield from (f"did not run: {reason}" for reason in outcome.refused)
    yield from (f"did not run: {reason}" for reason in (tuned.kernels or _NO_KERNELS).refused)
    if outcome.spread > NOISY:
        yield (
            f"this machine was busy: two runs of the same configuration differed by "
            f"{100 * outcome.spread:.0f} %; tune again when nothing else runs here"
        )
    if outcome.not_tried:
        yield f"not tried, out of time: {'; '.join(outcome.not_tried)}"


_NO_KERNELS = runs.Kernels("", {})


def _against_ceilings(gflops: float, ceilings: Ceilings, nb: int) -> str:
    parts = [f"{gflops:.1f} Gflop/s"]
    if ceilings.dgemm is not None:
        share = 100 * gflops / ceilings.dgemm
        parts.append(f"{share:.1f} % of DGEMM at k={nb} ({ceilings.dgemm:.1f})")
    if ceilings.fma_peak is not None:
        share = 100 * gflops / ceilings.fma_peak
        parts.append(f"{share:.1f} % of {FMA_PEAK} ({ceilings.fma_peak:.1f})")
    return ", ".join(parts)


def _worth_row(worth: Worth) -> tuple[str, ...]:
    gain = worth.gain
    low = "" if gain.low is None else _percent(gain.low)
    high = "" if gain.high is None else _percent(gain.high)
    n = f"{worth.n}, predicted" if worth.predicted else str(worth.n)
    return worth.choice, worth.chosen, _percent(gain.value), f"{low} to {high}", worth.against, n


def _kernel_rows(kernels: runs.Kernels | None, chosen: str) -> Iterator[tuple[str, ...]]:
    if kernels is None:
        return
    name = chosen or kernels.own
    tried = {name, *kernels.worthwhile()}
    for other, gflops in sorted(kernels.gflops.items(), key=lambda item: -item[1]):
        if other not in tried:
            gain = _percent(kernels.gflops[name] / gflops - 1)
            yield KERNELS, name, gain, "of DGEMM alone", other, ""


def _percent(fraction: float) -> str:
    return f"{100 * fraction:+.1f} %"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
