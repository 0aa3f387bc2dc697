import dataclasses
import errno
import hashlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from clustergate.benchmarks.build import Source
from clustergate.benchmarks.registry import builds
from clustergate.core.interrupts import block_new_work
from clustergate.stacks import sources
from clustergate.stacks.sources import (
    SOURCE_TIMED_OUT,
    SourceUnavailable,
    named_folders,
    obtain,
)
from tests.conftest import PATIENCE_S

CONTENT = b"an archive"
SOURCE = Source(
    name="thing",
    version="1.0",
    file_name="thing-1.0.tar.gz",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    # A closed port of this machine: refused at once, whatever the network is.
    url="http://127.0.0.1:9/thing-1.0.tar.gz",
)


def archives(cache):
    """Return what a cache holds beside the lock of who fills it, and notes of what failed."""
    return [path.name for path in cache.iterdir() if path.suffix not in (".lock", ".unavailable")]


def test_the_cache_is_used_without_a_network(tmp_path):
    (tmp_path / SOURCE.file_name).write_bytes(CONTENT)
    assert obtain(SOURCE, tmp_path) == tmp_path / SOURCE.file_name


def test_damaged_cache_dropped_with_what_to_do(tmp_path):
    (tmp_path / SOURCE.file_name).write_bytes(CONTENT[:-1])
    with pytest.raises(SourceUnavailable, match=r"cannot be reached.*CLUSTERGATE_SOURCES"):
        obtain(SOURCE, tmp_path)
    assert not (tmp_path / SOURCE.file_name).exists()


def test_a_named_folder_serves_a_machine_without_a_network(tmp_path):
    folder = tmp_path / "brought-along"
    folder.mkdir()
    (folder / SOURCE.file_name).write_bytes(CONTENT)
    cache = tmp_path / "cache"
    with pytest.raises(SourceUnavailable):
        obtain(SOURCE, cache)
    assert obtain(SOURCE, cache, [folder]).read_bytes() == CONTENT
    # The next shell may not name the folder, and builds the same.
    assert obtain(SOURCE, cache) == cache / SOURCE.file_name
    assert not sources.last_failure(SOURCE, cache)


def test_a_named_folder_serves_where_the_cache_has_no_room(tmp_path, monkeypatch):
    (tmp_path / SOURCE.file_name).write_bytes(CONTENT)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    assert obtain(SOURCE, tmp_path / "cache", [tmp_path]) == tmp_path / SOURCE.file_name


def test_another_checksum_in_a_named_folder_is_refused(tmp_path):
    (tmp_path / SOURCE.file_name).write_bytes(b"something else")
    with pytest.raises(SourceUnavailable, match="refused; remove it, or put upstream's own"):
        obtain(SOURCE, tmp_path / "cache", [tmp_path])


def test_a_named_folder_that_is_not_there_is_said(tmp_path):
    assert named_folders({"CLUSTERGATE_SOURCES": f"{tmp_path}:"}) == [tmp_path]
    assert named_folders({}) == []
    with pytest.raises(SourceUnavailable, match=r"/typo, which is not a folder; correct it, or"):
        named_folders({"CLUSTERGATE_SOURCES": f"{tmp_path}:{tmp_path}/typo"})


def test_what_upstream_serves_is_refused_when_its_checksum_differs(tmp_path, httpserver):
    source = dataclasses.replace(SOURCE, url=httpserver(b"tampered with"))
    with pytest.raises(SourceUnavailable, match=r"has the checksum .* refused"):
        obtain(source, tmp_path)
    assert archives(tmp_path) == []


def test_what_upstream_serves_is_kept_when_its_checksum_is_right(tmp_path, httpserver):
    source = dataclasses.replace(SOURCE, url=httpserver(CONTENT))
    assert obtain(source, tmp_path).read_bytes() == CONTENT
    assert archives(tmp_path) == [SOURCE.file_name]


def test_what_a_killed_fetch_left_is_removed_by_the_next_one(tmp_path, httpserver):
    abandoned = tmp_path / f".{SOURCE.file_name}-abandoned"
    abandoned.mkdir()
    (abandoned / SOURCE.file_name).write_bytes(CONTENT[:-1])
    # Of another source it may still be under way.
    (tmp_path / ".other.tar.gz-abandoned").mkdir()
    obtain(dataclasses.replace(SOURCE, url=httpserver(CONTENT)), tmp_path)
    assert not abandoned.exists()
    assert (tmp_path / ".other.tar.gz-abandoned").exists()


