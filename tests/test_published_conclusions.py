"""The papers' conclusions: each clause of a sentence can make it fail, and none is left out."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from clustergate.benchmarks.registry import every_metric
from evaluations.criteria import at_least
from evaluations.evidence import Measured, Subject, merged
from evaluations.facts import PAPERS, load_paper
from evaluations.inference import Outcome
from evaluations.predicates import Decision, decide
from evaluations.series import Cast, Figure

MEBIBYTE = 1 << 20


def launches(value: float) -> list[float]:
    """Return ten launches that scatter by a thousandth."""
    return [value * (1 + k % 4 / 2000) for k in range(10)]


def figure(benchmark: str, metric: str, value: float, **conditions: Any) -> Measured:
    known = every_metric()[metric]
    conditions = {"nodes": 1, "ranks": conditions.get("processes", 0), **conditions}
    name = f"{benchmark}.{metric}.{sorted(conditions.items())}"
    return Measured(
        *(benchmark, metric, known.unit, known.better, value, conditions, name, ""),
        of_launches=launches(value),
    )


def who(name: str, figures: Iterable[Measured]) -> Subject:
    return Subject(f"run:{name}", name, name, list(figures), {"HpccCheck": "1.5.0"})


def decided(paper: str, predicate: str, *subjects: Subject) -> list[Decision]:
    """Return what is said when each subject is the system of its name."""
    roles = {subject.name.rpartition(":")[2]: subject for subject in subjects}
    return decide(load_paper(paper).predicates[predicate], Cast(subjects, roles))


def outcome(paper: str, predicate: str, *subjects: Subject) -> Outcome:
    [found] = {decision.outcome for decision in decided(paper, predicate, *subjects)}
    return found


def times(benchmark: str, values: Mapping[str, float], processes: int = 64) -> list[Subject]:
    """Return a system for each time of a benchmark of 1 MB."""
    return [
        who(name, [figure(benchmark, "t_avg_us", t, processes=processes, bytes=MEBIBYTE)])
        for name, t in values.items()
    ]


REDUCE = {
    "nec-sx8": 10,
    "cray-x1-msp": 12,
    "altix-bx2-numalink4": 110,
    "dell-xeon": 115,
    "cray-opteron": 200,
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, Outcome.HOLDS),
        ({"cray-x1-msp": 50}, Outcome.DOES_NOT),
        ({"altix-bx2-numalink4": 180}, Outcome.DOES_NOT),
        ({"cray-opteron": 112}, Outcome.DOES_NOT),
    ],
)
def test_vector_systems_are_ten_times_as_fast_and_altix_and_xeon_alike(changed, said):
    assert outcome("000", "p006", *times("Reduce", {**REDUCE, **changed})) is said


def test_the_lead_of_one_system_is_smaller_in_another_benchmark():
    def systems(x1: float) -> list[Subject]:
        scatter = times("Reduce_scatter", {**REDUCE, "cray-x1-msp": x1})
        return [
            who(one.stack, [*one.figures, *two.figures])
            for one, two in zip(times("Reduce", REDUCE), scatter, strict=True)
        ]

    assert outcome("000", "p007", *systems(90)) is Outcome.HOLDS
    assert outcome("000", "p007", *systems(13)) is Outcome.DOES_NOT
    reduce_is_missing = times("Reduce_scatter", {**REDUCE, "cray-x1-msp": 90})
    assert outcome("000", "p007", *reduce_is_missing) is Outcome.NOT_CHECKABLE


def test_twice_the_data_is_no_end_of_a_node():
    """Allgatherv of 16 processes moves 15/7 of what it moves of 8: no step by itself."""

    def allgatherv(sixteen: float) -> Outcome:
        def value(name: str, processes: int) -> float:
            if name == "nec-sx8":
                return 70 if processes == 8 else sixteen
            return {"cray-x1-msp": 3e3, "cray-opteron": 9e3}.get(name, 4e3)

        return outcome(
            "000",
            "p009",
            *(
                who(
                    name,
                    [
                        figure("Allgatherv", "t_avg_us", value(name, p), processes=p, bytes=1 << 20)
                        for p in (8, 16)
                    ],
                )
                for name in REDUCE
            ),
        )

    assert allgatherv(150.0) is Outcome.DOES_NOT
    assert allgatherv(300.0) is Outcome.HOLDS


def test_who_is_best_over_hpl_is_asked_of_every_column():
    columns = {
        "dgemm_over_hpl": "cray-opteron",
        "ptrans_balance_b_per_flop": "nec-sx8",
        "fft_over_hpl": "nec-sx8",
        "stream_balance_b_per_flop": "nec-sx8",
        "ring_balance_b_per_kflop": "altix-bx2-numalink3",
        "inverse_ring_latency_per_us": "altix-bx2-numalink3",
        "updates_per_flop": "cray-opteron",
    }

    def systems(best: Mapping[str, str]) -> list[Subject]:
        return [
            who(name, [figure("HPCC", c, 2.0 if best[c] == name else 1.0, ranks=64) for c in best])
            for name in ("cray-opteron", "nec-sx8", "altix-bx2-numalink3")
        ]

    assert outcome("000", "p024", *systems(columns)) is Outcome.HOLDS
    for column in columns:
        turned = {**columns, column: "nobody"}
        assert outcome("000", "p024", *systems(turned)) is Outcome.DOES_NOT
        left_out = {c: best for c, best in columns.items() if c != column}
        assert outcome("000", "p024", *systems(left_out)) is Outcome.NOT_CHECKABLE


def test_random_access_of_different_versions_is_never_compared():
    def systems(version: str) -> list[Subject]:
        rows = {"cray-opteron": 2.0, "nec-sx8": 1.0, "altix-bx2-numalink3": 1.0}
        return [
            replace(
                who(name, [figure("HPCC", "updates_per_flop", value, ranks=64)]),
                version_of={"HpccCheck": version if name == "nec-sx8" else "1.5.0"},
            )
            for name, value in rows.items()
        ]

    def sentence(version: str) -> str:
        [decision] = decided("000", "p024", *systems(version))
        return decision.sentence

    assert "altix-bx2-numalink3 at 64 ranks: 2" in sentence("1.4.1")
    assert "RandomAccess is not the same benchmark" in sentence("0.8b")
    [mixed] = merged(
        replace(who("mpich", []), version_of={"HpccCheck": version})
        for version in ("0.8b", "1.5.0")
    )
    assert mixed.version_of == {"HpccCheck": "several: 0.8b, 1.5.0"}
    [alike] = merged(
        replace(who("mpich", []), version_of={"HpccCheck": version}) for version in ("1.4", "1.5.0")
    )
    assert alike.version_of == {"HpccCheck": "1.5.0"}


def rhodopsin(name: str, times_s: Mapping[int, float]) -> Subject:
    return who(name, [figure("LAMMPS-rhodo-strong", "time_s", t, processes=p) for p, t in
                      times_s.items()])  # fmt: skip


def test_a_sentence_on_two_machines_does_not_hold_of_one_that_plays_neither():
    falling = {1: 100.0, 2: 55.0, 4: 35.0}
    assert outcome("002", "p012", rhodopsin("mpich", falling)) is Outcome.NOT_CHECKABLE
    slower = rhodopsin("sicortex-sc072", {1: 500.0, 2: 250.0, 4: 125.0})
    assert outcome("002", "p012", rhodopsin("opteron-myri10g", falling), slower) is Outcome.HOLDS
    scaling = rhodopsin("opteron-myri10g", {1: 100.0, 2: 50.0, 4: 25.0})
    assert outcome("002", "p012", scaling, slower) is Outcome.DOES_NOT


def test_of_all_but_one_that_one_is_asked_the_opposite():
    def barrier(name: str, last: float) -> Subject:
        times = {2: 10.0, 8: 10.0 + last / 2, 64: 10.0 + last}
        return who(name, [figure("Barrier", "t_avg_us", t, processes=p) for p, t in times.items()])

    rising, level = barrier("mpich", 40.0), barrier("cray-x1-msp", 2.0)
    assert outcome("000", "p003", rising, level) is Outcome.HOLDS
    assert outcome("000", "p003", barrier("mpich", 0.0)) is Outcome.DOES_NOT
    assert outcome("000", "p003", barrier("cray-x1-msp", 40.0)) is Outcome.DOES_NOT
    # Neither says that the other is as it should be.
    assert outcome("000", "p003", rising) is Outcome.NOT_CHECKABLE
    assert outcome("000", "p003", level) is Outcome.NOT_CHECKABLE


def test_the_bandwidth_rises_for_every_number_of_nodes():
    def sendrecv(last: float) -> Outcome:
        curves = {2: (10.0, 20.0, 50.0), 12: (10.0, 20.0, last)}
        return outcome(
            "002",
            "p003",
            who(
                "mpich",
                [
                    figure(
                        *("Sendrecv", "bandwidth_mb_s", value),
                        processes=p,
                        bytes=size,
                        placement="one-per-node",
                    )
                    for p, values in curves.items()
                    for size, value in zip((32768, 65536, 131072), values, strict=True)
                ],
            ),
        )

    assert sendrecv(40.0) is Outcome.HOLDS
    assert sendrecv(25.0) is Outcome.DOES_NOT


def test_sendrecv_and_exchange_reach_the_same_throughput():
    def both(exchange: float) -> Outcome:
        pair = {"processes": 8}
        return outcome(
            "003",
            "p005",
            who(
                "mpich",
                [
                    figure("Sendrecv", "t_avg_us", 5.0, **pair, bytes=0),
                    figure("Exchange", "t_avg_us", 9.0, **pair, bytes=0),
                    figure("Sendrecv", "bandwidth_mb_s", 1000.0, **pair, bytes=MEBIBYTE),
                    figure("Exchange", "bandwidth_mb_s", exchange, **pair, bytes=MEBIBYTE),
                ],
            ),
        )

    assert both(1010.0) is Outcome.HOLDS
    assert both(1400.0) is Outcome.DOES_NOT


CONFIGURATIONS = {
    "x336-34-400-pcie": 9.0,
    "x336-36-400-pcie": 9.0,
    "x336-36i-400-pcie": 9.0,
    "x336-34-400-133": 7.0,
    "x336-36i-400-133": 7.0,
    "e326-24-333-133": 5.0,
    "e326-24-400-133": 5.0,
    "e326-24-400-100": 3.0,
}


def conjugate_gradient(rates: Mapping[str, float]) -> list[Subject]:
    return [
        who(name, [figure("NPB-CG", "total_mop_per_s", v, ranks=16, problem_class="C")])
        for name, v in rates.items()
    ]


def test_every_configuration_is_asked_where_the_sentence_is_of_every_one():
    assert outcome("003", "p012", *conjugate_gradient(CONFIGURATIONS)) is Outcome.HOLDS
    for name in ("x336-36i-400-pcie", "x336-36i-400-133", "e326-24-333-133"):
        turned = {**CONFIGURATIONS, name: 1.0}
        assert outcome("003", "p012", *conjugate_gradient(turned)) is Outcome.DOES_NOT
        missing = {other: v for other, v in CONFIGURATIONS.items() if other != name}
        assert outcome("003", "p012", *conjugate_gradient(missing)) is Outcome.NOT_CHECKABLE


def partners(name: str, *by_peer: float) -> Subject:
    return who(
        name,
        [
            figure("ping_pong", "time_us", t, processes=4, peer=peer, bytes=size)
            for peer, t in enumerate(by_peer, 1)
            for size in (8, 1_000_000)
        ],
    )


def test_level_times_of_one_machine_do_not_make_another_the_best():
    """That the ideal is a level line is no conclusion on the machine at hand."""
    assert outcome("004", "p001", partners("mpich", 1.0, 1.0, 1.0)) is Outcome.NOT_CHECKABLE
    others = [
        partners(name, 5.0, 5.5, 5.0)
        for name in ("ncsa-nt-myrinet", "ahpcc-linux-myrinet", "ahpcc-linux-ethernet")
    ]
    best, varying = partners("cray-t3e600", 1, 1.1, 1), partners("sgi-origin2000", 2, 4, 3)
    assert outcome("004", "p001", best, varying, *others) is Outcome.HOLDS
    level = partners("sgi-origin2000", 2, 2, 2)
    assert outcome("004", "p001", best, level, *others) is Outcome.DOES_NOT
    behind = partners("cray-t3e600", 1, 6, 1)
    assert outcome("004", "p001", behind, varying, *others) is Outcome.DOES_NOT


def collective(test: str, values: Mapping[tuple[str, int], float]) -> list[Subject]:
    names = dict.fromkeys(name for name, _ in values)
    return [
        who(
            name,
            [
                figure(test, "time_us", value, processes=128, bytes=size)
                for (other, size), value in values.items()
                if other == name
            ],
        )
        for name in names
    ]


def test_both_sizes_of_a_collective_are_asked():
    reduce = {
        ("cray-t3e600", 8): 1.0,
        ("ncsa-nt-myrinet", 8): 1.0,
        ("ahpcc-linux-myrinet", 8): 2.0,
        ("sgi-origin2000", 8): 3.0,
        ("cray-t3e600", 1_000_000): 2.0,
        ("ncsa-nt-myrinet", 1_000_000): 3.0,
        ("ahpcc-linux-myrinet", 1_000_000): 3.0,
        ("sgi-origin2000", 1_000_000): 1.0,
    }
    assert outcome("004", "p014", *collective("reduce", reduce)) is Outcome.HOLDS
    for name, size in (("sgi-origin2000", 8), ("cray-t3e600", 1_000_000)):
        turned = {**reduce, (name, size): 0.5}
        assert outcome("004", "p014", *collective("reduce", turned)) is Outcome.DOES_NOT


def test_who_is_here_can_contradict_an_order_of_more_and_never_confirm_it():
    times = {("cray-t3e600", 8): 2.0, ("sgi-origin2000", 8): 4.0}
    [held] = decided("004", "p012", *collective("alltoall", times))
    assert held.outcome is Outcome.NOT_CHECKABLE
    assert held.lacking == "nothing here stands for ncsa-nt-myrinet and 1 more"
    turned = collective("alltoall", {**times, ("sgi-origin2000", 8): 1.0})
    assert outcome("004", "p012", *turned) is Outcome.DOES_NOT
    # Of a first, a middle and a last: both factors stand between the two ends.
    assert barriers({"cray-t3e600": 1.0, "ahpcc-linux-ethernet": 3.0}) is Outcome.DOES_NOT


def barriers(times: Mapping[str, float]) -> Outcome:
    """Return what barriers of 128 processes say of the order of the machines."""
    figures = {name: figure("barrier", "time_us", t, processes=128) for name, t in times.items()}
    return outcome("004", "p004", *(who(name, [one]) for name, one in figures.items()))


def test_a_machine_is_held_to_no_more_than_is_said_of_it():
    """NT is not said to be ahead of Ethernet, though it is in print."""
    times = {"cray-t3e600": 1.0, "sgi-origin2000": 1.2, "ahpcc-linux-myrinet": 3.0,
             "ahpcc-linux-ethernet": 7.0}  # fmt: skip
    assert barriers({**times, "ncsa-nt-myrinet": 6.0}) is Outcome.HOLDS
    assert barriers({**times, "ncsa-nt-myrinet": 2.0}) is Outcome.DOES_NOT
    times["ahpcc-linux-ethernet"] = 5.0
    assert barriers({**times, "ncsa-nt-myrinet": 6.0}) is Outcome.DOES_NOT


def bcast_of_the_altix(by_processes: Mapping[int, float]) -> Outcome:
    figures = [
        figure("Bcast", "t_avg_us", time, processes=p, bytes=MEBIBYTE)
        for p, time in by_processes.items()
    ]
    return outcome("000", "p015", who("altix-bx2-numalink4", figures))


def test_a_sudden_increase_says_nothing_of_fewer_processes():
    falls_before = {2: 10.0, 4: 30.0, 8: 20.0, 128: 40.0, 256: 100.0}
    assert bcast_of_the_altix({**falls_before, 512: 80.0}) is Outcome.HOLDS
    assert bcast_of_the_altix({**falls_before, 512: 120.0}) is Outcome.DOES_NOT
    assert bcast_of_the_altix({2: 30.0, 4: 20.0}) is Outcome.NOT_CHECKABLE


def test_a_small_problem_that_the_paper_rejected_decides_nothing():
    """32000 atoms of Lennard-Jones were tried first, and found too small."""

    def lammps(name: str, last: float, atoms: int) -> Subject:
        strong = [
            figure("LAMMPS-lj-strong", "time_s", t, processes=p, atoms=atoms)
            for p, t in {1: 100.0, 64: last}.items()
        ]
        weak = [
            figure("LAMMPS-lj-weak", "time_s", t, processes=p, atoms=32000 * p)
            for p, t in {1: 100.0, 64: 60 * last}.items()
        ]
        return who(name, [*strong, *weak])

    def told(atoms: int) -> Outcome:
        both = lammps("sicortex-sc072", 2.0, atoms), lammps("opteron-myri10g", 3.0, atoms)
        return outcome("002", "p011", *both)

    assert told(4194304) is Outcome.HOLDS
    assert told(32000) is Outcome.NOT_CHECKABLE


def test_cores_of_one_node_are_not_those_of_two():
    def sendrecv(nodes_of_four: int) -> Outcome:
        values = {2: (1, 900.0), 4: (nodes_of_four, 500.0)}
        return outcome(
            "002",
            "p004",
            who(
                "mpich",
                [
                    figure(
                        *("Sendrecv", "bandwidth_mb_s", value),
                        processes=p,
                        nodes=nodes,
                        placement="packed",
                        bytes=4 * MEBIBYTE,
                    )
                    for p, (nodes, value) in values.items()
                ],
            ),
        )

    assert sendrecv(1) is Outcome.HOLDS
    assert sendrecv(2) is Outcome.NOT_CHECKABLE


def test_bandwidths_of_two_processes_are_compared_between_nodes():
    """As those of curves are: within a node both are the memory's."""

    def pair(benchmark: str, within: float, between: float) -> list[Measured]:
        return [
            figure(
                *(benchmark, "bandwidth_mb_s", value),
                processes=2,
                nodes=nodes,
                placement=placement,
                bytes=MEBIBYTE,
            )
            for nodes, placement, value in ((1, "packed", within), (2, "one-per-node", between))
        ]

    half_duplex = who("a", [*pair("PingPong", 5e3, 700.0), *pair("Sendrecv", 9e3, 710.0)])
    full_duplex = who("b", [*pair("PingPong", 5e3, 700.0), *pair("Sendrecv", 5e3, 1390.0)])
    of, over = (Figure(name, "bandwidth_mb_s") for name in ("PingPong", "Sendrecv"))
    test = replace(load_paper("003").predicates["p004"], here=at_least(of, 0.85, over))
    both = decide(test, Cast([half_duplex, full_duplex], {}))
    assert [one.outcome for one in both] == [Outcome.HOLDS, Outcome.DOES_NOT]


