"""Which node, link or switch is slow: every node alone, pairs in rounds, and what follows.

:mod:`~clustergate.studies.screen.rounds` plans which nodes meet when,
:mod:`~clustergate.studies.screen.localisation` says from what was measured who is to blame and how
sure that is.
"""
