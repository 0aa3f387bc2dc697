import dataclasses
import json
import re
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import archspec.cpu
import pytest

from clustergate.benchmarks.registry import builds_on_request
from clustergate.core.files.marked_yaml import read_document
from clustergate.core.model import ClustergateError
from clustergate.stacks.builder import SetUp
from clustergate.stacks.lacking import Lack, LackError
from clustergate.stacks.manifest import Blas, Manifest, Program, write_manifest
from clustergate.stacks.spack import lock_choice, locks, provider, recipes
from clustergate.stacks.spack.composition import NO_SPECS, read_spack_request
from clustergate.stacks.spack.locks import (
    Host,
    committed_lock,
    disagreement,
    host,
    parse_lock,
    system_name,
)
from clustergate.stacks.spack.program import SpackProgram
from clustergate.stacks.spack.settings import spack_repo

LOCKS = sorted(spack_repo().glob("environments/*/locks/*.lock"))
HOST = Host("debian12", ("zen4", "x86_64_v4"))


@pytest.fixture
def text(data):
    return (data / "spack" / "openmpi-externals.lock").read_text()


def test_a_lock_tells_roots_and_who_provides_what(text):
    lock = parse_lock(text)
    assert [spec for spec, _ in lock.roots] == [
        "hpl@2.3",
        "openmpi@5.0.11",
        "intel-mpi-benchmarks@2021.7",
        "hpcc@1.5.0",
    ]
    mpi = lock.provider("hpl", "mpi")
    assert (mpi.name, mpi.version) == ("openmpi", "5.0.11")
    assert mpi == lock.root("openmpi") == lock.provider("hpcc", "mpi")
    assert lock.provider("hpl", "blas").name == "openblas"
    assert str(lock.root("hpl")) == "hpl@2.3/37uivvu"
    assert (lock.root("hpl").system, lock.root("hpl").target) == ("debian12", "x86_64_v4")


def test_a_lock_tells_what_it_takes_for_granted(text):
    needed = parse_lock(text).needed_files()
    assert "/usr/bin/gcc" in needed
    # The compiler's package names it, and nothing is built with it.
    assert "/usr/bin/gfortran" in text
    assert "/usr/bin/gfortran" not in needed
    assert "/home/user/clustergate/.clustergate/prefixes/openmpi-ccbdee38d9b9" in needed


def test_lock_says_what_is_compiled_and_how_long(text):
    made, taken = parse_lock(text).work().split("; ")
    assert re.match(r"compiles in about \d+ min on two cores ", made)
    assert "hpl 2.3" in made
    assert "openmpi" not in made
    assert taken.startswith("takes as it is ")
    assert "openmpi 5.0.11" in taken
    assert "hpl" not in taken
    made, stored, again = parse_lock(text).work(["hpl", "hpcc"]).split("; ")
    assert "hpl" not in made
    assert {"hpcc 1.5.0", "hpl 2.3"} == {*stored.removeprefix("has in the store ").split(", ")}
    assert again == taken


def test_an_mpi_library_that_is_compiled_takes_most_of_the_time(text):
    record = json.loads(text)
    for entry in record["concrete_specs"].values():
        entry.pop("external", None)
    alone = parse_lock(json.dumps(record)).work()
    assert int(re.findall(r"about (\d+) min", alone)[0]) > 19
    assert "takes as it is" not in alone


def test_duration_of_mvapich2_follows_the_fabric():
    """With mrail it took 41 and 43 minutes with all that it needs, with nemesis 15."""
    path = spack_repo() / "environments/mvapich2/locks/wheels/debian12-x86_64_v4.lock"
    record = json.loads(path.read_text())

    def minutes() -> int:
        return int(re.findall(r"about (\d+) min", parse_lock(json.dumps(record)).work())[0])

    assert minutes() == 41
    for entry in record["concrete_specs"].values():
        if entry["name"] == "mvapich2":
            entry["parameters"]["fabrics"] = "nemesis"
    assert minutes() == 22