def test_memory_has_no_packets():
    def dip(nodes: int, placement: str) -> Outcome:
        values = {1024: 700.0, 1500: 900.0, 1536: 600.0, 2048: 950.0}
        how: dict[str, Any] = {"ranks": 2, "nodes": nodes, "placement": placement}
        figures = [
            figure("PingPong", "bandwidth_mb_s", v, processes=2, bytes=size, **how)
            for size, v in values.items()
        ]
        return outcome("003", "p021", who("mpich", figures))

    assert dip(2, "one-per-node") is Outcome.HOLDS
    assert dip(1, "packed") is Outcome.NOT_CHECKABLE


def test_of_grids_that_are_all_as_square_none_is_the_squarest():
    def grids(ranks: int, rates: Mapping[int, float]) -> Decision:
        of = {"ranks": ranks, "nb": 192, "mode": "published-001-tilings"}
        figures = [figure("HPL", "performance_gflops", r, **of, p=p) for p, r in rates.items()]
        [found] = decided("001", "p012", who("mpich", figures))
        return found

    assert grids(4, {1: 8.0, 2: 9.0, 4: 7.0}).outcome is Outcome.HOLDS
    two = grids(2, {1: 9.0, 2: 8.0})
    assert two.outcome is Outcome.NOT_CHECKABLE
    assert two.lacking == "the grids of 2 processes are all as square as each other"
    assert grids(2, {1: 8.0, 2: 9.0}).outcome is Outcome.DOES_NOT


