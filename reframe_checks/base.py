"""What every check has in common: find the stack's program, launch it, prove the run, keep it.

A check that builds on :class:`MpiBenchmark` says which program it runs, with which arguments and
inputs, and how to read what it printed. Which MPI library that is, who provided it and how it
wants to be launched come from the site config and the stack's manifest.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import secrets
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
import reframe.utility.typecheck as typ
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.core.runtime import emit_loadenv_commands

from clustergate import stacks
from clustergate.benchmarks.descriptor import Benchmark
from clustergate.benchmarks.registry import declared
from clustergate.core import store
from clustergate.core.model import CaseRecord, ClustergateError, Conditions, Launch, Row, Sample
from clustergate.core.notation import printable
from clustergate.core.paths import state_dir
from clustergate.core.reasons import Reason, Words, sentence_of
from clustergate.core.texts import VARIANT
from clustergate.judge import assembly
from clustergate.judge.case import measure_case
from clustergate.judge.references import lookup
from clustergate.judge.standings import left_out
from clustergate.launch import by_hand
from clustergate.launch import plan as planning
from clustergate.launch.dialects import env_words
from clustergate.launch.node_measurements import (
    CORE_DISTANCE,
    DISTANCE_EFFORT,
    planned_measurements,
)
from clustergate.launch.reading import expected_of, read_launch
from clustergate.launch.stopping import fit_to_time_limit, fixed_launches, undisturbed_needed
from clustergate.launch.transports import transport_note
from clustergate.launch.watchdog import Patience
from clustergate.machine.environment import read_removed, removed_at_submission
from clustergate.run import busy, resuming
from clustergate.run.case import Hosts, Job, details_of, notes_of, read_job
from clustergate.run.reframe import ON_FEW_NODES, ON_MANY_NODES, case_key
from clustergate.run.timetable import is_few
from clustergate.sites import configs as sites
from clustergate.sites import exclusions, modes
from clustergate.sites.description import Partition
from clustergate.sites.layouts import layout_on_partition
from clustergate.sites.schedulers.scheduler import SHORTEST_S
from clustergate.stacks.manifest import Manifest, ManifestError, read_manifest
from reframe_checks.build import StackBuild
from reframe_checks.system import (
    MAINTAINERS,
    begin_clean,
    partition_of,
    partitions_here,
    stack_of,
    used_shape,
)

# Of ReFrame's own: they change what is launched, and the conditions of a case do not tell them.
# A part of a launch without an MPI call is no longer than the launch, and that may be slow.
_TIMES_AS_LONG = 3.0
_BY_THE_SITE = ("env_vars", "modules", "prerun_cmds", "local")


def _noted(base: type) -> Mapping[str, Any]:
    return getattr(base, "defaults", {})


CAPPED_TIME = Words(
    "job.capped-time",
    "its jobs request {most_s:g} s instead of {asked_s:g} s",
    cause="{why}",
)
NO_TIME = Words("job.no-time", "there is no time left for a job", cause="{why}")
TOO_MANY_NODES = Words(
    "job.too-many-nodes",
    "it needs {nodes} nodes, and the partition limits jobs to {most}",
    remedy=(
        "state `nodes` of the partition in the site config as {most}, or raise MaxNodes of the "
        "partition or the QOS"
    ),
)
BY_THE_SITE = Words(
    "check.by-the-site",
    "{names:list} after -S would measure something else under the same name",
    remedy=(
        "set it for a stack or a partition in the site config (env_vars, modules, prepare_cmds)"
    ),
)


INCOMPLETE = Words(
    "check.incomplete",
    "the check {check} lacks {lacks:list}",
    remedy="add it to the class, as MpiBenchmark (reframe_checks/base.py) says",
)
# What abc.abstractmethod leaves on a method that a class must have itself.
_MISSING = "__isabstractmethod__"


class MpiBenchmark(rfm.RunOnlyRegressionTest):
    """Base of the checks; not a check itself.

    What a test must have, and by when. :func:`~reframe_checks.declaration.check` gives it the rest.

    | name | what it is | by |
    |---|---|---|
    | ``program`` | the program's name in the manifest | the class, or a hook after ``init`` |
    | ``expectation()`` | what its output must repeat, for the parser | the class |

    What a test may have. These are called once ``ranks`` and ``layout`` are laid out, after
    ``setup``, where ``manifest``, ``found`` (the program in it) and ``effort`` are known.

    | name | what it is | by default |
    |---|---|---|
    | ``choose_program()`` | sets ``program`` by the partition | that of the class |
    | ``ranks``, ``placement``, ``cores_per_rank`` | set in ``settle()`` | every core, packed |
    | ``arguments()``, ``inputs()`` | command line, files by name | none |
    | ``rank_environment()`` | variables of the ranks alone | none |
    | ``output_file`` | what holds the figures | standard output |
    | ``settings_that_matter`` | the variables that change what is measured | none |
    | ``derived_samples()``, ``notes()`` | what follows from the figures | nothing |

    A test that lacks what it must have ends ReFrame's loading, with its file and line.
    """

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
    #: Settings that change what is measured; a changed one has no reference of the default.
    settings_that_matter: Sequence[str] = ()
    defaults: Mapping[str, Any] = {}
    #: Seconds that no MPI call takes: a launch in which all ranks wait longer is ended. 0 leaves it
    #: to the benchmark.
    longest_call_s = variable(float, value=0.0, loggable=True)
    #: Cores, and threads of the BLAS, for each rank.
    cores_per_rank = variable(int, value=1, loggable=True)

    def only_in(self, partitions: Sequence[str]) -> None:
        """Leave out the partitions to which this case does not belong: parameters are of all."""
        if self.valid_systems == ["*"]:
            self.valid_systems = list(partitions)

    @run_after("init")
    def take_description(self) -> None:
        """Let ReFrame's listings say what the descriptor does."""
        if known := declared(type(self).__name__):
            self.descr, self.tags = known[1].description, set(known[1].tags)

    @run_after("init", always_last=True)
    def tell_nodes(self) -> None:
        """Let a tag tell whether its cases are on few nodes in each partition, or on many."""
        valid = self.valid_systems
        here = [one for one in partitions_here() if valid == ["*"] or one.fullname in valid]
        few = bool(here) and all(is_few(self.nodes_on(one)) for one in here)
        self.tags |= {ON_FEW_NODES if few else ON_MANY_NODES}

    def nodes_on(self, partition: Partition) -> int:
        """Return on how many nodes of a partition a case is, all that its mode uses at most."""
        used = modes.used_shape(self.mode, type(self).__name__, partition)
        if not self.ranks:
            return used.nodes
        return used.nodes_for(int(self.ranks), self.placement, max(self.cores_per_rank, 1))

    @run_after("init", always_last=True)
    def require_complete(self) -> None:
        """Refuse a test that lacks what every test must have."""
        test = type(self)
        lacks = [one for one in ("descriptor", "program") if not hasattr(self, one)]
        names = {name: None for base in reversed(test.__mro__) for name in vars(base)}
        marked = [getattr(inspect.getattr_static(test, name), _MISSING, False) for name in names]
        lacks += [f"{name}()" for name, lacking in zip(names, marked, strict=True) if lacking]
        if lacks:
            _, line = inspect.getsourcelines(test)
            reason = INCOMPLETE(check=test.__name__, lacks=lacks)
            raise ClustergateError(reason.at(f"{inspect.getfile(test)}:{line}"))

    @run_after("init")
    @run_after("setup")
    def refuse_another_job(self) -> None:
        """Refuse by ``-S`` what would be judged, and kept, as if nobody had set it.

        A sweep (``-P``) sets it once the test is initialized.
        """
        if changed := [name for name in _BY_THE_SITE if getattr(self, name) != self.defaults[name]]:
            raise ClustergateError(BY_THE_SITE(names=changed))

    @run_after("setup")
    def leave_out_what_ran(self) -> None:
        """Skip a case that came to its end before its run was resumed."""
        done = case_key(self.hashcode, self.current_partition.fullname, self.current_environ.name)
        self.skip_if(resuming.is_completed(store.current_run_id(), done), resuming.SKIPPED)

    @run_after("setup")
    def find_program(self) -> None:
        """Look the program up in the stack's manifest, or say why there is none."""
        self.asked_mode = modes.mode_named(self.mode, partition_of(self).checks)
        self.effort = modes.effort_of(self.asked_mode, self.descriptor)
        if self.time_limit is None:
            self.time_limit = self.asked_mode.time_limit
        # No more than Slurm gives: it would let the job wait for ever, or end it halfway.
        limits, asked = partition_of(self).limits, typ.Duration(self.time_limit)
        self.capped: list[Reason] = []
        if limits.seconds is not None and asked > limits.seconds:
            self.time_limit, why = limits.seconds, str(limits.why)
            of = {"asked_s": asked, "most_s": limits.seconds, "why": why}
            self.capped = [CAPPED_TIME(**of)]
        self.manifest = self.read_or_plan_manifest()
        self.choose_program()
        self.found = self.manifest.program(self.program)
        if self.found.unavailable:
            self.not_available(self.found.unavailable)
        if limits.seconds is not None and limits.seconds < SHORTEST_S:
            self.not_available(str(NO_TIME(why=str(limits.why))))

        if why := busy.why_not_launched(
            *(store.current_run_id(), type(self).__name__, self.current_partition.fullname)
        ):
            self.keep(unavailable=str(why), not_launched=why)
            self.skip(str(why))

    def choose_program(self) -> None:
        """Choose among several programs, once the partition is known."""

    def not_available(self, reason: str) -> None:
        """Keep why this case cannot run here, and leave it out."""
        self.keep(unavailable=reason)
        self.skip(f"{self.program} is not available here: {reason}")

    def read_or_plan_manifest(self) -> Manifest:
        """Return what is on disk; a dry run makes do with what would be put there."""
        try:
            return read_manifest(state_dir(), self.current_environ.name)
        except ManifestError:
            if not self.is_dry_run():
                raise
            return stacks.planned(stack_of(self).request)

    def settle(self) -> None:
        """Settle what the settings leave open, before the launch is laid out."""

    @run_after("setup")
    def lay_out(self) -> None:
        """Turn ranks and placement into a launch."""
        self.settle()
        partition = partition_of(self)
        used = used_shape(self)
        self.ranks = self.ranks or used.cores_per_node // self.cores_per_rank * used.nodes
        layout = layout_on_partition(self.ranks, self.placement, self.cores_per_rank, partition)
        self.layout, most = layout, partition.limits.nodes
        if most is not None and layout.nodes > most:
            self.not_available(str(TOO_MANY_NODES(nodes=layout.nodes, most=most)))
        self.num_tasks = layout.tasks_to_ask_for
        self.num_tasks_per_node = layout.ranks_per_node
        self.num_cpus_per_task = self.cores_per_rank
        self.nodes_of_system = exclusions.hostfile_of(self.current_system.name)
        self.tell_launcher(self.manifest)

    def tell_launcher(self, manifest: Manifest) -> None:
        """Tell the partition's launcher which stack it launches, and where."""
        where = (Path(self.stagedir), self.nodes_of_system, stack_of(self).pmi)
        self.job.launcher.configure(manifest, self.layout, *where)

    def peak_programs(self) -> Mapping[str, Sequence[str]]:
        """Return the kernels that bound this benchmark's figures, each with its options."""
        return {"node_peaks": [], CORE_DISTANCE: DISTANCE_EFFORT}

    @run_before("run")
    def plan_launches(self) -> None:
        """Write down what the job launches; its script runs the driver, which reads that."""
        contenders, launcher = self.contenders(), self.job.launcher
        dialect = launcher.hostfile_of_allocation()
        parse = self.reader()
        deciding = self.deciding()
        budget = fixed_launches(self.launches) if self.launches else self.effort.budget
        # Who goes on until Slurm ends the job looks like a rank that hangs.
        limit_s = typ.Duration(self.time_limit)
        # Whether it has launched often enough may depend on the figures.
        reads = self.descriptor.repeated or deciding
        self.plan = planning.Plan(
            nonce=secrets.token_hex(8),
            contenders=contenders,
            seed=secrets.randbits(32),
            asides=planned_measurements(
                self.manifest, self.peak_programs(), env_words(self.rank_environment())
            ),
            kept_in=str(store.stage_folder(store.current_run_id()) / "peaks"),
            core_distance=self.manifest.command(CORE_DISTANCE),
            on_each_node=launcher.on_each_node(
                {**self.current_environ.env_vars, **launcher.exports(self.cores_per_rank)}
            ),
            reader=f"{parse.__module__}:{parse.__qualname__}" if reads else "",
            hostfile=str(launcher.hostfile(dialect)) if dialect else "",
            hostfile_dialect=dialect,
            ranks_per_node=self.layout.ranks_per_node,
            **{**deciding, "budget": fit_to_time_limit(deciding.get("budget", budget), limit_s)},
        )
        planning.write_plan(Path(self.stagedir), self.plan)
        driver = [sys.executable, "-I", "-m", "clustergate.launch", planning.PLAN]
        preparation = [
            *sites.preparation(),
            *self.current_partition.prepare_cmds,
            *emit_loadenv_commands(self.current_partition.local_env, self.current_environ),
        ]
        begin_clean(self.job)
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
            program=[*env_words(self.rank_environment()), program.path, *self.arguments()],
            proof_library=manifest.proof_library,
            environment=exports,
            inputs=self.inputs(),
            output=self.output_file,
            patience=self.patience(),
        )

    def expected_s(self) -> float:
        """Return how long a launch takes, roughly."""
        return self.descriptor.usual_s

    def patience(self) -> Patience | None:
        """Return how long a launch may show no progress."""
        return Patience.of(
            *(self.ranks, self.layout.nodes),
            call_s=self.longest_call_s or self.descriptor.longest_call_s,
            computing_s=_TIMES_AS_LONG * self.expected_s(),
        )

    def by_hand(self, contender: planning.Contender) -> str:
        """Return the lines to type to get a contender's figures without the suite."""
        # The folder of the job goes, and with it what the launcher found there.
        files = self.job.launcher.files
        there = {str(Path(self.stagedir) / name): name for name in files}
        command = [*(there.get(word, word) for word in contender.launcher), *contender.program]
        return by_hand.script(
            {**contender.inputs, **files}, contender.environment, command, contender.output
        )

    def deciding(self) -> Mapping[str, Any]:
        """Return by what the plan says when launches have decided something, nothing of it here."""
        return {}

    def arguments(self) -> Sequence[str]:
        """Return the program's arguments."""
        return ()

    def rank_environment(self) -> Mapping[str, str]:
        """Return variables that only the ranks are to see."""
        return {}

    def inputs(self) -> Mapping[str, str]:
        """Return the program's input files: names and texts."""
        return {}

    @abstractmethod
    def expectation(self) -> Any:
        """Return what the run was asked for, as the benchmark's parser takes it."""

    def reader(self) -> Any:
        """Return what the job itself reads outputs by, to see whether it was launched enough."""
        return self.descriptor.format.parse

    def rows(self, lines: Iterable[str], source: str) -> Iterator[Row]:
        """Read what the program printed; raises OutputError for what cannot be trusted."""
        parse, asked = self.descriptor.format.parse, self.expectation()
        return parse(lines, source=source, expect=asked)

    def conditions(self) -> Conditions:
        """Return what all figures of this case share."""
        parameters = modes.parameters_of(self.display_name)
        variant = modes.variant_of(type(self).__name__, parameters)
        return {
            **({VARIANT: variant} if variant else {}),
            "mode": self.mode,
            "ranks": self.ranks,
            "ranks_per_node": self.layout.ranks_per_node,
            "nodes": self.layout.nodes,
            "placement": self.placement,
            "cores_per_rank": self.cores_per_rank,
            "bound": self.layout.bind,
            "settings": ",".join(f"{k}={v}" for k, v in self.changed_settings().items()),
        }

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings that differ from what their check gives them."""
        settings = {name: getattr(self, name) for name in self.settings_that_matter}
        return {name: value for name, value in settings.items() if value != self.defaults[name]}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Note the settings as they are without ``-S``, which replaces them."""
        super().__init_subclass__(**kwargs)
        declared = {n: one.default_value for n, one in vars(cls)["_rfm_local_var_space"].items()}
        for name in (*_BY_THE_SITE, *cls.settings_that_matter):
            # Of a class that a sweep (-P) makes, -S has changed the base's values already.
            noted = [base.defaults[name] for base in cls.__bases__ if name in _noted(base)]
            inherited = [getattr(base, name) for base in cls.__bases__ if hasattr(base, name)]
            own = [known[name] for known in (vars(cls), declared) if name in known]
            cls.defaults = {**cls.defaults, name: next(iter([*own, *noted, *inherited]), None)}

    def derived_samples(
        self, samples: Sequence[Sample], peaks: Sequence[Row]
    ) -> tuple[Sample, ...]:
        """Return figures that follow from others, such as an efficiency: here those of the mode."""
        derive = self.asked_mode.derived.get(type(self).__name__)
        return derive(samples, self.layout, partition_of(self).facts) if derive else ()

    def details(self) -> dict[str, Any]:
        """Return what else is kept of this case."""
        build = {"build_key": self.manifest.build_key, "lock": self.manifest.lock}
        method = self.descriptor.method(self.effort)
        program = {"program": dataclasses.asdict(self.found), "method": method}
        near = self.needs_near_cores
        return {**build, **program, **details_of(self.ended, self.read, near_cores=near)}

    def notes(self, samples: Sequence[Sample]) -> Sequence[str]:
        """Return sentences that the report prints beside the figures."""
        return ()

    @sanity_function
    def prove_and_read(self) -> bool:
        """Accept the figures only of launches that were the launches asked for."""
        job = self.ended = Job(
            stage=Path(self.stagedir),
            plan=self.plan,
            layout=self.layout,
            partition=partition_of(self),
            hosts=self.job.launcher.hosts,
            hostfile=self.nodes_of_system,
            state=self.job.state,
            exit_status=self.job.exitcode,
            errors=str(self.stderr.evaluate()),
            job_id=str(self.job.jobid),
        )
        check = type(self).__name__
        at = (check, self.current_partition.fullname, self.current_environ.name)

        def baseline_ns() -> float | None:
            return self.references().nearest_ns(*at, self.conditions())

        near = baseline_ns if self.needs_near_cores else None
        prove, derive = self.prove_launch, self.derived_samples
        read = self.read = read_job(job, prove, self.descriptor, derive, near)
        needed = undisturbed_needed(self.plan.budget, self.effort.budget)
        # What made the limit too short is the cause, and no rank that hangs.
        complaints = [*read.complaints, *(self.capped if self.job.state == "TIMEOUT" else ())]
        transport = self.current_environ.env_vars, self.layout.nodes
        self.kept = self.keep(
            samples=read.samples,
            launches=read.launches,
            launches_needed=needed,
            unmeasured=read.unmeasured,
            peaks=read.peaks,
            complaints=complaints,
            notes=[
                *self.notes(read.samples),
                *map(str, self.capped),
                *filter(None, [transport_note(*transport, read.launches)]),
                *notes_of(job, read),
            ],
            details=self.details(),
        )
        if complaints:
            raise SanityError(printable(sentence_of(complaints)))
        return True

    def prove_launch(
        self,
        launch: Launch,
        hosts: Hosts,
        peaks: Sequence[Row],
        stack_manifest: Manifest | None = None,
    ) -> tuple[list[Reason], list[Row]]:
        """Return what speaks against a launch being the one asked for, and its rows."""
        manifest, build = stack_manifest or self.manifest, self.descriptor.build
        uses_blas = build is not None and build.uses_blas
        kernels = {str(row.conditions["kernel"]) for row in peaks if "kernel" in row.conditions}
        expected = dataclasses.replace(
            expected_of(manifest, self.layout),
            nonce=planning.launch_nonce(self.plan.nonce, launch.order),
            hosts=hosts,
            launch_s=launch.seconds,
            by_srun=self.job.launcher.by_srun,
            threads_per_rank=self.cores_per_rank,
            blas_library=manifest.blas.library if uses_blas and manifest.blas else None,
            # The kernels that DGEMM chose in the same job, on the same node.
            blas_kernel=kernels.pop() if uses_blas and len(kernels) == 1 else None,
        )
        job = Path(self.stagedir)
        return read_launch(job, launch.order, expected, self.rows, self.output_file)

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

    @run_after("performance")
    def require_comparison(self) -> None:
        """Fail for what people wrote and nothing was compared with; a session tells it itself."""
        if self.is_dry_run() or store.is_of_session():
            return
        name, partition = self.kept.name, self.current_partition.fullname
        outcome = assembly.Outcome(
            name, self.kept.check, self.kept.stack, "pass", partition=partition
        )
        of = (self.references().find, {partition: partition_of(self).facts})
        expects = self.references().expects
        (case,) = assembly.assemble((), [outcome], [self.kept], *of, expects=expects)
        whys = left_out(self.references(), case, self.asked_mode, partitions_here())
        if whys:
            raise PerformanceError(printable(sentence_of(whys)))

    def named_figures(self) -> list[Any]:
        """Return the figures as :func:`clustergate.judge.assembly.reframe_figures` does."""
        known, nodes = self.references(), {self.kept.partition: partition_of(self).facts}
        measured = measure_case(self.kept, known.find, nodes, known.expects)
        return assembly.reframe_figures(measured, self.kept.unmeasured)

    def references(self) -> lookup.References:
        """Return the references of this system."""
        return lookup.load_references_once(lookup.reference_file(self.current_system.name))

    def keep(self, **what: Any) -> CaseRecord:
        """Store what this case left behind, for judging and for the report, and return it."""
        partition, stack = self.current_partition, self.current_environ.name
        shared = {
            "name": store.case_name(self.unique_name, partition.name, stack),
            "check": type(self).__name__,
            "stack": stack,
            "partition": partition.fullname,
            "conditions": self.conditions() if hasattr(self, "layout") else {"mode": self.mode},
            "command": getattr(self, "command", ""),
            "removed_environment": {
                **removed_at_submission(os.environ),
                **read_removed(Path(self.stagedir) / sites.REMOVED_ENVIRONMENT),
            },
        }
        what["details"] = {resuming.HASH: self.hashcode, **what.get("details", {})}
        record = CaseRecord(**{**shared, **what})
        if not self.is_dry_run():
            store.write_case(store.current_run_id(), record)
        return record
