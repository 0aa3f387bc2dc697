"""Attacks on real runs: hostile environments, full disks, kills, and texts damaged on their way."""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from tests.conftest import until
from tests.test_silent_passes import verdict_of
from tools.attack.mutations import ATTACKS, Kind

pytestmark = pytest.mark.mpi

SMALL_HPL = ("-S", "n=1000")
OF_MPICH = ("--check=HplCheck", "--stack=mpich")
long = functools.partial(pytest.param, marks=pytest.mark.long)


@pytest.mark.parametrize("stack", [long("intel-mpi"), "mpich", long("openmpi")])
def test_a_crash_is_told_as_a_crash(suite, stack):
    """The commonest failure was told as peaks that take long, and a time limit to raise."""
    second = '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 1 ]'
    # Where a rank ends before MPI_Init, the others of some launchers wait until the time limit.
    script = f'"$real" && {second} && {{ echo broken; exit 41; }}; exit 0'
    suite.replace_program(stack, "xhpl", script)
    ended = suite.check(*SMALL_HPL, selection=("--check=HplCheck", f"--stack={stack}"))
    assert ended.returncode == 2
    assert "measuring its peaks" not in ended.stdout
    told = verdict_of(ended, stack=stack)
    assert "xhpl" in told, ended.stdout
    assert "status 41" in told, ended.stdout
    assert "the last line of its output: broken" in told


def test_a_wrapper_in_the_place_of_a_built_program_is_not_believed(suite):
    assert suite.call("setup", "--site", "local", "--stack", "mpich").returncode == 0
    built = suite.home / "manifests" / "built"
    held = {path: path.read_text() for path in built.iterdir()}
    suite.replace_program("mpich", "xhpl", 'exec "$real"')
    for path, text in held.items():
        path.write_text(text)
    ended = suite.check(*SMALL_HPL, selection=OF_MPICH)
    assert ended.returncode == 2
    # Where none of the stacks can be set up, that is all there is to say.
    said = ended.stdout + ended.stderr
    assert re.search(r"bin/xhpl in \S+ is not what was compiled there", said), said


HOSTILE = {
    **dict.fromkeys(("OPENBLAS_CORETYPE", "OPENBLAS_CORETYPE_HASWELL"), "Prescott"),
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "7"),
    **{"OMP_PROC_BIND": "master", "OMP_PLACES": "{0}", "KMP_AFFINITY": "disabled"},
    **{"INTEL_ISA_DISABLE": "avx512f,avx2", "INTEL_LIBITTNOTIFY64": "/nowhere", "TCM_ENABLE": "1"},
    **{"I_MPI_PIN": "0", "I_MPI_FABRICS": "ofi", "I_MPI_DEBUG": "5", "FI_PROVIDER": "tcp"},
    **{"I_MPI_HYDRA_BOOTSTRAP": "rsh", "HYDRA_LAUNCHER": "rsh", "HYDRA_BINDING": "none"},
    **{"UCX_TLS": "tcp", "UCX_LOG_LEVEL": "info", "MPICH_ASYNC_PROGRESS": "1"},
    **{"MPIR_CVAR_ENABLE_GPU": "1", "MPIR_CVAR_CH4_NETMOD": "ofi", "MPICH_NOLOCAL": "1"},
    **{"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_pml": "ob1", "OMPI_MCA_coll": "basic"},
    **{"PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe", "PMIX_MCA_gds": "hash"},
    **{"PMI_RANK": "77", "PMI_SIZE": "78", "PMIX_RANK": "77", "OMPI_COMM_WORLD_SIZE": "78"},
    **{"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2", "MALLOC_PERTURB_": "165"},
    **{"MALLOC_CHECK_": "3", "LD_BIND_NOW": "1", "LD_LIBRARY_PATH": "/nowhere"},
    **{"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
    **{"HPL_HOST_ARCH": "0", "CLUSTERGATE_PROOF_NONCE": "mine", "CLUSTERGATE_PRELOAD": "/nowhere"},
}


@pytest.mark.long
@pytest.mark.parametrize("stack", [long("intel-mpi"), "mpich", long("openmpi")])
def test_12_a_hostile_environment_reaches_no_rank(suite, tmp_path, stack):
    seen = tmp_path / "seen"
    seen.mkdir()
    suite.replace_program(stack, "xhpl", f'env > {seen}/$$; exec "$real"')
    # In a far time zone the dates of the output are of another day.
    selection = ("--check=HplCheck", f"--stack={stack}")
    ended = suite.check(*SMALL_HPL, selection=selection, TZ="Pacific/Kiritimati", **HOSTILE)
    assert verdict_of(ended, stack=stack) == "", ended.stdout
    assert ended.returncode == 0, ended.stdout + ended.stderr
    environments = [path.read_text().splitlines() for path in seen.iterdir()]
    assert environments
    hostile = {f"{name}={value}" for name, value in HOSTILE.items()}
    assert [hostile & set(environment) for environment in environments] == [set(), set()]