def test_three_of_five_systems_in_the_same_order_do_not_confirm_that_of_five():
    ring, fft = "RandomlyOrderedRingBandwidth_GBytes", "MPIFFT_Gflops"

    def systems(*names: str, turned: bool = False) -> list[Subject]:
        return [
            who(
                name,
                [
                    figure("Alltoall", "t_avg_us", 10.0 + k, processes=64, bytes=MEBIBYTE),
                    figure(ring, ring, 9.0 + k if turned else 9.0 - k, processes=64),
                    figure(fft, fft, 9.0 - k, processes=64),
                ],
            )
            for k, name in enumerate(names)
        ]

    assert outcome("000", "p011", *systems(*REDUCE)) is Outcome.HOLDS
    three = list(REDUCE)[:3]
    [decision] = decided("000", "p011", *systems(*three))
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert decision.lacking == "nothing here stands for dell-xeon and 1 more"
    assert outcome("000", "p011", *systems(*three, turned=True)) is Outcome.DOES_NOT
    # Two of three that have changed places leave five with a correlation of 0.9.
    swapped = systems(*three)
    first, second, third = (list(one.figures) for one in swapped)
    first[1], second[1] = second[1], first[1]
    mixed = [
        replace(one, figures=of) for one, of in zip(swapped, (first, second, third), strict=True)
    ]
    assert outcome("000", "p011", *mixed) is Outcome.NOT_CHECKABLE
    # Who has no place in one of the orders is as good as absent.
    *four, last = systems(*REDUCE)
    unmeasured = replace(last, figures=last.figures[:1])
    [decision] = decided("000", "p011", *four, unmeasured)
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert decision.lacking.endswith("were not both measured of cray-opteron")


