"""From a system and a stack to the plan of a screening."""

from dataclasses import replace
from typing import Any

import pytest

from clustergate.core.model import ClustergateError
from clustergate.launch.hostfiles import parse_hostfile
from clustergate.sites.description import Partition
from clustergate.sites.schedulers import slurm
from clustergate.sites.schedulers.scheduler import Limits
from clustergate.stacks.manifest import Manifest, Program
from clustergate.studies.screen.plan import CPUS, EACH, HOSTFILE, NODES
from clustergate.studies.screen.planning import ScreenRequest, plan_screening, within_limits

NODE = Partition(
    name="node",
    scheduler="local",
    system="example",
    cores_per_node=4,
    memory_bytes_per_node=16 * 2**30,
    nominal_gflops_per_core=40.0,
)
FOUR = replace(NODE, scheduler="slurm", nodes=4)
HOSTS = parse_hostfile(
    "n[1-3] slots=4 switch=leaf1\nn4 slots=4 switch=leaf2\nexclude n2 2026-11-21 fan\n", "test"
)


def manifest(dialect: str = "openmpi", **programs: Program) -> Manifest:
    known = {name: Program(path=f"/bin/{name}") for name in ("node_peaks", "xhpl", "IMB-MPI1")}
    return Manifest(
        stack="stack",
        provider="wheels",
        launcher="/bin/mpirun",
        dialect=dialect,
        mpi_library="/lib/libmpi.so",
        library_pattern="Open MPI",
        proof_library="/lib/proof.so",
        programs={**known, **programs},
    )


def plan_of(asked: ScreenRequest = ScreenRequest(), **what: Any) -> Any:  # noqa: B008
    settled: dict[str, Any] = {
        "nonce": "abc",
        "seed": 1,
        "environment": {"LD_LIBRARY_PATH": "/lib"},
    }
    stack = what.pop("stack", manifest())
    return plan_screening(stack, what.pop("partition", NODE), asked, **{**settled, **what})


def test_usable_nodes_of_a_hostfile_screened_with_switches() -> None:
    plan = plan_of(hostfile=HOSTS)
    assert list(plan.nodes) == ["n1", "n3", "n4"]
    assert plan.what == "node"
    assert plan.switches == {"n1": "leaf1", "n2": "leaf1", "n3": "leaf1", "n4": "leaf2"}
    assert plan.excluded == {"n2": "since 2026-11-21: fan"}
    assert [one.name for one in plan.launched(EACH)] == ["peaks", "hpl"]
    assert plan.hostfile_dialect == "openmpi"


def test_several_ranks_watched_and_one_computes_to_the_limit() -> None:
    """What runs several ranks is watched and one that computes may until the limit."""
    plan = plan_of(hostfile=HOSTS)
    by_name = {one.name: one for one in plan.contenders}
    assert {name for name, one in by_name.items() if one.patience} == {"hpl", "pingpong"}
    for name in ("hpl", "pingpong"):
        assert by_name[name].patience.computing_s == by_name[name].seconds
    assert by_name["pingpong"].patience.several_nodes


def test_a_quick_one_has_one_launch_on_each_node_and_no_pairs() -> None:
    plan = plan_of(ScreenRequest(quick=True, hpl_seconds=0.0))
    assert [one.on for one in plan.contenders] == ["each"]
    assert (plan.pair, plan.quick) == (None, True)
    # No later screening is held to it.
    assert plan.by != plan_of().by


@pytest.mark.parametrize("dialect", ["openmpi", "hydra", "intel-hydra", "mvapich2"])
def test_every_launcher_is_given_the_hostfile_of_its_pair(dialect: str) -> None:
    plan = plan_of(hostfile=HOSTS, stack=manifest(dialect))
    assert HOSTFILE in plan.pair.launcher
    assert plan.pair.expected.ranks == 2
    assert "ssh" in plan.pair.launcher
    assert ("-x" in plan.pair.launcher) == (dialect == "openmpi")


def test_excluded_or_unknown_nodes_cannot_be_named() -> None:
    """Some nodes can be named but not those that are excluded or unknown."""
    assert list(plan_of(ScreenRequest(nodes="n[3-4]"), hostfile=HOSTS).nodes) == ["n3", "n4"]
    with pytest.raises(ClustergateError, match="n2 is excluded since 2026-11-21: fan"):
        plan_of(ScreenRequest(nodes="n[1-2]"), hostfile=HOSTS)
    with pytest.raises(ClustergateError, match="lists no node n9"):
        plan_of(ScreenRequest(nodes="n9"), hostfile=HOSTS)


