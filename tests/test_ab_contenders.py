"""How contenders are written, and what becomes of their variables."""

import pytest

from clustergate.ab.contenders import (
    in_environment,
    in_ranks,
    manifest_of,
    parse_contender,
    require_known,
)
from clustergate.model import BadRequest
from clustergate.stacks.manifest import Manifest, ManifestError, write_manifest


@pytest.mark.parametrize(
    ("text", "stack", "variables"),
    [
        ("mpich", "mpich", {}),
        ("mpich:UCX_TLS=self,sm", "mpich", {"UCX_TLS": "self,sm"}),
        (
            "intel-mpi:I_MPI_FABRICS=shm:ofi:I_MPI_PIN=0",
            "intel-mpi",
            {"I_MPI_FABRICS": "shm:ofi", "I_MPI_PIN": "0"},
        ),
        ("mpich:A=x=y:B=", "mpich", {"A": "x=y", "B": ""}),
        ("/old/manifests/mpich.json:A=1", "/old/manifests/mpich.json", {"A": "1"}),
    ],
)
def test_a_contender_is_a_stack_and_variables(text, stack, variables):
    named = parse_contender(f" {text} ")
    assert (named.text, named.stack, dict(named.variables)) == (text, stack, variables)
    assert named.is_path is text.startswith("/")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no stack"),
        ("A=1", "names no stack"),
        ("mpich:fast", "'fast' is not VARIABLE=VALUE"),
        ("mpich:A=1:A=2", "sets A twice"),
        ("mpich:CLUSTERGATE_PROOF_DIR=/tmp", "the suite itself"),
    ],
)
def test_what_is_no_contender_is_said(text, said):
    with pytest.raises(BadRequest, match=said):
        parse_contender(text)


def test_an_unknown_stack_is_told_the_known_ones():
    with pytest.raises(BadRequest, match="'mvapich'; known: mpich, openmpi"):
        require_known(parse_contender("mvapich"), ["openmpi", "mpich"])
    require_known(parse_contender("/somewhere/mvapich.json"), ["openmpi"])


def test_a_build_is_found_by_name_or_by_path(tmp_path):
    path = write_manifest(tmp_path, Manifest(stack="mpich", provider="wheels", build_key="k"))
    assert manifest_of(parse_contender("mpich"), tmp_path).build_key == "k"
    assert manifest_of(parse_contender(str(path)), tmp_path / "other").build_key == "k"
    with pytest.raises(ManifestError, match="clustergate setup"):
        manifest_of(parse_contender("openmpi"), tmp_path)
    with pytest.raises(ManifestError, match=r"gone\.json cannot be read"):
        manifest_of(parse_contender(str(tmp_path / "gone.json")), tmp_path)


def test_own_variables_win_and_paths_go_in_front():
    named = parse_contender("mpich:UCX_TLS=tcp:LD_LIBRARY_PATH=/new:LD_PRELOAD=/x.so")
    found = in_environment(named, {"UCX_TLS": "sm", "LD_LIBRARY_PATH": "/stack", "KEPT": "1"})
    assert found == {"UCX_TLS": "tcp", "LD_LIBRARY_PATH": "/new:/stack", "KEPT": "1"}


def test_the_ranks_get_them_whatever_the_launcher_passes_on():
    named = parse_contender("mpich:UCX_TLS=tcp:PATH=/new:LD_PRELOAD=/x.so")
    preloaded = ["LD_PRELOAD=/proof.so:/x.so", "CLUSTERGATE_PRELOAD=/proof.so:/x.so"]
    assert in_ranks(named, "/proof.so") == ["env", "UCX_TLS=tcp", *preloaded]
    assert in_ranks(parse_contender("mpich"), "/proof.so") == []
