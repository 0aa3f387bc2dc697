"""Which node, link or switch is slow: every node alone, pairs in rounds, and what follows.

:mod:`~clustergate.screening.rounds` plans which nodes meet when,
:mod:`~clustergate.screening.localisation` says from what was measured who is to blame and how sure
that is.
"""
