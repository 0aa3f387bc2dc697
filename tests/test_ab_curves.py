"""Leads, crossovers and dips of plain curves."""

from typing import Any

import pytest

from clustergate.stats.comparison import Relation
from clustergate.studies.ab.curves import (
    Crossover,
    Dip,
    Lead,
    SizeVerdict,
    Speed,
    crossovers,
    dips,
    leads,
    widest_lead,
)

A, B = Relation.A_BETTER, Relation.B_BETTER
SAME, OPEN = Relation.EQUIVALENT, Relation.INCONCLUSIVE

approx: Any = pytest.approx


def curve(*said: Relation) -> list[SizeVerdict]:
    return [SizeVerdict(1 << k, one, 1.0 + k / 10) for k, one in enumerate(said)]


def speeds(*values: float, doubt: float = 0.01) -> list[Speed]:
    return [
        Speed(1 << k, value, value * (1 - doubt), value * (1 + doubt))
        for k, value in enumerate(values)
    ]


def test_lead_goes_on_where_undecided_and_ends_where_equal():
    """A lead goes on where nothing can be told and ends where they are alike."""
    found = leads(curve(OPEN, A, OPEN, A, SAME, A, B))
    assert found == [
        Lead(A, 2, 8, 2, approx(1.1), approx(1.3)),
        Lead(SAME, 16, 16, 1, approx(1.4), approx(1.4)),
        Lead(A, 32, 32, 1, approx(1.5), approx(1.5)),
        Lead(B, 64, 64, 1, approx(1.6), approx(1.6)),
    ]


def test_lead_ends_after_two_undecided_sizes():
    found = leads(curve(A, OPEN, OPEN, A, A))
    assert [(lead.from_bytes, lead.to_bytes) for lead in found] == [(1, 1), (8, 16)]
    assert crossovers(curve(A, OPEN, OPEN, A, A)) == []


@pytest.mark.parametrize(
    ("said", "ends"),
    [
        ([A, A, B, B, B], (4, 16)),
        ([B, B, A, B, B, B, SAME], (8, 32)),
        # Of equally wide ones that of the largest gain, which grows with the size.
        ([B, B, A, B, B], (8, 16)),
        # What cannot be told within it ends it, as what is equal does.
        ([B, B, OPEN, B, B, B], (8, 32)),
        ([B, OPEN, B], None),
        ([A, B, A], None),
        ([A, A, SAME], None),
        ([], None),
    ],
)
def test_the_widest_lead_is_certain_at_each_of_its_sizes(said, ends):
    lead = widest_lead(curve(*said), B)
    assert (lead and (lead.from_bytes, lead.to_bytes)) == ends


def test_the_order_of_sizes_does_not_matter():
    assert leads(curve(A, B, B)[::-1]) == leads(curve(A, B, B))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([A, A, B, B], [Crossover(A, B, 2, 4)]),
        ([A, OPEN, SAME, OPEN, B], [Crossover(A, B, 1, 16)]),
        ([A, B, A], [Crossover(A, B, 1, 2), Crossover(B, A, 2, 4)]),
        ([A, SAME, A], []),
        ([OPEN, OPEN], []),
        ([], []),
    ],
)
def test_a_crossover_lies_between_certain_leads(said, expected):
    assert crossovers(curve(*said)) == expected


def test_a_dip_falls_and_rises_again():
    assert dips(speeds(1, 2, 4, 3, 6, 8)) == [Dip(8, 8, 8, approx(0.25))]
    assert dips(speeds(1, 2, 4, 3, 2, 3, 6, 8)) == [Dip(8, 32, 16, approx(0.5))]


def test_two_dips_are_two():
    assert [dip.bottom_bytes for dip in dips(speeds(1, 4, 2, 5, 3, 8))] == [4, 16]


@pytest.mark.parametrize(
    "values",
    [
        (1, 2, 4, 8),
        # It stays lower: a cache has ended.
        (1, 2, 8, 4, 4, 4),
        # Less than a tenth.
        (1, 2, 4, 3.8, 6),
        (),
        (1,),
    ],
)
def test_what_is_no_dip(values):
    assert dips(speeds(*values)) == []


def test_what_may_be_chance_is_no_dip():
    assert dips(speeds(1, 2, 4, 3, 6, 8, doubt=0.2)) == []
    unknown = [Speed(1 << k, v, None, None) for k, v in enumerate((1, 4, 2, 5))]
    assert dips(unknown) == []
