"""The one place that launches: what every study of a stack starts, it starts here.

Studies differ in what they plan and in how they read what is left. A launch is the same for all of
them: it has a folder of its own, the environment that its stack declares, no file of the user's
home, the library that proves it, a word that no other launch has, a time limit where it needs one,
and a line in the job's log.

It imports little: the start of a job's driver is part of what the suite costs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from clustergate.core.files.shared import refresh_listing
from clustergate.core.files.stored import encode
from clustergate.core.model import ClustergateError
from clustergate.core.reasons import Reason, Words
from clustergate.launch.disturbance import NodeLoad, are_far, launch_of, node_loads
from clustergate.launch.ending import (
    ENDING_SECONDS,
    SESSION_ENDING_SECONDS,
    end,
    end_session,
    not_interrupted,
)
from clustergate.launch.plan import (
    ERRORS,
    HASHES,
    LOG,
    NODES,
    OUTPUT,
    Contender,
    Launched,
    Round,
    environment_with,
    launch_folder,
    proof_folder,
    proving,
)
from clustergate.launch.proof.ranks import ProofError, mistimed_note, read_proofs
from clustergate.launch.watchdog import HUNG, Patience, Watch, watching
from clustergate.machine.configuration import ConfigurationFile, keep_personal_files_out
from clustergate.machine.load import load_between, read_load
from clustergate.machine.node import hash_command, node_record, state_command
from clustergate.machine.power import energy_between, longest_s, read_energy
from clustergate.machine.traffic import read_sent, sent_between

_HOME = "home"
# For a process on each node to say something, and for each of many nodes more.
_SAYING_S, _NODE_S = 60.0, 0.05
# A hypervisor that moved cores apart mostly brings them together within a second.
_NEAR_AGAIN_S, _EVERY_S = 3.0, 0.1


class LaunchError(ClustergateError):
    """A program could not be started, or did not end in time; ``status`` is that of a shell."""

    def __init__(self, problem: Reason, /, status: int = 127) -> None:
        super().__init__(problem)
        self.status = status


LAUNCH_FAILED = Words("launch.failed", "{sentence}")
JOB_ENDING = Words("launch.job-ending", "it was not started, since the job is ending")
TOO_LONG = Words("launch.too-long", "it took longer than {seconds:g} s")
NOT_ON_EACH_NODE = Words(
    "launch.not-on-each-node",
    "{count} of {nodes} nodes started no process within {seconds:.0f} s",
    cause="the launcher waits for them; processes started on {told:names}",
    remedy="see nodes.err, and whether each node has the folders of the stack",
)
TOO_LONG_AT = Words(
    "launch.too-long-at",
    "it took longer than {seconds:g} s",
    cause="{who}",
    remedy="it was ended: see what these ranks wait for",
)
NOT_STARTED = Words("launch.not-started", "{command} cannot be started", cause="{why}")


class Engine:
    """Launches in the folder of a job, one at a time or many at once on nodes of their own.

    ``nonce`` is a word that no other job has. ``environ`` is what launches inherit, that of this
    process where none is given. With ``own_sessions`` whatever is left of a launch that must not
    go on is found and killed, and a Ctrl-C at the terminal does not reach it; else it stays in the
    job's process group, so that whoever kills the job kills it too. Where launches run ``at_once``,
    what this node goes through is noted of them :meth:`together`, not with each.
    """

    def __init__(
        self,
        job: Path,
        nonce: str,
        *,
        environ: MutableMapping[str, str] | None = None,
        own_sessions: bool = False,
        at_once: bool = False,
    ) -> None:
        self.job = job
        self._nonce = nonce
        self._environ = os.environ if environ is None else environ
        self._own_sessions = own_sessions
        self._at_once = at_once
        self._home: list[str] = []
        self._logs = False
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes] | None] = set()
        self._stopped = False
        self._distance: tuple[Sequence[str], Mapping[str, str]] = ((), {})
        self._distance_ns: float | None = None
        self._nearest_ns = math.inf
        self._may_wait_s = _NEAR_AGAIN_S

    def begin_log(self) -> None:
        """Note what this node is, and each launch from now on: lines of JSON in the job's log."""
        self._logs = True
        self.note({"began": round(time.time(), 3)})
        self.note({"machine": node_record()})

    def note(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the log, if it was begun."""
        if self._logs:
            line = json.dumps(entry) + "\n"
            with self._lock, (self.job / LOG).open("a", encoding="utf-8") as log:
                log.write(line)

    def keep_home_out(self) -> tuple[ConfigurationFile, ...]:
        """Keep the user's configuration files out of all launches; return and note them."""
        home = self.job / _HOME
        if files := keep_personal_files_out(self._environ, home):
            # For env in front of each rank: elsewhere the home folder is whatever the login says.
            self._home = [f"HOME={home}"]
            self.note({"kept_out": [dataclasses.asdict(file) for file in files]})
        return files

    def watch_distance(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        near_ns: float | None = None,
    ) -> None:
        """Measure with this command how far two cores are from each other, between launches.

        ``near_ns`` is how near earlier jobs saw them.
        """
        self._distance = command, environment
        if near_ns:
            self._nearest_ns = near_ns
            self.note({"near_ns": near_ns})
        self._distance_ns = self._core_distance_ns()

    def launch(
        self, contender: Contender, order: int, turn: int = 0, *, near: bool = False
    ) -> Launched:
        """Launch once, wait for the end, and return what is noted of it.

        ``order`` is unique in the folder. It is put off for a while until cores are ``near``, if
        that is wanted, and made again, once, where nothing but the MPI library's timer ran wrong.
        Raises :class:`LaunchError` when it cannot be started or takes longer than the contender
        may; OSError when its folder cannot be written.
        """
        waited_s = self._wait_for_near_cores() if near else 0.0
        launched = self.attempt(contender, order, turn)
        if not (launched.status or launched.failed) and (note := self._mistimed(order)):
            self.note({"note": note})
            waited_s += launched.launch.seconds
            launched = self.attempt(contender, order, turn)
        launched = dataclasses.replace(launched, waited_s=waited_s)
        self._may_wait_s += launched.launch.seconds
        if launched.failed:
            raise LaunchError(LAUNCH_FAILED(sentence=launched.failed), launched.status)
        self.note(encode(launched))
        return launched

    def attempt(
        self, contender: Contender, order: int, turn: int, nodes: Sequence[str] = ()
    ) -> Launched:
        """Launch once on these nodes; that it was not started, or too slow, is told, not raised.

        Whoever reads what it left notes it. Raises OSError when its folder cannot be written.
        """
        folder, proofs = launch_folder(self.job, order), proof_folder(self.job, order)
        folder.mkdir()
        proofs.mkdir(parents=True)
        for name, text in contender.inputs.items():
            (folder / name).write_text(text, encoding="utf-8")
        before = None if self._at_once else _node_now()
        started, begun = time.time(), time.monotonic()
        failed = ""
        try:
            status = self._run(
                [*contender.launcher, *self._proving(contender, order), *contender.program],
                contender.environment,
                (folder, folder / OUTPUT, folder / ERRORS),
                contender.seconds,
                (contender.patience, proofs) if contender.patience else None,
            )
        except LaunchError as error:
            status, failed = error.status, str(error)
            if error.reason.code == HUNG.code:
                self.note({"hung": dict(error.reason.facts)})
        seconds = time.monotonic() - begun
        node = _node_between(before, seconds) if before else {}
        distances = [] if self._at_once else self._distances_ns()
        launch = dataclasses.replace(
            launch_of(_loads(proofs), order, started, seconds),
            core_distance_ns=max(distances, default=None),
            node=node,
        )
        return Launched(
            contender.name,
            turn,
            status,
            launch,
            distances,
            tuple(nodes),
            failed=failed,
            without=tuple(contender.without),
        )

    def _mistimed(self, order: int) -> str:
        """Return why a launch is worth another, and put away what it left; empty where it is not.

        Seen in one of 38 launches of HPCC with Intel MPI beside other programs: the timer of one
        rank was 1.5 % slow.
        """
        folders = launch_folder(self.job, order), proof_folder(self.job, order)
        try:
            note = mistimed_note(read_proofs(folders[1]))
        except ProofError:
            # Whoever judges the records says so.
            return ""
        for folder in folders if note else ():
            os.rename(folder, folder.with_name(f"mistimed-{folder.name}"))
        return note

    @contextlib.contextmanager
    def together(self, turn: int) -> Iterator[None]:
        """Note what this node goes through while the launches of a round run at once."""
        before, begun = _node_now(), time.monotonic()
        yield
        node = _node_between(before, time.monotonic() - begun)
        self.note(dataclasses.asdict(Round(turn, node, self._distances_ns())))

    def run_aside(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: str,
        seconds: float | None = None,
    ) -> int:
        """Run a command in the job's folder that is no launch, and return its exit status.

        What it says is in the file ``output`` there, and its complaints beside that, in ``.err``.
        How long it took is noted. Raises what :meth:`launch` raises.
        """
        files = self.job, self.job / output, self.job / f"{output}.err"
        begun = time.monotonic()
        status = self._run(command, environment, files, seconds)
        self.note({"aside_s": round(time.monotonic() - begun, 4)})
        return status

    def note_nodes(
        self, on_each_node: Sequence[str], environment: Mapping[str, str], nodes: int = 1
    ) -> None:
        """Let each node say what should stay the same, by words that start a process on each.

        Whoever reads it sees which of them did not. Raises :class:`LaunchError` where the launcher
        waits for some of so many ``nodes``: it would in each launch. In an allocation of Slurm,
        Hydra waits for ever for a node that lacks its proxy, as srun goes on beside the others.
        """
        folder = self.job / NODES
        folder.mkdir(exist_ok=True)
        files = self.job, self.job / f"{NODES}.out", self.job / f"{NODES}.err"
        limit_s = _SAYING_S + _NODE_S * nodes
        try:
            self._run([*on_each_node, *state_command(folder)], environment, files, limit_s)
        except LaunchError as error:
            refresh_listing(folder)
            heard = sorted(node.name for node in folder.glob("[!.]*"))
            if error.reason.code == TOO_LONG.code and len(heard) < nodes:
                facts = {"count": nodes - len(heard), "nodes": nodes, "seconds": limit_s}
                raise LaunchError(NOT_ON_EACH_NODE(**facts, told=heard or ["none"]), 1) from None

    def unlike(
        self,
        on_each_node: Sequence[str],
        environment: Mapping[str, str],
        own: Mapping[str, str],
        shared: Mapping[str, str],
        order: int,
    ) -> dict[str, list[str]]:
        """Return by node which files are others there than here, by their names.

        They are those of the launch of that ``order``: nodes' ``own`` by their SHA-256, ``shared``
        ones by that of their size and ends, empty where this node lacks one: another version has
        another name. A node that says nothing is left out.
        """
        folder = self.job / f"{HASHES}-{order}"
        folder.mkdir()
        said = self.job, folder.with_suffix(".out"), folder.with_suffix(".err")
        with contextlib.suppress(LaunchError):
            self._run(
                [*on_each_node, *hash_command(folder, own, shared)], environment, said, _SAYING_S
            )
        refresh_listing(folder)
        unlike, files = {}, {**own, **shared}
        for node in sorted(folder.glob("[!.]*")):
            lines = node.read_text(encoding="utf-8", errors="replace").splitlines()
            there = {path: said for said, _, path in (line.partition("  ") for line in lines)}
            if there:
                unlike[node.name] = [k for k, said in files.items() if there.get(k, "") != said]
        return unlike

    def end_all(self) -> None:
        """End what runs, and start nothing any more."""
        with self._lock:
            self._stopped = True
            running = list(filter(None, self._running))
        for process in running:
            process.terminate()

    def _proving(self, contender: Contender, order: int) -> list[str]:
        """Return the words in front of the program that let each rank prove itself."""
        if not contender.proves:
            return []
        environment = environment_with(contender.environment, self._environ)
        return [
            "env",
            *self._home,
            *proving(self.job, order, self._nonce, contender.proof_library, environment),
            *([f"CLUSTERGATE_PROOF_EVERY={p.every_s:g}"] if (p := contender.patience) else []),
        ]

    def _run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[Path, Path, Path],
        seconds: float | None,
        watch: tuple[Patience, Path] | None = None,
    ) -> int:
        """Run a command to its end and return its status; when interrupted, end it first.

        ``files`` are the folder that it runs in, its standard output and its standard error. With
        a ``watch``, its patience and the folder of its proofs, it is ended when it hangs.
        """
        folder, output, errors = files
        process, seen = None, None
        with output.open("xb") as said, errors.open("xb") as complained:
            try:
                with self._lock, not_interrupted():
                    if self._stopped:
                        raise LaunchError(JOB_ENDING())
                    process = subprocess.Popen(
                        command,
                        env=environment_with(environment, self._environ),
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=complained,
                        start_new_session=self._own_sessions,
                    )
                    self._running.add(process)
                with self._watching(process, folder, watch) as seen:
                    status = process.wait(seconds)
                if seen and seen.hung and status:
                    raise LaunchError(seen.hung, status)
                return status
            except subprocess.TimeoutExpired as late:
                self._end(process)
                after_s = round(late.timeout, 1)
                why = TOO_LONG(seconds=after_s)
                if seen:
                    why = TOO_LONG_AT(seconds=after_s, who=seen.who())
                raise LaunchError(why, -signal.SIGKILL) from None
            except OSError as error:
                raise LaunchError(NOT_STARTED(command=command[0], why=error)) from None
            except BaseException:
                self._end(process)
                raise
            finally:
                with self._lock:
                    self._running.discard(process)

    def _watching(
        self,
        process: subprocess.Popen[bytes],
        folder: Path,
        watch: tuple[Patience, Path] | None,
    ) -> contextlib.AbstractContextManager[Watch | None]:
        if watch is None:
            return contextlib.nullcontext()
        patience, proofs = watch
        return watching(
            patience, folder, proofs, lambda: self._end(process, SESSION_ENDING_SECONDS)
        )

    def _end(
        self, process: subprocess.Popen[bytes] | None, seconds: float = ENDING_SECONDS
    ) -> None:
        if process is not None and self._own_sessions:
            end_session(process)
        elif process is not None:
            end(process, seconds)

    def _wait_for_near_cores(self) -> float:
        """Wait while cores are farther apart than they were in this job; return the seconds of it.

        Of 2,000 recorded launches of tenths of a second on virtual machines, cores were far at the
        end of two in three that began so, and of one in six that did not. All waiting together
        takes little longer than the launches.
        """
        begun = time.monotonic()
        last = begun + min(_NEAR_AGAIN_S, self._may_wait_s) - _EVERY_S
        while (
            self._distance_ns
            and are_far(self._distance_ns, self._nearest_ns)
            and time.monotonic() < last
        ):
            time.sleep(_EVERY_S)
            self._distance_ns = self._core_distance_ns()
        waited_s = time.monotonic() - begun
        self._may_wait_s -= waited_s
        return round(waited_s, 1)

    def _distances_ns(self) -> list[float]:
        """Return the round trips between two cores, that of the last time and that of now."""
        before, self._distance_ns = self._distance_ns, self._core_distance_ns()
        return [ns for ns in (before, self._distance_ns) if ns is not None]

    def _core_distance_ns(self) -> float | None:
        """Return the best round trip of a cache line between two cores, None where none is told."""
        command, declared = self._distance
        if not command:
            return None
        environment = environment_with(declared, self._environ)
        try:
            ended = subprocess.run(
                command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            ns = float(json.loads(ended.stdout.partition(b"\n")[0])["round_trip_ns"]["best"])
        except (OSError, ValueError, KeyError, TypeError):
            # A single core has none, and without it nothing is known to be disturbed.
            return None
        self._nearest_ns = min(self._nearest_ns, ns)
        return ns


def _loads(proofs: Path) -> list[NodeLoad]:
    try:
        refresh_listing(proofs)
        return node_loads(read_proofs(proofs))
    except ProofError:
        # Whoever judges the proofs says so.
        return []


def _node_now() -> tuple[Mapping[str, Any], Any, Any]:
    return read_load(), read_sent(), read_energy()


def _node_between(before: tuple[Mapping[str, Any], Any, Any], seconds: float) -> dict[str, Any]:
    """Return what the node went through, as far as it shows it."""
    (load, sent, energy), (load_now, sent_now, energy_now) = before, _node_now()
    node: dict[str, Any] = {**load_between(load, load_now)}
    if sent_meanwhile := sent_between(sent, sent_now):
        node["sent_bytes"] = sent_meanwhile
    if seconds < longest_s(energy):
        node |= energy_between(energy, energy_now)
    return node
