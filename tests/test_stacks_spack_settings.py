import json
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.sites import choice
from clustergate.sites import configs as sites
from clustergate.stacks.spack.settings import (
    choice_files,
    environment_file,
    read_settings,
    spack_repo,
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "spack-repo"
    for name in ("environments/openmpi/spack.yaml", "environments/mpich/spack.yaml"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text("spack:\n  specs: []\n")
    for name in ("choices/blas/openblas.yaml", "choices/blas/mkl.yaml", "choices/fabrics/ucx.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("packages: {}\n")
    return folder


def test_stack_without_settings_takes_its_environment(repository):
    settings = read_settings("spack-openmpi", {}, repository)
    assert (settings.environment, settings.blas, settings.fabric) == ("openmpi", "openblas", "")
    assert environment_file(settings, repository).is_file()
    assert choice_files(settings, repository) == [repository / "choices/blas/openblas.yaml"]


def test_the_fabric_is_stronger_than_the_blas(repository):
    settings = read_settings("spack-mpich", {"blas": "mkl", "fabric": "ucx"}, repository)
    assert [path.stem for path in choice_files(settings, repository)] == ["ucx", "mkl"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"colour": "red"}, "no setting 'colour'; known: environment, blas"),
        ({"environment": "lam"}, "unknown environment 'lam'; .* holds mpich, openmpi"),
        ({"blas": "atlas"}, "unknown blas 'atlas'; .* holds mkl, openblas"),
        ({"fabric": "myrinet"}, "unknown fabric 'myrinet'; .* holds ucx"),
        ({"scopes": ["/no/such/folder"]}, "'scopes' names /no/such/folder, which does not exist"),
        ({"externals": "modules"}, "'externals' is 'modules'"),
        ({"target": "zen4; rm"}, "not a processor family"),
    ],
)
def test_what_is_not_there_is_said_with_what_there_is(repository, given, sentence):
    with pytest.raises(ClustergateError, match=sentence):
        read_settings("spack-openmpi", given, repository)


def test_a_scope_may_be_a_place_that_only_spack_knows(repository):
    settings = read_settings("spack-openmpi", {"scopes": ["$spack/etc/spack/site"]}, repository)
    assert settings.scopes == ("$spack/etc/spack/site",)


def test_every_stack_of_the_local_config_has_an_environment(monkeypatch):
    monkeypatch.setenv("CLUSTERGATE_PROVIDER", "spack")
    stacks = sites.load(choice.find("local")).stacks
    assert {stack.provider for stack in stacks} == {"spack"}
    names = [read_settings(stack.name, stack.settings).environment for stack in stacks]
    assert names == ["mvapich2", "intel-mpi", "openmpi", "mpich"]


def test_the_template_shows_every_setting():
    text = (spack_repo().parent / "site_configs" / "template.py").read_text()
    stacks = sites.load(spack_repo().parent / "site_configs" / "template.py").stacks
    (shown,) = [stack.settings for stack in stacks if stack.provider == "spack"]
    assert set(shown) == {"environment", "blas", "fabric", "target"}
    told = ("store", "scopes", "applications", "externals", "spack_root")
    assert all(f'"{name}":' in text for name in told)
    assert read_settings("spack-openmpi", shown).fabric == "ucx"


def test_the_local_config_takes_wheels_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("CLUSTERGATE_PROVIDER", raising=False)
    stacks = sites.load(choice.find("local")).stacks
    assert {(stack.provider, json.dumps(stack.settings)) for stack in stacks} == {("wheels", "{}")}


def test_an_unknown_provider_lists_the_known_ones():
    with pytest.raises(sites.SiteError, match="'spak'; known: wheels, spack"):
        sites.requested_provider(["wheels", "spack"], {"CLUSTERGATE_PROVIDER": "spak"})
