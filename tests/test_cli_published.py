"""``clustergate evaluation`` on made runs."""

import dataclasses
import re
import tarfile
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks.hpcc import output as hpcc
from clustergate.benchmarks.registry import every_metric
from clustergate.cli import build_parser, main
from clustergate.core import store
from clustergate.core.model import (
    METRICS,
    Better,
    CaseRecord,
    ConditionValue,
    Launch,
    Metric,
    Sample,
)
from clustergate.core.paths import checkout
from clustergate.core.reasons import in_words
from clustergate.core.texts import duration
from clustergate.run.reframe import with_settings
from clustergate.run.request import Request, write_request
from clustergate.sites import modes
from evaluations import plan, running, scope, sheet, study
from evaluations.derived.balance import balance_samples
from evaluations.evidence import merged, subjects_in_run
from evaluations.facts import load_paper, parse_paper
from evaluations.modes import PAPER_CHECKS
from evaluations.page import word

RUN = "20261121T120000Z-1"
TRIALS = Metric("time_us", "us", Better.LOWER)


def sample(benchmark: str, metric: str, value: float, **conditions: ConditionValue) -> Sample:
    known = {**METRICS, **hpcc.METRICS, "time_us": TRIALS}[metric]
    return Sample(benchmark, metric, known.unit, known.better, conditions, value)


def launched(samples: list[Sample], launches: int = 10) -> list[Sample]:
    """Return samples as so many launches have them that scatter by a thousandth."""
    return [
        dataclasses.replace(one, value=one.value * (1 + 7 * k % 10 / 1e4), order=k)
        for k in range(launches)
        for one in samples
    ]


def record(check: str, stack: str, samples: list[Sample], **more: Any) -> CaseRecord:
    return CaseRecord(
        name=f"{check}-{stack}",
        check=check,
        stack=stack,
        partition="local:node",
        conditions={"ranks": 2, "placement": "packed", "mode": "published-001", "settings": ""},
        samples=samples,
        **more,
    )


def pingpong(factor: float) -> list[Sample]:
    return [
        sample("PingPong", "bandwidth_mb_s", factor * size / (1 + size / 3100), bytes=size)
        for size in (1, 8, 1024, 65536, 262144, 16777216)
    ] + [
        sample("PingPong", "latency_us", 0.2 / factor, processes=2, bytes=8),
        sample("PingPong", "latency_us", 0.4 / factor, processes=2, bytes=64),
        sample("PingPong", "latency_us", 0.6 / factor, processes=2, bytes=1024),
        sample("PingPong", "bandwidth_mb_s", 3100 * factor, processes=2, bytes=16777216),
    ]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def westmere(home: Path) -> Path:
    store.write_case(RUN, record("ImbMpi1Check", "intel-mpi", pingpong(1.0)))
    store.write_case(RUN, record("ImbMpi1Check", "mvapich2", pingpong(1.2)))
    efficiency = sample("HPL", "efficiency_percent", 91.0, against="nominal", n=1000)
    store.write_case(RUN, record("HplCheck", "intel-mpi", [efficiency]))
    return home


