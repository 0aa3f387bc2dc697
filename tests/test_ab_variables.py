"""Which variables of a contender an MPI library knows, before anything is launched."""

from pathlib import Path

import pytest

from clustergate import cli
from clustergate.stacks.manifest import Manifest
from clustergate.studies.ab.variables import unknown_to

LISTED = """\
mca:btl:base:param:btl:value:
mca:btl:tcp:param:btl_tcp_eager_limit:value:65536
mca:mpi:base:param:mpi_yield_when_idle:value:false
"""


def stack(prefix: Path, dialect: str, held: str, beside: str = "") -> Manifest:
    """Put an MPI library with such words in it on disk, and return its manifest."""
    for folder in ("bin", "lib"):
        (prefix / folder).mkdir(parents=True)
    (prefix / "lib" / "libmpi.so").write_bytes(b"\x7fELF\0" + held.replace(" ", "\0").encode())
    (prefix / "lib" / "beside.so").write_bytes(beside.encode())
    info = prefix / "bin" / "ompi_info"
    info.write_text(f"#!/bin/sh\ncat <<'EOF'\n{LISTED}EOF\n")
    info.chmod(0o755)
    return Manifest(
        *("a", "wheels"),
        dialect=dialect,
        mpi_prefix=str(prefix),
        mpi_library=str(prefix / "lib" / "libmpi.so"),
        launcher=str(prefix / "bin" / "mpirun"),
    )


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("OMPI_MCA_btl", True),
        ("OMPI_MCA_btl_tcp_eager_limit", True),
        ("OMPI_MCA_btl_tpc_eager_limit", False),
        ("OMPI_MCA_blt_tcp_eager_limit", False),
        # The launcher's own.
        ("OMPI_MCA_rmaps_base_mapping_policy", True),
        ("UCX_TLS", False),
        ("FI_PROVIDER", True),
        ("I_MPI_PIN", False),
        ("MALLOC_ARENA_MAX", True),
    ],
)
def test_what_open_mpi_does_not_list_is_unknown(tmp_path, name, known):
    manifest = stack(tmp_path, "openmpi", "", "NEEDED libfabric.so.1")
    assert unknown_to(manifest, [name]) == ([] if known else [name])


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("MPIR_CVAR_CH4_NETMOD", True),
        ("MPIR_CVAR_CH4_NETMODE", False),
        ("MPIR_CVAR_CH4", False),
        ("MPICH_CH4_NETMOD", True),
        ("OMPI_MCA_btl", False),
        ("UCX_TLS", True),
        ("FI_PROVIDER", False),
    ],
)
def test_what_mpich_does_not_hold_is_unknown(tmp_path, name, known):
    held = "MPIR_CVAR_CH4_NETMOD MPICH_CH4_NETMOD libucp.so.0"
    manifest = stack(tmp_path, "hydra", held)
    assert unknown_to(manifest, [name]) == ([] if known else [name])


def test_without_ompi_info_nothing_is_unknown(tmp_path):
    manifest = stack(tmp_path, "openmpi", "")
    (tmp_path / "bin" / "ompi_info").unlink()
    assert unknown_to(manifest, ["OMPI_MCA_btl_tpc"]) == []


def test_missing_golden_build_refused_before_set_up(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    monkeypatch.setattr(
        "clustergate.run.contest.provide_each", lambda *_, **__: pytest.fail("a set-up")
    )
    words = ["ab", "--site", "local", "--a", "golden:nosuch", "--b", "mpich"]
    assert cli.main(words) == 1
    assert "golden" in capsys.readouterr().err