def test_a_missing_root_says_what_to_do(text):
    with pytest.raises(ClustergateError, match=r"spack\.lock holds no mpich.*concretized again"):
        parse_lock(text).root("mpich")


def test_a_changed_lock_has_another_digest(text):
    assert parse_lock(text).digest != parse_lock(text + "\n").digest


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '{"roots": [], "concrete_specs": 3}'])
def test_a_damaged_lock_is_named(damaged):
    with pytest.raises(ClustergateError, match=r"kept\.lock is not a Spack lock"):
        parse_lock(damaged, "kept.lock")


def test_a_lock_that_was_cut_is_refused(text):
    record = json.loads(text)
    del record["concrete_specs"][parse_lock(text).provider("hpl", "mpi").hash]
    with pytest.raises(ClustergateError, match="not a Spack lock"):
        parse_lock(json.dumps(record))


def test_specs_that_the_lock_does_not_hold_are_told(text):
    lock = parse_lock(text)
    specs = [spec for spec, _ in lock.roots]
    assert disagreement(lock, specs[::-1]) == ""
    changed = ["hpl@2.2" if spec == "hpl@2.3" else spec for spec in specs]
    assert disagreement(lock, changed) == "lacks 'hpl@2.2', holds 'hpl@2.3' beside"


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ({"ID": "debian", "VERSION_ID": "12"}, "debian12"),
        ({"ID": "ubuntu", "VERSION_ID": "24.04"}, "ubuntu24.04"),
        ({"ID": "rhel", "VERSION_ID": "9.4"}, "rhel9"),
        ({"ID": "arch"}, "arch"),
    ],
)
def test_systems_are_called_as_spack_calls_them(release, name):
    assert system_name(release) == name


def test_the_host_has_its_own_name_and_that_of_its_family():
    assert len(host().targets) == 2


def test_a_committed_lock_belongs_to_system_processor_and_blas(tmp_path):
    for name in ("debian12-x86_64_v4", "debian12-x86_64_v4-amdblis", "debian12-zen5", "rhel9-zen4"):
        (tmp_path / f"{name}.lock").touch()

    def chosen(machine=HOST, **wishes):
        path = committed_lock(tmp_path, machine, **wishes)
        return path and path.stem

    assert chosen() == "debian12-x86_64_v4"
    assert chosen(blas="amdblis") == "debian12-x86_64_v4-amdblis"
    assert chosen(blas="mkl") is None
    assert chosen(target="zen5") == "debian12-zen5"
    assert chosen(target="x86_64_v3") is None
    assert chosen(Host("rhel9", HOST.targets)) == "rhel9-zen4"
    assert chosen(Host("rhel8", HOST.targets)) is None


X86_64 = sorted(name for name, one in archspec.cpu.TARGETS.items() if one.family.name == "x86_64")


COMPILED = ["mpich", "mvapich2", "openmpi"]
# Intel's own download is no source, so its library is taken as a wheel alone.
KINDS = [*((mpi, "wheels") for mpi in ("intel-mpi", *COMPILED)), *((mpi, "") for mpi in COMPILED)]


@pytest.mark.parametrize(("mpi", "externals"), KINDS)
@pytest.mark.parametrize("name", X86_64)
def test_a_processor_of_x86_64_finds_a_lock_that_it_can_run(mpi, externals, name):
    processor = archspec.cpu.TARGETS[name]
    machine = Host("debian12", (name, processor.generic.name))
    path = committed_lock(spack_repo() / "environments" / mpi / "locks" / externals, machine)
    without = ["x86_64"] if externals else ["x86_64", "x86_64_v2"]
    assert (path is None) == (processor.generic.name in without)
    if path is not None:
        built = {spec.target for spec in parse_lock(path.read_text()).specs.values()}
        assert built <= {one.name for one in (processor, *processor.ancestors)}


@pytest.mark.parametrize("path", LOCKS, ids=str)
def test_committed_locks_are_of_the_environments_beside_them(path):
    committed = read_document((path.parents[1] / "spack.yaml").read_text()).data
    lock = parse_lock(path.read_text(), str(path))
    assert disagreement(lock, committed["spack"]["specs"]) == ""


