"""Unpacking archives that were made to write where they should not."""

import copy
import io
import os
import tarfile
from pathlib import Path

import pytest

from clustergate.stacks.archives import ArchiveError, unpack


@pytest.fixture(params=["filtering", "older"])
def python(request, monkeypatch) -> str:
    """Run with a Python that has the filter, and with one that has not, as Debian 12's own."""
    if request.param == "older":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        real = tarfile.TarFile.extractall

        def unfiltered(self: tarfile.TarFile, path: str, members: list[tarfile.TarInfo]) -> None:
            if hasattr(tarfile, "fully_trusted_filter"):
                real(self, path, members, filter="fully_trusted")
            else:
                real(self, path, members)

        monkeypatch.setattr(tarfile.TarFile, "extractall", unfiltered)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filter")
    return str(request.param)


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
DEEP = "d/" * 60
LEAVING = {
    "above": [folder("top"), member(f"top/../../{OUTSIDE}")],
    "above, plainly": [folder("top"), member(f"../{OUTSIDE}")],
    "absolute": [folder("top"), member("{tmp}/" + OUTSIDE)],
    "through a link": [folder("top"), link("top/l", "{tmp}"), member(f"top/l/{OUTSIDE}")],
    "through a later link": [folder("top"), member("top/l/x"), link("top/l", "..")],
    "a link out": [folder("top"), link("top/l", "../../x")],
    "a link to beside the top": [folder("top"), link("top/l", "../other")],
    "a link at the top": [folder("top"), link("l", "top")],
    "a link through a link": [
        *(folder("top"), folder("top/a"), link("top/a/up", "..")),
        *(folder("top/b"), link("top/b/l", "../a/up/../../x")),
    ],
    "links in a circle": [folder("top"), link("top/a", "b"), link("top/b", "a")],
    "a link over a file": [folder("top"), member("top/x"), link("top/x", "y")],
    "a file over a link": [folder("top"), link("top/x", "y"), member("top/x")],
    "a file over a folder": [folder("top"), folder("top/x"), member("top/x")],
    "a hard link out": [folder("top"), hard("top/h", f"../{OUTSIDE}")],
    "a hard link to a link": [folder("top"), link("top/l", "x"), hard("top/h", "top/l")],
    "a hard link to nothing": [folder("top"), hard("top/h", "top/later"), member("top/later")],
    "a pipe": [folder("top"), member("top/p", tarfile.FIFOTYPE)],
    "a device": [folder("top"), member("top/d", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    # CVE-2025-4517: a path too long for the system's own resolution.
    "a long way": [folder("top"), folder(f"top/{DEEP}"), link("top/l", f"{DEEP}{'../' * 62}x")],
}


@pytest.mark.parametrize("case", LEAVING)
def test_what_leaves_the_folder_is_refused_before_anything_is_written(tmp_path, python, case):
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


def test_what_is_in_order_is_unpacked_alike_by_every_python(tmp_path, python):
    os.umask(mask := os.umask(0))
    archive = archive_of(
        tmp_path / "x.tar.xz",
        *(folder("./"), folder("./top/"), folder("top/bin"), folder("top/bin")),
        *(member("top/bin/run", mode=0o6777, uid=1234), member("./top/read", mode=0o666)),
        *(member("top/twice"), member("top/twice")),
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
    assert (top / "twice").read_text() == "content 7\n"
    assert (top / "lost").is_symlink()


def test_what_is_named_is_left_out(tmp_path, python):
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
