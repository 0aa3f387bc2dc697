"""Whether a run was the run asked for: what its ranks said of themselves, held to what was asked.

``clustergate/machine/kernels/src/proof.c`` is preloaded into the measured launch and leaves one
record per process. :func:`read_proofs` reads the folder; :func:`check_proofs` is pure and returns
one reason for each thing that is not as it was asked for, none when the run is proven.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from clustergate.core.files.whole import parse_json
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.core.words import FILE_UNREADABLE
from clustergate.launch.proof.clocks import TOLERANCE, ClockIntervals, Clocks

_MPI_LIBRARY = re.compile(r"libmpi(ch)?\.so(\.|$)")
# Variables by which a rank knows the launcher that started it, the first that is there; under
# srun there is none. Intel's hydra sets MPI_LOCALRANKID too.
_LAUNCHERS = (
    ("I_MPI_HYDRA_UUID", "Intel MPI's mpiexec.hydra", "Intel MPI"),
    ("OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun", "Open MPI"),
    ("MPI_LOCALRANKID", "MPICH's or MVAPICH's mpiexec.hydra", "MPICH"),
)
# Under srun Intel MPI's library sets this for itself, when it starts.
_SET_BY_INTEL_MPI = "MPI_LOCALRANKID"
# What the two moments at which a launch is timed may be apart by themselves, on a busy node.
_START_S = 0.5
_Key = TypeVar("_Key", bound=Hashable)


class ProofError(ClustergateError):
    """A record of the proof cannot be read."""


@dataclass(frozen=True)
class Moment:
    """What a rank saw of itself and of its node at one moment.

    ``affinity`` maps each logical CPU it may run on to the hardware threads of that CPU's core, as
    the kernel writes them (``0,128``), or to the CPU's own number where the kernel does not say.
    ``threads`` are those it had (-1: unknown). ``cpu_times`` is the kernel's own text,
    ``steal_by_cpu`` is in clock ticks, and each is None where the kernel has none; so is
    ``clocks``.
    ``utc_offset_s`` is by how much the local time of the process is ahead of UTC.
    """

    monotonic_s: float
    realtime_s: float
    threads: int
    affinity: Mapping[int, str]
    user_s: float
    system_s: float
    cpu_times: str | None
    steal_by_cpu: Mapping[int, int] | None
    clocks: Clocks | None = None
    utc_offset_s: int | None = None

    @property
    def cores(self) -> frozenset[str]:
        """The cores it may run on: two hardware threads of one core are one."""
        return frozenset(self.affinity.values())


_MOMENT = dataclasses.fields(Moment)


@dataclass(frozen=True)
class BlasIdentity:
    """The BLAS of a process.

    ``library`` holds the loader's name of the file that answers to DGEMM and its resolved path,
    ``kernel`` the processor whose kernels it chose; ``threads`` is -1 where the library does not
    say.
    """

    name: str | None
    version: str | None
    kernel: str | None
    threads: int
    library: tuple[str, ...]


@dataclass(frozen=True)
class RankProof:
    """One process's record.

    ``rank`` and ``size`` are -1 where the proof library could not ask (it was compiled for another
    family of MPI). ``mpi_library`` holds the loader's name of the file that answers to MPI_Init
    and its resolved path. ``foreign_preloads`` are the libraries that were loaded before its own
    without having been asked for. ``environment`` are names of variables, whose values may be
    secrets. ``at_finalize`` is None for a process that never reached MPI_Finalize.
    """

    rank: int
    size: int
    hostname: str
    pid: int
    nonce: str | None
    finalized: bool
    aborted: bool
    mpi_version: str
    library_version: str
    mpi_library: tuple[str, ...]
    executable: str | None
    objects: tuple[str, ...]
    blas: BlasIdentity | None
    environment: frozenset[str]
    at_init: Moment | None
    at_finalize: Moment | None
    foreign_preloads: tuple[str, ...] = ()

    @property
    def passed(self) -> ClockIntervals | None:
        """What passed between its two moments, None where that is not known."""
        clocks = [moment.clocks for moment in (self.at_init, self.at_finalize) if moment]
        before, after = clocks if len(clocks) == 2 else (None, None)
        return ClockIntervals(before, after) if before and after else None


@dataclass(frozen=True)
class ProofExpectation:
    """What was asked for.

    ``mpi_library`` and ``blas_library`` are a file, or the folder it must lie in (a stack's
    prefix); ``library_pattern`` is a regular expression for what MPI_Get_library_version says.
    ``nodes`` counts distinct nodes, ``hosts`` names the only ones allowed. ``cores_per_rank`` is
    how many cores each rank has for itself (``own_cores``) and, when ``bound``, is bound to.
    ``by_srun`` tells that srun starts the ranks, no launcher of an MPI library.
    ``may_oversubscribe`` lets a node have more ranks than cores. ``blas_library`` None: the program
    needs no BLAS; ``blas_kernel`` None: any kernel. ``launch_s`` is how long the launch took in
    seconds, by the clock of the node that started it. None elsewhere: not checked.
    """

    nonce: str
    ranks: int
    mpi_library: str
    library_pattern: str
    nodes: int | None = None
    hosts: tuple[str, ...] | None = None
    ranks_per_node: int | None = None
    cores_per_rank: int = 1
    own_cores: bool = True
    bound: bool = True
    may_oversubscribe: bool = False
    by_srun: bool = False
    threads_per_rank: int | None = 1
    blas_library: str | None = None
    blas_kernel: str | None = None
    launch_s: float | None = None


def read_proofs(folder: Path) -> tuple[RankProof, ...]:
    """Read every record in a folder, by rank; a folder that is not there has none.

    Raises :class:`ProofError` for a file that cannot be read or is not such a record.
    """
    return tuple(sorted(map(_read, folder.glob("rank-*.json")), key=lambda proof: proof.rank))


STUCK_IN_INIT = Words("proof.stuck-in-init", "no rank returned from MPI_Init")
LATE_RANKS = Words(
    "proof.late-ranks",
    "it waited for ranks that never reached MPI_Init; those that did: {came:names}",
)
SILENT_RANKS = Words(
    "proof.silent-ranks",
    (
        "{ranks:ranks} on {hosts:names} did not respond to the signal that ended the job, but "
        "the others did"
    ),
    cause="stopped, or stuck in the kernel",
)
HUNG_RANKS = Words(
    "proof.hung-ranks",
    "{ranks:ranks} on {hosts:names} never reached MPI_Finalize, but the others did",
    remedy="see the end of the job's output, and whether that node or its fabric hangs",
)


def waited_for(folder: Path, foreseen: Mapping[str, int]) -> Reason | None:
    """Return whom a launch that hung waited for, by what lies in the folder of its records.

    ``foreseen`` are its nodes with their ranks, where they are known. None when nothing tells.
    """
    # These name processes by host and number.
    entered = [path.name for path in folder.glob("entered-*")]
    ended = {path.name.removeprefix("ended-") for path in folder.glob("ended-*")}
    proofs = read_proofs(folder)
    if not proofs:
        # Nobody returns from MPI_Init before all have come to it.
        came = Counter(name.removeprefix("entered-").rpartition("-")[0] for name in entered)
        late = {
            host: n
            for host, ranks in foreseen.items()
            if (n := sum(came[other] for other in came if _same(host, other))) < ranks
        }
        if not entered or not late:
            return STUCK_IN_INIT() if entered else None
        came_late = [f"{n} of {foreseen[host]} on {host}" for host, n in late.items()]
        return LATE_RANKS(came=came_late)
    unfinished = [proof for proof in proofs if not proof.finalized]
    silent = [p for p in unfinished if f"{p.hostname}-{p.pid}" not in ended]
    if silent and len(silent) < len(unfinished):
        return SILENT_RANKS(**_who(silent))
    if unfinished and len(unfinished) < len(proofs):
        return HUNG_RANKS(**_who(unfinished))
    return None


PROOF_NO_RECORD = Words(
    "proof.no-record",
    "no process left a record of this run",
    cause=(
        "the program never reached MPI_Init, is linked statically, or was started without the "
        "preloaded proof library"
    ),
    remedy="the end of the job's output says which",
)


def check_proofs(proofs: Sequence[RankProof], expected: ProofExpectation) -> list[Reason]:
    """Return what speaks against this having been the run asked for; nothing when it is proven."""
    ours = [proof for proof in proofs if proof.nonce == expected.nonce]
    complaints = list(_leftovers(proofs, ours))
    if not ours:
        return [*complaints, PROOF_NO_RECORD()]
    # Who is which rank comes first: where that is wrong, all else would be said of the wrong ones.
    unclear = list(_identities(ours, expected))
    complaints += unclear
    if any(proof.rank < 0 for proof in ours):
        return complaints
    for check in (_libraries, _preloads, _launchers, _clocks):
        complaints += check(ours, expected)
    if unclear:
        return complaints
    for check in (_endings, _nodes, _cores, _threads, _blas):
        complaints += check(ours, expected)
    return complaints


# The folder of a launch, within that of its job.
_OF_LAUNCH = re.compile(r"^launch-\d+/")


def by_launch(complaints: Mapping[int, Sequence[Reason]], job: str = "") -> list[Reason]:
    """Return what is said of each launch of a case, by its number, as complaints of the case.

    ``complaints`` hold every launch. What is said of several is said once; of a single launch
    there is nothing to tell apart. A line of an output is told by the first of them, in the folder
    of its ``job``.
    """
    launches: dict[Reason, list[int]] = {}
    first: dict[Reason, Reason] = {}
    for order, of_launch in complaints.items():
        for one in of_launch:
            common = one.outside(_OF_LAUNCH)
            first.setdefault(common, one if common == one or not job else one.within(job))
            launches.setdefault(common, []).append(order)
    if len(complaints) == 1:
        return [*first.values()]
    return [first[one].of_launches(orders, len(complaints)) for one, orders in launches.items()]


DAMAGED_RECORD = Words(
    "proof.damaged-record",
    "{path} is not a record of this version's proof library ({why})",
    remedy="compile the stack again with 'clustergate setup' and repeat the run",
)


def _read(path: Path) -> RankProof:
    try:
        # Paths and variables may hold bytes that are no UTF-8.
        record = parse_json(path.read_text(encoding="utf-8", errors="replace"))
        return _rank_proof(record)
    except OSError as error:
        raise ProofError(FILE_UNREADABLE(path=path, why=error)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProofError(DAMAGED_RECORD(path=path, why=error)) from error


def _rank_proof(record: Mapping[str, Any]) -> RankProof:
    blas = record["blas"]
    if blas is not None:
        blas = BlasIdentity(**{**blas, "library": _paths(blas["library"])})
    converted = {
        "mpi_library": _paths(record["mpi_library"]),
        "objects": tuple(record["objects"]),
        "blas": blas,
        "environment": frozenset(record["environment"]),
        "foreign_preloads": tuple(record.get("foreign_preloads", ())),
        "at_init": _moment(record["at_init"]),
        "at_finalize": _moment(record["at_finalize"]),
    }
    return RankProof(**{**record, **converted})


def _paths(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(name for name in names if name is not None)


def _moment(record: Mapping[str, Any] | None) -> Moment | None:
    if record is None:
        return None
    affinity = {int(cpu): siblings or cpu for cpu, siblings in record["affinity"].items()}
    steal = record["steal_by_cpu"]
    by_cpu = None if steal is None else {int(cpu): ticks for cpu, ticks in steal.items()}
    clocks = Clocks(**record["clocks"]) if record.get("clocks") else None
    known = {field.name: record[field.name] for field in _MOMENT if field.name in record}
    return Moment(**{**known, "affinity": affinity, "steal_by_cpu": by_cpu, "clocks": clocks})


USED_FOLDER = Words(
    "proof.used-folder",
    "the proof folder holds {records:record|records} of another run (nonce {nonces:list})",
    cause="it was used before",
    remedy="give each run an empty folder",
)


def _leftovers(proofs: Sequence[RankProof], ours: Sequence[RankProof]) -> Iterator[Reason]:
    if len(ours) < len(proofs):
        others = sorted({proof.nonce or "none" for proof in proofs if proof not in ours})
        yield USED_FOLDER(records=len(proofs) - len(ours), nonces=others)


OTHER_FAMILY = Words(
    "proof.other-family",
    "{processes:process|processes} on {hosts:names} could not be asked for a rank",
    cause=(
        "the proof library was compiled for another family of MPI than {version} ({library}), "
        "which the program loaded"
    ),
    remedy=(
        "the program or LD_LIBRARY_PATH is not the stack's, or the proof library is not: compile "
        "both with the stack's mpicc"
    ),
)
PROOF_SINGLETON = Words(
    "proof.singleton",
    "1 process believes it is rank 0 of 1, not one of {expected}",
    cause="started by another MPI's mpirun or without its process manager (PMI)",
    remedy=(
        "it runs {version}, so start it with the mpirun of that library, or with the srun --mpi= "
        "type it understands"
    ),
)
PROOF_SINGLETONS = Words(
    "proof.singletons",
    "{processes} processes each believe they are rank 0 of 1, not one of {expected}",
    cause="started by another MPI's mpirun or without its process manager (PMI)",
    remedy=(
        "they run {version}, so start them with the mpirun of that library, or with the srun "
        "--mpi= type it understands"
    ),
)
OTHER_SIZE = Words(
    "proof.other-size",
    (
        "{processes:process|processes} on {hosts:names} belong to a job of {size:rank|ranks}, "
        "where {expected} were asked for"
    ),
    remedy="compare the launcher's -n with the slots of the hostfile or the allocation",
)
STARTED_TWICE = Words(
    "proof.started-twice",
    "{ranks:ranks} left more than one record",
    cause="the program was started more than once in this run",
    remedy="look at the job's script",
)
PROOF_MISSING_RANKS = Words(
    "proof.missing-ranks",
    "{ranks:ranks} of {expected} left no record",
    cause=(
        "killed before MPI_Init ended, started without the preloaded proof library, or on a node "
        "that cannot write the proof folder"
    ),
    remedy="see that it is on a file system that all nodes share",
)


def _identities(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    unknown = [proof for proof in proofs if proof.rank < 0]
    if unknown:
        yield OTHER_FAMILY(
            processes=len(unknown),
            hosts=_hosts(unknown),
            version=_title(unknown[0]),
            library=", ".join(unknown[0].mpi_library[-1:]),
        )
        return
    singles = [proof for proof in proofs if proof.size == 1]
    if len(singles) > 1 or (singles and expected.ranks > 1):
        yield (PROOF_SINGLETON if len(singles) == 1 else PROOF_SINGLETONS)(
            processes=len(singles),
            expected=expected.ranks,
            version=_title(singles[0]),
        )
        return
    for size, group in _grouped(proofs, lambda proof: proof.size):
        if size != expected.ranks:
            yield OTHER_SIZE(
                processes=len(group),
                hosts=_hosts(group),
                size=size,
                expected=expected.ranks,
            )
            return
    seen = Counter(proof.rank for proof in proofs)
    twice = [rank for rank, count in seen.items() if count > 1]
    if twice:
        yield STARTED_TWICE(ranks=twice)
    missing = [rank for rank in range(expected.ranks) if rank not in seen]
    if missing:
        yield PROOF_MISSING_RANKS(ranks=missing, expected=expected.ranks)


OTHER_MPI = Words(
    "proof.other-mpi",
    "{ranks:ranks} on {hosts:names} loaded {library}, not {expected}",
    cause="a module, LD_LIBRARY_PATH or the program's RUNPATH led there",
    remedy="'ldd {executable}' on the node shows by which",
)
SEVERAL_MPI = Words(
    "proof.several-mpi",
    "{ranks:ranks} on {hosts:names} loaded {count} MPI libraries at once ({libraries:list})",
    cause="the program or one of its libraries was linked with another MPI than the stack's",
    remedy="compile it again with the stack's mpicc",
)
OTHER_VERSION = Words(
    "proof.other-version",
    "{ranks:ranks} on {hosts:names} ran {version}, which does not match '{expected}'",
    cause="another version was loaded, or installed over {library}",
    remedy=(
        "load the expected version or correct it; where clustergate installed the library, "
        "remove the folder of this installation, and `clustergate setup` makes it anew"
    ),
)


def _libraries(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    wrong = [proof for proof in proofs if not _any_at(proof.mpi_library, expected.mpi_library)]
    for library, group in _grouped(wrong, lambda proof: proof.mpi_library):
        yield OTHER_MPI(
            **_who(group),
            library=library[-1] if library else "an MPI library without a file",
            expected=expected.mpi_library,
            executable=group[0].executable,
        )
    for libraries, group in _grouped(proofs, _mpi_objects):
        if len(libraries) > 1:
            yield SEVERAL_MPI(**_who(group), count=len(libraries), libraries=libraries)
    for _, group in _grouped(proofs, lambda proof: proof.library_version):
        if not re.search(expected.library_pattern, group[0].library_version):
            yield OTHER_VERSION(
                **_who(group),
                version=_title(group[0]),
                expected=expected.library_pattern,
                library=expected.mpi_library,
            )


PROOF_PRELOADED = Words(
    "proof.preloaded",
    "{ranks:ranks} on {hosts:names}: {libraries:list} was preloaded without being requested",
    cause="what is loaded before the program's own libraries can change any figure and any clock",
    remedy=(
        "take it out of /etc/ld.so.preload; if every job of the site has it, name it in LD_PRELOAD "
        "among the env_vars of the site config"
    ),
)
PROOF_AUDITED = Words(
    "proof.audited",
    (
        "{ranks:ranks} on {hosts:names} ran under an audit library of the loader, which can "
        "intercept any function"
    ),
    remedy="remove LD_AUDIT from what the shell of the node sets",
)


def _preloads(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    for libraries, group in _grouped(proofs, lambda proof: proof.foreign_preloads):
        if libraries:
            yield PROOF_PRELOADED(**_who(group), libraries=libraries)
    audited = [proof for proof in proofs if "LD_AUDIT" in proof.environment]
    if audited:
        yield PROOF_AUDITED(**_who(audited))


PROOF_MISTIMED = Words(
    "proof.mistimed",
    (
        "{ranks:ranks} on {hosts:names}: MPI_Wtime ran at {speed} times CLOCK_MONOTONIC_RAW, so "
        "that no time and no rate counts"
    ),
    cause="the MPI library calibrated its timer wrongly, as it does on a busy core",
    remedy="run again on an idle node; if it stays so, look at what is preloaded there",
)
WRONG_CLOCKS = Words(
    "proof.wrong-clocks",
    (
        "{ranks:ranks} on {hosts:names}: clocks ran at another speed than the kernel's ({clocks} "
        "times CLOCK_MONOTONIC_RAW), so that no time and no rate counts"
    ),
    cause="something intercepts the clocks of the C library or of MPI, as libfaketime does",
    remedy="look at what is preloaded on the node",
)
CLOCK_WAS_SET = Words(
    "proof.clock-was-set",
    (
        "{ranks:ranks} on {hosts:names}: the node's clock was set by {set_by_s:+.2g} s during "
        "{seconds:.1f} s, and {clocks:and} followed, so no time counts"
    ),
    remedy="let the time service settle (chronyc tracking, timedatectl), then run again",
)
CLOCKS_APART = Words(
    "proof.clocks-apart",
    (
        "{hosts:names} counted {longest_s:.1f} s between MPI_Init and MPI_Finalize of a launch "
        "that took {launch_s:.1f} s on the node that started it"
    ),
    cause="one of the two clocks runs wrong",
    remedy="compare both with a third",
)


def _clocks(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    for _, group in _grouped(proofs, lambda proof: proof.hostname):
        known = [(proof, passed) for proof in group if (passed := proof.passed)]
        misled = {proof.rank: dict(passed.misled()) for proof, passed in known}
        mistimed = [proof for proof, passed in known if passed.mistimed]
        if mistimed:
            speed = f"{misled[mistimed[0].rank]['MPI_Wtime']:.3g}"
            yield PROOF_MISTIMED(**_who(mistimed), speed=speed)
        wrong = [proof for proof, _ in known if misled[proof.rank] and proof not in mistimed]
        if wrong:
            speeds = ", ".join(f"{k} at {v:.2g}" for k, v in misled[wrong[0].rank].items())
            yield WRONG_CLOCKS(**_who(wrong), clocks=speeds)
        followed = [(proof, passed) for proof, passed in known if passed.follows_the_time_of_day()]
        if followed:
            passed = followed[0][1]
            yield CLOCK_WAS_SET(
                **_who([proof for proof, _ in followed]),
                set_by_s=passed.set_by_s,
                seconds=passed.seconds,
                clocks=passed.follows_the_time_of_day(),
            )
        longest = max((passed.seconds for _, passed in known), default=0.0)
        # The two clocks may differ by so much, and the moments at which they were read.
        limit_s = (expected.launch_s or 0.0) * (1 + 2 * TOLERANCE) + _START_S
        if expected.launch_s is not None and longest > limit_s:
            yield CLOCKS_APART(
                hosts=_hosts(group),
                longest_s=longest,
                launch_s=expected.launch_s,
            )


LAUNCHED_AGAIN = Words(
    "proof.launched-again",
    (
        "a launch was made again, since MPI_Wtime of {ranks:ranks} on {hosts:names} ran at "
        "{speed} times CLOCK_MONOTONIC_RAW"
    ),
    cause="the MPI library calibrated its timer wrongly, as it does on a busy core",
    remedy="nothing, unless it happens often: then measure on idle nodes",
)


def mistimed_note(proofs: Sequence[RankProof]) -> str:
    """Return that a launch may be right the next time, as MPI_Wtime alone was wrong; or nothing."""
    wrong = [proof for proof in proofs if proof.passed and [*proof.passed.misled()]]
    speeds = [proof.passed.mistimed for proof in wrong if proof.passed]
    if not wrong or None in speeds:
        return ""
    return str(LAUNCHED_AGAIN(**_who(wrong), speed=f"{speeds[0]:.3g}"))


def clock_notes(proofs: Sequence[RankProof]) -> list[str]:
    """Return where the time of day was set while a launch ran, and nothing timed followed it.

    And on which nodes it is another than on the first.
    """
    return [
        f"the clock of {host} was set by {passed.set_by_s:+.2g} s during a launch; nothing that "
        "was timed follows it"
        for host, group in _grouped(proofs, lambda proof: proof.hostname)
        if (passed := group[0].passed) and passed.set_by_s and not passed.follows_the_time_of_day()
    ] + [
        f"the time of day on {host} is {abs(ahead_s):.0f} s "
        f"{'ahead of' if ahead_s > 0 else 'behind'} that on {proofs[0].hostname}; no figure "
        "follows it, but let a time service set both (chronyc tracking)"
        for host, ahead_s in _ahead_s(proofs).items()
    ]


def _ahead_s(proofs: Sequence[RankProof]) -> dict[str, float]:
    """Return by how much the time of day of nodes is ahead of that of the first, if it surely is.

    All ranks leave MPI_Init before the first of them can come to its end.
    """
    sure_s = max((p.passed.seconds for p in proofs if p.passed), default=math.inf) + _START_S
    left_s = {p.hostname: p.at_init.realtime_s for p in reversed(proofs) if p.at_init}
    first_s = left_s.get(proofs[0].hostname, math.nan) if proofs else math.nan
    return {host: s - first_s for host, s in left_s.items() if abs(s - first_s) > sure_s}


OTHER_LAUNCHER = Words(
    "proof.other-launcher",
    (
        "{ranks:ranks} on {hosts:names}: {version}, yet started by {launcher}, so binding and "
        "fabric settings of the wrong launcher were in force"
    ),
    remedy="use the stack's own launcher, with its bin first on PATH",
)


def _launchers(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    for launcher, group in _grouped(proofs, lambda p: _foreign_launcher(p, expected.by_srun)):
        if launcher is not None:
            yield OTHER_LAUNCHER(**_who(group), version=_title(group[0]), launcher=launcher)


def _foreign_launcher(proof: RankProof, by_srun: bool) -> str | None:
    """Name the launcher of another family than the library's, if such a one started the rank."""
    own = {_SET_BY_INTEL_MPI} if by_srun and proof.library_version.startswith("Intel") else set()
    version = proof.library_version
    family = "Intel MPI" if version.startswith("Intel") else "MPICH"
    family = "Open MPI" if version.startswith("Open MPI") else family
    started_by = [entry for entry in _LAUNCHERS if entry[0] in proof.environment - own]
    return started_by[0][1] if started_by and started_by[0][2] != family else None


