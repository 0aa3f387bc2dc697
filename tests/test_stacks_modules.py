"""Stacks that are there already, by real modules of Lmod and of Environment Modules."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clustergate import cli
from clustergate.core.model import ClustergateError
from clustergate.machine.processes import capture
from clustergate.sites import configs as sites
from clustergate.stacks import StackRequest, existing, modules, planned, suggestion
from clustergate.stacks.builder import SetUp
from clustergate.stacks.spack.libraries import mpi_of_answer, mpi_of_module
from tests.conftest import PATIENCE_S

INITS = {
    "Lmod": Path("/usr/share/lmod/lmod/init/bash"),
    "Environment Modules": Path("/usr/share/modules/init/bash"),
}
# As a library says what it is, without being one.
LIBRARY = """\
#include <string.h>
int MPI_Init(void) { return 0; }
int MPI_Get_library_version(char *said, int *length) {
  strcpy(said, "Open MPI v4.1.4, package: Open MPI, ident: 4.1.4");
  *length = (int)strlen(said);
  return 0;
}
"""
HEADER = """\
#define MPI_MAX_LIBRARY_VERSION_STRING 256
int MPI_Init(void);
int MPI_Get_library_version(char *, int *);
"""


@pytest.fixture(params=INITS)
def tree(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of modules for one of the two module systems, which is that of the shell."""
    init = INITS[request.param]
    if not init.is_file():
        pytest.skip(f"{request.param} is not installed")
    for name in ("MODULEPATH", "LOADEDMODULES", "LMOD_CMD", "MODULES_CMD", "BASH_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODULESHOME", str(init.parents[1]))
    folder = tmp_path / "modulefiles"
    monkeypatch.setenv("MODULEPATH", str(folder))
    write(
        folder / "openmpi" / "4.1.4",
        f"prepend-path PATH {tmp_path}/mpi/bin\nsetenv OMPI_MCA_btl ^tcp",
    )
    write(folder / "openmpi" / "3.1.0", "prepend-path PATH /none/bin")
    write(folder / "broken" / "1", "error nonsense\nthis-is-no-command")
    write(folder / "preload" / "1", "setenv LD_PRELOAD /opt/trace.so")
    return folder


def write(path: Path, lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#%Module1.0\n{lines}\n")


def library_in(prefix: Path, text: str = LIBRARY) -> None:
    """Put a library with its wrapper and launcher into a prefix."""
    for folder in ("bin", "lib", "include"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "include" / "mpi.h").write_text(HEADER)
    source = prefix / "mpi.c"
    source.write_text(text)
    target = prefix / "lib" / "libmpi.so.40"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", target, source], check=True)
    wrapper = prefix / "bin" / "mpicc"
    wrapper.write_text(
        f'#!/bin/sh\nexec cc -I{prefix}/include "$@" {target} -Wl,-rpath,{prefix}/lib\n'
    )
    wrapper.chmod(0o755)


def test_what_a_module_sets_is_read(tree: Path) -> None:
    loaded = modules.load(modules.Loading(["openmpi/4.1.4"]))
    assert loaded == {"PATH": f"{tree.parent}/mpi/bin", "OMPI_MCA_btl": "^tcp"}


def test_folders_of_modules_can_be_named(tree: Path, tmp_path: Path) -> None:
    write(tmp_path / "more" / "mpich" / "4.2", "prepend-path LD_LIBRARY_PATH /opt/mpich/lib")
    loaded = modules.load(modules.Loading(["mpich/4.2"], use=[str(tmp_path / "more")]))
    assert loaded["LD_LIBRARY_PATH"] == "/opt/mpich/lib"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("nothing/1.0", "`module load nothing/1.0` failed"),
        ("broken/1", "`module load broken/1` failed"),
        ("preload/1", "`module load preload/1` preloads /opt/trace.so into every program"),
    ],
)
def test_a_module_that_cannot_be_used_is_refused(tree: Path, load: str, said: str) -> None:
    with pytest.raises(ClustergateError, match=said):
        modules.load(modules.Loading([load]))


