"""A case as the judge takes it: its figures, each with all that it is judged by. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from clustergate.benchmarks.limits import Measurement
from clustergate.benchmarks.registry import descriptor_of
from clustergate.core.figures import SAME_MATRIX, matrix_order
from clustergate.core.model import (
    CaseRecord,
    Conditions,
    Expectation,
    Limit,
    NodeFacts,
    Reference,
    Sample,
)
from clustergate.core.reasons import Facts, Reason, Words
from clustergate.judge.disproof import disproved
from clustergate.judge.references.expectations import Expect, expected_of
from clustergate.launch.estimation import Sampled, sampled_figures
from clustergate.machine.peaks import nearest_ns, peaks_of

Nodes = Mapping[str, NodeFacts]
"""What limits depend on, by system:partition."""
NO_NODES: Nodes = {}

ReferenceOf = Callable[[str, str, str, Conditions, Sample], Reference | None]
"""What to expect of a figure: by check, partition, stack and conditions of its case."""


@dataclass(frozen=True)
class MeasuredFigure(Sampled):
    """A figure with all that it is judged by.

    ``doubt`` is why its benchmark does not trust its value, ``wrong`` why its reference is proven
    wrong. ``expectations`` are what people wrote that it must reach.
    """

    reference: Reference | None = None
    limits: Sequence[Limit] = ()
    doubt: Reason | None = None
    wrong: Reason | None = None
    expectations: Sequence[Expectation] = ()


def measure_case(
    record: CaseRecord,
    reference_of: ReferenceOf = lambda check, partition, stack, conditions, sample: None,
    nodes: Nodes = NO_NODES,
    expects: Sequence[Expect] = (),
) -> list[MeasuredFigure]:
    """Estimate the figures of a case, and look up what each is judged by.

    References are doubted where they were measured otherwise.
    """
    benchmark, peaks = descriptor_of(record.check), peaks_of(record.peaks)
    node = dataclasses.replace(
        nodes.get(record.partition, NodeFacts()), nearest_ns=nearest_ns(record.peaks)
    )
    order = matrix_order(record.samples, benchmark.matrix) or 0
    sampled = sampled_figures(record.samples, record.launches, record.launches_needed, record.check)
    samples, values = [one.sample for one in sampled], [one.estimate.value for one in sampled]
    case = (record.check, record.partition, record.stack, record.conditions)
    references = [_doubted(reference_of(*case, sample), record, order) for sample in samples]
    doubts = map(benchmark.doubt, samples, values)
    wrong = disproved(record.check, sampled, references, exclusive=bool(node.exclusive))
    limits = [
        benchmark.limits(Measurement(record.check, record.conditions, sample, peaks, node))
        # Of unknown cores nothing is known.
        if "ranks_per_node" in record.conditions
        else ()
        for sample in samples
    ]
    stated = expected_of(expects, case, samples, values)
    return [
        # What is not to be trusted proves nothing.
        MeasuredFigure(
            **vars(one),
            reference=known,
            limits=bounds,
            doubt=doubt,
            wrong=None if doubt else why,
            expectations=by_hand,
        )
        for one, known, bounds, doubt, why, by_hand in zip(
            sampled, references, limits, doubts, wrong, stated, strict=True
        )
    ]


OTHER_PROCESSOR = Words(
    "reference.other-processor",
    "the reference was measured on another processor",
    cause="{there} then, {here} now; a faster one would hide a slow-down",
    remedy="take a baseline on this processor, or judge it as a system of its own; see {where}",
)
UNKNOWN_PROCESSOR = Words(
    "reference.unknown-processor",
    "the reference was measured on {there}, and the nodes did not tell their processors",
    remedy="see why the job's node states are missing; see {where}",
)
OTHER_NODES = Words(
    "reference.other-nodes",
    "the reference was measured on {there:node|nodes} and this on {here:node|nodes}",
    cause="the site config had other cores in a node, so that as many ranks lay otherwise",
    remedy="take a new baseline; see {where}",
)
SMALLER_MATRIX = Words(
    "reference.smaller-matrix",
    "the reference is of a matrix of order {there}, and this of one of {here}",
    cause="a larger one has a higher rate, and would hide a slow-down",
    remedy="take a new baseline; see {where}",
)
OTHER_METHOD = Words(
    "reference.other-method",
    "the reference was not measured in the way of this run",
    cause="the benchmark, or what its mode asks of it, was changed since",
    remedy="take a new baseline; see {where}",
)


def _doubted(reference: Reference | None, record: CaseRecord, order: int) -> Reference | None:
    # A faster processor, fewer nodes to cross, a larger matrix, or a method that yields better
    # values, would hide as much of a slowdown.
    if reference is None:
        return reference
    where = reference.where or "it"
    there, here = "; ".join(reference.processors), "; ".join(record.processors)
    if there and {*reference.processors} != {*record.processors}:
        words = OTHER_PROCESSOR if here else UNKNOWN_PROCESSOR
        doubt = words(there=there, here=here, where=where)
    elif reference.nodes and reference.nodes != record.conditions.get("nodes", reference.nodes):
        nodes: Facts = {"there": reference.nodes, "here": record.conditions["nodes"]}
        doubt = OTHER_NODES(**nodes, where=where)
    elif order > (1 + SAME_MATRIX) * reference.order > 0:
        of: Facts = {"there": reference.order, "here": order}
        doubt = SMALLER_MATRIX(**of, where=where)
    elif reference.method and reference.method != record.method:
        doubt = OTHER_METHOD(where=where)
    else:
        return reference
    return dataclasses.replace(reference, doubt=doubt)
