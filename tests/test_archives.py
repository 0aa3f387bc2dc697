"""Unpacking archives that were made to write where they should not."""

import copy
import io
import os
import tarfile
from pathlib import Path

import pytest

from clustergate.stacks.archives import ArchiveError, unpack


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **more: int
) -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type = kind
    found.linkname = link
    found.mode = more.pop("mode", 0o644)
    for key, value in more.items():
        setattr(found, key, value)
    return found


def folder(name: str) -> tarfile.TarInfo:
    return member(name, tarfile.DIRTYPE, mode=0o700)


def link(name: str, target: str) -> tarfile.TarInfo:
    return member(name, tarfile.SYMTYPE, target)


def hard(name: str, target: str) -> tarfile.TarInfo:
    return member(name, tarfile.LNKTYPE, target)


def archive_of(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for number, one in enumerate(members):
            content = f"content {number}\n".encode() if one.isreg() else b""
            one.size = len(content)
            tar.addfile(one, io.BytesIO(content))
    return path


OUTSIDE = "written-outside"
LEAVING = {
    "above": [folder("top"), member(f"top/../../{OUTSIDE}")],
    "above, plainly": [folder("top"), member(f"../{OUTSIDE}")],
    "absolute": [folder("top"), member("{tmp}/" + OUTSIDE)],
    "through a link": [folder("top"), link("top/l", "{tmp}"), member(f"top/l/{OUTSIDE}")],
    "through a later link": [folder("top"), member("top/l/x"), link("top/l", "..")],
    "a hard link out": [folder("top"), hard("top/h", f"../{OUTSIDE}")],
    "a hard link to a link": [folder("top"), link("top/l", "x"), hard("top/h", "top/l")],
    "a hard link to nothing": [folder("top"), hard("top/h", "top/later"), member("top/later")],
    "a pipe": [folder("top"), member("top/p", tarfile.FIFOTYPE)],
    "a device": [folder("top"), member("top/d", tarfile.CHRTYPE, devmajor=1, devminor=3)],
}


@pytest.mark.parametrize("case", LEAVING)
def test_what_leaves_the_folder_is_refused_before_anything_is_written(tmp_path, case):
    members = copy.deepcopy(LEAVING[case])
    for one in members:
        one.name = one.name.format(tmp=tmp_path)
        one.linkname = one.linkname.format(tmp=tmp_path)
    archive = archive_of(tmp_path / "x.tar.gz", *members)
    target = tmp_path / "a" / "target"
    target.mkdir(parents=True)
    with pytest.raises(ArchiveError, match=r"x\.tar\.gz: '.*' in it .*, so it is refused") as told:
        unpack(archive, target)
    assert "\n" not in str(told.value)
    assert list(target.iterdir()) == []
    assert not list(tmp_path.rglob(OUTSIDE))


def test_what_is_in_order_is_unpacked_as_it_is(tmp_path):
    os.umask(mask := os.umask(0))
    archive = archive_of(
        tmp_path / "x.tar.xz",
        *(folder("./"), folder("./top/"), folder("top/bin"), folder("top/bin")),
        *(member("top/bin/run", mode=0o6777, uid=1234), member("./top/read", mode=0o666)),
        # The last of a name counts.
        *(link("top/twice", "{tmp}"), member("top/twice"), member("top/twice")),
        *(link("top/bin/up", ".."), link("top/bin/l", "../read"), link("top/lost", "nowhere")),
        hard("top/also", "./top/read"),
    )
    target = tmp_path / "target"
    target.mkdir()
    top = unpack(archive, target)
    assert top == target / "top"
    modes = {path.name: oct(path.lstat().st_mode & 0o7777) for path in (top / "bin", top / "read")}
    assert (top / "bin" / "run").stat().st_mode & 0o7777 == 0o755 & ~mask
    assert (top / "bin" / "run").stat().st_uid == os.getuid()
    assert modes == {"bin": oct(0o755 & ~mask), "read": oct(0o644 & ~mask)}
    assert (top / "also").read_text() == (top / "bin" / "l").read_text() == "content 5\n"
    assert (top / "twice").read_text() == "content 8\n"
    assert (top / "lost").is_symlink()


def test_what_is_named_is_left_out(tmp_path):
    archive = archive_of(
        tmp_path / "x.tar.gz",
        *(folder("top"), member("top/x.py"), folder("top/__pycache__")),
        *(member("top/__pycache__/x.pyc"), link("top/stamp", "x.py")),
    )
    target = tmp_path / "target"
    target.mkdir()
    top = unpack(archive, target, without=("__pycache__", "stamp"))
    assert [path.name for path in top.iterdir()] == ["x.py"]


@pytest.mark.parametrize("tops", [(), ("one", "two")])
def test_one_folder_stands_at_the_top(tmp_path, tops):
    archive = archive_of(tmp_path / "x.tar.gz", member("x"), *(folder(top) for top in tops))
    with pytest.raises(ArchiveError, match="it must hold one top folder, and holds"):
        unpack(archive, tmp_path / "target")


@pytest.mark.parametrize("kept", [10, 60, 110])
def test_a_cut_archive_is_said_to_be_one(tmp_path, kept):
    archive = archive_of(tmp_path / "x.tar.gz", folder("top"), *(member(f"top/{n}") for n in "abc"))
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(ArchiveError, match=r"x\.tar\.gz is damaged or truncated"):
        unpack(archive, tmp_path / "target")
