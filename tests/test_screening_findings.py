"""What a screening found, in words and in the forms in which it is needed next."""

import datetime
import itertools
import math
import re
import shlex
from functools import partial

import numpy as np
import pytest

from clustergate.core.model import ClustergateError
from clustergate.launch.hostfiles import HostfileError, parse_hostfile
from clustergate.sites.schedulers import scheduler_of
from clustergate.studies.screen.findings import (
    Screening,
    analyse,
    confidence_text,
    drain_lines,
    hostfile_lines,
    ticket,
)
from clustergate.studies.screen.localisation import Unit
from clustergate.studies.screen.measures import Result
from clustergate.studies.screen.plan import Log
from clustergate.studies.screen.rounds import rounds
from clustergate.studies.screen.wording import exit_status

SLURM = scheduler_of("slurm")
TODAY = datetime.date(2026, 11, 21)
NAMES = [f"n{k:02d}" for k in range(12)]


def results(
    slow: dict[str, float],
    lost: frozenset[str] = frozenset(),
    cut: frozenset[str] = frozenset(),
    names: list[str] = NAMES,
) -> list[Result]:
    """Return what a cluster shows whose named nodes are so many times slower, by themselves too."""
    random = np.random.default_rng(3)
    found = []
    for turn in range(2):
        for name in names:
            bad = slow.get(name, 1.0) * math.exp(random.normal(0, 0.01))
            failed = "ended with exit status 255: no route to host" if name in lost else ""
            for kind, values in (
                ("hpl", {"hpl_gflops": 200 / bad}),
                ("peaks", {"triad_gb_s": 20 / bad, "fma_peak_gflops": 270 / bad}),
            ):
                found.append(Result((name,), kind, turn, {} if failed else values, failed))
    for turn, members in enumerate(rounds(len(names)), start=2):
        for a, b in members.tolist():
            pair = (names[a], names[b])
            bad = max(slow.get(n, 1.0) for n in pair) * math.exp(random.normal(0, 0.01))
            failed = "took longer than 60 s" if lost.intersection(pair) or cut == set(pair) else ""
            values = {"pingpong_latency_us": 2 * bad, "pingpong_bandwidth_mb_s": 12000 / bad}
            found.append(Result(pair, "pingpong", turn, {} if failed else values, failed))
    return found


def screened(**what: object) -> Screening:
    return analyse(NAMES, results(**what))  # type: ignore[arg-type]


def test_a_slow_node_is_named_once_with_what_every_measure_says() -> None:
    found = screened(slow={"n05": 2.0})
    assert [f.suspect for f in found.findings] == ["node n05"]
    told = found.findings[0].sentence
    assert "latency at 8 B 2" in told
    assert "times longer (about 4" in told
    assert "typically 2" in told
    assert "with 11 of 11 partners (11 launches)" in told
    assert "bandwidth at 4 MiB 2" in told
    assert "confidence above 99.99 %" in told
    assert found.keeps_out == ("n05",)


def test_dead_node_and_cut_link_are_findings() -> None:
    found = screened(slow={}, lost=frozenset({"n03"}))
    (dead,) = found.findings
    assert dead.suspect == "node n03"
    assert dead.failed
    assert (
        "failed with 11 of 11 partners (11 launches), first error: took longer than 60 s"
        in dead.sentence
    )
    link = results({}, cut=frozenset({"n01", "n07"}))
    link += [r for r in link if set(r.nodes) == {"n01", "n07"}] * 4
    (cut,) = analyse(NAMES, link).findings
    assert (cut.unit, cut.nodes) == (Unit.LINK, ("n01", "n07"))
    assert "failed in 5 of 5 launches, first error: took longer" in cut.sentence
    assert cut.keeps_out == ()


def test_what_is_not_sure_is_told_as_a_doubt() -> None:
    found = analyse(NAMES, results({}, cut=frozenset({"n01", "n07"})))
    assert found.findings == ()
    assert any("too few launches to be sure: n01 - n07" in d for d in found.doubts)


def test_where_nothing_works_that_is_what_is_told() -> None:
    found = analyse(NAMES[:2], [Result(("n00", "n01"), "pingpong", 0, failed="mpirun is missing")])
    assert found.findings == ()
    assert "every launch failed; first error: mpirun is missing" in found.doubts[0]


def test_what_is_usual_and_what_would_be_seen_is_told() -> None:
    found = screened(slow={})
    assert any(n.startswith("bandwidth at 4 MiB: typically 1") for n in found.notes)
    assert any("10 % worse counts as slow" in n for n in found.notes)
    assert found.centre("pingpong_bandwidth_mb_s") == pytest.approx(12000, rel=0.02)
    assert analyse(NAMES, []).centre("pingpong_bandwidth_mb_s") is None


def test_a_switch_is_named_with_its_nodes() -> None:
    names = [f"n{k:02d}" for k in range(16)]
    switches = {name: f"leaf{k // 4} of a fabric with a long name" for k, name in enumerate(names)}
    told = [r for r in results(dict.fromkeys(names[4:8], 2.0), names=names) if len(r.nodes) == 2]
    screening = analyse(names, told, switches)
    (found,) = screening.findings
    assert found.suspect == "switch leaf1 of a fabric with a long name (nodes n04 to n07)"
    (line,) = drain_lines(SLURM, screening, TODAY)
    _, why = shlex.split(line)[-1].split("=")
    assert re.fullmatch(r"\S+x longer latency at 8 B on switch leaf1 of a .*, clustergate \S+", why)
    assert len(why) <= 80


