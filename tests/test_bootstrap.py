"""Bringing a pinned release here: with real git repositories, small ones."""

import dataclasses
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from clustergate.stacks.spack import bootstrap
from clustergate.stacks.spack.bootstrap import (
    BootstrapError,
    Pin,
    Pins,
    bring,
    git_failure,
    git_tree,
    kind_of,
    read_pins,
)

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
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
        (folder / "bin" / "spack.bat").write_text("echo\n")
        (folder / "bin-a").write_text("sorts between a folder and its slash\n")
        (folder / "link").symlink_to("bin/spack")
        (folder / ".gitattributes").write_text("*.bat text eol=crlf\n")
        git("init", "--quiet", folder=folder)
        git("add", "--all", folder=folder)
        git("commit", "--quiet", "--message=release", folder=folder)
        git("tag", "v1.1.0", folder=folder)
        self.commit = git("rev-parse", "HEAD", folder=folder)
        self.tree = git("rev-parse", "HEAD^{tree}", folder=folder)
        pin = Pin("spack", "1.1.0", folder.as_uri(), "v1.1.0", self.commit, self.tree)
        self.pins = both(pin)

    def archive(self, path: Path) -> Path:
        git("archive", "--prefix=spack-1.1.0/", f"--output={path}", "HEAD", folder=self.folder)
        return path


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    return Upstream(tmp_path / "upstream")


def both(pin: Pin) -> Pins:
    return Pins(pin, dataclasses.replace(pin, name="packages"))


def brought(state: Path, pins: Pins, place: str = "") -> Path:
    places = {"spack": place, "packages": place}
    bring(state, pins=pins, places=places, environ={})
    return state / "spack" / "root"


def places_of(upstream: Upstream, scratch: Path) -> dict[str, str]:
    bare = scratch / "bare.git"
    git("clone", "--quiet", "--bare", upstream.folder, bare, folder=scratch)
    bundle = scratch / "release.bundle"
    git("bundle", "create", "--quiet", bundle, "v1.1.0", folder=upstream.folder)
    unpacked = scratch / "unpacked"
    with tarfile.open(upstream.archive(scratch / "for-folder.tar.gz")) as tar:
        tar.extractall(unpacked)
    used = unpacked / "spack-1.1.0" / "__pycache__"
    used.mkdir()
    (used / "x.pyc").touch()
    return {
        "upstream": "",
        "a checkout": str(upstream.folder),
        "a bare repository": str(bare),
        "an address": bare.as_uri(),
        "a bundle": str(bundle),
        "an archive": str(upstream.archive(scratch / "release.tar.gz")),
        "an unpacked release": str(unpacked / "spack-1.1.0"),
    }


WAYS = (
    *("upstream", "a checkout", "a bare repository", "an address", "a bundle"),
    *("an archive", "an unpacked release"),
)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_brings_the_same_files(tmp_path, upstream, way):
    root = brought(tmp_path / "state", upstream.pins, places_of(upstream, tmp_path)[way])
    assert git_tree(root) == upstream.tree
    assert os.access(root / "bin" / "spack", os.X_OK)
    assert (root / "link").readlink() == Path("bin/spack")
    assert not (root / ".git").exists()
    assert not (root / "__pycache__").exists()
    assert json.loads((root / bootstrap.STAMP).read_text())["commit"] == upstream.commit
    assert sorted(path.name for path in root.parent.iterdir()) == [
        *("packages", "packages.lock", "root", "root.lock")
    ]


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
    assert git_tree(tmp_path / "spack" / "root") == upstream.tree


def test_another_pin_replaces_what_is_here(tmp_path, upstream):
    root = brought(tmp_path / "state", upstream.pins)
    (upstream.folder / "new").write_text("of the next release\n")
    git("add", "--all", folder=upstream.folder)
    git("commit", "--quiet", "--message=next", folder=upstream.folder)
    git("tag", "--force", "v1.1.0", folder=upstream.folder)
    following = dataclasses.replace(
        upstream.pins.spack,
        commit=git("rev-parse", "HEAD", folder=upstream.folder),
        tree=git("rev-parse", "HEAD^{tree}", folder=upstream.folder),
    )
    assert not (root / "new").exists()
    assert (brought(tmp_path / "state", both(following)) / "new").exists()


