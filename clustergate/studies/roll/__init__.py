"""Nodes screened while users work: an append-only ledger, a planner, a decision over weeks.

:mod:`~clustergate.studies.roll.ledger` keeps events, :mod:`~clustergate.studies.roll.state` is what
they amount to, :mod:`~clustergate.studies.roll.planner` says what runs next and
:mod:`~clustergate.studies.roll.decision` who is slow. All but the ledger are pure.
"""
