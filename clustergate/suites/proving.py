"""The proof of the ranks of somebody's MPI test: what its job runs for it, and what that left.

They are the functions by which the suite's own checks prove themselves. What those ask of a stack,
a test of somebody's asks of its job: the MPI library is the one that ``mpicc`` finds there, and the
ranks, nodes and cores are what ReFrame asked for. What cannot be proven is told, and not claimed.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustergate.core.model import ClustergateError, Launch
from clustergate.core.reasons import Reason, Words
from clustergate.judge.history.node_states import digest_of, keep_states
from clustergate.launch.disturbance import launch_of, node_loads
from clustergate.launch.plan import (
    ERRORS,
    NODES,
    OUTPUT,
    launch_folder,
    launch_nonce,
    proof_folder,
    proving,
)
from clustergate.launch.proof import ranks as proof
from clustergate.launch.proof.provenance import OUTPUT_WITHOUT_WORD, span_of
from clustergate.launch.proof.ranks import ProofExpectation, RankProof
from clustergate.launch.reading import read_output
from clustergate.machine.fingerprint import processor_of
from clustergate.machine.node import state_command
from clustergate.stacks.kernels import PROOF_FILES
from clustergate.suites.sessions import KEPT, Proven

FOLDER = "rank-proof"
"""Of a test's stage folder, for what its launches leave."""
_LIBRARY, _LINKED = "libproof.so", "libproof.ldd"
_NODES_S = 60

UNPROVEN_MPICC = Words(
    "suite.unproven-mpicc",
    "none of {compilers:names} compiled the proof library in the job",
    remedy="let the test's environment have mpicc, and a C compiler on the nodes; {log} says more",
)
UNPROVEN_CONTAINER = Words(
    "suite.unproven-container",
    "the program runs in a container, where nothing is preloaded",
    remedy="run it outside of one, or leave `prove_ranks` out",
)
# Each says that something was not seen, or that nobody asked for it, not that it was otherwise.
_UNSEEN = {
    proof.PROOF_PRELOADED.code,
    proof.PROOF_NO_RECORD.code,
    proof.OTHER_FAMILY.code,
    proof.STARTED_TWICE.code,
    OUTPUT_WITHOUT_WORD.code,
}


# --- the job --------------------------------------------------------------------------------------


