"""Launch what is planned, again and again, and note what happened. Runs inside the job.

It starts on the job's first node, where a plain launch would have been, and imports little: its
start is part of what the suite costs. Each launch has a new folder for its output and another for
the records of its ranks, so that nothing of an earlier one can be taken for its own.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from clustergate.launching.allocation import allocated_hosts, hostfile_text
from clustergate.launching.disturbance import (
    NodeLoad,
    kept_off,
    node_loads,
    without_moved_cores,
    worst,
)
from clustergate.launching.ending import end, exit_status
from clustergate.launching.plan import (
    ERRORS,
    LOG,
    OUTPUT,
    Aside,
    Contender,
    JobLog,
    Launched,
    Plan,
    empty_home,
    environment_with,
    launch_folder,
    launch_nonce,
    preloading,
    proof_folder,
    read_plan,
)
from clustergate.launching.stopping import is_enough
from clustergate.machine.configuration import site_files
from clustergate.machine.energy import energy_between, longest_s, read_energy
from clustergate.machine.load import load_between, read_load
from clustergate.machine.traffic import read_sent, sent_between
from clustergate.model import ClustergateError, Launch, Sample
from clustergate.proof.ranks import ProofError, read_proofs
from clustergate.wording.notation import printable

_LAST_LINES = 20


class DriverError(ClustergateError):
    """A plan cannot be carried out here."""


class _Failed(Exception):
    """A program ended with that exit status, and with it the job."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def main(arguments: Sequence[str]) -> int:
    """Carry out the plan in the file named first, beside it, and return the job's exit status.

    That is the status of the first launch that failed, after which no other is made, or 128 and the
    number of the signal that ended it.
    """
    return exit_status(lambda: _carry_out(Path(arguments[0]).absolute()))


def _carry_out(path: Path) -> int:
    try:
        Driver(read_plan(path), path.parent).run()
    except _Failed as failed:
        return failed.status if failed.status > 0 else 128 - failed.status
    return 0


