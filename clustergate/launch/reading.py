"""What a launch left: whether it was the launch asked for, and the rows in its output."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clustergate.core.files.shared import LATEST_S, mount_of, refresh_listing
from clustergate.core.model import OutputError, Row
from clustergate.core.reasons import Reason, Words
from clustergate.launch.dialects import Layout
from clustergate.launch.node_failures import cause_of
from clustergate.launch.plan import (
    Contender,
    Launched,
    launch_folder,
    launch_nonce,
    output_in,
    proof_folder,
)
from clustergate.launch.proof import provenance
from clustergate.launch.proof.ranks import (
    PROOF_MISSING_RANKS,
    PROOF_NO_RECORD,
    PROOF_UNFINISHED,
    ProofError,
    ProofExpectation,
    RankProof,
    check_proofs,
    read_proofs,
)
from clustergate.stacks.manifest import Manifest

Parse = Callable[[Iterable[str], str], Iterable[Row]]
"""Turns the lines of an output into rows; the second argument names it in an error."""

# What is said of records that have not come into sight yet.
_LATE = {PROOF_NO_RECORD.code, PROOF_MISSING_RANKS.code, PROOF_UNFINISHED.code}
_LOOKING_S = 0.5


def expected_of(manifest: Manifest, layout: Layout) -> ProofExpectation:
    """Return what a launch of a stack must prove, but for its nonce, its nodes and its time."""
    return ProofExpectation(
        nonce="",
        ranks=layout.ranks,
        nodes=layout.nodes,
        mpi_library=manifest.mpi_library,
        library_pattern=manifest.library_pattern,
        ranks_per_node=layout.ranks_per_node,
        cores_per_rank=layout.cores_per_rank,
        bound=layout.bind,
    )


def read_planned(
    job: Path, nonce: str, contender: Contender, made: Launched, parse: Parse
) -> tuple[list[Reason], list[Row]]:
    """Return what :func:`read_launch` does of a launch whose plan says what it must prove.

    ``nonce`` is that of the plan. On one node, unless the launch names others.
    """
    if contender.expected is None:
        raise ValueError(f"the plan does not say what {contender.name} must prove")
    expected = replace(
        contender.expected,
        nonce=launch_nonce(nonce, made.launch.order),
        nodes=len(made.nodes) or 1,
        hosts=made.nodes or None,
        launch_s=made.launch.seconds,
    )
    return read_launch(job, made.launch.order, expected, parse, contender.output)


OUTPUT_UNREADABLE = Words("output.unreadable", "the output {source} cannot be read: {why}")


def read_launch(
    job: Path, order: int, expected: ProofExpectation, parse: Parse, output: str = ""
) -> tuple[list[Reason], list[Row]]:
    """Return what speaks against a launch having been the one asked for, and its rows.

    ``output`` is the file that the program writes into, standard output where it is empty. Raises
    :class:`~clustergate.launch.proof.ranks.ProofError` for records that cannot be read.
    """
    path = output_in(launch_folder(job, order), output)
    proofs = proof_folder(job, order)
    return read_output(proofs, expected, parse, path, job, is_stdout=not output)


def read_output(
    records: Path,
    expected: ProofExpectation,
    parse: Parse,
    path: Path,
    job: Path,
    *,
    is_stdout: bool = True,
) -> tuple[list[Reason], list[Row]]:
    """Return what :func:`read_launch` does, by the folder of the ranks' records and the output.

    Sentences name the output as it lies in the folder of the ``job``.
    """
    proofs, complaints = _in_sight(records, expected)
    source = str(path.relative_to(job))
    try:
        rows = list(parse(lines_of(path), source))
        complaints += provenance.complaints(
            *(proofs, expected.nonce, rows, lines_of(path)), source=source, is_stdout=is_stdout
        )
    except OutputError as error:
        return [*complaints, error.reason], []
    except OSError as error:
        return [*complaints, OUTPUT_UNREADABLE(source=source, why=error.strerror)], []
    return complaints, rows


def _in_sight(folder: Path, expected: ProofExpectation) -> tuple[Sequence[RankProof], list[Reason]]:
    """Return the records of a launch and what speaks against it.

    On a file system of several nodes a record may come into sight late, or be seen as it was
    before: where one is missing, it is looked for again until some seconds after the newest.
    Raises ProofError.
    """
    until = _newest(folder) + LATEST_S if mount_of(folder).is_shared else 0.0
    while True:
        may_be_late = time.time() < until
        try:
            proofs = read_proofs(folder)
            complaints = check_proofs(proofs, expected)
            if not (may_be_late and _LATE & {one.code for one in complaints}):
                return proofs, complaints
        except ProofError:
            if not may_be_late:
                raise
        refresh_listing(folder)
        time.sleep(_LOOKING_S)


def _newest(folder: Path) -> float:
    """Return when something changed in a folder, but not in the future: clocks differ."""
    with contextlib.suppress(OSError):
        changed = max(path.stat().st_mtime for path in (folder, *folder.glob("*")))
        return min(changed, time.time())
    return time.time()


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of an output, with their ends."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def ending_of(status: int, outputs: Sequence[Path], hosts: Sequence[str] = ()) -> str:
    """Return how a program ended that should have ended with status 0, with its last words."""
    number = -status if status < 0 else status - 128 if 128 < status < 128 + signal.NSIG else 0
    how = f"signal {number}, {signal.strsignal(number)}" if number else f"exit status {status}"
    return f"it ended with {how}{last_words(outputs, hosts)}"


def last_words(
    outputs: Sequence[Path], hosts: Sequence[str] = (), *, was_ended: bool = False
) -> str:
    """Return why a launch failed as these files tell it, else the last that it said.

    Of one that ``was_ended`` not the last, which came of that.
    """
    texts = [[*lines_of(path)] for path in outputs if path.exists()]
    for lines in texts:
        if cause := cause_of(lines, hosts, was_ended=was_ended):
            return f"; it said: {cause}"
    for lines in texts if not was_ended else ():
        if spoken := [line.strip() for line in lines if line.strip()]:
            return f"; its last words: {spoken[-1][:200]}"
    return ""
