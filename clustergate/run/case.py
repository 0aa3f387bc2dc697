"""What a job left in its stage folder: what speaks against it, its figures, what is to be known.

The check says what its launches must prove and how their output is read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from clustergate.benchmarks.descriptor import Benchmark
from clustergate.core import figures, store
from clustergate.core.model import (
    METRICS,
    UNKNOWN_DISTANCE,
    ClustergateError,
    Launch,
    Row,
    Sample,
)
from clustergate.core.notation import listed
from clustergate.core.paths import site_file
from clustergate.core.reasons import Reason, Words
from clustergate.judge.assembly import NO_FIGURES
from clustergate.judge.history.node_states import digest_of, keep_states
from clustergate.launch import hostfiles
from clustergate.launch import plan as planning
from clustergate.launch.crashes import crash_of, last_line, rank_of
from clustergate.launch.dialects import Layout
from clustergate.launch.disturbance import without_moved_cores
from clustergate.launch.driver import ASIDE_ENDED
from clustergate.launch.node_failures import (
    cause_of,
    ended_by_scheduler,
    first_node_failure,
)
from clustergate.launch.proof import ranks as proof
from clustergate.launch.reading import OUTPUT_UNREADABLE, lines_of
from clustergate.launch.stopping import is_hopeless
from clustergate.launch.watchdog import HUNG
from clustergate.machine import power
from clustergate.machine.configuration import described
from clustergate.machine.fingerprint import Fingerprint, processor_of
from clustergate.machine.kernels.peaks import parse_peaks
from clustergate.machine.traffic import beside_the_fabric
from clustergate.sites.description import Partition
from clustergate.sites.schedulers import scheduler_of
from clustergate.studies.screen.switches import distance_of

# The exit status of what a signal ended is above this.
_SIGNALLED = 128
Hosts = tuple[str, ...] | None
Prove = Callable[[Launch, Hosts, Sequence[Row]], tuple[list[Reason], list[Row]]]
"""From a launch, the job's nodes and its peaks to what speaks against it, and its rows."""


EXIT_STATUS = Words("job.exit-status", "the job ended with exit status {status}")
JOB_CRASHED = Words(
    "job.crashed",
    "{program} ended with {how}{who}, in launch {launch}",
    cause="{last}",
    remedy="the rest is in {folder}, in the files stdout and stderr",
)
JOB_ENDED = Words(
    "job.ended",
    "{sentence}",
    cause="the scheduler ended the job",
    remedy="ask it why: sacct, qstat -x",
)
IN_THE_PEAKS = Words(
    "job.in-the-peaks",
    "after {launches:launch|launches} {host} was still measuring its peaks",
    cause=(
        "this takes seconds, or minutes with hundreds of cores, unless other programs use the "
        "cores or the node is slow"
    ),
    remedy="see what runs on {host}, or raise the time limit (`-S time_limit=…`)",
)
FIRST_NODE = Words("job.first-node", "first node with an error: {why}")
LAST_WORDS = Words("job.last-words", "its last line on standard error: {words}")
FEW_LAUNCHES = Words(
    "job.few-launches",
    "the job launched {launches:time|times} instead of {expected} and reports no error",
    remedy="look at its script and its output",
)
OTHER_FILES = Words(
    "job.other-files",
    (
        "{node} lacks, or has with other contents than the first node, what ranks loaded: "
        "{files:names}"
    ),
    cause="an update reached some of the nodes, or something was mounted or written there",
    remedy="install the same on all nodes of the partition, or make two partitions of them",
)
BESIDE_THE_FABRIC = Words(
    "job.beside-the-fabric",
    "{sentence}",
    cause="the MPI library fell back to another network",
    remedy=(
        "look for a driver that is not loaded, a port that is down, or a library built without "
        "that fabric"
    ),
)


