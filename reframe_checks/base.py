"""What every check has in common: find the stack's program, launch it, prove the run, keep it.

A check that builds on :class:`MpiBenchmark` says which program it runs, with which arguments and
inputs, and how to read what it printed. Which MPI library that is, who provided it and how it
wants to be launched come from the site config and the stack's manifest.
"""

from __future__ import annotations

import dataclasses
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import (
    fixture,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import SanityError
from reframe.core.runtime import emit_loadenv_commands

from clustergate import stacks, store
from clustergate.benchmarks.descriptor import Benchmark, Budget
from clustergate.benchmarks.registry import every_check
from clustergate.launching import by_hand
from clustergate.launching import plan as planning
from clustergate.launching.asides import CORE_DISTANCE, DISTANCE_EFFORT, asides_of
from clustergate.launching.estimation import sampled_figures
from clustergate.launching.reading import expected_of, read_launch
from clustergate.launching.stopping import exactly, undisturbed_needed
from clustergate.machine import power
from clustergate.machine.environment import read_removed
from clustergate.model import (
    METRICS,
    CaseRecord,
    Conditions,
    Launch,
    Row,
    Sample,
)
from clustergate.paths import state_dir
from clustergate.proof.ranks import ProofExpectation
from clustergate.references import lookup as references
from clustergate.schedulers import SLURM
from clustergate.schedulers.slurm_limits import Limits, limits_of
from clustergate.schedulers.wishes import partition_of_access
from clustergate.session import resuming
from clustergate.session.case import Hosts, Job, details_of, notes_of, read_job
from clustergate.session.reframe import case_key
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.configs import REMOVED_ENVIRONMENT
from clustergate.sites.layouts import laid_out
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from clustergate.verdicts import assembly
from clustergate.wording.notation import printable
from clustergate.wording.reasons import Reason, reason, sentence_of
from reframe_checks.build import StackBuild
from reframe_checks.system import MAINTAINERS, partition_of, stack_of, used_shape


class MpiBenchmark(rfm.RunOnlyRegressionTest):
    """Base of the checks; not a check itself."""

    #: The benchmark that the check belongs to: what it costs in each mode, and more.
    descriptor: Benchmark
    build = fixture(StackBuild, scope="environment")
    valid_systems = ["*"]
    valid_prog_environs = ["+mpi-stack"]
    maintainers = MAINTAINERS
    sourcesdir = None

    #: The file that the program writes its figures into, empty for standard output.
    output_file = ""
    #: Whether a figure suffers when the hypervisor moves cores away from each other.
    needs_near_cores = True
    #: The effort, by the name of a mode.
    mode = variable(str, value="smoke", loggable=True)
    #: How often to launch; 0 leaves it to the mode, which launches until it is enough.
    launches = variable(int, value=0, loggable=True)
    #: The program's name in the manifest.
    program = variable(str)
    #: MPI processes; 0 stands for every core of the nodes that the mode uses.
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
    bind_to_cores = variable(typ.Bool, value=True, loggable=True)

    def only_in(self, partitions: Sequence[str]) -> None:
        """Leave out the partitions to which this case does not belong: parameters are of all."""
        if self.valid_systems == ["*"]:
            self.valid_systems = list(partitions)

    @run_after("init")
    def take_description(self) -> None:
        """Let ReFrame's listings say what the descriptor does."""
        if own := every_check().get(type(self).__name__):
            self.descr, self.tags = own.description, set(own.tags)

    @run_after("setup")
    def leave_out_what_ran(self) -> None:
        """Skip a case that came to its end before its run was resumed."""
        partition, stack = self.current_partition.fullname, self.current_environ.name
        done = case_key(self.hashcode, partition, stack)
        self.skip_if(resuming.is_completed(store.current_run_id(), done), resuming.SKIPPED)

    @run_after("setup")
    def find_program(self) -> None:
        """Look the program up in the stack's manifest, or say why there is none."""
        self.asked_mode = modes.mode_named(self.mode)
        self.effort = modes.effort_of(self.asked_mode, self.descriptor)
        if self.time_limit is None:
            self.time_limit = self.asked_mode.time_limit
        self.cap_time()
        self.manifest = self.read_or_plan_manifest()
        program = self.manifest.program(self.program)
        if program.unavailable:
            self.not_available(program.unavailable)
        self.found = program

    def limits(self) -> Limits:
        """Return what the scheduler allows a job of this partition."""
        partition = partition_of(self)
        in_slurm = partition.scheduler in SLURM
        return limits_of(partition_of_access(partition.access)) if in_slurm else Limits()

    def cap_time(self) -> None:
        """Ask for no more time than the partition gives: Slurm would let the job wait for ever."""
        self.capped: list[str] = []
        most, asked = self.limits().seconds, typ.Duration(self.time_limit)
        if most is not None and asked > most:
            self.time_limit = most
            facts = {"asked_s": asked, "most_s": most}
            self.capped.append(str(reason("job.capped-time", **facts)))

    def not_available(self, reason: str) -> None:
        """Keep why this case cannot run here, and leave it out."""
        self.keep(unavailable=reason)
        self.skip(f"{self.program} is not available here: {reason}")

    def read_or_plan_manifest(self) -> Manifest:
        """Return what is on disk; a dry run makes do with what would be put there."""
        environ = self.current_environ
        try:
            return read_manifest(state_dir(), environ.name)
        except ManifestError:
            if not self.is_dry_run():
                raise
            planned: Manifest = stacks.planned(stack_of(self).request)
            return planned

    def settle(self) -> None:
        """Settle what the settings leave open, before the launch is laid out."""

    @run_after("setup")
    def lay_out(self) -> None:
        """Turn ranks and placement into a launch."""
        self.settle()
        partition = partition_of(self)
        used = used_shape(self)
        self.ranks = self.ranks or used.cores_per_node // self.cores_per_rank * used.nodes
        # A partition whose nodes share cores, or whose scheduler binds, can say that nobody should.
        self.bind_to_cores = self.bind_to_cores and partition.bind_to_cores
        self.layout = laid_out(
            self.ranks,
            self.placement,
            self.cores_per_rank,
            partition,
            bind=self.bind_to_cores,
        )
        most = self.limits().nodes
        if most is not None and self.layout.nodes > most:
            facts = {"nodes": self.layout.nodes, "most": most}
            self.not_available(str(reason("job.too-many-nodes", **facts)))
        self.num_tasks = self.layout.tasks_to_ask_for
        self.num_tasks_per_node = self.layout.ranks_per_node
        self.num_cpus_per_task = self.cores_per_rank
        self.nodes_of_system = sites.hostfile_of(self.current_system.name)
        self.tell_launcher(self.manifest)

    def tell_launcher(self, manifest: Manifest) -> None:
        """Tell the partition's launcher which stack it launches, and where."""
        self.job.launcher.configure(
            manifest,
            self.layout,
            Path(self.stagedir),
            self.nodes_of_system,
            stack_of(self).pmi,
        )

    @run_after("setup")
    def find_references(self) -> None:
        """Give ReFrame the references of this system, by the keys of this case."""
        self.reference_layout = references.layout_key(self.conditions())
        self.reference_effort = references.effort_key(self.conditions())
        path = self.reference_file()
        if path.is_file():
            self.reference = {"$ref": str(path)}

    def reference_file(self) -> Path:
        """Return the file of this system's references, whether it is there or not."""
        return references.reference_file(self.current_system.name)

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Return the kernels that bound this benchmark's figures, each with its options."""
        return {"node_peaks": [], CORE_DISTANCE: DISTANCE_EFFORT}

    @run_before("run")
    def plan_launches(self) -> None:
        """Write down what the job launches; its script runs the driver, which reads that."""
        contenders = self.contenders()
        launcher = self.job.launcher
        dialect = launcher.hostfile_of_allocation()
        self.plan = planning.Plan(
            nonce=secrets.token_hex(8),
            contenders=contenders,
            budget=exactly(self.launches) if self.launches else self.budget(),
            seed=secrets.randbits(32),
            asides=asides_of(
                {n: (self.kernel_command(n), o) for n, o in self.peak_programs().items()},
                self.in_rank_environment(),
            ),
            kept_in=str(store.stage_folder(store.current_run_id()) / "peaks"),
            core_distance=self.kernel_command(CORE_DISTANCE),
            on_each_node=launcher.on_each_node(
                {**self.current_environ.env_vars, **launcher.exports(self.cores_per_rank)}
            ),
            reader=self.reader(),
            hostfile=str(launcher.hostfile(dialect)) if dialect else "",
            hostfile_dialect=dialect,
            ranks_per_node=self.layout.ranks_per_node,
            **self.deciding(),
        )
        planning.write_plan(Path(self.stagedir), self.plan)
        driver = [sys.executable, "-I", "-m", "clustergate.launching", planning.PLAN]
        preparation = [
            *self.current_partition.prepare_cmds,
            *emit_loadenv_commands(self.current_partition.local_env, self.current_environ),
        ]
        self.executable, *self.executable_opts = launcher.job_command(driver, preparation)
        self.keep_files = [planning.PLAN, planning.LOG, "launch-*", *self.keep_files]
        self.command = self.by_hand(contenders[0])

    def contenders(self) -> list[planning.Contender]:
        """Return what is launched in each round."""
        return [self.contender(self.current_environ.name, self.manifest)]

    def contender(self, name: str, manifest: Manifest) -> planning.Contender:
        """Return this check's program of a stack, with its launcher and its environment."""
        self.tell_launcher(manifest)
        exports = self.job.launcher.exports(self.cores_per_rank)
        program = manifest.program(self.program)
        return planning.Contender(
            name=name,
            # What the site exports beside the stack must come to all nodes as well.
            launcher=self.job.launcher.launch({**self.current_environ.env_vars, **exports}),
            program=[*self.in_rank_environment(), program.path, *self.arguments()],
            proof_library=manifest.proof_library,
            environment=exports,
            inputs=self.inputs(),
            output=self.output_file,
        )

    def by_hand(self, one: planning.Contender) -> str:
        """Return the lines to type to get a contender's figures without the suite."""
        # The folder of the job goes, and with it what the launcher found there.
        files = self.job.launcher.files
        there = {str(Path(self.stagedir) / name): name for name in files}
        command = [*(there.get(word, word) for word in one.launcher), *one.program]
        return by_hand.script({**one.inputs, **files}, one.environment, command, one.output)

    def reader(self) -> str:
        """Return the function that reads the figures, ``module:function``, for the driver.

        Whether it has launched often enough may depend on them.
        """
        parse: Any = self.descriptor.format.parse
        needed = self.descriptor.repeated or self.deciding()
        return f"{parse.__module__}:{parse.__qualname__}" if needed else ""

    def deciding(self) -> Mapping[str, Any]:
        """Return by what the plan says when launches have decided something, nothing of it here."""
        return {}

    def budget(self) -> Budget:
        """Return how often this check launches."""
        return self.effort.budget

    def kernel_command(self, name: str) -> list[str]:
        """Return the command line of one of the suite's own kernels, empty where there is none."""
        kernel = self.manifest.program(name)
        return [] if kernel.unavailable else [kernel.path]

    def arguments(self) -> Sequence[str]:
        """Return the program's arguments."""
        return ()

    def rank_environment(self) -> Mapping[str, str]:
        """Return variables that only the ranks are to see."""
        return {}

    def in_rank_environment(self) -> list[str]:
        """Return the words in front of a command that give it the ranks' own variables."""
        own = [f"{name}={value}" for name, value in self.rank_environment().items()]
        return ["env", *own] if own else []

    def inputs(self) -> Mapping[str, str]:
        """Return the program's input files: names and texts."""
        return {}

    def expectation(self) -> Any:
        """Return what the run was asked for, as the benchmark's parser takes it."""
        raise NotImplementedError

    def rows(self, lines: Iterable[str], source: str) -> Iterator[Row]:
        """Read what the program printed; raises OutputError for what cannot be trusted."""
        return self.descriptor.format.parse(lines, source=source, expect=self.expectation())

    def case_keys(self) -> tuple[str, str, str, Conditions]:
        """Return what the references of this case are found by."""
        partition, stack = self.current_partition.fullname, self.current_environ.name
        return type(self).__name__, partition, stack, self.conditions()

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
        """Return the settings that differ from what their check gives them."""
        settings = {name: getattr(self, name) for name in self.settings_that_matter}
        return {name: value for name, value in settings.items() if value != self.default_of(name)}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note what a class body sets: ``-S`` replaces it, and ReFrame keeps no copy."""
        super().__init_subclass__(**kwargs)
        body = vars(cls)
        cls.set_in_body = {name: body[name] for name in cls.settings_that_matter if name in body}

    @classmethod
    def default_of(cls, name: str) -> Any:
        """Return a setting as it is without ``-S``, which changes no class but the test's own."""
        if name in cls.set_in_body:
            return cls.set_in_body[name]
        return next(getattr(base, name) for base in cls.__bases__ if hasattr(base, name))

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Return figures that follow from others, such as an efficiency."""
        return ()

    def powers(self) -> dict[int, power.Power]:
        """Return the watts of each launch: by RAPL, by Slurm, or stated; of none without any."""
        in_slurm = self.job.scheduler.registered_name in SLURM
        return self.ended_job().powers(str(self.job.jobid) if in_slurm else None)

    def details(self) -> dict[str, Any]:
        """Return what else is kept of this case."""
        build = {"build_key": self.manifest.build_key, "lock": self.manifest.lock}
        program = {"program": dataclasses.asdict(self.found)}
        near = self.needs_near_cores
        return {**build, **program, **details_of(self.ended_job(), self.read, near_cores=near)}

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return sentences that the report prints beside the figures."""
        return ()

    @sanity_function
    def prove_and_read(self) -> bool:
        """Accept the figures only of launches that were the launches asked for."""
        job, keys = self.ended_job(), self.case_keys()

        def baseline_ns() -> float | None:
            return references.load_references_once(self.reference_file()).nearest_ns(*keys)

        read = self.read = read_job(
            job,
            self.prove_launch,
            {**METRICS, **self.descriptor.metrics},
            self.derived_samples,
            baseline_ns if self.needs_near_cores else None,
        )
        needed = undisturbed_needed(self.plan.budget, self.budget())
        self.sampled = sampled_figures(read.samples, read.launches, needed, keys[0])
        self.kept = self.keep(
            samples=read.samples,
            launches=read.launches,
            launches_needed=needed,
            unmeasured=read.unmeasured,
            peaks=read.peaks,
            complaints=read.complaints,
            notes=[*self.notes(read.samples), *self.capped, *notes_of(job, read)],
            details=self.details(),
        )
        if read.complaints:
            raise SanityError(printable(sentence_of(read.complaints)))
        return True

    def ended_job(self) -> Job:
        """Return the job as it ended."""
        return Job(
            stage=Path(self.stagedir),
            plan=self.plan,
            layout=self.layout,
            partition=partition_of(self),
            hosts=self.job.launcher.hosts,
            hostfile=self.nodes_of_system,
            state=self.job.state,
            exit_status=self.job.exitcode,
            errors=str(self.stderr.evaluate()),
        )

    def prove_launch(
        self, launch: Launch, hosts: Hosts, peaks: Sequence[Row]
    ) -> tuple[list[Reason], list[Row]]:
        """Return what speaks against a launch having been the one asked for, and its figures."""
        nonce = planning.launch_nonce(self.plan.nonce, launch.order)
        expected = dataclasses.replace(
            self.expected_proof(self.launched(launch.order), peaks),
            nonce=nonce,
            hosts=hosts,
            launch_s=launch.seconds,
        )
        stage = Path(self.stagedir)
        return read_launch(stage, launch.order, expected, self.rows, self.output_file)

    def launched(self, order: int) -> Manifest:
        """Return the stack of a launch."""
        return self.manifest

    def expected_proof(self, manifest: Manifest, peaks: Sequence[Row]) -> ProofExpectation:
        """Return what the ranks of a launch of a stack must say of themselves."""
        build = self.descriptor.build
        uses_blas, blas = build is not None and build.uses_blas, manifest.blas
        kernels = {str(row.conditions["kernel"]) for row in peaks if "kernel" in row.conditions}
        return dataclasses.replace(
            expected_of(manifest, self.layout),
            nodes=self.layout.nodes,
            by_srun=self.job.launcher.by_srun,
            threads_per_rank=self.cores_per_rank,
            blas_library=blas.library if uses_blas and blas else None,
            # The kernels that DGEMM chose in the same job, on the same node.
            blas_kernel=kernels.pop() if uses_blas and len(kernels) == 1 else None,
        )

    @run_before("performance")
    def name_figures(self) -> None:
        """Give ReFrame one performance variable per figure."""
        if self.is_dry_run():
            return
        figures = self.named_figures()
        # The bounds of the file are for as many launches as those of the baseline.
        bounds: Any = {name: reference for name, _, _, reference in figures if reference}
        self.reference = {self.current_partition.fullname: bounds}
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), unit)
            for name, value, unit, _ in figures
        }

    def named_figures(self) -> list[Any]:
        """Return the figures as :func:`clustergate.verdicts.assembly.reframe_figures` does."""
        known = references.load_references_once(self.reference_file())
        expected = assembly.references_for(self.kept, self.sampled, known.find)
        nodes = {self.kept.partition: partition_of(self).facts}
        limits = assembly.limits_for(self.kept, self.sampled, nodes)
        return list(assembly.reframe_figures(self.sampled, expected, self.kept.unmeasured, limits))

    def removed_environment(self) -> dict[str, str]:
        """Return the inherited variables that the job took away before it measured."""
        try:
            noted = (Path(self.stagedir) / REMOVED_ENVIRONMENT).read_bytes()
        except FileNotFoundError:
            return {}
        return read_removed(noted.decode(errors="replace"))

    def keep(self, **what: Any) -> CaseRecord:
        """Store what this case left behind, for judging and for the report, and return it."""
        ran = hasattr(self, "layout")
        shared = {
            "name": store.case_name(
                self.unique_name, self.current_partition.name, self.current_environ.name
            ),
            "check": type(self).__name__,
            "stack": self.current_environ.name,
            "partition": self.current_partition.fullname,
            "conditions": self.conditions() if ran else {"mode": self.mode},
            "command": getattr(self, "command", ""),
            "removed_environment": self.removed_environment(),
        }
        what["details"] = {resuming.HASH: self.hashcode, **what.get("details", {})}
        record = CaseRecord(**{**shared, **what})
        if not self.is_dry_run():
            store.write_case(store.current_run_id(), record)
        return record
