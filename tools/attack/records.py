"""Attacks on the records that ranks leave of themselves."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from clustergate.launch.proof.ranks import (
    BlasIdentity,
    ProofError,
    ProofExpectation,
    RankProof,
    check_proofs,
    read_proofs,
)
from tools.attack.captures import DATA
from tools.attack.tally import Tally

FOLDER = DATA / "proof" / "mpich-dgemm"
ASKED = ProofExpectation(
    nonce="20261121-mpich-dgemm",
    ranks=2,
    mpi_library="/opt/stacks/mpich",
    library_pattern=r"MPICH Version:\s+5\.0\.2",
    nodes=1,
    hosts=("vm",),
    ranks_per_node=2,
    blas_kernel="SkylakeX",
)
Records = list[RankProof]


def _with_kernels(record: RankProof, kernel: str) -> RankProof:
    assert isinstance(record.blas, BlasIdentity)
    return replace(record, blas=replace(record.blas, kernel=kernel))


def _on_cores(record: RankProof, cores: dict[int, str]) -> RankProof:
    assert record.at_init is not None
    moment = replace(record.at_init, affinity=cores)
    return replace(record, at_init=moment, at_finalize=moment)


# Each makes of the records of two good ranks those of another launch than was asked for.
LIES: dict[str, Callable[[RankProof, RankProof], Records]] = {
    "a rank left no record": lambda a, b: [a],
    "nobody left a record": lambda a, b: [],
    "a rank left two": lambda a, b: [a, b, b],
    "two ranks of one number": lambda a, b: [a, replace(b, rank=0)],
    "singletons": lambda a, b: [replace(a, size=1), replace(b, rank=0, size=1)],
    "more ranks": lambda a, b: [replace(a, size=4), replace(b, size=4)],
    "another launch": lambda a, b: [replace(a, nonce="other"), replace(b, nonce="other")],
    "a record of another launch": lambda a, b: [a, b, replace(b, nonce="other")],
    "another node": lambda a, b: [a, replace(b, hostname="elsewhere")],
    "never at MPI_Finalize": lambda a, b: [a, replace(b, finalized=False, at_finalize=None)],
    "aborted": lambda a, b: [a, replace(b, aborted=True)],
    "another MPI library": lambda a, b: [a, replace(b, mpi_library=("/usr/lib/libmpi.so.12",))],
    "another version of it": lambda a, b: [a, replace(b, library_version="MPICH Version: 3.4")],
    "other BLAS kernels": lambda a, b: [a, _with_kernels(b, "Prescott")],
    "what nobody asked to preload": lambda a, b: [a, replace(b, foreign_preloads=("/tmp/x.so",))],
    "two ranks on one core": lambda a, b: [_on_cores(a, {0: "0"}), _on_cores(b, {0: "0"})],
    "unbound": lambda a, b: [_on_cores(x, {0: "0", 1: "1"}) for x in (a, b)],
}


def told_lies() -> Tally:
    """Let the records lie in each way."""
    tally = Tally("ranks' records of another launch")
    first, second = read_proofs(FOLDER)
    for name, lie in LIES.items():
        tally.tried += 1
        if check_proofs(lie(first, second), ASKED):
            tally.refused += 1
        else:
            tally.wrong.append(name)
    return tally


def _facts(proofs: Sequence[RankProof]) -> list[tuple[object, ...]]:
    """Return what was asked of each rank; which core is its own was not."""
    return [(p.rank, p.size, p.hostname, p.nonce, p.finalized, p.aborted) for p in proofs]


def damaged(tries: int, seed: int = 0) -> Tally:
    """Cut the file of a record anywhere, or change a character of it."""
    tally = Tally("a rank's record damaged")
    texts = {path.name: path.read_text() for path in sorted(FOLDER.glob("rank-*.json"))}
    honest = _facts(read_proofs(FOLDER))
    for k in range(tries):
        chance = Random(f"{seed}/{k}")
        name = chance.choice(list(texts))
        text, where = texts[name], chance.randrange(len(texts[name]))
        changed = text[:where]
        if chance.random() < 0.7:
            changed += chance.choice('0123456789"{}[],:. -ex\n\0') + text[where + 1 :]
        tally.tried += 1
        with tempfile.TemporaryDirectory() as folder:
            for other, kept in {**texts, name: changed}.items():
                (Path(folder) / other).write_text(kept)
            try:
                proofs = read_proofs(Path(folder))
                told = check_proofs(proofs, ASKED)
            except ProofError:
                tally.refused += 1
                continue
            except Exception as error:  # an error of the suite's own is no answer
                tally.wrong.append(f"{name} at {where}: {type(error).__name__}: {error}")
                continue
        if told:
            tally.refused += 1
        elif _facts(proofs) == honest:
            tally.harmless += 1
        else:
            tally.wrong.append(f"{name} at {where}: {text[where]!r} changed")
    return tally
