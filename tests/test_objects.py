"""What is the same is compiled once, and what is not is never taken for it."""

import os
import signal
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.machine.kernels import SOURCES
from clustergate.stacks import compilation
from clustergate.stacks.builder import Toolchain, _compiler_environment
from clustergate.stacks.compilation import Objects
from clustergate.stacks.manifest import read_manifest

HEADER = """
/* {name} */
typedef int MPI_Comm;
#define MPI_COMM_WORLD ((MPI_Comm)0x44000000)
#define MPI_VERSION {version}
int {name}_only(void);
int MPI_Barrier(MPI_Comm comm);
"""
PROGRAMS = {
    "calls.c": "#include <mpi.h>\nint calls(void) { return MPI_Barrier(MPI_COMM_WORLD); }\n",
    "version.c": "#include <mpi.h>\nint version(void) { return MPI_VERSION; }\n",
    "pure.c": '#include "own.h"\nint pure(void) { return OWN; }\n',
    "own.h": "#define OWN 1\n",
}
SAME_ABI = "MPICH's ABI"


@pytest.fixture
def compiled(tmp_path, monkeypatch):
    """Return a function that compiles with a library, and tells what it had to compile."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)
    called: list[str] = []
    real = compilation.run_compiler

    def run(words, environment, log):
        if "-c" in words:
            called.append(Path(words[words.index("-c") + 1]).stem)
        real(words, environment, log)

    monkeypatch.setattr(compilation, "run_compiler", run)

    def compile_with(name, abi, *options, version=3, only=("calls", "version", "pure")):
        prefix = tmp_path / name
        (prefix / "include").mkdir(parents=True, exist_ok=True)
        header = HEADER.format(name=name.split()[0], version=version)
        (prefix / "include" / "mpi.h").write_text(header)
        wrapper = prefix / "mpicc"
        shown = f"cc -I{prefix}/include -pthread -L{prefix}/lib -lmpi"
        wrapper.write_text(f"#!/bin/sh\necho '{shown}'\n")
        wrapper.chmod(0o755)
        before = len(called)
        log = tmp_path / "log"
        own = Objects(wrapper, dict(os.environ), abi, tmp_path / "cache", log)
        made = own.of([str(tmp_path / f"{one}.c") for one in only], ["-O1", *options])
        assert all(Path(one).is_file() for one in made)
        return sorted(called[before:]), made

    return compile_with


def test_libraries_of_one_abi_share_what_does_not_depend_on_them(compiled):
    assert compiled("mpich", SAME_ABI, version=4)[0] == ["calls", "pure", "version"]
    assert compiled("mpich", SAME_ABI, version=4)[0] == []
    # A value of the header stands in the object.
    assert compiled("intel", SAME_ABI, version=3)[0] == ["version"]


def test_another_abi_shares_what_knows_no_mpi_alone(compiled):
    compiled("mpich", SAME_ABI)
    assert compiled("openmpi", "openmpi-5")[0] == ["calls", "version"]


def test_whatever_is_changed_is_compiled_again(compiled, tmp_path):
    first = compiled("mpich", SAME_ABI)[1]
    (tmp_path / "own.h").write_text("#define OWN 2\n")
    made, second = compiled("mpich", SAME_ABI)
    assert made == ["pure"]
    assert [one == other for one, other in zip(first, second, strict=True)] == [True, True, False]
    (tmp_path / "calls.c").write_text(PROGRAMS["calls.c"].replace("return", "return 1 +"))
    assert compiled("mpich", SAME_ABI)[0] == ["calls"]
    assert compiled("mpich", SAME_ABI, "-O0")[0] == ["calls", "pure", "version"]
    # The same words mean another processor's instructions where they are among the macros.
    assert compiled("mpich", SAME_ABI, "-mno-sse3")[0] == ["calls", "pure", "version"]
    assert compiled("mpich", SAME_ABI, "-DUNUSED")[0] == []


def test_a_source_that_does_not_compile_says_so(compiled, tmp_path):
    (tmp_path / "pure.c").write_text("int pure(void) { return nothing; }\n")
    with pytest.raises(ClustergateError, match=r"compiling failed: .*nothing.*; .*log"):
        compiled("mpich", SAME_ABI)
    (tmp_path / "log").unlink()
    (tmp_path / "pure.c").write_text("#include <no-such.h>\n")
    with pytest.raises(ClustergateError, match=r"no-such\.h"):
        compiled("mpich", SAME_ABI, only=["pure"])


def test_a_wrapper_that_tells_nothing_is_named(tmp_path):
    silent = Objects(Path("/bin/false"), {}, "", tmp_path, tmp_path / "log")
    with pytest.raises(ClustergateError, match="`/bin/false -show` fails"):
        silent.of(["a.c"], [])


@pytest.mark.mpi
def test_the_headers_of_one_abi_make_the_same_objects(stacks, tmp_path):
    """What is shared is, byte for byte, what each library's own header would have made."""
    made = []
    for stack in ("mpich", "intel-mpi"):
        if read_manifest(stacks, stack).unavailable:
            pytest.skip(f"there is no {stack} here")
        prefix = Path(read_manifest(stacks, stack).mpi_prefix)
        tools = Toolchain(prefix, prefix / "bin", None, ())  # type: ignore[arg-type]
        environment = _compiler_environment(tools)
        folder = tmp_path / stack
        own = Objects(tools.wrappers / "mpicc", environment, stack, folder, tmp_path / "log")
        names = ("mpi_trials", "host_overhead", "bidirectional_stream", "stream")
        objects_of = own.of([str(SOURCES / f"{name}.c") for name in names], ["-O3", "-w"])
        made.append([Path(one).read_bytes() for one in objects_of])
    assert made[0] == made[1]


def test_wrapper_without_quoted_space_understood(compiled):
    """As that of Open MPI."""
    did, _ = compiled("openmpi of Prüf stand", SAME_ABI)
    assert did == ["calls", "pure", "version"]


def test_an_interrupted_compiler_has_not_failed(tmp_path):
    for number in (signal.SIGINT, signal.SIGTERM):
        with pytest.raises(KeyboardInterrupt):
            compilation.run_compiler(
                ["sh", "-c", f"kill -{number.value} $$"], os.environ, tmp_path / "log"
            )
