import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks import registry
from clustergate.benchmarks.budget import Budget
from clustergate.benchmarks.descriptor import Benchmark, Check, Effort
from clustergate.benchmarks.registry import every_benchmark, every_check, require_unique_names
from clustergate.core.model import CaseId, ClustergateError, Conditions
from clustergate.core.paths import checkout, entry_points
from clustergate.sites import configuration, modes, stack
from clustergate.sites.description import Site, SiteError
from clustergate.sites.modes import (
    MODES,
    Mode,
    checks_named,
    effort_of,
    every_mode,
    expected_cases,
    has_layout,
    judged_figures,
    mode_named,
    parameters_of,
    reframe_modes,
    reframe_options,
    used_shape,
)
from clustergate.sites.shape import Shape
from tests.described_partitions import described

FREE_NODES = "--flex-alloc-nodes=idle|idle+reserved|idle+maintenance|idle+maintenance+reserved"


def test_an_unknown_mode_lists_the_known_ones():
    with pytest.raises(ClustergateError, match="quick, smoke, maintenance, acceptance"):
        mode_named("quiet")


def test_a_mode_of_the_extra_that_is_not_installed_names_it(monkeypatch):
    monkeypatch.setattr(modes, "every_mode", lambda: MODES)
    with pytest.raises(ClustergateError, match=r"pip install 'clustergate\[evaluations\]'"):
        mode_named("published-001")


def test_process_counts_go_up_to_every_core():
    assert Shape(cores_per_node=12, nodes=1).rank_counts() == (2, 4, 8, 12)
    assert Shape(cores_per_node=2, nodes=4).rank_counts() == (2, 4, 8)


def test_odd_counts_are_measured_on_request():
    assert Shape(8, 1).rank_counts("5,3,3") == (3, 5)


@pytest.mark.parametrize("named", ["3;5", "0", "two", "3,", "-1", "12345678"])
def test_a_bad_list_of_counts_is_refused(named):
    with pytest.raises(ClustergateError, match="list such as"):
        Shape(8, 1).rank_counts(named)


def test_placement_is_a_question_only_where_there_are_nodes():
    assert Shape(8, 1).placements() == ("packed",)
    assert Shape(8, 2).placements() == ("packed", "one-per-node")
    # Else everything would be measured twice there.
    assert Shape(1, 8).placements() == ("packed",)


def expected(
    checks: Sequence[str], *shapes: Shape, named: str = "", mode: str = "maintenance"
) -> list[CaseId]:
    partitions = [described(f"x:{name}", shape) for name, shape in zip("ab", shapes, strict=False)]
    return expected_cases(checks, partitions, mode_named(mode), named)


def swept(keys: list[CaseId], where: str = "x:a") -> list[tuple[str, str]]:
    found = [dict(key.parameters) for key in keys if key.partition == where]
    return [(one["process_count"], one["node_usage"]) for one in found if "node_usage" in one]


def test_cases_follow_from_the_site_alone():
    found = expected(mode_named("smoke").checks, Shape(4, 2))
    assert found[:2] == [CaseId("HplCheck", "x:a", "mpich"), CaseId("HpccCheck", "x:a", "mpich")]
    # Eight ranks do not lie on eight of two nodes.
    packed = [(count, "packed") for count in ("2", "4", "8")]
    assert sorted(swept(found[2:])) == sorted([*packed, ("2", "one-per-node")])
    kernels = [
        len(expected([check], Shape(4, 2))) for check in ("HostOverheadCheck", "StreamCheck")
    ]
    assert kernels == [2, 1]
    applications = [len(expected([check], Shape(4, 1))) for check in ("LammpsCheck", "NpbCheck")]
    # On 1, 2 and 4 processes; one case for each of NPB's benchmarks.
    assert applications == [2 * 2 * 3, 8]


def test_each_partition_has_the_process_counts_of_its_own_size():
    found = expected(["ImbMpi1Check"], Shape(12, 1), Shape(16, 1), mode="acceptance")
    assert [count for count, _ in swept(found)] == ["2", "4", "8", "12"]
    assert [count for count, _ in swept(found, "x:b")] == ["2", "4", "8", "16"]


