"""spack-repo/ agrees with itself and with the suite, and a real Spack takes it."""

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from clustergate.benchmarks.build import Compiled
from clustergate.benchmarks.registry import builds
from clustergate.core.model import ClustergateError
from clustergate.core.paths import checkout, state_dir
from clustergate.stacks.kernels import FILES, NODE_KERNELS
from clustergate.stacks.spack import lock_choice, locks, recipes
from clustergate.stacks.spack.bootstrap import BUILTIN, read_pins
from clustergate.stacks.spack.composition import read_spack_request
from clustergate.stacks.spack.libraries import MPI_PACKAGES, package_name
from clustergate.stacks.spack.locks import Host
from clustergate.stacks.spack.program import SpackProgram, find_spack

ROOT = checkout() / "spack-repo"
REPOSITORY = ROOT / "spack_repo" / "clustergate"
RECIPES = sorted(REPOSITORY.glob("packages/*/package.py"))
OF_OUR_SOURCES = [recipe for recipe in RECIPES if "suite_sources" in recipe.read_text()]
ENVIRONMENTS = sorted(ROOT.glob("environments/*/spack.yaml"))
LOCKS = sorted(ROOT.glob("environments/*/locks/*.lock"))
CHOICES = sorted(ROOT.glob("choices/*/*.yaml"))
FABRICS = [path for path in CHOICES if path.parent.name == "fabrics"]
BLAS = [path for path in CHOICES if path.parent.name == "blas"]
BENCHMARKS = {"hpl", "hpcc", "intel-mpi-benchmarks", "clustergate-kernels"}
# What a program of a lock may be linked with, or start, that Spack did not build.
FROM_THE_SYSTEM = {"gcc", "glibc", "openssh"}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def suite_sources(folder: Path | None = None) -> ModuleType:
    path = REPOSITORY / "suite_sources.py"
    found = importlib.util.spec_from_file_location("suite_sources", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    if folder is not None:
        vars(module)["FOLDER"] = folder
    return module


def compiled_sources(recipe: Path) -> tuple[str, ...]:
    (names,) = re.findall(r"^SOURCES = \((.*?)\)$", recipe.read_text(), re.MULTILINE | re.DOTALL)
    return tuple(re.findall(r'"([^"]+)"', names))


def promised_digest(recipe: Path) -> str:
    pattern = r'"sources",\s+default="(\w+)",\s+values=\("(\w+)",\)'
    ((default, value),) = re.findall(pattern, recipe.read_text())
    assert default == value
    return str(value)


def recipe_of(package: str) -> Path:
    return REPOSITORY / "packages" / package.replace("-", "_") / "package.py"


def test_two_recipes_compile_sources_of_the_suite() -> None:
    assert [recipe.parent.name for recipe in OF_OUR_SOURCES] == ["clustergate_kernels", "hpcc"]


@pytest.mark.parametrize("recipe", OF_OUR_SOURCES, ids=lambda path: path.parent.name)
def test_a_changed_source_is_another_build(recipe: Path) -> None:
    found = suite_sources().digest(compiled_sources(recipe))
    assert promised_digest(recipe) == found, (
        f"the C sources changed: write {found} into both places of {recipe}, and concretize the "
        "locks of spack-repo/environments again (spack-repo/README.md says how)"
    )


def test_the_recipes_compile_what_the_wheels_provider_compiles() -> None:
    kernels = compiled_sources(recipe_of("clustergate-kernels"))
    ours = [one for one in builds().values() if one.package == NODE_KERNELS.package]
    recipes = [recipe for one in ours for recipe in one.recipes if isinstance(recipe, Compiled)]
    files = {file.name for recipe in recipes for file in recipe.files}
    assert sorted(kernels) == sorted({*FILES, *files})
    programs = [name.removesuffix(".c") for name in kernels if name.endswith(".c")]
    assert sorted(programs) == sorted(
        [
            *("progress", "proof", *NODE_KERNELS.programs),
            *(name for one in ours for name in one.programs),
        ]
    )
    text = recipe_of("clustergate-kernels").read_text()
    for name in programs:
        assert name in text.partition("def install")[2]


def test_a_source_of_another_digest_is_refused_with_the_next_step() -> None:
    sources = suite_sources()
    assert sources.complaint(["proof.c"], sources.digest(["proof.c"])) == ""
    assert "concretize again" in sources.complaint(["proof.c"], "0" * 12)


def test_repository_outside_of_the_checkout_refused(tmp_path: Path) -> None:
    """A repository outside of the checkout is refused with the next step."""
    sources = suite_sources(tmp_path / "gone")
    assert "in a clone of clustergate" in sources.complaint(["proof.c"], "0" * 12)


def test_digests_tell_names_and_contents_apart(tmp_path: Path) -> None:
    sources = suite_sources(tmp_path)
    (tmp_path / "a.c").write_text("x")
    (tmp_path / "b.c").write_text("y")
    before = sources.digest(["a.c", "b.c"])
    assert sources.digest(["b.c", "a.c"]) == before
    (tmp_path / "a.c").write_text("y")
    (tmp_path / "b.c").write_text("x")
    assert sources.digest(["a.c", "b.c"]) != before


def test_pins_name_upstream_releases() -> None:
    pins = read_pins(ROOT / "pins.yaml")
    for pin in (pins.spack, pins.packages):
        assert pin.tag == f"v{pin.version}"
        assert pin.url.startswith("https://github.com/spack/")


def test_the_repository_is_one_of_the_pinned_package_interface() -> None:
    assert read_yaml(REPOSITORY / "repo.yaml") == {
        "repo": {"namespace": "clustergate", "api": "v2.2"}
    }
    for recipe in RECIPES:
        assert recipe.parent.name.isidentifier()


def test_every_stack_is_there() -> None:
    found = {path.parent.name for path in ENVIRONMENTS}
    assert found >= {"openmpi", "mpich", "intel-mpi", "mvapich2", "mvapich4"}


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=name_of)
def test_an_environment_holds_every_benchmark_and_one_mpi_library(path: Path) -> None:
    environment = read_yaml(path)["spack"]
    packages = [package_name(spec) for spec in environment["specs"]]
    mpi = set(packages) - BENCHMARKS
    assert set(packages) - mpi == BENCHMARKS
    assert len(mpi) == 1
    assert mpi <= set(MPI_PACKAGES)
    assert environment["packages"]["mpi"]["require"] == [*mpi]
    assert environment["concretizer"] == {"unify": True}
    assert environment["view"] is False


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=name_of)
def test_environments_ask_for_the_same_benchmarks(path: Path) -> None:
    def benchmarks(environment: Path) -> list[str]:
        specs = read_yaml(environment)["spack"]["specs"]
        return [spec for spec in specs if package_name(spec) in BENCHMARKS]

    assert benchmarks(path) == benchmarks(ENVIRONMENTS[0])