def test_a_scheduled_job_without_a_hostfile_takes_its_allocation() -> None:
    plan = plan_of(partition=replace(NODE, scheduler="slurm"))
    assert (list(plan.nodes), plan.what) == ([], "node")


def test_a_single_node_is_screened_by_its_cores() -> None:
    plan = plan_of()
    assert plan.what == "core"
    assert [one.name for one in plan.launched(EACH)] == ["peaks"]
    assert plan.pair.launcher[:3] == ["taskset", "-c", CPUS]
    assert CPUS in plan.launched(EACH)[0].program
    assert HOSTFILE not in plan.pair.launcher


def test_hpl_can_be_left_out_and_rounds_can_be_few() -> None:
    plan = plan_of(ScreenRequest(hpl_seconds=0.0, rounds=3), hostfile=HOSTS)
    assert [one.name for one in plan.launched(EACH)] == ["peaks"]
    assert plan.rounds == 3
    assert plan_of(hostfile=HOSTS).rounds is None


def test_a_partition_that_binds_nobody_asks_for_no_binding() -> None:
    plan = plan_of(hostfile=HOSTS, partition=replace(NODE, bind_to_cores=False))
    assert not plan.pair.expected.bound
    assert not any(one.expected.bound for one in plan.contenders if one.expected)
    assert "none" in plan.pair.launcher


def test_a_stack_without_the_programs_says_so() -> None:
    lacking = manifest(xhpl=Program(unavailable="no compiler"))
    with pytest.raises(ClustergateError, match="xhpl is unavailable here \\(no compiler\\)"):
        plan_of(stack=lacking, hostfile=HOSTS)


@pytest.mark.parametrize(("dialect", "pmi"), [("hydra", "pmi2"), ("openmpi", "pmix")])
def test_srun_starts_a_pair_on_its_two_nodes(dialect: str, pmi: str) -> None:
    plan = plan_of(stack=manifest(dialect), partition=FOUR, pmi="")
    assert plan.pair.expected.by_srun
    for one in plan.contenders:
        assert one.launcher[:3] == ["srun", f"--nodelist={NODES}", f"--mpi={pmi}"]
    assert "--nodes=2" in plan.pair.launcher
    named = plan_of(stack=manifest(dialect), partition=FOUR, pmi="pmix_v4")
    assert "--mpi=pmix_v4" in named.pair.launcher
    over_ssh = plan_of(stack=manifest(dialect), partition=FOUR)
    assert not any(one.expected.by_srun for one in over_ssh.contenders if one.expected)


def limited(monkeypatch: pytest.MonkeyPatch, seconds: float | None, nodes: int | None) -> Partition:
    allowed = Limits(seconds, nodes)
    monkeypatch.setattr(slurm, "limits_of", lambda *names: allowed)
    return FOUR


def test_a_job_has_time_for_what_began_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = limited(monkeypatch, None, None)
    for asked in (ScreenRequest(), ScreenRequest(seconds=4 * 3600), ScreenRequest(hpl_seconds=600)):
        within, limit_s = within_limits(asked, partition)
        assert within == asked
        longest = max(one.seconds for one in plan_of(asked, partition=partition).contenders)
        assert limit_s >= asked.seconds + longest
    # Hours more than it needs would keep it from starting before a reservation.
    assert within_limits(ScreenRequest(), partition)[1] < 2400


@pytest.mark.parametrize(("most_s", "seconds"), [(1800, 1140), (600, 300), (86400, 1200)])
def test_a_screening_ends_before_its_partition_ends_its_job(
    monkeypatch: pytest.MonkeyPatch, most_s: float, seconds: float
) -> None:
    within, limit_s = within_limits(ScreenRequest(), limited(monkeypatch, most_s, None))
    assert within.seconds == seconds
    assert limit_s <= most_s


def test_more_nodes_than_a_job_gets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClustergateError, match="limits jobs to 2; screen 2 at a time by --nodes"):
        within_limits(ScreenRequest(), limited(monkeypatch, None, 2))
    within_limits(ScreenRequest(), limited(monkeypatch, None, 4))
