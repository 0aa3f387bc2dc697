"""Packing for a machine without a network, and unpacking there."""

import dataclasses
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from clustergate.airgap import folder as airgap
from clustergate.airgap import pack as packing
from clustergate.airgap import unpack as unpacking
from clustergate.airgap.folder import Contents, Layout, PackedStack
from clustergate.airgap.pack import Wanted, copy_clone, tidy_mirror
from clustergate.model import ClustergateError
from clustergate.paths import checkout, state_dir
from clustergate.stacks import prefixes
from clustergate.stacks.manifest import read_manifest
from clustergate.stacks.spack import bootstrap
from clustergate.stacks.spack.locks import Host

# What pip 23.2.1 said: no such version, no network, a changed archive.
PIP = {
    "no wheel": "ERROR: Could not find a version that satisfies the requirement rich==1.0 (from "
    "versions: 13.0)\nERROR: No matching distribution found for rich==1.0\n",
    "hash": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have "
    "updated the package versions, please update the hashes.\n",
    "disk": "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on "
    "device\n",
    "nothing": "",
}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("no wheel", "No matching distribution found for rich==1.0); check the network"),
        ("hash", "does not match its pinned checksum, so it is refused"),
        ("disk", "the disk is full while installing wheels"),
        ("nothing", "pip gives no reason"),
    ],
)
def test_what_pip_says_becomes_one_sentence(output, said):
    sentence = str(prefixes.pip_failure(PIP[output], "wheels"))
    assert said in sentence
    assert "\n" not in sentence


CONTENTS = Contents(
    suite="v1",
    machine="x86_64",
    stacks=(PackedStack("spack-openmpi", "a.lock", "debian12", "zen4"),),
    absent=("HPL could not be had",),
    files={"locks/a.lock": "0"},
)


def test_a_description_is_read_as_it_was_written():
    assert airgap.parse_contents(airgap.as_text(CONTENTS)) == CONTENTS


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 2, "stacks": [{}]}'])
def test_a_damaged_description_is_a_sentence(text):
    with pytest.raises(ClustergateError, match=r"airgap\.json is damaged .* copy the folder again"):
        airgap.parse_contents(text)


def test_a_description_of_another_version_names_the_clone_in_the_folder():
    text = airgap.as_text(CONTENTS).replace('"schema": 2', '"schema": 99')
    with pytest.raises(
        ClustergateError, match="another version of the suite; unpack with the clone"
    ):
        airgap.parse_contents(text)


def test_a_folder_that_was_not_packed_to_its_end_is_not_unpacked(tmp_path):
    (tmp_path / airgap.UNFINISHED).touch()
    with pytest.raises(ClustergateError, match="was interrupted; run `ci/airgap pack` on it"):
        unpacking.unpack(tmp_path, tmp_path / "state", say=print)
    (tmp_path / airgap.UNFINISHED).unlink()
    with pytest.raises(ClustergateError, match="name a folder that `ci/airgap pack` made"):
        unpacking.unpack(tmp_path, tmp_path / "state", say=print)
    assert not (tmp_path / "state").exists()


def packed(folder: Path, **changed: object) -> Layout:
    """Make a folder that holds one source and nothing to install."""
    layout = Layout(folder)
    archive = layout.mirror / "_source-cache" / "archive" / "ab" / "ab.tar.gz"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"sources")
    layout.locks.mkdir()
    (layout.locks / "a.lock").write_text("{}")
    for pattern in airgap.DECIDING:
        for path in checkout().glob(pattern):
            target = layout.clone / path.relative_to(checkout())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    described = dataclasses.replace(
        CONTENTS,
        machine=os.uname().machine,
        files=airgap.checksums(folder),
        **changed,  # type: ignore[arg-type]
    )
    layout.description.write_text(airgap.as_text(described))
    return layout


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_copy_is_found_before_anything_is_installed(tmp_path, damage):
    layout = packed(tmp_path / "folder")
    name = next(name for name in airgap.checksums(layout.folder) if name.endswith("ab.tar.gz"))
    if damage == "missing":
        (layout.folder / name).unlink()
    else:
        (layout.folder / name).write_bytes(b"source?")
    with pytest.raises(ClustergateError, match=rf"ab\.tar\.gz .*{damage}.*; copy the folder again"):
        unpacking.unpack(layout.folder, tmp_path / "state", say=print)
    assert not (tmp_path / "state").exists()


