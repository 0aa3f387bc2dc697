"""What a person reads to learn which of two MPI libraries is faster, with three tools.

Each runs PingPong of the IMB, the same binary with the same options. hyperfine times whole
processes, ReFrame prints what each launch of a test gave, and neither claims to compare figures.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from tools.bench import harness
from tools.bench.spread import Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "answers"
_PINGPONG = harness.PROGRAMS[1]
_SIZES = (8, 1 << 20)
# A test as people write it: the launch, and two of its figures.
_TEST = """
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class PingPong(rfm.RunOnlyRegressionTest):
    script = parameter({scripts})
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "bash -e"

    @run_before("run")
    def set_script(self):
        self.executable_opts = [self.script]

    @sanity_function
    def ended(self):
        return sn.assert_found("All processes entering MPI_Finalize", self.stdout)

    def time(self, size):
        return sn.extractsingle(rf"^\\s+{{size}}\\s+\\d+\\s+(\\S+)", self.stdout, 1, float)

    @run_before("performance")
    def set_figures(self):
        of = sn.make_performance_function
        self.perf_variables = {{f"t_{{n}}": of(self.time(n), "us") for n in {sizes}}}
"""


@dataclass(frozen=True)
class Reading:
    """What a command printed, and after how many seconds the first number of a figure came."""

    lines: float
    words: float
    first_number_s: float
    seconds: float


_WHAT = {
    "lines": ("", "lines in a pipe that are not empty"),
    "words": ("", "words in a pipe"),
    "first_number_s": ("s", "from the start to the line with the first time of the benchmark"),
    "seconds": ("s", "from the start of the command to its end"),
}


def read(
    command: Sequence[str], number: str, variables: Mapping[str, str] | None = None
) -> Reading:
    """Run a command and read its output line by line; ``number`` is what its first number matches.

    Raises :class:`BenchError` where it prints none.
    """
    begun = time.perf_counter()
    first_s, lines = None, []
    with subprocess.Popen(
        command,
        env=variables and {**variables, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as running:
        assert running.stdout is not None
        for line in filter(str.strip, running.stdout):
            lines.append(line)
            if first_s is None and re.search(number, line):
                first_s = time.perf_counter() - begun
    if first_s is None:
        last = lines[-1].strip() if lines else "nothing"
        raise BenchError(f"{command[0]} printed no number of the benchmark; its last line: {last}")
    words = sum(len(line.split()) for line in lines)
    return Reading(len(lines), words, first_s, time.perf_counter() - begun)


def commands(room: Workspace, scripts: Mapping[str, str]) -> dict[str, tuple[list[str], str]]:
    """Return how each tool is called for these scripts by stack, and how its first number looks."""
    files = []
    for stack, script in scripts.items():
        path = room.home / f"pingpong-{stack}.sh"
        path.write_text(script, encoding="utf-8")
        files.append(str(path))
    test = room.home / "pingpong.py"
    test.write_text(_TEST.format(scripts=files, sizes=_SIZES), encoding="utf-8")
    config = room.home / "plain.py"
    config.write_text("site_configuration = {}\n", encoding="utf-8")
    sizes = ",".join(map(str, _SIZES))
    asked = ["--benchmarks", _PINGPONG.name, "--sizes", sizes, "--budget", "1m"]
    of_reframe = [
        *(str(Path(sys.executable).with_name("reframe")), "-C", str(config), "--system", "generic"),
        *("--prefix", str(room.home / "plain"), "-c", str(test), "-r"),
    ]
    by_tool = {
        "clustergate ab": (
            [sys.executable, "-m", "clustergate", "ab", *scripts, *asked],
            rf"^{_PINGPONG.name} .* us .*\d",
        ),
        "ReFrame": (of_reframe, r"\bP: t_\d+: [\d.]+ us"),
    }
    if hyperfine := shutil.which("hyperfine"):
        of_hyperfine = [f"bash -e {shlex.quote(file)}" for file in files]
        by_tool["hyperfine"] = ([hyperfine, *of_hyperfine], r"Time \(mean")
    return by_tool


def measure(
    room: Workspace, *, rounds: Iterable[int], say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield what each tool prints of two libraries, and when, where two with IMB are on disk.

    Raises :class:`BenchError` where a run fails.
    """
    scripts: dict[str, str] = {}
    for manifest in harness.stacks_on_disk():
        if len(scripts) < 2 and not manifest.program(_PINGPONG.program).unavailable:
            scenario = harness.Scenario(room, _PINGPONG, manifest.stack)
            scripts[manifest.stack] = scenario.script
    if len(scripts) < 2:
        return
    by_tool = commands(room, scripts)
    say(f"answers: {_PINGPONG.name} with {' and '.join(scripts)} by {', '.join(by_tool)}")
    readings: dict[str, list[Reading]] = {tool: [] for tool in by_tool}
    for _ in rounds:
        for tool, (command, number) in by_tool.items():
            readings[tool].append(read(command, number, room.environment()))
    for tool, several in readings.items():
        for quantity in fields(Reading):
            unit, what = _WHAT[quantity.name]
            name = quantity.name.removesuffix("_s").replace("_", " ")
            values = [getattr(one, quantity.name) for one in several]
            yield Figure(SECTION, tool, name, unit, values, what)
