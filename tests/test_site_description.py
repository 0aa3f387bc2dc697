"""What a site config must not say is refused by file and line, before anything is launched."""

import json
import os
import re
import runpy
import subprocess
import sys
import typing
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clustergate import cli
from clustergate.launching import launchers
from clustergate.paths import checkout
from clustergate.session import reframe
from clustergate.sites import configs as sites
from clustergate.sites import configuration, stack
from clustergate.sites.description import (
    EXTRAS,
    Partition,
    Site,
    SiteWarning,
    Stack,
    settable,
    site_schema,
)
from clustergate.sites.modes import mode_named, reframe_options
from clustergate.sites.shape import Shape
from clustergate.stacks.spack.settings import SpackSettings

TEMPLATE = (checkout() / "site_configs" / "template.py").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a site config of the site's own may be written."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    (tmp_path / "site_configs").mkdir()
    return tmp_path / "site_configs" / "alpha.py"


def line_of(text: str, word: str) -> int:
    return next(n for n, line in enumerate(text.splitlines(), 1) if word in line)


REFUSED = {
    # What is written instead of what, the word in whose line it is, and what is told.
    "near nodes": ('"nodes": 4', '"node": 4', '"node"', "'node' .* did you mean 'nodes'"),
    "near link": ("link_mb_s", "link_mbs", '"link_mbs"', "did you mean 'link_mb_s'"),
    "near cores": (
        "cores_per_node",
        "core_per_node",
        '"core_per',
        "lacks 'cores_per_node' .* by 'core_per_",
    ),
    "missing": (
        '"cores_per_node": 64,',
        "",
        '"name": "compute"',
        r"lacks 'cores_per_node' \(the physical cores",
    ),
    "memory missing": ('"memory_bytes_per_node": 256 * 2**30,', "", '"compute"', "lacks 'memory_"),
    "bits a second": ("12500", "100e9", '"link_mb_s"', r"10\*\*6 bytes/s .*in another unit"),
    "gigabytes": ("256 * 2**30", "256", '"memory_', "in bytes: .*in another unit"),
    "kilobytes": ("256 * 2**30", "256 * 2**20", '"memory_', "4 MiB for each of 64 cores"),
    "flop/s": ("2.5 * 16", "2.5e9 * 16", '"nominal', "Gflop/s: .*in another unit"),
    "none": ('"nodes": 4', '"nodes": 0', '"nodes"', "is 0; .*at least 1"),
    "negative": ("12500", "-12500", '"link_mb_s"', "is -12500; .*at least 1"),
    "a word": ('"nodes": 4', '"nodes": "4"', '"nodes"', "is '4'; .*a whole number"),
    "true": ('"nodes": 4', '"nodes": True', '"nodes"', "is True; .*a whole number"),
    "a fraction": ('"nodes": 4', '"nodes": 4.5', '"nodes"', "is 4.5; .*a whole number"),
    "not a number": ("12500", 'float("nan")', '"link_mb_s"', "is nan; .*a number, at least 1"),
    "huge": ("12500", "10**400", '"link_mb_s"', "is 1000.*in another unit"),
    "no provider": (
        'stack("mpich")',
        '{"name": "mpich", "features": ["mpi-stack"], "extras": {}}',
        '"mpich"',
        "the stack mpich lacks 'provider'",
    ),
    "one device": ('# "fabric": ["mlx5_0"]', '"fabric": "mlx5_0"', '"fabric"', "a list of strings"),
    "half a power": ('"cores_per_socket": 32,', "", '"watts_per', "lacks 'cores_per_socket'"),
    "a key of ReFrame": ('"max_jobs"', '"max_job"', '"max_job"', "did you mean 'max_jobs'"),
    "its value": ('"max_jobs": 1', '"max_jobs": "1"', '"max_jobs"', "'1'; it must be: a number"),
    "launcher": ('"launcher"', '"luancher"', '"luancher"', "lacks 'launcher'.* 'luancher'"),
    "another launcher": (
        '"launcher": "clustergate"',
        '"launcher": "clustergate-rsun"',
        '"launcher"',
        "the launcher 'clustergate-rsun', .*did you mean 'clustergate-srun'",
    ),
    "a launcher of ReFrame": (
        '"launcher": "clustergate"',
        '"launcher": "mpirun"',
        '"launcher"',
        "the launcher 'mpirun' .*; use 'clustergate', .* or 'clustergate-srun'",
    ),
    "unstated nodes": ('"nodes": 4,', "", '"scheduler"', "does not say how many nodes it has"),
    "another scheduler": ('"slurm"', '"slurmm"', '"scheduler"', "'slurmm', .*pbs.* 'slurm'"),
    "too high": ('"max_jobs": 1', '"nodes": 1', '"nodes": 1', "it belongs in the extras"),
    "no stack": ('"max_jobs": 1', '"environs": ["mpihc"]', '"envi', "did you mean 'mpich'"),
    "a system's key": ('"descr"', '"desrc"', '"desrc"', "has no key 'desrc'; .*'descr'"),
    "stack's key": (
        'stack("mpich")',
        'stack("mpich", provdier="x")',
        "provdier",
        "stack mpich has no key 'provdier'; did you mean 'provider'",
    ),
    "provider": ('stack("mpich")', 'stack("mpich", "wheel")', '"wheel"', "'wheel'; .*'wheels'"),
    "no such wheels": (
        'stack("mpich")',
        'stack("mpitch")',
        'stack("mpitch")',
        "the stack 'mpitch' has no wheels: .*did you mean 'mpich'",
    ),
    "stack twice": (
        'stack("mpich")',
        'stack("mpich"), stack("mpich")',
        'stack("mpich")',
        "2 stacks are named mpich",
    ),
    "own among others": (
        '"link_mb_s"',
        '"other_tests": {"nodes": 2}, "link_mb_s"',
        '"other_tests"',
        "'nodes' .* does not belong in 'other_tests'",
    ),
    "a setting of Spack": (
        '"blas": "openblas"',
        '"blass": "openblas"',
        '"blass"',
        "'spack' of the stack spack-openmpi has no key 'blass'; did you mean 'blas'",
    ),
    "its form": ('"blas": "openblas"', '"blas": ["x"]', '"blas"', "must be: a string"),
    "a reason": (
        'stack("mpich")',
        'stack("mpich", waived={"HpccCheck": " "})',
        "waived={",
        "'HpccCheck' of the stack mpich is ' '; it is why a gate need not see it judged",
    ),
    "waiver": (
        'stack("mpich")',
        'stack("mpich", waived={"Hpcc": "x"})',
        "waived={",
        "'waived' of the stack mpich has no key 'Hpcc'; did you mean 'HpccCheck'",
    ),
}


