"""What samples say: estimates, comparisons, changes and verdicts with known error rates."""

MAD = 1.4826
"""Of the normal distribution: the standard deviation, in median absolute deviations."""