@pytest.mark.parametrize(
    ("cores", "nodes", "layouts"),
    [
        (64, 16, "2 packed, 2 one-per-node, 16 one-per-node, 64 packed, 1024 packed"),
        # Each of them is one of the series, of which earlier runs have all.
        (48, 100, "2 packed, 2 one-per-node, 32 packed, 64 one-per-node, 4800 packed"),
        (1, 16, "2 packed, 16 packed"),
        (2, 4, "2 packed, 2 one-per-node, 4 one-per-node, 8 packed"),
        (12, 1, "2 packed, 12 packed"),
        (2, 1, "2 packed"),
    ],
)
def test_gate_measures_the_ends_of_the_series(cores: int, nodes: int, layouts: str):
    shape = Shape(cores, nodes)
    measured = swept(expected(["ImbMpi1Check"], shape))
    assert ", ".join(map(" ".join, measured)) == layouts
    # Who states counts gets those, and who names some.
    stated = Shape(cores, nodes, counts=(2,))
    assert {count for count, _ in swept(expected(["ImbMpi1Check"], stated))} == {"2"}
    assert {count for count, _ in swept(expected(["ImbMpi1Check"], shape, named="2"))} == {"2"}
    # What is no check of the mode sweeps over all.
    every = swept(expected(["ImbMpi1Check"], shape, mode="acceptance"))
    assert {*measured} <= {*every}
    assert swept(expected(["ImbNbcCheck"], shape)) == every


def test_smoke_runs_on_one_node_of_each_partition():
    found = expected(mode_named("smoke").checks, Shape(6, 80), Shape(12, 20), mode="smoke")
    assert swept(found) == [(count, "packed") for count in ("2", "4", "6")]
    assert [n for n, _ in swept(found, "x:b")] == ["2", "4", "8", "12"]
    whole = described("x:a", Shape(6, 80))
    for check in every_check():
        assert used_shape("smoke", check, whole) == Shape(6, 1, placed=("packed",))
        ends = check in mode_named("maintenance").checks
        assert used_shape("maintenance", check, whole) == Shape(6, 80, ends=ends)
    # Counts that somebody names are of all nodes; so is a comparison of two stacks.
    found = expected(["ImbMpi1Check"], Shape(6, 80), named="64", mode="smoke")
    assert swept(found) == [("64", "packed"), ("64", "one-per-node")]
    assert used_shape("smoke", "AbImbCheck", whole).nodes == 80


def test_one_node_runs_those_of_the_stated_counts_that_fit_on_it():
    assert Shape(8, 4, counts=(2, 8, 16)).one_node.rank_counts() == (2, 8)
    assert Shape(8, 4, counts=(16, 32)).one_node.rank_counts() == (2, 4, 8)
    # What fits nowhere stays, and fails.
    assert Shape(8, 4, counts=(4, 64)).one_node.rank_counts() == (4, 64)


@pytest.mark.parametrize("mode", MODES.values(), ids=lambda mode: mode.name)
def test_the_table_says_the_nodes_that_a_mode_uses(mode: Mode):
    whole = described("x:a", Shape(6, 80))
    used = {used_shape(mode.name, check, whole).nodes for check in mode.checks}
    assert used == {"one of each partition": {1}, "all of each partition": {80}}[mode.nodes]


def test_each_partition_has_its_own_stacks():
    partitions = [
        described("x:a", Shape(2, 1)),
        described("x:b", Shape(2, 1), "mpich", "openmpi"),
    ]
    found = expected_cases(["HplCheck"], partitions, mode_named("maintenance"))
    assert [(key.partition, key.stack) for key in found] == [
        *(("x:a", "mpich"), ("x:b", "mpich"), ("x:b", "openmpi"))
    ]


def test_named_count_measured_where_it_fits():
    """A named count is measured where it fits and fails where it fits nowhere."""
    shapes = (Shape(4, 1), Shape(16, 1))
    found = expected(["ImbMpi1Check"], *shapes, named="3,8")
    assert [count for count, _ in swept(found)] == ["3"]
    assert [count for count, _ in swept(found, "x:b")] == ["3", "8"]
    found = expected(["ImbMpi1Check"], *shapes, named="64")
    assert {key.partition for key in found} == {"x:a", "x:b"}