@pytest.mark.parametrize(("old", "new", "word", "told"), REFUSED.values(), ids=REFUSED)
def test_what_must_not_be_said_is_refused_by_file_and_line(path, old, new, word, told):
    assert old in TEMPLATE
    text = TEMPLATE.replace(old, new, 1) if "stack" in old else TEMPLATE.replace(old, new)
    path.write_text(text)
    with pytest.raises(sites.SiteError) as refused:
        sites.load(path)
    said = str(refused.value)
    assert said.startswith(f"{path}:{line_of(text, word)}: ")
    assert re.search(told, said), said


def test_a_command_ends_with_2_and_one_sentence(path, capsys):
    path.write_text(TEMPLATE.replace("link_mb_s", "link_mbs"))
    assert cli.main(["activate", "--site", "alpha"]) == 2
    (_, line) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"clustergate: {path}:")


TWO_KINDS = """\
from clustergate.sites import configuration, Partition, Site, Stack

NODE = {"scheduler": "local", "cores_per_node": 8, "memory_bytes_per_node": 2**34}
OTHER = {**NODE, "cores_per_node": 64, "memory_bytes_per_node": 2**38, "link_mb_s": 50000}
OTHER["environs"] = ["mpich"]
site_configuration = configuration(
    [
        Site(
            name="alpha",
            hostnames=["alpha"],
            partitions=[
                Partition(name="thin", nodes=4, nominal_gflops_per_core=40, **NODE),
                Partition(name="fat", nodes=2, nominal_gflops_per_core=96, **OTHER),
            ],
            stacks=[Stack("mpich"), Stack("openmpi", pmi="pmix")],
        )
    ]
)
"""


