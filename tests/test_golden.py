"""Golden builds: what is kept of a stack, and that nothing but that is launched."""

import dataclasses
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clustergate import cli
from clustergate.core.files.shared import Mount
from clustergate.core.model import BadRequest, ClustergateError
from clustergate.core.paths import state_dir
from clustergate.machine.changes import describe_one, differences
from clustergate.machine.configuration import mapped_files, site_files
from clustergate.sites import choice, configs
from clustergate.stacks.golden import builds, contents
from clustergate.stacks.golden.builds import GOLDEN_NONE
from clustergate.stacks.manifest import (
    Blas,
    Manifest,
    ManifestError,
    Program,
    read_manifest,
    read_manifest_file,
    write_manifest,
)
from clustergate.studies.ab.contenders import manifest_of, parse_contender, require_known

KEY = "0123456789ab"
MPI, BLAS, BUILD = f"prefixes/mpich-{KEY}", f"prefixes/openblas-{KEY}", f"builds/mpich-all-{KEY}"
SAID: list[str] = []


def mapped_otherwise(state: Path, mapped: Mapping[str, str]) -> list[str]:
    return builds.mapped_otherwise(state, "mpich", mapped.items())


def manifest(state: Path, key: str = KEY, **what: Any) -> Manifest:
    mpi, blas, build = (state / name.replace(KEY, key) for name in (MPI, BLAS, BUILD))
    made = Manifest(
        stack="mpich",
        provider="wheels",
        mpi_name="MPICH",
        mpi_prefix=str(mpi),
        mpi_library=str(mpi / "lib/libmpi.so.12"),
        launcher=str(mpi / "bin/mpirun"),
        environment={"PATH": f"{mpi}/bin", "LD_LIBRARY_PATH": f"{mpi}/lib:{build}/lib"},
        blas=Blas("OpenBLAS", "1", f"{blas}/lib/libblas.so"),
        programs={
            "xhpl": Program(f"{build}/bin/xhpl", "2.3"),
            "lmp": Program(unavailable="nobody asked"),
        },
        proof_library=f"{build}/lib/libproof.so",
    )
    return dataclasses.replace(made, **what)


def build(state: Path, key: str = KEY, **what: Any) -> Manifest:
    """Put a stack on disk: files with their names as text."""
    made = manifest(state, key, **what)
    for name in contents.files_of(made):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(path.name)
    link = state / MPI.replace(KEY, key) / "lib/libmpi.so"
    link.symlink_to("libmpi.so.12")
    write_manifest(state, made)
    return made


def proves(golden: Manifest, *_: Iterable[Path]) -> set[str]:
    assert all(Path(name).is_file() for name in contents.files_of(golden))
    return {*contents.files_of(golden), "/etc/hostname"}


def pinned(state: Path) -> builds.Golden:
    return builds.pin(state, "mpich", "accepted", SAID.append, proves)


def replace(path: Path, text: str) -> None:
    """Write another file in the place of one, which other links to the same do not see."""
    path.unlink()
    path.write_text(text)


def test_manifest_of_a_copy_points_into_it(tmp_path):
    """All of a manifest points into the copy and the blas is found there."""
    build(tmp_path)
    golden = pinned(tmp_path)
    home = tmp_path / "golden/mpich"
    found = read_manifest_file(home / "manifest.json")
    assert found.mpi_library == str(home / MPI / "lib/libmpi.so.12")
    assert found.environment["LD_LIBRARY_PATH"].split(":") == [
        str(home / name / "lib") for name in (MPI, BUILD, BLAS)
    ]
    assert found.programs["xhpl"].path == str(home / BUILD / "bin/xhpl")
    assert golden.roots == [BUILD, MPI, BLAS]
    assert golden.tree[f"{MPI}/lib/libmpi.so"] == "-> libmpi.so.12"
    assert golden.note == "accepted"
    assert "hard links" in SAID[-1]
    assert builds.read(tmp_path, "mpich") == golden
    assert builds.pinned_stacks(tmp_path) == ["mpich"]