class Page(HTMLParser):
    """What a page consists of; whatever it loads from elsewhere is in ``loaded``."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loaded += [v or "" for k, v in attrs if k in ("src", "srcset", "data")]


def test_list_shows_the_papers(capsys):
    assert main(["evaluation", "list"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"003 .* 141 +22 +10 +1 +29", told)


def test_list_of_a_paper_shows_where_it_contradicts_itself(capsys):
    assert main(["evaluation", "list", "002"]) == 0
    told = capsys.readouterr().out
    assert "sicortex-sc072" in told
    assert re.search(r"r013 +322 MFLOPS/W +240", told)


def test_an_unknown_paper_is_one_sentence(capsys):
    assert main(["evaluation", "list", "005"]) == 2
    assert "unknown paper '005'; known: 000, 001" in capsys.readouterr().err


def test_a_report_sets_measured_values_beside_printed_ones(westmere, capsys):
    assert main(["evaluation", "report", "001", RUN]) == 0
    told = capsys.readouterr().out
    # On 2 ranks, where 6144 were printed.
    assert re.search(r"r021 .* up to 87 % +91\.00 \* +-", told)
    # Printed in ns, measured in us.
    assert re.search(r"r025 .*about 200 ns", told)
    assert "200.0" in told
    assert "doubtful" in told


def test_a_report_decides_what_it_can(westmere, capsys):
    main(["evaluation", "report", "001", RUN])
    told = capsys.readouterr().out
    # One launch decides nothing.
    assert re.search(r"p011 .* not checkable +inconclusive here", told)
    efficiency = sample("HPL", "efficiency_percent", 91.0, against="nominal", n=1000)
    store.write_case(RUN, record("HplCheck", "intel-mpi", launched([efficiency])))
    for stack, factor in (("intel-mpi", 1.0), ("mvapich2", 1.2)):
        store.write_case(RUN, record("ImbMpi1Check", stack, launched(pingpong(factor))))
    main(["evaluation", "report", "001", RUN])
    told = capsys.readouterr().out
    assert re.search(r"p011 .* not checkable +holds here", told)
    assert re.search(r"p012 .* not checkable here", told)
    # The sides are alike below 1 kB, and MVAPICH2 was made faster above.
    assert re.search(r"p002 .* does not hold here", told)


def test_runs_may_be_named_behind_the_roles(westmere, capsys):
    """That argument was unrecognized, whatever stood there."""
    words = ["evaluation", "report", "001", RUN, f"--as=westmere-m610-qdr={RUN}:mvapich2"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert main([*words[:3], *words[:2:-1]]) == 0
    assert capsys.readouterr().out == told
    with pytest.raises(SystemExit):
        main([*words, "--no-such", "last"])
    assert "usage: clustergate evaluation report" in capsys.readouterr().err


def test_a_report_derives_by_the_papers_formulas(home, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    times = [sample("PingPong", "latency_us", 2 + k / 1000, bytes=k) for k in (0, 1024, 1048576)]
    bcast = [sample("bcast", "time_us", 10.0, processes=2, bytes=8)]
    slower = [sample("bcast", "time_us", 25.0, processes=2, bytes=8)]
    store.write_case(RUN, record("ImbMpi1Check", "a", times + bcast))
    store.write_case(RUN, record("ImbMpi1Check", "b", slower))
    assert main(["evaluation", "report", "004", RUN]) == 0
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "2.000 us (R squared 1.000)" in told
    assert "1000 MB/s" in told
    # Of a bandwidth nothing was measured.
    assert "dips" not in told


def test_page_opens_offline_in_the_papers_units(westmere, capsys):
    assert main(["evaluation", "report", "001"]) == 0
    path = westmere / "results" / "runs" / RUN / "published-001.html"
    assert str(path) in capsys.readouterr().out.replace("\n", "")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.loaded == []
    assert page.tags.count("script") == 1
    # One has an axis for each of two quantities, and is drawn as two; single points are not drawn.
    assert page.tags.count("figure") == 4
    assert "a listing; the site config" in text.partition("<h3>Not drawn</h3>")[2]
    assert "bandwidth [MB/s]" in text
    assert "latency [us]" in text
    assert "printed: westmere-m610-qdr-mvapich2" in text
    assert "Not credible between nodes" in text


def test_disturbed_launches_decide_and_draw_nothing(home, capsys):
    disturbed = Launch(0, 0.0, 1.0, disturbed=in_words("others used 3.0 cores"))
    samples = pingpong(1.0)
    store.write_case(RUN, record("ImbMpi1Check", "intel-mpi", samples, launches=[disturbed]))
    assert main(["evaluation", "report", "001", RUN]) == 0
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    assert "3100 ?" in told
    assert "10 of 10 figures of intel-mpi decide and draw nothing" in told
    assert "others used 3.0 cores" in told
    assert "not checkable here: 14" in told
    assert "0 of 10 figures are drawn" in told


@pytest.mark.parametrize(
    ("holds", "does_not", "told"),
    [
        (2, 1, "2 OF 3 DECIDED CONCLUSIONS HOLD HERE"),
        (0, 1, "0 OF 1 DECIDED CONCLUSIONS HOLD HERE"),
        (0, 0, "NO CONCLUSION WAS DECIDED HERE"),
    ],
)
def test_what_was_not_decided_does_not_count_as_refuted(holds, does_not, told):
    counts = {"holds here": holds, "does not hold here": does_not, "not checkable here": 11}
    assert word(counts) == told


def hpcc_run(stack: str, version: str, gups: float) -> CaseRecord:
    summary = {
        "HPL_Tflops": 0.1,
        "StarSTREAM_Copy": 10.0,
        "RandomlyOrderedRingBandwidth_GBytes": 1.0,
        "RandomlyOrderedRingLatency_usec": 2.0,
        "MPIRandomAccess_GUPs": gups,
    }
    samples = [sample(name, name, value) for name, value in summary.items()]
    samples += balance_samples(samples, 2)
    details = {"program": {"version": version}}
    return record("HpccCheck", stack, samples, details=details)


def test_ratios_of_hpcc_are_drawn_as_a_kiviat_diagram(home, capsys):
    store.write_case(RUN, hpcc_run("mpich", "1.5.0", 0.01))
    assert main(["evaluation", "report", "000", RUN]) == 0
    told = capsys.readouterr().out
    assert re.search(r"r024 .*0\.094 B/F +0\.02", told)
    text = (home / "results" / "runs" / RUN / "published-000.html").read_text(encoding="utf-8")
    assert "a ring on fewer than 8 nodes says little of the network" in text
    assert "mpich alone is the best of every column" in text
    store.write_case(RUN, hpcc_run("openmpi", "1.5.0", 0.02))
    main(["evaluation", "report", "000", RUN])
    text = (home / "results" / "runs" / RUN / "published-000.html").read_text(encoding="utf-8")
    assert "alone is the best" not in text
    assert "1 of STREAM [B/F] is 0.2000" in text


def test_random_access_of_another_hpcc_not_beside_the_print(home, capsys):
    store.write_case(RUN, hpcc_run("mpich", "0.8b", 0.01))
    main(["evaluation", "report", "000", RUN])
    assert "r026" not in capsys.readouterr().out
    text = (home / "results" / "runs" / RUN / "published-000.html").read_text(encoding="utf-8")
    assert "RandomAccess of another HPCC: mpich" in text


def test_what_several_runs_have_of_a_stack_counts_together(home, capsys):
    later = "20261121T130000Z-1"
    for run, processes in ((RUN, 2), (later, 4)):
        for stack, more in (("mpich", 1.0), ("openmpi", 0.01)):
            times = [sample("Barrier", "t_avg_us", 5.0 + more * processes, processes=processes)]
            store.write_case(run, record("ImbMpi1Check", stack, launched(times)))
    words, role = ["evaluation", "report", "000"], f"--as=cray-x1-msp={later}:openmpi"
    assert main([*words, later, role]) == 0
    assert re.search(r"p003 .* not checkable here", capsys.readouterr().out)
    assert main([*words, RUN, later, role]) == 0
    assert re.search(r"p003 .* holds here", capsys.readouterr().out)


def test_single_launches_are_a_round_only_in_drawn_order(home):
    store.write_case(RUN, record("ImbMpi1Check", "mpich", launched(pingpong(1.0), 1)))
    mode = modes.mode_named("published-001")
    for options, is_round in ((("--exec-order=random",), True), ((), False)):
        write_request(Request(mode, Path("local.py"), ("mpich",), (), options), RUN)
        [subject] = vars(running)["_measured"](RUN)
        assert {bool(one.rounds) for one in subject.figures} == {is_round}


told_briefly: list[bool] = []


@pytest.fixture
def asked(monkeypatch, home):
    """Return what is asked for instead of being run: each run measures what is in ``samples``."""
    found = []
    told_briefly.clear()

    def run(request, run_id, started, invocation, *, resumes=False, again="", brief=False):
        assert again.startswith("evaluation run ")
        assert again.endswith(" --resume")
        told_briefly.append(brief)
        found.append((run_id, request, resumes))
        if found[0] is None:
            raise KeyboardInterrupt
        write_request(request, run_id)
        for stack in request.stacks:
            launches = int(dict(
                option.removeprefix("--setvar=").split("=")[:2] for option in request.options
            ).get("launches", 3))  # fmt: skip
            faster = 1.3 if stack == "mpich" else 1.0
            store.write_case(
                run_id, record("ImbMpi1Check", stack, launched(pingpong(faster), launches))
            )
        return 0

    monkeypatch.setattr(running, "run_and_tell", run)
    return found


def test_a_paper_is_run_with_its_mode_and_scaled(asked, capsys):
    assert main(["evaluation", "run", "001", "--stack", "mpich"]) == 0
    (run_id, hpl, _), (_, imb, _), (_, tilings, _), *_ = asked
    assert (hpl.mode.name, hpl.stacks) == ("published-001", ("mpich",))
    assert [one.checks for one in (hpl, tilings, imb)] == [("HplCheck",)] * 2 + [("ImbMpi1Check",)]
    assert "--setvar=HplCheck.seconds=15" in hpl.options
    told = capsys.readouterr().out
    assert f"evaluation report 001 {run_id}" in told
    assert "to run: 1 case of HplCheck (HplCheck.seconds=15, launches=1)" in told
    assert "to run: 10 rounds of 1 case of ImbMpi1Check (launches=1)" in told
    assert tilings.mode.efforts["hpl"].every_grid
    assert tilings.mode.efforts["hpl"].inputs["nb_values"][-1] == 256
    asked.clear()
    assert main(["evaluation", "run", "000", "--site", "cray-opteron", "--full"]) == 0
    *parts, (_, whole, _) = asked
    assert "--setvar=launches=10" not in whole.options
    assert whole.checks == ()
    ranks = [request.options[-1].rpartition("=")[2] for _, request, _ in parts]
    assert ranks == ["2", "4", "8", "16", "32"]


def test_a_plan_says_what_cannot_be_decided_here_and_runs_nothing(asked, capsys):
    assert main(["evaluation", "run", "001", "--plan", "--site", "local"]) == 0
    told = capsys.readouterr().out
    assert "nothing here stands for westmere-m610-qdr-mvapich2" in told
    assert "p012: the grids of 2 processes are all as square as each other; what is here" in told
    assert "p013" not in told.partition("not:")[2]
    assert "--as SYSTEM=STACK lets a stack stand" in told
    assert main(["evaluation", "run", "001", "--plan", "--site", "local",
                 "--as=westmere-m610-qdr-mvapich2=mpich"]) == 0  # fmt: skip
    told = capsys.readouterr().out
    assert "11 of 14 conclusions can be decided here, 1 more can be contradicted" in told
    assert (
        "p011: HPL efficiency_percent against=nominal mode=published-001 without settings" in told
    )
    assert "openmpi would stand for no system and is not run; --stack " in told
    assert re.search(r"10 rounds of \d cases of HplCheck \(mode published-001-tilings, ", told)
    assert "tells how long these take: HplCheck, ImbMpi1Check;" in told
    assert asked == []


def test_a_plan_goes_by_what_launches_with_the_same_settings_took(asked, capsys):
    mode, checks = modes.mode_named("published-004"), ("MpiTrialsCheck",)
    rounds, unflushed = {"launches": 1}, {"MpiTrialsCheck.flush_bytes": 0}
    for run, settings, seconds in (("1", rounds, 31.0), ("2", {**unflushed, "launches": 6}, 1.0)):
        options = (*with_settings(settings), "--exec-order=random")
        write_request(Request(mode, Path("local.py"), ("mpich",), checks, options), run)
        launches = [Launch(0, 0.0, seconds=seconds)]
        store.write_case(run, record("MpiTrialsCheck", "mpich", [], launches=launches))
    words = ["evaluation", "run", "004", "--plan", "--site", "cray-t3e600", "--stack", "mpich"]
    assert main(words) == 0
    # Ten rounds of a launch of 31 s with its start, and once launches of a second in all.
    told = capsys.readouterr().out
    assert f"it takes about {duration(10 * 36.0 + 6.0)} by earlier launches" in told
    assert "tells how long these take: MpiTrialsCheck;" in told


@pytest.mark.parametrize(
    ("role", "told"),
    [
        ("cm5=mpich", "paper 001 has no system 'cm5'"),
        ("westmere-m610-qdr-mvapich2=lam", "lam is not run; the stacks are"),
    ],
)
def test_a_role_that_cannot_be_is_refused_before_anything_runs(asked, capsys, role, told):
    assert main(["evaluation", "run", "001", "--site", "local", f"--as={role}"]) == 2
    assert told in capsys.readouterr().err
    assert asked == []


def test_inconclusive_part_launched_again_within_the_budget(asked, capsys, home, monkeypatch):
    monkeypatch.setattr(plan, "SCALED", {**plan.SCALED, "launches": 2})
    monkeypatch.setattr(study, "FEWEST", 2)
    words = ["evaluation", "run", "001", "--site", "local", "--stack", "mpich"]
    words += ["--stack", "intel-mpi", "--as=westmere-m610-qdr-mvapich2=mpich"]
    assert main([*words, "--budget", "0s"]) == 0
    assert len(asked) == 7
    told = capsys.readouterr().out
    assert re.search(r"p003 .*inconclusive here", told)
    assert told.count("1 round left, about ") == 1
    assert "the budget of 0 s has ended; `clustergate evaluation run 001 --resume` goes on" in told
    [page] = home.glob("results/evaluations/*/index.html")
    assert re.search(r"launches again what would probably decide .*p003", page.read_text())
    asked.clear()
    assert main([*words, "--budget", "10m"]) == 0
    told = capsys.readouterr().out
    # Ten rounds decide, of which the gate's launch is none.
    assert len(asked) == 11
    # The gate and the first round of its three parts are told in full, the rest in a line each.
    assert told_briefly[7:] == [*[False] * 4, *[True] * 7]
    # Those of other checks say nothing.
    assert "again: ImbMpi1Check (published-001, launches=1)\n" in told
    assert asked[7][1].checks == ("ImbMpi1Check",)
    assert not re.search(r"p003 .*inconclusive here", told)


@pytest.mark.parametrize(("failed", "status"), [(10, 2), (9, 0)])
def test_a_part_of_which_no_round_proved_itself_is_no_success(
    asked, capsys, monkeypatch, failed, status
):
    ran, rounds = vars(running)["run_and_tell"], [2] * failed

    def run(request, *of, **how):
        ran(request, *of, **how)
        return rounds.pop() if request.mode.name.endswith("-tilings") and rounds else 0

    monkeypatch.setattr(running, "run_and_tell", run)
    words = ["evaluation", "run", "001", "--site", "local", "--stack", "mpich", "--budget", "0s"]
    assert main(words) == status
    told = "no launch of HplCheck (published-001-tilings, launches=1) proved itself"
    assert (told in capsys.readouterr().out) == (status == 2)


@pytest.mark.parametrize("status", [1, 2])
def test_nothing_is_compared_until_hpl_passes(asked, capsys, monkeypatch, status):
    """Paper 001 compares MPI libraries on a cluster whose HPL is as it should be."""
    statuses = [status]
    ran = vars(running)["run_and_tell"]
    monkeypatch.setattr(
        running, "run_and_tell", lambda *of, **how: ran(*of, **how) or (statuses or [0]).pop()
    )
    words = ["evaluation", "run", "001", "--site", "local", "--stack", "mpich"]
    assert main(words) == 2
    assert "HplCheck did not pass, so that nothing is compared" in capsys.readouterr().err
    assert [request.checks for _, request, _ in asked] == [("HplCheck",)]
    asked.clear()
    assert main([*words, "--resume"]) == 0
    assert [request.checks for _, request, _ in asked[:2]] == [("HplCheck",), ("ImbMpi1Check",)]


def test_a_run_that_was_interrupted_goes_on_and_ends_in_a_package(asked, capsys, home):
    words = ["evaluation", "run", "001", "--site", "local", "--stack", "mpich"]
    assert main([*words, "--resume"]) == 2
    assert "no run of paper 001 to resume" in capsys.readouterr().err
    asked.append(None)
    assert main(words) == 130
    _, (first, _, _) = asked
    store.make_folder(store.run_folder(first))
    asked.clear()
    for other, told in (
        ("--as=westmere-m610-qdr-mvapich2=mpich", "another --as"),
        ("--stack=openmpi", "another --stack"),
        ("--full", "another --full"),
    ):
        assert main([*words, other, "--resume"]) == 2
        assert f"the run to resume began with {told}" in capsys.readouterr().err
    assert asked == []
    assert main([*words, "--resume"]) == 0
    (run, request, resumes), *_ = asked
    assert (run, resumes, request.stacks) == (first, True, ("mpich",))
    folder = home / "results" / "evaluations" / f"001-{first}"
    assert str(folder) in capsys.readouterr().out.replace("\n", "")
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {
        "index.html",
        "report.txt",
        "study.json",
        "citation.bib",
        "001.yaml",
        "paper_001.py",
    } <= names
    assert any(name.startswith(f"runs/{first}/") for name in names)
    assert first in (folder / "citation.bib").read_text()
    with tarfile.open(f"{folder}.tar.gz") as archive:
        assert f"001-{first}/index.html" in archive.getnames()


def test_study_cited_by_title_paper_by_what_was_repeated():
    """A study is cited by its title and authors a paper by what was repeated."""
    example = checkout() / "docs" / "examples" / "two-stacks.yaml"
    named = "  id: two-stacks\n  title: Two stacks\n  authors: A. Name and B. Name\n"
    text = example.read_text(encoding="utf-8").replace("  id: two-stacks\n", named)
    step = study.Step(plan.Part(("ImbMpi1Check",)))
    for paper, author, title in (
        (parse_paper(text, example), "A. Name and B. Name", "Two stacks"),
        (load_paper("001"), "", "Evaluation 001 repeated: MVAPICH2 against Intel MPI on a "),
    ):
        steps = tuple(dataclasses.replace(step, run=f"20261128T10000{k}Z-r{k}") for k in range(3))
        entry = study.bibtex(paper, study.Study(paper.id, ("mpich",), {}, False, steps), "1.0")
        assert ("author" in entry) == bool(author)
        assert author in entry
        assert f"title = {{{title}" in entry
        assert "3 runs: 20261128T100000Z-r0 to 20261128T100002Z-r2}" in entry


def test_a_study_of_ones_own_is_repeated_from_its_file_alone(asked, capsys, home, tmp_path):
    mine = tmp_path / "elsewhere" / "mine.yaml"
    mine.parent.mkdir()
    mine.write_bytes((checkout() / "docs" / "examples" / "two-stacks.yaml").read_bytes())
    words = [str(mine), "--site", "local"]
    assert main(["evaluation", "run", *words, "--plan"]) == 0
    assert "2 of 2 conclusions can be decided here\n" in capsys.readouterr().out
    began_with = mine.read_bytes()
    mine.write_text("what is written while it runs")
    assert main(["evaluation", "run", *words, "--budget", "0s"]) == 0
    assert "run mine.yaml\nmine.yaml alone repeats it\n" in capsys.readouterr().out
    (run, request, _), *more = asked
    assert (request.mode.name, request.checks, len(more)) == ("smoke", ("ImbMpi1Check",), 9)
    # The site has a third one, which the study does not name.
    assert request.stacks == ("intel-mpi", "mpich")
    assert {"--setvar=launches=1", "--exec-order=random"} <= set(request.options)
    folder = home / "results" / "evaluations" / f"two-stacks-{run}"
    assert (folder / "mine.yaml").read_bytes() == began_with
    assert "two-stacks" in (folder / "citation.bib").read_text()
    capsys.readouterr()
    runs = [one for one, _, _ in asked]
    assert main(["evaluation", "report", str(folder / "mine.yaml"), *runs]) == 0
    assert re.search(r"p001 .*does not hold here", capsys.readouterr().out)


def test_a_study_whose_stack_is_not_here_says_so(home, capsys, tmp_path):
    mine = tmp_path / "mine.yaml"
    text = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text()
    mine.write_text(text.replace("played_by: [mpich]", "played_by: [lam]"))
    assert main(["evaluation", "run", str(mine), "--site", "local", "--plan"]) == 0
    assert (
        "mpich is played by lam, and the stacks of this site are intel-mpi"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "launches: 10",
            "launches: 9",
            "nothing that compares stacks can be decided: it takes `la",
        ),
        (
            "along: bytes\n      direction",
            "along: processes\n      direction",
            "p002: Allreduce t_avg_us was measured at 1 process count, and it takes 2",
        ),
        (
            "predicates:",
            "values:\n- {source: a, benchmark: b, metric: c, unit: us, better: lower, entries: "
            "[{id: r001, system: mpich, value: 1}], "
            "suite: {check: ImbMpi1Check, figure: PingPnog.2p.latency_us}}\n"
            "predicates:",
            "r001: no check of the study names 'PingPnog'; 'PingPong' is near to it",
        ),
    ],
)
def test_a_plan_says_what_of_a_study_cannot_be_on_two_cores(home, capsys, tmp_path, old, new, told):
    mine = tmp_path / "mine.yaml"
    text = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text()
    mine.write_text(text.replace(old, new))
    assert main(["evaluation", "run", str(mine), "--site", "local", "--plan"]) == 0
    assert told in capsys.readouterr().out
    mine.write_text(text)
    load_paper.cache_clear()
    assert main(["evaluation", "run", str(mine), "--site", "local", "--plan"]) == 0
    assert told not in capsys.readouterr().out


def test_a_study_that_changed_is_not_resumed(asked, capsys, tmp_path):
    mine = tmp_path / "mine.yaml"
    text = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text()
    mine.write_text(text)
    asked.append(None)
    assert main(["evaluation", "run", str(mine), "--site", "local"]) == 130
    asked.clear()
    mine.write_text(text.replace("launches: 10", "launches: 10, ImbMpi1Check.benchmarks: Bcast"))
    load_paper.cache_clear()
    assert main(["evaluation", "run", str(mine), "--site", "local", "--resume"]) == 2
    assert "mine.yaml asks for other launches than the run to resume" in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize(
    ("words", "counts", "told"),
    [
        (["--as=intel-mpi=openmpi"], "", "run mine.yaml --as intel-mpi=openmpi"),
        (["--stack=mpich"], "", "run mine.yaml --stack mpich"),
        (["--", "-J=exclusive"], "", "run mine.yaml -- -J=exclusive"),
        ([], "1", "CLUSTERGATE_PROCESS_COUNTS=1 clustergate evaluation run mine.yaml"),
    ],
)
def test_what_a_study_was_told_beside_its_file_is_said(
    asked, capsys, monkeypatch, tmp_path, words, counts, told
):
    if counts:
        monkeypatch.setenv("CLUSTERGATE_PROCESS_COUNTS", counts)
    mine = tmp_path / "mine.yaml"
    mine.write_bytes((checkout() / "docs" / "examples" / "two-stacks.yaml").read_bytes())
    assert main(["evaluation", "run", str(mine), "--site=local", "--budget=0s", *words]) == 0
    said = capsys.readouterr().out
    assert f"{told}\nmine.yaml alone does not repeat it" in said


def test_what_two_rounds_did_not_measure_is_said_then(asked, capsys, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_bytes((checkout() / "docs" / "examples" / "two-stacks.yaml").read_bytes())
    assert main(["evaluation", "run", str(mine), "--site", "local", "--budget", "0s"]) == 0
    said = capsys.readouterr().out
    assert "p002 cannot be decided by this run: Allreduce t_avg_us was not measured" in said
    assert "p001 cannot" not in said


def test_misspelt_benchmark_told_before_anything_runs(home, capsys, tmp_path):
    """A benchmark that is probably misspelt is said before anything runs."""
    mine = tmp_path / "mine.yaml"
    text = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text()
    mine.write_text(text.replace("benchmark: Allreduce", "benchmark: Allredcue"))
    told = "p002: no check of the study names 'Allredcue'; 'Allreduce' is near to it"
    for words in (["list", str(mine)], ["run", str(mine), "--site", "local", "--plan"]):
        assert main(["evaluation", *words]) == 0
        assert told in capsys.readouterr().out
    other = tmp_path / "other.yaml"
    other.write_text(text)
    assert main(["evaluation", "list", str(other)]) == 0
    assert "no check of the study names" not in capsys.readouterr().out


def test_a_study_that_says_no_checks_is_one_sentence(home, capsys, tmp_path):
    mine = tmp_path / "mine.yaml"
    text = (checkout() / "docs" / "examples" / "two-stacks.yaml").read_text()
    mine.write_text(re.sub(r"  run:\n(    .*\n)*", "", text))
    assert main(["evaluation", "list", str(mine)]) == 1
    assert "says by `run` which mode and checks it takes" in capsys.readouterr().err


def test_hpl_of_paper_003_has_points_over_the_size_of_the_problem(asked):
    assert main(["evaluation", "run", "003", "--stack", "mpich"]) == 0
    *smaller, (_, whole, _) = asked[:4]
    assert [request.checks for _, request, _ in smaller] == [("HplCheck",)] * 3
    assert whole.mode.efforts["hpl"].inputs["nb_values"] == (64, 96, 128, 160, 192, 256)
    for seconds, (_, request, _) in zip((0.1, 0.3, 1), smaller, strict=True):
        assert f"--setvar=HplCheck.seconds={seconds}" in request.options
        assert "--setvar=HplCheck.seconds=15" not in request.options
    assert whole.checks == ()
    assert "--setvar=launches=1" in whole.options


def test_trials_are_run_with_flushed_caches_and_without(asked):
    assert main(["evaluation", "run", "004", "--stack", "mpich"]) == 0
    (_, flushed, _), *_, (_, unflushed, _), (_, spikes, _) = asked[:12]
    assert {"--setvar=MpiTrialsCheck.trials=100", "--setvar=MpiTrialsCheck.tests=bcast"} <= set(
        spikes.options
    )
    assert "--setvar=MpiTrialsCheck.flush_bytes=0" in unflushed.options
    assert not any("flush_bytes" in option for option in flushed.options)


def test_stacks_can_stand_for_systems(home, capsys):
    roles = ["nec-sx8", "altix-bx2-numalink4", "cray-x1-msp", "dell-xeon", "cray-opteron"]
    for k, stack in enumerate("abbbb"):
        times = [sample("Bcast", "t_avg_us", 9 * (1 + (k > 0)), processes=2, bytes=1048576)]
        store.write_case(RUN, record("ImbMpi1Check", f"{stack}{k}", launched(times)))
    options = [f"--as={name}={RUN}:{'abbbb'[k]}{k}" for k, name in enumerate(roles)]
    assert main(["evaluation", "report", "000", RUN, *options]) == 0
    # Behind the first, all are the same and none is ahead.
    told = capsys.readouterr().out
    assert re.search(r"p014 .*does not hold here", told)
    assert "measured with a0 (for nec-sx8), b1 (for altix-bx2-numalink4)" in told


def test_no_stack_stands_for_two_systems(home, asked, capsys):
    times = [sample("Bcast", "t_avg_us", 9.0, processes=2, bytes=1048576)]
    store.write_case(RUN, record("ImbMpi1Check", "a", launched(times)))
    roles = [f"--as={name}={RUN}:a" for name in ("nec-sx8", "dell-xeon")]
    assert main(["evaluation", "report", "000", RUN, *roles]) == 1
    told = "a cannot stand for both nec-sx8 and dell-xeon: compared with itself it says nothing"
    assert told in capsys.readouterr().err
    roles = ["--as=westmere-m610-qdr-mvapich2=mpich", "--as=westmere-m610-qdr-intelmpi=mpich"]
    assert main(["evaluation", "run", "001", "--site", "local", *roles]) == 2
    assert "mpich cannot stand for both" in capsys.readouterr().err
    assert asked == []
    # Who was given another role leaves his own.
    role = "--as=westmere-m610-qdr-mvapich2=intel-mpi"
    assert main(["evaluation", "run", "001", "--plan", "--site", "local", role]) == 0
    assert "nothing here stands for westmere-m610-qdr-intelmpi" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("nec-sx8", "in a report SYSTEM=RUN:STACK"),
        (f"cm5={RUN}:mvapich2", "paper 001 has no system 'cm5'"),
        (f"westmere-m610-qdr={RUN}", "has the stacks intel-mpi, mvapich2; name one"),
    ],
)
def test_a_bad_role_is_one_sentence(westmere, capsys, option, told):
    assert main(["evaluation", "report", "001", RUN, f"--as={option}"]) == 1
    assert told in capsys.readouterr().err


def test_without_a_run_there_is_no_report(home, capsys):
    assert main(["evaluation", "report", "001"]) == 1
    assert "`clustergate evaluation run 001` makes what the report needs" in capsys.readouterr().err
    store.write_case(RUN, record("ImbMpi1Check", "intel-mpi", pingpong(1.0)))
    assert main(["evaluation", "report", "001", "yesterday"]) == 1
    assert "no run and no file is named yesterday" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_tells_what_to_do(westmere, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    page = tmp_path / "file" / "page.html"
    assert main(["evaluation", "report", "001", RUN, f"--output={page}"]) == 2
    assert "file cannot be written: File exists; name another f" in capsys.readouterr().err


def test_what_cannot_be_run_is_named(monkeypatch):
    every = {c for checks in PAPER_CHECKS.values() for c in checks.values()}
    monkeypatch.setattr(scope, "every_check", lambda: ("HplCheck", "ImbMpi1Check"))
    assert "LammpsCheck" in every
    assert scope.available(load_paper("003")) == {"HPL": "HplCheck", "PMB": "ImbMpi1Check"}
    assert (
        scope.missing(load_paper("002"))[-1]
        == "not available: phdMesh (no maintained recipe exists)"
    )
    assert "not available yet: LAMMPS" in scope.missing(load_paper("002"))


def test_a_paper_of_which_nothing_can_be_run_says_so(monkeypatch, capsys):
    monkeypatch.setattr(scope, "every_check", lambda: ("HplCheck",))
    assert main(["evaluation", "run", "004"]) == 2
    assert "not available yet: trials of collectives" in capsys.readouterr().err


def test_the_page_has_the_table_of_systems():
    page = (checkout() / "docs" / "published-systems.md").read_text(encoding="utf-8")
    match = re.search(r"<!-- published -->\n(.*?)<!-- /published -->", page, re.DOTALL)
    assert match is not None
    assert match.group(1) == scope.systems_table(), "run `clustergate evaluation refresh`"


def test_directions_of_measured_figures_are_known():
    assert every_metric()["ring_balance_b_per_kflop"].better is Better.HIGHER


def test_single_trials_are_drawn_with_and_without_a_flushed_cache(home, capsys):
    for run, flushed in ((RUN, 33_000_000), ("20261121T120000Z-2", 0)):
        trials = [
            {"benchmark": "bcast", "processes": processes, "bytes": size} | {"flush_bytes": flushed}
            for processes in (2, 4)
            for size in (8, 1_000_000)
        ]
        kept = [{**trial, "times_us": [50.0, 2.0, 2.5]} for trial in trials]
        if flushed:
            spikes = {**trials[0], "processes": 4, "bytes": 10_000}
            kept += [{**spikes, "times_us": [50.0, *[2.0] * 98, 8.0]}]
            kept += [{**spikes, "times_us": [7.0] * 51}]
        bcast = [sample("bcast", "time_us", 2.25, processes=4, bytes=8)]
        told = record("MpiTrialsCheck", "mpich", bcast, details={"trials": kept})
        store.write_case(run, told)
    paper, subjects = load_paper("004"), []
    for run in (RUN, "20261121T120000Z-2"):
        subjects += subjects_in_run(run, store.read_cases(run))
    found = {d.figure.number: d for d in sheet.drawings(paper, merged(subjects))}
    assert [line.name for line in found[1].lines] == [
        "mpich, 33.00 MB flushed by each rank",
        "mpich, not flushed",
    ]
    assert found[1].lines[0].points == {1.0: 0.05, 2.0: 0.002, 3.0: 0.0025}
    # The paper's spikes are of 10 kB, and of 100 trials.
    spikes_drawn = found[2].lines[0].points
    assert (len(spikes_drawn), spikes_drawn[1.0], spikes_drawn[100.0]) == (100, 0.05, 0.008)
    few = dataclasses.replace(
        merged(subjects)[0], trials=[{**spikes, "disturbed": False, "times_us": [7.0] * 51}]
    )
    [drawing] = [d for d in sheet.drawings(paper, [few]) if d.figure.number == 2]
    assert (drawing.lines, drawing.why_not) == ([], "bcast: not measured so in this run")
    assert main(["evaluation", "report", "004", RUN]) == 0
    page = (store.run_folder(RUN) / "published-004.html").read_text()
    assert "33.00 MB flushed by each rank" in page
    disturbed = Launch(order=0, started=0.0, seconds=1.0, disturbed=in_words("others used a core"))
    store.write_case(RUN, dataclasses.replace(told, launches=[disturbed]))
    again = subjects_in_run(RUN, store.read_cases(RUN))
    lines = next(d for d in sheet.drawings(paper, again) if d.figure.number == 1).lines
    assert [line.name for line in lines] == [f"{RUN}:mpich, not flushed, disturbed"]
    # Where a stack has others, too, those are drawn.
    calm = merged([*again, *subjects])
    lines = next(d for d in sheet.drawings(paper, calm) if d.figure.number == 1).lines
    assert not any("disturbed" in line.name for line in lines)


@pytest.mark.parametrize(("calm_from", "budget", "runs"), [(3, "10m", 16), (99, "0s", 12)])
def test_trials_launched_again_until_undisturbed(
    home, capsys, monkeypatch, calm_from, budget, runs
):
    asked = []

    def run(request, run_id, *_, **__):
        asked.append(request.options)
        is_calm = asked.count(request.options) >= calm_from
        disturbed = None if is_calm else in_words("others used a core")
        launch = Launch(0, 0.0, 1.0, disturbed=disturbed)
        flushed = 0 if "--setvar=MpiTrialsCheck.flush_bytes=0" in request.options else 9
        spikes = "--setvar=MpiTrialsCheck.trials=100" in request.options
        size, times = (10_000, [2.0] * 100) if spikes else (8, [5.0, 2.0])
        of = {"benchmark": "bcast", "processes": 2, "flush_bytes": flushed, "bytes": size}
        trials = [{**of, "times_us": times}]
        bcast = [sample("bcast", "time_us", 2.0, processes=2, bytes=size)]
        for stack in request.stacks:
            more = {"details": {"trials": trials}, "launches": [launch]}
            store.write_case(run_id, record("MpiTrialsCheck", stack, bcast, **more))
        return 0

    monkeypatch.setattr(running, "run_and_tell", run)
    words = ["evaluation", "run", "004", "--site", "local", "--stack", "mpich", "--budget", budget]
    assert main(words) == 0
    assert len(asked) == runs
    told = capsys.readouterr().out
    assert ("again: MpiTrialsCheck (published-004, MpiTrialsCheck.tests=bcast" in told) is (
        runs > 12
    )
    assert "2 of 30 figures are drawn" in told


def test_rates_per_watt_are_drawn_each_to_its_own_scale(home):
    def samples(processes: int, rate: float) -> list[Sample]:
        return [
            sample("HPCCG", "mflops_per_w", rate, processes=processes),
            sample("LAMMPS-lj-weak", "atom_steps_per_j", 1e5 * rate, processes=processes),
        ]

    store.write_case(RUN, record("HpccgCheck", "mpich", [*samples(1, 9.0), *samples(2, 8.0)]))
    drawn = sheet.drawings(load_paper("002"), subjects_in_run(RUN, store.read_cases(RUN)))
    found = {drawing.figure.number: drawing for drawing in drawn}
    # Of the most processes, as the paper has 64 cores.
    assert found[24].bars == {
        "HPCCG [Mflop/s/W]": {f"{RUN}:mpich": 8.0},
        "LAMMPS-lj-weak [1/J]": {f"{RUN}:mpich": 8e5},
    }
    assert found[24].units_differ
    assert "no watts are known" in found[23].why_not


@pytest.mark.parametrize(
    "words",
    [["003", "--stack", "mpich"], ["--stack", "mpich", "003"]],
)
def test_what_stands_behind_two_dashes_goes_to_reframe(words):
    parse = build_parser().parse_args
    found = parse(["evaluation", "run", *words, "--", "-S", "NpbCheck.problem_class=S"])
    assert (found.paper, found.stack) == ("003", ["mpich"])
    assert found.reframe_options == ["-S", "NpbCheck.problem_class=S"]
    assert parse(["evaluation", "run", *words]).reframe_options == []


def test_a_part_that_starts_no_reframe_takes_no_options_for_it(capsys):
    with pytest.raises(SystemExit):
        build_parser().parse_args(["evaluation", "list", "003", "--", "-S"])
    assert "unrecognized arguments" in capsys.readouterr().err
