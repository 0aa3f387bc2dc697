"""What a large system costs: its cases listed, a screening of its nodes but for the launches."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from clustergate.benchmarks.registry import every_check
from clustergate.paths import checkout
from clustergate.report.screening import first_screen, render_screening
from clustergate.screening.findings import Screening, analyse
from clustergate.screening.measures import MEASURES, Result
from clustergate.screening.plan import Log
from clustergate.screening.rounds import rounds as rounds_of_pairs
from clustergate.session import reframe
from clustergate.sites import configs as sites
from clustergate.sites import modes
from tools.bench.spread import Aim, Figure
from tools.bench.workspace import BenchError, Workspace

SECTION = "scale"
NODES = 10_000
LATENCY, BANDWIDTH = "pingpong_latency_us", "pingpong_bandwidth_mb_s"
_ROUNDS = 8
_NODES_OF_A_SITE = 100
# Latency in us, bandwidth in MB/s, and their spread; one node is slower by half.
_SOUND, _SPREAD, _SLOWER = (1.5, 12000.0), 0.03, 1.5
_CULPRIT = 77


def measure(
    room: Workspace, *, rounds: Iterable[int], nodes: int = NODES, say: Callable[[str], None]
) -> Iterator[Figure]:
    """Yield what it takes to plan a site's cases, and to plan, judge and draw a screening.

    Raises :class:`~tools.bench.workspace.BenchError` when the slow node is not found.
    """
    say(f"scale: a site of {_NODES_OF_A_SITE} nodes, a screening of {nodes}")
    site = room.home / "large.py"
    text = (checkout() / "site_configs" / "template.py").read_text(encoding="utf-8")
    site.write_text(text.replace('"nodes": 4,', f'"nodes": {_NODES_OF_A_SITE},'), encoding="utf-8")
    options = modes.reframe_options(modes.mode_named("acceptance"), [*every_check()])
    listing = reframe.command(options, action="--list")
    variables = sites.reframe_variables(site, sites.load(site))
    listed, planned, judged, drawn, sizes = [], [], [], [], []
    for _ in rounds:
        listed.append(room.timed(listing, variables=variables).cpu_seconds)
        begun = time.process_time()
        for _pairs in rounds_of_pairs(nodes, seed=1):
            pass
        planned.append(time.process_time() - begun)
        names = [f"n{k:05d}" for k in range(nodes)]
        results = _results(names)
        begun = time.process_time()
        screening = analyse(names, results)
        judged.append(time.process_time() - begun)
        if [one.nodes for one in screening.findings] != [(names[_CULPRIT],)]:
            raise BenchError("the slow node was not found")
        begun = time.process_time()
        sizes.append(len(_page(screening, names, results)) / 1e6)
        drawn.append(time.process_time() - begun)
    subject = f"screening of {nodes} nodes"
    what = f"all pairs planned; {_ROUNDS} rounds of pairs judged and drawn"
    time_of = "processor time"
    yield Figure(
        SECTION, f"{_NODES_OF_A_SITE} nodes, cases listed", time_of, "s", listed, "", Aim(10.0)
    )
    for quantity, values, aim in (("planned", planned, 1.0), ("judged", judged, 5.0)):
        yield Figure(SECTION, subject, f"{time_of}, {quantity}", "s", values, what, Aim(aim))
    yield Figure(SECTION, subject, f"{time_of}, page", "s", drawn, what)
    yield Figure(SECTION, subject, "page", "MB", sizes, what, Aim(5.0))


def _results(names: list[str]) -> list[Result]:
    random = np.random.default_rng(1)
    found = []
    for turn, pairs in enumerate(itertools.islice(rounds_of_pairs(len(names), seed=1), _ROUNDS)):
        noise = np.exp(random.normal(0.0, _SPREAD, (len(pairs), 2)))
        for pair, (latency, bandwidth) in zip(pairs, noise, strict=True):
            slower = _SLOWER if _CULPRIT in pair else 1.0
            values = {
                LATENCY: _SOUND[0] * latency * slower,
                BANDWIDTH: _SOUND[1] * bandwidth / slower,
            }
            pair_names = names[pair[0]], names[pair[1]]
            found.append(Result(pair_names, MEASURES[LATENCY].kind, turn, values))
    return found


def _page(screening: Screening, names: list[str], results: list[Result]) -> str:
    log = Log(tuple(names), tuple(results), ended=True)
    first = first_screen(log, screening, "20261123T000000Z-r1")
    return render_screening(first, screening, results, system="large", started="")