@dataclass(frozen=True)
class Job:
    """A job that ended: its folder, what was planned for it, and what the scheduler says of it.

    ``hosts`` are the nodes that it was given, None where only the driver's log has them;
    ``hostfile`` holds the nodes that it must not get. ``errors`` is the file of standard error.
    """

    stage: Path
    plan: planning.Plan
    layout: Layout
    partition: Partition
    hosts: Hosts
    hostfile: hostfiles.Hostfile | None
    state: str | None
    exit_status: int | None
    errors: str
    job_id: str = ""

    @cached_property
    def log(self) -> planning.JobLog:
        """What the driver noted; raises :class:`PlanError` where that is damaged."""
        return planning.read_log(self.stage)

    def lines(self, name: str) -> Iterator[str]:
        """Return the lines of a file in the stage folder."""
        return lines_of(self.stage / name)

    def peak_rows(self) -> list[Row]:
        """Return what the kernels measured, before and after."""
        files = [one.output(when) for one in self.plan.asides for when in ("before", "after")]
        return [row for name in files for row in parse_peaks(self.lines(name), source=name)]

    def complaints(self, launches: int, hosts: Hosts) -> list[Reason]:
        """Return what speaks against the job as a whole, which made so many launches."""
        complaints = [
            OTHER_FILES(node=node, files=files) for node, files in self.log.unlike.items() if files
        ]
        if self.hostfile and hosts:
            complaints += hostfiles.excluded_among(self.hostfile, hosts)
        ended = ended_by_scheduler(self.state)
        if self.log.hung:
            who, nodes = str(self.log.hung["who"]), list(hosts or ())
            if nodes and not any(host in who for host in nodes):
                who += f"; on {listed(nodes)}"
            complaints.append(HUNG(**{**self.log.hung, "who": who}))
            with contextlib.suppress(proof.ProofError):
                folder = planning.proof_folder(self.stage, launches)
                if not proof.read_proofs(folder):
                    late = proof.waited_for(folder, self.layout.ranks_on(hosts or ()))
                    complaints += [late] if late else []
            under_way = planning.launch_folder(self.stage, launches) / planning.ERRORS
            complaints += self._cause(under_way, [], hosts, was_ended=True)
        elif ended or self.exit_status:
            status = EXIT_STATUS(status=self.exit_status)
            complaints.append(JOB_ENDED(sentence=ended) if ended else status)
            # A job that was cancelled in its queue has none.
            said = list(self.lines(self.errors)) if (self.stage / self.errors).is_file() else []
            last = [line.strip() for line in said if re.search(r"\w", line)][-1:]
            crashed = self._crashed()
            complaints[-1:] = [*crashed, *complaints[-1:]]
            under_way = planning.launch_folder(self.stage, launches) / planning.ERRORS
            if (
                not under_way.is_file()
                and not crashed
                # Else the scheduler tells why it ended.
                and not (ended and self.state != "TIMEOUT")
                # What measures the peaks may end by itself, too.
                and (self.state == "TIMEOUT" or (self.exit_status or 0) > _SIGNALLED)
                and not any(ASIDE_ENDED in line for line in said)
                and (self.stage / planning.LOG).exists()
                and not under_way.parent.exists()
            ):
                host = hosts[0] if hosts else "its node"
                complaints.append(IN_THE_PEAKS(host=host, launches=launches))
            if not under_way.parent.exists():
                under_way = self.stage / f"{planning.NODES}.err"
            complaints += self._cause(under_way, said, hosts)
            with contextlib.suppress(proof.ProofError):
                foreseen = self.layout.ranks_on(hosts or ())
                folder = planning.proof_folder(self.stage, launches)
                if late := proof.waited_for(folder, foreseen):
                    complaints.append(late)
            complaints += [LAST_WORDS(words=words[:200]) for words in last]
        elif launches < (asked := self.plan.budget.at_least) and not self._is_hopeless():
            complaints.append(FEW_LAUNCHES(launches=launches, expected=asked))
        return complaints

    def _is_hopeless(self) -> bool:
        """Tell whether the driver launched no more because others disturbed all in its time."""
        made = [one.launch for one in self.log.launches]
        made = without_moved_cores(made, self.log.nearest_of_run_ns)
        undisturbed = sum(not one.disturbed for one in made)
        return is_hopeless(self.plan.budget, [one.seconds for one in made], undisturbed)

    def _cause(
        self, file: Path, said: Sequence[str], hosts: Hosts, *, was_ended: bool = False
    ) -> list[Reason]:
        """Return what is wrong with a node by what was said, and by a launcher's complaints."""
        lines = [*said, *(lines_of(file) if file.is_file() else [])]
        if not first_node_failure(lines, hosts or ()):
            return []
        cause = cause_of(lines, hosts or (), was_ended=was_ended)
        return [FIRST_NODE(why=cause)] if cause else []

    def _crashed(self) -> list[Reason]:
        """Return how the last launch ended, if the driver saw it end otherwise than with 0."""
        made = self.log.launches[-1:]
        if not made or not made[0].status:
            return []
        order = made[0].launch.order
        folder = planning.launch_folder(self.stage, order)
        printed, complained = (
            list(lines_of(folder / name)) if (folder / name).is_file() else []
            for name in (planning.OUTPUT, planning.ERRORS)
        )
        crash = crash_of(made[0].status, [*complained, *printed])
        if crash.rank is None:
            with contextlib.suppress(proof.ProofError):
                ranks = proof.read_proofs(planning.proof_folder(self.stage, order))
                unfinished = [one.rank for one in ranks if not one.finalized]
                rank = rank_of(unfinished, [one.rank for one in ranks if one.aborted])
                crash = dataclasses.replace(crash, rank=rank)
        program = Path(next(iter(self.plan.contenders[0].program), "the program")).name
        words = last_line(printed) or last_line(complained)
        facts = {"program": program, "how": crash.how, "who": crash.who, "folder": str(folder)}
        last = f"the last line of its output: {words}" if words else "it printed nothing"
        return [JOB_CRASHED(launch=order + 1, last=last, **facts)]

    def complaints_of_network(self, launch: Launch) -> list[Reason]:
        """Return what speaks against a launch having gone through the partition's fabric."""
        fabric, sent = self.partition.fabric, launch.node.get("sent_bytes")
        if not fabric or self.layout.nodes == 1 or not isinstance(sent, Mapping):
            return []
        sentence = beside_the_fabric(sent, fabric)
        return [BESIDE_THE_FABRIC(sentence=sentence)] if sentence else []

    def powers(self) -> dict[int, power.Power]:
        """Return the watts of each launch: measured by RAPL or the scheduler, or stated."""
        said, nodes = self.partition, self.layout.nodes
        cores = self.layout.ranks_per_node * self.layout.cores_per_rank
        sockets = (said.watts_per_socket, said.cores_per_socket)
        stated = power.stated_power(*sockets, cores, nodes, said.power_of)
        launches = [made.launch for made in self.log.launches]
        measured = {one.order: power.measured_power(one, nodes) for one in launches}
        counted: Mapping[int, power.Power] = {}
        if None in measured.values():
            counted = scheduler_of(said.scheduler).powers(self.job_id, launches)
        known = {k: watts or counted.get(k, stated) for k, watts in measured.items()}
        return {order: watts for order, watts in known.items() if watts is not None}