def test_what_the_shell_had_loaded_does_not_stand_for_it(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tree.parent}/mpi/bin", prepend=":")
    monkeypatch.setenv("LOADEDMODULES", "openmpi/4.1.4")
    assert modules.load(modules.Loading(["openmpi/4.1.4"]))["PATH"] == f"{tree.parent}/mpi/bin"


def test_the_library_says_itself_what_it_is(tree: Path, tmp_path: Path) -> None:
    library_in(tmp_path / "mpi")
    loading = modules.Loading(["openmpi/4.1.4"])
    wrapper = tmp_path / "mpi" / "bin" / "mpicc"
    library, mpi, version = modules.identify(
        loading, modules.load(loading), wrapper, tmp_path / "ask"
    )
    assert library == (tmp_path / "mpi" / "lib" / "libmpi.so.40").resolve()
    assert (mpi.title, version) == ("Open MPI", "4.1.4")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LIBRARY.replace("Open MPI v4", "Some MPI v4"), "identifies itself as 'Some MPI v4.1.4"),
        (LIBRARY.replace("return 0;\n}\n", "return 1;\n}\n"), "or started here: status 1"),
    ],
)
def test_a_library_that_nobody_knows_is_refused(
    tree: Path, tmp_path: Path, text: str, said: str
) -> None:
    library_in(tmp_path / "mpi", text)
    loading = modules.Loading(["openmpi/4.1.4"])
    wrapper = tmp_path / "mpi" / "bin" / "mpicc"
    with pytest.raises(ClustergateError, match=said):
        modules.identify(loading, modules.load(loading), wrapper, tmp_path / "ask")


def test_what_a_wrapper_says_is_told_wherever_it_says_it(tree: Path, tmp_path: Path) -> None:
    wrapper = tmp_path / "mpicc"
    wrapper.write_text("#!/bin/sh\necho it must be run from elsewhere\nexit 1\n")
    wrapper.chmod(0o755)
    loading = modules.Loading(["openmpi/4.1.4"])
    with pytest.raises(ClustergateError, match="here: it must be run from elsewhere"):
        modules.identify(loading, modules.load(loading), wrapper, tmp_path / "ask")


def test_a_module_without_mpi_is_refused(tree: Path, tmp_path: Path) -> None:
    settings = {"load": ["openmpi/3.1.0"]}
    with pytest.raises(ClustergateError, match="puts no mpicc on PATH"):
        modules.provide(SetUp("old", tmp_path / "state", print, settings))


def test_a_scan_finds_modules(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CLUSTERGATE_SITE_FOLDER", str(tmp_path))
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    slurm = Path(__file__).parent / "data" / "slurm"
    files = [
        *("--nodes", str(slurm / "scontrol-show-node.txt")),
        *("--partitions", str(slurm / "scontrol-show-partition.txt")),
        *("--lscpu", str(slurm / "lscpu.txt")),
    ]
    assert cli.main(["site", "scan", "alpha", *files]) == 0
    path = tmp_path / "site_configs" / "alpha.py"
    (stack,) = sites.load(path).stacks
    assert stack.request == ("openmpi", "modules", {"load": ["openmpi/4.1.4"]})
    text = path.read_text()
    assert '# stack("openmpi-3-1-0", provider="modules"' in text
    assert "of MPI libraries 2." in text
    assert 'stack("openmpi", provider="modules"' in capsys.readouterr().out
    # What is named thus by another provider, or not named at all, is suggested.
    assert cli.main(["check", "--site", "alpha", "--stack", "spack-openmpi"]) != 0
    assert "did you mean 'openmpi'?" in capsys.readouterr().err
    path.write_text(text.replace("# stack(", "stack("))
    assert [one.name for one in sites.load(path).stacks] == ["openmpi", "openmpi-3-1-0"]


@pytest.mark.skipif(not INITS["Lmod"].is_file(), reason="Lmod is not installed")
def test_a_scan_finds_what_lmod_hides_behind_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "Compiler" / "gcc" / "12"
    (tmp_path / "Core" / "gcc").mkdir(parents=True)
    (below / "mpich").mkdir(parents=True)
    (tmp_path / "Core" / "gcc" / "12.lua").write_text(f'prepend_path("MODULEPATH", "{below}")\n')
    (below / "mpich" / "4.2.lua").write_text('prepend_path("PATH", "/opt/mpich/bin")\n')
    monkeypatch.setenv("MODULESHOME", str(INITS["Lmod"].parents[1]))
    monkeypatch.setenv("MODULEPATH", str(tmp_path / "Core"))
    monkeypatch.delenv("SPACK_ROOT", raising=False)
    (one,), _ = existing.scan()
    assert one.settings == {"load": ["gcc/12", "mpich/4.2"]}
    assert modules.load(modules.Loading(one.load))["PATH"] == "/opt/mpich/bin"


def test_without_a_module_command_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClustergateError, match="install Lmod or Environment Modules, or correct"):
        modules.load(modules.Loading(["mpich@4"], spack=str(tmp_path)))


