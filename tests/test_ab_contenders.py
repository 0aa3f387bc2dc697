"""How contenders are written, and what becomes of their variables."""

import pytest

from clustergate.core.model import BadRequest
from clustergate.stacks.manifest import Manifest, ManifestError, write_manifest
from clustergate.studies.ab.contenders import (
    in_environment,
    in_ranks,
    manifest_of,
    parse_contender,
    require_known,
    without_effect,
)


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


UCX = "[1732.1] [n1:7:0] parser.c:2036 UCX  WARN  unused "


@pytest.mark.parametrize(
    ("variables", "line", "told"),
    [
        ("UCX_TSL=self", UCX + "environment variable: UCX_TSL (maybe: UCX_TLS?)", "UCX_TSL had no"),
        ("UCX_TSL=self", UCX + "env variable: UCX_TSL (set UCX_WARN_UNUSED_ENV_VARS=n)", "UCX_TSL"),
        ("UCX_B=1", UCX + "environment variables: UCX_A; UCX_B", "UCX_B had no effect"),
        # Guessed by UCX, or set by others.
        ("UCX_TLS=self", UCX + "environment variable: UCX_TSL (maybe: UCX_TLS?)", ""),
        ("UCX_TLS=self", "UCX_TLS=self", ""),
        (
            "I_MPI_FABRIC=shm",
            "[0] MPI startup(): I_MPI_FABRIC environment variable is not supported.",
            "I_MPI_FABRIC had no effect",
        ),
        (
            "LD_PRELOAD=/no.so",
            "ERROR: ld.so: object '/no.so' from LD_PRELOAD cannot be preloaded "
            "(cannot open shared object file): ignored.",
            "/no.so of LD_PRELOAD was not loaded: cannot open shared object file",
        ),
        (
            "UCX_TLS=self",
            "ld.so: object '/no.so' from LD_PRELOAD cannot be preloaded: ignored.",
            "",
        ),
    ],
)
def test_what_of_a_contender_had_no_effect_is_told(variables: str, line: str, told: str) -> None:
    found = without_effect(parse_contender(f"mpich:{variables}"), [line, "and more", line])
    assert len(found) == bool(told)
    assert told in "".join(map(str, found))
