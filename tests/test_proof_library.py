"""The proof library itself, in front of a stand-in for MPI: what it says of preloads and clocks."""

import os
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from clustergate.core.paths import checkout
from clustergate.launch.proof.ranks import RankProof, read_proofs
from tests.test_shared_files import two_nodes

__all__ = ["two_nodes"]

SOURCES = checkout() / "clustergate" / "machine" / "kernels" / "src"
HEADER = """
typedef int MPI_Comm;
enum { MPI_SUCCESS = 0, MPI_COMM_WORLD = 1, MPI_MAX_LIBRARY_VERSION_STRING = 64 };
int MPI_Init(int *, char ***), PMPI_Init(int *, char ***);
int MPI_Init_thread(int *, char ***, int, int *), PMPI_Init_thread(int *, char ***, int, int *);
int MPI_Finalize(void), PMPI_Finalize(void);
int MPI_Abort(MPI_Comm, int), PMPI_Abort(MPI_Comm, int);
int PMPI_Get_version(int *, int *), PMPI_Get_library_version(char *, int *);
int PMPI_Comm_rank(MPI_Comm, int *), PMPI_Comm_size(MPI_Comm, int *);
double MPI_Wtime(void);
"""
LIBRARY = """
#include <mpi.h>
#include <stdlib.h>
#include <time.h>
static int said(const char *name, int otherwise)
{
    const char *value = getenv(name);
    return value ? atoi(value) : otherwise;
}
int PMPI_Init(int *a, char ***b) { return 0; }
int MPI_Init(int *a, char ***b) { return 0; }
int PMPI_Init_thread(int *a, char ***b, int c, int *d) { return 0; }
int PMPI_Finalize(void) { return 0; }
int MPI_Finalize(void) { return 0; }
int PMPI_Abort(MPI_Comm a, int b) { return 0; }
int PMPI_Get_version(int *a, int *b) { *a = 4; *b = 0; return 0; }
int PMPI_Get_library_version(char *a, int *b) { *a = 0; *b = 0; return 0; }
int PMPI_Comm_rank(MPI_Comm a, int *b) { *b = said("RANK", 0); return 0; }
int PMPI_Comm_size(MPI_Comm a, int *b) { *b = said("RANKS", 1); return 0; }
double MPI_Wtime(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
"""
PROGRAM = """
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>
int main(int count, char **words)
{
    MPI_Init(&count, &words);
    if (count > 1 && dlopen(words[1], RTLD_NOW) == 0)
        return 1;
    usleep(100000);
    return MPI_Finalize();
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-in, a program, the proof library, and libraries that do little."""
    folder = tmp_path_factory.mktemp("stand-in")
    (folder / "mpi.h").write_text(HEADER)
    for name, text in (("libmpi", LIBRARY), ("program", PROGRAM)):
        (folder / f"{name}.c").write_text(text)
    (folder / "libnothing.c").write_text("int nothing;\n")
    (folder / "libdlopens.c").write_text(
        "#include <dlfcn.h>\n__attribute__((constructor)) static void begin(void)\n"
        f'{{ dlopen("{folder}/libnothing.so", RTLD_NOW); }}\n'
    )
    cc = ["cc", "-w", "-O2", "-fPIC", f"-I{folder}", f"-L{folder}", f"-Wl,-rpath,{folder}"]
    for name in ("libnothing", "libdlopens", "libmpi"):
        compile_(*cc, "-shared", folder / f"{name}.c", "-o", folder / f"{name}.so", "-ldl")
    compile_(*cc, folder / "program.c", "-o", folder / "program", "-lmpi", "-ldl")
    compile_(*cc, "-Wl,--no-as-needed", folder / "program.c", "-o", folder / "linked",
             "-lmpi", "-ldl", "-ldlopens")  # fmt: skip
    proof = [SOURCES / name for name in ("proof.c", "progress.c")]
    compile_(*cc, "-pthread", "-shared", *proof, "-o", folder / "libproof.so", "-lmpi", "-ldl")
    return folder


def compile_(*words: object) -> None:
    subprocess.run(list(map(str, words)), check=True)


def record(
    built: Path, tmp_path: Path, preload: str, asked: str, *words: object, **variables: str
) -> RankProof:
    """Run the program with libraries of that folder preloaded, and return its record."""

    def paths(names: str) -> str:
        return ":".join(str(built / name) for name in ["libproof.so", *names.split()])

    environment = {
        **os.environ,
        "LD_PRELOAD": paths(preload),
        "CLUSTERGATE_PRELOAD": paths(asked),
        "CLUSTERGATE_PROOF_DIR": str(tmp_path),
        **variables,
    }
    program, *options = words or (built / "program",)
    subprocess.run(list(map(str, (program, *options))), env=environment, check=True)
    (found,) = read_proofs(tmp_path)
    return found


