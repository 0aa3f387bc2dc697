"""Configuration files of MPI libraries: the user's are kept out, the site's recorded."""

import dataclasses

import pytest

from clustergate.core.files.stored import decode
from clustergate.core.model import CaseRecord
from clustergate.machine.changes import describe_one, differences
from clustergate.machine.configuration import (
    PERSONAL,
    ConfigurationFile,
    described,
    keep_personal_files_out,
    personal_files,
    site_files,
)
from clustergate.run.collect import configuration_of


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_home_without_such_files_stays_the_home(tmp_path):
    put(tmp_path / "home/.bashrc", "export A=1\n")
    put(tmp_path / "home/ucx.conf", "# UCX_TLS=tcp\n\n; nothing is set\n[section]\n")
    (tmp_path / "home/.openmpi/components").mkdir(parents=True)
    environment = {"HOME": str(tmp_path / "home"), "A": "1"}
    assert keep_personal_files_out(environment, tmp_path / "instead") == ()
    assert environment == {"HOME": str(tmp_path / "home"), "A": "1"}
    assert not (tmp_path / "instead").exists()


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "/nowhere"}])
def test_without_a_home_there_is_nothing_to_keep_out(environment, tmp_path):
    assert keep_personal_files_out(environment, tmp_path / "instead") == ()


@pytest.mark.parametrize("name", PERSONAL)
def test_a_personal_file_is_kept_out_by_an_empty_home_and_named(name, tmp_path):
    home = tmp_path / "home"
    folder = name.endswith("components")
    put(home / name / "mca_btl_mine.so" if folder else home / name, "btl = self,tcp\n")
    environment = {"HOME": str(home)}
    (found,) = keep_personal_files_out(environment, tmp_path / "instead")
    assert environment["HOME"] == str(tmp_path / "instead")
    assert list((tmp_path / "instead").iterdir()) == []
    assert found.path == f"~/{name}"
    assert found.settings == (("mca_btl_mine.so",) if folder else ("btl",))
    (sentence,) = described([found])
    assert sentence.startswith(f"~/{name} ({found.settings[0]}) is ignored in launches")
    assert str(home) not in sentence


def test_names_are_told_and_values_are_not(tmp_path):
    lines = ["btl = self,tcp", "  UCX_TLS=tcp", "-genv FI_PROVIDER tcp", "eyJhbGciOiJIUzI1NiJ9 x"]
    put(tmp_path / "ucx.conf", "\n".join([*lines, "a\x1b[2J=1", *(f"n{k}=1" for k in range(9))]))
    (found,) = personal_files(tmp_path)
    assert found.settings[:5] == ("btl", "UCX_TLS", "-genv", "(hidden)", "a␛[2J")
    assert str(found).endswith("(btl, UCX_TLS, -genv, (hidden), a␛[2J, n0 and 8 more)")


def test_a_digest_is_that_of_the_settings(tmp_path):
    def digest(text):
        put(tmp_path / "ucx.conf", text)
        (found,) = personal_files(tmp_path)
        return found.digest

    assert digest("UCX_TLS=tcp\n") == digest("# a comment\n\n  UCX_TLS=tcp")
    assert digest("UCX_TLS=tcp\n") != digest("UCX_TLS=rc\n")


def test_files_beside_a_library_and_where_it_was_to_be_installed(tmp_path):
    installed = tmp_path / "opt/mpich/etc"
    text = f"\0first\0{installed}/ucx/ucx.conf\0last /etc/ucx\0".encode()
    library = put(tmp_path / "prefix/lib/libucs.so.0", text)
    mpirun = put(tmp_path / "prefix/bin/mpirun", "#!/bin/sh\n")
    pal = put(tmp_path / "other/lib/libopen-pal.so.80", f"\0{tmp_path}/etc/openmpi\0".encode())
    there = [
        put(tmp_path / "prefix/etc/ucx/ucx.conf", "UCX_A=1"),
        put(installed / "ucx/ucx.conf", "UCX_B=1"),
        put(tmp_path / "prefix/etc/openmpi-mca-params.conf", "btl = self"),
        put(tmp_path / "etc/openmpi/openmpi-mca-params.conf", "pml = ob1"),
    ]
    put(tmp_path / "prefix/etc/libfabric.conf", "FI_PROVIDER=tcp")  # nobody here reads it
    put(tmp_path / "prefix/etc/prte-mca-params.conf", "# nothing is set\n")
    found = site_files([mpirun, library, pal, "/usr/bin/env", "/lib/libc.so.6", "srun"])
    assert [file.path for file in found] == sorted(there)
    assert described((), found[:1]) == [f"{found[0]} of the site applies"]


def test_a_file_by_two_names_is_one(tmp_path):
    put(tmp_path / "real/etc/mpich.conf", "MPIR_CVAR_A=1")
    put(tmp_path / "real/lib/libmpi.so.12", b"")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names = [str(tmp_path / way / "lib/libmpi.so.12") for way in ("real", "link")]
    assert len(site_files(names)) == 1


def test_a_file_comes_back_from_json():
    file = ConfigurationFile("~/ucx.conf", "0123456789ab", ("UCX_TLS",))
    as_json = {"path": file.path, "digest": file.digest, "settings": ["UCX_TLS"]}
    assert decode(as_json, ConfigurationFile) == file


def record_of(stack, *files):
    told = {"site_files": [dataclasses.asdict(file) for file in files]}
    return CaseRecord("case", "HplCheck", stack, "local:node", {}, details=told)


def test_change_of_site_files_shows_between_runs_of_a_stack():
    tcp = ConfigurationFile("/etc/mpich.conf", "0123456789ab", ("MPIR_CVAR_A",))
    before, after = (
        {"software": configuration_of(records)}
        for records in (
            [record_of("mpich"), record_of("openmpi", tcp)],
            [record_of("mpich", tcp), record_of("mpich", tcp), record_of("intel-mpi")],
        )
    )
    # A stack that only one of them ran says nothing.
    assert ", ".join(map(describe_one, differences(before, after))) == (
        "configuration of mpich with /etc/mpich.conf (MPIR_CVAR_A) 0123456789ab"
    )
    never_launched = CaseRecord("case", "HplCheck", "mpich", "local:node", {})
    assert configuration_of([never_launched]) == {}