@dataclass
class Reading:
    """What was read of a job; ``node_states`` are by node, ``hosts`` as in the log."""

    complaints: list[Reason] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    peaks: list[Row] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    node_states: dict[str, Fingerprint] = field(default_factory=dict)
    log: planning.JobLog | None = None

    @property
    def unmeasured(self) -> list[Any]:
        """The rows that have a word instead of figures."""
        return figures.unmeasured(self.rows)


def read_job(
    job: Job,
    prove: Prove,
    known: Benchmark,
    derive: Callable[[Sequence[Sample], Sequence[Row]], Sequence[Sample]],
    nearest_ns: Callable[[], float | None] | None,
) -> Reading:
    """Read a job; whatever cannot be read is a complaint.

    ``known`` is what is known of its figures.
    ``derive`` makes figures of samples and peaks; ``nearest_ns`` returns the core-to-core round
    trip of the baseline, None where moved cores do no harm.
    """
    read = Reading()
    try:
        run = store.run_folder(store.current_run_id())
        read.node_states = keep_states(job.stage / planning.NODES, run)
        read.log = log = job.log
        read.launches = [made.launch for made in log.launches]
        hosts = job.hosts or log.hosts
        if nearest_ns:
            read.launches = without_moved_cores(read.launches, log.nearest_of_run_ns, nearest_ns())
        read.complaints += job.complaints(len(read.launches), hosts)
        # A job that did not come to its end did not come to the peaks behind its launches.
        if not read.complaints:
            read.peaks = job.peak_rows()
        by_order = {one.order: prove(one, hosts, read.peaks) for one in read.launches}
        for launch in read.launches:
            by_order[launch.order][0].extend(job.complaints_of_network(launch))
        read.complaints += proof.by_launch(
            {k: against for k, (against, _) in by_order.items()}, str(job.stage)
        )
        metrics = {**METRICS, **known.metrics}
        for order, (_, rows) in by_order.items():
            read.rows += rows
            made = figures.samples_of(rows, metrics, order)
            figures.refuse_shared_names(made, known.matrix)
            read.samples += made
        read.samples += derive(read.samples, read.peaks)
    except ClustergateError as error:
        read.complaints.append(error.reason)
    except OSError as error:
        facts = {"source": str(error.filename), "why": error.strerror}
        read.complaints.append(OUTPUT_UNREADABLE(**facts))
    if not (read.complaints or read.samples or read.unmeasured):
        read.complaints.append(NO_FIGURES)
    return read