@pytest.mark.parametrize("path", CHOICES, ids=name_of)
def test_a_choice_is_about_packages_only(path: Path) -> None:
    choice = read_yaml(path)
    assert list(choice) == ["packages"]
    if path.parent.name == "blas":
        (provider,) = choice["packages"]["blas"]["require"]
        assert provider in choice["packages"]
    else:
        known = {*MPI_PACKAGES, "libfabric", "ucx", "rdma-core"}
        assert set(choice["packages"]) <= known


def locked(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8"))["concrete_specs"].values())


def linked(path: Path) -> set[str]:
    """Return the hashes of what the programs of a lock are linked with or run with."""
    lock = json.loads(path.read_text(encoding="utf-8"))
    waiting = [root["hash"] for root in lock["roots"]]
    found: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key in found:
            continue
        found.add(key)
        for edge in lock["concrete_specs"][key].get("dependencies", ()):
            if set(edge["parameters"]["deptypes"]) & {"link", "run"}:
                waiting.append(edge["hash"])
    return found


def paths_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for part in value.values():
            yield from paths_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from paths_in(part)
    elif isinstance(value, str) and re.search(r"(^|[\s=:'\"])/\w", value):
        yield value


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_a_lock_holds_no_path_of_a_machine(path: Path) -> None:
    for path_in_lock in paths_in(json.loads(path.read_text(encoding="utf-8"))):
        assert re.fullmatch(r"/usr(/bin/[\w.+-]+)?", path_in_lock)


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_programs_of_a_lock_need_compiler_and_libc_alone(
    path: Path,
) -> None:
    """The programs of a lock need nothing of the system but compiler and libc."""
    needed = [spec for spec in locked(path) if spec["hash"] in linked(path)]
    external = {spec["name"] for spec in needed if spec.get("external")}
    assert external <= FROM_THE_SYSTEM


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_a_lock_is_of_the_system_and_the_target_in_its_name(path: Path) -> None:
    system, target, *blas = path.stem.split("-")
    specs = locked(path)
    assert {spec["arch"]["platform_os"] for spec in specs} == {system}
    targets = [spec["arch"]["target"] for spec in specs if not spec.get("external")]
    assert {name if isinstance(name, str) else name["name"] for name in targets} == {target}
    assert (blas or ["openblas"])[0] in {spec["name"] for spec in specs}


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_a_lock_has_the_specs_of_its_environment(path: Path) -> None:
    specs = read_yaml(path.parents[1] / "spack.yaml")["spack"]["specs"]
    roots = json.loads(path.read_text(encoding="utf-8"))["roots"]
    assert sorted(root["spec"] for root in roots) == sorted(specs)


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_a_lock_is_of_the_sources_that_the_recipes_compile(path: Path) -> None:
    ours = {spec["name"]: spec for spec in locked(path) if spec["namespace"] == "clustergate"}
    for recipe in OF_OUR_SOURCES:
        found = ours[recipe.parent.name.replace("_", "-")]["parameters"]["sources"]
        assert found in (promised_digest(recipe), [promised_digest(recipe)]), (
            f"{path} was made for other C sources; concretize it again (spack-repo/README.md)"
        )


# With the MPI library and OpenBLAS from their wheels.
WHEEL_LOCKS = sorted(ROOT.glob("environments/*/locks/wheels/*.lock"))


def stack_of(path: Path) -> str:
    return f"spack-{path.parents[2].name}"


def test_stacks_of_the_local_machine_have_locks_per_family() -> None:
    """The stacks of the local machine have a lock with wheels for each family."""
    for mpi in ("intel-mpi", "mpich", "mvapich2", "openmpi"):
        families = {path.stem for path in WHEEL_LOCKS if stack_of(path) == f"spack-{mpi}"}
        assert families == {f"debian12-x86_64_v{level}" for level in (2, 3, 4)}


@pytest.mark.parametrize("path", WHEEL_LOCKS, ids=stack_of)
def test_lock_with_wheels_taken_where_build_tools_are(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, target = path.stem.split("-")
    request = read_spack_request(stack_of(path), tmp_path, {"externals": "wheels"})
    monkeypatch.setattr(locks, "host", lambda: Host(system, (target,)))
    monkeypatch.setattr(locks.Lock, "needed_files", lambda lock: [])
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: [])
    said: list[str] = []
    monkeypatch.setattr(locks.Lock, "compilers", lambda lock: {})
    chosen = lock_choice.choose(request, said.append)
    assert said == []
    assert chosen is not None
    assert str(tmp_path) in chosen.text
    assert all(spec.target == target for spec in chosen.lock.specs.values() if not spec.external)
    monkeypatch.setattr(recipes, "tools_to_compile", lambda: ["libtool"])
    assert lock_choice.choose(request, said.append) is None
    told = f"{path.name} needs the operating system's libtool (not installed); to use it, `"
    assert told in lock_choice.unused(request)


@pytest.mark.parametrize("path", WHEEL_LOCKS, ids=stack_of)
def test_lock_with_wheels_names_no_path_and_todays_sources(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert (
        f'"{lock_choice.STATE}/prefixes/' in text
        or f'"{lock_choice.STATE}/spack/externals/' in text
    )
    for named in paths_in(json.loads(text)):
        assert re.fullmatch(r"/usr(/bin/[\w.+-]+)?", named)
    test_a_lock_is_of_the_sources_that_the_recipes_compile(path)


class RealSpack:
    """A Spack of this machine, in an environment of its own: nothing is written into it.

    Its index of all recipes, two minutes' work, is kept where the provider keeps it.
    """

    def __init__(self, program: SpackProgram, environment: Path) -> None:
        self.program = program
        self.environment = environment

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        spack = str(self.program.root / "bin" / "spack")
        return subprocess.run(
            [spack, "--color=never", "-e", str(self.environment), *arguments],
            env=self.program.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def concretized(self, specs: list[str], *scopes: Path) -> dict[str, Any]:
        """Return the lock of an environment with these specs, each concretized for itself."""
        written = self.environment / "spack.yaml"
        environment = read_yaml(written)
        environment["spack"] |= {
            "include": [str(scope) for scope in scopes],
            "specs": specs,
            "concretizer": {"unify": False, "reuse": False},
        }
        written.write_text(yaml.safe_dump(environment))
        ended = self.run("concretize")
        assert ended.returncode == 0, ended.stdout
        found: dict[str, Any] = json.loads((self.environment / "spack.lock").read_text())
        return found


@pytest.fixture
def spack(tmp_path: Path) -> RealSpack:
    """Return a Spack that knows the builtin recipes, or skip with the reason."""
    try:
        found = find_spack(state_dir())
    except ClustergateError as missing:
        pytest.skip(str(missing))
    environment: dict[str, Any] = {"specs": [], "view": False}
    # Spack would keep a database beside its own sources, which a packed folder could not have.
    environment["config"] = {"install_tree": {"root": str(tmp_path / "store")}, "deprecated": True}
    brought = state_dir() / "spack" / "packages" / BUILTIN
    if brought.is_dir():
        environment["repos"] = {"builtin": str(brought)}
    (tmp_path / "spack.yaml").write_text(yaml.safe_dump({"spack": environment}))
    real = RealSpack(found, tmp_path)
    located = real.run("location", "--repo", "builtin")
    if located.returncode:
        pytest.skip(f"{found.root} has no builtin recipes on disk: {located.stdout.strip()}")
    return real


@pytest.mark.spack
def test_real_spack_finds_no_fault_in_the_recipes(
    spack: RealSpack,
) -> None:
    """A real spack takes the repository and finds no fault in its recipes."""
    added = spack.run("repo", "add", str(REPOSITORY))
    assert added.returncode == 0, added.stdout
    names = sorted(recipe.parent.name.replace("_", "-") for recipe in RECIPES)
    assert spack.run("list", "--repo", "clustergate").stdout.split() == names
    audited = spack.run("audit", "packages", *names)
    assert audited.returncode == 0, audited.stdout
    verdicts = [line for line in audited.stdout.splitlines() if line.startswith("PKG-")]
    assert verdicts
    assert all(verdict.endswith(": passed") for verdict in verdicts), audited.stdout


@pytest.mark.spack
@pytest.mark.parametrize("path", FABRICS, ids=lambda path: path.stem)
def test_every_mpi_library_concretizes_with_every_fabric(spack: RealSpack, path: Path) -> None:
    roots = {
        package_name(spec): spec
        for environment in ENVIRONMENTS
        for spec in read_yaml(environment)["spack"]["specs"]
        if package_name(spec) not in BENCHMARKS
    }
    lock = spack.concretized([*roots.values()], path)
    found = [lock["concrete_specs"][root["hash"]] for root in lock["roots"]]
    assert {spec["name"] for spec in found} == set(roots)
    choice = read_yaml(path)["packages"]
    for spec in found:
        for word in " ".join(choice.get(spec["name"], {}).get("require", [])).split():
            name, _, value = word.partition("=")
            chosen = spec["parameters"][name]
            assert value in (chosen if isinstance(chosen, list) else [chosen])


@pytest.mark.spack
@pytest.mark.parametrize("path", BLAS, ids=lambda path: path.stem)
def test_hpl_concretizes_with_every_blas(spack: RealSpack, path: Path) -> None:
    spack.run("repo", "add", str(REPOSITORY))
    choice = read_yaml(path)["packages"]
    lock = spack.concretized(["hpl@2.3"], path)
    (root,) = lock["roots"]
    providers = [
        edge["name"]
        for edge in lock["concrete_specs"][root["hash"]]["dependencies"]
        if "blas" in edge["parameters"]["virtuals"]
    ]
    assert providers == choice["blas"]["require"]


def as_spack_has_it(requirement: Requirement) -> tuple[str, str]:
    """Return a requirement's package and its versions in Spack's words: "numpy", "1.26:2"."""
    bounds = {one.operator: one.version for one in requirement.specifier}
    *before, last = bounds.get("<", "").split(".")
    upper = ".".join([*before, str(int(last) - 1)]) if last else ""
    return requirement.name.lower().replace(".", "-"), f"{bounds['>=']}:{upper}"


def test_the_recipe_of_the_suite_depends_on_what_its_package_does() -> None:
    text = (checkout() / "pyproject.toml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"\ndependencies = \[(.*?)\n\]\n", text, re.DOTALL)
    needed = dict(
        as_spack_has_it(Requirement(one)) for one in re.findall(r'^    "([^"]+)"', listed, re.M)
    )
    assert needed["numpy"] == "1.26:2"
    # What `compare` and `parse` call, this has; ReFrame's comparisons want 1.39.
    needed["polars"] = "1.29:1"
    # Spack replaces no ReFrame of anybody's own, so that it has the one that is tested.
    needed["reframe-hpc"] = "4.10.4:4.10"
    recipe = recipe_of("py-clustergate").read_text(encoding="utf-8")
    held = dict(re.findall(r'"(?:py-)?([a-z0-9-]+)@([\d.:]+)[^"]*"', recipe))
    assert {name: held.get(name, "") for name in needed} == needed