def test_stated_count_stays_in_a_smaller_partition():
    found = expected(["ImbMpi1Check"], Shape(4, 1, counts=(2, 8)))
    assert [count for count, _ in swept(found)] == ["2", "8"]


def test_what_tells_cases_apart_is_read_from_reframes_name():
    name = "ImbMpi1Check %process_count=2 %node_usage=packed %$REPEAT_COUNT=1 %trials=3"
    assert parameters_of(name) == (("node_usage", "packed"), ("process_count", "2"))
    assert parameters_of("HplCheck") == ()


def test_each_mode_is_a_reframe_mode_that_selects_by_tag():
    names: dict[object, Any] = {mode["name"]: mode["options"] for mode in reframe_modes({})}
    assert set(names) == {*every_mode(), "screen"}
    assert names["screen"] == ["--tag=^screen$", "--setvar=mode=screen", FREE_NODES]
    assert "--setvar=mode=maintenance" in names["maintenance"]


def test_named_checks_replace_those_of_the_mode():
    options = reframe_options(mode_named("smoke"), ["HplCheck", "ImbRmaCheck"])
    assert options == [r"--name=^HplCheck\b", r"--name=^ImbRmaCheck\b", "--setvar=mode=smoke"]


def test_checks_are_known_by_their_names():
    assert checks_named(["ImbRmaCheck", "HplCheck", "ImbRmaCheck"]) == ("ImbRmaCheck", "HplCheck")
    with pytest.raises(ClustergateError, match=r"unknown check .Hpl.; known: HplCheck, "):
        checks_named(["HplCheck", "Hpl"])


def test_page_of_checks_has_this_table():
    page = (checkout() / "docs" / "checking.md").read_text(encoding="utf-8")
    match = re.search(r"<!-- modes -->\n(.*?)<!-- /modes -->", page, re.DOTALL)
    assert match is not None
    rows = [
        f"| `{m.name}` | {m.purpose} | {m.duration} | {m.nodes} | {m.saves_time_by} |"
        for m in MODES.values()
    ]
    assert match.group(1).splitlines()[2:] == rows


def benchmark(name: str, **efforts: int) -> Benchmark:
    launches = {mode: Effort(budget=Budget(n, n)) for mode, n in efforts.items()}
    return Benchmark(name, name, every_benchmark()["hpl"].format, efforts=launches)


def launches(mode: str, of: Benchmark) -> int:
    return effort_of(mode_named(mode), of).budget.at_least


def test_unknown_mode_of_a_benchmark_spends_the_one_below():
    """A benchmark that does not know a mode spends what the one below does."""
    both = benchmark("both", smoke=1, maintenance=2)
    assert [launches(mode, both) for mode in ("smoke", "maintenance", "acceptance")] == [1, 2, 2]
    above = benchmark("above", acceptance=3)
    assert [launches(mode, above) for mode in MODES] == [3, 3, 3, 3]


def test_a_mode_can_say_itself_what_it_spends_on_a_benchmark():
    assert launches("published-001", every_benchmark()["imb"]) == 3
    assert launches("published-001", every_benchmark()["stream"]) == 10


def test_a_gate_judges_random_access_from_the_mode_on_that_runs_it():
    check = every_check()["HpccCheck"]
    told = [len(judged_figures(mode, check)) for mode in MODES.values()]
    assert told == [11, 11, 13, 13]


def test_two_packages_cannot_bring_what_is_called_alike():
    with pytest.raises(
        ClustergateError, match="two of the benchmark hpl; rename that of the added"
    ):
        require_unique_names(
            "benchmark", [("hpl", benchmark("hpl", smoke=1)), ("hpl", benchmark("hpl"))]
        )
    assert require_unique_names("metric", [("time_s", 1), ("time_s", 1)]) == {"time_s": 1}