def test_somebody_else_s_result_is_refused() -> None:
    with pytest.raises(ClustergateError, match="names n99"):
        analyse(NAMES, [Result(("n99",), "hpl", 0)])


def test_scontrol_command_per_reason_quoted() -> None:
    lines = drain_lines(SLURM, screened(slow={"n05": 2.0}, lost=frozenset({"n03"})), TODAY)
    words = [shlex.split(line) for line in lines]
    assert all(w[:2] == ["scontrol", "update"] and w[3] == "State=DRAIN" for w in words)
    assert {w[2] for w in words} == {"NodeName=n03", "NodeName=n05"}
    assert {w[4] for w in words} == {
        "Reason=2.01x longer latency at 8 B in screening, clustergate 2026-11-21",
        "Reason=failed in screening, clustergate 2026-11-21",
    }
    assert all(len(w) == 5 for w in words)


def test_exclusions_can_be_put_into_a_hostfile() -> None:
    lines = hostfile_lines(screened(slow={"n05": 2.0}, lost=frozenset({"n03"})), TODAY)
    text = "\n".join(["n[00-11] slots=4", *lines])
    read = parse_hostfile(text, "test")
    assert set(read.excluded) == {"n03", "n05"}
    assert all(e.since == TODAY for e in read.excluded.values())


def test_a_name_that_is_none_never_reaches_a_command() -> None:
    names = ["$(reboot)", *NAMES]
    found = analyse(names, results({"$(reboot)": 3.0}, names=names))
    assert found.findings
    for form in (partial(drain_lines, SLURM), hostfile_lines):
        with pytest.raises(HostfileError, match="is not a node name"):
            form(found, TODAY)


def test_a_ticket_says_who_why_and_what_to_do() -> None:
    when = datetime.datetime(2026, 11, 21, 18, 5, tzinfo=datetime.timezone.utc)
    text = ticket(screened(slow={"n05": 2.0}), "example", when)
    assert text.startswith("example: 1 finding of the screening of 2026-11-21T18:05+00:00, 12 node")
    assert "- node n05 (confidence above 99.99 %)\n" in text
    assert "  to do: drain it and open a ticket" in text


def test_confidence_is_never_rounded_up() -> None:
    told = [confidence_text(c) for c in (0.99, 0.99769, 0.99989, 1.0)]
    assert told == [
        "confidence 99 %",
        "confidence 99.76 %",
        "confidence 99.98 %",
        "confidence above 99.99 %",
    ]


def test_every_pair_of_the_plan_is_used_once() -> None:
    pairs = {frozenset(r.nodes) for r in results({}) if len(r.nodes) == 2}
    assert pairs == {frozenset(p) for p in itertools.combinations(NAMES, 2)}


def test_screening_blind_to_half_the_speed_is_not_clean() -> None:
    random = np.random.default_rng(1)
    noisy = [
        Result(r.nodes, r.kind, r.turn, {k: v * math.exp(random.normal(0, 0.4)) for k, v in
               r.values.items()})
        for r in results({})
    ]  # fmt: skip
    found = analyse(NAMES, noisy)
    assert any("too noisy: only a factor of" in doubt for doubt in found.doubts)
    assert not any("too noisy" in doubt for doubt in screened(slow={"n05": 2.0}).doubts)


def test_visible_factor_holds_for_the_fastest_node_too() -> None:
    """The factor that would be seen is that for every node the fastest too."""
    peaks = {"n1": 106.8, "n2": 50.7, "n3": 49.9, "n4": 54.3}
    alone = [Result((n,), "peaks", 0, {"fma_peak_gflops": v}) for n, v in peaks.items()]
    (noisy,) = (one for one in analyse(list(peaks), alone).doubts if "too noisy" in one)
    factor = float(noisy.split("only a factor of ")[1].split()[0])
    # Whoever is twice as slow must be seen; n1 could have been three times as slow unnoticed.
    assert factor > 2


def test_nodes_that_may_be_slow_again_are_in_doubt() -> None:
    names = [f"n{k:02d}" for k in range(64)]
    plan = [pair for members in rounds(64, 3) for pair in members.tolist()]
    slow = [plan[0], plan[40]]

    def screening(*again: list[int]) -> Screening:
        random = np.random.default_rng(1)
        found = []
        for turn, pair in enumerate([*plan, *again]):
            bad = 5.0 if pair in slow and turn < len(plan) else 1.0
            values = {"pingpong_latency_us": 2.0 * bad * math.exp(random.normal(0, 0.02))}
            found.append(Result((names[pair[0]], names[pair[1]]), "pingpong", turn, values))
        return analyse(names, found)

    # The pairs were as usual since, their nodes were not launched often enough.
    may_be = screening(*slow, *slow)
    (doubt,) = may_be.doubts
    assert doubt.startswith("latency at 8 B: twice as slow as what counts as slow in a launch")
    suspects = sorted(names[n] for pair in slow for n in pair)
    assert sorted(doubt.rpartition(": ")[2].split(", ")) == suspects
    assert exit_status(Log(tuple(names), ended=True), may_be) == 2
    others = [n for n in range(64) if names[n] not in suspects]
    met = [
        [n, others[(5 * k + j) % 60]] for k, n in enumerate([*slow[0], *slow[1]]) for j in range(5)
    ]
    settled = screening(*slow, *slow, *met)
    assert settled.doubts == ()
    assert exit_status(Log(tuple(names), ended=True), settled) == 0
