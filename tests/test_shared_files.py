"""Files that several nodes share: locks, what comes into sight late, writers that are killed.

Two mounts of one folder stand for two nodes. They are of a FUSE file system (bindfs) that remembers
for seconds what it has looked for, as NFS does, and has locks of its own on each.
"""

import errno
import fcntl
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from filelock import Timeout

from clustergate.core import store
from clustergate.core.files.shared import Mount, locked, mount_of
from clustergate.core.files.whole import write_whole
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason
from clustergate.launch.plan import OUTPUT, launch_folder, proof_folder
from clustergate.launch.proof.ranks import ProofExpectation
from clustergate.launch.reading import read_launch
from clustergate.run import resuming
from clustergate.run.readiness import check_locks

REMEMBERS_S = 3
MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 22 0:50 / /home rw,relatime shared:9 - nfs4 nas7:/home rw,vers=4.2,local_lock=none
41 22 0:51 / /scratch rw,relatime - lustre 10.0.0.1@o2ib:/scratch rw,localflock
42 22 0:52 / /old rw,relatime - nfs nas3:/old rw,vers=3,nolock,local_lock=all
43 40 0:53 / /home/my\040group rw,relatime - gpfs gpfs0 rw
44 22 0:54 / /project rw - autofs systemd-1 rw
45 44 0:55 / /project rw - lustre 10.0.0.1@o2ib:/project rw,flock
"""


@pytest.mark.parametrize(
    ("path", "kind", "shared", "local"),
    [
        ("/var/lib", "ext4", False, False),
        ("/home/alice/state", "nfs4", True, False),
        ("/homes/alice", "ext4", False, False),
        ("/home/my group/state", "gpfs", True, False),
        ("/scratch/a", "lustre", True, True),
        ("/old", "nfs", True, True),
        ("/project/a", "lustre", True, False),
    ],
)
def test_a_mount_tells_whether_others_write_there_and_see_locks(path, kind, shared, local):
    mount = mount_of(Path(path), MOUNTS)
    assert (mount.kind, mount.is_shared, mount.locks_locally) == (kind, shared, local)
    said = [one.says for one in check_locks(Path(path), mount)]
    codes = [one.code for one in said if isinstance(one, Reason)]
    assert codes == ["doctor.local-locks"] * local


def test_a_damaged_list_of_mounts_says_nothing():
    assert mount_of(Path("/home"), "nonsense\n\n1 2 - \n") == Mount("")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused(number, monkeypatch, tmp_path):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(ClustergateError) as refused, locked(tmp_path / "lock"):
        pytest.fail("it was locked")
    assert refused.value.reason.code == "file.no-locks"
    monkeypatch.undo()
    with locked(tmp_path / "lock", wait=False):
        pass


def test_whoever_waits_for_another_process_is_told(tmp_path):
    said: list[str] = []
    with (tmp_path / "lock").open("w") as another:
        fcntl.flock(another, fcntl.LOCK_EX)
        with pytest.raises(Timeout), locked(tmp_path / "lock", wait=False):
            pytest.fail("it was locked")
        later = threading.Timer(0.3, fcntl.flock, [another, fcntl.LOCK_UN])
        later.start()
        with locked(tmp_path / "lock", say=said.append):
            (only,) = said
        later.join()
    assert str(tmp_path / "lock") in only


def test_whoever_waits_for_a_thread_of_its_own_process_is_not_told(tmp_path):
    said: list[str] = []

    def wait() -> None:
        with locked(tmp_path / "lock", say=said.append):
            pass

    with locked(tmp_path / "lock"):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join()
    assert said == []


WRITER = """
import sys
from pathlib import Path
from clustergate.core.files.whole import write_whole
number = 0
while True:
    number += 1
    write_whole(Path(sys.argv[1]), f"{number}\\n" * 100_000)
    if number == 1:
        print("begun", flush=True)
