"""What every check has in common: find the stack's program, launch it, prove the run, keep it.

A check that builds on :class:`MpiBenchmark` says which program it runs, with which arguments and
inputs, and how to read what it printed. Which MPI library that is, who provided it and how it
wants to be launched come from the site config and the stack's manifest.
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    fixture,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError

from clustergate import by_hand, figures, modes, proof, references, stacks, store
from clustergate.machine.environment import read_removed
from clustergate.model import METRICS, CaseRecord, ClustergateError, Conditions, Metric, Row, Sample
from clustergate.outputs.peaks import parse_peaks
from clustergate.sites import REMOVED_ENVIRONMENT
from clustergate.stacks import dialects, launchers
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from clustergate.state import checkout, state_dir
from reframe_checks.build import StackBuild
from reframe_checks.system import shape_of

PROOF_FOLDER = "proof"
# Where the job notes the time around its launch.
CLOCK = "clock"
# A glance: it bounds figures, with an interval from its trials; it is no benchmark of its own.
PEAK_EFFORT = ("--seconds", "0.05", "--trials", "3")


class MpiBenchmark(rfm.RunOnlyRegressionTest):
    """Base of the checks; not a check itself."""

    build = fixture(StackBuild, scope="environment")
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi-stack"]
    tags = {"benchmark"}
    sourcesdir = None

    #: What the values of the rows are called, in which unit, and which way is better.
    metrics: Mapping[str, Metric] = METRICS
    #: The file that the program writes its figures into, empty for standard output.
    output_file = ""
    #: Whether the program computes with the stack's BLAS.
    uses_blas = False
    #: The effort, by the name of a mode.
    mode = variable(str, value="smoke", loggable=True)
    #: The program's name in the manifest.
    program = variable(str)
    #: MPI processes; 0 stands for every core of the partition.
    ranks = variable(int, value=0, loggable=True)
    #: ``packed`` fills nodes with ranks, ``one-per-node`` puts every rank on a node of its own.
    placement = variable(str, value="packed", loggable=True)
    #: Keys of the reference file, worked out from the launch and the settings.
    reference_layout = variable(str, value="", loggable=True)
    reference_effort = variable(str, value="", loggable=True)
    #: Settings that change what is measured; a changed one has no reference of the default.
    settings_that_matter: Sequence[str] = ()
    #: Cores, and threads of the BLAS, for each rank.
    cores_per_rank = variable(int, value=1, loggable=True)
    #: Whether ranks are bound to cores.
    bind_to_cores = variable(bool, value=True, loggable=True)

    @run_after("setup")
    def find_program(self) -> None:
        """Look the program up in the stack's manifest, or say why there is none."""
        self.effort = modes.mode_named(self.mode)
        if self.time_limit is None:
            self.time_limit = self.effort.time_limit
        self.manifest = self.read_or_plan_manifest()
        found = self.manifest.program(self.program)
        if found.unavailable:
            self.keep(unavailable=found.unavailable)
            self.skip(f"{self.program} is not available here: {found.unavailable}")
        self.found = found

    def read_or_plan_manifest(self) -> Manifest:
        """Return what is on disk; a dry run makes do with what would be put there."""
        environ = self.current_environ
        try:
            return read_manifest(state_dir(), environ.name)
        except ManifestError:
            if not self.is_dry_run():
                raise
            planned: Manifest = stacks.planned(environ.extras["provider"], environ.name)
            return planned

    @run_after("setup")
    def lay_out(self) -> None:
        """Turn ranks and placement into a launch."""
        shape = shape_of(self.current_partition)
        fitting = shape.cores_per_node // self.cores_per_rank
        self.ranks = self.ranks or fitting * shape.nodes
        per_node = min(self.ranks, fitting) if self.placement == "packed" else 1
        needed = self.ranks // max(per_node, 1)
        if per_node == 0 or self.ranks % per_node or needed > shape.nodes:
            misfit = f"{self.ranks} ranks, {self.placement}, do not fit this partition"
            self.keep(unavailable=misfit)
            self.skip(misfit)
        self.layout = dialects.Layout(self.ranks, per_node, self.cores_per_rank, self.bind_to_cores)
        self.num_tasks = self.ranks
        self.num_tasks_per_node = per_node
        self.num_cpus_per_task = self.cores_per_rank
        self.job.launcher.configure(self.manifest, self.layout)

    @run_after("setup")
    def find_references(self) -> None:
        """Give ReFrame the references of this system, by the keys of this case."""
        self.reference_layout = references.layout_key(self.conditions())
        self.reference_effort = references.effort_key(self.conditions())
        path = references.reference_file(checkout() / "references", self.current_system.name)
        if path.is_file():
            self.reference = {"$ref": str(path)}

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Return the kernels that bound this benchmark's figures, each with its options."""
        return {"node_peaks": []}

    def peak_rows(self) -> list[Row]:
        """Return what the kernels measured, before and after."""
        files = [
            f"{name}-{when}.jsonl"
            for name in self.peak_programs()
            for when in ("before", "after")
            if not self.manifest.program(name).unavailable
        ]
        return [row for f in files for row in parse_peaks(self.output_lines(f), source=f)]

    @run_before("run")
    def declare_environment(self) -> None:
        """Export what the stack needs, and preload the proof into the ranks alone."""
        self.nonce = secrets.token_hex(8)
        folder = Path(self.stagedir) / PROOF_FOLDER
        folder.mkdir(exist_ok=True)
        exports = self.exports()
        own = [f"{name}={value}" for name, value in self.rank_environment().items()]
        program = [self.found.path, *self.arguments()]
        proving = [
            f"LD_PRELOAD={self.manifest.proof_library}",
            f"CLUSTERGATE_PROOF_DIR={folder}",
            f"CLUSTERGATE_PROOF_NONCE={self.nonce}",
        ]
        self.prerun_cmds += exports
        self.executable = "env"
        self.executable_opts = [shlex.quote(word) for word in (*proving, *own, *program)]
        launch = [*self.job.launcher.command(self.job), *(["env", *own] if own else []), *program]
        self.command = by_hand.script(self.inputs(), exports, launch, self.output_file)

    def exports(self) -> list[str]:
        """Return the lines that export what the stack needs."""
        variables = launchers.exports(self.manifest, self.cores_per_rank)
        lines = []
        for name, value in variables.items():
            behind = f"${{{name}:+:${name}}}" if name in ("PATH", "LD_LIBRARY_PATH") else ""
            lines.append(f"export {name}={shlex.quote(value)}{behind}")
        return lines

    @run_before("run")
    def measure_peaks(self) -> None:
        """Measure what the node can do before and after the benchmark, in the same job."""
        commands = []
        for name, options in self.peak_programs().items():
            program = self.manifest.program(name)
            if not program.unavailable:
                commands.append((name, shlex.join([program.path, *PEAK_EFFORT, *options])))
        for when, where in (("before", self.prerun_cmds), ("after", self.postrun_cmds)):
            where += [f"{command} > {name}-{when}.jsonl" for name, command in commands]
        clock = f"echo $EPOCHREALTIME >> {CLOCK}"
        self.prerun_cmds = [clock, *self.prerun_cmds, clock]
        self.postrun_cmds = [clock, *self.postrun_cmds, clock]

    @run_before("run")
    def write_inputs(self) -> None:
        """Put the input files into the stage folder."""
        for name, text in self.inputs().items():
            (Path(self.stagedir) / name).write_text(text, encoding="utf-8")

    def arguments(self) -> Sequence[str]:
        """Return the program's arguments."""
        return ()

    def rank_environment(self) -> Mapping[str, str]:
        """Return variables that only the ranks are to see."""
        return {}

    def inputs(self) -> Mapping[str, str]:
        """Return the program's input files: names and texts."""
        return {}

    def rows(self) -> Iterator[Row]:
        """Read what the program printed; raises OutputError for what cannot be trusted."""
        raise NotImplementedError

    def output_name(self) -> str:
        """Return the name of the file that holds the figures."""
        return self.output_file or str(self.stdout.evaluate())

    def output_lines(self, name: str | None = None) -> Iterator[str]:
        """Return the lines of a file in the stage folder, by default of the one with figures."""
        path = Path(self.stagedir) / (name or self.output_name())
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file

    def conditions(self) -> Conditions:
        """Return what all figures of this case share."""
        return {
            "mode": self.mode,
            "ranks": self.ranks,
            "ranks_per_node": self.layout.ranks_per_node,
            "nodes": self.layout.nodes,
            "placement": self.placement,
            "cores_per_rank": self.cores_per_rank,
            "bound": self.bind_to_cores,
            "settings": ",".join(f"{k}={v}" for k, v in self.changed_settings().items()),
        }

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings that differ from what their mode gives them."""
        found = {name: getattr(self, name) for name in self.settings_that_matter}
        defaults = {name: getattr(type(self), name) for name in found}
        return {name: value for name, value in found.items() if value != defaults[name]}

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Return figures that follow from others, such as an efficiency."""
        return ()

    def details(self) -> dict[str, Any]:
        """Return what the ranks said of themselves, and what the peaks cost beside the launch."""
        told: dict[str, Any] = {"build_key": self.manifest.build_key}
        told["program"] = dataclasses.asdict(self.found)
        with contextlib.suppress(OSError, ClustergateError):
            told["proof"] = proof.summary(proof.read_proofs(Path(self.stagedir) / PROOF_FOLDER))
        with contextlib.suppress(OSError, ValueError):
            times = [float(line) for line in self.output_lines(CLOCK)]
            begun, launched, ended, finished = times
            told["launch_s"] = round(ended - launched, 3)
            told["peaks_s"] = round(finished - begun - (ended - launched), 3)
        return told

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return sentences that the report prints beside the figures."""
        return ()

    @sanity_function
    def prove_and_read(self) -> bool:
        """Accept the figures only of a run that was the run asked for."""
        complaints: list[str] = []
        rows: list[Row] = []
        peaks: list[Row] = []
        samples: tuple[Sample, ...] = ()
        try:
            if not self.job.exitcode:
                peaks = self.peak_rows()
            complaints += self.complaints_of_the_run(peaks)
            rows = list(self.rows())
            samples = figures.samples_of(rows, self.metrics)
            samples += self.derived_samples(samples, peaks)
        except ClustergateError as error:
            complaints.append(str(error))
        except OSError as error:
            complaints.append(f"the output {error.filename} cannot be read: {error.strerror}")
        self.samples = samples
        self.keep(
            samples=samples,
            unmeasured=figures.unmeasured(rows),
            peaks=peaks,
            complaints=complaints,
            notes=self.notes(samples),
            details=self.details(),
        )
        if complaints:
            raise SanityError("; ".join(complaints))
        return True

    def complaints_of_the_run(self, peaks: Sequence[Row]) -> list[str]:
        """Return what speaks against this having been the run asked for."""
        complaints = []
        if self.job.exitcode:
            last = self.last_words()
            told = f"; its last words: {last}" if last else ""
            complaints.append(f"the job ended with exit status {self.job.exitcode}{told}")
        proofs = proof.read_proofs(Path(self.stagedir) / PROOF_FOLDER)
        complaints += proof.check_proofs(proofs, self.expected_proof(peaks))
        return complaints

    def last_words(self) -> str:
        """Return the last line of standard error that says something, shortened."""
        lines = [line.strip() for line in self.output_lines(str(self.stderr.evaluate()))]
        said = [line for line in lines if line]
        return said[-1][:200] if said else ""

    def expected_proof(self, peaks: Sequence[Row]) -> proof.ProofExpectation:
        """Return what the ranks must say of themselves."""
        blas = self.manifest.blas
        kernels = {str(row.conditions["kernel"]) for row in peaks if "kernel" in row.conditions}
        return proof.ProofExpectation(
            nonce=self.nonce,
            ranks=self.ranks,
            nodes=self.layout.nodes,
            ranks_per_node=self.layout.ranks_per_node,
            mpi_library=self.manifest.mpi_library,
            library_pattern=self.manifest.library_pattern,
            cores_per_rank=self.cores_per_rank,
            bound=self.bind_to_cores,
            threads_per_rank=self.cores_per_rank,
            blas_library=blas.library if self.uses_blas and blas else None,
            # The kernels that DGEMM chose in the same job, on the same node.
            blas_kernel=kernels.pop() if self.uses_blas and len(kernels) == 1 else None,
        )

    @run_before("performance")
    def name_figures(self) -> None:
        """Give ReFrame one performance variable per figure."""
        if self.is_dry_run():
            return
        self.perf_variables = {
            figures.name_of(sample): sn.make_performance_function(
                sn.defer(sample.value), sample.unit
            )
            for sample in figures.reported(self.samples)
        }

    def removed_environment(self) -> dict[str, str]:
        """Return the inherited variables that the job took away before it measured."""
        try:
            noted = (Path(self.stagedir) / REMOVED_ENVIRONMENT).read_bytes()
        except FileNotFoundError:
            return {}
        return read_removed(noted.decode(errors="replace"))

    def keep(self, **what: Any) -> None:
        """Store what this case left behind, for judging and for the report."""
        if self.is_dry_run():
            return
        ran = hasattr(self, "layout")
        record = CaseRecord(
            name=store.case_name(
                self.unique_name, self.current_partition.name, self.current_environ.name
            ),
            check=type(self).__name__,
            stack=self.current_environ.name,
            partition=self.current_partition.fullname,
            conditions=self.conditions() if ran else {"mode": self.mode},
            command=getattr(self, "command", ""),
            removed_environment=self.removed_environment(),
            **what,
        )
        store.write_case(store.current_run_id(), record)
