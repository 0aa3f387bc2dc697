"""The launches of a screening, for a stack that is on disk. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.hpl import sizing
from clustergate.benchmarks.imb.command import SIZES_FILE, ImbSettings, imb_arguments, sizes_file
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Words
from clustergate.launch.dialects import HERE, LaunchRoute, Layout, launch_options, srun_options
from clustergate.launch.plan import Contender
from clustergate.launch.reading import expected_of
from clustergate.launch.watchdog import Patience
from clustergate.machine.node import SCRIPT
from clustergate.sites.description import Partition
from clustergate.stacks.manifest import Manifest
from clustergate.studies.screen.measures import LARGE_BYTES, SMALL_BYTES
from clustergate.studies.screen.plan import CPUS, EACH, HOSTFILE, NODES, START, STATES, TWO

PEAK_EFFORT = ("--seconds", "0.1", "--trials", "3", "--together", "1")
"""How long the raw kernels of a node run, wherever they are launched on it alone."""
# Of a pair: some tenths of a second of each size, whatever the network.
_REPETITIONS, _VOLUME_MB, _SECONDS_PER_SIZE = 1000, 400, 0.5
# Reaching a node, starting ranks, and a slow one's share, beside what a program itself takes.
_STARTING_S = 60.0
_HPL_EFFICIENCY = 0.7
# A node that is so many times slower than expected is found slow; one beyond that has failed.
_PATIENCE = 8.0
# The node says itself, into the job's folder, what it is like, then which one it is and when it is
# ready; launchers pass words on that hold no other quotes. It waits for the others: the job's first
# node needs no ssh, and would measure while it starts their launches and they are logged in to. A
# clock that is far behind holds it for ten seconds.
_ON_HOST = (
    f'sh "{SCRIPT}" / "{STATES}" || true; echo "$(uname -n) $(date +%s)"; looks=0; '
    f'while [ "$(date +%s)" -lt "{START}" ] && [ "$looks" -lt 100 ]; '
    'do sleep 0.1; looks=$((looks + 1)); done; exec "$0" "$@"'
)


def usual_s(hpl_seconds: float) -> float:
    """Return what a launch takes that runs HPL for so long on a sound node, in seconds."""
    return _STARTING_S + hpl_seconds


def patience_s(hpl_seconds: float) -> float:
    """Return after how many seconds a launch that runs HPL for so long has failed."""
    return _STARTING_S + _PATIENCE * hpl_seconds


def node_contenders(
    manifest: Manifest,
    partition: Partition,
    hpl_seconds: float,
    exports: Mapping[str, str],
    pmi: str | None = None,
) -> list[Contender]:
    """Return what runs on a node alone: its peaks, and HPL of so many seconds on all its cores.

    No HPL for 0 seconds. The launcher reaches the node of a hostfile over ssh, and takes the
    variables ``exports`` there; unless ``pmi`` is a word for srun, empty for the usual one of the
    stack. Raises ClustergateError for a stack without one of the programs.
    """
    cores = partition.cores_per_node
    once = _launcher(manifest, Layout(1, 1, bind=False), exports, pmi)
    contenders = [_peaks(manifest, exports, once, [], 1.5 * _STARTING_S)]
    if not hpl_seconds:
        return contenders
    layout = Layout(cores, cores, bind=partition.bind_to_cores)
    p, q = sizing.process_grid(cores)
    rate = partition.nominal_gflops_per_core * cores * _HPL_EFFICIENCY
    n = sizing.choose_problem_size(
        partition.memory_bytes_per_node, p, q, memory_fraction=0.5, seconds=hpl_seconds, gflops=rate
    )
    text = sizing.render_hpl_dat(sizing.HplInput(n_values=(n,), p_values=(p,), q_values=(q,)))
    expected_s = sizing.predict_hpl_seconds(n, rate)
    hpl = Contender(
        name="hpl",
        launcher=_launcher(manifest, layout, exports, pmi),
        program=[_program(manifest, "xhpl")],
        proof_library=manifest.proof_library,
        environment=exports,
        seconds=patience_s(expected_s),
        patience=_patience(layout, patience_s(expected_s)),
        inputs={"HPL.dat": text, "hpccinf.txt": text},
        expected=replace(expected_of(manifest, layout), by_srun=pmi is not None),
        on=EACH,
    )
    return [*contenders, hpl]


def core_contenders(manifest: Manifest, exports: Mapping[str, str]) -> list[Contender]:
    """Return what runs on one core of the job's own node."""
    return [_peaks(manifest, exports, [], ["--cores", CPUS], _STARTING_S)]


