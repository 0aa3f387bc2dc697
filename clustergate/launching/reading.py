"""What a launch left: whether it was the launch asked for, and the rows in its output."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from clustergate.launching.dialects import Layout
from clustergate.launching.node_failures import first_node_failure
from clustergate.launching.plan import (
    OUTPUT,
    Contender,
    Launched,
    launch_folder,
    launch_nonce,
    proof_folder,
)
from clustergate.model import OutputError, Row
from clustergate.proof import provenance
from clustergate.proof.ranks import ProofExpectation, check_proofs, read_proofs
from clustergate.stacks.manifest import Manifest
from clustergate.wording.reasons import Reason, reason

Parse = Callable[[Iterable[str], str], Iterable[Row]]
"""Turns the lines of an output into rows; the second argument names it in an error."""


def expected_of(manifest: Manifest, layout: Layout) -> ProofExpectation:
    """Return what a launch of a stack must prove, but for its nonce, its nodes and its time."""
    return ProofExpectation(
        nonce="",
        ranks=layout.ranks,
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


def read_launch(
    job: Path, order: int, expected: ProofExpectation, parse: Parse, output: str = ""
) -> tuple[list[Reason], list[Row]]:
    """Return what speaks against a launch having been the one asked for, and its rows.

    ``output`` is the file that the program writes into, standard output where it is empty. Raises
    :class:`~clustergate.proof.ranks.ProofError` for records that cannot be read.
    """
    proofs = read_proofs(proof_folder(job, order))
    complaints = check_proofs(proofs, expected)
    path = launch_folder(job, order) / (output or OUTPUT)
    source = str(path.relative_to(job))
    try:
        rows = list(parse(lines_of(path), source))
        complaints += provenance.complaints(
            *(proofs, expected.nonce, rows, lines_of(path)), source=source, is_stdout=not output
        )
    except OutputError as error:
        return [*complaints, error.reason], []
    except OSError as error:
        return [*complaints, reason("output.unreadable", source=source, why=error.strerror)], []
    return complaints, rows


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of an output, with their ends."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file


def ending_of(status: int, said: Sequence[Path], hosts: Sequence[str] = ()) -> str:
    """Return how a program ended that should have ended with status 0, with its last words."""
    number = -status if status < 0 else status - 128 if 128 < status < 128 + signal.NSIG else 0
    how = f"signal {number}, {signal.strsignal(number)}" if number else f"exit status {status}"
    return f"it ended with {how}{last_words(said, hosts)}"


def last_words(said: Sequence[Path], hosts: Sequence[str] = ()) -> str:
    """Return what a failed launch said of its nodes in these files, else the last that it said."""
    texts = [[*lines_of(path)] for path in said if path.exists()]
    for lines in texts:
        if first := first_node_failure(lines, hosts):
            return f"; it said: {first}"
    for lines in texts:
        if spoken := [line.strip() for line in lines if line.strip()]:
            return f"; its last words: {spoken[-1][:200]}"
    return ""