def test_a_spack_that_does_not_answer_is_told_in_a_sentence(tmp_path: Path) -> None:
    script = tmp_path / "share" / "spack" / "setup-env.sh"
    script.parent.mkdir(parents=True)
    script.write_text("exec sleep infinity\n")
    with pytest.raises(ClustergateError, match=r"mpich@4` did not end within 0.2 s") as told:
        modules.load(modules.Loading(["mpich@4"], spack=str(tmp_path)), 0.2)
    assert "setup-env" not in str(told.value)


def test_a_folder_that_loading_names_twice_is_searched_once() -> None:
    loaded = modules.changes({"PATH": "/bin"}, {"PATH": "/mpi/bin:/bin:/mpi/bin"})
    assert loaded == {"PATH": "/mpi/bin"}


def test_a_scan_tells_what_it_could_not_list(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "spack").write_text("#!/bin/sh\necho no Python >&2\nexit 1\n")
    (tmp_path / "bin" / "spack").chmod(0o755)
    asked = {"PATH": os.environ["PATH"], "SPACK_ROOT": str(tmp_path)}
    _, told = existing.scan(asked)
    assert f"Spack in {tmp_path}: its packages could not be listed." in told


def test_a_scan_tells_which_module_command_did_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init = tmp_path / "init" / "bash"
    init.parent.mkdir()
    init.write_text(
        'module() { case "$*" in "-t spider") echo mpich/4.2;; *) exec sleep infinity;; esac; }\n'
    )

    def answers(command: Sequence[str], **options: Any) -> Any:
        late = "spider mpich/4.2" in " ".join(command)
        return capture(command, **{**options, "timeout": 0.5 if late else PATIENCE_S})

    monkeypatch.setattr(existing, "_TIME_LIMIT_S", 0.5)
    monkeypatch.setattr(existing, "capture", answers)
    asked = {"PATH": "/usr/bin:/bin", "MODULESHOME": str(tmp_path)}
    (one,), told = existing.scan(asked)
    assert one.load == ["mpich/4.2"]
    assert any("`module spider mpich/4.2` did not end within 0.5 s" in line for line in told)


def test_what_spack_has_installed_is_found() -> None:
    spec = {"name": "mvapich2", "version": "2.3.7-1", "hash": "abcdefghijk"}
    listed = json.dumps([spec, {**spec, "name": "hpl"}, {**spec, "external": {"path": "/usr"}}])
    (one,) = existing.libraries_from_spack(listed, "/opt/spack")
    assert existing.stack_lines([one]) == [
        'stack("mvapich2", provider="modules", '
        'modules={"load": ["mvapich2@2.3.7-1/abcdefg"], "spack": "/opt/spack"}),'
    ]
    assert existing.libraries_from_spack("==> Error: no packages", "/opt/spack") == []


def test_newest_library_is_a_stack_module_before_spack() -> None:
    names = ["mpi/openmpi-x86_64", "openmpi/4.1.4", "openmpi/4.10.0", "impi/2021.9", "hdf5/1-mpich"]
    listed = existing.libraries_from_modules(names, lambda name: [])
    mpich = json.dumps([{"name": "openmpi", "version": "5.0", "hash": "a" * 32}])
    lines = existing.stack_lines([*listed, *existing.libraries_from_spack(mpich, "/opt/spack")])
    assert [line.partition(", ")[0] for line in lines] == [
        'stack("intel-mpi"',
        'stack("openmpi"',
        '# stack("openmpi-4-1-4"',
        '# stack("openmpi-openmpi-x86-64"',
        '# stack("openmpi-5-0"',
    ]
    assert '"openmpi/4.10.0"' in lines[1]


