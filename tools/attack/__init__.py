"""A red team: attacks on what the suite takes for the result of a run.

``make attack`` runs all of it, the tests a share. docs/attacks.md says what counts as wrong. Not
installed with the suite.
"""
