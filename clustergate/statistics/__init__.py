"""What samples say: estimates, comparisons, changes and verdicts with known error rates."""