def _peaks(
    manifest: Manifest,
    exports: Mapping[str, str],
    launcher: Sequence[str],
    options: Sequence[str],
    seconds: float,
) -> Contender:
    program = ["sh", "-c", _ON_HOST, _program(manifest, "node_peaks"), *options, *PEAK_EFFORT]
    return Contender(
        "peaks", launcher, program, "", exports, proves=False, seconds=seconds, on=EACH
    )


def _patience(layout: Layout, limit_s: float) -> Patience | None:
    """Return how long ranks may wait; one that computes may do so until the limit."""
    call_s = Benchmark.longest_call_s
    return Patience.of(layout.ranks, layout.nodes, call_s=call_s, computing_s=limit_s)


def pair_contender(
    manifest: Manifest,
    exports: Mapping[str, str],
    *,
    cores: bool,
    bind: bool,
    pmi: str | None = None,
) -> Contender:
    """Return what runs between two nodes, or between two cores of the job's own node.

    ``exports`` and ``pmi`` are those of :func:`node_contenders`. Raises
    :class:`ClustergateError` for a stack without IMB-MPI1.
    """
    # On two cores the kernel gives one to each rank; nothing else may bind them.
    layout = Layout(2, 2, bind=False) if cores else Layout(2, 1, bind=bind)
    launcher = _launcher(manifest, layout, None if cores else exports, pmi)
    settings = ImbSettings(
        benchmarks=["PingPong"],
        smallest_group=2,
        sizes=(SMALL_BYTES, LARGE_BYTES),
        repetitions=_REPETITIONS,
        volume_mb=_VOLUME_MB,
        seconds=_SECONDS_PER_SIZE,
    )
    return Contender(
        name="pingpong",
        launcher=["taskset", "-c", CPUS, *launcher] if cores else launcher,
        program=[_program(manifest, "IMB-MPI1"), *imb_arguments(settings)],
        proof_library=manifest.proof_library,
        environment=exports,
        seconds=_STARTING_S,
        patience=_patience(layout, _STARTING_S),
        inputs={SIZES_FILE: sizes_file(settings.sizes)},
        # The ranks of two cores share both, and the kernel gives one to each.
        expected=replace(
            expected_of(manifest, layout), own_cores=not cores, by_srun=pmi is not None
        ),
        on=TWO,
    )


CANNOT_SCREEN = Words(
    "stack.cannot-screen",
    "{stack} cannot screen",
    cause="{program} is unavailable here ({why})",
    remedy="use another stack",
)


def _program(manifest: Manifest, name: str) -> str:
    program = manifest.program(name)
    if program.unavailable:
        raise ClustergateError(
            CANNOT_SCREEN(stack=manifest.stack, program=name, why=program.unavailable)
        )
    return program.path


def _launcher(
    manifest: Manifest, layout: Layout, exports: Mapping[str, str] | None, pmi: str | None
) -> list[str]:
    if exports is None:
        return [manifest.launcher, *launch_options(manifest.dialect, layout, HERE)]
    if pmi is not None:
        return ["srun", f"--nodelist={NODES}", *srun_options(manifest.dialect, layout, pmi)]
    way = LaunchRoute(HOSTFILE, exports)
    return [manifest.launcher, *launch_options(manifest.dialect, layout, way)]