class StandIn(SpackProgram):
    """Stands for Spack: answers as the scripts do, and concretizes to a text."""

    text = ""
    changed: ClassVar[list[str]] = []
    recipes: ClassVar[list[dict[str, object]]] = []
    calls: ClassVar[list[str]] = []

    def run(self, arguments: Sequence[str], *others: object, **options: object) -> str:
        folder, words = Path(arguments[1]), arguments[2:]
        self.calls.append(Path(words[-1]).name if str(recipes.COMPARISON) in words else words[0])
        if str(recipes.COMPARISON) in words:
            there = (folder / "spack.lock").is_file()
            return json.dumps(self.changed if there else [])
        if str(recipes.SCRIPT) in words:
            return json.dumps({"recipes": self.recipes, "elsewhere": False, "mirrors": []})
        if "concretize" in words:
            (folder / "spack.lock").write_text(self.text)
        if "install" in words:
            raise ClustergateError(NO_SPECS(at="here"))
        return ""


@pytest.fixture
def spack(tmp_path, text, monkeypatch):
    """Return a stand-in for Spack, on a machine without libtool and bison."""
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool", "bison"])
    spack = StandIn(tmp_path, "1.1.0", tmp_path)
    for name, value in {"text": text, "changed": [], "recipes": [], "calls": []}.items():
        monkeypatch.setattr(StandIn, name, value)

    def composed(request, *others):
        request.folder.mkdir(parents=True, exist_ok=True)
        return spack, [], None

    monkeypatch.setattr(provider, "_compose_environment", composed)
    monkeypatch.setattr(provider, "build_tools", lambda *others: {})
    return spack


@pytest.fixture
def request_(tmp_path, spack):
    return read_spack_request("spack-openmpi", tmp_path, {"externals": "wheels"})


@pytest.fixture
def no_committed(monkeypatch):
    monkeypatch.setattr(lock_choice, "committed_lock", lambda request: None)


@pytest.fixture
def committed(request_, monkeypatch):
    """Return a committed lock that fits once libtool and bison are installed."""
    (file,) = spack_repo().glob("environments/openmpi/locks/wheels/debian12-x86_64_v4.lock")
    monkeypatch.setattr(locks, "host", lambda: HOST)
    monkeypatch.setattr(locks.Lock, "needed_files", lambda lock: [])
    monkeypatch.setattr(locks.Lock, "compilers", lambda lock: {})
    return file.name


def silent(sentence: str) -> None:
    pass


def kept_text(request) -> str:
    return lock_choice.kept_lock(request, locks.host()).read_text()


def test_kept_lock_renewed_after_new_build_tools(request_, spack, no_committed, monkeypatch):
    assert provider.prepare(request_, say=silent).origin.startswith(str(request_.state))
    said: list[str] = []
    assert lock_choice.choose(request_, said.append) is not None
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["bison"])
    assert lock_choice.choose(request_, said.append) is None
    assert said == ["concretizing again, to use the operating system's libtool"]


def test_package_installed_while_concretizing_is_not_there(
    request_, spack, no_committed, monkeypatch
):
    """Spack may have looked before: then the lock is without it."""

    def find(*others):
        monkeypatch.setattr(recipes, "tools_to_compile", lambda: [])
        return {}

    monkeypatch.setattr(provider, "build_tools", find)
    provider.prepare(request_, say=silent)
    assert lock_choice.tools_since(request_) == ["bison", "libtool"]


def test_a_kept_lock_holds_when_build_tools_are_gone(request_, spack, no_committed, monkeypatch):
    provider.prepare(request_, say=silent)
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool", "bison", "m4"])
    assert lock_choice.choose(request_, silent) is not None


def test_a_lock_that_came_from_another_machine_holds(request_, spack, no_committed, monkeypatch):
    provider.prepare(request_, say=silent)
    lock_choice.tools_beside(lock_choice.kept_lock(request_, locks.host())).unlink()
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: [])
    assert lock_choice.choose(request_, silent) is not None


