"""The papers' systems: site configs, hostfiles and references agree with the facts."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reframe.core.backends import getlauncher

from clustergate.benchmarks.descriptor import Sweep
from clustergate.benchmarks.hpl import dat_file, sizing
from clustergate.benchmarks.imb.command import ImbEffort
from clustergate.benchmarks.registry import every_check, every_metric
from clustergate.cli.dry_run import dry_run
from clustergate.core.figures import name_of
from clustergate.core.model import Better, Estimate, Sample, Verdict
from clustergate.core.paths import checkout
from clustergate.judge.judging import judge
from clustergate.judge.references import lookup as references
from clustergate.judge.references.validation import figure_metric
from clustergate.launch import hostfiles
from clustergate.sites import configs as sites
from clustergate.sites import modes
from clustergate.sites.description import Partition
from clustergate.sites.layouts import layout_on_partition
from clustergate.stacks.manifest import Manifest
from evaluations import systems
from evaluations.facts import STANDS, FactsError, load_paper, load_papers
from evaluations.plan import parts_of
from evaluations.sheet import FIGURE_NAME

NAMES = sorted(systems.systems())


def references_of(name: str) -> references.References:
    path = references.reference_file(name)
    return references.load_references(path, every_check())


def test_every_real_system_of_the_papers_has_a_site_config_and_a_hostfile():
    assert len(NAMES) == 23
    files = {path.stem for path in (checkout() / "site_configs").glob("*.py")}
    assert files >= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_hostfile_is_that_of_the_facts(name):
    path = checkout() / "hostfiles" / f"{name}.txt"
    assert path.read_text(encoding="utf-8") == systems.hostfile_of(name)
    nodes = hostfiles.read_hostfile(path).nodes
    site = systems.systems()[name][1].site
    assert site is not None
    assert len(nodes) == site["nodes"]
    assert {node.slots for node in nodes} == {site["cores_per_node"]}


@pytest.mark.parametrize("name", NAMES)
def test_the_references_are_those_of_the_facts_and_valid(name):
    path = checkout() / "references" / f"{name}.yaml"
    written = path.read_text(encoding="utf-8") if path.is_file() else ""
    assert written == systems.references_of(name), "run `clustergate evaluation refresh`"
    references_of(name)


def test_a_site_config_is_in_reframes_form_and_matches_no_host():
    site = sites.load(checkout() / "site_configs" / "nec-sx8.py")
    assert (site.name, site.hostnames) == ("nec-sx8", [])
    (partition,) = site.partitions
    assert (partition.nodes, partition.cores_per_node, partition.mode) == (72, 8, "published-000")
    assert partition.shape.rank_counts()[-2:] == (568, 576)


def test_a_mistyped_extra_is_told_of_the_file_that_has_it(tmp_path):
    path = tmp_path / "like.py"
    path.write_text(
        "from evaluations.systems import site_of\n"
        "site_configuration = site_of('nec-sx8', noods=2)\n"
    )
    with pytest.raises(sites.SiteError, match=r"like\.py: .*extras\.noods: .*mean 'nodes'"):
        sites.load(path)


def test_schedulers_are_those_of_the_papers():
    for name, scheduler in {"sicortex-sc072": "slurm", "opteron-myri10g": "pbs"}.items():
        site = sites.load(checkout() / "site_configs" / f"{name}.py")
        assert [partition.scheduler for partition in site.partitions] == [scheduler]


@pytest.mark.parametrize("name", NAMES)
def test_ranks_start_on_the_nodes_that_they_need(name, tmp_path):
    """As many nodes as the paper's layout takes: none is submitted to one node alone."""
    system = systems.systems()[name][1]
    [partition] = sites.load(checkout() / "site_configs" / f"{name}.py").partitions
    printed = system.site or {}
    assert (partition.nodes, partition.cores_per_node) == (
        printed["nodes"],
        printed["cores_per_node"],
    )
    listed = hostfiles.read_hostfile(checkout() / "hostfiles" / f"{name}.txt")
    every = [node.name for node in listed.nodes]
    layouts = modes.sweep(partition.shape, [partition.shape])
    assert {ranks for ranks, _ in layouts} == set(printed["process_counts"])
    for ranks, placement in layouts:
        layout = layout_on_partition(ranks, placement, 1, partition)
        per_node = printed["cores_per_node"] if placement == "packed" else 1
        assert layout.nodes == -(-ranks // per_node)
        if partition.launcher != "clustergate-ssh":
            # The scheduler allocates them, or there is one node.
            assert partition.scheduler in ("slurm", "pbs") or partition.nodes == 1
            continue
        manifest = Manifest("a", "wheels", launcher="/mpi/bin/mpirun", dialect="hydra")
        launcher = getlauncher(partition.launcher)()
        launcher.configure(manifest, layout, tmp_path, listed)
        assert launcher.hosts == tuple(every[: layout.nodes])
        [written] = launcher.files.values()
        assert len(written.splitlines()) == layout.nodes
        words = " ".join(launcher.launch({}))
        assert f"-n {ranks} -ppn {layout.ranks_per_node}" in words
        assert launcher.job_command(["driver"], [])[:2] == ["ssh", every[0]]


def layouts_of_full_run(partition: Partition) -> set[tuple[str, str]]:
    """Return the check and the key of the launch of each case that a full run of a paper makes."""
    shape, mode, found = partition.shape, modes.mode_named(partition.mode), set()
    paper = partition.mode.removeprefix("published-")
    for part in parts_of(load_paper(paper), shape, full=True):
        for check in part.checks or mode.only:
            used = modes.used_shape(mode.name, check, partition)
            ranks = part.settings.get(f"{check}.ranks", used.cores_per_node * used.nodes)
            if every_check()[check].sweep is Sweep.LAYOUTS:
                swept = modes.sweep(used, [shape])
                found |= {(check, f"{n}-ranks-{placement}") for n, placement in swept}
            else:
                found.add((check, f"{ranks}-ranks-packed"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_reference_is_met_by_a_case_of_the_full_run(name):
    [partition] = sites.load(checkout() / "site_configs" / f"{name}.py").partitions
    made, mode = layouts_of_full_run(partition), modes.mode_named(partition.mode)
    for check, where, stack, layout, effort, figure in references_of(name).paths():
        assert (check, layout) in made
        assert (where, effort) == (partition.fullname, partition.mode)
        assert stack in partition.stacks
        if check == "ImbMpi1Check":
            imb, name_parts = mode.efforts["imb"], FIGURE_NAME.fullmatch(figure)
            assert isinstance(imb, ImbEffort)
            assert name_parts
            benchmark, processes, size, _ = name_parts.groups(default="0")
            assert benchmark.removesuffix("-curve") in imb.benchmarks
            assert int(processes) <= int(layout.partition("-")[0])
            powers = (1 << k for k in range(25) if 1 << k <= imb.largest_bytes)
            assert int(size) in (imb.sizes or {0, *powers})


@pytest.mark.parametrize("name", NAMES)
def test_every_reference_can_pass_and_fail(name):
    found = references_of(name)
    for path in found.paths():
        expected = found.at(path)
        kind = figure_metric(path[-1])
        assert kind is not None
        better = every_metric()[kind[1]].better
        worse = 0.8 if better is Better.HIGHER else 1.25
        for factor, verdict in ((1.0, Verdict.PASS), (worse, Verdict.REGRESSION)):
            estimate = Estimate(expected.value * factor, None, None, confidence=0.0, samples=1)
            assert judge(estimate, better, expected.unit, expected).verdict is verdict, path


def test_an_unknown_system_lists_the_known_ones():
    with pytest.raises(systems.UnknownSystem, match=r"'cm5'.*nec-sx8"):
        systems.site_of("cm5")


def test_200_ns_are_asserted_for_ranks_on_one_node_only():
    found = references_of("westmere-m610-qdr")
    latencies = [path for path in found.paths() if path[-1].endswith("latency_us")]
    assert {path[3] for path in latencies} == {"2-ranks-packed"}
    assert {found.at(path).value for path in latencies} == {0.2}


def test_87_percent_of_the_peak_is_the_reference_with_its_remark():
    found = references_of("westmere-m610-qdr")
    [path] = [path for path in found.paths() if path[0] == "HplCheck"]
    expected = found.at(path)
    assert (expected.value, expected.unit) == (87.0, "%")
    assert path[3] == "6144-ranks-packed"
    assert "up to 87 %" in expected.origin
    assert "No Rmax" in expected.origin


def test_what_does_not_stand_is_asserted_nowhere_as_printed():
    for name, (paper, _) in systems.systems().items():
        text = systems.references_of(name)
        for value in paper.values.values():
            if value.standing != STANDS and not (value.suite and value.suite.asserted):
                assert f"({value.id})" not in text, (name, value.id)


def test_what_a_paper_does_not_state_is_asserted_nowhere():
    text = systems.references_of("e326-24-400-100")
    assert "Sendrecv" not in text
    assert load_paper("003").values["r046"].not_stated == ["processes"]


def test_what_follows_from_a_curve_over_sizes_is_a_reference():
    values = load_paper("003").values
    assert systems.entry_of(values["r034"]) == [914.0, -0.05, None, "MB/s"]
    assert systems.entry_of(values["r035"]) == [91.0, -0.05, None, "%"]
    assert systems.entry_of(values["r099"]) == [1048576.0, None, 0.1, "bytes"]
    assert systems.entry_of(values["r102"]) == [2048.0, None, 0.1, "bytes"]
    # The text tells of PCI-E and of 133 MHz, and not of all x336 and e326.
    told = {name: "size_of_half_bytes" in systems.references_of(name) for name in NAMES}
    assert {name for name, is_there in told.items() if is_there} == {
        *("x336-34-400-pcie", "x336-36-400-pcie", "x336-36i-400-pcie"),
        *("e326-24-333-133", "e326-24-400-133"),
    }


def test_a_bound_of_all_runs_is_a_reference_of_each_number_of_processes():
    found = references_of("nec-sx8")
    bounds = {
        path[3]: found.at(path) for path in found.paths() if path[-1].startswith("HPCC.stream")
    }
    site = systems.systems()["nec-sx8"][1].site
    assert site is not None
    assert set(bounds) == {f"{count}-ranks-packed" for count in site["process_counts"]}
    assert {(one.value, one.lower) for one in bounds.values()} == {(2.67, 0.0)}


def test_every_value_is_a_reference_or_says_why_not():
    asserted = {
        (paper.id, value.id)
        for paper, system in systems.systems().values()
        for value in systems.asserted_of(paper, system.id)
    }
    counted: dict[str, int] = {}
    for paper in load_papers():
        for value in paper.values.values():
            is_reference = (paper.id, value.id) in asserted
            assert is_reference == (not systems.no_reference(value)), (paper.id, value.id)
            counted[paper.id] = counted.get(paper.id, 0) + is_reference
    assert counted == {"000": 11, "001": 5, "002": 2, "003": 31, "004": 0}
    page = (checkout() / "references" / "published" / "README.md").read_text(encoding="utf-8")
    assert f"| {sum(counted.values())} | are references |" in page


def test_two_values_of_one_figure_are_refused(monkeypatch):
    paper = load_paper("003")
    again = replace(paper.values["r034"], id="r999", value=900.0)
    twice = replace(paper, values={**paper.values, "r999": again})
    found = {name: (twice, system) for name, (_, system) in systems.systems().items()}
    monkeypatch.setattr(systems, "systems", lambda: found)
    with pytest.raises(FactsError, match="r999 is another reference of PingPong-curve"):
        systems.references_of("x336-34-400-pcie")


@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_the_full_run_yields_each_derived_figure(name):
    [partition] = sites.load(checkout() / "site_configs" / f"{name}.py").partitions
    derived = modes.mode_named(partition.mode).derived
    paths = [path for path in references_of(name).paths() if path[-1].startswith(DERIVED)]
    for check, key in {(path[0], path[3]) for path in paths}:
        ranks, _, placement = key.partition("-ranks-")
        layout = layout_on_partition(int(ranks), placement, 1, partition)
        made = derived[check](PRINTED[check], layout, partition.facts)
        wanted = {path[-1] for path in paths if (path[0], path[3]) == (check, key)}
        assert wanted <= {name_of(sample) for sample in made}


DERIVED = ("PingPong-curve", "HPCC.")
# What launches print of which these figures follow.
PRINTED = {
    "HpccCheck": [
        Sample(name, name, "", Better.HIGHER, {}, 1.0)
        for name in ("HPL_Tflops", "StarSTREAM_Copy", "RandomlyOrderedRingBandwidth_GBytes")
    ],
    "ImbMpi1Check": [
        Sample("PingPong", "bandwidth_mb_s", "MB/s", Better.HIGHER, {"processes": 2, "bytes": k}, v)
        for k, v in {0: 0.0, 1024: 200.0, 4096: 500.0, 65536: 990.0, 1 << 20: 1000.0}.items()
    ],
}


def test_a_printed_bound_is_the_bound_and_an_approximate_number_has_room():
    values = load_paper("002").values
    assert systems.entry_of(values["r017"]) == [5.0, None, 0.0, "us"]
    values = load_paper("003").values
    assert systems.entry_of(values["r112"]) == [80.0, -0.1, None, "%"]
    assert systems.entry_of(values["r018"]) == [5.13, None, 0.05, "us"]


def test_what_a_paper_prints_as_a_bound_is_an_expectation_and_a_best_run_a_reference():
    bounds = [one for name in NAMES for one in references_of(name).expects]
    assert [(one.expectation.floor, one.only["placement"]) for one in bounds] == [
        (5.0, ("one-per-node",)),
        (5.0, ("packed",)),
    ]
    assert {one.only["modes"] for one in bounds} == {("published-002",)}
    # "Up to 87 %" is what the best of all runs reached.
    assert not references_of("westmere-m610-qdr").expects
    assert references_of("westmere-m610-qdr").paths()


def test_units_of_the_paper_become_those_of_the_suite():
    assert systems.entry_of(load_paper("000").values["r027"])[0] == 47400.0
    assert systems.entry_of(load_paper("001").values["r022"]) == [0.2, None, 0.1, "us"]


def stage_of(home: Path, name: str, *options: str) -> list[dict[str, Any]]:
    """Let ReFrame write the jobs of a system's paper; return the plans of the launches."""
    site = checkout() / "site_configs" / f"{name}.py"
    command = [str(Path(sys.executable).parent / "reframe"), "--nocolor", "--dry-run", "-R"]
    command += ["-c", str(checkout() / "reframe_checks"), f"--system={name}", *options]
    environment = {**os.environ, "CLUSTERGATE_HOME": str(home), "RFM_CONFIG_FILES": str(site)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(path.read_text()) for path in sorted((home / "stage").rglob("plan.json"))]


def test_hpl_dat_of_the_westmere_cluster_is_the_printed_one(tmp_path):
    options = ["-n", "^HplCheck", "-S", "mode=published-001", "-p", "spack-intel-mpi"]
    [plan] = stage_of(tmp_path, "westmere-m610-qdr", *options)
    [contender] = plan["contenders"]
    written = dat_file.parse(contender["inputs"]["HPL.dat"]).input
    printed: dict[str, Any]
    printed = {p.name.removeprefix("hpl."): p.value for p in load_paper("001").parameters.values()}
    coded = {
        name: int(str(printed[name]).split()[0]) for name in ("PFACT", "RFACT", "BCAST", "SWAP")
    }
    assert written == sizing.HplInput(
        n_values=(printed["N"],),
        nb_values=(printed["NB"],),
        process_mapping=printed["PMAP"],
        p_values=(printed["P"],),
        q_values=(printed["Q"],),
        threshold=printed["threshold"],
        pfacts=(coded["PFACT"],),
        nbmins=(printed["NBMIN"],),
        ndivs=(printed["NDIV"],),
        rfacts=(coded["RFACT"],),
        bcasts=(coded["BCAST"],),
        depths=(printed["DEPTH"],),
        swap=coded["SWAP"],
        swapping_threshold=printed["swap_threshold"],
        l1_transposed=not int(printed["L1"].split()[0]),
        u_transposed=not int(printed["U"].split()[0]),
        equilibration=bool(printed["equilibration"]),
        alignment=printed["alignment"],
    )
    assert (written.n_values, written.depths, written.bcasts) == ((1179648,), (0,), (1,))
    launcher = " ".join(contender["launcher"])
    assert "-n 6144" in launcher
    assert "-ppn 12" in launcher


def test_imb_of_the_westmere_cluster_goes_to_16_mb_with_a_changing_root(tmp_path):
    options = ["-n", "ImbMpi1Check%process_count=8%node_usage=packed"]
    options += ["-S", "mode=published-001", "-p", "spack-mvapich2"]
    [plan] = stage_of(tmp_path, "westmere-m610-qdr", *options)
    words = " ".join(plan["contenders"][0]["program"])
    assert "-msglog 0:24" in words
    assert "-root_shift on" in words
    assert "Reduce_scatter" in words
    assert "Scatterv" not in words


def test_pmb_of_paper_003_has_sizes_that_show_a_second_packet(tmp_path):
    options = ["-n", "ImbMpi1Check%process_count=2%node_usage=one-per-node"]
    [plan] = stage_of(tmp_path, "e326-24-400-133", *options, "-S", "mode=published-003")
    [contender] = plan["contenders"]
    sizes = [int(line) for line in contender["inputs"]["message-sizes.txt"].split()]
    assert sizes == sorted({0, *(1 << k for k in range(23)), 1500, 1536})
    assert "-msglen message-sizes.txt" in " ".join(contender["program"])


def test_hpl_of_paper_003_stays_on_one_node(tmp_path):
    options = ["-n", "^HplCheck", "-S", "mode=published-003"]
    [plan] = stage_of(tmp_path, "e326-24-400-133", *options)
    assert "-n 2 " in " ".join(plan["contenders"][0]["launcher"]) + " "


def test_a_dry_run_writes_what_the_paper_ran(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    site = checkout() / "site_configs" / "cray-opteron.py"
    # HPCC, and IMB with 2, 4, … 64 processes.
    assert dry_run(site, modes.mode_named("smoke")) == 1 + 6