def test_partitions_of_unequal_size_and_processors_are_described_each_for_itself(path):
    path.write_text(TWO_KINDS)
    site = sites.load(path)
    thin, fat = site.partitions
    assert (thin.fullname, thin.shape) == ("alpha:thin", Shape(cores_per_node=8, nodes=4))
    assert (fat.fullname, fat.shape) == ("alpha:fat", Shape(cores_per_node=64, nodes=2))
    assert (thin.stacks, fat.stacks) == (("mpich", "openmpi"), ("mpich",))
    assert (thin.memory_bytes_per_node, fat.memory_bytes_per_node) == (2**34, 2**38)
    assert (thin.nominal_gflops_per_core, fat.nominal_gflops_per_core) == (40, 96)
    assert (thin.facts.link_mb_s, fat.facts.link_mb_s) == (None, 50000)
    assert [(stack.name, stack.pmi) for stack in site.stacks] == [
        ("mpich", ""),
        ("openmpi", "pmix"),
    ]
    assert sites.hostname_patterns(path) == ["alpha"]


@pytest.mark.parametrize(
    ("old", "new", "word", "told"),
    [
        ("nodes=2", "nodes=0", "nodes=0", "'nodes' of the partition fat is 0"),
        ('name="fat"', 'name="thin"', 'name="thin"', "2 partitions of alpha are named thin"),
        # What stands apart from both is found where it stands.
        ('"link_mb_s": 50000', '"link_mb_s": 5e10', '"link_mb_s"', "of the partition fat is 5"),
    ],
)
def test_of_several_partitions_the_right_one_is_named(path, old, new, word, told):
    text = TWO_KINDS.replace(old, new)
    path.write_text(text)
    with pytest.raises(sites.SiteError, match=f":{line_of(text, word)}: .*{told}"):
        sites.load(path)


def test_a_word_that_no_field_has_is_an_error_of_python_with_the_line(path):
    path.write_text(TWO_KINDS.replace("nodes=2", "node=2"))
    with pytest.raises(sites.SiteError, match=r"alpha.py:13: .*argument 'node'; .* 'nodes'\?"):
        sites.load(path)


def as_reframe_reads(path: Path) -> list[dict[str, Any]]:
    """Return the partitions in ReFrame's form."""
    found: list[dict[str, Any]] = runpy.run_path(str(path))["site_configuration"]["systems"][0][
        "partitions"
    ]
    return found


def test_extras_of_other_tests_stay_among_the_extras_and_are_told_unless_set_apart(path, recwarn):
    own = '"other_tests": {"mem_per_node": 491520}, "link_mb_s"'
    path.write_text(TEMPLATE.replace('"link_mb_s"', own))
    assert sites.load(path).partitions[0].other_tests == {"mem_per_node": 491520}
    (partition,) = as_reframe_reads(path)
    assert partition["extras"]["mem_per_node"] == 491520
    assert "other_tests" not in partition["extras"]
    assert not recwarn.list
    path.write_text(TEMPLATE.replace('"link_mb_s"', '"gpu_arch": "sm90", "link_mb_s"'))
    with pytest.warns(SiteWarning, match="'gpu_arch' of the partition compute") as told:
        (partition,) = as_reframe_reads(path)
    assert partition["extras"]["gpu_arch"] == "sm90"
    assert (told[0].filename, told[0].lineno) == (str(path), line_of(TEMPLATE, '"link_mb_s"'))