"""


@pytest.fixture(params=["here", "shared"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "here":
        return tmp_path
    first, _ = request.getfixturevalue("two_nodes")
    return Path(first)


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(folder):
    path, chance = folder / "run.json", random.Random(7)
    seen = set()
    for _ in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begun\n"
            time.sleep(chance.uniform(0, 0.2))
            writer.send_signal(signal.SIGKILL)
        lines = path.read_text().splitlines()
        assert len(lines) == 100_000
        assert len(set(lines)) == 1
        seen.add(lines[0])
    assert seen


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    from clustergate.core.files import whole

    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        done.append("fsync")
        sync(descriptor)

    def noted_rename(source: str, target: Path) -> None:
        done.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_rename)
    whole.write_whole(tmp_path / "file", "text")
    assert done == ["fsync", "rename"]


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    """`--csv /dev/null` of root made a file of it, and of a link to a file another file."""
    pipe, link, device = (tmp_path / name for name in ("pipe", "link", "null"))
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, "text")
    assert os.read(reader, 9) == b"text"
    assert pipe.is_fifo()
    os.close(reader)
    (tmp_path / "file").write_text("old")
    link.symlink_to("file")
    write_whole(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    if os.geteuid() == 0:
        os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        write_whole(device, "text")
        assert device.is_char_device()
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "text")


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """Mount a folder twice, as two nodes have it."""
    if not shutil.which("bindfs") or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("bindfs is not installed, or there is no /dev/fuse")
    (tmp_path / "server").mkdir()
    places = tmp_path / "first", tmp_path / "second"
    remembers = ",".join(f"{what}_timeout={REMEMBERS_S}" for what in ("attr", "entry", "negative"))
    try:
        for place in places:
            place.mkdir()
            command = ["bindfs", "-o", remembers, str(tmp_path / "server"), str(place)]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"no FUSE file system can be mounted: {made.stderr}")
        yield places
    finally:
        for place in places:
            if os.path.ismount(place):
                subprocess.run(["umount", "-l", place], check=True)


def test_the_mounts_remember_and_lock_as_two_nodes_may(two_nodes):
    first, second = two_nodes
    assert not (second / "file").exists()
    begun = time.monotonic()
    (first / "file").write_text("text")
    # Unless the machine was too busy to look in time.
    assert not (second / "file").exists() or time.monotonic() - begun > REMEMBERS_S
    time.sleep(REMEMBERS_S + 0.5)
    assert (second / "file").read_text() == "text"
    mount = mount_of(first)
    assert mount.is_shared
    assert mount.locks_locally


def test_run_of_another_node_keeps_its_folder_with_local_locks(two_nodes, monkeypatch):
    first, second = two_nodes
    other = "20261101T000000Z-r1"
    monkeypatch.setenv("CLUSTERGATE_HOME", str(first))
    with resuming.lock_run(other):
        store.make_folder(store.stage_folder(other))
        monkeypatch.setenv("CLUSTERGATE_HOME", str(second))
        with resuming.lock_run("20261101T000000Z-r2"):
            pass
        assert (first / "stage" / other).is_dir()


def launch_on(job: Path, records: Sequence[Path]) -> None:
    folder = proof_folder(job, 0)
    folder.mkdir(parents=True)
    launch_folder(job, 0).mkdir()
    (launch_folder(job, 0) / OUTPUT).write_text("clustergate-launch 20261121-mpich-dgemm\n")
    for record in records:
        shutil.copyfile(record, folder / record.name)


def codes_of(job: Path) -> list[str]:
    expected = ProofExpectation(
        nonce="20261121-mpich-dgemm",
        ranks=2,
        mpi_library="/opt/stacks/mpich",
        library_pattern="MPICH",
    )
    complaints, _ = read_launch(job, 0, expected, lambda lines, source: [])
    return [one.code for one in complaints]


def test_records_that_come_into_sight_late_are_waited_for(two_nodes, data):
    """Who reads them has looked for them before they were there, and remembers that."""
    first, second = two_nodes
    records = sorted((data / "proof" / "mpich-dgemm").glob("rank-*.json"))
    assert len(records) == 2
    for record in records:
        assert not (proof_folder(second, 0) / record.name).exists()
    launch_on(first, records)
    assert codes_of(second) == []


def test_a_record_that_is_seen_as_it_was_before_is_waited_for(two_nodes, data):
    first, second = two_nodes
    records = sorted((data / "proof" / "mpich-dgemm").glob("rank-*.json"))
    launch_on(first, records)
    last = proof_folder(first, 0) / records[1].name
    whole = last.read_text()
    write_whole(last, whole.replace('"finalized":true', '"finalized":false'))
    assert (proof_folder(second, 0) / last.name).read_text() != whole
    threading.Timer(1, write_whole, [last, whole]).start()
    assert codes_of(second) == []


def test_a_record_that_never_comes_is_missed(two_nodes, data):
    first, second = two_nodes
    launch_on(first, sorted((data / "proof" / "mpich-dgemm").glob("rank-*.json"))[:1])
    assert "proof.missing-ranks" in codes_of(second)
