"""What a launch left: whether it was the launch asked for, and the rows in its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from clustergate.launching.plan import OUTPUT, launch_folder, proof_folder
from clustergate.model import OutputError, Row
from clustergate.proof import provenance
from clustergate.proof.ranks import ProofExpectation, check_proofs, read_proofs

Parse = Callable[[Iterable[str], str], Iterable[Row]]
"""Turns the lines of an output into rows; the second argument names it in an error."""


def read_launch(
    job: Path, order: int, expected: ProofExpectation, parse: Parse, output: str = ""
) -> tuple[list[str], list[Row]]:
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
        return [*complaints, str(error)], []
    except OSError as error:
        return [*complaints, f"the output {source} cannot be read: {error.strerror}"], []
    return complaints, rows


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of an output, with their ends."""
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from file