class Driver:
    """A plan and the folder of the job that carries it out."""

    def __init__(self, plan: Plan, job: Path) -> None:
        self._plan = plan
        self._job = job
        self._launches: list[Launched] = []
        self._distance_ns: float | None = None
        self._samples: dict[int, tuple[Sample, ...]] = {}
        self._home: list[str] = []
        self._surveyed: set[str] = set()

    def run(self) -> None:
        """Carry out the plan.

        Raises :class:`DriverError` when it was carried out in this folder before, or a program
        cannot be started.
        """
        try:
            log = (self._job / LOG).open("x", encoding="utf-8")
        except FileExistsError:
            raise DriverError(
                f"{self._job / LOG} is there already: what lies beside it is of another run; use "
                "an empty folder"
            ) from None
        with log:
            self._note_nodes(log)
            self._home, kept_out = empty_home(self._job)
            if kept_out:
                _note(log, {"kept_out": [dataclasses.asdict(file) for file in kept_out]})
            self._asides(self._plan.before, log)
            self._distance_ns = self._core_distance_ns()
            shuffle = random.Random(self._plan.seed).shuffle
            turn = 0
            while not self._is_enough():
                contenders = list(self._plan.contenders)
                shuffle(contenders)
                for contender in contenders:
                    self._launch(contender, turn, log)
                turn += 1
            self._asides(self._plan.after, log)

    def _note_nodes(self, log: TextIO) -> None:
        hosts = allocated_hosts(os.environ)
        if hosts is not None:
            _note(log, {"hosts": hosts})
        plan = self._plan
        if plan.hostfile:
            text = hostfile_text(hosts, plan.ranks_per_node, plan.hostfile_dialect)
            Path(plan.hostfile).write_text(text, encoding="utf-8")

    def _is_enough(self) -> bool:
        log = JobLog(self._launches)
        launches = without_moved_cores([made.launch for made in log.launches], log.nearest_ns)
        contenders: dict[str, list[Launch]] = {x.name: [] for x in self._plan.contenders}
        for made, launch in zip(self._launches, launches, strict=True):
            contenders[made.contender].append(launch)
        turns = list(zip(*contenders.values(), strict=True))
        return is_enough(
            self._plan.budget,
            [sum(launch.seconds for launch in turn) for turn in turns],
            sum(not any(launch.disturbed for launch in turn) for turn in turns),
            lambda: self._widest(contenders),
        )

    def _widest(self, contenders: Mapping[str, Sequence[Launch]]) -> float | None:
        """Return the widest interval of any figure; None when the outputs do not yield it."""
        # Only now, because it takes as long to import as everything else here together.
        from clustergate.launching.estimation import widest_interval

        try:
            widths = [
                widest_interval([s for x in launches for s in self._samples_of(x.order)], launches)
                for launches in contenders.values()
            ]
        except (ClustergateError, OSError, KeyError):
            # Whoever judges the outputs says what is wrong with them; more launches do not help.
            return 0.0
        known = [width for width in widths if width is not None]
        return max(known) if len(known) == len(widths) else None

    def _samples_of(self, order: int) -> tuple[Sample, ...]:
        if order not in self._samples:
            from clustergate.figures import samples_of

            module, _, name = self._plan.reader.partition(":")
            reader = getattr(importlib.import_module(module), name)
            output = self._plan.contenders[0].output or OUTPUT
            path = launch_folder(self._job, order) / output
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
            self._samples[order] = samples_of(reader(lines), order=order)
        return self._samples[order]

    def _core_distance_ns(self) -> float | None:
        """Return the best round trip of a cache line between two cores, None where none is told."""
        command = self._plan.core_distance
        if not command:
            return None
        environment = environment_with(self._plan.contenders[0].environment)
        try:
            ended = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            told = json.loads(ended.stdout.partition(b"\n")[0])
            return float(told["round_trip_ns"]["best"])
        except (OSError, ValueError, KeyError, TypeError):
            # A single core has none, and without it nothing is known to be disturbed.
            return None

    def _launch(self, contender: Contender, turn: int, log: TextIO) -> None:
        order = len(self._launches)
        folder, proofs = launch_folder(self._job, order), proof_folder(self._job, order)
        folder.mkdir()
        proofs.mkdir(parents=True)
        for name, text in contender.inputs.items():
            (folder / name).write_text(text, encoding="utf-8")
        command = [
            *contender.launcher,
            "env",
            *self._home,
            *preloading(contender.proof_library, environment_with(contender.environment)),
            f"CLUSTERGATE_PROOF_DIR={proofs}",
            f"CLUSTERGATE_PROOF_NONCE={launch_nonce(self._plan.nonce, order)}",
            *contender.program,
        ]
        before, sent, spent = read_load(), read_sent(), read_energy()
        started, begun = time.time(), time.monotonic()
        status = _run(command, contender.environment, folder, folder / OUTPUT, folder / ERRORS)
        seconds, after = time.monotonic() - begun, read_load()
        node: dict[str, Any] = _between(before, after)
        if sent := sent_between(sent, read_sent()):
            node["sent_bytes"] = sent
        if seconds < longest_s(spent):
            node |= energy_between(spent, read_energy())
        loads = _loads(proofs)
        lost, (one, anyone) = worst(loads), kept_off(loads)
        now_ns = self._core_distance_ns()
        distances = [ns for ns in (self._distance_ns, now_ns) if ns is not None]
        self._distance_ns = now_ns
        launch = Launch(
            order=order,
            started=round(started, 3),
            seconds=round(seconds, 4),
            host=lost.host if lost else "",
            lost_cores=round(lost.lost_cores, 4) if lost else None,
            stolen_cores=round(lost.stolen_cores, 4) if lost else None,
            core_distance_ns=max(distances, default=None),
            disturbed=str(lost) if lost and lost.disturbed else "",
            node=node,
            kept_off=None if one is None else round(one, 4),
            any_kept_off=None if anyone is None else round(anyone, 4),
        )
        launched = Launched(contender.name, turn, status, launch, distances)
        self._launches.append(launched)
        _note(log, dataclasses.asdict(launched))
        self._survey(contender, proofs, log)
        if status:
            _repeat_last_words(folder)
            raise _Failed(status)

    def _survey(self, contender: Contender, proofs: Path, log: TextIO) -> None:
        """Note the site's configuration files for what a contender's first launch has mapped."""
        if contender.name in self._surveyed:
            return
        self._surveyed.add(contender.name)
        try:
            mapped = {path: None for proof in read_proofs(proofs) for path in proof.objects}
        except ProofError:
            # Whoever judges the proofs says so.
            mapped = {}
        found = site_files([*contender.launcher[:1], *mapped])
        files = [dataclasses.asdict(file) for file in found]
        _note(log, {"contender": contender.name, "site_files": files})

    def _asides(self, asides: Iterable[Aside], log: TextIO) -> None:
        """Run what is aside in the environment of the first contender."""
        environment = self._plan.contenders[0].environment
        for aside in asides:
            begun = time.monotonic()
            errors = self._job / f"{aside.output}.err"
            status = _run(aside.command, environment, self._job, self._job / aside.output, errors)
            _note(log, {"aside_s": round(time.monotonic() - begun, 4)})
            if status:
                sys.stderr.write(_tail(errors))
                print(f"{aside.command[0]} ended with exit status {status}", file=sys.stderr)
                raise _Failed(status)


def _run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, output: Path, errors: Path
) -> int:
    """Run a command to its end and return its status; when interrupted, end it first.

    It stays in the job's process group, so that whoever kills the job kills it too.
    """
    with output.open("xb") as said, errors.open("xb") as complained:
        try:
            process = subprocess.Popen(
                command,
                env=environment_with(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
            )
        except OSError as error:
            raise DriverError(f"{command[0]} cannot be started: {error.strerror}") from None
        try:
            return process.wait()
        except BaseException:
            end(process)
            raise


def _loads(proofs: Path) -> list[NodeLoad]:
    try:
        return node_loads(read_proofs(proofs))
    except ProofError:
        # Whoever judges the proofs says so.
        return []


def _between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the node went through, as far as it shows it, with its mean clock at the end."""
    seen = {k: v for k, v in load_between(before, after).items() if v is not None}
    clocks = (after["clock_mhz_by_cpu"] or {}).values()
    return {**seen, **({"clock_mhz_mean": round(sum(clocks) / len(clocks), 1)} if clocks else {})}


def _note(log: TextIO, entry: Mapping[str, Any]) -> None:
    log.write(json.dumps(entry) + "\n")
    log.flush()


def _repeat_last_words(folder: Path) -> None:
    """Put the end of what a failed launch said where people look for it."""
    sys.stdout.write(_tail(folder / OUTPUT))
    sys.stderr.write(_tail(folder / ERRORS))


def _tail(path: Path) -> str:
    # ReFrame prints the job's output where the job failed.
    text = printable(path.read_text(encoding="utf-8", errors="replace"))
    return "".join(text.splitlines(True)[-_LAST_LINES:])
