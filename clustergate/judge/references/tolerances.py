"""How much worse figures of a kind may be, as ``tolerances`` of a system's references says.

.. code-block:: yaml

    tolerances: {compute: 3 %, memory: 5 %, latency: 10 %, bandwidth: 5 %, collectives: 20 %}

Pure.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from clustergate.core.files.marked_yaml import Document
from clustergate.core.model import (
    BANDWIDTH,
    COLLECTIVE,
    COMPUTE,
    KINDS,
    LATENCY,
    MEMORY,
    Better,
    Reference,
    Sample,
)
from clustergate.core.notation import did_you_mean, nearest
from clustergate.core.reasons import Reason, Words
from clustergate.judge.runs import kind_in
from clustergate.judge.runs import usual as usually_worse

TOLERANCES = "tolerances"
TEMPLATE: Mapping[str, tuple[int, str]] = {
    COMPUTE: (3, "operators tolerate 2 to 15 %"),
    MEMORY: (5, "operators: 5 %"),
    LATENCY: (10, "messages below 64 KiB; operators: 15 %; more where ranks lie now near, now far"),
    BANDWIDTH: (5, "messages from 64 KiB on; operators: 15 %"),
    COLLECTIVE: (20, "operators: 15 %; more from 64 nodes on"),
}
"""What to begin with, in percent, and what is to be known of it."""
_PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*%\s*")
# What loses half of its rate is broken.
_MOST = 0.5


def tolerances_in(document: Document) -> dict[str, float]:
    """Return the tolerances of a valid file by kind, as fractions."""
    given = (document.data or {}).get(TOLERANCES, {})
    return {kind: read_tolerance(text) or 0.0 for kind, text in given.items()}


def read_tolerance(text: object) -> float | None:
    """Return a tolerance such as ``3 %`` as a fraction, None for what is none below a half."""
    match = _PERCENT.fullmatch(text) if isinstance(text, str) else None
    fraction = float(match[1]) / 100 if match else math.inf
    return fraction if fraction < _MOST else None


TOLERANCE_VALUE = Words(
    "tolerance.value",
    "{value!r} is no tolerance",
    remedy="write 3 % for 3 % worse; what is 50 % worse is broken",
)
EXPECT_KEY = Words("expect.key", "unknown key {key!r}", remedy="the keys are {known:list}{meant}")


def complaints_of(document: Document) -> Iterator[tuple[Sequence[str | int], Reason]]:
    """Yield what is wrong with the tolerances of a file that has the form of the schema."""
    for kind, text in (document.data or {}).get(TOLERANCES, {}).items():
        path, at = (TOLERANCES, kind), f"{TOLERANCES}/{kind}"
        if kind not in KINDS:
            meant = did_you_mean(nearest(kind, KINDS))
            yield path, EXPECT_KEY(key=kind, known=[*KINDS], meant=meant).at(at)
        elif read_tolerance(text) is None:
            yield path, TOLERANCE_VALUE(value=str(text)).at(at)


def tolerated(
    reference: Reference, tolerances: Mapping[str, float], check: str, sample: Sample
) -> Reference:
    """Return a measured reference with the bound that the tolerance of its kind sets.

    It counts from what the runs of its baseline were in the mean, since the best of many is better
    than any machine usually is. What a person wrote has its own bound.
    """
    kind = kind_in(check, sample.benchmark, sample.metric, sample.conditions.get("bytes"))
    tolerance = tolerances.get(kind)
    if tolerance is None or reference.by_hand or sample.better is Better.NEITHER:
        return reference
    known = reference.baseline
    usual = usually_worse(known, reference.value, sample.better) if known else 0.0
    higher = sample.better is Better.HIGHER
    bound = math.exp(-usual) * (1 - tolerance) if higher else math.exp(usual) * (1 + tolerance)
    sides = (bound - 1, None) if higher else (None, bound - 1)
    lower, upper = sides
    return dataclasses.replace(reference, lower=lower, upper=upper, tolerance=tolerance)