def test_a_moved_tag_is_refused(tmp_path, upstream):
    git("commit", "--quiet", "--allow-empty", "--message=other", folder=upstream.folder)
    git("tag", "--force", "v1.1.0", folder=upstream.folder)
    with pytest.raises(BootstrapError, match=r"tag v1\.1\.0 .* is commit .* refused"):
        brought(tmp_path / "state", upstream.pins)
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_a_changed_release_is_refused_and_nothing_of_it_stays(tmp_path, upstream):
    (upstream.folder / "bin" / "spack").write_text(SPACK + "# more\n")
    shutil.rmtree(upstream.folder / ".git")
    with pytest.raises(BootstrapError, match=r"not Spack 1\.1\.0 as released .* refused"):
        brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_a_repository_without_the_commit_is_named(tmp_path, upstream):
    other = dataclasses.replace(upstream.pins.spack, commit="f" * 40)
    told = rf"^{upstream.folder} does not hold Spack 1\.1\.0 \(commit ffffffffffff"
    with pytest.raises(BootstrapError, match=told):
        brought(tmp_path / "state", both(other), str(upstream.folder))


def test_a_cut_archive_is_no_release(tmp_path, upstream):
    archive = upstream.archive(tmp_path / "release.tar.gz")
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(BootstrapError, match=r"damaged or truncated .* fetch Spack 1\.1\.0 again"):
        brought(tmp_path / "state", upstream.pins, str(archive))
    assert left_over(tmp_path / "state") == ["root.lock"]


def repacked(upstream: Upstream, path: Path, **more: str) -> Path:
    """Return an archive of the release with more files in it, and links, as ``@target``."""
    with tarfile.open(upstream.archive(path.with_suffix(".plain.tar"))) as tar:
        members = [(one, tar.extractfile(one) if one.isreg() else None) for one in tar]
        with tarfile.open(path, "w:gz") as packed:
            for one, content in members:
                packed.addfile(one, content)
            for name, text in more.items():
                extra = tarfile.TarInfo(f"spack-1.1.0/{name}")
                if text.startswith("@"):
                    extra.type, extra.linkname = tarfile.SYMTYPE, text[1:]
                extra.size = 0 if text.startswith("@") else len(text)
                packed.addfile(extra, io.BytesIO(text.encode()))
    return path


def test_an_archive_with_more_in_it_is_refused(tmp_path, upstream):
    archive = repacked(upstream, tmp_path / "release.tar.gz", **{"bin/more": "more"})
    with pytest.raises(BootstrapError, match=r"not Spack 1\.1\.0 as released .* refused"):
        brought(tmp_path / "state", upstream.pins, str(archive))
    assert left_over(tmp_path / "state") == ["root.lock"]


def test_an_archive_with_a_member_that_leads_out_is_refused(tmp_path, upstream):
    archive = repacked(upstream, tmp_path / "release.tar.gz", **{"../../../../outside": "x"})
    with pytest.raises(BootstrapError, match=r"release\.tar\.gz: .* leads out of the folder"):
        brought(tmp_path / "state", upstream.pins, str(archive))
    assert left_over(tmp_path / "state") == ["root.lock"]
    assert not list(tmp_path.rglob("outside"))


def test_what_the_checksum_does_not_cover_is_not_taken_from_an_archive(tmp_path, upstream):
    """Bytecode would run in place of the source that was verified."""
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    unproven = {"__pycache__/x.pyc": "y", ".git": "gitdir: /x", bootstrap.STAMP: f"@{victim}"}
    archive = repacked(upstream, tmp_path / "release.tar.gz", **unproven)
    root = brought(tmp_path / "state", upstream.pins, str(archive))
    assert not {"__pycache__", ".git"} & {path.name for path in root.iterdir()}
    assert (root / "bin" / "spack").read_text() == SPACK
    assert victim.read_text() == "as it was"


