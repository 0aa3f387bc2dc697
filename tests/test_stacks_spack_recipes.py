"""What Spack's recipes ask for is had, or told: tools by their packages, sources by checksums."""

import hashlib
import io
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import requests

from clustergate.stacks.lacking import Lack
from clustergate.stacks.spack import recipes
from clustergate.stacks.spack.composition import read_spack_request

HPL = {"sha256": "32c5c17d2233" + "0" * 52, "urls": ["https://a.example/hpl-2.3.tar.gz"]}
LIBTOOL = {"sha256": "da8ebb2ce4dc" + "0" * 52, "urls": ["https://b.example/libtool-2.5.4.tar.gz"]}
ANSWER: dict[str, Any] = {
    "recipes": [
        {"name": "hpl", "version": "2.3", "needs": ["c", "fortran", "libtool"], "sources": [HPL]},
        {"name": "libtool", "version": "2.5.4", "needs": ["c"], "sources": [LIBTOOL]},
        {"name": "odd", "error": "KeyError: 'odd'"},
    ],
    "mirrors": ["https://mirror.example/"],
    "elsewhere": False,
}


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    """Return what is asked of a stack on a machine that has everything but Fortran and libtool."""
    lacking = ("gfortran", "libtool")

    def missing_tools(names, path=None):
        return [Lack(name, name) for name in names if name in lacking]

    monkeypatch.setattr(recipes, "missing_tools", missing_tools)
    return read_spack_request("spack-openmpi", tmp_path, {"externals": "wheels"})


def test_tools_and_sources_are_told_together(wanted):
    found = recipes.lacks(ANSWER, wanted, reachable=lambda url: False, packaged=["libtool"])
    assert found == [
        Lack("gfortran", "gfortran"),
        Lack("hpl 2.3: hpl-2.3.tar.gz (sha256 32c5c17d2233…)"),
        Lack("libtool", "libtool"),
    ]


@pytest.mark.parametrize(
    "place",
    [
        "https://a.example/hpl-2.3.tar.gz",
        f"https://mirror.example/_source-cache/archive/32/{HPL['sha256']}.tar.gz",
    ],
)
def test_a_source_may_come_from_its_address_or_a_mirror(wanted, place):
    found = recipes.lacks(ANSWER, wanted, lambda url: url == place, packaged=["libtool"])
    assert [lack.what for lack in found] == ["gfortran", "libtool"]


def test_what_a_build_cache_may_hold_needs_no_source(wanted):
    found = recipes.lacks({**ANSWER, "elsewhere": True}, wanted, reachable=lambda url: False)
    assert found == [Lack("gfortran", "gfortran")]


def test_a_compiler_that_the_site_names_need_not_be_on_path(wanted, tmp_path):
    scope = tmp_path / "spack" / "scopes" / "site"
    scope.mkdir(parents=True)
    (scope / "packages.yaml").write_text("packages: {gcc: {externals: [{compilers: {c: gcc}}]}}\n")
    assert "gfortran" not in str(recipes.lacks(ANSWER, wanted, reachable=lambda url: True))


def test_without_the_systems_tools_spack_compiles_them(tmp_path, wanted):
    """Installing the system's then changes nothing, so its source is what is missing."""
    whole = read_spack_request("spack-openmpi", tmp_path, {})
    found = recipes.lacks(ANSWER, whole, reachable=lambda url: "hpl" in url)
    assert "libtool 2.5.4: libtool-2.5.4.tar.gz" in str(found)


def test_an_address_is_asked_and_a_file_looked_for(tmp_path, httpserver):
    there = httpserver(b"x")
    (tmp_path / "a b").write_text("x")
    assert recipes.is_reachable(there)
    assert not recipes.is_reachable(f"{there}/absent")
    assert not recipes.is_reachable("http://127.0.0.1:9/refused")
    assert recipes.is_reachable((tmp_path / "a b").as_uri())
    assert not recipes.is_reachable((tmp_path / "c").as_uri())
    assert recipes.is_reachable("oci://registry.example/of-this-nobody-can-tell")


def test_what_the_store_has_needs_nothing(wanted):
    """After `make clean`, without a network: it is all installed."""
    recipes_here = [{**one, "here": True} for one in ANSWER["recipes"]]
    assert recipes.lacks({**ANSWER, "recipes": recipes_here}, wanted, lambda url: False) == []


def test_a_lock_names_its_compilers(wanted):
    assert recipes.lacks(ANSWER, wanted, lambda url: True, locked=True) == []


def test_package_compiled_by_a_lock_is_not_the_systems(wanted):
    """It pins another release than that."""
    found = recipes.lacks(ANSWER, wanted, lambda url: "hpl" in url, locked=True)
    assert [lack.what for lack in found] == [
        "libtool 2.5.4: libtool-2.5.4.tar.gz (sha256 da8ebb2ce4dc…)"
    ]


@pytest.mark.parametrize(
    ("answered", "upstream", "mirror"),
    [
        (200, True, True),
        (404, False, False),
        (403, True, False),
        (503, True, False),
        (requests.ReadTimeout(), True, True),
        (requests.exceptions.SSLError(), True, True),
        (requests.ConnectTimeout(), False, False),
        (requests.ConnectionError(), False, False),
    ],
)
def test_a_server_that_dislikes_this_program_may_serve_spack(
    monkeypatch, answered, upstream, mirror
):
    def get(url, **options):
        if isinstance(answered, Exception):
            raise answered
        found = requests.Response()
        found.status_code = answered
        found.raw = io.BytesIO()
        return found

    monkeypatch.setattr(recipes, "_silent", set())
    recipes._status.cache_clear()
    monkeypatch.setattr(requests, "get", get)
    assert recipes.is_reachable("https://a.example/hpl-2.3.tar.gz") is upstream
    mirrored = "https://a.example/_source-cache/archive/32/32c5.tar.gz"
    assert recipes.is_reachable(mirrored) is mirror
    recipes._status.cache_clear()