@pytest.mark.parametrize("name", ["prefixes", "builds", MPI])
def test_what_lies_on_another_disk_behind_a_link_is_kept(tmp_path, name):
    state, disk = tmp_path / "home", tmp_path / "disk" / "elsewhere"
    (state / name).parent.mkdir(parents=True)
    disk.mkdir(parents=True)
    (state / name).symlink_to(disk)
    made = build(state)
    # Some paths of a manifest have their links followed.
    write_manifest(state, dataclasses.replace(made, mpi_library=os.path.realpath(made.mpi_library)))
    assert pinned(state).roots == [BUILD, MPI, BLAS]
    assert builds.differences(state, "mpich") == []
    kept = builds.launchable(state, "mpich")
    assert kept.mpi_library == str(state / "golden/mpich" / MPI / "lib/libmpi.so.12")


def test_links_are_tried_on_each_disk(tmp_path, monkeypatch):
    build(tmp_path)
    link = os.link

    def of_one_disk(source: Path, target: Path) -> None:
        if "prefixes" in str(source):
            raise OSError(18, "Invalid cross-device link", str(source))
        link(source, target)

    monkeypatch.setattr(os, "link", of_one_disk)
    golden = pinned(tmp_path)
    assert not golden.linked
    assert golden.roots == [BUILD, MPI, BLAS]