def test_what_the_description_does_not_list_is_left_aside(tmp_path, monkeypatch):
    layout = packed(tmp_path / "folder", stacks=())
    for extra in (layout.sources / "hpl-2.3.tar.gz", layout.mirror / "_source-cache" / "x"):
        extra.parent.mkdir(parents=True, exist_ok=True)
        extra.write_text("brought along by somebody")
    monkeypatch.setattr(prefixes, "install_prefix", lambda *arguments: None)
    said: list[str] = []
    unpacking.unpack(layout.folder, tmp_path / "state", say=said.append)
    assert any("ignored, since" in line and "sources/hpl-2.3.tar.gz" in line for line in said)
    assert not list((tmp_path / "state").rglob("hpl*"))


def test_only_listed_files_are_copied(tmp_path):
    layout = packed(tmp_path / "folder")
    (layout.mirror / "_source-cache" / "x").write_text("brought along by somebody")
    contents = airgap.read_contents(layout)
    unpacking._place_all(layout.mirror, contents, tmp_path / "mirror")
    copied = [path.name for path in (tmp_path / "mirror").rglob("*") if path.is_file()]
    assert copied == ["ab.tar.gz"]


@pytest.mark.parametrize(
    "changed",
    [
        {"files": {"mirror/../../x": "0"}},
        {"files": {"/etc/passwd": "0"}},
        {"stacks": (dataclasses.replace(CONTENTS.stacks[0], lock="../../x"),)},
        {"stacks": (dataclasses.replace(CONTENTS.stacks[0], lock="unlisted.lock"),)},
    ],
)
def test_a_description_names_files_of_its_folder_only(changed):
    text = airgap.as_text(dataclasses.replace(CONTENTS, **changed))
    with pytest.raises(ClustergateError, match=r"airgap\.json is damaged .* of the folder"):
        airgap.parse_contents(text)


def test_another_kind_of_machine_is_refused(tmp_path):
    layout = packed(tmp_path / "folder")
    text = layout.description.read_text().replace(os.uname().machine, "vax")
    layout.description.write_text(text)
    with pytest.raises(ClustergateError, match="was packed on vax, and this is"):
        unpacking.unpack(layout.folder, tmp_path / "state", say=print)


@pytest.mark.parametrize("name", ["spack-repo/pins.yaml", "clustergate/stacks/wheels/mpich.txt"])
def test_a_folder_of_another_version_names_what_differs(tmp_path, name):
    layout = packed(tmp_path / "folder", suite="v0.9-3-gabcdef")
    with (layout.clone / name).open("a") as file:
        file.write("# changed\n")
    with pytest.raises(ClustergateError, match=rf"v0\.9-3-gabcdef.*another {name}; unpack it with"):
        unpacking.unpack(layout.folder, tmp_path / "state", say=print)


def test_a_file_that_only_one_version_has_differs(tmp_path):
    layout = packed(tmp_path / "folder")
    assert airgap.differing(layout.clone, checkout()) == []
    (layout.clone / "clustergate/stacks/wheels/newmpi.txt").touch()
    assert airgap.differing(layout.clone, checkout()) == ["clustergate/stacks/wheels/newmpi.txt"]


ZEN4 = Host("debian12", ("zen4", "x86_64_v4"))
HASWELL = Host("debian12", ("haswell", "x86_64_v3"))


@pytest.mark.parametrize(
    ("target", "here", "said"),
    [
        ("zen4", ZEN4, ""),
        ("x86_64_v3", ZEN4, ""),
        ("x86_64_v3", HASWELL, ""),
        ("zen4", HASWELL, "packed for zen4 processors, and this is a haswell"),
        ("x86_64_v4", HASWELL, "packed for x86_64_v4 processors, and this is a haswell"),
        ("skylake_avx512", ZEN4, "packed for skylake_avx512 processors"),
        ("of-tomorrow", ZEN4, "packed for of-tomorrow processors"),
        ("zen4", Host("rocky9", ("zen4",)), "packed on debian12, and this is rocky9"),
    ],
)
def test_a_lock_belongs_to_a_system_and_a_processor(target, here, said):
    stack = PackedStack("spack-openmpi", "", "debian12", target)
    told = airgap.objection(stack, here)
    assert told.find(said) >= 0
    assert bool(told) == bool(said)