def test_one_message_size_is_no_lead_over_sizes():
    def allreduce(name: str, value: float, *sizes: int) -> Subject:
        return who(name, [figure("Allreduce", "t_avg_us", value, processes=2, bytes=size)
                          for size in sizes])  # fmt: skip

    intel, mvapich = "westmere-m610-qdr-intelmpi", "westmere-m610-qdr-mvapich2"
    one, two = (MEBIBYTE,), (MEBIBYTE, 2 * MEBIBYTE)
    for sizes, said in ((one, Outcome.NOT_CHECKABLE), (two, Outcome.HOLDS)):
        ahead = allreduce(intel, 1.0, *sizes), allreduce(mvapich, 2.0, *sizes)
        assert outcome("001", "p007", *ahead) is said


def test_machines_of_one_group_may_stand_as_they_like():
    alltoall = {
        ("cray-t3e600", 8): 2.0,
        ("ncsa-nt-myrinet", 8): 1.0,
        ("sgi-origin2000", 8): 4.0,
        ("ahpcc-linux-myrinet", 8): 3.0,
    }
    assert outcome("004", "p012", *collective("alltoall", alltoall)) is Outcome.HOLDS


def test_a_curve_over_sizes_is_of_the_most_processes_that_both_measured():
    """A collective of two processes is faster than one of many, and says nothing of them."""

    def bcast(name: str, by_processes: Mapping[int, float]) -> Subject:
        return who(
            name,
            [
                figure("Bcast", "t_avg_us", value * size, processes=p, bytes=size)
                for p, value in by_processes.items()
                for size in (1, 1024, MEBIBYTE)
            ],
        )

    intel, mvapich = "westmere-m610-qdr-intelmpi", "westmere-m610-qdr-mvapich2"
    ahead_with_two = bcast(intel, {2: 1.0, 64: 9.0}), bcast(mvapich, {2: 2.0, 64: 5.0})
    assert outcome("001", "p010", *ahead_with_two) is Outcome.DOES_NOT
    one_has_more = bcast(intel, {64: 3.0}), bcast(mvapich, {64: 5.0, 128: 1.0})
    assert outcome("001", "p010", *one_has_more) is Outcome.HOLDS
    apart = bcast(intel, {64: 3.0}), bcast(mvapich, {128: 5.0})
    [decision] = decided("001", "p010", *apart)
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "no number of processes" in decision.sentence