def job_lines(stage: Path, launcher: str, compilers: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a job that come before its launches.

    They compile the proof library with the first compiler that can, in the environment of the job,
    and let each node tell its state. ``launcher`` are the words that start the test's ranks.
    """
    job = stage / FOLDER
    library, linked, log = (_quoted(job / one) for one in (_LIBRARY, _LINKED, "libproof.err"))
    sources = " ".join(_quoted(one) for one in PROOF_FILES)
    mpicc = f'"$mpicc" -O2 -fPIC -shared -pthread -o {library} {sources} -ldl'
    candidates = " ".join(map(_quoted, compilers))
    yield f"for mpicc in {candidates}; do {mpicc} && break; done > {log} 2>&1"
    yield f"ldd {library} > {linked} 2>> {log}"
    # What lacks a library of its own would keep the program from starting.
    yield f'grep -q "not found" {linked} && rm -f {library}'
    yield f"[ -e {library} ] && clustergate_proof=yes"
    nodes = _quoted(job / NODES)
    state = " ".join(map(_quoted, state_command(job / NODES)))
    # Of the ranks of a node, the first says it.
    first = f"mkdir {nodes}/.of-$(uname -n) 2>/dev/null || exit 0; exec {state}"
    yield f"timeout {_NODES_S} {launcher} sh -c {_single(first)} < /dev/null > {nodes}.out 2>&1"


def proving_words(stage: Path, order: int, nonce: str) -> list[str]:
    """Return the words in front of a program that let its ranks prove themselves, for a shell.

    There are none where the job could not compile the library.
    """
    job = stage / FOLDER
    inherited = {"LD_PRELOAD": "$LD_PRELOAD"}
    words = proving(job, order, nonce, str(job / _LIBRARY), inherited)
    return ["env", *(f"${{clustergate_proof:+{_quoted(one)}}}" for one in words)]


def launch_line(order: int, command: str) -> str:
    """Return the line of a job that launches once more, with output in a folder of its own."""
    output, errors = output_of(order)
    return f"{command} > {output} 2> {errors} < /dev/null"


def output_of(order: int) -> tuple[str, str]:
    """Return the files with the output of a launch but the first, in the test's stage folder."""
    folder = launch_folder(Path(FOLDER), order)
    return str(folder / OUTPUT), str(folder / ERRORS)


def make_folders(stage: Path, launches: int) -> None:
    """Make what the job's lines expect, anew where ReFrame keeps a stage folder."""
    job = stage / FOLDER
    shutil.rmtree(job, ignore_errors=True)
    for folder in (job / NODES, stage / KEPT, *(proof_folder(job, k) for k in range(launches))):
        folder.mkdir(parents=True, exist_ok=True)
    for order in range(1, launches):
        launch_folder(job, order).mkdir(exist_ok=True)


def _quoted(word: object) -> str:
    escaped = re.sub(r'(["\\`])', r"\\\1", str(word))
    return f'"{escaped}"'


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# --- what it left ---------------------------------------------------------------------------------


def asked_of(
    *,
    ranks: int | None,
    ranks_per_node: int | None,
    cores_per_rank: int | None,
    hosts: Sequence[str],
    own_cores: bool,
    by_srun: bool,
) -> ProofExpectation:
    """Return what a test asks of its launches; None, and no ``hosts``, where it asks nothing.

    Where ranks are to have threads of a core, these are no ``own_cores``.

    The library, and the word of each launch, are those of the job: see :func:`proven_by`.
    """
    ranks = max(ranks or 0, 0)
    nodes = -(-ranks // ranks_per_node) if ranks and ranks_per_node else None
    return ProofExpectation(
        nonce="",
        ranks=ranks,
        mpi_library="/",
        library_pattern="",
        nodes=nodes,
        hosts=tuple(hosts) or None,
        ranks_per_node=ranks_per_node,
        cores_per_rank=cores_per_rank or 1,
        own_cores=own_cores,
        bound=False,
        may_oversubscribe=cores_per_rank is None,
        by_srun=by_srun,
        threads_per_rank=None,
    )


def proven_by(
    stage: Path,
    nonce: str,
    launches: int,
    asked: ProofExpectation,
    compilers: Sequence[str],
    output: str,
    reports: Path,
) -> Proven:
    """Return what the launches of a test proved.

    ``output`` is the file of the first launch's standard output. What nodes said of themselves is
    kept with the ``reports`` of all sessions, and the whole proof below :data:`KEPT`.
    """
    job = stage / FOLDER
    try:
        states = keep_states(job / NODES, reports)
    except OSError:
        # Whoever may not write there has no states to compare.
        states = {}
    details: dict[str, Any] = {
        "node_states": {node: digest_of(state) for node, state in states.items()},
        "processors": sorted({name for state in states.values() if (name := processor_of(state))}),
    }
    if not (job / _LIBRARY).exists():
        why = UNPROVEN_MPICC(compilers=[*compilers], log=str(job / "libproof.err"))
        return Proven(unproven=(why,), details=details)
    asked = replace(asked, mpi_library=_linked(job) or asked.mpi_library)
    against: dict[int, list[Reason]] = {}
    made: list[Launch] = []
    try:
        for order in range(launches):
            folder = proof_folder(job, order)
            records = proof.read_proofs(folder)
            expected = replace(
                asked,
                nonce=launch_nonce(nonce, order),
                ranks=asked.ranks or max((one.size for one in records), default=0),
            )
            path = stage / (output_of(order)[0] if order else output)
            against[order], _ = read_output(folder, expected, _no_rows, path, stage)
            made.append(_launch(order, proof.read_proofs(folder)))
        details["proof"] = whole = proof.summary(proof.read_proofs(proof_folder(job, 0)))
        (stage / KEPT / "proof.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
        details["proof"] = {k: v for k, v in whole.items() if k != "ranks"}
    except ClustergateError as error:
        return Proven(unproven=(error.reason,), details=details)
    said = proof.by_launch(against, str(stage))
    if unseen := next((one for one in said if one.code in _UNSEEN), None):
        # Of what is not seen, nothing else that is said holds.
        return Proven(unproven=(unseen,), details={**details, "proof": {}})
    return Proven(tuple(made), complaints=tuple(said), details=details)


def _no_rows(lines: object, source: str) -> tuple[()]:
    return ()


def _linked(job: Path) -> str:
    """Return the MPI library that the proof library has in the environment of the job."""
    text = (job / _LINKED).read_text(encoding="utf-8", errors="replace")
    match = re.search(r"^\s*libmpi\S* => (/\S+)", text, re.MULTILINE)
    return str(Path(match[1]).resolve().parent) if match else ""


def _launch(order: int, records: Sequence[RankProof]) -> Launch:
    span = span_of(records)
    started, seconds = (span.began_s, span.seconds) if span else (0.0, 0.0)
    return launch_of(node_loads(records), order, started, seconds)