def test_without_a_preload_there_is_nothing_to_name(built, tmp_path):
    found = record(built, tmp_path, "", "")
    assert found.finalized
    assert found.foreign_preloads == ()
    assert any(path.endswith("/libmpi.so") for path in found.objects)


def test_a_preload_that_was_not_asked_for_is_named(built, tmp_path):
    found = record(built, tmp_path, "libnothing.so", "")
    assert found.foreign_preloads == (str(built / "libnothing.so"),)


def test_a_preload_that_was_asked_for_is_not(built, tmp_path):
    assert record(built, tmp_path, "libnothing.so", "libnothing.so").foreign_preloads == ()


def test_of_several_those_that_were_not_asked_for_are_named(built, tmp_path):
    found = record(built, tmp_path, "libnothing.so libdlopens.so", "libnothing.so")
    assert found.foreign_preloads == (str(built / "libdlopens.so"),)


def test_loaders_own_word_holds_without_a_request(built, tmp_path):
    found = record(built, tmp_path, "libnothing.so", "", "env", "-u", "CLUSTERGATE_PRELOAD",
                   built / "program")  # fmt: skip
    assert found.foreign_preloads == ()


def test_what_a_program_loads_or_is_linked_with_is_no_preload(built, tmp_path):
    """As UCX, libfabric and the name service load their modules, some before main begins."""
    found = record(built, tmp_path, "", "", built / "linked", built / "libnothing.so")
    assert {"libdlopens.so", "libnothing.so"} <= {Path(path).name for path in found.objects}
    assert found.foreign_preloads == ()


def test_a_dependency_of_the_program_may_be_preloaded(built, tmp_path):
    assert record(built, tmp_path, "libmpi.so", "").foreign_preloads == ()


def test_clocks_are_those_of_the_kernel(built, tmp_path):
    passed = record(built, tmp_path, "", "").passed
    assert passed is not None
    assert passed.seconds >= 0.1
    assert list(passed.misled()) == []


def test_an_auditing_library_is_named_by_its_variable_alone(built, tmp_path):
    found = record(built, tmp_path, "", "", LD_AUDIT="/nowhere/secret.so", UCX_TOKEN="secret")
    assert {"LD_AUDIT", "LD_PRELOAD", "UCX_TOKEN"} <= found.environment
    (path,) = tmp_path.glob("rank-*.json")
    assert "secret" not in path.read_text()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_rank_calls_the_shared_file_system_a_few_times(built, tmp_path):
    """A thousand ranks do so at once: to load the library, and for what they say twice."""
    shared, trace = tmp_path / "shared", tmp_path / "trace"
    shared.mkdir()
    library = shutil.copy(built / "libproof.so", shared)
    variables = {"CLUSTERGATE_PRELOAD": library, "CLUSTERGATE_PROOF_DIR": str(shared)}
    command = ["strace", "-f", "-y", "-E", f"LD_PRELOAD={library}", "-o", str(trace)]
    subprocess.run([*command, built / "program"], env={**os.environ, **variables}, check=True)
    calls = [line for line in trace.read_text().splitlines() if str(shared) in line]
    kinds = Counter(re.findall(r"^\d+ +(\w+)\(", "\n".join(calls), re.MULTILINE))
    assert len(calls) <= 30, kinds
    # What a file server does one after the other in a folder.
    assert sum("O_CREAT" in call for call in calls) == 3
    assert kinds["rename"] == 2
    assert {path.suffix for path in shared.iterdir()} == {".so", ".json", ""}


def test_a_thousand_ranks_at_once_say_who_they_are(built, tmp_path, two_nodes):
    """One half through each of two mounts that remember for seconds, as nodes of NFS do."""
    ranks = 1000
    for k, node in enumerate(two_nodes):
        shutil.copy(built / "libproof.so", node / f"libproof{k}.so")
    script = """\
for ((i = 0; i < RANKS; i++)); do
    node=$((i % 2 + 1)) here=${!node} library=$here/libproof$((i % 2)).so
    RANK=$i LD_PRELOAD=$library CLUSTERGATE_PRELOAD=$library CLUSTERGATE_PROOF_DIR=$here "$0" &
done
wait"""
    words = ["bash", "-c", script, built / "program", *two_nodes]
    subprocess.run(words, env={**os.environ, "RANKS": str(ranks)}, check=True)
    found = read_proofs(two_nodes[0])
    assert sorted(proof.rank for proof in found) == list(range(ranks))
    assert all(proof.finalized and proof.size == ranks for proof in found)