def test_committed_lock_waits_for_its_tools(request_, spack, committed, monkeypatch):
    """All at once: the tools that it takes, and each source of each package that it pins."""
    source = {"sha256": "ab" * 32, "urls": ["https://a.example/libnl-3.3.0.tar.gz"]}
    libnl = {"name": "libnl", "version": "3.3.0", "needs": [], "sources": [source]}
    monkeypatch.setattr(StandIn, "recipes", [libnl])
    monkeypatch.setattr(recipes, "is_reachable", lambda url: False)
    prepared = provider.prepare(request_, say=silent)
    assert [lack.what for lack in prepared.absent] == [
        "libtool",
        "libnl 3.3.0: libnl-3.3.0.tar.gz (sha256 abababababab…)",
    ]
    assert committed in prepared.origin
    assert "concretize" not in spack.calls


def test_lock_without_the_committed_tools_is_told(request_, spack, committed, monkeypatch):
    """A lock is made without the tools of the committed one and that is told."""
    said: list[str] = []
    monkeypatch.setattr(StandIn, "recipes", [{"name": "hpl", "needs": [], "sources": []}])
    assert "concretized for this site" in provider.prepare(request_, say=said.append).origin
    (told,) = [one for one in said if committed in one]
    assert f"{committed} needs the operating system's libtool (not installed); to use it, `" in told
    # As often as it is built from that one, its origin says why.
    again = provider.prepare(request_, say=silent)
    assert f"since the committed {committed} needs the operating system's libtool" in again.origin


def test_the_committed_lock_wins_as_soon_as_it_fits(request_, spack, committed, monkeypatch):
    monkeypatch.setattr(StandIn, "recipes", [{"name": "hpl", "needs": [], "sources": []}])
    provider.prepare(request_, say=silent)
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: [])
    said: list[str] = []
    assert provider.prepare(request_, say=said.append).origin.endswith(f"{committed} (committed)")
    kept = lock_choice.kept_lock(request_, locks.host())
    assert said[0] == f"taking the committed lock {committed}, which fits, not {kept}"


def test_built_stack_stays_and_is_told_of_the_lock(
    request_, spack, committed, monkeypatch, tmp_path
):
    monkeypatch.setattr(StandIn, "recipes", [{"name": "hpl", "needs": [], "sources": []}])
    own = provider.prepare(request_, say=silent)
    there = str(tmp_path)
    key = provider.key_of_build(request_, own.lock)
    manifest = Manifest(
        *(request_.stack, "spack"),
        launcher=there,
        mpi_library=there,
        proof_library=there,
        build_key=key,
    )
    write_manifest(tmp_path, manifest)
    spack.calls.clear()
    for tools, told in ((["libtool"], False), ([], True)):
        monkeypatch.setattr(recipes, "tools_to_compile", lambda tools=tools: tools)
        said: list[str] = []
        set_up = SetUp(request_.stack, tmp_path, said.append, {"externals": "wheels"})
        assert provider.provide(set_up) == manifest
        command = f"`clustergate setup --stack {request_.stack} --refresh`"
        assert any(f"{committed} fits now: {command}" in one for one in said) == told
    assert spack.calls == []


