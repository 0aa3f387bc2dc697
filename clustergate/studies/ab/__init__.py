"""A against B: who they are, what their rounds say, and what to do about it."""