def test_a_package_that_does_not_load_is_one_sentence(tmp_path, monkeypatch):
    """Its metadata alone are there, as of a package of which a part was removed.

    Every command ended with it, HPL was not run either.
    """
    info = tmp_path / "site_ring-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-ring\nVersion: 1\n")
    points = info / "entry_points.txt"
    points.write_text("[clustergate.benchmarks]\nring = site_ring:BENCHMARK\n")
    call = [sys.executable, "-m", "clustergate"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CLUSTERGATE_HOME": str(tmp_path)}
    sentence = (
        "the package site-ring adds site_ring:BENCHMARK (clustergate.benchmarks), which does not "
        "load (ModuleNotFoundError: No module named 'site_ring'); fix, update or uninstall "
        "site-ring"
    )

    def told(*words: str) -> str:
        ended = subprocess.run([*call, *words], env=environment, capture_output=True, text=True)
        return ended.stdout + ended.stderr

    assert "HplCheck" in told("list", "checks")
    assert f"fail  package site-ring  {sentence}" in re.sub("  +", "  ", told("doctor"))
    # Which may be one of its own.
    assert told("check", "--site", "local", "--check", "RingCheck") == f"clustergate: {sentence}\n"
    ask = (
        "from clustergate.run.judge import of_packages as of\n"
        "from clustergate.sites.modes import mode_named as named\n"
        "smoke = named('smoke')\n"
        "print(*(one.reason for one in of((), smoke)), len(of(['HplCheck'], smoke)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", ask], env=environment, capture_output=True, text=True
    )
    assert ended.stdout == f"{sentence} 0\n", ended.stderr
    (info / "entry_points.txt").write_text("[clustergate.commands]\nring = site_ring:BENCHMARK\n")
    ended = subprocess.run(
        [sys.executable, "-m", "clustergate", "ring"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("clustergate: the package site-ring adds site_ring:BENCHMARK")
    assert len(ended.stderr.splitlines()) == 1


def test_what_packages_add_is_looked_for_only_where_one_may_add_it(tmp_path, monkeypatch) -> None:
    """In an archive too; the metadata of all that is installed are a fifth of a command's start."""
    archive = tmp_path / "site_ring.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("site_ring-1.dist-info/METADATA", "Name: site-ring\nVersion: 1\n")
        file.writestr(
            "site_ring-1.dist-info/entry_points.txt", "[clustergate.zipped]\nring = a:B\n"
        )
    assert entry_points("clustergate.zipped") == []
    monkeypatch.syspath_prepend(archive)
    assert [one.value for one in entry_points("clustergate.zipped")] == ["a:B"]
    spared = "import sys, clustergate.cli as cli; cli.build_parser(['parse'])"
    program = f"{spared}; assert 'importlib.metadata' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    "misspelt",
    [
        {"efforts": {"smoke": Effort(), "maintenence": Effort()}},
        {"checks": (Check("RingCheck", "", judged={"maintenence": ("Ring.round_us",)}),)},
    ],
)
def test_a_benchmark_that_names_an_unknown_mode_is_refused(monkeypatch, misspelt) -> None:
    own = replace(every_benchmark()["hpl"], name="ring", **misspelt)
    monkeypatch.setattr("clustergate.sites.modes.every_benchmark", lambda: {"ring": own})
    told = "unknown mode of the benchmark ring 'maintenence'; known: quick, smoke, maintenance"
    with pytest.raises(ClustergateError, match=told):
        every_mode.__wrapped__()


def test_a_figure_to_be_judged_whose_metric_is_misspelt_is_refused(monkeypatch) -> None:
    """The gate would wait for it in vain, and tell so after half an hour."""
    check = Check("HplCheck", "", judged={"smoke": ("HPL", "HPL.performance_gflop")})
    own = replace(every_benchmark()["hpl"], checks=(check,))
    monkeypatch.setattr("clustergate.sites.modes.every_benchmark", lambda: {"hpl": own})
    with pytest.raises(ClustergateError) as refused:
        every_mode.__wrapped__()
    file, line, said = str(refused.value).split(":", 2)
    named = Path(file).read_text().splitlines()[int(line) - 1]
    assert "HPL.performance_gflop" in named
    assert "HplCheck wants 'HPL.performance_gflop' judged" in said
    assert "did you mean 'performance_gflops'?" in said


def test_tests_of_a_benchmark_that_are_not_there_are_named(monkeypatch, tmp_path) -> None:
    own = replace(every_benchmark()["hpl"], name="ring", tests=str(tmp_path / "check.py"))
    monkeypatch.setattr(registry, "every_benchmark", lambda: {"ring": own})
    assert registry.check_paths()[1:] == []
    whys = registry.lost_tests()
    assert f"ring has its ReFrame tests in {tmp_path}/check" in str(whys["HplCheck"])
    (tmp_path / "check.py").write_text("class HplCheck: ...\nclass AbHplCheck: ...\n")
    assert registry.check_paths()[1:] == [str(tmp_path / "check.py")]


def test_method_follows_revision_and_effort():
    imb = every_benchmark()["imb"]
    asked = imb.efforts["smoke"]
    method = imb.method(asked)
    assert method == imb.method(replace(asked, saves_time_by="said otherwise"))
    others = [
        imb.method(imb.efforts["maintenance"]),
        imb.method(replace(asked, budget=Budget(at_least=4))),
        replace(imb, revision=imb.revision + 1).method(asked),
    ]
    assert len({method, *others}) == 4


@pytest.mark.parametrize(
    ("shape", "check", "ranks", "placement", "has"),
    [
        (Shape(4, 2), "ImbMpi1Check", 8, "packed", True),
        (Shape(4, 2), "ImbMpi1Check", 9, "packed", False),
        (Shape(4, 2), "ImbMpi1Check", 3, "one-per-node", False),
        (Shape(4, 2, excluded=1), "ImbMpi1Check", 3, "one-per-node", True),
        (Shape(4, 1), "ImbMpi1Check", 1, "one-per-node", False),
        # Who named counts for a run may want references of them, unless the site names its own.
        (Shape(4, 2), "ImbMpi1Check", 3, "packed", True),
        (Shape(4, 2, counts=(2, 8)), "ImbMpi1Check", 3, "packed", False),
        (Shape(4, 2, counts=(2, 8)), "HplCheck", 4, "packed", True),
        (Shape(4, 2, placed=("packed",)), "ImbMpi1Check", 2, "one-per-node", False),
    ],
)
def test_layouts_of_a_site_config_that_fit_or_are_named(
    shape: Shape, check: str, ranks: int, placement: str, has: bool
) -> None:
    partitions = [described("alpha:node", shape)]
    of_case: Conditions = {"ranks": ranks, "placement": placement}
    assert has_layout(partitions, check, "alpha:node", of_case) is has
    assert not has_layout(partitions, check, "alpha:gone", of_case)


def test_a_site_config_chooses_what_a_mode_runs() -> None:
    system = {
        "name": "s",
        "hostnames": ["s"],
        "partitions": [
            {
                **{"name": "a", "scheduler": "local", "launcher": "clustergate"},
                "extras": {
                    **{"cores_per_node": 8, "memory_bytes_per_node": 2**34},
                    **{"nominal_gflops_per_core": 40.0, "numa_domains_per_node": 2},
                },
            }
        ],
    }
    chosen = {"maintenance": ["HplCheck", "OsuPt2PtCheck"]}
    configured = configuration([system], [stack("mpich")], chosen)
    # Of another site config of the same process.
    assert Site.of(configuration([system], [stack("mpich")])).checks == {}
    site = Site.of(configured)
    mode = mode_named("maintenance", site.checks)
    assert mode.checks == ("HplCheck", "OsuPt2PtCheck")
    options = {mode["name"]: mode["options"] for mode in configured["modes"]}
    assert options["maintenance"][:2] == [r"--name=^HplCheck\b", r"--name=^OsuPt2PtCheck\b"]
    assert mode_named("smoke", site.checks).checks == mode.own_checks
    (part,) = site.partitions
    # What the site chose is measured at the ends of the series, as the mode's own is.
    ends = {one for one in mode.own_checks if used_shape("maintenance", one, part).ends}
    assert ends == {"HplCheck"}
    assert used_shape("maintenance", "OsuPt2PtCheck", part).ends
    found = expected_cases(["Stream5Check"], [part], mode)
    assert [dict(case.parameters)["process_count"] for case in found] == ["1", "2"]
    with pytest.raises(SiteError, match=r"checks.maintenance.*Osu"):
        configuration([system], [stack("mpich")], {"maintenance": ["OsuCheck"]})