def test_only_what_spack_looks_up_stays_of_a_mirror(tmp_path):
    (tmp_path / "_source-cache" / "archive").mkdir(parents=True)
    (tmp_path / "hpl").mkdir()
    (tmp_path / "hpl" / "hpl-2.3.tar.gz").symlink_to("../_source-cache/archive")
    tidy_mirror(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["_source-cache"]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_clone_travels_with_its_history_and_with_what_is_not_committed(tmp_path):
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("kept", "changed", "removed", "staged"):
        (clone / name).write_text("committed\n")
    (clone / ".gitignore").write_text("/.venv/\n")
    git(clone, "init", "--quiet")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message=first")
    git(clone, "config", "http.extraHeader", "Authorization: secret")
    (clone / "changed").write_text("now\n")
    (clone / "removed").unlink()
    (clone / "site configs").mkdir()
    (clone / "site configs" / "müller.py").write_text("new\n")
    (clone / "staged").write_text("now\n")
    git(clone, "add", "staged")
    (clone / ".venv").mkdir()
    (clone / ".venv" / "python").touch()
    target = tmp_path / "target"
    said: list[str] = []
    version = copy_clone(clone, target, said.append)
    names = sorted(str(p.relative_to(target)) for p in target.rglob("*") if ".git/" not in str(p))
    assert names == [
        *(".git", ".gitignore", "changed", "kept", "site configs"),
        *("site configs/müller.py", "staged"),
    ]
    assert (target / "changed").read_text() == "now\n"
    assert version.endswith("-dirty")
    assert "uncommitted files, packed as they are: 4" in said
    assert "secret" not in (target / ".git" / "config").read_text()
    assert str(clone) not in (target / ".git" / "config").read_text()
    copy_clone(clone, target, said.append)  # once more, over the first one
    assert (target / "kept").is_file()


def test_a_clone_without_git_travels_as_files(tmp_path):
    clone = tmp_path / "clone"
    for name in (".venv/x", ".clustergate/x", "ci/airgap", "ci/__pycache__/x", ".venv.log"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).touch()
    copy_clone(clone, tmp_path / "target", print)
    assert [p.name for p in (tmp_path / "target").rglob("*") if p.is_file()] == ["airgap"]


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "letters").touch()
    with pytest.raises(ClustergateError, match="is not empty and was not made by"):
        packing.pack(tmp_path, Wanted({}), tmp_path / "state", say=print)
    assert [path.name for path in tmp_path.iterdir()] == ["letters"]


def test_a_folder_inside_the_clone_would_pack_itself(tmp_path):
    inside = checkout() / "packed-here"
    with pytest.raises(ClustergateError, match="lies inside the clone"):
        packing.pack(inside, Wanted({}), tmp_path, say=print)
    assert not inside.exists()


def test_an_interrupted_run_leaves_a_folder_that_says_so(tmp_path, monkeypatch):
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    folder = packed(tmp_path / "folder").folder
    monkeypatch.setattr(packing, "copy_clone", interrupted)
    with pytest.raises(KeyboardInterrupt):
        packing.pack(folder, Wanted({}), tmp_path / "state", say=print)
    with pytest.raises(ClustergateError, match="was interrupted"):
        airgap.read_contents(Layout(folder))


def test_a_full_disk_while_packing_is_a_sentence(tmp_path, monkeypatch):
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "file")

    monkeypatch.setattr(packing, "copy_clone", full)
    with pytest.raises(ClustergateError, match=r"the disk is full while packing .* larger disk"):
        packing.pack(tmp_path / "folder", Wanted({}), tmp_path / "state", say=print)


# ci/airgap before there is a Python environment: a clone of little more than the script.


