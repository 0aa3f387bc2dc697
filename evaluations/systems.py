"""The papers' systems in ReFrame's own form: site configs, hostfiles and references from the facts.

The machines are gone. Their site configs still say what was run on them, so that a dry run writes
the job scripts and inputs of each evaluation, and so that a run on a machine like one of them has
its references.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from clustergate.benchmarks.naming import meaning_of
from clustergate.benchmarks.registry import benchmark_of, builds_on_request, every_metric
from clustergate.core.model import Better, ClustergateError
from clustergate.core.words import INPUT_UNKNOWN_NAME
from clustergate.judge.references.expectations import EXPECT
from clustergate.judge.references.validation import INDEX, PROVENANCE, figure_metric
from clustergate.sites import configuration, stack
from evaluations import quantities
from evaluations.facts import STANDS, FactsError, Paper, PrintedValue, System, load_papers

PARTITION = "cpus"
# By the qualifier of a value, how much worse than it is tolerated, as a fraction of it. A bound
# holds as it is; the suite tolerates 5 % elsewhere, and an approximate number is no better known.
TOLERANCE = {
    **{"": 0.05, "up to": 0.05, "about": 0.10, "a little above": 0.10, "a little below": 0.10},
    **dict.fromkeys(("below", "above", "at least"), 0.0),
}
_LEVELS = ["$partition", "$environ", "reference_layout", "reference_effort"]
# Settings of a site that are no extras of its partition.
_NOT_EXTRAS = ("scheduler", "stacks", "assumed")


class UnknownSystem(ClustergateError):
    """A system was named that no paper has, or that is no machine of its own."""


def systems() -> dict[str, tuple[Paper, System]]:
    """Return the systems that have a site config, with their papers."""
    return {
        system.id: (paper, system)
        for paper in load_papers()
        for system in paper.systems.values()
        if system.site is not None
    }


def site_of(name: str, **instead: Any) -> dict[str, Any]:
    """Return the site configuration of one of the papers' systems.

    Nothing matches its ``hostnames``: it is used by its name alone. Where no scheduler is printed,
    the ranks are started on the nodes of the hostfile. ``instead`` are extras of its partition, and
    ``stacks``, in the place of the paper's, for a machine that is like it. Raises
    :class:`UnknownSystem`.
    """
    paper, system = _system(name)
    site = {**(system.site or {}), **instead}
    stated = {key: value for key, value in site.items() if key not in _NOT_EXTRAS}
    over_ssh = "scheduler" not in site and site["nodes"] > 1
    partition = {
        "name": PARTITION,
        "scheduler": site.get("scheduler", "local"),
        "launcher": "clustergate-ssh" if over_ssh else "clustergate",
        "max_jobs": 1,
        "extras": {**stated, **({"mode": paper.mode} if paper.mode else {})},
    }
    described = {
        "name": name,
        "descr": f"{system.name}, of paper {paper.id}",
        "hostnames": [],
        "partitions": [partition],
    }
    return configuration(systems=[described], stacks=[_stack(n, paper) for n in site["stacks"]])


def _stack(name: str, paper: Paper) -> dict[str, Any]:
    """Return a stack with the applications that a paper ran."""
    if not name.startswith("spack-"):
        return stack(name)
    checks = paper.checks.values()
    run = [benchmark_of(check).name for check in checks]
    wanted = [name for name in run if name in builds_on_request()]
    return stack(name, "spack", spack={"applications": wanted} if wanted else {})


def hostfile_of(name: str) -> str:
    """Return the text of a system's hostfile; its nodes have names of ours."""
    paper, system = _system(name)
    site = system.site or {}
    nodes, width = site["nodes"], len(str(site["nodes"]))
    names = "n1" if nodes == 1 else f"n[{1:0{width}}-{nodes}]"
    return (
        f"# {system.name}, of paper {paper.id}, which prints no names of nodes.\n"
        f"{names}  slots={site['cores_per_node']}\n"
    )


def references_of(name: str) -> str:
    """Return the text of a system's reference file, empty where nothing printed can be one.

    A value becomes a reference when it stands as printed and the facts name its figure and its
    launch. The worse side is bounded: by 5 %, by 10 % for what is printed as approximate. What the
    paper prints as a bound, such as "below 5 us", is what people expect (``expect:``).
    """
    paper, system = _system(name)
    document: CommentedMap = CommentedMap()
    document[PROVENANCE] = CommentedMap()
    for value in asserted_of(paper, system.id):
        for stack_name in _stacks_of(value, system, paper):
            for layout in _layouts_of(value, system):
                where = (f"{name}:{PARTITION}", stack_name, layout, paper.mode)
                if one := _expected(paper, value, stack_name, layout):
                    assert value.suite is not None
                    stated = document.setdefault(EXPECT, CommentedMap())
                    stated.setdefault(value.suite.figure, []).append(one)
                else:
                    _enter(document, paper, value, where)
    if not document[PROVENANCE]:
        del document[PROVENANCE]
    if not document:
        return ""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 100
    yaml.dump(document, stream)
    origin = f"references/published/{paper.id}.yaml"
    return f"# Written by `clustergate evaluation refresh` from {origin}.\n{stream.getvalue()}"