@pytest.mark.parametrize(
    ("module", "title"),
    [
        ("OpenMPI/4.1.5-GCC-12.3.0", "Open MPI"),
        ("mpi/2021.13", "Intel MPI"),
        ("mvapich2/2.3.7", "MVAPICH2"),
        ("mvapich/4.0", "MVAPICH"),
        ("compilers/mpich-4.1", "MPICH"),
        ("hdf5/1.12-openmpi-4.1", None),
        ("mpi4py/3", None),
    ],
)
def test_modules_are_known_by_their_names(module: str, title: str | None) -> None:
    known = mpi_of_module(module)
    assert (known and known.title) == title
    named = StackRequest("any", "modules", {"load": ["gcc", module]})
    assert planned(named).mpi_name == (title or "MPICH")


@pytest.mark.parametrize(
    ("answer", "title", "version"),
    [
        ("MPICH Version:      5.0.2\nABI: 1", "MPICH", "5.0.2"),
        ("MVAPICH2 Version      :\t2.3.7\nRelease", "MVAPICH2", "2.3.7"),
        ("Intel(R) MPI Library 2021.18 for Linux* OS", "Intel MPI", "2021.18"),
    ],
)
def test_libraries_are_known_by_what_they_say(answer: str, title: str, version: str) -> None:
    known = mpi_of_answer(answer)
    assert known
    assert (known[0].title, known[1]) == (title, version)


def test_a_stack_that_the_site_does_not_name_is_suggested() -> None:
    assert suggestion("mvapich2", ["mpich", "spack-mvapich2"]) == (
        "; did you mean 'spack-mvapich2'?"
    )
    assert suggestion("spack-openmpi", ["mpich"]) == (
        '; it comes as wheels: add stack("openmpi") to the site config, or stack("openmpi", '
        'provider="modules", modules={"load": ["openmpi"]}) where a module loads it'
    )
    assert 'stack("spack-mvapich2", provider="spack")' in suggestion("mvapich2", ["mpich"])
    assert suggestion("mpitch", ["mpich"]) == "; did you mean 'mpich'?"
    assert suggestion("other", ["mpich"]) == ""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("spack-mvapich2", "; Spack builds it: set CLUSTERGATE_PROVIDER=spack"),
        ("spack-mpich", "; Spack builds it: set CLUSTERGATE_PROVIDER=spack"),
        (
            "mvapich2",
            "; Spack builds it: set CLUSTERGATE_PROVIDER=spack and call it spack-mvapich2",
        ),
        ("mpitch", "; did you mean 'mpich'?"),
    ],
)
def test_variable_brings_spacks_stacks_without_a_site_config(name: str, said: str) -> None:
    """On a machine without a site config a variable brings spacks stacks."""
    wheels = ["intel-mpi", "mpich", "openmpi"]
    assert suggestion(name, wheels, detected=True) == said
    # They are Spack's already, and this one is not among them.
    more = suggestion("spack-mvapich4", ["spack-mpich"], detected=True)
    assert 'add stack("spack-mvapich4", provider="spack") to the site config' in more


def test_setup_of_a_stack_of_spack_names_the_variable(monkeypatch, capsys) -> None:
    monkeypatch.delenv("CLUSTERGATE_PROVIDER", raising=False)
    assert cli.main(["setup", "--site", "local", "--stack", "spack-mvapich2"]) != 0
    assert "set CLUSTERGATE_PROVIDER=spack" in capsys.readouterr().err


def test_nothing_to_load_is_refused_by_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "alpha.py"
    path.write_text(
        "from clustergate.sites import configuration, stack\n"
        "site_configuration = configuration(systems=[], stacks=[\n"
        '    stack("openmpi", provider="modules"),\n'
        "])\n"
    )
    with pytest.raises(ClustergateError, match="the stack openmpi lacks 'modules'"):
        sites.load(path)