def test_a_source_without_an_address_is_told_by_its_checksum(wanted):
    by_hand = {"sha256": "ab" * 32, "urls": []}
    one = {"name": "vendor-mpi", "version": "1", "needs": [], "sources": [by_hand]}
    (lack,) = recipes.lacks({**ANSWER, "recipes": [one]}, wanted, lambda url: False)
    assert lack.what == "vendor-mpi 1: its source (sha256 abababababab…)"


def test_a_file_of_the_right_name_with_another_checksum_is_told(wanted, tmp_path, monkeypatch):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "hpl-2.3.tar.gz").write_text("another")
    monkeypatch.setenv("CLUSTERGATE_SOURCES", str(folder))
    found = recipes.lacks(ANSWER, wanted, reachable=lambda url: False)
    said = next(lack.what for lack in found if lack.what.startswith("hpl"))
    checksum = hashlib.sha256(b"another").hexdigest()[:12]
    assert f"(sha256 32c5c17d2233…, but {folder}/hpl-2.3.tar.gz has {checksum}…)" in said


class _Spec:
    """What a recipe is asked by, of which every condition holds but ``no``."""

    versions = "any"
    variants: ClassVar[dict[str, str]] = {}

    def __init__(self, text: str) -> None:
        self.name = text.partition("@")[0]

    def satisfies(self, when: str) -> bool:
        return when != "no"

    def constrain(self, other: object) -> None:
        pass


def test_resources_of_recipes_are_asked_for(monkeypatch, capsys):
    """In place of Spack stands what its package classes have."""

    def fetched(url=None, digest=None):
        return SimpleNamespace(fetcher=SimpleNamespace(url=url, digest=digest))

    tests = {"": [fetched("https://a.example/xmlts.tar.gz", "ab" * 32), fetched("https://a.git")]}
    recipe = SimpleNamespace(
        versions={},
        dependencies={},
        patches={},
        variants={},
        resources={**tests, "no": [fetched("https://a.example/no.tar.gz", "cd" * 32)]},
    )
    spack = SimpleNamespace(
        config=SimpleNamespace(get=lambda section: {}),
        spec=SimpleNamespace(Spec=_Spec),
        repo=SimpleNamespace(PATH=SimpleNamespace(get_pkg_class=lambda name: recipe)),
        store=SimpleNamespace(),
        mirrors=SimpleNamespace(
            mirror=SimpleNamespace(MirrorCollection=lambda **kind: SimpleNamespace(values=list))
        ),
    )
    monkeypatch.setitem(sys.modules, "spack", spack)
    for name in ("config", "spec", "repo", "store", "mirrors", "mirrors.mirror"):
        module = spack
        for part in name.split("."):
            module = getattr(module, part)
        monkeypatch.setitem(sys.modules, f"spack.{name}", module)
    asked = json.dumps({"specs": [["libxml2", ""]], "tools": []})
    monkeypatch.setattr(sys, "argv", ["ask", asked])
    runpy.run_path(str(Path(recipes.__file__).with_name("ask_recipes.py")))
    (answer,) = json.loads(capsys.readouterr().out)["recipes"]
    assert answer["sources"] == [{"sha256": "ab" * 32, "urls": ["https://a.example/xmlts.tar.gz"]}]


def test_a_recipe_is_compared_with_the_hash_that_the_lock_has(tmp_path, monkeypatch, capsys):
    """In place of Spack stands what its specs and packages have."""
    own = tmp_path / "package.py"
    own.write_text("own")

    def spec(name, noted, first, external=""):
        """Return one that Spack hashes by its first recipe, or by the content of its own."""

        def content_hash(content=None):
            return first if content is None else content.decode()

        package = SimpleNamespace(content_hash=content_hash)
        return SimpleNamespace(
            name=name, external=external, package=package, package_hash=lambda: noted
        )

    class Gone(SimpleNamespace):
        @property
        def package(self):
            raise LookupError(self.name)

    specs = [
        spec("hpcc", "old", "new"),
        spec("hpl", "same", "same"),
        # Its recipe is not the first of its name.
        spec("mvapich2", "own", "another"),
        spec("gcc", "old", "new", external="/usr"),
        Gone(name="removed", external="", package_hash=lambda: "old"),
    ]
    repo = SimpleNamespace(filename_for_package_name=lambda name: str(own))
    path = SimpleNamespace(provider_index=None, repo_for_pkg=lambda spec: repo)
    environment = SimpleNamespace(all_specs=lambda: specs)
    parts = {
        "environment": SimpleNamespace(active_environment=lambda: environment),
        "repo": SimpleNamespace(PATH=path),
    }
    monkeypatch.setitem(sys.modules, "spack", SimpleNamespace(**parts))
    for name, module in parts.items():
        monkeypatch.setitem(sys.modules, f"spack.{name}", module)
    runpy.run_path(str(recipes.COMPARISON))
    assert json.loads(capsys.readouterr().out) == ["hpcc"]
