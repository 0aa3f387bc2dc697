"""Unpacking the archives of sources."""

import io
import tarfile
from pathlib import Path

import pytest

from clustergate.core.model import ClustergateError
from clustergate.stacks.builder import unpack


def archive_of(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(name), 0o755
            tar.addfile(member, io.BytesIO(name.encode()))
    return path


def test_an_archive_is_its_one_folder(tmp_path):
    archive = archive_of(tmp_path / "a.tar.gz", "hpl-2.3/configure", "hpl-2.3/src/x.c")
    (tmp_path / "into").mkdir()
    top = unpack(archive, tmp_path / "into")
    assert top == tmp_path / "into" / "hpl-2.3"
    assert (top / "src" / "x.c").read_text() == "hpl-2.3/src/x.c"
    assert (top / "configure").stat().st_mode & 0o100


def test_a_source_of_one_file_is_copied(tmp_path):
    (tmp_path / "into").mkdir()
    (source := tmp_path / "stream.c").write_text("int main(void) { return 0; }\n")
    top = unpack(source, tmp_path / "into")
    assert (top / "stream.c").read_bytes() == source.read_bytes()


@pytest.mark.parametrize(("names", "said"), [(["a/x", "b/y"], "a, b"), (["x"], "x")])
def test_an_archive_of_something_else_is_named(tmp_path, names, said):
    archive = archive_of(tmp_path / "a.tar.gz", *names)
    (tmp_path / "into").mkdir()
    with pytest.raises(ClustergateError, match=rf"a\.tar\.gz .* top-level folder, .* {said}$"):
        unpack(archive, tmp_path / "into")


@pytest.mark.parametrize("kept", [0, 40])
def test_a_truncated_archive_is_named(tmp_path, kept):
    archive = archive_of(tmp_path / "a.tar.gz", "hpl-2.3/configure")
    archive.write_bytes(archive.read_bytes()[:kept])
    (tmp_path / "into").mkdir()
    with pytest.raises(ClustergateError, match=r"a\.tar\.gz is damaged or truncated"):
        unpack(archive, tmp_path / "into")


@pytest.mark.skipif(not hasattr(tarfile, "data_filter"), reason="this Python has no filter")
def test_nothing_is_written_outside(tmp_path):
    archive = archive_of(tmp_path / "a.tar.gz", "top/x", "top/../../outside")
    (tmp_path / "into").mkdir()
    with pytest.raises(ClustergateError, match="outside"):
        unpack(archive, tmp_path / "into")
    assert not (tmp_path / "outside").exists()