PROOF_ABORTED = Words(
    "proof.aborted",
    "{ranks:ranks} on {hosts:names} called MPI_Abort",
    cause="the program gave up by itself and says why at the end of the job's output",
    remedy="its figures do not count",
)
PROOF_UNFINISHED = Words(
    "proof.unfinished",
    "{ranks:ranks} on {hosts:names} never reached MPI_Finalize",
    cause="killed or crashed, its figures do not count",
    remedy=(
        "look for the signal at the end of the job's output and for 'Out of memory' in the "
        "node's kernel log"
    ),
)


def _endings(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    aborted = [proof for proof in proofs if proof.aborted]
    unfinished = [proof for proof in proofs if not proof.finalized]
    if aborted:
        yield PROOF_ABORTED(**_who(aborted))
    elif unfinished:
        yield PROOF_UNFINISHED(**_who(unfinished))


ONE_NODE = Words(
    "proof.one-node",
    "all {ran:rank|ranks} ran on {hosts:names}, not on {expected:node|nodes} as asked for",
    cause=(
        "the hostfile or the allocation did not reach the launcher, or the ranks per node (-ppn) "
        "did not"
    ),
)
OTHER_NODES = Words(
    "proof.other-nodes",
    (
        "the ranks ran on {nodes:node|nodes} ({hosts:names}), not on {expected:node|nodes} as "
        "asked for"
    ),
    cause=(
        "the hostfile or the allocation did not reach the launcher, or the ranks per node (-ppn) "
        "did not"
    ),
)
PROOF_UNEVEN = Words(
    "proof.uneven",
    "{ran:names}, not {expected} per node as asked for",
    cause="the launcher filled the nodes by its own count",
    remedy="give it -ppn, or slots in the hostfile",
)
STRANGE_HOSTS = Words(
    "proof.strange-hosts",
    "{ranks:ranks} ran on {hosts:names}, none of the nodes asked for ({expected:names})",
    cause="the launcher took another hostfile or allocation",
)


def _nodes(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    counts = Counter(proof.hostname for proof in proofs)
    if expected.nodes is not None and len(counts) != expected.nodes:
        yield (ONE_NODE if len(counts) == 1 else OTHER_NODES)(
            ran=len(proofs),
            nodes=len(counts),
            hosts=_hosts(proofs),
            expected=expected.nodes,
        )
    elif expected.ranks_per_node is not None:
        uneven = {host: n for host, n in counts.items() if n != expected.ranks_per_node}
        # One node may have what the others leave.
        if uneven and list(uneven.values()) != [len(proofs) % expected.ranks_per_node]:
            ran = [f"{host} ran {n} rank{'' if n == 1 else 's'}" for host, n in uneven.items()]
            yield PROOF_UNEVEN(ran=ran, expected=expected.ranks_per_node)
    if expected.hosts is not None:
        strange = [p for p in proofs if not any(_same(p.hostname, h) for h in expected.hosts)]
        if strange:
            yield STRANGE_HOSTS(**_who(strange), expected=expected.hosts)


UNKNOWN_CORES = Words(
    "proof.unknown-cores",
    (
        "{ranks:ranks} on {hosts:names} could not tell which cores it may use (sched_getaffinity "
        "failed), so its binding is not proven"
    ),
    remedy="a security profile of the node's containers may forbid it",
)
FEW_CORES = Words(
    "proof.few-cores",
    "{ranks:ranks} on {hosts:names} had {cores:core|cores} each, where {expected} were asked for",
    cause="the threads of a rank share them",
    remedy="give the launcher the cores per rank",
)
SHARED_CORES_ELSEWHERE = Words(
    "proof.shared-cores-elsewhere",
    "ranks on {hosts:names} share too few cores as well",
    cause="the cause is the same",
)


def _cores(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    """Yield what is wrong with where ranks may run.

    A node is oversubscribed when its ranks need more cores than all of them together may use;
    ranks share a core when some of them are confined to fewer cores than they need. That is Hall's
    condition, tested on the affinities that occur: enough for affinities that are nested or
    disjoint, as every launcher's are.
    """
    silent = [proof for proof in proofs if proof.at_init is None or not proof.at_init.affinity]
    if silent:
        yield UNKNOWN_CORES(**_who(silent))
    known = [proof for proof in proofs if proof not in silent]
    if expected.bound:
        yield from _bindings(known, expected)
    if not expected.own_cores:
        return
    for count, group in _grouped(known, lambda proof: len(_cores_of(proof))):
        if count < expected.cores_per_rank:
            yield FEW_CORES(**_who(group), cores=count, expected=expected.cores_per_rank)
    by_host = _grouped(known, lambda proof: proof.hostname)
    sharing = {
        host: shared for host, ranks in by_host if (shared := _sharing(host, ranks, expected))
    }
    first, *others = [*sharing] or [""]
    if first:
        yield sharing[first]
    if others:
        # Nobody reads the same of a hundred nodes.
        yield SHARED_CORES_ELSEWHERE(hosts=others)


SHARED_CORES = Words(
    "proof.shared-cores",
    "{ranks:ranks} on {host} share {cores:cores}, where {needed} are needed",
    cause=(
        "too few cores for the ranks, or two ranks bound to one place, as by two launches that "
        "both start at the first core"
    ),
)


def _sharing(host: str, ranks: Sequence[RankProof], expected: ProofExpectation) -> Reason | None:
    def needed(some: Iterable[RankProof]) -> int:
        return sum(min(expected.cores_per_rank, len(_cores_of(rank))) for rank in some)

    everything = frozenset[str]().union(*map(_cores_of, ranks))
    if needed(ranks) > len(everything) and expected.may_oversubscribe:
        return None
    affinities = {everything, *map(_cores_of, ranks)}
    for cores in sorted(affinities, key=lambda cores: (len(cores), sorted(cores))):
        confined = [rank for rank in ranks if _cores_of(rank) <= cores]
        if needed(confined) > len(cores):
            numbers = sorted(int(re.split(r"[,-]", core, maxsplit=1)[0]) for core in cores)
            return SHARED_CORES(
                ranks=[rank.rank for rank in confined],
                host=host,
                cores=numbers,
                needed=needed(confined),
            )
    return None


PROOF_UNBOUND = Words(
    "proof.unbound",
    (
        "{ranks:ranks} on {hosts:names} may run on all {cores} cores of the node, not on "
        "{expected:core|cores} each"
    ),
    cause="the ranks are not bound",
    remedy="check the launcher's binding option, and for a variable that overrides it",
)
WIDE_BINDING = Words(
    "proof.wide-binding",
    "{ranks:ranks} on {hosts:names} may run on {cores} cores, not on {expected:core|cores} each",
    cause="the binding is wider than it should be",
    remedy="check the launcher's binding option",
)
BOUND_ANEW = Words(
    "proof.bound-anew",
    "{ranks:ranks} on {hosts:names} ended with other cores than it started with",
    cause="something in the process rebinds it (OpenMP's or the BLAS's own affinity)",
    remedy="switch that off",
)


def _bindings(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    wide = [proof for proof in proofs if len(_cores_of(proof)) > expected.cores_per_rank]
    for (cores, whole), group in _grouped(wide, lambda p: (len(_cores_of(p)), _is_unbound(p))):
        code = PROOF_UNBOUND if whole else WIDE_BINDING
        yield code(**_who(group), cores=cores, expected=expected.cores_per_rank)
    loosened = [
        proof
        for proof in proofs
        if proof.at_finalize is not None
        and not set(proof.at_finalize.affinity) <= set(_at_init(proof).affinity)
    ]
    if loosened:
        yield BOUND_ANEW(**_who(loosened))


FEW_THREADS = Words(
    "proof.few-threads",
    "{ranks:ranks} on {hosts:names} ended with fewer threads than the {expected} asked for",
    cause="the program is not threaded, or OMP_NUM_THREADS did not reach it",
)
BLAS_THREADS = Words(
    "proof.blas-threads",
    (
        "{ranks:ranks} on {hosts:names} let the BLAS use {threads:thread|threads}, not "
        "{expected} as asked for"
    ),
    cause=(
        "OMP_NUM_THREADS (or the BLAS's own variable) did not reach the rank, or the program "
        "sets the number itself"
    ),
)


def _threads(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    if expected.threads_per_rank is None:
        return
    few = [
        proof
        for proof in proofs
        if proof.at_finalize is not None
        and 0 <= proof.at_finalize.threads < expected.threads_per_rank
    ]
    if few:
        yield FEW_THREADS(**_who(few), expected=expected.threads_per_rank)
    wrong = [
        p
        for p in proofs
        if p.blas is not None and p.blas.threads not in (-1, expected.threads_per_rank)
    ]
    for threads, group in _grouped(wrong, lambda proof: proof.blas.threads if proof.blas else -1):
        yield BLAS_THREADS(**_who(group), threads=threads, expected=expected.threads_per_rank)


OTHER_BLAS = Words(
    "proof.other-blas",
    "{ranks:ranks} on {hosts:names} loaded {library}, not {expected}",
    cause="a module, LD_LIBRARY_PATH or the way the program was linked decides",
    remedy="'ldd {executable}' on the node shows it",
)
OTHER_BLAS_KERNELS = Words(
    "proof.other-blas-kernels",
    "{ranks:ranks} on {hosts:names} used the BLAS kernels {kernel}, not {expected}",
    cause=(
        "a variable like OPENBLAS_CORETYPE chose them, or the library was built for another "
        "processor"
    ),
)


def _blas(proofs: Sequence[RankProof], expected: ProofExpectation) -> Iterator[Reason]:
    if expected.blas_library is not None:
        wanted = expected.blas_library
        for library, group in _grouped(proofs, _blas_library):
            candidates = library or group[0].objects
            if not _any_at(candidates, wanted):
                yield OTHER_BLAS(
                    **_who(group),
                    library=library[-1] if library else "no BLAS library",
                    expected=wanted,
                    executable=group[0].executable,
                )
    if expected.blas_kernel is not None:
        for kernel, group in _grouped(proofs, lambda p: p.blas.kernel if p.blas else None):
            if kernel is None or kernel.casefold() != expected.blas_kernel.casefold():
                yield OTHER_BLAS_KERNELS(
                    **_who(group),
                    kernel=kernel or "of an unknown processor",
                    expected=expected.blas_kernel,
                )


def _at_init(proof: RankProof) -> Moment:
    if proof.at_init is None:
        raise ValueError("a rank without its first moment has no cores to judge")
    return proof.at_init


def _cores_of(proof: RankProof) -> frozenset[str]:
    return _at_init(proof).cores


def _is_unbound(proof: RankProof) -> bool:
    moment = _at_init(proof)
    return moment.steal_by_cpu is not None and set(moment.affinity) >= set(moment.steal_by_cpu)


def _mpi_objects(proof: RankProof) -> tuple[str, ...]:
    return tuple(path for path in proof.objects if _MPI_LIBRARY.match(PurePosixPath(path).name))


def _blas_library(proof: RankProof) -> tuple[str, ...]:
    return proof.blas.library if proof.blas is not None else ()


def _any_at(paths: Iterable[str], place: str) -> bool:
    """Whether a path is the file asked for, or lies in the folder."""
    return any(PurePosixPath(path).is_relative_to(place) for path in paths)


def _same(host: str, other: str) -> bool:
    """Whether two names mean one node: one of them may lack the domain."""
    if "." in host and "." in other:
        return host == other
    return host.split(".", 1)[0] == other.split(".", 1)[0]


def _grouped(
    proofs: Iterable[RankProof], key: Callable[[RankProof], _Key]
) -> Iterator[tuple[_Key, list[RankProof]]]:
    groups: dict[_Key, list[RankProof]] = defaultdict(list)
    for proof in proofs:
        groups[key(proof)].append(proof)
    yield from groups.items()


def _hosts(proofs: Iterable[RankProof]) -> list[str]:
    return list(dict.fromkeys(proof.hostname for proof in proofs))


def _who(proofs: Iterable[RankProof]) -> Facts:
    """Return ranks and their hosts as facts of a reason."""
    ranks = list(proofs)
    return {"ranks": sorted({proof.rank for proof in ranks}), "hosts": _hosts(ranks)}


def library_title(version: str) -> str:
    """Return what an MPI library says of itself in one line."""
    first = version.strip().split("\n", 1)[0].split(", package:", 1)[0]
    return " ".join(first.split())


def _title(proof: RankProof) -> str:
    return library_title(proof.library_version)


def summary(proofs: Sequence[RankProof]) -> dict[str, Any]:
    """Return what is worth keeping of the ranks' records beside the figures of a case."""
    first = proofs[0] if proofs else None
    blas: dict[str, Any] = {}
    if first and first.blas:
        blas = {**dataclasses.asdict(first.blas), "library": "".join(first.blas.library[-1:])}
    return {
        "hosts": sorted({proof.hostname for proof in proofs}),
        "library_version": first.library_version.strip() if first else "",
        "mpi_library": first.mpi_library[-1] if first and first.mpi_library else "",
        "blas": blas or None,
        "ranks": [
            {
                "rank": proof.rank,
                "host": proof.hostname,
                "cores": sorted(proof.at_init.cores) if proof.at_init else [],
            }
            for proof in proofs
        ],
    }
