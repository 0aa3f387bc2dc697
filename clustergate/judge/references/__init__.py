"""What to expect of a figure, with its origin."""