ON_A_SMALL_DISK = 'mount -t tmpfs -o size="$2" tmpfs "$1" || exit 77; shift 2; exec "$@"'


@pytest.mark.parametrize(
    ("folder", "size"),
    [("results", "8k"), long("results", "96k"), long("stage", "8k"), long("stage", "96k")],
)
def test_14_a_full_disk_is_no_pass(suite, folder, size):
    """On a disk of its own, where that may be mounted."""
    small = suite.home / folder
    small.mkdir(exist_ok=True)
    namespace = ["unshare", "--mount", "--propagation", "private"]
    under = [*namespace, "sh", "-c", ON_A_SMALL_DISK, "sh", str(small), size]
    if subprocess.run([*under, "true"], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    ended = suite.check(*SMALL_HPL, selection=OF_MPICH, under=under)
    told = ended.stdout + ended.stderr
    assert "Traceback" not in told
    # Also where all was measured and judged: whoever reads its files finds no verdict there.
    assert ended.returncode == 2, told
    assert "No space left on device" in told, told


QUICK_VICTIMS = ("clustergate.launch", "reframe")
VICTIMS = ("xhpl", "mpirun", "hydra_pmi_proxy", "node_peaks")


def processes_of(home: Path, word: str) -> list[int]:
    """Return the processes that run out of this folder with this word in their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        # A shell that will start it is not the program.
        called = {Path(w).name for w in words[:2]} | {w for m, w in pairwise(words) if m == "-m"}
        if word in called and str(home).encode() in environment:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("victim", [*QUICK_VICTIMS, *map(long, VICTIMS)])
def test_39_a_run_of_which_a_part_is_killed_leaves_no_pass(suite, victim):
    """At some moment while it is there, at another one each time."""
    running = subprocess.Popen(
        suite.check_command("-S", "n=5000", selection=OF_MPICH),
        env=suite.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not (found := processes_of(suite.home, victim)):
        assert running.poll() is None, f"{victim} never ran: {running.communicate()[0]}"
        time.sleep(0.02)
    time.sleep(random.uniform(0, 0.3))
    killed = False
    for process in found:
        try:
            os.kill(process, signal.SIGKILL)
            killed = True
        except ProcessLookupError:
            continue
        break
    told, _ = running.communicate()
    if not killed:
        pytest.skip(f"{victim} had ended before it was killed")
    assert running.returncode == 2, told
    assert "Traceback" not in told
    said = "ReFrame was killed by SIGKILL" if victim == "reframe" else "HPL with mpich"
    assert said in told
    until(lambda: not processes_of(suite.home, "xhpl"), lambda: processes_of(suite.home, "xhpl"))


PIPE = 'env -u LD_PRELOAD {python} -m tools.attack.pipe hpl "$name" 1'
IN_TURN = 'names=({names}); name="${{names[${{CLUSTERGATE_PROOF_NONCE##*-}}]}}"; '


def damage_launches(suite, names):
    """Let each launch of xhpl be attacked in another way."""
    quoted = " ".join(f'"{name}"' for name in names)
    piped = f'"$real" "$@" | (cd {checkout()} && {PIPE.format(python=sys.executable)})'
    suite.replace_program("mpich", "xhpl", IN_TURN.format(names=quoted) + piped)
    return suite.check(*SMALL_HPL, "-S", f"launches={len(names)}", selection=OF_MPICH)


def names_of(kind: Kind) -> list[str]:
    return [attack.name for attack in ATTACKS if attack.kind is kind]


@pytest.mark.long
def test_28_texts_that_are_damaged_on_their_way_are_no_pass(suite):
    elsewhere = {"dated to another day", "times that the launch does not hold"}
    names = [
        name
        for name in names_of(Kind.FAULT)
        if name not in {*elsewhere, "the word of another launch"}
    ]
    ended = damage_launches(suite, names)
    assert ended.returncode == 2, ended.stdout
    told = verdict_of(ended)
    for k, name in enumerate(names):
        assert f"launch {k} of {len(names)}: " in told, (name, told)


@pytest.mark.long
def test_18_texts_that_are_changed_honestly_on_their_way_pass(suite):
    ended = damage_launches(suite, names_of(Kind.HONEST))
    assert verdict_of(ended) == "", ended.stdout
    assert ended.returncode == 0, ended.stdout
