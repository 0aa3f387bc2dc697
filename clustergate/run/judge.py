"""The verdicts of a run: what should have run and what did, judged, with what is to be known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from clustergate.benchmarks.registry import not_loaded
from clustergate.core import store
from clustergate.core.model import (
    LAUNCHED_AGAIN,
    RESUMED,
    UNKNOWN_DISTANCE,
    Case,
    CaseId,
    CaseRecord,
    CaseState,
    Evidence,
    Run,
    Verdict,
)
from clustergate.core.notation import counted
from clustergate.core.reasons import Reason, Words
from clustergate.core.texts import column_of
from clustergate.judge import assembly, confirmation, coverage
from clustergate.judge.assembly import Outcome
from clustergate.judge.history.node_states import folded, read_states
from clustergate.judge.kinds import FigureId
from clustergate.judge.sharing import Sharing, in_words, sharings
from clustergate.judge.slow_nodes import slow_nodes
from clustergate.judge.standings import not_compared, of_references, standings
from clustergate.run.collect import Collected, Relaunches
from clustergate.run.prepare import Prepared
from clustergate.run.reframe import PROCESS_COUNTS
from clustergate.run.resuming import measured_long_before
from clustergate.sites.description import Partition, Site
from clustergate.sites.exclusions import hostfile_of
from clustergate.sites.modes import Mode

_WORTH_SAYING_S = 1.0


def assembled(
    prepared: Prepared,
    collected: Collected,
    outcomes: Sequence[Outcome],
    records: Sequence[CaseRecord],
    expected: Sequence[CaseId] = (),
    beside: assembly.Beside | None = None,
) -> tuple[Case, ...]:
    """Return the cases of some outcomes, judged, and which of those ``expected`` are missing.

    ``beside`` is what the figures are called beside each other, where that is known.
    """
    return assembly.assemble(
        expected,
        outcomes,
        records,
        mode=prepared.request.mode.name,
        not_set_up=prepared.not_set_up,
        not_loaded=collected.not_loaded,
        beside=beside,
    )


def compared(
    prepared: Prepared,
    records: Sequence[CaseRecord],
    watched: Collection[frozenset[FigureId]] = (),
) -> assembly.Beside:
    """Return what the figures of some cases are called beside each other.

    ``watched`` are the sets that were slower before, which have to confirm it.
    """
    known = prepared.references
    nodes = {one.fullname: one.facts for one in prepared.site.partitions}
    exclusive = [name for name, seen in sharing(prepared, records).items() if seen.exclusive]
    return assembly.compared(records, known.find, nodes, known.expects, watched, exclusive)


def sharing(prepared: Prepared, records: Sequence[CaseRecord]) -> dict[str, Sharing]:
    """Return by partition whether jobs have their nodes for themselves."""
    return sharings(records, {one.fullname: one.facts for one in prepared.site.partitions})


def judge(prepared: Prepared, collected: Collected, again: Relaunches) -> Run:
    """Return the run, judged, with what looked slow as decided by launching it again.

    Where a case failed, the scheduler is asked for its nodes.
    """
    request, known, records = prepared.request, prepared.references, collected.records
    cases = again.cases
    every = [*records, *again.launched]
    counts = f"{PROCESS_COUNTS} names {request.process_counts}" if request.process_counts else ""
    missing, unjudged = coverage.uncovered(
        [key for key in prepared.expected if key.stack not in prepared.not_set_up],
        cases,
        known,
        request.mode,
        prepared.partitions,
        " and ".join(filter(None, [prepared.restriction, counts])),
        coverage.settings_by_hand(request.options),
    )
    cases = (*cases, *missing, *of_packages(request.checks, request.mode))
    stacks = [stack.name for stack in prepared.site.stacks]
    expectations = standings(known.expects, cases, request.mode, stacks)
    uncompared, elsewhere = of_references(known, cases, request.mode, prepared.site.partitions)
    measured = {record.partition for record in records if record.samples}
    shared = [one for name, one in sharing(prepared, records).items() if name in measured]
    notes = [
        *prepared.notes,
        *(str(one.why) for one in shared),
        *assembly.found_at_80_percent(again.detectable),
        *(f"{why}: the figures are of those alone" for why in [prepared.restriction] if why),
        *collected.notes,
        *assembly.unexpected(prepared.expected, collected.outcomes),
        *nodes_not_seen(records, _known_nodes(prepared.site)),
        *of_unknown_distance(records),
        *assembly.removed_variables(records),
        *notes_of_stacks(records),
        *costs_beside(every),
        *launched_again(again),
        *(
            map(str, idle_cores(records, cores_by_node(prepared.run_id), prepared.partitions))
            if not prepared.restriction
            else ()
        ),
        *assembly.disturbances(every),
        *assembly.wide_limits(records),
        *assembly.loosely_limited(cases),
        *assembly.modes_seen(cases),
        *known.notes,
        *map(str, elsewhere),
        *known.unsized(records),
        *known.unused(records, whole=not (request.stacks or prepared.not_set_up)),
        *notes_on_failure(prepared.site, cases),
    ]
    return Run(
        run_id=prepared.run_id,
        system=prepared.site.name,
        mode=request.mode.name,
        started=prepared.started.isoformat(timespec="seconds"),
        duration_s=collected.duration_s,
        cases=cases,
        machine=collected.fingerprint,
        fallback=request.fallback,
        unjudged=unjudged,
        changes=tuple(collected.changes),
        strict=request.strict,
        evidence=tuple(
            Evidence(RESUMED, Verdict.INCONCLUSIVE, (why,))
            for why in [measured_long_before(every)]
            if why
        )
        + tuple(unconfirmed(cases))
        + tuple(slow_nodes(every, known.tolerances))
        + tuple(not_compared(expectations))
        + tuple(uncompared),
        expectations=expectations,
        sets=again.sets,
        promises=again.promises,
        sharing=in_words(shared),
        finds=again.detectable,
        notes=tuple(dict.fromkeys(notes)),
    )


def _known_nodes(site: Site) -> list[str]:
    """Return the nodes of a site that may be measured, none where nothing says which there are."""
    if hostfile := hostfile_of(site.name):
        return [node.name for node in hostfile.usable]
    return [name for scheduler in site.schedulers for name in scheduler.node_names()]


def notes_on_failure(site: Site, cases: Iterable[Case]) -> list[str]:
    """Return why schedulers do not use nodes if a case failed, nothing when none did."""
    failed = any(case.state.broken for case in cases)
    return [note for one in site.schedulers for note in one.unused_notes()] if failed else []


NODES_NOT_SEEN = Words(
    "run.nodes-not-seen",
    "this run did not test {nodes}: its ranks were on {seen}",
    remedy="`clustergate screen --quick` tests every node",
)


def nodes_not_seen(records: Sequence[CaseRecord], known: Sequence[str]) -> list[str]:
    """Return in a sentence or none on which of the ``known`` nodes no rank of a run was."""
    seen = {host for record in records for host in record.hosts}
    # Either may know a node by a longer name.
    short = {host.partition(".")[0] for host in seen}
    rest = [name for name in known if name.partition(".")[0] not in short]
    if not seen or not rest:
        return []
    return [str(NODES_NOT_SEEN(nodes=folded(rest), seen=folded(sorted(seen))))]


DISTANCE_UNKNOWN = Words(
    "distance.unknown",
    (
        "the distance between the nodes of {cases:case|cases} is unknown: small messages are "
        "only compared with other stacks, and after three days of runs"
    ),
    remedy=(
        "describe the topology in Slurm's topology.conf, or with switch= and rack= in the hostfile"
    ),
)


def of_unknown_distance(records: Sequence[CaseRecord]) -> list[str]:
    """Return in a sentence or none of how many cases nobody knows how far their nodes lay."""
    unknown = [one for one in records if one.samples and one.distance == UNKNOWN_DISTANCE]
    return [str(DISTANCE_UNKNOWN(cases=len(unknown)))] if unknown else []


def launched_again(again: Relaunches) -> list[str]:
    """Return in a line what was launched again and what it cost, and what was slow only once."""
    records, cases = again.launched, again.cases
    if not records:
        return []
    launches = sum(len(record.launches) for record in records)
    node_s = sum(
        record.spent_s("launch_s", "peaks_s", "waited_s") * int(record.conditions.get("nodes", 1))
        for record in records
    )
    names = len({record.name for record in records})
    said = f"launched again: {counted(names, 'case')} in {counted(launches, 'launch')}"
    once = sum(map(confirmation.not_again, cases))
    slow = f"; {counted(once, 'figure')} slow once and not again" if once else ""
    return [f"{said}, {node_s:.0f} node-seconds{slow}"]


def unconfirmed(cases: Sequence[Case]) -> Iterator[Evidence]:
    """Yield which cases look slow and nobody knows whether they are."""
    for case in cases:
        if why := confirmation.unconfirmed(case):
            of = f"{case.check} with {case.stack}"
            yield Evidence(LAUNCHED_AGAIN, Verdict.INCONCLUSIVE, (why,), of)


def of_packages(checks: Sequence[str], mode: Mode) -> list[Case]:
    """Return a missing case for each added package that does not load, where all was to be run."""
    if checks and not set(mode.checks) <= set(checks):
        return []
    return [Case(package, "", CaseState.MISSING, (why,)) for package, why in not_loaded().items()]


def notes_of_stacks(records: Sequence[CaseRecord]) -> list[str]:
    """Return what is to be known of stacks and variants, once where it is the same of several."""
    variants: dict[str, set[str]] = {}
    noted: dict[str, dict[str, str]] = {}
    for record in records:
        variants.setdefault(record.stack, set()).add(column_of(record))
        for note in record.notes:
            noted.setdefault(note, {})[column_of(record)] = record.stack
    said = []
    for note, of in noted.items():
        whole = {stack for stack in of.values() if variants[stack] <= of.keys()}
        names = dict.fromkeys(stack if stack in whole else name for name, stack in of.items())
        said.append(f"{', '.join(names)}: {note}")
    return said


def costs_beside(records: Sequence[CaseRecord]) -> list[str]:
    """Return how long the peaks, and waiting for near cores, took beside the launches."""
    peaks, waited, launches = (
        sum(record.spent_s(name) for record in records)
        for name in ("peaks_s", "waited_s", "launch_s")
    )
    said = []
    if peaks:
        said.append(f"measuring the node's peaks took {peaks:.0f} s")
    if waited >= _WORTH_SAYING_S:
        said.append(f"waiting until the hypervisor had cores near each other {waited:.0f} s")
    return [f"{', '.join(said)} beside {launches:.0f} s of launches"] if said else []


IDLE_CORES = Words(
    "site.idle-cores",
    (
        "{node} has {has:core|cores}, and the site config states {stated} for each node of "
        "{partition}: the others were idle"
    ),
    remedy="correct `cores_per_node`; what no job gets is `reserved_cores_per_node`: {others}",
)


def idle_cores(
    records: Sequence[CaseRecord], cores_of: Mapping[str, int], partitions: Sequence[Partition]
) -> Iterator[Reason]:
    """Yield which partitions have nodes of more cores than the site config says, and uses.

    ``cores_of`` are the physical cores of nodes by their short names.
    """
    for partition in partitions:
        proofs: list[Any] = [
            record.details.get("proof") or {}
            for record in records
            if record.partition == partition.fullname
        ]
        hosts = {str(host).partition(".")[0] for proof in proofs for host in proof.get("hosts", ())}
        whole = partition.physical_cores_per_node
        larger = sorted(host for host in hosts if cores_of.get(host, 0) > whole)
        if larger:
            yield IDLE_CORES(
                node=larger[0],
                has=cores_of[larger[0]],
                stated=whole,
                partition=partition.fullname,
                others=cores_of[larger[0]] - (partition.cores_per_node or 0),
            )


def cores_by_node(run_id: str) -> dict[str, int]:
    """Return the physical cores of the nodes of a run, by their short names."""
    states = read_states(store.run_folder(run_id)).items()
    cores: dict[str, Any] = {
        name.partition(".")[0]: state.get("hardware", {}).get("cores") for name, state in states
    }
    return {name: count for name, count in cores.items() if isinstance(count, int)}