def test_what_is_none_is_not_stated_and_lists_may_be_tuples():
    needed = {"cores_per_node": 2, "memory_bytes_per_node": 2e9, "nominal_gflops_per_core": 1}
    extras = {**needed, "cache_bytes_per_node": None, "process_counts": (2, 4)}
    partition = {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": extras}
    system = {"name": "machine", "hostnames": ("machine",), "partitions": (partition,)}
    (found,) = configuration([system], [stack("mpich")])["systems"][0]["partitions"]
    assert found["extras"] == {**needed, "process_counts": (2, 4)}


def test_a_second_system_would_be_judged_as_the_first_and_is_refused(path: Path):
    needed = {"cores_per_node": 2, "memory_bytes_per_node": 2e9, "nominal_gflops_per_core": 1}
    partition = {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": needed}
    alpha, beta = (
        {"name": name, "hostnames": [name], "partitions": [partition]} for name in ("alpha", "beta")
    )
    path.write_text(
        "from clustergate.sites import configuration, stack\n"
        f"site_configuration = configuration([{alpha},\n{beta}], [stack('mpich')])\n"
    )
    assert sites.choose(None, "beta").path == path
    with pytest.raises(sites.SiteError, match=r"alpha\.py:3: beta is described beside alpha"):
        sites.load(path)


def test_both_forms_say_the_same():
    waived = {"HpccCheck": "no build"}
    typed = Stack("openmpi", pmi="pmix", waived=waived, reframe={"env_vars": [["A", "1"]]})
    assert stack("openmpi", pmi="pmix", waived=waived, env_vars=[["A", "1"]]) == typed.as_reframe()
    assert (
        stack("a", "spack", spack={"blas": "mkl"})
        == Stack("a", "spack", {"blas": "mkl"}).as_reframe()
    )
    said = Partition(name="p", scheduler="slurm", access=["-p x"], nodes=2, other_tests={"a": 1})
    assert said.as_reframe() == {
        **{"name": "p", "scheduler": "slurm", "launcher": "clustergate", "access": ["-p x"]},
        "extras": {"nodes": 2, "other_tests": {"a": 1}},
    }
    assert Site(name="s", hostnames=[], partitions=[said]).as_reframe()["partitions"] == [said]


def test_every_extra_says_what_it_is():
    assert all(extra.metadata["description"] for extra in EXTRAS)
    described = site_schema()["properties"]["systems"]["items"]["properties"]["partitions"]
    assert {extra.name for extra in EXTRAS} < {
        *described["items"]["properties"]["extras"]["properties"]
    }


def test_the_schema_is_printed_and_takes_a_configuration_as_json(path, capsys):
    assert cli.main(["site", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft7Validator.check_schema(schema)
    path.write_text(TEMPLATE)
    configured = json.loads(json.dumps(runpy.run_path(str(path))["site_configuration"]))
    jsonschema.validate(configured, schema)
    configured["systems"][0]["partitions"][0]["extras"]["link_mb_s"] = 100e9
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(configured, schema)


IN_JSON = {int: "integer", float: "number", bool: "boolean", str: "string", Sequence: "array"}


def test_the_schema_and_the_classes_agree():
    said = site_schema()["properties"]
    partition = said["systems"]["items"]["properties"]["partitions"]["items"]["properties"]
    extras = partition["extras"]["properties"]
    hints = typing.get_type_hints(Partition)
    assert {*extras} == {one.name for one in EXTRAS} | {"other_tests"}
    for one in EXTRAS:
        hint = hints[one.name]
        if type(None) in typing.get_args(hint):
            hint = typing.get_args(hint)[0]
        assert extras[one.name]["type"] == IN_JSON[typing.get_origin(hint) or hint], one.name
    # What is no extra is a key of ReFrame's, or made of what is said.
    own = {"other_tests", "reframe", "system", "excluded_nodes"}
    assert {*hints} - {*extras} - own <= {*partition}
    stack = said["environments"]["items"]["properties"]["extras"]["properties"]
    assert {one.name for one in fields(Stack)} - {"name", "settings", "benchmarks", "reframe"} <= {
        *stack
    }
    assert {*settable()} <= {*stack}
    assert {*stack["spack"]["properties"]} == {one.name for one in fields(SpackSettings)}


def test_the_published_schema_is_that_of_the_suite():
    """`clustergate site schema > site_configs/schema.json` writes it anew."""
    published = checkout() / "site_configs" / "schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == site_schema()


BY_JSON = """\
import json
from pathlib import Path
from clustergate.sites import configuration

said = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
site_configuration = configuration(said["systems"], said["environments"])
"""


def test_a_site_config_may_keep_what_it_says_as_json(path):
    node = {"cores_per_node": 8, "memory_bytes_per_node": 2**34, "nominal_gflops_per_core": 40}
    partition = {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": node}
    described = {
        "systems": [{"name": "alpha", "hostnames": ["alpha"], "partitions": [partition]}],
        "environments": [Stack("mpich").as_reframe()],
    }
    path.write_text(BY_JSON)
    path.with_suffix(".json").write_text(json.dumps(described))
    assert sites.load(path).partitions[0].memory_bytes_per_node == 2**34
    path.with_suffix(".json").write_text(json.dumps(described).replace("cores_per", "core_per"))
    with pytest.raises(sites.SiteError, match=r"alpha.py:6: .* lacks 'cores_per_node'"):
        sites.load(path)


def test_the_end_of_a_long_job_is_noticed_soon(path):
    path.write_text(TWO_KINDS)
    (general,) = runpy.run_path(str(path))["site_configuration"]["general"]
    # Once every two seconds, and a job on this node when it ends.
    assert general["poll_rate_min"] * launchers._LONGEST_WAIT_S == 1.0


def test_hpl_is_sized_for_the_cores_and_the_memory_of_each_partition(path, tmp_path):
    path.write_text(TWO_KINDS)
    report = tmp_path / "report.json"
    options = reframe_options(mode_named("acceptance"), ["HplCheck"])
    variables = sites.reframe_variables(path, sites.load(path))
    subprocess.run(
        reframe.command(options, report=report, action="--dry-run"),
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    found = {}
    for case in (case for case in reframe.reported_cases(report) if "ranks" in case):
        plan = json.loads((reframe.job_script(case).parent / "plan.json").read_text())
        n = plan["contenders"][0]["inputs"]["HPL.dat"].splitlines()[5].split()[0]
        memory = 8 * int(n) ** 2
        found[case["partition"], case["environ"]] = (case["ranks"], round(memory / 2**30))
    # Four nodes of 8 cores and 16 GiB, two of 64 and 256 GiB: N fills at most four fifths.
    assert found == {
        ("thin", "mpich"): (32, 51),
        ("thin", "openmpi"): (32, 51),
        ("fat", "mpich"): (128, 409),
    }


def test_users_without_a_name_and_a_group_share_what_reframe_stores(monkeypatch, tmp_path):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 7771)
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    path = checkout() / "site_configs" / "local.py"
    results = tmp_path / "results"
    results.mkdir()
    for folder, file in ((0o2775, "664"), (0o755, "644"), (0o700, "600")):
        results.chmod(folder)
        variables = sites.reframe_variables(path, sites.load(path))
        assert variables["RFM_SQLITE_DB_FILE_MODE"] == file
    assert sites.reframe_variables(path, sites.load(path))["LOGNAME"] == "uid 7771"


def test_the_checks_load_without_a_site_config(tmp_path):
    program = Path(sys.executable).with_name("reframe")
    listed = subprocess.run(
        [program, "-c", checkout() / "reframe_checks", "-R", "-l"],
        env={key: value for key, value in os.environ.items() if not key.startswith("RFM_")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (listed.returncode, "Found 0 check(s)" in listed.stdout) == (0, True), listed.stdout


def test_what_a_site_sets_of_launches_is_without_what_the_suite_adds() -> None:
    path = checkout() / "site_configs" / "local.py"
    assert sites.launch_settings(sites.load(path), "mpich") == {
        "launcher of node": "'clustergate'",
        "bind_to_cores of node": "True",
    }