def test_a_message_between_nodes_goes_before_one_inside_of_a_node():
    name = "mpich"
    figures = [
        figure("PingPong", "bandwidth_mb_s", value, processes=2, ranks=2, nodes=nodes, bytes=size)
        for nodes, value in ((1, 9000.0), (2, 1000.0))
        for size in (1024, MEBIBYTE)
    ]
    of = {"benchmark": "PingPong", "metric": "bandwidth_mb_s"}
    assert who(name, figures).series(of, "bytes", ranks=2) == {1024: 1000.0, MEBIBYTE: 1000.0}


def test_what_no_measurement_decides_keeps_a_sentence_open():
    hpl = [
        figure("HPL", "efficiency_percent", value, ranks=2, n=n, against="nominal")
        for n, value in ((1000, 50.0), (2000, 80.0))
    ]
    assert outcome("001", "p014", who("mpich", hpl)) is Outcome.NOT_CHECKABLE
    falling = [figure("HPL", "efficiency_percent", 40.0, ranks=2, n=4000, against="nominal")]
    assert outcome("001", "p014", who("mpich", [*hpl, *falling])) is Outcome.DOES_NOT


FULL_HPL = {"ranks": 2, "against": "nominal", "mode": "published-001", "settings": ""}


@pytest.mark.parametrize(
    "smaller", [{"settings": "seconds=15.0"}, {"mode": "published-001-tilings"}]
)
def test_hpl_of_seconds_does_not_tell_what_that_of_the_whole_memory_reaches(smaller):
    def reached(percent: float, **conditions: Any) -> Outcome:
        of = {**FULL_HPL, **conditions}
        return outcome(
            "001", "p011", who("a", [figure("HPL", "efficiency_percent", percent, **of)])
        )

    assert reached(90.0) is Outcome.HOLDS
    assert reached(60.0) is Outcome.DOES_NOT
    assert reached(60.0, **smaller) is Outcome.NOT_CHECKABLE


def test_what_was_measured_and_disturbed_is_not_said_to_be_missing():
    values = figure("HPL", "efficiency_percent", 90.0, **FULL_HPL)
    disturbed = replace(values, doubt="others used a core", of_launches=())
    [decision] = decided("001", "p011", who("mpich", [disturbed]))
    assert decision.outcome is Outcome.NOT_CHECKABLE
    assert "disturbed; run again on idle nodes" in decision.sentence
    [decision] = decided("001", "p011", who("mpich", []))
    assert "was not measured" in decision.sentence


@pytest.mark.parametrize("paper", PAPERS)
def test_a_conclusion_names_systems_of_its_paper_and_metrics_that_are_known(paper):
    known = load_paper(paper)
    leaves = [one for p in known.predicates.values() if p.here for one in p.here.leaves]
    for leaf in leaves:
        assert {*leaf.systems} <= {*known.systems}
        for figure in leaf.figures:
            assert figure.metric in every_metric() or figure.metric == figure.benchmark, figure