def test_what_is_kept_outlives_the_original_and_cannot_be_written(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    for name in ("prefixes", "builds", "manifests"):
        shutil.rmtree(tmp_path / name)
    builds.require_unchanged(tmp_path, "mpich")
    library = Path(builds.launchable(tmp_path, "mpich").mpi_library)
    assert library.read_text() == "libmpi.so.12"
    assert not library.stat().st_mode & stat.S_IWUSR


@pytest.mark.parametrize("how", ["changed", "removed", "added", "link"])
def test_a_golden_build_that_is_not_what_was_pinned_is_refused(tmp_path, how):
    build(tmp_path)
    pinned(tmp_path)
    folder = tmp_path / "golden/mpich" / MPI / "lib"
    library = folder / ("libmpi.so" if how == "link" else "libmpi.so.12")
    if how == "added":
        library = folder / "libmpi.so.11"
        library.write_text("")
    elif how == "removed":
        library.unlink()
    else:
        replace(library, "libmpi.so.13")
    told = f"mpich was changed: {MPI}/lib/{library.name}; put it back; or accept what is there"
    with pytest.raises(BadRequest, match=told):
        builds.launchable(tmp_path, "mpich")
    with pytest.raises(BadRequest, match="was changed"):
        builds.differences(tmp_path, "mpich")
    builds.unpin(tmp_path, "mpich")
    assert not builds.pinned_stacks(tmp_path)


def test_original_written_in_place_found_by_hashes(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    original = tmp_path / BUILD / "bin/xhpl"
    original.chmod(0o755)
    original.write_text("XHPL")
    with pytest.raises(BadRequest, match=f"{BUILD}/bin/xhpl"):
        builds.require_unchanged(tmp_path, "mpich")


def test_another_key_alone_makes_no_other_build(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    assert builds.differences(tmp_path, "mpich") == []
    again = build(tmp_path, "ba9876543210")
    (tmp_path / BUILD.replace(KEY, "ba9876543210") / ".state-folder").write_text("the suite's own")
    assert builds.differences(tmp_path, "mpich") == []
    Path(again.mpi_library).write_text("another")
    assert builds.differences(tmp_path, "mpich") == ["prefixes/mpich/lib/libmpi.so.12"]


def test_other_settings_are_another_build(tmp_path):
    made = build(tmp_path)
    pinned(tmp_path)
    slower = {**made.environment, "MPIR_CVAR_CH4_SHM": "none"}
    write_manifest(tmp_path, manifest(tmp_path, environment=slower))
    assert builds.differences(tmp_path, "mpich") == ["variable MPIR_CVAR_CH4_SHM"]


@pytest.mark.parametrize("folder", [BUILD, "builds/mpich-token_ring-ba9876543210"])
def test_a_benchmark_that_was_installed_since_is_no_difference(tmp_path, folder):
    made = build(tmp_path)
    pinned(tmp_path)
    added = tmp_path / folder / "bin/token_ring"
    added.parent.mkdir(parents=True, exist_ok=True)
    added.write_text("token_ring")
    programs = {**made.programs, "token_ring": Program(str(added))}
    write_manifest(tmp_path, dataclasses.replace(made, programs=programs))
    assert builds.differences(tmp_path, "mpich") == []
    # Those that were pinned count as before.
    replace(Path(made.programs["xhpl"].path), "another")
    assert builds.differences(tmp_path, "mpich") == ["builds/mpich-all/bin/xhpl"]
    del programs["xhpl"]
    write_manifest(tmp_path, dataclasses.replace(made, programs=programs))
    assert "program xhpl" in builds.differences(tmp_path, "mpich")


def test_todays_proof_library_watches_both_where_the_family_is_one(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    today = build(tmp_path, "ba9876543210")
    assert builds.launchable(tmp_path, "mpich").proof_library == today.proof_library
    write_manifest(tmp_path, manifest(tmp_path, mpi_name="Open MPI"))
    assert "/golden/mpich/" in builds.launchable(tmp_path, "mpich").proof_library


def test_a_manifest_that_names_todays_program_is_no_golden_build(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    path = tmp_path / "golden/mpich/manifest.json"
    path.chmod(0o644)
    path.write_text(path.read_text().replace(f"golden/mpich/{BUILD}/bin/xhpl", f"{BUILD}/bin/xhpl"))
    with pytest.raises(BadRequest, match=rf"{BUILD}/bin/xhpl"):
        builds.require_unchanged(tmp_path, "mpich")


def test_launches_that_the_site_sets_otherwise_since_are_told(tmp_path, monkeypatch):
    build(tmp_path)
    conf = tmp_path / MPI / "etc/mpich.conf"
    conf.parent.mkdir()
    conf.write_text("MPIR_CVAR_CH4_NETMOD=ofi")
    env = {"env_vars of node": "[['UCX_TLS', 'rc']]"}
    golden = builds.pin(tmp_path, "mpich", "", SAID.append, proves, env)
    golden = builds.read(tmp_path, golden.stack)
    (known,) = site_files([f"{tmp_path}/{MPI}/lib/libmpi.so.12"])
    assert builds.setting_changes(golden, env, [known.digest]) == []
    assert builds.setting_changes(golden, {}, [known.digest]) == ["env_vars of node"]
    files = "configuration files of the MPI libraries"
    assert builds.setting_changes(golden, env, []) == [files]
    earlier = dataclasses.replace(golden, settings={})
    assert builds.setting_changes(earlier, env, [known.digest]) == [files, "env_vars of node"]


def test_what_ranks_map_beside_the_golden_build_is_told(tmp_path):
    """A library that is loaded at run time was looked for where it was pinned alone."""
    today = build(tmp_path)
    pinned(tmp_path)
    system, plugin = "/etc/hostname", "/usr/lib/libfabric/libefa-fi.so"
    own = today.mpi_library
    mapped = mapped_files([system, own, "linux-vdso.so.1"])
    assert set(mapped) == {system, own}
    assert len(mapped[system]) == 64
    assert mapped[own] == ""
    assert mapped_otherwise(tmp_path, mapped) == []
    assert mapped_otherwise(tmp_path, {**mapped, plugin: "ab"}) == [plugin]
    assert mapped_otherwise(tmp_path, {system: "of the nodes"}) == [system]
    beside = {"/usr/lib/libpmi2.so.0": "ab", "/usr/lib/slurm/libslurmfull.so": "cd"}
    assert mapped_otherwise(tmp_path, beside) == []
    elsewhere = {"/opt/ucx/lib/libucp.so": ""}
    assert mapped_otherwise(tmp_path, elsewhere) == [*elsewhere]


def test_loader_gives_a_provider_no_other_file_on_nodes(tmp_path):
    """Ranks on one node load no provider of a fabric, and so nothing that one needs."""
    build(tmp_path)
    provider = tmp_path / MPI / "lib/prov/libverbs-fi.so"
    provider.parent.mkdir()
    provider.write_text("loaded between nodes")
    needed, other = "/etc/hosts", "/etc/passwd"

    def loads(golden: Manifest, elsewhere: Iterable[Path], objects: Iterable[Path]) -> set[str]:
        home = tmp_path / "golden/mpich"
        shared = (f"{BUILD}/lib/libproof.so", f"{MPI}/lib/libmpi.so.12", f"{MPI}/lib/prov")
        assert {*objects} >= {home / name for name in shared[:2]}
        assert home / MPI / "lib/libmpi.so" not in objects
        return {*proves(golden), *([needed] if home / shared[2] / provider.name in objects else [])}

    golden = builds.pin(tmp_path, "mpich", "", SAID.append, loads)
    sha256 = golden.system[needed]
    on_nodes = {needed: sha256, str(provider): ""}
    assert mapped_otherwise(tmp_path, on_nodes) == []
    assert mapped_otherwise(tmp_path, {needed: "of the nodes"}) == [needed]
    assert mapped_otherwise(tmp_path, {**on_nodes, other: "ab"}) == [other]


def test_what_the_loader_finds_by_a_link_is_kept_by_what_is_in_it(tmp_path):
    """Of libstdc++.so.6 only the name of the file behind it was kept."""
    made = build(tmp_path / "store", provider="spack")
    state, real = tmp_path / "state", tmp_path / "libx.so.1.2"
    write_manifest(state, made)
    real.write_text("x")
    for link in ("libx.so.1", "libmpi.so"):
        (tmp_path / link).symlink_to(real)
    write_manifest(state, dataclasses.replace(made, mpi_library=f"{tmp_path}/libmpi.so"))

    def proves_by_link(golden: Manifest, *_: Iterable[Path]) -> set[str]:
        return {f"{tmp_path}/libx.so.1"}

    golden = builds.pin(state, "mpich", "", SAID.append, proves_by_link)
    sha256 = golden.held[str(real)]
    assert len(sha256) == 64
    assert golden.held[f"{tmp_path}/libmpi.so"] == f"-> {real}"
    assert mapped_otherwise(state, {str(real): sha256}) == []
    assert mapped_otherwise(state, {str(real): "other"}) == [str(real)]


def test_a_manifest_that_was_edited_is_no_golden_build(tmp_path):
    """What it exports decides how fast it is, and so what today's build is held against."""
    build(tmp_path)
    pinned(tmp_path)
    path = tmp_path / "golden/mpich/manifest.json"
    record = json.loads(path.read_text())
    record["environment"]["FI_PROVIDER"] = "tcp"
    path.write_text(json.dumps(record))
    with pytest.raises(BadRequest, match=r"was changed: .*manifest\.json"):
        builds.require_unchanged(tmp_path, "mpich")


def test_what_others_installed_is_held_in_place(tmp_path):
    store, state = tmp_path / "store", tmp_path / "state"
    made = build(store, provider="spack")
    write_manifest(state, made)
    golden = builds.pin(state, "mpich", "", SAID.append, proves)
    assert (golden.roots, golden.tree) == ([], {})
    assert set(golden.held) == set(contents.files_of(made))
    assert list(golden.system) == ["/etc/hostname"]
    assert builds.launchable(state, "mpich") == made
    assert builds.differences(state, "mpich") == []
    library = os.path.realpath(made.mpi_library)
    sha256 = golden.held[made.mpi_library]
    for told, otherwise in (("", []), (sha256, []), ("of the nodes", [library])):
        assert mapped_otherwise(state, {library: told}) == otherwise
    replace(Path(made.mpi_library), "upgraded")
    with pytest.raises(BadRequest, match=r"libmpi\.so\.12"):
        builds.require_unchanged(state, "mpich")


@pytest.mark.parametrize("asked", ["dpkg-query", "rpm"])
def test_whole_package_of_a_systems_mpi_held(tmp_path, monkeypatch, asked):
    store, state, tools = tmp_path / "usr", tmp_path / "state", tmp_path / "tools"
    made = build(store, provider="modules")
    write_manifest(state, made)
    plugin, other = store / "openmpi/mca_coll_tuned.so", store / "libc.so.6"
    for path in (plugin, other):
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name)
    tools.mkdir()
    for name in ("dpkg-query", "rpm"):
        knows = name == asked
        says = f'case $1 in -S|-qf) echo "mpi: {made.mpi_library}";; *) echo "{plugin}";; esac'
        (tools / name).write_text(f"#!/bin/sh\n{says if knows else 'exit 1'}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(builds, "is_of_system", lambda path: path.startswith(str(store)))

    def maps(golden: Manifest, *_: Iterable[Path]) -> set[str]:
        return {*proves(golden), str(plugin), str(other)}

    golden = builds.pin(state, "mpich", "", SAID.append, maps)
    assert str(plugin) in golden.held
    assert set(golden.system) == {str(other)}
    replace(plugin, "upgraded")
    with pytest.raises(BadRequest, match=r"mca_coll_tuned\.so"):
        builds.require_unchanged(state, "mpich")


def test_programs_compiled_with_a_library_are_another_build(tmp_path):
    """Programs that were compiled anew with a library in place are another build."""
    build(tmp_path, provider="modules")
    pinned(tmp_path)
    again = build(tmp_path, "ba9876543210", provider="modules")
    assert builds.differences(tmp_path, "mpich") == []
    replace(Path(again.programs["xhpl"].path), "of another compiler")
    (changed,) = builds.differences(tmp_path, "mpich")
    assert changed.endswith("/bin/xhpl")


def test_a_stack_that_does_not_prove_itself_is_not_pinned(tmp_path):
    build(tmp_path)

    def fails(golden: Manifest, *_: Iterable[Path]) -> set[str]:
        raise ClustergateError("two ranks ran another library")

    for stopped, error in ((fails, ClustergateError), (_interrupted, KeyboardInterrupt)):
        with pytest.raises(error):
            builds.pin(tmp_path, "mpich", "", SAID.append, stopped)
        assert not (tmp_path / "golden/mpich").exists()
    with pytest.raises(BadRequest, match="no golden build; `clustergate golden pin mpich`"):
        builds.read(tmp_path, "mpich")


def test_what_a_killed_pin_left_is_removed(tmp_path: Path) -> None:
    build(tmp_path)
    left = builds.folder_of(tmp_path, "mpich") / "prefixes"
    left.mkdir(parents=True)
    assert builds.pinned_stacks(tmp_path) == []
    builds.unpin(tmp_path, "mpich")
    assert not left.parent.exists()
    with pytest.raises(BadRequest, match="golden"):
        builds.unpin(tmp_path, "mpich")


def _interrupted(golden: Manifest, *_: Iterable[Path]) -> set[str]:
    raise KeyboardInterrupt


def test_killed_pin_leaves_no_golden_build(tmp_path):
    build(tmp_path)
    (tmp_path / "golden/mpich" / MPI).mkdir(parents=True)
    (tmp_path / "golden/mpich" / MPI / "half").write_text("")
    assert builds.pinned_stacks(tmp_path) == []
    assert f"{MPI}/half" not in pinned(tmp_path).tree


def test_copied_where_links_cannot_be(tmp_path, monkeypatch):
    """Where links cannot be it is copied and a full disk is one sentence."""
    build(tmp_path)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert not pinned(tmp_path).linked
    assert "copied" in SAID[-1]
    builds.unpin(tmp_path, "mpich")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/here/lib")

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(BadRequest, match=r"No space left on device \(/here/lib\); no partial"):
        pinned(tmp_path)
    assert not (tmp_path / "golden/mpich").exists()


def test_where_a_copy_has_no_room_nothing_is_copied(tmp_path, monkeypatch):
    build(tmp_path)
    monkeypatch.setattr(builds, "_can_link", lambda root, home: False)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=3))
    monkeypatch.setattr(shutil, "copy2", None)
    SAID.clear()
    told = rf"mpich takes 0 MB, and {tmp_path}/golden has 0 MB; nothing was copied: free some space"
    with pytest.raises(BadRequest, match=told):
        pinned(tmp_path)
    assert SAID == []


def test_what_is_not_open_to_this_user_says_how_a_home_is_shared(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    build(tmp_path)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(builds, "locked", refused)
    assert cli.main(["golden", "pin", "mpich", "--site", "local"]) == 2
    assert "have its owner share it with your group" in capsys.readouterr().err


def test_file_system_unseen_by_nodes_told_before_pinning(tmp_path, monkeypatch):
    """A file system that other nodes do not see is told before anything is pinned."""
    for kind, nodes, told in (("tmpfs", 4, True), ("tmpfs", 1, False), ("nfs4", 4, False)):
        monkeypatch.setattr(builds, "mount_of", lambda folder, kind=kind: Mount(kind))
        said = builds.unseen_by_others(tmp_path, nodes)
        assert bool(said) == told
        if told:
            assert said.startswith(f"{tmp_path}/golden is on tmpfs, a file system of this node")
            assert "4 nodes" in said


def test_what_cannot_be_pinned_is_told(tmp_path):
    with pytest.raises(ManifestError, match="is not set up"):
        pinned(tmp_path)
    write_manifest(tmp_path, Manifest("mpich", "wheels", unavailable="no wheel for s390x"))
    with pytest.raises(BadRequest, match="unavailable here: no wheel for s390x"):
        pinned(tmp_path)
    made = build(tmp_path)
    Path(made.launcher).unlink()
    with pytest.raises(BadRequest, match="bin/mpirun is missing; run `clustergate setup`"):
        pinned(tmp_path)
    Path(made.launcher).write_text("mpirun")
    pinned(tmp_path)
    told = r"has a golden build, of \S+ on 20\d\d-\d\d-\d\d \(accepted\); `clustergate golden unpin"
    with pytest.raises(BadRequest, match=told):
        pinned(tmp_path)
    with pytest.raises(BadRequest, match="no name of a stack"):
        builds.unpin(tmp_path, str(tmp_path))


def test_a_damaged_record_is_told(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    path = tmp_path / "golden/mpich/contents.json"
    record = json.loads(path.read_text())
    for text in (
        "{",
        json.dumps({**record, "pinned": "yesterday"}),
        json.dumps({**record, "tree": [*record["tree"]]}),
        json.dumps({**record, "held": {"/lib/x.so": None}}),
        json.dumps({**record, "roots": None}),
        json.dumps({**record, "size": None}),
    ):
        path.write_text(text)
        with pytest.raises(BadRequest, match=r"contents\.json is damaged"):
            builds.require_unchanged(tmp_path, "mpich")


def test_a_golden_build_is_a_contender(tmp_path):
    build(tmp_path)
    pinned(tmp_path)
    named = parse_contender("golden:mpich:UCX_TLS=self,sm")
    assert (named.stack, named.golden, dict(named.variables)) == (
        *("mpich", True),
        {"UCX_TLS": "self,sm"},
    )
    require_known(named, ["openmpi"])
    assert "/golden/mpich/" in manifest_of(named, tmp_path).launcher
    with pytest.raises(BadRequest, match="openmpi has no golden build"):
        manifest_of(parse_contender("golden:openmpi"), tmp_path)
    with pytest.raises(BadRequest, match="names no stack"):
        parse_contender("golden:")


def test_the_command_lists_and_unpins(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    # To verify nothing is no yes, as who lets it be done each night would take it.
    for part, status in (("list", 0), ("verify", 2)):
        assert cli.main(["golden", part]) == status
        assert "nothing is pinned" in capsys.readouterr().out
    build(tmp_path)
    pinned(tmp_path)
    assert cli.main(["golden", "list"]) == 0
    told = capsys.readouterr().out
    assert "today (accepted); today's build equals it" in told
    assert cli.main(["golden", "unpin", "mpich", "openmpi", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "openmpi has no golden build, so there is none to remove" in said
    assert "golden pin" not in said
    assert builds.pinned_stacks(tmp_path) == []


# --- with real ranks --------------------------------------------------------------------------


@pytest.mark.mpi
def test_ranks_run_from_a_golden_build_alone(home_with_mpich, capsys):
    from clustergate.run.golden import proven

    home = home_with_mpich
    original = state_dir().parent
    assert cli.main(["golden", "pin", "mpich"]) == 0, capsys.readouterr().err
    for name in ("prefixes", "builds", "manifests"):
        shutil.rmtree(home / name)
    # What a rank loads while it runs needs more than ranks on one node map.
    for name, needs in (("libneeded.so", []), ("plugin.so", ["-L.", "-lneeded", "-Wl,-rpath,."])):
        command = ["cc", "-shared", "-Wl,--no-as-needed", "-o", name, "-xc", "/dev/null", "-xnone"]
        subprocess.run(
            [*command, *[x.replace(".", str(home)) for x in needs]], cwd=home, check=True
        )
    originals = [original / "prefixes", original / "builds"]
    mapped = proven(builds.launchable(home, "mpich"), originals, [home / "plugin.so"])
    assert f"{home}/libneeded.so" in mapped
    assert any(name.startswith(f"{home}/golden/mpich/prefixes/openblas") for name in mapped)
    assert cli.main(["golden", "verify", "mpich"]) == 0
    assert "two ranks ran from it" in capsys.readouterr().out
    library = Path(builds.launchable(home, "mpich").mpi_library)
    content = bytearray(library.read_bytes())
    content[-1] ^= 1
    library.unlink()
    library.write_bytes(content)
    assert cli.main(["golden", "verify", "mpich"]) == 1
    assert "libmpi.so.12; put it back; or accept " in capsys.readouterr().err


@pytest.mark.mpi
def test_ranks_that_still_load_the_original_are_not_pinned(home_with_mpich, capsys):
    from clustergate.run.golden import proven

    with pytest.raises(BadRequest, match="is not self-contained: it still loads"):
        proven(read_manifest(home_with_mpich, "mpich"), [home_with_mpich / "prefixes"], ())


def test_every_stack_of_a_site_is_pinned_where_none_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUSTERGATE_HOME", str(tmp_path))
    asked = []

    def pin(state, stack, *rest):
        asked.append(stack)
        raise BadRequest(GOLDEN_NONE(stack=stack))

    monkeypatch.setattr(builds, "pin", pin)
    for words in (
        ["--site", "local"],
        ["mpich"],
        ["mpich", "--site", "local"],
        ["no", "--site", "local"],
        ["mpic"],
    ):
        assert cli.main(["golden", "pin", *words]) != 0
    every = [stack.name for stack in configs.load(choice.choose("local").path).stacks]
    assert asked == [*every, "mpich", "mpich"]


def test_a_changed_launcher_or_library_is_told_as_such(tmp_path: Path) -> None:
    made = build(tmp_path)
    (tmp_path / MPI / "bin/mpiexec.hydra").write_text("starts ranks")
    before = contents.software_of(made)
    assert set(before) == {
        f"{role}_of_mpich" for role in ("launcher", "library", "BLAS", "benchmark_programs")
    }
    (tmp_path / MPI / "bin/mpiexec.hydra").write_text("sleeps first")
    (tmp_path / BUILD / "bin/xhpl").write_text("another")
    told = [
        describe_one(change)
        for change in differences({"software": before}, {"software": contents.software_of(made)})
    ]
    digits = r" [0-9a-f]{12}"
    launcher, programs = told
    hydra = "mpiexec.hydra" + digits
    assert re.fullmatch(f"launcher of mpich without {hydra} and with {hydra}", launcher)
    assert programs == "benchmark programs of mpich with other builds of xhpl"
    # A module may come to set another variable under its own name.
    then, now = (
        contents.software_of(manifest(tmp_path, provider="modules", environment={"UCX_TLS": tls}))
        for tls in ("rc", "tcp")
    )
    (change,) = differences({"software": then}, {"software": now})
    assert describe_one(change) == "variables of mpich without UCX_TLS=rc and with UCX_TLS=tcp"
    # A launcher of the system's PATH, and a stack that is not there.
    assert "launcher_of_mpich" not in contents.software_of(manifest(tmp_path, launcher="srun"))
    assert contents.software_of(Manifest(stack="mpich", provider="wheels")) == {}
