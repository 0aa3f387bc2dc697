"""What a large system costs: its cases listed, a screening and a run of it but for the launches."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator

from clustergate.benchmarks.registry import every_check
from clustergate.core.paths import checkout
from clustergate.run import reframe
from clustergate.sites import configs as sites
from clustergate.sites import modes
from tools.bench import scale_child
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import Workspace

SECTION = "scale"
NODES = 10_000
_NODES_OF_A_SITE = 100


def measure(
    room: Workspace, *, rounds: Iterable[int], nodes: int = NODES, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield what it takes to plan a site's cases, and to plan, judge and draw a screening.

    Raises :class:`~tools.bench.workspace.BenchError` when the slow node is not found.
    """
    say(f"scale: a site of {_NODES_OF_A_SITE} nodes, a screening and a run of {nodes}")
    site = room.home / "large.py"
    text = (checkout() / "site_configs" / "template.py").read_text(encoding="utf-8")
    site.write_text(text.replace('"nodes": 4,', f'"nodes": {_NODES_OF_A_SITE},'), encoding="utf-8")
    options = modes.reframe_options(modes.mode_named("acceptance"), [*every_check()])
    listing = reframe.command(options, action="--list")
    variables = sites.reframe_variables(site, sites.load(site))
    listed = []
    found: dict[str, list[float]] = {}
    for _ in rounds:
        listed.append(room.timed(listing, variables=variables).cpu_seconds)
        for name, value in _round(room, nodes).items():
            found.setdefault(name, []).append(value)
    time_of = "processor time"
    yield Figure(
        SECTION, f"{_NODES_OF_A_SITE} nodes, cases listed", time_of, "s", listed, "", Aim(10.0)
    )
    subject = f"{nodes} nodes, {scale_child.CASES} stacks x benchmarks"
    what = (
        f"all pairs and cases planned; {scale_child.ROUNDS} rounds of pairs, the nodes' states and "
        f"{scale_child.LAUNCHES} launches of each case read, judged and drawn"
    )
    for quantity, aim in (("planned", 10.0), ("judged", 10.0), ("drawn", None)):
        bound = Aim(aim) if aim else None
        yield Figure(SECTION, subject, f"{time_of}, {quantity}", "s", found[quantity], what, bound)
    for quantity, most in (("page of the screening", 5.0), ("page of the run", 5.0)):
        yield Figure(SECTION, subject, quantity, "MB", found[quantity], what, Aim(most))
    yield Figure(SECTION, subject, "peak memory", "MB", found["peak memory"], what, Aim(1000.0))


def _round(room: Workspace, nodes: int) -> dict[str, float]:
    """Return what a process planned, judged and drew, and in what time and memory."""
    with tempfile.TemporaryDirectory(dir=room.home) as home:
        command = [sys.executable, "-m", "tools.bench.scale_child", str(nodes)]
        room.timed(command, variables={"CLUSTERGATE_HOME": home, "PYTHONPATH": str(checkout())})
    told: dict[str, float] = json.loads(room.output().splitlines()[-1])
    return told