@pytest.fixture
def bare_clone(tmp_path: Path) -> Path:
    clone = tmp_path / "bare clone"
    (clone / "ci").mkdir(parents=True)
    for name in ("ci/airgap", "ci/make-venv", "Makefile", "pyproject.toml"):
        shutil.copy(checkout() / name, clone / name)
    wheel = "no_such_wheel==1.0 --hash=sha256:" + "0" * 64 + "\n"
    (clone / "requirements.txt").write_text(wheel)
    return clone


def bare_folder(clone: Path, *pythons: str) -> Path:
    folder = clone.parent / "bare folder"
    (folder / "clone").mkdir(parents=True)
    shutil.copy(clone / "requirements.txt", folder / "clone")
    (folder / "airgap.json").touch()
    for python in pythons:
        (folder / "python" / python).mkdir(parents=True)
    return folder


def bare_unpack(clone: Path, folder: Path, **variables: str) -> str:
    """Run ``ci/airgap unpack``, which must fail with one sentence, and return that."""
    command = ["bash", str(clone / "ci" / "airgap"), "unpack", str(folder)]
    environment = {**os.environ, "PYTHON": sys.executable, **variables}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (sentence,) = ended.stderr.splitlines()
    return sentence


HERE = f"{os.uname().machine}-{airgap.running_python()}"


def test_unpacking_nothing_is_a_sentence(bare_clone, tmp_path):
    assert "there is no folder" in bare_unpack(bare_clone, tmp_path / "missing")
    assert "has packed to its end" in bare_unpack(bare_clone, tmp_path)


def test_unpacking_with_other_constraints_names_the_clone_in_the_folder(bare_clone):
    folder = bare_folder(bare_clone, HERE)
    (folder / "clone" / "requirements.txt").write_text("another\n")
    assert f"unpack it with the clone in {folder}/clone" in bare_unpack(bare_clone, folder)


def test_another_python_than_the_packed_ones_is_named(bare_clone):
    folder = bare_folder(bare_clone, f"{os.uname().machine}-3.99", "vax-3.11")
    told = bare_unpack(bare_clone, folder)
    assert f"holds Python packages for vax-3.11 {os.uname().machine}-3.99, and this is" in told
    assert ".".join(map(str, sys.version_info[:3])) in told
    assert "name a fitting Python with PYTHON=python3.x" in told


def test_a_missing_python_is_named(bare_clone):
    folder = bare_folder(bare_clone, HERE)
    assert "no-such-python missing" in bare_unpack(bare_clone, folder, PYTHON="no-such-python")


def test_wheels_that_do_not_install_are_a_sentence_without_a_word_of_the_network(bare_clone):
    told = bare_unpack(bare_clone, bare_folder(bare_clone, HERE))
    assert "do not install here (ERROR: " in told
    assert "no_such_wheel" in told
    assert "index" not in told


# The real thing.


def in_isolation() -> list[str]:
    """Return a command that runs another one with no network but a dead loopback."""
    return ["unshare", "--map-root-user", "--net"]