def details_of(job: Job, read: Reading, *, near_cores: bool) -> dict[str, Any]:
    """Return what the ranks of the first launch said of themselves, and how long it all took."""
    states = read.node_states
    record: dict[str, Any] = {
        "node_states": {node: digest_of(state) for node, state in states.items()},
        "processors": sorted({name for state in states.values() if (name := processor_of(state))}),
    }
    with contextlib.suppress(ClustergateError):
        record["proof"] = proof.summary(proof.read_proofs(planning.proof_folder(job.stage, 0)))
    if log := read.log:
        hosts = job.hosts or log.hosts or ()
        if len(hosts) > 1:
            of = job.partition
            fabric = site_file("hostfiles", f"{of.system}.ibnetdiscover")
            where = distance_of(hosts, of.scheduler, fabric, of.fabric, job.hostfile)
            record["distance"] = where or UNKNOWN_DISTANCE
        if log.began:
            # Until now: what ends a job, and until ReFrame sees that, is a part of what it takes.
            record["job_s"] = round(time.time() - log.began, 3)
        record["launch_s"] = round(sum(made.launch.seconds for made in log.launches), 3)
        record["peaks_s"] = round(log.aside_s, 3)
        record["waited_s"] = round(sum(made.waited_s for made in log.launches), 3)
        record["kept_out"] = [dataclasses.asdict(file) for file in log.kept_out]
        record["mapped"] = {k: v for files in log.mapped.values() for k, v in files.items()}
        record["site_files"] = [dataclasses.asdict(file) for file in log.all_site_files]
        if near_cores:
            record["core_distance_ns"] = log.nearest_ns
    return record


NODES_SILENT = Words(
    "nodes.silent",
    (
        "{count} of {nodes} nodes ({names:names}) did not report their state: changes there go "
        "unnoticed"
    ),
    remedy="nodes.err in the job's folder says why",
)
NODES_UNHASHED = Words(
    "nodes.unhashed",
    (
        "{count} of {nodes} nodes did not report hashes of their files: another version of a "
        "library there goes unnoticed"
    ),
    remedy="hashes-0.err in the job's folder says why",
)


def notes_of(job: Job, read: Reading) -> list[str]:
    """Return what else is to be known of the job, beside its figures."""
    notes, nodes = figures.left_out(read.rows), job.layout.nodes
    if (silent := nodes - len(read.node_states)) > 0:
        heard = {name.partition(".")[0] for name in read.node_states}
        hosts = job.hosts or (read.log and read.log.hosts) or ()
        silent_ones = [host for host in hosts[:nodes] if host.partition(".")[0] not in heard]
        names = silent_ones or ["unknown which"]
        notes = [*notes, str(NODES_SILENT(count=silent, nodes=nodes, names=names))]
    if log := read.log:
        if job.plan.on_each_node and log.mapped and (unhashed := nodes - len(log.unlike)) > 0:
            notes = [*notes, str(NODES_UNHASHED(count=unhashed, nodes=nodes))]
        notes = [*notes, *log.notes, *described(log.kept_out, log.all_site_files)]
        folders = [planning.proof_folder(job.stage, made.launch.order) for made in log.launches]
        with contextlib.suppress(ClustergateError):
            proofs = list(map(proof.read_proofs, folders))
            notes += [note for of_launch in proofs for note in proof.clock_notes(of_launch)]
    return notes