def test_a_download_that_stalls_holds_no_interrupt(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.tar.gz"
        stalled = dataclasses.replace(SOURCE, url=url)
        stopped = []

        def fetch():
            try:
                sources._from_upstream(stalled, tmp_path / "x")
            except KeyboardInterrupt as interrupt:
                stopped.append(interrupt)

        fetching = threading.Thread(target=fetch, daemon=True)
        fetching.start()
        # It has been asked, and does not answer.
        asked, _ = silent.accept()
        with asked, block_new_work():
            fetching.join(PATIENCE_S)
            assert stopped


def test_an_upstream_that_answers_404_is_named(tmp_path, httpserver):
    source = dataclasses.replace(SOURCE, url=httpserver(CONTENT) + ".missing")
    with pytest.raises(SourceUnavailable, match="answers 404"):
        obtain(source, tmp_path)


def test_a_machine_without_apt_is_no_error_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnavailable, match="has no apt-get"):
        obtain(dataclasses.replace(SOURCE, debian="thing"), tmp_path)


@pytest.fixture
def apt(tmp_path, monkeypatch):
    """Let APT know the repositories whose addresses a test gives, and download as wget would."""

    def know(*addresses):
        listed = "".join(f"echo {address}/ main; " for address in addresses)
        for name, text in (("apt-get", listed), ("helper", HELPER)):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(sources, "APT_HELPER", str(tmp_path / "helper"))

    return know


# What apt-helper is given: options, its command, an address, a file.
HELPER = """cp "${4#file://}" "$5" 2>/dev/null || echo "E: Failed to fetch $4" >&2"""


def test_archive_from_the_repositorys_pool(tmp_path, apt):
    pool = tmp_path / "debian" / "pool" / "main" / "t" / "thing"
    pool.mkdir(parents=True)
    (pool / "thing_1.0.orig.tar.gz").write_bytes(CONTENT)
    apt(f"file://{tmp_path}/security", f"file://{tmp_path}/debian")
    debian = dataclasses.replace(SOURCE, debian="thing")
    assert obtain(debian, tmp_path / "cache").read_bytes() == CONTENT
    (pool / "thing_1.0.orig.tar.gz").write_bytes(b"another archive")
    with pytest.raises(SourceUnavailable, match=r"package thing has the checksum .* refused"):
        obtain(debian, tmp_path / "other")


def test_a_pool_without_the_archive_says_what_apt_says(tmp_path, apt):
    debian = dataclasses.replace(SOURCE, debian="thing")
    apt(f"file://{tmp_path}/nowhere")
    told = "Failed to fetch file://.*/nowhere/pool/main/t/thing/thing_1.0.orig.tar.gz"
    with pytest.raises(SourceUnavailable, match=told):
        obtain(debian, tmp_path / "cache")
    apt()
    with pytest.raises(SourceUnavailable, match="configures no package source"):
        obtain(debian, tmp_path / "cache")


def test_who_waits_for_what_cannot_be_had_does_not_try_again(tmp_path, monkeypatch):
    """Two stacks ask at once; each attempt may take its whole time."""
    tried: list[str] = []
    waiting = threading.Event()

    def slow(source, target):
        tried.append(source.name)
        assert waiting.wait(PATIENCE_S)
        raise SourceUnavailable(SOURCE_TIMED_OUT())

    real = sources.local_copy

    def look(*arguments):
        if tried:
            waiting.set()
        return real(*arguments)

    monkeypatch.setattr(sources, "_from_upstream", slow)
    monkeypatch.setattr(sources, "local_copy", look)

    def ask(_):
        with pytest.raises(SourceUnavailable, match="timed out"):
            obtain(SOURCE, tmp_path)

    with ThreadPoolExecutor() as pool:
        first = pool.submit(ask, None)
        while not tried:
            time.sleep(0.01)
        second = pool.submit(ask, None)
        first.result()
        second.result()
    # Whoever asks later does.
    ask(None)
    assert tried == ["thing", "thing"]


def test_every_pinned_source_has_a_whole_checksum():
    known = {source for build in builds().values() for source in build.sources()}
    assert len(known) == 8
    for source in known:
        assert len(bytes.fromhex(source.sha256)) == 32
