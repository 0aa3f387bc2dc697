"""Bringing a pinned release here: with real git repositories, small ones."""

import dataclasses
import json
import os
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.stacks.spack import bootstrap
from clustergate.stacks.spack.bootstrap import Pin, Pins, bring, git_failure, read_pins

SPACK = "#!/bin/sh\necho 1.1.0\n"


def git(*arguments: object, folder: Path) -> str:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    command = ["git", "-C", str(folder), *identity, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Upstream:
    """A repository with a release of each kind of file, and pins of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "spack").write_text(SPACK)
        (folder / "bin" / "spack").chmod(0o755)
        (folder / "link").symlink_to("bin/spack")
        git("init", "--quiet", folder=folder)
        git("add", "--all", folder=folder)
        git("commit", "--quiet", "--message=release", folder=folder)
        git("tag", "v1.1.0", folder=folder)
        self.commit = git("rev-parse", "HEAD", folder=folder)
        pin = Pin("spack", "1.1.0", folder.as_uri(), "v1.1.0", self.commit)
        self.pins = both(pin)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    return Upstream(tmp_path / "upstream")


def both(pin: Pin) -> Pins:
    return Pins(pin, dataclasses.replace(pin, name="packages"))


def brought(state: Path, pins: Pins, place: str = "") -> Path:
    environ = {"CLUSTERGATE_SPACK_FROM": place, "CLUSTERGATE_PACKAGES_FROM": place}
    bring(state, pins=pins, environ=environ)
    return state / "spack" / "root"


def files_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != bootstrap.STAMP
    }


@pytest.mark.parametrize("way", ["upstream", "a checkout", "a bare repository", "a worktree"])
def test_every_place_brings_the_same_files(tmp_path, upstream, way):
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    git("clone", "--quiet", "--bare", upstream.folder, bare, folder=tmp_path)
    git("worktree", "add", "--quiet", tree, "v1.1.0", folder=upstream.folder)
    places = {"upstream": "", "a checkout": upstream.folder, "a bare repository": bare}
    root = brought(tmp_path / "state", upstream.pins, str(places.get(way, tree)))
    assert files_of(root) == files_of(upstream.folder)
    assert os.access(root / "bin" / "spack", os.X_OK)
    assert (root / "link").readlink() == Path("bin/spack")
    assert not (root / ".git").exists()
    assert json.loads((root / bootstrap.STAMP).read_text())["commit"] == upstream.commit
    assert sorted(path.name for path in root.parent.iterdir()) == [
        *("packages", "packages.lock", "root", "root.lock")
    ]


def test_what_was_fetched_can_be_carried_to_where_no_network_is(tmp_path, upstream):
    """As a folder of files: of whoever packed it, and without the history."""
    (upstream.folder / "later").write_text("not of the release\n")
    git("add", "--all", folder=upstream.folder)
    git("commit", "--quiet", "--message=later", folder=upstream.folder)
    bootstrap.fetch(upstream.pins.spack, str(upstream.folder), tmp_path / "fetched.git")
    carried = shutil.copytree(tmp_path / "fetched.git", tmp_path / "carried.git")
    shutil.rmtree(upstream.folder)
    root = brought(tmp_path / "state", upstream.pins, str(carried))
    assert sorted(files_of(root)) == ["bin/spack", "link"]


def test_a_repository_may_be_another_users(tmp_path, upstream, monkeypatch):
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    root = brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert files_of(root) == files_of(upstream.folder)


def test_a_damaged_repository_is_refused(tmp_path, upstream):
    blob = git("rev-parse", "v1.1.0:bin/spack", folder=upstream.folder)
    damaged = upstream.folder / ".git" / "objects" / blob[:2] / blob[2:]
    damaged.chmod(0o644)
    damaged.write_bytes(zlib.compress(b"blob 7\0another"))
    with pytest.raises(ClustergateError, match="cannot be fetched from"):
        brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_what_is_here_is_not_brought_again(tmp_path, upstream):
    root = brought(tmp_path / "state", upstream.pins)
    (root / "mark").touch()
    shutil.rmtree(upstream.folder)
    assert (brought(tmp_path / "state", upstream.pins) / "mark").exists()


def test_only_what_is_asked_for_is_brought(tmp_path, upstream):
    bring(tmp_path, pins=upstream.pins, environ={}, only=("packages",))
    assert not (tmp_path / "spack" / "root").exists()
    assert (tmp_path / "spack" / "packages" / bootstrap.STAMP).is_file()


def test_a_variable_names_a_copy(tmp_path, upstream):
    nowhere = dataclasses.replace(upstream.pins.spack, url="/nowhere")
    pins = both(nowhere)
    environ = {
        "CLUSTERGATE_SPACK_FROM": str(upstream.folder),
        "CLUSTERGATE_PACKAGES_FROM": str(upstream.folder),
    }
    bring(tmp_path, pins=pins, environ=environ)
    assert files_of(tmp_path / "spack" / "root") == files_of(upstream.folder)


def test_another_pin_replaces_what_is_here(tmp_path, upstream):
    root = brought(tmp_path / "state", upstream.pins)
    (upstream.folder / "new").write_text("of the next release\n")
    git("add", "--all", folder=upstream.folder)
    git("commit", "--quiet", "--message=next", folder=upstream.folder)
    git("tag", "--force", "v1.1.0", folder=upstream.folder)
    commit = git("rev-parse", "HEAD", folder=upstream.folder)
    following = dataclasses.replace(upstream.pins.spack, commit=commit)
    assert not (root / "new").exists()
    assert (brought(tmp_path / "state", both(following)) / "new").exists()


def test_a_moved_tag_is_refused(tmp_path, upstream):
    git("commit", "--quiet", "--allow-empty", "--message=other", folder=upstream.folder)
    git("tag", "--force", "v1.1.0", folder=upstream.folder)
    with pytest.raises(ClustergateError, match=r"tag v1\.1\.0 .* is commit .* refused"):
        brought(tmp_path / "state", upstream.pins)
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_a_repository_without_the_tag_is_named(tmp_path, upstream):
    git("tag", "--delete", "v1.1.0", folder=upstream.folder)
    with pytest.raises(
        ClustergateError, match=r"couldn't find remote ref .* has the tag v1\.1\.0 in"
    ):
        brought(tmp_path / "state", upstream.pins, str(upstream.folder))


def test_a_copy_runs_no_program_that_its_own_configuration_names(tmp_path, upstream):
    mark = tmp_path / "mark"
    git("config", "filter.x.smudge", f"touch {mark}; cat", folder=upstream.folder)
    (upstream.folder / ".git" / "info").mkdir(exist_ok=True)
    (upstream.folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    root = brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert files_of(root) == files_of(upstream.folder)
    assert not mark.exists()


def test_a_place_is_no_option_of_git(tmp_path, upstream, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Without a place, git would take the tag's name for one.
    git("clone", "--quiet", "--bare", upstream.folder, "refs/tags/v1.1.0", folder=tmp_path)
    with pytest.raises(ClustergateError, match="cannot be fetched from"):
        brought(tmp_path / "state", upstream.pins, "--upload-pack=touch${IFS}mark;:")
    assert not (tmp_path / "mark").exists()


def test_no_password_of_an_address_is_told_or_kept(tmp_path, upstream):
    said: list[str] = []
    environ = {"CLUSTERGATE_SPACK_FROM": "https://me:secret@127.0.0.1:1/spack.git"}
    with pytest.raises(ClustergateError, match=r"from https://127\.0\.0\.1:1/spack\.git") as told:
        bring(tmp_path, pins=upstream.pins, environ=environ, say=said.append)
    assert "secret" not in str(told.value) + "".join(said)


def test_what_is_nothing_is_said(tmp_path, upstream):
    with pytest.raises(
        ClustergateError, match=r"cannot be fetched from .*does not appear to be a git repository"
    ):
        brought(tmp_path / "state", upstream.pins, str(tmp_path / "missing"))


def test_a_killed_run_leaves_nothing_that_counts(tmp_path, upstream):
    """What a kill leaves is a folder beside the place, or a place without the stamp."""
    state = tmp_path / "state"
    (state / "spack" / ".root-killed").mkdir(parents=True)
    (state / "spack" / "root" / "bin").mkdir(parents=True)
    root = brought(state, upstream.pins)
    assert files_of(root) == files_of(upstream.folder)
    assert not (state / "spack" / ".root-killed").exists()


def test_a_full_disk_is_a_sentence(tmp_path, upstream, monkeypatch):
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "file")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(ClustergateError, match="No space left on device; free some"):
        brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_a_state_that_cannot_be_written_is_a_sentence(tmp_path, upstream):
    (tmp_path / "state").touch()
    with pytest.raises(ClustergateError, match="cannot be written: Not a directory; write else"):
        brought(tmp_path / "state", upstream.pins)


def left_over(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "spack").iterdir())


# What git 2.39.5 said: without a network, for a repository that is none, for a missing tag.
PIN = Pin("spack", "1.1.0", "https://example.org/spack.git", "v1.1.0", "a" * 40)


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (
            "fatal: unable to access 'https://example.org/spack.git/': "
            "Could not resolve host: example.org\n",
            "Could not resolve host: example.org); try again where there is a network",
        ),
        (
            "fatal: couldn't find remote ref refs/tags/v1.1.0\n",
            "(couldn't find remote ref refs/tags/v1.1.0)",
        ),
        (
            "fatal: '/nowhere' does not appear to be a git repository\n"
            "fatal: Could not read from remote repository.\n\nPlease make sure you have the "
            "correct access rights\nand the repository exists.\n",
            "('/nowhere' does not appear to be a git repository)",
        ),
        ("error: unable to write file x: No space left on device\n", "the disk is full"),
        ("", "git gives no reason"),
    ],
)
def test_what_git_says_becomes_one_sentence(stderr, said):
    sentence = str(git_failure(stderr, PIN, PIN.url))
    assert said in sentence
    assert "\n" not in sentence


def test_the_pins_of_the_clone_are_pins():
    pins = read_pins()
    for pin in pins:
        assert len(bytes.fromhex(pin.commit)) == 20
    assert pins.spack.tag == f"v{pins.spack.version}"
    assert pins.packages.tag == f"v{pins.packages.version}"