def is_assertable(value: PrintedValue) -> bool:
    """Tell whether a printed value can be a reference: it stands, its figure and launch are named.

    What is doubtful is one where its launch is the only one for which it can be true: the facts
    then name that launch (``asserted``). A ratio of two machines is no reference of one.
    """
    suite = value.suite
    if suite is None or suite.relative or not suite.layout or "*" in suite.figure:
        return False
    if value.better is Better.NEITHER:
        return False
    return (value.standing == STANDS or suite.asserted) and (
        value.value is not None or value.low is not None
    )


# Why a value of a category is no reference, though it is of a figure.
_OF_NO_SYSTEM = {"column maximum": "the table names no system"}


def no_reference(value: PrintedValue) -> str:
    """Return why a printed value is no reference, nothing of one that is."""
    if is_assertable(value):
        return ""
    if value.suite is None and not value.derived:
        return quantities.why_not(value)
    if value.no_reference or value.because:
        return value.no_reference or value.because
    if value.category in _OF_NO_SYSTEM:
        return _OF_NO_SYSTEM[value.category]
    if "of" in value.derived or (value.suite and value.suite.relative):
        return "it is of two launches beside each other, and a reference is of one"
    if value.better is Better.NEITHER:
        return "where something changes is neither better nor worse; a conclusion asks for it"
    if value.derived:
        return "it follows from several cases, and a reference is of one"
    return f"the paper leaves open: {', '.join(value.not_stated)}" if value.not_stated else ""


def asserted_of(paper: Paper, system: str) -> list[PrintedValue]:
    """Return the values that are references of a system."""
    return [
        value
        for value in values_of(paper, system)
        if value.suite and is_assertable(value) and system in (value.suite.of or [system])
    ]


def _layouts_of(value: PrintedValue, system: System) -> list[str]:
    assert value.suite is not None
    counts = (system.site or {})["process_counts"] if "*" in value.suite.layout else [""]
    return [value.suite.layout.replace("*", str(count)) for count in counts]


def _system(name: str) -> tuple[Paper, System]:
    known = systems()
    if name not in known:
        raise UnknownSystem(INPUT_UNKNOWN_NAME(kind="system", name=name, known=list(known)))
    return known[name]


def values_of(paper: Paper, system: str) -> list[PrintedValue]:
    """Return the values printed of a system, of all its kind, or of a variant of it."""
    return [
        value
        for value in paper.values.values()
        if value.system in paper.family(system) or system in paper.family(value.system)
    ]


def _stacks_of(value: PrintedValue, system: System, paper: Paper) -> Sequence[str]:
    """Return the stacks that a value is of: those that play the variant it was printed of."""
    site = system.site or {}
    played = paper.systems[value.system].played_by
    return [name for name in site["stacks"] if not played or name in played]


_LAYOUT = re.compile(r"(\d+)-ranks-(packed|one-per-node)")


def _expected(paper: Paper, value: PrintedValue, stack: str, layout: str) -> dict[str, Any] | None:
    """Return a printed floor or ceiling as an expectation; None for what is a reference."""
    suite, shape = value.suite, _LAYOUT.fullmatch(layout)
    assert suite is not None
    # A name that no check has is of a figure that the study derives.
    if TOLERANCE[value.qualifier] or not shape or not meaning_of(suite.figure, suite.check):
        return None
    bound, lower, _, unit = entry_of(value)
    return {
        "value": f"{'<=' if lower is None else '>='} {bound:g} {unit}",
        "source": provenance_of(paper, value)["source"],
        "stacks": stack,
        "modes": paper.mode,
        "ranks": int(shape[1]),
        "placement": shape[2],
    }


def _enter(document: Any, paper: Paper, value: PrintedValue, path: Sequence[str]) -> None:
    suite = value.suite
    assert suite is not None
    node = document.setdefault(suite.check, CommentedMap())
    if INDEX not in node:
        node[INDEX] = CommentedSeq(_LEVELS)
        node[INDEX].fa.set_flow_style()
    for key in path:
        node = node.setdefault(key, CommentedMap())
    if suite.figure in node:
        raise FactsError(f"{paper.source}: {value.id} is another reference of {suite.figure}")
    node[suite.figure] = CommentedSeq(entry_of(value))
    node[suite.figure].fa.set_flow_style()
    where = "/".join((suite.check, *path, suite.figure))
    document[PROVENANCE][where] = CommentedMap(provenance_of(paper, value))


def entry_of(value: PrintedValue) -> list[Any]:
    """Return ``[value, lower, upper, unit]`` of a value that is assertable."""
    suite = value.suite
    assert suite is not None
    kind = figure_metric(suite.figure)
    assert kind is not None
    metric = every_metric()[kind[1]]
    higher = metric.better is Better.HIGHER
    number = value.value if value.value is not None else value.low if higher else value.high
    assert number is not None
    tolerance = TOLERANCE[value.qualifier]
    bounds = [-tolerance, None] if higher else [None, tolerance]
    return [round(float(number) * suite.factor, 6), *bounds, metric.unit]


def provenance_of(paper: Paper, value: PrintedValue) -> Mapping[str, str]:
    """Return the origin of a reference in the form of a reference file."""
    printed = f"printed: {value.text} {value.unit}"
    if value.not_stated:
        printed += f"; not stated: {', '.join(value.not_stated)}"
    told = [text for text in (printed, value.because, value.remark) if text]
    return {
        "origin": "published",
        "source": f"paper {paper.id}, {value.source} ({value.id})",
        "remark": ". ".join(text.rstrip(".") for text in told),
    }