@pytest.fixture(scope="module")
def cut_off() -> list[str]:
    """Return such a command, once it has proven that nothing can be reached through it."""
    try:
        tried = subprocess.run(
            [*in_isolation(), sys.executable, "-c", "import socket; print(socket.if_nameindex())"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no unshare here to cut the network off with")
    if tried.returncode:
        pytest.skip(f"the network cannot be cut off here ({tried.stderr.strip()})")
    assert tried.stdout.strip() == "[(1, 'lo')]"
    return in_isolation()


def test_bootstrap_without_a_network_says_what_to_do(cut_off, tmp_path):
    ended = subprocess.run(
        [*cut_off, str(checkout() / "ci" / "bootstrap")],
        env={**os.environ, "CLUSTERGATE_HOME": str(tmp_path), "CLUSTERGATE_SPACK_FROM": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("clustergate: Spack")
    assert "name a git repository" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "spack" / "root").exists()


def spack_root() -> Path:
    """Return the Spack of this machine, or skip."""
    named = os.environ.get("SPACK_ROOT", "")
    on_path = shutil.which("spack")
    if not named and not on_path:
        pytest.skip("there is no Spack here: SPACK_ROOT is not set and PATH has none")
    return Path(named) if named else Path(str(on_path)).resolve().parents[1]


@pytest.fixture(scope="module")
def releases() -> Path:
    """Bring Spack and its packages into the clone's own state, or skip; return the state."""
    state = state_dir()
    copy = os.environ.get("CLUSTERGATE_SPACK_FROM") or str(spack_root())
    try:
        bootstrap.bring(state, places={"spack": copy})
    except ClustergateError as told:
        pytest.skip(f"Spack is not to be had as it is pinned: {told}")
    return state


SETTINGS = {"externals": "wheels"}
SITE = f"""\
from clustergate.sites import configuration, stack

site_configuration = configuration(
    systems=[{{"name": "isolated", "hostnames": ["isolated"], "partitions": []}}],
    stacks=[stack("mpich"), stack("spack-openmpi", provider="spack", spack={SETTINGS})],
)
"""


@pytest.fixture(scope="module")
def packed_folder(releases: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Pack what the isolated machine needs, with a state of its own; return the folder."""
    scratch = tmp_path_factory.mktemp("connected")
    home = scratch / "home"
    (home / "spack").mkdir(parents=True)
    (releases / "cache").mkdir(exist_ok=True)
    for name in ("cache", "spack/root", "spack/packages"):
        (home / name).symlink_to(releases / name)
    (scratch / "site.py").write_text(SITE)
    command = [str(checkout() / "ci" / "airgap"), "pack", str(scratch / "folder")]
    ended = subprocess.run(
        [*command, "--site", str(scratch / "site.py")],
        env={**os.environ, "CLUSTERGATE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    yield scratch / "folder"
    shutil.rmtree(scratch)


@pytest.mark.spack
def test_a_stack_is_built_from_the_folder_alone_with_the_network_cut_off(
    packed_folder, cut_off, tmp_path
):
    # Another path, longer than the packer's, and an environment that knows nothing of it.
    clone = tmp_path / "longer-path" / "clustergate"
    shutil.copytree(packed_folder / "clone", clone, symlinks=True)
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "SPACK_", "CLUSTERGATE_"))
    }
    environment["PYTHON"] = sys.executable

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*cut_off, *command],
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    unpacked = run("ci/airgap", "unpack", str(packed_folder))
    assert unpacked.returncode == 0, unpacked.stderr
    # What was unpacked is enough: the folder may go away.
    away = packed_folder.rename(packed_folder.with_name("away"))
    try:
        for stack, provider in (("spack-openmpi", "spack"), ("mpich", "wheels")):
            options = ["--stack", stack, "--provider", provider]
            if provider == "spack":
                options += ["--settings", json.dumps(SETTINGS)]
            built = run(".venv/bin/clustergate", "setup", *options)
            assert built.returncode == 0, built.stderr
    finally:
        away.rename(packed_folder)
    state = clone / ".clustergate"
    for stack in ("spack-openmpi", "mpich"):
        manifest = read_manifest(state, stack)
        for name in ("xhpl", "hpcc", "IMB-MPI1", "node_peaks", "dgemm"):
            assert Path(manifest.program(name).path).is_relative_to(clone)
    linked = run("ldd", read_manifest(state, "spack-openmpi").program("xhpl").path)
    assert "not found" not in linked.stdout
    assert str(clone) in linked.stdout


@pytest.mark.spack
def test_a_packed_folder_can_be_read_by_anybody_and_packed_again(packed_folder):
    contents = airgap.read_contents(Layout(packed_folder))
    assert {stack.name for stack in contents.stacks} == {"spack-openmpi"}
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in airgap.packed_files(packed_folder))
    assert contents.files == airgap.checksums(packed_folder)
    assert not (packed_folder / airgap.UNFINISHED).exists()


def test_the_network_of_this_process_is_not_cut(cut_off):
    """The control: outside of it the loopback works, so it is the isolation that cuts."""
    connect = "import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", connect.format(port=server.getsockname()[1])]
        assert subprocess.run(command, check=False).returncode == 0
        isolated = subprocess.run([*cut_off, *command], stderr=subprocess.DEVNULL, check=False)
        assert isolated.returncode != 0