def test_a_copy_runs_no_program_that_its_own_configuration_names(tmp_path, upstream):
    mark = tmp_path / "mark"
    git("config", "filter.x.smudge", f"touch {mark}; cat", folder=upstream.folder)
    (upstream.folder / ".git" / "info").mkdir(exist_ok=True)
    (upstream.folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    root = brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert git_tree(root) == upstream.tree
    assert not mark.exists()


def test_a_worktree_is_a_copy_as_well(tmp_path, upstream):
    git("worktree", "add", "--quiet", tmp_path / "tree", "v1.1.0", folder=upstream.folder)
    root = brought(tmp_path / "state", upstream.pins, str(tmp_path / "tree"))
    assert git_tree(root) == upstream.tree


def test_a_place_is_no_option_of_git(tmp_path, upstream, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Without a place, git would take the tag's name for one.
    git("clone", "--quiet", "--bare", upstream.folder, "refs/tags/v1.1.0", folder=tmp_path)
    with pytest.raises(BootstrapError, match="cannot be fetched from"):
        brought(tmp_path / "state", upstream.pins, "--upload-pack=touch${IFS}mark;:")
    assert not (tmp_path / "mark").exists()


def test_no_password_of_an_address_is_told_or_kept(tmp_path, upstream):
    said: list[str] = []
    places = {"spack": "https://me:secret@127.0.0.1:1/spack.git"}
    with pytest.raises(BootstrapError, match=r"from https://127\.0\.0\.1:1/spack\.git") as told:
        bring(tmp_path, pins=upstream.pins, places=places, environ={}, say=said.append)
    assert "secret" not in str(told.value) + "".join(said)


def test_what_is_nothing_is_said(tmp_path, upstream):
    with pytest.raises(BootstrapError, match="is not a folder, an archive or an address"):
        brought(tmp_path / "state", upstream.pins, str(tmp_path / "missing"))


def test_a_killed_run_leaves_nothing_that_counts(tmp_path, upstream):
    """What a kill leaves is a folder beside the place, or a place without the stamp."""
    state = tmp_path / "state"
    (state / "spack" / ".root-killed").mkdir(parents=True)
    (state / "spack" / "root" / "bin").mkdir(parents=True)
    root = brought(state, upstream.pins)
    assert git_tree(root) == upstream.tree
    assert not (state / "spack" / ".root-killed").exists()


def test_a_full_disk_is_a_sentence(tmp_path, upstream, monkeypatch):
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "file")

    monkeypatch.setattr(shutil, "copytree", full)
    shutil.rmtree(upstream.folder / ".git")
    with pytest.raises(BootstrapError, match=r"disk is full .* CLUSTERGATE_HOME"):
        brought(tmp_path / "state", upstream.pins, str(upstream.folder))
    assert left_over(tmp_path / "state") == ["root.lock"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_that_cannot_be_written_is_a_sentence(tmp_path, upstream):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BootstrapError, match="a folder you may write to"):
            brought(tmp_path / "state", upstream.pins)
    finally:
        tmp_path.chmod(0o700)


def left_over(state: Path) -> list[str]:
    return sorted(path.name for path in (state / "spack").iterdir())


def test_places_are_told_apart(tmp_path):
    assert kind_of(str(tmp_path)) == "folder"
    assert kind_of("https://example.org/spack.git") == "remote"
    assert kind_of("git@example.org:spack/spack.git") == "remote"
    assert kind_of("/nowhere/spack.tar.gz") == ""
    assert kind_of("./nowhere:8") == ""


@needs_git
def test_the_content_is_what_git_says_it_is(upstream):
    assert git_tree(upstream.folder) == upstream.tree


# What git 2.39.5 said: without a network, for a repository that is none, for a missing tag.
PIN = Pin("spack", "1.1.0", "https://example.org/spack.git", "v1.1.0", "a" * 40, "b" * 40)


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
        assert len(bytes.fromhex(pin.commit)) == len(bytes.fromhex(pin.tree)) == 20
    assert pins.spack.tag == f"v{pins.spack.version}"
    assert pins.packages.tag == f"v{pins.packages.version}"