def test_what_is_on_request_is_looked_for_where_somebody_asks(
    request_, spack, committed, monkeypatch, tmp_path
):
    monkeypatch.setattr(StandIn, "recipes", [{"name": "hpl", "needs": [], "sources": []}])
    there, build = str(tmp_path / "bin" / "mpirun"), builds_on_request()["stream5"]
    manifest = Manifest(
        *(request_.stack, "spack"),
        launcher=str(tmp_path),
        mpi_library=str(tmp_path),
        proof_library=str(tmp_path),
        blas=Blas("openblas", "1", str(tmp_path)),
        build_key=provider.key_of_build(request_, provider.prepare(request_, say=silent).lock),
        programs={name: Program(unavailable="on request") for name in build.programs},
    )
    write_manifest(tmp_path, manifest)
    made: list[str] = []

    class Made:
        def __init__(self, set_up, tools): ...

        def make(self, own):
            made.extend(own)
            return {name: Program(path=there) for name in build.programs}, {}

    monkeypatch.setattr(provider, "Builder", Made)
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool"])
    set_up = SetUp(request_.stack, tmp_path, silent, {"externals": "wheels"})
    assert provider.provide(set_up) == manifest
    assert made == []
    asking = dataclasses.replace(set_up, applications=["stream5"])
    made_of_it = provider.provide(asking)
    assert {one.path for one in made_of_it.programs.values()} == {there}
    # What is there may be of older sources.
    write_manifest(tmp_path, dataclasses.replace(manifest, programs={}))
    provider.provide(set_up)
    assert made == ["stream5", "stream5"]


def test_a_lock_of_another_recipe_is_told_and_a_new_one_is_made(
    request_, spack, committed, monkeypatch
):
    """Spack would install what the lock pins under the old hash: the binary stays as it was."""
    monkeypatch.setattr(recipes, "tools_to_compile", list)
    monkeypatch.setattr(StandIn, "changed", ["hpcc"])
    said: list[str] = []
    first = provider.prepare(request_, say=said.append)
    assert "concretized for this site" in first.origin
    assert any(f"{committed} is of another recipe of hpcc" in one for one in said)
    assert any("spack-repo/README.md says how to commit it" in one for one in said)
    assert kept_text(request_) == spack.text
    monkeypatch.setattr(StandIn, "changed", [])
    spack.calls.clear()
    again = provider.prepare(request_, say=silent)
    assert f"since the committed {committed} is of another recipe of hpcc)" in again.origin
    assert "concretize" not in spack.calls


def test_an_own_lock_of_another_recipe_is_made_anew(request_, spack, no_committed, monkeypatch):
    provider.prepare(request_, say=silent)
    monkeypatch.setattr(StandIn, "changed", ["libxml2"])
    monkeypatch.setattr(StandIn, "text", spack.text + "\n")
    spack.calls.clear()
    said: list[str] = []
    provider.prepare(request_, say=said.append)
    assert any("is of another recipe of libxml2" in one for one in said)
    assert "concretize" in spack.calls
    assert kept_text(request_).endswith("}\n")


def test_without_a_compiler_what_is_known_is_told(request_, spack, no_committed, monkeypatch):
    needs = [{"name": "mvapich2", "version": "2", "needs": ["fortran"], "sources": []}]
    monkeypatch.setattr(StandIn, "recipes", needs)
    missing = {"gfortran": Lack("gfortran", "gfortran")}
    monkeypatch.setattr(
        recipes, "missing_tools", lambda names, *path: [missing[n] for n in names if n in missing]
    )
    said: list[str] = []
    with pytest.raises(LackError) as raised:
        provider.prepare(request_, say=said.append)
    assert raised.value.lacks == (missing["gfortran"],)
    assert said[-1].startswith("without a compiler Spack cannot concretize")


def test_recipes_indexed_once_before_installing(request_, no_committed, monkeypatch):
    """While one call makes the index, another that needs it fails after two minutes."""
    at_once, indexing = [], threading.Semaphore(1)
    compare = recipes.other_than_locked

    def indexed(spack, request):
        at_once.append(indexing.acquire(blocking=False))
        time.sleep(0.05)
        indexing.release()
        return compare(spack, request)

    monkeypatch.setattr(recipes, "other_than_locked", indexed)

    def install(number: int) -> None:
        request = dataclasses.replace(request_, stack=f"{request_.stack}-{number}")
        with pytest.raises(ClustergateError):
            provider._install(provider.prepare(request, say=silent), silent)

    with ThreadPoolExecutor() as pool:
        list(pool.map(install, range(4)))
    assert len(at_once) >= 4
    assert all(at_once)
    order = StandIn.calls
    assert order.index(recipes.COMPARISON.name) < order.index("install")
    assert order.count("install") == 4
